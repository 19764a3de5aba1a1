"""From a subspace to patterns: rotate a basis over sites until its vectors are ±1.

P patterns mixed by any invertible matrix span the same space. N sites are N observations of a
P-vector with independent ±1 components, so independent component analysis undoes the mixing.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from dualtap.recovery.history import signs

_POLISH_ROUNDS = 50
_DEEP = 0.9  # share of the greatest depth that a pattern reaches; a mixture of three has 3/4
_MOST_IN_VAIN = 3
_NEW = 0.2  # share of a vector that others must leave unexplained


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
    >>> from dualtap.recovery.rotate import rotate_to_patterns
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
    u = np.linalg.svd(basis.astype(np.float64), full_matrices=False)[2]
    taken = pool = np.empty((0, n_spins), dtype=np.int8)
    in_vain = 0
    for seed in rng.integers(2**31, size=n_restarts):
        rest = null_space(taken @ u.T).T @ u if len(taken) else u
        pool = np.concatenate([pool, _polish(signs(_unmixed(rest, int(seed))), u)])
        depth = np.square(pool @ u.T).sum(axis=1)
        before = len(taken)
        taken = _independent(pool, depth, depth >= _DEEP * depth.max(), n_vectors)
        in_vain = in_vain + 1 if len(taken) <= before else 0
        if len(taken) == n_vectors or in_vain == _MOST_IN_VAIN:
            break
    return taken if len(taken) == n_vectors else _independent(pool, depth, depth > 0, n_vectors)


def _unmixed(u: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Return independent components of orthonormal rows.

    The rows are white as they are. Centring would only harm: a ±1 component has the smallest
    fourth moment for its second whatever its mean is.
    """
    if len(u) == 1:
        return u
    ica = FastICA(whiten=False, fun="cube", random_state=seed)
    with warnings.catch_warnings():
        # A restart that has not converged is judged by its signs like the others.
        warnings.simplefilter("ignore", ConvergenceWarning)
        components: NDArray[np.float64] = ica.fit_transform(np.sqrt(u.shape[1]) * u.T).T
    return components


def _polish(zeta: NDArray[np.int8], u: NDArray[np.float64]) -> NDArray[np.int8]:
    for _ in range(_POLISH_ROUNDS):
        turned = signs((zeta @ u.T) @ u)
        if np.array_equal(turned, zeta):
            break
        zeta = turned
    return zeta


def _independent(
    pool: NDArray[np.int8], depth: NDArray[np.float64], allowed: NDArray[np.bool_], most: int
) -> NDArray[np.int8]:
    """Return allowed vectors, the deepest first, that others do not explain already."""
    taken: list[NDArray[np.int8]] = []
    directions: NDArray[np.float64] = np.empty((0, pool.shape[1]))
    for k in np.argsort(-depth, kind="stable"):
        new = pool[k] - (directions @ pool[k]) @ directions
        size = float(np.linalg.norm(new))
        if allowed[k] and len(taken) < most and size**2 > _NEW * pool.shape[1]:
            taken.append(pool[k])
            directions = np.vstack([directions, new / size])
    return np.array(taken, dtype=np.int8).reshape(-1, pool.shape[1])
