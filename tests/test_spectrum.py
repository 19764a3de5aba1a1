"""What stands out of noise: blocks of samples, the law of their spectrum, the rank of the space."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence
from threadpoolctl import threadpool_limits

from dualtap import _eigen
from dualtap.hopfield import HopfieldModel
from dualtap.spins import PackedSpins, as_spins, builder, words
from dualtap.subspace import singular, space, spectrum
from dualtap.subspace.factors import iterate, start_factors
from dualtap.subspace.noise import (
    LEVEL,
    balanced,
    count_signals,
    deviates,
    edge_of_unequal,
    noise_edge,
)
from dualtap.subspace.space import (
    _fitted,
    likely_ranks,
    linear_space,
    n_missing,
    pattern_space,
)
from dualtap.subspace.spectrum import Spectrum, n_signals
from teachers import blocks_of

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def spectrum_of(X, seed=0, **options):
    return spectrum.spectrum(blocks_of(X), np.random.default_rng(seed), **options)


def fair_spins(rng, shape):
    return rng.choice(np.array([-1, 1], dtype=np.int8), size=shape)


def samples(beta, n_patterns, n_samples, n_spins=300, seed=0, start="auto"):
    teacher = HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed)
    return teacher, teacher.sample(n_samples, start=start, random_state=seed + 1)


# --- Blocks -------------------------------------------------------------------------------------


def incomplete(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = fair_spins(rng, shape)
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
    np.testing.assert_array_equal(blocks.at_hand(), several_blocks)


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
    assert blocks.total_observed == 7
    whole = blocks_of(X[1:2])
    assert whole.complete
    assert whole.total_observed == 4


def test_taking_means_off_leaves_missing_entries_missing():
    X = np.array([[1, -1, 0], [0, 1, -1]])
    t = np.array([0.5, -0.25, 0.125], dtype=np.float32)
    blocks = blocks_of(X)
    np.testing.assert_array_equal(blocks.minus(t).at_hand(), [[0.5, -0.75, 0], [0, 1.25, -1.125]])
    np.testing.assert_array_equal(blocks.at_hand(), X)  # the original stays
    np.testing.assert_array_equal(blocks_of(X[:, :2] | 1).minus(t[:2]).at_hand()[0], [0.5, -0.75])


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
        X = fair_spins(rng, shape)
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
    X = fair_spins(rng, (150, 150)).astype(float)
    observed = rng.uniform(0.2, 1, size=150)[:, None] * rng.uniform(0.2, 1, size=150)
    X[rng.random(X.shape) > observed] = 0
    values = np.linalg.svd(X, compute_uv=False) ** 2
    assert deviates(values[:1], float(values.sum()), 150, 150)[0] > 3 * LEVEL


def test_largest_deviates_of_noise_follow_tracy_and_widom():
    t = [
        spectrum_of(fair_spins(np.random.default_rng(seed), (150, 150))).deviates[0]
        for seed in range(100, 200)
    ]
    # Tracy–Widom of real matrices: mean -1.21, deviation 1.27. A hundred draws have errors of
    # 0.13 and 0.09; four of them, and 0.3 for the finite size.
    assert np.mean(t) == pytest.approx(-1.21, abs=0.8)
    assert np.std(t) == pytest.approx(1.27, abs=0.6)


def test_noise_of_unequal_rows_ends_where_its_edge_says():
    rng = np.random.default_rng(0)
    r = np.repeat([0.3, 3.0], [200, 50])
    largest = np.linalg.norm(np.sqrt(r)[:, None] * rng.normal(size=(250, 1000)), 2) ** 2
    assert largest == pytest.approx(edge_of_unequal(r, None, 1000), rel=0.03)
    weights = np.array([200.0, 50.0])
    assert edge_of_unequal(r[[0, -1]], weights, 1000) == pytest.approx(
        edge_of_unequal(r, None, 1000)
    )


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
    X = fair_spins(np.random.default_rng(0), (60, 90))
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
    signs = fair_spins(rng, 150)[:, None] * fair_spins(rng, 120)
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
    np.testing.assert_allclose(weighted.values, expected[: len(weighted.values)], rtol=1e-3)
    assert weighted.n_signal == 0
    # Sites of different noise look like signal if they are not weighted.
    assert spectrum.spectrum(centred, rng).n_signal > 0


def balanced_root(variance):
    """Return the roots of variances, as residual, balanced by these."""
    D = variance.astype(np.float32)
    ones = blocks_of(np.ones(D.shape, dtype=np.int8))
    residual = ones.changed(lambda _, d: np.sqrt(d), D)
    return balanced(residual, ones.changed(lambda _, d: d, D)).at_hand()


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


# --- Small matrices: Lanczos iterations on a Gram matrix ----------------------------------------


def squares(X):
    """Squared singular values, in double precision."""
    return np.linalg.svd(X.astype(float), compute_uv=False) ** 2


@pytest.fixture
def always_lanczos(monkeypatch):
    monkeypatch.setattr(singular, "_WHOLE", 0)


KINDS = {
    "noise": lambda M, N: fair_spins(np.random.default_rng(0), (M, N)),
    "weak": lambda M, N: samples(0.8, 3, M, N)[1],
    "mixed": lambda M, N: samples(1.2, 4, M, N)[1],
    "strong": lambda M, N: samples(2.0, 5, M, N)[1],
    "many": lambda M, N: samples(2.0, 12, M, N)[1],
}


@pytest.mark.parametrize("shape", [(300, 420), (420, 300)])
@pytest.mark.parametrize("kind", KINDS)
def test_lanczos_finds_the_eigenvalues(kind, shape, always_lanczos, monkeypatch):
    X = KINDS[kind](*shape)
    found, exact = spectrum_of(X), squares(X)
    n_values = len(found.values)
    assert n_values < min(shape)  # it is that path
    np.testing.assert_allclose(found.values, exact[:n_values], rtol=1e-3)
    t = deviates(exact, X.size, *shape)
    n_signal = count_signals(t)
    rank, settled = found.likely_rank(*shape)
    # What follows a gap that settles the rank need not be counted.
    assert found.n_signal == n_signal or (settled and found.n_signal == n_values < n_signal)
    V = found.vectors
    np.testing.assert_allclose(V @ V.T, np.eye(len(V)), atol=2e-3)
    monkeypatch.setattr(singular, "_WHOLE", 10**6)
    whole = spectrum_of(X)
    assert len(whole.values) == min(shape)
    assert whole.n_signal == n_signal
    assert whole.likely_rank(*shape) == (rank, settled)
    if n_signal:
        overlap = found.vectors[:rank] @ whole.vectors[:rank].T
        np.testing.assert_allclose(np.linalg.svd(overlap, compute_uv=False), 1, atol=1e-3)


@pytest.mark.parametrize("shape", [(60, 150), (200, 500), (300, 80)])
def test_coefficients_are_those_of_the_samples(shape):
    X = HopfieldModel.random(shape[1], 3, beta=1.5, random_state=0).sample(shape[0], random_state=1)
    found = spectrum_of(X, n_least=5)
    if shape[0] < shape[1]:
        np.testing.assert_allclose(found.coefficients, X @ found.vectors.T, atol=2e-2)
    else:  # their products with each other are not computed
        assert found.coefficients is None


def test_coefficients_of_weighted_samples_are_not_known():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 150)) < 0.2, 0, fair_spins(rng, (60, 150)))
    assert spectrum_of(X).coefficients is None
    blocks, variance = blocks_of(fair_spins(rng, (60, 150))), np.full(150, 2, np.float32)
    assert spectrum.spectrum(blocks, rng, variance=variance).coefficients is None


def test_lanczos_goes_on_until_it_has_seen_noise(always_lanczos):
    """Patterns sampled ever more seldom leave no gap: 16 values are not enough for 30."""
    rng = np.random.default_rng(0)
    often = np.round(np.geomspace(60, 4, 30)).astype(int)
    Z = np.repeat(fair_spins(rng, (30, 600)), often, axis=0)
    X = np.where(rng.random(Z.shape) < 0.1, -Z, Z)
    found = spectrum_of(X)
    assert found.n_signal == count_signals(deviates(squares(X), X.size, *X.shape)) == 30
    assert len(found.values) == 32  # 16, and as many again
    assert len(found.vectors) == 30


@pytest.mark.parametrize("shape", [(300, 420), (420, 300)])
def test_lanczos_returns_as_many_as_asked_for(always_lanczos, shape):
    X = KINDS["noise"](*shape)
    found = spectrum_of(X, n_least=40)
    assert found.vectors.shape == (40, shape[1])
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(40), atol=2e-3)
    length = np.square(np.linalg.norm(X @ found.vectors.T.astype(float), axis=0))
    np.testing.assert_allclose(length, squares(X)[:40], rtol=1e-3)


def planted(sizes, shape, seed=0):
    """Normal noise, whose singular values end below 40, and directions of given sizes."""
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.normal(size=(n, len(sizes))))[0] for n in shape)
    S = (rng.normal(size=shape) + (u * sizes) @ v.T).astype(np.float32)
    ones = blocks_of(np.ones(shape, dtype=np.int8))
    return S, ones.changed(lambda _, s: s, S)


@pytest.mark.parametrize("shape", [(300, 420), (420, 300), (100, 120)])
@pytest.mark.parametrize("n_signal", [0, 1, 3, 4, 5, 12, 31, 32, 40])
@pytest.mark.parametrize("small", [True, False])
def test_signals_are_counted_up_to_so_many(n_signal, shape, small, monkeypatch):
    if not small:
        monkeypatch.setattr(singular, "SMALL", 10)
    S, blocks = planted(np.linspace(150, 80, n_signal), shape)
    t = deviates(squares(S), float(np.square(S, dtype=float).sum()), *shape)
    assert count_signals(t) == n_signal
    assert n_signals(blocks, 0, 32, np.random.default_rng(0)) == min(n_signal, 32)


def test_directions_taken_out_before_are_no_noise():
    """They took noise with them: there is more of it in each of the directions that are left."""
    S, blocks = planted([100, 36, 30], (300, 420))
    total, values = float(np.square(S, dtype=float).sum()), squares(S)[:32]
    removed = (0, 90, 150)
    counts = [count_signals(deviates(values, total, 300, 420, k)) for k in removed]
    assert counts == [3, 2, 1]
    assert [n_signals(blocks, k, 32, np.random.default_rng(0)) for k in removed] == counts


@pytest.mark.parametrize("error", [ArpackError(-9999), ArpackNoConvergence("none", [], [])])
def test_where_lanczos_fails_all_eigenvalues_are_computed(error, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(_eigen, "eigsh", fail)
    X = samples(2.0, 5, 300, 420)[1]
    found = spectrum_of(X)
    np.testing.assert_allclose(found.values, squares(X), rtol=1e-4, atol=1e-2)
    assert found.n_signal == count_signals(deviates(squares(X), X.size, *X.shape))


# Few distinct samples, each many times: Lanczos iterations end before they have what they look
# for, go on from vectors that no seed decides, and leave rounding errors in place of zeros.
RANKS = [1, 2, 5, 15, 16, 17, 24, 40]


@pytest.mark.parametrize("shape", [(300, 420), (420, 300), (700, 600)])
@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("signed", [False, True])
def test_data_of_few_directions(shape, rank, signed):
    rng = np.random.default_rng(rank)
    X = fair_spins(rng, (rank, shape[1]))[np.arange(shape[0]) % rank]
    if signed:
        X = X * fair_spins(rng, (shape[0], 1))
    first, again = spectrum_of(X), spectrum_of(X)
    exact = squares(X)
    assert first.n_signal == rank
    assert first.likely_rank(*shape) == (rank, True)
    np.testing.assert_allclose(first.values[:rank], exact[:rank], rtol=1e-4)
    assert np.abs(first.values[rank:]).max(initial=0) < 1e-6 * exact[0]
    assert first.vectors.shape == (rank, shape[1])
    np.testing.assert_allclose(first.vectors @ first.vectors.T, np.eye(rank), atol=1e-4)
    # All of every sample lies in the space.
    np.testing.assert_allclose((X @ first.vectors.T) @ first.vectors, X, atol=1e-2)
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.vectors, again.vectors)


@pytest.mark.parametrize("n_patterns", [2, 8, 20])
@pytest.mark.parametrize("transposed", [False, True])
def test_directions_of_equal_size_are_all_found(n_patterns, transposed):
    """A Krylov space of one vector holds a single vector of each eigenvalue."""
    X = np.repeat(hadamard(512)[1 : n_patterns + 1], 640 // n_patterns, axis=0).astype(np.int8)
    X = X.T.copy() if transposed else X
    found = spectrum_of(X)
    assert found.n_signal == n_patterns
    np.testing.assert_allclose(found.values[:n_patterns], X.size / n_patterns, rtol=1e-5)
    np.testing.assert_allclose((X @ found.vectors.T) @ found.vectors, X, atol=1e-2)


@pytest.mark.parametrize("shape", [(150, 420), (420, 150)])
def test_each_sample_twice_doubles_every_value(shape, always_lanczos):
    X = samples(0.8, 3, *shape)[1]
    once, twice = spectrum_of(X), spectrum_of(np.repeat(X, 2, axis=0))
    n = min(len(once.values), len(twice.values))
    np.testing.assert_allclose(twice.values[:n], 2 * once.values[:n], rtol=2e-3)
    assert twice.total == 2 * once.total


@pytest.mark.parametrize("shape", [(300, 420), (420, 300), (1400, 300)])
def test_spectra_of_bits_are_those_of_bytes(shape, monkeypatch):
    """Products are counted in one, summed in the other: the same integers."""
    X = samples(0.8, 3, *shape)[1]
    dense = spectrum_of(X)
    monkeypatch.setattr(builder, "DENSE", 0)
    monkeypatch.setattr(words, "_WORTH_GRAM", 0)
    blocks = blocks_of(X)
    assert isinstance(as_spins(X), PackedSpins)
    found = spectrum.spectrum(blocks, np.random.default_rng(0))
    assert found.n_signal == dense.n_signal
    if shape[1] <= shape[0]:
        np.testing.assert_array_equal(found.values, dense.values)
        np.testing.assert_array_equal(found.vectors, dense.vectors)
        np.testing.assert_array_equal(blocks.gram(), X.T.astype(int) @ X.astype(int))
    else:  # too many spins for their Gram matrix, and no floats for that of the samples
        np.testing.assert_allclose(found.values[:3], dense.values[:3], rtol=1e-3)
        assert not blocks.knows_gram


# --- The rank that a spectrum shows -------------------------------------------------------------


def made_up(values, n_samples=200, n_spins=300, n_signal=None):
    """A spectrum of which nothing but values is known."""
    values = np.array(values, dtype=float)
    t = deviates(values, n_samples * n_spins, n_samples, n_spins)
    n_signal = count_signals(t) if n_signal is None else n_signal
    edge = noise_edge(n_samples, n_spins)[0]
    vectors = np.eye(max(n_signal, 1), n_spins, dtype=np.float32)
    return Spectrum(values, vectors, t, n_samples * n_spins, edge, n_signal)


# The edge of noise of unit variance is at 990, and of what 40,000 in front leave, at a third.
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([40000, 300, 290], (1, True)),
        ([20000, 20000, 300, 290], (2, True)),
        ([20000, 19000, 1000, 290, 280], (2, False)),  # a third one, small but no noise
        ([1400, 1300, 900, 880], (2, False)),  # signals, but no gap
        ([950, 900], (1, False)),  # noise
    ],
)
def test_a_gap_that_ends_at_the_noise_settles_the_rank(values, expected):
    assert made_up(values).likely_rank(200, 300) == expected


@settings(max_examples=50)
@given(
    st.lists(st.floats(1e3, 1e4), min_size=1, max_size=6),
    st.integers(1, 4),
    st.floats(1e-3, 1e3),
)
def test_the_likely_rank_has_no_units(values, n_more, scale):
    values = np.sort([*values, *np.linspace(100, 300, n_more)])[::-1]
    n_signal = len(values) - 1
    one, other = (
        Spectrum(v, np.empty((0, 300)), made_up(values).deviates, v.sum(), 990.0, n_signal)
        for v in (values, scale * values)
    )
    assert one.likely_rank(200, 300) == other.likely_rank(200, 300)
    ratio = values[:-1] / values[1:]
    assert one.likely_rank(200, 300)[0] == np.argmax(ratio) + 1


def test_values_that_fall_to_zero_at_full_rank_are_no_gap():
    X = fair_spins(np.random.default_rng(0), (20, 22))
    values = squares(X)
    assert values[-2] > 2 * values[-1]
    whole = made_up(values, 20, 22, n_signal=20)
    assert whole.likely_rank(20, 22)[0] <= 15


@pytest.mark.parametrize(
    ("values", "n_signal", "expected"),
    [
        ([9000, 2000, 1500, 400, 300], 4, [1, 3]),  # a gap above the edge leaves signals
        ([900, 300, 290, 280], 3, [1]),  # nothing above the edge
        ([5000, 4000, 0, 0], 3, [1, 2]),  # all there is: or fewer
        ([5000, 4000, 200, 180, 0, 0], 5, [2, 4]),  # to zero at 4, but most of it at 2
    ],
)
def test_likely_ranks_are_where_the_spectrum_falls(values, n_signal, expected):
    assert likely_ranks(made_up(values, n_signal=n_signal), 200, 300) == (expected, False)


def test_a_gap_that_ends_at_noise_is_the_only_likely_rank():
    _, X = samples(2.0, 4, 80)
    assert likely_ranks(spectrum_of(X), *X.shape) == ([4], True)


@pytest.mark.parametrize("n_samples", [100, 250])
@pytest.mark.parametrize("seed", range(3))
def test_a_likely_rank_beside_coins_is_the_number_of_clusters(n_samples, seed):
    """Noise of clusters is small, so that fair_spins among them look like signals of their own."""
    _, X = samples(2.0, 5, n_samples, 500, seed)
    X[: n_samples // 5] = fair_spins(np.random.default_rng(seed + 100), (n_samples // 5, 500))
    whole = spectrum_of(X)
    assert whole.n_signal > 5
    assert likely_ranks(whole, *X.shape)[0][0] == 5


def test_the_linear_space_is_that_of_the_singular_directions():
    _, X = samples(2.0, 4, 80)
    blocks, whole = blocks_of(X), spectrum_of(X)
    for k in (1, 3, 4):
        factors = linear_space(blocks, whole, k)
        np.testing.assert_allclose(factors.V, np.sqrt(300) * whole.vectors[:k], rtol=1e-6)
        # Coefficients are projections, longer by what tanh takes off.
        along = X @ whole.vectors[:k].T
        cosine = np.sum(factors.X * along, axis=1) / (
            np.linalg.norm(factors.X, axis=1) * np.linalg.norm(along, axis=1)
        )
        np.testing.assert_allclose(cosine, 1, atol=1e-4)


# --- Large matrices: the randomised path --------------------------------------------------------


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(singular, "SMALL", 10)


@pytest.mark.parametrize("n_patterns", [1, 4])
def test_randomised_spectrum_agrees_with_the_exact_one(monkeypatch, n_patterns):
    _, X = samples(0.8, n_patterns, 400)
    exact = spectrum_of(X)
    monkeypatch.setattr(singular, "SMALL", 10)
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
    monkeypatch.setattr(singular, "SMALL", 10)
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
