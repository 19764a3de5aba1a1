"""Files that are whole or not there, and arrays without pickle.

Everything is written to a temporary file in the same folder and renamed when it is complete, so
that a reader never sees half a file and a failure leaves an older one untouched.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


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
            umask = os.umask(0)
            os.umask(umask)
            Path(file.name).chmod(0o666 & ~umask)  # temporary files are private; results are not
            check_free(path, force=force)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


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
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder")
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} exists; use --force (force=True) to overwrite it")


def known_suffix(path: Path, formats: Sequence[str]) -> str:
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise ValueError(f"{path.name!r} must end in {' or '.join(formats)}")
    return suffix


def read_arrays(path: Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            return {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a readable {path.suffix} file: {error}") from None


def stored_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON can hold them."""
    parameters: dict[str, Any] = model.get_params()
    if not isinstance(parameters["random_state"], (int, np.integer, type(None))):
        parameters["random_state"] = None  # a generator has moved on; its state explains nothing
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }
