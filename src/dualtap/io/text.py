"""Samples in text: ``.csv`` and ``.tsv``, plain or gzipped, read and written a block at a time."""

from __future__ import annotations

import csv
import gzip
import io
import os
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from dualtap._files import open_regular
from dualtap.io.codes import MISSING
from dualtap.io.collecting import (
    Beside,
    Request,
    SampleFile,
    columns_beside,
)
from dualtap.io.layout import (
    LOOKED_AT,
    OTHER_NUMBER,
    Layout,
    TableRows,
    laid_out,
    misfit,
    row_misfit,
    word_code,
)
from dualtap.io.lines import Block, Lines, blocks
from dualtap.io.spellings import UNKNOWN, spelled_codes
from dualtap.spins import Spins


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
    >>> file = read_text(Request(path, labels=("party",)), ",")
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


class _Table(TableRows):
    """A table of text being read, block by block."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._n_columns = 0

    def add(self, block: Block) -> None:
        """Take in some lines."""
        layout = self._layout
        if layout is not None and self._all_spins(layout):
            values = block.digits(self._n_columns)
            if values is not None:
                self._collector.add(values)
                return
        lines = block.cut()
        if not len(lines.counts) and layout is not None:
            return
        if layout is None:
            layout, self._n_columns, lines = _first_look(self._request, lines)
            self._layout = layout
        self._add_rows(lines, layout)

    def _all_spins(self, layout: Layout) -> bool:
        """Whether columns are nothing but spins, in their order and written as such."""
        return layout.spins == list(range(self._n_columns)) and self._request.codes is None

    def _add_rows(self, lines: Lines, layout: Layout) -> None:
        ragged = lines.counts != self._n_columns
        if ragged.any():
            row = int(np.argmax(ragged))
            line = lines.line_number(int(lines.counts[:row].sum()))
            raise lines.request.error(
                f"line {line} has {lines.counts[row]} fields, and {self._n_columns} columns are "
                "expected from the first lines"
            )
        fields = np.arange(len(lines.starts)).reshape(-1, self._n_columns)
        if layout.rows:
            rows = lines.words(fields[:, layout.rows[0]])
            for name in self._request.labels if self._request.transpose else ():
                if name in rows:
                    row = rows.index(name)
                    self._labels[name] = lines.words(fields[row, layout.spins])
                    fields, rows = np.delete(fields, row, axis=0), rows[:row] + rows[row + 1 :]
            self._rows += rows
        for k in layout.labels:
            name = "" if layout.names is None else layout.names[k]
            self._labels.setdefault(name, []).extend(lines.words(fields[:, k]))
        if len(fields):
            self._collector.add(_values(lines, fields, layout))


def _first_look(request: Request, lines: Lines) -> tuple[Layout, int, Lines]:
    """Return the layout of a table, its width, and its first lines without that of the names."""
    if not len(lines.counts):
        raise request.error("it is empty, or begins with too many empty lines")
    names = lines.first()
    below = lines.word(len(names)) if len(lines.counts) > 1 else None
    has_names = _is_header(request, names, below)
    if has_names:
        lines = lines.without_first()
        if below is None:
            raise request.error("there is a line of names, and no line of values")
    first_fields = np.cumsum(lines.counts[:LOOKED_AT]) - lines.counts[:LOOKED_AT]
    first = lines.words(first_fields)
    codes = {word_code(request, word) for word in first}
    if has_names and lines.counts[0] == len(names) + 1 and {None, OTHER_NUMBER} & codes:
        names = ["", *names]  # as R writes it: the names of rows have no name
    layout = laid_out(request, names if has_names else None, len(names), first)
    if len(layout.spins) < 2 and not request.transpose:
        raise request.error(
            f"its first lines have {len(layout.spins)} column of spins, where at least two are "
            "needed; fields are separated by commas in .csv, by tabs in .tsv"
        )
    return layout, len(names), lines


def _is_header(request: Request, words: list[str], below: str | None) -> bool:
    """Whether the first line names columns: it holds text, or counts them.

    Text in its first field only may be the name of a row; then the field ``below`` is text as well.
    Above names of rows there may be nothing.
    """
    row_is_named = below is not None and word_code(request, below) is None
    text = any(word_code(request, word) is None for word in set(words[1:]))
    if text or (not words[0] and row_is_named):
        return True
    if word_code(request, words[0]) is None:
        return not row_is_named or _counts(words[1:])
    return _counts(words) or _counts(words[1:])


def _counts(words: list[str]) -> bool:
    """Whether words are numbers one by one, and not only 0 and 1."""
    if len(words) < 3 or words[0] not in ("0", "1"):
        return False
    return words == [str(int(words[0]) + k) for k in range(len(words))]


def _values(lines: Lines, fields: NDArray[np.int64], layout: Layout) -> NDArray[Any]:
    """Return the spins of some lines as numbers, NaN where one is missing."""
    if layout.spins != list(range(fields.shape[1])):
        fields = fields[:, layout.spins]
    starts, ends = lines.starts, lines.ends
    if fields.size < len(starts) or lines.request.columns:
        starts, ends = starts[fields.ravel()], ends[fields.ravel()]
    codes = spelled_codes(lines.request, lines.data, starts, ends)
    wrong = np.flatnonzero(codes == UNKNOWN)
    if wrong.size:
        raise _error(lines, fields, int(wrong[0]), layout)
    codes = codes.reshape(fields.shape)
    missing = codes == MISSING
    return np.where(missing, np.float32(np.nan), codes) if missing.any() else codes


def _error(lines: Lines, fields: NDArray[np.int64], place: int, layout: Layout) -> ValueError:
    """Return what is wrong with a field."""
    row, k = divmod(place, fields.shape[1])
    word, request = lines.word(int(fields[row, k])), lines.request
    wrong = repr(word[:40])
    try:
        request.code(word)
    except ValueError as error:
        wrong = str(error)
    column = layout.spins[k]
    name = None if layout.names is None else layout.names[column]
    if request.transpose and layout.rows:
        others = {word_code(request, other) for other in lines.words(fields[row])}
        if others <= {None, MISSING}:
            first = int(fields[row, 0]) - layout.spins[0] + layout.rows[0]
            return request.error(row_misfit(lines.word(first), word))
    elif told := misfit(request, column, name, lines.words(fields[:, k])):
        return request.error(told)
    where = f"line {lines.line_number(int(fields[row, k]))}, column {column + 1}"
    where += "" if name is None else f" ({name[:80]!r})"
    return request.error(
        f"{where} holds {wrong}; spins are {request.spellings}, and a missing one is empty, NA, "
        "NaN, None, null or ?"
    )


def write_text(
    file: IO[bytes] | gzip.GzipFile,
    spins: Spins,
    beside: Beside,
    *,
    delimiter: str,
    gzipped: bool = False,
    spellings: tuple[str, str] | None = None,
) -> None:
    r"""Write samples as text.

    Parameters
    ----------
    file : binary file
    spins : Spins
    beside : mapping of str to arrays of text
    delimiter : str
    gzipped : bool
    spellings : tuple of two str, optional
        What stands for -1 and for +1; numbers in the encoding of the spins when not given.

    Examples
    --------
    >>> import io, numpy as np
    >>> from dualtap.io.text import write_text
    >>> from dualtap.spins import as_spins
    >>> file = io.BytesIO()
    >>> write_text(file, as_spins([[1, None]]), {"party": np.array(["x"])}, delimiter=",")
    >>> file.getvalue()
    b'spin0,spin1,party\n1,,x\n'
    """
    if gzipped:
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
            write_text(packed, spins, beside, delimiter=delimiter, spellings=spellings)
        return
    text = io.TextIOWrapper(
        cast("IO[bytes]", file), encoding="utf-8", newline="", write_through=True
    )
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    names, before, after = columns_beside(beside, spins)
    if names is not None:
        writer.writerow([*(name for name, _ in before), *names, *(name for name, _ in after)])
    low, high = spellings or ("-1" if spins.encoding == "-1/+1" else "0", "1")
    spelling = np.array([low, "", high], dtype=object)
    for rows in spins.blocks(2**20):
        words = spelling[spins.block(rows) + 1].tolist()
        for k, line in enumerate(words, start=rows.start):
            writer.writerow([*(t[k] for _, t in before), *line, *(t[k] for _, t in after)])
    text.detach()
