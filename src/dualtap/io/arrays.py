"""Samples in NumPy's own files, ``.npy`` and ``.npz``, read some rows at a time.

An array in Fortran order is its transpose in C order: it is read as that, and exchanged when its
spins are packed.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._files import open_regular, reading
from dualtap._npy import NpyHeader, member_names, npy_header, read_member
from dualtap._schema import is_unicode
from dualtap.hopfield import HopfieldModel
from dualtap.io.collecting import (
    CHUNK_BYTES,
    Beside,
    Collector,
    Request,
    SampleFile,
    check_matrix,
    nearest,
    result,
)
from dualtap.spins import Spins, as_spins


def read_npy(request: Request) -> SampleFile:
    """Read the matrix in an ``.npy`` file.

    Parameters
    ----------
    request : Request

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from dualtap.io.arrays import read_npy
    >>> from dualtap.io.collecting import Request
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.npy")
    >>> np.save(path, np.array([[True, False]]))
    >>> read_npy(Request(path)).spins.values
    array([[ 1, -1]], dtype=int8)
    """
    if request.labels:
        raise request.error(
            "an .npy file holds no labels or weights; store them beside X in an .npz"
        )
    with open_regular(request.path) as file:
        with reading(request.path):
            header = npy_header(file, os.fstat(file.fileno()).st_size)
        spins = _collected(request, header, file, seekable=True)
    return result(request, spins, columns=None, rows=None, labels={})


def read_npz(request: Request) -> SampleFile:
    """Read the array ``X``, or the only one, and what is beside it.

    ``names`` and ``sample_names`` name spins and samples; ``labels`` of the request are arrays
    with one entry per sample.

    Parameters
    ----------
    request : Request

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from dualtap.io.arrays import read_npz
    >>> from dualtap.io.collecting import Request
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.npz")
    >>> np.savez(path, X=np.array([[1, 0], [0, 0]]), y=[3, 4])
    >>> read_npz(Request(path, labels=("y",))).labels.tolist()
    ['3', '4']
    """
    with open_regular(request.path) as file:
        with reading(request.path):
            archive = zipfile.ZipFile(file)
            held = dict.fromkeys(member_names(archive))
        with archive:
            name = _samples_among(request, list(held))

            def side(key: str) -> NDArray[Any] | None:
                with reading(request.path):
                    return read_member(archive, key) if key in held else None

            beside = read_beside(request, [key for key in held if key != name], side)
            teacher = _teacher(request, side)
            info = archive.getinfo(f"{name}.npy")
            with reading(request.path):
                member = archive.open(info)
                header = npy_header(member, info.file_size, exact=True)
            request.check_expansion(info.compress_size, info.file_size)
            with member:
                spins = _collected(request, header, member, seekable=False)
    return with_beside(request, spins, beside, teacher)


def _samples_among(request: Request, held: list[str]) -> str:
    if "schema" in held:
        raise ValueError(f"{request.path} is a model, not samples")
    if "X" in held:
        return "X"
    beside = {"names", "sample_names", *request.labels}
    others = [name for name in held if name not in beside]
    if len(others) != 1:
        raise ValueError(
            f"{request.path} holds the arrays {', '.join(held) or '(none)'}; "
            "name the samples X, or store one array"
        )
    return others[0]


def _teacher(request: Request, side: Callable[[str], NDArray[Any] | None]) -> HopfieldModel | None:
    patterns, beta = side("teacher_patterns"), side("teacher_beta")
    if patterns is None or beta is None:
        return None
    try:
        # A 0 is no part of the pattern here, whether or not there is a -1 beside it.
        zeta = as_spins(patterns, zero_is_missing=True) if len(patterns) else patterns
        fields, strengths = side("teacher_fields"), side("teacher_strengths")
        if strengths is None:
            return HopfieldModel(zeta, float(beta), fields)
        return HopfieldModel(zeta, fields=fields, strengths=strengths)
    except (ValueError, TypeError) as error:
        raise request.error(f"its teacher is damaged: {error}") from None


class Texts(NamedTuple):
    """What is stored beside samples, as far as it is there."""

    names: list[str] | None
    sample_names: list[str] | None
    labels: dict[str, list[str]]


def read_beside(
    request: Request, held: list[str], side: Callable[[str], NDArray[Any] | None]
) -> Texts:
    """Return names of spins and samples and the labels, as far as they are there."""

    def texts(key: str, what: str) -> list[str] | None:
        array = side(key)
        if array is None:
            return None
        if array.ndim != 1 or array.dtype.kind not in "biufUSO":
            raise request.error(
                f"{key!r} has shape {array.shape} and type {array.dtype}; "
                f"{what} are one text or number each"
            )
        if array.dtype.kind == "U" and not is_unicode(array):
            raise request.error(f"{key!r} is not Unicode text")
        return [v.decode() if isinstance(v, bytes) else str(v) for v in array.tolist()]

    for key in request.labels:
        if key not in held:
            raise request.error(f"no array is named {key!r}; {nearest(key, held)}")
    return Texts(
        texts("names", "names"),
        texts("sample_names", "sample names"),
        {key: texts(key, "labels") or [] for key in request.labels},
    )


def with_beside(
    request: Request, spins: Spins, beside: Texts, teacher: HopfieldModel | None
) -> SampleFile:
    """Return samples with what was found beside them.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.arrays import Texts, with_beside
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.spins import as_spins
    >>> request = Request(pathlib.Path("data.npz"))
    >>> with_beside(request, as_spins([[1, 0]]), Texts(["a", "b"], None, {}), None).names
    ('a', 'b')
    """
    # The names beside an array say what they name, whichever way it lies.
    upright = request._replace(transpose=False)
    file = result(
        upright, spins, columns=beside.names, rows=beside.sample_names, labels=beside.labels
    )
    return replace(file, teacher=teacher)


def _collected(request: Request, header: NpyHeader, stream: IO[bytes], *, seekable: bool) -> Spins:
    """Return the matrix that follows a header, as spins."""
    check_matrix(request, header.shape, header.dtype)
    n_rows, n_columns = header.shape
    if header.fortran and seekable and n_rows * header.dtype.itemsize > CHUNK_BYTES:
        collector = Collector(request, n_rows)
        chunks = _strips(request, stream, header)
    elif header.fortran:
        collector = Collector(request, n_columns, exchanged=True)
        chunks = _rows(request, stream, (n_columns, n_rows), header.dtype)
    else:
        collector = Collector(request, n_rows)
        chunks = _rows(request, stream, (n_rows, n_columns), header.dtype)
    for chunk in chunks:
        collector.add(chunk)
    return collector.finish()


def rows_a_chunk(n_columns: int, dtype: np.dtype[Any]) -> int:
    """Return how many rows are read together.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.io.arrays import rows_a_chunk
    >>> rows_a_chunk(1024, np.dtype(np.float64))
    512
    """
    return max(1, CHUNK_BYTES // (n_columns * dtype.itemsize))


def _rows(
    request: Request, stream: IO[bytes], shape: tuple[int, int], dtype: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    n_rows, n_columns = shape
    step = rows_a_chunk(n_columns, dtype)
    for first in range(0, n_rows, step):
        rows = min(step, n_rows - first)
        yield np.frombuffer(
            _exactly(request, stream, rows * n_columns * dtype.itemsize), dtype=dtype
        ).reshape(rows, n_columns)
    with reading(request.path):
        stream.read(1)  # at the end of a member of an archive its checksum is compared


def _strips(request: Request, file: IO[bytes], header: NpyHeader) -> Iterator[NDArray[Any]]:
    """Yield rows of a matrix with long columns, a piece of every column at a time."""
    (n_rows, n_columns), dtype, offset = header.shape, header.dtype, file.tell()
    step = rows_a_chunk(n_columns, dtype)
    for first in range(0, n_rows, step):
        rows = min(step, n_rows - first)
        chunk = np.empty((n_columns, rows), dtype=dtype)
        for k in range(n_columns):
            file.seek(offset + (k * n_rows + first) * dtype.itemsize)
            chunk[k] = np.frombuffer(_exactly(request, file, rows * dtype.itemsize), dtype=dtype)
        yield chunk.T


def _exactly(request: Request, stream: IO[bytes], n_bytes: int) -> bytes:
    with reading(request.path):
        data = stream.read(n_bytes)
        if len(data) != n_bytes:
            raise EOFError("it ends too early")
        return data


def written_numbers(spins: Spins, rows: slice) -> NDArray[Any]:
    """Return samples as they are written: in their own encoding, NaN where one is missing.

    Parameters
    ----------
    spins : Spins
    rows : slice

    Returns
    -------
    array of shape (rows, n_spins), int8, or float32 if any of the spins is missing

    Examples
    --------
    >>> from dualtap.io.arrays import written_numbers
    >>> from dualtap.spins import as_spins
    >>> written_numbers(as_spins([[0, 1, None]]), slice(None))
    array([[ 0.,  1., nan]], dtype=float32)
    """
    values = spins.block(rows)
    low = np.int8(-1 if spins.encoding == "-1/+1" else 0)
    coded = np.where(values == -1, low, np.int8(1))
    if spins.complete:
        return coded
    return np.where(values == 0, np.float32(np.nan), coded)


def write_npy(file: IO[bytes], spins: Spins) -> None:
    """Write samples as ``.npy``, a block at a time.

    Examples
    --------
    >>> import io, numpy as np
    >>> from dualtap.io.arrays import write_npy
    >>> from dualtap.spins import as_spins
    >>> file = io.BytesIO()
    >>> write_npy(file, as_spins([[1, -1]]))
    >>> np.load(io.BytesIO(file.getvalue()))
    array([[ 1, -1]], dtype=int8)
    """
    dtype = np.dtype(np.int8 if spins.complete else np.float32)
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": spins.shape,
    }
    np.lib.format.write_array_header_1_0(file, header)
    for rows in spins.blocks():
        file.write(np.ascontiguousarray(written_numbers(spins, rows)).tobytes())


def write_npz(file: IO[bytes], spins: Spins, beside: Beside) -> None:
    """Write samples as the array ``X`` of an ``.npz``, and other arrays beside them.

    Examples
    --------
    >>> import io, numpy as np
    >>> from dualtap.io.arrays import write_npz
    >>> from dualtap.spins import as_spins
    >>> file = io.BytesIO()
    >>> write_npz(file, as_spins([[1, -1]]), {"label": np.array(["a"])})
    >>> sorted(np.load(io.BytesIO(file.getvalue())))
    ['X', 'label']
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as member:
            write_npy(member, spins)
        for name, array in beside.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
