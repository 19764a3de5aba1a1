"""Spins from blocks of numbers: which two values there are, and what is missing."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.numbers import numbers, third_value
from dualtap.spins.packed import PackedSpins
from dualtap.spins.storage import DenseSpins, Encoding, Spins

Mask = NDArray[np.bool_]

DENSE = 2**24
"""Most entries kept as bytes: 17 MB of them, 67 MB as floats, of which a fit holds several."""
_SLAB = 2**24
"""Bytes taken at a time where the number of samples is not known."""


@dataclass
class Seen:
    """The values that samples hold, which decide how they are read.

    Attributes
    ----------
    zero_is_missing : bool
    boolean : bool
        All of them are of boolean type.
    first : dict
        Row and column of the first 0 and the first -1.
    any_observed : bool
    """

    zero_is_missing: bool = False
    boolean: bool = True
    first: dict[int, tuple[int, int]] = field(default_factory=dict)
    any_observed: bool = False

    def encoding(self) -> Encoding:
        """Return the encoding, or say that there are three values."""
        if self.boolean:
            return "boolean"
        if self.zero_is_missing or 0 not in self.first:
            return "-1/+1"
        if -1 in self.first:
            row, column = self.first[0]
            raise ValueError(
                f"X holds -1, 0 and +1 (the first 0 at row {row}, column {column}); "
                "pass zero_is_missing=True if 0 marks a missing entry"
            )
        return "0/1"

    def also(self, later: Seen) -> Seen:
        """Return what these samples and later ones hold together."""
        return Seen(
            self.zero_is_missing,
            self.boolean and later.boolean,
            later.first | self.first,
            self.any_observed or later.any_observed,
        )

    def checked(self, n_samples: int, n_spins: int) -> Encoding:
        """Return the encoding of data of this shape, or say why they are no data."""
        _check_shape(n_samples, n_spins)
        if not self.any_observed:
            raise ValueError("X has no observed entry: every value is missing")
        return self.encoding()


class SpinsBuilder:
    """Collect samples block by block; one bit per spin is kept once there are many.

    The encoding is what all blocks together say: -1/+1, 0/1 or boolean.

    Parameters
    ----------
    zero_is_missing : bool
        The data are -1/+1 and 0 marks a missing entry.
    n_samples : int, optional
        If known, memory is taken once.
    first_row : int
        Number of the first sample, for messages.

    Attributes
    ----------
    seen : Seen

    Examples
    --------
    >>> from dualtap.spins import SpinsBuilder
    >>> builder = SpinsBuilder()
    >>> builder.add([[0, 1]])
    >>> builder.add([[1, None], [1, 1]])
    >>> builder.finish().values
    array([[-1,  1],
           [ 1,  0],
           [ 1,  1]], dtype=int8)
    """

    def __init__(
        self, *, zero_is_missing: bool = False, n_samples: int | None = None, first_row: int = 0
    ) -> None:
        self.seen = Seen(zero_is_missing)
        self._first_row, self._expected = first_row, n_samples
        self._n_samples, self._n_spins = 0, -1
        self._values: list[NDArray[np.int8]] | None = []
        self._bits, self._observed = _Rows(n_samples), _Rows(n_samples)

    def add(self, chunk: Any) -> None:
        """Take in some samples.

        Parameters
        ----------
        chunk : array-like of shape (n, n_spins)
            Boolean, integer, floating, or objects that are numbers or None.
        """
        array = numbers(chunk, self._row)
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {array.ndim}D array instead: X must have shape "
                "(n_samples, n_spins). Reshape your data with X.reshape(1, -1) if it is one sample."
            )
        if self._n_spins not in (-1, array.shape[1]):
            raise ValueError(
                f"X has {array.shape[1]} values in row {self._row}, "
                f"and {self._n_spins} in the rows before"
            )
        self._n_spins = array.shape[1]
        up, missing = self._read(array)
        self.seen.any_observed |= missing is None or not missing.all()
        self._n_samples += len(array)
        self._keep(up, missing)

    def finish(self, *, transpose: bool = False) -> Spins:
        """Return what was collected, with samples and spins exchanged if ``transpose``."""
        shape = self._n_samples, max(self._n_spins, 0)
        encoding = self.seen.checked(*(shape[::-1] if transpose else shape))
        if self._values is not None:
            values = self._values[0] if len(self._values) == 1 else np.concatenate(self._values)
            return DenseSpins(values.T if transpose else values, encoding)
        spins = self._packed(encoding)
        return spins.transposed() if transpose else spins

    def part(self) -> PackedSpins:
        """Return what was collected as a part of larger data: packed, however little it is.

        Whether all parts together are data, and how they are to be read, ``seen`` of all of them
        will tell.
        """
        self._pack_values()
        return self._packed(self.seen.encoding())

    def _packed(self, encoding: Encoding) -> PackedSpins:
        observed = self._observed.finish() if self._observed else None
        return PackedSpins(self._bits.finish(), observed, self._n_spins, encoding)

    @property
    def _row(self) -> int:
        """Number of the next sample."""
        return self._first_row + self._n_samples

    def _read(self, array: NDArray[Any]) -> tuple[Mask, Mask | None]:
        """Return where spins are +1, and where they are missing; remember the values seen."""
        up: Mask = array == 1
        if array.dtype.kind == "b" or not array.size:
            return up, None
        self.seen.boolean = False
        # One value after another, until they are all that there is: most data hold two.
        left = array.size - np.count_nonzero(up)
        found: dict[int, Mask] = {}
        for value in (-1, 0):
            if left:
                found[value] = array == value
                left -= np.count_nonzero(found[value])
        missing: Mask | None = None
        if left and array.dtype.kind == "f":
            missing = np.isnan(array)
            left -= np.count_nonzero(missing)
        if left:
            known = np.logical_or.reduce([up, *found.values()])
            raise self._third_value(array, known if missing is None else known | missing)
        self._remember(found)
        if self.seen.zero_is_missing and 0 in found:
            missing = found[0] if missing is None else found[0] | missing
        return up, missing if missing is not None and missing.any() else None

    def _remember(self, found: dict[int, Mask]) -> None:
        """Keep where 0 and -1 come first."""
        for value, where in found.items():
            if value not in self.seen.first and where.any():
                row, column = divmod(int(np.argmax(where)), where.shape[1])
                self.seen.first[value] = self._row + row, column
        self.seen.encoding()  # says what is wrong at once, not after the whole file

    def _third_value(self, array: NDArray[Any], known: NDArray[np.bool_]) -> ValueError:
        row, column = divmod(int(np.argmin(known)), array.shape[1])
        value = array[row, column].item()
        if np.isinf(value):
            place = f"row {self._row + row}, column {column}"
            return ValueError(f"X contains infinity, at {place}")
        return third_value(value, self._row + row, column)

    def _keep(self, up: Mask, missing: Mask | None) -> None:
        expected = max(self._expected or 0, self._n_samples)
        if self._values is not None and expected * self._n_spins <= DENSE:
            self._values.append(_signs(up, missing))
            return
        self._pack_values()
        self._pack(up, missing)

    def _pack_values(self) -> None:
        """Go over from bytes to bits."""
        held, self._values = self._values or [], None
        for values in held:
            self._pack(values > 0, None if values.all() else values == 0)

    def _pack(self, up: Mask, missing: Mask | None) -> None:
        n_before = self._bits.n_rows
        self._bits.add(np.packbits(up, axis=1))
        if missing is None and not self._observed:
            return
        every = np.packbits(np.ones((1, self._n_spins), dtype=bool), axis=1)
        if not self._observed:
            self._observed.add(np.broadcast_to(every, (n_before, every.shape[1])))
        if missing is None:
            self._observed.add(np.broadcast_to(every, (len(up), every.shape[1])))
        else:
            self._observed.add(np.packbits(~missing, axis=1))


def _signs(up: Mask, missing: Mask | None) -> NDArray[np.int8]:
    """Return +1, -1 and 0: arithmetic of bytes is many times faster than picking values."""
    values = up.view(np.int8) * np.int8(2)
    values -= np.int8(1)
    if missing is not None:
        values *= (~missing).view(np.int8)
    return values


def most_in_memory() -> int:
    """Return how many bytes of packed spins are kept in memory: half of what the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not on this system
        return 2**32


class _Rows:
    """Rows of bytes, put together without holding them twice.

    They fill slabs: one of the size that was promised, then others large enough for their memory
    to go back to the system when they are copied into one array and let go. Rows that memory
    cannot hold go to a temporary file without a name, which is mapped and ends with the array.
    """

    def __init__(self, expected: int | None) -> None:
        self._expected = expected
        self._slabs: list[NDArray[np.uint8]] = []
        self._free = 0  # rows, at the end of the last slab
        self._file: IO[bytes] | None = None
        self._width = 0
        self.n_rows = 0

    def __bool__(self) -> bool:
        return self.n_rows > 0

    def add(self, rows: NDArray[np.uint8]) -> None:
        self._width = rows.shape[1]
        n_rows = max(self._expected or 0, self.n_rows + len(rows))
        if self._file is None and n_rows * rows.shape[1] > most_in_memory():
            self._to_disk()
        if self._file is not None:
            self._file.write(np.ascontiguousarray(rows).data)
            self.n_rows += len(rows)
            return
        while len(rows):
            if not self._free:
                promised = 0 if self._slabs else self._expected or 0
                self._free = promised or max(_SLAB // rows.shape[1], 1)
                self._slabs.append(np.empty((self._free, rows.shape[1]), dtype=np.uint8))
            slab, n = self._slabs[-1], min(len(rows), self._free)
            first = len(slab) - self._free
            slab[first : first + n] = rows[:n]
            self._free -= n
            self.n_rows += n
            rows = rows[n:]

    def finish(self) -> NDArray[np.uint8]:
        if self._file is not None:
            self._file.flush()
            mapped = np.memmap(self._file, np.uint8, "r", shape=(self.n_rows, self._width))
            self._file.close()  # the map keeps what it needs
            return mapped
        slabs, self._slabs = self._slabs[::-1], []
        if len(slabs) == 1:
            return slabs[0][: self.n_rows]
        result = np.empty((self.n_rows, self._width), dtype=np.uint8)
        first = 0
        while slabs:
            part = slabs.pop()[: self.n_rows - first]
            result[first : first + len(part)] = part
            first += len(part)
        return result

    def _to_disk(self) -> None:
        """Write what there is to a file, and leave room for no more."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the map of it)
        left = self.n_rows
        for slab in self._slabs:
            file.write(slab[:left].data)
            left -= min(left, len(slab))
        self._slabs, self._free, self._file = [], 0, file


def _check_shape(n_samples: int, n_spins: int) -> None:
    if n_samples == 0 or n_spins == 0:
        raise ValueError(
            f"X is empty: found {n_samples} sample(s) and {n_spins} feature(s) "
            f"(shape={(n_samples, n_spins)}) while a minimum of 1 is required."
        )
    if n_spins < 2:
        raise ValueError(
            "X has 1 feature(s) (spins); couplings need at least two. Is it transposed?"
        )
