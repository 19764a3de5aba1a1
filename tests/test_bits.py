"""Pattern bits by their conditional odds: the kernel against plain sums and enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from threadpoolctl import threadpool_limits

from dualtap.subspace.bits import LARGEST_COEFFICIENT, FewBits, sweep
from teachers import blocks_of

ONE, MINUS = np.float32(1), np.float32(-1)

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def log_probability(s, theta):
    """Return log P(s | θ); a missing spin says nothing."""
    return 0.0 if s == 0 else s * theta - np.log(2 * np.cosh(theta))


def plain_sweep(S, V, X, fields, n_bits):
    """The same sweep in plain Python: site by site, bit by bit, sums of exact logs."""
    V, m = V.astype(float), np.empty((n_bits, S.shape[1]))
    for i in range(S.shape[1]):
        for mu in range(n_bits):
            odds = 0.0
            for s, x in zip(S[:, i], X.astype(float), strict=True):
                rest = sum(x[k] * V[k, i] for k in range(len(V)) if k != mu) + fields[i]
                odds += log_probability(s, rest + x[mu]) - log_probability(s, rest - x[mu])
            m[mu, i] = np.tanh(odds / 2)
            V[mu, i] = 1 if m[mu, i] > 0 else -1
    return V, m


def problem(n_samples, n_spins, n_bits, n_extra=0, missing=0.0, size=1.0, with_fields=True, seed=0):
    rng = np.random.default_rng(seed)
    S = rng.choice([-1, 1], size=(n_samples, n_spins))
    S[rng.random(S.shape) < missing] = 0
    S[0, 0] = 1  # something must be observed
    V = rng.choice([ONE, MINUS], size=(n_bits + n_extra, n_spins))
    V[n_bits:] = rng.normal(size=(n_extra, n_spins))
    X = rng.normal(0, size, size=(n_samples, n_bits + n_extra)).astype(np.float32)
    b = rng.normal(0, 0.5 * with_fields, size=n_spins).astype(np.float32)
    return S, V, X, b


# --- Against plain sums -------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    n_samples=st.integers(1, 5),
    n_spins=st.integers(2, 4),
    n_bits=st.integers(1, 3),
    n_extra=st.integers(0, 2),
    missing=st.sampled_from([0.0, 0.3, 0.8]),
    size=st.sampled_from([0.1, 1.0, 2.0]),
    with_fields=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_sweep_is_the_plain_one(n_samples, n_spins, n_bits, seed, **options):
    S, V, X, b = problem(n_samples, n_spins, n_bits, seed=seed, **options)
    found, m = sweep(blocks_of(S), V, X, b, n_bits=n_bits)
    expected, means = plain_sweep(S, V, np.clip(X, -5, 5), b, n_bits)
    np.testing.assert_allclose(m, means, atol=1e-4)
    # A bit may go either way where it is undecided to single precision; later bits of the site
    # then follow, so the whole site is left out.
    decided = (np.abs(means) > 1e-4).all(axis=0)
    np.testing.assert_array_equal(found[:, decided], expected[:, decided].astype(np.float32))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_many_samples_and_patterns(missing):
    """Products over several blocks of 32 samples, logs taken in between."""
    S, V, X, b = problem(2500, 6, 5, 1, missing=missing, size=0.1)
    assert 4 * np.abs(X).sum(axis=0).min() > 700  # more than a double holds
    m = sweep(blocks_of(S), V, X, b, n_bits=5)[1]
    expected = plain_sweep(S, V, X, b, 5)[1]
    assert np.abs(expected).min() < 0.9 < np.abs(expected).max()
    np.testing.assert_allclose(m, expected, atol=1e-3)


@pytest.mark.parametrize("sign", [-1, 1])
def test_large_coefficients_stay_finite_and_certain(sign):
    rng = np.random.default_rng(0)
    zeta = rng.choice([ONE, MINUS], size=(3, 50))
    X = np.float32(sign * 50) * np.eye(3, dtype=np.float32)[rng.integers(3, size=600)]
    S = np.where(X @ zeta < 0, -1, 1)
    V, m = sweep(blocks_of(S), -zeta, X, np.zeros(50, np.float32))
    assert np.isfinite(m).all()
    np.testing.assert_array_equal(V, zeta)
    np.testing.assert_allclose(m, zeta, atol=1e-6)


def test_coefficients_are_cut_at_the_largest():
    S, V, X, b = problem(4, 4, 2)
    large = X.copy()
    large[1, 0], large[2, 1] = 60, -60
    cut = np.clip(large, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
    for found, expected in zip(
        sweep(blocks_of(S), V, large, b), sweep(blocks_of(S), V, cut, b), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_sweep_leaves_its_arguments_and_real_rows_alone():
    S, V, X, b = problem(20, 10, 3, 2, missing=0.2)
    before = [x.copy() for x in (V, X, b)]
    found, m = sweep(blocks_of(S), V, X, b, n_bits=3)
    for x, y in zip((V, X, b), before, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(found[3:], V[3:])
    assert m.shape == (3, 10)
    np.testing.assert_array_equal(found[:3], np.where(m > 0, 1, -1))


def test_a_sweep_never_lowers_the_likelihood():
    S, V, X, b = problem(100, 50, 4, 1, missing=0.3, size=0.5)

    def likelihood(V):
        theta = X.astype(float) @ V + b
        return np.sum(np.where(S == 0, 0, S * theta - np.logaddexp(theta, -theta)))

    values = [likelihood(V)]
    for _ in range(4):
        V, _ = sweep(blocks_of(S), V, X, b, n_bits=4)
        values.append(likelihood(V))
    assert np.diff(values).min() > -1e-3
    assert values[1] > values[0] + 1


def test_only_the_bits_asked_for_are_visited():
    S, V, X, b = problem(40, 30, 4, 1, missing=0.2, size=0.3)
    visit = np.random.default_rng(1).random((4, 30)) < 0.3
    visit[:, :3] = False  # sites that are not looked at
    found, m = sweep(blocks_of(S), V, X, b, n_bits=4, visit=visit)
    np.testing.assert_array_equal(found[:4][~visit], V[:4][~visit])
    np.testing.assert_array_equal(m[~visit], V[:4][~visit])
    np.testing.assert_array_equal(found[:4][visit], np.where(m > 0, 1, -1)[visit])
    # One bit of a site: the others being as they were, it is the first bit of a plain sweep.
    last = np.zeros_like(visit)
    last[3] = True
    order = [3, 0, 1, 2, 4]
    expected = sweep(blocks_of(S), V[order], X[:, order], b, n_bits=4)[1][0]
    alone = sweep(blocks_of(S), V, X, b, n_bits=4, visit=last)[1][3]
    np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_nothing_to_visit():
    S, V, X, b = problem(5, 4, 2)
    found, m = sweep(blocks_of(S), V, X, b, visit=np.zeros((2, 4), dtype=bool))
    np.testing.assert_array_equal(found, V)
    np.testing.assert_array_equal(m, V)


# --- Padding, chunks, threads -------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", [1, 63, 64, 65, 130])
@pytest.mark.parametrize("n_empty", [1, 64, 100])
def test_samples_that_are_all_missing_change_nothing(n_samples, n_empty):
    S, V, X, b = problem(n_samples, 8, 3, missing=0.2, size=0.3)
    empty = np.zeros((n_empty, 8), dtype=int)
    x = np.random.default_rng(1).normal(size=(n_empty, 3)).astype(np.float32)
    found = sweep(blocks_of(S), V, X, b)
    padded = sweep(blocks_of(np.concatenate([S, empty])), V, np.concatenate([X, x]), b)
    np.testing.assert_allclose(padded[1], found[1], atol=1e-5)
    np.testing.assert_array_equal(padded[0], found[0])


def test_sites_in_chunks_are_the_sites_together(monkeypatch):
    S, V, X, b = problem(100, 30, 3, 1, missing=0.2, size=0.3)
    found = [sweep(blocks_of(S), V, X, b, n_bits=3, rng=np.random.default_rng(0))]
    monkeypatch.setattr("dualtap.subspace.bits._ENTRIES", 128 * 7)
    found.append(sweep(blocks_of(S), V, X, b, n_bits=3, rng=np.random.default_rng(0)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-5)


def test_a_sweep_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("dualtap.subspace.bits._WORTH_THREADS", 0)
    S, V, X, b = problem(600, 1000, 4, missing=0.2, size=0.1)
    found = []
    for n in (1, 2):
        with threadpool_limits(n):
            blocks = blocks_of(S)
        with threadpool_limits(1):  # as callers do
            found.append(sweep(blocks, V, X, b, rng=np.random.default_rng(0)))
    monkeypatch.undo()
    found.append(sweep(blocks, V, X, b, rng=np.random.default_rng(0)))
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


# --- Draws --------------------------------------------------------------------------------------

N_COPIES = 4000
"""Sites with the same samples: as many independent draws of the same bits."""


def copies(n_bits, missing, seed):
    """Five samples of one site, repeated, and coefficients at which no bit is certain."""
    S, V, X, b = problem(5, 2, n_bits, 1, missing=missing, size=0.4, seed=seed)
    fields = np.full(N_COPIES, b[0])
    start = np.random.default_rng(seed).choice([ONE, MINUS], size=(n_bits + 1, N_COPIES))
    start[n_bits:] = V[n_bits:, :1]
    return np.repeat(S[:, :1], N_COPIES, axis=1), start, X, fields


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_drawn_bits_have_the_probabilities_of_their_means(seed, missing):
    S, V, X, b = copies(1, missing, seed)
    found, m = sweep(blocks_of(S), V, X, b, n_bits=1, rng=np.random.default_rng(seed))
    # With one bit its conditional probability does not depend on where it was.
    np.testing.assert_allclose(m, m[0, 0], atol=1e-6)
    expected = plain_sweep(S[:, :1], V[:, :1], X, b, 1)[1][0, 0]
    assert m[0, 0] == pytest.approx(expected, abs=1e-5)
    n_up = int((found[0] > 0).sum())
    assert stats.binomtest(n_up, N_COPIES, (1 + expected) / 2).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_gibbs_sweeps_sample_the_exact_posterior(seed, missing):
    """All 2^P states of a site by enumeration; 4000 independent chains of 25 sweeps."""
    n_bits = 3
    S, V, X, b = copies(n_bits, missing, seed)
    weights = []
    for state in product([-1, 1], repeat=n_bits):
        theta = X.astype(float) @ np.array([*state, V[n_bits, 0]]) + b[0]
        weights.append(sum(log_probability(s, t) for s, t in zip(S[:, 0], theta, strict=True)))
    expected = np.exp(weights - np.max(weights))
    expected *= N_COPIES / expected.sum()
    blocks, rng = blocks_of(S), np.random.default_rng(seed)
    total = np.zeros(n_bits)
    for k in range(25):
        V, m = sweep(blocks, V, X, b, n_bits=n_bits, rng=rng)
        total += m.mean(axis=1) * (k >= 10)
    index = (V[:n_bits] > 0).T.astype(int) @ [4, 2, 1]
    counts = np.bincount(index, minlength=8)
    rare = expected < 10  # counted together, as chi-square wants it
    together = [np.append(x[~rare], x[rare].sum()) for x in (counts, expected)]
    assert len(together[0]) > 4
    assert stats.chisquare(*(x[: None if rare.any() else -1] for x in together)).pvalue > 1e-3
    # Averages of conditional means are the posterior means, with less noise than the draws:
    # fifteen sweeps of 4000 chains, correlated at most fully, five errors of 1/√4000.
    states = np.array(list(product([-1, 1], repeat=n_bits)))
    np.testing.assert_allclose(total / 15, expected @ states / N_COPIES, atol=5 / np.sqrt(N_COPIES))


def test_draws_follow_their_generator():
    S, V, X, b = copies(2, 0.0, 0)
    blocks = blocks_of(S)
    first, again, other = (
        sweep(blocks, V, X, b, n_bits=2, rng=np.random.default_rng(k))[0] for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


# --- Few bits, drawn over and over --------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_samples", [5, 32, 75])
def test_few_bits_have_the_means_of_a_sweep(n_samples, missing):
    S, V, X, b = problem(n_samples, 50, 5, missing=missing, size=0.4)
    few = FewBits(S.astype(np.float32), V, V, b)
    visit = np.zeros((5, 50), dtype=bool)
    visit[np.arange(50) % 5, np.arange(50)] = True  # one bit a site: none depends on another
    few.draw(X, np.nonzero(visit.T), np.random.default_rng(0))
    expected = sweep(blocks_of(S), V, X, b, visit=visit)[1]
    np.testing.assert_allclose(few.m[visit], expected[visit], atol=1e-5)
    np.testing.assert_array_equal(few.m[~visit], V[~visit])
    np.testing.assert_array_equal(few.patterns[~visit], V[~visit])
    assert (few.patterns[visit] != V[visit]).any()
    np.testing.assert_array_equal(few.overlaps, few.patterns @ S.T.astype(np.float32))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_few_bits_are_drawn_from_the_exact_posterior(missing):
    """Two bits are drawn, the third stays: chains of sweeps against enumeration."""
    S, V, X, b = copies(3, missing, 0)
    Z, rng = V[:3].copy(), np.random.default_rng(0)
    Z[2] = 1
    x = X[:, :3]
    few = FewBits(S.astype(np.float32), Z, Z, b)
    visit = np.nonzero(np.repeat([[True, True, False]], N_COPIES, axis=0))
    for _ in range(15):
        few.draw(x, visit, rng)
    weights = []
    for state in product([-1, 1], repeat=2):
        theta = x.astype(float) @ np.array([*state, 1]) + b[0]
        weights.append(sum(log_probability(s, t) for s, t in zip(S[:, 0], theta, strict=True)))
    expected = np.exp(weights - np.max(weights))
    expected *= N_COPIES / expected.sum()
    counts = np.bincount((few.patterns[:2] > 0).T.astype(int) @ [2, 1], minlength=4)
    assert expected.min() > 10
    assert stats.chisquare(counts, expected).pvalue > 1e-3
