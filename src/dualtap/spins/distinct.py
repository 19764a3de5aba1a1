"""Equal samples as one row with a weight: samples and their histogram are then the same data.

Rows are distinguished by 64-bit hashes, a block of rows at a time, so that memory grows with the
number of different rows. Equal hashes of rows that differ are detected, and other hashes taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.builder import DENSE
from dualtap.spins.packed import PackedSpins
from dualtap.spins.storage import DenseSpins, Spins

U64 = NDArray[np.uint64]
_MIXER = np.uint64(0x94D049BB133111EB)


def distinct(spins: Spins) -> Spins:
    """Return every different row once, with the sum of its weights.

    Repeated rows, rows with weights and a histogram of either lead to the same rows and weights,
    in whatever order they come: they are sorted, and shuffled always in the same way, so that any
    part of them is like the whole. Rows of which nothing was observed come last, so that the others
    are as they would be without them. If all others differ and have weight 1, all stay as they are;
    so do samples in a mapped file or on Dask workers.

    Parameters
    ----------
    spins : Spins

    Returns
    -------
    Spins

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.distinct import distinct
    >>> rows = distinct(as_spins([[1, 1], [0, 1], [1, 1]]))
    >>> rows.values, rows.weights
    (array([[-1,  1],
           [ 1,  1]], dtype=int8), array([1., 2.]))
    """
    mapped = isinstance(spins, PackedSpins) and isinstance(spins.bits, np.memmap)
    if mapped or not isinstance(spins, (PackedSpins, DenseSpins)):
        return spins
    n_seen = spins.n_samples if spins.complete else np.count_nonzero(spins.n_observed)
    rng = np.random.default_rng()  # whoever makes the data shall not know which hashes are equal
    while True:
        hashes = _Hashes(spins, rng)
        different = hashes.different()
        if len(different) == n_seen and (spins.weights is None or (spins.weights == 1).all()):
            return spins if spins.weights is None else spins.weighted(None)
        chosen, weights = hashes.totals(different)
        del different  # as long as there are different rows, as everything from here on
        if len(chosen):
            break
    order = np.argsort(_keys(_row_bytes(spins, chosen)))
    order = order[np.random.default_rng(0).permutation(len(chosen))]
    chosen, weights = chosen[order], weights[order]
    del order
    empty = np.flatnonzero(spins.n_observed == 0) if not spins.complete else chosen[:0]
    if len(empty):
        each = np.float64(len(empty)) if spins.weights is None else spins.weights[empty].sum()
        chosen, weights = np.append(chosen, empty[0]), np.append(weights, each)
    rows = spins.take(chosen).weighted(weights)
    if isinstance(rows, PackedSpins) and rows.n_entries <= DENSE:  # as a histogram is kept
        return DenseSpins(rows.values, rows.encoding, rows.reads).weighted(rows.weights)
    return rows


class _Hashes:
    """Hashes of the rows of which something was observed."""

    def __init__(self, spins: PackedSpins | DenseSpins, rng: np.random.Generator) -> None:
        self._spins = spins
        self._start, odd = rng.integers(2**64, size=2, dtype=np.uint64)
        self._factor = odd | np.uint64(1)
        self._exact = True  # until a row is longer than a word

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], U64]]:
        """Yield the numbers and the hashes of some rows."""
        for rows in self._spins.blocks():
            numbers = np.arange(rows.start, rows.stop)
            if not self._spins.complete:
                numbers = numbers[self._spins.n_observed[rows] > 0]
            yield numbers, self._of(_row_bytes(self._spins, numbers))

    def _of(self, rows: NDArray[np.uint8]) -> U64:
        words = _words(rows)
        result = np.full(len(words), self._start)
        for word in words.T:  # a word alone has a hash of its own: each step can be undone
            result = _mixed(result ^ word, self._factor)
        self._exact = words.shape[1] == 1
        return result

    def different(self) -> U64:
        """Return all hashes in ascending order."""
        parts: list[U64] = [np.empty(0, dtype=np.uint64)]
        for _, hashes in self._blocks():
            parts.append(_ascending(hashes))
            if sum(map(len, parts[1:])) > len(parts[0]):
                parts = [_ascending(np.concatenate(parts))]
        return _ascending(np.concatenate(parts)) if len(parts) > 1 else parts[0]

    def totals(self, different: U64) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the first row and the sum of weights of each; nothing if rows share a hash."""
        first, total = np.full(len(different), -1), np.zeros(len(different))
        for numbers, hashes in self._blocks():
            which = np.searchsorted(different, hashes)
            new, at = np.unique(which, return_index=True)
            unseen = first[new] < 0
            first[new[unseen]] = numbers[at[unseen]]
            if not self._exact:
                repeated = first[which] != numbers
                one = _row_bytes(self._spins, numbers[repeated])
                other = _row_bytes(self._spins, first[which[repeated]])
                if not np.array_equal(one, other):
                    return first[:0], total[:0]
            weights = self._spins.weights
            np.add.at(total, which, 1.0 if weights is None else weights[numbers])
        return first, total


def _mixed(x: U64, factor: np.uint64) -> U64:
    """Return 64 bits each of which depends on all of x (as splitmix64 mixes them).

    One product would carry no difference to lower bits: rows that differ in some bits of two words
    would then have one hash whatever the factor.
    """
    for shift, by in ((30, factor), (27, _MIXER)):
        x = (x ^ (x >> np.uint64(shift))) * by
    return x ^ (x >> np.uint64(31))


def _row_bytes(spins: Spins, samples: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return bytes that are the same for equal rows, whichever way they are kept."""
    rows = spins.take(samples)
    if isinstance(rows, PackedSpins):
        return rows.row_bytes()
    packed = np.packbits(rows.values > 0, axis=1)
    if spins.complete:
        return packed
    return np.hstack([packed, np.packbits(rows.values != 0, axis=1)])


def _ascending(hashes: U64) -> U64:
    """Return different ones in ascending order, sorted in place: faster than a table of them."""
    hashes.sort()
    new = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]
    return hashes if new.all() else hashes[new]


def _words(rows: NDArray[np.uint8]) -> U64:
    """Return rows of bytes as whole numbers of 64 bits, the first bytes being the highest."""
    n_words = -(-rows.shape[1] // 8)
    whole = np.zeros((len(rows), 8 * n_words), dtype=np.uint8)
    whole[:, : rows.shape[1]] = rows
    return whole.view(">u8").astype(np.uint64)


def _keys(rows: NDArray[np.uint8]) -> NDArray[np.generic]:
    """Return a value per row by which rows are sorted."""
    if rows.shape[1] > 8:
        return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1])))[:, 0]
    return _words(rows)[:, 0]  # numbers are sorted faster than bytes
