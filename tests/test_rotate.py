"""Rotation to ±1 patterns: what no noise hides is found exactly, whatever the mixing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap.metrics import match
from dualtap.rbm.monitors import singular_values
from dualtap.rbm.patterns import n_above_gap, patterns_from_weights
from dualtap.subspace.rotate import (
    are_products,
    depth,
    independent,
    rotate_to_patterns,
    row_basis,
)


def random_patterns(p, n_spins, rng):
    return rng.choice(np.array([-1, 1], dtype=np.int8), size=(p, n_spins))


def random_rotation(p, rng):
    return np.linalg.qr(rng.standard_normal((p, p)))[0]


def deepest(pool, u):
    pool = pool.astype(np.float32)
    return independent(pool, depth(pool, u.astype(np.float32)), len(u), 0.2)


def unsigned(patterns):
    """The set of patterns up to their signs."""
    return {tuple((row * row[0]).tolist()) for row in np.asarray(patterns)}


# --- rotation ----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(30, 60), st.integers(0, 2**32 - 1))
def test_a_rotation_is_undone_exactly(p, spins_per_pattern, seed):
    rng = np.random.default_rng(seed)
    zeta = random_patterns(p, p * spins_per_pattern, rng)
    found = rotate_to_patterns(random_rotation(p, rng) @ zeta, rng)
    assert found.dtype == np.int8
    assert unsigned(found) == unsigned(zeta)


# Orthonormal rows leave the whitening inside FastICA without a preferred basis, and a zero where
# it looks for a sign; every restart then lost the same pattern.
@pytest.mark.parametrize("seed", [3, 7, 18, 24, 30])
def test_no_pattern_is_lost_to_the_whitening(seed):
    rng = np.random.default_rng(seed)
    zeta = random_patterns(6, 300, rng)
    found = rotate_to_patterns(random_rotation(6, rng) @ zeta, rng)
    assert unsigned(found) == unsigned(zeta)


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_any_invertible_mixing_is_undone(p, seed):
    rng = np.random.default_rng(seed)
    zeta = random_patterns(p, 200, rng)
    # Singular values from 1 to 100: the answer depends on the span alone.
    scales = np.geomspace(1, 100, p)[:, None]
    mixing = random_rotation(p, rng) @ (scales * random_rotation(p, rng))
    assert unsigned(rotate_to_patterns(mixing @ zeta, rng)) == unsigned(zeta)


@pytest.mark.parametrize("seed", range(4))
def test_signs_and_order_of_the_basis_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    basis = random_patterns(4, 300, rng) + 0.2 * rng.standard_normal((4, 300))
    changed = (basis * [[1], [-1], [-1], [1]])[[2, 0, 3, 1]]
    found = [rotate_to_patterns(b, np.random.default_rng(9)) for b in (basis, changed)]
    assert unsigned(found[0]) == unsigned(found[1])


@pytest.mark.parametrize("seed", range(4))
def test_the_same_generator_gives_the_same_patterns(seed):
    basis = np.random.default_rng(seed).standard_normal((4, 50))
    first, second = (rotate_to_patterns(basis, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("seed", range(6))
def test_noise_costs_few_signs(seed):
    rng = np.random.default_rng(seed)
    zeta = random_patterns(5, 1000, rng)
    noisy = random_rotation(5, rng) @ zeta + 0.4 * rng.standard_normal((5, 1000))
    # A normal variable beyond 2.5 standard deviations turns a sign: 0.6 %, overlap 0.988.
    result = match(rotate_to_patterns(noisy, rng), zeta)
    assert result.overlaps.min() > 0.96


@pytest.mark.parametrize("seed", range(4))
def test_patterns_of_one_sign_are_found(seed):
    # A pattern without a single -1 has no variance over sites, and is a pattern all the same.
    rng = np.random.default_rng(seed)
    zeta = random_patterns(4, 300, rng)
    zeta[0] = 1
    found = rotate_to_patterns(random_rotation(4, rng) @ zeta, rng)
    assert unsigned(found) == unsigned(zeta)


@pytest.mark.parametrize("seed", range(4))
def test_patterns_with_a_common_bias_are_found(seed):
    # 80 % of the spins up: overlaps of 0.36 between any two.
    rng = np.random.default_rng(seed)
    zeta = np.where(rng.random((3, 500)) < 0.8, 1, -1)
    found = rotate_to_patterns(random_rotation(3, rng) @ zeta, rng)
    assert unsigned(found) == unsigned(zeta)


def test_an_empty_basis_has_no_patterns():
    found = rotate_to_patterns(np.empty((0, 7)), np.random.default_rng(0))
    assert (found.shape, found.dtype) == ((0, 7), np.int8)


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_one_vector_becomes_its_signs(n_spins, seed):
    rng = np.random.default_rng(seed)
    vector = rng.standard_normal((1, n_spins))
    assert unsigned(rotate_to_patterns(vector, rng)) == unsigned(np.sign(vector))


@pytest.mark.parametrize("n_spins", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(6))
def test_a_basis_of_the_whole_space_is_no_accident(n_spins, seed):
    # Every ±1 vector lies in the span; nothing to find, but signs must come out.
    rng = np.random.default_rng(seed)
    found = rotate_to_patterns(random_rotation(n_spins, rng), rng)
    assert 1 <= len(found) <= n_spins
    assert set(np.unique(found)) <= {-1, 1}


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(12, 60), st.integers(0, 2**32 - 1))
def test_what_is_found_is_independent_even_in_noise(p, n_spins, seed):
    rng = np.random.default_rng(seed)
    found = rotate_to_patterns(rng.standard_normal((p, n_spins)), rng)
    assert 1 <= len(found) <= p
    assert np.linalg.matrix_rank(found) == len(found)


def test_the_deepest_come_first_and_copies_are_left_out():
    # Two patterns in the plane; between them stands a vector that shares three quarters with one.
    a = np.array([1, 1, 1, 1, 1, 1, 1, 1])
    b = np.array([1, 1, 1, 1, -1, -1, -1, -1])
    near = np.array([1, 1, 1, 1, 1, 1, 1, -1])
    u = np.array([a, b]) / np.sqrt(8)
    taken = deepest(np.array([near, -a, a, b, -b], dtype=np.int8), u)
    np.testing.assert_array_equal(taken, [-a, b])


def test_a_vector_that_hardly_adds_is_passed_over():
    # Outside a, near keeps 1 - 0.9² = 0.19 of its square; far keeps 1 - 0.8² = 0.36.
    a, near, far = np.ones((3, 20), dtype=np.int8)
    near[:1], far[-2:] = -1, -1  # overlaps 0.9 and 0.8
    u = np.linalg.qr(np.array([a, far]).T.astype(float))[0].T
    np.testing.assert_array_equal(deepest(np.array([near, a]), u), [a])
    assert unsigned(deepest(np.array([near, a, far]), u)) == unsigned([a, far])


# --- bases -------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.integers(1, 8), st.integers(0, 4), st.integers(2, 40), st.booleans(), st.integers(0, 2**32)
)
def test_a_basis_of_rows_that_depend_spans_what_they_span(rank, n_more, n_spins, single, seed):
    rng = np.random.default_rng(seed)
    # Sizes from 1 to 1000 within the rows.
    V = rng.normal(size=(rank, n_spins)) * np.geomspace(1, 1000, rank)[:, None]
    V = np.concatenate([V, rng.normal(size=(n_more, rank)) @ V])[rng.permutation(rank + n_more)]
    V = V.astype(np.float32) if single else V
    u = row_basis(V)
    assert u.dtype == np.float32
    s = np.linalg.svd(V.astype(float), compute_uv=False)
    clear = s > 1e-4 * s[0]
    assert clear.sum() <= len(u) <= min(rank, n_spins)
    np.testing.assert_allclose(u @ u.T, np.eye(len(u)), atol=2e-3)
    np.testing.assert_allclose((V @ u.T) @ u, V, atol=2e-4 * s[0])


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(12, 40), st.integers(0, 2**32 - 1))
def test_a_basis_belongs_to_the_span(p, n_spins, seed):
    """Projections are those of the pseudoinverse, in whatever way the rows are mixed."""
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((p, n_spins))
    u, mixed = row_basis(V), row_basis(random_rotation(p, rng) @ V)
    exact = np.linalg.pinv(V) @ V
    np.testing.assert_allclose(u.T @ u, exact, atol=1e-5)
    np.testing.assert_allclose(mixed.T @ mixed, exact, atol=1e-5)
    sites, signs = rng.permutation(n_spins), random_patterns(1, n_spins, rng)
    turned = row_basis((signs * V)[:, sites])
    np.testing.assert_allclose(
        turned.T @ turned, (signs.T * exact * signs)[sites][:, sites], atol=1e-5
    )


def test_rows_of_zeros_span_nothing():
    assert row_basis(np.zeros((3, 7))).shape == (0, 7)


# --- products of three -------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(3, 9), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_product_of_three_is_seen_wherever_it_stands(p, is_there, seed):
    rng = np.random.default_rng(seed)
    Z = random_patterns(p, 400, rng).astype(np.float32)
    if is_there:
        a, b, c = rng.permutation(p)[:3]
        # One bit in twenty differs.
        product = Z[a] * Z[b] * Z[c] * np.where(rng.random(400) < 0.05, -1, 1)
        Z = np.vstack([Z, product]).astype(np.float32)
    signs, sites = random_patterns(len(Z), 1, rng), rng.permutation(400)
    Z = (signs * Z)[rng.permutation(len(Z))][:, sites]
    # Overlaps of pairs of 400 spins deviate by 0.05.
    assert are_products(Z) == is_there


@pytest.mark.parametrize("p", [1, 2, 3])
def test_fewer_than_four_patterns_have_no_product(p):
    assert not are_products(random_patterns(p, 300, np.random.default_rng(0)).astype(np.float32))


def test_products_of_two_and_of_five_are_other_patterns():
    Z = random_patterns(6, 300, np.random.default_rng(0)).astype(np.float32)
    assert not are_products(np.vstack([Z, Z[0] * Z[1]]))
    assert not are_products(np.vstack([Z, Z[:5].prod(axis=0)]))


@pytest.mark.parametrize("seed", range(4))
def test_patterns_with_a_common_bias_are_no_products(seed):
    # 80 % of the spins up: overlaps of 0.36 between any two, and of 0.13 between pairs.
    Z = np.where(np.random.default_rng(seed).random((5, 500)) < 0.8, 1, -1)
    assert not are_products(Z.astype(np.float32))


def test_states_that_mix_three_patterns_are_products_of_each_other():
    """sign(a + b + c) = (a + b + c - abc)/2, and so on: four states, four vectors, both ±1."""
    a, b, c = random_patterns(3, 300, np.random.default_rng(0)).astype(np.float32)
    states = np.sign([a + b + c, a + b - c, a - b + c, b + c - a]).astype(np.float32)
    np.testing.assert_array_equal(2 * states[0], a + b + c - a * b * c)
    assert are_products(states)
    assert are_products(np.stack([a, b, c, a * b * c]))


# --- patterns out of weights -------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(0, 4), st.floats(0.5, 4), st.integers(0, 2**32 - 1))
def test_patterns_and_temperature_out_of_rotated_weights(p, n_idle, beta, seed):
    rng = np.random.default_rng(seed)
    n_spins, n_hidden = 300, p + n_idle
    zeta = random_patterns(p, n_spins, rng)
    W = random_rotation(n_hidden, rng)[:, :p] @ zeta * np.sqrt(beta / n_spins)
    found = patterns_from_weights(W.astype(np.float32), 0.03, rng)
    assert unsigned(found.patterns) == unsigned(zeta)
    assert found.beta == pytest.approx(beta, rel=1e-5)  # ΣΛ = tr WWᵀ = Pβ, overlaps or not
    np.testing.assert_allclose(found.singular_values, singular_values(W), atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_idle_units_and_noise_do_not_hide_the_patterns(seed):
    rng = np.random.default_rng(seed)
    n_spins, n_hidden = 500, 9
    zeta = random_patterns(4, n_spins, rng)
    W = random_rotation(n_hidden, rng)[:, :4] @ zeta * np.sqrt(1.8 / n_spins)
    W += 0.03 / np.sqrt(n_spins) * rng.standard_normal(W.shape)
    found = patterns_from_weights(W, 0.03, rng)
    assert unsigned(found.patterns) == unsigned(zeta)
    assert found.beta == pytest.approx(1.8, rel=0.01)


def test_weights_that_learned_nothing_have_no_patterns():
    rng = np.random.default_rng(0)
    W = 0.03 / np.sqrt(400) * rng.standard_normal((6, 400))
    found = patterns_from_weights(W, 0.03, rng)
    assert found.patterns.shape == (0, 400)
    assert found.beta == 1
    assert found.singular_values.shape == (6,)


def test_more_units_than_spins():
    rng = np.random.default_rng(0)
    zeta = random_patterns(1, 5, rng)
    W = rng.standard_normal((9, 1)) @ zeta
    found = patterns_from_weights(W, 0.03, rng)
    assert unsigned(found.patterns) == unsigned(zeta)
    # And where every unit of a full-rank W is far above the floor.
    found = patterns_from_weights(rng.standard_normal((9, 4)), 1e-3, rng)
    assert found.patterns.shape[0] <= 4
    assert found.singular_values.shape == (9,)


@pytest.mark.parametrize(
    ("values", "floor", "expected"),
    [
        ([1.6, 1.5, 1.3, 0.031, 0.03], 0.03, 3),
        ([1.6, 1.5, 1.3], 0.03, 3),  # all of them: the floor closes the list
        ([0.033, 0.031, 0.03], 0.03, 0),
        ([0.0599, 0.03], 0.03, 0),  # a ratio just below two
        ([0.0601, 0.03], 0.03, 1),
        ([5.0, 1.5, 1.4, 0.05], 0.03, 3),  # the widest of two gaps, not the first
        ([50.0, 1.5, 1.4, 0.5], 0.1, 1),
        ([1.5, 1.4, 1e-12, 1e-15], 0.03, 2),  # gaps below the floor do not count
        ([1e-12, 1e-15], 0.03, 0),
        ([0.0, 0.0], 0.03, 0),
        ([1.0], 0.03, 1),
        ([0.03], 0.03, 0),
    ],
)
def test_count_above_the_gap(values, floor, expected):
    assert n_above_gap(np.array(values), floor) == expected


@settings(max_examples=50)
@given(
    st.lists(st.floats(1, 1.9), min_size=0, max_size=6),
    st.lists(st.floats(0.005, 0.04), min_size=0, max_size=6),
    st.floats(1e-3, 1e3),
)
def test_count_above_the_gap_does_not_depend_on_units(high, low, scale):
    if not high and not low:
        high = [1.0]
    values = np.sort([*high, *low])[::-1] * scale
    # Neighbours above differ by less than two, low ones are at or near the floor, the gap is 25.
    assert n_above_gap(values, 0.03 * scale) == len(high)
