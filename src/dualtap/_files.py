"""Files that are whole or not there.

Everything is written to a temporary file in the same folder and renamed when it is complete, so
that a reader never sees half a file and a failure leaves an older one untouched. What is read may
be damaged or hostile: only regular files are opened.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from dualtap._swap import put, temporary

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
_LARGE = 2**28
"""Bytes that every file may unpack to."""
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
    with temporary(path) as name, _told_if_taken(path):
        try:
            with name.open("w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            name.chmod(0o666 & ~_umask())  # temporary files are private; results not
            put(name, path, force=force)
        except BaseException:
            name.unlink(missing_ok=True)
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
    with temporary(path, folder=True) as folder, _told_if_taken(path):
        try:
            yield folder
            for written in folder.rglob("*"):
                if written.is_file():
                    with written.open("rb") as file:
                        os.fsync(file.fileno())
            folder.chmod(0o777 & ~_umask())
            put(folder, path, force=force)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@contextmanager
def _told_if_taken(path: Path) -> Iterator[None]:
    """Say in the usual words that a file has appeared meanwhile."""
    try:
        yield
    except FileExistsError as error:
        if str(error) == str(path):
            raise _taken(path) from None
        raise


def _taken(path: Path) -> FileExistsError:
    return FileExistsError(f"{str(path)!r} exists; pass force=True to overwrite it")


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
        raise _taken(path)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        reason = error.strerror or "it cannot be written to"
        raise PermissionError(
            f"{path.name!r} cannot be written into the folder {str(path.parent)!r}: {reason}"
        ) from None


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


def expands_too_far(stored: int, unpacked: int) -> bool:
    """Whether some bytes of a file claim to hold far more than their number.

    Examples
    --------
    >>> from dualtap._files import expands_too_far
    >>> expands_too_far(2**20, 2**34)
    True
    """
    return unpacked > max(_LARGE, _MOST_COMPRESSED * stored)


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
    if expands_too_far(stored, unpacked) and not allowed:
        raise ValueError(
            f"{stored / 2**20:.1f} MB of it unpack to {unpacked / 2**30:.1f} GB; "
            "pass allow_expansion=True if that is right"
        )


def stored_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON can hold them."""
    parameters: dict[str, Any] = model.get_params()
    if not isinstance(parameters["random_state"], (int, np.integer, type(None))):
        parameters["random_state"] = None  # a generator has moved on; its state explains nothing
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }
