"""Samples in HDF5 files: one matrix, or the dataset ``X``, and texts beside it."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dualtap._files import open_regular, reading
from dualtap.io.arrays import matrix_among, numbers, read_beside, rows_a_chunk, with_beside
from dualtap.io.collecting import Collector, Request, SampleFile, check_matrix
from dualtap.spins import Spins

_LARGE = 2**26
_MOST_COMPRESSED = 2000  # times; gzip reaches a thousand


def read_h5(request: Request) -> SampleFile:
    """Read the dataset ``X``, or the only matrix, of an HDF5 file, and what is beside it.

    Parameters
    ----------
    request : Request

    Examples
    --------
    >>> import tempfile, pathlib, h5py
    >>> from dualtap.io.hdf5 import read_h5
    >>> from dualtap.io.collecting import Request
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.h5")
    >>> with h5py.File(path, "w") as file:
    ...     file["group/X"] = [[1, 0], [0, 0]]
    >>> read_h5(Request(path)).spins.values.tolist()
    [[1, -1], [-1, -1]]
    """
    h5py = _h5py()
    open_regular(request.path).close()
    with _reading(request):
        opened = h5py.File(request.path, "r")
    with opened as file:
        with _reading(request):
            held = _datasets(h5py, file)
            shapes = {key: item.shape or () for key, item in held.items()}
        name = matrix_among(request, shapes, "datasets")
        with _reading(request):
            dtype = held[name].dtype
        check_matrix(request, shapes[name], dtype)
        _check_stored(request, held[name], dtype)
        folder = name.rpartition("/")[0]

        def side(key: str) -> NDArray[Any] | None:
            there = f"{folder}/{key}".lstrip("/")
            there = there if there in held else key
            if there not in held:
                return None
            if shapes[there] not in [(length,) for length in shapes[name]]:
                raise request.error(
                    f"{there!r} has shape {shapes[there]} beside samples of {shapes[name]}"
                )
            with _reading(request):
                text = h5py.check_string_dtype(held[there].dtype) is not None
                return np.asarray(held[there].asstr()[()] if text else held[there][()])

        others = [key for key in held if key != name]
        others += [key.rpartition("/")[2] for key in others]
        beside = read_beside(request, others, side)
        spins = _collected(request, held[name], shapes[name], dtype)
    return with_beside(request, spins, beside, None)


def _reading(request: Request) -> AbstractContextManager[None]:
    return reading(request.path, KeyError, TypeError)


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise ImportError(
            "reading and writing HDF5 files needs h5py; install it with: "
            "pip install 'dualtap[hdf5]'"
        ) from None
    return h5py


def _datasets(h5py: Any, file: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def visit(name: str | bytes, item: Any) -> None:
        if isinstance(item, h5py.Dataset):  # a damaged name comes as bytes
            found[name if isinstance(name, str) else name.decode(errors="replace")] = item

    file.visititems(visit)
    return found


def _check_stored(request: Request, dataset: Any, dtype: np.dtype[Any]) -> None:
    """Raise if most of a large dataset was never written: its shape says nothing then."""
    with _reading(request):
        n_stored = int(dataset.id.get_storage_size())
    n_bytes = math.prod(dataset.shape) * dtype.itemsize
    if n_bytes > max(_LARGE, _MOST_COMPRESSED * n_stored):
        raise request.error(
            f"it declares shape {dataset.shape}, {n_bytes} bytes, and only {n_stored} are stored"
        )


def _collected(
    request: Request, dataset: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Spins:
    n_rows, n_columns = shape
    step = rows_a_chunk(n_columns, dtype)
    if dataset.chunks is not None:  # whole chunks, or each is decompressed again and again
        tall = dataset.chunks[0]
        step = max(step // tall, 1) * tall if tall <= 8 * step else step
    collector = Collector(request, n_rows)
    for first in range(0, n_rows, step):
        with _reading(request):
            chunk = dataset[first : first + step]
        collector.add(chunk)
    return collector.finish()


def write_h5(file: IO[bytes], spins: Spins, beside: dict[str, NDArray[Any]]) -> None:
    """Write samples as the dataset ``X`` of an HDF5 file, and texts beside them.

    Examples
    --------
    >>> import io, h5py
    >>> from dualtap.io.hdf5 import write_h5
    >>> from dualtap.spins import as_spins
    >>> file = io.BytesIO()
    >>> write_h5(file, as_spins([[1, -1]]), {})
    >>> list(h5py.File(file))
    ['X']
    """
    h5py = _h5py()
    with h5py.File(file, "w") as out:
        dtype = np.int8 if spins.complete else np.float32
        step = next(iter(spins.blocks(2**20)))
        X = out.create_dataset(
            "X",
            shape=spins.shape,
            dtype=dtype,
            chunks=(step.stop - step.start, spins.n_spins),
            compression="gzip",
        )
        for rows in spins.blocks(2**20):
            X[rows] = numbers(spins, rows)
        for name, texts in beside.items():
            encoded = np.char.encode(texts, "utf-8")
            # Of fixed length: others go through a heap, in which a damaged file can be an endless
            # loop for whoever reads it.
            kind = h5py.string_dtype("utf-8", max(encoded.dtype.itemsize, 1))
            out.create_dataset(name, data=encoded.astype(kind))
