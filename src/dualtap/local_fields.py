r"""The field on a spin given all others, and what it says about the spin.

.. math:: h_{ai} = b_i + \sum_\mu \frac{g_\mu}N \zeta^\mu_i \sum_{j\ne i} \zeta^\mu_j s_{aj},
          \qquad P(s_{ai} | s_{a\setminus i}) = \sigma(2 s_{ai} h_{ai})

Pure functions of a block of samples, which every likelihood of this package is made of.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = TypeVar("Floats", bound=NDArray[np.floating[Any]])

__all__ = ["local_fields", "log_likelihoods", "log_sigmoid"]


def log_sigmoid(x: Floats, out: Floats | None = None) -> Floats:
    r"""Return :math:`\log\sigma(x) = -\log(1 + e^{-x})`, without overflow for any x.

    Parameters
    ----------
    x : array of any shape, float32 or float64
    out : array of the same shape and type, optional
        Receives the result; may be ``x`` itself.

    Returns
    -------
    array of the shape and type of x
        Within 1e-7 (float32) or 1e-15 (float64), or that times the value where it is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.local_fields import log_sigmoid
    >>> log_sigmoid(np.array([-1000.0, 0.0, 10.0])).round(6)
    array([-1.00000e+03, -6.93147e-01, -4.50000e-05])
    """
    tail = np.abs(x)
    np.negative(tail, out=tail)
    np.exp(tail, out=tail)
    if tail.dtype == np.float32:
        # NumPy vectorises the logarithm of float32 but not log1p, which takes 2.5 times as long.
        tail += 1
        np.log(tail, out=tail)
    else:
        np.log1p(tail, out=tail)
    result: Floats = np.minimum(x, 0, out=out)
    result -= tail
    return result


def local_fields(
    S: NDArray[np.float32],
    patterns: NDArray[np.float32],
    strengths: NDArray[np.floating[Any]],
    fields: NDArray[np.floating[Any]] | None = None,
    complete: bool = True,
) -> NDArray[np.float32]:
    r"""Return the field on every spin of every sample, given the other spins of the sample.

    .. math:: h_{ai} = b_i + \sum_\mu \frac{g_\mu}N c_{a\mu} \zeta^\mu_i
              (O_{a\mu} - \zeta^\mu_i s_{ai}), \qquad O_{a\mu} = \zeta^\mu\cdot s_a

    In a complete sample all c are 1. Where entries are missing, the missing spins of a pattern
    are taken to be aligned with it as much as the observed ones: if n of the n_μ spins of the
    pattern are observed, n - 1 of its n_μ - 1 others are seen by an observed spin, and
    :math:`c_{a\mu} = (n_\mu - 1) / \max(n - 1, 1)`. A pattern of two spins is never scaled: when
    one of them is missing, the other feels nothing.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1, or 0 for a missing entry.
    patterns : array of shape (n_patterns, n_spins)
        The ζ^μ; those that are not 0 are the pattern's spins.
    strengths : array of shape (n_patterns,)
        The g_μ.
    fields : array of shape (n_spins,), optional
        The b_i; zero by default.
    complete : bool
        No entry of S is 0, which saves two products.

    Returns
    -------
    array of shape (n_samples, n_spins), float32
        Also for missing entries, with the same c.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.local_fields import local_fields
    >>> zeta, g = np.array([[1, 1, -1, -1]], np.float32), np.array([2.0])
    >>> local_fields(np.array([[1, 1, -1, 1]], np.float32), zeta, g)
    array([[ 0.5,  0.5, -0.5, -1.5]], dtype=float32)
    >>> local_fields(np.array([[1, 1, -1, 0]], np.float32), zeta, g, complete=False)
    array([[ 1.5 ,  1.5 , -1.5 , -2.25]], dtype=float32)
    """
    scale = (strengths / S.shape[1]).astype(np.float32)
    if not complete:
        support = (patterns != 0).astype(np.float32)
        n_seen = np.maximum(np.abs(S) @ support.T - 1, 1)
        scale = scale * (support.sum(axis=1) - 1) / n_seen
    overlaps: NDArray[np.float32] = S @ patterns.T
    overlaps *= scale
    h: NDArray[np.float32] = overlaps @ patterns
    h -= (scale @ np.square(patterns)) * S
    if fields is not None:
        h += fields.astype(np.float32)
    return h


def log_likelihoods(S: NDArray[np.float32], h: NDArray[np.float32]) -> NDArray[np.float64]:
    r"""Return :math:`\sum_i \log\sigma(2 s_{ai} h_{ai})` over the observed spins of each sample.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1, or 0 for a missing entry.
    h : array of shape (n_samples, n_spins)
        From :func:`local_fields`.

    Returns
    -------
    array of shape (n_samples,), float64

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.local_fields import log_likelihoods
    >>> S = np.array([[1, -1], [1, 0]], np.float32)
    >>> log_likelihoods(S, np.zeros_like(S)).round(4)
    array([-1.3863, -0.6931])
    """
    x = S * h
    x *= 2
    terms = log_sigmoid(x, out=x)
    sums: NDArray[np.float64] = terms.sum(axis=1, dtype=np.float64, where=S != 0)
    return sums
