"""Recovery of patterns by ours and by peers, on the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.against.contest import Contender, Request, contest
from benchmarks.against.plots import save_scatter
from benchmarks.against.tables import (
    Row,
    Rows,
    Table,
    best,
    by_case,
    difference,
    fastest,
    memory,
    seconds,
    titled,
    wide,
)
from benchmarks.peers import OURS
from benchmarks.recovery_cases import FIRST_SEED, Case, draw
from dualtap._progress import Advance
from dualtap.metrics import match

THREADS = 1
_UNTIMED = 1
BLIND = "dualtap, nothing given"
GIVEN = "dualtap, P given"
TOLD_PEERS = (
    "KMeans",
    "KMeans of ±samples",
    "AgglomerativeClustering",
    "FastICA over sites",
    "NMF",
    "Bernoulli mixture",
    "BernoulliRBM",
)
BLIND_PEERS = (
    "linkage, P by silhouette",
    "FastICA over sites, P by PCA(mle)",
    "FastICA over sites, P above noise",
    "Bernoulli mixture, P by BIC",
)
PEERS = TOLD_PEERS + BLIND_PEERS
GROUPS = {"P given": (GIVEN, TOLD_PEERS), "nothing given": (BLIND, BLIND_PEERS)}
"""Ours and the peers that know as much."""
CASES = (
    *(Case(2.0, 20, n_samples) for n_samples in (40, 60, 200)),
    Case(2.0, 20, 200, flipped=True),
    Case(2.0, 20, 200, missing=0.2),
    Case(2.0, 20, 250, random_share=0.2),
    Case(2.0, 10, 500, field=0.5),
    Case(2.0, 50, 500, n_spins=5000),
    Case(4.0, 100, 1000),
    Case(2.0, 60, 3000),
    Case(1.5, 30, 2000),
    Case(1.2, 10, 2000),
    Case(0.8, 20, 2000),
    Case(0.8, 5, 2000),
    Case(2.0, 20, 5000),
    Case(2.0, 30, 1000, n_spins=10000),
    Case(0.8, 5, 5000),
)
QUICK = (CASES[0], CASES[2], CASES[3], CASES[4], CASES[11], CASES[13])
LARGE = 10**6  # entries; from here on a run less, the slow ones being slow enough
LEAST = 0.005  # overlaps nearer than this are not told apart
LIMIT = 60.0  # seconds; who needs more is not asked again in that case
CAPTION = f"""Mean overlap of the true patterns with those found, matched one to one, averaged over
seeds; in brackets the number recovered (overlap > 0.9), for blind methods out of the number found.
Peers get 0 for missing entries.

P given: KMeans: n_init=10. KMeans of ±samples: 2P clusters of the samples and their negatives,
opposite ones merged. AgglomerativeClustering: average linkage on 1 - |overlap|. FastICA over sites:
sites are the observations, reduced to P components first. NMF: of 0/1 data. Bernoulli mixture: EM
with tied signs, ten starts, implemented here. BernoulliRBM: P hidden units.

Nothing given: linkage, P by silhouette: the same tree, cut at the P up to min(M/2, 150) with the
best silhouette. FastICA over sites, P above noise: the number of eigenvalues of the correlation
matrix above the Marchenko–Pastur edge; P by PCA(mle): Minka's estimate, or the former
where there are more samples than sites, for which it is not defined. Bernoulli mixture, P by BIC:
the best of 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135 up to M/2, three starts of each.

One thread; interleaved runs, one process per method, the same files for all;
stopped after {LIMIT:g} s. The first seed of every case is not timed. Cases with
{LARGE:,} entries or more have one seed less."""


def contenders(limit: float = LIMIT) -> list[Contender]:
    """Return everybody, ours first."""
    ours = [
        Contender(name, "dualtap_recovery.py", {"method": method}, OURS, limit)
        for name, method in ((BLIND, "nothing given"), (GIVEN, "P given"))
    ]
    return ours + [
        Contender(name, "sklearn_recovery.py", {"method": name}, "scikit-learn", limit)
        for name in PEERS
    ]


def n_answers(runs: int, quick: bool) -> int:
    """Return how often the progress bar moves."""
    return len(contenders()) * sum(_UNTIMED + n_seeds(case, runs) for case in _cases(quick))


def n_seeds(case: Case, runs: int) -> int:
    """Return how many runs a case has when small ones have ``runs``."""
    large = case.n_spins * case.n_samples >= LARGE
    return max(1, runs - 1) if large else runs


def _cases(quick: bool) -> tuple[Case, ...]:
    return QUICK if quick else CASES


def case_name(case: Case) -> str:
    """Return the name of a case with its size, which the table of one size leaves out."""
    return f"N={case.n_spins} {case.name}"


def measure(runs: int, quick: bool, folder: Path, advance: Advance) -> Rows:
    """Run every case; a run is a seed."""
    return [
        row
        for case in _cases(quick)
        for row in measure_case(case, n_seeds(case, runs), folder, advance)
    ]


def measure_case(case: Case, runs: int, folder: Path, advance: Advance) -> Rows:
    """Draw the samples of a case and give them to everybody."""
    truth: list[NDArray[np.int8]] = []

    def write(one: Case, name: str, seed: int) -> Request:
        data = draw(one, seed)
        path = folder / f"{name}.npy"
        np.save(path, data.spins)
        truth.append(data.patterns)
        return {"samples": str(path), "n_patterns": one.n_patterns, "seed": seed}

    def judge(number: int, found: NDArray[Any]) -> dict[str, float]:
        matched = match(found, truth[number])
        return {
            "overlap": matched.mean_overlap,
            "recovered": matched.n_recovered(),
            "found": len(found),
        }

    seeds = range(FIRST_SEED - _UNTIMED, FIRST_SEED + runs)
    requests = [write(case, f"run-{seed}", seed) for seed in seeds]
    warm_up = write(case.resized(300), "warm-up", 0)
    results = contest(contenders(), warm_up, requests, judge, THREADS, advance, _UNTIMED)
    return [result.row(case_name(case)) for result in results]


def tables(rows: Rows) -> list[Table]:
    """Return accuracies with a verdict, times and memory."""
    accuracy = wide(rows, _overlap)
    for line, own in zip(accuracy, by_case(rows).values(), strict=True):
        line |= verdict(own)
    caption = f"{CAPTION}\n\n{summary(rows)}"
    return [
        Table("peers-recovery", titled("Recovery: accuracy", caption, rows), accuracy),
        Table(
            "peers-recovery-time",
            "Recovery: seconds, median over seeds",
            wide(rows, lambda row: seconds(row["median_s"])),
        ),
        Table(
            "peers-recovery-memory",
            "Recovery: peak of the process in MB, and what the work added to it",
            wide(rows, memory),
        ),
    ]


def _overlap(row: Row) -> str:
    marks = row["marks"]
    of = f" of {marks['found']:.3g}" if row["contender"] in (BLIND, *BLIND_PEERS) else ""
    return f"{marks['overlap']:.3f} ({marks['recovered']:.3g}{of})"


def verdict(rows: Rows) -> dict[str, str]:
    """Return how far ours is from the best peer that knows as much, and who is fastest of the good.

    Parameters
    ----------
    rows : list of dict
        Of one case.
    """
    line = {}
    for given, (ours, peers) in GROUPS.items():
        own = [row for row in rows if row["contender"] == ours]
        others = [row for row in rows if row["contender"] in peers]
        gain = difference(best(own, "overlap"), best(others, "overlap"))
        line[f"{given}: ours against the best peer"] = gain
        line[f"{given}: fastest of those as accurate"] = fastest([*own, *others], "overlap", LEAST)
    return line


def summary(rows: Rows) -> str:
    """Return in how many cases ours is not behind, and in how many it is the fastest."""
    verdicts = [verdict(own) for own in by_case(rows).values()]
    told = []
    for given, (ours, peers) in GROUPS.items():
        gains = [one[f"{given}: ours against the best peer"] for one in verdicts]
        level = [gain != "–" and float(gain) >= -LEAST for gain in gains]
        first = [one[f"{given}: fastest of those as accurate"] == ours for one in verdicts]
        told.append(
            f"With {given}, ours against {len(peers)} peers: behind none (by more than {LEAST}) in "
            f"{sum(level)} of {len(verdicts)} cases, and the fastest of those within {LEAST} of "
            f"the most accurate in {sum(map(all, zip(level, first, strict=True)))}."
        )
    return "\n".join(told)


def plot(rows: Rows, folder: Path) -> Path:
    """Draw accuracies against times."""
    return save_scatter(folder / "bench-recovery.png", rows, "overlap", "mean overlap")
