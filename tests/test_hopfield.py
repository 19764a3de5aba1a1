"""The teacher and its sampler against exact enumeration at small N, and known physics at large N.

The kernel is also held, bit for bit, against a plain-Python heat bath written here with exact
integers: overlaps recomputed from scratch, xoshiro128++ in Python integers.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap import _chains
from dualtap._chains import flip_odds
from dualtap._kernels.glauber import _break_ties, glauber_sweeps
from dualtap._kernels.xoshiro import draw
from dualtap.hopfield import HopfieldModel
from enumeration import (
    MASK,
    all_states,
    boltzmann,
    dense_energy,
    xoshiro128pp,
)

# --- energy and couplings ----------------------------------------------------------------------


def test_energy_by_hand():
    # Overlaps with the patterns: (4, 0) and (2, 2), so H = -(16 + 0)/8 and -(4 + 4)/8.
    model = HopfieldModel([[1, 1, 1, 1], [1, 1, -1, -1]], beta=1.0)
    np.testing.assert_array_equal(model.energy([[1, 1, 1, 1], [1, 1, -1, 1]]), [-2.0, -1.0])


@pytest.mark.parametrize(("n_spins", "n_patterns"), [(2, 1), (5, 1), (6, 3), (7, 9)])
def test_energy_equals_dense_pairs_for_every_state(n_spins, n_patterns):
    model = HopfieldModel.random(n_spins, n_patterns, beta=1.0, random_state=n_spins)
    S = all_states(n_spins)
    np.testing.assert_allclose(model.energy(S), dense_energy(model.patterns, S), atol=1e-12)
    # The diagonal is the constant -P/2.
    J = model.couplings()
    np.testing.assert_allclose(
        model.energy(S),
        -np.einsum("ai,ij,aj->a", S, J - np.diag(np.diag(J)), S) / 2 - n_patterns / 2,
        atol=1e-12,
    )


def test_energy_is_even_and_takes_any_encoding():
    model = HopfieldModel.random(8, 3, beta=1.0, random_state=0)
    S = all_states(8)
    np.testing.assert_array_equal(model.energy(S), model.energy(-S))
    np.testing.assert_array_equal(model.energy(S), model.energy(S > 0))


def test_energy_of_many_spins_does_not_overflow():
    model = HopfieldModel(np.ones((1, 1000), dtype=np.int8), beta=1.0)
    np.testing.assert_array_equal(model.energy(np.ones((1, 1000), dtype=np.int8)), [-500.0])


def test_couplings_entry_by_entry():
    model = HopfieldModel.random(6, 4, beta=1.0, random_state=1)
    J = model.couplings()
    for i, j in itertools.product(range(6), repeat=2):
        assert J[i, j] == pytest.approx(
            sum(int(z[i]) * int(z[j]) for z in model.patterns) / 6, abs=1e-15
        )
    np.testing.assert_allclose(np.diag(J), 4 / 6)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 20), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_low_rank_operator_equals_dense(n_spins, n_patterns, seed):
    model = HopfieldModel.random(n_spins, n_patterns, beta=1.0, random_state=seed)
    m = np.random.default_rng(seed).uniform(-1, 1, size=(3, n_spins))
    operator = model.coupling_operator()
    np.testing.assert_allclose(operator.dot(m), m @ model.couplings(), atol=1e-12)
    assert operator.alpha == pytest.approx(n_patterns / n_spins)


def test_random_model():
    model = HopfieldModel.random(2000, 10, beta=1.5, random_state=0)
    assert (model.n_spins, model.n_patterns, model.beta) == (2000, 10, 1.5)
    assert set(np.unique(model.patterns)) == {-1, 1}
    # Fair and independent: means and overlaps of order N^-1/2 (six standard deviations).
    assert np.abs(model.patterns.mean(axis=1)).max() < 6 / math.sqrt(2000)
    overlaps = model.patterns.astype(float) @ model.patterns.T / 2000 - np.eye(10)
    assert np.abs(overlaps).max() < 6 / math.sqrt(2000)
    assert repr(model) == "HopfieldModel(n_spins=2000, n_patterns=10, beta=1.5)"


def test_patterns_are_read_in_any_encoding():
    expected = [[1, -1, 1], [-1, -1, 1]]
    for patterns in (expected, [[1, 0, 1], [0, 0, 1]], [[True, False, True], [False, False, True]]):
        model = HopfieldModel(patterns, beta=2)
        np.testing.assert_array_equal(model.patterns, expected)
        assert isinstance(model.beta, float)


# --- flip odds ---------------------------------------------------------------------------------

TEMPERATURES = [
    (0.01, 10, 2),
    (0.5, 10, 2),
    (1.0, 7, 3),
    (2.0, 10, 2),
    (2.0, 1000, 30),  # the table ends before N P
    (30.0, 50, 4),
    # So cold that one step of the field changes the odds by more than 2^64 or nearly so.
    (150.0, 10, 1),
    (1000.0, 10, 1),
]


@pytest.mark.parametrize(("beta", "n_spins", "n_patterns"), TEMPERATURES)
def test_flip_odds_are_those_of_the_heat_bath(beta, n_spins, n_patterns):
    odds = flip_odds(beta, n_spins, n_patterns)
    assert odds.dtype == np.uint64
    assert len(odds) <= n_spins * n_patterns + 1
    for k in range(n_spins * n_patterns + 1):
        # The last entry serves every field beyond the table.
        got = float(odds[min(k, len(odds) - 1)]) / 2.0**64
        exact = math.exp(-2 * beta * k / n_spins) / (1 + math.exp(-2 * beta * k / n_spins))
        assert got == pytest.approx(exact, rel=1e-14, abs=1.01 * 2.0**-64)


@pytest.mark.parametrize(("beta", "n_spins", "n_patterns"), TEMPERATURES)
def test_flip_odds_fall_from_one_half(beta, n_spins, n_patterns):
    odds = [int(value) for value in flip_odds(beta, n_spins, n_patterns)]
    assert odds[0] == 2**63
    assert all(a >= b for a, b in itertools.pairwise(odds))
    # Strictly, as long as a step is visible at all.
    assert all(a > b for a, b in itertools.pairwise(odds) if a > 2**20)


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("n_spins", "n_patterns"), [(5, 1), (6, 2), (7, 4)])
def test_flip_odds_obey_detailed_balance(beta, n_spins, n_patterns):
    model = HopfieldModel.random(n_spins, n_patterns, beta, random_state=3)
    odds = flip_odds(beta, n_spins, n_patterns) / 2.0**64
    S = all_states(n_spins)
    pi = boltzmann(model)
    zeta = model.patterns.astype(int)
    # N h_i = Σ_μ ζ_i ζ_j s_j over j ≠ i, an integer.
    Nh = np.array([[sum(z[i] * (z @ s - z[i] * s[i]) for z in zeta) for i in range(n_spins)]
                   for s in S.astype(int)])  # fmt: skip
    against = odds[np.abs(Nh)]
    is_aligned = np.where(Nh >= 0, 1, -1) == S
    flips = np.where(is_aligned, against, 1 - against)  # W of flipping site i
    numbers = np.arange(len(S))
    for i in range(n_spins):
        other = numbers ^ (1 << i)
        forth, back = pi * flips[:, i], pi[other] * flips[other, i]
        np.testing.assert_allclose(forth, back, rtol=1e-12, atol=0)
        # And both moves of a spin exhaust the probability: +1 with 1/(1+exp(-2βh)).
        up = np.where(S[:, i] == 1, 1 - flips[:, i], flips[:, i])
        np.testing.assert_allclose(up, 1 / (1 + np.exp(-2 * beta * Nh[:, i] / n_spins)), rtol=1e-12)


# --- the kernel, bit for bit -------------------------------------------------------------------


def reference_chain(s, patterns, state, against, n_sweeps):
    """Heat bath with fields from their definition, in Python integers; returns Σ_μ (ζ·s)²."""
    s, patterns, against = s.tolist(), patterns.tolist(), [int(a) for a in against]
    squares = []
    for _ in range(n_sweeps):
        for i in range(len(s)):
            field = sum(z[i] * sum(z[j] * s[j] for j in range(len(s)) if j != i) for z in patterns)
            threshold = against[min(abs(field), len(against) - 1)]
            word = xoshiro128pp(state)
            if word == threshold >> 32:
                is_against = xoshiro128pp(state) < threshold & MASK
            else:
                is_against = word < threshold >> 32
            aligned = 1 if field >= 0 else -1
            s[i] = -aligned if is_against else aligned
        squares.append(sum(sum(a * b for a, b in zip(z, s, strict=True)) ** 2 for z in patterns))
    return s, squares


def run_kernel(spins, patterns, generators, against, n_sweeps):
    """``glauber_sweeps`` for chains as rows, all in one group; returns states and squares."""
    s = np.ascontiguousarray(spins.T[None], dtype=np.int8)
    g = np.ascontiguousarray(np.asarray(generators).T[None], dtype=np.uint32)
    squares = np.empty((1, n_sweeps, len(spins)))
    table = np.array(against, dtype=np.uint64)
    glauber_sweeps(s, np.ascontiguousarray(patterns.T, np.float32), g, table, n_sweeps, squares)
    return s[0].T, squares[0].T, g[0].T


def test_reference_generator_gives_the_published_sequence():
    # The vector of Rust's rand_xoshiro, itself from the authors' C code.
    state = [1, 2, 3, 4]
    assert [xoshiro128pp(state) for _ in range(10)] == [
        641, 1573767, 3222811527, 3517856514, 836907274,
        4247214768, 3867114732, 1355841295, 495546011, 621204420,
    ]  # fmt: skip


def test_draw_is_xoshiro128pp():
    rng = np.random.default_rng(0)
    generator = rng.integers(0, 2**32, size=(4, 7), dtype=np.uint32)
    generator[:, 0] = [1, 2, 3, 4]
    generator[:, 1] = MASK  # every addition wraps
    states = generator.T.tolist()
    word = np.empty(7, dtype=np.uint32)
    for _ in range(200):
        draw(generator, word)
        assert word.tolist() == [xoshiro128pp(state) for state in states]
    assert generator.T.tolist() == states


# Four patterns are done at a time: remainders of every size, with and without full blocks.
@pytest.mark.parametrize("n_patterns", [1, 2, 3, 4, 5, 7, 8, 11])
def test_kernel_equals_the_reference_heat_bath(n_patterns):
    rng = np.random.default_rng(n_patterns)
    n_spins, n_chains, n_sweeps = 9, 5, 6
    patterns = rng.choice([-1, 1], size=(n_patterns, n_spins))
    spins = rng.choice([-1, 1], size=(n_chains, n_spins))
    generators = rng.integers(0, 2**32, size=(n_chains, 4))
    against = flip_odds(0.7, n_spins, n_patterns)
    states, squares, after = run_kernel(spins, patterns, generators, against, n_sweeps)
    for a in range(n_chains):
        state = generators[a].tolist()
        s, expected = reference_chain(spins[a], patterns, state, against, n_sweeps)
        assert states[a].tolist() == s
        assert squares[a].tolist() == expected
        assert after[a].tolist() == state


def test_kernel_clips_fields_to_the_table():
    # A table shorter than the fields: its last entry serves everything above.
    rng = np.random.default_rng(5)
    patterns = rng.choice([-1, 1], size=(3, 8))
    spins = np.repeat(patterns, 4, axis=0)
    generators = rng.integers(0, 2**32, size=(12, 4))
    against = [2**63, 2**62, 2**62 - 2**55]
    states, _, _ = run_kernel(spins, patterns, generators, against, 4)
    for a in range(12):
        s, _ = reference_chain(spins[a], patterns, generators[a].tolist(), against, 4)
        assert states[a].tolist() == s


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_kernel_draws_a_second_word_on_ties(offset):
    # The table's one entry begins with the word the first update will draw, so it is a tie, and
    # the second word is just above, at, or just below what the entry ends with.
    start = [11, 22, 33, 44]
    probe = list(start)
    first, second = xoshiro128pp(probe), xoshiro128pp(probe)
    against = [first << 32 | (second + offset)]
    patterns = np.array([[1, 1, 1, 1, 1]])
    spins = np.ones((3, 5), dtype=int)
    # Lane 1 does not tie and must not lose a word to its neighbours.
    generators = [start, [5, 6, 7, 8], start]
    states, squares, after = run_kernel(spins, patterns, generators, against, 2)
    for a in range(3):
        state = list(generators[a])
        s, expected = reference_chain(spins[a], patterns, state, against, 2)
        assert states[a].tolist() == s
        assert squares[a].tolist() == expected
        assert after[a].tolist() == state
    # What the first update must have done: second < low is against the field.
    s, _, _ = run_kernel(spins[:1], patterns, [start], against, 1)
    assert s[0, 0] == (-1 if offset == 1 else 1)


def test_break_ties_lets_a_second_word_decide():
    # Lane:          0: tie, against   1: tie, aligned   2: no tie   3: tie at equality: aligned
    #                4: tie, h < 0, against   5: beyond the table, tie, against
    start = [[1, 2, 3, lane + 1] for lane in range(6)]
    seconds = [xoshiro128pp(list(state)) for state in start]
    high = 0x12345678
    low = {0: seconds[0] + 1, 1: seconds[1] - 1, 3: seconds[3], 4: seconds[4] + 1}
    low |= {5: seconds[5] + 1, 2: MASK}
    field = np.array([0, 1, 2, 3, -4, 99], dtype=np.float32)
    against = np.array([high << 32 | low[lane] for lane in range(6)], dtype=np.uint64)
    word = np.full(6, high, dtype=np.uint32)
    word[2] = high + 1
    # As _settle leaves it: ties count as aligned, ``change`` is what that did to old spins of -1.
    s = np.array([[9] * 6, [1, 1, 1, 1, -1, 1]], dtype=np.int8)
    old = -np.ones(6)
    change = (s[1] - old).astype(np.float32)
    generator = np.array(start, dtype=np.uint32).T.copy()

    _break_ties(s, 1, field, against, word, change, generator)

    assert s[1].tolist() == [-1, 1, 1, 1, 1, -1]
    assert s[0].tolist() == [9] * 6  # no other site touched
    np.testing.assert_array_equal(change, s[1] - old)
    for lane in range(6):
        state = list(start[lane])
        if lane != 2:
            xoshiro128pp(state)
        assert generator[:, lane].tolist() == state  # one word drawn, where there was a tie


@pytest.fixture
def model():
    return HopfieldModel.random(200, 3, beta=1.5, random_state=0)


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0, -1.0, math.nan, math.inf])
def test_bad_beta(beta):
    with pytest.raises(ValueError, match="beta must be a positive number"):
        HopfieldModel([[1, -1]], beta)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "either beta or strengths, got neither"),
        ({"beta": 1.0, "strengths": [1.0, 1.0]}, "either beta or strengths, got both"),
        ({"strengths": 1.0}, r"strengths must have shape \(2,\).*got shape \(\)"),
        ({"strengths": [1.0]}, r"strengths must have shape \(2,\)"),
        ({"strengths": [[1.0, 2.0]]}, r"strengths must have shape \(2,\)"),
        ({"strengths": [1.0, math.nan]}, "strengths must be finite, got nan at 1"),
        ({"strengths": [-math.inf, 1.0]}, "strengths must be finite, got -inf at 0"),
    ],
)
def test_bad_strengths(parameters, message):
    with pytest.raises(ValueError, match=message):
        HopfieldModel([[1, -1, 1], [1, 1, -1]], **parameters)
    with pytest.raises(ValueError, match=message):
        HopfieldModel.random(10, 2, **parameters)


def test_a_pattern_without_spins():
    with pytest.raises(ValueError, match="pattern 1 is all zero"):
        HopfieldModel([[1, -1, 0], [0, 0, 0]], beta=1.0)


@pytest.mark.parametrize("support", [0, -0.1, 1.01, math.nan])
def test_bad_support(support):
    with pytest.raises(ValueError, match="support must be a share"):
        HopfieldModel.random(10, 2, beta=1.0, support=support)


@pytest.mark.parametrize("encoded", [[[1, -1], [1, None]], [[1, 0, -1], [1, math.nan, 0]]])
def test_patterns_with_gaps_are_not_diluted(encoded):
    with pytest.raises(ValueError, match="patterns must be complete"):
        HopfieldModel(encoded, beta=1.0)


@pytest.mark.parametrize(("n_spins", "n_patterns"), [(1, 1), (0, 1), (5, 0), (5, -1)])
def test_too_small_a_model(n_spins, n_patterns):
    with pytest.raises(ValueError, match="n_spins >= 2 and n_patterns >= 1"):
        HopfieldModel.random(n_spins, n_patterns, beta=1.0)


@pytest.mark.parametrize("start", ["pattern", "", "AUTO"])
def test_unknown_start(model, start):
    with pytest.raises(ValueError, match=f"start must be 'auto'.*got '{start}'"):
        model.sample(3, start=start)
    with pytest.raises(ValueError, match="start must be 'auto'"):
        model.equilibration(start=start)


@pytest.mark.parametrize("shape", [(2, 200), (4, 200), (3, 199)])
def test_start_of_the_wrong_shape(model, shape):
    with pytest.raises(ValueError, match="start must hold 3 complete states of 200 spins"):
        model.sample(3, start=np.ones(shape))


def test_start_with_gaps(model):
    start = np.ones((3, 200))
    start[1, 5] = np.nan
    with pytest.raises(ValueError, match=r"complete states.*with 1 missing"):
        model.sample(3, start=start)


@pytest.mark.parametrize(("n_samples", "n_sweeps"), [(0, 10), (-3, 10), (5, -1)])
def test_too_few_samples_or_sweeps(model, n_samples, n_sweeps):
    with pytest.raises(ValueError, match=f"got {n_samples} and {n_sweeps}"):
        model.sample(n_samples, n_sweeps=n_sweeps)


@pytest.mark.parametrize(("n_sweeps", "n_chains"), [(7, 10), (0, 10), (8, 1)])
def test_too_little_to_judge_equilibration(model, n_sweeps, n_chains):
    with pytest.raises(ValueError, match=f"got {n_sweeps} and {n_chains}"):
        model.equilibration(n_sweeps, n_chains)


def test_shortest_equilibration(model):
    assert model.equilibration(8, 2, random_state=0).energies.shape == (8, 2)


def test_energy_of_states_of_another_size(model):
    with pytest.raises(ValueError, match="X has 3 spins, but the model has 200"):
        model.energy([[1, -1, 1]])


def test_more_spins_than_single_precision_counts():
    states = np.broadcast_to(np.int8(1), (1, 2**24))  # one byte of memory
    with pytest.raises(ValueError, match=r"n_spins < 2\*\*24"):
        _chains.EqualChains(states, states, np.random.default_rng(0))
