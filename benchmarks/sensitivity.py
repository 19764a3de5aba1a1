"""Move every constant of ``dualtap.recovery.calibration`` by ±20 % and see what changes.

``python -m benchmarks sensitivity [--constants NAME ...] [--data DIR]``. The suite is small on
purpose: a few teachers, independent spins, the digits and, with ``--data``, two more real sets.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from joblib import Parallel, delayed

from benchmarks import fits, general, nulls, real, structure
from benchmarks.harness import markdown, write
from benchmarks.ours import fitted, support, with_gaps
from benchmarks.recovery import best_overlap
from benchmarks.recovery_cases import CASES, draw

MODULE = "dualtap.recovery.calibration"
CHANGES = (0.8, 1.2)
SEED = 0  # the suite may be used for tuning: seeds of the other benchmarks are not
N_NULLS = 10
VISIBLE = 0.002  # smaller changes of a quality are not listed
TEACHERS = {
    "β=2 P=20 M=60": 1000,
    "β=0.8 P=20 M=2000": 500,
    "β=1.2 P=10 M=2000": 1000,
    "β=1.5 P=30 M=2000": 500,
    "β=2 P=20 M=200, 30% missing": 1000,
    "β=2 P=20 M=250, 20% random samples": 1000,
}
"""Cases of `recovery_cases` and the N at which they are drawn."""
GENERAL_SPINS = 300
REAL = ("house_votes_1984", "eysenck_questionnaire")

TITLE = """What moves when a constant of ``dualtap.recovery.calibration`` moves by ±20 %

One constant at a time; whole numbers move by at least 1, values above 5/6 and below 1 by ±20 % of
their distance from 1. Quality: mean overlap with the patterns of a teacher, share of data sets of
independent spins with 0 patterns, the smaller of precision and recall of planted assemblies,
held-out log pseudo-likelihood per entry of real data, gain per entry over independent spins of
random one-hot and genotype-like data. Listed are changes of quality above 0.002 (+ is better) and
of the number of patterns. Generalised teachers are drawn at N=300, P and M in proportion.
Time: of the whole suite, against the constants as they are (a noisy figure)."""


class Outcome(NamedTuple):
    """What one entry of the suite gives."""

    quality: float
    n_patterns: int


def _teacher(name: str, n_spins: int) -> Outcome:
    data = draw(CASES[name].resized(n_spins), SEED)
    model = fitted(data.X, SEED).model
    return Outcome(best_overlap(model.patterns_, data.patterns), int(model.n_patterns_))


def _general(case: general.General) -> Outcome:
    scale = GENERAL_SPINS / general.N_SPINS
    teacher = general.draw(case.shrunk(scale), SEED, GENERAL_SPINS)
    model = fitted(teacher.X, SEED).model
    quality = support(model.patterns_, teacher.patterns).overlap.mean()
    return Outcome(float(quality), int(model.n_patterns_))


def _null(means: str) -> Outcome:
    found = [nulls.null(means, 1000, 100, SEED + k).n_patterns for k in range(N_NULLS)]
    return Outcome(found.count(0) / N_NULLS, sum(found))


def _assemblies() -> Outcome:
    case = structure.Assemblies(60, 4, 8, n_bins=5000)
    quality, n_patterns, _ = structure.assemblies_fit(case, SEED)
    return Outcome(float(quality.min(axis=1).mean()), n_patterns)


def _kind(kind: str) -> Outcome:
    one = fits.fit(kind, SEED)
    return Outcome(one.gain, one.n_patterns)


def _real(name: str, folder: Path) -> Outcome:
    X = real.samples(name, folder).X
    training, held_out = real.split(len(X), SEED)
    model = fitted(X[training], SEED).model
    return Outcome(float(model.score(with_gaps(X[held_out]))), int(model.n_patterns_))


def suite(folder: Path | None) -> dict[str, Callable[[], Outcome]]:
    """Return the entries of the suite by name."""
    sets = dict.fromkeys(REAL, folder) if folder is not None else {}
    return {
        **{name: partial(_teacher, name, n_spins) for name, n_spins in TEACHERS.items()},
        **{case.name: partial(_general, case) for case in general.CASES},
        **{f"null, {means}": partial(_null, means) for means in ("uniform(0.02, 0.98)", "0.1")},
        "assemblies": _assemblies,
        "one-hot": partial(_kind, "one-hot"),
        "genotypes": partial(_kind, "genotypes"),
        "digits": partial(_real, "digits", Path()),
        **{name: partial(_real, name, folder) for name, folder in sets.items()},
    }


def constants(module: ModuleType) -> dict[str, Any]:
    """Return the numbers, and tuples of numbers, with names in capitals.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from benchmarks.sensitivity import constants
    >>> constants(SimpleNamespace(EDGE=1.5, STEPS=(1, 2), FAST=True, other=3))
    {'EDGE': 1.5, 'STEPS': (1, 2)}
    """

    def numeric(value: Any) -> bool:
        if isinstance(value, tuple):
            return len(value) > 0 and all(map(numeric, value))
        return isinstance(value, int | float) and not isinstance(value, bool)

    return {k: v for k, v in vars(module).items() if k.isupper() and numeric(v)}


def moved(value: Any, factor: float) -> Any:
    """Return a value times a factor, whole numbers by 1 at least, shares below 1 kept there.

    Examples
    --------
    >>> from benchmarks.sensitivity import moved
    >>> moved(3, 0.8), moved(2.0, 1.2), round(moved(0.95, 1.2), 3), moved((1, 10), 1.2)
    (2, 2.4, 0.96, (2, 12))
    """
    if isinstance(value, tuple):
        return tuple(moved(one, factor) for one in value)
    if isinstance(value, int):
        step = round(abs(value) * (factor - 1))
        return value + (step or (1 if factor > 1 else -1))
    if 5 / 6 < value < 1:
        return 1 - (1 - value) / factor
    return value * factor


@contextmanager
def changed(name: str | None, factor: float) -> Iterator[None]:
    """Set one constant to another value for a while."""
    if name is None:
        yield
        return
    calibration = import_module(MODULE)
    before = getattr(calibration, name)
    setattr(calibration, name, moved(before, factor))
    try:
        yield
    finally:
        setattr(calibration, name, before)


class Measured(NamedTuple):
    """The suite with one constant moved, or none."""

    name: str | None
    factor: float
    outcomes: dict[str, Outcome]
    failures: dict[str, str]
    seconds: float


def measure(name: str | None, factor: float, folder: Path | None) -> Measured:
    """Run the suite with one constant moved; an exception is a result, too."""
    outcomes, failures = {}, {}
    start = time.perf_counter()
    with changed(name, factor):
        for entry, run_entry in suite(folder).items():
            try:
                outcomes[entry] = run_entry()
            except Exception as error:
                failures[entry] = f"{type(error).__name__}: {error}"
    return Measured(name, factor, outcomes, failures, time.perf_counter() - start)


def row(one: Measured, base: Measured, value: Any) -> dict[str, Any]:
    """Return what differs from the constants as they are."""
    quality, number = {}, {}
    for entry, now in one.outcomes.items():
        if entry not in base.outcomes:
            continue
        quality[entry] = now.quality - base.outcomes[entry].quality
        number[entry] = (base.outcomes[entry].n_patterns, now.n_patterns)
    seen = {entry: gain for entry, gain in quality.items() if abs(gain) > VISIBLE}
    other = {entry: pair for entry, pair in number.items() if pair[0] != pair[1]}
    failed = [entry for entry in one.failures if entry not in base.failures]
    return {
        "constant": one.name,
        "value": value,
        "moved to": moved(value, one.factor),
        "quality": "; ".join(f"{entry} {gain:+.3f}" for entry, gain in seen.items()) or "–",
        "patterns": "; ".join(f"{entry} {a} → {b}" for entry, (a, b) in other.items()) or "–",
        "failed": "; ".join(failed) or "–",
        "time": f"{one.seconds / base.seconds:.2f}",
    }


def run(arguments: list[str]) -> None:
    """Measure, print, and write ``sensitivity.md`` if every constant was moved."""
    known = constants(import_module(MODULE))
    parser = argparse.ArgumentParser("python -m benchmarks sensitivity", description=__doc__)
    parser.add_argument("--constants", nargs="+", choices=known, default=tuple(known))
    parser.add_argument("--data", type=Path, help="folder of the .npz files")
    options = parser.parse_args(arguments)
    jobs = [(None, 1.0), *((name, factor) for name in options.constants for factor in CHANGES)]
    results: list[Measured] = []
    calls = (delayed(measure)(name, factor, options.data) for name, factor in jobs)
    for done in Parallel(n_jobs=2, return_as="generator")(calls):
        results.append(done)
        print(done.name, done.factor, done.failures or "", file=sys.stderr, flush=True)
    base = results[0]
    reference = [{"entry": k, **v._asdict()} for k, v in base.outcomes.items()]
    print(markdown(reference), *(f"{k}: {v}" for k, v in base.failures.items()), sep="\n")
    rows = [row(one, base, known[one.name]) for one in results[1:] if one.name is not None]
    print(markdown(rows))
    if len(options.constants) == len(known) and not base.failures:
        write("sensitivity", TITLE, rows)
        write(
            "sensitivity-suite", "The suite of ``sensitivity.md``, constants as they are", reference
        )
