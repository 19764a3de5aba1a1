"""Whether archived trials are what the present code gives, and how long a full run takes.

``python -m benchmarks archive`` runs some trials of every experiment in ``docs/results`` again, on
one thread, and compares their numbers. Code that changed without changing what a trial computes
has another fingerprint, and its archived trials are not reused; ``--adopt`` gives experiments the
fingerprint of the present code if nine of ten of their trials agree, and no number of the others
is off by more than 0.01: in single precision another processor turns a few of a thousand entries.

The trials are a systematic sample: every k-th of the table, which lists them point by point, from a
random place on. Their CPU seconds times k estimate those of all. The standard error is that of
successive differences, which is too large, if anything, as neighbours may be of different points.
Without ``--only`` and ``--trials``, the table goes to ``results/archive.md``. ``--quick`` times a
quick run instead, which has no archive, into ``results/archive-quick.md``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.harness import markdown, threads, write
from dualtap.experiments import NAMES, load
from dualtap.experiments.archive import Archive, adopt
from dualtap.experiments.experiment import Experiment, Row, Task
from dualtap.experiments.versions import code_version

Trial = TypeVar("Trial", Row, Task)

DOCUMENTED = Path("docs/results")
N_TRIALS = 40
N_QUICK = 12
MINUTES = 0.5
"""Time of one experiment's trials, by what they took when they were made. Where it is too short for
two, none is run, and the time of all is what they took."""
RELATIVE = 1e-4
"""Difference up to which numbers agree: single precision, on another processor."""
ABSOLUTE = 1e-6
TURNED = 0.01
"""Difference that a few entries make which another processor turns,"""
SELDOM = 0.1
"""in at most this share of the trials."""


def agrees(row: Row, outcome: Mapping[str, Any], slack: float = ABSOLUTE) -> bool:
    """Say whether a trial gives the numbers and texts of an archived row; times may differ."""
    return all(
        _same(value, outcome[name], slack)
        for name, value in row.results.items()
        if not name.endswith("seconds")
    )


def _same(old: Any, new: Any, slack: float) -> bool:
    if isinstance(old, str):
        return bool(old == new)
    return abs(float(old) - float(new)) <= slack + RELATIVE * abs(float(old))


def systematic(trials: Sequence[Trial], n: int, seed: int) -> list[Trial]:
    """Return n trials at equal distances, the first at random."""
    step = len(trials) / n
    first = random.Random(seed).uniform(0, step)
    return [trials[int(first + k * step)] for k in range(n)]


def extrapolated(seconds: Sequence[float], n_all: int) -> tuple[float, float]:
    """Return the estimated sum over all rows, and its standard error.

    Parameters
    ----------
    seconds : sequence of float
        Of a systematic sample, in order.
    n_all : int
        Rows that it was drawn from.
    """
    y = np.asarray(seconds, dtype=np.float64)
    n = len(y)
    if n < 2:
        return n_all * float(y.mean()), 0.0 if n == n_all else np.inf
    variance = (1 - n / n_all) * np.square(np.diff(y)).sum() / (2 * n * (n - 1))
    return n_all * float(y.mean()), n_all * float(np.sqrt(variance))


def timed(experiment: Experiment, trial: Row | Task) -> tuple[Mapping[str, Any], float]:
    """Run a trial; return its result and CPU seconds."""
    start = time.process_time()
    outcome = experiment.trial(trial.parameters, trial.seed)
    return outcome, time.process_time() - start


def _cost(seconds: Sequence[float], n_all: int) -> dict[str, float]:
    total, error = extrapolated(seconds, n_all)
    return {"CPU min of all": round(total / 60, 2), "standard error": round(error / 60, 2)}


def check(name: str, archive: Archive, n_trials: int, minutes: float, seed: int) -> dict[str, Any]:
    """Run some trials of an experiment again; return a row of the table."""
    experiment, rows = load(name), archive.rows(name)
    recorded = sum(row.seconds for row in rows)
    affordable = int(60 * minutes * len(rows) / max(recorded, 1e-9))
    some = systematic(rows, min(len(rows), n_trials, affordable), seed) if affordable > 1 else []
    if some:
        timed(experiment, min(some, key=lambda row: row.seconds))  # compiles, and fills caches
    outcomes = [timed(experiment, row) for row in some]
    pairs = [(row, outcome) for row, (outcome, _) in zip(some, outcomes, strict=True)]
    code = code_version(experiment.trial)
    return {
        "experiment": name,
        "trials": len(rows),
        "run again": len(some),
        "agree": sum(agrees(*pair) for pair in pairs),
        "nearly": sum(agrees(*pair, slack=TURNED) for pair in pairs),
        "code": "the same" if archive.made[name].code == code else "changed since",
        **_cost([seconds for _, seconds in outcomes] or [row.seconds for row in rows], len(rows)),
        "version": code,
    }


def quick(name: str, n_trials: int, seed: int) -> dict[str, Any]:
    """Time some trials of a quick run; return a row of the table."""
    experiment = load(name)
    tasks = experiment.tasks()
    some = systematic(tasks, min(len(tasks), n_trials), seed)
    timed(experiment, some[0])  # compiles, and fills caches
    seconds = [timed(experiment, task)[1] for task in some]
    return {
        "experiment": name,
        "trials": len(tasks),
        "run": len(some),
        **_cost(seconds, len(tasks)),
    }


def summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the last line of the table: errors of experiments are independent."""
    counts = [name for name, value in rows[0].items() if isinstance(value, int)]
    return {
        **dict.fromkeys(rows[0], ""),
        "experiment": "all",
        **{name: sum(row[name] for row in rows) for name in counts},
        "CPU min of all": round(sum(row["CPU min of all"] for row in rows), 2),
        "standard error": round(float(np.hypot.reduce([r["standard error"] for r in rows])), 2),
    }


def is_same(row: Mapping[str, Any]) -> bool:
    """Say whether trials are what the present code gives, by a row of the table."""
    n = row["run again"]
    return bool(0 < n == row["nearly"] and row["agree"] >= (1 - SELDOM) * n)


def run(arguments: list[str]) -> None:
    """Check an archive, and print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks archive", description=__doc__)
    parser.add_argument("--results", type=Path, default=DOCUMENTED)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="experiments")
    parser.add_argument("--trials", type=int, help="per experiment")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="per experiment")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--adopt", action="store_true", help="adopt trials that agree")
    parser.add_argument("--quick", action="store_true", help="time a quick run")
    options = parser.parse_args(arguments)
    if options.quick:
        n_trials = options.trials or N_QUICK
        rows = _rows(options.only or NAMES, lambda name: quick(name, n_trials, options.seed))
        file, title = "archive-quick", "Time of a quick run"
    else:
        archive = Archive(options.results)
        settings = (options.trials or N_TRIALS, options.minutes, options.seed)
        rows = _rows(options.only or archive.made, lambda name: check(name, archive, *settings))
        file, title = "archive", "Archived trials, run again"
    table = [*rows, summed(rows)]
    print(markdown(table))
    if options.only is options.trials is None and options.results == DOCUMENTED:
        write(file, title, table)
    if options.adopt and not options.quick:
        adopt(options.results, {r["experiment"]: r["version"] for r in rows if is_same(r)})


def _rows(names: Iterable[str], of: Callable[[str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of all experiments, and show each when it is there."""
    rows = []
    with threads(1):
        for name in names:
            rows.append(of(name))
            print(*rows[-1].values(), sep=" | ", file=sys.stderr, flush=True)
    return rows
