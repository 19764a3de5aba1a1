"""The replica-symmetric phase diagram of the Hopfield model."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erf, logsumexp

import dualtap as dt
from dualtap.theory import (
    curie_weiss_log_partition,
    curie_weiss_magnetization,
    metastable_capacity,
    metastable_temperature,
    retrieval_capacity,
    retrieval_state,
    retrieval_temperature,
    spin_glass_state,
    spin_glass_temperature,
)


def _gaussian_mean(function, kink):
    """Return ∫Dz function(z) by adaptive quadrature that knows where the field changes sign."""
    inside = [z for z in (kink - 0.3, kink, kink + 0.3) if -9 < z < 9]
    ends = [-9.0, *inside, 9.0]
    density = 1 / np.sqrt(2 * np.pi)
    pieces = [
        quad(lambda z: density * np.exp(-(z**2) / 2) * function(z), a, b, epsabs=1e-12, limit=200)
        for a, b in pairwise(ends)
    ]
    return sum(value for value, _ in pieces)


def _residuals(state, temperature, alpha):
    m, q, r, _ = state
    sigma = np.sqrt(alpha * r)
    kink = -m / sigma if sigma > 0 else -np.inf

    def spin(z):
        return np.tanh((sigma * z + m) / temperature)

    yield _gaussian_mean(spin, kink) - m
    yield _gaussian_mean(lambda z: spin(z) ** 2, kink) - q
    yield (q / (1 - (1 - q) / temperature) ** 2 - r) / max(r, 1)


def _free_energy(m, q, r, temperature, alpha):
    """Return f of AGS at any m, q, r, with the diagonal of J."""
    beta, sigma = 1 / temperature, np.sqrt(alpha * r)
    D = 1 - beta * (1 - q)
    f = m**2 / 2 + alpha / (2 * beta) * (np.log(D) - beta * q / D) + alpha * beta * r * (1 - q) / 2

    def log_two_cosh(z):
        return np.logaddexp(beta * (sigma * z + m), -beta * (sigma * z + m))

    return f - temperature * _gaussian_mean(log_two_cosh, -m / sigma)


# Known points and limits


def test_capacity_at_zero_temperature():
    """AGS: 0.138; with more digits 0.137905."""
    assert metastable_capacity(0.0) == pytest.approx(0.137905, abs=1e-6)
    assert metastable_capacity(1e-3) == pytest.approx(0.138, abs=5e-4)


def test_retrieval_is_the_ground_state_up_to_0051():
    """Usually quoted as 0.051: energies -1/2 and -1/π - √(2α/π) meet at 0.05185."""
    capacity = retrieval_capacity(0.0)
    assert 0.051 <= capacity < 0.052
    assert capacity == pytest.approx(np.pi / 2 * (1 / 2 - 1 / np.pi) ** 2, abs=1e-5)
    assert retrieval_capacity(1e-3) == pytest.approx(capacity, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.13])
def test_error_function_equation_at_zero_temperature(alpha):
    state = retrieval_state(0.0, alpha)
    y = state.magnetization / np.sqrt(2 * alpha * state.noise)
    assert y > 1
    assert y * (np.sqrt(2 * alpha) + 2 / np.sqrt(np.pi) * np.exp(-(y**2))) == pytest.approx(
        erf(y), abs=1e-10
    )
    assert state.magnetization == pytest.approx(erf(y), abs=1e-10)
    assert state.overlap == 1


def test_spin_glass_energy_at_zero_temperature():
    """AGS: -1/π - √(2α/π), and α/2 less with the diagonal of J."""
    for alpha in (0.01, 0.1, 1.0):
        expected = -1 / np.pi - np.sqrt(2 * alpha / np.pi) - alpha / 2
        assert spin_glass_state(0.0, alpha).free_energy == pytest.approx(expected, rel=1e-9)


def test_lines_near_temperature_one():
    """AGS: T_M ≈ 1 - 1.95 √α and T_c ≈ 1 - 2.6 √α."""
    T = 0.999
    assert (1 - T) / np.sqrt(metastable_capacity(T)) == pytest.approx(1.95, abs=0.01)
    assert (1 - T) / np.sqrt(retrieval_capacity(T)) == pytest.approx(2.6, abs=0.01)


def test_measured_overlap_of_samples():
    """PHYSICS: samples at β = 2, P/N = 0.02 have overlap 0.945 with their pattern."""
    assert retrieval_state(0.5, 0.02).magnetization == pytest.approx(0.945, abs=1e-3)


@given(st.floats(0.02, 0.99))
def test_no_load_is_curie_weiss(T):
    state = retrieval_state(T, 0.0)
    m = float(curie_weiss_magnetization(1 / T))
    assert state.magnetization == pytest.approx(m, rel=1e-9)
    assert state.overlap == pytest.approx(m**2, rel=1e-9)
    g = float(curie_weiss_log_partition(1 / T))
    assert state.free_energy == pytest.approx(-T * g, rel=1e-9)


def test_small_load_goes_to_curie_weiss():
    expected = float(curie_weiss_magnetization(2.0))
    gaps = [expected - retrieval_state(0.5, a).magnetization for a in (1e-3, 1e-5)]
    assert 0 < gaps[1] < gaps[0] / 50


# Solutions of the equations


@settings(max_examples=25)
@given(st.floats(0.03, 0.98), st.floats(0.01, 0.999))
def test_retrieval_solves_the_equations_up_to_the_capacity(T, share):
    alpha = share * metastable_capacity(T)
    state = retrieval_state(T, alpha)
    assert state.magnetization > 0.05 * np.sqrt(1 - T)
    assert max(map(abs, _residuals(state, T, alpha))) < 1e-8


@settings(max_examples=25)
@given(st.floats(0.03, 3), st.floats(1e-3, 3))
def test_spin_glass_solves_the_equations(T, alpha):
    state = spin_glass_state(T, alpha)
    assert state.magnetization == 0
    assert (state.overlap > 0) == (spin_glass_temperature(alpha) > T)
    assert max(map(abs, _residuals(state, T, alpha))) < 1e-8


@pytest.mark.parametrize(("T", "alpha"), [(0.3, 0.05), (0.6, 0.02)])
def test_free_energy_is_stationary_at_both_solutions(T, alpha):
    for state in (retrieval_state(T, alpha), spin_glass_state(T, alpha)):
        order = np.array(state[:3])
        assert state.free_energy == pytest.approx(_free_energy(*order, T, alpha), abs=1e-9)
        for axis in np.eye(3):
            step = 1e-5 * axis
            up, down = (_free_energy(*(order + s), T, alpha) for s in (step, -step))
            assert abs(up - down) / 2e-5 < 1e-6


def test_retrieval_is_the_stable_branch():
    """The solution that iterating the equations from m = 1 reaches, slowly."""
    T, alpha = 0.4, 0.07
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    m, q = 1.0, 1.0
    for _ in range(3000):
        r = q / (1 - (1 - q) / T) ** 2
        spin = np.tanh((np.sqrt(alpha * r) * z + m) / T)
        m, q = weight @ spin, weight @ spin**2
    assert retrieval_state(T, alpha)[:2] == pytest.approx((m, q), abs=1e-4)


@pytest.mark.parametrize("T", [5e-3, 1e-3])
def test_cold_solutions_are_not_those_of_zero_temperature(T):
    for state, alpha in ((retrieval_state(T, 0.13), 0.13), (spin_glass_state(T, 0.05), 0.05)):
        assert max(map(abs, _residuals(state, T, alpha))) < 1e-8


def test_low_temperatures_join_zero_smoothly():
    zero = retrieval_state(0.0, 0.1)
    for T in (1e-9, 1e-6, 1e-4):  # both sides of the switch to the closed form
        assert retrieval_state(T, 0.1) == pytest.approx(zero, abs=5 * T + 1e-9)


def test_magnetization_jumps_to_zero_at_the_capacity():
    T = 0.3
    capacity = metastable_capacity(T)
    assert retrieval_state(T, capacity * (1 - 1e-9)).magnetization > 0.7
    beyond = retrieval_state(T, capacity * (1 + 1e-9))
    assert beyond == spin_glass_state(T, capacity * (1 + 1e-9))


@pytest.mark.parametrize("T", [1 - 1e-12, 1.0, 1.5])
def test_no_retrieval_when_hot(T):
    assert retrieval_state(T, 0.0).magnetization == 0
    assert retrieval_state(T, 0.0).free_energy == pytest.approx(-T * np.log(2), abs=1e-9)
    assert metastable_capacity(T) == retrieval_capacity(T) == 0


def test_overlaps_fall_with_load_and_with_heat():
    loads = [retrieval_state(0.3, a).magnetization for a in np.linspace(0, 0.1, 8)]
    heats = [retrieval_state(T, 0.02).magnetization for T in np.linspace(0, 0.7, 8)]
    glass = [spin_glass_state(T, 0.1).overlap for T in np.linspace(0, 1.3, 8)]
    for values in (loads, heats, glass):
        assert np.all(np.diff(values) < 0)


def test_paramagnet_against_enumeration():
    """f = -T log 2 + (αT/2) log(1-β), up to 1/N; the gap halves as N doubles."""
    beta, gaps = 0.3, []
    for n_spins in (8, 16):
        states = np.array(list(product([-1, 1], repeat=n_spins)), dtype=np.int8)
        exact = []
        for seed in range(40):
            model = dt.HopfieldModel.random(n_spins, n_spins // 4, beta=beta, random_state=seed)
            exact.append(-logsumexp(-beta * model.energy(states)) / beta / n_spins)
        gaps.append(np.mean(exact) - spin_glass_state(1 / beta, 0.25).free_energy)
    assert abs(gaps[1]) < 0.6 * abs(gaps[0]) < 0.03


# Phase lines


@pytest.mark.parametrize("T", [0.0, 0.2, 0.5, 0.9])
def test_free_energies_meet_on_the_retrieval_line(T):
    capacity = retrieval_capacity(T)
    assert 0 < capacity < metastable_capacity(T)
    for alpha, sign in ((0.9 * capacity, -1), (capacity, 0), (1.1 * capacity, 1)):
        gap = retrieval_state(T, alpha).free_energy - spin_glass_state(T, alpha).free_energy
        assert (abs(gap) < 1e-10) if sign == 0 else (gap * sign > 1e-6)


def test_lines_fall_where_they_do_not_turn_back():
    for capacity in (metastable_capacity, retrieval_capacity):
        assert np.all(np.diff([capacity(T) for T in np.linspace(0.1, 0.99, 12)]) < 0)


def test_capacities_turn_back_at_low_temperature():
    """Replica symmetry's reentrance, known for T_M."""
    assert metastable_capacity(0.023) > metastable_capacity(0.0) + 2e-4
    assert retrieval_capacity(0.085) > retrieval_capacity(0.0) + 1e-3


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.02, 0.05])
def test_temperatures_invert_capacities(alpha):
    metastable, retrieval = metastable_temperature(alpha), retrieval_temperature(alpha)
    assert metastable_capacity(metastable) == pytest.approx(alpha, abs=1e-9)
    assert retrieval_capacity(retrieval) == pytest.approx(alpha, abs=1e-9)
    assert 0 < retrieval <= metastable <= 1 <= spin_glass_temperature(alpha)


def test_metastable_line_is_read_on_its_upper_part():
    """At 0.138 the line is crossed twice."""
    assert metastable_temperature(0.138) > 0.023


@pytest.mark.parametrize(
    ("function", "alpha", "bound"),
    [(metastable_temperature, 0.14, "0.1382"), (retrieval_temperature, 0.06, "0.0531")],
)
def test_loads_beyond_a_line_are_refused(function, alpha, bound):
    with pytest.raises(ValueError, match=f"alpha must be at most {bound}.*got {alpha}"):
        function(alpha)


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "function",
    [
        metastable_capacity,
        retrieval_capacity,
        lambda temperature: retrieval_state(temperature, 0.1),
        lambda temperature: spin_glass_state(temperature, 0.1),
    ],
)
def test_bad_temperature_is_refused(function, temperature):
    with pytest.raises(ValueError, match=f"must be finite and not negative, got {temperature}"):
        function(temperature)


@pytest.mark.parametrize("alpha", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "function",
    [
        spin_glass_temperature,
        metastable_temperature,
        retrieval_temperature,
        lambda alpha: retrieval_state(0.5, alpha),
        lambda alpha: spin_glass_state(0.5, alpha),
    ],
)
def test_bad_alpha_is_refused(function, alpha):
    with pytest.raises(ValueError, match=f"alpha must be finite.*got {alpha}"):
        function(alpha)


def test_a_spin_glass_needs_noise():
    with pytest.raises(ValueError, match="at least 1e-12, got 0"):
        spin_glass_state(0.5, 0.0)
