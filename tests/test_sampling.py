"""Samples: their distribution, reproducibility, starts, equilibration."""

import math

import numba
import numpy as np
import pytest

from dualtap import _chains, _sampling
from dualtap._progress import progress
from dualtap._random import as_generator
from dualtap.hopfield import Equilibration, HopfieldModel
from dualtap.spins import as_spins
from enumeration import boltzmann, p_value, state_numbers, sweep_matrix

# --- the sampler's distribution ----------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_samples_follow_the_boltzmann_distribution(beta):
    # From random starts the distribution is within 1e-4 of equilibrium after eight sweeps.
    model = HopfieldModel.random(10, 2, beta, random_state=0)
    X = model.sample(40_000, start="random", n_sweeps=60, random_state=1)
    exact = boltzmann(model)
    assert p_value(X, exact) > 1e-3
    # The test has power: a temperature off by a fifth fails it.
    assert p_value(X, boltzmann(HopfieldModel(model.patterns, 1.2 * beta))) < 1e-3


@pytest.mark.parametrize("n_sweeps", [1, 2, 3])
def test_every_sweep_is_a_sequential_heat_bath(n_sweeps):
    # From one state, the exact distribution after a few sweeps: it depends on the order of the
    # sites and on the updates themselves, not only on their equilibrium.
    model = HopfieldModel.random(6, 3, beta=0.8, random_state=2)
    start = np.tile([[1, -1, 1, 1, -1, -1]], (40_000, 1))
    X = model.sample(40_000, start=start, n_sweeps=n_sweeps, random_state=3)
    sweeps = np.linalg.matrix_power(sweep_matrix(model), n_sweeps)
    exact = sweeps[state_numbers(start[:1])[0]]
    assert p_value(X, exact) > 1e-3
    assert p_value(X, boltzmann(model)) < 1e-3  # not there yet, and the test can tell


def test_annealed_samples_follow_the_boltzmann_distribution():
    model = HopfieldModel.random(8, 3, beta=1.2, random_state=4)
    X = model.sample(20_000, start="annealed", n_sweeps=120, random_state=5)
    assert p_value(X, boltzmann(model)) > 1e-3


def test_chains_are_independent():
    model = HopfieldModel.random(50, 1, beta=0.5, random_state=0)
    X = model.sample(2000, start="patterns", n_sweeps=30, random_state=1).astype(float)
    assert len(np.unique(X, axis=0)) == 2000
    # Overlaps of neighbouring chains have variance near 1/N · (a few): six standard errors.
    neighbours = (X[1:] * X[:-1]).mean(axis=1)
    assert abs(neighbours.mean()) < 6 * neighbours.std() / math.sqrt(1999)
    # Lanes of different groups as well.
    far = (X[1000:] * X[:1000]).mean(axis=1)
    assert abs(far.mean()) < 6 * far.std() / math.sqrt(1000)


def test_overlap_with_the_own_pattern_in_retrieval():
    model = HopfieldModel.random(1000, 20, beta=2.0, random_state=0)
    X = model.sample(400, random_state=1)
    own = (X * model.patterns[np.arange(400) % 20]).mean(axis=1)
    assert own.mean() == pytest.approx(0.945, abs=0.01)


def test_overlaps_in_the_paramagnet():
    # Gaussian overlaps of variance 1/(1-β); 12000 of them leave an error of 0.026.
    model = HopfieldModel.random(1000, 3, beta=0.5, random_state=0)
    X = model.sample(4000, n_sweeps=30, random_state=1).astype(np.float64)
    M = X @ model.patterns.T
    assert np.square(M).mean() / 1000 == pytest.approx(2.0, abs=0.15)
    # And both signs: the mean overlap vanishes within five errors of √(2N/12000).
    assert abs(M.mean()) < 5 * math.sqrt(2 * 1000 / 12_000)


def test_annealed_chains_reach_the_curie_weiss_magnetization():
    m = 1.0
    for _ in range(200):
        m = math.tanh(2.0 * m)
    assert m == pytest.approx(0.957, abs=1e-3)
    model = HopfieldModel.random(1000, 1, beta=2.0, random_state=0)
    X = model.sample(200, start="annealed", n_sweeps=100, random_state=1)
    overlap = X @ model.patterns[0].astype(float) / 1000
    assert np.abs(overlap).mean() == pytest.approx(m, abs=0.005)
    # Neither sign is preferred: 200 fair fair_spins, six standard deviations.
    assert abs(np.sign(overlap).sum()) < 6 * math.sqrt(200)


@pytest.mark.parametrize("n_patterns", [1, 3, 5])
def test_spin_flip_symmetry_is_exact(n_patterns):
    # P (N-1) odd: no field is ever zero, so the same words give the mirrored history.
    model = HopfieldModel.random(10, n_patterns, beta=1.1, random_state=0)
    start = np.random.default_rng(1).choice([-1, 1], size=(50, 10))
    up = model.sample(50, start=start, n_sweeps=20, random_state=2)
    down = model.sample(50, start=-start, n_sweeps=20, random_state=2)
    np.testing.assert_array_equal(down, -up)
    assert (up != start).any()


def test_gauge_symmetry_is_exact():
    # Turning sites over in the patterns turns them over in the samples.
    rng = np.random.default_rng(3)
    model = HopfieldModel.random(12, 5, beta=1.1, random_state=0)
    gauge = rng.choice([-1, 1], size=12)
    start = rng.choice([-1, 1], size=(40, 12))
    X = model.sample(40, start=start, n_sweeps=20, random_state=2)
    turned = HopfieldModel(model.patterns * gauge, beta=1.1)
    Y = turned.sample(40, start=start * gauge, n_sweeps=20, random_state=2)
    np.testing.assert_array_equal(Y, X * gauge)


def test_order_and_sign_of_patterns_do_not_matter():
    model = HopfieldModel.random(15, 6, beta=1.1, random_state=0)
    moved = HopfieldModel(
        model.patterns[[3, 1, 5, 0, 2, 4]] * [[1], [-1], [1], [1], [-1], [-1]], 1.1
    )
    X = model.sample(40, start="random", n_sweeps=20, random_state=2)
    np.testing.assert_array_equal(moved.sample(40, start="random", n_sweeps=20, random_state=2), X)


@pytest.mark.parametrize("beta", [50.0, 1000.0, 1e6])
def test_cold_spins_follow_their_field(beta):
    # Near zero temperature a lone pattern is a fixed point, and every chain falls into ±it.
    model = HopfieldModel.random(11, 1, beta=beta, random_state=0)
    X = model.sample(64, start="patterns", n_sweeps=20, random_state=1)
    np.testing.assert_array_equal(X, np.repeat(model.patterns, 64, axis=0))
    Y = model.sample(64, start="random", n_sweeps=20, random_state=1)
    np.testing.assert_array_equal(np.abs(Y @ model.patterns[0].astype(int)), np.full(64, 11))


# --- reproducibility ---------------------------------------------------------------------------


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
@pytest.mark.parametrize("start", ["random", "patterns", "annealed"])
def test_samples_do_not_depend_on_the_number_of_threads(start):
    model = HopfieldModel.random(40, 5, beta=1.5, random_state=0)
    threads = numba.get_num_threads()
    results = []
    try:
        for n in (1, 2):
            numba.set_num_threads(n)
            results.append(model.sample(150, start=start, n_sweeps=30, random_state=1))
    finally:
        numba.set_num_threads(threads)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("lanes", [1, 16, 48, 128])
def test_samples_do_not_depend_on_the_grouping(lanes, monkeypatch):
    model = HopfieldModel.random(30, 5, beta=1.5, random_state=0)
    X = model.sample(100, start="random", n_sweeps=20, random_state=1)
    energies = model.equilibration(20, 100, start="random", random_state=1).energies
    monkeypatch.setattr(_chains.EqualChains, "_lanes", lambda self: lanes)
    Y = model.sample(100, start="random", n_sweeps=20, random_state=1)
    np.testing.assert_array_equal(Y, X)
    again = model.equilibration(20, 100, start="random", random_state=1).energies
    np.testing.assert_array_equal(again, energies)


def test_samples_do_not_depend_on_calls_being_split(monkeypatch):
    # Long runs go to the kernel in pieces, so that Ctrl-C is heard.
    model = HopfieldModel.random(30, 5, beta=1.5, random_state=0)
    X = model.sample(20, n_sweeps=25, random_state=1)
    energies = model.equilibration(25, 20, random_state=1).energies
    monkeypatch.setattr(_chains, "_UPDATES_PER_CALL", 30 * 20 * 7)  # seven sweeps a call
    np.testing.assert_array_equal(model.sample(20, n_sweeps=25, random_state=1), X)
    again = model.equilibration(25, 20, random_state=1).energies
    np.testing.assert_array_equal(again, energies)
    monkeypatch.setattr(_chains, "_UPDATES_PER_CALL", 1)  # less than a sweep: one at a time
    np.testing.assert_array_equal(model.sample(20, n_sweeps=25, random_state=1), X)


def test_a_chain_does_not_depend_on_the_others():
    # With fixed starts the generators are the only draws, one row a chain.
    model = HopfieldModel.random(30, 5, beta=1.5, random_state=0)
    X = model.sample(200, start="patterns", n_sweeps=20, random_state=1)
    for n_samples in (1, 37, 129):
        Y = model.sample(n_samples, start="patterns", n_sweeps=20, random_state=1)
        np.testing.assert_array_equal(Y, X[:n_samples])


@pytest.mark.parametrize("n_samples", [1, 15, 16, 17, 128, 129, 300])
def test_any_number_of_samples(n_samples):
    model = HopfieldModel.random(20, 2, beta=1.5, random_state=0)
    X = model.sample(n_samples, n_sweeps=3, random_state=0)
    assert X.shape == (n_samples, 20)
    assert X.dtype == np.int8
    assert X.flags.c_contiguous
    assert (np.abs(X) == 1).all()


@pytest.mark.parametrize("make", [int, np.int64, np.random.RandomState, np.random.default_rng])
def test_equal_random_states_give_equal_samples(make):
    model = HopfieldModel.random(30, 2, beta=0.7, random_state=make(0))
    same = HopfieldModel.random(30, 2, beta=0.7, random_state=make(0))
    np.testing.assert_array_equal(model.patterns, same.patterns)
    X = model.sample(10, random_state=make(1))
    np.testing.assert_array_equal(model.sample(10, random_state=make(1)), X)
    assert (model.sample(10, random_state=make(2)) != X).any()
    one, two = (model.equilibration(10, 4, random_state=make(3)).energies for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_stateful_random_state_moves_on(make):
    model = HopfieldModel.random(30, 2, beta=0.7, random_state=0)
    state = make(1)
    assert (model.sample(10, random_state=state) != model.sample(10, random_state=state)).any()


def test_no_random_state_is_fresh_every_time():
    model = HopfieldModel.random(30, 2, beta=0.7)
    assert (model.patterns != HopfieldModel.random(30, 2, beta=0.7).patterns).any()
    assert (model.sample(10) != model.sample(10)).any()


def test_as_generator_uses_a_generator_itself():
    rng = np.random.default_rng(0)
    assert as_generator(rng) is rng
    assert as_generator(7).integers(2**60) == np.random.default_rng(7).integers(2**60)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        as_generator("seed")


def test_sampling_leaves_the_model_and_the_start_alone():
    model = HopfieldModel.random(30, 3, beta=0.7, random_state=0)
    patterns = model.patterns.copy()
    model.sample(9, start="patterns", n_sweeps=10, random_state=1)
    np.testing.assert_array_equal(model.patterns, patterns)
    start = patterns[[0, 1]]
    X, returned = model.sample(2, start=start, n_sweeps=10, random_state=1, return_start=True)
    np.testing.assert_array_equal(start, patterns[[0, 1]])
    assert not np.shares_memory(returned, start)
    assert (start != X).any()


# --- starts ------------------------------------------------------------------------------------


@pytest.fixture
def model():
    return HopfieldModel.random(200, 3, beta=1.5, random_state=0)


def test_patterns_start_in_turn(model):
    X = model.sample(8, start="patterns", n_sweeps=0)
    np.testing.assert_array_equal(X, model.patterns[[0, 1, 2, 0, 1, 2, 0, 1]])


@pytest.mark.parametrize("start", ["random", "annealed"])
def test_random_starts_are_fair(model, start):
    X = model.sample(500, start=start, n_sweeps=0, random_state=1)
    assert set(np.unique(X)) == {-1, 1}
    assert abs(X.mean()) < 6 / math.sqrt(X.size)
    overlaps = X @ model.patterns.T.astype(float) / 200
    assert np.square(overlaps).mean() * 200 == pytest.approx(1.0, abs=0.25)
    np.testing.assert_array_equal(X, model.sample(500, start="random", n_sweeps=0, random_state=1))


def test_annealing_is_not_a_plain_run(model):
    # Same start, same words, other temperatures on the way.
    X, a = model.sample(10, start="random", n_sweeps=4, random_state=1, return_start=True)
    Y, b = model.sample(10, start="annealed", n_sweeps=4, random_state=1, return_start=True)
    np.testing.assert_array_equal(a, b)
    assert (X != Y).any()


@pytest.mark.parametrize(
    ("beta", "start"),
    [(0.3, "random"), (1.0, "random"), (1.0001, "patterns"), (3.0, "patterns")],
)
def test_auto_starts_at_patterns_where_they_attract(beta, start):
    model = HopfieldModel.random(50, 3, beta=beta, random_state=0)
    auto = model.sample(7, n_sweeps=0, random_state=1)
    np.testing.assert_array_equal(auto, model.sample(7, start=start, n_sweeps=0, random_state=1))
    is_pattern = (auto == model.patterns[np.arange(7) % 3]).all()
    assert is_pattern == (start == "patterns")


@pytest.mark.parametrize(
    "encode", [np.asarray, np.ndarray.tolist, lambda S: S > 0, lambda S: S / 1]
)
def test_array_starts(model, encode):
    S = np.random.default_rng(2).choice([-1, 1], size=(5, 200))
    np.testing.assert_array_equal(model.sample(5, start=encode(S), n_sweeps=0), S)
    X, start = model.sample(5, start=encode(S), n_sweeps=2, random_state=0, return_start=True)
    np.testing.assert_array_equal(start, S)
    assert (X != S).any()


def test_a_validated_start_is_not_handed_back_itself(model):
    spins = as_spins(model.patterns)
    X, start = model.sample(3, start=spins, n_sweeps=2, random_state=0, return_start=True)
    np.testing.assert_array_equal(start, spins.values)
    assert not np.shares_memory(start, spins.values)
    assert not np.shares_memory(X, start)


@pytest.mark.parametrize("start", ["auto", "patterns", "random", "annealed"])
def test_no_sweeps_return_the_start(model, start):
    X, begin = model.sample(6, start=start, n_sweeps=0, random_state=1, return_start=True)
    np.testing.assert_array_equal(X, begin)


@pytest.mark.parametrize("start", ["auto", "patterns", "random", "annealed"])
def test_return_start_changes_nothing_else(model, start):
    X, begin = model.sample(6, start=start, n_sweeps=10, random_state=1, return_start=True)
    np.testing.assert_array_equal(X, model.sample(6, start=start, n_sweeps=10, random_state=1))
    np.testing.assert_array_equal(begin, model.sample(6, start=start, n_sweeps=0, random_state=1))
    assert begin.dtype == np.int8


@pytest.mark.parametrize("n_sweeps", [0, 1, 2, 7, 39, 40, 41, 200, 1003])
def test_annealing_schedule(n_sweeps):
    stages = _chains.annealing_schedule(2.0, n_sweeps, annealed=True)
    assert sum(sweeps for _, sweeps in stages) == n_sweeps
    betas = [beta for beta, _ in stages]
    assert betas == sorted(betas)
    assert all(0 < beta <= 2.0 for beta in betas)
    assert all(sweeps > 0 for _, sweeps in stages[:-1])
    # The last half, the larger one, runs at β itself.
    assert stages[-1] == (2.0, n_sweeps - n_sweeps // 2)
    if n_sweeps >= 40:  # enough for every stage: equal steps, evenly filled
        np.testing.assert_allclose(betas[:-1], 2.0 * np.arange(1, 21) / 20)
        lengths = [sweeps for _, sweeps in stages[:-1]]
        assert max(lengths) - min(lengths) <= 1


def test_plain_schedule():
    assert _chains.annealing_schedule(2.0, 30, annealed=False) == [(2.0, 30)]


# --- energies on the way -----------------------------------------------------------------------


@pytest.mark.parametrize("start", ["patterns", "random", "annealed"])
@pytest.mark.parametrize("n_patterns", [1, 4, 6])
def test_recorded_energies_are_those_of_the_states(start, n_patterns):
    model = HopfieldModel.random(25, n_patterns, beta=1.3, random_state=0)
    for n_sweeps in (8, 9, 30):
        kwargs = {"start": start, "random_state": 5}
        energies = model.equilibration(n_sweeps, 20, **kwargs).energies
        assert energies.shape == (n_sweeps, 20)
        X = model.sample(20, n_sweeps=n_sweeps, **kwargs)
        np.testing.assert_allclose(energies[-1] * 25, model.energy(X), rtol=1e-13)


def test_overlap_squares_after_every_sweep():
    model = HopfieldModel.random(25, 6, beta=1.3, random_state=0)
    start = model.sample(20, start="random", n_sweeps=0, random_state=1)
    chains = _chains.EqualChains(model.patterns, start, np.random.default_rng(2))
    whole = _chains.EqualChains(model.patterns, start, np.random.default_rng(2))
    squares = whole.run(1.3, 12)
    assert squares.shape == (12, 20)
    for sweep in range(12):
        (last,) = chains.run(1.3, 1)
        recomputed = np.square(chains.states().astype(int) @ model.patterns.T.astype(int)).sum(1)
        np.testing.assert_array_equal(last, recomputed)
        np.testing.assert_array_equal(last, squares[sweep])
    np.testing.assert_array_equal(chains.states(), whole.states())
    assert chains.run(1.3, 0).shape == (0, 20)


def test_equilibration_from_given_states():
    model = HopfieldModel.random(25, 3, beta=1.3, random_state=0)
    start = model.sample(4, start="random", n_sweeps=0, random_state=1)
    result = model.equilibration(10, 4, start=start, random_state=2)
    X = model.sample(4, start=start, n_sweeps=10, random_state=2)
    np.testing.assert_allclose(result.energies[-1] * 25, model.energy(X), rtol=1e-13)


# --- equilibration -----------------------------------------------------------------------------


def autoregressive(phi, n_sweeps, n_chains, seed):
    rng = np.random.default_rng(seed)
    x = np.empty((n_sweeps, n_chains))
    x[0] = rng.normal(size=n_chains) / math.sqrt(1 - phi**2)
    for t in range(1, n_sweeps):
        x[t] = phi * x[t - 1] + rng.normal(size=n_chains)
    return x


def test_white_noise_forgets_at_once():
    result = Equilibration(np.random.default_rng(0).normal(size=(4000, 16)))
    rho = result.autocorrelation
    assert rho[0] == 1
    assert rho.shape == (1000,)
    assert np.abs(rho[1:100]).max() < 0.04  # seven errors of 1/√32000
    assert result.autocorrelation_time == pytest.approx(1, abs=0.2)
    assert result.drift < 4
    assert result.equilibrated


@pytest.mark.parametrize("phi", [0.5, 0.95])
def test_autocorrelation_of_a_known_process(phi):
    result = Equilibration(autoregressive(phi, 8000, 64, seed=1))
    lags = np.arange(10)
    np.testing.assert_allclose(result.autocorrelation[:10], phi**lags, atol=0.03)
    # Integrated: 1 + 2 Σ φ^k.
    assert result.autocorrelation_time == pytest.approx((1 + phi) / (1 - phi), rel=0.15)
    assert result.equilibrated


def test_short_runs_against_their_memory_are_flagged():
    # Time 39 against 100 sweeps: no drift to see, but the chains say nothing.
    result = Equilibration(autoregressive(0.95, 100, 64, seed=2))
    assert result.autocorrelation_time > 10
    assert not result.equilibrated


def test_autocorrelation_by_hand():
    # The second half: one chain, 1, -1, 1, -1 about a zero mean.
    energies = np.array([[5.0], [5], [5], [5], [1], [-1], [1], [-1]])
    result = Equilibration(energies)
    np.testing.assert_array_equal(result.stationary, energies[4:])
    np.testing.assert_allclose(result.autocorrelation, [1, -1])
    assert result.autocorrelation_time == 1  # cut at the first negative lag


def test_drift_by_hand():
    # Chain means (0, 2), then (3, 5): shift 3, error of each mean 1/√2, of their difference 1.
    energies = np.array([[9.0, 9]] * 4 + [[0, 2]] * 2 + [[3, 5]] * 2)
    assert Equilibration(energies).drift == pytest.approx(3)


def test_chains_stuck_at_different_energies_are_flagged():
    rng = np.random.default_rng(3)
    stuck = np.tile(rng.normal(size=16), (200, 1)) + 0.05 * rng.normal(size=(200, 16))
    result = Equilibration(stuck)
    assert result.autocorrelation[-1] > 0.9
    assert not result.equilibrated
    assert "NOT equilibrated: more sweeps" in str(result)


def test_frozen_chains_are_flagged():
    result = Equilibration(np.full((100, 8), -0.5))
    np.testing.assert_array_equal(result.autocorrelation, np.ones(25))
    assert result.drift == 0
    assert not result.equilibrated


def test_drifting_chains_are_flagged():
    rng = np.random.default_rng(4)
    falling = rng.normal(size=(400, 32)) - 0.002 * np.arange(400)[:, None]
    result = Equilibration(falling)
    assert result.drift > 4
    assert not result.equilibrated


def test_equilibration_of_the_model():
    hot = HopfieldModel.random(300, 3, beta=0.5, random_state=0).equilibration(random_state=1)
    assert hot.energies.shape == (200, 64)
    assert hot.equilibrated
    # Paramagnet: -½ Σ_μ M_μ²/N per N spins, ⟨M²⟩/N = 1/(1-β) = 2 for each of three patterns.
    assert hot.stationary.mean() * 300 == pytest.approx(-3, abs=0.3)
    # At β = 20 every chain freezes in a state of its own.
    cold = HopfieldModel.random(300, 60, beta=20.0, random_state=0)
    assert not cold.equilibration(start="random", random_state=1).equilibrated


def test_equilibration_prints_its_verdict():
    energies = np.random.default_rng(5).normal(-2.0, 0.5, size=(2000, 8))
    energies[0] = 1.0
    text = str(Equilibration(energies))
    assert text.startswith("8 chains of 2000 sweeps: energy per spin 1.0000 after the first, -2.0")
    assert "autocorrelation time 1." in text
    assert text.endswith("looks equilibrated")


# --- progress ----------------------------------------------------------------------------------


@pytest.fixture
def no_terminal(monkeypatch):
    """Remove the variables that make Rich believe in a terminal."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_terminal")
@pytest.mark.parametrize("verbose", [False, True])
def test_nothing_is_written_where_nobody_watches(model, verbose, capfd):
    model.sample(4, n_sweeps=5, random_state=0, verbose=verbose)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_on_stderr(model, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes stderr for a terminal then
    monkeypatch.setenv("COLUMNS", "100")
    quiet = model.sample(4, n_sweeps=12, random_state=0)
    assert capsys.readouterr() == ("", "")
    watched = model.sample(4, n_sweeps=12, random_state=0, verbose=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "sampling" in err
    assert "12/12" in err
    np.testing.assert_array_equal(watched, quiet)


@pytest.mark.usefixtures("no_terminal")
@pytest.mark.parametrize("enabled", [False, True])
def test_progress_does_not_swallow_errors(enabled, capfd):
    with pytest.raises(KeyboardInterrupt), progress("x", 3, enabled) as advance:  # noqa: PT012
        advance(1)
        raise KeyboardInterrupt
    assert capfd.readouterr() == ("", "")


def test_progress_reports_every_sweep(model, monkeypatch):
    # The steps add up to n_sweeps, through annealing stages and split calls alike.
    steps = []

    class Spy:
        def __init__(self, description, total, enabled):
            self.total = total

        def __enter__(self):
            return steps.append

        def __exit__(self, *error):
            return None

    monkeypatch.setattr(_sampling, "progress", Spy)
    monkeypatch.setattr(_chains, "_UPDATES_PER_CALL", 200 * 4 * 3)
    model.sample(4, start="annealed", n_sweeps=50, random_state=0)
    assert sum(steps) == 50
    assert max(steps) <= 3
