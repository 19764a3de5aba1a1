"""How much memory reading takes at its peak, in a process that does nothing else."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dualtap.io import read_samples
from dualtap.spins import builder

STATUS = Path("/proc/self/status")
on_linux = pytest.mark.skipif(not STATUS.exists(), reason="memory is read off /proc")


class Reading(NamedTuple):
    """What was read, and how far the peak was then above that before."""

    path: str
    growth: float
    """Megabytes."""
    shape: tuple[int, int]
    total: int
    """Sum of the first seven samples."""


def readings(small, large, libraries=()):
    """Read files, transposed if their name says turned, and give each back.

    Before, the libraries are loaded and a small file is read: what that takes is not counted.
    """
    words = [",".join(libraries), str(small), *map(str, large)]
    done = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, check=True
    )
    lines = map(json.loads, done.stdout.splitlines())
    return [Reading(path, growth, tuple(shape), total) for path, growth, shape, total in lines]


def _peak():
    # Of this process alone: ru_maxrss begins with that of its parent.
    return int(STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024


def _main(libraries, small, *large):
    builder.DENSE = 0  # as if there were more of them
    for name in filter(None, libraries.split(",")):
        importlib.import_module(name)
    read_samples(small)
    before = _peak()
    for path in large:
        spins = read_samples(path, transpose="turned" in Path(path).name).spins
        total = int(spins.block(slice(7)).sum())
        print(json.dumps(Reading(path, _peak() - before, spins.shape, total)))
        del spins


if __name__ == "__main__":
    _main(*sys.argv[1:])
