r"""The replica-symmetric Hopfield model: order parameters and phase lines of the direct problem.

.. math:: m = \int Dz\,\tanh\beta(\Delta z + m),\quad q = \int Dz\,\tanh^2\beta(\Delta z + m),
          \quad r = \frac{q}{(1-\beta(1-q))^2},\quad \Delta^2 = \alpha r.

A solution is a point of a curve: given the width Δ of the noise, m follows from the first equation
alone, q from the second, and :math:`\alpha = \Delta^2/r`. Nothing need be iterated, and where
retrieval ends α has its maximum along the curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erf

# tanh is steep at low temperatures: a fine grid beats Gaussian quadrature there.
_Z = np.linspace(-9, 9, 6001)
_DZ = np.exp(-(_Z**2) / 2)
_DZ /= _DZ.sum()
_COLDEST = 0.01  # below, the limit T → 0
_NARROW = 1e-6


class ReplicaSolution(NamedTuple):
    """Order parameters, and the free energy per spin."""

    m: float
    """Overlap with a pattern."""
    q: float
    """Edwards-Anderson parameter."""
    r: float
    """Noise of the other patterns: its variance is αr."""
    free_energy: float


def glass_temperature(alpha: float) -> float:
    r"""Return :math:`T_g = 1 + \sqrt\alpha`: above it there is nothing but the paramagnet.

    Examples
    --------
    >>> from dualtap.theory.replica import glass_temperature
    >>> glass_temperature(0.04)
    1.2
    """
    if not alpha >= 0:
        raise ValueError(f"alpha must not be negative, got {alpha!r}")
    return 1 + float(np.sqrt(alpha))


def retrieval_solution(temperature: float, alpha: float) -> ReplicaSolution | None:
    """Return the retrieval state, or None where there is none.

    Parameters
    ----------
    temperature : float
        At least 0.01.
    alpha : float

    Returns
    -------
    ReplicaSolution or None

    Examples
    --------
    >>> from dualtap.theory.replica import retrieval_solution
    >>> round(retrieval_solution(0.5, 0.01).m, 3)
    0.952
    >>> retrieval_solution(0.5, 0.2) is None
    True
    """
    beta = _beta(temperature)
    end = _end_of_retrieval(beta)
    if end is None or not 0 < alpha <= _load(beta, end):
        return None
    width = brentq(lambda x: _load(beta, x) - alpha, _NARROW, end)
    return _solution(beta, alpha, width, _overlap(beta, width))


def glass_solution(temperature: float, alpha: float) -> ReplicaSolution:
    """Return the state without a pattern: spin glass, or paramagnet above T_g.

    Parameters
    ----------
    temperature : float
        At least 0.01.
    alpha : float

    Returns
    -------
    ReplicaSolution

    Examples
    --------
    >>> from dualtap.theory.replica import glass_solution
    >>> glass_solution(1.3, 0.04).q, round(glass_solution(0.5, 0.04).q, 3)
    (0.0, 0.589)
    """
    beta = _beta(temperature)
    if temperature >= glass_temperature(alpha):
        return _solution(beta, alpha, 0.0, 0.0)
    # On the glass branch the load falls to that of T_g as the width goes to zero.
    width = brentq(lambda x: _glass_load(beta, x) - alpha, _NARROW, 10 * (1 + np.sqrt(alpha)))
    return _solution(beta, alpha, width, 0.0)


def retrieval_capacity(temperature: float) -> float:
    """Return the largest α at which retrieval states exist: the line T_M.

    Parameters
    ----------
    temperature : float in [0, 1)

    Returns
    -------
    float
        0.138 at T = 0.

    Examples
    --------
    >>> from dualtap.theory.replica import retrieval_capacity
    >>> round(retrieval_capacity(0), 3)
    0.138
    """
    if temperature < _COLDEST:
        return _cold_load(_coldest_end()) if temperature >= 0 else _beta(temperature)
    beta = _beta(temperature)
    end = _end_of_retrieval(beta)
    return 0.0 if end is None else _load(beta, end)


def stable_capacity(temperature: float) -> float:
    """Return the largest α at which retrieval has the lowest free energy: the line T_R.

    Parameters
    ----------
    temperature : float in [0, 1)

    Returns
    -------
    float
        0.0519 at T = 0 (0.051 in the literature).

    Examples
    --------
    >>> from dualtap.theory.replica import stable_capacity
    >>> round(stable_capacity(0), 4)
    0.0519
    """
    if temperature < 0:
        _beta(temperature)
    if temperature < _COLDEST:
        end = _coldest_end()
        y = brentq(lambda y: _cold_energy(y) - _cold_glass_energy(_cold_load(y)), end, 4.0)
        return _cold_load(y)
    beta = _beta(temperature)
    end_width = _end_of_retrieval(beta)
    if end_width is None:
        return 0.0

    def excess(width: float) -> float:
        alpha = _load(beta, width)
        retrieval = _solution(beta, alpha, width, _overlap(beta, width))
        return retrieval.free_energy - glass_solution(temperature, alpha).free_energy

    narrow = 1e-3 * end_width
    if excess(end_width) <= 0:
        return _load(beta, end_width)
    return _load(beta, brentq(excess, narrow, end_width))


def _beta(temperature: float) -> float:
    if not temperature >= _COLDEST:
        raise ValueError(
            f"the temperature must be at least {_COLDEST} here, got {temperature!r}; the lines are "
            "known at 0 too"
        )
    return 1 / temperature


def _mean(values: NDArray[np.float64]) -> float:
    return float(_DZ @ values)


def _overlap(beta: float, width: float) -> float:
    """Return the positive solution m at a width, 0 if there is none: the mean is concave in m."""
    if beta * _mean(1 / np.cosh(np.minimum(np.abs(beta * width * _Z), 300)) ** 2) <= 1:
        return 0.0

    def gap(m: float) -> float:
        return _mean(np.tanh(beta * (width * _Z + m))) - m

    return float(brentq(gap, 1e-7, 1.0)) if gap(1e-7) > 0 else 0.0


def _edwards_anderson(beta: float, width: float, m: float) -> float:
    return _mean(np.tanh(beta * (width * _Z + m)) ** 2)


def _load(beta: float, width: float) -> float:
    """Return α of the retrieval state at a width; 0 where there is none."""
    m = _overlap(beta, width)
    q = _edwards_anderson(beta, width, m)
    margin = 1 - beta * (1 - q)
    return width**2 * margin**2 / q if m > 0 and margin > 0 else 0.0


def _glass_load(beta: float, width: float) -> float:
    q = _edwards_anderson(beta, width, 0.0)
    return width**2 * max(1 - beta * (1 - q), 0.0) ** 2 / q


def _end_of_retrieval(beta: float) -> float | None:
    """Return the width at which α is largest along the retrieval branch."""
    if beta <= 1:
        return None
    grid = np.linspace(_NARROW, 1.0, 101)
    best = int(np.argmax([_load(beta, width) for width in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, 100)])
    found = minimize_scalar(
        lambda width: -_load(beta, width), bounds=bounds, method="bounded", options={"xatol": 1e-9}
    )
    return float(found.x)


def _solution(beta: float, alpha: float, width: float, m: float) -> ReplicaSolution:
    r"""Return order parameters with f, the constant α/2 of the diagonal left out.

    .. math:: f = \tfrac{m^2}2 + \tfrac{\alpha}{2\beta}\Big[\log(1-\beta(1-q)) -
              \tfrac{\beta q}{1-\beta(1-q)}\Big] + \tfrac{\alpha\beta}2 r(1-q) - \tfrac1\beta
              \int Dz \log 2\cosh\beta(\sqrt{\alpha r}z+m)
    """
    q = _edwards_anderson(beta, width, m)
    margin = 1 - beta * (1 - q)
    r = q / margin**2
    x = beta * (width * _Z + m)
    free_energy = (
        m**2 / 2
        + alpha / (2 * beta) * (np.log(margin) - beta * q / margin)
        + alpha * beta * r * (1 - q) / 2
        - _mean(np.logaddexp(x, -x)) / beta
    )
    return ReplicaSolution(m, q, r, float(free_energy))


# T → 0: with y = m/√(2αr), everything follows from y alone (Amit, Gutfreund, Sompolinsky 1985).


def _cold_load(y: float) -> float:
    return float((erf(y) / y - 2 / np.sqrt(np.pi) * np.exp(-(y**2))) ** 2 / 2)


def _coldest_end() -> float:
    """Return y at the capacity; retrieval states have a larger one."""
    found = minimize_scalar(lambda y: -_cold_load(y), bounds=(0.5, 3.0), method="bounded")
    return float(found.x)


def _cold_energy(y: float) -> float:
    alpha, m = _cold_load(y), erf(y)
    width = m / (np.sqrt(2) * y)  # √(αr)
    return _energy(alpha, m, width, np.exp(-(y**2)))


def _cold_glass_energy(alpha: float) -> float:
    width = np.sqrt(alpha) + np.sqrt(2 / np.pi)
    return _energy(alpha, 0.0, width, 1.0)


def _energy(alpha: float, m: float, width: float, gauss: float) -> float:
    """Return the limit of f; C = lim β(1 - q) = √(2/π) e^{-y²} / √(αr)."""
    c = np.sqrt(2 / np.pi) * gauss / width
    noise = alpha / 2 * (c / (1 - c) ** 2 - 1 / (1 - c))
    return float(-(m**2) / 2 + noise - np.sqrt(2 / np.pi) * width * gauss)
