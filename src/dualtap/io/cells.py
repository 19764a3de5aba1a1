"""Cells and genes in ``.h5ad`` files, read through anndata.

Counts become spins by "detected or not": +1 where the value is above 0. That holds for counts and
for what keeps their zeros (normalised, logarithms). Scaled values do not; ``raw`` is read instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualtap._files import reading
from dualtap.io.arrays import rows_a_chunk
from dualtap.io.collecting import (
    Collector,
    Request,
    SampleFile,
    check_matrix,
    nearest,
    needed,
    result,
)
from dualtap.io.hdf5 import check_datasets
from dualtap.spins import Spins


class _ScaledError(Exception):
    """There are negative numbers."""


def read_h5ad(request: Request) -> SampleFile:
    """Read ``X`` of an ``.h5ad`` file, or ``raw.X`` if that is scaled, and the names beside it.

    Parameters
    ----------
    request : Request

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> from pathlib import Path
    >>> from dualtap.io.cells import read_h5ad
    >>> from dualtap.io.collecting import Request
    >>> folder = Path(find_spec("scanpy").submodule_search_locations[0], "datasets")
    >>> file = read_h5ad(Request(folder / "10x_pbmc68k_reduced.h5ad", labels=("bulk_labels",)))
    >>> file.spins.shape, file.names[:2], file.labels[:2].tolist(), file.notes
    ((700, 765), ('HES4', 'TNFRSF4'), ['CD14+ Monocyte', 'Dendritic'], ('X is scaled: raw.X was
    read',))
    """
    anndata = needed("anndata", "cells", "reading .h5ad files")
    check_datasets(request)
    with _reading(request):
        file = anndata.read_h5ad(request.path, backed="r")
    try:
        with _reading(request):
            cells = [str(name) for name in file.obs_names]
            labels = _labels(request, file.obs)
            spins, genes, notes = _spins_and_genes(request, file)
    finally:
        file.file.close()
    upright = request._replace(transpose=False)  # cells and genes are named either way
    if request.transpose:
        cells, genes = genes, cells
    return result(upright, spins, columns=genes, rows=cells, labels=labels, notes=notes)


def _spins_and_genes(request: Request, file: Any) -> tuple[Spins, list[str], tuple[str, ...]]:
    """Return the spins and what they are called, of the first of X and raw.X that has them."""
    try:
        return _collected(request, file.X), list(map(str, file.var_names)), ()
    except _ScaledError:
        if file.raw is None:
            raise request.error(
                "X holds negative numbers: it is scaled, and does not say which genes were "
                "detected; store counts in X, or in raw.X"
            ) from None
    try:
        spins = _collected(request, file.raw.X)
    except _ScaledError:
        raise request.error("X and raw.X hold negative numbers; store counts in X") from None
    return spins, list(map(str, file.raw.var_names)), ("X is scaled: raw.X was read",)


def _collected(request: Request, X: Any) -> Spins:
    """Return a matrix, dense or compressed by rows or by columns, as spins."""
    if X is None:
        raise request.error("it has no X")
    check_matrix(request, X.shape, np.dtype(X.dtype))
    compressed = getattr(X, "format", None)
    by_columns = compressed == "csc"
    length, width = X.shape[::-1] if by_columns else X.shape
    collector = Collector(request, length, exchanged=by_columns)
    step = rows_a_chunk(width, np.dtype(np.float32))
    rows = _dense_rows if compressed is None else _compressed_rows
    for chunk in rows(X, length, width, step):
        if np.any(chunk < 0):
            raise _ScaledError
        collector.add(np.where(np.isnan(chunk), np.float32(np.nan), chunk > 0))
    return collector.finish()


def _dense_rows(X: Any, length: int, width: int, step: int) -> Iterator[NDArray[Any]]:
    for first in range(0, length, step):
        yield np.asarray(X[first : first + step])


def _compressed_rows(X: Any, length: int, width: int, step: int) -> Iterator[NDArray[Any]]:
    """Yield some rows (or columns, if compressed by those) of a sparse matrix at a time."""
    data, indices, indptr = (X.group[name] for name in ("data", "indices", "indptr"))
    ends = np.asarray(indptr[:], dtype=np.int64)
    for first in range(0, length, step):
        here = ends[first : first + step + 1]
        stored = slice(int(here[0]), int(here[-1]))
        part: Any = scipy.sparse.csr_array((len(here) - 1, width), dtype=data.dtype)
        part.data, part.indices, part.indptr = data[stored], indices[stored], here - here[0]
        part.check_format(full_check=True)  # a place beyond the matrix would be written to
        yield part.toarray()


def _labels(request: Request, obs: Any) -> dict[str, list[str]]:
    known = [str(name) for name in obs.columns]
    for name in request.labels:
        if name not in known:
            raise request.error(f"no column of obs is named {name!r}; {nearest(name, known)}")
        if request.transpose:
            raise request.error(f"{name!r} is known of cells, and samples are genes here")
    return {name: [str(value) for value in obs[name]] for name in request.labels}


@contextmanager
def _reading(request: Request) -> Iterator[None]:
    # Whatever a damaged file holds is interpreted by several libraries, which can fail in any way.
    with reading(request.path, Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of older formats
        yield
