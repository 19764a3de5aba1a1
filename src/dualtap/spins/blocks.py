"""Samples in blocks of rows: the unit of work of everything that passes over the data.

Small data are held as floats; of larger ones a tile is unpacked when it is needed, which costs
less than the products made with it. Blocks and tiles depend on the shape of the data alone and
results are added in their order, so what is computed does not depend on the number of threads.

A function that is applied to blocks takes the samples of one, and the same rows of whatever else
there is a row a sample of. It knows nothing of where the samples are. Products that sum over
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
from dualtap.spins.storage import DenseSpins, Spins

F32 = NDArray[np.float32]
Rows = NDArray[Any]
Add = Callable[[Any, Any], Any]

_ENTRIES = 2**18
"""Spins in a block: a megabyte in float32, which stays in the cache between two products,"""
_ROWS = 32
"""but not fewer samples than this: every block returns arrays of the size of the patterns."""
_FEWEST_ROWS = 32
"""Nor than this where it returns rows."""
_FEWEST_GROUPS, _MOST_GROUPS, _GROUPED = 4, 8, 2**18
"""Sums over blocks that are held at a time: the fewer, the longer they are."""
_TILE = 512
"""Samples and sites of a tile of packed spins, a megabyte as floats."""
_HELD = 2**22
"""Entries of S Vᵀ that are held between the two products of V SᵀS."""


class _Change(NamedTuple):
    """What is done to the samples of a block after unpacking them."""

    function: Callable[..., F32]
    arrays: tuple[Rows | None, ...]


class Blocks:
    """The sample matrix in float32, a block of rows at a time, in this process.

    Parameters
    ----------
    spins : Spins
    held : bool
        Small data are held as floats; not worth it for a single pass.
    workers : int, optional
        Threads; as many as BLAS may use when not given.

    Attributes
    ----------
    spins : Spins
    dense : array of shape (n_samples, n_spins), float32, or None
        All entries, ±1 and 0 for a missing one; None where they are unpacked tile by tile.
    plain : bool
        The samples are those of ``spins``, nothing was done to them.
    weights : array of shape (n_samples,), float32, or None
        Number of samples that each row stands for; None if each is one.
    total_weight : int or float
        Number of samples M that the rows stand for.
    gram : array of shape (n_spins, n_spins), float32, or None
        SᵀS, from whoever has computed it: then products with it take no pass.

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
        self.spins = spins
        self.dense: F32 | None = None
        if held and isinstance(spins, DenseSpins):
            self.dense = spins.values.astype(np.float32)
        self.plain = True
        self.gram: F32 | None = None
        self._changes: tuple[_Change, ...] = ()
        self.n_samples, self.n_spins = spins.shape
        self.total_weight = spins.total_weight
        self.weights = None if spins.weights is None else spins.weights.astype(np.float32)
        # As it is outside of any limit that callers set later.
        self._workers = n_threads() if workers is None else workers
        self._rows = _slices(self.n_samples, max(_ROWS, _ENTRIES // self.n_spins))

    @cached_property
    def n_observed(self) -> NDArray[np.float64]:
        """Observed entries of each sample, at least 1."""
        if self.complete:
            return np.broadcast_to(float(self.n_spins), self.n_samples)
        result: NDArray[np.float64] = np.maximum(self.spins.n_observed, 1, dtype=np.float64)
        return result

    @property
    def complete(self) -> bool:
        """Nothing is missing."""
        return self.spins.complete

    @property
    def share(self) -> float:
        """Share of the entries that were observed."""
        return self.total_observed / (self.total_weight * self.n_spins)

    @property
    def total_observed(self) -> float:
        """Observed entries of all samples."""
        if self.spins.weights is None:
            return float(self.n_observed.sum())
        return float(self.n_observed @ self.spins.weights)

    def changed(self, function: Callable[..., F32], *arrays: Rows | None) -> Blocks:
        """Return blocks whose samples are ``function(S, *rows of arrays)`` of these.

        Parameters
        ----------
        function : callable
        *arrays : arrays of shape (n_samples, ...)
        """
        other = copy(self)
        other.plain, other.gram = False, None
        if self.dense is None:
            other._changes = (*self._changes, _Change(function, arrays))
            return other
        dense, result = self.dense, np.empty_like(self.dense)

        def fill(rows: slice) -> None:
            result[rows] = function(dense[rows], *_cut(arrays, rows))

        parallel_map(fill, self._rows, self._workers)
        other.dense = result
        return other

    def place(self, array: F32) -> Any:
        """Return an array where products are made: here."""
        return array

    def minus(self, t: F32) -> Blocks:
        """Return the same blocks with ``t``, one value a site, taken off the observed entries."""
        if self.complete:
            return self.changed(lambda S: S - t)
        return self.changed(lambda S: S - t * (S != 0))

    def some(self, n_samples: int) -> Blocks:
        """Return the blocks of at most that many samples, evenly spread over all."""
        if self.n_samples <= n_samples:
            return self
        other = Blocks(self.spins.some(n_samples), workers=self._workers)
        return self._also_changed(other, self.spins.chosen(n_samples)[0])

    def _also_changed(self, other: Blocks, samples: NDArray[np.int64]) -> Blocks:
        """Return blocks of chosen samples with what was done to these."""
        other.plain = self.plain
        if self.dense is not None:
            other.dense = self.dense[samples]
        for change in self._changes:
            other = other.changed(change.function, *_cut(change.arrays, samples))
        return other

    def map(self, function: Callable[..., Rows], *arrays: Rows | None) -> Rows:
        """Return ``function(S, *rows of arrays)`` of every block, one after the other.

        Parameters
        ----------
        function : callable
            Returns an array with a row a sample.
        *arrays : arrays of shape (n_samples, ...)
        """
        self.spins.begin_pass()
        whole: list[Rows] = []
        alone = Lock()

        def fill(rows: slice) -> None:  # parts put together at the end would be held twice
            part = self._apply(function, rows, arrays)
            with alone:
                if not whole:
                    whole.append(np.empty((self.n_samples, *part.shape[1:]), dtype=part.dtype))
            whole[0][rows] = part

        step = max(_FEWEST_ROWS, _ENTRIES // self.n_spins)
        parallel_map(fill, _slices(self.n_samples, step), self._workers)
        return whole[0]

    def sum(
        self, function: Callable[..., Any], *arrays: Rows | None, add: Add = operator.iadd
    ) -> Any:
        """Return the sum of ``function(S, *rows of arrays)`` over the blocks.

        Few of its terms are held at a time. The first of two summands is used up by ``add``.
        """
        self.spins.begin_pass()
        n_groups = min(max(_GROUPED // self.n_spins, _FEWEST_GROUPS), _MOST_GROUPS)
        groups = _slices(len(self._rows), -(-len(self._rows) // n_groups))

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
        """Do both in one pass: ``function`` returns an array with a row a sample, and a term."""

        def both(*block: Any) -> tuple[list[Rows], Any]:
            rows, term = function(*block)
            return [rows], term

        def add_both(a: Any, b: Any) -> Any:
            return a[0] + b[0], add(a[1], b[1])

        parts, total = self.sum(both, *arrays, add=add_both)
        return np.concatenate(parts), total

    def dot(self, V: F32) -> F32:
        """Return S Vᵀ, shape (n_samples, len(V))."""
        if self._tiled is None:
            return self.map(lambda S: S @ V.T)
        self.spins.begin_pass()
        spins = self._tiled
        return np.concatenate(
            parallel_map(lambda r: _row_products(spins, r, V), self._row_tiles(), self._workers)
        )

    def transposed_dot(self, X: F32) -> F32:
        """Return Xᵀ S, every row with its weight, shape (X.shape[1], n_spins)."""
        X = weighted(X, self.weights)
        if self._tiled is None:
            summed: F32 = self.sum(lambda S, x: x.T @ S, X)
            return summed
        self.spins.begin_pass()
        result = np.zeros((X.shape[1], self.n_spins), dtype=np.float32)
        self._add_site_products(result, X, self._row_tiles())
        return result

    def gram_dot(self, V: F32) -> F32:
        """Return V SᵀS in one pass, every row with its weight, shape (len(V), n_spins)."""
        if self.gram is not None:
            return V @ self.gram
        if self._tiled is None:
            # The many samples as left factor: BLAS packs the few vectors, not the block.
            summed: F32 = self.sum(
                lambda S, w: np.dot(weighted(S @ V.T, w).T, S),
                self.weights,
            )
            return summed
        self.spins.begin_pass()
        spins, result = self._tiled, np.zeros((len(V), self.n_spins), dtype=np.float32)
        tiles = self._row_tiles()
        for group in _slices(len(tiles), max(1, _HELD // (_TILE * len(V)))):
            some = tiles[group]
            parts = parallel_map(lambda r: _row_products(spins, r, V), some, self._workers)
            w = None if self.weights is None else self.weights[some[0].start : some[-1].stop]
            self._add_site_products(result, weighted(np.concatenate(parts), w), some)
        return result

    def sum_of_squares(self) -> float:
        """Return the sum of all squared entries."""
        if self.complete and self.plain:
            return float(self.total_weight * self.n_spins)
        return float(self.sum(_square, self.weights))

    @property
    def _tiled(self) -> PackedSpins | None:
        """The packed spins if they are multiplied as they are, else None."""
        return self.spins if isinstance(self.spins, PackedSpins) and not self._changes else None

    def _row_tiles(self) -> list[slice]:
        return _slices(self.n_samples, _TILE)

    def _add_site_products(self, result: F32, X: F32, row_tiles: list[slice]) -> None:
        """Add Xᵀ S to ``result``, X belonging to the samples of some tiles that follow each other.

        Every thread has sites of its own, so nothing but the result is held.
        """
        spins = self.spins
        assert isinstance(spins, PackedSpins)
        first = row_tiles[0].start

        def add(sites: slice) -> None:
            part, tile = result[:, sites], _tile_memory()
            product = np.empty(part.shape, dtype=np.float32)
            for rows in row_tiles:
                x = X[rows.start - first : rows.stop - first]
                part += np.dot(x.T, spins.floats(rows, sites, tile), out=product)

        parallel_map(add, _slices(self.n_spins, _TILE), self._workers)

    def _apply(
        self, function: Callable[..., Any], rows: slice, arrays: tuple[Rows | None, ...]
    ) -> Any:
        S = self.spins.floats(rows) if self.dense is None else self.dense[rows]
        for change in self._changes:
            S = change.function(S, *_cut(change.arrays, rows))
        return function(S, *_cut(arrays, rows))


def _slices(n: int, step: int) -> list[slice]:
    return [slice(k, min(k + step, n)) for k in range(0, n, step)]


def _cut(arrays: tuple[Rows | None, ...], rows: Any) -> list[Rows | None]:
    return [None if array is None else array[rows] for array in arrays]


def weighted(rows: Rows, weights: Rows | None) -> Rows:
    """Return rows times their weights, or as they are if each stands for one sample.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.blocks import weighted
    >>> weighted(np.ones((2, 3)), np.array([1.0, 5.0]))
    array([[1., 1., 1.],
           [5., 5., 5.]])
    """
    if weights is None:
        return rows
    return rows * weights.reshape(-1, *[1] * (rows.ndim - 1))


def _total(terms: Any, add: Add) -> Any:
    result = next(terms)
    for term in terms:
        result = add(result, term)
    return result


def _row_products(spins: PackedSpins, rows: slice, V: F32) -> F32:
    """Return S Vᵀ of a tile of samples, over one tile of sites after the other."""
    result = np.zeros((rows.stop - rows.start, len(V)), dtype=np.float32)
    product, tile = np.empty_like(result), _tile_memory()
    for sites in _slices(spins.n_spins, _TILE):
        result += np.dot(spins.floats(rows, sites, tile), V[:, sites].T, out=product)
    return result


def _tile_memory() -> F32:
    """Return memory for a tile, which one after the other is unpacked to.

    Fresh memory for each would cost as much as the products where the system takes it back at
    once, as Dask asks of it.
    """
    return np.empty((_TILE, -(-_TILE // 8), 8), dtype=np.float32)


def _square(S: F32, w: Rows | None) -> float:
    return float(np.einsum("ai,ai->", weighted(S, w), S, dtype=np.float64))
