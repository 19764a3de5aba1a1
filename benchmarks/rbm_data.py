"""The RBM away from Hopfield samples: 60 configurations, and real data against BernoulliRBM.

``python -m benchmarks rbm-robust`` fits 60 configurations and compares held-out samples with
independent spins. ``python -m benchmarks rbm-real --data DIR`` reads ``DIR/<set>.npz`` (X int8,
±1, 0 = missing) and scikit-learn's digits, and compares defaults with ``BernoulliRBM``, whose rate,
size and number of epochs are chosen by validation before it is fitted to all training samples.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM

from benchmarks.harness import RESULTS, markdown, threads, write
from benchmarks.ours import spread
from benchmarks.real import samples
from benchmarks.real_peers import site_means
from dualtap import HopfieldModel, HopfieldRBM
from dualtap.datasets import load_mnist

Spins = NDArray[np.int8]
SETS = (
    "house_votes_1984",
    "senate",
    "zoo",
    "spect",
    "soybean",
    "chess_endgame",
    "mushroom",
    "genotypes_ceu_yri",
    "genotypes_chb_jpt",
    "eysenck_questionnaire",
    "digits",
    "mnist",
)
SEEDS = tuple(range(100, 105))
TRAINING = 0.7
N_CONFIGURATIONS = 60
ALLOWED = 0.01  # per entry below independent spins
RATES, SIZES, EPOCHS = (0.01, 0.03, 0.1), (16, 64, 256), (10, 30, 100)
TITLE = f"""The RBM on 60 configurations, held-out log pseudo-likelihood per entry

A configuration fails if it ends more than {ALLOWED} below independent spins on 500 held-out
samples, or diverges without a warning."""

REAL = """The RBM on real data, held-out log pseudo-likelihood per entry, default parameters

BernoulliRBM has its size, rate and epochs chosen on a fifth of the training samples. Sets have as
many of five splits as were made."""
RUNS = RESULTS / "rbm-real-runs.json"


class Case(NamedTuple):
    """Samples of a kind and the options they are fitted with."""

    kind: str
    n_samples: int
    options: dict[str, Any]


def configurations() -> Iterator[Case]:
    """Yield data and options, each of which takes turns at its own pace."""
    kinds = ("clustered", "biased", "sparse", "one-hot", "missing")
    hidden = cycle(("gaussian", "binary", "relu", "spike_slab"))
    sizes, numbers = cycle((2, 20, 200)), cycle((30, 100, 400, 3000))
    for k in range(N_CONFIGURATIONS):
        options: dict[str, Any] = {"hidden": next(hidden), "n_hidden": next(sizes)}
        options["fields"] = (False, True, "auto")[k % 7 % 3]
        options["centering"] = options["fields"] is True and k % 2 == 0
        options["weight_decay"] = (0.0, 0.01)[k // 3 % 2]
        options["estimate"] = ("pcd", "cd")[k // 5 % 2]
        options["learning_rate"] = ("auto", 0.05)[k % 11 == 0]
        if k % 4 == 3:
            next(numbers)
        yield Case(kinds[k % 5], next(numbers), options)


def drawn(kind: str, n_samples: int, seed: int, n_spins: int = 60) -> Spins:
    """Return samples of a kind, ±1 with 0 for missing."""
    rng = np.random.default_rng(seed)
    if kind == "biased":
        up = np.random.default_rng(1).uniform(0.05, 0.95, n_spins)
        return np.where(rng.random((n_samples, n_spins)) < up, 1, -1).astype(np.int8)
    if kind == "sparse":
        return np.where(rng.random((n_samples, n_spins)) < 0.05, 1, -1).astype(np.int8)
    if kind == "one-hot":
        hot = rng.integers(0, 6, size=(n_samples, n_spins // 6))
        blocks = np.where(hot[..., None] == np.arange(6), 1, -1)
        return blocks.reshape(n_samples, -1).astype(np.int8)
    teacher = HopfieldModel.random(n_spins, 3, beta=2.0, random_state=0)
    X = teacher.sample(n_samples, random_state=seed)
    gaps = rng.random(X.shape) < (0.2 if kind == "missing" else 0)
    return np.where(gaps, 0, X).astype(np.int8)


def fitted(X: Spins, **options: Any) -> tuple[HopfieldRBM, list[str]]:
    """Return a fitted machine and what it said."""
    with warnings.catch_warnings(record=True) as said, threads(1):
        warnings.simplefilter("always", ConvergenceWarning)
        model = HopfieldRBM(random_state=0, **options).fit(with_nan(X))
    return model, [str(one.message) for one in said]


def with_nan(X: Spins) -> NDArray[np.float64]:
    """Return samples with NaN for missing entries."""
    return np.where(X == 0, np.nan, X)


def robust(arguments: list[str]) -> None:
    """Fit the configurations and print how far each ends above independent spins."""
    parser = argparse.ArgumentParser("python -m benchmarks rbm-robust", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one configuration of so many")
    parser.add_argument("--updates", type=int, default=20_000, help="maximum number of updates")
    options = parser.parse_args(arguments)
    rows = []
    for k, case in islice(enumerate(configurations()), 0, None, options.every):
        X, held_out = (drawn(case.kind, n, s) for n, s in ((case.n_samples, 10 + k), (500, 10**6)))
        start = time.process_time()
        model, said = fitted(X, max_updates=options.updates, **case.options)
        score, floor = model.score(with_nan(held_out)), site_means(X).score(held_out)
        diverged = model.stop_reason_ == "diverged"
        row = {"samples": f"{case.kind}, {case.n_samples}"} | case.options
        row |= {"independent": floor, "score": score, "above": score - floor}
        row |= {"stopped": model.stop_reason_, "warned": bool(said)}
        row["CPU s"] = time.process_time() - start
        row["fails"] = bool(score < floor - ALLOWED or (diverged and not said))
        rows.append(row)
        print(markdown([row]).splitlines()[-1], flush=True)
    failures = sum(row["fails"] for row in rows)
    print(f"{failures} of {len(rows)} configurations fail")
    if options.every == 1:
        write("rbm-robust", f"{TITLE} {failures} of {len(rows)} fail.", rows)


def bernoulli(X: Spins, seed: int) -> BernoulliRBM:
    """Return scikit-learn's RBM, with the settings that a fifth of the samples prefers."""
    V = (X + 1) / 2
    order = np.random.default_rng(seed).permutation(len(V))
    held_out, rest = np.split(order, [len(V) // 5])
    best = (-np.inf, 0, 0.0, 0)
    for size in SIZES:
        for rate in RATES:
            model = BernoulliRBM(size, learning_rate=rate, random_state=seed)
            done = 0
            for n_epochs in EPOCHS:
                _train(model, V[rest], range(done, n_epochs))
                done = n_epochs
                best = max(best, (bernoulli_score(model, X[held_out]), size, rate, n_epochs))
    _, size, rate, n_epochs = best
    model = BernoulliRBM(size, learning_rate=rate, random_state=seed)
    _train(model, V, range(n_epochs))
    return model


def _train(model: BernoulliRBM, V: NDArray[np.float64], epochs: range) -> None:
    for epoch in epochs:
        order = np.random.default_rng(epoch).permutation(len(V))
        for batch in np.array_split(V[order], -(-len(V) // 10)):
            model.partial_fit(batch)


def bernoulli_score(model: BernoulliRBM, X: Spins) -> float:
    """Return the exact mean log pseudo-likelihood per observed entry; missing ones are 1/2."""
    v = (X + 1) / 2
    x = v @ model.components_.T + model.intercept_hidden_
    rise = np.empty_like(v)
    for i, w in enumerate(model.components_.T):
        turn = 1 - 2 * v[:, i, None]
        softplus = np.logaddexp(0, x) - np.logaddexp(0, x + turn * w)
        rise[:, i] = softplus.sum(axis=1) - turn[:, 0] * model.intercept_visible_[i]
    return float(log_expit(rise)[X != 0].mean())


def real(arguments: list[str]) -> None:
    """Compare defaults with BernoulliRBM on real data; splits that are done are not done again."""
    parser = argparse.ArgumentParser("python -m benchmarks rbm-real", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the .npz files")
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="SET")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="one split each")
    options = parser.parse_args(arguments)
    runs: dict[str, Any] = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    for name in options.sets:
        X = load_mnist().X if name == "mnist" else samples(name, options.data).X
        for seed in options.seeds:
            if f"{name} {seed}" not in runs:
                runs[f"{name} {seed}"] = one = _one_split(X, seed)
                RUNS.write_text(json.dumps(runs, indent=1) + "\n")
                print(name, seed, one, flush=True)
    rows = [_row(name, own) for name in SETS if (own := _runs_of(name, runs))]
    lost = [row["data"] for row in rows if row["ours - theirs"] < 0]
    verdict = (
        f"Ours is below BernoulliRBM on {', '.join(lost)}." if lost else "Ours is never below."
    )
    write("rbm-real", f"{REAL} {verdict}", rows)
    print(markdown(rows), verdict)


def _runs_of(name: str, runs: dict[str, Any]) -> list[dict[str, Any]]:
    return [runs[f"{name} {seed}"] for seed in SEEDS if f"{name} {seed}" in runs]


def _row(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"data": name, "splits": len(results)}
    for key in ("independent", "HopfieldRBM", "BernoulliRBM"):
        row[key] = spread([result[key] for result in results])
    ahead = [result["HopfieldRBM"] - result["BernoulliRBM"] for result in results]
    row["ours - theirs"] = float(np.mean(ahead))
    row["hidden"] = ", ".join(sorted({result["hidden"] for result in results}))
    for key in ("HopfieldRBM, CPU s", "BernoulliRBM, CPU s"):
        row[key] = float(np.median([result[key] for result in results]))
    return row


def _one_split(X: Spins, seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(len(X))
    fitted_rows, held_out = np.split(order, [int(TRAINING * len(order))])
    start = time.process_time()
    ours, _ = fitted(X[fitted_rows])
    middle = time.process_time()
    peer = bernoulli(X[fitted_rows], seed)
    return {
        "independent": site_means(X[fitted_rows]).score(X[held_out]),
        "HopfieldRBM": ours.score(with_nan(X[held_out])),
        "BernoulliRBM": bernoulli_score(peer, X[held_out]),
        "hidden": f"{ours.hidden_} {len(ours.components_)}",
        "HopfieldRBM, CPU s": middle - start,
        "BernoulliRBM, CPU s": time.process_time() - middle,
    }
