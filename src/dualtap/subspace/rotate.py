"""From a subspace to patterns: rotate a basis over sites until its vectors are ±1.

P patterns mixed by any invertible matrix span the same space. N sites are N observations of a
P-vector with independent ±1 components, so independent component analysis undoes the mixing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from dualtap.spins.protocol import F32

_POLISH_ROUNDS = 50
_ROTATIONS = 80  # patterns show within 60, if they do at all
_DEEP = 0.9  # share of the greatest depth that a pattern reaches; a mixture of three has 3/4
_MOST_IN_VAIN = 3
_SPURIOUS = 32
_DEPENDENT = 1e-10  # share of the largest squared singular value
_RELATED = 0.6  # overlap; pairs that share a pattern have that of the other two
_NEW = 0.2  # share of a vector that others must leave unexplained


def binary(m: NDArray[np.floating] | NDArray[np.integer]) -> F32:
    """Return the signs of m as float32, +1 where it is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.rotate import binary
    >>> binary(np.array([0.3, -0.2, 0.0]))
    array([ 1., -1.,  1.], dtype=float32)
    """
    return np.where(m < 0, np.float32(-1), np.float32(1))


def rotate_to_patterns(
    basis: NDArray[np.floating], rng: np.random.Generator, n_restarts: int = 10
) -> NDArray[np.int8]:
    r"""Return the ±1 vectors nearest to the span of ``basis``, one for each of its dimensions.

    FastICA (contrast :math:`x^4`, whose extreme is a ±1 component) rotates the span, and signs are
    polished: :math:`\zeta \leftarrow \mathrm{sign}(\zeta\,\Pi)`, Π projecting onto the span,
    until none changes. Vectors that lie as deep in the span as the deepest are taken, and what
    they leave of it is rotated anew: a mixture of patterns lies less deep than a pattern (by
    :math:`3/4`, for three).

    Parameters
    ----------
    basis : array of shape (p, n_spins)
        Linearly independent rows.
    rng : Generator
    n_restarts : int

    Returns
    -------
    array of shape (p, n_spins), int8 ±1
        Fewer than p rows if no more independent ones are found.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.metrics import n_recovered
    >>> from dualtap.subspace.rotate import rotate_to_patterns
    >>> rng = np.random.default_rng(0)
    >>> zeta = rng.choice([-1, 1], size=(4, 300))
    >>> mixed = np.linalg.qr(rng.standard_normal((4, 4)))[0] @ zeta
    >>> noisy = mixed + 0.3 * rng.standard_normal((4, 300))
    >>> n_recovered(rotate_to_patterns(noisy, rng), zeta, threshold=0.99)
    4
    """
    n_vectors, n_spins = basis.shape
    if n_vectors == 0:
        return np.empty((0, n_spins), dtype=np.int8)
    u = row_basis(basis)
    taken = pool = np.empty((0, n_spins), dtype=np.float32)
    in_vain = 0
    for seed in rng.integers(2**31, size=n_restarts):
        rest = null_space(taken @ u.T).T @ u if len(taken) else u
        start = binary(unmixed(rest, int(seed), "cube"))
        pool = np.concatenate([pool, polish(start, u)])
        d = depth(pool, u)
        deep = d >= _DEEP * d.max()
        before = len(taken)
        taken = independent(pool[deep], d[deep], n_vectors, _NEW)
        in_vain = in_vain + 1 if len(taken) <= before else 0
        if len(taken) == n_vectors or in_vain == _MOST_IN_VAIN:
            break
    if len(taken) < n_vectors:
        taken = independent(pool, d, n_vectors, _NEW)
    return taken.astype(np.int8)


def row_basis(V: NDArray[np.floating]) -> F32:
    """Return orthonormal rows that span the rows of V."""
    rows = V.astype(np.float64)
    w, U = np.linalg.eigh(rows @ rows.T)
    kept = w > _DEPENDENT * w[-1]
    result: F32 = ((U[:, kept] / np.sqrt(w[kept])).T[::-1] @ rows).astype(np.float32)
    return result


def polish(z: F32, u: F32, nearest: Callable[[NDArray[np.floating]], F32] | None = None) -> F32:
    r"""Iterate :math:`\zeta \leftarrow \mathrm{sign}(\zeta\,\Pi)`, Π projecting onto the rows of u.

    Every step brings ζ deeper into the span, until it is the sign of its own projection.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.rotate import polish
    >>> u = np.array([[0.5, 0.5, -0.5, -0.5]], dtype=np.float32)
    >>> polish(np.array([[1, 1, 1, -1]], dtype=np.float32), u)
    array([[ 1.,  1., -1., -1.]], dtype=float32)
    """
    z = z.copy()
    moving = np.arange(len(z))
    for _ in range(_POLISH_ROUNDS):
        turned = (nearest or binary)((z[moving] @ u.T) @ u)
        changed = (turned != z[moving]).any(axis=1)
        z[moving] = turned
        moving = moving[changed]
        if not len(moving):
            break
    return z


def nearest_ternary(Y: NDArray[np.floating]) -> F32:
    """Return the vectors of -1, 0 and +1 that make the smallest angles with the rows of Y.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.rotate import nearest_ternary
    >>> nearest_ternary(np.array([[0.9, -1.1, 0.1, 0.0]]))
    array([[ 1., -1.,  0.,  0.]], dtype=float32)
    """
    size = np.sort(np.abs(Y), axis=1)[:, ::-1]
    cosine = np.cumsum(size, axis=1) / np.sqrt(np.arange(1, Y.shape[1] + 1))
    least = np.take_along_axis(size, np.argmax(cosine, axis=1)[:, None], axis=1)
    result: F32 = (np.sign(Y) * (np.abs(Y) >= least)).astype(np.float32)
    return result


def depth(z: F32, u: F32) -> NDArray[np.float64]:
    """Return which share of each vector lies in the span of the orthonormal rows of u.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.rotate import depth
    >>> depth(np.ones((1, 4), np.float32), np.array([[0, 0, 0.6, 0.8]], dtype=np.float32)).round(2)
    array([0.49])
    """
    size = np.maximum(np.count_nonzero(z, axis=1), 1)
    share = np.square(z @ u.T).sum(axis=1, dtype=np.float64) / size
    result: NDArray[np.float64] = share
    return result


def unmixed(u: NDArray[np.floating], seed: int, contrast: str = "logcosh") -> F32:
    """Return independent components of orthonormal rows, by FastICA over sites.

    The rows are white as they are. Centring would only harm: a ±1 component has the smallest
    fourth moment for its second whatever its mean is.
    """
    if len(u) == 1:
        return u.astype(np.float32)
    ica = FastICA(whiten=False, fun=contrast, max_iter=_ROTATIONS, tol=1e-3, random_state=seed)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        # A rotation that has not converged is judged by its signs like the others.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            # Whatever frames the user wants from transformers, these are arrays.
            ica.set_output(transform="default")
            components = ica.fit_transform(np.sqrt(u.shape[1]) * u.T).T
        except ValueError:  # a handful of sites may send the iteration to infinity
            components = u
    result: F32 = components.astype(np.float32)
    return result


def spurious_depth(n_vectors: int, n_spins: int, rng: np.random.Generator) -> float:
    """Return how deep ±1 vectors lie in a random space once they are polished, at most."""
    u = np.linalg.qr(rng.standard_normal((n_spins, n_vectors)))[0].T.astype(np.float32)
    z = rng.choice(np.array([-1, 1], dtype=np.float32), size=(_SPURIOUS, n_spins))
    return float(depth(polish(z, u), u).max())


def are_products(Z: F32) -> bool:
    """Say whether some pattern is the product of three others.

    Samples in states that mix a, b and c lie in a space with abc, which is ±1 as well.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.rotate import are_products
    >>> z = np.random.default_rng(0).choice(np.array([-1, 1], np.float32), size=(4, 300))
    >>> are_products(z), are_products(np.vstack([z, z[0] * z[1] * z[2]]))
    (False, True)
    """
    a, b = np.triu_indices(len(Z), 1)
    pairs = Z[a] * Z[b]
    overlap = np.abs(pairs @ pairs.T) / Z.shape[1]
    np.fill_diagonal(overlap, 0)
    return bool(overlap.size and overlap.max() > _RELATED)


def independent(pool: F32, order: NDArray[np.float64], most: int, new: float) -> F32:
    """Return vectors of the pool, the largest in order first, that others do not explain.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.rotate import independent
    >>> pool = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, -1, -1]], dtype=np.float32)
    >>> independent(pool, np.array([3.0, 2.0, 1.0]), 2, 0.5).astype(int)
    array([[ 1,  1,  1,  1],
           [ 1,  1, -1, -1]])
    """
    n_spins = pool.shape[1]
    taken: list[int] = []
    directions = np.empty((0, n_spins), dtype=np.float32)
    left, size = np.ones(len(pool)), np.maximum(np.count_nonzero(pool, axis=1), 1)
    for k in np.argsort(-order, kind="stable"):
        if len(taken) == most:
            break
        if left[k] <= new:
            continue
        taken.append(int(k))
        rest = pool[k] - (directions @ pool[k]) @ directions
        rest /= np.linalg.norm(rest)
        directions = np.vstack([directions, rest])
        left -= np.square(pool @ rest) / size
    result: F32 = pool[taken]
    return result
