"""Rows that stand for any number of samples: which are left, and how they are divided."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.storage import Spins

_MOST_COUNTED = 10**9
"""Samples up to which NumPy draws an exact number of them."""


def weighted(rows: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[Any]:
    """Return rows times their weights, or as they are if each stands for one sample.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.weights import weighted
    >>> weighted(np.ones((2, 3)), np.array([1.0, 5.0]))
    array([[1., 1., 1.],
           [5., 5., 5.]])
    """
    if weights is None:
        return rows
    result: NDArray[Any] = rows * weights.reshape(-1, *[1] * (rows.ndim - 1))
    return result


def with_weights(spins: Spins, weights: NDArray[np.float64]) -> Spins:
    """Return the rows whose weight is not 0, each standing for so many samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.weights import with_weights
    >>> some = with_weights(as_spins([[1, 0], [0, 0], [1, 1]]), np.array([2.0, 0.0, 0.5]))
    >>> some.n_samples, some.total_weight
    (2, 2.5)
    """
    rows = np.flatnonzero(weights)
    if len(rows) == spins.n_samples:
        return spins.weighted(weights)
    return spins.take(rows).weighted(weights[rows])


def divided(spins: Spins, n: int, rng: np.random.Generator) -> tuple[Spins, Spins]:
    """Return n samples drawn at random, and the others.

    The samples that a row stands for are drawn one by one, so that it may be in both parts; what
    its weight has beyond a whole number stays together.

    Parameters
    ----------
    spins : Spins
    n : int
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.weights import divided
    >>> rows = as_spins([[1, 0], [1, 1]]).weighted(np.array([6.0, 6.0]))
    >>> one, other = divided(rows, 4, np.random.default_rng(0))
    >>> one.total_weight, other.total_weight
    (4, 8)
    """
    if spins.weights is None:
        order = rng.permutation(spins.n_samples)
        return spins.take(np.sort(order[:n])), spins.take(np.sort(order[n:]))
    share = n / spins.total_weight
    whole = np.floor(spins.weights).astype(np.int64)
    if whole.sum() < _MOST_COUNTED:
        drawn = rng.multivariate_hypergeometric(whole, round(share * whole.sum()))
    else:
        drawn = rng.binomial(whole, share)
    part = drawn + (spins.weights - whole) * (rng.random(len(whole)) < share)
    return with_weights(spins, part), with_weights(spins, spins.weights - part)
