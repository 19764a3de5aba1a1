"""From a space to its ±1 vectors: polishing, independence, and the search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match
from dualtap.spins import as_spins
from dualtap.spins.blocks import Blocks
from dualtap.subspace import starts
from dualtap.subspace.factors import start_factors
from dualtap.subspace.rotate import (
    depth,
    independent,
    polish,
    row_basis,
    spurious_depth,
    unmixed,
)
from dualtap.subspace.search import all_at_once, search
from dualtap.subspace.starts import far_apart

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def signs(rng, shape):
    return rng.choice(np.array([-1, 1], dtype=np.float32), size=shape)


def random_basis(rng, k, n):
    return np.linalg.qr(rng.normal(size=(n, k)))[0].T.astype(np.float32)


shapes = {
    "k": st.integers(1, 5),
    "n": st.integers(5, 30),
    "n_vectors": st.integers(1, 6),
    "seed": st.integers(0, 2**32 - 1),
}


# --- Bases --------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(k=shapes["k"], n=shapes["n"], seed=shapes["seed"])
def test_row_basis_is_orthonormal_and_spans(k, n, seed):
    V = np.random.default_rng(seed).normal(size=(k, n))
    u = row_basis(V)
    np.testing.assert_allclose(u @ u.T, np.eye(k), atol=1e-5)
    np.testing.assert_allclose((V @ u.T) @ u, V, atol=1e-4)


def test_row_basis_drops_what_depends():
    V = signs(np.random.default_rng(0), (2, 50))
    assert len(row_basis(np.concatenate([V, V, 0 * V, V[:1] - V[1:]]))) == 2


# --- Depth --------------------------------------------------------------------------------------


def test_depth_by_hand():
    u = np.eye(4, dtype=np.float32)
    z = np.array([[1, 1, 1, 1], [1, -1, 1, -1]], dtype=np.float32)
    np.testing.assert_allclose(depth(z, u[:1]), [0.25, 0.25])
    np.testing.assert_allclose(depth(z, u[:3]), [0.75, 0.75])
    np.testing.assert_allclose(depth(z, z[:1] / 2), [1, 0], atol=1e-7)
    np.testing.assert_allclose(depth(z, u[:0]), [0, 0])


@settings(max_examples=50)
@given(**shapes)
def test_depth_has_no_signs_and_no_order(k, n, n_vectors, seed):
    rng = np.random.default_rng(seed)
    u, z = random_basis(rng, k, n), signs(rng, (n_vectors, n))
    d = depth(z, u)
    assert ((d >= 0) & (d <= 1 + 1e-5)).all()
    sites, flips = rng.permutation(n), signs(rng, n)
    np.testing.assert_allclose(depth(z[:, sites], u[:, sites]), d, atol=1e-5)
    np.testing.assert_allclose(depth(flips * z, flips * u), d, atol=1e-5)
    np.testing.assert_allclose(depth(-z, u), d, atol=1e-6)
    # Another basis of the same space.
    turned = np.linalg.qr(rng.normal(size=(k, k)))[0].astype(np.float32) @ u
    np.testing.assert_allclose(depth(z, turned), d, atol=1e-5)
    np.testing.assert_allclose(depth(z, random_basis(rng, n, n)), 1, atol=1e-4)


# --- Polishing ----------------------------------------------------------------------------------


@settings(max_examples=80)
@given(**shapes)
def test_polishing_never_lowers_depth_and_ends_at_fixed_points(k, n, n_vectors, seed):
    rng = np.random.default_rng(seed)
    u, z = random_basis(rng, k, n), signs(rng, (n_vectors, n))
    before = z.copy()
    found = polish(z, u)
    np.testing.assert_array_equal(z, before)
    assert set(np.unique(found)) <= {-1, 1}
    assert (depth(found, u) >= depth(z, u) - 1e-5).all()
    projection = (found @ u.T) @ u
    clear = np.abs(projection) > 1e-4
    np.testing.assert_array_equal(np.sign(projection[clear]), found[clear])
    np.testing.assert_array_equal(polish(found, u), found)


@settings(max_examples=50)
@given(**shapes)
def test_polishing_commutes_with_permutations_and_signs(k, n, n_vectors, seed):
    rng = np.random.default_rng(seed)
    u, z = random_basis(rng, k, n), signs(rng, (n_vectors, n))
    found = polish(z, u)
    sites, flips, order = rng.permutation(n), signs(rng, n), rng.permutation(n_vectors)
    np.testing.assert_array_equal(polish(z[order], u), found[order])
    np.testing.assert_array_equal(polish(z[:, sites], u[:, sites]), found[:, sites])
    np.testing.assert_array_equal(polish(flips * z, flips * u), flips * found)
    np.testing.assert_array_equal(polish(-z, u), -found)


def test_polishing_repairs_a_noisy_pattern_in_its_space():
    rng = np.random.default_rng(0)
    zeta = signs(rng, (4, 300))
    noisy = np.where(rng.random(zeta.shape) < 0.2, -zeta, zeta)
    np.testing.assert_array_equal(polish(noisy, row_basis(zeta)), zeta)


def test_vectors_are_spurious_below_what_patterns_reach():
    rng = np.random.default_rng(0)
    # The sign of a Gaussian vector has the share 2/π of its length along it.
    one = spurious_depth(1, 400, rng)
    assert one == pytest.approx(2 / np.pi, abs=0.1)
    # More dimensions, more room; noise on patterns of a third of their size leaves 0.9.
    ten = spurious_depth(10, 400, rng)
    assert one < ten < 0.8
    zeta = signs(rng, (10, 400))
    u = row_basis(zeta + rng.normal(0, 1 / 3, size=zeta.shape))
    assert depth(polish(zeta, u), u).min() > ten + 0.05


# --- Independence -------------------------------------------------------------------------------


def test_independent_takes_by_order_and_skips_what_is_explained():
    a, b, c = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1]], dtype=np.float32)
    pool = np.stack([a, -a, b, c, a])
    found = independent(pool, np.array([1.0, 5.0, 3.0, 4.0, 2.0]), 5, 0.5)
    np.testing.assert_array_equal(found, [-a, c, b])
    found = independent(pool, np.array([1.0, 5.0, 3.0, 4.0, 2.0]), 2, 0.5)
    np.testing.assert_array_equal(found, [-a, c])
    assert len(independent(pool, np.arange(5.0), 0, 0.5)) == 0
    assert independent(pool[:0], np.empty(0), 3, 0.5).shape == (0, 4)


def test_independent_measures_what_is_left_by_projection():
    """(a + b)/2 + ... of four sites: 3 of 4 equal means an overlap of 1/2, so 3/4 is left."""
    a = np.array([1, 1, 1, 1], dtype=np.float32)
    b = np.array([1, 1, 1, -1], dtype=np.float32)
    pool, order = np.stack([a, b]), np.array([2.0, 1.0])
    assert len(independent(pool, order, 2, 0.7)) == 2
    assert len(independent(pool, order, 2, 0.8)) == 1


@settings(max_examples=50)
@given(n=st.integers(5, 30), n_vectors=st.integers(1, 8), seed=shapes["seed"])
def test_independent_has_no_signs_and_no_order_of_sites(n, n_vectors, seed):
    rng = np.random.default_rng(seed)
    pool, order = signs(rng, (n_vectors, n)), rng.permutation(n_vectors).astype(float)
    # Shares left are multiples of nothing in particular: 0.37 is met with probability zero.
    found = independent(pool, order, 4, 0.37)
    assert 1 <= len(found) <= min(4, n_vectors)
    sites, flips, rows = rng.permutation(n), signs(rng, n), rng.permutation(n_vectors)
    np.testing.assert_array_equal(independent(pool[:, sites], order, 4, 0.37), found[:, sites])
    np.testing.assert_array_equal(independent(flips * pool, order, 4, 0.37), flips * found)
    np.testing.assert_array_equal(independent(pool[rows], order[rows], 4, 0.37), found)
    own = signs(rng, n_vectors)[:, None]
    kept = independent(own * pool, order, 4, 0.37)
    np.testing.assert_array_equal(np.abs(np.sum(kept * found, axis=1)), n)
    # What was kept is independent indeed.
    assert np.linalg.matrix_rank(found) == len(found)


# --- Rotation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("contrast", ["logcosh", "cube"])
def test_unmixing_finds_rotated_patterns(contrast):
    rng = np.random.default_rng(0)
    zeta = signs(rng, (5, 400))
    components = unmixed(row_basis(rng.normal(size=(5, 5)) @ zeta), 0, contrast)
    assert match(np.where(components < 0, -1, 1), zeta).overlaps.min() > 0.98


def test_unmixing_one_direction_is_the_direction():
    u = row_basis(signs(np.random.default_rng(0), (1, 30)))
    np.testing.assert_array_equal(unmixed(u, 0), u)


# --- The search ---------------------------------------------------------------------------------


def rotated(n_spins, n_patterns, noise, seed=0, n_samples=10):
    """Patterns behind a random matrix and noise, and samples of them."""
    rng = np.random.default_rng(seed)
    zeta = signs(rng, (n_patterns, n_spins))
    noisy = zeta + noise * rng.normal(size=zeta.shape)
    V = (rng.normal(size=(n_patterns, n_patterns)) @ noisy).astype(np.float32)
    X = HopfieldModel(zeta, 2.0).sample(n_samples * n_patterns, random_state=seed)
    blocks = Blocks(as_spins(X))
    return zeta, blocks, start_factors(blocks, V)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("n_patterns", [1, 4, 8])
def test_search_finds_rotated_patterns(noise, n_patterns):
    zeta, blocks, factors = rotated(400, n_patterns, noise)
    Z = search(blocks, factors, np.random.default_rng(1)).patterns
    assert len(Z) == n_patterns
    assert set(np.unique(Z)) == {-1, 1}
    # Noise of 0.4 turns a bit beyond 2.5 deviations: 0.6 % of them, twice that in overlap. At
    # worst two patterns are refitted to the data only in part.
    assert match(Z, zeta).overlaps.min() > (0.9 if noise > 0.3 else 0.98)


@pytest.mark.parametrize("n_real", [1, 2, 3])
def test_search_tells_patterns_from_real_vectors(n_real):
    """Directions that are Gaussian over sites are no patterns.

    200 samples: when fitted again to only 40, such a direction turns to one of them, which is ±1.
    """
    zeta, blocks, _ = rotated(400, 4, 0.0, n_samples=50)
    rng = np.random.default_rng(2)
    V = np.concatenate([zeta, rng.normal(size=(n_real, 400))])
    V = (np.linalg.qr(rng.normal(size=(len(V), len(V))))[0] @ V).astype(np.float32)
    Z = search(blocks, start_factors(blocks, V), rng).patterns
    assert len(Z) == 4
    assert match(Z, zeta).overlaps.min() > 0.98


def test_search_finds_nothing_in_a_space_without_patterns():
    rng = np.random.default_rng(0)
    blocks = Blocks(as_spins(signs(rng, (60, 400))))
    V = rng.normal(size=(6, 400)).astype(np.float32)
    assert search(blocks, start_factors(blocks, V), rng).patterns.shape == (0, 400)


def test_search_follows_its_generator():
    _, blocks, factors = rotated(300, 4, 0.5)
    first, again = (search(blocks, factors, np.random.default_rng(3)).patterns for _ in range(2))
    np.testing.assert_array_equal(first, again)


# --- Samples far apart --------------------------------------------------------------------------


def clusters(n_spins, sizes, noise=0.05, seed=0):
    """Patterns, and so many samples of each, bits of them and whole samples turned."""
    rng = np.random.default_rng(seed)
    zeta = signs(rng, (len(sizes), n_spins))
    S = np.repeat(zeta, sizes, axis=0) * signs(rng, (sum(sizes), 1))
    S = np.where(rng.random(S.shape) < noise, -S, S)
    return zeta, S[rng.permutation(len(S))]


def basis_of(S, k):
    return np.linalg.svd(S, full_matrices=False)[2][:k].astype(np.float32)


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_of_every_cluster_there_is_one_sample(n_patterns, more, seed):
    sizes = [2 + more] + (n_patterns - 1) * [2]
    zeta, S = clusters(400, sizes, seed=seed)
    V = basis_of(S, n_patterns)
    found = far_apart(S @ V.T, V)
    assert found.shape == zeta.shape
    assert set(np.unique(found)) <= {-1, 1}
    # Projected onto the space: most of the noise is gone.
    assert match(found, zeta).overlaps.min() > 0.85
    # Signs and order of samples, and the basis, are free.
    rng = np.random.default_rng(seed)
    other = (signs(rng, (len(S), 1)) * S)[rng.permutation(len(S))]
    turned = np.linalg.qr(rng.normal(size=(n_patterns, n_patterns)))[0] @ V
    again = far_apart(other @ turned.T, turned)
    assert match(again, found).overlaps.min() > 0.85


def test_the_first_sample_is_the_longest_and_the_next_least_explained():
    X = np.array([[1, 0, 0], [3, 0, 0], [2.9, 1, 0], [0, 0, 0.5], [2.5, 0.9, 0]])
    V = np.array([[3, 2, 1], [-1, 1, 3], [1, -5, 1]])
    np.testing.assert_array_equal(far_apart(X, V), np.sign(X[[2, 1, 3]] @ V))


def test_fewer_samples_than_dimensions():
    V = signs(np.random.default_rng(0), (4, 50))
    np.testing.assert_array_equal(far_apart(np.eye(4)[:2], V), V[:2])
    assert far_apart(np.zeros((3, 4)), V).shape == (3, 50)


def test_of_many_samples_some_are_looked_at(monkeypatch):
    zeta, S = clusters(400, 4 * [600])
    V, sizes, qr = basis_of(S, 4), [], starts.qr

    def spy(A, **options):
        sizes.append(A.shape)
        return qr(A, **options)

    monkeypatch.setattr(starts, "qr", spy)
    assert match(far_apart(S @ V.T, V), zeta).overlaps.min() > 0.85
    assert sizes == [(4, 1000)]


# --- All at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_patterns", [1, 2, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_show_at_samples_far_apart(n_patterns, seed):
    zeta, S = clusters(500, n_patterns * [8], seed=seed)
    u = basis_of(S, n_patterns)
    Z = all_at_once(polish(far_apart(S @ u.T, u), u), u)
    assert match(Z, zeta).n_recovered(0.98) == len(Z) == n_patterns


@pytest.mark.parametrize("n_real", [1, 3])
def test_nothing_shows_if_one_dimension_has_no_pattern(n_real):
    zeta, _ = clusters(500, 4 * [20])
    rng = np.random.default_rng(1)
    V = np.vstack([zeta, rng.normal(size=(n_real, 500))]).astype(np.float32)
    pool = np.vstack([zeta, signs(rng, (10, 500))])
    u = row_basis(V)
    assert all_at_once(polish(pool, u), u).shape == (0, 500)
    assert len(all_at_once(polish(pool, row_basis(zeta)), row_basis(zeta))) == 4
