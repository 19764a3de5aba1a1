"""The Curie–Weiss ferromagnet, for N → ∞ and exactly at finite N."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from dualtap.theory import (
    curie_weiss_log_partition,
    curie_weiss_log_partition_exact,
    curie_weiss_magnetization,
    curie_weiss_moments,
)


@given(st.floats(1 + 1e-6, 200))
def test_magnetization_solves_its_equation_with_a_positive_root(beta):
    m = float(curie_weiss_magnetization(beta))
    assert 0 < m <= 1
    assert m == pytest.approx(np.tanh(beta * m), rel=1e-9)


@given(st.floats(0, 1))
def test_there_is_no_order_above_the_critical_temperature(beta):
    assert curie_weiss_magnetization(beta) == 0
    assert curie_weiss_log_partition(beta) == pytest.approx(np.log(2), abs=1e-15)


def test_magnetization_near_the_transition_and_at_low_temperature():
    epsilon = 1e-8
    assert curie_weiss_magnetization(1 + epsilon) == pytest.approx(np.sqrt(3 * epsilon), rel=1e-6)
    assert 1 - curie_weiss_magnetization(6.0) == pytest.approx(2 * np.exp(-12), rel=1e-3)
    assert curie_weiss_magnetization(1000.0) == 1


def test_colder_is_more_ordered():
    betas = np.linspace(1, 8, 50)
    assert np.all(np.diff(curie_weiss_magnetization(betas)) > 0)


def test_arrays_keep_their_shape():
    betas = np.array([[0.5, 1.5, 2.0], [3.0, 0.0, 1.0]])
    for function in (curie_weiss_magnetization, curie_weiss_log_partition):
        values = function(betas)
        assert values.shape == (2, 3)
        assert values[0, 2] == function(2.0)


@given(st.floats(0, 30))
def test_log_partition_is_the_maximum_over_magnetizations(beta):
    m = np.linspace(-1, 1, 20_001)[1:-1]
    up, down = (1 + m) / 2, (1 - m) / 2
    best = np.max(-up * np.log(up) - down * np.log(down) + beta * m**2 / 2)
    # The grid stops at |m| = 0.9999, whence the tolerance at low temperature.
    assert curie_weiss_log_partition(beta) == pytest.approx(best, abs=3e-3)
    assert curie_weiss_log_partition(beta) >= best - 1e-12


def test_slope_of_the_log_partition_is_half_the_squared_magnetization():
    beta, step = 1.7, 1e-5
    up, down = curie_weiss_log_partition([beta + step, beta - step])
    m = curie_weiss_magnetization(beta)
    assert (up - down) / (2 * step) == pytest.approx(m**2 / 2, rel=1e-8)


@pytest.mark.parametrize("n_spins", [1, 2, 7, 10])
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0, 2.5])
def test_finite_system_against_enumeration(beta, n_spins):
    states = np.array(list(product([-1, 1], repeat=n_spins)))
    log_weight = beta / (2 * n_spins) * states.sum(axis=1) ** 2
    log_z = logsumexp(log_weight)
    m = states.mean(axis=1)
    weight = np.exp(log_weight - log_z)
    assert curie_weiss_log_partition_exact(beta, n_spins) == pytest.approx(log_z, rel=1e-12)
    square, absolute = curie_weiss_moments(beta, n_spins)
    assert square == pytest.approx(weight @ m**2, rel=1e-12)
    assert absolute == pytest.approx(weight @ np.abs(m), rel=1e-12)


@pytest.mark.parametrize("beta", [0.5, 1.3, 2.0, 5.0])
def test_large_systems_reach_the_limit_as_one_over_n(beta):
    g, m = curie_weiss_log_partition(beta), curie_weiss_magnetization(beta)
    gaps = [abs(curie_weiss_log_partition_exact(beta, n) / n - g) for n in (2_000, 4_000)]
    assert gaps[1] == pytest.approx(gaps[0] / 2, rel=0.02)
    assert gaps[1] < 3e-4
    moments = curie_weiss_moments(beta, 4_000)
    assert moments.square == pytest.approx(m**2, abs=1e-3)


def test_paramagnetic_fluctuations():
    """N⟨m²⟩ → 1/(1-β), the susceptibility."""
    assert 10_000 * curie_weiss_moments(0.5, 10_000).square == pytest.approx(2, rel=1e-3)


@given(st.floats(0, 20), st.integers(1, 300))
def test_moments_are_ordered(beta, n_spins):
    square, absolute = curie_weiss_moments(beta, n_spins)
    rounding = 1e-12
    assert absolute**2 - rounding <= square <= absolute + rounding
    assert square >= 1 / n_spins - rounding  # the value at β = 0


@pytest.mark.parametrize("beta", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "function",
    [
        curie_weiss_magnetization,
        curie_weiss_log_partition,
        lambda beta: curie_weiss_log_partition_exact(beta, 10),
        lambda beta: curie_weiss_moments(beta, 10),
    ],
)
def test_bad_beta_is_refused(function, beta):
    with pytest.raises(ValueError, match=f"beta must be finite and not negative, got {beta}"):
        function(beta)


def test_one_bad_beta_among_good_ones_is_named():
    with pytest.raises(ValueError, match=r"got -2\.0"):
        curie_weiss_magnetization([1.0, -2.0])


@pytest.mark.parametrize("function", [curie_weiss_log_partition_exact, curie_weiss_moments])
def test_a_system_has_spins(function):
    with pytest.raises(ValueError, match="n_spins must be at least 1, got 0"):
        function(1.0, 0)
