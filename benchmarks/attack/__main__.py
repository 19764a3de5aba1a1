"""Run the attacks: ``python -m benchmarks.attack``, or ``--small`` for a minute of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

from benchmarks.attack import arrays, faults, files
from benchmarks.harness import write

Row = dict[str, str | int]
_ARRAYS, _FILES = 10_000, 1_000
_CRAFTED = ("test_hostile.py", "test_hostile_models.py", "test_malformed.py", "test_zarr.py")


def main() -> int:
    """Run what is asked for; the exit code says whether anything was found."""
    parser = argparse.ArgumentParser("python -m benchmarks.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="when to stop")
    parser.add_argument("--small", action="store_true", help="a hundredth of the cases")
    parser.add_argument("--only", choices=("arrays", "files", "crafted", "faults"))
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--cases", type=int, help="arrays, or files of each format")
    parser.add_argument("--dry", action="store_true", help="write no table")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    rows: list[Row] = []
    failures: list[str] = []
    for name, attack in _ATTACKS.items():
        if options.only in (None, name):
            rows += attack(options, deadline, failures)
    for failure in failures:
        print(failure)
    if not options.dry:
        write("reliability", "What was tried, and what went wrong", rows)
    print(f"{len(failures)} findings")
    return bool(failures)


def _count(options: argparse.Namespace, n: int) -> range:
    n = options.cases or (max(n // 100, 1) if options.small else n)
    return range(options.seed, options.seed + n)


def _row(what: str, planned: int, outcomes: Counter[str], wrong: int) -> Row:
    told = ", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common())
    return {
        "attack": what,
        "cases": sum(outcomes.values()) + wrong,
        "planned": planned,
        "outcome": told,
        "wrong": wrong,
    }


def _arrays(options: argparse.Namespace, deadline: float, failures: list[str]) -> list[Row]:
    outcomes, wrong = Counter[str](), 0
    seeds = _count(options, _ARRAYS)
    left = deadline - time.monotonic()
    until = time.monotonic() + (left if options.only else 0.6 * left)
    with parallel_config("loky", n_jobs=-1, inner_max_num_threads=1):
        tasks = (delayed(_attempt)(seed) for seed in seeds if time.monotonic() < until)
        for seed, outcome in Parallel(return_as="generator_unordered")(tasks):
            if outcome in ("sound", "refused"):
                outcomes[outcome] += 1
            else:
                wrong += 1
                failures.append(f"arrays --seed {seed}: {outcome}")
    return [_row("random and degenerate arrays", len(seeds), outcomes, wrong)]


def _attempt(seed: int) -> tuple[int, str]:
    try:
        return seed, arrays.attempt(seed)
    except Exception as error:
        return seed, f"{type(error).__name__}: {str(error)[:200]}"


def _files(options: argparse.Namespace, deadline: float, failures: list[str]) -> list[Row]:
    outcomes = {suffix: Counter[str]() for suffix in files.FORMATS}
    wrong = Counter[str]()
    seeds = _count(options, _FILES)
    until = time.monotonic() + 0.7 * (deadline - time.monotonic())
    with tempfile.TemporaryDirectory() as folder:
        for case in files.attempts(Path(folder), seeds, until, files.FORMATS):
            if case.outcome in ("read", "refused"):
                outcomes[case.suffix][case.outcome] += 1
            else:
                wrong[case.suffix] += 1
                failures.append(f"files --seed {case.seed} ({case.suffix}): {case.outcome}")
    return [
        _row(f"mutated {suffix}", len(seeds), outcomes[suffix], wrong[suffix])
        for suffix in files.FORMATS
    ]


def _crafted(options: argparse.Namespace, deadline: float, failures: list[str]) -> list[Row]:
    tests = [f"tests/{name}" for name in (_CRAFTED[:2] if options.small else _CRAFTED)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", *tests],
        capture_output=True,
        text=True,
    )
    last = done.stdout.strip().splitlines()[-1]
    counts = Counter({word: int(n) for n, word in _pairs(last)})
    if done.returncode:
        failures.append(f"crafted: {last}")
    n = counts["passed"] + counts["failed"]
    return [_row("crafted files", n, Counter({"refused": counts["passed"]}), counts["failed"])]


def _pairs(line: str) -> list[tuple[str, str]]:
    words = line.replace(",", "").split()
    return [(n, word) for n, word in pairwise(words) if n.isdigit()]


def _faults(options: argparse.Namespace, deadline: float, failures: list[str]) -> list[Row]:
    rows = []
    for what, (fault, planned) in faults.FAULTS.items():
        outcomes, wrong = Counter[str](), 0
        for seed in range(options.seed, options.seed + (1 if options.small else planned)):
            if time.monotonic() > deadline:
                break
            with tempfile.TemporaryDirectory() as folder:
                try:
                    outcomes[fault(Path(folder), seed)] += 1
                except Exception as error:
                    wrong += 1
                    failures.append(f"faults --seed {seed}: {what}: {str(error)[:300]}")
        rows.append(_row(what, 1 if options.small else planned, outcomes, wrong))
    return rows


_ATTACKS = {"arrays": _arrays, "files": _files, "crafted": _crafted, "faults": _faults}

if __name__ == "__main__":
    sys.exit(main())
