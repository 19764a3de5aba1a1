"""Names of files changed in one step each, and temporary names that know whether they are in use.

Whatever kills a process between two steps, a name stands for all of the old or all of the new. A
temporary file is locked by who writes it: an unlocked one was left by a process that
was killed, and the next who writes to the same name removes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SUFFIX = ".tmp"
_HERE = -100  # AT_FDCWD: paths are as the process sees them
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV}


@contextmanager
def temporary(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a new file or folder beside ``path``, locked until the block ends.

    What killed processes left of earlier ones is removed. The block is to rename the file, or to
    remove it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap._swap import temporary
    >>> path = pathlib.Path(tempfile.mkdtemp(), "note.txt")
    >>> with temporary(path) as new:
    ...     _ = new.write_text("whole")
    ...     _ = new.rename(path)
    >>> path.read_text()
    'whole'
    """
    remove_stale(path)
    while True:
        name, lock = _made(path, folder=folder)
        # Between making and locking it may have looked abandoned to another process.
        if name.exists():
            break
        if lock is not None:
            os.close(lock)
    try:
        yield name
    finally:
        if lock is not None:
            os.close(lock)


def _made(path: Path, *, folder: bool) -> tuple[Path, int | None]:
    start = f".{path.name}."
    if folder:
        name = Path(tempfile.mkdtemp(_SUFFIX, start, path.parent))
    else:
        handle, made = tempfile.mkstemp(_SUFFIX, start, path.parent)
        os.close(handle)
        name = Path(made)
    return name, _locked(name, wait=True)  # for one who takes it for abandoned, and removes it


def _locked(name: Path, *, wait: bool = False) -> int | None:
    """Return a descriptor that locks a file or folder; None if that cannot be, or it is locked."""
    try:
        import fcntl
    except ImportError:  # on Windows, where what is open cannot be removed
        return None
    try:
        lock = os.open(name, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(lock)
        return None
    return lock


def remove_stale(path: Path) -> None:
    """Remove temporary files of ``path`` that no process holds.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap._swap import remove_stale
    >>> path = pathlib.Path(tempfile.mkdtemp(), "note.txt")
    >>> path.with_name(".note.txt.x7.tmp").touch()
    >>> remove_stale(path)
    >>> list(path.parent.iterdir())
    []
    """
    start = f".{path.name}."
    with suppress(OSError):  # what cannot be listed or removed does no harm
        for entry in os.scandir(path.parent):
            if not (entry.name.startswith(start) and entry.name.endswith(_SUFFIX)):
                continue
            lock = _locked(Path(entry.path))
            if lock is None and sys.platform != "win32":
                continue
            _removed(Path(entry.path))
            if lock is not None:
                os.close(lock)


def _removed(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def put(new: Path, path: Path, *, force: bool) -> None:
    """Give a file or folder its name, in one step; raise FileExistsError if that is taken.

    Parameters
    ----------
    new, path : Path
        In the same folder.
    force : bool
        What has the name is replaced.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap._swap import put
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("old", "new"):
    ...     _ = (folder / name).write_text(name)
    >>> put(folder / "new", folder / "old", force=True)
    >>> [file.name for file in folder.iterdir()], (folder / "old").read_text()
    (['old'], 'new')
    """
    if not force:
        _put_exclusively(new, path)
    elif new.is_dir() and path.exists():
        _swap(new, path)
        _removed(new)
    else:
        new.replace(path)


def _put_exclusively(new: Path, path: Path) -> None:
    if new.is_dir():
        try:
            new.rename(path)  # a folder takes the place of an empty one only
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise FileExistsError(str(path)) from None
            raise
        return
    try:
        try:
            os.link(new, path)
            new.unlink()
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))  # the name is ours from here on
            new.replace(path)
    except FileExistsError:
        raise FileExistsError(str(path)) from None


def _swap(one: Path, other: Path) -> None:
    """Exchange the names of two files or folders."""
    if not _exchanged(one, other):  # in two steps, where the system cannot do it in one
        aside = Path(tempfile.mkdtemp(dir=other.parent, prefix=f".{other.name}.", suffix=".old"))
        other.rename(aside / other.name)
        try:
            one.rename(other)
        except BaseException:
            (aside / other.name).rename(other)
            raise
        finally:
            _removed(aside)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names in one step, if the system can; say whether it did."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(one), os.fsencode(other)
        if sys.platform == "darwin":
            return bool(library.renamex_np(*names, _EXCHANGE) == 0)
        return bool(library.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0)
    except (OSError, AttributeError, TypeError):  # no such library, or no such function in it
        return False
