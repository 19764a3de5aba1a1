"""The generalised Hopfield model: fields, strengths, zeros, no patterns."""

import itertools
import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap import _chains
from dualtap.hopfield import HopfieldModel
from dualtap.spins import as_spins
from enumeration import (
    all_states,
    block_step,
    boltzmann,
    dense_energy,
    p_value,
    state_numbers,
    sweep_matrix,
    xoshiro128pp,
)

# --- fields ------------------------------------------------------------------------------------


def with_fields(n_spins, n_patterns, beta, scale=0.5, seed=0):
    b = scale * np.random.default_rng(seed).normal(size=n_spins)
    return HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed, fields=b)


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
def test_energy_with_fields(beta):
    model = with_fields(7, 3, beta)
    S = all_states(7)
    expected = dense_energy(model.patterns, S) - S @ model.fields / beta
    np.testing.assert_allclose(model.energy(S), expected, atol=1e-12)
    weight = np.exp(-beta * model.energy(S))
    np.testing.assert_allclose(weight / weight.sum(), boltzmann(model), rtol=1e-10)


@pytest.mark.parametrize(("beta", "start"), [(0.5, "random"), (1.0, "annealed"), (1.5, "patterns")])
def test_samples_with_fields_follow_the_boltzmann_distribution(beta, start):
    # The exact transition matrix of these patterns forgets by 0.85 a sweep at β = 1.5; those of
    # larger overlap by 0.996, which no test can wait for.
    model = with_fields(8, 2, beta, seed=3)
    X = model.sample(40_000, start=start, n_sweeps=120, random_state=1)
    assert p_value(X, boltzmann(model)) > 1e-3
    # The test has power: other temperatures and fields fail it.
    assert p_value(X, boltzmann(HopfieldModel(model.patterns, 1.2 * beta, model.fields))) < 1e-3
    assert p_value(X, boltzmann(HopfieldModel(model.patterns, beta, 0.9 * model.fields))) < 1e-3


def test_fields_of_zero_are_no_fields():
    model = HopfieldModel.random(8, 3, beta=1.0, random_state=0, fields=np.zeros(8))
    X = model.sample(40_000, start="random", n_sweeps=60, random_state=1)
    assert p_value(X, boltzmann(HopfieldModel(model.patterns, 1.0))) > 1e-3


def test_a_sweep_with_fields_is_a_block_step():
    model = with_fields(6, 2, beta=1.0)
    start = np.tile([[1, -1, 1, 1, -1, -1]], (40_000, 1))
    X = model.sample(40_000, start=start, n_sweeps=1, random_state=3)
    assert p_value(X, block_step(model, start[0])) > 1e-3
    assert p_value(X, boltzmann(model)) < 1e-3  # not there yet, and the test can tell


def test_annealing_leaves_the_fields_alone():
    # Forty sweeps: the first stage is a single one, at a twentieth of β and the whole fields.
    model = with_fields(6, 2, beta=3.0)
    start = np.tile([[1, -1, 1, 1, -1, -1]], (40_000, 1)).astype(np.int8)
    (beta, sweeps), *_ = _chains.annealing_schedule(3.0, 40, annealed=True)
    chains = _chains.BlockChains(model.patterns, model.fields, start, np.random.default_rng(0))
    chains.run(beta, sweeps)
    hot = HopfieldModel(model.patterns, 3.0 / 20, model.fields)
    assert p_value(chains.states(), block_step(hot, start[0])) > 1e-3


def test_lone_spins_follow_their_fields():
    b = np.linspace(-2, 2, 40)
    model = HopfieldModel.random(40, 1, beta=1e-9, random_state=0, fields=b)
    X = model.sample(20_000, n_sweeps=1, random_state=1)
    # Five standard errors of 1/√20000.
    np.testing.assert_allclose(X.mean(axis=0), np.tanh(b), atol=0.036)


def test_gauge_symmetry_with_fields_is_exact():
    rng = np.random.default_rng(3)
    model = with_fields(37, 5, beta=1.1)
    gauge = rng.choice([-1, 1], size=37)
    start = rng.choice([-1, 1], size=(41, 37))
    X = model.sample(41, start=start, n_sweeps=20, random_state=2)
    turned = HopfieldModel(model.patterns * gauge, 1.1, model.fields * gauge)
    Y = turned.sample(41, start=start * gauge, n_sweeps=20, random_state=2)
    np.testing.assert_array_equal(Y, X * gauge)
    assert (start != X).any()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 70),
    st.integers(1, 9),
    st.integers(1, 9),
    st.floats(0.01, 20),
    st.integers(0, 2**32 - 1),
)
def test_any_size_of_model_with_fields(n_spins, n_patterns, n_samples, beta, seed):
    # Fields beyond what couplings can do, βP at most, decide every spin.
    b = np.random.default_rng(seed).choice([-1, 1], size=n_spins) * 1e4
    model = HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed, fields=b)
    X = model.sample(n_samples, n_sweeps=2, random_state=seed)
    assert X.dtype == np.int8
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, np.tile(np.sign(b), (n_samples, 1)))


@pytest.mark.parametrize("n_spins", [1023, 1024, 1025, 2048])
def test_models_with_fields_of_awkward_sizes(n_spins):
    model = with_fields(n_spins, 3, beta=2.0, scale=0.2)
    X = model.sample(9, random_state=1)
    own = (X * model.patterns[np.arange(9) % 3]).mean(axis=1)
    assert own.min() > 0.85


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
@pytest.mark.parametrize("start", ["random", "patterns", "annealed"])
def test_samples_with_fields_do_not_depend_on_threads_or_calls(start, monkeypatch):
    monkeypatch.setattr(_chains, "_DRAWS_WORTH_THREADS", 0)
    model = with_fields(40, 5, beta=1.5)
    threads = numba.get_num_threads()
    kwargs = {"start": start, "n_sweeps": 30, "random_state": 1}
    X = model.sample(151, **kwargs)
    try:
        for n in (1, 2):
            numba.set_num_threads(n)
            np.testing.assert_array_equal(model.sample(151, **kwargs), X)
    finally:
        numba.set_num_threads(threads)
    monkeypatch.setattr(_chains, "_UPDATES_PER_CALL", 40 * 151 * 7)  # seven sweeps a call
    np.testing.assert_array_equal(model.sample(151, **kwargs), X)


def test_a_chain_with_fields_does_not_depend_on_the_others():
    model = with_fields(30, 5, beta=1.5)
    X = model.sample(60, start="patterns", n_sweeps=20, random_state=1)
    for n_samples in (1, 2, 37):
        Y = model.sample(n_samples, start="patterns", n_sweeps=20, random_state=1)
        np.testing.assert_array_equal(Y, X[:n_samples])


@pytest.mark.parametrize("start", ["auto", "patterns", "random", "annealed"])
def test_starts_with_fields_are_those_without(start):
    model = with_fields(30, 3, beta=1.5)
    kwargs = {"start": start, "random_state": 1}
    X, begin = model.sample(7, n_sweeps=0, return_start=True, **kwargs)
    np.testing.assert_array_equal(X, begin)
    bare = HopfieldModel(model.patterns, 1.5)
    np.testing.assert_array_equal(bare.sample(7, n_sweeps=0, **kwargs), begin)
    assert (model.sample(7, n_sweeps=5, **kwargs) != begin).any()


@pytest.mark.parametrize("start", ["patterns", "annealed"])
def test_recorded_energies_with_fields_are_those_of_the_states(start):
    model = with_fields(25, 4, beta=1.3)
    kwargs = {"start": start, "random_state": 5}
    result = model.equilibration(30, 20, **kwargs)
    assert result.energies.shape == (30, 20)
    X = model.sample(20, n_sweeps=30, **kwargs)
    np.testing.assert_allclose(result.energies[-1] * 25, model.energy(X), rtol=1e-13)
    assert with_fields(200, 2, beta=0.5).equilibration(random_state=1).equilibrated


def test_fields_are_kept_as_a_read_only_copy():
    b = [1, 0, -2]
    given = np.array(b, dtype=np.float32)
    model = HopfieldModel([[1, -1, 1]], beta=2, fields=given)
    given[0] = 7
    np.testing.assert_array_equal(model.fields, b)
    assert model.fields.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        model.fields[0] = 3
    assert HopfieldModel([[1, -1, 1]], beta=2).fields is None
    assert repr(model) == "HopfieldModel(n_spins=3, n_patterns=1, beta=2, with fields)"


def test_fields_do_not_change_the_patterns_drawn():
    bare = HopfieldModel.random(30, 2, beta=1.5, random_state=0)
    model = HopfieldModel.random(30, 2, beta=1.5, random_state=0, fields=np.arange(30))
    np.testing.assert_array_equal(model.patterns, bare.patterns)
    np.testing.assert_array_equal(model.fields, np.arange(30))


@pytest.mark.parametrize("fields", [1.0, [], [1.0, 2.0], [[1.0, 2.0, 3.0]], np.zeros((3, 1))])
def test_fields_of_the_wrong_shape(fields):
    with pytest.raises(ValueError, match=r"fields must have shape \(3,\).*got shape"):
        HopfieldModel([[1, -1, 1]], beta=1.0, fields=fields)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_fields_that_are_not_finite(bad):
    with pytest.raises(ValueError, match=r"fields must be finite, got .* at spin 1"):
        HopfieldModel([[1, -1, 1]], beta=1.0, fields=[0.0, bad, 0.0])


# --- strengths, zeros, no patterns -------------------------------------------------------------

ZETA = np.array(
    [[1, 1, -1, 1, -1, -1, 1], [1, -1, 1, 1, 1, -1, -1], [1, 1, 1, -1, 1, 1, 1]], dtype=np.int8
)
DILUTED = ZETA * np.array([[1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0, 1]])
FIELDS = np.array([0.4, -0.3, 0.0, 0.2, -0.6, 0.1, 0.5])
GENERAL = {
    "unequal": HopfieldModel(ZETA, strengths=[1.2, 0.5, 0.2]),
    "repulsive": HopfieldModel(ZETA, strengths=[-1.5, -0.7, -3.0]),
    "mixed": HopfieldModel(ZETA, strengths=[1.2, -0.7, 0.0]),
    "diluted": HopfieldModel(DILUTED, beta=1.5),
    "unequal with fields": HopfieldModel(ZETA, fields=FIELDS, strengths=[1.2, 0.5, 0.2]),
    "all": HopfieldModel(DILUTED, fields=FIELDS, strengths=[1.8, -1.0, 1.1]),
    "no patterns": HopfieldModel(np.empty((0, 7)), fields=FIELDS, strengths=[]),
}
general = pytest.mark.parametrize("case", GENERAL)


@general
@pytest.mark.parametrize("start", ["random", "annealed"])
def test_samples_of_the_general_model_follow_the_boltzmann_distribution(case, start):
    model = GENERAL[case]
    X = model.sample(30_000, start=start, n_sweeps=60, random_state=1)
    assert p_value(X, boltzmann(model)) > 1e-3
    # The test has power: other strengths or fields fail it.
    b = model.fields
    if model.n_patterns:
        other = HopfieldModel(model.patterns, fields=b, strengths=1.2 * model.strengths)
        assert p_value(X, boltzmann(other)) < 1e-3
    if b is not None:
        other = HopfieldModel(model.patterns, fields=0.85 * b, strengths=model.strengths)
        assert p_value(X, boltzmann(other)) < 1e-3


@pytest.mark.parametrize("case", ["mixed", "diluted", "all"])
def test_every_general_sweep_is_a_sequential_heat_bath(case):
    model = GENERAL[case]
    start = np.tile([[1, -1, 1, 1, -1, -1, 1]], (30_000, 1))
    X = model.sample(30_000, start=start, n_sweeps=1, random_state=3)
    assert p_value(X, sweep_matrix(model)[state_numbers(start[:1])[0]]) > 1e-3
    assert p_value(X, boltzmann(model)) < 1e-3  # not there yet, and the test can tell


# Four patterns are done at a time: remainders of every size, with and without full blocks.
@pytest.mark.parametrize("n_patterns", [1, 3, 4, 6, 8, 9])
def test_the_general_kernel_equals_loops(n_patterns):
    rng = np.random.default_rng(n_patterns)
    patterns = rng.choice([-1, 0, 1], size=(n_patterns, 9)).astype(np.int8)
    g, b = 3 * rng.normal(size=n_patterns), rng.normal(size=9)
    spins = rng.choice([-1, 1], size=(5, 9)).astype(np.int8)
    chains = _chains.GeneralChains(patterns, g, b, spins, np.random.default_rng(0))
    states = np.random.default_rng(0).integers(0, 2**32, size=(5, 4), dtype=np.uint32).tolist()
    chains.run(0.8, 6)
    for a in range(5):
        s = spins[a].astype(float)
        for _, i in itertools.product(range(6), range(9)):
            others = np.delete(np.arange(9), i)
            h = b[i] + 0.8 / 9 * sum(
                g[mu] * patterns[mu, i] * (patterns[mu, others] @ s[others])
                for mu in range(n_patterns)
            )
            uniform = ((xoshiro128pp(states[a]) >> 9) + 0.5) / 2**23
            sign = 1 if h >= 0 else -1
            s[i] = sign if uniform < 1 / (1 + math.exp(-2 * abs(h))) else -sign
        np.testing.assert_array_equal(chains.states()[a], s)


@pytest.mark.parametrize("sign", [1, -1])
def test_spin_flip_symmetry_of_the_general_model_is_exact(sign):
    # The third pattern contributes 2.35 times an odd number to the field, the others multiples of
    # 0.1: no field is ever zero, so the same words give the mirrored history.
    zeta = HopfieldModel.random(10, 3, beta=1.0, random_state=0).patterns
    zeta[1, :4] = 0
    model = HopfieldModel(zeta, strengths=[1.1, -0.7, sign * 2.35])
    start = np.random.default_rng(1).choice([-1, 1], size=(50, 10))
    up = model.sample(50, start=start, n_sweeps=20, random_state=2)
    down = model.sample(50, start=-start, n_sweeps=20, random_state=2)
    np.testing.assert_array_equal(down, -up)
    assert (up != start).any()


def test_equal_strengths_are_a_temperature():
    zeta = HopfieldModel.random(60, 3, beta=1.0, random_state=0).patterns
    for fields in (None, np.linspace(-1, 1, 60)):
        by_beta = HopfieldModel(zeta, 1.5, fields)
        by_strength = HopfieldModel(zeta, fields=fields, strengths=[1.5] * 3)
        for start in ("auto", "annealed"):
            X = by_beta.sample(20, start=start, n_sweeps=25, random_state=1)
            Y = by_strength.sample(20, start=start, n_sweeps=25, random_state=1)
            np.testing.assert_array_equal(X, Y)
        S = all_states(6)[:, [0, 1, 2, 3, 4, 5] * 10]
        np.testing.assert_allclose(1.5 * by_beta.energy(S), by_strength.energy(S), rtol=1e-12)
        energies = by_strength.equilibration(10, 5, random_state=1).energies
        expected = 1.5 * by_beta.equilibration(10, 5, random_state=1).energies
        np.testing.assert_allclose(energies, expected, rtol=1e-12)


@general
def test_energy_and_couplings_of_the_general_model(case):
    model = GENERAL[case]
    S = all_states(7).astype(float)
    weight = np.exp(-model.beta * model.energy(S))
    np.testing.assert_allclose(weight / weight.sum(), boltzmann(model), rtol=1e-10)
    J = model.couplings()
    for i, j in itertools.product(range(7), repeat=2):
        expected = sum(
            g / model.beta * int(z[i]) * int(z[j])
            for g, z in zip(model.strengths, model.patterns, strict=True)
        )
        assert J[i, j] == pytest.approx(expected / 7, abs=1e-14)
    b = np.zeros(7) if model.fields is None else model.fields
    pairs = np.einsum("ai,ij,aj->a", S, J, S) / 2
    np.testing.assert_allclose(model.energy(S), -pairs - S @ b / model.beta, atol=1e-12)
    operator = model.coupling_operator()
    np.testing.assert_allclose(operator.dot(S), S @ J, atol=1e-12)
    assert operator.alpha == pytest.approx(np.trace(J) / 7, abs=1e-14)
    V, w = operator.factors()
    np.testing.assert_allclose(V.T @ (w[:, None] * V) / 7, J, atol=1e-14)


@general
def test_equilibration_of_the_general_model(case):
    model = GENERAL[case]
    energies = model.equilibration(12, 20, random_state=5).energies
    X = model.sample(20, n_sweeps=12, random_state=5)
    np.testing.assert_allclose(energies[-1] * 7, model.energy(X), rtol=1e-12, atol=1e-14)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
@pytest.mark.parametrize("start", ["random", "patterns", "annealed"])
def test_general_samples_do_not_depend_on_threads_grouping_or_calls(start, monkeypatch):
    model = HopfieldModel.random(
        40, 5, strengths=[4, -2, 1, 0.5, 3], support=0.6, fields=np.linspace(-1, 1, 40),
        random_state=0,
    )  # fmt: skip
    kwargs = {"start": start, "n_sweeps": 30, "random_state": 1}
    threads = numba.get_num_threads()
    X = model.sample(151, **kwargs)
    try:
        for n in (1, 2):
            numba.set_num_threads(n)
            np.testing.assert_array_equal(model.sample(151, **kwargs), X)
    finally:
        numba.set_num_threads(threads)
    for lanes in (1, 16, 48, 128):
        monkeypatch.setattr(_chains.GeneralChains, "_lanes", lambda self, lanes=lanes: lanes)
        np.testing.assert_array_equal(model.sample(151, **kwargs), X)
    monkeypatch.setattr(_chains, "_UPDATES_PER_CALL", 40 * 151 * 7)  # seven sweeps a call
    np.testing.assert_array_equal(model.sample(151, **kwargs), X)


@pytest.mark.parametrize(
    ("strengths", "zeros", "start"),
    [
        ([0.9, 0.9], 0, "random"),
        ([0.9, 1.1], 0, "patterns"),
        ([0.9, 1.1], 20, "random"),  # on half of the spins
        ([0.9, 2.1], 20, "patterns"),
        ([-5.0, 0.9], 0, "random"),
        ([-5.0, -2.0], 0, "random"),
    ],
)
def test_auto_start_of_the_general_model(strengths, zeros, start):
    zeta = HopfieldModel.random(40, 2, beta=1.0, random_state=0).patterns
    zeta[:, :zeros] = 0
    model = HopfieldModel(zeta, strengths=strengths)
    auto = model.sample(6, n_sweeps=0, random_state=1)
    np.testing.assert_array_equal(auto, model.sample(6, start=start, n_sweeps=0, random_state=1))
    at_pattern = (auto[:, zeros:] == zeta[1, zeros:]).all(axis=1).any()
    assert at_pattern == (start == "patterns")


def test_patterns_start_with_attractive_ones_and_random_zeros():
    zeta = HopfieldModel.random(200, 3, beta=1.0, random_state=0).patterns
    zeta[2, :100] = 0
    model = HopfieldModel(zeta, strengths=[3.0, -3.0, 3.0])
    X = model.sample(8, start="patterns", n_sweeps=0, random_state=1)
    np.testing.assert_array_equal(X[::2], zeta[[0] * 4])
    np.testing.assert_array_equal(X[1::2, 100:], zeta[[2] * 4, 100:])
    free = X[1::2, :100]
    assert set(np.unique(free)) == {-1, 1}
    assert abs(free.mean()) < 6 / math.sqrt(free.size)
    assert len(np.unique(free, axis=0)) == 4
    # Nothing attracts: random, as without patterns.
    for lone in (HopfieldModel(zeta, strengths=[-1.0, -1, -1]), GENERAL["no patterns"]):
        kwargs = {"n_sweeps": 0, "random_state": 1}
        Y = lone.sample(8, start="patterns", **kwargs)
        np.testing.assert_array_equal(Y, lone.sample(8, start="random", **kwargs))


def test_dask_chunks_of_the_general_model_start_in_turn():
    pytest.importorskip("dask.array")
    zeta = HopfieldModel.random(60, 3, beta=1.0, random_state=0).patterns
    zeta[:, :20] = 0
    model = HopfieldModel(zeta, strengths=[3.0, -3.0, 4.0])
    X = model.dask_sample(11, chunk_size=3, n_sweeps=0, random_state=1).compute()
    np.testing.assert_array_equal(X[:, 20:], zeta[[0, 2] * 5 + [0], 20:])
    assert (np.abs(X) == 1).all()
    drawn = [
        model.dask_sample(7, chunk_size=4, start=start, random_state=1).compute()
        for start in ("auto", "auto", "annealed")
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert drawn[2].shape == (7, 60)


def test_repelled_spins_avoid_a_pattern():
    # Gaussian overlaps of variance 1/(1-g), smaller than that of independent spins.
    model = HopfieldModel.random(400, 1, strengths=[-3.0], random_state=0)
    M = model.sample(4000, n_sweeps=20, random_state=1) @ model.patterns[0].astype(float)
    assert np.square(M).mean() / 400 == pytest.approx(0.25, rel=0.1)


def test_a_diluted_pattern_is_a_smaller_ferromagnet():
    # 200 of 1000 spins at g ρ = 2: the Curie-Weiss magnetization 0.957; the others are free.
    model = HopfieldModel.random(1000, 1, strengths=[10.0], support=0.2, random_state=0)
    X = model.sample(200, random_state=1).astype(float)
    inside = model.patterns[0] != 0
    assert (X @ model.patterns[0] / 200).mean() == pytest.approx(0.957, abs=0.01)
    assert abs(X[:, ~inside].mean()) < 6 / math.sqrt(200 * 800)


def test_independent_spins_have_the_means_of_their_fields():
    b = np.linspace(-2, 2, 40)
    model = HopfieldModel(np.empty((0, 40)), beta=1.0, fields=b)
    X = model.sample(20_000, n_sweeps=1, random_state=1)
    np.testing.assert_allclose(X.mean(axis=0), np.tanh(b), atol=0.036)
    np.testing.assert_array_equal(model.couplings(), np.zeros((40, 40)))
    np.testing.assert_allclose(model.energy(X[:3]), -X[:3] @ b)
    assert repr(model) == "HopfieldModel(n_spins=40, n_patterns=0, beta=1, with fields)"


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40), st.integers(0, 9), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_any_size_of_general_model(n_spins, n_patterns, n_samples, seed):
    # Fields beyond what couplings can do decide every spin.
    rng = np.random.default_rng(seed)
    b = rng.choice([-1, 1], size=n_spins) * 1e4
    zeta = rng.choice([-1, 0, 1], size=(n_patterns, n_spins))
    zeta[:, 0] = -1
    model = HopfieldModel(zeta, fields=b, strengths=10 * rng.normal(size=n_patterns))
    X = model.sample(n_samples, n_sweeps=2, random_state=seed)
    assert X.dtype == np.int8
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, np.tile(np.sign(b), (n_samples, 1)))


def test_strengths_and_zeros_are_kept():
    given = np.array([1.5, -2.0])
    model = HopfieldModel([[1, -1, 0], [0, 1, 1]], strengths=given)
    given[0] = 7
    np.testing.assert_array_equal(model.strengths, [1.5, -2.0])
    np.testing.assert_array_equal(model.patterns, [[1, -1, 0], [0, 1, 1]])
    assert model.patterns.dtype == np.int8
    assert model.beta == 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.strengths[0] = 3
    assert repr(model) == "HopfieldModel(n_spins=3, n_patterns=2, strengths=-2 to 1.5)"
    same = HopfieldModel([[1, -1, 0], [0, 1, 1]], strengths=[2, 2])
    assert repr(same) == "HopfieldModel(n_spins=3, n_patterns=2, strengths=2)"
    np.testing.assert_array_equal(HopfieldModel([[1, -1, 0]], beta=2).strengths, [2.0])


def test_zeros_without_a_minus_one():
    # Read as 0/1, unless they are said to be no part of the pattern.
    np.testing.assert_array_equal(HopfieldModel([[1, 0, 1]], 1.0).patterns, [[1, -1, 1]])
    ternary = as_spins([[1, 0, 1]], zero_is_missing=True)
    np.testing.assert_array_equal(HopfieldModel(ternary, 1.0).patterns, [[1, 0, 1]])


@pytest.mark.parametrize(("support", "expected"), [(1.0, 30), (0.5, 15), (0.33, 10), (1e-9, 2)])
def test_random_diluted_patterns(support, expected):
    model = HopfieldModel.random(30, 50, beta=1.0, support=support, random_state=0)
    np.testing.assert_array_equal(np.count_nonzero(model.patterns, axis=1), np.full(50, expected))
    assert abs(model.patterns.sum()) < 6 * math.sqrt(50 * expected)
    # No place is preferred: a binomial count of patterns per spin.
    per_spin = np.count_nonzero(model.patterns, axis=0)
    share = expected / 30
    assert np.abs(per_spin - 50 * share).max() <= 5 * math.sqrt(50 * share * (1 - share)) + 1e-9
