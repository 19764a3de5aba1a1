"""The leading singular values and vectors of samples.

Of the Gram matrix of the shorter side where that is small, by Lanczos iterations; else by
iterations of a random subspace, a pass over the samples each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap import _eigen
from dualtap._eigen import extreme, iterated
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted

SMALL = 1200
"""Largest Gram matrix that is made."""

_WHOLE = 128  # the largest Gram matrix whose spectrum is computed whole
_TOLERANCE = 1e-5  # of Lanczos iterations, where signals may lie near noise
_POWER_ITERATIONS = 4
_OVERSAMPLING = 10  # directions iterated beyond those asked for first


def leading(
    blocks: SampleMatrix, rank: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], F32]:
    """Return the largest squared singular values and right singular vectors of a large matrix.

    Subspace iteration on SᵀS from a random start, five passes over the data in all.

    Parameters
    ----------
    blocks : SampleMatrix
    rank : int
    rng : Generator

    Returns
    -------
    values : array of shape (rank,)
        The largest first.
    vectors : array of shape (rank, n_spins)
        Orthonormal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.singular import leading
    >>> s = np.array([[1, 1, -1], [1, 1, -1]])
    >>> leading(blocks_of(as_spins(s)), 1, np.random.default_rng(0))[0].round(3)
    array([6.])
    """
    return ritz(extended(blocks, None, rank, rng), rank)


class Space(NamedTuple):
    """A space that the leading directions are looked for in."""

    V: F32
    """Orthonormal rows, shape (k, n_spins)."""
    G: F32
    """V SᵀS."""


def extended(
    blocks: SampleMatrix, known: Space | None, n_more: int, rng: np.random.Generator
) -> Space:
    """Return a space with so many dimensions more, as long as there are any."""
    n_known, n_more = (0, n_more + _OVERSAMPLING) if known is None else (len(known.V), n_more)
    n_more = min(n_more, blocks.n_samples - n_known, blocks.n_spins - n_known)
    V: F32 = rng.standard_normal((n_more, blocks.n_spins), dtype=np.float32)
    V = iterated(lambda V: _apart(blocks.gram_dot(V), known), V, _POWER_ITERATIONS)
    G = blocks.gram_dot(V)
    if known is None:
        return Space(V, G)
    return Space(np.concatenate([known.V, V]), np.concatenate([known.G, G]))


def _apart(V: F32, known: Space | None) -> F32:
    """Return rows without their part in a known space."""
    if known is not None:
        for _ in range(2):  # once leaves the rounding errors of what was large
            V -= (V @ known.V.T) @ known.V
    return V


def ritz(space: Space, rank: int) -> tuple[NDArray[np.float64], F32]:
    """Return the largest squared singular values within a space, and their directions."""
    values, vectors = _eigen.ritz(space.V, space.G, rank)
    return np.maximum(values, 0), vectors


def is_small(blocks: SampleMatrix) -> bool:
    """Say whether singular values are those of a Gram matrix of the shorter side."""
    if blocks.n_spins <= blocks.n_samples:
        return blocks.n_spins <= SMALL
    return blocks.at_hand() is not None and blocks.n_samples <= SMALL


def gram_of(S: SampleMatrix) -> F32:
    """Return the products of the samples with each other, or of the spins if these are fewer.

    Rows of weight w count as w samples: in products with each other, times the root of w.
    """
    return S.gram() if S.n_spins <= S.n_samples else S.row_gram()


def leading_of(
    G: F32, k: int, rng: np.random.Generator, tolerance: float = _TOLERANCE
) -> tuple[NDArray[np.float64], F32]:
    """Return the k largest eigenvalues of a Gram matrix and their vectors, or all of them."""
    v0 = rng.standard_normal(len(G), dtype=np.float32)
    w, U = extreme(G, k, v0, tolerance=tolerance, small=max(_WHOLE, 4 * k))
    order = np.argsort(w)[::-1]
    return np.maximum(w[order].astype(np.float64), 0), U.T[order].astype(np.float32)


def over_sites(S: SampleMatrix, U: F32) -> F32:
    """Return right singular vectors, from left ones in rows."""
    X = np.ascontiguousarray(U.T)
    if S.weights is not None:  # which the product counts whole
        X = weighted(X, 1 / np.sqrt(S.weights))
    vectors: F32 = S.transposed_dot(X)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return vectors
