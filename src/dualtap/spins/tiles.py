"""Products with packed samples: a tile is unpacked at a time, and stays in the cache meanwhile."""

from __future__ import annotations

import numpy as np

from dualtap._threads import parallel_map
from dualtap.spins.packed import PackedSpins
from dualtap.spins.protocol import F32
from dualtap.spins.weights import weighted

_TILE = 512
"""Samples and sites of a tile of packed spins, a megabyte as floats."""
_HELD = 2**22
"""Entries of S Vᵀ that are held between the two products of V SᵀS."""


def slices(n: int, step: int) -> list[slice]:
    """Return slices of so many of n rows each, the last of what is left."""
    return [slice(k, min(k + step, n)) for k in range(0, n, step)]


class Tiles:
    """Products with packed samples as they are, by so many threads."""

    def __init__(self, spins: PackedSpins, workers: int) -> None:
        self._spins, self._workers = spins, workers
        self.row_tiles = slices(spins.n_samples, _TILE)

    def dot(self, V: F32) -> F32:
        """Return S Vᵀ, shape (n_samples, len(V))."""
        self._spins.begin_pass()
        return self._row_products(self.row_tiles, V)

    def transposed_dot(self, X: F32) -> F32:
        """Return Xᵀ S, shape (X.shape[1], n_spins)."""
        self._spins.begin_pass()
        result = np.zeros((X.shape[1], self._spins.n_spins), dtype=np.float32)
        self._add_site_products(result, X, self.row_tiles)
        return result

    def gram_dot(self, V: F32, weights: F32 | None) -> F32:
        """Return V SᵀS, every row with its weight, shape (len(V), n_spins)."""
        self._spins.begin_pass()
        result = np.zeros((len(V), self._spins.n_spins), dtype=np.float32)
        for group in slices(len(self.row_tiles), max(1, _HELD // (_TILE * len(V)))):
            tiles = self.row_tiles[group]
            w = None if weights is None else weights[tiles[0].start : tiles[-1].stop]
            self._add_site_products(result, weighted(self._row_products(tiles, V), w), tiles)
        return result

    def _row_products(self, row_tiles: list[slice], V: F32) -> F32:
        """Return S Vᵀ of some tiles of samples, over one tile of sites after the other."""
        spins = self._spins

        def of_tile(rows: slice) -> F32:
            result = np.zeros((rows.stop - rows.start, len(V)), dtype=np.float32)
            product, tile = np.empty_like(result), _tile_memory()
            for sites in slices(spins.n_spins, _TILE):
                result += np.dot(spins.floats(rows, sites, tile), V[:, sites].T, out=product)
            return result

        return np.concatenate(parallel_map(of_tile, row_tiles, self._workers))

    def _add_site_products(self, result: F32, X: F32, row_tiles: list[slice]) -> None:
        """Add Xᵀ S to ``result``, X belonging to the samples of some tiles that follow each other.

        Every thread has sites of its own, so nothing but the result is held.
        """
        spins, first = self._spins, row_tiles[0].start

        def add(sites: slice) -> None:
            part, tile = result[:, sites], _tile_memory()
            product = np.empty(part.shape, dtype=np.float32)
            for rows in row_tiles:
                x = X[rows.start - first : rows.stop - first]
                part += np.dot(x.T, spins.floats(rows, sites, tile), out=product)

        parallel_map(add, slices(spins.n_spins, _TILE), self._workers)


def _tile_memory() -> F32:
    """Return memory for a tile, which one after the other is unpacked to.

    Fresh memory for each would cost as much as the products where the system takes it back at
    once, as Dask asks of it.
    """
    return np.empty((_TILE, -(-_TILE // 8), 8), dtype=np.float32)
