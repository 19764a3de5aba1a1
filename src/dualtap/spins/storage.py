"""How spins are kept: a byte or a bit each, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.numbers import give_back

Encoding = Literal["-1/+1", "0/1", "boolean"]

CHUNK = 2**22
"""Entries looked at together in a pass over the data."""

_SIGNS = 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int8) - 1
_FLOAT_SIGNS = _SIGNS.astype(np.float32)
"""The eight spins of each byte; picking rows of this table unpacks faster than BLAS multiplies."""


_AT_ONCE = 64


@dataclass(frozen=True)
class SpinSummary:
    """What there is to know about a sample matrix before fitting it.

    Attributes
    ----------
    n_samples, n_spins : int
    encoding : str
        How the input was read: "-1/+1", "0/1" or "boolean".
    n_missing : int
        Entries without a value.
    n_constant : int
        Spins that never change (missing entries aside); they carry no information on couplings.
    n_duplicates : int
        Samples equal to an earlier one.
    """

    n_samples: int
    n_spins: int
    encoding: Encoding
    n_missing: int
    n_constant: int
    n_duplicates: int

    def __str__(self) -> str:
        share = self.n_missing / (self.n_samples * self.n_spins)
        return (
            f"{self.n_samples} samples of {self.n_spins} spins, read as {self.encoding}; "
            f"{self.n_missing} missing entries ({share:.1%}), "
            f"{self.n_constant} constant spins, {self.n_duplicates} duplicate samples"
        )


@dataclass
class Reads:
    """How many entries were read since the samples were taken in."""

    entries: int = 0

    def add(self, entries: int) -> None:
        """Count some more."""
        self.entries += entries


class Spins(ABC):
    """A validated sample matrix, whatever way it is stored; make one with :func:`as_spins`.

    Attributes
    ----------
    encoding : str
        How the input was read: "-1/+1", "0/1" or "boolean".
    n_samples, n_spins : int
    values : array of shape (n_samples, n_spins), int8
        -1, +1, or 0 for a missing entry. Of packed spins it is made anew each time.
    reads : Reads
        Shared by samples taken from others.
    """

    encoding: Encoding
    n_samples: int
    n_spins: int
    reads: Reads

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples M and number of spins N."""
        return self.n_samples, self.n_spins

    @property
    def n_entries(self) -> int:
        """Number of entries, M N."""
        return self.n_samples * self.n_spins

    def __len__(self) -> int:
        return self.n_samples

    @property
    @abstractmethod
    def values(self) -> NDArray[np.int8]:
        """All spins as bytes."""

    @abstractmethod
    def block(self, rows: slice) -> NDArray[np.int8]:
        """Return some samples as bytes."""

    @abstractmethod
    def floats(self, rows: slice) -> NDArray[np.float32]:
        """Return some samples as single precision numbers."""

    @abstractmethod
    def take(self, samples: NDArray[np.int64]) -> Spins:
        """Return chosen samples, stored in this process."""

    @abstractmethod
    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return chosen spins of all samples, shape (n_samples, len(sites))."""

    @property
    @abstractmethod
    def n_missing(self) -> int:
        """Entries without a value."""

    @property
    def complete(self) -> bool:
        """Nothing is missing."""
        return self.n_missing == 0

    def blocks(self, entries: int = CHUNK) -> Iterator[slice]:
        """Yield slices of samples, each of about as many entries."""
        step = max(1, entries // self.n_spins)
        for first in range(0, self.n_samples, step):
            yield slice(first, min(first + step, self.n_samples))

    @cached_property
    def n_observed(self) -> NDArray[np.int64]:
        """Entries with a value in each sample, shape (n_samples,)."""
        if self.complete:
            return np.full(self.n_samples, self.n_spins)
        return np.concatenate([np.count_nonzero(self.block(r), axis=1) for r in self.blocks()])

    def some(self, n_samples: int) -> Spins:
        """Return at most that many samples, evenly spread over all of them."""
        if self.n_samples <= n_samples:
            return self
        return self.take(spread(self.n_samples, n_samples))

    @cached_property
    def summary(self) -> SpinSummary:
        """Counts of missing entries, constant spins and duplicate samples."""
        up, down = self._up_and_down()
        return SpinSummary(
            n_samples=self.n_samples,
            n_spins=self.n_spins,
            encoding=self.encoding,
            n_missing=self.n_missing,
            n_constant=int(np.count_nonzero(~(up & down))),
            n_duplicates=self._n_duplicates(),
        )

    def begin_pass(self) -> None:
        """Count a pass over all entries."""
        self.reads.add(self.n_entries)

    def _up_and_down(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which spins are ever +1, and which are ever -1."""
        up, down = np.zeros(self.n_spins, dtype=bool), np.zeros(self.n_spins, dtype=bool)
        for rows in self.blocks():
            s = self.block(rows)
            up |= (s == 1).any(axis=0)
            down |= (s == -1).any(axis=0)
        return up, down

    @abstractmethod
    def _n_duplicates(self) -> int: ...


class DenseSpins(Spins):
    """A byte a spin.

    Parameters
    ----------
    values : array of shape (n_samples, n_spins), int8
        -1, +1, or 0 for a missing entry.
    encoding : str

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.storage import DenseSpins
    >>> DenseSpins(np.array([[1, -1], [0, 1]], dtype=np.int8), "-1/+1").n_observed
    array([2, 1])
    """

    def __init__(
        self, values: NDArray[np.int8], encoding: Encoding, reads: Reads | None = None
    ) -> None:
        self._values = np.ascontiguousarray(values)
        self.encoding = encoding
        self.reads = reads or Reads()
        self.n_samples, self.n_spins = self._values.shape

    @property
    def values(self) -> NDArray[np.int8]:
        """All spins as bytes."""
        return self._values

    def block(self, rows: slice) -> NDArray[np.int8]:
        """Return some samples as bytes."""
        return self._values[rows]

    def floats(self, rows: slice) -> NDArray[np.float32]:
        """Return some samples as single precision numbers."""
        return self._values[rows].astype(np.float32)

    def take(self, samples: NDArray[np.int64]) -> DenseSpins:
        """Return chosen samples."""
        return DenseSpins(self._values[samples], self.encoding, self.reads)

    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return chosen spins of all samples."""
        return self._values[:, sites]

    @cached_property
    def n_missing(self) -> int:
        """Entries without a value."""
        return self._values.size - int(np.count_nonzero(self._values))

    def _n_duplicates(self) -> int:
        return self.n_samples - _n_distinct(self._values)


class PackedSpins(Spins):
    """A bit a spin, and another one if some are missing.

    Parameters
    ----------
    bits : array of shape (n_samples, ceil(n_spins / 8)), uint8
        As :func:`numpy.packbits` makes them: 1 where a spin is +1.
    observed : array of the same shape, or None
        1 where there is a value; None if nothing is missing.
    n_spins : int
    encoding : str

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.storage import PackedSpins
    >>> spins = PackedSpins(np.array([[0b10100000]], dtype=np.uint8), None, 4, "0/1")
    >>> spins.values
    array([[ 1, -1,  1, -1]], dtype=int8)
    """

    def __init__(
        self,
        bits: NDArray[np.uint8],
        observed: NDArray[np.uint8] | None,
        n_spins: int,
        encoding: Encoding,
        reads: Reads | None = None,
    ) -> None:
        self._bits, self._observed = bits, observed
        self.encoding = encoding
        self.reads = reads or Reads()
        self.n_samples, self.n_spins = len(bits), n_spins

    @property
    def bits(self) -> NDArray[np.uint8]:
        """All samples, as :func:`numpy.packbits` makes them but for the padding of a row."""
        return self._bits

    @property
    def values(self) -> NDArray[np.int8]:
        """All spins as bytes, made anew."""
        return self.block(slice(None))

    def block(self, rows: slice) -> NDArray[np.int8]:
        """Return some samples as bytes."""
        return self._unpacked(rows, slice(0, self.n_spins), _SIGNS)

    def floats(
        self, rows: slice, sites: slice | None = None, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Return some samples as single precision numbers, all sites or a tile of them.

        Parameters
        ----------
        rows : slice
        sites : slice, optional
            Starts at a multiple of eight.
        out : array of shape (n, n_bytes, 8), optional
            Memory for a tile of at most that many samples and bytes of spins.
        """
        return self._unpacked(rows, sites or slice(0, self.n_spins), _FLOAT_SIGNS, out)

    def _unpacked(
        self,
        rows: slice,
        sites: slice,
        table: NDArray[Any],
        out: NDArray[np.float32] | None = None,
    ) -> NDArray[Any]:
        tile = rows, slice(sites.start // 8, -(-sites.stop // 8))
        bits = self._bits[tile]
        spins = np.take(table, bits, axis=0) if out is None else _looked_up(table, bits, out)
        spins = spins.reshape(len(bits), -1)
        if self._observed is not None:
            spins *= np.unpackbits(self._observed[tile], axis=1)
        return spins[:, : sites.stop - sites.start]

    def take(self, samples: NDArray[np.int64]) -> PackedSpins:
        """Return chosen samples, packed."""
        observed = None if self._observed is None else self._observed[samples]
        return PackedSpins(self._bits[samples], observed, self.n_spins, self.encoding, self.reads)

    def begin_pass(self) -> None:
        """Count a pass over all entries; what the last one read of a file leaves the memory."""
        super().begin_pass()
        for plane in (self._bits, self._observed):
            give_back(plane)

    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return chosen spins of all samples."""
        spins = 2 * _column_bits(self._bits, sites) - 1
        if self._observed is not None:
            spins *= _column_bits(self._observed, sites)
        return spins

    def transposed(self) -> PackedSpins:
        """Return samples and spins exchanged, a few bytes of each sample at a time.

        Examples
        --------
        >>> import numpy as np
        >>> from dualtap.spins.storage import PackedSpins
        >>> PackedSpins(np.array([[160]], dtype=np.uint8), None, 3, "0/1").transposed().values
        array([[ 1],
               [-1],
               [ 1]], dtype=int8)
        """
        observed = None if self._observed is None else _transposed(self._observed, self.n_spins)
        bits = _transposed(self._bits, self.n_spins)
        return PackedSpins(bits, observed, self.n_samples, self.encoding)

    @cached_property
    def n_missing(self) -> int:
        """Entries without a value."""
        if self._observed is None:
            return 0
        return self.n_samples * self.n_spins - int(np.bitwise_count(self._observed).sum())

    def _n_duplicates(self) -> int:
        if self._observed is None:
            return self.n_samples - _n_distinct(self._bits)
        return self.n_samples - _n_distinct(np.hstack([self._bits, self._observed]))


def _looked_up(
    table: NDArray[Any], bits: NDArray[np.uint8], out: NDArray[np.float32]
) -> NDArray[Any]:
    """Return rows of a table in memory that is there already."""
    result = out[: len(bits), : bits.shape[1]]
    # NumPy makes wide indices of the bytes: few at a time, or each is fresh memory again.
    for k in range(0, len(bits), _AT_ONCE):
        part = slice(k, k + _AT_ONCE)
        np.take(table, bits[part], axis=0, out=result[part], mode="clip")
    return result


def joined(parts: Sequence[PackedSpins]) -> PackedSpins:
    """Return the samples of several parts, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.storage import PackedSpins, joined
    >>> one = PackedSpins(np.array([[160]], dtype=np.uint8), None, 3, "0/1")
    >>> joined([one, one]).shape
    (2, 3)
    """
    bits = np.concatenate([part._bits for part in parts])
    observed = None
    if any(part._observed is not None for part in parts):
        whole = np.packbits(np.ones((1, parts[0].n_spins), dtype=bool), axis=1)
        observed = np.concatenate(
            [
                np.repeat(whole, len(part), axis=0) if part._observed is None else part._observed
                for part in parts
            ]
        )
    return PackedSpins(bits, observed, parts[0].n_spins, parts[0].encoding)


def spread(n: int, k: int) -> NDArray[np.int64]:
    """Return at most k of the numbers below n, evenly spread.

    Examples
    --------
    >>> from dualtap.spins.storage import spread
    >>> spread(9, 3)
    array([0, 4, 8])
    """
    return np.linspace(0, n - 1, min(n, k)).astype(np.int64)


def _n_distinct(rows: NDArray[Any]) -> int:
    # A row of bytes is one opaque value: sorting those finds duplicates without a copy.
    return len(np.unique(rows.view(np.dtype((np.void, rows.shape[1])))))


def _column_bits(packed: NDArray[np.uint8], sites: NDArray[np.int64]) -> NDArray[np.int8]:
    shift = (7 - sites % 8).astype(np.uint8)
    return ((packed[:, sites // 8] >> shift) & 1).astype(np.int8)


def _transposed(packed: NDArray[np.uint8], n_columns: int) -> NDArray[np.uint8]:
    result = np.empty((n_columns, -(-len(packed) // 8)), dtype=np.uint8)
    step = max(1, CHUNK // (8 * len(packed)))
    for first in range(0, packed.shape[1], step):
        bits = np.unpackbits(packed[:, first : first + step], axis=1)
        rows = slice(8 * first, min(8 * first + bits.shape[1], n_columns))
        result[rows] = np.packbits(bits.T[: rows.stop - rows.start], axis=1)
    return result
