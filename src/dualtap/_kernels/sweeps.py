"""Sequential sweeps of TAP and AMP on factored couplings J = Vᵀ diag(w) V / N.

A sweep keeps the overlaps x_k = w_k v_k·m up to date, so a site costs O(R) and J is never formed.
Students are advanced in groups, one lane per student: every innermost loop runs over lanes, which
the compiler turns into vector instructions. Students share their vectors, V of shape (N, R), or
each has its own, V of shape (groups, N, R, lanes): independent experiments advance together.

u is that of the magnetizations before the sweep: followed site by site it would stick where
1 - u = 0, because the reaction term turns back whatever crosses that surface.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from dualtap._kernels.compiled import parallel

Array = Any  # Numba infers the types; the docstrings say them

LANES = 32
"""Most students per group: their overlaps with a hundred vectors fit into the first cache."""

_LOG2_E = 1.4426950408889634
_LN_2_HIGH = 0.693147180369123816490  # 33 bits, so that a product with a small integer is exact
_LN_2_LOW = 1.90821492927058770002e-10
_SATURATED = 40.0  # tanh(20) is 1 in double precision


@njit(inline="always")
def _away_from_zero(x: float, floor: float) -> float:
    if abs(x) >= floor:
        return x
    return floor if x >= 0 else -floor


@njit(inline="always")
def _tanh(x: Any) -> Any:
    """Return tanh x to 2e-16 absolutely, without a branch or a call, so that lanes vectorise.

    tanh|x| = (1 - e)/(1 + e) with e = exp(-2|x|) = 2^-n exp(-r), |r| ≤ ln(2)/2, by its series.
    """
    a = min(2 * abs(x), _SATURATED)
    n = np.int32(a * _LOG2_E + 0.5)
    r = n * _LN_2_HIGH - a + n * _LN_2_LOW
    p = 1 / 6227020800.0
    p = p * r + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = np.int64(np.int64(1023 - n) << np.int64(52))
    e = p * power.view(np.float64)
    return np.copysign((1 - e) / (1 + e), x)


@njit(inline="always")
def _artanh(x: Any) -> Any:
    edge = 1 - 1e-12  # infinite at |x| = 1
    y = min(max(x, -edge), edge)
    return 0.5 * np.log((1 + y) / (1 - y))


@njit  # not inlined before types are known: only one of the two lines has the right dimensions
def _entry(V: Array, g: int, i: int, k: int, lane: int) -> Any:
    """Return entry i of vector k of a student."""
    if V.ndim == 2:
        return V[i, k]
    return V[g, i, k, lane]


@njit(inline="always")
def _overlaps(V: Array, w: Array, m: Array, g: int, first: int, x: Array) -> None:
    """x_k = w_k v_k·m for the students from ``first`` on."""
    n_vectors, lanes = x.shape
    x[:] = 0
    row = np.empty(lanes)
    for i in range(m.shape[1]):
        for lane in range(lanes):
            row[lane] = m[first + lane, i]
        for k in range(n_vectors):
            for lane in range(lanes):
                x[k, lane] += w[k] * _entry(V, g, i, k, lane) * row[lane]


@njit(inline="always")
def _fields(
    V: Array, w: Array, x: Array, g: int, i: int, j: int, change: Array, field: Array
) -> None:
    """N (J m)_i, after the pending change at site j entered the overlaps: one pass does both."""
    n_vectors, lanes = x.shape
    for lane in range(lanes):
        field[lane] = 0
    for k in range(n_vectors):
        for lane in range(lanes):
            new = x[k, lane] + w[k] * _entry(V, g, j, k, lane) * change[lane]
            x[k, lane] = new
            field[lane] += _entry(V, g, i, k, lane) * new


@njit(inline="always")
def _susceptibilities(m: Array, beta: float, first: int, u: Array) -> None:
    """U = β(1 - q) of the students from ``first`` on."""
    for lane in range(u.shape[0]):
        u[lane] = beta * (1 - np.mean(m[first + lane] ** 2))


@parallel(error_model="numpy")
def tap_sweep(
    m: Array, V: Array, w: Array, alpha: float, beta: float, damping: float, floor: float
) -> Array:
    """Update m (students, N) in place, site after site; return mean |f(m) - m| per student.

    V is (N, R) or (groups, N, R, lanes), w is (R,); ``floor`` bounds 1 - u away
    from zero.
    """
    n_students, n_spins = m.shape
    residual = np.zeros(n_students)
    width = LANES if V.ndim == 2 else V.shape[3]
    for g in prange((n_students + width - 1) // width):
        first = g * width
        lanes = min(width, n_students - first)
        x = np.empty((w.shape[0], lanes))
        _overlaps(V, w, m, g, first, x)
        u, field, change, target = (
            np.empty(lanes),
            np.empty(lanes),
            np.zeros(lanes),
            np.empty(lanes),
        )
        old, reaction = np.empty(lanes), np.empty(lanes)
        _susceptibilities(m, beta, first, u)
        for lane in range(lanes):
            reaction[lane] = alpha * beta / _away_from_zero(1 - u[lane], floor)
        j = 0
        for i in range(n_spins):
            _fields(V, w, x, g, i, j, change, field)
            for lane in range(lanes):
                old[lane] = m[first + lane, i]
            for lane in range(lanes):
                target[lane] = _tanh(beta * field[lane] / n_spins - reaction[lane] * old[lane])
                change[lane] = (1 - damping) * (target[lane] - old[lane])
            for lane in range(lanes):
                residual[first + lane] += abs(target[lane] - old[lane]) / n_spins
                m[first + lane, i] = old[lane] + change[lane]
            j = i
    return residual


@parallel(error_model="numpy")
def amp_sweep(
    H: Array,
    m: Array,
    m_prev: Array,
    u_prev: Array,
    V: Array,
    w: Array,
    alpha: float,
    beta: float,
    damping: float,
    floor: float,
    damp_field: bool,
) -> Array:
    """Update H and m (students, N) in place; m_prev and u_prev receive those before the sweep.

    With ``damp_field`` H_i moves by a share 1 - d to its new value and m follows, else m does and
    H follows; βH = artanh m either way. Returns mean |tanh βH' - m| per student, H' undamped.
    """
    n_students, n_spins = m.shape
    residual = np.zeros(n_students)
    width = LANES if V.ndim == 2 else V.shape[3]
    for g in prange((n_students + width - 1) // width):
        first = g * width
        lanes = min(width, n_students - first)
        x = np.empty((w.shape[0], lanes))
        _overlaps(V, w, m, g, first, x)
        u, field, change, target = (
            np.empty(lanes),
            np.empty(lanes),
            np.zeros(lanes),
            np.empty(lanes),
        )
        old, before, h = np.empty(lanes), np.empty(lanes), np.empty(lanes)
        inverse, memory = np.empty(lanes), np.empty(lanes)
        _susceptibilities(m, beta, first, u)
        for lane in range(lanes):
            a = first + lane
            inverse[lane] = 1 / _away_from_zero(1 - u[lane], floor)
            memory[lane] = alpha * u[lane] / _away_from_zero(1 - u_prev[a], floor)
            u_prev[a] = u[lane]
        j = 0
        for i in range(n_spins):
            _fields(V, w, x, g, i, j, change, field)
            for lane in range(lanes):
                a = first + lane
                old[lane], before[lane], h[lane] = m[a, i], m_prev[a, i], H[a, i]
            for lane in range(lanes):
                rhs = field[lane] / n_spins - alpha * old[lane]
                rhs = (rhs - u[lane] * h[lane] - memory[lane] * before[lane]) * inverse[lane]
                target[lane] = _tanh(beta * rhs)
                if damp_field:
                    h[lane] = (1 - damping) * rhs + damping * h[lane]
                    change[lane] = _tanh(beta * h[lane]) - old[lane]
                else:
                    change[lane] = (1 - damping) * (target[lane] - old[lane])
            for lane in range(lanes):
                a = first + lane
                new = old[lane] + change[lane]
                residual[a] += abs(target[lane] - old[lane]) / n_spins
                H[a, i] = h[lane] if damp_field else _artanh(new) / beta
                m_prev[a, i] = old[lane]
                m[a, i] = new
            j = i
    return residual
