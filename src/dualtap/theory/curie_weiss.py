r"""The Curie–Weiss ferromagnet: one stored pattern, every pattern alone.

The gauge transformation :math:`s_i \to \xi_i s_i` turns the Hopfield model of one pattern into

.. math:: Z = \sum_s \exp\!\left[\frac{\beta}{2N} \Big(\sum_i s_i\Big)^2\right],

so its magnetization is the overlap of a sample with its pattern, and its partition function is
that of the posterior of one pattern.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

Floats = NDArray[np.float64]


class CurieWeissMoments(NamedTuple):
    """Thermal averages of the magnetization per spin of a finite system."""

    square: float
    """Mean m²."""
    absolute: float
    """Mean size of m; the mean of m itself is 0 by symmetry."""


def curie_weiss_magnetization(beta: ArrayLike) -> Floats:
    r"""Return the spontaneous magnetization for N → ∞.

    The positive solution of

    .. math:: m = \tanh(\beta m),

    which exists for β > 1; 0 below.

    Parameters
    ----------
    beta : float or array
        Inverse temperatures, not negative.

    Returns
    -------
    array of the shape of ``beta``

    Examples
    --------
    >>> from dualtap.theory import curie_weiss_magnetization
    >>> curie_weiss_magnetization([0.5, 1.0, 2.0]).round(4)
    array([0.    , 0.    , 0.9575])
    """
    betas = _checked(beta)
    m = np.array([_magnetization(float(b)) for b in betas.flat])
    return m.reshape(betas.shape)


def curie_weiss_log_partition(beta: ArrayLike) -> Floats:
    r"""Return the log-partition function per spin for N → ∞.

    .. math:: g(\beta) = \lim_{N\to\infty} \frac1N \log Z
              = \max_m \left[\mathcal{S}(m) + \frac{\beta m^2}{2}\right]
              = \log 2\cosh(\beta m) - \frac{\beta m^2}{2},

    with :math:`\mathcal{S}(m)` the entropy of independent spins and m the magnetization;
    :math:`g = \log 2` for β ≤ 1.

    Parameters
    ----------
    beta : float or array
        Inverse temperatures, not negative.

    Returns
    -------
    array of the shape of ``beta``

    Examples
    --------
    >>> from dualtap.theory import curie_weiss_log_partition
    >>> curie_weiss_log_partition([0.5, 2.0]).round(4)
    array([0.6931, 1.0197])
    """
    betas = _checked(beta)
    m = curie_weiss_magnetization(betas)
    g: Floats = np.logaddexp(betas * m, -betas * m) - betas * m**2 / 2
    return g


def curie_weiss_log_partition_exact(beta: float, n_spins: int) -> float:
    r"""Return log Z of a finite system, exactly, in O(N).

    .. math:: Z = \sum_{k=0}^{N} \binom{N}{k} \exp\!\left[\frac{\beta}{2N} (N - 2k)^2\right].

    Parameters
    ----------
    beta : float
        Inverse temperature, not negative.
    n_spins : int
        N ≥ 1.

    Returns
    -------
    float
        log Z, not divided by N.

    Examples
    --------
    >>> from dualtap.theory import curie_weiss_log_partition_exact
    >>> round(curie_weiss_log_partition_exact(beta=0.0, n_spins=3), 4)  # 3 log 2
    2.0794
    """
    _, log_weight = _log_weights(beta, n_spins)
    return float(logsumexp(log_weight))


def curie_weiss_moments(beta: float, n_spins: int) -> CurieWeissMoments:
    r"""Return the means of m² and of its size in a finite system, exactly, in O(N).

    Averages over :math:`m = (N - 2k)/N` with the weights of
    :func:`curie_weiss_log_partition_exact`.

    Parameters
    ----------
    beta : float
        Inverse temperature, not negative.
    n_spins : int
        N ≥ 1.

    Returns
    -------
    CurieWeissMoments

    Examples
    --------
    >>> from dualtap.theory import curie_weiss_moments
    >>> round(curie_weiss_moments(beta=0.0, n_spins=100).square, 6)  # 1/N
    0.01
    >>> round(curie_weiss_moments(beta=2.0, n_spins=1000).absolute, 4)
    0.9573
    """
    m, log_weight = _log_weights(beta, n_spins)
    weight = np.exp(log_weight - logsumexp(log_weight))
    return CurieWeissMoments(float(weight @ m**2), float(weight @ np.abs(m)))


def _magnetization(beta: float) -> float:
    if beta <= 1:
        return 0.0

    # In x = βm the equation reads x / tanh x = β: monotone, one root in [0, β], no root at 0.
    def excess(x: float) -> float:
        return (x / np.tanh(x) if x > 0 else 1.0) - beta

    return float(np.tanh(brentq(excess, 0.0, beta, xtol=1e-15)))


def _log_weights(beta: float, n_spins: int) -> tuple[Floats, Floats]:
    """Return every magnetization per spin and the log of its weight in Z."""
    _checked(beta)
    if n_spins < 1:
        raise ValueError(f"n_spins must be at least 1, got {n_spins!r}; pass the system's size")
    k = np.arange(n_spins + 1)
    m: Floats = (n_spins - 2 * k) / n_spins
    log_binomial = gammaln(n_spins + 1) - gammaln(k + 1) - gammaln(n_spins - k + 1)
    return m, log_binomial + beta * n_spins / 2 * m**2


def _checked(beta: ArrayLike) -> Floats:
    betas = np.asarray(beta, dtype=np.float64)
    bad = betas[~(np.isfinite(betas) & (betas >= 0))]
    if bad.size:
        raise ValueError(
            f"beta must be finite and not negative, got {float(bad[0])!r}; "
            "an antiferromagnet is another model, and β → ∞ has m = 1"
        )
    return betas
