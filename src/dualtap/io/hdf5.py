"""Samples in HDF5 files: one matrix, or the dataset ``X``, and texts beside it.

A dataset can say that its values are in another file; such datasets are never read.
"""

from __future__ import annotations

import io
import math
from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dualtap._files import open_regular, reading
from dualtap.io.arrays import with_beside, written_numbers
from dualtap.io.collecting import Beside, Request, SampleFile, check_matrix, needed
from dualtap.io.groups import collected_in_bands, matrix_among, read_beside_in_groups
from dualtap.io.h5_texts import check_texts, read_texts
from dualtap.spins import Spins

_LARGEST_CHUNK = 2**26
_BAND = 2**26
"""Bytes of whole chunks, side by side, that are read together."""


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
        _check_stored(request, name, held[name])
        beside = read_beside_in_groups(
            request, shapes, name, lambda key: _beside(h5py, request, key, held[key])
        )
        chunk = held[name].chunks or (1, 1)
        spins = collected_in_bands(request, held[name], chunk, _BAND, lambda: _reading(request))
    return with_beside(request, spins, beside, None)


def _reading(request: Request) -> AbstractContextManager[None]:
    return reading(request.path, KeyError, TypeError)


def _h5py() -> Any:
    return needed("h5py", "hdf5", "reading and writing HDF5 files")


def _datasets(h5py: Any, file: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def visit(name: str | bytes, item: Any) -> None:
        if isinstance(item, h5py.Dataset):  # a damaged name comes as bytes
            found[name if isinstance(name, str) else name.decode(errors="replace")] = item

    file.visititems(visit)
    return found


def _check_stored(request: Request, name: str, dataset: Any) -> None:
    """Raise if values are in another file, or if most of them were never written."""
    with _reading(request):
        elsewhere = dataset.is_virtual or dataset.external is not None
        n_stored = int(dataset.id.get_storage_size())
        n_bytes = math.prod(dataset.shape) * dataset.dtype.itemsize
        chunk = math.prod(dataset.chunks or (0,)) * dataset.dtype.itemsize
    if elsewhere:
        raise request.error(
            f"the values of {name!r} are in other files, which are not read; copy them into one"
        )
    if chunk > _LARGEST_CHUNK:
        raise request.error(
            f"the chunks of {name!r}, of shape {dataset.chunks}, take {chunk / 2**20:.0f} MB each; "
            "store smaller ones"
        )
    request.check_expansion(n_stored, n_bytes)


def check_datasets(request: Request) -> None:
    """Raise if anything in an HDF5 file is elsewhere, mostly not there, or has no end.

    What other libraries read is checked before they do.

    Examples
    --------
    >>> import tempfile, pathlib, h5py
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.hdf5 import check_datasets
    >>> path = pathlib.Path(tempfile.mkdtemp(), "cells.h5ad")
    >>> with h5py.File(path, "w") as file:
    ...     file["X"] = h5py.ExternalLink("other.h5", "X")
    >>> check_datasets(Request(path))
    Traceback (most recent call last):
    ...
    ValueError: ...cells.h5ad: 'X' is in another file, which is not read; copy it into one
    """
    h5py = _h5py()
    open_regular(request.path).close()
    links: dict[str, Any] = {}
    with _reading(request):
        file = h5py.File(request.path, "r")
    with file:
        with _reading(request):
            file.visititems_links(lambda name, link: links.__setitem__(str(name), link))
            held = _datasets(h5py, file)
        for name, link in links.items():
            if isinstance(link, h5py.ExternalLink):
                raise request.error(
                    f"{name!r} is in another file, which is not read; copy it into one"
                )
        for name, dataset in held.items():
            if dataset.shape:
                _check_stored(request, name, dataset)
    with _reading(request):
        check_texts(request.path)


def _beside(h5py: Any, request: Request, name: str, dataset: Any) -> NDArray[Any]:
    """Return an array of texts or numbers that goes with the samples."""
    _check_stored(request, name, dataset)
    with _reading(request):
        told = h5py.check_string_dtype(dataset.dtype)
        if dataset.dtype.kind == "O" and told is None:
            raise TypeError(f"{name!r} holds values of variable length")
        if told is not None and told.length is None:
            return np.array(read_texts(request.path, name), dtype=object)
        return np.asarray(dataset[()] if told is None else dataset.asstr()[()])


class _Tolerant(io.RawIOBase):
    """A file that never tells HDF5 of a failure, after which the library would crash.

    What the disk does not take is kept in memory, for the library to read back; ``error`` says
    what happened, and is to be looked at soon.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._kept: list[tuple[int, bytes]] = []
        self.error: OSError | None = None

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        try:
            return self._file.truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def write(self, data: Any) -> int:
        start, held = self._file.tell(), bytes(data)
        try:
            if self.error is None:
                self._file.write(held)
                self._file.flush()
                return len(held)
        except OSError as error:
            self.error = error
        self._kept.append((start, held))
        self._file.seek(start + len(held))
        return len(held)

    def readinto(self, buffer: Any) -> int:
        start, view = self._file.tell(), memoryview(buffer).cast("B")
        data = self._file.read(len(view)).ljust(len(view), b"\0")
        view[:] = data
        for at, held in self._kept:
            low, high = max(at, start), min(at + len(held), start + len(view))
            if low < high:
                view[low - start : high - start] = held[low - at : high - at]
        self._file.seek(start + len(view))
        return len(view)


def write_h5(file: IO[bytes], spins: Spins, beside: Beside) -> None:
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
    h5py, tolerant = _h5py(), _Tolerant(file)
    with h5py.File(tolerant, "w") as out:
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
            X[rows] = written_numbers(spins, rows)
            if tolerant.error is not None:
                break
        for name, texts in beside.items():
            encoded = np.char.encode(texts, "utf-8")
            # Of fixed length: others go through a heap, in which a damaged file can be an endless
            # loop for its readers.
            kind = h5py.string_dtype("utf-8", max(encoded.dtype.itemsize, 1))
            out.create_dataset(name, data=encoded.astype(kind))
    if tolerant.error is not None:
        raise tolerant.error
