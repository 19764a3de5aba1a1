"""Monitors against their definitions, and the partition function against every other way to it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

from dualtap.hopfield import HopfieldModel
from dualtap.rbm.likelihood import (
    LogPartition,
    log_likelihood,
    log_partition,
)
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import (
    LearningCurve,
    is_emerging,
    is_flat,
    mean_score,
    pseudo_likelihood,
    pseudo_likelihood_one_step,
    sample_scores,
    scores_at_a_look,
    singular_values,
    weights_error,
)
from dualtap.rbm.patterns import data_modes, mode_errors
from dualtap.rbm.priors import PRIORS

pytestmark = pytest.mark.usefixtures("one_kernel_thread")
both_priors = pytest.mark.parametrize("prior", ["gaussian", "binary"])


def all_states(n):
    return 1.0 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def make(prior, n_hidden=2, n_spins=5, *, with_fields=True, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    W = scale * rng.standard_normal((n_hidden, n_spins))
    return RBM(W, 0.4 * rng.standard_normal(n_spins) * with_fields, PRIORS[prior])


def random_spins(n_samples, n_spins, values=(-1, 1), seed=0):
    return np.random.default_rng(seed).choice(np.array(values, np.int8), size=(n_samples, n_spins))


# --- pseudo-likelihood -------------------------------------------------------------------------


def conditional(model, s, i):
    """P(s_i | the other observed spins) from the two weights e^{-F}."""
    turned = s.copy()
    turned[i] *= -1
    F, F_turned = model.free_energy(np.array([s, turned]))
    return 1 / (1 + np.exp(F - F_turned))


@both_priors
@pytest.mark.parametrize("with_fields", [False, True])
@pytest.mark.parametrize("values", [(-1, 1), (-1, 0, 1)])
def test_pseudo_likelihood_by_definition(prior, with_fields, values):
    model = make(prior, with_fields=with_fields)
    X = random_spins(40, 5, values).astype(float)
    terms = [np.log(conditional(model, X[a], i)) for a, i in np.argwhere(X)]
    assert pseudo_likelihood(model, X) == pytest.approx(np.mean(terms), abs=1e-12)


def test_pseudo_likelihood_of_gaussian_units_is_that_of_their_couplings():
    model = make("gaussian")
    X = all_states(5)
    J = model.weights.T @ model.weights
    np.fill_diagonal(J, 0)
    terms = -np.log1p(np.exp(-2 * X * (X @ J + model.fields)))
    assert pseudo_likelihood(model, X) == pytest.approx(terms.mean(), abs=1e-12)


@both_priors
def test_pseudo_likelihood_in_float32_and_in_blocks(prior):
    # 5000 rows of 40 spins are more than one block; the mean must not notice.
    model = make(prior, n_hidden=3, n_spins=40, scale=0.2)
    X = random_spins(5000, 40, (-1, 0, 1))
    parts = [(pseudo_likelihood(model, rows), np.count_nonzero(rows)) for rows in X[:, None]]
    mean = np.average([p for p, _ in parts], weights=[n for _, n in parts])
    assert pseudo_likelihood(model, X) == pytest.approx(mean, abs=1e-12)
    single = RBM(model.weights.astype(np.float32), model.fields.astype(np.float32), model.prior)
    assert pseudo_likelihood(single, X.astype(np.float32)) == pytest.approx(mean, abs=1e-5)


def test_pseudo_likelihood_of_hopeless_and_certain_spins():
    # Field ±500 on every spin: the losses are 1000 and 0, without overflow.
    model = RBM(np.zeros((1, 4)), np.full(4, 500.0), PRIORS["gaussian"])
    assert pseudo_likelihood(model, np.ones((2, 4))) == 0
    assert pseudo_likelihood(model, -np.ones((2, 4))) == -1000


@both_priors
def test_pseudo_likelihood_needs_an_observed_entry(prior):
    model = make(prior)
    with pytest.raises(ValueError, match="no observed entry"):
        pseudo_likelihood(model, np.zeros((3, 5)))
    with pytest.raises(ValueError, match="no observed entry"):
        pseudo_likelihood_one_step(model, np.zeros((3, 5)), np.random.default_rng(0))


def one_step_mean(model, s):
    """E over λ | s of the mean of log P(s_i | λ) over observed spins, by quadrature."""
    if model.prior.name == "binary":
        grid, weights = all_states(2), np.ones(4)
    else:
        x, w = hermegauss(60)
        grid, weights = np.stack(np.meshgrid(x, x), -1).reshape(-1, 2), np.outer(w, w).ravel()
    p = weights * np.exp(grid @ (model.weights @ s))
    terms = -np.log1p(np.exp(-2 * s * (grid @ model.weights + model.fields)))
    return (p / p.sum()) @ terms[:, s != 0].mean(axis=1)


@both_priors
@pytest.mark.parametrize("s", [[1, -1, 1, 1, -1], [1, 0, -1, 0, -1]])
def test_one_step_estimate_has_its_mean(prior, s):
    model, s = make(prior), np.array(s, dtype=float)
    rng = np.random.default_rng(1)
    values = [pseudo_likelihood_one_step(model, np.tile(s, (500, 1)), rng) for _ in range(40)]
    error = np.std(values, ddof=1) / math.sqrt(40)
    assert abs(np.mean(values) - one_step_mean(model, s)) < 5 * error < 0.05


@both_priors
def test_one_step_estimate_is_biased_upwards(prior):
    # λ has seen the spin that it is asked for.
    model = make(prior)
    X = all_states(5)
    p = np.exp(-model.free_energy(X))
    exact = p @ [pseudo_likelihood(model, s[None]) for s in X] / p.sum()
    assert p @ [one_step_mean(model, s) for s in X] / p.sum() > exact + 0.01


@both_priors
def test_one_step_estimate_draws_from_the_given_generator(prior):
    model, X = make(prior), all_states(5)
    a, b, c = (
        pseudo_likelihood_one_step(model, X, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert a == b != c


# --- singular values and modes -----------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 20), (20, 3), (1, 7), (6, 6)])
def test_singular_values_equal_numpy(shape):
    W = np.random.default_rng(0).standard_normal(shape)
    exact = np.zeros(shape[0])
    exact[: min(shape)] = np.linalg.svd(W, compute_uv=False)
    np.testing.assert_allclose(singular_values(W), exact, atol=1e-6)
    assert singular_values(W.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize(("shape", "n_modes"), [
    ((60, 25), 3), ((25, 60), 3), ((60, 25), 1), ((6, 9), 6), ((9, 6), 5), ((2, 2), 1),
])  # fmt: skip
def test_data_modes_equal_numpy(shape, n_modes):
    X = random_spins(*shape, seed=3)
    exact = np.linalg.svd(X.astype(float))[2][:n_modes]
    modes = data_modes(X, n_modes)
    assert modes.shape == (n_modes, shape[1])
    # The same vectors in the same order, each up to its sign.
    np.testing.assert_allclose(np.abs(modes @ exact.T), np.eye(n_modes), atol=1e-8)


@pytest.mark.parametrize("axis", [0, 1])
def test_data_modes_of_samples_with_their_opposites(axis):
    # Every mode is orthogonal to the vector of ones.
    half = random_spins(12, 40) if axis == 0 else random_spins(40, 12)
    X = np.concatenate([half, -half], axis=axis)
    exact = np.linalg.svd(X.astype(float), full_matrices=False)[2][:3]
    np.testing.assert_allclose(np.abs(data_modes(X, 3) @ exact.T), np.eye(3), atol=1e-8)


@pytest.mark.parametrize("n_modes", [-1, 0, 5])
def test_number_of_modes_is_checked(n_modes):
    with pytest.raises(ValueError, match=r"from 1 to 4 for data of shape \(4, 9\)"):
        data_modes(random_spins(4, 9), n_modes)


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_mode_errors_by_definition(n_hidden, seed):
    rng = np.random.default_rng(seed)
    W, modes = rng.standard_normal((n_hidden, 15)), rng.standard_normal((4, 15))
    u = np.linalg.svd(W, full_matrices=False)[2]
    for mode, t in zip(modes, mode_errors(W, modes), strict=True):
        rest = mode - sum((v @ mode) * v for v in u)
        assert t == pytest.approx(np.abs(rest).sum() / np.abs(mode).sum(), abs=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_mode_errors_inside_and_outside(scale):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    W = scale * rng.standard_normal((3, 3)) @ basis[:3]
    np.testing.assert_allclose(mode_errors(W, basis), [0] * 3 + [1] * 9, atol=1e-9)


@pytest.mark.parametrize("second", [[2.0, 0, 0, 0], [-1.0, 0, 0, 0], [0.0, 0, 0, 0]])
def test_a_unit_that_repeats_another_explains_no_further_mode(second):
    W = np.array([[1.0, 0, 0, 0], second])
    np.testing.assert_allclose(mode_errors(W, np.eye(4)), [0, 1, 1, 1], atol=1e-9)


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_weights_error_equals_dense_couplings(beta):
    teacher = HopfieldModel.random(20, 3, beta=beta, random_state=0)
    W = 0.3 * np.random.default_rng(1).standard_normal((5, 20))
    pairs = np.triu_indices(20, 1)
    learned, true = (W.T @ W / beta)[pairs], teacher.couplings()[pairs]
    exact = np.linalg.norm(learned - true) / np.linalg.norm(true)
    assert weights_error(W, teacher) == pytest.approx(exact)


def test_weights_error_does_not_see_rotations():
    teacher = HopfieldModel.random(30, 3, beta=1.5, random_state=0)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    W = np.sqrt(1.5 / 30) * rotation @ teacher.patterns
    assert weights_error(W, teacher) == pytest.approx(0, abs=1e-6)
    assert weights_error(np.zeros((3, 30)), teacher) == pytest.approx(1)


# --- when learning is over ---------------------------------------------------------------------


def over_from(update, likelihood, values):
    """The first look at which learning is over, or None."""
    over = is_flat(update, likelihood) & ~is_emerging(update, values)
    return int(np.argmax(over)) if over.any() else None


def over_by_loops(update, likelihood, values):
    """The same word by word."""
    for look in range(len(update)):
        earlier = [k for k in range(look) if update[k] <= 0.9 * update[look]]
        if not earlier:
            continue
        before = earlier[-1]
        # A tenth of the updates lies between the two looks, or the nearest look beyond.
        rise = likelihood[look] - likelihood[0]
        if rise <= 1e-3 or likelihood[look] - likelihood[before] >= 0.04 * rise:
            continue
        grow = [
            now < 0.4 * values[look][0] and now > 1.1 * then
            for now, then in zip(values[look], values[before], strict=True)
        ]
        if not any(grow):
            return look
    return None


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_looks=st.integers(1, 40),
    first=st.sampled_from([0, 7, 200]),
    speed=st.floats(0.5, 30),
    noise=st.sampled_from([0, 1e-3, 0.05]),
)
def test_the_end_of_learning_equals_its_words(seed, n_looks, first, speed, noise):
    rng = np.random.default_rng(seed)
    update = first + 10 * np.arange(n_looks)
    likelihood = np.tanh(update / (10 * speed)) + noise * rng.standard_normal(n_looks)
    growth = np.cumprod(rng.choice([1.0, 1.02, 1.3], size=(n_looks, 3)), axis=0)
    values = -np.sort(-growth * [50, 1, 1], axis=1)
    assert over_from(update, likelihood, values) == over_by_loops(update, likelihood, values)


UPDATE = np.arange(0, 1000, 10)
STILL = np.tile([1.0, 0.03], (100, 1))  # one unit at work, one idle


@pytest.mark.parametrize("curve", [
    np.full(100, -0.7),
    -0.7 - UPDATE / 1000,  # it falls
    -0.7 + 0.0009 * np.tanh(UPDATE / 50),  # noise, not learning
    -0.7 + UPDATE / 1000,  # a line rises by a tenth of its rise in the last tenth
    -0.7 + np.exp(UPDATE / 200),
])  # fmt: skip
def test_never_flat_before_or_during_the_rise(curve):
    assert over_from(UPDATE, curve, STILL) is None


def test_flat_soon_after_the_rise():
    curve = -0.7 + 0.5 * np.tanh(np.maximum(UPDATE - 300, 0) / 50)
    look = over_from(UPDATE, curve, STILL)
    assert 350 < UPDATE[look] < 500
    assert curve[look] > -0.7 + 0.45


def test_a_curve_that_begins_late_has_no_past_to_compare_with():
    # Nobody looked during the first 200 updates; two looks ten updates apart say nothing yet.
    update = UPDATE[:5] + 200
    likelihood = -0.7 + 0.1 * np.arange(5)
    assert over_from(update, likelihood, STILL[:5]) is None


def test_a_late_start_is_waited_for():
    # Silence for 700 updates is not the end of learning.
    curve = np.where(UPDATE < 700, -0.7, -0.2)
    assert UPDATE[over_from(UPDATE, curve, STILL)] > 700


def test_waits_for_a_value_on_its_way():
    # Two steps; before the second the likelihood is flat, but its singular value grows.
    curve = -0.7 + 0.3 * (UPDATE > 100) + 0.2 * (UPDATE > 330)
    emerging = 0.02 * np.exp(np.clip(UPDATE, 0, 380) / 100)  # 0.4 of 1.5 at update 340
    values = np.column_stack([np.full(100, 1.5), emerging])
    assert 340 < UPDATE[over_from(UPDATE, curve, values)] < 430
    # Were it at rest, the first plateau would do.
    assert UPDATE[over_from(UPDATE, curve, STILL)] < 200


def test_large_values_may_go_on_growing():
    curve = -0.7 + 0.5 * np.tanh(UPDATE / 50)
    values = np.column_stack([1.0 + UPDATE / 100, 0.7 + UPDATE / 140])
    assert over_from(UPDATE, curve, values) == over_from(UPDATE, curve, STILL)


# --- the learning curve ------------------------------------------------------------------------


def test_a_curve_grows_by_what_was_seen():
    teacher = HopfieldModel.random(12, 2, beta=2.0, random_state=0)
    X = random_spins(30, 12)
    models = [make("gaussian", n_hidden=3, n_spins=12, seed=k) for k in range(2)]
    empty = LearningCurve.empty(3)
    once = empty.after_look(0, models[0], X, np.random.default_rng(0), teacher)
    curve = once.after_look(10, models[1], X, np.random.default_rng(1), teacher)
    assert (len(empty.update), len(once.update)) == (0, 1)  # the old ones stay
    assert curve.update.tolist() == [0, 10]
    assert curve.update.dtype == np.int64
    for k, model in enumerate(models):
        assert curve.pseudo_likelihood[k] == pseudo_likelihood(model, X)
        rng = np.random.default_rng(k)
        assert curve.pseudo_likelihood_one_step[k] == pseudo_likelihood_one_step(model, X, rng)
        assert curve.error[k] == weights_error(model.weights, teacher)
        np.testing.assert_array_equal(curve.singular_values[k], singular_values(model.weights))


def test_a_curve_says_where_it_is():
    teacher = HopfieldModel.random(12, 2, beta=2.0, random_state=0)
    model = RBM(np.zeros((3, 12)), np.zeros(12), PRIORS["gaussian"])
    rng, X = np.random.default_rng(0), random_spins(5, 12)
    empty = LearningCurve.empty(3)
    assert str(empty) == ""
    assert str(empty.after_look(0, model, X, rng, None)) == "S -0.6931"
    assert str(empty.after_look(0, model, X, rng, teacher)) == "S -0.6931  error of J 1.000"
    assert np.isnan(empty.after_look(0, model, X, rng, None).error).all()


def test_a_curve_is_flat_when_its_likelihood_is():
    rise = np.tanh(UPDATE / 100)
    for n, expected in ((10, False), (100, True)):
        curve = LearningCurve(
            UPDATE[:n], rise[:n], rise[:n], rise[:n], STILL[:n], STILL[:n], STILL[:n]
        )
        assert curve.is_over() is expected


# --- the partition function --------------------------------------------------------------------


@both_priors
@pytest.mark.parametrize("n_spins", [1, 5, 15])  # 15 spins are two blocks
def test_partition_function_by_loops(prior, n_spins):
    model = make(prior, n_spins=n_spins, scale=0.3)
    exact = logsumexp(-model.free_energy(all_states(n_spins)))
    value, error, method = log_partition(model)
    assert (value, error, method) == (pytest.approx(exact, abs=1e-9), 0, "enumeration")


@pytest.mark.parametrize(("n_spins", "n_hidden"), [(6, 3), (16, 5), (8, 15)])
def test_hidden_and_visible_sums_agree(n_spins, n_hidden):
    model = make("binary", n_hidden, n_spins, scale=0.4)
    # Spins without weights only add log 2cosh b each, but make the sum over spins too long.
    n_more = 21 - n_spins
    b = np.random.default_rng(2).standard_normal(n_more)
    wide = RBM(
        np.hstack([model.weights, np.zeros((n_hidden, n_more))]),
        np.append(model.fields, b),
        model.prior,
    )
    got = log_partition(wide)
    assert (got.error, got.method) == (0, "enumeration")
    expected = log_partition(model).value + np.log(2 * np.cosh(b)).sum()
    assert got.value == pytest.approx(expected, abs=1e-9)


def test_one_gaussian_unit_by_quadrature():
    model = make("gaussian", n_hidden=1, n_spins=12, scale=0.4)
    x, w = hermegauss(100)
    z = (w / w.sum()) @ np.prod(2 * np.cosh(np.outer(x, model.weights[0]) + model.fields), axis=1)
    assert log_partition(model).value == pytest.approx(np.log(z), abs=1e-8)


def curie_weiss(n_spins, log_weight):
    """Log of Σ_k binomial(N, k) e^{log_weight(N - 2k)}."""
    k = np.arange(n_spins + 1)
    count = gammaln(n_spins + 1) - gammaln(k + 1) - gammaln(n_spins - k + 1)
    return logsumexp(count + log_weight(n_spins - 2.0 * k))


def one_pattern(n_spins, size):
    return size * random_spins(1, n_spins, seed=8).astype(float)


@pytest.mark.parametrize("n_spins", [12, 300])
def test_one_pattern_of_a_binary_unit(n_spins):
    model = RBM(one_pattern(n_spins, 0.3), np.zeros(n_spins), PRIORS["binary"])
    exact = curie_weiss(n_spins, lambda M: np.logaddexp(0.3 * M, -0.3 * M) - np.log(2))
    assert log_partition(model).value == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("beta", [0.5, 1.5])
def test_one_pattern_of_a_gaussian_unit_is_a_curie_weiss_model(beta):
    n_spins = 60
    model = RBM(
        one_pattern(n_spins, math.sqrt(beta / n_spins)), np.zeros(n_spins), PRIORS["gaussian"]
    )
    exact = curie_weiss(n_spins, lambda M: beta * M**2 / (2 * n_spins))
    got = log_partition(model, n_temperatures=1000, n_chains=100, random_state=0)
    assert got.method == "annealing"
    assert abs(got.value - exact) < 5 * got.error < 0.5


@both_priors
@pytest.mark.parametrize("with_fields", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_annealing_is_within_its_error(prior, with_fields, seed):
    model = make(prior, n_spins=10, with_fields=with_fields, scale=0.4, seed=seed)
    exact = log_partition(model).value
    got = log_partition(
        model, method="annealing", n_temperatures=200, n_chains=200, random_state=seed
    )
    assert abs(got.value - exact) < 5 * got.error < 0.5
    assert got.method == "annealing"


@both_priors
def test_annealing_starts_at_the_independent_spins(prior):
    # One temperature is plain importance sampling: a wrong start is never forgotten.
    b = np.array([1.0, -1.0, 0.5, 0.8, -0.3, 1.2])
    model = RBM(make(prior, n_spins=6, scale=0.3).weights, b, PRIORS[prior])
    got = log_partition(
        model, method="annealing", n_temperatures=1, n_chains=20_000, random_state=0
    )
    assert abs(got.value - log_partition(model).value) < 5 * got.error < 0.1


def test_annealing_without_weights_is_exact():
    b = np.array([0.5, -2.0, 0.0])
    model = RBM(np.zeros((2, 3)), b, PRIORS["gaussian"])
    got = log_partition(model, method="annealing", n_temperatures=1, n_chains=10, random_state=0)
    assert got.value == pytest.approx(np.log(2 * np.cosh(b)).sum(), abs=1e-12)
    assert got.error == pytest.approx(0, abs=1e-12)


@both_priors
def test_annealing_error_falls_with_more_chains(prior):
    model = make(prior, n_spins=10, scale=0.4)
    few, many = (
        log_partition(
            model, method="annealing", n_temperatures=50, n_chains=n, random_state=0
        ).error
        for n in (100, 6400)
    )
    assert 4 < few / many < 16  # √64 = 8


def test_annealing_repeats_with_the_same_seed():
    model = make("gaussian", n_spins=10, scale=0.3)
    a, b, c = (
        log_partition(
            model, method="annealing", n_temperatures=20, n_chains=50, random_state=seed
        ).value
        for seed in (0, 0, 1)
    )
    assert a == b != c


def test_annealing_in_one_jump_is_not_to_be_believed():
    model = RBM(one_pattern(100, math.sqrt(4 / 100)), np.zeros(100), PRIORS["gaussian"])
    with pytest.warns(ConvergenceWarning, match=r"log Z of 20 .* populations .* raise n_temp"):
        log_partition(model, method="annealing", n_temperatures=1, n_chains=50, random_state=0)


@pytest.mark.parametrize(("n_temperatures", "n_chains"), [(0, 10), (10, 1), (-1, 0)])
def test_annealing_checks_its_arguments(n_temperatures, n_chains):
    with pytest.raises(ValueError, match=f"got {n_temperatures} and {n_chains}"):
        log_partition(
            make("binary"), method="annealing", n_temperatures=n_temperatures, n_chains=n_chains
        )


@both_priors
def test_probabilities_sum_to_one(prior):
    model = make(prior, n_spins=6)
    partition = log_partition(model)
    logs = [log_likelihood(model, s[None], partition) for s in all_states(6)]
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-10)
    # Over several samples it is their mean.
    assert log_likelihood(model, all_states(6), partition) == pytest.approx(np.mean(logs))


@both_priors
def test_likelihood_does_not_depend_on_order_signs_or_rotations_of_units(prior):
    model, X = make(prior, n_hidden=3, n_spins=6), all_states(6)[5:20]
    W = model.weights[[2, 0, 1]] * [[-1], [1], [-1]]
    other = RBM(W, model.fields, model.prior)
    assert log_likelihood(other, X, log_partition(other)) == pytest.approx(
        log_likelihood(model, X, log_partition(model)), abs=1e-12
    )


def test_likelihood_refuses_missing_entries():
    X = np.array([[1.0, 0, 1, 1, -1]])
    with pytest.raises(ValueError, match="without missing entries"):
        log_likelihood(make("gaussian"), X, LogPartition(0.0, 0.0, "enumeration"))


# --- looks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", ["binary", "relu", "spike_slab"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fields_of_single_entries_are_those_of_all(prior, dtype):
    model = make(prior, n_hidden=70, n_spins=40, scale=0.3)
    model = RBM(model.weights.astype(dtype), model.fields.astype(dtype), model.prior)
    rng = np.random.default_rng(0)
    S = rng.choice([-1, 0, 1], size=(30, 40)).astype(dtype)
    rows, sites = rng.integers(30, size=900), rng.integers(40, size=900)
    got = model.aligned_fields_at(S, rows, sites)
    atol = 2e-4 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(got, model.aligned_fields(S)[rows, sites], atol=atol)
    one = model.aligned_fields_at(S, rows[:1], sites[:1])
    np.testing.assert_allclose(one, got[:1], atol=atol)


def test_looks_score_some_entries_and_the_same_each_time():
    model = make("binary", n_hidden=3, n_spins=100, scale=0.3)
    S = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 100)).astype(np.float32)
    S[0] = 0
    some, whole = scores_at_a_look(S, model, 2048), sample_scores(S, model)
    np.testing.assert_array_equal(some, scores_at_a_look(S, model, 2048))
    assert some[0].tolist() == [0, 0]
    assert (some[1:, 1] == 10).all()
    w = np.ones(200)
    assert mean_score(some, w) == pytest.approx(mean_score(whole, w), abs=0.03)
    few = scores_at_a_look(S[1:20], model, 2048)
    np.testing.assert_allclose(few, sample_scores(S[1:20], model), rtol=1e-5)


def test_looks_at_gaussian_units_score_every_entry():
    model = make("gaussian", n_hidden=3, n_spins=100, scale=0.1)
    S = np.ones((200, 100), dtype=np.float32)
    np.testing.assert_array_equal(scores_at_a_look(S, model), sample_scores(S, model))
