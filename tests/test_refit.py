"""Strengths and fields at the maximum of the penalised pseudo-likelihood, and what they cost."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

from dualtap.hopfield import HopfieldModel
from dualtap.recovery import refit as refitting
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import stated
from dualtap.recovery.objective import (
    noise_gain,
    pattern_costs,
    sizes_of,
)
from dualtap.recovery.refit import (
    Parameters,
    fields_for,
    fit_beta,
    information,
    refit,
    strength_precision,
    times_counted,
)
from dualtap.spins import as_spins

MODELS = [Parameters(), Parameters(tied=True), Parameters(fields=False), Parameters(True, False)]


def teacher(n_spins=30, seed=0, n_samples=1500, strengths=(1.0, -1.5, 0.6), width=0.4):
    """A model with zeros, attractive and repulsive patterns and fields, and its samples."""
    rng = np.random.default_rng(seed)
    Z = rng.choice([-1, 0, 1], size=(len(strengths), n_spins), p=[0.4, 0.2, 0.4])
    Z[:, 0] = 1
    fields = width * rng.normal(size=n_spins)
    model = HopfieldModel(Z, fields=fields, strengths=strengths)
    return model, model.sample(n_samples, random_state=seed + 1)


def started(X, Z, parameters, g=0.5):
    judge = Judge(as_spins(X))
    Z = np.asarray(Z, np.float32)
    return judge, refit(judge, Z, np.full(len(Z), g), np.zeros(Z.shape[1]), parameters)


@pytest.fixture
def exact(monkeypatch):
    """Newton steps until nothing changes."""
    monkeypatch.setattr(refitting, "_SETTLED", 1e-5)


@pytest.mark.parametrize("parameters", MODELS)
def test_the_gradient_of_the_penalised_likelihood_vanishes(parameters, exact):
    if parameters.tied:
        model, X = teacher(strengths=(0.9, 0.9, 0.9))
    else:
        model, X = teacher()
    judge, fit = started(X, model.patterns, parameters)
    s = fit.statistics
    slope = s.slope - strength_precision(fit.Z) * fit.g
    scale = np.sqrt(np.diag(fit.curvature.H))
    if not parameters.tied:
        np.testing.assert_allclose(slope / scale, 0, atol=0.05)
    elif not parameters.fields:
        assert abs(s.slope.sum()) < 0.05 * scale.sum()
    else:
        assert abs(slope.sum()) < 0.05 * scale.sum()
    if parameters.fields:
        residual = s.residual - fit.mean_field / fit.spread
        np.testing.assert_allclose(residual / np.sqrt(s.variance), 0, atol=0.05)
        np.testing.assert_allclose(fit.mean_field, fit.b + fit.g @ judge.shift(fit.Z))
    else:
        assert not fit.b.any()
        assert fit.spread == 0
    assert pytest.approx(judge.log_likelihood(fit.Z, fit.g, fit.b)) == fit.L
    assert (len(set(fit.g)) == 1) == parameters.tied


@pytest.mark.parametrize("parameters", [MODELS[0], MODELS[1], MODELS[2]])
def test_scipy_finds_the_same_maximum(parameters, exact):
    model, X = teacher(n_spins=12, n_samples=400)
    judge, fit = started(X, model.patterns, parameters)
    Z, P, N = fit.Z, 1 if parameters.tied else 3, 12
    A, precision = judge.shift(Z), strength_precision(Z)

    def unpacked(x):
        g = np.full(3, x[0]) if parameters.tied else x[:3]
        return g, (x[P:] if parameters.fields else np.zeros(N))

    def loss(x):
        g, b = unpacked(x)
        s = judge.statistics(Z, g, b)
        value, slope, residual = s.L, s.slope, s.residual
        value -= 0.5 * precision @ np.square(g)
        slope = slope - precision * g
        if parameters.fields:
            mean_field = b + g @ A
            value -= 0.5 * np.square(mean_field).sum() / fit.spread
            slope = slope - A @ mean_field / fit.spread
            residual = residual - mean_field / fit.spread
        slope = slope.sum(keepdims=True) if parameters.tied else slope
        return -value, -np.concatenate([slope, residual if parameters.fields else []])

    x = np.concatenate([fit.g[:P], fit.b if parameters.fields else []])
    best = minimize(loss, np.zeros_like(x), jac=True, method="BFGS", options={"gtol": 1e-3})
    g, b = unpacked(best.x)
    np.testing.assert_allclose(fit.g, g, atol=0.02)
    np.testing.assert_allclose(fit.b, b, atol=0.02)
    assert loss(x)[0] == pytest.approx(best.fun, abs=0.02)


def test_strengths_and_fields_of_a_teacher():
    model, X = teacher(n_spins=60, n_samples=8000)
    _, fit = started(X, model.patterns, Parameters())
    np.testing.assert_allclose(fit.g, model.strengths, atol=0.25)
    assert np.corrcoef(fit.b, model.fields)[0, 1] > 0.98


def test_the_start_does_not_matter(exact):
    model, X = teacher()
    _, one = started(X, model.patterns, Parameters(), g=0.0)
    _, other = started(X, model.patterns, Parameters(), g=3.0)
    np.testing.assert_allclose(one.g, other.g, atol=0.02)
    np.testing.assert_allclose(one.b, other.b, atol=0.02)


@pytest.mark.parametrize("parameters", MODELS)
@pytest.mark.parametrize("n_samples", [2, 30])
def test_separable_data_stay_finite(parameters, n_samples):
    zeta = np.random.default_rng(0).choice([-1, 1], size=20)
    X = np.outer(np.where(np.arange(n_samples) % 2, 1, -1), zeta).astype(np.int8)
    _, fit = started(X, zeta[None], parameters)
    assert np.isfinite(fit.g).all()
    assert 1 < fit.g[0] <= 100
    assert np.isfinite(fit.L)
    assert -0.1 * X.size < fit.L


@pytest.mark.parametrize("parameters", MODELS)
def test_equal_patterns_share_their_strength(parameters):
    model, X = teacher(strengths=(1.2,))
    _, alone = started(X, model.patterns, parameters)
    _, twice = started(X, np.repeat(model.patterns, 2, axis=0), parameters)
    assert np.isfinite(twice.g).all()
    assert twice.g.sum() == pytest.approx(alone.g[0], abs=0.1)


def test_independent_spins_have_the_fields_of_their_means():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, size=20)
    X = np.where(rng.random((500, 20)) < p, 1, -1).astype(np.int8)
    judge, fit = started(X, np.empty((0, 20)), Parameters())
    assert fit.g.shape == (0,)
    # b = arctanh(mean) up to the pull of the prior, b/v = M (mean - tanh b)
    pull = fit.b / fit.spread / len(X)
    np.testing.assert_allclose(np.tanh(fit.b) + pull, X.mean(axis=0), atol=1e-6)
    s = judge.statistics(fit.Z, fit.g, fit.b)
    assert pytest.approx(s.L, rel=1e-5) == fit.L
    np.testing.assert_allclose(fit.statistics.residual, s.residual, atol=1e-2)
    np.testing.assert_allclose(fit.statistics.variance, s.variance, rtol=1e-4)


def test_fair_spins_have_no_fields():
    X = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), size=(500, 20))
    _, fit = started(X, np.empty((0, 20)), Parameters(fields=False))
    assert pytest.approx(-X.size * np.log(2)) == fit.L
    assert not fit.b.any()
    _, free = started(X, np.empty((0, 20)), Parameters())
    assert np.abs(free.b).max() < np.abs(np.arctanh(X.mean(axis=0))).max()  # shrunk


def test_constant_and_missing_spins():
    X = np.ones((50, 5))
    X[:, 1] = -1
    X[:, 2] = np.nan
    X[::2, 3:] = -1
    judge = Judge(as_spins(X))
    fit = refit(judge, np.empty((0, 5), np.float32), np.empty(0), np.zeros(5), Parameters())
    assert np.isfinite(fit.b).all()
    np.testing.assert_allclose(fit.b[[2, 3, 4]], 0, atol=1e-6)
    assert fit.b[0] == pytest.approx(-fit.b[1])
    assert fit.b[0] > 1.5


def test_slopes_are_those_at_fixed_mean_fields():
    model, X = teacher(n_spins=8, n_samples=50)
    judge, fit = started(X, model.patterns, Parameters())
    A, e = judge.shift(fit.Z), 1e-2
    for mu in range(3):
        d = e * np.eye(3)[mu]
        up, down = (
            judge.log_likelihood(fit.Z, g, fit.mean_field - g @ A) for g in (fit.g + d, fit.g - d)
        )
        assert fit.statistics.slope[mu] == pytest.approx((up - down) / (2 * e), abs=0.02)


def test_information_is_that_of_the_strengths_with_fields_following():
    model, X = teacher(n_spins=10, n_samples=400)
    _, fit = started(X, model.patterns, Parameters())
    C, P = fit.curvature, 3
    full = np.block(
        [
            [C.H + np.diag(strength_precision(fit.Z)), C.mixed],
            [C.mixed.T, np.diag(C.variance + 1 / fit.spread)],
        ]
    )
    np.testing.assert_allclose(information(fit), np.linalg.inv(full)[:P, :P], rtol=5e-3, atol=1e-6)
    _, none = started(X, model.patterns[:0], Parameters())
    assert information(none).shape == (0, 0)


def test_evidence_is_counted_twice_for_weak_and_once_for_strong_patterns():
    rng = np.random.default_rng(0)
    judge = Judge(as_spins(rng.choice([-1, 1], size=(5000, 10))))
    Z = np.ones((6, 10), np.float32)
    rho = times_counted(Z, np.array([-30.0, -3.0, 1e-6, 0.5, 0.9, 5.0]), judge)
    assert (np.diff(rho) < 0).all()
    assert rho[2] == pytest.approx(2, abs=0.01)
    assert rho[-1] == pytest.approx(1, abs=0.01)
    # (1 + l) is the variance of a normal mode with coupling g', by hand at g' = 1/2: l = 1
    assert rho[3] == pytest.approx(1 / (2 * (1 - np.log(2))), rel=0.01)
    # Half of the spins have half of the strength.
    half = Z[:1].copy()
    half[0, 5:] = 0
    assert times_counted(half, np.ones(1), judge)[0] == pytest.approx(rho[3], rel=0.02)


def test_one_strength_of_samples(exact):
    model = HopfieldModel.random(100, 3, beta=0.8, random_state=0)
    spins = as_spins(model.sample(2000, random_state=1))
    beta = fit_beta(spins, model.patterns)
    assert beta == pytest.approx(0.8, abs=0.05)
    judge = Judge(spins)
    none = np.zeros(100)
    near = beta + np.array([-0.02, 0, 0.02])
    low, best, high = (judge.log_likelihood(model.patterns, np.full(3, x), none) for x in near)
    assert best > max(low, high)


def test_patterns_that_explain_nothing_have_no_strength():
    X = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), size=(500, 40))
    assert 0 <= fit_beta(as_spins(X), np.random.default_rng(2).choice([-1, 1], size=(2, 40))) < 0.3


# --- the description length ---


def judge_of(n_samples, n_spins):
    return Judge(as_spins(np.ones((n_samples, n_spins))))


def test_costs_by_hand():
    N, judge = 20, judge_of(300, 20)
    n = np.array([5.0, 8.0])
    which = gammaln(N + 1) - gammaln(n + 1) - gammaln(N - n + 1)
    np.testing.assert_allclose(which[0], np.log(15_504))
    code = which + n * np.log(2)
    for rho in (1.5, 2.0):
        costs = pattern_costs(n, np.full(2, rho), judge)
        np.testing.assert_allclose(costs, rho * code + np.log(N))
    # Two spins that determine each other are counted from both ends.
    pair = pattern_costs(np.array([2.0]), np.ones(1), judge)
    np.testing.assert_allclose(pair, 2 * (np.log(190) + 2 * np.log(2)) + np.log(N))


def test_a_vector_without_zeros_costs_what_the_best_gains_on_noise():
    judge = judge_of(300, 20)
    full, two = np.array([20.0]), np.full(1, 2.0)
    gain = 20 * noise_gain(300 / 20)
    unseen = pattern_costs(full, two, judge)[0] - np.log(20)
    assert gain <= unseen <= 1.2 * gain
    judge.n_seen = 1
    assert pattern_costs(full, two, judge)[0] - np.log(20) < gain


def test_costs_rise_with_support_and_evidence():
    judge = judge_of(1000, 100)
    costs = pattern_costs(np.arange(2.0, 51.0), np.full(49, 2.0), judge)
    assert (np.diff(costs) > 0).all()
    assert (np.diff([noise_gain(alpha) for alpha in np.geomspace(1e-3, 1e3, 20)]) > 0).all()
    rho = np.linspace(1.1, 2, 9)
    assert (np.diff(pattern_costs(np.full(9, 30.0), rho, judge)) > 0).all()


def test_the_length_of_fair_spins_is_a_bit_each():
    X = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), size=(200, 10))
    judge, fit = started(X, np.empty((0, 10)), Parameters(fields=False))
    assert stated(judge, fit).objective == pytest.approx(2000 * np.log(2))


def test_the_length_of_independent_spins_by_hand():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 10)) < rng.uniform(0, 1, size=10), 1, -1).astype(np.int8)
    judge, fit = started(X, np.empty((0, 10)), Parameters())
    t, v = np.tanh(fit.b), fit.spread
    L = -np.logaddexp(0, -2 * X * fit.b).sum()
    prior = 0.5 * (np.square(fit.b) / v + np.log1p(v * 300 * (1 - t * t))).sum()
    assert stated(judge, fit).objective == pytest.approx(-L + prior + 0.5 * np.log(300), rel=1e-6)


@pytest.mark.parametrize("parameters", MODELS)
def test_the_length_of_a_model_by_hand(parameters):
    model, X = teacher()
    judge, fit = started(X, model.patterns, parameters)
    state = stated(judge, fit)
    expected = -fit.L + pattern_costs(sizes_of(fit.Z), state.rho, judge).sum()
    expected += 0.5 * np.log(1500) * (1 if parameters.tied else 3)
    assert fit.n_strengths == (1 if parameters.tied else 3)
    if parameters.fields:
        w = fit.statistics.variance
        lengths = []
        for b in (fit.b, fit.mean_field):
            v = np.mean(np.square(b) + 1 / (w + 1))
            lengths.append(0.5 * (np.square(b) / v + np.log1p(v * w)).sum())
        expected += 0.5 * np.log(1500) + min(lengths)
    assert state.objective == pytest.approx(expected)


@pytest.mark.parametrize(("n_samples", "n_spins"), [(50, 200), (200, 200), (1600, 200)])
def test_what_the_best_vector_gains_on_fair_spins(n_samples, n_spins):
    rng = np.random.default_rng(0)
    X = rng.choice(np.array([-1, 1], np.int8), size=(n_samples, n_spins))
    G = X.T.astype(float) @ X
    np.fill_diagonal(G, 0)
    z = np.sign(np.concatenate([np.linalg.eigh(G)[1].T[-1:], rng.normal(size=(200, n_spins))]))
    for _ in range(20):  # one spin after the other, which only goes uphill
        for i in range(n_spins):
            z[:, i] = np.where(z @ G[:, i] >= 0, 1, -1)
    best = z[np.argmax(np.einsum("ki,ij,kj->k", z, G, z))]
    _, fit = started(X, best[None], Parameters(True, False))
    gained = (fit.L + X.size * np.log(2)) / n_spins
    assert gained == pytest.approx(noise_gain(n_samples / n_spins), rel=0.15)


def test_a_start_where_spins_are_certain_is_left():
    """Without curvature a Newton step goes too far, however much of it is added."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.choice([-1, 1], size=(400, 1)), 6, axis=1)
    X = np.where(rng.random(X.shape) < 0.02, -X, X)
    judge = Judge(as_spins(X))
    Z, none = np.ones((1, 6), np.float32), np.zeros(6)
    near, far = (refit(judge, Z, np.array([g]), none, Parameters()) for g in (1.0, 60.0))
    assert far.L > near.L - 20
    assert far.g == pytest.approx(near.g, rel=0.2)


def test_a_changed_entry_of_a_spin_that_hardly_varies_is_no_field():
    """Else the likelihood falls so far that Newton steps do not make up for it."""
    model, X = teacher(strengths=(1.5, 1.0, 0.6))
    X[:, :20] = np.where(np.random.default_rng(0).random((len(X), 20)) < 0.002, 1, -1)
    judge, fit = started(X, model.patterns, Parameters())
    Z = fit.Z.copy()
    Z[:, :20] = -1  # all move together, as a background does
    b = fields_for(judge, fit, Z, fit.g)
    assert b + fit.g @ judge.shift(Z) == pytest.approx(fit.mean_field)
    assert fields_for(judge, fit, fit.Z, fit.g) == pytest.approx(fit.b)
    kept, moved = (judge.log_likelihood(Z, fit.g, fields) for fields in (b, fit.b))
    assert fit.L - kept < 0.2 * (fit.L - moved)
