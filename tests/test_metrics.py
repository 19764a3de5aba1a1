"""Metrics against brute force, and their invariance under sign and order of the patterns."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualtap import metrics
from dualtap.metrics import (
    CouplingError,
    calibration,
    coupling_error,
    coupling_error_path,
    match,
    n_recovered,
    overlaps,
    pseudo_likelihood,
    sample_pseudo_likelihoods,
    scores,
    simplified_likelihood,
)
from dualtap.spins import blocks

seeds = st.integers(0, 2**32 - 1)
counts = st.integers(1, 5)
spin_counts = st.integers(2, 12)
many = settings(max_examples=50, deadline=None)


def signs(rng, *shape, missing=0.0):
    return rng.choice([-1, 1], size=shape) * (rng.random(shape) >= missing)


# --- overlaps and matching ---------------------------------------------------------------------


@many
@given(st.integers(0, 5), counts, spin_counts, seeds)
def test_overlaps_by_loops(k, p, n_spins, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(k, n_spins)), signs(rng, p, n_spins)
    result = overlaps(a, b)
    assert result.shape == (k, p)
    for t, mu in itertools.product(range(k), range(p)):
        expected = sum(a[t, i] * b[mu, i] for i in range(n_spins)) / n_spins
        assert result[t, mu] == pytest.approx(expected, abs=1e-12)


def test_overlaps_of_small_integers_do_not_overflow():
    # 200 products summed in int8 would wrap.
    pattern = np.ones((1, 200), dtype=np.int8)
    np.testing.assert_array_equal(overlaps(pattern, -pattern), [[-1.0]])


@many
@given(counts, counts, st.integers(4, 12), seeds)
def test_match_is_invariant_under_permutation_and_signs(k, p, n_spins, seed):
    rng = np.random.default_rng(seed)
    # Real numbers: no two assignments tie, so the partners are unique as well.
    estimate, truth = rng.uniform(-1, 1, size=(2, 5, n_spins))
    estimate, truth = estimate[:k], truth[:p]
    plain = match(estimate, truth)

    order, flips = rng.permutation(k), rng.choice([-1, 1], size=k)
    moved = match((estimate * flips[:, None])[order], truth)
    np.testing.assert_allclose(moved.overlaps, plain.overlaps, atol=1e-12)
    assert moved.mean_overlap == pytest.approx(plain.mean_overlap)
    has_partner = plain.index >= 0
    np.testing.assert_array_equal(moved.index >= 0, has_partner)
    np.testing.assert_array_equal(order[moved.index[has_partner]], plain.index[has_partner])
    expected_sign = plain.sign[has_partner] * flips[plain.index[has_partner]]
    np.testing.assert_array_equal(moved.sign[has_partner], expected_sign)

    # Moving the truth moves the answer with it.
    order, flips = rng.permutation(p), rng.choice([-1, 1], size=p)
    moved = match(estimate, (truth * flips[:, None])[order])
    np.testing.assert_allclose(moved.overlaps, plain.overlaps[order], atol=1e-12)
    np.testing.assert_array_equal(moved.index, plain.index[order])
    np.testing.assert_array_equal(moved.sign, (plain.sign * flips)[order])


@many
@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 8), seeds)
def test_match_is_the_best_assignment_by_exhaustion(k, p, n_spins, seed):
    rng = np.random.default_rng(seed)
    estimate, truth = signs(rng, k, n_spins), signs(rng, p, n_spins)
    gain = np.abs(estimate @ truth.T) / n_spins
    if k <= p:
        best = max(
            sum(gain[t, mu] for t, mu in enumerate(chosen))
            for chosen in itertools.permutations(range(p), k)
        )
    else:
        best = max(
            sum(gain[t, mu] for mu, t in enumerate(chosen))
            for chosen in itertools.permutations(range(k), p)
        )
    assert match(estimate, truth).overlaps.sum() == pytest.approx(best, abs=1e-12)


@many
@given(counts, counts, spin_counts, seeds)
def test_match_is_one_to_one_and_consistent(k, p, n_spins, seed):
    rng = np.random.default_rng(seed)
    estimate, truth = rng.uniform(-1, 1, size=(k, n_spins)), signs(rng, p, n_spins)
    found = match(estimate, truth)
    partners = found.index[found.index >= 0]
    assert len(partners) == len(set(partners.tolist())) == min(k, p)
    for mu in range(p):
        if found.index[mu] < 0:
            assert found.overlaps[mu] == 0
            assert found.sign[mu] == 0
        else:
            overlap = estimate[found.index[mu]] @ truth[mu] / n_spins
            assert found.overlaps[mu] == pytest.approx(abs(overlap), abs=1e-12)
            # The sign turns the partner towards the pattern.
            assert found.sign[mu] * overlap == pytest.approx(abs(overlap), abs=1e-12)


def test_matching_is_not_greedy():
    # Taking the best pair first (1.0) leaves 0 for the other; crosswise there is 0.9 + 0.9.
    truth = np.array([[1, 1, 1, 1], [1, 1, -1, -1]])
    estimate = np.array([[1.0, 0.9], [0.9, 0.0]]) @ truth
    np.testing.assert_allclose(overlaps(estimate, truth), [[1.0, 0.9], [0.9, 0.0]], atol=1e-12)
    found = match(estimate, truth)
    np.testing.assert_array_equal(found.index, [1, 0])
    np.testing.assert_allclose(found.overlaps, [0.9, 0.9])


def test_fewer_estimates_than_patterns():
    truth = signs(np.random.default_rng(0), 4, 50)
    found = match(-truth[[2]], truth)
    np.testing.assert_array_equal(found.overlaps, [0, 0, 1, 0])
    np.testing.assert_array_equal(found.index, [-1, -1, 0, -1])
    np.testing.assert_array_equal(found.sign, [0, 0, -1, 0])
    assert found.n_recovered() == 1
    assert found.mean_overlap == 0.25


def test_more_estimates_than_patterns():
    rng = np.random.default_rng(1)
    truth = signs(rng, 2, 50)
    estimate = np.vstack([signs(rng, 3, 50), -truth[[1]], truth[[0]]])
    found = match(estimate, truth)
    np.testing.assert_array_equal(found.index, [4, 3])
    np.testing.assert_array_equal(found.sign, [1, -1])
    assert found.n_recovered() == 2


def test_no_estimates():
    found = match(np.empty((0, 6)), np.ones((3, 6)))
    np.testing.assert_array_equal(found.overlaps, np.zeros(3))
    np.testing.assert_array_equal(found.index, np.full(3, -1))
    np.testing.assert_array_equal(found.sign, np.zeros(3))
    assert found.n_recovered() == 0
    assert n_recovered(np.empty((0, 6)), np.ones((3, 6))) == 0
    assert str(found).startswith("0 of 3 patterns recovered")


def test_a_repeated_estimate_counts_once():
    truth = signs(np.random.default_rng(2), 2, 60)
    assert n_recovered(truth[[0, 0, 0]], truth) == 1


def test_threshold_of_recovery_is_strict():
    truth = np.ones((1, 20))
    estimate = np.ones((1, 20))
    estimate[0, 0] = -1  # overlap 0.9 exactly
    assert n_recovered(estimate, truth) == 0
    assert n_recovered(estimate, truth, threshold=0.89) == 1
    assert match(estimate, truth).n_recovered(0.95) == 0


def test_match_prints_its_verdict():
    truth = np.array([[1, 1, 1, 1], [1, 1, -1, -1]])
    estimate = np.array([[1, 1, 1, 1], [1, 1, -1, 1]])
    assert str(match(estimate, truth)) == (
        "1 of 2 patterns recovered (overlap > 0.9), mean overlap 0.750, smallest 0.500"
    )


@pytest.mark.parametrize("function", [overlaps, match, coupling_error, coupling_error_path])
def test_patterns_of_different_length_are_refused(function):
    with pytest.raises(ValueError, match="different length: 3 and 4 spins"):
        function(np.ones((2, 3)), np.ones((2, 4)))


@pytest.mark.parametrize("function", [overlaps, match, coupling_error, coupling_error_path])
@pytest.mark.parametrize("side", [0, 1])
def test_patterns_must_be_rows(function, side):
    arguments = [np.ones((2, 3)), np.ones((2, 3))]
    arguments[side] = np.ones(3)
    with pytest.raises(ValueError, match=r"\(n_patterns, n_spins\), got 1 dimension"):
        function(*arguments)


# --- errors of the couplings -------------------------------------------------------------------


def brute_force_error(m, zeta):
    """‖J^r - J*‖ / ‖J*‖ over the pairs i < j, J formed entry by entry."""
    n_spins = zeta.shape[1]
    difference = norm = 0.0
    for i in range(n_spins):
        for j in range(i + 1, n_spins):
            J_estimate = sum(v[i] * v[j] for v in m) / n_spins
            J_true = sum(v[i] * v[j] for v in zeta) / n_spins
            difference += (J_estimate - J_true) ** 2
            norm += J_true**2
    return math.sqrt(difference / norm) if norm > 1e-3 else None


@many
@given(counts, counts, spin_counts, seeds, st.booleans())
def test_coupling_error_equals_dense_pairs(k, p, n_spins, seed, real):
    rng = np.random.default_rng(seed)
    m = rng.normal(size=(k, n_spins))
    zeta = rng.normal(size=(p, n_spins)) if real else signs(rng, p, n_spins)
    expected = brute_force_error(m, zeta)
    assume(expected is not None)  # J* = 0 has no relative error
    error = coupling_error(m, zeta)
    # The pairs are summed through overlaps: cancellation costs half the digits near zero.
    assert error.relative == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert error.printed == pytest.approx(expected / (n_spins * (n_spins - 1) / 2), abs=1e-6)


@many
@given(counts, counts, spin_counts, seeds)
def test_error_path_is_the_error_of_every_prefix(k, p, n_spins, seed):
    rng = np.random.default_rng(seed)
    m, zeta = rng.normal(size=(k, n_spins)), rng.normal(size=(p, n_spins))
    path = coupling_error_path(m, zeta)
    assert path.shape == (k,)
    for t in range(k):
        prefix = coupling_error(m[: t + 1], zeta).relative
        assert path[t] == pytest.approx(prefix, rel=1e-9, abs=1e-6)
        brute = brute_force_error(m[: t + 1], zeta)
        if brute is not None:
            assert path[t] == pytest.approx(brute, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("n_spins", [2, 5, 40])
def test_printed_error_carries_the_number_of_pairs(n_spins):
    rng = np.random.default_rng(n_spins)
    error = coupling_error(rng.normal(size=(3, n_spins)), signs(rng, 1, n_spins))
    assert error.relative > 0.1
    assert error.relative / error.printed == pytest.approx(n_spins * (n_spins - 1) / 2)


def test_coupling_error_ignores_sign_and_order():
    rng = np.random.default_rng(3)
    truth = signs(rng, 4, 30)
    moved = truth[[2, 0, 3, 1]] * np.array([[1], [-1], [-1], [1]])
    assert coupling_error(moved, truth) == CouplingError(0.0, 0.0)
    noisy = truth + 0.3 * rng.normal(size=truth.shape)
    plain = coupling_error(noisy, truth).relative
    assert plain > 0.05
    assert coupling_error(-noisy[::-1], truth).relative == pytest.approx(plain, rel=1e-10)


def test_coupling_error_ignores_the_diagonal():
    # These factors differ in J_33 alone.
    truth = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    estimate = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 5.0]])
    assert coupling_error(estimate, truth).relative == 0.0


def test_rotated_factors_have_the_same_couplings():
    rng = np.random.default_rng(4)
    truth = signs(rng, 3, 20).astype(float)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    assert coupling_error(rotation @ truth, truth).relative == pytest.approx(0, abs=1e-6)


def test_an_empty_estimate_is_off_by_everything():
    truth = signs(np.random.default_rng(5), 2, 6)
    assert coupling_error(np.empty((0, 6)), truth).relative == 1.0
    np.testing.assert_array_equal(coupling_error_path(np.empty((0, 6)), truth), [1.0])


@pytest.mark.parametrize("truth", [np.zeros((2, 4)), np.empty((0, 4)), [[0.0, 3.0, 0.0, 0.0]]])
@pytest.mark.parametrize("k", [0, 2])
def test_relative_error_of_no_couplings_is_refused(truth, k):
    with pytest.raises(ValueError, match="true couplings are all zero"):
        coupling_error(np.ones((k, 4)), truth)


# --- likelihoods -------------------------------------------------------------------------------


@many
@given(counts, st.integers(0, 4), spin_counts, seeds, st.sampled_from([np.float32, np.float64]))
def test_scores_and_simplified_likelihood_by_loops(M, k, n_spins, seed, dtype):
    rng = np.random.default_rng(seed)
    X = signs(rng, M, n_spins, missing=0.2)
    m = rng.uniform(-1, 1, size=(k, n_spins)).astype(dtype)
    expected = np.zeros(k)
    for mu, a in itertools.product(range(k), range(M)):
        expected[mu] += sum(float(X[a, i]) * float(m[mu, i]) for i in range(n_spins)) ** 2
    tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-12}
    result = scores(X, m)
    assert result.shape == (k,)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, **({"atol": 1e-12} | tolerance))
    np.testing.assert_allclose(
        simplified_likelihood(X, m), expected.sum() / (2 * n_spins), **({"atol": 1e-12} | tolerance)
    )


def test_scores_of_small_integers_do_not_overflow():
    pattern = np.ones((1, 300), dtype=np.int8)
    np.testing.assert_array_equal(scores(np.repeat(pattern, 7, axis=0), pattern), [7 * 300.0**2])


def test_scores_sum_their_squares_in_double_precision():
    # An odd number above 2^24, which float32 cannot hold.
    X, m = np.ones((101, 1001), dtype=np.int8), np.ones((1, 1001), dtype=np.float32)
    assert scores(X, m)[0] == 101 * 1001**2


def brute_force_pseudo_likelihood(X, zeta, strengths, b=None, means=None):
    """Mean of log 1/(1 + exp(-2 s_i h_i)) over observed entries, by loops.

    In a row with gaps these are first taken, in three steps, at their means given every second
    observed entry, for the fields on the others, and the other way round.
    """
    N = np.shape(X)[1]
    strengths = np.broadcast_to(strengths, len(zeta))
    b = np.zeros(N) if b is None else b
    total, count = 0.0, 0
    for s in np.asarray(X, dtype=float):

        def field(t, i):
            h = b[i]
            for g, v in zip(strengths, zeta, strict=True):
                h += g / N * v[i] * sum(v[j] * t[j] for j in range(N) if j != i)
            return h

        seen = np.flatnonzero(s)
        for half in (seen[::2], seen[1::2]) if len(seen) < N else (seen,):
            t = np.where(s == 0, 0 if means is None else means, s)
            unknown = np.setdiff1d(np.arange(N), np.setdiff1d(seen, half))
            t[unknown] = 0 if means is None else np.asarray(means)[unknown]
            steepest = sum(
                max(-g, 0) / N * sum(v[j] ** 2 for j in unknown)
                for g, v in zip(strengths, zeta, strict=True)
            )
            for _ in range(3):
                new = {i: math.tanh(field(t, i)) for i in unknown}
                for i in unknown:
                    t[i] += (new[i] - t[i]) / (1 + steepest)
            t[seen] = s[seen]
            for i in half:
                total += math.log(1 / (1 + math.exp(-2 * s[i] * field(t, i))))
                count += 1
    return total / count


@many
@given(
    counts,
    st.integers(0, 6),
    spin_counts,
    st.floats(0.1, 4.0),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
    seeds,
)
def test_pseudo_likelihood_by_loops(M, k, n_spins, beta, missing, soft, seed):
    rng = np.random.default_rng(seed)
    X = signs(rng, M, n_spins, missing=missing)
    assume(X.any())
    zeta = rng.uniform(-1, 1, size=(k, n_spins)) if soft else signs(rng, k, n_spins)
    expected = brute_force_pseudo_likelihood(X, zeta, beta)
    assert pseudo_likelihood(X, zeta, beta) == pytest.approx(expected, rel=2e-5, abs=1e-6)


@many
@given(counts, st.integers(0, 4), spin_counts, st.floats(0.1, 4.0), st.booleans(), seeds)
def test_pseudo_likelihoods_of_samples(M, k, n_spins, beta, is_biased, seed):
    rng = np.random.default_rng(seed)
    X, zeta = signs(rng, M, n_spins, missing=0.3), signs(rng, k, n_spins)
    X[0] = 0  # a sample without an observed entry
    b = rng.normal(size=n_spins) if is_biased else None
    found = sample_pseudo_likelihoods(X, zeta, beta, b)
    assert found.shape == (M,)
    assert found.dtype == np.float64
    seen = X.any(axis=1)
    expected = [brute_force_pseudo_likelihood([s], zeta, beta, b) for s in X[seen]]
    np.testing.assert_allclose(found[seen], expected, rtol=2e-5, atol=1e-6)
    assert np.isnan(found[~seen]).all()
    if seen.any():
        mean = np.average(found[seen], weights=np.count_nonzero(X[seen], axis=1))
        assert pseudo_likelihood(X, zeta, beta, b) == pytest.approx(mean, rel=1e-12)


@many
@given(counts, st.integers(0, 6), spin_counts, st.sampled_from([0.0, 0.3]), seeds)
def test_pseudo_likelihood_of_the_general_model(M, k, n_spins, missing, seed):
    rng = np.random.default_rng(seed)
    X, zeta = signs(rng, M, n_spins, missing=missing), signs(rng, k, n_spins, missing=0.4)
    assume(X.any())
    g, b = 2 * rng.normal(size=k), rng.normal(size=n_spins)
    means = rng.uniform(-1, 1, size=n_spins)
    for start in (None, means):
        expected = brute_force_pseudo_likelihood(X, zeta, g, b, start)
        found = pseudo_likelihood(X, zeta, fields=b, strengths=g, means=start)
        assert found == pytest.approx(expected, rel=5e-5, abs=1e-5)


@pytest.mark.parametrize("measure", [pseudo_likelihood, sample_pseudo_likelihoods])
def test_pseudo_likelihood_needs_beta_or_strengths(measure):
    X, zeta = np.ones((2, 4)), np.ones((1, 4))
    with pytest.raises(ValueError, match="either beta or strengths, got neither"):
        measure(X, zeta)
    with pytest.raises(ValueError, match="either beta or strengths, got both"):
        measure(X, zeta, 1.0, strengths=[1.0])
    with pytest.raises(ValueError, match=r"strengths must have shape \(1,\)"):
        measure(X, zeta, strengths=[1.0, 2.0])
    np.testing.assert_array_equal(measure(X, zeta, 1.5), measure(X, zeta, strengths=[1.5]))


def test_pseudo_likelihoods_do_not_depend_on_blocks(monkeypatch):
    rng = np.random.default_rng(10)
    X, zeta, b = signs(rng, 10, 12, missing=0.2), signs(rng, 3, 12), rng.normal(size=12)
    whole = sample_pseudo_likelihoods(X, zeta, 1.5, b)
    monkeypatch.setattr(blocks, "_ENTRIES", 36)
    monkeypatch.setattr(blocks, "_FEWEST_ROWS", 3)
    np.testing.assert_allclose(sample_pseudo_likelihoods(X, zeta, 1.5, b), whole, atol=1e-6)


def test_pseudo_likelihood_of_fields_alone():
    b = np.array([0.3, -1.0, 2.0])
    X = [[1, -1, -1]]
    expected = -np.mean(np.log1p(np.exp(-2 * np.array(X[0]) * b)))
    found = pseudo_likelihood(X, np.empty((0, 3)), beta=1.0, fields=b)
    assert found == pytest.approx(expected, rel=1e-6)


def test_fields_of_zero_change_no_pseudo_likelihood():
    rng = np.random.default_rng(11)
    X, zeta = signs(rng, 5, 9), signs(rng, 2, 9)
    without = pseudo_likelihood(X, zeta, 1.5)
    assert pseudo_likelihood(X, zeta, np.float64(1.5), np.zeros(9)) == without


@pytest.mark.parametrize("measure", [pseudo_likelihood, sample_pseudo_likelihoods])
def test_pseudo_likelihood_with_bad_fields(measure):
    with pytest.raises(ValueError, match=r"fields must have shape \(4,\)"):
        measure(np.ones((2, 4)), np.ones((1, 4)), 1.0, [0.0, 1.0])
    with pytest.raises(ValueError, match="fields must be finite"):
        measure(np.ones((2, 4)), np.ones((1, 4)), 1.0, [0.0, 1.0, math.nan, 0.0])


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_no_patterns_are_a_fair_coin(missing, beta):
    X = signs(np.random.default_rng(6), 5, 9, missing=missing)
    assert pseudo_likelihood(X, np.empty((0, 9)), beta) == pytest.approx(-math.log(2), abs=1e-6)


def test_pseudo_likelihood_prefers_the_teacher():
    rng = np.random.default_rng(7)
    zeta = signs(rng, 3, 200)
    X = np.repeat(zeta, 5, axis=0) * rng.choice([-1, 1], p=[0.05, 0.95], size=(15, 200))
    teacher = pseudo_likelihood(X, zeta, beta=2.0)
    stranger = pseudo_likelihood(X, signs(rng, 3, 200), beta=2.0)
    assert teacher > -0.3
    assert stranger < -0.6


def test_pseudo_likelihood_stays_finite_at_any_beta():
    zeta = signs(np.random.default_rng(8), 1, 100)
    X = zeta.copy()
    X[0, :10] *= -1
    value = pseudo_likelihood(X, zeta, beta=1e6)
    # Ten spins against their field 0.81, the other ninety certain: -2β·0.81·10/100.
    assert value == pytest.approx(-2e6 * 0.81 * 0.1, rel=1e-5)


# --- calibration -------------------------------------------------------------------------------


@many
@given(st.integers(1, 4), counts, st.integers(20, 60), st.integers(1, 12), seeds)
def test_calibration_by_loops(k, p, n_spins, n_bins, seed):
    rng = np.random.default_rng(seed)
    m, zeta = rng.uniform(-1, 1, size=(k, n_spins)), signs(rng, p, n_spins)
    partners = match(m, zeta)
    bits = [[] for _ in range(n_bins)]
    for mu, t in enumerate(partners.index):
        for i in range(n_spins) if t >= 0 else ():
            value = partners.sign[mu] * m[t, i]
            c = (1 + abs(value)) / 2
            bits[int((c - 0.5) * 2 * n_bins)].append((c, np.sign(value) == zeta[mu, i]))
    found = calibration(m, zeta, n_bins)
    total = min(k, p) * n_spins
    assert found.counts.tolist() == [len(b) for b in bits]
    assert found.counts.sum() == total
    error = 0.0
    for b, confidence, accuracy in zip(bits, found.confidence, found.accuracy, strict=True):
        if not b:
            assert np.isnan(confidence)
            assert np.isnan(accuracy)
            continue
        c, right = np.mean(b, axis=0)
        assert confidence == pytest.approx(c)
        assert accuracy == pytest.approx(right)
        error += len(b) / total * abs(c - right)
    assert found.error == pytest.approx(error, abs=1e-12)


@many
@given(counts, counts, st.integers(8, 30), seeds)
def test_calibration_is_invariant_under_permutation_and_signs(k, p, n_spins, seed):
    rng = np.random.default_rng(seed)
    m, zeta = rng.uniform(-1, 1, size=(k, n_spins)), signs(rng, p, n_spins)
    moved = (m * signs(rng, k, 1))[rng.permutation(k)]
    # With two true patterns alike or opposite, partners tie and a tie may fall either way.
    assume(np.abs(overlaps(zeta, zeta) - np.eye(p)).max() < 1 - 1e-9)
    found, again = calibration(m, zeta), calibration(moved, zeta)
    np.testing.assert_array_equal(found.counts, again.counts)
    np.testing.assert_allclose(found.accuracy, again.accuracy)
    assert found.error == pytest.approx(again.error)


def test_posterior_means_are_calibrated():
    # Bits drawn with odds (1 ± m)/2 are what m claims; doubled confidence is not.
    rng = np.random.default_rng(12)
    m = rng.uniform(-0.5, 0.5, size=(3, 20_000))
    zeta = np.where(rng.random(m.shape) < (1 + m) / 2, 1, -1)
    honest = calibration(m, zeta)
    assert honest.error < 0.01
    boastful = calibration(2 * m, zeta)
    assert boastful.error == pytest.approx(np.abs(m).mean() / 2, abs=0.01)


def test_certain_and_silent_bits():
    zeta = np.where(np.arange(12) % 3, 1, -1)[None]
    sure = calibration(-zeta.astype(np.float32), zeta)
    assert sure.error == 0
    assert sure.counts.tolist() == [0] * 9 + [12]
    assert sure.accuracy[-1] == sure.confidence[-1] == 1
    silent = calibration(np.zeros((1, 12)), zeta)
    assert silent.error == 0
    assert silent.counts[0] == 12
    assert silent.accuracy[0] == silent.confidence[0] == 0.5


def test_only_matched_patterns_are_calibrated():
    rng = np.random.default_rng(13)
    zeta = signs(rng, 3, 100)
    assert calibration(zeta[:1], zeta).counts.sum() == 100
    stranger = 0.5 * signs(rng, 1, 100)
    found = calibration(np.concatenate([stranger, zeta]), zeta)
    assert found.counts.sum() == 300
    assert found.error == 0


def test_calibration_errors():
    zeta = np.ones((1, 4))
    with pytest.raises(ValueError, match="n_bins >= 1, got 0"):
        calibration(zeta, zeta, n_bins=0)
    for bad in (1.5, math.nan, math.inf):
        with pytest.raises(ValueError, match="between -1 and 1"):
            calibration([[0, 0, bad, 0]], zeta)
    with pytest.raises(ValueError, match="no magnetizations"):
        calibration(np.empty((0, 4)), zeta)


def test_every_public_name_exists():
    assert all(hasattr(metrics, name) for name in metrics.__all__)


def test_matching_against_nothing_is_an_error():
    with pytest.raises(ValueError, match="no true pattern"):
        match(np.ones((1, 4)), np.empty((0, 4)))


def test_pseudo_likelihood_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="no observed entry"):
        pseudo_likelihood(np.zeros((2, 4)), np.ones((1, 4)), 1.0)
