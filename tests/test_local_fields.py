"""Local fields and their likelihoods against loops over spins, and log σ at its extremes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_expit

from dualtap.hopfield import HopfieldModel
from dualtap.local_fields import (
    filled,
    local_fields,
    log_likelihoods,
    log_sigmoid,
    observed_fields,
)

many = settings(max_examples=60, deadline=None)


def brute_force_fields(S, zeta, g, b):
    n_spins = S.shape[1]
    h = np.zeros(S.shape)
    for a, i in np.ndindex(S.shape):
        h[a, i] = b[i]
        for mu, v in enumerate(zeta):
            others = sum(v[j] * S[a, j] for j in range(n_spins) if j != i)
            h[a, i] += g[mu] / n_spins * v[i] * others
    return h


def drawn(seed, M, k, n_spins, missing):
    rng = np.random.default_rng(seed)
    S = rng.choice([-1, 1], size=(M, n_spins)) * (rng.random((M, n_spins)) >= missing)
    zeta = rng.choice([-1, 0, 1], size=(k, n_spins), p=[0.35, 0.3, 0.35])
    g, b = 2 * rng.normal(size=k), rng.normal(size=n_spins)
    return S.astype(np.float32), zeta.astype(np.float32), g, b


cases = given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(0, 5),
    st.integers(2, 12),
    st.sampled_from([0.0, 0.3, 0.8]),
)


@many
@cases
def test_local_fields_by_loops(seed, M, k, n_spins, missing):
    S, zeta, g, b = drawn(seed, M, k, n_spins, missing)
    S = np.where(S == 0, np.float32(0.3), S)  # means of spins that are not there
    h = local_fields(S, zeta, g, b)
    assert h.shape == S.shape
    assert h.dtype == np.float32
    np.testing.assert_allclose(h, brute_force_fields(S, zeta, g, b), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(h, local_fields(S, zeta, g, b, overlaps=S @ zeta.T), atol=1e-5)
    np.testing.assert_allclose(local_fields(S, zeta, g), h - b.astype(np.float32), atol=1e-5)


@many
@cases
def test_the_field_on_a_spin_does_not_depend_on_it(seed, M, k, n_spins, missing):
    S, zeta, g, b = drawn(seed, M, k, n_spins, missing)
    turned = S.copy()
    turned[:, 0] *= -1
    h, after = (local_fields(s, zeta, g, b)[:, 0] for s in (S, turned))
    np.testing.assert_allclose(h, after, atol=1e-4)


@many
@cases
def test_missing_spins_are_filled_by_steps_of_mean_field(seed, M, k, n_spins, missing):
    S, zeta, g, b = drawn(seed, M, k, n_spins, missing)
    means = np.linspace(-0.8, 0.8, n_spins)
    found = filled(S.astype(np.int8), zeta, g, b, means)
    assert found.dtype == np.float32
    expected = np.where(S == 0, means, S)
    kappa = (S == 0) @ np.square(zeta).T @ np.maximum(-g, 0) / n_spins
    for _ in range(3):
        t = np.tanh(brute_force_fields(expected, zeta, g, b))
        step = (t - expected) / (1 + kappa[:, None])
        expected = np.where(S == 0, expected + step, S)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (np.abs(found) <= 1).all()


@many
@cases
def test_a_spin_does_not_explain_itself_through_gaps(seed, M, k, n_spins, missing):
    S, zeta, g, b = drawn(seed, M, k, n_spins, missing)
    turned = S.copy()
    turned[:, 0] *= -1
    h, after = (observed_fields(s, zeta, g, b) for s in (S, turned))
    np.testing.assert_allclose(h[:, 0], after[:, 0], atol=1e-4)
    assert (h[S == 0] == 0).all()


def test_without_gaps_observed_fields_are_local_fields():
    S, zeta, g, b = drawn(0, 5, 3, 7, 0.0)
    np.testing.assert_array_equal(observed_fields(S, zeta, g, b), local_fields(S, zeta, g, b))


def test_complete_samples_stay_as_they_are():
    S, zeta, g, b = drawn(0, 8, 4, 30, missing=0)
    np.testing.assert_array_equal(filled(S, zeta, g, b), S)


def test_a_missing_spin_without_fields_or_patterns_has_mean_zero():
    zeta, g = np.array([[1, 1, 0, 0]], np.float32), np.array([4.0])
    S = np.array([[1, 0, 1, 0], [0, 0, 1, 1]], np.float32)
    np.testing.assert_allclose(
        filled(S, zeta, g), [[1, np.tanh(1.0), 1, 0], [0, 0, 1, 1]], atol=1e-6
    )


def test_repelled_spins_that_are_missing_do_not_oscillate():
    # All of one pattern but one: the others settle between -1 and 1, at the mean-field solution.
    n_spins, g = 50, np.array([-20.0])
    S = np.zeros((1, n_spins), np.float32)
    S[0, 0] = 1
    t = filled(S, np.ones((1, n_spins), np.float32), g)[0, 1:]
    h = -20 / n_spins * (1 + (n_spins - 2) * t[0])
    assert t.max() - t.min() < 1e-6
    assert -0.1 < t[0] < 0.05
    assert abs(np.tanh(h) - t[0]) < 0.2


def test_likelihoods_are_conditional_probabilities_of_the_model():
    rng = np.random.default_rng(1)
    zeta = rng.choice([-1, 0, 1], size=(3, 6))
    zeta[:, 0] = -1
    model = HopfieldModel(zeta, fields=rng.normal(size=6), strengths=[2.0, -1.0, 3.0])
    S = rng.choice([-1, 1], size=(5, 6)).astype(np.float32)
    h = local_fields(S, zeta.astype(np.float32), model.strengths, model.fields)
    expected = np.zeros(5)
    for i in range(6):
        turned = S.copy()
        turned[:, i] *= -1
        expected -= np.log1p(np.exp(model.energy(S) - model.energy(turned)))
    np.testing.assert_allclose(log_likelihoods(S, h), expected, rtol=1e-5)


@many
@given(st.integers(0, 2**32 - 1), st.floats(0, 0.9), st.floats(0.1, 100))
def test_log_likelihoods_by_loops(seed, missing, scale):
    rng = np.random.default_rng(seed)
    S = rng.choice([-1, 1], size=(4, 9)) * (rng.random((4, 9)) >= missing)
    h = (scale * rng.normal(size=(4, 9))).astype(np.float32)
    found = log_likelihoods(S.astype(np.float32), h)
    assert found.dtype == np.float64
    terms = np.where(S == 0, 0, log_expit(2.0 * S * h))
    np.testing.assert_allclose(found, terms.sum(axis=1), rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1.2e-7), (np.float64, 1e-15)])
def test_log_sigmoid(dtype, error):
    x = np.concatenate([np.linspace(-30, 30, 10_001), np.geomspace(1e-30, 1e30, 100)])
    x = np.concatenate([x, -x]).astype(dtype)
    exact = log_expit(x.astype(np.float64))
    found = log_sigmoid(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=error, atol=error)
    assert (found <= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_sigmoid_at_the_ends(dtype):
    x = np.array([[-np.inf, np.inf], [0, -0.0], [-3e38, 3e38]], dtype=dtype)
    half = -dtype(math.log(2))
    found = log_sigmoid(x)
    np.testing.assert_array_equal(found, [[-np.inf, 0], [half, half], [x[2, 0], 0]])
    assert np.isnan(log_sigmoid(np.array([np.nan], dtype=dtype))).all()
    assert log_sigmoid(np.empty((0, 3), dtype=dtype)).shape == (0, 3)


def test_log_sigmoid_in_place():
    x = np.linspace(-5, 5, 11)
    before, expected = x.copy(), log_sigmoid(x)
    np.testing.assert_array_equal(x, before)
    out = np.empty(11)
    assert log_sigmoid(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert log_sigmoid(x, out=x) is x
    np.testing.assert_array_equal(x, expected)
