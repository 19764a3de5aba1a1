"""Real data: how well entries are predicted and filled in, and what groups have to do with labels.

``python -m benchmarks real --data DIR`` reads ``DIR/*.npz`` (the array ``X``, or the only matrix:
-1/+1 with 0 for missing, 0/1, or either with NaN; ``label`` beside it) and scikit-learn's digits.
Every method is fitted once per set and split, in a process of its own. What peers scored is kept in
``results/real-peers.json`` and reused; ours is fitted again by every run, or only where it is
missing with ``--resume``. Set by set::

    python -m benchmarks real --data DIR --sets zoo spect --seeds 100 101 --resume
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.harness import RESULTS, markdown, threads, write
from benchmarks.ours import fitted
from benchmarks.peers import PeerError
from benchmarks.real_others import (
    Estimator,
    bernoulli_rbm,
    fit_clusters,
    hide,
    hopfield_rbm,
    k_means,
    latent_classes,
    logistic_pca,
    neighbours,
)
from benchmarks.real_peers import PEERS as OWN_PEERS
from benchmarks.real_peers import Choice, Peer, fit_mixture
from benchmarks.real_tables import N_BINS, OURS, TABLES, Score
from dualtap import as_spins

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
    "genotypes_ceu_yri",
    "genotypes_chb_jpt",
)
SEEDS = tuple(range(100, 105))  # nothing was tuned on these
TRAINING = 0.7
HIDDEN = (0.1, 0.3)
ENOUGH_HIDDEN, MOST_TIMES = 2000, 50
PEERS: dict[str, Callable[..., Peer]] = {
    **OWN_PEERS,
    "StepMix": latent_classes,
    "k-means": k_means,
    "BernoulliRBM": bernoulli_rbm,
    "logisticpca": logistic_pca,
    "neighbours": neighbours,
    "HopfieldRBM": hopfield_rbm,
}
GROUPED: dict[str, Callable[[Any, int, int], Any]] = {
    "mixture": lambda X, k, seed: fit_mixture(X, k, np.random.default_rng(seed)),
    "k-means": fit_clusters,
    "StepMix": lambda X, k, seed: latent_classes(X, seed, k).model,
}
"""Methods that make as many groups as there are labels; the features of others are clustered."""
Spins = NDArray[np.int8]


class Samples(NamedTuple):
    """A data set: ±1, 0 where an entry is missing; what is known of the samples."""

    X: Spins
    labels: NDArray[Any] | None


def samples(name: str, folder: Path) -> Samples:
    """Return a data set.

    Parameters
    ----------
    name : str
        One of `SETS`, or any ``.npz`` file of the folder without its ending.
    folder : Path

    Returns
    -------
    Samples
    """
    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        return Samples(np.where(digits.data > 8, 1, -1).astype(np.int8), digits.target)
    stem, _, transposed = name.partition(",")
    with np.load(folder / f"{stem}.npz", allow_pickle=False) as file:
        matrices = [key for key in file if file[key].ndim == 2]
        if "X" not in file and len(matrices) != 1:
            raise ValueError(f"{stem}.npz: name the samples X, or store one matrix")
        stored = file["X" if "X" in file else matrices[0]]
        labels = next((file[key] for key in ("label", "labels", "y") if key in file), None)
    X = np.array(as_spins(stored, zero_is_missing=bool((stored == -1).any())).values)
    if transposed:
        return Samples(np.ascontiguousarray(X.T), None)
    return Samples(X, labels if labels is not None and labels.shape == (len(X),) else None)


def split(n_samples: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return 70 % of the samples to fit and the others to score."""
    order = np.random.default_rng(seed).permutation(n_samples)
    n_training = round(TRAINING * n_samples)
    return order[:n_training], order[n_training:]


def measure(name: str, folder: Path, seed: int, method: str, before: Score | None = None) -> Score:
    """Fit one method on one split, predict and fill held-out samples, group them.

    What a peer of `real_peers` has chosen for the same split, as ``before`` says, is not chosen
    again; its time stays that of the fit with the choice.
    """
    X, labels = samples(name, folder)
    rows, others = split(len(X), seed)
    training, held_out = X[rows], X[others]
    score = Score(set=name, seed=seed, method=method)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            choice = None
            if before is not None and method in OWN_PEERS and "error" not in before:
                choice = Choice(before.get("size"), before.get("regularization"))
            peer, seconds, megabytes = _fitted(training, seed, method, choice)
            if before is None or choice is None:
                score |= {"seconds": round(seconds, 4), "megabytes": round(megabytes, 1)}
            else:
                score |= {key: before[key] for key in ("seconds", "megabytes") if key in before}  # type: ignore[typeddict-item]
            score |= {"size": peer.size, "regularization": peer.regularization}
            found = {"score": peer.model.score(held_out)}
            if labels is not None:
                known = labels[others]
                found["agreement"] = agreement(peer, method, training, held_out, known, seed)
            score |= {key: value for key, value in found.items() if np.isfinite(value)}  # type: ignore[typeddict-item]
            for share in HIDDEN:
                score |= filled(peer, held_out, share, seed)  # type: ignore[typeddict-item]
        except PeerError as error:
            score["error"] = str(error)
    return score


def _fitted(
    training: Spins, seed: int, method: str, known: Choice | None
) -> tuple[Peer, float, float]:
    """Return a fitted method, the seconds of the fit and the memory that it took."""
    if method == OURS:  # compiled kernels are loaded before memory is watched
        fitted(training[:20], seed)
    elif method == "HopfieldRBM":
        hopfield_rbm(training[:20], seed)
    before, start = _reset_peak(), time.perf_counter()
    if method == OURS:
        model, seconds = fitted(training, seed, steady=True)
        peer = Peer(Estimator(model), size=int(model.n_patterns_))
    else:
        peer = PEERS[method](training, seed, **({} if known is None else {"known": known}))
        seconds = time.perf_counter() - start
    if peer.measured is not None:
        return peer, *peer.measured
    return peer, seconds, _peak() - before


_STATUS = Path("/proc/self/status")


def _reset_peak() -> float:
    """Forget the most memory that was held so far, and return what is held now."""
    if _STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> float:
    """Return the most memory held, in MB; NaN where the system does not say."""
    if not _STATUS.exists():
        return float("nan")
    return int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024


def filled(peer: Peer, X: Spins, share: float, seed: int) -> dict[str, Any]:
    """Hide some entries, and compare what the method says of them with what they are.

    Small sets are hidden from in several ways, all rows each time.
    """
    times = -(-ENOUGH_HIDDEN // max(int(share * np.count_nonzero(X)), 1))
    X = np.tile(X, (min(times, MOST_TIMES), 1))
    shown, hidden = hide(X, share, seed)
    p = np.clip(peer.model.fill(shown, seed)[hidden], 1e-6, 1 - 1e-6)
    up = X[hidden] > 0
    percent = round(100 * share)
    return {
        f"loss_{percent}": float(-np.log(np.where(up, p, 1 - p)).mean()),
        f"accuracy_{percent}": float(np.mean((p >= 0.5) == up)),
        f"bins_{percent}": binned(p, up),
    }


def binned(p: NDArray[np.float64], up: NDArray[np.bool_]) -> list[list[float]]:
    """Return, for ten bins of probabilities, how many there are, their sum, and how many came true.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.real import binned
    >>> [row[7] for row in binned(np.full(4, 0.75), np.arange(4) < 2)]
    [4.0, 3.0, 2.0]
    """
    place = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    sums = (np.bincount(place, weights, N_BINS) for weights in (None, p, up))
    return [[round(float(value), 4) for value in row] for row in sums]


def agreement(
    peer: Peer, method: str, training: Spins, X: Spins, labels: NDArray[Any], seed: int
) -> float:
    """Return the adjusted Rand index of as many groups as labels; NaN without groups."""
    n_groups = len(np.unique(labels))
    if method in GROUPED:
        groups = GROUPED[method](training, n_groups, seed).groups(X)
    elif hasattr(peer.model, "features"):
        features = peer.model.features(X)
        groups = KMeans(n_groups, n_init=10, random_state=seed).fit_predict(features)
    else:
        return float("nan")
    return float(adjusted_rand_score(labels, groups))


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

    def fill(
        self, jobs: Iterable[tuple[str, int, str]], folder: Path, again: bool, n_jobs: int = 2
    ) -> None:
        """Measure what is missing, or everything ``again``, in processes of their own."""
        wanted = [job for job in jobs if again or not self._has(job)]
        if not wanted:
            return
        afresh = multiprocessing.get_context("forkserver")
        afresh.set_forkserver_preload(["benchmarks.real"])
        with ProcessPoolExecutor(n_jobs, afresh, max_tasks_per_child=1) as pool:
            calls = [
                pool.submit(measure, name, folder, seed, m, self.scores.get((name, seed, m)))
                for name, seed, m in wanted
            ]
            for call in as_completed(calls):
                done = call.result()
                self.add(done)
                told = done.get("error") or f"{done['loss_10']:.4f}, {done['seconds']:.1f} s"
                line = f"{done['set']}, seed {done['seed']}, {done['method']}: {told}"
                print(line, file=sys.stderr, flush=True)

    def _has(self, job: tuple[str, int, str]) -> bool:
        """Whether a method was measured, in all that is measured now."""
        return "loss_30" in self.scores.get(job, {})


def _key(score: Score) -> tuple[str, int, str]:
    return score["set"], score["seed"], score["method"]


def sets_of(folder: Path) -> tuple[str, ...]:
    """Return the sets of the benchmark that are there, and every other file of the folder."""
    files = {path.stem for path in folder.glob("*.npz")}
    known = [name for name in SETS if name == "digits" or name.partition(",")[0] in files]
    return (*known, *sorted(files - {name.partition(",")[0] for name in SETS}))


def run(arguments: list[str]) -> None:
    """Measure what is asked for, and write the tables if every set and seed is there."""
    parser = argparse.ArgumentParser("python -m benchmarks real", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the .npz files")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="all of the folder by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="one split each")
    parser.add_argument("--only", choices=(OURS, "peers"), help="fit these alone")
    parser.add_argument("--methods", nargs="+", choices=tuple(PEERS), help="only these peers")
    parser.add_argument("--resume", action="store_true", help="reuse finished fits of ours, too")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of scores and tables")
    options = parser.parse_args(arguments)
    sets = options.sets or sets_of(options.data)
    stores = {kind: Store(options.results / f"real-{kind}.json") for kind in ("peers", OURS)}
    for kind, methods in (("peers", options.methods or tuple(PEERS)), (OURS, (OURS,))):
        if options.only in (None, kind):
            jobs = [(n, seed, m) for n in sets for m in methods for seed in options.seeds]
            again = kind == OURS and not options.resume
            stores[kind].fill(jobs, options.data, again, options.jobs)
    scores = [
        one
        for store in stores.values()
        for one in store.scores.values()
        if one["set"] in sets and one["seed"] in options.seeds
    ]
    whole = set(sets) == set(SETS) and set(options.seeds) == set(SEEDS)
    for name, table in TABLES.items():
        rows, line = table.rows(scores, sets), table.summary(scores, sets)
        print(f"\n{markdown(rows)}\n{line}")
        if whole and line:
            write(name, f"{table.title}\n\n{line}", rows, options.results)
