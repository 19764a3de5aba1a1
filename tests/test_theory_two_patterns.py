"""The log-partition function of two patterns as a function of their overlap."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import dualtap as dt
from dualtap.theory import (
    curie_weiss_log_partition,
    two_pattern_log_partition,
    two_pattern_log_partition_exact,
)

OVERLAPS = np.linspace(-1, 1, 101)


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.0])
def test_every_overlap_against_enumeration(beta):
    n_spins = 12
    states = np.array(list(product([-1, 1], repeat=n_spins)))
    rng = np.random.default_rng(0)
    for n_equal in range(n_spins + 1):
        first = rng.choice([-1, 1], size=n_spins)
        second = np.where(rng.permutation(n_spins) < n_equal, first, -first)
        model = dt.HopfieldModel(np.stack([first, second]), beta=beta)
        expected = logsumexp(-beta * model.energy(states)) / n_spins
        q = float(first @ second) / n_spins
        found = two_pattern_log_partition_exact(q, beta, n_spins)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("q", [0.0, -0.4, 1.0])
def test_large_systems_reach_the_limit_as_one_over_n(q):
    beta = 2.0
    limit = two_pattern_log_partition(q, beta)
    gaps = [two_pattern_log_partition_exact(q, beta, n) - limit for n in (2_000, 4_000)]
    assert gaps[1] == pytest.approx(gaps[0] / 2, rel=0.05)
    assert abs(gaps[1]) < 1e-3


@given(st.floats(-1, 1), st.floats(0, 10))
def test_even_and_smallest_at_zero(q, beta):
    phi, mirrored, orthogonal = two_pattern_log_partition([q, -q, 0.0], beta)
    assert phi == pytest.approx(mirrored, abs=1e-13)
    assert phi >= orthogonal - 1e-13


@pytest.mark.parametrize("beta", [0.4, 0.7, 1.0, 2.0, 5.0])
def test_convex(beta):
    assert np.all(np.diff(two_pattern_log_partition(OVERLAPS, beta), 2) > -1e-13)


@pytest.mark.parametrize("beta", [1.1, 2.0])
def test_strictly_convex_below_the_critical_temperature(beta):
    assert np.all(np.diff(two_pattern_log_partition(OVERLAPS, beta), 2) > 1e-5)


def test_flat_until_one_block_orders():
    """At β = 0.8 the larger block orders at 1 + |q| > 1/0.8."""
    phi = two_pattern_log_partition([0.1, 0.249, 0.3], 0.8)
    assert phi[:2] == pytest.approx(np.log(2), abs=1e-14)
    assert phi[2] > np.log(2) + 1e-5


@given(st.floats(0, 10))
def test_equal_patterns_are_one_at_twice_the_inverse_temperature(beta):
    assert two_pattern_log_partition(1.0, beta) == pytest.approx(
        float(curie_weiss_log_partition(2 * beta)), rel=1e-13
    )


def test_orthogonal_patterns_at_low_temperature():
    """Half of the spins obey both patterns, all of A and B aligned: β/2 a spin."""
    beta = 50.0
    assert two_pattern_log_partition(0.0, beta) == pytest.approx(beta / 2, rel=1e-12)


@pytest.mark.parametrize("q", [1.01, -2.0, float("nan")])
def test_overlaps_outside_the_range_are_refused(q):
    with pytest.raises(ValueError, match=rf"overlap must lie in \[-1, 1\], got {q}"):
        two_pattern_log_partition([0.0, q], 1.0)
    with pytest.raises(ValueError, match=r"overlap must lie in \[-1, 1\]"):
        two_pattern_log_partition_exact(q, 1.0, 10)


def test_impossible_overlap_is_refused_and_the_nearest_named():
    with pytest.raises(ValueError, match=r"10 spins cannot have overlap 0\.35.*nearest is 0\.39"):
        two_pattern_log_partition_exact(0.35, 1.0, 10)


@pytest.mark.parametrize("beta", [-1.0, float("nan")])
def test_bad_beta_is_refused(beta):
    with pytest.raises(ValueError, match="beta must be finite and not negative"):
        two_pattern_log_partition(0.5, beta)
    with pytest.raises(ValueError, match="beta must be finite and not negative"):
        two_pattern_log_partition_exact(0.0, beta, 10)


def test_a_system_has_spins():
    with pytest.raises(ValueError, match="n_spins must be at least 1, got 0"):
        two_pattern_log_partition_exact(0.0, 1.0, 0)
