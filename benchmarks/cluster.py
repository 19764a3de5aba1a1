"""What a pass over samples on a Dask cluster costs: a model, and how far it is right."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.scaling import Size, drawn
from dualtap import HopfieldPatterns
from dualtap.metrics import match
from dualtap.spins import PackedSpins
from dualtap.spins.blocks import Blocks
from dualtap.spins.cluster import _FAN_IN, ClusterBlocks, ClusterSpins
from dualtap.spins.dask_arrays import connected

PASSES = "A pass V SᵀS of 64 vectors on local Dask workers: predicted and measured"
FITS = "Blind fits on local Dask workers, the same samples"
MACHINES = "What the model says of N = M = 10⁶ on 100 machines of 16 cores"

SIZE = Size(20_000, 20_000, 20)
VECTORS = 64


@dataclass(frozen=True)
class Machine:
    """What a worker and the way to it can do.

    Attributes
    ----------
    rate : float
        Floating point operations a second of one core, unpacking included.
    bandwidth : float
        Bytes a second from one process to another, packing and unpacking them included.
    latency : float
        Seconds of a task that does nothing.
    n_workers, n_cores : int
        Workers, and cores that they have together.
    """

    rate: float
    bandwidth: float
    latency: float
    n_workers: int
    n_cores: int


@dataclass(frozen=True)
class Cost:
    """Of one pass, k vectors, W workers with a chunk each."""

    flops: float
    """4 k M N: two products."""
    sent: float
    """Bytes of V from hand to hand: client, scheduler, one worker, and from there to all."""
    returned: float
    """Bytes that come to the worker who adds most, and from it to the client."""
    messages: int
    """Tasks: V, one a chunk, and those that add."""


def cost(n_spins: int, n_samples: int, k: int, n_workers: int) -> Cost:
    """Return what a pass is made of."""
    block = 4.0 * k * n_spins
    hops = 2 + math.ceil(math.log2(n_workers)) if n_workers > 1 else 2
    levels, left, inner = 0, n_workers, 0
    while left > 1:
        left = -(-left // _FAN_IN)
        levels, inner = levels + 1, inner + left
    fetched = min(_FAN_IN, n_workers) - 1
    return Cost(
        flops=4.0 * k * n_samples * n_spins,
        sent=hops * block,
        returned=(levels * fetched + 1) * block,
        messages=1 + n_workers + inner,
    )


def seconds(what: Cost, machine: Machine) -> float:
    """Return how long a pass takes, the parts one after the other."""
    return (
        what.flops / (machine.rate * machine.n_cores)
        + (what.sent + what.returned) / machine.bandwidth
        + machine.latency * what.messages
    )


def passes(worker_counts: tuple[int, ...] = (1, 2, 4), runs: int = 5) -> list[dict[str, object]]:
    """Time passes on clusters of several sizes; rate, bandwidth and latency in the same run."""
    _, spins = drawn(SIZE)
    V = np.random.default_rng(0).standard_normal((VECTORS, SIZE.n_spins), dtype=np.float32)
    n_cores = Blocks(spins)._workers
    rows = []
    for n_workers in worker_counts:
        rate = (
            4.0
            * VECTORS
            * spins.n_entries
            / _median(lambda: Blocks(spins, workers=1).gram_dot(V), 3)
        )
        with connected("local", n_workers) as client:
            blocks = ClusterBlocks(_spread(client, spins, n_workers))
            bandwidth, latency = _transport(client, V)
            measured = _median(partial(blocks.gram_dot, V), runs)
        # More workers than cores share these.
        machine = Machine(rate, bandwidth, latency, n_workers, min(n_workers, n_cores))
        what = cost(SIZE.n_spins, SIZE.n_samples, VECTORS, n_workers)
        rows.append(_row(machine, what, measured))
    return rows


def _row(machine: Machine, what: Cost, measured: float) -> dict[str, object]:
    predicted = seconds(what, machine)
    return {
        "workers": machine.n_workers,
        "GFLOP": what.flops / 1e9,
        "MB moved": (what.sent + what.returned) / 1e6,
        "messages": what.messages,
        "GFLOP/s a core": machine.rate / 1e9,
        "MB/s": machine.bandwidth / 1e6,
        "ms a task": 1e3 * machine.latency,
        "predicted (s)": predicted,
        "measured (s)": measured,
        "measured / predicted": measured / predicted,
    }


def fits(worker_counts: tuple[int, ...] = (1, 2, 4)) -> list[dict[str, object]]:
    """Time whole fits, in this process and on clusters, and compare what they find."""
    patterns, spins = drawn(SIZE)
    HopfieldPatterns(random_state=0).fit(drawn(Size(2_000, 500, 5))[1])  # compiles
    start = time.perf_counter()
    here = HopfieldPatterns(random_state=0).fit(spins)
    rows = [_fit_row("this process", here, here, patterns, time.perf_counter() - start)]
    for n_workers in worker_counts:
        with connected("local", n_workers) as client:
            there = _spread(client, spins, 4)  # the same chunks whatever the number of workers
            start = time.perf_counter()
            model = HopfieldPatterns(random_state=0).fit(there)
            taken = time.perf_counter() - start
        where = f"{n_workers} worker{'s' if n_workers > 1 else ''}"
        rows.append(_fit_row(where, model, here, patterns, taken))
    return rows


def _fit_row(
    where: str, model: HopfieldPatterns, here: HopfieldPatterns, patterns: Any, taken: float
) -> dict[str, object]:
    return {
        "where": where,
        "seconds": taken,
        "passes": model.n_passes_,
        "patterns found": match(model.patterns_, patterns).n_recovered(0.97),
        "bits as in this process": bool(np.array_equal(model.patterns_, here.patterns_)),
    }


def machines() -> list[dict[str, object]]:
    """Return what a pass and a fit of a million samples of a million spins would cost."""
    n, n_workers, cores = 10**6, 100, 16
    machine = Machine(50e9, 1e9, 5e-3, n_workers, n_workers * cores)
    some = cost(n, 2**16, VECTORS + 10, n_workers)
    every = cost(n, n, VECTORS + 10, n_workers)
    rows = []
    for what, one, count in (
        ("samples deep in states: 11 passes, 65,536 samples searched", some, 11),
        ("samples that lean on patterns a little: 64 passes over all", every, 64),
    ):
        rows.append(
            {
                "fit": what,
                "packed on a machine (GB)": n * n / 8 / n_workers / 1e9,
                "TFLOP a pass": one.flops / 1e12,
                "GB moved a pass": (one.sent + one.returned) / 1e9,
                "messages a pass": one.messages,
                "computing (s)": one.flops / (machine.rate * machine.n_cores),
                "moving (s)": (one.sent + one.returned) / machine.bandwidth,
                "a pass (s)": seconds(one, machine),
                "all passes (min)": count * seconds(one, machine) / 60,
            }
        )
    return rows


def _spread(client: Any, spins: PackedSpins, n_chunks: int) -> ClusterSpins:
    """Return packed samples as that many chunks on the workers, evenly."""
    parts = np.array_split(np.arange(spins.n_samples), n_chunks)
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    chunks = [
        client.scatter(spins.take(part), workers=[workers[k % len(workers)]], hash=False)
        for k, part in enumerate(parts)
    ]
    sizes = [len(part) for part in parts]
    return ClusterSpins(client, chunks, sizes, spins.n_spins, spins.encoding, 0)


def _transport(client: Any, V: Any) -> tuple[float, float]:
    """Return bytes a second to a worker and back, and seconds of a task that does nothing."""
    latency = _median(lambda: client.submit(int, 0, pure=False).result(), 20)
    both = _median(lambda: client.submit(np.negative, V, pure=False).result(), 5)
    # To the scheduler, to the worker, and back to here.
    return 3 * V.nbytes / max(both - latency, 1e-6), latency


def _median(task: Callable[[], Any], runs: int) -> float:
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
