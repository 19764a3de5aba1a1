"""Spins at a bit each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.numbers import give_back
from dualtap.spins.storage import CHUNK, Encoding, Spins, different_rows, weights_of

_SIGNS = 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int8) - 1
_FLOAT_SIGNS = _SIGNS.astype(np.float32)
"""The eight spins of each byte; picking rows of this table unpacks faster than BLAS multiplies."""

_AT_ONCE = 64


class PackedSpins(Spins):
    """A bit per spin, and another one if some are missing.

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
    >>> from dualtap.spins.packed import PackedSpins
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
    ) -> None:
        self._bits, self._observed = bits, observed
        self.encoding = encoding
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
        bits = self._bits[samples]
        taken = PackedSpins(bits, observed, self.n_spins, self.encoding)
        return taken.weighted(weights_of(self, samples))

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
        >>> from dualtap.spins.packed import PackedSpins
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

    def row_bytes(self) -> NDArray[np.uint8]:
        """Return bytes that differ between rows that do, shape (n_samples, n_bytes)."""
        planes = [plane for plane in (self._bits, self._observed) if plane is not None]
        if self.n_spins % 8:  # the padding says nothing
            whole = _all_ones(self.n_spins)
            planes = [plane & whole for plane in planes]
        return planes[0] if len(planes) == 1 else np.hstack(planes)

    def _n_duplicates(self) -> int:
        return self.n_samples - len(different_rows(self.row_bytes()))


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
    >>> from dualtap.spins.packed import PackedSpins, joined
    >>> one = PackedSpins(np.array([[160]], dtype=np.uint8), None, 3, "0/1")
    >>> joined([one, one]).shape
    (2, 3)
    """
    bits = np.concatenate([part._bits for part in parts])
    observed = None
    if any(part._observed is not None for part in parts):
        whole = _all_ones(parts[0].n_spins)
        observed = np.concatenate(
            [
                np.repeat(whole, len(part), axis=0) if part._observed is None else part._observed
                for part in parts
            ]
        )
    return PackedSpins(bits, observed, parts[0].n_spins, parts[0].encoding)


def _all_ones(n_spins: int) -> NDArray[np.uint8]:
    """Return the bits of a sample whose spins are all up, shape (1, n_bytes)."""
    return np.packbits(np.ones((1, n_spins), dtype=bool), axis=1)


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
