"""Coupling operators against the dense matrices they stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap.couplings import (
    DeflatedCouplings,
    DenseCouplings,
    HebbianCouplings,
    StackedCouplings,
    sample_couplings,
)
from dualtap.hopfield import HopfieldModel

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}

sizes = st.integers(1, 12)
seeds = st.integers(0, 2**32 - 1)
precisions = st.sampled_from([np.float32, np.float64])
many = settings(max_examples=50, deadline=None)


def dense_hebbian(V):
    """J_ij = Σ_r V_ri V_rj / N, by loops over pairs."""
    n_spins = V.shape[1]
    J = np.empty((n_spins, n_spins))
    for i in range(n_spins):
        for j in range(n_spins):
            J[i, j] = sum(float(v[i]) * float(v[j]) for v in V) / n_spins
    return J


def from_factors(couplings):
    """J = Vᵀ diag(w) V / N."""
    V, w = couplings.factors()
    V, w = np.asarray(V, dtype=np.float64), np.asarray(w, dtype=np.float64)
    assert V.shape == (len(w), couplings.n_spins)
    return V.T @ np.diag(w) @ V / couplings.n_spins


def times(J, m):
    """J m for every row, one student at a time."""
    return np.array([J @ row for row in np.asarray(m, dtype=np.float64)])


def signs(rng, shape, missing=0.0):
    return rng.choice([-1, 1], size=shape) * (rng.random(shape) >= missing)


@many
@given(sizes, sizes, sizes, seeds, precisions, st.booleans())
def test_hebbian_dot_equals_dense(n_vectors, n_spins, n_students, seed, dtype, real):
    rng = np.random.default_rng(seed)
    shape = (n_vectors, n_spins)
    V = rng.normal(size=shape).astype(dtype) if real else signs(rng, shape, missing=0.2)
    m = rng.uniform(-1, 1, size=(n_students, n_spins)).astype(dtype)
    J = HebbianCouplings(V, dtype)
    product = J.dot(m)
    assert product.dtype == J.dtype == dtype
    assert J.n_spins == n_spins
    assert product.shape == m.shape
    np.testing.assert_allclose(product, times(dense_hebbian(V), m), atol=10 * TOLERANCE[dtype])


@many
@given(sizes, sizes, seeds, precisions)
def test_hebbian_factors_and_alpha(n_vectors, n_spins, seed, dtype):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n_vectors, n_spins)).astype(dtype)
    J = HebbianCouplings(V, dtype)
    dense = dense_hebbian(V)
    np.testing.assert_allclose(from_factors(J), dense, atol=10 * TOLERANCE[dtype])
    # α is the mean diagonal element.
    assert J.alpha == pytest.approx(np.trace(dense) / n_spins, rel=1e-5)


@pytest.mark.parametrize(("n_vectors", "n_spins"), [(1, 4), (7, 10), (30, 12)])
def test_alpha_of_complete_spins_is_the_load(n_vectors, n_spins):
    V = signs(np.random.default_rng(0), (n_vectors, n_spins))
    assert HebbianCouplings(V).alpha == pytest.approx(n_vectors / n_spins, rel=1e-12)


@many
@given(sizes, sizes, seeds)
def test_alpha_counts_only_observed_entries(n_vectors, n_spins, seed):
    V = signs(np.random.default_rng(seed), (n_vectors, n_spins), missing=0.4)
    alpha = HebbianCouplings(V).alpha
    assert alpha == pytest.approx(np.count_nonzero(V) / n_spins**2, rel=1e-12)
    assert alpha == pytest.approx(np.trace(dense_hebbian(V)) / n_spins, rel=1e-12)


def test_alpha_is_summed_in_double_precision():
    # 4097 × 4099 ones: an odd number above 2^24, which float32 cannot hold.
    V = np.ones((4097, 4099), dtype=np.float32)
    assert HebbianCouplings(V).alpha == 4097 * 4099 / 4099**2


def test_no_vectors_are_no_couplings():
    J = HebbianCouplings(np.empty((0, 5)))
    assert J.alpha == 0
    np.testing.assert_array_equal(J.dot(np.ones((3, 5), dtype=np.float32)), np.zeros((3, 5)))


def test_hebbian_defaults_to_single_precision():
    J = HebbianCouplings([[1, -1, 0]])
    assert J.dtype == np.float32
    np.testing.assert_array_equal(J.vectors, [[1, -1, 0]])


def test_the_model_hands_out_the_same_couplings():
    model = HopfieldModel.random(9, 4, beta=1.0, random_state=0)
    operator = model.coupling_operator()
    np.testing.assert_allclose(from_factors(operator), model.couplings(), atol=1e-14)
    assert operator.alpha == pytest.approx(4 / 9)


@many
@given(sizes, st.integers(2, 12), st.integers(0, 4), sizes, seeds, precisions)
def test_deflated_dot_and_factors_equal_dense(M, n_spins, n_removed, n_students, seed, dtype):
    rng = np.random.default_rng(seed)
    S = signs(rng, (M, n_spins))
    directions = rng.uniform(-1, 1, size=(n_removed, n_spins)).astype(dtype)
    gammas = rng.uniform(0.1, 3, size=n_removed).astype(dtype)
    m = rng.uniform(-1, 1, size=(n_students, n_spins)).astype(dtype)
    base = HebbianCouplings(S, dtype)
    J = DeflatedCouplings(base, directions, gammas)

    dense = dense_hebbian(S)
    for gamma, direction in zip(gammas, directions, strict=True):
        dense -= float(gamma) * np.outer(direction, direction).astype(np.float64) / n_spins

    product = J.dot(m)
    assert product.dtype == J.dtype == dtype
    assert J.n_spins == n_spins
    np.testing.assert_allclose(product, times(dense, m), atol=10 * TOLERANCE[dtype])
    np.testing.assert_allclose(from_factors(J), dense, atol=10 * TOLERANCE[dtype])
    # Deflation removes signal, not the noise of the samples: the reaction term stays.
    assert J.alpha == base.alpha


def test_deflation_does_not_change_its_base():
    rng = np.random.default_rng(1)
    base = HebbianCouplings(signs(rng, (6, 8)), np.float64)
    m = rng.uniform(-1, 1, size=(3, 8))
    before = base.dot(m)
    DeflatedCouplings(base, rng.normal(size=(2, 8)), np.ones(2)).dot(m)
    np.testing.assert_array_equal(base.dot(m), before)


def test_deflation_can_be_stacked_on_anything():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(7, 7))
    A = A + A.T
    d1, d2 = rng.normal(size=(2, 1, 7))
    J = DeflatedCouplings(DeflatedCouplings(DenseCouplings(A), d1, [0.5]), d2, [2.0])
    expected = A - (0.5 * d1.T @ d1 + 2.0 * d2.T @ d2) / 7
    np.testing.assert_allclose(from_factors(J), expected, atol=1e-12)
    m = rng.normal(size=(4, 7))
    np.testing.assert_allclose(J.dot(m), times(expected, m), atol=1e-12)


def test_removing_every_stored_vector_leaves_nothing():
    V = signs(np.random.default_rng(3), (5, 16)).astype(np.float64)
    J = DeflatedCouplings(HebbianCouplings(V, np.float64), V, np.ones(5))
    np.testing.assert_allclose(J.dot(np.eye(16)), np.zeros((16, 16)), atol=1e-14)


@many
@given(sizes, sizes, seeds)
def test_dense_dot_factors_and_alpha(n_spins, n_students, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_spins, n_spins))
    A = (A + A.T) / 2
    m = rng.uniform(-1, 1, size=(n_students, n_spins))
    J = DenseCouplings(A)
    np.testing.assert_allclose(J.dot(m), times(A, m), atol=1e-12)
    np.testing.assert_allclose(from_factors(J), A, atol=1e-11)
    assert J.alpha == pytest.approx(np.trace(A) / n_spins, abs=1e-14)
    assert J.n_spins == n_spins
    assert J.dtype == np.float64


def test_dense_alpha_can_be_given():
    # The SK model has no diagonal but a reaction term.
    J = DenseCouplings([[0.0, 1.0], [1.0, 0.0]], alpha=0.25)
    assert J.alpha == 0.25
    assert DenseCouplings([[0.0, 1.0], [1.0, 0.0]]).alpha == 0.0


def test_dense_and_hebbian_agree():
    rng = np.random.default_rng(4)
    V = signs(rng, (5, 11), missing=0.3)
    hebbian, dense = HebbianCouplings(V, np.float64), DenseCouplings(dense_hebbian(V))
    m = rng.normal(size=(6, 11))
    np.testing.assert_allclose(hebbian.dot(m), dense.dot(m), atol=1e-13)
    assert hebbian.alpha == pytest.approx(dense.alpha)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 4, 4)])
def test_dense_refuses_what_is_not_square(shape):
    with pytest.raises(ValueError, match="square matrix, got shape"):
        DenseCouplings(np.zeros(shape))


@pytest.mark.parametrize("value", [0.5, np.nan])
def test_dense_refuses_asymmetric(value):
    A = np.eye(3)
    A[0, 2] = value
    with pytest.raises(ValueError, match=r"symmetric; pass \(J \+ J\.T\) / 2"):
        DenseCouplings(A)


def test_stacked_couplings_are_those_of_each_student():
    rng = np.random.default_rng(0)
    patterns = rng.choice([-1.0, 1.0], size=(5, 3, 20))
    m = rng.uniform(-1, 1, size=(5, 20))
    J = StackedCouplings(patterns, np.float64)
    expected = [
        HebbianCouplings(V, np.float64).dot(x[None])[0] for V, x in zip(patterns, m, strict=True)
    ]
    np.testing.assert_allclose(J.dot(m), expected, atol=1e-12)
    assert J.alpha == 3 / 20
    some = J.taking(np.array([3, 1]))
    np.testing.assert_allclose(some.dot(m[[3, 1]]), J.dot(m)[[3, 1]], atol=1e-12)


@pytest.mark.parametrize("patterns", [np.ones((2, 3)), np.zeros((2, 3, 4))])
def test_stacked_couplings_refuse_what_are_no_stacked_patterns(patterns):
    with pytest.raises(ValueError, match=r"±1 and of shape \(students, n_vectors, n_spins\)"):
        StackedCouplings(patterns)


@pytest.mark.parametrize(("n_samples", "kind"), [(15, HebbianCouplings), (16, DenseCouplings)])
def test_samples_become_a_matrix_where_that_is_cheaper(n_samples, kind):
    rng = np.random.default_rng(0)
    S = rng.choice([-1, 0, 1], size=(n_samples, 30)).astype(np.int8)
    m = rng.uniform(-1, 1, size=(4, 30)).astype(np.float32)
    J, factored = sample_couplings(S), HebbianCouplings(S)
    assert type(J) is kind
    assert J.dtype == np.float32
    assert J.alpha == pytest.approx(factored.alpha, rel=1e-6)
    np.testing.assert_allclose(J.dot(m), factored.dot(m), atol=1e-5)


def test_the_matrix_of_many_spins_is_not_formed(monkeypatch):
    monkeypatch.setattr("dualtap.couplings.DENSE_SPINS", 20)
    assert isinstance(sample_couplings(np.ones((40, 30))), HebbianCouplings)


def test_deflated_couplings_can_have_another_alpha():
    base = HebbianCouplings(np.ones((2, 4)))
    assert DeflatedCouplings(base, np.empty((0, 4)), np.empty(0), alpha=0.1).alpha == 0.1
