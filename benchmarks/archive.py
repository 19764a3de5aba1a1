"""Whether archived trials of the paper are what the present code gives.

``python -m benchmarks archive`` draws trials of every experiment in ``docs/results`` at random,
runs them again and compares their numbers. Code that changed without changing what a trial computes
has another fingerprint, and its archived trials are not reused; ``--adopt`` gives experiments the
fingerprint of the present code if nine of ten of their trials agree, and no number of the others
is off by more than 0.01: in single precision another processor turns a few of a thousand entries.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import markdown
from dualtap.experiments import load
from dualtap.experiments.archive import Archive, adopt
from dualtap.experiments.experiment import Row
from dualtap.experiments.versions import code_version

N_TRIALS = 30
RELATIVE = 1e-4
"""Difference up to which numbers agree: single precision, on another processor."""
ABSOLUTE = 1e-6
TURNED = 0.01
"""Difference that a few entries make which another processor turns,"""
SELDOM = 0.1
"""in at most this share of the trials."""


def agrees(row: Row, outcome: Mapping[str, Any], slack: float = ABSOLUTE) -> bool:
    """Say whether a trial gives the numbers and texts of an archived row."""
    return all(_same(value, outcome[name], slack) for name, value in row.results.items())


def _same(old: Any, new: Any, slack: float) -> bool:
    if isinstance(old, str):
        return bool(old == new)
    return abs(float(old) - float(new)) <= slack + RELATIVE * abs(float(old))


def check(name: str, archive: Archive, n_trials: int, longest: float, seed: int) -> dict[str, Any]:
    """Run some trials of an experiment again; return a row of the table."""
    experiment, rows = load(name), archive.rows(name)
    quick = [row for row in rows if row.seconds <= longest]
    some = random.Random(seed).sample(quick, min(n_trials, len(quick)))
    outcomes = [(row, experiment.trial(row.parameters, row.seed)) for row in some]
    code = code_version(experiment.trial)
    return {
        "experiment": name,
        "trials": len(rows),
        "run again": len(some),
        "agree": sum(agrees(*pair) for pair in outcomes),
        "nearly": sum(agrees(*pair, slack=TURNED) for pair in outcomes),
        "code": "the same" if archive.made[name].code == code else "changed since",
        "version": code,
    }


def is_same(row: Mapping[str, Any]) -> bool:
    """Say whether trials are what the present code gives, by a row of the table."""
    n = row["run again"]
    return bool(0 < n == row["nearly"] and row["agree"] >= (1 - SELDOM) * n)


def run(arguments: list[str]) -> None:
    """Check an archive, and print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks archive", description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("docs/results"))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="experiments")
    parser.add_argument("--trials", type=int, default=N_TRIALS, help="per experiment")
    parser.add_argument("--longest", type=float, default=20.0, help="seconds per trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--adopt", action="store_true", help="adopt trials that agree")
    options = parser.parse_args(arguments)
    archive, rows = Archive(options.results), []
    for name in options.only or archive.made:
        rows.append(check(name, archive, options.trials, options.longest, options.seed))
        print(*rows[-1].values(), sep=" | ", file=sys.stderr, flush=True)
    print(markdown(rows))
    if options.adopt:
        adopt(options.results, {r["experiment"]: r["version"] for r in rows if is_same(r)})
