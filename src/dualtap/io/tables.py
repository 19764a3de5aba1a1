"""Tables of results in files: CSV, TSV, Parquet; edges also as GraphML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from dualtap._files import atomic_write, known_suffix
from dualtap.edges import Edges
from dualtap.io.columnar import pyarrow_module

TABLE_FORMATS = (".csv", ".tsv", ".parquet")
EDGE_FORMATS = (*TABLE_FORMATS, ".graphml")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GRAPHML = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="name" for="node" attr.name="name" attr.type="string"/>
  <key id="J" for="edge" attr.name="J" attr.type="double"/>
  <key id="low" for="edge" attr.name="low" attr.type="double"/>
  <key id="high" for="edge" attr.name="high" attr.type="double"/>
  <graph edgedefault="undirected">
"""


def write_table(
    path: str | Path, columns: Mapping[str, NDArray[Any]], *, force: bool = False
) -> None:
    r"""Write columns of equal length as a table with a line of names.

    Parameters
    ----------
    path : str or Path
        Ends in ``.csv``, ``.tsv`` or ``.parquet``, which needs pyarrow.
    columns : mapping of str to arrays of shape (n_rows,)
        Numbers or text. NaN is an empty field, or a null.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from dualtap.io.tables import write_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.csv")
    >>> write_table(path, {"sample": np.array(["Ann"]), "score": np.array([np.nan])})
    >>> path.read_text()
    'sample,score\nAnn,\n'
    """
    path = Path(path)
    suffix = known_suffix(path, TABLE_FORMATS)
    with atomic_write(path, force=force) as file:
        if suffix == ".parquet":
            _write_parquet(file, columns)
        else:
            _write_text(file, columns, "," if suffix == ".csv" else "\t")


def write_edges(path: str | Path, edges: Edges, *, force: bool = False) -> None:
    """Write edges as a table, or as a graph that networkx, Gephi, Cytoscape and igraph read.

    Parameters
    ----------
    path : str or Path
        Ends in ``.csv``, ``.tsv``, ``.parquet`` or ``.graphml``.
    edges : Edges
        From the method ``edges`` of a fitted model.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import dualtap as dt
    >>> from dualtap.io import write_edges
    >>> teacher = dt.HopfieldModel.random(50, 2, beta=2.0, random_state=0)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(teacher.sample(40, random_state=1))
    >>> path = pathlib.Path(tempfile.mkdtemp(), "edges.csv")
    >>> write_edges(path, model.edges(top=10))
    >>> path.read_text().splitlines()[0]
    'i,j,J,low,high'
    """
    path = Path(path)
    if known_suffix(path, EDGE_FORMATS) != ".graphml":
        write_table(path, edges.columns(), force=force)
        return
    with atomic_write(path, force=force) as file:
        _write_graphml(file, edges)


def _write_text(file: IO[bytes], columns: Mapping[str, NDArray[Any]], delimiter: str) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_cells(column) for column in columns.values()), strict=True))
    text.detach()


def _cells(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        return ["" if value != value else value for value in values]
    return values


def _write_parquet(file: IO[bytes], columns: Mapping[str, NDArray[Any]]) -> None:
    pa = pyarrow_module()
    import pyarrow.parquet as pq

    arrays = {
        name: pa.array(column, from_pandas=True)  # NaN is null
        if column.dtype.kind in "iuf"
        else pa.array(column.tolist())
        for name, column in columns.items()
    }
    pq.write_table(pa.table(arrays), file)


def _write_graphml(file: IO[bytes], edges: Edges) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
    text.write(_GRAPHML)
    names: dict[int, str | None] = dict.fromkeys(np.union1d(edges.i, edges.j).tolist())
    if edges.names is not None:
        for spins, known in ((edges.i, edges.names[:, 0]), (edges.j, edges.names[:, 1])):
            names |= dict(zip(spins.tolist(), known.tolist(), strict=True))
    for spin, name in names.items():
        told = str(spin) if name is None else escape(_NOT_XML.sub("\ufffd", name))
        text.write(f'    <node id="n{spin}"><data key="name">{told}</data></node>\n')
    for k, (i, j) in enumerate(zip(edges.i.tolist(), edges.j.tolist(), strict=True)):
        data = "".join(
            f'<data key="{key}">{value!r}</data>' for key, value in edges.weights(k).items()
        )
        text.write(f'    <edge source="n{i}" target="n{j}">{data}</edge>\n')
    text.write("  </graph>\n</graphml>\n")
    text.detach()
