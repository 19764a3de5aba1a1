"""Leading eigenvectors of symmetric matrices: the one place where iterations find them.

Which function serves depends on what a product with the matrix costs. `extreme` is for a matrix at
hand, and takes all eigenvectors of a small one; `lanczos` for products of which many may be made;
`iterated` and `ritz` where each is a pass over samples, shared by a block of vectors.
`shorter_gram` is for all singular values of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse.linalg import ArpackError, eigsh

F32 = NDArray[np.float32]
Pairs = tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]

_ROUNDING = 1e-6  # share of the largest eigenvalue that single precision does not see


def lanczos(
    A: Any, k: int, v0: NDArray[Any], *, tolerance: float, which: Literal["LM", "LA", "BE"] = "LM"
) -> Pairs | None:
    """Return k eigenvalues of a matrix or LinearOperator, and eigenvectors in columns.

    Those of largest size, the largest ones, or half of them from either end; None if iterations
    break down, as they do where A v0 = 0.
    """
    try:
        values, vectors = eigsh(A, k, which=which, v0=v0, tol=tolerance)
    except ArpackError:
        return None
    return values, vectors


def extreme(
    A: NDArray[np.floating[Any]],
    k: int,
    v0: NDArray[Any],
    *,
    tolerance: float,
    small: int,
    which: Literal["LM", "BE"] = "LM",
) -> Pairs:
    """Return the same of an array; all of them, in ascending order, if it has ``small`` rows.

    All are computed, too, of a positive matrix that has fewer than k directions: rounding errors
    would pass for signals, and iterations go on from vectors that no seed decides.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._eigen import extreme
    >>> extreme(np.diag([3.0, 2.0, 1.0]), 1, np.ones(3), tolerance=1e-6, small=2)[0].round(3)
    array([3.])
    """
    found = lanczos(A, k, v0, tolerance=tolerance, which=which) if len(A) > small else None
    if found is None or (which == "LM" and found[0].min() <= _ROUNDING * found[0].max()):
        values, vectors = np.linalg.eigh(A)
        return values, vectors
    return found


def iterated(product: Callable[[F32], F32], V: F32, n_products: int) -> F32:
    """Return orthonormal rows near the leading eigenvectors, from V by some products V ↦ V A.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._eigen import iterated
    >>> A = np.diag([3.0, 0.1]).astype(np.float32)
    >>> abs(iterated(lambda V: V @ A, np.ones((1, 2), np.float32), 3)).round(3)
    array([[1., 0.]], dtype=float32)
    """
    for _ in range(n_products):
        # NumPy's QR works on copies in double precision, eight times as much.
        Q: F32 = qr(product(V).T, mode="economic", overwrite_a=True, check_finite=False)[0].T
        V = np.ascontiguousarray(Q)
    return V


def ritz(V: F32, G: F32, k: int) -> tuple[NDArray[np.float64], F32]:
    """Return the k largest eigenvalues within the span of V, and vectors in rows; G = V A."""
    values, U = np.linalg.eigh((V @ G.T).astype(np.float64))
    return values[::-1][:k], U[:, ::-1][:, :k].T.astype(np.float32) @ V


def shorter_gram(A: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return A Aᵀ or AᵀA, whichever is smaller: its eigenvalues are squared singular values."""
    product: NDArray[np.floating[Any]] = A @ A.T if len(A) <= A.shape[1] else A.T @ A
    return product


def complement(u: F32, Q: F32, k: int) -> F32:
    """Return k orthonormal rows for what Q leaves of the span of u, the largest part first.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._eigen import complement
    >>> u = np.eye(3, dtype=np.float32)[:2]
    >>> abs(complement(u, u[:1], 1))
    array([[0., 1., 0.]], dtype=float32)
    """
    rest: F32 = np.linalg.svd(u - (u @ Q.T) @ Q, full_matrices=False)[2][:k]
    return rest
