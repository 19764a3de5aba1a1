"""What the weights of an RBM know: patterns, up to a rotation, and modes of the data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds

from dualtap.rbm.monitors import singular_values
from dualtap.rbm.priors import FloatArray
from dualtap.recovery.proposers.rotation import rotated
from dualtap.spins import Spins
from dualtap.spins.matrix import blocks_of
from dualtap.subspace.rotate import binary, depth, rotate_to_patterns
from dualtap.subspace.spectrum import spectrum

_LEAST_GAP = 2.0
_NULL = 1e-12


class Patterns(NamedTuple):
    """What the weights tell."""

    patterns: NDArray[np.int8]
    """(n_patterns, n_spins), ±1."""
    singular_values: NDArray[np.float64]
    """(n_hidden,), descending."""
    beta: float
    """Mean square of the singular values above the gap; 1 when there is none."""


def n_above_gap(values: NDArray[np.float64], floor: float) -> int:
    """Return how many singular values stand above the widest gap between neighbours.

    ``floor`` is where a unit starts, and takes part as one more value below: it closes the list
    when every unit has found a pattern, and no ratio reaches 2 when none has.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.patterns import n_above_gap
    >>> n_above_gap(np.array([1.6, 1.5, 1.3, 0.031, 0.03]), floor=0.03)
    3
    >>> n_above_gap(np.array([0.033, 0.031, 0.03]), floor=0.03)
    0
    """
    below = np.maximum(np.append(values[1:], floor), floor)
    ratios = values / below
    widest = int(np.argmax(ratios))
    return widest + 1 if ratios[widest] >= _LEAST_GAP else 0


def is_divided(values: NDArray[np.float64], floor: float) -> bool:
    """Tell whether a gap has singular values on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.patterns import is_divided
    >>> is_divided(np.array([1.6, 1.5, 0.03]), 0.03), is_divided(np.array([0.9, 0.6]), 0.1)
    (True, False)
    """
    return 0 < n_above_gap(values, floor) < len(values)


def patterns_from_weights(
    weights: FloatArray,
    floor: float,
    rng: np.random.Generator,
    known: NDArray[np.int8] | None = None,
) -> Patterns:
    r"""Return the ±1 patterns whose span is that of the leading singular vectors of W.

    With :math:`W = O\,\sqrt{\beta/N}\,\xi`, O any orthogonal matrix, the P leading singular
    vectors over sites span the patterns and the squares of their singular values average to β.

    Parameters
    ----------
    weights : array of shape (n_hidden, n_spins)
    floor : float
        Singular value of a unit that has learned nothing.
    rng : Generator
        Restarts of the rotation.
    known : array of shape (n_patterns, n_spins), int8, optional
        What :func:`patterns_without_gap` found, which is then the answer.

    Returns
    -------
    Patterns

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.hopfield import HopfieldModel
    >>> from dualtap.metrics import n_recovered
    >>> from dualtap.rbm.patterns import patterns_from_weights
    >>> xi = HopfieldModel.random(500, 3, beta=2.0, random_state=0).patterns
    >>> rng = np.random.default_rng(0)
    >>> rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0][:, :3]
    >>> found = patterns_from_weights(rotation @ xi * np.sqrt(2.0 / 500), 0.03, rng)
    >>> n_recovered(found.patterns, xi, threshold=0.99), round(found.beta, 1)
    (3, 2.0)
    """
    values = singular_values(weights)
    n = min(n_above_gap(values, floor), weights.shape[1]) if known is None else len(known)
    beta = float(np.mean(np.square(values[:n]))) if n else 1.0
    found = rotate_to_patterns(leading_vectors(weights, n), rng) if known is None else known
    return Patterns(found, values, beta)


def leading_vectors(weights: FloatArray, n: int) -> NDArray[np.float64]:
    """Return the first n singular vectors of W over spins."""
    vectors: NDArray[np.float64] = np.linalg.svd(weights.astype(np.float64), full_matrices=False)[2]
    return vectors[:n]


def patterns_without_gap(
    weights: FloatArray, X: Spins, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Return a pattern for every direction of the samples above the noise edge.

    In the paramagnet noise grows in the weights along with patterns. Fields on spins are weak
    there: the noise edge of the samples themselves can be trusted, and tells how many of the
    singular vectors of W to take. Their span is rotated to patterns and refined with the samples
    as the recovery of patterns does it; of several answers, that which lies deepest in the span.

    Parameters
    ----------
    weights : array of shape (n_hidden, n_spins)
        Of Gaussian units without fields.
    X : Spins
    rng : Generator

    Returns
    -------
    array of shape (n_patterns, n_spins), int8

    Examples
    --------
    >>> import numpy as np
    >>> import dualtap as dt
    >>> from dualtap.rbm.patterns import patterns_without_gap
    >>> teacher = dt.HopfieldModel.random(300, 4, beta=0.8, random_state=0)
    >>> X = dt.as_spins(teacher.sample(1500, random_state=1))
    >>> rng = np.random.default_rng(0)
    >>> W = teacher.patterns / 20 + 0.02 * rng.standard_normal((4, 300))
    >>> dt.metrics.n_recovered(patterns_without_gap(W, X, rng), teacher.patterns, threshold=0.9)
    4
    """
    blocks = blocks_of(X, held=False)
    n = min(spectrum(blocks, rng).n_signal, *weights.shape)
    if n == 0:
        return np.empty((0, X.n_spins), dtype=np.int8)
    vectors = leading_vectors(weights, n).astype(np.float32)
    refined = rotated(blocks, np.ones(X.n_spins, np.float32), vectors, rng)
    deepest = max(map(binary, refined), key=lambda Z: depth(Z, vectors).sum())
    return deepest.astype(np.int8)


def data_modes(X: NDArray[Any], n_modes: int) -> NDArray[np.float64]:
    """Return the first singular vectors of the data over spins, (n_modes, n_spins).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.patterns import data_modes
    >>> np.abs(data_modes(np.array([[1, 1, -1, -1], [-1, -1, 1, 1]]), 1))
    array([[0.5, 0.5, 0.5, 0.5]])
    """
    if not 1 <= n_modes <= min(X.shape):
        raise ValueError(f"n_modes must be from 1 to {min(X.shape)} for data of shape {X.shape}")
    S = X.astype(np.float64)
    if n_modes >= min(X.shape) - 1:
        return np.linalg.svd(S, full_matrices=False)[2][:n_modes]
    v0 = np.random.default_rng(0).standard_normal(min(X.shape))  # a start, not a choice
    modes = svds(S, k=n_modes, v0=v0)[2]
    return modes[::-1]


def mode_errors(weights: FloatArray, modes: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return what the weights miss of each data mode.

    .. math:: t_\alpha = \sum_i |e^\alpha_i| \Big/ \sum_i |u^{\alpha,D}_i|,
              \qquad e^\alpha = u^{\alpha,D} - \sum_\mu (u^{\mu,W}\cdot u^{\alpha,D})\, u^{\mu,W}

    with the singular vectors of W over spins: 1 for a mode outside their span, 0 inside.

    Parameters
    ----------
    weights : array of shape (n_hidden, n_spins)
    modes : array of shape (n_modes, n_spins)
        From :func:`data_modes`.

    Returns
    -------
    array of shape (n_modes,)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.patterns import mode_errors
    >>> mode_errors(np.array([[2.0, 0.0, 0.0]]), np.eye(3)[:2])
    array([0., 1.])
    """
    _, sigma, basis = np.linalg.svd(weights.astype(np.float64), full_matrices=False)
    basis = basis[sigma > _NULL * sigma[0]]
    rest = modes - (modes @ basis.T) @ basis
    errors: NDArray[np.float64] = np.abs(rest).sum(axis=1) / np.abs(modes).sum(axis=1)
    return errors
