"""Samples in blocks of rows: the unit of work of everything that passes over the data.

Small data are held as floats; of larger ones a tile is unpacked when it is needed, which costs
less than the products made with it. Blocks and tiles depend on the shape of the data alone and
results are added in their order, so what is computed does not depend on the number of threads.

A function that is applied to blocks takes the samples of one, and the same rows of whatever else
there is a row per sample of. It knows nothing of where the samples are. Products that sum over
samples count every row with its weight; a function that sums takes the weights as one more array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import copy
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._threads import n_threads, parallel_map
from dualtap.spins.packed import PackedSpins
from dualtap.spins.protocol import F32, Add, Rows
from dualtap.spins.storage import DenseSpins, Spins
from dualtap.spins.tiles import Tiles, slices
from dualtap.spins.weights import weighted
from dualtap.spins.words import counted_gram, counted_products

_ENTRIES = 2**18
"""Spins in a block: a megabyte in float32, which stays in the cache between two products,"""
_ROWS = 32
"""but not fewer samples than this: every block returns arrays of the size of the patterns."""
_FEWEST_ROWS = 32
"""Nor than this where it returns rows."""
_FEWEST_GROUPS, _MOST_GROUPS, _GROUPED = 4, 8, 2**18
"""Sums over blocks that are held at a time: the fewer, the longer they are."""


class _Change(NamedTuple):
    """What is done to the samples of a block after unpacking them."""

    function: Callable[..., F32]
    arrays: tuple[Rows | None, ...]


class Blocks:
    """The sample matrix in this process, a block of rows at a time.

    What it offers is documented with :class:`~dualtap.spins.protocol.SampleMatrix`.

    Parameters
    ----------
    spins : Spins
    held : bool
        Small data are held as floats; not worth it for a single pass.
    workers : int, optional
        Threads; as many as BLAS may use when not given.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> blocks = Blocks(as_spins(np.ones((300, 5000))))
    >>> blocks.map(lambda S: S.sum(axis=1)).shape, float(blocks.sum(lambda S: S.sum()))
    ((300,), 1500000.0)
    """

    def __init__(self, spins: Spins, *, held: bool = True, workers: int | None = None) -> None:
        self._spins = spins
        self._dense: F32 | None = None
        if held and isinstance(spins, DenseSpins):
            self._dense = spins.values.astype(np.float32)
        self._plain = True  # the samples themselves: nothing was done to them
        self._gram: F32 | None = None
        self._changes: tuple[_Change, ...] = ()
        self.n_samples, self.n_spins = spins.shape
        self.total_weight = spins.total_weight
        self.weights = None if spins.weights is None else spins.weights.astype(np.float32)
        # As it is outside of any limit that callers set later.
        self._workers = n_threads() if workers is None else workers
        self._rows = slices(self.n_samples, max(_ROWS, _ENTRIES // self.n_spins))

    @cached_property
    def n_observed(self) -> NDArray[np.float64]:
        if self.complete:
            return np.broadcast_to(float(self.n_spins), self.n_samples)
        result: NDArray[np.float64] = np.maximum(self._spins.n_observed, 1, dtype=np.float64)
        return result

    @property
    def complete(self) -> bool:
        return self._spins.complete

    @property
    def total_observed(self) -> float:
        if self._spins.weights is None:
            return float(self.n_observed.sum())
        return float(self.n_observed @ self._spins.weights)

    def changed(self, function: Callable[..., F32], *arrays: Rows | None) -> Blocks:
        other = copy(self)
        other._plain, other._gram = False, None
        if self._dense is None:
            other._changes = (*self._changes, _Change(function, arrays))
            return other
        dense, result = self._dense, np.empty_like(self._dense)

        def fill(rows: slice) -> None:
            result[rows] = function(dense[rows], *_cut(arrays, rows))

        parallel_map(fill, self._rows, self._workers)
        other._dense = result
        return other

    def place(self, array: F32) -> Any:
        """Return an array where products are made: here."""
        return array

    def minus(self, t: F32) -> Blocks:
        if self.complete:
            return self.changed(lambda S: S - t)
        return self.changed(lambda S: S - t * (S != 0))

    def at_hand(self) -> F32 | None:
        return self._dense

    def rows(self, samples: NDArray[np.int64]) -> F32:
        if self._dense is not None:
            return self._dense[samples]
        return self._as_changed(self._spins.take(samples).floats(slice(None)), samples)

    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        return self._spins.columns(sites)

    def chosen(self, n_entries: int, *, least: int = 1) -> NDArray[np.int64]:
        return self._spins.chosen(n_entries, least=least)[0]

    def subsample(self, n_entries: int, *, least: int = 1) -> Blocks:
        part = self._spins.subsample(n_entries, least=least)
        if part is self._spins:
            return self
        other, samples = self._blocks_of_part(part), self.chosen(n_entries, least=least)
        other._plain = self._plain
        if self._dense is not None:
            other._dense = self._dense[samples]
        for change in self._changes:
            other = other.changed(change.function, *_cut(change.arrays, samples))
        return other

    def _blocks_of_part(self, part: Spins) -> Blocks:
        return Blocks(part, workers=self._workers)

    def map(self, function: Callable[..., Rows], *arrays: Rows | None) -> Rows:
        self._spins.begin_pass()
        whole: list[Rows] = []
        alone = Lock()

        def fill(rows: slice) -> None:  # parts put together at the end would be held twice
            part = self._apply(function, rows, arrays)
            with alone:
                if not whole:
                    whole.append(np.empty((self.n_samples, *part.shape[1:]), dtype=part.dtype))
            whole[0][rows] = part

        step = max(_FEWEST_ROWS, _ENTRIES // self.n_spins)
        parallel_map(fill, slices(self.n_samples, step), self._workers)
        return whole[0]

    def sum(
        self, function: Callable[..., Any], *arrays: Rows | None, add: Add = operator.iadd
    ) -> Any:
        self._spins.begin_pass()
        n_groups = min(max(_GROUPED // self.n_spins, _FEWEST_GROUPS), _MOST_GROUPS)
        groups = slices(len(self._rows), -(-len(self._rows) // n_groups))

        def total(group: slice) -> Any:
            terms = (self._apply(function, rows, arrays) for rows in self._rows[group])
            return _total(terms, add)

        return _total(iter(parallel_map(total, groups, self._workers)), add)

    def map_sum(
        self,
        function: Callable[..., tuple[Rows, Any]],
        *arrays: Rows | None,
        add: Add = operator.iadd,
    ) -> tuple[Rows, Any]:
        def both(*block: Any) -> tuple[list[Rows], Any]:
            rows, term = function(*block)
            return [rows], term

        def add_both(a: Any, b: Any) -> Any:
            return a[0] + b[0], add(a[1], b[1])

        parts, total = self.sum(both, *arrays, add=add_both)
        return np.concatenate(parts), total

    def dot(self, V: F32) -> F32:
        tiles = self._tiles
        return self.map(lambda S: S @ V.T) if tiles is None else tiles.dot(V)

    def transposed_dot(self, X: F32) -> F32:
        X, tiles = weighted(X, self.weights), self._tiles
        summed: F32 = (
            self.sum(lambda S, x: x.T @ S, X) if tiles is None else tiles.transposed_dot(X)
        )
        return summed

    def gram_dot(self, V: F32) -> F32:
        if self._gram is not None:
            return V @ self._gram
        if self._tiles is not None:
            return self._tiles.gram_dot(V, self.weights)
        # The many samples as left factor: BLAS packs the few vectors, not the block.
        summed: F32 = self.sum(
            lambda S, w: np.dot(weighted(S @ V.T, w).T, S),
            self.weights,
        )
        return summed

    def sign_dot(self, Z: F32) -> F32:
        # Bytes are made bits, and those that differ counted: as exact, and several times as fast.
        at_hand = self._plain and isinstance(self._spins, DenseSpins)
        counted = counted_products(self._spins, Z) if at_hand else None
        return self.dot(Z) if counted is None else counted

    @property
    def knows_gram(self) -> bool:
        return self._gram is not None

    def gram(self) -> F32:
        if self._gram is None:
            self._gram = self._counted_gram(of_sites=True)
        if self._gram is None:
            summed: F32 = self.sum(lambda s, w: weighted(s, w).T @ s, self.weights)
            self._gram = summed
        return self._gram

    def row_gram(self) -> F32:
        counted = self._counted_gram(of_sites=False)
        if counted is not None:
            return counted
        if self._dense is None:
            raise ValueError("products of samples with each other need them as floats")
        self._spins.begin_pass()
        S = weighted(self._dense, None if self.weights is None else np.sqrt(self.weights))
        products: F32 = S @ S.T
        return products

    def _counted_gram(self, *, of_sites: bool) -> F32 | None:
        plain = self._plain and self.weights is None
        return counted_gram(self._spins, of_sites=of_sites) if plain else None

    def sum_of_squares(self) -> float:
        if self.complete and self._plain:
            return float(self.total_weight * self.n_spins)
        return float(self.sum(_square, self.weights))

    @property
    def _tiles(self) -> Tiles | None:
        """The products of packed spins, if these are multiplied as they are."""
        if self._changes or not isinstance(self._spins, PackedSpins):
            return None
        return Tiles(self._spins, self._workers)

    def _apply(
        self, function: Callable[..., Any], rows: slice, arrays: tuple[Rows | None, ...]
    ) -> Any:
        held = self._dense
        S = self._as_changed(self._spins.floats(rows), rows) if held is None else held[rows]
        return function(S, *_cut(arrays, rows))

    def _as_changed(self, S: F32, rows: Any) -> F32:
        for change in self._changes:
            S = change.function(S, *_cut(change.arrays, rows))
        return S


def _cut(arrays: tuple[Rows | None, ...], rows: Any) -> list[Rows | None]:
    return [None if array is None else array[rows] for array in arrays]


def _total(terms: Any, add: Add) -> Any:
    result = next(terms)
    for term in terms:
        result = add(result, term)
    return result


def _square(S: F32, w: Rows | None) -> float:
    return float(np.einsum("ai,ai->", weighted(S, w), S, dtype=np.float64))
