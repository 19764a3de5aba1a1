r"""The Curie-Weiss model, :math:`Z = \sum_s \exp\big(\frac{\beta}{2N} (\sum_i s_i)^2\big)`.

It is the Hopfield model of one pattern: by the change :math:`s_i \to \zeta_i s_i` the pattern drops
out of Z.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

_SMALL = 1e-12


def magnetization(beta: float) -> float:
    r"""Return the solution :math:`m \ge 0` of :math:`m = \tanh\beta m`: zero for β ≤ 1.

    Parameters
    ----------
    beta : float

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory.curie_weiss import magnetization
    >>> round(magnetization(2.0), 4), magnetization(0.5)
    (0.9575, 0.0)
    """
    _check(beta)
    if beta <= 1:
        return 0.0
    # Below the solution tanh βm exceeds m; its least size follows from the cubic term.
    low = min(0.5, np.sqrt(3 * (beta - 1) / beta**3)) / 2
    if np.tanh(beta * low) <= low or low < _SMALL:
        return float(low)
    return float(brentq(lambda m: np.tanh(beta * m) - m, low, 1.0, xtol=1e-15))


def log_partition(beta: float) -> float:
    r"""Return :math:`g(\beta) = \lim_N \frac1N\log Z = \log 2\cosh\beta m - \beta m^2/2`.

    Parameters
    ----------
    beta : float

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory.curie_weiss import log_partition
    >>> round(log_partition(0.5), 4)
    0.6931
    """
    m = magnetization(beta)
    return float(np.logaddexp(beta * m, -beta * m) - beta * m**2 / 2)


def finite_log_partition(n_spins: int, beta: float) -> float:
    """Return log Z of N spins, exactly: a sum over the N + 1 magnetizations.

    Parameters
    ----------
    n_spins : int
    beta : float

    Returns
    -------
    float

    Examples
    --------
    >>> from math import e, log
    >>> from dualtap.theory.curie_weiss import finite_log_partition
    >>> round(finite_log_partition(2, 1.0) - log(2 * e + 2), 12)
    0.0
    """
    _check(beta)
    if n_spins < 0:
        raise ValueError(f"n_spins must not be negative, got {n_spins!r}")
    if n_spins == 0:
        return 0.0
    up = np.arange(n_spins + 1)
    states = gammaln(n_spins + 1) - gammaln(up + 1) - gammaln(n_spins - up + 1)
    return float(logsumexp(states + beta / (2 * n_spins) * (2.0 * up - n_spins) ** 2))


def _check(beta: float) -> None:
    if not beta >= 0:
        raise ValueError(f"beta must not be negative, got {beta!r}")
