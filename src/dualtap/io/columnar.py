"""Samples in columns: Parquet, and Arrow (Feather) files, read a batch of rows at a time."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._files import open_regular, reading
from dualtap.io.arrow_sizes import unpacked_sizes
from dualtap.io.codes import MISSING
from dualtap.io.collecting import (
    CHUNK_BYTES,
    Beside,
    Request,
    SampleFile,
    check_memory,
    columns_beside,
    default_names,
    needed,
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
from dualtap.spins import Spins


def read_columns(request: Request, *, parquet: bool) -> SampleFile:
    """Read a Parquet file, or else an Arrow one.

    The index that pandas keeps, or a first column of text, names the rows.

    Parameters
    ----------
    request : Request
    parquet : bool

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow, pyarrow.parquet
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.columnar import read_columns
    >>> path = pathlib.Path(tempfile.mkdtemp(), "votes.parquet")
    >>> table = pyarrow.table({"tax": [1, 0], "school": [None, 1], "party": ["a", "b"]})
    >>> pyarrow.parquet.write_table(table, path)
    >>> file = read_columns(Request(path, labels=("party",)), parquet=True)
    >>> file.spins.values.tolist(), file.names, file.labels.tolist()
    ([[1, 0], [-1, 1]], ('tax', 'school'), ['a', 'b'])
    """
    pa = pyarrow_module()
    # Columns are decoded when they are looked at, so that damage may show anywhere.
    with open_regular(request.path) as file, reading(request.path, pa.ArrowException):
        source = _parquet(pa, request) if parquet else _arrow(pa, request, file)
        if source.n_rows is not None:
            check_memory(request, (source.n_rows, len(source.schema.names)))
        table = _Table(pa, request, source)
        for batch in source.batches:
            table.add(batch)
        return table.finish()


def pyarrow_module() -> Any:
    """Return pyarrow, or say how to install it.

    Examples
    --------
    >>> from dualtap.io.columnar import pyarrow_module
    >>> pyarrow_module().__name__
    'pyarrow'
    """
    return needed("pyarrow", "parquet", "reading and writing Parquet and Arrow files")


class _Source(NamedTuple):
    """An open file: what its columns are, and batches of rows."""

    schema: Any
    n_rows: int | None
    batches: Iterator[Any]


def _parquet(pa: Any, request: Request) -> _Source:
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(request.path)
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    n_bytes = max(metadata.num_rows * metadata.num_columns, sum(g.total_byte_size for g in groups))
    request.check_expansion(request.path.stat().st_size, n_bytes)
    # Without a buffer every column of a row group is read whole; with one, a piece of each.
    buffer = min(max(2**25 // max(metadata.num_columns, 1), 2**12), 2**20)
    texts = [name for name, kind in _typed(metadata) if pa.types.is_string(kind)]
    file = pq.ParquetFile(
        pa.OSFile(str(request.path)),
        metadata=metadata,
        buffer_size=buffer,
        pre_buffer=False,
        read_dictionary=texts,  # a long text that all rows share is kept once
    )
    schema = file.schema_arrow
    step = max(1, _step(pa, schema) // 4)  # the narrowest numbers are stored in four bytes
    return _Source(schema, metadata.num_rows, file.iter_batches(batch_size=step))


def _typed(metadata: Any) -> list[tuple[str, Any]]:
    schema = metadata.schema.to_arrow_schema()
    return list(zip(schema.names, schema.types, strict=True))


def _arrow(pa: Any, request: Request, file: IO[bytes]) -> _Source:
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for unpacked in unpacked_sizes(mapped):  # of each batch, which is unpacked whole
        request.check_expansion(0, unpacked)
    reader = pa.ipc.open_file(pa.py_buffer(mapped))
    step = _step(pa, reader.schema)

    def batches() -> Iterator[Any]:
        for k in range(reader.num_record_batches):
            batch = reader.get_batch(k)
            for first in range(0, batch.num_rows, step):
                part = batch.slice(first, step)
                part.validate(full=True)
                yield part
                if hasattr(mapped, "madvise"):  # pages that were read would stay in memory
                    mapped.madvise(mmap.MADV_DONTNEED)

    return _Source(reader.schema, None, batches())


def _step(pa: Any, schema: Any) -> int:
    narrow = {pa.bool_(), pa.int8(), pa.uint8()}
    n_bytes = sum(1 if kind in narrow else 8 for kind in schema.types)
    return max(1, CHUNK_BYTES // max(n_bytes, 1))


class _Table(TableRows):
    """A table of columns being read, batch by batch."""

    def __init__(self, pa: Any, request: Request, source: _Source) -> None:
        super().__init__(request, source.n_rows)
        self._pa = pa
        self._names = list(source.schema.names)
        self._metadata = (source.schema.metadata or {}).get(b"pandas")

    def add(self, batch: Any) -> None:
        """Take in some rows."""
        if self._layout is None:
            self._layout = self._first_look(batch)
        layout, request = self._layout, self._request
        rows: list[str] = []
        if layout.rows:
            parts = [_texts(batch.column(k)) for k in layout.rows]
            rows = [" ".join(words) for words in zip(*parts, strict=True)]
            for name in request.labels if request.transpose else ():
                if name in rows:
                    row = rows.index(name)
                    here = [batch.column(k).slice(row, 1) for k in layout.spins]
                    self._labels[name] = [_texts(value)[0] for value in here]
                    kept = [k for k in range(batch.num_rows) if k != row]
                    batch = batch.take(self._pa.array(kept, type=self._pa.int64()))
                    del rows[row]
            self._rows += rows
        for k in layout.labels:
            self._labels.setdefault(self._names[k], []).extend(_texts(batch.column(k)))
        if batch.num_rows and layout.spins:
            columns = [self._numbers(batch.column(k), k, rows) for k in layout.spins]
            try:
                self._collector.add(np.column_stack(columns))
            except ValueError:
                self._explain(batch, layout)
                raise

    def _explain(self, batch: Any, layout: Layout) -> None:
        """Raise if a whole column is something else than spins, and say what to do about it."""
        for k in () if self._request.transpose else layout.spins:
            words = _texts(batch.column(k))
            if OTHER_NUMBER in {word_code(self._request, word) for word in set(words)}:
                told = misfit(self._request, k, self._names[k], words)
                if told is not None:
                    raise self._request.error(told)

    def _first_look(self, batch: Any) -> Layout:
        names = self._names
        index = _pandas_index(self._metadata, names)
        if self._pa.types.is_nested(batch.column(0).type):
            raise self._not_numbers(0, batch.column(0).type)
        first = _texts(batch.column(0).slice(0, LOOKED_AT))
        return laid_out(self._request, names, len(names), first, index)

    def _numbers(self, column: Any, k: int, rows: list[str]) -> NDArray[Any]:
        """Return a column of rows with these names as numbers, NaN where one is missing."""
        types = self._pa.types
        kind = column.type
        spelled = kind.value_type if types.is_dictionary(kind) else kind
        if any(is_kind(spelled) for is_kind in _text_kinds(self._pa)):
            return self._spelled(column, k, rows)
        if types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        if types.is_null(kind):
            return np.full(len(column), np.nan)
        if types.is_boolean(kind) and column.null_count:
            column = column.cast(self._pa.int8())
        elif types.is_decimal(kind):
            column = column.cast(self._pa.float64())
        elif not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
            raise self._not_numbers(k, kind)
        if self._request.codes is not None:
            return self._spelled(column.cast(self._pa.string()), k, rows)
        numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return numbers

    def _not_numbers(self, k: int, kind: Any) -> ValueError:
        name = self._names[k][:80]
        return self._request.error(
            f"column {name!r} holds values of type {kind}; spins are numbers or booleans"
        )

    def _spelled(self, column: Any, k: int, rows: list[str]) -> NDArray[np.float32]:
        """Return a column of texts that spell spins as numbers."""
        words, places = _spellings(column)
        numbers = []
        for place, word in enumerate(words):
            code, wrong = None, repr((word or "")[:40])
            try:
                code = MISSING if word is None else self._request.code(word)
            except ValueError as error:
                wrong = str(error)
            if code is None:
                row = rows[int(np.argmax(places == place))] if rows else None
                raise self._request.error(self._said_of(column, k, row, word, wrong))
            numbers.append(np.nan if code == MISSING else code)
        spelled: NDArray[np.float32] = np.array(numbers, dtype=np.float32)[places]
        return spelled

    def _said_of(self, column: Any, k: int, row: str | None, word: str, wrong: str) -> str:
        """Return what is wrong with a word in a column and in a row of that name."""
        if self._request.transpose and row is not None:
            return row_misfit(row, word)
        told = misfit(self._request, k, self._names[k], _texts(column))
        name, spellings = self._names[k][:80], self._request.spellings
        return told or f"column {name!r} holds {wrong}; spins are {spellings}"


def _texts(column: Any) -> list[str]:
    if hasattr(column, "dictionary"):
        words, places = _spellings(column)
        return ["" if words[k] is None else str(words[k]) for k in places.tolist()]
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _spellings(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different values of a column, each once, None for a null, and which it holds."""
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    used, places = np.unique(indices, return_inverse=True)
    words = [None if k < 0 else coded.dictionary[int(k)].as_py() for k in used]
    return words, places


def _text_kinds(pa: Any) -> tuple[Any, ...]:
    return pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view


def _pandas_index(metadata: bytes | None, names: list[str]) -> list[int]:
    """Return the columns that pandas says are an index; one that only counts is not stored."""
    try:
        stored = json.loads(metadata or b"{}").get("index_columns", [])
    except (ValueError, AttributeError):  # a note for pandas, which the data do not need
        return []
    return [names.index(name) for name in stored if isinstance(name, str) and name in names]


def write_columns(file: IO[bytes], spins: Spins, beside: Beside, *, parquet: bool) -> None:
    """Write samples as Parquet or Arrow, a block at a time, missing entries as nulls.

    Parameters
    ----------
    file : binary file
    spins : Spins
    beside : mapping of str to arrays of text
    parquet : bool

    Examples
    --------
    >>> import io, pyarrow.feather
    >>> from dualtap.io.columnar import write_columns
    >>> from dualtap.spins import as_spins
    >>> file = io.BytesIO()
    >>> write_columns(file, as_spins([[1, None]]), {}, parquet=False)
    >>> pyarrow.feather.read_table(file).to_pylist()
    [{'spin0': 1, 'spin1': None}]
    """
    pa = pyarrow_module()
    names, before, after = columns_beside(beside, spins)
    fields = [(name, pa.string()) for name, _ in before]
    fields += [(name, pa.int8()) for name in names or default_names(spins)]
    fields += [(name, pa.string()) for name, _ in after]
    schema = pa.schema(fields)
    low = np.int8(-1 if spins.encoding == "-1/+1" else 0)
    with _writer(pa, file, schema, parquet=parquet) as writer:
        for rows in spins.blocks():
            values = spins.block(rows)
            coded = np.where(values == -1, low, values)
            missing = None if spins.complete else values == 0
            columns = [pa.array(list(texts[rows]), pa.string()) for _, texts in before]
            columns += [
                pa.array(coded[:, k], mask=None if missing is None else missing[:, k])
                for k in range(spins.n_spins)
            ]
            columns += [pa.array(list(texts[rows]), pa.string()) for _, texts in after]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _writer(pa: Any, file: IO[bytes], schema: Any, *, parquet: bool) -> Any:
    if parquet:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(file, schema)
    return pa.ipc.new_file(file, schema)
