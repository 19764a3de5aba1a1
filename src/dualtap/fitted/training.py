r"""What a model keeps of its training samples: usual scores, and how sure its strengths are.

A few hundred rows, evenly spread, stand for all; they are not counted as a pass over the samples.

Strengths g and fields b maximise the log pseudo-likelihood L. With :math:`r = s - \tanh h`,
:math:`w = 1 - \tanh^2 h` and :math:`\varphi^\mu_{ai} = \partial h_{ai} / \partial g_\mu`, what
sample a adds to L has the slope :math:`u_a = \sum_i r_{ai} \varphi_{ai}`, and the curvature is
:math:`H = \sum_{ai} w_{ai} \varphi_{ai} \varphi_{ai}^\top`. L is no likelihood, because the terms
of a sample are not independent; its maximum has the covariance
:math:`H^{-1} V H^{-1}`, :math:`V = \sum_a u_a u_a^\top` (Godambe, or sandwich), here with fields
eliminated from u and H. Strengths have a Gaussian prior, which adds its precision Λ to both:

.. math:: C = (H + \Lambda)^{-1} (V + \Lambda) (H + \Lambda)^{-1},

but no direction is less certain than by the prior alone. Along directions of which the samples say
nothing, H and V vanish and C is the variance of the prior.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dualtap._threads import one_blas_thread
from dualtap.local_fields import cross_filled, local_fields
from dualtap.metrics.likelihoods import block_likelihoods
from dualtap.spins import Spins
from dualtap.spins.protocol import F32
from dualtap.spins.storage import spread, spread_by_weight

_ROWS = 256
_PRODUCTS = 2 * 10**8
"""Products made for a covariance at most, unless that leaves too few rows."""
_FEWEST = 50
_RESOLVED = 1e-5
"""Smallest curvature, as a share of what is summed to it, that is not rounding of single precision;
less counts as none."""
LARGEST_FIELD = 2.0
"""Standard deviation of the prior on the largest field of a pattern (``benchmarks real``)."""
_HELD = 2**16
"""Entries that are held at a time."""


def spread_rows(spins: Spins, n_rows: int = _ROWS) -> NDArray[np.int8]:
    """Return some of the samples, evenly spread, as bytes; a row of weight w is w samples.

    Examples
    --------
    >>> from dualtap import as_spins
    >>> from dualtap.fitted.training import spread_rows
    >>> spread_rows(as_spins([[1, 0]] * 1000)).shape
    (256, 2)
    """
    rows = spread(spins.n_samples, n_rows)
    if spins.weights is not None:
        rows = spread_by_weight(spins.weights, n_rows)
    return spins.take(rows).values


def row_likelihoods(
    rows: NDArray[np.int8],
    patterns: NDArray[np.int8],
    strengths: NDArray[np.float64],
    fields: NDArray[np.float64] | None,
    means: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the log pseudo-likelihood of each row, and how many entries it has.

    Parameters
    ----------
    rows : array of shape (n_rows, n_spins)
        ±1, or 0 for a missing entry.
    patterns, strengths, fields, means : as in :func:`strength_covariance`

    Returns
    -------
    array of shape (n_rows, 2)
    """
    zeta = patterns.astype(np.float32)
    with one_blas_thread():
        found = [block_likelihoods(S, zeta, strengths, fields, means) for S in _blocks(rows, _HELD)]
    return np.concatenate(found)


def usual_scores(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log pseudo-likelihoods per spin in ascending order, empty rows left out.

    Parameters
    ----------
    found : array of shape (n_rows, 2)
        From :func:`row_likelihoods`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.training import row_likelihoods, usual_scores
    >>> rows = np.array([[1, 1], [0, 0], [1, -1]], dtype=np.int8)
    >>> zeta = np.ones((1, 2), dtype=np.int8)
    >>> usual_scores(row_likelihoods(rows, zeta, np.array([1.0]), None, np.zeros(2))).round(3)
    array([-1.313, -0.313])
    """
    total, count = found.T
    return np.sort(total[count > 0] / count[count > 0])


def _blocks(rows: NDArray[np.int8], entries: int) -> Iterator[F32]:
    step = max(1, entries // rows.shape[1])
    for first in range(0, len(rows), step):
        yield rows[first : first + step].astype(np.float32)


def strength_covariance(
    rows: NDArray[np.int8],
    n_samples: float,
    patterns: NDArray[np.int8],
    strengths: NDArray[np.float64],
    fields: NDArray[np.float64] | None,
    means: NDArray[np.float64],
    *,
    tied: bool,
) -> NDArray[np.float64]:
    """Return the covariance of fitted strengths, given the patterns: at most that of the prior.

    Parameters
    ----------
    rows : array of shape (n_rows, n_spins)
        Some of the samples that the model was fitted to: ±1, or 0 for a missing entry.
    n_samples : int or float
        How many there were in all.
    patterns : array of shape (n_patterns, n_spins)
    strengths : array of shape (n_patterns,)
    fields : array of shape (n_spins,), or None if none were fitted
    means : array of shape (n_spins,)
        Means of the spins, where missing entries start from.
    tied : bool
        One strength was fitted for all patterns.

    Returns
    -------
    array of shape (n_patterns, n_patterns)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel
    >>> from dualtap.fitted.training import strength_covariance
    >>> teacher = HopfieldModel.random(100, 1, beta=0.8, random_state=0)
    >>> X, zeta = teacher.sample(400, random_state=1), teacher.patterns
    >>> C = strength_covariance(X, 400, zeta, teacher.strengths, None, np.zeros(100), tied=True)
    >>> bool(0.01 < np.sqrt(C[0, 0]) < 0.03)
    True
    """
    n_patterns, n_spins = patterns.shape
    n_fitted = 1 if tied else n_patterns
    n_rows = max(_PRODUCTS // (n_spins * n_fitted**2), _FEWEST)
    some = rows[spread(len(rows), n_rows)]
    zeta = patterns.astype(np.float32)
    H, mixed = np.zeros((n_fitted, n_fitted)), np.zeros((n_fitted, n_spins))
    curvature, slopes, residuals = np.zeros(n_spins), [], []
    for S in _blocks(some, _HELD // n_fitted):
        slope, residual = np.zeros((len(S), n_fitted)), np.zeros(S.shape)
        for s, whole in cross_filled(S, zeta, strengths, fields, means):
            # By the probability of the other sign, exact also where spins are nearly certain.
            other = expit(-2 * s * local_fields(whole, zeta, strengths, fields))
            r, w = 2 * s * other, 4 * other * (1 - other) * (s != 0)
            phi = (
                _slope_of_fields(whole, zeta)[..., None] if tied else _slopes_of_fields(whole, zeta)
            )
            weighted = w[..., None] * phi
            H += np.tensordot(weighted, phi, axes=((0, 1), (0, 1)))
            mixed += weighted.sum(axis=0).T
            curvature += w.sum(axis=0)
            slope += np.einsum("ai,aik->ak", r, phi)
            residual += r
        slopes.append(slope)
        if fields is not None:
            residuals.append(residual)
    u = np.concatenate(slopes).astype(np.float64)
    summed = np.diag(H).copy()
    if fields is not None:
        share = mixed / np.maximum(curvature, np.finfo(np.float64).tiny)
        u -= np.concatenate(residuals) @ share.T
        H -= share @ mixed.T
    precision = prior_precision(patterns)
    if tied:
        precision = precision.mean(keepdims=True)
    C = _with_prior(H, u.T @ u, summed, precision, n_samples / len(u))
    return np.broadcast_to(C, (n_patterns, n_patterns)).copy() if tied else C


def prior_precision(
    patterns: NDArray[np.generic], largest_field: float = LARGEST_FIELD
) -> NDArray[np.float64]:
    """Return the inverse prior variance of the strength of each pattern.

    Parameters
    ----------
    patterns : array of shape (n_patterns, n_spins)
        -1, 0 or +1.
    largest_field : float
        Standard deviation of the largest field that a pattern with n entries makes, g n/N.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.training import prior_precision
    >>> prior_precision(np.array([[1, -1, 1, 1], [1, 0, 0, -1]], dtype=np.int8))
    array([0.25  , 0.0625])
    """
    share = np.count_nonzero(patterns, axis=1) / patterns.shape[1]
    result: NDArray[np.float64] = np.square(share / largest_field)
    return result


def _with_prior(
    H: NDArray[np.float64],
    V: NDArray[np.float64],
    summed: NDArray[np.float64],
    precision: NDArray[np.float64],
    per_row: float,
) -> NDArray[np.float64]:
    """Return the covariance C from H and V of rows that stand for so many samples each.

    All is computed in units of the prior. ``summed`` is the diagonal of H before anything was
    subtracted from it, which is what its rounding is proportional to.
    """
    unit = 1 / np.sqrt(precision)
    scale = per_row * np.outer(unit, unit)
    values, vectors = np.linalg.eigh(scale * H)
    rounding = _RESOLVED * (np.square(vectors).T @ (np.diag(scale) * summed))
    stiffness = 1 + np.where(values > rounding, values, 0)
    inside = vectors.T @ (scale * V) @ vectors + np.eye(len(H))
    variances, axes = np.linalg.eigh(inside / np.outer(stiffness, stiffness))
    axes = vectors @ axes
    C: NDArray[np.float64] = np.outer(unit, unit) * (axes * np.minimum(variances, 1) @ axes.T)
    return C


def _slope_of_fields(S: F32, zeta: F32) -> F32:
    """Return φ of a strength that all patterns have, of shape (n_samples, n_spins)."""
    return local_fields(S, zeta, np.ones(len(zeta)))


def _slopes_of_fields(S: F32, zeta: F32) -> F32:
    """Return φ of a strength per pattern, of shape (n_samples, n_spins, n_patterns)."""
    phi: F32 = (S @ zeta.T)[:, None, :] - S[..., None] * zeta.T
    phi *= zeta.T / np.float32(S.shape[1])
    return phi
