"""Every prior of hidden units, shipped or a user's own, against quadrature and enumeration."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest

import dualtap as dt
from dualtap._chains import seeded_generators
from dualtap.rbm.gibbs import Chains, advance
from dualtap.rbm.likelihood import log_partition
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import pseudo_likelihood, pseudo_likelihood_one_step
from dualtap.rbm.pcd import gradient
from dualtap.rbm.priors import PRIORS, SpikeSlabPrior, as_prior
from dualtap.report import write_report

LEAST_P = 1e-4


class Triangle:
    """A user's own law: λ = -1, 0 or 2 with probabilities 1/2, 1/4 and 1/4."""

    values = np.array([-1.0, 0.0, 2.0])
    shares = np.array([0.5, 0.25, 0.25])

    def _weights(self, x):
        return self.shares * np.exp(x[..., None] * self.values)

    def log_normalizer(self, x):
        return np.log(self._weights(x).sum(axis=-1)).astype(x.dtype)

    def mean(self, x):
        w = self._weights(x)
        return ((w @ self.values) / w.sum(axis=-1)).astype(x.dtype)

    def sample(self, x, rng):
        w = np.cumsum(self._weights(x), axis=-1)
        which = (rng.random(x.shape)[..., None] * w[..., -1:] > w).sum(axis=-1)
        return self.values[which].astype(x.dtype)


ALL = {**PRIORS, "own": Triangle(), "sparse": SpikeSlabPrior(0.3)}
every_prior = pytest.mark.parametrize("name", ALL)


def atoms(name):
    """Values and probabilities of discrete priors, the spike among them."""
    return {
        "binary": ([-1, 1], [0.5, 0.5]),
        "zero_one": ([0, 1], [0.5, 0.5]),
        "own": (Triangle.values, Triangle.shares),
        "spike_slab": ([0], [0.5]),
        "sparse": ([0], [0.7]),
    }.get(name, ([], []))


def density(name):
    """Density of the continuous part, on an interval."""

    def normal(t, v=1.0):
        return np.exp(-t * t / (2 * v)) / np.sqrt(2 * np.pi * v)

    wide = (-40.0, 40.0)
    laplace = quad(lambda t: np.exp(-abs(t) - t * t / 2), -20, 20, points=[0])[0]
    return {
        "gaussian": (normal, wide),
        "uniform": (lambda t: 1 / np.sqrt(12), (-np.sqrt(3), np.sqrt(3))),
        "relu": (lambda t: 2 * normal(t), (0.0, 40.0)),
        "laplace": (lambda t: np.exp(-abs(t) - t * t / 2) / laplace, wide),
        "spike_slab": (lambda t: 0.5 * normal(t, 2), wide),
        "sparse": (lambda t: 0.3 * normal(t, 1 / 0.3), (-80.0, 80.0)),
    }.get(name)


def nodes(name, n=400):
    """Values and weights that integrate the prior, by enumeration and Gauss and Legendre."""
    values, weights = (np.asarray(a, float) for a in atoms(name))
    if density(name) is not None:
        f, (low, high) = density(name)
        for a, b in ((low, 0.0), (0.0, high)) if low < 0 else ((low, high),):
            t, w = np.polynomial.legendre.leggauss(n)
            t, w = (b - a) / 2 * t + (a + b) / 2, w * (b - a) / 2
            values, weights = np.append(values, t), np.append(weights, w * np.vectorize(f)(t))
    return values, weights


def all_states(n):
    return 1.0 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def make(name, n_hidden=2, n_spins=5, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    W = scale * rng.standard_normal((n_hidden, n_spins))
    return RBM(W, 0.5 * rng.standard_normal(n_spins), ALL[name])


def boltzmann(model, name):
    """P(s) from the joint law, hidden units integrated one by one."""
    S = all_states(model.n_spins)
    values, weights = nodes(name)
    x = S @ model.weights.T
    total = np.prod(np.exp(x[..., None] * values) @ weights, axis=1) * np.exp(S @ model.fields)
    return S, total / total.sum()


@every_prior
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_three_functions_are_those_of_the_law(name, dtype):
    x = np.array([-5.0, -1.2, -0.005, 0.0, 1e-3, 0.4, 2.5], dtype=dtype)
    values, weights = nodes(name)
    tilted = weights * np.exp(np.multiply.outer(x.astype(float), values))
    total = tilted.sum(axis=1)
    assert weights.sum() == pytest.approx(1, abs=1e-10)
    tolerance = 1e-9 if dtype == np.float64 else 3e-5
    K, mean = ALL[name].log_normalizer(x), ALL[name].mean(x)
    assert K.dtype == mean.dtype == dtype
    np.testing.assert_allclose(K, np.log(total), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(mean, tilted @ values / total, rtol=tolerance, atol=tolerance)


@every_prior
def test_means_are_slopes_and_far_inputs_stay_finite(name):
    x, d = np.linspace(-4, 4, 41), 1e-5
    prior = ALL[name]
    slope = (prior.log_normalizer(x + d) - prior.log_normalizer(x - d)) / (2 * d)
    np.testing.assert_allclose(prior.mean(x), slope, atol=2e-7, rtol=1e-7)
    far = np.array([-300.0, 300.0])
    if name != "own":  # which is written for small inputs
        assert np.isfinite(prior.log_normalizer(far)).all()
        assert np.isfinite(prior.mean(far)).all()
        assert np.isfinite(prior.sample(far, np.random.default_rng(0))).all()


@every_prior
@pytest.mark.parametrize("x", [-1.5, 0.0, 0.7])
def test_draws_follow_the_tilted_law(name, x):
    draws = ALL[name].sample(np.full(20_000, x), np.random.default_rng(1))
    values, weights = nodes(name)
    p = weights * np.exp(values * x)
    p /= p.sum()
    fixed, _ = atoms(name)
    at_atom = np.isin(draws, fixed)
    counts = [np.count_nonzero(draws == value) for value in fixed] + [np.count_nonzero(~at_atom)]
    expected = 20_000 * np.append(p[: len(fixed)], p[len(fixed) :].sum())
    some = expected > 1e-6
    if some.sum() > 1:
        assert chisquare(np.array(counts)[some], expected[some]).pvalue > LEAST_P
    if density(name) is not None:
        order = np.argsort(values[len(fixed) :])
        t, cdf = values[len(fixed) :][order], np.cumsum(p[len(fixed) :][order])
        cdf = (cdf - p[len(fixed) :][order] / 2) / cdf[-1]
        assert kstest(draws[~at_atom], lambda y: np.interp(y, t, cdf)).pvalue > LEAST_P


@every_prior
def test_the_law_of_the_spins_is_the_integral_over_hidden_units(name):
    model = make(name)
    S, p = boltzmann(model, name)
    F = model.free_energy(S)
    np.testing.assert_allclose(np.exp(-F) / np.exp(-F).sum(), p, rtol=1e-9)
    assert log_partition(model).value == pytest.approx(np.logaddexp.reduce(-F), abs=1e-10)
    turned = S.copy()
    turned[:, 2] *= -1
    numbers = (turned < 0) @ (1 << np.arange(5))
    np.testing.assert_allclose(
        np.exp(-2 * model.aligned_fields(S)[:, 2]), p[numbers] / p, rtol=1e-8
    )
    terms = -np.log1p(np.exp(-2 * model.aligned_fields(S)))
    assert pseudo_likelihood(model, S) == pytest.approx(terms.mean(), abs=1e-12)


@every_prior
def test_the_one_step_estimate_has_its_mean(name):
    model = make(name, n_hidden=1)
    s = np.array([1.0, -1.0, 0.0, 1.0, -1.0])
    values, weights = nodes(name)
    p = weights * np.exp(values * (model.weights @ s)[0])
    terms = -np.log1p(np.exp(-2 * s * (values[:, None] * model.weights + model.fields)))
    expected = (p / p.sum()) @ terms[:, s != 0].mean(axis=1)
    X = np.tile(s, (6000, 1))
    got = pseudo_likelihood_one_step(model, X, np.random.default_rng(2))
    assert got == pytest.approx(expected, abs=0.01)


@every_prior
def test_the_gradient_is_that_of_the_likelihood(name):
    model = make(name, n_spins=4)
    S, p = boltzmann(model, name)
    data = S[[0, 3, 5, 12, 12]]

    def objective(W, b):
        now = RBM(W, b, ALL[name])
        return -now.free_energy(data).mean() - log_partition(now).value

    found = gradient(model, data, np.repeat(S, np.round(p * 1e5).astype(int), axis=0))
    d = 1e-5
    for index in np.ndindex(*model.weights.shape):
        step = np.zeros_like(model.weights)
        step[index] = d
        rise = objective(model.weights + step, model.fields) - objective(
            model.weights - step, model.fields
        )
        assert found.weights[index] == pytest.approx(rise / (2 * d), abs=1e-3)


@every_prior
def test_chains_reach_the_boltzmann_law(name):
    model = make(name, n_spins=4)
    spins = np.tile(np.float32([1, -1, 1, 1]), (6000, 1))
    chains = Chains(spins, seeded_generators(len(spins), np.random.default_rng(5)))
    moved = advance(model, chains, 25)
    counts = np.bincount((moved.spins < 0) @ (1 << np.arange(4)), minlength=16)
    _, p = boltzmann(model, name)
    assert chisquare(counts, p * len(spins)).pvalue > LEAST_P
    again = advance(model, chains, 25)
    np.testing.assert_array_equal(moved.spins, again.spins)
    np.testing.assert_array_equal(moved.generators, again.generators)
    held = np.zeros_like(spins)
    held[:, 0] = -1
    fixed = advance(model, chains, 25, held).spins
    assert (fixed[:, 0] == -1).all()
    counts = np.bincount((fixed < 0) @ (1 << np.arange(4)), minlength=16)[1::2]
    assert chisquare(counts, p[1::2] / p[1::2].sum() * len(spins)).pvalue > LEAST_P


@every_prior
def test_annealing_agrees_with_the_sum(name):
    model = make(name, n_hidden=3, n_spins=8, scale=0.25)
    got = log_partition(model, method="annealing", n_temperatures=40, n_chains=200, random_state=0)
    assert abs(got.value - log_partition(model).value) < 4.5 * got.error < 0.2


@pytest.fixture(scope="module")
def clustered():
    teacher = dt.HopfieldModel.random(40, 2, beta=2.0, random_state=0)
    return teacher.sample(200, random_state=1), teacher.sample(100, random_state=2)


@every_prior
def test_the_estimator_learns_with_any_prior(name, clustered, tmp_path):
    X, held_out = clustered
    hidden = name if name in PRIORS else ALL[name]
    options = {"hidden": hidden, "n_chains": 20, "max_updates": 100, "random_state": 0}
    rbm = dt.HopfieldRBM(4, fields=True, early_stopping=False, **options).fit(X)
    assert rbm.score(held_out) > -0.68
    assert rbm.stop_reason_ == "max_updates"
    J = rbm.couplings()
    assert np.isfinite(J).all()
    assert np.abs(J).max() > 1e-3
    gaps = held_out.astype(float)
    gaps[:, ::7] = np.nan
    filled = rbm.impute(gaps, random_state=0)
    assert (filled == held_out)[:, ::7].mean() > 0.6
    assert rbm.sample(3, random_state=0).shape == (3, 40)
    assert rbm.patterns_.shape[1] == 40
    rbm.write(tmp_path / "rbm.npz")
    if name == "own":
        with pytest.raises(ValueError, match=r"a prior of their own, Triangle.*hidden=\.\.\."):
            dt.load(tmp_path / "rbm.npz")
        again = dt.HopfieldRBM.read(tmp_path / "rbm.npz", hidden=Triangle())
    else:
        again = dt.load(tmp_path / "rbm.npz")
    assert again.score(held_out) == rbm.score(held_out)
    assert again.hidden_ == rbm.hidden_
    write_report(rbm, tmp_path / "report.html")  # names the law of the hidden units
    assert "hidden units, trained for" in (tmp_path / "report.html").read_text()


def test_what_is_no_prior_is_refused():
    with pytest.raises(ValueError, match="unknown hidden prior 'cauchy'"):
        as_prior("cauchy")
    with pytest.raises(TypeError, match="it has no method log_normalizer"):
        as_prior(3)
    with pytest.raises(ValueError, match="share must be between 0 and 1"):
        SpikeSlabPrior(1.0)
    with pytest.raises(ValueError, match="The 'hidden' parameter"):
        dt.HopfieldRBM(2, hidden="cauchy").fit(np.eye(4))
