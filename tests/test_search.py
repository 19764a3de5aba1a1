"""From a space to its ±1 vectors: polishing, independence, the search, and filling up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match
from dualtap.recovery.factors import start_factors
from dualtap.recovery.rotate import (
    depth,
    independent,
    polish,
    row_basis,
    spurious_depth,
    unmixed,
)
from dualtap.recovery.search import fill, search
from dualtap.spins import as_spins
from dualtap.spins.blocks import Blocks


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """BLAS threads that wait for each other on a busy machine make small products slow."""
    with threadpool_limits(1):
        yield


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


@pytest.mark.parametrize("start", ["auto", "spectral", "samples", "random"])
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("n_patterns", [1, 4, 8])
def test_search_finds_rotated_patterns(start, noise, n_patterns):
    zeta, blocks, factors = rotated(400, n_patterns, noise)
    found = search(blocks, factors, np.random.default_rng(1), start)
    assert found.n_patterns == n_patterns
    Z = found.factors.V[:n_patterns]
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
    found = search(blocks, start_factors(blocks, V), rng, "auto")
    assert found.n_patterns == 4
    assert match(found.factors.V[:4], zeta).overlaps.min() > 0.98
    assert len(found.factors.V) == 4 + n_real


def test_search_finds_nothing_in_a_space_without_patterns():
    rng = np.random.default_rng(0)
    blocks = Blocks(as_spins(signs(rng, (60, 400))))
    V = rng.normal(size=(6, 400)).astype(np.float32)
    found = search(blocks, start_factors(blocks, V), rng, "auto")
    assert found.n_patterns == 0
    np.testing.assert_array_equal(found.factors.V, V)


def test_search_follows_its_generator():
    _, blocks, factors = rotated(300, 4, 0.5)
    first, again = (search(blocks, factors, np.random.default_rng(3), "auto") for _ in range(2))
    np.testing.assert_array_equal(first.factors.V, again.factors.V)


# --- Filling up ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_real", [0, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_filling_up_returns_as_many_as_asked_for(n_real, seed):
    zeta, blocks, _ = rotated(300, 3, 0.0, seed)
    rng = np.random.default_rng(seed)
    V = np.concatenate([zeta, rng.normal(size=(n_real, 300))])
    V = (np.linalg.qr(rng.normal(size=(len(V), len(V))))[0] @ V).astype(np.float32)
    found = search(blocks, start_factors(blocks, V), rng, "auto")
    Z = fill(found, found.factors.V[: found.n_patterns], 3 + n_real, rng)
    assert Z.shape == (3 + n_real, 300)
    assert set(np.unique(Z)) == {-1, 1}
    np.testing.assert_array_equal(Z[: found.n_patterns], found.factors.V[: found.n_patterns])
    assert np.linalg.matrix_rank(Z) == len(Z)


def test_filling_up_from_nothing():
    rng = np.random.default_rng(0)
    blocks = Blocks(as_spins(signs(rng, (60, 400))))
    V = rng.normal(size=(6, 400)).astype(np.float32)
    found = search(blocks, start_factors(blocks, V), rng, "auto")
    Z = fill(found, found.factors.V[: found.n_patterns], 6, rng)
    assert Z.shape == (6, 400)
    # Signs of rotations within the space, not just any vectors: those have 6/400.
    assert depth(Z, row_basis(V)).min() > 0.3
