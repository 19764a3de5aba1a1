"""Couplings of a pairwise model: error of J against time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.against.contest import Contender, Request, contest
from benchmarks.against.plots import save_scatter
from benchmarks.against.tables import Rows, Table, long, titled
from benchmarks.peers import OURS
from dualtap import HopfieldModel
from dualtap._progress import Advance

THREADS = 1
PATTERNS = "dualtap, patterns"
CAPTION = """Relative error √(Σ(J - J*)² / ΣJ*²) over pairs, β included, mean over seeds; J=0 has 1.
The teacher's couplings have rank P. "dualtap, patterns" assumes low rank (P and β not given), the
others do not. Our pseudo-likelihood chooses its penalty on held-out samples, or has almost
none (λ=1e-6), like coniii and pseudolm, which have none or Firth's. One thread; interleaved runs,
one process per method."""


@dataclass(frozen=True)
class Case:
    """A teacher, and how many samples of it there are."""

    n_spins: int
    n_patterns: int
    beta: float
    n_samples: int
    slow: bool = True
    """Whether it is small enough for those that need minutes."""

    @property
    def name(self) -> str:
        """What the case is called in the tables."""
        return f"N={self.n_spins} P={self.n_patterns} β={self.beta:g} M={self.n_samples}"


CASES = (
    Case(20, 2, 0.8, 10_000),
    Case(40, 2, 0.8, 1000),
    Case(60, 3, 1.2, 3000),
    Case(100, 3, 0.8, 5000),
    Case(300, 6, 1.2, 2000, slow=False),
)
QUICK = CASES[:1]


def contenders(case: Case, limit: float = 120.0) -> list[Contender]:
    """Return everybody who can do the case."""

    def entry(name: str, method: str, where: str = OURS) -> Contender:
        return Contender(name, f"{where}_couplings.py", {"method": method}, where, limit)

    slow = [
        entry("pseudolm, Firth's penalty", "Firth", "pseudolm"),
        entry("coniii, Pseudo", "", "coniii"),
    ]
    return [
        entry(PATTERNS, "patterns"),
        entry("dualtap, pseudo-likelihood", "pseudo-likelihood"),
        entry("dualtap, pseudo-likelihood, λ=1e-6", "no penalty"),
        entry("dualtap, mean field", "mean field"),
        entry("pseudolm", "plain", "pseudolm"),
        *(slow if case.slow else []),
    ]


def n_answers(runs: int, quick: bool) -> int:
    """Return how often the progress bar moves."""
    return runs * sum(len(contenders(case)) for case in _cases(quick))


def _cases(quick: bool) -> tuple[Case, ...]:
    return QUICK if quick else CASES


def measure(runs: int, quick: bool, folder: Path, advance: Advance) -> Rows:
    """Run every case; a run is a seed."""
    return [row for case in _cases(quick) for row in measure_case(case, runs, folder, advance)]


def measure_case(case: Case, runs: int, folder: Path, advance: Advance) -> Rows:
    """Draw the samples of a case and give them to everybody."""
    truth: list[NDArray[np.float64]] = []

    def write(one: Case, name: str, seed: int) -> Request:
        teacher = HopfieldModel.random(one.n_spins, one.n_patterns, one.beta, random_state=seed)
        path = folder / f"{name}.npy"
        np.save(path, teacher.sample(one.n_samples, random_state=1000 + seed))
        truth.append(one.beta * teacher.couplings())
        return {"samples": str(path), "seed": seed}

    def judge(number: int, J: NDArray[Any]) -> dict[str, float]:
        return {"error": relative_error(J, truth[number])}

    requests = [write(case, f"run-{run}", 100 + run) for run in range(runs)]
    warm_up = write(Case(20, 1, 0.5, 200), "warm-up", 0)
    results = contest(contenders(case), warm_up, requests, judge, THREADS, advance)
    return [result.row(case.name) for result in results]


def relative_error(J: NDArray[Any], truth: NDArray[np.float64]) -> float:
    """Return the distance of two matrices over pairs, in units of the second.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.against.couplings import relative_error
    >>> relative_error(np.eye(2), np.ones((2, 2)))
    1.0
    """
    pairs = ~np.eye(len(truth), dtype=bool)
    return float(np.linalg.norm((J - truth)[pairs]) / np.linalg.norm(truth[pairs]))


def tables(rows: Rows) -> list[Table]:
    """Return the table of errors."""
    lines = long(rows, {"error of J": lambda row: f"{row['marks']['error']:.3g}"}, PATTERNS)
    return [Table("peers-couplings", titled("Couplings: error and time", CAPTION, rows), lines)]


def plot(rows: Rows, folder: Path) -> Path:
    """Draw errors against times."""
    return save_scatter(
        folder / "bench-couplings.png", rows, "error", "relative error of J", log=True
    )
