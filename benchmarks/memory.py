"""Files larger than is comfortable: how much memory `dualtap fit` takes, and what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import dualtap as dt

TITLE = "Memory of `dualtap fit` on large files"
_FLIPPED = 6  # of 256: overlap 0.95 with the pattern, as at β = 2
_STEP = 2**24


class Case(NamedTuple):
    """A file of clusters around random patterns."""

    name: str
    n_samples: int
    n_spins: int
    n_patterns: int
    write: Callable[[Path, Case, NDArray[np.int8]], None]

    @property
    def bound(self) -> float:
        """Megabytes: half as much again as one bit a spin, and 500."""
        return 1.5 * self.n_samples * self.n_spins / 8e6 + 500


def _samples(case: Case, patterns: NDArray[np.int8], first: int) -> NDArray[np.int8]:
    rng = np.random.default_rng([1, first])
    n = min(max(1, _STEP // case.n_spins), case.n_samples - first)
    flipped = rng.integers(0, 256, size=(n, case.n_spins), dtype=np.uint8) < _FLIPPED
    X = patterns[rng.integers(case.n_patterns, size=n)]
    np.negative(X, out=X, where=flipped)
    return X


def _write_npy(path: Path, case: Case, patterns: NDArray[np.int8]) -> None:
    with path.open("wb") as file:
        header = {"descr": "|i1", "fortran_order": False, "shape": (case.n_samples, case.n_spins)}
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, case.n_samples, max(1, _STEP // case.n_spins)):
            file.write(_samples(case, patterns, first).tobytes())


def _write_csv(path: Path, case: Case, patterns: NDArray[np.int8]) -> None:
    with path.open("wb") as file:
        file.write(",".join(f"spin{k}" for k in range(case.n_spins)).encode() + b"\n")
        for first in range(0, case.n_samples, max(1, _STEP // case.n_spins)):
            X = _samples(case, patterns, first)
            text = np.full((len(X), 2 * case.n_spins), ord(","), dtype=np.uint8)
            text[:, ::2] = ord("0") + (X > 0)
            text[:, -1] = ord("\n")
            file.write(text.tobytes())


CASES = [
    Case("2 GB .csv", 200_000, 5_000, 20, _write_csv),
    Case("4 GB .npy", 400_000, 10_000, 20, _write_npy),
    Case("4 GB .npy, many samples", 4_000_000, 1_000, 20, _write_npy),
    Case("4 GB .npy, many spins", 40_000, 100_000, 20, _write_npy),
]


def table(cases: list[Case] = CASES) -> list[dict[str, object]]:
    """Make each file, fit it by the command, and return a row each; needs 4 GB of disk."""
    return [_row(case) for case in cases]


def _row(case: Case) -> dict[str, object]:
    rng = np.random.default_rng(0)
    patterns = rng.choice(np.array([-1, 1], np.int8), size=(case.n_patterns, case.n_spins))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data" + case.name.split(",")[0].split()[-1])
        case.write(path, case, patterns)
        size = path.stat().st_size
        start = time.perf_counter()
        model = Path(folder, "model.npz")
        peak = peak_of([sys.executable, "-m", "dualtap", "fit", str(path), "-o", str(model), "-q"])
        seconds = time.perf_counter() - start
        matched = dt.metrics.match(dt.load(model).patterns_, patterns)
    return {
        "file": case.name,
        "samples × spins": f"{case.n_samples:,} × {case.n_spins:,}",
        "size (GB)": round(size / 1e9, 2),
        "peak (MB)": round(peak),
        "bound (MB)": round(case.bound),
        "patterns found": f"{matched.n_recovered(0.999)} of {case.n_patterns}",
        "seconds": round(seconds),
    }


def peak_of(command: list[str]) -> float:
    """Run a command and return the largest resident set it had, in megabytes."""
    watch = (
        "import json, resource, subprocess, sys\n"
        "subprocess.run(json.loads(sys.argv[1]), check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", watch, json.dumps(command)],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout.split()[-1]) / 1e3 * 1.024
