"""Arrays in NumPy's own files, without pickle.

Nothing is allocated before what an array declares has been compared with what its file can hold.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._files import expands_too_far, open_regular, reading

_LONGEST_HEADER = 10_000


class NpyHeader(NamedTuple):
    """What the header of an ``.npy`` file declares."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """Bytes that follow the header."""
        return math.prod(self.shape) * self.dtype.itemsize


def npy_header(stream: IO[bytes], size: int, *, exact: bool = False) -> NpyHeader:
    """Read the header of an array, and check it against the size of what holds it.

    Parameters
    ----------
    stream : file
        At its beginning; left where the numbers begin.
    size : int
        Bytes that there are, header included.
    exact : bool
        Nothing may follow the array.

    Returns
    -------
    NpyHeader

    Examples
    --------
    >>> import io, numpy as np
    >>> from dualtap._npy import npy_header
    >>> file = io.BytesIO()
    >>> np.save(file, np.eye(2, dtype=np.int8))
    >>> _ = file.seek(0)
    >>> npy_header(file, 132)
    NpyHeader(shape=(2, 2), fortran=False, dtype=dtype('int8'))
    """
    start = stream.read(8)
    if start[:6] != b"\x93NUMPY" or start[6:] not in (b"\1\0", b"\2\0"):
        raise ValueError("it does not begin as a NumPy array of numbers does")
    declared = stream.read(2 if start[6] == 1 else 4)
    length = int.from_bytes(declared, "little")
    if length > _LONGEST_HEADER:  # numpy would read all of it before it looks
        raise ValueError(f"its header of {length} bytes is too long")
    header = io.BytesIO(declared + stream.read(length))
    read = np.lib.format.read_array_header_1_0
    if start[6] == 2:
        read = np.lib.format.read_array_header_2_0
    try:
        found = NpyHeader(*read(header))
    except Exception as error:  # it is evaluated as an expression, which can fail in any way
        raise ValueError(f"its header is damaged: {type(error).__name__}: {error}") from None
    if found.dtype.hasobject:
        raise ValueError("it holds Python objects (a pickle), which are never loaded")
    needed = len(start + declared) + length + found.n_bytes
    if min(found.shape, default=0) < 0 or needed > size or (exact and needed != size):
        raise ValueError(
            f"it declares an array of shape {found.shape}, {needed} bytes in all, and has {size}"
        )
    return found


def read_array(stream: IO[bytes], size: int, *, exact: bool = False) -> NDArray[Any]:
    """Read an array of at most (or exactly) ``size`` bytes, header included.

    Examples
    --------
    >>> import io, numpy as np
    >>> from dualtap._npy import read_array
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3))
    >>> _ = file.seek(0)
    >>> read_array(file, 152)
    array([0, 1, 2])
    """
    header = npy_header(stream, size, exact=exact)
    data = stream.read(header.n_bytes)
    if len(data) != header.n_bytes:
        raise ValueError("it ends too early")
    array = np.frombuffer(bytearray(data), dtype=header.dtype)
    return array.reshape(header.shape, order="F" if header.fortran else "C")


def member_names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays in an ``.npz`` file."""
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array of an ``.npz`` file, unless it swells beyond reason.

    Examples
    --------
    >>> import io, zipfile, numpy as np
    >>> from dualtap._npy import read_member
    >>> file = io.BytesIO()
    >>> np.savez(file, beta=2.0)
    >>> read_member(zipfile.ZipFile(file), "beta")
    array(2.)
    """
    info = archive.getinfo(f"{name}.npy")
    if expands_too_far(info.compress_size, info.file_size):
        raise ValueError(f"the array {name} would take {info.file_size / 2**30:.1f} GB")
    with archive.open(info) as stream:
        array = read_array(stream, info.file_size, exact=True)
        stream.read(1)  # at its end the checksum is compared
        return array


def read_arrays(path: Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """Read the array of an ``.npy`` file, or all arrays of an ``.npz`` file.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from dualtap._npy import read_arrays
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.npz")
    >>> np.savez(path, a=np.arange(2))
    >>> read_arrays(path)
    {'a': array([0, 1])}
    """
    with open_regular(path) as file, reading(path):
        magic = file.read(6)
        file.seek(0)
        if magic == b"\x93NUMPY":
            return read_array(file, os.fstat(file.fileno()).st_size)
        with zipfile.ZipFile(file) as archive:
            return {name: read_member(archive, name) for name in member_names(archive)}
