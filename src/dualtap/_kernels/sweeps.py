"""Sequential sweeps of TAP and AMP on factored couplings J = Vᵀ diag(w) V / N.

A sweep keeps the overlaps x_k = v_k·m up to date, so a site costs O(R) and J is never formed.
u is that of the magnetizations before the sweep: followed site by site it would stick where
1 - u = 0, because the reaction term turns back whatever crosses that surface.
"""

from typing import Any

import numpy as np
from numba import njit, prange

Array = Any  # Numba infers the types; the docstrings say them


@njit(inline="always")
def _away_from_zero(x: float, floor: float) -> float:
    if abs(x) >= floor:
        return x
    return floor if x >= 0 else -floor


@njit(parallel=True, cache=True)
def tap_sweep(
    m: Array, VT: Array, w: Array, alpha: float, beta: float, damping: float, floor: float
) -> Array:
    """Update m (students, N) in place, site after site; return mean |f(m) - m| a student.

    VT is (N, R), w is (R,); ``floor`` bounds 1 - u away from zero.
    """
    n_students, n_spins = m.shape
    residual = np.zeros(n_students)
    for a in prange(n_students):
        x = VT.T @ m[a]
        u = beta * (1 - np.mean(m[a] ** 2))
        reaction = alpha * beta / _away_from_zero(1 - u, floor)
        for i in range(n_spins):
            field = np.dot(VT[i] * w, x) / n_spins
            old = m[a, i]
            target = np.tanh(beta * field - reaction * old)
            new = (1 - damping) * target + damping * old
            x += VT[i] * (new - old)
            residual[a] += abs(target - old) / n_spins
            m[a, i] = new
    return residual


@njit(parallel=True, cache=True)
def amp_sweep(
    m: Array,
    m_prev: Array,
    u_prev: Array,
    VT: Array,
    w: Array,
    alpha: float,
    beta: float,
    damping: float,
    floor: float,
) -> Array:
    """Update m (students, N) in place; m_prev and u_prev receive those before the sweep.

    H is not a variable of its own: m = tanh βH says what it is, damped or not. Returns mean
    |tanh βH' - m| a student.
    """
    n_students, n_spins = m.shape
    residual = np.zeros(n_students)
    edge = 1 - 1e-12  # H is infinite at |m| = 1
    for a in prange(n_students):
        x = VT.T @ m[a]
        u = beta * (1 - np.mean(m[a] ** 2))
        one_minus_u = _away_from_zero(1 - u, floor)
        memory = alpha * u / _away_from_zero(1 - u_prev[a], floor)
        u_prev[a] = u
        for i in range(n_spins):
            old = m[a, i]
            H = np.arctanh(min(max(old, -edge), edge)) / beta
            field = np.dot(VT[i] * w, x) / n_spins - alpha * old
            target = np.tanh(beta * (field - u * H - memory * m_prev[a, i]) / one_minus_u)
            new = (1 - damping) * target + damping * old
            x += VT[i] * (new - old)
            residual[a] += abs(target - old) / n_spins
            m_prev[a, i] = old
            m[a, i] = new
    return residual
