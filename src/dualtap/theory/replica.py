r"""Replica-symmetric phase diagram of the Hopfield model with P = αN patterns.

.. math:: m = \int\! Dz \tanh\beta(\sqrt{\alpha r}\, z + m), \quad
          q = \int\! Dz \tanh^2\beta(\sqrt{\alpha r}\, z + m), \quad
          r = \frac{q}{(1 - C)^2}, \quad C = \beta(1-q).

Everything here follows the branches of solutions along the width :math:`\sigma = \sqrt{\alpha r}`
of the noise, not along α. At given T and σ the first equation is concave in m, so it has one
positive root or none; the rest is then explicit, :math:`\alpha = \sigma^2 (1-C)^2 / q`. Along the
spin-glass branch (m = 0) α grows with σ; along the retrieval branch it rises from 0, has one
maximum, the capacity, and falls back to 0. No fixed-point iteration, hence no slowing down near
transitions, and T = 0 is a temperature like any other.

Lines, hottest first, in the names of Amit, Gutfreund and Sompolinsky (AGS) and of the paper:

- :math:`T_g(\alpha)`, :func:`spin_glass_temperature`: paramagnet above, spin glass below.
- :math:`T_M(\alpha)`, :func:`metastable_temperature`: retrieval states exist below; the paper's
  metastable retrieval phase begins. Ends at α = 0.138 for T = 0.
- :math:`T_c(\alpha)` of AGS, often :math:`T_R`, :func:`retrieval_temperature`: retrieval states
  are the global minimum below; the paper's retrieval phase. Ends at α = 0.0519 for T = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erf

from dualtap.theory.curie_weiss import Floats
from dualtap.theory.stability import checked_alpha

_GRID = np.linspace(-1.0, 1.0, 801)
_FROZEN = 1e-7
"""Temperature below which T = 0 is exact to rounding: corrections are O(T²)."""
_WARMEST = 1 - 1e-7
"""Above, m < 6e-4 and capacities < 3e-15 count as 0: free energies differ by rounding alone."""
_LEAST_ALPHA = 1e-12
"""Below, the spin glass's 1 - C cannot be distinguished from 0."""


class ReplicaState(NamedTuple):
    """A solution of the replica-symmetric equations."""

    magnetization: float
    """m, the overlap with the retrieved pattern; 0 outside retrieval."""
    overlap: float
    """q, the mean squared magnetization of a spin."""
    noise: float
    """r, the mean squared overlap with the other patterns, in units of 1/N."""
    free_energy: float
    """Free energy per spin, the diagonal of J included."""


class _Moments(NamedTuple):
    """Gaussian averages over fields of mean m and width σ."""

    m: float
    q: float
    C: float
    energy: float
    """T ∫Dz log 2cosh(h/T)."""


def retrieval_state(temperature: float, alpha: float) -> ReplicaState:
    r"""Return the solution reached from m = 1: retrieval where it exists.

    The equations are those of :mod:`dualtap.theory.replica`; the free energy per spin is

    .. math:: f = \frac{m^2}{2} + \frac{\alpha}{2}\left[T \log(1-C) - \frac{q}{1-C} + rC\right]
              - T \int\! Dz \log 2\cosh\beta(\sqrt{\alpha r}\, z + m).

    AGS leave the diagonal of J out, which adds α/2.

    Parameters
    ----------
    temperature : float
        T ≥ 0.
    alpha : float
        Patterns per spin, not negative.

    Returns
    -------
    ReplicaState
        Above the capacity the spin glass or the paramagnet, with magnetization 0.

    Examples
    --------
    >>> from dualtap.theory import retrieval_state
    >>> round(retrieval_state(temperature=0.5, alpha=0.02).magnetization, 3)
    0.945
    >>> retrieval_state(temperature=0.5, alpha=0.2).magnetization
    0.0
    """
    T = _checked_temperature(temperature)
    if checked_alpha(alpha) > metastable_capacity(T) or T >= _WARMEST:
        return _spin_glass(T, max(alpha, _LEAST_ALPHA))  # at α = 0 the limit, finite at T = 1 too
    end = _branch_end(T)
    sigma = brentq(lambda s: _retrieval(s, T)[0] - alpha, 0.0, end, xtol=1e-16)
    return _retrieval(sigma, T)[1]


def spin_glass_state(temperature: float, alpha: float) -> ReplicaState:
    r"""Return the solution with m = 0: spin glass below :math:`T_g`, paramagnet above.

    Equations and free energy as in :func:`retrieval_state`.

    Parameters
    ----------
    temperature : float
        T ≥ 0.
    alpha : float
        Patterns per spin, at least 1e-12.

    Returns
    -------
    ReplicaState

    Examples
    --------
    >>> from dualtap.theory import spin_glass_state
    >>> round(spin_glass_state(temperature=0.5, alpha=0.1).overlap, 3)
    0.628
    >>> spin_glass_state(temperature=2.0, alpha=0.1).overlap
    0.0
    """
    if not _LEAST_ALPHA <= alpha < np.inf:
        raise ValueError(
            f"alpha must be finite and at least {_LEAST_ALPHA}, got {alpha!r}; "
            "without noise from other patterns there is no spin glass"
        )
    return _spin_glass(_checked_temperature(temperature), alpha)


def spin_glass_temperature(alpha: float) -> float:
    r"""Return :math:`T_g = 1 + \sqrt\alpha`, below which the spins freeze.

    Parameters
    ----------
    alpha : float
        Patterns per spin, not negative.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import spin_glass_temperature
    >>> spin_glass_temperature(0.25)
    1.5
    """
    return float(1 + np.sqrt(checked_alpha(alpha)))


def metastable_capacity(temperature: float) -> float:
    r"""Return the α up to which retrieval states exist: the line :math:`T_M`, read along α.

    .. math:: \alpha_M(T) = \max_\sigma \frac{\sigma^2 (1-C)^2}{q}

    along the retrieval branch; :math:`\alpha_M(0) = 0.138` is the capacity of AGS.

    Parameters
    ----------
    temperature : float
        T ≥ 0.

    Returns
    -------
    float
        0 for T ≥ 1.

    Examples
    --------
    >>> from dualtap.theory import metastable_capacity
    >>> round(metastable_capacity(0.0), 4)
    0.1379
    """
    T = _checked_temperature(temperature)
    return _retrieval(_branch_end(T), T)[0] if T < _WARMEST else 0.0


def metastable_temperature(alpha: float) -> float:
    r"""Return :math:`T_M(\alpha)`, below which retrieval states exist.

    The inverse of :func:`metastable_capacity`. Replica symmetry makes that line turn back a
    little below T = 0.023; this is its upper part.

    Parameters
    ----------
    alpha : float
        Patterns per spin, in [0, 0.138].

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import metastable_temperature
    >>> round(metastable_temperature(0.05), 3)
    0.542
    """
    return _temperature_on(metastable_capacity, alpha)


def retrieval_capacity(temperature: float) -> float:
    r"""Return the α up to which retrieval is the global minimum: :math:`T_c`, read along α.

    Where the free energies of :func:`retrieval_state` and :func:`spin_glass_state` meet;
    :math:`\alpha_R(0) = 0.0519`, usually quoted as 0.051. As retrieval is almost perfect there,
    it is nearly the solution of :math:`1/\pi + \sqrt{2\alpha/\pi} = 1/2`.

    Parameters
    ----------
    temperature : float
        T ≥ 0.

    Returns
    -------
    float
        0 for T ≥ 1.

    Examples
    --------
    >>> from dualtap.theory import retrieval_capacity
    >>> round(retrieval_capacity(0.0), 4)
    0.0519
    """
    T = _checked_temperature(temperature)
    if T >= _WARMEST:
        return 0.0

    def excess(sigma: float) -> float:
        alpha, state = _retrieval(sigma, T)
        return state.free_energy - _spin_glass(T, alpha).free_energy

    end = _branch_end(T)
    return _retrieval(brentq(excess, 0.1 * end, end, rtol=1e-12), T)[0]


def retrieval_temperature(alpha: float) -> float:
    r"""Return :math:`T_c(\alpha)`, below which retrieval states are the global minimum.

    The inverse of :func:`retrieval_capacity`, which turns back below T = 0.085; this is its upper
    part.

    Parameters
    ----------
    alpha : float
        Patterns per spin, in [0, 0.053].

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import retrieval_temperature
    >>> round(retrieval_temperature(0.02), 3)
    0.591
    """
    return _temperature_on(retrieval_capacity, alpha)


def _temperature_on(capacity: Callable[[float], float], alpha: float) -> float:
    """Return the highest T at which ``capacity`` is ``alpha``."""
    coldest = _peak(capacity)
    largest = capacity(coldest)
    if checked_alpha(alpha) > largest:
        raise ValueError(
            f"alpha must be at most {largest:.4f} for this line to exist, got {alpha!r}; "
            "with more patterns no temperature is low enough"
        )
    return float(brentq(lambda T: capacity(T) - alpha, coldest, 1.0, xtol=1e-10))


@lru_cache
def _peak(capacity: Callable[[float], float]) -> float:
    """Return the temperature of the largest capacity, 0 unless the line turns back."""
    found = minimize_scalar(lambda T: -capacity(T), bounds=(0.0, 0.3), method="bounded")
    return float(found.x) if -found.fun > capacity(0.0) else 0.0


def _spin_glass(T: float, alpha: float) -> ReplicaState:
    # α(σ) grows from the point where C = 1, or from σ = 0 where there is none, and exceeds
    # (σ - 1)² since C ≤ √(2/π)/σ and q ≤ 1.
    lower = _freezing_width(T) if T < 1 else 1e-8
    upper = np.sqrt(alpha) + 1.0
    if T >= 1 and _load(lower, _moments(0.0, lower, T)) >= alpha:
        return _state(0.0, 0.0, T, alpha)
    sigma = brentq(lambda s: _load(s, _moments(0.0, s, T)) - alpha, lower, upper, xtol=1e-16)
    return _state(0.0, sigma, T, alpha)


def _retrieval(sigma: float, T: float) -> tuple[float, ReplicaState]:
    """Return α and the state at width σ of the retrieval branch."""
    m = _root(sigma, T)
    alpha = _load(sigma, _moments(m, sigma, T))
    return alpha, _state(m, sigma, T, alpha)


def _root(sigma: float, T: float) -> float:
    """Return the positive root m of the first equation, 0 if there is none."""

    def excess(m: float) -> float:
        return _moments(m, sigma, T).m - m

    least = 1e-6  # far below any m that matters for T < _WARMEST
    return float(brentq(excess, least, 1.0, xtol=1e-16)) if excess(least) > 0 else 0.0


@lru_cache(maxsize=256)
def _branch_end(T: float) -> float:
    """Return the σ at which the retrieval branch has its largest α."""
    width = _freezing_width(T)

    def load(sigma: float) -> float:
        return -_load(sigma, _moments(_root(sigma, T), sigma, T))

    found = minimize_scalar(
        load, bounds=(0.0, width), method="bounded", options={"xatol": 1e-9 * width}
    )
    return float(found.x)


@lru_cache(maxsize=256)
def _freezing_width(T: float) -> float:
    """Return the σ at which C = 1 for m = 0, T < 1; both branches have α = 0 there."""
    return float(brentq(lambda s: _moments(0.0, s, T).C - 1, 1e-8, 1.0, xtol=1e-16))


def _load(sigma: float, moments: _Moments) -> float:
    """Return the α at which noise of width σ keeps itself up."""
    return sigma**2 * (1 - moments.C) ** 2 / moments.q


def _state(m: float, sigma: float, T: float, alpha: float) -> ReplicaState:
    _, q, C, energy = _moments(m, sigma, T)
    f = m**2 / 2 + alpha * T / 2 * np.log(1 - C) + sigma**2 * (C - 0.5) - energy
    return ReplicaState(m, q, q / (1 - C) ** 2, float(f))


def _moments(m: float, sigma: float, T: float) -> _Moments:
    sigma = max(sigma, 1e-200)  # one formula with and without noise
    if T < _FROZEN:
        ratio = min(m / sigma, 40.0)  # beyond, nothing is left of the Gaussian
        gauss = np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
        mean = erf(ratio / np.sqrt(2))
        C = float(gauss / sigma)
        return _Moments(float(mean), 1 - T * C, C, float(sigma * gauss + m * mean))
    x, weight = _nodes(m, sigma, T)
    decay = np.exp(-2 * np.abs(x))
    one_minus_q = float(weight @ (4 * decay / (1 + decay) ** 2))  # no cancellation at low T
    tanh = np.tanh(x)
    energy = T * float(weight @ (np.abs(x) + np.log1p(decay)))
    return _Moments(float(weight @ tanh), float(weight @ tanh**2), one_minus_q / T, energy)


def _nodes(m: float, sigma: float, T: float) -> tuple[Floats, Floats]:
    """Return fields β(σz + m) and weights of a quadrature over Gaussian z.

    The trapezoidal rule in u, z = c + w sinh u, with c where the field changes sign and w the
    width of that change: exponentially accurate however sharp the tanh is.
    """
    centre, width = -min(m / sigma, 10.0), min(1.0, T / sigma)
    reach = np.arcsinh(20 / width)
    u = reach * _GRID
    z = centre + width * np.sinh(u)
    step = reach * (_GRID[1] - _GRID[0])
    weight = np.exp(-(z**2) / 2) * np.cosh(u) * (width * step / np.sqrt(2 * np.pi))
    return (sigma * z + m) / T, weight


def _checked_temperature(temperature: float) -> float:
    if not 0 <= temperature < np.inf:
        raise ValueError(
            f"temperature must be finite and not negative, got {temperature!r}; "
            "it is 1/beta, 0 for the ground state"
        )
    return temperature
