"""Run the attacks: ``python -m benchmarks.attack``, or ``--small`` for a minute of them.

What there is no time for, ``--resume`` goes on with: from the seeds where the last runs ended.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

from benchmarks.attack import arrays, faults, files
from benchmarks.harness import RESULTS, write

Row = dict[str, str | int]
Table = dict[str, Row]
_ARRAYS, _FILES = 10_000, 1_000
_SECONDS_PER_ARRAY, _MEGABYTES = 30, 500  # a fit takes a few tenths of a second
_SHARE = 0.5  # of the time that is left, for arrays, and then for files
_LONGEST_FAULT = 120  # seconds: what takes longer is a finding
_CRAFTED = ("test_hostile.py", "test_hostile_models.py", "test_malformed.py", "test_zarr.py")


def main() -> int:
    """Run what is asked for; the exit code says whether anything was found."""
    parser = argparse.ArgumentParser("python -m benchmarks.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="when to stop")
    parser.add_argument("--small", action="store_true", help="a hundredth of the cases")
    parser.add_argument("--only", choices=("arrays", "files", "crafted", "faults"))
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--resume", action="store_true", help="add to the table's counts")
    parser.add_argument("--cases", type=int, help="arrays, or files of each format")
    parser.add_argument("--dry", action="store_true", help="write no table")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    anew = not (options.only or options.resume)
    failures: list[str] = []
    for name, attack in _ATTACKS.items():
        if options.only not in (None, name):
            continue
        rows = attack(options, _table() if options.resume else {}, deadline, failures)
        if not options.dry:
            kept, anew = {} if anew else _table(), False
            table = kept | {str(row["attack"]): row for row in rows}
            write("reliability", "What was tried, and what went wrong", [*table.values()])
    print(f"{len(failures)} findings")
    return bool(failures)


def _table() -> Table:
    """Return the rows of the table as it is."""
    path = RESULTS / "reliability.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {str(row["attack"]): row for row in rows}


def _say(failures: list[str], failure: str) -> None:
    """Say a failure at once, and keep it."""
    print(failure, flush=True)
    failures.append(failure)


class _Tally:
    """What came of the cases of one attack, in this run and in those that it goes on from."""

    def __init__(self, what: str, planned: int, options: argparse.Namespace, old: Table) -> None:
        planned = options.cases or (max(planned // 100, 1) if options.small else planned)
        before = old.get(what, {})
        self.what, self._first = what, int(before.get("first seed", options.seed))
        self._outcomes = Counter({told: n for n, told in _pairs(str(before.get("outcome", "")))})
        self._wrong = int(before.get("wrong", 0))
        self._planned = max(planned, int(before.get("planned", 0)))
        self.seeds = range(self._first + self._cases(), self._first + self._planned)

    def _cases(self) -> int:
        return self._outcomes.total() + self._wrong

    def add(self, outcome: str, good: bool) -> bool:
        """Count one case, and return whether it is a good one."""
        if good:
            self._outcomes[outcome] += 1
        else:
            self._wrong += 1
        return good

    def row(self) -> Row:
        """Return the row of the table."""
        told = ", ".join(f"{n} {outcome}" for outcome, n in self._outcomes.most_common())
        return {
            "attack": self.what,
            "first seed": self._first,
            "cases": self._cases(),
            "planned": self._planned,
            "outcome": told,
            "wrong": self._wrong,
        }


def _pairs(told: str) -> list[tuple[int, str]]:
    """Return the numbers and words of a list such as "3 read, 4 refused"."""
    parts = (part.split(" ", 1) for part in told.split(", ") if part)
    return [(int(n), word) for n, word in parts]


def _arrays(
    options: argparse.Namespace, old: Table, deadline: float, failures: list[str]
) -> list[Row]:
    tally = _Tally("random and degenerate arrays", _ARRAYS, options, old)
    left = deadline - time.monotonic()
    until = time.monotonic() + (left if options.only else _SHARE * left)
    with parallel_config("loky", n_jobs=-1, inner_max_num_threads=1):
        tasks = (delayed(_attempt)(seed) for seed in tally.seeds if time.monotonic() < until)
        for seed, outcome in Parallel(return_as="generator_unordered")(tasks):
            if not tally.add(outcome, outcome in arrays.GOOD):
                _say(failures, f"arrays --seed {seed}: {outcome}")
    return [tally.row()]


def _attempt(seed: int) -> tuple[int, str]:
    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"no end in {_SECONDS_PER_ARRAY} s of the processor")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS_PER_ARRAY)
    try:
        outcome = arrays.attempt(seed)
    except Exception as error:
        return seed, f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seed, f"{taken:.0f} MB" if taken > _MEGABYTES else outcome


def _files(
    options: argparse.Namespace, old: Table, deadline: float, failures: list[str]
) -> list[Row]:
    tallies = {
        suffix: _Tally(f"mutated {suffix}", _FILES, options, old) for suffix in files.FORMATS
    }
    seeds = {suffix: tally.seeds for suffix, tally in tallies.items()}
    left = deadline - time.monotonic()
    until = time.monotonic() + (left if options.only else _SHARE * left)
    with tempfile.TemporaryDirectory() as folder:
        for case in files.attempts(Path(folder), seeds, until):
            if not tallies[case.suffix].add(case.outcome, case.outcome in ("read", "refused")):
                _say(failures, f"files --seed {case.seed} ({case.suffix}): {case.outcome}")
    return [tally.row() for tally in tallies.values()]


def _crafted(
    options: argparse.Namespace, old: Table, deadline: float, failures: list[str]
) -> list[Row]:
    tests = [f"tests/{name}" for name in (_CRAFTED[:2] if options.small else _CRAFTED)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--no-header", *tests],
            capture_output=True,
            text=True,
            timeout=max(deadline - _LONGEST_FAULT - time.monotonic(), 1),
        )
    except subprocess.TimeoutExpired:
        print("crafted files: not done in the time that was left", flush=True)
        return []
    last = done.stdout.strip().splitlines()[-1]
    if done.returncode:
        _say(failures, f"crafted: {last}")
    counts = {what.split()[0]: n for n, what in _pairs(last)}
    passed, failed = counts.get("passed", 0), counts.get("failed", 0)
    row: Row = {"attack": "crafted files", "first seed": 0, "cases": passed + failed}
    return [row | {"planned": passed + failed, "outcome": f"{passed} refused", "wrong": failed}]


def _faults(
    options: argparse.Namespace, old: Table, deadline: float, failures: list[str]
) -> list[Row]:
    rows = []
    for what, (fault, planned) in faults.FAULTS.items():
        tally = _Tally(what, 1 if options.small else planned, options, old)
        for seed in tally.seeds:
            if time.monotonic() > deadline - _LONGEST_FAULT:
                break
            with tempfile.TemporaryDirectory() as folder:
                try:
                    tally.add(fault(Path(folder), seed), True)
                except Exception as error:
                    tally.add("", False)
                    _say(failures, f"faults --seed {seed}: {what}: {str(error)[:300]}")
        rows.append(tally.row())
    return rows


_ATTACKS = {"arrays": _arrays, "files": _files, "crafted": _crafted, "faults": _faults}

if __name__ == "__main__":
    sys.exit(main())
