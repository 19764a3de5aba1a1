"""All patterns at once: confidence in each phase, recovery from end to end, and its words."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from threadpoolctl import threadpool_limits

from dualtap.hopfield import HopfieldModel
from dualtap.metrics import calibration, match
from dualtap.recovery import joint, posterior
from dualtap.recovery.biased import description_gain
from dualtap.recovery.bits import sweep
from dualtap.recovery.joint import recover
from dualtap.recovery.posterior import (
    coefficients,
    confidence_in_space,
    strong_field_posterior,
)
from dualtap.recovery.reasons import reason, threshold_beta
from dualtap.recovery.rotate import depth, row_basis
from dualtap.recovery.task import Regime, Task
from dualtap.recovery.temperature import best_temperature
from dualtap.recovery.weak_field import WeakFieldPosterior, _draw_sites
from dualtap.schemes.rank_tap import SitePosterior
from dualtap.spins import as_spins, builder
from dualtap.spins.blocks import Blocks
from dualtap.theory import paramagnetic_limit


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """BLAS threads that wait for each other on a busy machine make small products slow."""
    with threadpool_limits(1):
        yield


def blocks_of(X):
    return Blocks(as_spins(X, zero_is_missing=True))


def recovered(X, seed=0, **options):
    return recover(Task(as_spins(X, zero_is_missing=True), np.random.default_rng(seed), **options))


def signs(m):
    return np.where(np.asarray(m) < 0, -1, 1)


def smallest_overlap(found, patterns):
    return match(signs(found.m), patterns).overlaps.min()


def teacher_of(n_spins, n_patterns, beta, seed=0, **options):
    return HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed, **options)


def with_gaps(X, missing, seed=9):
    return np.where(np.random.default_rng(seed).random(X.shape) < missing, 0, X)


def coins(shape, seed=0):
    return np.random.default_rng(seed).choice([-1, 1], size=shape)


# --- Confidence in weak fields ------------------------------------------------------------------


def weak_posterior(teacher, X, fields=None):
    b = np.zeros(teacher.n_spins, np.float32) if fields is None else fields.astype(np.float32)
    zeta = teacher.patterns.astype(np.float32)
    posterior = WeakFieldPosterior(blocks_of(X), b, len(zeta))
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
    refined = WeakFieldPosterior(blocks, np.zeros(300, np.float32), 3)
    m = refined.means(zeta)
    changed = refined.means(np.array([[1], [-1], [-1]], np.float32) * zeta[[2, 0, 1]])
    np.testing.assert_allclose(changed, [m[2], -m[0], -m[1]], atol=5e-3)
    # And it is where TAP stays: started there, bits move by 3e-4 on average at most, a few times.
    again = refined.means(m / np.float32(0.9))
    assert np.mean(np.abs(again - m)) < 3e-3


# --- Confidence in strong fields ----------------------------------------------------------------


def strong_posterior(teacher, X, fields=None):
    b = np.zeros(teacher.n_spins, np.float32) if fields is None else fields.astype(np.float32)
    zeta = teacher.patterns.astype(np.float32)
    rng = np.random.default_rng(0)
    return strong_field_posterior(blocks_of(X), zeta, teacher.beta, b, rng)


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
            noise.append(x - coefficients(blocks, Z, 2.0))
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
    zeta = coins((2, 40)).astype(np.float32)
    X = with_gaps(np.stack([zeta[0], -zeta[1]]), 0.5)
    found = coefficients(blocks_of(X), zeta, 1.5)
    np.testing.assert_allclose(np.diag(found), [1.5, -1.5], rtol=1e-6)


# --- Confidence in a space ----------------------------------------------------------------------


def test_confidence_grows_with_the_projection():
    rng = np.random.default_rng(0)
    zeta = coins((4, 300)).astype(np.float32)
    u = row_basis(zeta + rng.normal(0, 0.8, size=zeta.shape))
    m = confidence_in_space(zeta, u)
    projection = zeta * ((zeta @ u.T) @ u)
    for k in range(4):
        order = np.argsort(projection[k])
        assert np.diff(np.abs(m[k])[order]).min() >= 0
        assert np.ptp(np.abs(m[k])) > 0.1
    np.testing.assert_array_equal(signs(m), zeta)  # signs are the pattern's
    assert np.abs(m).max() <= 1


def test_confidence_in_a_space_is_calibrated():
    """Patterns with Gaussian noise, rotated: the signs of projections, and how sure they are."""
    rng = np.random.default_rng(0)
    zeta = coins((5, 2000))
    # Noise of 0.8 makes one bit in nine wrong.
    noisy = zeta + rng.normal(0, 0.8, size=zeta.shape)
    u = row_basis(np.linalg.qr(rng.normal(size=(5, 5)))[0] @ noisy)
    Z = signs((zeta.astype(np.float32) @ u.T) @ u).astype(np.float32)
    wrong = np.mean(zeta != Z)
    assert wrong > 0.02
    error = calibration(confidence_in_space(Z, u), zeta).error
    # The formula neglects that Z itself was made from the noise: less than half of the errors.
    assert error < max(0.5 * wrong, 0.03)


def test_a_pattern_in_the_space_is_certain_everywhere():
    zeta = coins((2, 100)).astype(np.float32)
    m = confidence_in_space(zeta, row_basis(zeta))
    assert depth(zeta, row_basis(zeta)) == pytest.approx(1)
    np.testing.assert_allclose(m, zeta, atol=1e-6)


# --- From end to end ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_few_samples_of_five_states(seed):
    teacher = teacher_of(500, 5, 2.0, seed)
    found = recovered(teacher.sample(30, random_state=seed + 1))
    assert len(found.m) == 5
    assert found.regime is Regime.CLUSTERED
    # Six samples for each bit, each wrong in 2 %.
    assert smallest_overlap(found, teacher.patterns) > 0.99
    assert found.beta == pytest.approx(2.0, rel=0.05)
    assert not found.fields.any()


def test_signs_of_samples_do_not_matter():
    teacher = teacher_of(500, 5, 2.0)
    X = teacher.sample(40, random_state=1)
    flipped = recovered(coins((40, 1)) * X)
    straight = recovered(X)
    assert len(flipped.m) == 5
    assert smallest_overlap(flipped, teacher.patterns) > 0.99
    assert match(signs(flipped.m), signs(straight.m)).overlaps.min() > 0.99
    assert flipped.beta == pytest.approx(straight.beta, rel=0.01)


@pytest.fixture(scope="module")
def unequal():
    """From 2 % to 40 % of 250 samples: the rarest pattern has five."""
    teacher = teacher_of(500, 5, 2.0)
    label = np.repeat(np.arange(5), [100, 75, 50, 20, 5])
    return teacher, teacher.sample(250, start=teacher.patterns[label], random_state=1)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.5])
def test_unequal_weights(unequal, missing):
    teacher, X = unequal
    found = recovered(with_gaps(X, missing))
    assert len(found.m) == 5
    overlaps = match(signs(found.m), teacher.patterns).overlaps
    assert overlaps[:4].min() > 0.99
    # Half of five samples: a bit has no spin at all in 3 %, and one or two often.
    assert overlaps[4] > 0.85
    assert calibration(found.m, teacher.patterns).error < 0.02
    assert found.beta == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("missing", [0.3, 0.5])
def test_missing_entries(missing):
    teacher = teacher_of(400, 5, 2.0)
    found = recovered(with_gaps(teacher.sample(100, random_state=1), missing))
    assert len(found.m) == 5
    assert smallest_overlap(found, teacher.patterns) > 0.97
    assert found.beta == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(2))
def test_paramagnet(missing, seed):
    teacher = teacher_of(400, 4, 0.8, seed)
    found = recovered(with_gaps(teacher.sample(800, random_state=seed + 1), missing))
    assert len(found.m) == 4
    assert found.regime is Regime.WEAK
    # For one pattern the limit is 0.99 at α = 2, and 0.94 at β = 0.7, where correlations of the
    # patterns and gaps may put the weakest direction.
    assert smallest_overlap(found, teacher.patterns) > 0.85
    assert calibration(found.m, teacher.patterns).error < 0.04
    assert found.beta == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("start", ["random", "patterns"])
def test_just_below_the_critical_temperature(start):
    teacher = teacher_of(500, 3, 1.2)
    found = recovered(teacher.sample(400, start=start, random_state=1))
    assert len(found.m) == 3
    assert found.regime in (Regime.MIXED, Regime.CLUSTERED)
    assert smallest_overlap(found, teacher.patterns) > 0.97
    assert found.beta == pytest.approx(1.2, rel=0.05)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("n_spins", "n_patterns", "n_samples", "beta"), [(500, 5, 300, 4.0), (300, 3, 200, 5.0)]
)
def test_mixtures_at_low_temperature_are_no_patterns(n_spins, n_patterns, n_samples, beta, seed):
    """From random starts many samples end in mixtures, and hardly a spin is out of line."""
    teacher = teacher_of(n_spins, n_patterns, beta, seed)
    found = recovered(teacher.sample(n_samples, start="random", random_state=seed + 1))
    assert len(found.m) < 2 * n_patterns
    assert smallest_overlap(found, teacher.patterns) > 0.9


def test_bits_taken_for_certain_are_right():
    """Fields on bits come in part from samples of other patterns, and may mislead by chance."""
    n_wrong = 0
    for seed in range(4):
        teacher = teacher_of(1000, 20, 2.0, seed=5 + seed)
        m = recovered(with_gaps(teacher.sample(200, random_state=6), 0.3)).m
        overlap = m @ teacher.patterns.T
        own = np.argmax(np.abs(overlap), axis=1)
        truth = np.sign(overlap[np.arange(20), own])[:, None] * teacher.patterns[own]
        certain = np.abs(m) > 0.9995
        assert certain.mean() > 0.95
        n_wrong += np.count_nonzero(certain & (signs(m) != truth))
    assert n_wrong <= 7  # of 80 000; 15 if fields were taken as they are


def test_states_that_mix_patterns():
    """Samples with normal coefficients on four patterns: none of them near a single one."""
    rng = np.random.default_rng(0)
    zeta = coins((4, 400))
    x = rng.normal(0, 0.7, size=(500, 4))
    X = np.where(rng.random((500, 400)) < (1 + np.tanh(x @ zeta)) / 2, 1, -1)
    found = recovered(X)
    assert len(found.m) == 4
    assert found.regime is Regime.MIXED
    assert smallest_overlap(found, zeta) > 0.97


def test_site_fields_beside_patterns():
    b = np.random.default_rng(10).uniform(-0.5, 0.5, size=400)
    teacher = teacher_of(400, 4, 2.0, fields=b)
    found = recovered(teacher.sample(1200, random_state=1))
    assert len(found.m) == 4  # no pattern for the fields
    assert smallest_overlap(found, teacher.patterns) > 0.99
    # At β = 2 spins are worth 1 - tanh² = 0.085 each: an error of 1/√(1200·0.085) = 0.1 on
    # fields of 0.29, a correlation of 0.945.
    assert np.corrcoef(found.fields, b)[0, 1] > 0.9
    assert found.beta == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("n_samples", [100, 250])
@pytest.mark.parametrize("seed", range(2))
def test_a_fifth_of_coins(n_samples, seed):
    teacher = teacher_of(500, 5, 2.0, seed)
    X = teacher.sample(n_samples, random_state=seed + 1)
    X[: n_samples // 5] = coins((n_samples // 5, 500), seed + 100)
    found = recovered(X)
    assert len(found.m) == 5
    assert smallest_overlap(found, teacher.patterns) > 0.99
    assert found.beta == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("shape", [(100, 400), (400, 400), (500, 100)])
def test_noise_has_no_pattern(shape):
    n_found = 0
    for seed in range(5):
        found = recovered(coins(shape, seed + 20))
        n_found += len(found.m) > 0
        if not len(found.m):
            assert found.regime is Regime.NOTHING
            assert found.m.shape == (0, shape[1])
            assert np.isnan(found.beta)
            assert not found.fields.any()
    # One alarm in 25: more than one among five in 2 %, and the seeds are fixed.
    assert n_found <= 1


def test_noise_keeps_a_given_beta():
    assert recovered(coins((50, 100), 20), beta=1.5).beta == 1.5


@pytest.mark.parametrize("size", [0.3, 0.5])
def test_weakly_biased_spins_are_no_pattern(size):
    n_found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        b = rng.uniform(-size, size, size=300)
        X = np.where(rng.random((400, 300)) < (1 + np.tanh(b)) / 2, 1, -1)
        found = recovered(X)
        n_found += len(found.m) > 0
        # Errors of 1/√400 = 0.05 on fields of 0.17 or 0.29.
        assert np.corrcoef(found.fields, b)[0, 1] > 0.9
    # The noise law gives an alarm in 5 % of such data: more than three of ten in 1 of 1000.
    assert n_found <= 3


def test_strongly_biased_spins_are_at_most_one_pattern():
    """Fields of ±1 carry enough signal for the strong branch, which sees one direction.

    Its signs are deeper in it than chance, so they may come back as a pattern with fields; then
    they must be the signs of the means, and nothing else.
    """
    rng = np.random.default_rng(0)
    b = rng.uniform(-1, 1, size=300)
    X = np.where(rng.random((400, 300)) < (1 + np.tanh(b)) / 2, 1, -1)
    found = recovered(X)
    assert len(found.m) <= 1
    if len(found.m):
        clear = np.abs(b) > 0.2
        assert abs(np.mean((signs(found.m) * np.sign(b))[:, clear])) > 0.95


# --- Without a search ---------------------------------------------------------------------------


@pytest.fixture
def no_search(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("patterns were searched for")

    monkeypatch.setattr(joint, "search", fail)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_spins", "n_patterns", "n_samples"), [(500, 5, 100), (1000, 20, 400)])
def test_clusters_beside_coins_are_seen_at_first_sight(
    n_spins, n_patterns, n_samples, seed, no_search
):
    teacher = teacher_of(n_spins, n_patterns, 2.0, seed)
    X = teacher.sample(n_samples, random_state=seed + 1)
    X[: n_samples // 5] = coins((n_samples // 5, n_spins), seed + 100)
    found = recovered(X)
    assert len(found.m) == n_patterns
    assert found.spectrum.n_signal > n_patterns  # coins stand out of the little noise
    assert smallest_overlap(found, teacher.patterns) > 0.99
    assert found.beta == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("n_patterns", [None, 6])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(2))
def test_clusters_alone_are_seen_at_first_sight(n_patterns, missing, seed, no_search):
    teacher = teacher_of(500, 6, 2.0, seed)
    X = with_gaps(teacher.sample(90, random_state=seed + 1), missing)
    found = recovered(X, n_patterns=n_patterns)
    assert len(found.m) == 6
    assert smallest_overlap(found, teacher.patterns) > 0.99


@pytest.mark.parametrize("options", [{"start": "samples"}, {"effort": 2}])
def test_who_asks_for_a_search_gets_one(options, no_search):
    X = teacher_of(300, 3, 2.0).sample(60, random_state=1)
    with pytest.raises(AssertionError, match="searched"):
        recovered(X, **options)


# --- States that mix patterns -------------------------------------------------------------------


def triples(n_spins, n_patterns, n_samples, share, seed=0):
    """Samples near patterns, a share of them in states ±a ± b ± c instead; the patterns first."""
    rng = np.random.default_rng(seed)
    zeta = coins((n_patterns, n_spins), seed + 5)
    X = zeta[np.arange(n_samples) % n_patterns] * rng.choice([-1, 1], size=(n_samples, 1))
    for a in rng.permutation(n_samples)[: int(share * n_samples)]:
        three = zeta[rng.permutation(n_patterns)[:3]]
        X[a] = np.sign(rng.choice([-1, 1], size=3) @ three)
    X[rng.random(X.shape) < 0.05] *= -1
    return zeta, X


@pytest.mark.parametrize("n_patterns", [None, 5])
@pytest.mark.parametrize("seed", range(2))
def test_products_of_three_patterns_are_not_taken_for_patterns(n_patterns, seed):
    """(a + b + c - abc)/2 is where they lie: the space has ten vectors abc beside five patterns."""
    zeta, X = triples(1000, 5, 400, 0.2, seed)
    found = recovered(X, n_patterns=n_patterns)
    assert len(found.m) == 5
    assert smallest_overlap(found, zeta) > 0.99


def test_the_test_above_is_not_empty(monkeypatch):
    monkeypatch.setattr(joint, "are_products", lambda Z: False)
    _, X = triples(1000, 5, 400, 0.2)
    assert len(recovered(X).m) > 5


@pytest.mark.parametrize("n_more", [0, 1, 12])
def test_a_state_is_a_pattern_if_it_has_samples(n_more):
    """A state sign(a + b + c) whose patterns have no samples of their own."""
    teacher = teacher_of(500, 4, 2.0)
    X = teacher.sample(80, random_state=1)
    state = np.sign(coins((3, 500), 7).sum(axis=0))
    X = np.vstack([X, with_flips(np.repeat(state[None], n_more, axis=0), 0.03)])
    found = recovered(X)
    assert len(found.m) == (5 if n_more > 1 else 4)
    assert smallest_overlap(found, teacher.patterns) > 0.99
    if n_more > 1:
        assert np.abs(signs(found.m) @ state).max() / 500 > 0.97


def with_flips(X, share, seed=3):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, -X, X)


def supported(X, Z):
    task = Task(as_spins(X), np.random.default_rng(0))
    blocks = blocks_of(X)
    overlaps = (X @ Z.T / X.shape[1]).astype(np.float32)
    return joint._supported(blocks, Z.astype(np.float32), overlaps, task).tolist()


def test_a_pattern_near_one_sample_has_no_support():
    zeta = coins((4, 500))
    X = with_flips(np.repeat(zeta, [20, 20, 2, 1], axis=0), 0.03)
    assert supported(X, zeta) == [True, True, True, False]
    # Order and signs are free.
    assert supported(-X[::-1], -zeta[[3, 0, 2, 1]]) == [False, True, True, True]
    # Nor has one that coins happen to be nearest to.
    X = np.vstack([X[:-1], coins((10, 500), 5)])
    assert supported(X, zeta) == [True, True, True, False]


def test_if_no_pattern_has_two_samples_all_are_kept():
    zeta = coins((3, 500))
    assert supported(zeta, zeta) == [True, True, True]


def test_a_pattern_near_none_is_kept_if_it_pays():
    """Samples lean on a pattern of their own, and a little less on one that they share."""
    rng = np.random.default_rng(0)
    zeta = coins((4, 500))
    own = np.repeat(zeta[:3], 25, axis=0)
    shared = rng.choice([-1, 1], size=(75, 1)) * zeta[3]
    T = np.tanh(1.2 * own + 0.8 * shared)
    X = np.where(rng.random(T.shape) < (1 + T) / 2, 1, -1)
    assert np.argmax(np.abs(X @ zeta.T), axis=1).max() == 2  # never the shared one
    assert supported(X, zeta) == [True, True, True, True]


def test_a_description_is_shorter_by_what_patterns_explain():
    zeta = coins((4, 500)).astype(np.float32)
    X = with_flips(np.repeat(zeta[:3], 20, axis=0), 0.05).astype(np.int8)
    task = Task(as_spins(X), np.random.default_rng(0))
    for k in range(1, 5):
        likelihood = best_temperature(X, zeta[:k])[1]
        gain = description_gain(likelihood, k, 60, with_fields=False)
        assert task.shortening(zeta[:k]) == pytest.approx(gain)
    gains = [task.shortening(zeta[:k]) for k in range(1, 5)]
    assert gains[0] < gains[1] < gains[2] > gains[3]
    assert task.shortening(-zeta[[2, 0, 1]]) == pytest.approx(gains[2], rel=1e-5)


# --- Bits and bytes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_spins", "n_patterns", "beta", "n_samples"),
    [(300, 3, 0.8, 700), (300, 4, 2.0, 80), (200, 2, 0.8, 1500), (200, 4, 2.0, 1500)],
)
def test_bits_give_what_bytes_give(n_spins, n_patterns, beta, n_samples, monkeypatch):
    """Also more samples than a Gram matrix is made of, and fewer spins."""
    teacher = teacher_of(n_spins, n_patterns, beta)
    X = teacher.sample(n_samples, random_state=1)
    dense = recovered(X)
    monkeypatch.setattr(builder, "DENSE", 0)
    monkeypatch.setattr("dualtap.recovery.singular._WORTH_COUNTING", 0)
    packed = recovered(X)
    assert packed.regime is dense.regime
    assert len(packed.m) == len(dense.m) == n_patterns
    order = match(signs(packed.m), signs(dense.m))
    m = order.sign[:, None] * packed.m[order.index]
    # Rounded in another order; where bits are drawn a draw may turn.
    assert np.mean(np.abs(m - dense.m)) < 2e-3
    assert order.overlaps.min() > 0.99
    assert packed.beta == pytest.approx(dense.beta, rel=1e-3)


# --- A number of patterns is given --------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.8, 2.0])
@pytest.mark.parametrize("n_patterns", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("effort", [1, 2])
def test_as_many_patterns_as_asked_for(beta, n_patterns, effort):
    teacher = teacher_of(400, 3, beta)
    X = teacher.sample(600 if beta < 1 else 60, random_state=1)
    found = recovered(X, n_patterns=n_patterns, effort=effort)
    assert found.m.shape == (n_patterns, 400)
    assert np.linalg.matrix_rank(signs(found.m)) == n_patterns
    assert 0 < found.beta < 50
    if n_patterns >= 3:  # what is there is among them
        assert smallest_overlap(found, teacher.patterns) > 0.85


def test_patterns_can_be_asked_of_noise():
    found = recovered(coins((50, 400)), n_patterns=3)
    assert found.m.shape == (3, 400)
    assert np.isfinite(found.m).all()


@pytest.mark.parametrize("beta", [0.8, 2.0])
def test_a_given_beta_is_kept(beta):
    teacher = teacher_of(400, 3, beta)
    X = teacher.sample(600 if beta < 1 else 60, random_state=1)
    found = recovered(X, beta=1.234)
    assert found.beta == 1.234
    assert len(found.m) == 3


@pytest.mark.parametrize("start", ["auto", "spectral", "samples", "random"])
def test_every_start_finds_clusters(start):
    teacher = teacher_of(400, 4, 2.0)
    found = recovered(teacher.sample(60, random_state=1), start=start)
    assert len(found.m) == 4
    assert smallest_overlap(found, teacher.patterns) > 0.99


# --- Tiny and degenerate data -------------------------------------------------------------------


def check_sound(X, n_patterns, effort):
    found = recovered(X, n_patterns=n_patterns, effort=effort)
    n_spins = np.shape(X)[1]
    assert found.m.ndim == 2
    assert found.m.shape[1] == n_spins
    assert np.isfinite(found.m).all()
    assert np.abs(found.m).max(initial=0) <= 1
    assert found.fields.shape == (n_spins,)
    assert np.isfinite(found.fields).all()
    if n_patterns is None:
        assert np.isfinite(found.beta) == (len(found.m) > 0)
    else:
        # Data of fewer independent directions than patterns asked for may give fewer.
        rank = np.linalg.matrix_rank(np.asarray(X, dtype=float))
        assert min(n_patterns, rank) <= len(found.m) <= n_patterns
        assert np.isfinite(found.beta)
    assert found.beta > 0 or np.isnan(found.beta)


DEGENERATE = {
    "one sample": [[1, -1, 1, 1, -1]],
    "one sample of two spins": [[1, -1]],
    "two samples of two spins": [[1, -1], [1, 1]],
    "three samples of two spins": [[1, -1], [1, 1], [-1, 1]],
    "opposite samples": [[-1, -1], [1, 1]],
    "all ones": np.ones((3, 4), dtype=int),
    "many ones": np.ones((60, 40), dtype=int),
    "equal rows": np.repeat(coins((1, 30)), 20, axis=0),
    "rows equal up to sign": np.repeat(coins((1, 30)), 20, axis=0) * coins((20, 1)),
    "equal columns": np.repeat(coins((30, 1)), 20, axis=1),
    "constant columns": np.hstack([np.ones((40, 10), dtype=int), coins((40, 20))]),
    "duplicate columns": np.hstack([coins((40, 15)), coins((40, 15))]),
    "a row that is missing": [[0, 0, 0], [1, -1, 1], [1, 1, 1]],
    "a column that is missing": [[0, 1, 1], [0, -1, 1], [0, 1, 1]],
    "one observed entry": [[0, 0, 0], [0, 1, 0]],
    "one sample of many spins": coins((1, 400)),
    "two samples of many spins": coins((2, 400)),
    "many samples of two spins": coins((400, 2)),
}


@pytest.mark.parametrize("effort", [1, 2])
@pytest.mark.parametrize("n_patterns", [None, 1, 2])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data(name, n_patterns, effort):
    check_sound(DEGENERATE[name], n_patterns, effort)


@pytest.mark.parametrize(
    ("X", "n_patterns"),
    [
        ([[0, -1, 0, 0, 0, 0], [0, 0, 0, -1, -1, 0], [1, 0, 0, 0, 0, 0]], 3),
        ([[0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0], [0, -1, 1, 0, -1, 0]], 4),
    ],
)
def test_hardly_anything_observed(X, n_patterns):
    """Singular directions of a few sites each, which the fourth power of FastICA inflates."""
    check_sound(X, n_patterns, 1)


shapes = st.tuples(st.integers(1, 6), st.integers(2, 7))
with_missing = hnp.arrays(np.int8, shapes, elements=st.integers(-1, 1)).filter(np.any)
complete = hnp.arrays(np.int8, shapes, elements=st.sampled_from([-1, 1]))


@settings(max_examples=80)
@given(complete | with_missing, st.integers(1, 2))
def test_small_data_with_nothing_given(X, effort):
    check_sound(X, None, effort)


@settings(max_examples=80)
@given(complete | with_missing, st.integers(1, 2), st.integers(1, 2))
def test_small_data_with_a_number_given(X, n_patterns, effort):
    check_sound(X, n_patterns, effort)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(8, 60), st.integers(8, 60), st.integers(0, 4))
@example(0, 8, 60, 4)
def test_small_samples_of_a_model(seed, n_samples, n_spins, n_gaps):
    """Larger than the examples above, with structure, and rows and columns missing."""
    X = teacher_of(n_spins, 2, 1.5, seed).sample(n_samples, n_sweeps=10, random_state=seed)
    X[: n_gaps // 2], X[:, : n_gaps - n_gaps // 2] = 0, 0
    check_sound(X, None, 1)
    check_sound(X, 3, 1)


# --- The same again -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beta", "n_samples", "missing"), [(0.8, 900, 0.0), (2.0, 300, 0.5), (1.2, 600, 0.0)]
)
def test_recovery_does_not_depend_on_the_number_of_threads(beta, n_samples, missing):
    teacher = teacher_of(500, 4, beta)
    X = with_gaps(teacher.sample(n_samples, random_state=1), missing)
    found = []
    for n in (1, 2):
        with threadpool_limits(n):
            found.append(recovered(X, seed=3))
    np.testing.assert_array_equal(found[0].m, found[1].m)
    np.testing.assert_array_equal(found[0].fields, found[1].fields)
    np.testing.assert_array_equal(found[0].spectrum.values, found[1].spectrum.values)
    assert found[0].beta == found[1].beta


def test_recovery_with_fields_does_not_depend_on_the_number_of_threads():
    b = np.random.default_rng(10).uniform(-0.5, 0.5, size=300)
    X = teacher_of(300, 3, 2.0, fields=b).sample(900, random_state=1)
    found = []
    for n in (1, 2):
        with threadpool_limits(n):
            found.append(recovered(X))
    assert found[0].fields.any()
    np.testing.assert_array_equal(found[0].m, found[1].m)
    np.testing.assert_array_equal(found[0].fields, found[1].fields)


def test_drawn_posteriors_follow_the_seed():
    """Two samples for each pattern: bits are drawn, so another seed gives other means."""
    X = teacher_of(300, 4, 2.0).sample(12, random_state=1)
    first, again, other = (recovered(X, seed=s, n_patterns=4).m for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    # But they agree on what is sure.
    assert match(signs(first), signs(other)).overlaps.min() > 0.9


# --- In words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_samples", "n_spins"), [(100, 400), (50, 50), (900, 100)])
def test_threshold_is_where_the_limit_departs_from_zero(n_samples, n_spins):
    beta = threshold_beta(n_samples, n_spins)
    assert n_spins * (1 / beta - 1) ** 2 == pytest.approx(n_samples)
    alpha = n_samples / n_spins
    assert paramagnetic_limit(0.9 * beta, alpha, tol=1e-9).sign < 1e-3
    assert paramagnetic_limit(min(1.1 * beta, 0.99), alpha).sign > 0.1


def reason_of(regime, n_patterns, given=None, n_signal=1, leading=2.0):
    return reason(
        regime=regime,
        n_patterns=n_patterns,
        given=given,
        n_signal=n_signal,
        spectrum=np.array([leading]),
        n_samples=100,
        n_spins=400,
    )


def test_reason_of_each_outcome():
    assert reason_of(Regime.CLUSTERED, 3, given=3) == "3 were asked for"
    fewer = reason_of(Regime.CLUSTERED, 2, given=3)
    assert fewer.startswith("3 were asked for")
    assert "no more" in fewer
    found = [reason_of(r, 3) for r in (Regime.WEAK, Regime.MIXED, Regime.CLUSTERED)]
    assert all(found)
    assert "asked" not in " ".join(found)
    assert "stand out of noise" in found[0]
    nothing = reason_of(Regime.NOTHING, 0, n_signal=0, leading=0.97)
    assert "0.97" in nothing
    assert f"β = {threshold_beta(100, 400):.2f}" in nothing
    structure = reason_of(Regime.NOTHING, 0, n_signal=2)
    assert "±1" in structure
    assert "0.67" not in structure


def test_calibrated_means_of_the_whole_recovery():
    """Sure bits are right and unsure bits unsure, patterns and β all found from the data."""
    teacher = teacher_of(500, 5, 2.0)
    found = recovered(teacher.sample(15, random_state=1))
    assert len(found.m) == 5
    # Three samples for each of 2500 bits: 0.5 % of them wrong.
    assert calibration(found.m, teacher.patterns).error < 0.02
    matched = match(signs(found.m), teacher.patterns)
    m = matched.sign[:, None] * found.m[matched.index]
    right = signs(m) == teacher.patterns
    # Wrong bits are among the less sure ones.
    sizes = np.abs(m)
    assert stats.mannwhitneyu(sizes[~right], sizes[right], alternative="less").pvalue < 0.01
