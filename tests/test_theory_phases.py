"""Curie-Weiss, two patterns, stability and replica: enumeration, known limits, simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logsumexp

from dualtap.couplings import HebbianCouplings
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import AMP, TAP
from dualtap.theory import curie_weiss, replica, stability, two_patterns

# --- Curie-Weiss --------------------------------------------------------------------------------


@given(beta=st.floats(0, 20))
def test_magnetization_solves_its_equation(beta):
    m = curie_weiss.magnetization(beta)
    assert m == pytest.approx(np.tanh(beta * m), abs=1e-6)
    assert (m > 0) == (beta > 1 + 1e-9) or abs(beta - 1) < 1e-6


@given(beta=st.floats(0, 8), m=st.floats(-0.999, 0.999))
def test_log_partition_is_the_largest_of_entropy_and_energy(beta, m):
    p = (1 + m) / 2
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert curie_weiss.log_partition(beta) >= entropy + beta * m**2 / 2 - 1e-9


@pytest.mark.parametrize("beta", [0.0, 0.7, 1.0, 2.5])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_finite_sum_equals_enumeration(n, beta):
    totals = np.array([sum(s) for s in product([-1, 1], repeat=n)])
    exact = logsumexp(beta / (2 * n) * totals**2)
    assert curie_weiss.finite_log_partition(n, beta) == pytest.approx(exact)


@pytest.mark.parametrize("beta", [0.5, 1.5, 3.0])
def test_many_spins_approach_the_limit(beta):
    errors = [
        abs(curie_weiss.finite_log_partition(n, beta) / n - curie_weiss.log_partition(beta))
        for n in (100, 1000, 10_000)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 2e-4


def test_no_spins_have_one_state():
    assert curie_weiss.finite_log_partition(0, 1.0) == 0


# --- two patterns -------------------------------------------------------------------------------


def enumerated_pair(n, beta, n_equal):
    s = np.array(list(product([-1, 1], repeat=n)))
    xi = np.ones((2, n))
    xi[1, n_equal:] = -1
    return logsumexp(beta / (2 * n) * np.square(s @ xi.T).sum(axis=1))


@pytest.mark.parametrize("beta", [0.4, 1.0, 2.0])
@pytest.mark.parametrize("n_equal", range(13))
def test_two_patterns_equal_enumeration(beta, n_equal):
    expected = enumerated_pair(12, beta, n_equal)
    assert two_patterns.finite_pair_log_partition(12, beta, n_equal) == pytest.approx(expected)


@given(beta=st.floats(0.1, 4), q=st.floats(0, 1), step=st.floats(0.01, 0.5))
def test_orthogonal_patterns_have_the_smallest_partition_function(beta, q, step):
    phi = two_patterns.pair_log_partition
    assert phi(beta, q) == pytest.approx(phi(beta, -q))
    assert phi(beta, q) >= phi(beta, 0) - 1e-12
    a, b = max(q - step, -1), min(q + step, 1)
    middle = phi(beta, (a + b) / 2)
    assert middle <= (phi(beta, a) + phi(beta, b)) / 2 + 1e-9  # convex


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_two_large_patterns_approach_the_limit(q):
    n = 4000
    finite = two_patterns.finite_pair_log_partition(n, 1.5, round(n * (1 + q) / 2)) / n
    assert finite == pytest.approx(two_patterns.pair_log_partition(1.5, q), abs=2e-3)


# --- stability ----------------------------------------------------------------------------------


def modes(n=400, p=80, seed=0):
    """Eigenvalues and eigenvectors of J of random patterns."""
    patterns = HopfieldModel.random(n, p, beta=1.0, random_state=seed).patterns
    return patterns, *np.linalg.eigh(patterns.T @ patterns.astype(float) / n)


def growth(scheme, n_steps, v):
    """The factor of each step of a small m along v, and what leaves v."""
    m = 1e-8 * v[None]
    state = scheme.init(m)
    sizes = [float(m[0] @ v)]
    for _ in range(n_steps):
        state, _ = scheme.step(state)
        sizes.append(float(state.m[0] @ v))
    return np.array(sizes)


@pytest.mark.parametrize("beta", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("which", [-1, 0, -40])
def test_tap_grows_as_predicted(beta, which):
    patterns, values, vectors = modes()
    scheme = TAP(HebbianCouplings(patterns, dtype=np.float64), beta)
    sizes = growth(scheme, 6, vectors[:, which])
    expected = stability.tap_multiplier(beta, values[which], 80 / 400)
    np.testing.assert_allclose(sizes[1:] / sizes[:-1], expected, rtol=0.02)


@pytest.mark.parametrize("beta", [0.3, 0.45, 0.6])
@pytest.mark.parametrize("which", [-1, 0, -40])
def test_amp_grows_as_predicted(beta, which):
    patterns, values, vectors = modes()
    scheme = AMP(HebbianCouplings(patterns, dtype=np.float64), beta)
    sizes = growth(scheme, 40, vectors[:, which])
    roots = stability.amp_multipliers(beta, values[which], 80 / 400)
    # Any sequence of the recursion obeys it with the coefficients that the roots give.
    total, product_ = (roots[0] + roots[1]).real, (roots[0] * roots[1]).real
    predicted = total * sizes[2:-1] - product_ * sizes[1:-2]
    np.testing.assert_allclose(sizes[3:], predicted, rtol=0.02, atol=1e-3 * np.abs(sizes).max())


def test_thresholds():
    for alpha in (0.01, 0.1, 0.5):
        beta = 1 / (1 + np.sqrt(alpha))
        edge = stability.bulk_edges(alpha)[1]
        assert stability.tap_multiplier(beta, edge, alpha) == pytest.approx(1)
        assert stability.tap_multiplier(0.99 * beta, edge, alpha) < 1
    root = stability.amp_multipliers(0.7, 0.0, 0.0)[0]
    assert root.real == pytest.approx(-0.7 / 0.3)  # it turns round at every step, and grows


def test_edges_hold_the_spectrum():
    _, values, _ = modes(800, 200)
    low, high = stability.bulk_edges(0.25)
    assert values[-200:].min() > low - 0.1
    assert values.max() < high + 0.1


# --- replica ------------------------------------------------------------------------------------


def test_known_points_at_zero_temperature():
    assert replica.retrieval_capacity(0) == pytest.approx(0.1379, abs=1e-4)
    assert replica.stable_capacity(0) == pytest.approx(0.0519, abs=1e-4)


def test_lines_are_continuous_at_zero_temperature():
    assert replica.retrieval_capacity(0.01) == pytest.approx(0.138, abs=1e-3)
    assert replica.stable_capacity(0.01) == pytest.approx(0.052, abs=1e-3)


def gauss_mean(f):
    return quad(lambda z: np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * f(z), -10, 10, limit=400)[0]


@pytest.mark.parametrize(("temperature", "alpha"), [(0.5, 0.02), (0.3, 0.08), (0.8, 0.005)])
def test_retrieval_solves_the_equations(temperature, alpha):
    beta = 1 / temperature
    m, q, r, _ = replica.retrieval_solution(temperature, alpha)
    width = np.sqrt(alpha * r)
    assert gauss_mean(lambda z: np.tanh(beta * (width * z + m))) == pytest.approx(m, abs=1e-8)
    assert gauss_mean(lambda z: np.tanh(beta * (width * z + m)) ** 2) == pytest.approx(q, abs=1e-8)
    assert q / (1 - beta * (1 - q)) ** 2 == pytest.approx(r)


def test_few_patterns_are_curie_weiss():
    m = replica.retrieval_solution(0.5, 1e-6).m
    assert m == pytest.approx(curie_weiss.magnetization(2.0), abs=1e-4)


def test_glass_and_paramagnet():
    assert replica.glass_solution(1.21, 0.04).q == pytest.approx(0, abs=1e-9)
    q = [replica.glass_solution(T, 0.04).q for T in (1.19, 1.0, 0.5)]
    assert 0 < q[0] < q[1] < q[2]


@pytest.mark.parametrize("temperature", [0.1, 0.5, 0.8])
def test_free_energies_cross_at_the_line(temperature):
    alpha = replica.stable_capacity(temperature)
    for factor, sign in ((0.8, -1), (1.2, 1)):
        retrieval = replica.retrieval_solution(temperature, factor * alpha).free_energy
        glass = replica.glass_solution(temperature, factor * alpha).free_energy
        assert np.sign(retrieval - glass) == sign


def test_retrieval_ends_at_the_capacity():
    alpha = replica.retrieval_capacity(0.4)
    assert replica.retrieval_solution(0.4, 0.99 * alpha).m > 0.5
    assert replica.retrieval_solution(0.4, 1.01 * alpha) is None
    assert replica.retrieval_capacity(1.0) == 0
    assert replica.stable_capacity(1.5) == 0


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: curie_weiss.magnetization(-1), "beta must not be negative, got -1"),
        (lambda: curie_weiss.finite_log_partition(-2, 1), "n_spins must not be negative, got -2"),
        (lambda: two_patterns.pair_log_partition(1, 1.5), "between -1 and 1, got 1.5"),
        (lambda: two_patterns.finite_pair_log_partition(4, 1, 5), "from 0 to 4, got 5"),
        (lambda: stability.tap_multiplier(1, 1, 0.1), r"other than 1 \(a pole\), got 1"),
        (lambda: stability.bulk_edges(-0.1), "alpha must not be negative"),
        (lambda: replica.glass_temperature(-0.1), "alpha must not be negative"),
        (lambda: replica.retrieval_solution(0, 0.1), "must be at least 0.01 here, got 0"),
        (lambda: replica.retrieval_capacity(-1), "must be at least 0.01 here, got -1"),
        (lambda: replica.stable_capacity(-1), "must be at least 0.01 here, got -1"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
