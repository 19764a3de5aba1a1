"""Where patterns are looked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from dualtap._eigen import complement
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.storage import spread
from dualtap.spins.weights import weighted
from dualtap.subspace.rotate import binary, row_basis, unmixed

MOST_ROTATED = 80
"""Components that a rotation over a thousand sites can tell apart."""
_TRIES = 4  # samples or random vectors for each dimension
_SURELY = 5.0
_CHEAP = 1000  # samples
_NEAR = 0.5  # of the largest overlap of a sample with a vector


def pattern_candidates(blocks: SampleMatrix, u: F32, Z: F32, rng: np.random.Generator) -> F32:
    """Return ±1 vectors near which patterns may be.

    Rotations of the space to independent components, and samples that the patterns explain least,
    projected onto it, where rotations alone have not found everything or it is too large for them.

    Parameters
    ----------
    blocks : SampleMatrix
    u : array of shape (k, n_spins)
        Orthonormal rows that span the space of the patterns.
    Z : array of shape (n_patterns, n_spins)
        Patterns found already; what they leave of the space is looked at.
    rng : Generator

    Returns
    -------
    array of shape (n_candidates, n_spins)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.starts import pattern_candidates
    >>> s = np.array([[1, 1, -1, -1]], dtype=np.float32)
    >>> none, rng = np.empty((0, 4), np.float32), np.random.default_rng(0)
    >>> abs(pattern_candidates(blocks_of(as_spins(s)), s / 2, none, rng) @ s.T)
    array([[4.]], dtype=float32)
    """
    rest: NDArray[np.floating] = u
    if len(Z):
        rest = complement(u, row_basis(Z), max(len(u) - len(Z), 1))
    parts: list[NDArray[np.floating]] = []
    if len(rest) <= MOST_ROTATED:
        contrasts = ("logcosh", "cube") if len(Z) else ("logcosh",)
        parts += [unmixed(rest, int(rng.integers(2**31)), name) for name in contrasts]
    if len(Z) or len(rest) > MOST_ROTATED:
        parts.append(least_explained(blocks, Z, _n_tried(len(u)), rng) @ rest.T @ rest)
    pool = np.concatenate(parts)
    return binary(pool)


def shared(blocks: SampleMatrix, Z: F32) -> F32:
    """Return the vectors that more than one sample lies near to: one sample proves nothing.

    Parameters
    ----------
    blocks : SampleMatrix
    Z : array of shape (k, n_spins)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.starts import shared
    >>> s = np.array([[1, 1, 1, 1], [1, 1, 1, -1], [1, -1, 1, -1]], dtype=np.float32)
    >>> shared(blocks_of(as_spins(s[[0, 0, 2]])), s[[0, 2]])
    array([[1., 1., 1., 1.]], dtype=float32)
    """
    size = np.abs(blocks.dot(Z))
    near = weighted((size > _NEAR * size.max(axis=0)).astype(np.float32), blocks.weights)
    result: F32 = Z[near.sum(axis=0) > 1]
    return result


def far_apart(X: F32, V: F32) -> F32:
    """Return ±1 vectors at samples that span the space, one for each dimension.

    Each sample is the one that those before it explain least. Where samples lie near single
    patterns, there is one of every pattern among them.

    Parameters
    ----------
    X : array of shape (n_samples, k)
        Coefficients of the samples.
    V : array of shape (k, n_spins)

    Returns
    -------
    array of shape (k, n_spins)
        Fewer if there are fewer samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.starts import far_apart
    >>> far_apart(np.array([[1, 0], [0.9, 0.1], [0, 1]]), np.array([[3, -2], [-1, -1]]))
    array([[ 1., -1.],
           [-1., -1.]], dtype=float32)
    """
    k = X.shape[1]
    some = X[spread(len(X), max(_n_tried(k), _CHEAP))]
    order = qr(some.T, mode="r", pivoting=True, check_finite=False)[1]
    return binary(some[order[:k]] @ V)


def _n_tried(k: int) -> int:
    """Return how many samples are tried as candidates for k patterns.

    Where nothing else is tried every pattern needs a sample near it: of k (log k + c) samples
    none is missed but with probability e^-c.
    """
    return _TRIES * k if k <= MOST_ROTATED else int(k * (np.log(k) + _SURELY))


def least_explained(blocks: SampleMatrix, Z: F32, n: int, rng: np.random.Generator) -> F32:
    """Return n samples among those that the patterns explain least."""
    chosen = rng.permutation(blocks.n_samples)
    if len(Z):
        best = np.abs(blocks.dot(Z)).max(axis=1)[chosen] / blocks.n_observed[chosen]
        chosen = chosen[np.argsort(best, kind="stable")][: 2 * n]
        chosen = rng.permutation(chosen)
    return blocks.rows(chosen[:n])
