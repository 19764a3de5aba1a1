"""Lines of text cut into fields, a block of bytes at a time.

NumPy finds all separators of a block at once; one counts if the quotes before it are even in
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from gzip import GzipFile
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._files import reading
from dualtap.io.collecting import Request

_BLOCK = 2**21
_LONGEST_LINE = 2**24
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Block(NamedTuple):
    r"""Some complete lines of a file.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.lines import Block
    >>> Block(Request(pathlib.Path("a.csv")), b"1,0\n0,0\n", ord(","), first_line=1).digits(2)
    array([[1, 0],
           [0, 0]], dtype=int8)
    """

    request: Request
    data: bytes
    delimiter: int
    first_line: int

    def digits(self, n_columns: int) -> NDArray[np.int8] | None:
        """Return the values if every field is one character, 0 or 1; None if not."""
        length = self.data.find(b"\n") + 1
        if length - 2 * n_columns not in (0, 1) or len(self.data) % length:
            return None
        grid = np.frombuffer(self.data, dtype=np.uint8).reshape(-1, length)
        values = grid[:, 0 : 2 * n_columns : 2]
        between = grid[:, 1 : 2 * n_columns - 1 : 2]
        at_end = grid[:, 2 * n_columns - 1 :]
        plain = (
            bool((between == self.delimiter).all())
            and bool((at_end == ([_NEWLINE] if length % 2 == 0 else [_RETURN, _NEWLINE])).all())
            and bool((values >> 1 == ord("0") >> 1).all())
        )
        return (values & 1).astype(np.int8) if plain else None

    def cut(self) -> Lines:
        """Return the fields of all lines."""
        array = np.frombuffer(self.data, dtype=np.uint8)
        newline = array == _NEWLINE
        separator = ((array == self.delimiter) | newline) & _outside_quotes(self.data, array)
        ends = np.flatnonzero(separator)
        last = np.flatnonzero(newline[ends])
        starts = np.empty_like(ends)
        starts[:1] = 0
        starts[1:] = ends[:-1] + 1
        counts = np.diff(last, prepend=-1)
        at = ends[last]
        ends[last] -= (array[at - 1] == _RETURN) & (at > starts[last])
        empty = (counts == 1) & (ends[last] == starts[last])
        if empty.any():
            kept = np.ones(len(ends), dtype=bool)
            kept[last[empty]] = False
            starts, ends, counts = starts[kept], ends[kept], counts[~empty]
        return Lines(*self, starts, ends, counts)


@dataclass(frozen=True)
class Lines:
    r"""Lines cut into fields; empty ones are left out.

    Attributes
    ----------
    request : Request
        To name the file in errors.
    data : bytes
    delimiter : int
    first_line : int
        The line of the file in which ``data`` begin, counted from one.
    starts, ends : array of shape (n_fields,)
        Places in ``data``.
    counts : array of shape (n_lines,)
        How many fields each line has.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.lines import Block
    >>> lines = Block(Request(pathlib.Path("a.csv")), b'a,"b,c"\n', ord(","), first_line=1).cut()
    >>> lines.words(range(2))
    ['a', 'b,c']
    """

    request: Request
    data: bytes
    delimiter: int
    first_line: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    counts: NDArray[np.int64]

    def first(self) -> list[str]:
        """Return all fields of the first line as text."""
        n = int(self.counts[0])
        start, end = int(self.starts[0]), int(self.ends[n - 1])
        if self.data.find(b'"', start, end) >= 0:
            return self.words(range(n))
        text = self._decoded(start, end)
        return [word.strip() for word in text.split(chr(self.delimiter))]

    def without_first(self) -> Lines:
        """Return all lines but the first."""
        n = int(self.counts[0])
        return replace(self, starts=self.starts[n:], ends=self.ends[n:], counts=self.counts[1:])

    def line_number(self, field: int) -> int:
        """Return the line of the file that a field is in, counted from one."""
        return self.first_line + self.data.count(b"\n", 0, int(self.starts[field]))

    def word(self, field: int) -> str:
        """Return a field as text, without its quotes."""
        word = self._decoded(int(self.starts[field]), int(self.ends[field])).strip()
        if len(word) > 1 and word[0] == word[-1] == '"':
            word = word[1:-1].replace('""', '"')
        return word

    def _decoded(self, start: int, end: int) -> str:
        try:
            return self.data[start:end].decode()
        except UnicodeDecodeError:
            line = self.first_line + self.data.count(b"\n", 0, start)
            raise self.request.error(f"line {line} is not text in UTF-8") from None

    def words(self, fields: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return some fields as text."""
        return [self.word(int(field)) for field in fields]


def blocks(request: Request, stream: IO[bytes] | GzipFile, delimiter: int) -> Iterator[Block]:
    r"""Yield complete lines, about two megabytes at a time; at first three lines if there are.

    Examples
    --------
    >>> import io, pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.lines import blocks
    >>> [block.data for block in blocks(Request(pathlib.Path("a.csv")), io.BytesIO(b"1,0"), 44)]
    [b'1,0\n']
    """
    data, line, enough = b"", 1, 3
    while True:
        with reading(request.path):
            block = stream.read(_BLOCK)
        if line == 1 and not data:
            block = block.removeprefix(_BYTE_ORDER_MARK)
        if b"\0" in block:
            raise request.error("it is not a text file in UTF-8: it holds zero bytes")
        data += block if block or not data or data.endswith(b"\n") else b"\n"
        length = _complete(data)
        few = data.count(b"\n", 0, length) < enough
        if block and few and len(data) - length <= _LONGEST_LINE:
            continue
        lines, data = data[:length], data[length:]
        first, line, enough = line, line + lines.count(b"\n"), 1
        if len(data) > _LONGEST_LINE:
            raise request.error(f"line {line} is longer than {_LONGEST_LINE // 2**20} MB")
        if data and not block:
            raise request.error(f"a quote opened in line {line} is never closed")
        if lines:
            yield Block(request, lines, delimiter, first)
        if not block:
            return


def _complete(data: bytes) -> int:
    """Return the length of all complete lines."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    array = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero((array == _NEWLINE) & _outside_quotes(data, array))
    return int(ends[-1]) + 1 if ends.size else 0


def _outside_quotes(data: bytes, array: NDArray[np.uint8]) -> NDArray[np.bool_] | bool:
    if b'"' not in data:
        return True
    outside: NDArray[np.bool_] = (np.cumsum(array == _QUOTE, dtype=np.uint8) & 1) == 0
    return outside
