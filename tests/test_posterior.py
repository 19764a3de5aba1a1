"""Confidence of bits: posteriors in weak and in strong fields, and reasons in words."""

import numpy as np
import pytest
from scipy import stats

from dualtap.hopfield import HopfieldModel
from dualtap.metrics import calibration
from dualtap.recovery.reasons import reason, threshold_beta
from dualtap.schemes.rank_tap import SitePosterior
from dualtap.subspace import posterior, weak_field
from dualtap.subspace.bits import sweep
from dualtap.subspace.posterior import coefficients, strong_field_posterior
from dualtap.subspace.weak_field import WeakFieldPosterior, _draw_sites
from dualtap.theory import paramagnetic_limit
from teachers import blocks_of

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def signs(m):
    return np.where(np.asarray(m) < 0, -1, 1)


def teacher_of(n_spins, n_patterns, beta, seed=0, **options):
    return HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed, **options)


def with_gaps(X, missing, seed=9):
    return np.where(np.random.default_rng(seed).random(X.shape) < missing, 0, X)


def fair_spins(shape, seed=0):
    return np.random.default_rng(seed).choice([-1, 1], size=shape)


# --- Confidence in weak fields ------------------------------------------------------------------


def weak_posterior(teacher, X, fields=None):
    t = np.zeros(teacher.n_spins, np.float32)
    blocks = blocks_of(X)
    if fields is not None:
        t = np.tanh(fields).astype(np.float32)
        blocks = blocks.minus(t)
    zeta = teacher.patterns.astype(np.float32)
    posterior = WeakFieldPosterior(blocks, 1 - np.square(t), len(zeta))
    return posterior.drawn(posterior.means(zeta), np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(2))
def test_weak_posterior_of_one_pattern_is_near_the_bayes_limit(seed):
    teacher = teacher_of(1000, 1, 0.8, seed)
    m = weak_posterior(teacher, teacher.sample(1000, random_state=seed + 1)).m
    limit = paramagnetic_limit(0.8, 1.0)
    # 1000 bits, 4 % of them wrong: errors of 0.012 in the overlap; and the variance of the
    # overlaps of 1000 samples, which fluctuates by 4 %, moves it as much again.
    assert np.mean(signs(m) * teacher.patterns) == pytest.approx(limit.sign, abs=0.06)
    assert np.mean(np.square(m)) == pytest.approx(limit.magnetization, abs=0.08)
    assert calibration(m, teacher.patterns).error < 0.04


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_weak_posterior_of_several_patterns_is_calibrated(missing):
    teacher = teacher_of(400, 5, 0.8)
    X = with_gaps(teacher.sample(800, random_state=1), missing)
    found = weak_posterior(teacher, X)
    assert found.m.shape == found.Z.shape == (5, 400)
    # Of 2000 bits 1 % to 5 % are wrong: bins have errors of a few in a hundred, weighted by
    # their size; 0.01 in all.
    assert calibration(found.m, teacher.patterns).error < 0.04
    assert np.mean(signs(found.m) == teacher.patterns) > 0.93
    # Unsure bits exist, or calibration would say nothing.
    assert np.mean(np.abs(found.m) < 0.9) > 0.01


def test_weak_posterior_draws_by_its_means():
    teacher = teacher_of(400, 5, 0.75)
    m, Z, _ = weak_posterior(teacher, teacher.sample(400, random_state=1))
    assert set(np.unique(Z)) == {-1, 1}
    # The number of bits against their means, Σ (1-|m|)/2 ± its root, bits of a site being nearly
    # independent.
    against, expected = np.sum(signs(m) != Z), np.sum((1 - np.abs(m)) / 2)
    assert expected > 50
    assert abs(against - expected) < 5 * np.sqrt(expected)


def test_weak_posterior_with_fields():
    b = np.random.default_rng(5).uniform(-0.8, 0.8, size=400)
    teacher = teacher_of(400, 2, 0.9, fields=b)
    m = weak_posterior(teacher, teacher.sample(1200, random_state=1), b).m
    assert np.mean(signs(m) == teacher.patterns) > 0.93
    assert calibration(m, teacher.patterns).error < 0.04


def exact_site_means(F, L, D):
    """Means of the bits z of every site under exp(F·z - ½ D zᵀLz), over all of their states."""
    z = np.array(list(np.ndindex(*len(F) * (2,)))) * 2 - 1
    exponent = z @ F - 0.5 * np.einsum("sk,kl,sl->s", z, L, z)[:, None] * D
    weight = np.exp(exponent - exponent.max(axis=0))
    return z.T @ (weight / weight.sum(axis=0))


def test_bits_of_a_site_are_drawn_from_their_posterior():
    """Twelve kinds of sites, 500 of each: averages have errors of less than 0.01."""
    rng = np.random.default_rng(0)
    kinds = rng.normal(0, 1.2, size=(3, 12))
    A = rng.normal(0, 0.6, size=(3, 3))
    L = A @ A.T
    D = np.tile(np.linspace(0.3, 1, 12), 500).astype(np.float32)
    F = np.tile(kinds, 500).astype(np.float32)
    start = np.where(rng.random(F.shape) < 0.5, 1, -1).astype(np.float32)
    found = _draw_sites(SitePosterior(F, L), D, start, rng)
    exact = exact_site_means(kinds, L, D[:12])
    # Not what patterns without each other would have.
    assert np.abs(exact - np.tanh(kinds)).max() > 0.2
    m = found.m.reshape(3, 500, 12)
    np.testing.assert_allclose(m.mean(axis=1), exact, atol=0.02)
    # The last draw: ±1, with these means up to 1/√500.
    assert set(np.unique(found.Z)) == {-1, 1}
    np.testing.assert_allclose(found.Z.reshape(3, 500, 12).mean(axis=1), exact, atol=0.2)


def test_the_bit_of_one_pattern_needs_no_draws():
    F = np.linspace(-3, 3, 50, dtype=np.float32)[None]
    found = _draw_sites(
        SitePosterior(F, np.ones((1, 1))), np.ones(50, np.float32), F, np.random.default_rng(0)
    )
    np.testing.assert_allclose(found.m, np.tanh(F), rtol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_weak_means_do_not_depend_on_signs_and_order_of_patterns(missing):
    teacher = teacher_of(300, 3, 0.8)
    blocks = blocks_of(with_gaps(teacher.sample(600, random_state=1), missing))
    zeta = teacher.patterns.astype(np.float32)
    refined = WeakFieldPosterior(blocks, np.ones(300, np.float32), 3)
    m = refined.means(zeta)
    changed = refined.means(np.array([[1], [-1], [-1]], np.float32) * zeta[[2, 0, 1]])
    np.testing.assert_allclose(changed, [m[2], -m[0], -m[1]], atol=5e-3)
    # And it is where TAP stays: started there, bits move by 3e-4 on average at most, a few times.
    again = refined.means(m / np.float32(0.9))
    assert np.mean(np.abs(again - m)) < 3e-3


# --- Confidence in strong fields ----------------------------------------------------------------


def test_weak_means_by_passes_and_by_the_gram_matrix_of_the_spins(monkeypatch):
    teacher = teacher_of(150, 3, 0.8)
    X = teacher.sample(400, random_state=1)
    start, one = teacher.patterns.astype(np.float32), np.ones(150, np.float32)
    by_gram, by_passes = (blocks_of(X).minus(np.full(150, 0.01, np.float32)) for _ in range(2))
    m = WeakFieldPosterior(by_gram, one, 3).means(start)
    assert by_gram.knows_gram
    monkeypatch.setattr(weak_field, "_PASSES", 1)
    other = WeakFieldPosterior(by_passes, one, 3).means(start)
    assert not by_passes.knows_gram
    np.testing.assert_allclose(m, other, atol=1e-3)


def strong_posterior(teacher, X, fields=None):
    b = np.zeros(teacher.n_spins, np.float32) if fields is None else fields.astype(np.float32)
    zeta = teacher.patterns.astype(np.float32)
    rng = np.random.default_rng(0)
    return strong_field_posterior(blocks_of(X), zeta, teacher.strengths, b, rng)


@pytest.mark.parametrize("seed", range(2))
def test_two_samples_for_each_pattern_make_sure_and_unsure_bits(seed):
    teacher = teacher_of(500, 6, 2.0, seed)
    X = teacher.sample(12, random_state=seed + 1)
    found = strong_posterior(teacher, X)
    assert found.drawn
    agree = X[:6] == X[6:]  # the samples of pattern k are k and k + 6
    assert (~agree).sum() > 50
    size = np.abs(found.m)
    # Two spins of field x = 1.9 on the same side leave odds of e^{-4x}, 5e-4, but noise of a
    # site with six patterns and one of √(β/N) in x.
    assert size[agree].min() > 0.9
    assert size[agree].mean() > 0.99
    # On opposite sides they cancel, up to the difference of the two overlaps.
    assert size[~agree].mean() < 0.6
    np.testing.assert_array_equal(signs(found.m)[agree], X[:6][agree])
    assert calibration(found.m, teacher.patterns).error < 0.02


def test_coefficients_are_drawn_from_their_posterior(monkeypatch):
    """x | s, ζ ~ N(β ζs/N, β/N), N counting what was observed; bits are tested in test_bits."""
    teacher = teacher_of(300, 4, 2.0)
    X = with_gaps(teacher.sample(8, random_state=1), 0.3)
    blocks, noise = blocks_of(X), []

    def spy(blocks, Z, x, fields, *, rng=None, **options):
        if rng is not None:
            noise.append(x - coefficients(blocks, Z, np.float32(2.0)))
        return sweep(blocks, Z, x, fields, rng=rng, **options)

    monkeypatch.setattr(posterior, "sweep", spy)
    strong_posterior(teacher, X)
    z = np.stack(noise) * np.sqrt(blocks.n_observed / 2.0)[:, None]
    # At least 20 sweeps of 8 × 4 numbers.
    assert z.size > 600
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3


def test_a_field_explains_aligned_spins_as_well_as_a_bit_does():
    """b = ±3 holds its spins whatever the bit is: 20 samples a pattern leave it in doubt."""
    first, second = teacher_of(300, 2, 2.0).patterns
    # Along both patterns, so that every spin is aligned with every bit.
    b = np.where((first == second) & (np.arange(300) < 60), 3.0 * first, 0.0)
    teacher = teacher_of(300, 2, 2.0, fields=b)
    m = strong_posterior(teacher, teacher.sample(40, random_state=1), b).m
    # Each sample says log σ(2(b + x)) / σ(2(b - x)) ≈ 0.1 for the bit: tanh(1) = 0.76 in all.
    assert np.abs(m[:, b != 0]).mean() < 0.95
    assert np.abs(m[:, b == 0]).mean() > 0.99


def test_certain_bits_are_not_drawn():
    teacher = teacher_of(300, 2, 2.0)
    found = strong_posterior(teacher, teacher.sample(60, random_state=1))
    assert not found.drawn
    np.testing.assert_array_equal(signs(found.m), teacher.patterns)
    np.testing.assert_array_equal(found.Z, teacher.patterns)
    assert np.abs(found.m).min() > 0.99


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_drawing_the_few_bits_in_doubt_is_drawing_all(missing, monkeypatch):
    teacher = teacher_of(1000, 8, 2.0)
    X = with_gaps(teacher.sample(24, random_state=1), missing)
    few = strong_posterior(teacher, X)
    monkeypatch.setattr(posterior, "_FEW", 0)
    every = strong_posterior(teacher, X)
    assert few.drawn
    assert every.drawn
    unsure = np.abs(every.m) < 0.9
    assert 20 < unsure.sum() < 0.1 * unsure.size
    # Thirty draws that vary by 0.4 or less, twice.
    difference = few.m - every.m
    assert np.sqrt(np.mean(np.square(difference[unsure]))) < 0.15
    assert abs(difference[unsure].mean()) < 0.05
    assert np.abs(difference[~unsure]).mean() < 2e-3
    # The last draw is a state as likely as its means say.
    for found in (few, every):
        against, expected = np.sum(signs(found.m) != found.Z), np.sum((1 - np.abs(found.m)) / 2)
        assert abs(against - expected) < 5 * np.sqrt(expected)


def test_strong_posterior_with_gaps_and_fields_is_calibrated():
    b = np.random.default_rng(5).uniform(-0.5, 0.5, size=400)
    teacher = teacher_of(400, 4, 2.0, fields=b)
    X = with_gaps(teacher.sample(12, random_state=1), 0.3)
    m = strong_posterior(teacher, X, b).m
    # 1600 bits, most of them sure: an error of 0.005.
    assert calibration(m, teacher.patterns).error < 0.03
    assert np.mean(np.abs(m) < 0.9) > 0.02


def test_coefficients_are_overlaps_over_what_was_observed():
    zeta = fair_spins((2, 40)).astype(np.float32)
    X = with_gaps(np.stack([zeta[0], -zeta[1]]), 0.5)
    found = coefficients(blocks_of(X), zeta, np.float32(1.5))
    np.testing.assert_allclose(np.diag(found), [1.5, -1.5], rtol=1e-6)


# --- In words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_samples", "n_spins"), [(100, 400), (50, 50), (900, 100)])
def test_threshold_is_where_the_limit_departs_from_zero(n_samples, n_spins):
    beta = threshold_beta(n_samples, n_spins)
    assert n_spins * (1 / beta - 1) ** 2 == pytest.approx(n_samples)
    alpha = n_samples / n_spins
    assert paramagnetic_limit(0.9 * beta, alpha, tol=1e-9).sign < 1e-3
    assert paramagnetic_limit(min(1.1 * beta, 0.99), alpha).sign > 0.1


@pytest.mark.parametrize(
    ("n_patterns", "given", "n_left", "words"),
    [
        (3, 3, 0, "3 requested"),
        (2, 3, 0, "3 requested, but the data support only 2"),
        (1, None, 0, "minimum description length; residuals are consistent with"),
        (4, None, 1, "minimum description length; 1 direction remains above the"),
        (4, None, 5, "5 directions remain above the noise edge"),
        (0, None, 2, "no pattern shortens the description of independent spins; 2 directions"),
        (0, None, 0, "0.97 of the noise edge: no pattern, or β below 0.67"),
    ],
)
def test_reason_of_each_outcome(n_patterns, given, n_left, words):
    assert words in reason(n_patterns, 0, given, n_left, 0.97, (100, 400))
