"""Logistic factor analysis: what its steps climb, where they stop, what they leave alone."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dualtap.hopfield import HopfieldModel
from dualtap.spins import as_spins
from dualtap.spins.blocks import Blocks
from dualtap.subspace.factors import iterate, start_factors
from teachers import blocks_of

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def problem(beta, n_samples=150, n_spins=200, n_patterns=3, missing=0.0):
    teacher = HopfieldModel.random(n_spins, n_patterns, beta, random_state=0)
    X = teacher.sample(n_samples, random_state=1)
    X[np.random.default_rng(2).random(X.shape) < missing] = 0
    return teacher.patterns.astype(np.float32), blocks_of(X)


def theta_of(factors):
    return factors.X.astype(float) @ factors.V.astype(float)


def log_likelihoods(blocks, theta):
    """Return Σ_i log P(s_i | θ) of every sample, missing spins left out, to full precision."""
    S = blocks.at_hand().astype(float)
    return -(np.logaddexp(0, -2 * S * theta) * (S != 0)).sum(axis=1)


def mean_log_likelihood(blocks, factors):
    return log_likelihoods(blocks, theta_of(factors)).sum() / blocks.n_observed.sum()


def precision_of(prior):
    """Return Λ: the inverse of the prior, with the module's ridge of 1e-5 of its mean."""
    k = len(prior)
    return np.linalg.inv(prior + 1e-5 * np.trace(prior) / k * np.eye(k))


BETAS = [0.8, 1.2, 2.0]


# --- The start ----------------------------------------------------------------------------------


def test_start_is_least_squares_scaled_from_the_size_of_spins_to_that_of_fields():
    zeta, blocks = problem(2.0)
    V = zeta + 0.3 * np.random.default_rng(0).normal(size=zeta.shape).astype(np.float32)
    found = start_factors(blocks, V)
    fit = np.linalg.lstsq(V.T.astype(float), blocks.at_hand().T.astype(float), rcond=None)[0].T
    r = np.sqrt(np.mean(np.square(fit @ V), axis=1, keepdims=True))
    expected = fit * np.arctanh(r) / r
    np.testing.assert_allclose(found.X, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.prior, expected.T @ expected / len(expected), atol=1e-3)


def test_start_makes_up_for_missing_entries():
    zeta, blocks = problem(2.0, missing=0.4)
    complete = start_factors(problem(2.0)[1], zeta).X
    x = start_factors(blocks, zeta).X
    # A sum over 120 of 200 spins, scaled up: errors of 1/√120 on overlaps near 1.
    assert np.sum(x * complete) / np.sum(complete**2) == pytest.approx(1, abs=0.1)


def test_start_survives_vectors_that_depend_on_each_other():
    zeta, blocks = problem(2.0)
    factors = start_factors(blocks, np.stack([zeta[0], zeta[0], 0 * zeta[0]]))
    factors = iterate(blocks, factors, 3)
    assert all(np.isfinite(x).all() for x in factors)


# --- Ascent -------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_coefficients_climb_the_penalised_likelihood(beta, missing):
    """Prior and vectors held, every step of x gains, from far too small and too large ones."""
    zeta, blocks = problem(beta, missing=missing)
    first = start_factors(blocks, zeta)
    Λ = precision_of(first.prior)
    for factor in (0.0, 3.0):
        factors = first._replace(X=np.float32(factor) * first.X)
        values = []
        for _ in range(15):
            penalty = np.einsum("ak,kl,al->a", factors.X, Λ, factors.X, dtype=float) / 2
            values.append((log_likelihoods(blocks, theta_of(factors)) - penalty).sum())
            factors = iterate(blocks, factors, 1, n_fixed=3)._replace(prior=first.prior)
        gains = np.diff(values)
        # Sums of 30 000 terms of order one, x in single precision.
        assert gains.min() > -1e-6 * abs(values[0])
        assert gains[0] > 1


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_likelihood_rises_from_a_poor_start(beta, missing):
    zeta, blocks = problem(beta, missing=missing)
    rng = np.random.default_rng(4)
    poor = np.where(rng.random(zeta.shape) < 0.3, -zeta, zeta)
    factors, values = start_factors(blocks, poor), []
    for _ in range(8):
        factors = iterate(blocks, factors, 1)
        values.append(mean_log_likelihood(blocks, factors))
    # The prior moves too and costs likelihood, far less than the vectors gain: 1e-4 a spin.
    assert np.diff(values).min() > -1e-4
    truth = mean_log_likelihood(blocks, iterate(blocks, start_factors(blocks, zeta), 8))
    assert values[-1] == pytest.approx(truth, abs=0.1 * (truth + np.log(2)))
    assert values[0] < truth - 0.1 * (truth + np.log(2))


def test_samples_near_a_pattern_start_where_they_end():
    """With the patterns known, β times the overlap is where coefficients settle."""
    zeta, blocks = problem(2.0)
    first = start_factors(blocks, zeta)
    last = iterate(blocks, first, 30, n_fixed=3)
    own = np.argmax(np.abs(last.X), axis=1)[:, None]
    start, end = (np.take_along_axis(np.abs(f.X), own, 1) for f in (first, last))
    assert np.median(start / end) == pytest.approx(1, abs=0.15)


def test_saturated_spins_stay_finite():
    """Samples that are patterns bit by bit push θ up without end."""
    zeta = np.random.default_rng(0).choice([-1, 1], size=(2, 100))
    blocks = blocks_of(np.repeat(zeta, 20, axis=0))
    factors = iterate(blocks, start_factors(blocks, zeta.astype(np.float32)), 50)
    assert all(np.isfinite(x).all() for x in factors)
    assert -1e-2 < mean_log_likelihood(blocks, factors) <= 0


# --- Where it stops -----------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.8, 1.2])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_nothing_pulls_at_convergence(beta, missing):
    """The equations that Newton steps solve, written down once more.

    x: Σ_i v_i (s_i - tanh θ_i) = Λ x. V: Σ_a x_a (s - tanh θ) = M ρ C V, where C is the mean
    posterior covariance of x, which is what the prior has beyond the mean of x xᵀ, and ρ the
    mean of 1 - tanh² over all entries.
    """
    zeta, blocks = problem(beta, missing=missing)
    factors = iterate(blocks, start_factors(blocks, zeta), 150)
    S = blocks.at_hand().astype(float)
    T = np.tanh(theta_of(factors)) * (S != 0)
    X, V = factors.X.astype(float), factors.V.astype(float)
    pull = (S - T) @ V.T
    # V → cV, x → x/c is a free choice that drifts long after the rest has settled: 2 %.
    np.testing.assert_allclose(pull, X @ precision_of(factors.prior), atol=0.2 * pull.std())
    assert np.sum(pull * (X @ precision_of(factors.prior))) / np.sum(pull**2) > 0.95
    C = factors.prior - X.T @ X / len(X)
    response = (S**2 - T**2).sum()  # M N ρ
    gradient = X.T @ (S - T) - response / S.shape[1] * C @ V
    assert np.abs(gradient).max() < 0.01 * np.abs(X.T @ S).max()
    # Small as it is, the second term is needed.
    assert np.abs(X.T @ (S - T)).max() > 3 * np.abs(gradient).max()


def test_fixed_vectors_at_convergence_leave_only_the_prior():
    zeta, blocks = problem(2.0)
    factors = iterate(blocks, start_factors(blocks, zeta), 100, n_fixed=3)
    S, X = blocks.at_hand().astype(float), factors.X.astype(float)
    pull = (S - np.tanh(theta_of(factors))) @ zeta.T.astype(float)
    expected = X @ precision_of(factors.prior)
    # Samples with the fewest misaligned spins settle last.
    np.testing.assert_allclose(pull, expected, atol=0.3 * pull.std())
    assert np.sum(pull * expected) / np.sum(pull**2) == pytest.approx(1, abs=0.05)
    # Against the 200 spins that pull, what is left is small.
    assert np.abs(pull).max() < 0.05 * np.abs(S @ zeta.T).max()


# --- What it leaves alone -----------------------------------------------------------------------


@pytest.mark.parametrize("n_fixed", [0, 1, 2, 3])
def test_fixed_vectors_stay_bit_for_bit(n_fixed):
    zeta, blocks = problem(1.2)
    V = zeta * np.float32(0.7) + np.float32(0.1)
    factors = start_factors(blocks, V)
    found = iterate(blocks, factors, 5, n_fixed=n_fixed)
    np.testing.assert_array_equal(found.V[:n_fixed], V[:n_fixed])
    assert (found.V[n_fixed:] != V[n_fixed:]).mean(axis=1).min(initial=1.0) > 0.9
    assert (found.X != factors.X).mean() > 0.9


def test_iterating_leaves_its_arguments_alone():
    zeta, blocks = problem(1.2)
    factors = start_factors(blocks, zeta)
    before = [np.copy(x) for x in factors]
    S = blocks.at_hand().copy()
    iterate(blocks, factors, 2)
    for x, y in zip(factors, before, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(blocks.at_hand(), S)


def test_steps_can_be_taken_one_by_one():
    zeta, blocks = problem(1.2)
    factors = start_factors(blocks, zeta)
    together = iterate(blocks, factors, 3)
    for _ in range(3):
        factors = iterate(blocks, factors, 1)
    for x, y in zip(factors, together, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_result_does_not_depend_on_the_number_of_threads(missing):
    teacher = HopfieldModel.random(1000, 3, 1.2, random_state=0)
    X = teacher.sample(600, random_state=1, n_sweeps=20)
    X[np.random.default_rng(2).random(X.shape) < missing] = 0
    found = []
    for n in (1, 2):
        with threadpool_limits(n):
            blocks = blocks_of(X)
            assert len(blocks._rows) > 1
            factors = start_factors(blocks, teacher.patterns.astype(np.float32))
        with threadpool_limits(1):  # as callers do
            found.append(iterate(blocks, factors, 3))
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


def test_values_under_a_mask_do_not_matter():
    zeta, _ = problem(1.2)
    X = HopfieldModel(zeta, 1.2).sample(150, random_state=1)
    mask = np.random.default_rng(2).random(X.shape) < 0.3
    found = []
    for values in (X, np.where(mask, -X, X)):
        blocks = Blocks(as_spins(np.ma.MaskedArray(values, mask)))
        found.append(iterate(blocks, start_factors(blocks, zeta), 3))
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


def test_missing_entries_do_not_pull():
    """What the model says of a site that was never observed has no influence on the rest."""
    zeta, blocks = problem(1.2, missing=0.3)
    X = blocks.at_hand().copy()
    X[40], X[:, 17] = 0, 0
    blocks = blocks_of(X)
    prior = start_factors(blocks, zeta).prior
    changed = zeta.copy()
    changed[:, 17] = [3, -2, 1]
    found = []
    for V in (zeta, changed):
        factors = start_factors(blocks, V)
        for _ in range(40):  # the site does set the size of steps, but not where they end
            factors = factors._replace(prior=prior)
            factors = iterate(blocks, factors, 1, n_fixed=3)
        found.append(factors)
    np.testing.assert_allclose(found[0].X, found[1].X, atol=1e-3)
    assert np.abs(found[0].X[40]).max() < 1e-4  # nothing observed: the mean of the prior
    assert np.abs(found[0].X).max() > 0.5


@pytest.mark.parametrize("beta", BETAS)
def test_gaps_thin_the_data_but_do_not_bias_them(beta):
    zeta, complete = problem(beta, n_samples=400)
    _, gappy = problem(beta, n_samples=400, missing=0.3)
    full, thinned = (
        iterate(blocks, start_factors(blocks, zeta), 20, n_fixed=3) for blocks in (complete, gappy)
    )
    slope = np.sum(thinned.X * full.X) / np.sum(full.X**2)
    # x of a sample has an error of about √(0.3/0.7) of its posterior width, but at β = 0.8 the
    # prior also shrinks it: by up to (1 + K/Λ⁻¹) of 5 against 3.8, 8 %.
    assert slope == pytest.approx(1, abs=0.15)
    assert np.trace(thinned.prior) == pytest.approx(np.trace(full.prior), rel=0.15)
