"""Files with bytes changed at random: each is read or refused in one line, soon, in little memory.

A child reads one file after the other and says what came of it; if it dies or does not answer, that
is the finding, and another child goes on.
"""

from __future__ import annotations

import gzip
import multiprocessing
import os
import resource
import shutil
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dualtap as dt
from dualtap.io import load, read_samples, write_samples

FORMATS = (
    *(".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".arrow", ".feather"),
    *(".h5", ".zarr", ".model.npz", ".rbm.npz"),
)
_SECONDS, _SECONDS_OF_A_CLOCK = 5, 60  # of the processor, for files of a few kB; on a busy machine
_MEGABYTES = 500  # libraries included, over all files that one process reads


class Case(NamedTuple):
    """A mutated file, and what came of it: "read", "refused", or what went wrong."""

    suffix: str
    seed: int
    outcome: str


def original(folder: Path, suffix: str) -> Path:
    """Write a sound file, which mutations start from."""
    X = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(40, 9))
    path = folder / f"original{suffix}"
    if suffix.endswith(".npz") and suffix != ".npz":
        model = dt.HopfieldPatterns(2, random_state=0)
        if "rbm" in suffix:
            model = dt.HopfieldRBM(2, max_updates=2, batch_size=8, n_chains=4, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dt.save(model.fit(X), path)
        return path
    texts = {} if suffix == ".npy" else {"names": list("abcdefghi"), "labels": range(40)}
    write_samples(path, X, **texts)  # type: ignore[arg-type]
    return path


def mutated(source: Path, target: Path, seed: int) -> None:
    """Write a copy with bytes changed, cut out, repeated or put in, the same for the same seed."""
    rng = np.random.default_rng(seed)
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        parts = sorted(path for path in target.rglob("*") if path.is_file())
        source = target = parts[int(rng.integers(len(parts)))]
    data = source.read_bytes()
    inside = rng.random() < 0.7  # beneath the checksums, which few changes pass
    if inside and source.suffix == ".gz":
        target.write_bytes(gzip.compress(_changed(gzip.decompress(data), rng)))
    elif inside and source.suffix == ".npz":
        _change_member(source, target, rng)
    else:
        target.write_bytes(_changed(data, rng))


def _change_member(source: Path, target: Path, rng: np.random.Generator) -> None:
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = list(members)[int(rng.integers(len(members)))]
    members[chosen] = _changed(members[chosen], rng)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _changed(original: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with a few changes at random."""
    data = bytearray(original)
    for _ in range(int(rng.integers(1, 5))):
        at, length = int(rng.integers(max(len(data), 1))), int(rng.integers(1, 9))
        piece = rng.bytes(length) if rng.random() < 0.6 else bytes([rng.choice([0, 255])]) * length
        kind = rng.random()
        if kind < 0.7:
            data[at : at + length] = piece[: len(data[at : at + length])]
        elif kind < 0.8:
            del data[at : at + length * int(rng.integers(1, 50))]
        elif kind < 0.9:
            data[at:at] = piece
        else:
            data[at:at] = data[at : at + 64]
    return bytes(data)


def _reader(connection: Connection) -> None:
    """Read the files that are named, until there are no more."""
    start = _peak()  # on Linux that of the parent, too, when it started this process
    for name, suffix in iter(connection.recv, None):
        before = _seconds()
        outcome = _outcome(name, suffix)
        if (taken := _seconds() - before) > _SECONDS:
            outcome = f"{taken:.0f} s taken"
        grown = _peak() - start
        connection.send(f"{grown:.0f} MB taken" if grown > _MEGABYTES else outcome)


def _peak() -> float:
    """Return the most megabytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _seconds() -> float:
    """Return the time of the processor that this process and its children have taken."""
    return sum(os.times()[:4])


def _outcome(name: str, suffix: str) -> str:
    """Return what came of reading one file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if suffix in (".model.npz", ".rbm.npz"):
                load(name)
            else:
                read_samples(name, labels=None if suffix == ".npy" else "label")
    except ValueError as error:
        told = str(error)
        one_line = "\n" not in told and Path(name).name in told
        return "refused" if one_line else f"not one line that names the file: {told[:200]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    return "read"


class _Child:
    """A process that reads files, and is replaced when it does not answer."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_reader, args=(there,), daemon=True)
        self._process.start()
        there.close()

    def outcome(self, path: Path, suffix: str) -> str:
        self._here.send((str(path), suffix))
        try:
            if self._here.poll(_SECONDS_OF_A_CLOCK):
                told = str(self._here.recv())
                if not told.endswith("MB taken"):  # which would be said of all later files
                    return told
            else:
                told = f"no answer in {_SECONDS_OF_A_CLOCK} s"
        except EOFError:
            self._process.join()
            told = f"the process ended with {self._process.exitcode}"
        self.close()
        self._start()
        return told

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def attempts(folder: Path, seeds: Mapping[str, range], deadline: float) -> Iterator[Case]:
    """Yield what came of mutated files, those of every format in turn.

    Parameters
    ----------
    folder : Path
        For the files.
    seeds : mapping of str to range
        Of the mutations of every format, some of ``FORMATS``.
    deadline : float
        Of :func:`time.monotonic`.
    """
    sources = {suffix: original(folder, suffix) for suffix in seeds}
    child = _Child()
    try:
        for turn in zip_longest(*seeds.values()):
            for suffix, seed in zip(seeds, turn, strict=True):
                if time.monotonic() > deadline:
                    return
                if seed is not None:
                    target = folder / f"d{suffix}"
                    mutated(sources[suffix], target, seed)
                    yield Case(suffix, seed, child.outcome(target, suffix))
    finally:
        child.close()
