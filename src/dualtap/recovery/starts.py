"""Where students start, and where patterns are looked for."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from dualtap.couplings import Couplings, FloatArray
from dualtap.recovery.rotate import binary, row_basis, unmixed
from dualtap.spins.blocks import F32, Blocks
from dualtap.spins.storage import spread

Start = Literal["auto", "spectral", "samples", "random"]

MOST_ROTATED = 80
"""Components that a rotation over a thousand sites can tell apart."""
_BLOCK, _PASSES = 8, 6  # vectors that share a product, and products
_TRIES = 4  # samples or random vectors for each dimension
_SURELY = 5.0
_CHEAP = 1000  # samples


def random_students(n_students: int, n_spins: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the paper's start: random signs, |m| uniform in [0.1, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.starts import random_students
    >>> m = random_students(3, 1000, np.random.default_rng(0))
    >>> bool(0.1 <= abs(m).min() < abs(m).max() <= 1)
    True
    """
    m = 1.8 * rng.random((n_students, n_spins), dtype=np.float32) - np.float32(0.9)
    m += np.copysign(np.float32(0.1), m)
    return m


def leading_eigenpair(couplings: Couplings, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue of J and its unit eigenvector, to about three digits.

    Lanczos iterations on the products J v; J is never formed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.recovery.starts import leading_eigenpair
    >>> value, vector = leading_eigenpair(HebbianCouplings([[1, 1, -1]]), np.random.default_rng(0))
    >>> round(value, 3), abs(vector).round(3)
    (1.0, array([0.577, 0.577, 0.577], dtype=float32))
    """
    n = couplings.n_spins
    product = LinearOperator(
        (n, n), matvec=lambda v: couplings.dot(v.reshape(1, n).astype(couplings.dtype))[0]
    )
    v0 = rng.standard_normal(n)
    try:
        values, vectors = eigsh(product, k=1, which="LA", v0=v0, tol=1e-3)
    except ArpackError:  # J v0 = 0, or no direction stands out: then any will do
        return 0.0, v0 / np.linalg.norm(v0)
    return float(values[0]), vectors[:, 0]


def eigenpair_in_passes(couplings: Couplings, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Return the same from a few products of J with a block of vectors.

    Lanczos would need one vector after the other, and a pass over the samples for each.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.recovery.starts import eigenpair_in_passes
    >>> J = HebbianCouplings([[1, 1, -1], [1, 1, 1]])
    >>> round(eigenpair_in_passes(J, np.random.default_rng(0))[0], 3)
    1.333
    """
    n = couplings.n_spins
    V = rng.standard_normal((min(_BLOCK, n), n)).astype(np.float32)
    for _ in range(_PASSES):
        V = np.ascontiguousarray(qr(couplings.dot(V).T, mode="economic")[0].T)
    values, U = np.linalg.eigh((V @ couplings.dot(V).T).astype(np.float64))
    return float(values[-1]), U[:, -1].astype(np.float32) @ V


def spectral_student(
    couplings: Couplings, rng: np.random.Generator, *, in_passes: bool = False
) -> FloatArray:
    """Return the leading eigenvector of J, scaled to unit mean square and clipped to [-1, 1].

    Parameters
    ----------
    couplings : Couplings
    rng : Generator
    in_passes : bool
        Every product is a pass over samples that are not at hand: make few of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.recovery.starts import spectral_student
    >>> J = HebbianCouplings([[1, 1, -1, -1]])
    >>> abs(spectral_student(J, np.random.default_rng(0))).round(3)
    array([[1., 1., 1., 1.]], dtype=float32)
    """
    _, vector = (eigenpair_in_passes if in_passes else leading_eigenpair)(couplings, rng)
    m = np.sqrt(couplings.n_spins) * vector[None]
    clipped: FloatArray = np.clip(m, -1, 1).astype(couplings.dtype)
    return clipped


def candidates(blocks: Blocks, u: F32, Z: F32, rng: np.random.Generator) -> F32:
    """Return ±1 vectors near which patterns may be.

    Parameters
    ----------
    blocks : Blocks
    u : array of shape (k, n_spins)
        Orthonormal rows that span the space of the patterns.
    Z : array of shape (n_patterns, n_spins)
        Patterns found already; what they leave of the space is looked at.
    rng : Generator
    start : {"auto", "spectral", "samples", "random"}
        Rotations of the space to independent components; samples that the patterns explain
        least, projected onto it; random vectors in it. "auto": rotations, and samples where
        rotations alone have not found everything or the space is too large for them.

    Returns
    -------
    array of shape (n_candidates, n_spins)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.starts import candidates
    >>> s = np.array([[1, 1, -1, -1]], dtype=np.float32)
    >>> none, rng = np.empty((0, 4), np.float32), np.random.default_rng(0)
    >>> abs(candidates(Blocks(as_spins(s)), s / 2, none, rng, "samples") @ s.T)
    array([[4.]], dtype=float32)
    """
    rest: NDArray[np.floating] = u
    if len(Z):
        Q = row_basis(Z)
        rest = u - (u @ Q.T) @ Q
        rest = np.linalg.svd(rest, full_matrices=False)[2][: max(len(u) - len(Z), 1)]
    parts: list[NDArray[np.floating]] = []
    if len(rest) <= MOST_ROTATED:
        contrasts = ("logcosh", "cube") if len(Z) else ("logcosh",)
        parts += [unmixed(rest, int(rng.integers(2**31)), name) for name in contrasts]
    if len(Z) or len(rest) > MOST_ROTATED:
        parts.append(least_explained(blocks, Z, _n_tried(len(u)), rng) @ rest.T @ rest)
    pool = np.concatenate(parts)
    return binary(pool)


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
    >>> from dualtap.recovery.starts import far_apart
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


def least_explained(blocks: Blocks, Z: F32, n: int, rng: np.random.Generator) -> F32:
    """Return n samples among those that the patterns explain least."""
    chosen = rng.permutation(blocks.n_samples)
    if len(Z):
        best = np.abs(blocks.dot(Z)).max(axis=1)[chosen] / blocks.n_observed[chosen]
        chosen = chosen[np.argsort(best, kind="stable")][: 2 * n]
        chosen = rng.permutation(chosen)
    return blocks.spins.take(chosen[:n]).floats(slice(None))
