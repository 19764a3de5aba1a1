"""Texts of variable length in an HDF5 file, read in a process of its own.

They lie on heaps, and the HDF5 library trusts what a heap says of itself: a few damaged bytes make
it loop for ever or take all memory. No check from outside can tell, so a child process reads them,
with limits of time and memory: what is asked for, or everything, before a library that cannot be
limited does. This module is also what the child runs; it imports nothing of
dualtap, which takes longer than the texts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_EVERY = ""
_SECONDS, _SECONDS_PER_MB = 4, 1
"""Of the processor: to start takes a few tenths of one, 100,000 texts a tenth."""
_BYTES, _BYTES_PER_BYTE = 2**31, 8
"""Of address space, most of which is never touched: libraries alone take several hundred MB."""


def read_texts(path: Path, name: str) -> list[str]:
    """Return the texts of a dataset, or raise ValueError.

    Parameters
    ----------
    path : Path
        An HDF5 file.
    name : str
        A dataset of text of shape (n,).

    Examples
    --------
    >>> import tempfile, pathlib, h5py
    >>> from dualtap.io.h5_texts import read_texts
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.h5")
    >>> with h5py.File(path, "w") as file:
    ...     file["names"] = ["tax", "school"]
    >>> read_texts(path, "names")
    ['tax', 'school']
    """
    texts: list[str] = json.loads(_told(path, name))
    return texts


def check_texts(path: Path) -> None:
    """Raise ValueError if attributes or texts of variable length cannot be read in this way.

    Examples
    --------
    >>> import tempfile, pathlib, h5py
    >>> from dualtap.io.h5_texts import check_texts
    >>> path = pathlib.Path(tempfile.mkdtemp(), "cells.h5ad")
    >>> with h5py.File(path, "w") as file:
    ...     file.attrs["encoding-type"] = "anndata"
    >>> check_texts(path)
    """
    _told(path, _EVERY)


def _told(path: Path, name: str) -> bytes:
    """Return what the child says of a dataset, or of all."""
    size = path.stat().st_size
    seconds = _SECONDS + _SECONDS_PER_MB * size // 2**20
    command = [sys.executable, "-P", __file__, str(path), name, str(seconds), str(_most(size))]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    what = "its texts" if name == _EVERY else repr(name)
    try:
        done = subprocess.run(
            command,
            env=os.environ | one_thread,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10 * seconds,  # a busy machine; the child limits its own processor time
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"reading {what} does not end: it is damaged") from None
    if done.returncode == 2:
        raise ValueError(done.stderr.decode(errors="replace").strip())
    if done.returncode:  # a signal, for too much time or a crash
        raise ValueError(f"{what} cannot be read: it is damaged")
    return done.stdout


def _most(size: int) -> int:
    return _BYTES + _BYTES_PER_BYTE * size


def _read_every(file: Any, dataset: Any) -> None:
    def visit(_: str, item: Any) -> None:
        dict(item.attrs)
        if isinstance(item, dataset) and item.dtype.hasobject:
            item[()]

    visit("", file)
    file.visititems(visit)


def _main(path: str, name: str, seconds: str, n_bytes: str) -> None:
    try:
        import resource
    except ImportError:  # not on this system, where only the parent's clock limits it
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        resource.setrlimit(resource.RLIMIT_AS, (int(n_bytes), int(n_bytes)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if name == _EVERY:
                _read_every(file, h5py.Dataset)
            else:
                json.dump(file[name].asstr()[()].tolist(), sys.stdout)
    except MemoryError:
        sys.exit("out of memory: it is damaged")
    except Exception as error:  # whatever the library makes of a damaged file
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    _main(*sys.argv[1:])
