"""What a pass over the samples says of a model, against loops over entries and differences."""

import numpy as np
import pytest
from scipy.special import log_expit

from dualtap.local_fields import cross_filled, second_half
from dualtap.recovery import calibration, judge
from dualtap.recovery.derivatives import Features
from dualtap.recovery.judge import Judge
from dualtap.spins import as_spins

STEP = 1e-5


def drawn(seed, missing=0.0, n_samples=7, n_spins=6, n_patterns=3):
    """Samples and a model with zeros, negative strengths and fields."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1, 1], size=(n_samples, n_spins)) * (
        rng.random((n_samples, n_spins)) > missing
    )
    X[0] = 1  # no spin is observed nowhere
    Z = rng.choice([-1, 0, 1], size=(n_patterns, n_spins), p=[0.35, 0.3, 0.35])
    g, b = 2 * rng.normal(size=n_patterns), 0.5 * rng.normal(size=n_spins)
    return X.astype(np.int8), Z.astype(np.float32), g, b


def judged(X):
    return Judge(as_spins(X, zero_is_missing=True))


def looks_at(X, judge):
    """Return rows as a judge fills them at each look, and the entries that it scores then."""
    second = second_half(X)
    twice = 1 + second.any(axis=1)
    S = judge.samples(slice(None)).astype(float)
    half = np.repeat(second, twice, axis=0)
    half[np.cumsum(twice) - twice] ^= True
    return S, half & (np.repeat(X, twice, axis=0) != 0)


def log_likelihood(S, seen, Z, g, b):
    """The log pseudo-likelihood by loops over entries, in double precision."""
    n_samples, N = S.shape
    total = 0.0
    for a, i in np.ndindex(n_samples, N):
        if seen[a, i]:
            others = np.delete(np.arange(N), i)
            h = b[i] + sum(
                g_mu / N * zeta[i] * (zeta[others] @ S[a, others])
                for g_mu, zeta in zip(g, Z.astype(float), strict=True)
            )
            total += log_expit(2 * S[a, i] * h)
    return total


@pytest.fixture(params=[(0, 0.0), (1, 0.0), (2, 0.3)], ids=["whole", "other", "gaps"])
def case(request):
    """A judge, a model, and its log-likelihood as a function of strengths and fields."""
    seed, missing = request.param
    X, Z, g, b = drawn(seed, missing)
    judge = judged(X)
    judge.fill(Z, g, b)
    S, scored = looks_at(X, judge)

    def value(g, b):
        return log_likelihood(S, scored, Z, g, b)

    return judge, Z, g, b, value


def gradient(value, x):
    """Central differences of a function of one array, which may return an array."""
    return np.array([(value(x + e) - value(x - e)) / (2 * STEP) for e in STEP * np.eye(len(x))])


def test_the_log_likelihood_is_a_sum_over_entries(case):
    judge, Z, g, b, value = case
    assert pytest.approx(value(g, b), rel=1e-5) == judge.statistics(Z, g, b).L
    assert judge.log_likelihood(Z, g, b) == pytest.approx(value(g, b), rel=1e-5)


def test_first_derivatives(case):
    judge, Z, g, b, value = case
    s = judge.statistics(Z, g, b)
    np.testing.assert_allclose(s.slope, gradient(lambda g: value(g, b), g), atol=2e-4)
    np.testing.assert_allclose(s.residual, gradient(lambda b: value(g, b), b), atol=2e-4)


def test_second_derivatives(case):
    judge, Z, g, b, _ = case
    e = 1e-3  # the passes are in single precision

    def differences(name, of_fields):
        result = []
        for d in e * np.eye(len(b if of_fields else g)):
            at = [(g, b + x * d) if of_fields else (g + x * d, b) for x in (1, -1)]
            up, down = (getattr(judge.statistics(Z, *point), name) for point in at)
            result.append((down - up) / (2 * e))
        return np.array(result)

    C = judge.curvature(Z, g, b)
    np.testing.assert_allclose(C.H, differences("slope", False), atol=5e-3)
    np.testing.assert_allclose(C.mixed, differences("residual", False), atol=5e-3)
    np.testing.assert_allclose(C.mixed.T, differences("slope", True), atol=5e-3)
    np.testing.assert_allclose(np.diag(C.variance), differences("residual", True), atol=5e-3)
    np.testing.assert_allclose(judge.statistics(Z, g, b).variance, C.variance, rtol=1e-5)


def test_own_curvature_is_the_diagonal(case):
    judge, Z, g, b, _ = case
    (S, _, W, _), *_ = judge.residuals(Z, g, b)
    own = Features(S, Z).own_curvature(W)
    np.testing.assert_allclose(own, np.diag(judge.curvature(Z, g, b).H), rtol=1e-4, atol=1e-5)


def test_curvature_with_fields_following(case):
    judge, Z, g, b, _ = case
    C, v = judge.curvature(Z, g, b), 0.3
    whole = np.block([[C.H, C.mixed], [C.mixed.T, np.diag(C.variance + 1 / v)]])
    np.testing.assert_allclose(
        C.without_fields(v), np.linalg.inv(np.linalg.inv(whole)[:3, :3]), atol=1e-6
    )


def test_curvature_at_fixed_mean_fields_is_a_change_of_variables(case):
    judge, Z, g, b, _ = case
    C, A = judge.curvature(Z, g, b), judge.shift(Z)
    whole = np.block([[C.H, C.mixed], [C.mixed.T, np.diag(C.variance)]])
    change = np.block([[np.eye(3), -A], [np.zeros((6, 3)), np.eye(6)]])  # g, c to g, b = c - g A
    expected = change @ whole @ change.T
    around = C.around(A)
    np.testing.assert_allclose(around.H, expected[:3, :3], atol=1e-6)
    np.testing.assert_allclose(around.mixed, expected[:3, 3:], atol=1e-6)
    np.testing.assert_allclose(np.diag(around.variance), expected[3:, 3:], atol=1e-6)


def test_one_strength_is_the_sum_of_all(case):
    judge, Z, *_ = case
    beta, none = 0.7, np.zeros(6)
    slope, curvature = judge.one_strength(Z).derivatives(beta)
    all_of = judge.statistics(Z, np.full(3, beta), none).slope
    assert slope == pytest.approx(all_of.sum(), abs=1e-4)
    H = judge.curvature(Z, np.full(3, beta), none).H
    assert curvature == pytest.approx(H.sum(), rel=1e-4)


def test_gaps_are_filled_given_the_half_that_is_not_scored():
    X, Z, g, b = drawn(3, missing=0.3)
    judge = judged(X)
    twice = 1 + second_half(X).any(axis=1)
    assert 1 in twice
    assert 2 in twice
    before = looks_at(X, judge)[0]
    whole = np.where(X == 0, judge.mean, X)
    np.testing.assert_allclose(before, np.repeat(whole, twice, axis=0), atol=1e-6)
    judge.fill(Z, g, b)
    one, other = (pair[1] for pair in cross_filled(X.astype(np.float32), Z, g, b, judge.mean))
    first = np.cumsum(twice) - twice
    after = judge.samples(slice(None))
    np.testing.assert_allclose(after[first], one, atol=1e-6)
    np.testing.assert_allclose(after[first + 1][twice == 2], other[twice == 2], atol=1e-6)


def test_means_and_counts():
    judge = judged(np.array([[1, -1, 0], [1, 1, 0], [1, -1, -1]], np.int8))
    np.testing.assert_array_equal(judge.n_observed, [3, 3, 1])
    np.testing.assert_array_equal(judge.n_up, [3, 1, 0])
    np.testing.assert_allclose(judge.mean, [3 / 4, -1 / 4, -1 / 2])
    np.testing.assert_allclose(np.tanh(judge.null_fields()), judge.mean)
    assert (judge.n_samples, judge.n_spins, judge.n_entries, judge.weight) == (3, 3, 7, 1)


def test_a_row_stands_for_several_samples(monkeypatch):
    X, Z, g, b = drawn(4, n_samples=1000)
    whole = judged(X)
    monkeypatch.setattr(calibration, "JUDGED_ENTRIES", 300 * 6)
    few = judged(X)
    assert len(few.rows) <= 300
    assert few.weight == 1000 / len(few.rows)
    assert few.n_samples == 1000
    part = judged(few.rows)
    for one, other in zip(part.statistics(Z, g, b), few.statistics(Z, g, b), strict=True):
        np.testing.assert_allclose(few.weight * one, other, rtol=1e-6, atol=1e-6)
    for one, other in zip(part.curvature(Z, g, b), few.curvature(Z, g, b), strict=True):
        np.testing.assert_allclose(few.weight * one, other, rtol=1e-6, atol=1e-6)
    assert pytest.approx(whole.statistics(Z, g, b).L, rel=0.1) == few.statistics(Z, g, b).L


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_blocks_make_no_difference(monkeypatch, missing):
    X, Z, g, b = drawn(5, missing, n_samples=50)
    one = judged(X)
    one.fill(Z, g, b)
    monkeypatch.setattr(judge, "_CHUNK", 6 * 7)
    many = judged(X)
    many.fill(Z, g, b)
    assert len(many.blocks()) == -(-len(looks_at(X, one)[0]) // 7) >= 8
    for a, c in zip(one.statistics(Z, g, b), many.statistics(Z, g, b), strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-4)
    for a, c in zip(one.curvature(Z, g, b), many.curvature(Z, g, b), strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-4)


def test_curvature_by_some_of_the_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.choice(np.array([-1, 1], np.int8), size=(4000, 8))
    Z, g = rng.choice([-1.0, 1.0], size=(2, 8)).astype(np.float32), np.array([0.5, -1.0])
    whole = judged(X).curvature(Z, g, np.zeros(8))
    monkeypatch.setattr(calibration, "CURVATURE_ENTRIES", 2**13)
    monkeypatch.setattr(judge, "_PRODUCTS", 1)
    for some, every in zip(judged(X).curvature(Z, g, np.zeros(8)), whole, strict=True):
        np.testing.assert_allclose(some, every, rtol=0.1, atol=100)


def test_without_patterns():
    X, _, _, b = drawn(6)
    s = judged(X).statistics(np.empty((0, 6), np.float32), np.empty(0), b)
    assert s.slope.shape == (0,)
    np.testing.assert_allclose(s.residual, (X - np.tanh(b)).sum(axis=0), atol=1e-5)
    assert pytest.approx(log_expit(2 * X * b).sum(), rel=1e-6) == s.L


def test_large_fields_do_not_overflow():
    X, Z, g, b = drawn(7)
    s = judged(X).statistics(Z, 1e4 * g, 1e4 * b)
    assert all(np.isfinite(part).all() for part in s)


@pytest.mark.parametrize("n_spins", [3, 38, 1000, 2500])
def test_the_kernels_against_double_precision(n_spins):
    rng = np.random.default_rng(8)
    X = rng.choice(np.array([-1, 0, 1], np.int8), size=(4500 // n_spins * 3, n_spins))
    X[:2] = [[1], [-1]]
    Z = rng.choice(np.array([-1, 1], np.float32), size=(2, n_spins))
    g, b = np.array([3.0, -2.0]) * np.sqrt(n_spins), rng.normal(size=n_spins)
    judge = judged(X)
    parts = [[part.astype(float) for part in block[:3]] for block in judge.residuals(Z, g, b)]
    S, R, W = (np.concatenate(part) for part in zip(*parts, strict=True))
    F, seen = S @ Z.T.astype(float), looks_at(X, judge)[1]
    h = b + (g / n_spins * F) @ Z - S * (g / n_spins).sum()
    np.testing.assert_allclose(R, seen * (S - np.tanh(h)), atol=2e-5)
    np.testing.assert_allclose(W, seen / np.cosh(h) ** 2, atol=2e-5)
    s = judge.statistics(Z, g, b)
    assert pytest.approx(log_expit(2 * S * h)[seen].sum(), rel=1e-6) == s.L
    assert judge.log_likelihood(Z, g, b) == pytest.approx(s.L, rel=1e-7)
    np.testing.assert_allclose(s.residual, R.sum(axis=0), atol=1e-4)
    np.testing.assert_allclose(s.variance, W.sum(axis=0), atol=1e-4)


def test_overlaps_are_kept_until_samples_or_patterns_change():
    X, Z, g, b = drawn(9, missing=0.3)
    judge, other = judged(X), judged(X)
    judge.statistics(Z, g, b)
    judge.fill(Z, g, b)
    other.fill(Z, g, b)
    assert judge.log_likelihood(Z, g, b) == other.log_likelihood(Z, g, b)
    Z[0] *= -1
    Z[1, :2] *= -1
    assert judge.log_likelihood(Z, g, b) == judged_at(X, Z, g, b, judge)


def judged_at(X, Z, g, b, judge):
    """L by loops, of the samples as a judge has filled them."""
    S, scored = looks_at(X, judge)
    return pytest.approx(log_likelihood(S, scored, Z, g, b), rel=1e-5)
