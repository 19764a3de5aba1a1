"""From a subspace to patterns: rotate a basis over sites until its vectors are ±1.

P patterns mixed by any invertible matrix span the same space. N sites are N observations of a
P-vector with independent ±1 components, so independent component analysis undoes the mixing.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from dualtap.recovery.history import signs

_POLISH_ROUNDS = 50
_LEAST_NEW = 0.2  # share of a vector that others must leave unexplained


def rotate_to_patterns(
    basis: NDArray[np.floating], rng: np.random.Generator, n_restarts: int = 5
) -> NDArray[np.int8]:
    r"""Return the ±1 vectors nearest to the span of ``basis``, one for each of its dimensions.

    Each restart rotates by FastICA (contrast :math:`x^4`, whose extreme is a ±1 component), then
    polishes: :math:`\zeta \leftarrow \mathrm{sign}(\zeta\,\Pi)`, Π projecting onto the span,
    until no sign changes. Of all the vectors found, those that lie deepest in the span are taken
    first, unless they hardly add to those taken before: a mixture of patterns lies less deep than
    a pattern (:math:`3/4` of its square, for three).

    Parameters
    ----------
    basis : array of shape (p, n_spins)
        Linearly independent rows.
    rng : Generator
    n_restarts : int

    Returns
    -------
    array of shape (p, n_spins), int8 ±1
        Fewer than p rows if no more independent ones were found.

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
    seeds = rng.integers(2**31, size=n_restarts if n_vectors > 1 else 1)
    return _deepest(np.concatenate([_polish(signs(_unmixed(u, int(k))), u) for k in seeds]), u)


def _unmixed(u: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Return independent components of orthonormal rows."""
    if len(u) == 1:
        return u
    ica = FastICA(whiten="unit-variance", fun="cube", random_state=seed)
    with warnings.catch_warnings():
        # A restart that has not converged is judged by its signs like the others.
        warnings.simplefilter("ignore", ConvergenceWarning)
        components: NDArray[np.float64] = ica.fit_transform(u.T).T
    return components


def _polish(zeta: NDArray[np.int8], u: NDArray[np.float64]) -> NDArray[np.int8]:
    for _ in range(_POLISH_ROUNDS):
        turned = signs((zeta @ u.T) @ u)
        if np.array_equal(turned, zeta):
            break
        zeta = turned
    return zeta


def _deepest(found: NDArray[np.int8], u: NDArray[np.float64]) -> NDArray[np.int8]:
    """Return as many of the vectors as the span has dimensions, the deepest first."""
    depth = np.square(found @ u.T).sum(axis=1)
    taken: list[NDArray[np.int8]] = []
    directions: NDArray[np.float64] = np.empty((0, u.shape[1]))
    for zeta in found[np.argsort(-depth, kind="stable")]:
        new = zeta - (directions @ zeta) @ directions
        size = float(np.linalg.norm(new))
        if len(taken) < len(u) and size**2 > _LEAST_NEW * len(zeta):
            taken.append(zeta)
            directions = np.vstack([directions, new / size])
    return np.array(taken, dtype=np.int8)
