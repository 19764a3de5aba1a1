"""Samples in blocks of rows: the unit of work of everything that passes over the data.

The blocks depend on the shape of the data alone and results are added in their order, so what is
computed does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dualtap._threads import n_threads, parallel_map
from dualtap.spins import Spins

F32 = NDArray[np.float32]
T = TypeVar("T")

_ENTRIES = 2**18
"""Spins in a block: a megabyte in float32, which stays in the cache between two products,"""
_ROWS = 128
"""but not fewer samples than this: every block returns arrays of the size of the patterns."""


class Blocks:
    """The sample matrix in float32, cut into blocks of rows.

    Parameters
    ----------
    spins : Spins

    Attributes
    ----------
    S : array of shape (n_samples, n_spins), float32
        ±1, and 0 for a missing entry.
    rows : list of slice
    complete : bool
        Nothing is missing.
    n_observed : array of shape (n_samples,)
        Observed entries of each sample, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.blocks import Blocks
    >>> from dualtap.spins import as_spins
    >>> blocks = Blocks(as_spins(np.ones((300, 5000))))
    >>> [len(s) for s in blocks.map(lambda rows: blocks.S[rows])]
    [128, 128, 44]
    """

    def __init__(self, spins: Spins) -> None:
        self.S: F32 = spins.values.astype(np.float32)
        self.n_samples, self.n_spins = self.S.shape
        self._workers = n_threads()  # as it is outside of any limit that callers set later
        step = max(_ROWS, _ENTRIES // self.n_spins)
        self.rows = [slice(k, k + step) for k in range(0, self.n_samples, step)]
        observed = np.count_nonzero(spins.values, axis=1)
        self.complete = bool(observed.min() == self.n_spins)
        self.n_observed: NDArray[np.float64] = np.maximum(observed, 1).astype(np.float64)

    @property
    def share(self) -> float:
        """Share of the entries that were observed."""
        return float(self.n_observed.mean() / self.n_spins)

    def minus(self, t: F32) -> Blocks:
        """Return the same blocks with ``t``, one value a site, taken off the observed entries."""
        other = copy(self)
        other.S = self.S - t if self.complete else self.S - t * (self.S != 0)
        return other

    def map(self, function: Callable[[slice], T]) -> list[T]:
        """Apply ``function`` to the rows of every block, in threads."""
        return parallel_map(function, self.rows, self._workers)

    def dot(self, V: F32) -> F32:
        """Return S Vᵀ, shape (n_samples, len(V))."""
        parts = self.map(lambda rows: self.S[rows] @ V.T)
        result: F32 = np.concatenate(parts)
        return result

    def transposed_dot(self, X: F32) -> F32:
        """Return Xᵀ S, shape (X.shape[1], n_spins)."""
        return added(self.map(lambda rows: X[rows].T @ self.S[rows]))


def added(parts: list[F32]) -> F32:
    """Return the sum of arrays of the same shape, in their order; the first one is used up.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.blocks import added
    >>> added([np.ones(2), np.ones(2), np.ones(2)])
    array([3., 3.])
    """
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
