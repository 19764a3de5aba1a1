"""Files that are whole or not there, and arrays without pickle.

Everything is written to a temporary file in the same folder and renamed when it is complete, so
that a reader never sees half a file and a failure leaves an older one untouched. What is read may
be damaged or hostile: only regular files are opened, and nothing is allocated before what an array
declares has been compared with what its file can hold.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DAMAGE: tuple[type[BaseException], ...] = (
    ValueError,
    EOFError,
    OSError,
    RuntimeError,  # an encrypted archive
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged file can raise."""
_LONGEST_HEADER = 10_000
_LARGE = 2**28
_MOST_COMPRESSED = 200
"""Times. Random spins in text are compressed sixteen times, mostly zeros a hundred times."""


@contextmanager
def atomic_write(path: Path, *, force: bool = False) -> Iterator[IO[bytes]]:
    """Yield a file that becomes ``path`` when the block ends well, and vanishes when not.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap._files import atomic_write
    >>> path = pathlib.Path(tempfile.mkdtemp(), "note.txt")
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"whole or not at all")
    >>> path.read_text()
    'whole or not at all'
    """
    check_free(path, force=force)
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False
    ) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o666 & ~_umask())  # temporary files are private; results not
            check_free(path, force=force)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


@contextmanager
def atomic_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a folder that becomes ``path`` when the block ends well, and vanishes when not.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap._files import atomic_folder
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.zarr")
    >>> with atomic_folder(path) as folder:
    ...     _ = (folder / "note.txt").write_text("whole or not at all")
    >>> (path / "note.txt").read_text()
    'whole or not at all'
    """
    check_free(path, force=force)
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
    try:
        yield folder
        for written in folder.rglob("*"):
            if written.is_file():
                with written.open("rb") as file:
                    os.fsync(file.fileno())
        folder.chmod(0o777 & ~_umask())
        check_free(path, force=force)
        _put(folder, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _put(folder: Path, path: Path) -> None:
    """Rename a folder to ``path``; what is there, a folder perhaps, must step aside first."""
    if not path.exists():
        folder.rename(path)
        return
    older = folder.with_suffix(".old")
    path.rename(older)
    try:
        folder.rename(path)
    except BaseException:
        older.rename(path)
        raise
    if older.is_dir() and not older.is_symlink():
        shutil.rmtree(older, ignore_errors=True)
    else:
        older.unlink()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def is_store(path: Path) -> bool:
    """Whether a folder is a Zarr store, which is read and replaced as one file is.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap._files import is_store
    >>> is_store(pathlib.Path("nowhere.zarr"))
    False
    """
    inside = ("zarr.json", ".zarray", ".zgroup")
    return path.suffix.lower() == ".zarr" and any((path / name).exists() for name in inside)


def check_free(path: Path, *, force: bool = False, formats: Sequence[str] = ()) -> None:
    """Raise if ``path`` cannot be written to, or not in these formats; call it before long work.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap._files import check_free
    >>> check_free(pathlib.Path("nowhere", "model.npz"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no folder 'nowhere' to write 'model.npz' into
    """
    if formats:
        known_suffix(path, formats)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(path.parent)!r} to write {path.name!r} into"
        )
    if path.is_dir() and not is_store(path):
        raise IsADirectoryError(f"{str(path)!r} is a folder")
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} exists; use --force (force=True) to overwrite it")


def known_suffix(path: Path, formats: Sequence[str]) -> str:
    """Return the ending of a file name, ``.csv.gz`` being one, if it is one of the formats.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap._files import known_suffix
    >>> known_suffix(pathlib.Path("votes.CSV.gz"), (".csv", ".csv.gz"))
    '.csv.gz'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])
    if suffix not in formats:
        raise ValueError(f"{path.name!r} must end in {' or '.join(formats)}")
    return suffix


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; folders, pipes and devices, which may never end, are refused.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap._files import open_regular
    >>> open_regular(pathlib.Path("/dev/zero"))
    Traceback (most recent call last):
    ...
    ValueError: /dev/zero is not a regular file
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise ValueError(f"{path} cannot be opened: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{str(path)!r} is a folder")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is not a regular file")
    return path.open("rb")


@contextmanager
def reading(path: Path, *damage: type[BaseException]) -> Iterator[None]:
    """Turn whatever a damaged file raises, ``damage`` included, into one ValueError that names it.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap._files import reading
    >>> with reading(pathlib.Path("data.npz")):
    ...     raise EOFError("it ends too early")
    Traceback (most recent call last):
    ...
    ValueError: data.npz is not a readable .npz file: it ends too early
    """
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except DAMAGE + damage as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise  # it says already what is wrong
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is not a readable {path.suffix} file: {reason}") from None


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
    >>> from dualtap._files import npy_header
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
    >>> from dualtap._files import read_array
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


def check_expansion(stored: int, unpacked: int, *, allowed: bool = False) -> None:
    """Raise if some bytes of a file claim to hold far more than their number.

    Parameters
    ----------
    stored, unpacked : int
        Bytes in the file, and bytes that they unpack to.
    allowed : bool
        The user says that it is right.

    Examples
    --------
    >>> from dualtap._files import check_expansion
    >>> check_expansion(2**20, 2**34)
    Traceback (most recent call last):
    ...
    ValueError: 1.0 MB of it unpack to 16.0 GB; pass allow_expansion=True if that is right
    """
    if unpacked > max(_LARGE, _MOST_COMPRESSED * stored) and not allowed:
        raise ValueError(
            f"{stored / 2**20:.1f} MB of it unpack to {unpacked / 2**30:.1f} GB; "
            "pass allow_expansion=True if that is right"
        )


def member_names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays in an ``.npz`` file."""
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array of an ``.npz`` file, unless it swells beyond reason.

    Examples
    --------
    >>> import io, zipfile, numpy as np
    >>> from dualtap._files import read_member
    >>> file = io.BytesIO()
    >>> np.savez(file, beta=2.0)
    >>> read_member(zipfile.ZipFile(file), "beta")
    array(2.)
    """
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > max(_LARGE, _MOST_COMPRESSED * info.compress_size):
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
    >>> from dualtap._files import read_arrays
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


def stored_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON can hold them."""
    parameters: dict[str, Any] = model.get_params()
    if not isinstance(parameters["random_state"], (int, np.integer, type(None))):
        parameters["random_state"] = None  # a generator has moved on; its state explains nothing
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }
