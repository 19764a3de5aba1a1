"""Samples in text: ``.csv`` and ``.tsv``, plain or gzipped, read and written a block at a time."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Sequence
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dualtap._files import open_regular
from dualtap.io.collecting import (
    MISSING,
    Collector,
    Request,
    SampleFile,
    default_names,
    holds_text,
    is_index,
    position,
    result,
    row_holds_text,
    spin_code,
)
from dualtap.io.lines import Block, Lines, blocks
from dualtap.io.spellings import UNKNOWN, spelled_codes
from dualtap.spins import Spins

_LOOKED_AT = 1000  # rows, to tell names from spins


def read_text(request: Request, delimiter: str) -> SampleFile:
    r"""Read a table of text.

    Parameters
    ----------
    request : Request
    delimiter : str
        One character.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.text import read_text
    >>> path = pathlib.Path(tempfile.mkdtemp(), "votes.csv")
    >>> _ = path.write_text(",tax,school,party\nAnn,1,0,green\nBob,,1,blue\n")
    >>> file = read_text(Request(path, labels="party"), ",")
    >>> file.spins.values.tolist(), file.names, file.sample_names, file.labels.tolist()
    ([[1, -1], [0, 1]], ('tax', 'school'), ('Ann', 'Bob'), ['green', 'blue'])
    """
    table = _Table(request)
    with open_regular(request.path) as file:
        size, n_read = os.fstat(file.fileno()).st_size, 0
        stream = gzip.GzipFile(fileobj=file) if request.path.suffix.lower() == ".gz" else file
        for block in blocks(request, stream, ord(delimiter)):
            n_read += len(block.data)
            request.check_expansion(size, n_read)
            table.add(block)
    return table.finish()


class _Layout(NamedTuple):
    """Which columns are what."""

    n_columns: int
    names: list[str] | None
    has_index: bool
    labels: int | None

    @property
    def spins(self) -> NDArray[np.int64]:
        columns = np.arange(self.n_columns)
        others = ([0] if self.has_index else []) + ([] if self.labels is None else [self.labels])
        return np.delete(columns, others)


class _Table:
    """A table being read: its layout is known from the first block, its rows then add up."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._collector = Collector(request)
        self._layout: _Layout | None = None
        self._rows: list[str] = []
        self._labels: list[str] | None = None

    def add(self, block: Block) -> None:
        """Take in some lines."""
        layout = self._layout
        if layout is not None and not layout.has_index and layout.labels is None:
            values = block.digits(layout.n_columns)
            if values is not None:
                self._collector.add(values)
                return
        lines = block.cut()
        if not len(lines.counts) and layout is not None:
            return
        if layout is None:
            layout, lines = _first_look(self._request, lines)
            self._layout = layout
        self._add_rows(lines, layout)

    def _add_rows(self, lines: Lines, layout: _Layout) -> None:
        ragged = lines.counts != layout.n_columns
        if ragged.any():
            row = int(np.argmax(ragged))
            line = lines.line_number(int(lines.counts[:row].sum()))
            raise lines.request.error(
                f"line {line} has {lines.counts[row]} fields, and {layout.n_columns} columns are "
                "expected from the first lines"
            )
        fields = np.arange(len(lines.starts)).reshape(-1, layout.n_columns)
        if layout.has_index:
            rows = lines.words(fields[:, 0])
            if self._request.transpose and self._request.labels in rows:
                row = rows.index(self._request.labels)
                self._labels = lines.words(fields[row, 1:])
                fields, rows = np.delete(fields, row, axis=0), rows[:row] + rows[row + 1 :]
            self._rows += rows
        if layout.labels is not None:
            self._labels = self._labels or []
            self._labels += lines.words(fields[:, layout.labels])
        if len(fields):
            self._collector.add(_values(lines, fields, layout))

    def finish(self) -> SampleFile:
        """Return what was read."""
        layout, request = self._layout, self._request
        if layout is None:
            raise request.error("it is empty")
        if request.transpose and request.labels is not None and self._labels is None:
            position(request, self._rows if layout.has_index else None, "row")
        return result(
            request,
            self._collector.finish(),
            columns=None if layout.names is None else [layout.names[k] for k in layout.spins],
            rows=self._rows if layout.has_index else None,
            labels=self._labels,
        )


def _first_look(request: Request, lines: Lines) -> tuple[_Layout, Lines]:
    """Return the layout of a table, and its first lines without that of the names."""
    if not len(lines.counts):
        raise request.error("it is empty, or begins with too many empty lines")
    names = lines.first()
    below = lines.word(len(names)) if len(lines.counts) > 1 else None
    has_names = _is_header(names, below)
    if has_names:
        lines = lines.without_first()
        if below is None:
            raise request.error("there is a line of names, and no line of values")
    column = _first_column(lines)
    if has_names and lines.counts[0] == len(names) + 1 and {None, UNKNOWN} & set(column):
        names = ["", *names]  # as R writes it: the names of rows have no name
    labels = None
    if request.labels is not None and not request.transpose:
        labels = position(request, names if has_names else None, "column")
    has_index = (
        labels != 0
        and len(names) > 1
        and is_index(
            names[0] if has_names else None,
            text=None in column and set(column) <= {None, MISSING},
            spins=not {None, UNKNOWN} & set(column),
        )
    )
    layout = _Layout(len(names), names if has_names else None, has_index, labels)
    if len(layout.spins) < 2 and not request.transpose:
        raise request.error(
            f"its first lines have {len(layout.spins)} column of spins, where at least two are "
            "needed; fields are separated by commas in .csv, by tabs in .tsv"
        )
    return layout, lines


def _first_column(lines: Lines) -> list[int | None]:
    """Return what the first fields of some lines stand for."""
    first_fields = np.cumsum(lines.counts[:_LOOKED_AT]) - lines.counts[:_LOOKED_AT]
    return [_code(word) for word in lines.words(first_fields)]


def _code(word: str) -> int | None:
    """Return what a word stands for, UNKNOWN being any other number."""
    try:
        return spin_code(word)
    except ValueError:
        return UNKNOWN


def _is_header(words: list[str], below: str | None) -> bool:
    """Whether the first line names columns: it holds text, or counts them.

    Text in its first field only may be the name of a row; then the field ``below`` is text as well.
    Above names of rows there may be nothing.
    """
    row_is_named = below is not None and _code(below) is None
    if any(_code(word) is None for word in set(words[1:])) or (not words[0] and row_is_named):
        return True
    if _code(words[0]) is None:
        return not row_is_named or _counts(words[1:])
    return _counts(words) or _counts(words[1:])


def _counts(words: list[str]) -> bool:
    """Whether words are numbers one by one, and not only 0 and 1."""
    if len(words) < 3 or words[0] not in ("0", "1"):
        return False
    return words == [str(int(words[0]) + k) for k in range(len(words))]


def _values(lines: Lines, fields: NDArray[np.int64], layout: _Layout) -> NDArray[Any]:
    """Return the spins of some lines as numbers, NaN where one is missing."""
    if layout.has_index or layout.labels is not None:
        fields = fields[:, layout.spins]
    starts, ends = lines.starts, lines.ends
    if fields.size < len(starts):
        starts, ends = starts[fields.ravel()], ends[fields.ravel()]
    codes = spelled_codes(lines.data, starts, ends)
    wrong = np.flatnonzero(codes == UNKNOWN)
    if wrong.size:
        raise _error(lines, fields, int(wrong[0]), layout)
    codes = codes.reshape(fields.shape)
    missing = codes == MISSING
    return np.where(missing, np.float32(np.nan), codes) if missing.any() else codes


def _error(lines: Lines, fields: NDArray[np.int64], place: int, layout: _Layout) -> ValueError:
    """Return what is wrong with a field."""
    row, k = divmod(place, fields.shape[1])
    column = int(layout.spins[k])
    word = lines.word(int(fields[row, k]))
    name = None if layout.names is None else layout.names[column]
    where = f"line {lines.line_number(int(fields[row, k]))}, column {column + 1}"
    where += "" if name is None else f" ({name[:80]!r})"
    try:
        spin_code(word)
    except ValueError as error:
        return lines.request.error(
            f"{where} holds {error}; spins are -1/+1, 0/1 or true/false, and a missing one is "
            "empty, NA, NaN, None, null or ?"
        )
    if lines.request.transpose and layout.has_index:
        if all(_code(other) in (None, MISSING) for other in lines.words(fields[row])):
            name = lines.word(int(fields[row, k]) - column)
            return lines.request.error(row_holds_text(name, word))
    elif all(_code(other) in (None, MISSING) for other in lines.words(fields[:, k])):
        return lines.request.error(holds_text(column, name, word))
    return lines.request.error(
        f"{where} holds {word[:40]!r}, which is not a spin: those are -1/+1, 0/1 or true/false, "
        "and a missing one is empty, NA, NaN, None, null or ?"
    )


def write_text(
    file: IO[bytes] | gzip.GzipFile,
    spins: Spins,
    delimiter: str,
    *,
    names: Sequence[str] | None,
    side: Sequence[tuple[str, Sequence[str]]],
) -> None:
    r"""Write samples as text.

    Parameters
    ----------
    file : binary file
    spins : Spins
    delimiter : str
    names : sequence of str, optional
        Of the spins; the first line, which columns of text need.
    side : sequence of (name, texts)
        Columns of text: that of the names of samples comes first and its name is empty.

    Examples
    --------
    >>> import io
    >>> from dualtap.io.text import write_text
    >>> from dualtap.spins import as_spins
    >>> file = io.BytesIO()
    >>> write_text(file, as_spins([[1, None]]), ",", names=["a", "b"], side=[("label", ["x"])])
    >>> file.getvalue()
    b'a,b,label\n1,,x\n'
    """
    text = io.TextIOWrapper(
        cast("IO[bytes]", file), encoding="utf-8", newline="", write_through=True
    )
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    before = [column for column in side if not column[0]]
    after = [column for column in side if column[0]]
    if names is None and side:
        names = default_names(spins)
    if names is not None:
        writer.writerow([*(name for name, _ in before), *names, *(name for name, _ in after)])
    low = "-1" if spins.encoding == "-1/+1" else "0"
    spelling = np.array([low, "", "1"], dtype=object)
    for rows in spins.blocks(2**20):
        words = spelling[spins.block(rows) + 1].tolist()
        for k, line in enumerate(words, start=rows.start):
            writer.writerow([*(t[k] for _, t in before), *line, *(t[k] for _, t in after)])
    text.detach()
