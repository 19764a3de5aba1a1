"""Ten real data sets: how well every entry is predicted from the rest of its row.

``python -m benchmarks real --data DIR`` reads ``DIR/<set>.npz`` (X int8, ±1, 0 = missing) and
scikit-learn's digits. What peers scored is kept in ``results/real-peers.json`` and reused; ours is
fitted again by every run, or only where it is missing with ``--resume``::

    python -m benchmarks real --data DIR --only ours --sets zoo spect --seeds 0 1
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.harness import RESULTS, markdown, threads, write
from benchmarks.ours import counts, fitted, spread, with_gaps
from benchmarks.real_peers import MIXTURE_SIZES, PEERS, REGULARIZATIONS, Peer

SETS = (
    "house_votes_1984",
    "soybean",
    "zoo",
    "spect",
    "senate",
    "senate, transposed",
    "digits",
    "chess_endgame",
    "mushroom",
    "eysenck_questionnaire",
)
OURS = "ours"
SEEDS = tuple(range(100, 105))  # nothing was tuned on these
TRAINING = 0.7
NEAR_MIXTURE, NEAR_PAIRWISE = 0.005, 0.02
Spins = NDArray[np.int8]


class Score(TypedDict):
    """One method on one split."""

    set: str
    seed: int
    method: str
    score: float
    seconds: float
    size: int | None
    regularization: float | None


TITLE = f"""Real data: held-out log pseudo-likelihood per observed entry

Mean ± standard error over random splits of the samples, 70 % to fit and 30 % to score; every
observed entry of a held-out sample is predicted from the rest of its row. Missing entries are left
out. "ours" is HopfieldPatterns with default parameters. Site means: independent spins, smoothed by
Laplace's rule. Mixture: Bernoulli mixture by EM, five starts, K of {MIXTURE_SIZES[0]} …
{MIXTURE_SIZES[-1]}, scored exactly by leave-one-out responsibilities. Pairwise: pairwise Ising
model with fields, L2-regularised maximum pseudo-likelihood, symmetric couplings,
{len(REGULARIZATIONS)} values of λ from {REGULARIZATIONS[0]:g} to {REGULARIZATIONS[-1]:g}.
Regressions: the same with couplings that need not be symmetric, which is one logistic regression
per spin and not one model. K and λ are chosen inside the training part (five folds below 1000
samples, one fifth above) by the same score, then fitted on all of it. Seconds are medians, choice
included, two fits side by side on one thread each."""


def samples(name: str, folder: Path) -> Spins:
    """Return a data set: ±1, 0 where an entry is missing.

    Parameters
    ----------
    name : str
        One of `SETS`, or any ``.npz`` file of the folder without its ending.
    folder : Path

    Returns
    -------
    array of shape (n_samples, n_spins)
    """
    if name == "digits":
        from sklearn.datasets import load_digits

        return np.where(load_digits().data > 8, 1, -1).astype(np.int8)
    stem, _, transposed = name.partition(",")
    with np.load(folder / f"{stem}.npz", allow_pickle=False) as file:
        X: Spins = file["X"]
    return np.ascontiguousarray(X.T) if transposed else X


def split(X: Spins, seed: int) -> tuple[Spins, Spins]:
    """Return 70 % of the samples to fit and the others to score."""
    order = np.random.default_rng(seed).permutation(len(X))
    n_training = round(TRAINING * len(X))
    return X[order[:n_training]], X[order[n_training:]]


def measure(name: str, folder: Path, seed: int, method: str) -> Score:
    """Fit one method on one split and score the held-out samples."""
    training, held_out = split(samples(name, folder), seed)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == OURS:
            model, seconds = fitted(training, seed, steady=True)
            peer = Peer(model, size=int(model.n_patterns_))
            score = model.score(with_gaps(held_out))
        else:
            start = time.perf_counter()
            peer = PEERS[method](training, seed)
            seconds = time.perf_counter() - start
            score = peer.model.score(held_out)
    return Score(
        set=name,
        seed=seed,
        method=method,
        score=float(score),
        seconds=round(seconds, 4),
        size=peer.size,
        regularization=peer.regularization,
    )


class Store:
    """Scores in a JSON file, one per (set, seed, method), written as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        known: list[Score] = json.loads(path.read_text()) if path.exists() else []
        self.scores = {_key(one): one for one in known}

    def add(self, score: Score) -> None:
        """Keep a score, in place of an older one, and write the file."""
        self.scores[_key(score)] = score
        lines = ",\n".join(json.dumps(self.scores[key]) for key in sorted(self.scores))
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(f"[\n{lines}\n]\n")

    def fill(self, jobs: Iterable[tuple[str, int, str]], folder: Path, again: bool) -> None:
        """Measure what is missing, or everything ``again``, two at a time."""
        wanted = [job for job in jobs if again or job not in self.scores]
        calls = (delayed(measure)(name, folder, seed, method) for name, seed, method in wanted)
        for done in Parallel(n_jobs=2, return_as="generator_unordered")(calls):
            self.add(done)
            print(
                f"{done['set']}, seed {done['seed']}, {done['method']}: {done['score']:.4f}, "
                f"{done['seconds']:.1f} s",
                file=sys.stderr,
                flush=True,
            )


def _key(score: Score) -> tuple[str, int, str]:
    return score["set"], score["seed"], score["method"]


def table(scores: list[Score], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per data set: scores of all methods, then sizes, then seconds."""
    methods = [one for one in (OURS, *PEERS) if any(s["method"] == one for s in scores)]
    rows = []
    for name in names:
        of = {m: [s for s in scores if s["set"] == name and s["method"] == m] for m in methods}
        row: dict[str, Any] = {"data": name}
        row |= {m: spread([s["score"] for s in of[m]]) for m in methods}
        if OURS in methods:
            row["patterns"] = counts(s["size"] for s in of[OURS])
        row["K of the mixture"] = counts(s["size"] for s in of.get("mixture", []))
        row |= {f"{m}, s": _median([s["seconds"] for s in of[m]]) for m in methods}
        rows.append(row)
    return rows


def summary(scores: list[Score], names: Sequence[str]) -> list[str]:
    """Return sentences: on how many sets ours keeps up with each peer."""

    def means(method: str) -> dict[str, float]:
        own = {
            n: [s["score"] for s in scores if (s["set"], s["method"]) == (n, method)] for n in names
        }
        return {name: float(np.mean(values)) for name, values in own.items() if values}

    ours = means(OURS)
    if not ours:
        return []
    lines = []
    for method, slack, text in (
        ("mixture", NEAR_MIXTURE, f"at least the mixture - {NEAR_MIXTURE}"),
        ("pairwise", NEAR_PAIRWISE, f"within {NEAR_PAIRWISE} of pairwise"),
        ("regressions", NEAR_PAIRWISE, f"within {NEAR_PAIRWISE} of the regressions"),
        ("site means", 0.0, "not below the site means"),
    ):
        peer = means(method)
        both = [name for name in names if name in ours and name in peer]
        short = [name for name in both if ours[name] < peer[name] - slack]
        line = f"{text}: {len(both) - len(short)} of {len(both)} sets"
        lines.append(line + (f" (not: {'; '.join(short)})" if short else ""))
    return lines


def _median(values: list[float]) -> str:
    return f"{np.median(values):.2g}" if values else "–"


def run(arguments: list[str]) -> None:
    """Measure what is asked for, and write ``real.md`` if every set and seed is there."""
    parser = argparse.ArgumentParser("python -m benchmarks real", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the .npz files")
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="SET")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="one split each")
    parser.add_argument("--only", choices=(OURS, "peers"), help="fit these alone")
    parser.add_argument("--resume", action="store_true", help="reuse finished fits of ours, too")
    options = parser.parse_args(arguments)
    stores = {"peers": Store(RESULTS / "real-peers.json"), OURS: Store(RESULTS / "real-ours.json")}
    for kind, methods in (("peers", tuple(PEERS)), (OURS, (OURS,))):
        if options.only in (None, kind):
            jobs = [(n, seed, m) for n in options.sets for m in methods for seed in options.seeds]
            stores[kind].fill(jobs, options.data, again=kind == OURS and not options.resume)
    scores = [
        one
        for store in stores.values()
        for one in store.scores.values()
        if one["set"] in options.sets and one["seed"] in options.seeds
    ]
    rows, lines = table(scores, options.sets), summary(scores, options.sets)
    print(markdown(rows), *lines, sep="\n")
    if lines and set(options.sets) == set(SETS) and set(options.seeds) == set(SEEDS):
        write("real", "\n\n".join([TITLE, "Ours is " + "; ".join(lines) + "."]), rows)
