"""What stands out of noise: blocks of samples, the law of their spectrum, the rank of the space."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dualtap.hopfield import HopfieldModel
from dualtap.recovery import space, spectrum
from dualtap.recovery.factors import iterate, start_factors
from dualtap.recovery.space import (
    _fitted,
    marginals_explained,
    n_missing,
    pattern_space,
    static_fields,
)
from dualtap.recovery.spectrum import LEVEL, balanced, count_signals, deviates, noise_edge
from dualtap.spins import as_spins
from dualtap.spins.blocks import Blocks


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """BLAS threads that wait for each other on a busy machine make small products slow."""
    with threadpool_limits(1):
        yield


def blocks_of(X):
    return Blocks(as_spins(X, zero_is_missing=True))


def spectrum_of(X, seed=0, **options):
    return spectrum.spectrum(blocks_of(X), np.random.default_rng(seed), **options)


def coins(rng, shape):
    return rng.choice(np.array([-1, 1], dtype=np.int8), size=shape)


def samples(beta, n_patterns, n_samples, n_spins=300, seed=0, start="auto"):
    teacher = HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed)
    return teacher, teacher.sample(n_samples, start=start, random_state=seed + 1)


# --- Blocks -------------------------------------------------------------------------------------


def incomplete(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = coins(rng, shape)
    X[rng.random(shape) < 0.3] = 0
    return X


@pytest.fixture(scope="module")
def several_blocks():
    """Data of several blocks, whose sizes are the module's own affair."""
    X = incomplete((500, 2000))
    assert len(blocks_of(X)._rows) > 1
    return X


@pytest.mark.parametrize("n", [1, 2])
def test_products_over_blocks_are_products(several_blocks, n):
    X, rng = several_blocks, np.random.default_rng(1)
    V = rng.normal(size=(3, 2000)).astype(np.float32)
    C = rng.normal(size=(500, 3)).astype(np.float32)
    with threadpool_limits(n):
        blocks = blocks_of(X)
        # Sums of 2000 single-precision numbers of order one: about 45, to 1e-6 of that.
        np.testing.assert_allclose(blocks.dot(V), X @ V.T.astype(float), atol=1e-3)
        np.testing.assert_allclose(blocks.transposed_dot(C), C.T.astype(float) @ X, atol=1e-3)


def test_blocks_cover_every_sample_once_and_in_order(several_blocks):
    blocks = blocks_of(several_blocks)
    rows = blocks.map(lambda S, n: np.column_stack([n, S]), np.arange(500))
    np.testing.assert_array_equal(rows[:, 0], np.arange(500))
    np.testing.assert_array_equal(rows[:, 1:], several_blocks)
    np.testing.assert_array_equal(blocks.dense, several_blocks)


def test_products_do_not_depend_on_the_number_of_threads(several_blocks):
    C = np.random.default_rng(1).normal(size=(500, 3)).astype(np.float32)
    found = []
    for n in (1, 2):
        with threadpool_limits(n):
            found.append(blocks_of(several_blocks).transposed_dot(C))
    np.testing.assert_array_equal(*found)


def test_blocks_know_what_was_observed():
    X = np.array([[1, -1, 0, 0], [1, 1, -1, 1], [0, 0, 0, 0]])
    blocks = blocks_of(X)
    assert not blocks.complete
    assert blocks.n_observed.tolist() == [2, 4, 1]  # never zero: it is divided by
    assert blocks.share == pytest.approx(7 / 12)
    whole = blocks_of(X[1:2])
    assert whole.complete
    assert whole.share == 1


def test_taking_means_off_leaves_missing_entries_missing():
    X = np.array([[1, -1, 0], [0, 1, -1]])
    t = np.array([0.5, -0.25, 0.125], dtype=np.float32)
    blocks = blocks_of(X)
    np.testing.assert_array_equal(blocks.minus(t).dense, [[0.5, -0.75, 0], [0, 1.25, -1.125]])
    np.testing.assert_array_equal(blocks.dense, X)  # the original stays
    np.testing.assert_array_equal(blocks_of(X[:, :2] | 1).minus(t[:2]).dense[0], [0.5, -0.75])


# --- The law of noise ---------------------------------------------------------------------------

N_DRAWS, MOST_ALARMS = 60, 6
# The Tracy–Widom law exceeds LEVEL in 4.3 % of the cases: 2.6 ± 1.6 alarms among 60 draws. More
# than 6 come by chance once in 70, and the seeds are fixed; a law off by 10 % in its edge would
# raise tens of them.
SHAPES = [(100, 300), (150, 150), (300, 100), (20, 300)]


def alarms(shape, mask=None):
    found = 0
    for seed in range(N_DRAWS):
        rng = np.random.default_rng(seed)
        X = coins(rng, shape)
        if mask is not None:
            X[rng.random(shape) < mask(rng, shape)] = 0
        found += spectrum_of(X).n_signal > 0
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_coins_rarely_look_like_signal(shape):
    assert alarms(shape) <= MOST_ALARMS


@pytest.mark.parametrize("shape", SHAPES)
def test_incomplete_coins_rarely_look_like_signal(shape):
    assert alarms(shape, lambda rng, shape: 0.3) <= MOST_ALARMS


@pytest.mark.parametrize("shape", SHAPES)
def test_coins_with_unequal_gaps_rarely_look_like_signal(shape):
    """From a fifth to all of a row or column observed, and the products of that."""

    def unequal(rng, shape):
        observed = rng.uniform(0.2, 1, size=shape[0])[:, None] * rng.uniform(0.2, 1, size=shape[1])
        return 1 - observed

    assert alarms(shape, unequal) <= MOST_ALARMS


def test_unequal_gaps_look_like_signal_unless_balanced():
    """The test above is not empty: without the scaling nearly every draw is an alarm."""
    rng = np.random.default_rng(0)
    X = coins(rng, (150, 150)).astype(float)
    observed = rng.uniform(0.2, 1, size=150)[:, None] * rng.uniform(0.2, 1, size=150)
    X[rng.random(X.shape) > observed] = 0
    values = np.linalg.svd(X, compute_uv=False) ** 2
    assert deviates(values[:1], float(values.sum()), 150, 150)[0] > 3 * LEVEL


def test_largest_deviates_of_noise_follow_tracy_and_widom():
    t = [
        spectrum_of(coins(np.random.default_rng(seed), (150, 150))).deviates[0]
        for seed in range(100, 200)
    ]
    # Tracy–Widom of real matrices: mean -1.21, deviation 1.27. A hundred draws have errors of
    # 0.13 and 0.09; four of them, and 0.3 for the finite size.
    assert np.mean(t) == pytest.approx(-1.21, abs=0.8)
    assert np.std(t) == pytest.approx(1.27, abs=0.6)


@pytest.mark.parametrize(("n_samples", "n_spins"), [(100, 400), (400, 100), (30, 30)])
def test_noise_edge_is_symmetric_and_scales(n_samples, n_spins):
    centre, width = noise_edge(n_samples, n_spins)
    assert noise_edge(n_spins, n_samples) == pytest.approx((centre, width))
    four = noise_edge(4 * n_samples, 4 * n_spins)
    assert four[0] == pytest.approx(4 * centre)
    # (a + b)(1/a + 1/b)^{1/3} with a and b doubled: 2 / 2^{1/3}.
    assert four[1] == pytest.approx(2 ** (2 / 3) * width)


def test_an_early_signal_does_not_hide_a_later_one():
    """The noise is what is left behind the k-th value, not the whole."""
    rng = np.random.default_rng(0)
    S = rng.normal(size=(200, 300))
    u = np.linalg.qr(rng.normal(size=(200, 2)))[0].T
    v = np.linalg.qr(rng.normal(size=(300, 2)))[0].T
    # The edge lies at √200 + √300 = 31.5; one of 240 has the square of all noise.
    S += 240 * np.outer(u[0], v[0]) + 36 * np.outer(u[1], v[1])
    values = np.linalg.svd(S, compute_uv=False) ** 2
    t = deviates(values[:5], float(values.sum()), 200, 300)
    assert count_signals(t) == 2
    centre, width = noise_edge(200, 300)
    naive = (values[1] / (values.sum() / S.size) - centre) / width
    assert naive < LEVEL


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        ([], 0),
        ([0.0], 0),
        ([LEVEL], 0),
        ([5.0], 1),
        ([5.0, 4.0, 3.0], 3),
        ([5.0, 0.0, 3.0], 1),
        ([0.0, 9.0], 0),
    ],
)
def test_signals_are_counted_up_to_the_first_gap(t, expected):
    assert count_signals(np.array(t)) == expected


@pytest.mark.parametrize("n_patterns", [1, 4])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_paramagnet_well_above_threshold_is_seen(n_patterns, missing):
    # M_c = N (1/β - 1)² = 19 for β = 0.8, twice that with gaps. Patterns of 300 spins overlap by
    # 0.06, which takes up to 15 % off the smallest β of their directions: M_c = 66, or 130.
    teacher, X = samples(0.8, n_patterns, 900)
    X[np.random.default_rng(2).random(X.shape) < missing] = 0
    found = spectrum_of(X)
    assert found.n_signal == n_patterns
    u = found.vectors[:n_patterns]
    np.testing.assert_allclose(u @ u.T, np.eye(n_patterns), atol=1e-4)
    # An eigenvector of ℓ = β/(1-β) = 4 (2.1 for the weakest, 1.5 of it with gaps) has the share
    # (1 - γ/ℓ²)/(1 + γ/ℓ) of the pattern, γ = 1/3: 0.9 (0.8, 0.7).
    depth = np.square(teacher.patterns @ u.T).sum(axis=1) / 300
    assert depth.min() > 0.55


def test_values_and_total_are_those_of_the_matrix():
    X = coins(np.random.default_rng(0), (60, 90))
    sigma, Vt = np.linalg.svd(X.astype(float), full_matrices=False)[1:]
    for matrix, vectors in [(X, Vt), (X.T, None)]:
        found = spectrum_of(matrix, n_least=3)
        np.testing.assert_allclose(found.values, sigma**2, rtol=1e-4, atol=1e-2)
        assert found.total == pytest.approx(60 * 90)
        assert found.edge == pytest.approx((np.sqrt(60) + np.sqrt(90)) ** 2)
        np.testing.assert_allclose(found.relative(5), sigma[:5] ** 2 / found.edge, rtol=1e-4)
        if vectors is not None:
            cosines = np.abs(np.sum(found.vectors[:3] * vectors[:3], axis=1))
            np.testing.assert_allclose(cosines, 1, atol=1e-3)
        assert found.vectors.shape == (3, matrix.shape[1])


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_deviates_are_invariant_under_permutations_and_signs(missing):
    rng = np.random.default_rng(0)
    _, X = samples(0.8, 2, 150, n_spins=120)
    X[rng.random(X.shape) < missing] = 0
    rows, columns = rng.permutation(150), rng.permutation(120)
    signs = coins(rng, 150)[:, None] * coins(rng, 120)
    found, expected = spectrum_of((signs * X)[rows][:, columns]), spectrum_of(X)
    assert found.n_signal == expected.n_signal
    np.testing.assert_allclose(found.deviates[:50], expected.deviates[:50], atol=2e-3)


def test_variances_of_the_sites_are_taken_out():
    rng = np.random.default_rng(0)
    b = rng.normal(0, 1, size=200)
    X = np.where(rng.random((300, 200)) < (1 + np.tanh(b)) / 2, 1, -1)
    t = np.tanh(b).astype(np.float32)
    centred, variance = blocks_of(X).minus(t), 1 - np.square(t)
    weighted = spectrum.spectrum(centred, rng, variance=variance)
    expected = np.linalg.svd((X - t) / np.sqrt(variance), compute_uv=False) ** 2
    np.testing.assert_allclose(weighted.values, expected, rtol=1e-3, atol=1e-2)
    assert weighted.n_signal == 0
    # Sites of different noise look like signal if they are not weighted.
    assert spectrum.spectrum(centred, rng).n_signal > 0


def balanced_root(variance):
    """Return the roots of variances, as residual, balanced by these."""
    D = variance.astype(np.float32)
    ones = blocks_of(np.ones(D.shape, dtype=np.int8))
    residual = ones.changed(lambda _, d: np.sqrt(d), D)
    return balanced(residual, ones.changed(lambda _, d: d, D)).dense


def test_balanced_gives_rows_and_columns_unit_variance():
    rng = np.random.default_rng(0)
    row, column = rng.uniform(0.1, 5, size=80), rng.uniform(0.1, 5, size=120)
    variance = np.outer(row, column)
    # The root of the variances as residual: then the squares of the result are its variances.
    D = np.square(balanced_root(variance).astype(float))
    np.testing.assert_allclose(D, 1, rtol=1e-4)  # of rank one: every entry
    variance = rng.uniform(0.1, 2, size=(80, 120)) * variance
    D = np.square(balanced_root(variance).astype(float))
    # A product of no more than rows and columns: now on average only.
    np.testing.assert_allclose(D.mean(axis=0), 1, rtol=1e-3)
    np.testing.assert_allclose(D.mean(axis=1), 1, rtol=1e-3)


def test_balanced_survives_rows_and_columns_without_variance():
    variance = np.ones((4, 5))
    variance[1], variance[:, 2] = 0, 0
    W = balanced_root(variance)
    assert np.isfinite(W).all()
    assert not W[1].any()
    assert not W[:, 2].any()


# --- Large matrices: the randomised path --------------------------------------------------------


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(spectrum, "SMALL", 10)


@pytest.mark.parametrize("n_patterns", [1, 4])
def test_randomised_spectrum_agrees_with_the_exact_one(monkeypatch, n_patterns):
    _, X = samples(0.8, n_patterns, 400)
    exact = spectrum_of(X)
    monkeypatch.setattr(spectrum, "SMALL", 10)
    found = spectrum_of(X)
    assert len(found.values) != len(exact.values)  # it is another path
    assert found.n_signal == exact.n_signal == n_patterns
    np.testing.assert_allclose(found.values[:n_patterns], exact.values[:n_patterns], rtol=1e-3)
    np.testing.assert_allclose(found.deviates[:n_patterns], exact.deviates[:n_patterns], rtol=1e-2)
    overlap = found.vectors[:n_patterns] @ exact.vectors[:n_patterns].T
    np.testing.assert_allclose(np.linalg.svd(overlap, compute_uv=False), 1, atol=1e-3)


def test_randomised_spectrum_grows_until_it_has_seen_noise(everything_is_large, monkeypatch):
    monkeypatch.setattr(spectrum, "_FIRST_RANK", 2)
    _, X = samples(0.8, 5, 900)
    found = spectrum_of(X)
    assert found.n_signal == 5
    assert len(found.values) == 8  # 2, 4, 8


def test_randomised_residual_agrees_with_the_exact_one(monkeypatch):
    teacher, X = samples(2.0, 4, 200)
    blocks, rng = blocks_of(X), np.random.default_rng(0)
    factors = [
        iterate(blocks, start_factors(blocks, teacher.patterns[:k].astype(np.float32)), 6)
        for k in (2, 4)
    ]
    exact = [n_missing(blocks, f, rng) for f in factors]
    monkeypatch.setattr(spectrum, "SMALL", 10)
    # Only the largest values are computed: no more of them can be signal.
    most = space._RESIDUAL_RANK
    assert [n_missing(blocks, f, rng) for f in factors] == np.minimum(exact, most).tolist()
    assert exact[0] >= 1
    assert exact[1] == 0


# --- The rank of the space ----------------------------------------------------------------------

TEACHERS = [(0.8, 2, 600), (0.8, 4, 600), (1.2, 3, 400), (2.0, 1, 60), (2.0, 4, 60), (2.0, 5, 200)]


@pytest.mark.parametrize(("beta", "n_patterns", "n_samples"), TEACHERS)
@pytest.mark.parametrize("seed", [0, 10])
def test_rank_of_the_space_is_the_number_of_patterns(beta, n_patterns, n_samples, seed):
    teacher, X = samples(beta, n_patterns, n_samples, seed=seed)
    blocks, rng = blocks_of(X), np.random.default_rng(0)
    whole = spectrum.spectrum(blocks, rng)
    V = pattern_space(blocks, whole, rng, None).V
    assert len(V) == n_patterns
    # The patterns lie in the space, as far as noise lets them.
    u = np.linalg.qr(V.T.astype(float))[0]
    depth = np.square(teacher.patterns @ u).sum(axis=1) / 300
    assert depth.min() > 0.7


@pytest.mark.parametrize(("beta", "n_patterns", "n_samples"), [t for t in TEACHERS if t[1] > 1])
def test_a_pattern_that_is_missing_is_missed(beta, n_patterns, n_samples):
    _, X = samples(beta, n_patterns, n_samples)
    blocks, rng = blocks_of(X), np.random.default_rng(0)
    whole = spectrum.spectrum(blocks, rng, n_patterns)
    few, enough = _fitted(blocks, whole, n_patterns - 1), _fitted(blocks, whole, n_patterns)
    assert len(few.V) == n_patterns - 1
    assert n_missing(blocks, few, rng) >= 1
    assert n_missing(blocks, enough, rng) == 0


def test_missing_entries_leave_no_trace_in_the_residual():
    _, X = samples(2.0, 3, 150)
    X[np.random.default_rng(5).random(X.shape) < 0.3] = 0
    blocks, rng = blocks_of(X), np.random.default_rng(0)
    whole = spectrum.spectrum(blocks, rng, 3)
    assert n_missing(blocks, _fitted(blocks, whole, 3), rng) == 0
    assert n_missing(blocks, _fitted(blocks, whole, 2), rng) >= 1


# --- Fields -------------------------------------------------------------------------------------


def test_static_fields_are_those_of_independent_spins():
    rng = np.random.default_rng(0)
    b = rng.uniform(-0.5, 0.5, size=300)
    X = np.where(rng.random((600, 300)) < (1 + np.tanh(b)) / 2, 1, -1)
    found = static_fields(blocks_of(X))
    # Errors of 1/√M on fields of root mean square 0.29.
    assert np.corrcoef(found, b)[0, 1] > 0.97
    assert np.sqrt(np.mean(np.square(found - b))) < 2 / np.sqrt(600)


def test_coins_and_patterns_have_no_static_fields():
    rng = np.random.default_rng(0)
    assert not static_fields(blocks_of(coins(rng, (300, 300)))).any()
    # A mean of ±0.3 everywhere is a pattern.
    zeta = coins(rng, 300)
    X = np.where(rng.random((600, 300)) < (1 + 0.3 * zeta) / 2, 1, -1)
    assert not static_fields(blocks_of(X)).any()
    _, X = samples(0.8, 4, 600)
    assert not static_fields(blocks_of(X)).any()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_marginals_are_explained_by_what_made_them(missing):
    rng = np.random.default_rng(0)
    zeta = coins(rng, (2, 300)).astype(np.float32)
    x = rng.normal(0, 0.7, size=(400, 2)).astype(np.float32)
    b = rng.uniform(-0.5, 0.5, size=300)
    gaps = rng.random((400, 300)) < missing
    explained = []
    for fields in (0 * b, b):
        X = np.where(rng.random((400, 300)) < (1 + np.tanh(x @ zeta + fields)) / 2, 1, -1)
        X[gaps] = 0
        explained.append(marginals_explained(blocks_of(X), zeta, x))
    assert explained == [True, False]
