"""Pairwise baselines: the optimum of each, what they recover, and their manners."""

from functools import cache
from itertools import islice, pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_limits

from dualtap import HopfieldModel, as_spins
from dualtap.baselines import (
    DecimatedPseudoLikelihood,
    InteractionScreening,
    NaiveMeanField,
    PseudoLikelihood,
)
from dualtap.baselines.decimation import decimate
from dualtap.baselines.mean_field import centred, mean_field_couplings, spin_means
from dualtap.baselines.regressions import (
    PenalisedLoss,
    ising_pseudo_likelihood,
    minimise,
    regularization_path,
)
from dualtap.baselines.screening import ScreeningLoss, minimise_l1

ESTIMATORS = [
    pytest.param(lambda: PseudoLikelihood(0.05), id="pseudo-likelihood"),
    pytest.param(lambda: PseudoLikelihood(0.05, fields=True), id="with fields"),
    pytest.param(NaiveMeanField, id="mean field"),
    pytest.param(lambda: InteractionScreening(0.2, tol=1e-11), id="RISE"),
    pytest.param(
        lambda: InteractionScreening(0.2, logarithm=True, fields=True, tol=1e-11), id="logRISE"
    ),
    pytest.param(lambda: DecimatedPseudoLikelihood(0.05, removed=0.5, tol=1e-10), id="decimated"),
]


class Ising:
    """A random Ising model, small enough to list its states."""

    def __init__(self, n_spins, strength, field, seed=0):
        rng = np.random.default_rng(seed)
        J = np.triu(rng.normal(size=(n_spins, n_spins)) * strength, 1)
        self.couplings, self.fields = J + J.T, rng.normal(size=n_spins) * field
        self.states = np.array(list(product([-1, 1], repeat=n_spins)))
        energies = ((self.states @ J) * self.states).sum(axis=1) + self.states @ self.fields
        self.p = np.exp(energies) / np.exp(energies).sum()

    def sample(self, n_samples, seed=1):
        rng = np.random.default_rng(seed)
        return self.states[rng.choice(len(self.p), size=n_samples, p=self.p)]

    def covariance(self):
        means = self.p @ self.states
        return (self.states.T * self.p) @ self.states - np.outer(means, means)


@cache
def data(n_spins=60, n_patterns=3, beta=1.2, n_samples=120):
    """Samples of a Hopfield model; shared, hence read-only."""
    teacher = HopfieldModel.random(n_spins, n_patterns, beta, random_state=0)
    X = teacher.sample(n_samples, random_state=1)
    X.flags.writeable = False
    return X


def with_holes(X, share=0.3):
    return np.where(np.random.default_rng(5).random(X.shape) < share, 0, X)


def relative_error(J, truth):
    return np.linalg.norm(J - truth) / np.linalg.norm(truth)


# --- The loss and its minimum -------------------------------------------------------------------


def loss_by_hand(W, S, fields, regularization):
    """The formula, entry by entry."""
    total = 0.0
    for s in S:
        for i in np.flatnonzero(s):
            h = sum(W[j, i] * s[j] for j in range(len(s)) if j != i)
            total += np.log1p(np.exp(-2 * s[i] * (h + (W[-1, i] if fields else 0))))
    return total / len(S) + regularization / 2 * np.square(W).sum()


@pytest.fixture(params=[False, True], ids=["no fields", "fields"])
def loss_at_a_point(request):
    """A loss with missing entries, and weights with a zero diagonal to take it at."""
    S = with_holes(Ising(5, 0.5, 0.3).sample(30)).astype(np.float64)
    loss = PenalisedLoss(S, request.param, regularization=0.3)
    W = np.random.default_rng(0).normal(size=loss.shape)
    np.fill_diagonal(W[:5], 0)
    return loss, W, S, request.param


def test_the_loss_is_the_formula(loss_at_a_point):
    loss, W, S, fields = loss_at_a_point
    assert loss(W.ravel())[0] == pytest.approx(loss_by_hand(W, S, fields, 0.3), rel=1e-12)


def test_the_gradient_is_that_of_the_loss(loss_at_a_point):
    loss, W, _, _ = loss_at_a_point
    gradient = loss(W.ravel())[1].reshape(loss.shape)
    numeric = approx_fprime(W.ravel(), lambda w: loss(w)[0], 1e-7).reshape(loss.shape)
    np.fill_diagonal(numeric[:5], 0)
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    assert np.abs(gradient).max() > 0.1


def test_single_precision_gives_the_same_loss_and_gradient(loss_at_a_point):
    loss, W, S, fields = loss_at_a_point
    single = PenalisedLoss(S.astype(np.float32), fields, regularization=0.3)
    for a, b in zip(single(W.ravel()), loss(W.ravel()), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_call_leaves_earlier_gradients_alone(loss_at_a_point):
    loss, W, _, _ = loss_at_a_point
    gradient = loss(W.ravel())[1]
    before = gradient.copy()
    loss(2 * W.ravel())
    np.testing.assert_array_equal(gradient, before)


@pytest.mark.parametrize("fields", [False, True])
@pytest.mark.parametrize("regularization", [0.01, 0.3])
def test_every_row_is_a_logistic_regression(fields, regularization):
    """With w = 2J, scikit-learn's ½|w|² + C Σ log(1 + exp(-s w·x)) has C = 4/(λM)."""
    S = Ising(6, 0.4, 0.3).sample(200).astype(np.float64)
    found = minimise(PenalisedLoss(S, fields, regularization), tol=1e-14)
    assert found.converged
    for i in range(6):
        others = np.delete(S, i, axis=1)
        inputs = np.column_stack([others, np.ones(200)]) if fields else others
        C = 4 / (regularization * 200)
        peer = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=1000)
        expected = peer.fit(inputs, S[:, i]).coef_[0] / 2
        np.testing.assert_allclose(np.delete(found.weights[:, i], i), expected, atol=1e-5)
    assert not np.diag(found.weights[:6]).any()


def test_the_estimator_is_the_mean_of_both_regressions_of_a_pair():
    S = Ising(6, 0.4, 0.3).sample(200)
    W = minimise(PenalisedLoss(S.astype(np.float64), True, 0.1), tol=1e-14).weights
    model = PseudoLikelihood(0.1, fields=True).fit(S)
    np.testing.assert_allclose(model.couplings_, (W[:6] + W[:6].T) / 2, atol=1e-3)
    np.testing.assert_allclose(model.fields_, W[6], atol=1e-3)
    assert np.abs(W[:6] - W[:6].T).max() > 0.005  # one of them alone would be off by half of it


def test_weights_shrink_as_the_penalty_grows():
    S = data().astype(np.float32)
    norms = [
        np.linalg.norm(minimise(PenalisedLoss(S, True, value)).weights)
        for value in (1e-3, 1e-2, 0.1, 1.0, 10.0, 1e4)
    ]
    assert all(larger > 1.2 * smaller for larger, smaller in pairwise(norms))
    assert norms[-1] < 1e-2


@pytest.mark.parametrize("n_spins", [2, 20])
def test_separable_data_do_not_diverge(n_spins):
    """Two opposite states: without a penalty every coupling would be infinite."""
    state = np.random.default_rng(0).choice([-1, 1], size=n_spins)
    X = np.array([state, -state] * 5)
    model = PseudoLikelihood(1e-4).fit(X)
    J = model.couplings_ * np.outer(state, state)
    off_diagonal = J[~np.eye(n_spins, dtype=bool)]
    assert off_diagonal.max() < 10
    # The stationary point for couplings that are all equal: λJ = 2σ(-2(N-1)J).
    expected = 2 / (1 + np.exp(2 * (n_spins - 1) * off_diagonal))
    np.testing.assert_allclose(1e-4 * off_diagonal, expected, rtol=0.1)


def test_constant_spins_get_finite_fields():
    X = np.ones((10, 3), dtype=int)
    X[:5, 0] = -1
    for model in (PseudoLikelihood(1e-3, fields=True), NaiveMeanField(0.1)):
        model.fit(X)
        assert np.isfinite(model.couplings_).all()
        assert abs(model.fields_[0]) < 1e-3
        assert 1 < model.fields_[1] < 10
    assert model.fields_[1] == pytest.approx(np.arctanh(0.9))


def test_independent_spins_have_no_couplings():
    X = list(product([-1, 1], repeat=3))
    for model in (PseudoLikelihood(0.1, fields=True), NaiveMeanField(0.0)):
        model.fit(X)
        np.testing.assert_allclose(model.couplings_, 0, atol=1e-6)
        np.testing.assert_allclose(model.fields_, 0, atol=1e-6)


# --- Interaction screening ----------------------------------------------------------------------


def screening_by_hand(W, S, fields, regularization, logarithm):
    """The formula, spin by spin, over the samples in which it was observed."""
    total = 0.0
    for i in range(S.shape[1]):
        terms = []
        for s in S[S[:, i] != 0]:
            h = sum(W[j, i] * s[j] for j in range(len(s)) if j != i)
            terms.append(np.exp(-s[i] * (h + (W[-1, i] if fields else 0))))
        total += np.log(np.mean(terms) + len(S) ** -2) if logarithm else np.mean(terms)
    return total + regularization * np.abs(W).sum()


@pytest.mark.parametrize("fields", [False, True])
@pytest.mark.parametrize("logarithm", [False, True])
def test_the_screening_loss_and_its_gradient(logarithm, fields):
    S = with_holes(Ising(5, 0.5, 0.3).sample(30)).astype(np.float64)
    loss = ScreeningLoss(S, fields, 0.0, logarithm)
    W = 0.5 * np.random.default_rng(0).normal(size=loss.shape)
    np.fill_diagonal(W[:5], 0)
    values, gradient = loss.columns(W)
    assert values.sum() == pytest.approx(screening_by_hand(W, S, fields, 0, logarithm), rel=1e-12)
    numeric = approx_fprime(
        W.ravel(), lambda w: loss.columns(w.reshape(loss.shape))[0].sum(), 1e-7
    ).reshape(loss.shape)
    numeric[~loss.free] = 0
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    assert np.abs(gradient).max() > 0.1


@pytest.mark.parametrize("fields", [False, True])
@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("regularization", [0.02, 0.2])
def test_screening_finds_the_exact_minimum(regularization, logarithm, fields):
    """Against a solver of bounded problems, W = W⁺ - W⁻ with both parts not negative."""
    S = Ising(7, 0.4, 0.3).sample(300).astype(np.float64)
    loss = ScreeningLoss(S, fields, regularization, logarithm)
    found = minimise_l1(loss, tol=1e-13, max_iter=20_000)
    assert found.converged

    def split(parts):
        up, down = parts.reshape(2, *loss.shape)
        values, gradient = loss.columns(up - down)
        value = values.sum() + regularization * parts.sum()
        return value, np.stack([gradient + regularization, regularization - gradient]).ravel()

    bounds = np.where(np.stack([loss.free, loss.free]).ravel(), np.inf, 0.0)
    exact = minimize(
        split,
        np.zeros(2 * loss.free.size),
        jac=True,
        bounds=[(0.0, upper) for upper in bounds],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 100_000},
    )
    up, down = exact.x.reshape(2, *loss.shape)
    np.testing.assert_allclose(found.weights, up - down, atol=1e-4)
    assert 0 < np.count_nonzero(found.weights[loss.free] == 0) < np.count_nonzero(loss.free)


@pytest.mark.parametrize("logarithm", [False, True])
def test_screening_is_exact_for_the_law_itself(logarithm):
    """All states of 6 spins, each as often as it is likely: the minimum is the true model."""
    truth = Ising(6, 0.35, 0.2)
    counts = np.round(truth.p * 60_000).astype(int)
    X = np.repeat(truth.states, counts, axis=0)
    model = InteractionScreening(1e-7, logarithm=logarithm, fields=True, tol=1e-12, max_iter=5000)
    model.fit(X)
    np.testing.assert_allclose(model.couplings_, truth.couplings, atol=5e-3)
    np.testing.assert_allclose(model.fields_, truth.fields, atol=5e-3)


def test_screening_chooses_its_penalty_on_held_out_samples():
    model = InteractionScreening(random_state=0).fit(data())
    path = model.path_
    assert model.regularization_ == path.best
    assert path.norm[0] < path.norm[-1]
    assert path.score.max() > -np.log(2) + 0.05
    given = InteractionScreening(model.regularization_).fit(data())
    np.testing.assert_array_equal(given.couplings_, model.couplings_)


def test_a_strong_penalty_screens_everything():
    assert not InteractionScreening(1.01).fit(data()).couplings_.any()


# --- Decimation ---------------------------------------------------------------------------------


def chain(n_spins=10, strength=0.5, n_samples=4000, seed=0):
    """Samples of a chain with couplings between neighbours only, drawn from left to right."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1, 1], size=(n_samples, n_spins))
    for i in range(1, n_spins):
        flip = rng.random(n_samples) < 1 / (1 + np.exp(2 * strength))
        X[:, i] = np.where(flip, -X[:, i - 1], X[:, i - 1])
    return X


def test_decimation_finds_which_couplings_there_are():
    model = DecimatedPseudoLikelihood(removed=0.1).fit(chain())
    expected = np.diag(np.ones(9), 1) + np.diag(np.ones(9), -1)
    np.testing.assert_array_equal(model.couplings_ != 0, expected != 0)
    np.testing.assert_allclose(model.couplings_[expected != 0], 0.5, atol=0.08)
    path = model.path_
    assert path.best == pytest.approx(9 / 45)
    assert (np.diff(path.share) < 0).all()
    assert path.tilted[0] == pytest.approx(0, abs=1e-12)
    assert int(path.tilted.argmax()) == len(path.tilted) - 4  # three steps in a row were no better


def test_a_decimated_fit_is_the_best_with_its_couplings():
    S = chain(6, n_samples=300).astype(np.float64)
    for step in islice(decimate(PenalisedLoss(S, False, 0.01), removed=0.3, tol=1e-14), 4):
        W = step.found.weights
        left = W != 0
        np.testing.assert_array_equal(left, left.T)
        assert left.sum() == round(step.share * 30)
        loss = PenalisedLoss(S, False, 0.01)
        gradient = loss(W.ravel())[1].reshape(W.shape)
        assert np.abs(gradient[left]).max() < 1e-5
        assert step.score == pytest.approx(ising_pseudo_likelihood(S, W.T), rel=1e-5)


def test_decimation_keeps_nothing_of_independent_spins():
    X = list(product([-1, 1], repeat=3)) * 5
    assert not DecimatedPseudoLikelihood().fit(X).couplings_.round(6).any()


# --- Mean field ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "order"), [(0.0, 3), (0.5, 2)])
def test_mean_field_is_right_to_first_order(field, order):
    """The error is O(J²) with fields; without them the second order cancels."""
    errors = []
    for strength in (0.02, 0.01):
        model = Ising(6, strength, field)
        J = mean_field_couplings(model.covariance())
        errors.append(relative_error(J, model.couplings))
    assert errors[1] < 0.01
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order - 1, abs=0.1)


def test_the_fields_solve_the_mean_field_equations():
    model = NaiveMeanField().fit(data())
    m = spin_means(data())
    assert np.abs(m).max() < 1
    np.testing.assert_allclose(np.tanh(model.fields_ + model.couplings_ @ m), m, atol=1e-10)


def test_shrinkage_is_that_of_ledoit_and_wolf():
    X = data(n_samples=40)  # fewer than spins
    model = NaiveMeanField().fit(X)
    peer = LedoitWolf().fit(X.astype(np.float64))
    assert model.shrinkage_ == pytest.approx(peer.shrinkage_)
    expected = -peer.precision_
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(model.couplings_, expected, atol=1e-8)
    same = NaiveMeanField(model.shrinkage_).fit(X)
    np.testing.assert_allclose(same.couplings_, model.couplings_)


def test_more_shrinkage_smaller_couplings():
    norms = [np.linalg.norm(NaiveMeanField(d).fit(data()).couplings_) for d in (0.01, 0.1, 0.5, 1)]
    assert norms == sorted(norms, reverse=True)
    assert norms[-1] == 0 < norms[-2]


@pytest.mark.parametrize("X", [data(n_samples=40), np.ones((5, 3)), [[1, -1, 1]]])
def test_a_singular_covariance_is_named(X):
    with pytest.raises(ValueError, match=r"covariance of the \d+ spins is singular.*shrinkage"):
        NaiveMeanField(shrinkage=0.0).fit(X)


# --- Recovery -----------------------------------------------------------------------------------


def test_pseudo_likelihood_converges_to_the_model():
    truth = Ising(7, 0.35, 0.2)
    errors, field_errors = [], []
    for n_samples in (500, 8_000, 128_000):
        model = PseudoLikelihood(1 / n_samples, fields=True).fit(truth.sample(n_samples))
        errors.append(relative_error(model.couplings_, truth.couplings))
        field_errors.append(relative_error(model.fields_, truth.fields))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]  # as 1/√M: four times each
    assert errors[2] < 0.02
    assert field_errors[2] < 0.05


def test_without_fields_they_are_zero():
    truth = Ising(6, 0.3, 0.0)
    model = PseudoLikelihood(1e-4).fit(truth.sample(50_000))
    assert relative_error(model.couplings_, truth.couplings) < 0.03
    np.testing.assert_array_equal(model.fields_, np.zeros(6))


def test_mean_field_converges_at_weak_couplings():
    truth = Ising(6, 0.05, 0.1)
    errors = []
    for n_samples in (1_000, 300_000):
        model = NaiveMeanField(shrinkage=0.0).fit(truth.sample(n_samples))
        errors.append(relative_error(model.couplings_, truth.couplings))
    assert errors[1] < 0.15 < errors[0]
    assert relative_error(model.fields_, truth.fields) < 0.1


# --- Symmetries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ESTIMATORS)
def test_a_gauge_transformation(make):
    """s_i → ε_i s_i maps J_ij → ε_i ε_j J_ij and h_i → ε_i h_i; ε = -1 flips all spins."""
    plain = make().fit(data())
    assert np.abs(plain.couplings_).max() > 0.05
    for gauge in (np.random.default_rng(2).choice([-1, 1], size=60), -np.ones(60)):
        other = make().fit(data() * gauge)
        expected = plain.couplings_ * np.outer(gauge, gauge)
        np.testing.assert_allclose(other.couplings_, expected, atol=1e-5)
        np.testing.assert_allclose(other.fields_, plain.fields_ * gauge, atol=1e-5)
        assert other.score(data() * gauge) == pytest.approx(plain.score(data()))


@pytest.mark.parametrize("make", ESTIMATORS)
def test_a_permutation_of_spins_and_samples(make):
    rng = np.random.default_rng(3)
    order = rng.permutation(60)
    plain = make().fit(data())
    other = make().fit(rng.permutation(data())[:, order])
    np.testing.assert_allclose(other.couplings_, plain.couplings_[np.ix_(order, order)], atol=1e-3)
    np.testing.assert_allclose(other.fields_, plain.fields_[order], atol=1e-3)


def test_without_fields_the_sign_of_a_sample_does_not_matter():
    flips = np.random.default_rng(4).choice([-1, 1], size=(120, 1))
    plain = PseudoLikelihood(0.05).fit(data())
    flipped = PseudoLikelihood(0.05).fit(data() * flips)
    np.testing.assert_allclose(flipped.couplings_, plain.couplings_, atol=2e-4)
    biased = PseudoLikelihood(0.05, fields=True).fit(data())
    assert np.abs(biased.couplings_ - plain.couplings_).max() > 1e-3


# --- The choice of λ ----------------------------------------------------------------------------


def test_auto_takes_the_best_of_the_path_and_refits_on_all():
    fresh = HopfieldModel.random(60, 3, 1.2, random_state=0).sample(500, random_state=9)
    model = PseudoLikelihood(random_state=0).fit(data())
    path = model.path_
    best = int(np.argmax(path.score))
    assert 0 < best < len(path.score) - 1
    assert model.regularization_ == path.best == path.regularization[best]
    assert (np.diff(path.regularization) < 0).all()
    assert (np.diff(path.norm) > 0).all()
    given = PseudoLikelihood(model.regularization_).fit(data())
    np.testing.assert_array_equal(given.couplings_, model.couplings_)
    assert given.path_ is None
    for value in (path.regularization[0], path.regularization[-1]):
        assert PseudoLikelihood(value).fit(data()).score(fresh) < model.score(fresh)
    assert model.score(fresh) > -np.log(2) + 0.1


def test_auto_finds_nothing_in_noise():
    X, fresh = np.random.default_rng(0).choice([-1, 1], size=(2, 100, 40))
    model = PseudoLikelihood(random_state=0).fit(X)
    assert model.score(fresh) > -np.log(2) - 0.02
    assert PseudoLikelihood(0.01).fit(X).score(fresh) < -np.log(2) - 0.2


def test_warm_starts_end_where_cold_ones_do():
    S = data().astype(np.float64)
    ends = []
    regularization_path(PenalisedLoss(S, False, 1.0), lambda J, h: ends.append(J) or len(ends))
    assert len(ends) == 19  # an ever better score: the whole grid
    W = minimise(PenalisedLoss(S, False, 0.1)).weights
    np.testing.assert_allclose(ends[9], (W + W.T) / 2, atol=1e-3)


def test_each_value_starts_where_the_last_one_ended():
    S = data().astype(np.float64)
    starts, ends = [], []

    def minimum(loss, start):
        starts.append(start)
        ends.append(minimise(loss, start))
        return ends[-1]

    regularization_path(PenalisedLoss(S, False, 1.0), lambda J, h: -len(ends), minimum)
    assert len(ends) == 3  # the first is the best, and two more are no better
    assert starts[0] is None
    for start, end in zip(starts[1:], ends, strict=False):
        np.testing.assert_array_equal(start, end.weights)


def test_one_sample_cannot_be_held_out():
    with pytest.raises(ValueError, match="only 1 sample: give a number"):
        PseudoLikelihood().fit([[1, -1, 1]])
    assert PseudoLikelihood(0.1).fit([[1, -1, 1]]).couplings_[0, 2] > 0


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match="not converged within 2 iterations"):
        model = PseudoLikelihood(0.01, max_iter=2).fit(data())
    assert model.n_iter_ == 2
    assert PseudoLikelihood(0.01).fit(data()).n_iter_ > 2


# --- Reproducibility ----------------------------------------------------------------------------


def test_same_random_state_same_result():
    first, second, other = (PseudoLikelihood(random_state=s).fit(data()) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.couplings_, second.couplings_)
    np.testing.assert_array_equal(first.path_.score, second.path_.score)
    assert first.path_.score[0] != other.path_.score[0]


@pytest.mark.parametrize("make", ESTIMATORS)
def test_the_number_of_threads_does_not_matter(make):
    X = data(120, 4, 1.5, 100)  # products large enough for BLAS to share them out
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            models.append(make().fit(X))
    np.testing.assert_array_equal(models[0].couplings_, models[1].couplings_)
    np.testing.assert_array_equal(models[0].fields_, models[1].fields_)


# --- Score --------------------------------------------------------------------------------------


def test_score_is_the_mean_log_of_the_conditional_laws():
    truth = Ising(4, 0.8, 0.5)
    law = dict(zip(map(tuple, truth.states), truth.p, strict=True))
    X = truth.sample(20)
    expected = []
    for s in X:
        for i in range(4):
            flipped = s.copy()
            flipped[i] *= -1
            expected.append(np.log(law[tuple(s)] / (law[tuple(s)] + law[tuple(flipped)])))
    found = ising_pseudo_likelihood(X, truth.couplings, truth.fields)
    assert found == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.parametrize("make", ESTIMATORS)
def test_score_of_an_estimator_is_that_of_its_model(make):
    model = make().fit(data())
    expected = ising_pseudo_likelihood(data(), model.couplings_, model.fields_)
    assert model.score(data()) == pytest.approx(expected)
    assert model.score((data() + 1) // 2) == model.score(data())
    noise = np.random.default_rng(0).permuted(data(), axis=0)
    assert model.score(noise) < model.score(data()) - 0.1


def test_missing_entries_are_left_out_of_the_score():
    J = np.array([[0, 1, 0.5], [1, 0, 0.2], [0.5, 0.2, 0]])
    found = ising_pseudo_likelihood([[1, -1, 0], [0, 0, 0]], J)
    assert found == pytest.approx(-np.log1p(np.exp(2)))
    with pytest.raises(ValueError, match="no observed entry"):
        ising_pseudo_likelihood([[0, 0, 0]], J)


# --- Missing entries ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", ESTIMATORS)
def test_nan_none_and_zero_mark_missing_entries(make):
    holes = with_holes(data())
    expected = make().fit(as_spins(holes, zero_is_missing=True))
    found = make().fit(np.where(holes == 0, np.nan, holes))
    np.testing.assert_array_equal(found.couplings_, expected.couplings_)
    assert relative_error(found.couplings_, make().fit(data()).couplings_) > 0.01
    assert found.__sklearn_tags__().input_tags.allow_nan


def test_an_empty_sample_changes_only_the_mean():
    """The loss is a mean over samples, so λ has to follow their number."""
    X = data().astype(float)
    more = np.vstack([X, np.full((120, 60), np.nan)])
    plain, padded = PseudoLikelihood(0.1).fit(X), PseudoLikelihood(0.05).fit(more)
    np.testing.assert_allclose(padded.couplings_, plain.couplings_, atol=1e-3)
    assert padded.score(more) == pytest.approx(plain.score(X), abs=1e-4)


def test_a_spin_that_was_never_seen_has_no_couplings():
    X = data().astype(float)
    X[:, 7] = np.nan
    for model in (PseudoLikelihood(0.05, fields=True), NaiveMeanField()):
        model.fit(X)
        np.testing.assert_allclose(model.couplings_[7], 0, atol=1e-12)
        assert model.fields_[7] == pytest.approx(0, abs=1e-12)
        assert np.abs(model.couplings_).max() > 0.05


def test_mean_field_puts_the_mean_for_a_missing_entry():
    x = centred([[1, -1], [1, 0], [-1, -1], [1, 1]])
    np.testing.assert_allclose(x[:, 1], [-2 / 3, 0, -2 / 3, 4 / 3])
    np.testing.assert_allclose(x[:, 0], [0.5, 0.5, -1.5, 0.5])


# --- scikit-learn -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ESTIMATORS)
def test_fitted_attributes(make):
    names = [f"spin {i}" for i in range(60)]
    frame = pd.DataFrame(data(), columns=names)
    model = make().fit(frame)
    J = model.couplings_
    assert J.shape == (60, 60)
    assert model.fields_.shape == (60,)
    assert J.dtype == model.fields_.dtype == np.float64
    np.testing.assert_array_equal(J, J.T)
    assert not np.diag(J).any()
    assert model.n_features_in_ == 60
    assert model.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names should match"):
        model.score(frame[names[::-1]])
    with pytest.raises(ValueError, match="X has 59 features"):
        make().fit(data()).score(data()[:, :59])


@pytest.mark.parametrize("make", ESTIMATORS)
def test_clones_are_not_fitted(make):
    fitted = make().fit(data())
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.score(data())
    np.testing.assert_array_equal(copy.fit(data()).couplings_, fitted.couplings_)


def test_parameters():
    assert NaiveMeanField().get_params() == {"shrinkage": "ledoit-wolf"}
    assert PseudoLikelihood().get_params() == {
        "regularization": "auto",
        "fields": False,
        "tol": 1e-8,
        "max_iter": 1000,
        "random_state": None,
        "verbose": False,
    }


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (PseudoLikelihood, "regularization", 0.0),
        (PseudoLikelihood, "regularization", -1.0),
        (PseudoLikelihood, "regularization", "none"),
        (PseudoLikelihood, "fields", "yes"),
        (PseudoLikelihood, "tol", 0.0),
        (PseudoLikelihood, "max_iter", 0),
        (PseudoLikelihood, "random_state", "seed"),
        (InteractionScreening, "logarithm", "yes"),
        (InteractionScreening, "regularization", 0.0),
        (DecimatedPseudoLikelihood, "removed", 1.0),
        (DecimatedPseudoLikelihood, "regularization", 0.0),
        (NaiveMeanField, "shrinkage", -0.1),
        (NaiveMeanField, "shrinkage", 1.1),
        (NaiveMeanField, "shrinkage", "oas"),
    ],
)
def test_bad_parameters_are_named(kind, name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {kind.__name__} must be"):
        kind(**{name: value}).fit(data())


@pytest.mark.parametrize("make", ESTIMATORS)
def test_bad_data_are_refused(make):
    with pytest.raises(ValueError, match="third value"):
        make().fit([[1, 2, -1], [1, 1, -1]])


def test_cross_validation_tells_a_good_penalty():
    good, bad = (cross_val_score(PseudoLikelihood(v), data(), cv=4) for v in (0.3, 1e-3))
    assert good.shape == (4,)
    assert good.min() > bad.max()


def test_progress_is_silent_off_a_terminal(capfd):
    PseudoLikelihood(random_state=0, verbose=True).fit(data())
    out, err = capfd.readouterr()
    assert out == err == ""
