"""What a Zarr store says of itself, looked at before Zarr sees it.

A store is a folder of chunks, each a file of its own. A codec may be a pickle, a chunk may be a
link to another file, a shape says nothing about what was ever written, and codecs unpack as much as
a chunk makes them: none of that is left to Zarr.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from dualtap._files import is_store, open_regular, reading
from dualtap.io.collecting import Request, needed

_FORMATS = {"zarr.json": 3, ".zarray": 2}
_LONGEST_METADATA = 2**24
_MANY_CHUNKS, _MOST_LEFT_OUT = 100_000, 10
_LARGEST_CHUNK = 2**27
_PIECE, _START = 2**20, 32
_BESIDE = 2**16
"""Bytes that a chunk may have beside its values: checksums, texts."""
_HARMLESS = frozenset(
    ("bytes", "endian", "transpose", "vlen-utf8", "crc32c", "shuffle", "delta", "packbits")
)
"""Codecs that turn bytes into numbers or text and can do nothing else."""


def _of_zstd(start: bytes) -> int:
    """Return the size in the header of a frame, whose fifth byte says which fields there are."""
    if start[:4] != b"\x28\xb5\x2f\xfd" or len(start) < 9:
        return 0  # its codec will say that it is none
    told, alone = start[4] >> 6, start[4] >> 5 & 1
    length = (alone, 2, 4, 8)[told]
    if not length:
        raise ValueError("a chunk packed by zstd does not say how long it is")
    at = 6 - alone + (0, 1, 2, 4)[start[4] & 3]
    return int.from_bytes(start[at : at + length], "little") + (256 if told == 1 else 0)


def _inflated(file: IO[bytes]) -> IO[bytes]:
    return io.BytesIO(zlib.decompressobj().decompress(file.read(), _LARGEST_CHUNK + _PIECE))


_STATED: dict[str, Callable[[bytes], int]] = {
    "blosc": lambda start: int.from_bytes(start[4:8], "little"),
    "lz4": lambda start: int.from_bytes(start[:4], "little"),
    "zstd": _of_zstd,
}
"""The size that a chunk states at its start, by which the codec takes memory."""
_UNPACKED: dict[str, Callable[[IO[bytes]], Any]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "zlib": _inflated,
    "bz2": bz2.BZ2File,
    "lzma": lzma.LZMAFile,
}
"""Codecs whose chunks do not say it: it shows when they are unpacked, a piece at a time."""


class Stored(NamedTuple):
    """An array of a store, as its files say."""

    metadata: dict[str, Any]
    zarr_format: int

    @property
    def shape(self) -> tuple[Any, ...]:
        """As declared, whatever that may be."""
        shape = self.metadata.get("shape")
        return tuple(shape) if isinstance(shape, list) else ()


def held(request: Request) -> dict[str, Stored]:
    """Return the arrays of a store by name, that at its root being called ''.

    Examples
    --------
    >>> import pathlib, tempfile, zarr
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.zarr_checks import held
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.zarr")
    >>> _ = zarr.create_group(path).create_array("X", shape=(3, 4), dtype="i1")
    >>> {name: stored.shape for name, stored in held(Request(path)).items()}
    {'X': (3, 4)}
    """
    if not stat.S_ISDIR(_mode(request.path)):
        raise request.error("a Zarr store is a folder, and this is none")
    if not is_store(request.path):
        raise request.error("this folder is not a Zarr store: it holds no zarr.json or .zgroup")
    found, todo = {}, [request.path]
    while todo:
        folder = todo.pop()
        with reading(request.path):
            stored = _stored(folder)
            if stored is None:
                inner = [Path(entry) for entry in os.scandir(folder) if _is_folder(entry)]
                todo += sorted(inner, reverse=True)
        if stored is not None:
            found[folder.relative_to(request.path).as_posix().removeprefix(".")] = stored
    return found


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise ValueError(f"{path} cannot be opened: {error.strerror}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)  # a link may lead in a circle


def _stored(folder: Path) -> Stored | None:
    """Return what a folder says of the array in it; None if it is a group, or nothing at all."""
    for name, zarr_format in _FORMATS.items():
        if not (folder / name).exists():
            continue
        if (folder / name).is_symlink():
            raise ValueError(f"{name!r} is a link; links inside a store are not followed")
        with open_regular(folder / name) as file:
            text = file.read(_LONGEST_METADATA + 1)
        if len(text) > _LONGEST_METADATA:
            raise ValueError(f"its metadata {name} are too long")
        metadata = json.loads(text)
        if not isinstance(metadata, dict):
            raise ValueError(f"its metadata {name} are damaged")
        if name == ".zarray" or metadata.get("node_type") == "array":
            return Stored(metadata, zarr_format)
    return None


def codecs_of(request: Request, stored: Stored) -> list[str]:
    """Return the codecs of an array that unpack, if all that it names are known and safe.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.zarr_checks import Stored, codecs_of
    >>> codecs_of(Request(pathlib.Path("a.zarr")), Stored({"filters": [{"id": "pickle"}]}, 2))
    Traceback (most recent call last):
    ...
    ValueError: a.zarr: it is packed by 'pickle', which dualtap does not read
    """
    told = [stored.metadata.get(key) for key in ("codecs", "filters", "compressor")]
    names = [(codec, codec.removeprefix("numcodecs.")) for codec in _named(told)]
    unpacking = [name for _, name in names if name in {*_STATED, *_UNPACKED}]
    for codec, name in names:
        if name not in {*_HARMLESS, *unpacking, "sharding_indexed"}:
            raise request.error(f"it is packed by {codec[:40]!r}, which dualtap does not read")
    if len(unpacking) > 1:
        raise request.error(f"it is packed more than once, by {' and '.join(unpacking)}")
    return unpacking


def _named(told: Any) -> Iterator[str]:
    """Yield the names of codecs anywhere in metadata."""
    if isinstance(told, dict):
        yield from (told[key] for key in ("name", "id") if isinstance(told.get(key), str))
        yield from _named(list(told.values()))
    elif isinstance(told, list):
        for part in told:
            yield from _named(part) if isinstance(part, (dict, list)) else []


def check_sizes(request: Request, folder: Path, array: Any) -> None:
    """Raise if the files of an opened array cannot hold what it declares.

    Parameters
    ----------
    request : Request
    folder : Path
        Of the array.
    array : zarr.Array
    """
    with reading(request.path, ArithmeticError):  # chunks of no size
        chunk = array.shards or array.chunks
        n_chunks = math.prod(-(-n // c) for n, c in zip(array.shape, chunk, strict=True))
        n_bytes, size = (math.prod(shape) * array.dtype.itemsize for shape in (array.shape, chunk))
        sizes = [size for _, size in _files(folder)]
    if size > _LARGEST_CHUNK:
        raise request.error(
            f"its chunks of shape {chunk} take {size / 2**30:.1f} GB each; store smaller ones"
        )
    largest, most = max(sizes, default=0), _LARGEST_CHUNK if array.dtype.kind == "T" else size
    if array.shards is None and largest > most + _BESIDE:
        raise request.error(f"a chunk of at most {most} bytes is stored in {largest}")
    if n_chunks > max(_MANY_CHUNKS, _MOST_LEFT_OUT * len(sizes)):
        raise request.error(
            f"it declares shape {array.shape} in {n_chunks} chunks, and only {len(sizes)} are "
            "stored"
        )
    request.check_expansion(sum(sizes), n_bytes)


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files below a folder and their sizes."""
    todo = [os.fspath(folder)]
    while todo:
        for entry in list(os.scandir(todo.pop())):
            if entry.is_symlink():  # it may lead to a file that is not part of the store
                raise ValueError(f"{entry.name!r} is a link; links inside a store are not followed")
            if _is_folder(entry):
                todo.append(entry.path)
            elif entry.is_file():
                yield Path(entry.path), entry.stat().st_size
            else:  # a pipe or a device may never end
                raise ValueError(f"{entry.name!r} is not a regular file")


def check_chunks(request: Request, folder: Path, array: Any, codecs: Sequence[str]) -> None:
    """Raise if a chunk unpacks to more than the array says of it.

    Parameters
    ----------
    request : Request
    folder : Path
        Of the array.
    array : zarr.Array
    codecs : sequence of str
        As :func:`codecs_of` returns them.
    """
    n, texts = math.prod(array.chunks), array.dtype.kind == "T"
    size = n * array.dtype.itemsize
    # Filters may make numbers wider, and how long texts are only they say.
    most = _LARGEST_CHUNK if texts else min(8 * size, _LARGEST_CHUNK) + _BESIDE
    codec = codecs[0] if codecs else ""
    for path, length in _files(folder) if codec or texts else ():
        if path.name.startswith((".z", "zarr.json")):
            continue
        with reading(request.path, lzma.LZMAError, RuntimeError), open_regular(path) as file:
            for start, stop in _pieces(file, length, array):
                file.seek(start)
                n_bytes = max(stop - start - _of_checksum(array), 0)
                few = codec in _STATED and not texts
                packed = file.read(min(n_bytes, _START) if few else n_bytes)
                if codec and _unpacks_beyond(packed, codec, most):
                    raise ValueError(
                        f"a chunk of {size} bytes, {path.name!r}, unpacks to more than {most}"
                    )
                if texts and (told := _n_texts(packed, codec)) != n:
                    raise ValueError(f"a chunk of {n} texts, {path.name!r}, claims {told}")


def _of_checksum(array: Any) -> int:
    """Return how many bytes follow a packed chunk."""
    codecs: Sequence[Any] = getattr(array.metadata, "codecs", ())
    inner = codecs[0].codecs if array.shards is not None else codecs
    return 4 if inner and type(inner[-1]).__name__ == "Crc32cCodec" else 0


def _n_texts(packed: bytes, codec: str) -> int:
    """Return how many texts a chunk says that it holds, by which their codec takes memory."""
    if codec in _STATED:
        numcodecs = needed("numcodecs", "zarr", "reading Zarr stores")
        packed = bytes(numcodecs.get_codec({"id": codec}).decode(packed)[:4])
    elif codec:
        packed = _UNPACKED[codec](io.BytesIO(packed)).read(4)
    return int.from_bytes(packed[:4], "little")


def _pieces(file: IO[bytes], length: int, array: Any) -> Iterator[tuple[int, int]]:
    """Yield where the chunks in a file begin and end: one, or those of a shard by its index."""
    if array.shards is None:
        yield 0, length
        return
    sharding = array.metadata.codecs[0]
    n_chunks = math.prod(s // c for s, c in zip(array.shards, array.chunks, strict=True))
    n_bytes = 16 * n_chunks + 4 * (len(sharding.index_codecs) > 1)
    if n_bytes > length or len(sharding.index_codecs) > 2:
        raise ValueError("the index of a shard is damaged")
    file.seek(0 if sharding.index_location.value == "start" else length - n_bytes)
    for offset, size in struct.iter_unpack("<QQ", file.read(16 * n_chunks)):
        if offset != 2**64 - 1:  # one that was left out
            if offset + size > length:
                raise ValueError("the index of a shard points beyond it")
            yield offset, offset + size


def _unpacks_beyond(packed: bytes, codec: str, most: int) -> bool:
    """Whether a chunk packed by a codec unpacks to more than that."""
    if codec in _STATED:
        return _STATED[codec](packed) > most
    unpacked, total = _UNPACKED[codec](io.BytesIO(packed)), 0
    while total <= most and (piece := unpacked.read(_PIECE)):
        total += len(piece)
    return total > most
