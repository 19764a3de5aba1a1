"""Samples in blocks of rows: the unit of work of everything that passes over the data.

Small data are held as floats; of larger ones a block is unpacked when it is needed, which costs
less than the products made with it. The blocks depend on the shape of the data alone and results
are added in their order, so what is computed does not depend on the number of threads.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualtap._threads import n_threads, parallel_map
from dualtap.spins import DenseSpins, Spins

F32 = NDArray[np.float32]
T = TypeVar("T")
Change = Callable[[slice, F32], F32]

_ENTRIES = 2**18
"""Spins in a block: a megabyte in float32, which stays in the cache between two products,"""
_ROWS = 128
"""but not fewer samples than this: every block returns arrays of the size of the patterns."""
_FEWEST_GROUPS, _MOST_GROUPS, _GROUPED = 4, 8, 2**18
"""Sums over blocks that are held at a time: the fewer, the longer they are."""


class Blocks:
    """The sample matrix in float32, a block of rows at a time.

    Parameters
    ----------
    spins : Spins

    Attributes
    ----------
    spins : Spins
    dense : array of shape (n_samples, n_spins), float32, or None
        All entries, ±1 and 0 for a missing one; None where they are unpacked block by block.
    rows : list of slice
    n_observed : array of shape (n_samples,)
        Observed entries of each sample, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.blocks import Blocks
    >>> from dualtap.spins import as_spins
    >>> blocks = Blocks(as_spins(np.ones((300, 5000))))
    >>> [len(s) for s in blocks.map(blocks.block)]
    [128, 128, 44]
    """

    def __init__(self, spins: Spins) -> None:
        self.spins = spins
        self.dense: F32 | None = None
        if isinstance(spins, DenseSpins):
            self.dense = spins.values.astype(np.float32)
        self._changes: tuple[Change, ...] = ()
        self.n_samples, self.n_spins = spins.shape
        self._workers = n_threads()  # as it is outside of any limit that callers set later
        step = max(_ROWS, _ENTRIES // self.n_spins)
        self.rows = [slice(k, k + step) for k in range(0, self.n_samples, step)]
        self.n_observed: NDArray[np.float64] = np.maximum(spins.n_observed, 1).astype(np.float64)

    @property
    def complete(self) -> bool:
        """Nothing is missing."""
        return self.spins.complete

    @property
    def share(self) -> float:
        """Share of the entries that were observed."""
        return float(self.n_observed.mean() / self.n_spins)

    def block(self, rows: slice) -> F32:
        """Return some samples, shape (len(rows), n_spins)."""
        if self.dense is not None:
            return self.dense[rows]
        S = self.spins.floats(rows)
        for change in self._changes:
            S = change(rows, S)
        return S

    def changed(self, change: Change) -> Blocks:
        """Return blocks whose entries are ``change(rows, S)`` of these."""
        other = copy(self)
        if self.dense is None:
            other._changes = (*self._changes, change)
            return other
        dense = self.dense
        result = np.empty_like(dense)

        def fill(rows: slice) -> None:
            result[rows] = change(rows, dense[rows])

        self.map(fill)
        other.dense = result
        return other

    def minus(self, t: F32) -> Blocks:
        """Return the same blocks with ``t``, one value a site, taken off the observed entries."""
        if self.complete:
            return self.changed(lambda _, S: S - t)
        return self.changed(lambda _, S: S - t * (S != 0))

    def some(self, n_samples: int) -> Blocks:
        """Return the blocks of at most that many samples, evenly spread over all."""
        return self if self.n_samples <= n_samples else Blocks(self.spins.some(n_samples))

    def map(self, function: Callable[[slice], T]) -> list[T]:
        """Apply ``function`` to the rows of every block, in threads."""
        return parallel_map(function, self.rows, self._workers)

    def sum(
        self, function: Callable[[slice], Any], add: Callable[[Any, Any], Any] = operator.iadd
    ) -> Any:
        """Return the sum of ``function`` over the rows of every block, holding few of its terms.

        The first of two summands is used up by ``add``.
        """
        n_groups = min(max(_GROUPED // self.n_spins, _FEWEST_GROUPS), _MOST_GROUPS)
        size = -(-len(self.rows) // n_groups)
        groups = [self.rows[k : k + size] for k in range(0, len(self.rows), size)]

        def total(group: list[slice]) -> Any:
            result = function(group[0])
            for rows in group[1:]:
                result = add(result, function(rows))
            return result

        parts = parallel_map(total, groups, self._workers)
        result = parts[0]
        for part in parts[1:]:
            result = add(result, part)
        return result

    def dot(self, V: F32) -> F32:
        """Return S Vᵀ, shape (n_samples, len(V))."""
        parts = self.map(lambda rows: self.block(rows) @ V.T)
        result: F32 = np.concatenate(parts)
        return result

    def transposed_dot(self, X: F32) -> F32:
        """Return Xᵀ S, shape (X.shape[1], n_spins)."""
        result: F32 = self.sum(lambda rows: X[rows].T @ self.block(rows))
        return result

    def gram_dot(self, V: F32) -> F32:
        """Return V SᵀS in one pass, shape (len(V), n_spins)."""

        def block_product(rows: slice) -> F32:
            S = self.block(rows)
            # The many samples as left factor: BLAS packs the few vectors, not the block.
            product: F32 = np.dot((S @ V.T).T, S)
            return product

        total: F32 = self.sum(block_product)
        return total

    def sum_of_squares(self) -> float:
        """Return the sum of all squared entries."""
        if self.complete and not self._changes and self.dense is None:
            return float(self.n_samples * self.n_spins)
        return float(self.sum(lambda rows: _square(self.block(rows))))


def _square(S: F32) -> float:
    return float(np.einsum("ai,ai->", S, S, dtype=np.float64))
