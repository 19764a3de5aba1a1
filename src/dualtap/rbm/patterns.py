"""Patterns out of the weights of an RBM, which know them up to a rotation only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.rbm.monitors import singular_values
from dualtap.rbm.priors import FloatArray
from dualtap.subspace.rotate import rotate_to_patterns

_LEAST_GAP = 2.0


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
    weights: FloatArray, floor: float, rng: np.random.Generator, n_signals: int | None = None
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
    n_signals : int, optional
        Directions of the data above the noise edge: how many singular vectors are taken where
        no gap between the values tells.

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
    n = min(n_above_gap(values, floor), weights.shape[1])
    if n_signals is not None and not is_divided(values, floor):
        n = min(n_signals, *weights.shape)
    top = np.linalg.svd(weights.astype(np.float64), full_matrices=False)[2][:n]
    beta = float(np.mean(np.square(values[:n]))) if n else 1.0
    return Patterns(rotate_to_patterns(top, rng), values, beta)
