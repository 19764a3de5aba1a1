"""Samples in Zarr stores: one matrix, or the array ``X``, and texts beside it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._files import reading
from dualtap.io.arrays import with_beside, written_numbers
from dualtap.io.collecting import Beside, Request, SampleFile, check_matrix, needed
from dualtap.io.groups import collected_in_bands, matrix_among, read_beside_in_groups
from dualtap.io.zarr_checks import Stored, check_chunks, check_sizes, codecs_of, held
from dualtap.spins import Spins, as_spins

_BAND = 2**25
"""Bytes of whole chunks, side by side, that are read together."""
_MOST_AT_ONCE = 10


def read_zarr(request: Request) -> SampleFile:
    """Read the array ``X``, or the only matrix, of a Zarr store, and what is beside it.

    Parameters
    ----------
    request : Request

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, zarr
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.zarr_store import read_zarr
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.zarr")
    >>> _ = zarr.save_array(path, np.array([[1, 0], [0, 0]]))
    >>> read_zarr(Request(path)).spins.values.tolist()
    [[1, -1], [-1, -1]]
    """
    zarr = _zarr()
    found = held(request)
    shapes = {key: stored.shape for key, stored in found.items()}
    name = matrix_among(request, shapes)
    array = _matrix(zarr, request, name, found[name])

    def read(key: str) -> NDArray[Any]:
        beside = _opened(zarr, request, key, found[key])
        with _reading(request):
            texts = np.asarray(beside[:])
            return texts.astype(object) if texts.dtype.kind == "T" else texts

    beside = read_beside_in_groups(request, shapes | {name: array.shape}, name, read)
    spins = _on_workers(request, array) if request.on_workers else _collected(zarr, request, array)
    return with_beside(request, spins, beside, None)


def open_array(path: str | Path) -> Any:
    """Return the matrix of samples in a Zarr store without reading it.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    zarr.Array
        With ``shape``, ``chunks`` and ``dtype``; indexing it reads the chunks that are needed.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from dualtap.io import write_samples
    >>> from dualtap.io.zarr_store import open_array
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.zarr")
    >>> write_samples(path, np.ones((5, 3), dtype=np.int8))
    >>> array = open_array(path)
    >>> array.shape, array.chunks, array[1:3].tolist()
    ((5, 3), (5, 3), [[1, 1, 1], [1, 1, 1]])
    """
    zarr, request = _zarr(), Request(Path(path))
    found = held(request)
    name = matrix_among(request, {key: stored.shape for key, stored in found.items()})
    return _matrix(zarr, request, name, found[name], whole=False)


def _zarr() -> Any:
    return needed("zarr", "zarr", "reading and writing Zarr stores")


@contextmanager
def _reading(request: Request) -> Iterator[None]:
    # Whatever metadata or chunks hold is interpreted by codecs, which can fail in any way.
    with reading(request.path, Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # types of text that other versions of Zarr may not know
        try:
            yield
        except FileNotFoundError as error:  # the store is there; a part of it is not
            raise ValueError(str(error)) from None


def _matrix(zarr: Any, request: Request, name: str, stored: Stored, *, whole: bool = True) -> Any:
    """Return the array of that name, if it can be samples."""
    array = _opened(zarr, request, name, stored, whole=whole)
    check_matrix(request, array.shape, array.dtype)
    return array


def _opened(zarr: Any, request: Request, name: str, stored: Stored, *, whole: bool = True) -> Any:
    """Return an array of the store, if nothing about it, nor its chunks, is beyond reason."""
    codecs = codecs_of(request, stored)
    with _reading(request):
        store = zarr.storage.LocalStore(request.path, read_only=True)
        array = zarr.open_array(store, path=name, mode="r", zarr_format=stored.zarr_format)
    check_sizes(request, request.path / name, array)
    if whole:
        check_chunks(request, request.path / name, array, codecs)
    return array


def _on_workers(request: Request, array: Any) -> Spins:
    """Return the matrix as spins on the workers of the present Dask client, who read it."""
    import dask.array as da
    from dask.delayed import delayed

    (n_rows, n_columns), step = array.shape, (array.shards or array.chunks)[0]
    root, read = str(request.path.resolve()), delayed(_rows, pure=True)
    place = root, array.path, array.metadata.zarr_format
    bands = [
        da.from_delayed(  # type: ignore[no-untyped-call]
            read(*place, first, first + step),
            (min(step, n_rows - first), n_columns),
            array.dtype,
        )
        for first in range(0, n_rows, step)
    ]
    lazy = da.concatenate(bands)  # type: ignore[no-untyped-call]
    with reading(request.path):
        return as_spins(lazy, zero_is_missing=request.zero_is_missing)


def _rows(root: str, name: str, zarr_format: int, first: int, stop: int) -> NDArray[Any]:
    """Return some rows of an array of a store, on a worker."""
    # Without its metadata Zarr would say so; da.from_zarr takes a store that is not there for one
    # whose chunks were never written.
    if not Path(root).is_dir():
        raise ValueError(
            f"this worker sees no folder {root!r}: put the store where all can read it"
        )
    zarr = _zarr()
    store = zarr.storage.LocalStore(root, read_only=True)
    array = zarr.open_array(store, path=name, mode="r", zarr_format=zarr_format)
    return np.asarray(array[first:stop])


def _collected(zarr: Any, request: Request, array: Any) -> Spins:
    """Return the matrix as spins."""
    chunk = array.shards or array.chunks
    n_bytes = 4 * math.prod(chunk) * array.dtype.itemsize
    at_once = min(max(_BAND // n_bytes, 1), _MOST_AT_ONCE)

    @contextmanager
    def guarded() -> Iterator[None]:
        with _reading(request), zarr.config.set({"async.concurrency": at_once}):
            yield

    return collected_in_bands(request, array, chunk, _BAND, guarded)


def write_zarr(folder: Path, spins: Spins, beside: Beside) -> None:
    """Write samples as the array ``X`` of a Zarr store, and texts beside them.

    Parameters
    ----------
    folder : Path
        Empty.
    spins : Spins
    beside : dict
        Arrays of text.

    Examples
    --------
    >>> import pathlib, tempfile, zarr
    >>> from dualtap.io.zarr_store import write_zarr
    >>> from dualtap.spins import as_spins
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_zarr(folder, as_spins([[1, -1]]), {})
    >>> list(zarr.open_group(folder, mode="r"))
    ['X']
    """
    zarr = _zarr()
    out = zarr.create_group(zarr.storage.LocalStore(folder))
    dtype = np.int8 if spins.complete else np.float32
    step = next(iter(spins.blocks()))
    chunks = step.stop - step.start, spins.n_spins
    X = out.create_array("X", shape=spins.shape, dtype=dtype, chunks=chunks)
    for rows in spins.blocks():
        X[rows] = written_numbers(spins, rows)
    for name, texts in beside.items():
        out.create_array(name, shape=texts.shape, dtype="string")[:] = texts
