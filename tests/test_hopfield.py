"""The teacher and its sampler against exact enumeration at small N, and known physics at large N.

The kernel is also held, bit for bit, against a plain-Python heat bath written here with exact
integers: overlaps recomputed from scratch, xoshiro128++ in Python integers.
"""

import itertools
import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dualtap import _chains, _sampling
from dualtap._chains import flip_odds
from dualtap._kernels.glauber import _break_ties, glauber_sweeps
from dualtap._kernels.xoshiro import draw
from dualtap._progress import progress
from dualtap._random import as_generator
from dualtap.hopfield import Equilibration, HopfieldModel
from dualtap.spins import as_spins

MASK = 2**32 - 1


# --- exact enumeration -------------------------------------------------------------------------


def all_states(n_spins):
    """All 2^N states; bit i of the row number set means s_i = -1."""
    return (1 - 2 * (np.arange(2**n_spins)[:, None] >> np.arange(n_spins) & 1)).astype(np.int8)


def state_numbers(X):
    return (X < 0) @ (1 << np.arange(X.shape[1]))


def dense_energy(patterns, S):
    """H = -½ Σ_ij J_ij s_i s_j by loops over the pairs, i = j included."""
    n_spins = patterns.shape[1]
    energy = np.zeros(len(S))
    for i, j in itertools.product(range(n_spins), repeat=2):
        J_ij = sum(int(zeta[i]) * int(zeta[j]) for zeta in patterns) / n_spins
        energy -= J_ij * S[:, i] * S[:, j] / 2
    return energy


def boltzmann(model):
    """P(s) of every state, from the definition."""
    S = all_states(model.n_spins).astype(float)
    exponent = np.zeros(len(S)) if model.fields is None else S @ model.fields
    for g, zeta in zip(model.strengths, model.patterns, strict=True):
        exponent += g / (2 * model.n_spins) * (S @ zeta) ** 2
    weight = np.exp(exponent)
    return weight / weight.sum()


def block_step(model, s):
    """Exact distribution after one block Gibbs step from s, two patterns: an integral over λ."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    W = np.sqrt(model.beta / model.n_spins) * model.patterns
    S = all_states(model.n_spins)
    exact = np.zeros(len(S))
    for (x, u), (y, v) in itertools.product(zip(nodes, weights, strict=True), repeat=2):
        field = (W @ s + [x, y]) @ W + model.fields
        exact += u * v / (2 * np.pi) * np.prod(1 / (1 + np.exp(-2 * S * field)), axis=1)
    return exact


def sweep_matrix(model):
    """Transition matrix of one sweep over the sites 0 … N-1, from the definition."""
    n_spins = model.n_spins
    S = all_states(n_spins)
    J = model.couplings()
    np.fill_diagonal(J, 0)
    b = np.zeros(n_spins) if model.fields is None else model.fields
    numbers = np.arange(2**n_spins)
    sweep = np.eye(2**n_spins)
    for i in range(n_spins):
        up = 1 / (1 + np.exp(-2 * (model.beta * (S @ J[i]) + b[i])))
        update = np.zeros_like(sweep)
        update[numbers, numbers & ~(1 << i)] = up
        update[numbers, numbers | (1 << i)] = 1 - up
        sweep = sweep @ update
    return sweep


def p_value(X, probabilities):
    """Chi-square test of the states' counts; states expected fewer than ten times are pooled."""
    counts = np.bincount(state_numbers(X), minlength=len(probabilities))
    expected = probabilities * len(X)
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:  # too few even together: into the smallest of the others
        smallest = np.argmin(expected[:-1])
        counts[smallest] += counts[-1]
        expected[smallest] += expected[-1]
        counts, expected = counts[:-1], expected[:-1]
    return chisquare(counts, expected).pvalue


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


def rotate(x, k):
    return (x << k | x >> 32 - k) & MASK


def xoshiro128pp(state):
    """One word; advances the list of four 32-bit integers (Blackman and Vigna)."""
    word = (rotate((state[0] + state[3]) & MASK, 7) + state[0]) & MASK
    t = (state[1] << 9) & MASK
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = rotate(state[3], 11)
    return word


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
    # Neither sign is preferred: 200 fair coins, six standard deviations.
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


@pytest.mark.parametrize("start", ["random", "patterns", "annealed"])
@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5])
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
    monkeypatch.setattr(_chains.Chains, "_lanes", lambda self: lanes)
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
    chains = _chains.Chains(model.patterns, start, np.random.default_rng(2))
    whole = _chains.Chains(model.patterns, start, np.random.default_rng(2))
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


@pytest.mark.parametrize("phi", [0.5, 0.8, 0.95])
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
        _chains.Chains(states, states, np.random.default_rng(0))


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
