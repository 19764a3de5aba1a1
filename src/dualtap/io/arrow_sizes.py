"""How much the batches of an Arrow file unpack to, which Arrow tells only once it has done it.

An Arrow file ends in a table of its batches. Each begins with the places of its buffers, and each
buffer, if it is compressed, with the number of bytes it had. Both tables are flatbuffers: a table
starts with the distance to a list of the places of its fields.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator

_MAGIC = b"ARROW1"
_BLOCK, _BUFFER = 24, 16  # bytes of a place of a batch, and of a buffer
_DICTIONARIES, _BATCHES = 2, 3  # fields of the table at the end
_HEADER_KIND, _HEADER = 1, 2  # fields of the table before a batch
_DICTIONARY = 2
_DATA = 1  # field of a dictionary
_BUFFERS, _COMPRESSION = 2, 3  # fields of a batch


def unpacked_sizes(data: mmap.mmap | bytes) -> Iterator[int]:
    """Yield the bytes that each batch of an Arrow file takes when it is unpacked.

    Parameters
    ----------
    data : mmap or bytes
        The whole file.

    Raises
    ------
    ValueError
        If it is no Arrow file, or a damaged one.

    Examples
    --------
    >>> import io, numpy as np, pyarrow as pa, pyarrow.feather
    >>> from dualtap.io.arrow_sizes import unpacked_sizes
    >>> file = io.BytesIO()
    >>> pa.feather.write_feather(pa.table({"a": np.zeros(9999, np.int8)}), file, "zstd")
    >>> list(unpacked_sizes(file.getvalue()))
    [9999]
    """
    if data[:6] != _MAGIC or data[-6:] != _MAGIC:
        raise ValueError("it does not begin and end as an Arrow file does")
    try:
        (length,) = struct.unpack_from("<i", data, len(data) - 10)
        if not 0 <= length <= len(data) - 10:
            raise ValueError(f"its table of contents claims {length} bytes")
        footer = _Table.root(data, len(data) - 10 - length)
        for field in (_DICTIONARIES, _BATCHES):
            for at in footer.vector(field, _BLOCK):
                offset, metadata = struct.unpack_from("<qi", data, at)
                yield _unpacked(data, offset, metadata)
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"its table of contents is damaged: {error}") from None


class _Table:
    """A table of a flatbuffer."""

    def __init__(self, data: mmap.mmap | bytes, at: int) -> None:
        self._data, self._at = data, at

    @classmethod
    def root(cls, data: mmap.mmap | bytes, at: int) -> _Table:
        return cls(data, at + int(_number("<I", data, at)))

    def place(self, field: int) -> int | None:
        """Return where a field is; None if it is left out."""
        fields = self._at - _number("<i", self._data, self._at)
        n_bytes = _number("<H", self._data, fields)
        entry = 4 + 2 * field
        distance = _number("<H", self._data, fields + entry) if entry < n_bytes else 0
        return self._at + distance if distance else None

    def table(self, field: int) -> _Table | None:
        at = self.place(field)
        return None if at is None else _Table(self._data, at + _number("<I", self._data, at))

    def vector(self, field: int, n_bytes: int) -> Iterator[int]:
        """Yield where the entries of a list are, each of so many bytes."""
        at = self.place(field)
        if at is None:
            return
        start = at + _number("<I", self._data, at)
        length = _number("<I", self._data, start)
        if start + 4 + length * n_bytes > len(self._data):
            raise IndexError(f"a list of {length} is longer than the file")
        yield from range(start + 4, start + 4 + length * n_bytes, n_bytes)


def _number(kind: str, data: mmap.mmap | bytes, at: int) -> int:
    if at < 0:
        raise IndexError("it points before the file")
    number: int = struct.unpack_from(kind, data, at)[0]
    return number


def _unpacked(data: mmap.mmap | bytes, offset: int, metadata: int) -> int:
    """Return the bytes of one batch, whose metadata begin there and are so long."""
    start = 8 if _number("<I", data, offset) == 0xFFFFFFFF else 4  # older files lack a marker
    message = _Table.root(data, offset + start)
    batch, kind = message.table(_HEADER), message.place(_HEADER_KIND)
    if batch is not None and kind is not None and _number("<B", data, kind) == _DICTIONARY:
        batch = batch.table(_DATA)
    if batch is None:
        return 0
    compressed, total = batch.table(_COMPRESSION) is not None, 0
    for at in batch.vector(_BUFFERS, _BUFFER):
        place, length = struct.unpack_from("<qq", data, at)
        size = length
        if compressed and length >= 8:
            size = _number("<q", data, offset + metadata + place)
        total += length if size < 0 else size  # -1 stands for a buffer left as it is
    return total
