r"""The field on a spin given all others, and what it says about the spin.

.. math:: h_{ai} = b_i + \sum_\mu \frac{g_\mu}N \zeta^\mu_i \sum_{j\ne i} \zeta^\mu_j s_{aj},
          \qquad P(s_{ai} | s_{a\setminus i}) = \sigma(2 s_{ai} h_{ai})

Pure functions of a block of samples, which every likelihood of this package is made of.

Gaps are filled by their means given the observed spins, but never given the spin whose field they
add to: it would explain itself. The observed entries of a row with gaps are divided in two, and
gaps are filled given either half, for the fields on the other (:func:`cross_filled`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = TypeVar("Floats", bound=NDArray[np.floating[Any]])

__all__ = [
    "cross_filled",
    "filled",
    "local_fields",
    "log_likelihoods",
    "log_sigmoid",
    "observed_fields",
    "second_half",
]

_FILL_STEPS = 3


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
    tail = np.array(np.abs(x))  # also for a single number
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
    *,
    overlaps: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    r"""Return the field on every spin of every sample, given the other spins of the sample.

    .. math:: h_{ai} = b_i + \sum_\mu \frac{g_\mu}N \zeta^\mu_i
              (O_{a\mu} - \zeta^\mu_i s_{ai}), \qquad O_{a\mu} = \zeta^\mu\cdot s_a

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1; missing entries as :func:`filled` leaves them.
    patterns : array of shape (n_patterns, n_spins)
        The ζ^μ; those that are not 0 are the pattern's spins.
    strengths : array of shape (n_patterns,)
        The g_μ.
    fields : array of shape (n_spins,), optional
        The b_i; zero by default.
    overlaps : array of shape (n_samples, n_patterns), optional
        The O, if they are known.

    Returns
    -------
    array of shape (n_samples, n_spins), float32

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.local_fields import local_fields
    >>> zeta, g = np.array([[1, 1, -1, -1]], np.float32), np.array([2.0])
    >>> local_fields(np.array([[1, 1, -1, 1]], np.float32), zeta, g)
    array([[ 0.5,  0.5, -0.5, -1.5]], dtype=float32)
    """
    scale = (strengths / S.shape[1]).astype(np.float32)
    known = S @ patterns.T if overlaps is None else overlaps
    h: NDArray[np.float32] = (known * scale) @ patterns
    h -= (scale @ np.square(patterns)) * S
    if fields is not None:
        h += fields.astype(np.float32)
    return h


def filled(
    S: NDArray[np.floating[Any]] | NDArray[np.int8],
    patterns: NDArray[np.float32],
    strengths: NDArray[np.floating[Any]],
    fields: NDArray[np.floating[Any]] | None = None,
    means: NDArray[np.floating[Any]] | None = None,
) -> NDArray[np.float32]:
    r"""Return samples with missing spins at their means given the observed ones.

    A few steps of mean field from the means of the spins,
    :math:`t \leftarrow (1 - d)\, t + d \tanh h`. Repulsive patterns would make a full step
    overshoot: :math:`d = 1/(1 + \kappa)`, κ the largest slope that they may give it.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1, or 0 for a missing entry.
    patterns, strengths, fields : as in :func:`local_fields`
    means : array of shape (n_spins,), optional
        Means of the spins to start from; zero by default.

    Returns
    -------
    array of shape (n_samples, n_spins), float32
        Observed entries as they are, missing ones in (-1, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.local_fields import filled
    >>> zeta, g = np.array([[1, 1, -1, -1]], np.float32), np.array([2.0])
    >>> filled(np.array([[1, 1, -1, 0]]), zeta, g).round(2)
    array([[ 1.  ,  1.  , -1.  , -0.91]], dtype=float32)
    """
    from dualtap._kernels.fields import relax

    seen = S != 0
    start = np.float32(0) if means is None else means.astype(np.float32)
    result: NDArray[np.float32] = np.where(seen, S, start).astype(np.float32)
    squares, step = np.square(patterns), np.ones(len(S), np.float32)
    scale = (strengths / S.shape[1]).astype(np.float32)
    if (scale < 0).any():
        kappa = ((~seen).astype(np.float32) @ squares.T) @ np.maximum(-scale, 0)
        step = 1 / (1 + kappa)
    own, b = scale @ squares, np.zeros(S.shape[1], np.float32)
    if fields is not None:
        b = fields.astype(np.float32)
    for _ in range(_FILL_STEPS):
        f = (result @ patterns.T * scale) @ patterns
        relax(seen.view(np.int8), f, own, b, step, result)
    return result


def second_half(S: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return every second observed entry of the rows that have gaps.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1, or 0 for a missing entry.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.local_fields import second_half
    >>> second_half(np.array([[1, -1, 0, 1, 1], [1, 1, 1, 1, 1]])).astype(int)
    array([[0, 1, 0, 0, 1],
           [0, 0, 0, 0, 0]])
    """
    seen = S != 0
    result: NDArray[np.bool_] = seen & (np.cumsum(seen, axis=1) % 2 == 0)
    result[seen.all(axis=1)] = False
    return result


def cross_filled(
    S: NDArray[np.float32],
    patterns: NDArray[np.float32],
    strengths: NDArray[np.floating[Any]],
    fields: NDArray[np.floating[Any]] | None = None,
    means: NDArray[np.floating[Any]] | None = None,
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Yield one half of the entries, and samples with gaps filled given the other half.

    Once, with all entries, if no row has gaps.

    Parameters
    ----------
    S, patterns, strengths, fields, means : as in :func:`filled`

    Yields
    ------
    scored : array of shape (n_samples, n_spins)
        The entries of one half, 0 elsewhere.
    whole : array of shape (n_samples, n_spins)
        All observed entries, and the filled ones.
    """
    if S.all():
        yield S, S
        return
    second = second_half(S)
    for half in (~second, second) if second.any() else (~second,):
        given = filled(np.where(half, 0, S), patterns, strengths, fields, means)
        yield np.where(half, S, 0), np.where(S != 0, S, given)


def observed_fields(
    S: NDArray[np.float32],
    patterns: NDArray[np.float32],
    strengths: NDArray[np.floating[Any]],
    fields: NDArray[np.floating[Any]] | None = None,
    means: NDArray[np.floating[Any]] | None = None,
) -> NDArray[np.float32]:
    """Return the field on every observed spin given the others, 0 on missing ones.

    Parameters
    ----------
    S, patterns, strengths, fields, means : as in :func:`filled`

    Returns
    -------
    array of shape (n_samples, n_spins), float32

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.local_fields import observed_fields
    >>> zeta, g = np.ones((1, 4), np.float32), np.array([4.0])
    >>> observed_fields(np.array([[1, 1, 0, 0]], np.float32), zeta, g).round(2)
    array([[2.99, 2.99, 0.  , 0.  ]], dtype=float32)
    """
    if S.all():
        return local_fields(S, patterns, strengths, fields)
    h = np.zeros(S.shape, np.float32)
    for scored, whole in cross_filled(S, patterns, strengths, fields, means):
        h += np.where(scored, local_fields(whole, patterns, strengths, fields), 0)
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
    seen = True if S.all() else S != 0  # a mask makes the sum three times as slow
    sums: NDArray[np.float64] = log_sigmoid(x, out=x).sum(axis=1, dtype=np.float64, where=seen)
    return sums
