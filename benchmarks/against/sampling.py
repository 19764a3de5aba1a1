"""Sampling: spin updates a second of sequential dynamics at equilibrium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.against.contest import Contender, Request, contest
from benchmarks.against.plots import save_bars
from benchmarks.against.tables import Rows, Table, long, titled
from dualtap import HopfieldModel
from dualtap._progress import Advance

N_SPINS, N_PATTERNS, BETA = 1000, 20, 2.0
MOST_CHAINS = 1024
OURS = "dualtap"
CAPTION = """N=1000, P=20, β=2, chains started at patterns. Only sampling is timed: models and
lists of neighbours are built before. Every method works for about a second, in its best
configuration: D-Wave with few long chains, because the start of a chain costs as much as a few
sweeps; coniii with an energy of rank P instead of its own sum over pairs. coniii and pseudolm do
not use a second thread.
"Numba, plain loops" was written for this table: what a user who knows the rank would write. A
Metropolis update is a proposal. Own overlap: of a sample with the pattern where its chain started,
0.945 at equilibrium. Medians of interleaved runs, one process per method."""


def contenders(quick: bool) -> list[Contender]:
    """Return everybody with the number of chains and sweeps, ours first."""

    def entry(
        name: str, script: str, method: str, where: str, n_chains: int, n_sweeps: int
    ) -> Contender:
        sweeps = max(1, n_sweeps // 4) if quick else n_sweeps
        setup = {"method": method, "n_chains": n_chains, "n_sweeps": sweeps}
        return Contender(name, script, setup, where)

    ours, dwave = "dualtap_sampling.py", "dwave_sampling.py"
    return [
        entry(OURS, ours, "dualtap", OURS, MOST_CHAINS, 200),
        entry("Numba, plain loops", ours, "Numba", OURS, 256, 200),
        entry("NumPy, vectorised over chains", ours, "NumPy", OURS, MOST_CHAINS, 20),
        entry("dwave-samplers, Gibbs", dwave, "Gibbs", "dwave-samplers", 16, 1000),
        entry("dwave-samplers, Metropolis", dwave, "Metropolis", "dwave-samplers", 16, 1000),
        entry("pseudolm, Metropolis", "pseudolm_sampling.py", "", "pseudolm", 4, 100),
        entry("coniii, Metropolis", "coniii_sampling.py", "", "coniii", 2, 20),
    ]


def n_answers(runs: int, quick: bool) -> int:
    """Return how often the progress bar moves."""
    return runs * len(contenders(quick)) * len(_threads(quick))


def _threads(quick: bool) -> tuple[int, ...]:
    return (1,) if quick else (1, 2)


def measure(runs: int, quick: bool, folder: Path, advance: Advance) -> Rows:
    """Run everybody on one thread and on two."""
    start, request = _write(N_SPINS, folder)
    _, warm_up = _write(100, folder)

    def own_overlap(number: int, states: NDArray[Any]) -> dict[str, float]:
        return {"own overlap": float(np.mean(states * start[: len(states)].astype(float)))}

    rows = []
    for threads in _threads(quick):
        everybody = contenders(quick)
        requests = [request | {"seed": 100 + run} for run in range(runs)]
        results = contest(everybody, warm_up, requests, own_overlap, threads, advance)
        for one, result in zip(everybody, results, strict=True):
            row = result.row(f"N={N_SPINS} P={N_PATTERNS} β={BETA:g}")
            n_updates = one.setup["n_chains"] * one.setup["n_sweeps"] * N_SPINS
            rows.append(row | {"updates_per_s": n_updates / row["median_s"]})
    return rows


def _write(n_spins: int, folder: Path) -> tuple[NDArray[np.int8], Request]:
    """Write the files of a model and return the starts and the request."""
    teacher = HopfieldModel.random(n_spins, N_PATTERNS, BETA, random_state=0)
    start = teacher.patterns[np.arange(MOST_CHAINS) % N_PATTERNS]
    patterns, starts = folder / f"patterns-{n_spins}.npy", folder / f"start-{n_spins}.npy"
    np.save(patterns, teacher.patterns)
    np.save(starts, start)
    return start, {"patterns": str(patterns), "start": str(starts), "beta": BETA, "seed": 0}


def tables(rows: Rows) -> list[Table]:
    """Return the table of speeds."""
    columns = {
        "million updates a second": lambda row: f"{row['updates_per_s'] / 1e6:.3g}",
        "ours / its": lambda row: f"{_ours(rows, row['threads']) / row['updates_per_s']:.3g}",
        "own overlap": lambda row: f"{row['marks']['own overlap']:.3f}",
    }
    lines = long(rows, columns, OURS)
    for line in lines:
        del line["times ours"]  # of different amounts of work
    return [
        Table("peers-sampling", titled("Sampling: spin updates a second", CAPTION, rows), lines)
    ]


def _ours(rows: Rows, threads: int) -> float:
    own = (row for row in rows if (row["contender"], row["threads"]) == (OURS, threads))
    return float(next(own)["updates_per_s"])


def plot(rows: Rows, folder: Path) -> Path:
    """Draw the speeds as bars."""
    done = [row for row in rows if not row["failure"]]
    return save_bars(
        folder / "bench-sampling.png",
        {
            (row["contender"], f"{row['threads']} thread{'s' * (row['threads'] > 1)}"): row[
                "updates_per_s"
            ]
            for row in done
        },
        "spin updates a second, N = 1000, P = 20, β = 2",
    )
