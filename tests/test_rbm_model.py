"""The RBM and its Gibbs kernel against exact sums over spins and hidden units.

Hidden units are summed out on a grid: all ±1 states, or the nodes of Gauss and Hermite, which
are exact to rounding for the smooth functions of a few Gaussian units met here.
"""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import quad
from scipy.stats import chisquare, kstest, norm

from dualtap._chains import seeded_generators
from dualtap._kernels.gibbs import _sample_hidden
from dualtap._kernels.signs import _halved, uniform
from dualtap.rbm.gibbs import Chains, advance, random_chains
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import PRIORS, random_signs

both_priors = pytest.mark.parametrize("prior", ["gaussian", "binary"])
with_and_without_fields = pytest.mark.parametrize("with_fields", [False, True])

LEAST_P = 1e-4


def make(prior, n_hidden=2, n_spins=5, *, with_fields=True, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    W = scale * rng.standard_normal((n_hidden, n_spins))
    b = 0.5 * rng.standard_normal(n_spins) * with_fields
    return RBM(W, b, PRIORS[prior])


def all_states(n):
    """All 2^n states; bit i of the row number set means s_i = -1."""
    return 1.0 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def state_numbers(X):
    return (X < 0) @ (1 << np.arange(X.shape[1]))


def hidden_grid(prior, n_hidden):
    """States of the hidden units and their weights under the prior."""
    if prior == "binary":
        return all_states(n_hidden), np.full(2**n_hidden, 0.5**n_hidden)
    x, w = hermegauss(60)
    nodes = np.array(list(itertools.product(x, repeat=n_hidden)))
    weights = np.array([np.prod(c) for c in itertools.product(w, repeat=n_hidden)])
    return nodes, weights / weights.sum()


def boltzmann(model):
    """P(s) of every state, from the energy of the joint law alone."""
    S = all_states(model.n_spins)
    grid, weights = hidden_grid(model.prior.name, model.n_hidden)
    p = np.array([weights @ np.exp(-model.energy(np.tile(s, (len(grid), 1)), grid)) for s in S])
    return p / p.sum()


def step_law(model, starts):
    """P(s' | s) of one block Gibbs step for every given s, zeros allowed; rows sum to one."""
    grid, weights = hidden_grid(model.prior.name, model.n_hidden)
    up = weights * np.exp(starts @ model.weights.T @ grid.T)
    field = grid @ model.weights + model.fields
    down = np.exp(field @ all_states(model.n_spins).T)
    down /= down.sum(axis=1, keepdims=True)
    return (up / up.sum(axis=1, keepdims=True)) @ down


def p_value(counts, probabilities):
    """Chi-square test; states expected fewer than ten times are pooled."""
    expected = probabilities / probabilities.sum() * counts.sum()
    order = np.argsort(expected)
    n_rare = max(2, int(np.searchsorted(np.cumsum(expected[order]), 10)) + 1)
    n_rare = max(n_rare, int((expected < 10).sum()))
    rare, others = order[:n_rare], order[n_rare:]
    counts = np.append(counts[others], counts[rare].sum())
    expected = np.append(expected[others], expected[rare].sum())
    return chisquare(counts, expected).pvalue


def counts_of(X):
    return np.bincount(state_numbers(X), minlength=2 ** X.shape[1])


def chains_at(start, n_chains, seed=0):
    spins = np.tile(np.asarray(start, dtype=np.float32), (n_chains, 1))
    return Chains(spins, seeded_generators(n_chains, np.random.default_rng(seed)))


# --- priors ------------------------------------------------------------------------------------


@both_priors
def test_the_mean_is_the_slope_of_the_log_normalizer(prior):
    x = np.linspace(-4, 4, 41)
    d = 1e-5
    rise = PRIORS[prior].log_normalizer(x + d) - PRIORS[prior].log_normalizer(x - d)
    np.testing.assert_allclose(PRIORS[prior].mean(x), rise / (2 * d), atol=1e-8)


@pytest.mark.parametrize("x", [-3.0, -0.2, 0.0, 1.0, 2.5])
def test_log_normalizers_are_integrals_over_the_prior(x):
    integral, _ = quad(lambda t: norm.pdf(t) * np.exp(t * x), -20, 20, epsabs=1e-12)
    got = PRIORS["gaussian"].log_normalizer(np.array([x]))
    np.testing.assert_allclose(got, np.log(integral), atol=1e-9)
    got = PRIORS["binary"].log_normalizer(np.array([x]))
    np.testing.assert_allclose(got, np.log((np.exp(x) + np.exp(-x)) / 2), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_cosh_of_large_inputs_does_not_overflow(dtype):
    x = np.array([-1e4, 1e4], dtype=dtype)
    got = PRIORS["binary"].log_normalizer(x)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, 1e4 - np.log(2), rtol=1e-6)


@pytest.mark.parametrize("x", [-1.5, 0.0, 0.7])
def test_gaussian_hidden_units_are_normal_around_their_input(x):
    draws = PRIORS["gaussian"].sample(np.full(50_000, x), np.random.default_rng(1))
    assert kstest(draws - x, "norm").pvalue > LEAST_P


@pytest.mark.parametrize("x", [-1.5, 0.0, 0.7])
def test_binary_hidden_units_have_logistic_odds(x):
    draws = PRIORS["binary"].sample(np.full(50_000, x), np.random.default_rng(1))
    up = 1 / (1 + np.exp(-2 * x))
    counts = [np.count_nonzero(draws == 1), np.count_nonzero(draws == -1)]
    assert chisquare(counts, [50_000 * up, 50_000 * (1 - up)]).pvalue > LEAST_P


@both_priors
def test_samples_keep_shape_and_dtype(prior):
    x = np.zeros((3, 4), dtype=np.float32)
    draws = PRIORS[prior].sample(x, np.random.default_rng(0))
    assert (draws.shape, draws.dtype) == ((3, 4), np.float32)


# --- the model ---------------------------------------------------------------------------------


def test_energy_by_hand():
    # x = (1·1 + 2·(-1), 0·1 + 3·(-1)) = (-1, -3); E = -(1 - 5) - (2·(-1) + 1·(-3)).
    model = RBM(np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 5.0]), PRIORS["gaussian"])
    energy = model.energy(np.array([[1.0, -1.0]]), np.array([[2.0, 1.0]]))
    np.testing.assert_array_equal(energy, [9.0])


@both_priors
@with_and_without_fields
def test_free_energy_sums_the_hidden_units_out(prior, with_fields):
    model = make(prior, with_fields=with_fields)
    grid, weights = hidden_grid(prior, 2)
    for s in all_states(5):
        total = weights @ np.exp(-model.energy(np.tile(s, (len(grid), 1)), grid))
        np.testing.assert_allclose(model.free_energy(s[None]), -np.log(total), atol=1e-10)


@both_priors
def test_hidden_means_come_from_the_joint_law(prior):
    model = make(prior)
    grid, weights = hidden_grid(prior, 2)
    for s in all_states(5):
        p = weights * np.exp(-model.energy(np.tile(s, (len(grid), 1)), grid))
        np.testing.assert_allclose(model.hidden_means(s[None])[0], p @ grid / p.sum(), atol=1e-9)


@both_priors
def test_visible_means_come_from_the_joint_law(prior):
    model = make(prior)
    S = all_states(5)
    for hidden in np.random.default_rng(2).standard_normal((20, 2)):
        p = np.exp(-model.energy(S, np.tile(hidden, (len(S), 1))))
        np.testing.assert_allclose(np.tanh(model.visible_fields(hidden[None]))[0], p @ S / p.sum())


@both_priors
def test_sampled_spins_follow_their_law_given_the_hidden_units(prior):
    model = make(prior)
    hidden = np.array([0.8, -1.0])
    fields = model.visible_fields(np.tile(hidden, (30_000, 1)))
    draws = random_signs(fields, np.random.default_rng(3))
    S = all_states(5)
    law = np.exp(-model.energy(S, np.tile(hidden, (len(S), 1))))
    assert p_value(counts_of(draws), law) > LEAST_P


def test_sampled_hidden_units_follow_their_law_given_the_spins():
    model = make("binary", n_hidden=3)
    s = all_states(5)[11]
    draws = model.sample_hidden(np.tile(s, (30_000, 1)), np.random.default_rng(3))
    grid = all_states(3)
    law = np.exp(-model.energy(np.tile(s, (8, 1)), grid))
    assert p_value(counts_of(draws), law) > LEAST_P


def half_rises(model, S):
    """Half of F(s with s_i turned) - F(s), by definition."""
    rises = np.empty(S.shape)
    for i in range(S.shape[1]):
        turned = S.copy()
        turned[:, i] *= -1
        rises[:, i] = (model.free_energy(turned) - model.free_energy(S)) / 2
    return rises


@both_priors
@settings(max_examples=40)
@given(
    n_hidden=st.integers(1, 19),
    n_spins=st.integers(1, 7),
    scale=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_aligned_fields_are_half_the_rise_of_the_free_energy(prior, n_hidden, n_spins, scale, seed):
    model = make(prior, n_hidden, n_spins, scale=scale, seed=seed)
    S = np.random.default_rng(seed).choice([-1.0, 1.0], size=(6, n_spins))
    np.testing.assert_allclose(model.aligned_fields(S), half_rises(model, S), atol=1e-7)


# Weights of 5 are common where spins agree nearly always; has_diverged() allows ten times that.
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [2.0, 5.0, 10.0, 40.0])
def test_aligned_fields_of_strong_binary_units(weight, dtype):
    W = weight * np.array([[1, 1, -1, 1, 1], [1, -1, 1, 1, 1]], dtype=dtype)
    model = RBM(W, np.zeros(5, dtype=dtype), PRIORS["binary"])
    S = all_states(5).astype(dtype)
    aligned = model.aligned_fields(S)
    assert aligned.dtype == dtype
    np.testing.assert_allclose(aligned, half_rises(model, S), rtol=1e-4, atol=1e-4 * weight)


@both_priors
def test_single_spin_law_by_enumeration(prior):
    # P(s_i | others) = 1 / (1 + exp(-2 s_i h_i)), against the enumerated P(s).
    model = make(prior)
    S, p = all_states(5), boltzmann(model)
    numbers = np.arange(len(S))
    for i in range(5):
        conditional = p / (p + p[numbers ^ (1 << i)])
        aligned = model.aligned_fields(S)[:, i]
        np.testing.assert_allclose(1 / (1 + np.exp(-2 * aligned)), conditional, atol=1e-9)


@both_priors
def test_missing_entries_take_no_part(prior):
    model = make(prior)
    seen = np.array([0, 2, 3])
    smaller = RBM(model.weights[:, seen], model.fields[seen], model.prior)
    S = all_states(3)
    gapped = np.zeros((8, 5))
    gapped[:, seen] = S
    hidden = np.random.default_rng(0).standard_normal((8, 2))
    for whole, part in [
        (model.inputs(gapped), smaller.inputs(S)),
        (model.energy(gapped, hidden), smaller.energy(S, hidden)),
        (model.free_energy(gapped), smaller.free_energy(S)),
        (model.hidden_means(gapped), smaller.hidden_means(S)),
        (model.aligned_fields(gapped)[:, seen], smaller.aligned_fields(S)),
    ]:
        np.testing.assert_allclose(whole, part, atol=1e-12)


@both_priors
def test_turning_all_spins_changes_nothing_without_fields(prior):
    model, S = make(prior, with_fields=False), all_states(5)
    np.testing.assert_allclose(model.free_energy(S), model.free_energy(-S), atol=1e-12)
    np.testing.assert_allclose(model.aligned_fields(S), model.aligned_fields(-S), atol=1e-12)
    np.testing.assert_allclose(model.hidden_means(S), -model.hidden_means(-S), atol=1e-12)


@both_priors
def test_turning_spins_and_fields_changes_nothing(prior):
    model, S = make(prior), all_states(5)
    turned = RBM(model.weights, -model.fields, model.prior)
    np.testing.assert_allclose(model.free_energy(S), turned.free_energy(-S), atol=1e-12)
    # And fields do break the symmetry.
    assert np.abs(model.free_energy(S) - model.free_energy(-S)).max() > 0.1


@both_priors
def test_order_and_signs_of_hidden_units_do_not_matter(prior):
    model, S = make(prior, n_hidden=4), all_states(5)
    changed = (model.weights * [[1], [-1], [-1], [1]])[[2, 0, 3, 1]]
    other = RBM(changed, model.fields, model.prior)
    np.testing.assert_allclose(other.free_energy(S), model.free_energy(S), atol=1e-12)
    np.testing.assert_allclose(other.aligned_fields(S), model.aligned_fields(S), atol=1e-12)


@both_priors
def test_permuting_spins_permutes_everything(prior):
    model, S = make(prior), all_states(5)
    order = np.array([3, 0, 4, 1, 2])
    other = RBM(model.weights[:, order], model.fields[order], model.prior)
    np.testing.assert_allclose(other.free_energy(S[:, order]), model.free_energy(S), atol=1e-12)
    np.testing.assert_allclose(
        other.aligned_fields(S[:, order]), model.aligned_fields(S)[:, order], atol=1e-12
    )


def test_gaussian_units_know_their_weights_up_to_a_rotation():
    model, S = make("gaussian", n_hidden=3), all_states(5)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    other = RBM(rotation @ model.weights, model.fields, model.prior)
    np.testing.assert_allclose(other.free_energy(S), model.free_energy(S), atol=1e-12)
    np.testing.assert_allclose(other.aligned_fields(S), model.aligned_fields(S), atol=1e-12)


@both_priors
def test_block_gibbs_is_in_detailed_balance(prior):
    model = make(prior)
    p, law = boltzmann(model), step_law(model, all_states(5))
    flow = p[:, None] * law
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


# --- the kernel: laws --------------------------------------------------------------------------


@both_priors
@with_and_without_fields
@pytest.mark.parametrize("start", [0, 9, 21])
def test_one_step_has_the_exact_law(prior, with_fields, start):
    model = make(prior, with_fields=with_fields)
    s = all_states(5)[start]
    moved = advance(model, chains_at(s, 40_000, seed=start), 1).spins
    assert p_value(counts_of(moved), step_law(model, s[None])[0]) > LEAST_P


@both_priors
@with_and_without_fields
@pytest.mark.parametrize(("n_spins", "n_hidden"), [(4, 1), (5, 2), (6, 2)])
def test_chains_reach_the_boltzmann_law(prior, with_fields, n_spins, n_hidden):
    model = make(prior, n_hidden, n_spins, with_fields=with_fields, scale=0.35, seed=n_spins)
    n_steps = 60
    p = boltzmann(model)
    # What is left of the uniform start is invisible to the test below.
    left = np.full(2**n_spins, 0.5**n_spins)
    left = left @ np.linalg.matrix_power(step_law(model, all_states(n_spins)), n_steps) - p
    assert np.abs(left).max() < 1e-6
    chains = random_chains(40_000, n_spins, np.random.default_rng(n_spins))
    assert p_value(counts_of(advance(model, chains, n_steps).spins), p) > LEAST_P


def test_seven_hidden_units_reach_the_boltzmann_law():
    # One block of four and a remainder of three.
    model = make("binary", n_hidden=7, scale=0.3)
    chains = random_chains(40_000, 5, np.random.default_rng(0))
    assert p_value(counts_of(advance(model, chains, 40).spins), boltzmann(model)) > LEAST_P


@both_priors
def test_held_spins_stay_and_the_others_follow_the_law_given_them(prior):
    model = make(prior, n_spins=6)
    held = np.zeros((40_000, 6), dtype=np.float32)
    held[:, 1], held[:, 4] = 1, -1
    chains = chains_at(held[0], 40_000)
    moved = advance(model, chains, 50, held=held).spins
    assert (moved[:, 1] == 1).all()
    assert (moved[:, 4] == -1).all()
    S = all_states(6)
    law = boltzmann(model) * (S[:, 1] == 1) * (S[:, 4] == -1)
    agrees = law > 0
    assert p_value(counts_of(moved)[agrees], law[agrees]) > LEAST_P


def test_each_chain_holds_its_own_spins():
    rng = np.random.default_rng(4)
    model = make("gaussian", n_spins=40)
    held = rng.choice([-1, 0, 1], size=(30, 40)).astype(np.float32)
    chains = random_chains(30, 40, rng)
    moved = advance(model, chains, 3, held=held).spins
    np.testing.assert_array_equal(moved[held != 0], held[held != 0])
    # The others do move: a fair coin agrees 600 times out of 1200 or so.
    free = held == 0
    assert 0 < np.count_nonzero(moved[free] != chains.spins[free]) < np.count_nonzero(free)


@both_priors
def test_a_missing_spin_has_no_say_and_receives_a_value(prior):
    model = make(prior, scale=1.0)
    start = np.array([1.0, 0.0, -1.0, 0.0, 1.0])
    moved = advance(model, chains_at(start, 40_000), 1).spins
    assert set(np.unique(moved)) == {-1, 1}
    assert p_value(counts_of(moved), step_law(model, start[None])[0]) > LEAST_P


def test_every_spin_feels_its_own_field():
    b = np.random.default_rng(5).uniform(-1.5, 1.5, size=37)
    model = RBM(np.zeros((1, 37)), b, PRIORS["gaussian"])
    moved = advance(model, random_chains(20_000, 37, np.random.default_rng(6)), 1).spins
    error = np.abs(moved.mean(axis=0) - np.tanh(b)) * np.cosh(b) * np.sqrt(20_000)
    assert error.max() < 5


@pytest.mark.parametrize("n_hidden", [1, 4, 31, 32, 33, 70])
def test_every_hidden_unit_acts_on_every_spin(n_hidden):
    # Spin 0 is tied so strongly to the units that it decides them: λ_μ = sign W_μ0.
    rng = np.random.default_rng(n_hidden)
    W = rng.standard_normal((n_hidden, 37)) / np.sqrt(n_hidden)
    decided = rng.choice([-1.0, 1.0], size=n_hidden)
    W[:, 0] = 1000 * decided
    model = RBM(W, np.zeros(37), PRIORS["binary"])
    field = (decided @ W)[1:]
    start = rng.choice([-1.0, 1.0], size=37)
    start[0] = 1
    moved = advance(model, chains_at(start, 20_000), 1).spins
    assert (moved[:, 0] == 1).all()
    error = (moved[:, 1:].mean(axis=0) - np.tanh(field)) * np.cosh(field) * np.sqrt(20_000)
    assert np.abs(error).max() < 5


def test_spins_of_a_step_are_independent_given_the_hidden_units():
    # Without weights all spins are free; shared or shifted lanes would correlate them.
    model = RBM(np.zeros((1, 70)), np.zeros(70), PRIORS["binary"])
    chains = random_chains(20_000, 70, np.random.default_rng(7))
    once = advance(model, chains, 1)
    twice = advance(model, once, 1)
    S = np.hstack([chains.spins, once.spins, twice.spins])
    correlations = S.T @ S / len(S) - np.eye(210)
    assert np.abs(correlations).max() < 6 / np.sqrt(20_000)


# --- the kernel: chains as values --------------------------------------------------------------


def equal(a, b):
    np.testing.assert_array_equal(a.spins, b.spins)
    np.testing.assert_array_equal(a.generators, b.generators)


@both_priors
def test_the_number_of_threads_does_not_matter(prior):
    model = make(prior, n_hidden=6, n_spins=45)
    chains = random_chains(11, 45, np.random.default_rng(0))
    threads = numba.get_num_threads()
    results = []
    try:
        for n in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(n)
            results.append(advance(model, chains, 8))
    finally:
        numba.set_num_threads(threads)
    equal(*results)


@both_priors
@settings(max_examples=20)
@given(which=st.lists(st.integers(0, 8), min_size=1, max_size=12), n_steps=st.integers(0, 4))
def test_a_chain_does_not_depend_on_the_others(prior, which, n_steps):
    model = make(prior, n_hidden=5, n_spins=40)
    chains = random_chains(9, 40, np.random.default_rng(1))
    whole = advance(model, chains, n_steps)
    some = advance(model, Chains(chains.spins[which], chains.generators[which]), n_steps)
    equal(some, Chains(whole.spins[which], whole.generators[which]))


@both_priors
def test_steps_add_up(prior):
    model = make(prior, n_hidden=5, n_spins=33)
    chains = random_chains(6, 33, np.random.default_rng(2))
    equal(advance(model, advance(model, chains, 3), 4), advance(model, chains, 7))
    equal(advance(model, chains, 0), chains)


@both_priors
def test_given_arrays_stay_as_they_are(prior):
    # 32 spins and float32: no copy is needed for the kernel's sake, so one must be made.
    model = make(prior, n_spins=32)
    model = RBM(model.weights.astype(np.float32), model.fields.astype(np.float32), model.prior)
    chains = random_chains(5, 32, np.random.default_rng(3))
    held = np.zeros((5, 32), dtype=np.float32)
    held[:, 3] = 1
    given_arrays = (model.weights, model.fields, chains.spins, chains.generators, held)
    before = [array.copy() for array in given_arrays]
    moved = advance(model, chains, 4, held=held)
    for array, old in zip(given_arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    assert not np.array_equal(moved.spins, chains.spins)
    assert not (moved.generators == chains.generators).any(axis=(1, 2)).all()


@both_priors
@pytest.mark.parametrize("n_spins", [1, 5, 31, 33, 63])
def test_spins_beyond_the_last_change_nothing(prior, n_spins):
    # The kernel works on multiples of 32; what fills them up must not be felt.
    model = make(prior, n_hidden=3, n_spins=n_spins)
    full = -(-n_spins // 32) * 32
    filled = np.zeros((3, full))
    filled[:, :n_spins] = model.weights
    fields = np.append(model.fields, np.zeros(full - n_spins))
    chains = random_chains(7, full, np.random.default_rng(4))
    short = Chains(chains.spins[:, :n_spins], chains.generators)
    moved = advance(RBM(filled, fields, model.prior), chains, 5)
    got = advance(model, short, 5)
    assert got.spins.shape == (7, n_spins)
    assert got.spins.flags.c_contiguous
    equal(got, Chains(moved.spins[:, :n_spins], moved.generators))


def test_random_chains_are_fair_and_differ():
    chains = random_chains(2000, 30, np.random.default_rng(0))
    assert chains.spins.dtype == np.float32
    assert set(np.unique(chains.spins)) == {-1, 1}
    assert np.abs(chains.spins.mean(axis=0)).max() < 6 / np.sqrt(2000)
    assert len(np.unique(chains.generators.reshape(2000, -1), axis=0)) == 2000


def test_no_stream_starts_at_the_fixed_point():
    class Zeros:
        def integers(self, low, high, size, dtype):
            words = np.zeros(size, dtype=dtype)
            words[0, 2, 5] = 7
            return words

    words = seeded_generators(2, Zeros())
    assert words.any(axis=1).all()
    assert words[0, :, 5].tolist() == [0, 0, 7, 0]  # a state that is fine stays


# --- the kernel: numbers -----------------------------------------------------------------------


@njit(fastmath={"contract"})  # as in the kernels
def exponentials(x, result):
    for i in range(len(x)):
        result[i] = _halved(x[i])


@njit
def uniforms(words, result):
    for i in range(len(words)):
        result[i] = uniform(words[i])


def draw_hidden(x, binary, seed=0):
    x = np.asarray(x, dtype=np.float32)
    generator = seeded_generators(1, np.random.default_rng(seed))[0]
    word = np.empty(32, dtype=np.uint32)
    hidden = np.empty(len(x), dtype=np.float32)
    _sample_hidden(x, generator, word, binary, hidden)
    return hidden


def test_exponential_to_float32():
    x = np.linspace(0, 115, 100_001, dtype=np.float32)
    got = np.empty_like(x)
    exponentials(x, got)
    np.testing.assert_allclose(got, np.exp2(-x.astype(np.float64)), rtol=4e-7)


def test_exponential_saturates():
    x = np.array([116, 1e30, np.inf], dtype=np.float32)
    got = np.empty_like(x)
    exponentials(x, got)
    np.testing.assert_allclose(got, 2.0**-115, rtol=1e-6)


def test_uniforms_are_the_middles_of_intervals():
    # Neither 0 nor 1, so that a field of any strength and sign decides.
    words = np.array([0, 511, 512, 2**31, 2**32 - 1], dtype=np.uint32)
    got = np.empty(5, dtype=np.float32)
    uniforms(words, got)
    step = 2.0**-23
    expected = [step / 2, step / 2, 1.5 * step, 0.5 + step / 2, 1 - step / 2]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shift", [0.0, -2.5])
def test_hidden_units_of_the_kernel_are_normal(shift):
    n = 400_000
    z = draw_hidden(np.full(n, shift), binary=False).astype(np.float64) - shift
    assert kstest(z, "norm").pvalue > LEAST_P
    counts, _ = np.histogram(norm.cdf(z), bins=100, range=(0, 1))
    assert chisquare(counts).pvalue > LEAST_P
    # Moments within five standard errors, which are those of z, z², z³ and z⁴.
    errors = np.sqrt(np.array([1, 2, 15, 96]) / n)
    moments = [np.mean(z**k) for k in (1, 2, 3, 4)]
    np.testing.assert_array_less(np.abs(np.array(moments) - [0, 1, 0, 3]), 5 * errors)


def test_hidden_units_of_the_kernel_have_tails():
    # 25 of 400 000 are expected beyond four standard deviations, on both sides.
    z = draw_hidden(np.zeros(400_000), binary=False, seed=1)
    assert 5 < np.count_nonzero(np.abs(z) > 4) < 60
    assert z.min() < -4
    assert z.max() > 4
    assert np.isfinite(z).all()


def test_hidden_units_of_the_kernel_are_independent():
    z = draw_hidden(np.zeros(32 * 20_000), binary=False, seed=2).reshape(-1, 32)
    pairs = np.hstack([z[:-1], z[1:]])  # the lanes of a draw, and of the next one
    for values in (pairs, np.abs(pairs) - np.sqrt(2 / np.pi)):
        correlations = np.corrcoef(values.T) - np.eye(64)
        assert np.abs(correlations).max() < 6 / np.sqrt(20_000)


@pytest.mark.parametrize("x", [-3.0, -0.4, 0.0, 0.4, 3.0])
def test_binary_hidden_units_of_the_kernel(x):
    n = 200_000
    hidden = draw_hidden(np.full(n, x), binary=True, seed=3)
    assert set(np.unique(hidden)) == {-1, 1}
    up = 1 / (1 + np.exp(-2 * x))
    counts = [np.count_nonzero(hidden == 1), np.count_nonzero(hidden == -1)]
    assert chisquare(counts, [n * up, n * (1 - up)]).pvalue > LEAST_P


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("n_hidden", [4, 32, 36, 72])
def test_each_hidden_unit_has_its_own_input(n_hidden, binary):
    x = 50.0 * np.where(np.arange(n_hidden) % 3 == 0, 1, -1)
    hidden = draw_hidden(x, binary)
    np.testing.assert_array_equal(np.sign(hidden), np.sign(x))
    if not binary:
        assert np.abs(hidden - x).max() < 8
