"""TAP for coupled students: its formulas once more, its symmetries, and TAP for one pattern."""

import numpy as np
import pytest

from dualtap.couplings import HebbianCouplings
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import TAP
from dualtap.schemes.rank_tap import RankTAP, RankTAPState
from dualtap.solve import solve
from teachers import blocks_of

N, BETA = 300, 0.8
ONES = np.ones(N, dtype=np.float32)

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def problem(n_patterns, n_samples=600, missing=0.0, seed=0):
    teacher = HopfieldModel.random(N, n_patterns, BETA, random_state=seed)
    X = teacher.sample(n_samples, random_state=seed + 1)
    X[np.random.default_rng(2).random(X.shape) < missing] = 0
    return teacher.patterns.astype(np.float64), X


def share_of(samples):
    """Return the share of the entries that were observed."""
    return samples.total_observed / (samples.total_weight * samples.n_spins)


def some_state(n_patterns, seed=0):
    """Magnetizations and a prior that no symmetry singles out."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_patterns, n_patterns))
    prior = (np.eye(n_patterns) + 0.2 * A @ A.T) / N
    return RankTAPState(rng.uniform(-0.9, 0.9, size=(1, n_patterns * N)), prior[None])


# --- One pattern: the TAP of the package --------------------------------------------------------


@pytest.fixture(scope="module")
def single():
    _, X = problem(1)
    # Σ⁻¹ = N/β - N makes C = 1/(Σ⁻¹ + Nq) = (β/N)/(1 - u), u = β(1 - q): α = M/N times β/(1 - u)
    # is M C, the reaction of TAP; and Σ⁻¹ + K + U = N/β, so x = β s·m/N and F = βJm - M C m.
    prior = np.full((1, 1, 1), 1 / (N / BETA - N))
    return X, TAP(HebbianCouplings(X, np.float64), BETA), RankTAP(blocks_of(X), 1, ONES), prior


@pytest.mark.parametrize("size", [0.1, 0.5, 1.0])
def test_field_of_one_pattern_is_that_of_tap(single, size):
    _, tap, rank_tap, prior = single
    m = size * np.random.default_rng(0).uniform(-1, 1, size=(1, N))
    f, expected = tap.step(tap.init(m))
    found = rank_tap.sites(RankTAPState(m, prior)).F
    np.testing.assert_allclose(np.tanh(found), f.m, atol=1e-5)
    _, info = rank_tap.step(RankTAPState(m, prior))
    np.testing.assert_allclose(info.stiffness, expected.stiffness, rtol=1e-5)


def test_step_of_one_pattern_goes_straight_towards_that_of_tap(single):
    """Half-steps within a site all point to the same f, as there is nothing to couple to."""
    _, tap, rank_tap, prior = single
    m = np.random.default_rng(1).uniform(-1, 1, size=(1, N))
    f = tap.step(tap.init(m))[0].m
    new = rank_tap.step(RankTAPState(m, prior))[0].m
    share = np.sum((new - m) * (f - m)) / np.sum((f - m) ** 2)
    assert 0.5 <= share <= 1
    np.testing.assert_allclose(new, m + share * (f - m), atol=1e-5)


def test_fixed_points_of_tap_are_fixed_points(single):
    X, tap, rank_tap, prior = single
    start = 0.9 * np.where(X[:1] @ X.T @ X < 0, -1.0, 1.0)
    solution = solve(tap, start, damping="auto", tol=1e-12, max_iter=3000)
    assert solution.converged.all()
    m = solution.magnetizations
    assert np.abs(m).mean() > 0.8  # not the trivial one
    new, info = rank_tap.step(RankTAPState(m, prior))
    assert info.residual[0] < 1e-6
    np.testing.assert_allclose(new.m, m, atol=1e-5)
    # At another temperature they are not.
    assert rank_tap.step(RankTAPState(m, 0.5 * prior))[1].residual[0] > 1e-4


# --- Several patterns: the formulas -------------------------------------------------------------


def plain_sites(X, state, D, share, n_patterns):
    """F and L in double precision, sums over samples and sites written out."""
    S, m = X.astype(float), state.m.reshape(n_patterns, N).astype(float)
    M = len(S)
    precision = np.linalg.inv(state.prior[0])
    K = share * sum(D[i] * np.outer(m[:, i], m[:, i]) for i in range(N))
    U = share * sum(D[i] * np.diag(1 - m[:, i] ** 2) for i in range(N))
    x = np.stack([np.linalg.solve(precision + K + U, m @ s) for s in S])
    C = np.linalg.inv(precision + K)
    L = sum(np.outer(a, a) for a in x)
    return x.T @ S - share * D * (M * C @ m), share * L, L / M + C


@pytest.mark.parametrize("n_patterns", [1, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sites_are_the_formulas(n_patterns, missing):
    _, X = problem(n_patterns, n_samples=200, missing=missing)
    D = np.random.default_rng(3).uniform(0.3, 1, size=N).astype(np.float32)
    samples = blocks_of(X)
    tap = RankTAP(samples, n_patterns, D, share_of(samples))
    state = some_state(n_patterns)
    F, L, prior = plain_sites(X, state, D, share_of(samples), n_patterns)
    found = tap.sites(state)
    np.testing.assert_allclose(found.F, F, atol=1e-4 * np.abs(F).max())
    np.testing.assert_allclose(found.L, L, atol=1e-4 * np.abs(L).max())
    new, info = tap.step(state)
    np.testing.assert_allclose(new.prior[0], prior, atol=1e-4 * np.abs(prior).max())
    assert info.residual.shape == info.stiffness.shape == (1,)
    assert not info.guarded.any()


def test_start_has_the_prior_that_the_samples_show():
    """x ~ N(0, Σ) in the paramagnet, with Σ near β/(1-β)/N and patterns nearly independent."""
    zeta, X = problem(3, n_samples=2000)
    prior = RankTAP(blocks_of(X), 3, ONES).init(zeta.reshape(1, -1)).prior[0]
    # Variances to √(2/2000) = 3 %; overlaps of the patterns of 1/√300 = 6 % change each by twice
    # βΔ/(1-β) = 0.5 at most.
    np.testing.assert_allclose(np.diag(prior) * N, BETA / (1 - BETA), rtol=0.5)
    start = -0.2 * zeta.reshape(1, -1)  # only signs matter
    again = RankTAP(blocks_of(X), 3, ONES).init(start).prior[0]
    np.testing.assert_allclose(again, prior, rtol=1e-5)


def test_start_has_a_positive_prior_even_without_signal():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(5, N))
    m = rng.choice([-1.0, 1.0], size=(1, 4 * N))
    m[0, N : 2 * N] = m[0, :N]  # twice the same
    state = RankTAP(blocks_of(X), 4, ONES).init(m)
    assert np.linalg.eigvalsh(state.prior[0]).min() > 0
    new, _ = RankTAP(blocks_of(X), 4, ONES).step(state)
    assert np.isfinite(new.m).all()


# --- Symmetries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_order_and_signs_of_patterns_are_free(missing):
    P = 4
    _, X = problem(P, n_samples=200, missing=missing)
    samples = blocks_of(X)
    tap = RankTAP(samples, P, ONES, share_of(samples))
    rng = np.random.default_rng(0)
    order, signs = rng.permutation(P), rng.choice([-1.0, 1.0], size=P)

    def moved(state):
        m = (signs[:, None] * state.m.reshape(P, N))[order].reshape(1, -1)
        prior = (signs[:, None] * signs * state.prior[0])[np.ix_(order, order)]
        return RankTAPState(m, prior[None])

    state = some_state(P)
    new, info = tap.step(state)
    found, found_info = tap.step(moved(state))
    np.testing.assert_allclose(found.m, moved(new).m, atol=1e-4)
    np.testing.assert_allclose(found.prior, moved(new).prior, atol=1e-6)
    np.testing.assert_allclose(found_info.residual, info.residual, rtol=1e-4)
    np.testing.assert_allclose(found_info.stiffness, info.stiffness, rtol=1e-4)
    start, found_start = tap.init(state.m), tap.init(moved(state).m)
    np.testing.assert_allclose(found_start.prior, moved(start).prior, atol=1e-6)


def test_order_and_signs_of_samples_and_sites_are_free():
    P = 3
    _, X = problem(P, n_samples=200)
    rng = np.random.default_rng(0)
    rows, sites = rng.permutation(200), rng.permutation(N)
    row_signs, site_signs = rng.choice([-1, 1], size=(200, 1)), rng.choice([-1, 1], size=N)
    D = rng.uniform(0.3, 1, size=N).astype(np.float32)
    state = some_state(P)
    expected = RankTAP(blocks_of(X), P, D).step(state)[0].m.reshape(P, N)
    moved = (row_signs * site_signs * X)[rows][:, sites]
    m = (site_signs * state.m.reshape(P, N))[:, sites].reshape(1, -1)
    found = RankTAP(blocks_of(moved), P, D[sites]).step(state._replace(m=m))[0].m
    np.testing.assert_allclose(found.reshape(P, N), (site_signs * expected)[:, sites], atol=1e-4)


# --- Solutions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_patterns", [1, 2, 4])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_damped_iteration_converges_to_the_patterns(n_patterns, missing):
    zeta, X = problem(n_patterns, n_samples=900, missing=missing)
    samples = blocks_of(X)
    tap = RankTAP(samples, n_patterns, ONES, share_of(samples))
    rng = np.random.default_rng(4)
    noisy = np.where(rng.random(zeta.shape) < 0.1, -zeta, zeta)
    start = (0.9 * noisy).reshape(1, -1).astype(np.float32)
    solution = solve(tap, start, damping="auto", tol=1e-5, max_iter=500)
    assert solution.converged.all()
    m = solution.magnetizations.reshape(n_patterns, N)
    # Of 900 samples with 300 spins at β = 0.8 the Bayes limit is a sign overlap of 0.99.
    assert np.mean(np.sign(m) * zeta) > 0.85
    # A fixed point: with the prior settled, nothing moves.
    state = tap.init(solution.magnetizations)
    for _ in range(20):
        state = tap.step(state)[0]._replace(m=solution.magnetizations)
    assert tap.step(state)[1].residual[0] < 1e-4


def test_one_step_does_not_touch_its_state():
    _, X = problem(2, n_samples=100)
    state = some_state(2)
    before = [x.copy() for x in state]
    RankTAP(blocks_of(X), 2, ONES).step(state)
    for x, y in zip(state, before, strict=True):
        np.testing.assert_array_equal(x, y)
