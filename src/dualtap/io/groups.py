"""Files that hold named arrays in groups, HDF5 and Zarr: which is the matrix, what is beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from numpy.typing import NDArray

from dualtap.io.arrays import Texts, read_beside, rows_a_chunk
from dualtap.io.collecting import Collector, Request
from dualtap.spins import Spins


def read_beside_in_groups(
    request: Request,
    shapes: Mapping[str, tuple[int, ...]],
    name: str,
    read: Callable[[str], NDArray[Any]],
) -> Texts:
    """Return texts beside a matrix where arrays have paths: in its own folder, or at the root.

    Parameters
    ----------
    request : Request
    shapes : mapping of str to tuple of int
        Of all arrays.
    name : str
        Of the matrix.
    read : callable
        Returns the array of a name.
    """
    folder = name.rpartition("/")[0]

    def side(key: str) -> NDArray[Any] | None:
        there = f"{folder}/{key}".lstrip("/")
        there = there if there in shapes else key
        if there not in shapes:
            return None
        if shapes[there] not in [(length,) for length in shapes[name]]:
            raise request.error(
                f"{there!r} has shape {shapes[there]} beside samples of {shapes[name]}"
            )
        return read(there)

    others = [key for key in shapes if key != name]
    return read_beside(request, others + [key.rpartition("/")[2] for key in others], side)


def collected_in_bands(
    request: Request,
    array: Any,
    chunk: tuple[int, int],
    band: int,
    guarded: Callable[[], AbstractContextManager[Any]],
) -> Spins:
    """Return a matrix in chunks as spins, read in bands of whole chunks: each is unpacked once.

    Parameters
    ----------
    request : Request
    array : h5py.Dataset or zarr.Array of shape (n_rows, n_columns)
    chunk : tuple of int
    band : int
        Bytes of whole chunks, side by side, that may be read together.
    guarded : callable
        Returns what reading is to be done within.
    """
    shape, itemsize = array.shape, array.dtype.itemsize
    bands = [chunk[k] * shape[1 - k] * itemsize for k in (0, 1)]
    across = bands[0] > band and bands[1] < bands[0]  # chunks are tall: columns come first
    length, width = shape[::-1] if across else shape
    step = few = rows_a_chunk(width, array.dtype)
    if bands[across] <= band:  # whole chunks, or each is decompressed again and again
        step = max(step // chunk[across], 1) * chunk[across]
    collector = Collector(request, length, exchanged=across)
    for first in range(0, length, step):
        part = slice(first, first + step)
        with guarded():
            read = array[:, part].T if across else array[part]
        for k in range(0, len(read), few):
            collector.add(read[k : k + few])
        del read  # before the next one is read
    return collector.finish()


def matrix_among(
    request: Request, shapes: Mapping[str, tuple[int, ...]], kind: str = "arrays"
) -> str:
    """Return which of the arrays in a file, by name and shape, holds the samples.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.groups import matrix_among
    >>> from dualtap.io.collecting import Request
    >>> matrix_among(Request(pathlib.Path("data.h5")), {"spikes": (5, 9), "names": (9,)})
    'spikes'
    """
    last = {name: name.rpartition("/")[2] for name in shapes}
    choices = [[name for name in shapes if last[name] == known] for known in ("X", "samples")]
    choices.append([name for name, shape in shapes.items() if len(shape) == 2])
    for candidates in choices:
        if len(candidates) == 1:
            return candidates[0]
    listed = ", ".join(f"{name} {shape}".lstrip() for name, shape in list(shapes.items())[:20])
    raise ValueError(
        f"{request.path} holds the {kind} {listed or '(none)'}; name the samples X, or store "
        "one matrix"
    )
