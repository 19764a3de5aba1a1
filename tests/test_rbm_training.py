"""Training against exact likelihoods at small N: gradients, one update, and where many lead."""

from itertools import islice

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq
from scipy.special import logsumexp

from dualtap._chains import seeded_generators
from dualtap._threads import one_blas_thread
from dualtap.rbm.gibbs import Chains, advance, random_chains
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import pseudo_likelihood, singular_values
from dualtap.rbm.pcd import (
    Ascent,
    Gradient,
    Training,
    gradient,
    has_diverged,
    hidden_center,
    step,
    strength,
)
from dualtap.rbm.priors import PRIORS
from dualtap.rbm.samples import batches, largest_second_moment
from dualtap.rbm.start import FIRST_SINGULAR_VALUE, start_run
from dualtap.rbm.training import Plan, train

both_priors = pytest.mark.parametrize("prior", ["gaussian", "binary"])


def all_states(n):
    return 1.0 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def make(prior, n_hidden=2, n_spins=6, *, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    W = scale * rng.standard_normal((n_hidden, n_spins))
    return RBM(W, 0.3 * rng.standard_normal(n_spins), PRIORS[prior])


def log_probabilities(model):
    """Log P(s) of every state; the free energy has its own tests against the joint law."""
    F = model.free_energy(all_states(model.n_spins))
    return -F - logsumexp(-F)


def slopes(function, x, d=1e-5):
    """Central differences, shaped like x."""
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        there, back = x.copy(), x.copy()
        there[place] += d
        back[place] -= d
        result[place] = (function(there) - function(back)) / (2 * d)
    return result


# --- the gradient ------------------------------------------------------------------------------


def exact_gradient(model, data_law):
    """``gradient`` with both means exact: it is linear in each sample, so add up its states."""
    S = all_states(model.n_spins)
    weights, fields = np.zeros_like(model.weights), np.zeros_like(model.fields)
    excess = data_law - np.exp(log_probabilities(model))
    for s, p in zip(S, excess, strict=True):
        part = gradient(model, s[None], S[:1])  # the second sample drops out of the sum
        weights += p * part.weights
        fields += p * part.fields
    return weights, fields


@both_priors
@pytest.mark.parametrize(("n_spins", "n_hidden"), [(2, 1), (5, 3), (8, 2)])
def test_gradient_is_the_slope_of_the_likelihood(prior, n_spins, n_hidden):
    model = make(prior, n_hidden, n_spins, seed=n_spins)
    law = np.random.default_rng(1).dirichlet(np.ones(2**n_spins))
    weights, fields = exact_gradient(model, law)
    np.testing.assert_allclose(
        weights,
        slopes(lambda W: law @ log_probabilities(RBM(W, model.fields, model.prior)), model.weights),
        atol=1e-7,
    )
    np.testing.assert_allclose(
        fields,
        slopes(lambda b: law @ log_probabilities(RBM(model.weights, b, model.prior)), model.fields),
        atol=1e-7,
    )


@both_priors
def test_gradient_takes_means_over_samples_of_any_size(prior):
    model = make(prior)
    rng = np.random.default_rng(0)
    data, fantasy = (rng.choice([-1.0, 1.0], size=(m, 6)) for m in (7, 12))
    got = gradient(model, data, fantasy)
    up = np.mean([np.outer(model.hidden_means(s[None])[0], s) for s in data], axis=0)
    down = np.mean([np.outer(model.hidden_means(s[None])[0], s) for s in fantasy], axis=0)
    np.testing.assert_allclose(got.weights, up - down, atol=1e-12)
    np.testing.assert_allclose(got.fields, data.mean(axis=0) - fantasy.mean(axis=0), atol=1e-12)


@both_priors
def test_gradient_is_odd_in_its_samples_and_zero_between_equal_ones(prior):
    model = make(prior)
    rng = np.random.default_rng(0)
    a, b = rng.choice([-1.0, 1.0], size=(2, 9, 6))
    for centering in (False, True):
        there, back = gradient(model, a, b, centering), gradient(model, b, a, centering)
        np.testing.assert_allclose(there.weights, -back.weights, atol=1e-12)
        np.testing.assert_allclose(there.fields, -back.fields, atol=1e-12)
        same = gradient(model, a, a[::-1], centering)
        np.testing.assert_allclose(same.weights, 0, atol=1e-12)
        np.testing.assert_allclose(same.fields, 0, atol=1e-12)


def model_of_counts(prior, counts):
    """Two spins and one hidden unit such that P(s) is proportional to the counts of the states.

    The logarithm of any four positive numbers is a constant, two fields and a coupling.
    """
    S = all_states(2)
    b, J = np.log(counts) @ S / 4, np.log(counts) @ (S[:, 0] * S[:, 1]) / 4
    normalizer = PRIORS[prior].log_normalizer

    def excess(w):
        return float(normalizer(np.array(1 + w)) - normalizer(np.array(1 - w))) / 2 - J

    return RBM(np.array([[1.0, brentq(excess, -20, 20)]]), b, PRIORS[prior])


@both_priors
def test_centred_gradient_is_the_slope_in_moved_coordinates(prior):
    # The fantasy sample has exactly the model's frequencies: no Monte Carlo error is left.
    counts, data_counts = np.array([5, 2, 3, 1]), np.array([9, 1, 4, 2])
    model = model_of_counts(prior, counts)
    S = all_states(2)
    law = data_counts / data_counts.sum()
    np.testing.assert_allclose(np.exp(log_probabilities(model)), counts / 11, atol=1e-9)

    data, fantasy = np.repeat(S, data_counts, axis=0), np.repeat(S, counts, axis=0)
    nu = (model.hidden_means(data).mean(axis=0) + model.hidden_means(fantasy).mean(axis=0)) / 2
    assert abs(nu[0]) > 0.05
    moved = model.fields + nu @ model.weights

    def likelihood(W, b_moved):
        return law @ log_probabilities(RBM(W, b_moved - nu @ W, model.prior))

    by_weights = slopes(lambda W: likelihood(W, moved), model.weights)
    by_fields = slopes(lambda b: likelihood(model.weights, b), moved)
    np.testing.assert_allclose(hidden_center(model, data, fantasy), nu)
    got = gradient(model, data, fantasy, nu)
    np.testing.assert_allclose(got.weights, by_weights, atol=1e-6)
    np.testing.assert_allclose(got.fields, by_fields, atol=1e-6)


# --- the paper's identity ----------------------------------------------------------------------


def mean_pseudo_likelihood(model, law):
    S = all_states(model.n_spins)
    return law @ [pseudo_likelihood(model, s[None]) for s in S]


@both_priors
def test_likelihood_and_pseudo_likelihood_are_stationary_at_the_teacher_only(prior):
    teacher, other = make(prior, n_spins=4, seed=1), make(prior, n_spins=4, seed=2)
    law = np.exp(log_probabilities(teacher))
    for model, is_flat in ((teacher, True), (other, False)):
        by_likelihood, _ = exact_gradient(model, law)
        by_pseudo = slopes(
            lambda W, b=model.fields: mean_pseudo_likelihood(RBM(W, b, PRIORS[prior]), law),
            model.weights,
        )
        for slope in (by_likelihood, by_pseudo):
            assert (np.abs(slope).max() < 1e-8) == is_flat
            assert is_flat or np.abs(slope).max() > 1e-2


@both_priors
def test_hidden_units_correlate_with_a_spin_as_with_its_mean(prior):
    # ⟨λ_ν tanh(b_r + Σ_μ W_r^μ λ_μ)⟩ = ⟨λ_ν s_r⟩, the left side over hidden units alone.
    model = make(prior)
    if prior == "binary":
        grid, weights = all_states(2), np.ones(4)
    else:
        x, w = hermegauss(80)
        grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
        weights = np.outer(w, w).ravel()
    p = weights * np.prod(2 * np.cosh(model.visible_fields(grid)), axis=1)
    left = (grid * (p / p.sum())[:, None]).T @ np.tanh(model.visible_fields(grid))
    S = all_states(6)
    right = (model.hidden_means(S) * np.exp(log_probabilities(model))[:, None]).T @ S
    np.testing.assert_allclose(left, right, atol=1e-9)
    assert np.abs(right).max() > 0.1


# --- one update --------------------------------------------------------------------------------


def training(n_spins=40, n_hidden=5, n_chains=12, batch_size=10, seed=0):
    rng = np.random.default_rng(seed)
    W = (0.2 * rng.standard_normal((n_hidden, n_spins))).astype(np.float32)
    b = (0.3 * rng.standard_normal(n_spins)).astype(np.float32)
    return Training(
        weights=W,
        fields=b,
        velocity=Gradient(np.zeros_like(W), np.zeros_like(b)),
        chains=random_chains(n_chains, n_spins, rng),
        imputing=seeded_generators(batch_size, rng),
    )


def a_batch(n_samples=10, n_spins=40, values=(-1, 1), seed=1):
    return np.random.default_rng(seed).choice(np.array(values, np.int8), size=(n_samples, n_spins))


def arrays_of(state):
    return [
        state.weights,
        state.fields,
        *state.velocity,
        state.chains.spins,
        state.chains.generators,
        state.imputing,
    ]


def assert_equal(a, b):
    for x, y in zip(arrays_of(a), arrays_of(b), strict=True):
        np.testing.assert_array_equal(x, y)


GAPS = (-1, 0, 1)
FULL = Ascent(0.01, 0.02, n_steps=3, momentum=0.5, weight_decay=0.1, centering=True)


@both_priors
@pytest.mark.parametrize("estimate", ["pcd", "cd"])
@pytest.mark.parametrize("values", [(-1, 1), GAPS])
def test_an_update_is_a_pure_function(prior, estimate, values):
    how = Ascent(0.01, 0.02, n_steps=3, estimate=estimate, momentum=0.5, centering=True)
    state, batch = training(), a_batch(values=values)
    before = [array.copy() for array in (*arrays_of(state), batch)]
    first, second = (step(state, batch, PRIORS[prior], how) for _ in range(2))
    assert_equal(first, second)
    for array, old in zip((*arrays_of(state), batch), before, strict=True):
        np.testing.assert_array_equal(array, old)
    assert not np.array_equal(first.weights, state.weights)
    assert first.weights.dtype == first.fields.dtype == np.float32


@both_priors
def test_an_update_does_not_depend_on_the_number_of_threads(prior):
    state, batch = training(), a_batch(values=GAPS)
    threads = numba.get_num_threads()
    results = []
    try:
        for n in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(n)
            with one_blas_thread():  # as fit() does
                results.append(step(state, batch, PRIORS[prior], FULL))
    finally:
        numba.set_num_threads(threads)
    assert_equal(*results)


@both_priors
def test_pcd_moves_along_the_gradient_and_keeps_its_chains(prior):
    state, batch = training(), a_batch()
    how = Ascent(0.01, 0.02, n_steps=4)
    after = step(state, batch, PRIORS[prior], how)
    model = RBM(state.weights, state.fields, PRIORS[prior])
    moved = advance(model, state.chains, 4)
    slope = gradient(model, batch.astype(np.float32), moved.spins)
    np.testing.assert_allclose(after.weights, state.weights + 0.01 * slope.weights, atol=1e-6)
    np.testing.assert_allclose(after.fields, state.fields + 0.02 * slope.fields, atol=1e-6)
    np.testing.assert_array_equal(after.chains.spins, moved.spins)
    np.testing.assert_array_equal(after.chains.generators, moved.generators)


# "auto" gives Gaussian units a rate far below that of the fields.
@pytest.mark.parametrize("fields_rate", [0.001, 0.01, 0.05])
def test_centring_moves_the_fields_by_the_step_of_the_weights(fields_rate):
    # Ascent in (W, b' = b + Wᵀν), each with its rate, moves b by that of b' less ν ΔW.
    prior = PRIORS["gaussian"]
    state, batch = training(), a_batch(values=(-1, 1, 1, 1))
    after = step(state, batch, prior, Ascent(0.01, fields_rate, n_steps=4, centering=True))
    model = RBM(state.weights, state.fields, prior)
    fantasy = advance(model, state.chains, 4).spins
    data = batch.astype(np.float32)
    nu = (model.hidden_means(data).mean(axis=0) + model.hidden_means(fantasy).mean(axis=0)) / 2
    plain = gradient(model, data, fantasy)
    turn = after.weights - state.weights
    np.testing.assert_allclose(turn, 0.01 * (plain.weights - np.outer(nu, plain.fields)), atol=1e-6)
    expected = fields_rate * plain.fields - nu @ turn
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(after.fields - state.fields, expected, atol=1e-6)


@both_priors
def test_cd_starts_at_the_batch(prior):
    state, batch = training(n_chains=12), a_batch(n_samples=10)
    how = Ascent(0.01, 0.02, n_steps=1, estimate="cd")
    after = step(state, batch, PRIORS[prior], how)
    model = RBM(state.weights, state.fields, PRIORS[prior])
    data = batch.astype(np.float32)
    moved = advance(model, Chains(data, state.chains.generators[:10]), 1)
    slope = gradient(model, data, moved.spins)
    np.testing.assert_allclose(after.weights, state.weights + 0.01 * slope.weights, atol=1e-6)
    # Generators that were not needed wait for a larger batch.
    np.testing.assert_array_equal(after.chains.generators[:10], moved.generators)
    np.testing.assert_array_equal(after.chains.generators[10:], state.chains.generators[10:])


def test_cd_draws_new_numbers_for_every_update():
    state, batch = training(), a_batch()
    frozen = Ascent(0.0, 0.0, n_steps=1, estimate="cd")
    first = step(state, batch, PRIORS["gaussian"], frozen)
    second = step(first, batch, PRIORS["gaussian"], frozen)
    assert not np.array_equal(first.chains.spins, second.chains.spins)


def test_momentum_repeats_a_share_of_the_last_change():
    rng = np.random.default_rng(3)
    state, batch = training(), a_batch()
    velocity = Gradient(*(rng.standard_normal(x.shape).astype(np.float32) for x in state[:2]))
    how, prior = Ascent(0.01, 0.02, n_steps=2), PRIORS["gaussian"]
    still = step(state, batch, prior, how)
    on_the_way = state._replace(velocity=velocity)
    after = step(on_the_way, batch, prior, Ascent(0.01, 0.02, n_steps=2, momentum=0.7))
    for name in ("weights", "fields"):
        v, v0 = getattr(after.velocity, name), getattr(still.velocity, name)
        np.testing.assert_allclose(v, 0.7 * getattr(velocity, name) + v0, atol=1e-6)
        np.testing.assert_allclose(getattr(after, name), getattr(state, name) + v, atol=1e-6)
    # Without momentum the old velocity is forgotten.
    assert_equal(step(on_the_way, batch, prior, how), still)


def test_weight_decay_pulls_weights_but_not_fields():
    state, batch = training(), a_batch()
    prior = PRIORS["gaussian"]
    free = step(state, batch, prior, Ascent(0.01, 0.02, n_steps=2))
    pulled = step(state, batch, prior, Ascent(0.01, 0.02, n_steps=2, weight_decay=3.0))
    np.testing.assert_allclose(
        pulled.weights - free.weights, -0.01 * 3.0 * state.weights, atol=1e-6
    )
    np.testing.assert_array_equal(pulled.fields, free.fields)


@both_priors
def test_no_rate_no_fields(prior):
    state = training()
    after = step(state, a_batch(), PRIORS[prior], Ascent(0.01, 0.0, n_steps=2))
    np.testing.assert_array_equal(after.fields, state.fields)


@both_priors
@pytest.mark.parametrize("n_samples", [10, 6])
def test_missing_entries_are_completed_from_the_model(prior, n_samples):
    state, batch = training(batch_size=10), a_batch(n_samples, values=GAPS)
    how = Ascent(0.01, 0.02, n_steps=3)
    after = step(state, batch, PRIORS[prior], how)
    model = RBM(state.weights, state.fields, PRIORS[prior])
    seen = batch.astype(np.float32)
    completed = advance(model, Chains(seen, state.imputing[:n_samples]), 3, held=seen)
    assert completed.spins.all()
    np.testing.assert_array_equal(completed.spins[batch != 0], seen[batch != 0])
    slope = gradient(model, completed.spins, advance(model, state.chains, 3).spins)
    np.testing.assert_allclose(after.weights, state.weights + 0.01 * slope.weights, atol=1e-6)
    np.testing.assert_allclose(after.fields, state.fields + 0.02 * slope.fields, atol=1e-6)
    np.testing.assert_array_equal(after.imputing[:n_samples], completed.generators)
    np.testing.assert_array_equal(after.imputing[n_samples:], state.imputing[n_samples:])
    assert (after.imputing[:n_samples] != state.imputing[:n_samples]).any(axis=(1, 2)).all()


def test_complete_batches_need_no_imputation():
    state = training()
    after = step(state, a_batch(), PRIORS["gaussian"], FULL)
    np.testing.assert_array_equal(after.imputing, state.imputing)


def test_cd_starts_at_the_completed_batch():
    state, batch = training(), a_batch(values=GAPS)
    how, prior = Ascent(0.01, n_steps=2, estimate="cd"), PRIORS["gaussian"]
    model = RBM(state.weights, state.fields, prior)
    seen = batch.astype(np.float32)
    completed = advance(model, Chains(seen, state.imputing), 2, held=seen)
    moved = advance(model, Chains(completed.spins, state.chains.generators[:10]), 2)
    np.testing.assert_array_equal(step(state, batch, prior, how).chains.spins, moved.spins)


# --- where training leads ----------------------------------------------------------------------


def trained(X, prior, n_updates, how_at, n_hidden=2, batch_size=250, seed=0):
    state = start_run(X, n_hidden, 250, batch_size, (0.1, 0.1), seed).state
    order = batches(len(X), batch_size, seed, 0)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)  # the updates are too small for two, which would wait for each other
    try:
        with one_blas_thread():
            for update, batch in enumerate(islice(order, n_updates)):
                state = step(state, X[batch], PRIORS[prior], how_at(update))
    finally:
        numba.set_num_threads(threads)
    return RBM(state.weights.astype(float), state.fields.astype(float), PRIORS[prior])


TEACHERS = {"gaussian": (0.35, 0.03), "binary": (0.6, 0.1)}  # size of weights, first rate


def falling_rate(prior, *, centering=False):
    """Large steps first; at the end small ones, which average the noise of the chains out."""

    def how_at(update):
        rate = TEACHERS[prior][1] / (1 if update < 2000 else 5)
        return Ascent(rate, rate, n_steps=5, centering=centering)

    return how_at


def draw(teacher, n_samples, seed=0):
    S, p = all_states(teacher.n_spins), np.exp(log_probabilities(teacher))
    chosen = np.random.default_rng(seed).choice(len(S), size=n_samples, p=p / p.sum())
    return S[chosen].astype(np.int8)


def divergence(teacher, model):
    """Kullback-Leibler divergence of the model from its teacher, in nats."""
    log_p = log_probabilities(teacher)
    return np.exp(log_p) @ (log_p - log_probabilities(model))


@both_priors
@pytest.mark.parametrize("centering", [False, True])
def test_pcd_finds_the_teacher(prior, centering):
    teacher = make(prior, n_spins=8, scale=TEACHERS[prior][0], seed=5)
    X = draw(teacher, 20_000)
    fair_spins = RBM(np.zeros((1, 8)), np.arctanh(X.mean(axis=0)), PRIORS[prior])
    assert divergence(teacher, fair_spins) > 1
    # 24 parameters from 20 000 samples cost 24 / 40 000 nats at least, on average.
    model = trained(X, prior, 3000, falling_rate(prior, centering=centering))
    assert divergence(teacher, model) < 0.01


@both_priors
def test_pcd_finds_the_teacher_behind_missing_entries(prior):
    teacher = make(prior, n_spins=8, scale=TEACHERS[prior][0], seed=5)
    X = draw(teacher, 20_000)
    X[np.random.default_rng(1).random(X.shape) < 0.25] = 0
    model = trained(X, prior, 3000, falling_rate(prior))
    assert divergence(teacher, model) < 0.05


# --- divergence --------------------------------------------------------------------------------


def test_strength_is_the_field_of_one_unit_on_a_spin():
    xi = np.random.default_rng(0).choice([-1, 1], size=(4, 60))
    # W = √(β/N) ξ with β = 3: the answer of a Gaussian unit puts β on every spin.
    W = np.sqrt(3 / 60) * xi
    assert strength(W, PRIORS["gaussian"]) == pytest.approx(3)
    s = xi[:1].astype(float)
    field = (W[:1] @ s.T) * W[:1] * s
    np.testing.assert_allclose(field, 3)
    assert strength(-0.7 * xi, PRIORS["binary"]) == pytest.approx(0.7)


@both_priors
@pytest.mark.parametrize(("factor", "is_over"), [(0.99, False), (1.01, True), (np.inf, True)])
def test_divergence_is_a_field_of_fifty(prior, factor, is_over):
    size = {"gaussian": np.sqrt(50 / 40), "binary": 50}[prior]
    size *= np.sqrt(factor) if prior == "gaussian" else factor
    state = training()._replace(weights=np.full((5, 40), size, dtype=np.float32))
    assert has_diverged(state, PRIORS[prior]) is is_over


@both_priors
@pytest.mark.parametrize("name", ["weights", "fields"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_single_value_that_is_no_number_is_divergence(prior, name, value):
    state = training()
    assert not has_diverged(state, PRIORS[prior])
    array = getattr(state, name).copy()
    array.flat[3] = value
    assert has_diverged(state._replace(**{name: array}), PRIORS[prior])


@both_priors
def test_an_update_that_diverges_is_not_made(prior):
    X = a_batch(50, 20)
    run = start_run(X, 3, 10, 50, (1e6, 0.0), seed=0)
    stopped = run.after_update(X, PRIORS[prior], Ascent(1e6, n_steps=1))
    assert (stopped.stop_reason, stopped.update) == ("diverged", 0)
    assert stopped.state is run.state
    went_on = run.after_update(X, PRIORS[prior], Ascent(0.01, n_steps=1))
    assert (went_on.stop_reason, went_on.update) == ("", 1)


def test_train_looks_as_often_as_told_and_ends_where_told():
    X = a_batch(30, 20)
    run = start_run(X, 3, 10, 10, (0.01, 0.0), seed=0)
    runs = list(
        train(
            run, X, PRIORS["gaussian"], Ascent(0.01, n_steps=1),
            Plan(look_every=3, batch_size=10, max_updates=7, early_stopping=False),
        )
    )  # fmt: skip
    assert [r.update for r in runs] == list(range(8))
    assert [r.stop_reason for r in runs] == [""] * 7 + ["max_updates"]
    assert runs[-1].curve.update.tolist() == [0, 3, 6]


# --- order, rate and start ---------------------------------------------------------------------


@settings(max_examples=60)
@given(
    n_samples=st.integers(1, 60),
    batch_size=st.integers(1, 70),
    seed=st.integers(0, 2**62),
    first=st.integers(0, 200),
)
def test_every_epoch_shows_every_sample_once(n_samples, batch_size, seed, first):
    n_batches = -(-n_samples // batch_size)
    whole = list(islice(batches(n_samples, batch_size, seed, 0), 3 * n_batches))
    for epoch in range(3):
        parts = whole[epoch * n_batches : (epoch + 1) * n_batches]
        assert sorted(np.concatenate(parts)) == list(range(n_samples))
        sizes = {len(part) for part in parts}
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1
    # A run that starts anywhere sees what a run from the beginning sees there.
    rest = list(islice(batches(n_samples, batch_size, seed, first), 4))
    reference = list(islice(batches(n_samples, batch_size, seed, 0), first, first + 4))
    for a, b in zip(rest, reference, strict=True):
        np.testing.assert_array_equal(a, b)


def test_epochs_and_seeds_have_their_own_order():
    epochs = [tuple(x) for x in islice(batches(50, 50, 0, 0), 3)]
    other = tuple(next(batches(50, 50, 1, 0)))
    assert len({*epochs, other}) == 4


@pytest.mark.parametrize("shape", [(40, 90), (90, 40), (1, 5), (1000, 30)])
def test_largest_second_moment_equals_numpy(shape):
    X = a_batch(*shape, values=GAPS)
    exact = np.linalg.svd(X.astype(float), compute_uv=False)[0] ** 2 / len(X)
    got = largest_second_moment(X, np.random.default_rng(0))
    assert got == pytest.approx(max(exact, 1), rel=5e-3)
    assert (exact > 1) == (shape != (1000, 30))  # noise alone is below one here


def test_largest_second_moment_of_many_samples_is_that_of_a_thousand():
    X = a_batch(3000, 20)
    some = X[np.random.default_rng(7).permutation(3000)[:1000]].astype(float)
    exact = np.linalg.svd(some, compute_uv=False)[0] ** 2 / 1000
    assert largest_second_moment(X, np.random.default_rng(7)) == pytest.approx(exact, rel=5e-3)


def test_largest_second_moment_is_one_at_least():
    # A single observed entry in ten samples; the rate must not grow beyond that of noise.
    X = np.zeros((10, 5), dtype=np.int8)
    X[0, 0] = 1
    assert largest_second_moment(X, np.random.default_rng(0)) == 1


def test_fields_start_where_they_explain_the_means():
    X = a_batch(200, 30, values=(-1, 0, 1, 1))
    X[:, 0], X[:, 1], X[:, 2] = 1, -1, 0
    run = start_run(X, 3, 10, 20, (0.01, 0.05), seed=0)
    observed = (X != 0).sum(axis=0)
    ups = (X == 1).sum(axis=0)
    # One more sample of each sign: P(+1) = (ups + 1) / (observed + 2) = 1 / (1 + exp(-2b)).
    up = (ups + 1) / (observed + 2)
    np.testing.assert_allclose(1 / (1 + np.exp(-2 * run.state.fields)), up, atol=1e-6)
    assert run.state.fields[2] == 0
    assert np.isfinite(run.state.fields).all()


def test_fields_that_are_not_learned_are_zero():
    run = start_run(np.ones((9, 6), dtype=np.int8), 3, 10, 20, (0.01, 0.0), seed=0)
    assert not run.state.fields.any()


def test_a_run_starts_small_at_random_and_the_same_for_the_same_seed():
    X = a_batch(9, 400)
    run, same, other = (start_run(X, 5, 10, 20, (0.01, 0.0), seed=k) for k in (0, 0, 1))
    assert_equal(run.state, same.state)
    assert not np.array_equal(run.state.weights, other.state.weights)
    values = singular_values(run.state.weights)
    np.testing.assert_allclose(values, FIRST_SINGULAR_VALUE, rtol=0.4)
    assert run.state.weights.shape == (5, 400)
    assert run.state.chains.spins.shape == (10, 400)
    assert len(run.state.imputing) == 20
    assert (run.update, run.stop_reason, len(run.curve.update)) == (0, "", 0)
    assert (run.learning_rate, run.fields_rate) == (0.01, 0.0)
