r"""How well samples determine the strengths of given patterns.

Strengths g and fields b maximise the log pseudo-likelihood L. With :math:`r = s - \tanh h`,
:math:`w = 1 - \tanh^2 h` and :math:`\varphi^\mu_{ai} = \partial h_{ai} / \partial g_\mu`, what
sample a adds to L has the slope :math:`u_a = \sum_i r_{ai} \varphi_{ai}`, and the curvature is
:math:`H = \sum_{ai} w_{ai} \varphi_{ai} \varphi_{ai}^\top`. L is no likelihood, because the terms
of a sample are not independent; its maximum has the covariance

.. math:: C = H^{-1} \Big[\sum_a u_a u_a^\top\Big] H^{-1}

(Godambe, or sandwich), here with fields eliminated from u and H.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.local_fields import filled, local_fields
from dualtap.spins import Spins
from dualtap.spins.blocks import F32

_PRODUCTS = 2 * 10**8
"""Products made at most, unless that leaves too few samples,"""
_FEWEST, _MOST = 50, 400
"""which are between these."""
_HELD = 2**22
"""Entries of φ that are held at a time."""


def strength_covariance(
    spins: Spins,
    patterns: NDArray[np.int8],
    strengths: NDArray[np.float64],
    fields: NDArray[np.float64] | None,
    means: NDArray[np.float64],
    *,
    tied: bool,
) -> NDArray[np.float64]:
    """Return the covariance of fitted strengths, given the patterns.

    Parameters
    ----------
    spins : Spins
        The samples that the model was fitted to. A few hundred, evenly spread, stand for all.
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
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.recovery.strength_errors import strength_covariance
    >>> teacher = HopfieldModel.random(100, 1, beta=0.8, random_state=0)
    >>> X = as_spins(teacher.sample(400, random_state=1))
    >>> C = strength_covariance(X, teacher.patterns, teacher.strengths, None, np.zeros(100),
    ...                         tied=True)
    >>> bool(0.01 < np.sqrt(C[0, 0]) < 0.03)
    True
    """
    n_patterns, n_spins = patterns.shape
    n_fitted = 1 if tied else n_patterns
    n = int(np.clip(_PRODUCTS // max(n_spins * n_fitted**2, 1), _FEWEST, _MOST))
    some = spins.some(n)
    zeta = patterns.astype(np.float32)
    H, mixed = np.zeros((n_fitted, n_fitted)), np.zeros((n_fitted, n_spins))
    curvature, slopes, residuals = np.zeros(n_spins), [], []
    for rows in some.blocks(_HELD // n_fitted):
        S = some.floats(rows)
        whole = filled(S, zeta, strengths, fields, means)
        t = np.tanh(local_fields(whole, zeta, strengths, fields))
        observed = S != 0
        r, w = (S - t) * observed, (1 - t * t) * observed
        phi = _slope_of_fields(whole, zeta)[..., None] if tied else _slopes_of_fields(whole, zeta)
        weighted = w[..., None] * phi
        H += np.tensordot(weighted, phi, axes=((0, 1), (0, 1)))
        mixed += weighted.sum(axis=0).T
        curvature += w.sum(axis=0)
        slopes.append(np.einsum("ai,aik->ak", r, phi))
        residuals.append(r)
    u = np.concatenate(slopes).astype(np.float64)
    if fields is not None:
        share = mixed / np.maximum(curvature, np.finfo(np.float64).tiny)
        u -= np.concatenate(residuals) @ share.T
        H -= share @ mixed.T
    inverse = np.linalg.pinv(H, hermitian=True)
    C: NDArray[np.float64] = inverse @ (u.T @ u) @ inverse * (len(u) / spins.n_samples)
    return np.broadcast_to(C, (n_patterns, n_patterns)).copy() if tied else C


def _slope_of_fields(S: F32, zeta: F32) -> F32:
    """Return φ of a strength that all patterns have, of shape (n_samples, n_spins)."""
    return local_fields(S, zeta, np.ones(len(zeta)))


def _slopes_of_fields(S: F32, zeta: F32) -> F32:
    """Return φ of a strength per pattern, of shape (n_samples, n_spins, n_patterns)."""
    phi: F32 = (S @ zeta.T)[:, None, :] - S[..., None] * zeta.T
    phi *= zeta.T / np.float32(S.shape[1])
    return phi
