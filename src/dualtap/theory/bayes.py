"""The best that any method can do on one pattern in the paramagnet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import erf

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(101)


class BayesLimit(NamedTuple):
    """Bayes-optimal overlaps with the hidden pattern, for N → ∞."""

    magnetization: float
    """q = mean of m_i ζ_i, m the posterior means."""
    sign: float
    """Overlap of sign(m) with ζ."""


def critical_samples(beta: float, n_spins: int) -> float:
    r"""Return :math:`M_c = N (1/\beta - 1)^2`, below which no method finds a pattern at β < 1.

    Examples
    --------
    >>> from dualtap.theory import critical_samples
    >>> critical_samples(beta=0.5, n_spins=1000)
    1000.0
    """
    return n_spins * (1 / beta - 1) ** 2


def paramagnetic_limit(beta: float, alpha: float, tol: float = 1e-12) -> BayesLimit:
    r"""Return the Bayes limit for P = 1 at β < 1 with α = M/N samples per spin.

    .. math:: r = \frac{v^2 \beta q}{1 + v\beta q},\quad v = \frac1{1-\beta},\qquad
              s = \alpha\beta r,\qquad q = \mathbb{E}_z \tanh(s + \sqrt s\, z),

    and the sign overlap is :math:`\mathrm{erf}\sqrt{s/2}`. Non-zero only above
    :math:`\alpha_c = (1/\beta - 1)^2`.

    Parameters
    ----------
    beta : float in (0, 1)
    alpha : float
    tol : float
        Change of q at which the iteration stops.

    Returns
    -------
    BayesLimit

    Examples
    --------
    >>> from dualtap.theory import paramagnetic_limit
    >>> round(paramagnetic_limit(beta=0.8, alpha=1.0).sign, 3)
    0.923
    >>> round(paramagnetic_limit(beta=0.8, alpha=0.05).sign, 3)
    0.0
    """
    if not 0 < beta < 1:
        raise ValueError(f"the paramagnetic limit needs 0 < beta < 1, got {beta!r}")
    if alpha < 0:
        raise ValueError(f"alpha must not be negative, got {alpha!r}")
    v = 1 / (1 - beta)
    q, s = 1.0, 0.0
    for _ in range(100_000):
        r = v**2 * beta * q / (1 + v * beta * q)
        s = alpha * beta * r
        q_new = float(_WEIGHTS @ np.tanh(s + np.sqrt(s) * _NODES) / _WEIGHTS.sum())
        if abs(q_new - q) < tol:
            break
        q = q_new
    return BayesLimit(q, float(erf(np.sqrt(s / 2))))
