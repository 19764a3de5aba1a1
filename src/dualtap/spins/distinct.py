"""Equal samples as one row with a weight: samples and their histogram are then the same data.

Rows are distinguished by 64 bits, a block of rows at a time, so that memory grows with the number
of different rows: by 20 bytes for each at most, and as much as these rows take, packed. Short rows
are these bits, longer ones have hashes. Equal hashes of rows that differ are detected, and other
hashes taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.builder import DENSE
from dualtap.spins.packed import PackedSpins
from dualtap.spins.storage import DenseSpins, Spins

U64 = NDArray[np.uint64]
_MIXER = np.uint64(0x94D049BB133111EB)
_AT_ONCE = 2**18


def distinct_rows(spins: Spins) -> Spins:
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
    >>> from dualtap.spins.distinct import distinct_rows
    >>> rows = distinct_rows(as_spins([[1, 1], [0, 1], [1, 1]]))
    >>> rows.values, rows.weights
    (array([[-1,  1],
           [ 1,  1]], dtype=int8), array([1., 2.]))
    """
    mapped = isinstance(spins, PackedSpins) and isinstance(spins.bits, np.memmap)
    if mapped or not isinstance(spins, (PackedSpins, DenseSpins)):
        return spins
    rng = np.random.default_rng()  # so that no data can be made with many equal hashes
    while True:
        rows = _Rows(spins, rng)
        different = rows.different()
        if len(different) == rows.n_seen and (spins.weights is None or (spins.weights == 1).all()):
            return spins if spins.weights is None else spins.weighted(None)
        total = rows.totals(different)
        if total is not None:
            break
    found: PackedSpins | DenseSpins
    if rows.exact:
        found = rows.unpacked(_shuffled(different))
        _shuffled(total[: len(different)])
    else:
        del different  # as long as there are different rows, as everything from here on
        order = _shuffled(np.argsort(_opaque(rows.of(rows.first))))
        total[: len(order)] = total[order]
        rows.first = rows.first[order]
        del order
        found = spins.take(np.append(rows.first, rows.empty[:1])).weighted(None)
    found = found.weighted(total)
    dense = isinstance(spins, DenseSpins) or found.n_entries <= DENSE  # as a histogram is kept
    if isinstance(found, PackedSpins) and dense:
        return DenseSpins(found.values, found.encoding).weighted(total)
    return found


class _Rows:
    """Rows of which something was observed, each as a number: itself or, if too long, its hash.

    Attributes
    ----------
    exact : bool
        The numbers are the rows.
    n_seen : int
    empty : array
        Numbers of the rows of which nothing was observed.
    first : array
        Which row was the first with each hash, after :meth:`totals`.
    """

    def __init__(self, spins: PackedSpins | DenseSpins, rng: np.random.Generator) -> None:
        self._spins = spins
        self._start, odd = rng.integers(2**64, size=2, dtype=np.uint64)
        self._factor = odd | np.uint64(1)
        self._n_bytes = (1 if spins.complete else 2) * -(-spins.n_spins // 8)
        self.exact = self._n_bytes <= 8
        self.empty = np.empty(0, dtype=np.int64)
        if not spins.complete:
            self.empty = np.flatnonzero(spins.n_observed == 0)
        self.n_seen = spins.n_samples - len(self.empty)
        self.first = np.empty(0, dtype=np.int32)

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], U64]]:
        """Yield the numbers of some rows, and what stands for each."""
        for rows in self._spins.blocks():
            numbers = np.arange(rows.start, rows.stop)
            if len(self.empty):
                numbers = numbers[self._spins.n_observed[rows] > 0]
            if len(numbers):
                yield numbers, self._numbers(self.of(numbers))

    def of(self, samples: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Return bytes that are the same for equal rows, whichever way they are kept."""
        rows = self._spins.take(samples.astype(np.int64, copy=False))
        if isinstance(rows, PackedSpins):
            return rows.row_bytes()
        packed = np.packbits(rows.values > 0, axis=1)
        if self._spins.complete:
            return packed
        return np.hstack([packed, np.packbits(rows.values != 0, axis=1)])

    def _numbers(self, rows: NDArray[np.uint8]) -> U64:
        words = _words(rows)
        if self.exact:
            return words[:, 0]
        result = np.full(len(words), self._start)
        for word in words.T:  # a word alone has a hash of its own: each step can be undone
            result = _mixed(result ^ word, self._factor)
        return result

    def different(self) -> U64:
        """Return all numbers in ascending order."""
        held, n, known = np.empty(self.n_seen, dtype=np.uint64), 0, 0
        for _, numbers in self._blocks():  # memory is taken when it is first written to
            held[n : n + len(numbers)] = numbers
            n += len(numbers)
            if n > 2 * known:
                n = known = _compacted(held[:n])
        return held[: _compacted(held[:n])]

    def totals(self, different: U64) -> NDArray[np.float64] | None:
        """Return the sums of their weights, then that of empty rows; None if rows share a hash."""
        weights = self._spins.weights
        total = np.zeros(len(different) + bool(len(self.empty)))
        if not self.exact:
            self.first = np.full(len(different), -1, np.min_scalar_type(-self._spins.n_samples))
        for numbers, each in self._blocks():
            order = np.argsort(each, kind="stable")  # neighbours are looked up fast
            each, numbers = each[order], numbers[order]
            new = np.flatnonzero(np.append(True, each[1:] != each[:-1]))
            at, n_each = np.searchsorted(different, each[new]), np.diff(new, append=len(each))
            if not (self.exact or self._are_equal(numbers, new, at, n_each)):
                return None
            total[at] += n_each if weights is None else np.add.reduceat(weights[numbers], new)
        if len(self.empty):
            total[-1] = len(self.empty) if weights is None else weights[self.empty].sum()
        return total

    def _are_equal(
        self,
        numbers: NDArray[np.int64],
        new: NDArray[np.int64],
        at: NDArray[np.int64],
        n_each: NDArray[np.int64],
    ) -> bool:
        """Whether rows are those that first had their hashes, which is kept of new ones."""
        unseen = self.first[at] < 0
        self.first[at[unseen]] = numbers[new[unseen]]
        first = self.first[np.repeat(at, n_each)]
        repeated = first != numbers
        return np.array_equal(self.of(numbers[repeated]), self.of(first[repeated]))

    def unpacked(self, words: U64) -> PackedSpins:
        """Return the rows that are these numbers, and an empty one if there were some."""
        n_rows, n_bits = len(words) + bool(len(self.empty)), -(-self._spins.n_spins // 8)
        planes = np.zeros((self._n_bytes // n_bits, n_rows, n_bits), dtype=np.uint8)
        for k in range(0, len(words), _AT_ONCE):
            part = words[k : k + _AT_ONCE].astype(">u8").view(np.uint8).reshape(-1, 8)
            for number, plane in enumerate(planes):
                plane[k : k + len(part)] = part[:, number * n_bits : (number + 1) * n_bits]
        observed = None if self._spins.complete else planes[1]
        spins = self._spins
        return PackedSpins(planes[0], observed, spins.n_spins, spins.encoding)


def _mixed(x: U64, factor: np.uint64) -> U64:
    """Return 64 bits each of which depends on all of x (as splitmix64 mixes them).

    One product would carry no difference to lower bits: rows that differ in some bits of two words
    would then have one hash whatever the factor.
    """
    for shift, by in ((30, factor), (27, _MIXER)):
        x = (x ^ (x >> np.uint64(shift))) * by
    return x ^ (x >> np.uint64(31))


def _compacted(numbers: U64) -> int:
    """Sort them, bring different ones to the front, and return how many there are."""
    numbers.sort()
    n, last = 0, None
    for k in range(0, len(numbers), _AT_ONCE):
        part = numbers[k : k + _AT_ONCE]
        new = part[np.append(part[0] != last, part[1:] != part[:-1])]
        last = part[-1]
        numbers[n : n + len(new)] = new
        n += len(new)
    return n


def _shuffled(array: NDArray[Any]) -> NDArray[Any]:
    """Return it in an order that depends on its length alone, exchanged in place."""
    np.random.default_rng(0).shuffle(array)
    return array


def _words(rows: NDArray[np.uint8]) -> U64:
    """Return rows of bytes as whole numbers of 64 bits, the first bytes being the highest."""
    n_words = -(-rows.shape[1] // 8)
    whole = np.zeros((len(rows), 8 * n_words), dtype=np.uint8)
    whole[:, : rows.shape[1]] = rows
    return whole.view(">u8").astype(np.uint64)


def _opaque(rows: NDArray[np.uint8]) -> NDArray[np.void]:
    """Return a value per row by which rows are sorted."""
    return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1])))[:, 0]
