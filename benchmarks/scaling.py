"""Large problems: the share of the machine that an iteration reaches, growth, and one large fit."""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory import peak_of
from benchmarks.rbm import PICTURES
from dualtap import HopfieldPatterns
from dualtap.couplings import GramCouplings, HebbianCouplings
from dualtap.io import write_samples
from dualtap.metrics import match
from dualtap.published.starts import random_students
from dualtap.schemes import TAP
from dualtap.spins.blocks import Blocks
from dualtap.spins.packed import PackedSpins
from dualtap.theory import curie_weiss_magnetization

SHARE = "One TAP iteration against the machine's own products, N=100,000 M=10,000"
GROWTH = "Time of a blind fit against N, M and P, β=2"
LARGE = "A blind fit of a memory-mapped file, N=100,000 M=10,000 P=50 β=2"
PAPER = "The published algorithm with P given, N=100,000 M=10,000 P=50 β=2"

_REST = 0.2  # seconds: the threads of BLAS spin for a while after their work, in the way of others
_STEP = 2**23  # spins drawn at a time
_RECOVERED = 0.97  # overlap
_MOST_MEMORY = 700  # megabytes
_LINEAR = 0.9, 1.15  # exponents


class Size(NamedTuple):
    """How large a problem is."""

    n_spins: int
    n_samples: int
    n_patterns: int


WHOLE = Size(100_000, 10_000, 50)
SERIES = {
    "N": [Size(n, 5_000, 20) for n in (10_000, 20_000, 50_000, 100_000)],
    "M": [Size(20_000, n, 20) for n in (6_000, 12_000, 30_000, 60_000)],
    "P": [Size(20_000, 10_000, n) for n in (100, 200, 500, 1_000)],
}


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return k of seconds ∝ sizeᵏ, by least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def drawn(size: Size, beta: float = 2.0, seed: int = 0) -> tuple[NDArray[np.int8], PackedSpins]:
    """Return patterns and samples deep in their states, packed as they are drawn.

    Sample a is pattern a mod P with a random sign, every bit flipped with probability (1 - m)/2,
    m = tanh βm: the mean-field state. Gibbs sampling would take hours at these sizes.

    Returns
    -------
    patterns : array of shape (n_patterns, n_spins)
    spins : PackedSpins
    """
    n_spins, n_samples, n_patterns = size
    rng = np.random.default_rng(seed)
    flipped = round((1 - float(curie_weiss_magnetization(beta))) / 2 * 2**16)
    zeta = rng.integers(256, size=(n_patterns, -(-n_spins // 8)), dtype=np.uint8)
    bits = np.empty((n_samples, zeta.shape[1]), dtype=np.uint8)
    step = max(1, _STEP // n_spins)
    for first in range(0, n_samples, step):
        a = np.arange(first, min(first + step, n_samples))
        chance = rng.integers(2**16, size=(len(a), 8 * zeta.shape[1]), dtype=np.uint16)
        sign = rng.integers(2, size=(len(a), 1), dtype=np.uint8) * np.uint8(255)
        bits[a] = zeta[a % n_patterns] ^ np.packbits(chance < flipped, axis=1) ^ sign
    patterns = PackedSpins(zeta, None, n_spins, "-1/+1").values
    return patterns, PackedSpins(bits, None, n_spins, "-1/+1")


class Times(NamedTuple):
    """Seconds of every run on the clock, and of all cores together, which neighbours move less."""

    wall: list[float]
    cpu: list[float]

    @property
    def median(self) -> float:
        """On the clock."""
        return statistics.median(self.wall)


def interleaved(tasks: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, Times]:
    """Return the times of every task, all run in turns, after one round that is not timed."""
    times = {name: Times([], []) for name in tasks}
    for run in range(runs + 1):
        for name, task in tasks.items():
            time.sleep(_REST)
            start = time.perf_counter(), time.process_time()
            task()
            if run:
                times[name].wall.append(time.perf_counter() - start[0])
                times[name].cpu.append(time.process_time() - start[1])
    return times


def share(size: Size = WHOLE, n_students: int = 64, runs: int = 3) -> list[dict[str, object]]:
    """Time an iteration of all students on floats and on bits, and the products alone."""
    _, spins = drawn(size)
    S = np.empty(spins.shape, dtype=np.float32)
    for rows in spins.blocks():
        S[rows] = spins.floats(rows)
    m = random_students(n_students, size.n_spins, np.random.default_rng(1))
    dense = TAP(HebbianCouplings(S), 2.0)
    packed = TAP(GramCouplings(Blocks(spins)), 2.0)
    ours = {
        "TAP, float32": lambda: dense.step(dense.init(m)),
        "TAP, one bit a spin": lambda: packed.step(packed.init(m)),
    }
    times = interleaved(_products(S, m) | ours, runs)
    median = {name: values.median for name, values in times.items()}
    best = [min(s for name, s in median.items() if name.startswith(p)) for p in ("S m", "x S")]
    flop = 4.0 * size.n_samples * size.n_spins * n_students
    seconds = {"the two products alone, sgemm": sum(best)} | {name: median[name] for name in ours}
    return [
        {
            "what": what,
            "seconds": s,
            "GFLOP/s": flop / s / 1e9,
            "share of sgemm": sum(best) / s,
            "needed": needed,
            "runs": runs,
        }
        for (what, s), needed in zip(seconds.items(), ("-", 0.7, 0.5), strict=True)
    ]


def _products(S: NDArray[np.float32], m: NDArray[np.float32]) -> dict[str, Callable[[], Any]]:
    """Return S mᵀ and x S, the products of an iteration, in every layout NumPy offers."""
    upright = np.ascontiguousarray(m.T)
    x = S @ upright
    lying = np.ascontiguousarray(x.T)
    return {
        "S m, rows": lambda: S @ m.T,
        "S m, columns": lambda: S @ upright,
        "S m, exchanged": lambda: m @ S.T,
        "x S, rows": lambda: lying @ S,
        "x S, columns": lambda: x.T @ S,
        "x S, exchanged": lambda: S.T @ x,
    }


def growth(series: dict[str, list[Size]] = SERIES, runs: int = 2) -> list[dict[str, Any]]:
    """Time blind fits over a decade of each size, the others fixed."""
    HopfieldPatterns(random_state=0).fit(drawn(Size(2_000, 500, 5))[1])  # compiles
    return [row for name, sizes in series.items() for row in _series(name, sizes, runs)]


def _series(name: str, sizes: list[Size], runs: int) -> list[dict[str, Any]]:
    data = [drawn(size) for size in sizes]
    fits: dict[Size, HopfieldPatterns] = {}

    def fit(size: Size, spins: PackedSpins) -> None:
        fits[size] = HopfieldPatterns(random_state=0).fit(spins)

    tasks = {
        str(size): partial(fit, size, spins) for size, (_, spins) in zip(sizes, data, strict=True)
    }
    times = interleaved(tasks, runs)
    seconds = [times[str(size)].median for size in sizes]
    cpu = [statistics.median(times[str(size)].cpu) for size in sizes]
    values = [size["NMP".index(name)] for size in sizes]
    return [
        {
            "varied": name,
            "N": size.n_spins,
            "M": size.n_samples,
            "P": size.n_patterns,
            "seconds": s,
            "spread": float(np.ptp(times[str(size)].wall)),
            "CPU seconds": of_cores,
            "patterns found": _found(fits[size].patterns_, patterns),
            "passes": fits[size].n_passes_,
            "exponent": exponent(values, seconds),
            "of CPU seconds": exponent(values, cpu),
            "needed": f"{_LINEAR[0]} to {_LINEAR[1]}",
            "runs": runs,
        }
        for size, s, of_cores, (patterns, _) in zip(sizes, seconds, cpu, data, strict=True)
    ]


def _found(found: NDArray[np.int8], patterns: NDArray[np.int8]) -> str:
    return f"{match(found, patterns).n_recovered(_RECOVERED)} of {len(patterns)}"


def plot_growth(rows: list[dict[str, Any]]) -> None:
    """Draw the time of a fit against each size, with the line of its exponent."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    names = list(dict.fromkeys(row["varied"] for row in rows))
    titles = {"N": "spins N", "M": "samples M", "P": "patterns P"}
    for ax, name in zip(figure.subplots(1, len(names)), names, strict=True):
        own = [row for row in rows if row["varied"] == name]
        x = np.array([row[name] for row in own], dtype=float)
        y = np.array([row["seconds"] for row in own])
        k = own[0]["exponent"]
        ax.loglog(x, y, "ko", label="measured")
        ax.loglog(x, np.exp(np.log(y).mean()) * (x / math.exp(np.log(x).mean())) ** k, "C0--")
        ax.set(xlabel=titles[name], ylabel="seconds", title=f"time ∝ {name}$^{{{k:.2f}}}$")
        ax.set_xticks(x, [f"{value:,.0f}" for value in x])
        ax.set_yticks(y, [f"{value:.2g}" for value in y])
        ax.minorticks_off()
    figure.suptitle("Blind fits of data at one bit a spin, β = 2")
    figure.savefig(PICTURES / "scaling-growth.png", dpi=120)


_FIT = """
import json, sys, time
import numpy as np
import dualtap as dt
path, model, results, out = sys.argv[1:]
X = np.load(path, mmap_mode="r")
start = time.perf_counter(), time.process_time()
fitted = eval(model, {"dt": dt}).fit(X)
seconds, of_cores = time.perf_counter() - start[0], time.process_time() - start[1]
np.save(out, fitted.patterns_)
told = {"seconds": seconds, "cpu": of_cores, "beta": fitted.beta_, "passes": fitted.n_passes_}
open(results, "w").write(json.dumps(told))
"""


def large(
    model: str = "dt.HopfieldPatterns(random_state=0)", size: Size = WHOLE
) -> list[dict[str, object]]:
    """Fit a memory-mapped file in a process of its own; needs 1 GB of disk."""
    with tempfile.TemporaryDirectory() as folder:
        data, results, found = (Path(folder, name) for name in ("X.npy", "told.json", "found.npy"))
        patterns, spins = drawn(size)
        write_samples(data, spins)
        del spins
        peak = peak_of([sys.executable, "-c", _FIT, *map(str, (data, model, results, found))])
        told = json.loads(results.read_text())
        recovered = _found(np.load(found), patterns)
        file_size = data.stat().st_size
    return [
        {
            "N": size.n_spins,
            "M": size.n_samples,
            "P": size.n_patterns,
            "model": model.removeprefix("dt."),
            "file (MB)": round(file_size / 1e6),
            "patterns found": recovered,
            "β": told["beta"],
            "seconds": told["seconds"],
            "CPU seconds": told["cpu"],
            "passes": told["passes"],
            "peak (MB)": round(peak),
            "bound (MB)": _MOST_MEMORY,
        }
    ]


def paper() -> list[dict[str, object]]:
    """Run the published algorithm on the same file, with ten students per round."""
    options = "n_patterns=50, beta=2.0, n_students=10, random_state=0"
    return large(f"dt.DualTAP({options})")
