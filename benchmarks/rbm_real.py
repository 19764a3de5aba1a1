"""The RBM on real data with default parameters, beside BernoulliRBM, rbms and other models.

``python -m benchmarks rbm-real --data DIR`` reads ``DIR/<set>.npz`` as ``real`` does, digits of
scikit-learn and 5000 of MNIST, and fits every method to the splits of ``real``. What was fitted
is kept in ``results/rbm-real-runs.json`` and reused; ``--again rbms`` fits a method again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.neural_network import BernoulliRBM

from benchmarks.harness import RESULTS, markdown, write
from benchmarks.ours import spread
from benchmarks.rbm_robust import fitted, with_nan
from benchmarks.real import samples, split
from benchmarks.real_others import asked
from benchmarks.real_peers import site_means
from dualtap.datasets import load_mnist

Spins = NDArray[np.int8]
Floats = NDArray[np.float64]
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
HELD_OUT = 0.2  # of the training samples, for what peers choose
OURS, SCIKIT, TORCH = "HopfieldRBM", "BernoulliRBM", "rbms"
RATES, SIZES, EPOCHS = (0.01, 0.03, 0.1), (16, 64, 256), (10, 30, 100)
RBMS: dict[str, Any] = {
    "n_hidden": 100,
    "learning_rate": 0.01,
    "batch_size": 2000,
    "n_updates": 10_000,
    "n_chains": 100,
    "n_steps": 10,
}
"""The first four are its defaults. Those of the others, 2000 and 100, take 100 times as long."""
RUNS = RESULTS / "rbm-real-runs.json"
BESIDE = {"HopfieldPatterns": ("real-ours.json", "ours"), "mixture": ("real-peers.json", "mixture")}
"""Other models on the same splits, from ``python -m benchmarks real``."""
TITLE = f"""The RBM on real data, held-out log pseudo-likelihood per entry, default parameters

Means over splits, 70 % of the samples to fit. BernoulliRBM: size, rate and epochs chosen on a fifth
of the training samples, then fitted to all of them. rbms: its default size ({RBMS["n_hidden"]}),
rate, batch (2000), number of updates and centred gradients, but {RBMS["n_chains"]} chains of
{RBMS["n_steps"]} steps where its defaults are 2000 of 100, which would take a hundred times as
long; of the states along the way that which a fifth of the training samples prefers, and an end
when the run is twice as old as that state, and 2000 updates at least. Both see 1/2 for missing
entries. ± is the standard error over splits, gain ± that of the paired differences.
HopfieldPatterns and the mixture are from the table of real data, on the same splits where these
were made."""


class Machine(NamedTuple):
    """An RBM of 0/1 units of both kinds, which every missing entry enters as 1/2."""

    weights: Floats
    """(n_hidden, n_spins)."""
    visible: Floats
    hidden: Floats

    def score(self, X: Spins) -> float:
        """Return the exact mean log pseudo-likelihood per observed entry."""
        v = (X + 1) / 2
        x = v @ self.weights.T + self.hidden
        rise, before = np.empty_like(v), np.logaddexp(0, x).sum(axis=1)
        for i, w in enumerate(self.weights.T):
            turn = 1 - 2 * v[:, i, None]
            after = np.logaddexp(0, x + turn * w).sum(axis=1)
            rise[:, i] = before - after - turn[:, 0] * self.visible[i]
        return float(log_expit(rise)[X != 0].mean())


class Fit(NamedTuple):
    """What a method made of training samples."""

    score: Callable[[Spins], float]
    settings: str
    seconds: float
    """Of CPU time."""


def ours(X: Spins, seed: int) -> Fit:
    """Fit with default parameters; compiled code is loaded before that."""
    fitted(X[:20], max_updates=2, look_every=1)
    start = time.process_time()
    model, _ = fitted(X, random_state=seed)
    seconds = time.process_time() - start
    settings = f"{model.hidden_} {len(model.components_)}"
    return Fit(lambda held_out: float(model.score(with_nan(held_out))), settings, seconds)


def bernoulli(X: Spins, seed: int) -> Fit:
    """Fit scikit-learn's RBM, with the settings that a fifth of the samples prefers."""
    start = time.process_time()
    V = (X + 1) / 2
    order = np.random.default_rng(seed).permutation(len(V))
    held_out, rest = np.split(order, [int(HELD_OUT * len(V))])
    best = (-np.inf, 0, 0.0, 0)
    for size in SIZES:
        for rate in RATES:
            model = BernoulliRBM(size, learning_rate=rate, random_state=seed)
            done = 0
            for n_epochs in EPOCHS:
                _train(model, V[rest], range(done, n_epochs))
                done = n_epochs
                best = max(best, (_machine(model).score(X[held_out]), size, rate, n_epochs))
    _, size, rate, n_epochs = best
    model = BernoulliRBM(size, learning_rate=rate, random_state=seed)
    _train(model, V, range(n_epochs))
    settings = f"{size}, rate {rate:g}, {n_epochs} epochs"
    return Fit(_machine(model).score, settings, time.process_time() - start)


def _train(model: BernoulliRBM, V: Floats, epochs: range) -> None:
    for epoch in epochs:
        order = np.random.default_rng(epoch).permutation(len(V))
        for batch in np.array_split(V[order], -(-len(V) // 10)):
            model.partial_fit(batch)


def _machine(model: BernoulliRBM) -> Machine:
    return Machine(model.components_, model.intercept_visible_, model.intercept_hidden_)


def rbms(X: Spins, seed: int) -> Fit:
    """Fit rbms in its own environment."""
    order = np.random.default_rng(seed).permutation(len(X))
    held_out, rest = np.split(order, [int(HELD_OUT * len(X))])
    found, (seconds, _) = asked(
        "rbms", "rbms_machine.py", X[rest], seed, queries=X[held_out], **RBMS
    )
    machine = Machine(found[1:, 1:].T, found[1:, 0], found[0, 1:])
    return Fit(machine.score, f"{int(found[0, 0])} updates", seconds)


METHODS: dict[str, Callable[[Spins, int], Fit]] = {OURS: ours, SCIKIT: bernoulli, TORCH: rbms}


def run(arguments: list[str]) -> None:
    """Fit what is lacking, and write the table of all that was fitted."""
    parser = argparse.ArgumentParser("python -m benchmarks rbm-real", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the .npz files")
    parser.add_argument(
        "--sets", nargs="*", default=SETS, metavar="SET", help="none for the table alone"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="one split each")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=tuple(METHODS))
    parser.add_argument("--again", nargs="+", choices=METHODS, default=(), help="fit these again")
    parser.add_argument("--runs", type=Path, default=RUNS, help="file of what was fitted")
    options = parser.parse_args(arguments)
    load = partial(_samples, folder=options.data)
    runs: dict[str, Any] = json.loads(options.runs.read_text()) if options.runs.exists() else {}
    for name in options.sets:
        for seed in options.seeds:
            for method in options.methods:
                known = runs.setdefault(f"{name} {seed}", {})
                if method in known and method not in options.again:
                    continue
                known |= _measured(load(name), seed, method)
                _save(options.runs, runs)
                print(name, seed, method, known[method], flush=True)
    rows = [row for name in SETS if (row := _row(name, runs))]
    print(markdown(rows) if rows else "ours was not fitted")
    if options.runs == RUNS:
        write("rbm-real", f"{TITLE}\n\n{_verdict(rows)}", rows)


def _samples(name: str, folder: Path) -> Spins:
    return load_mnist().X if name == "mnist" else samples(name, folder).X


def _save(path: Path, runs: dict[str, Any]) -> None:
    """Write all runs or none."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(runs, indent=1) + "\n")
    beside.replace(path)


def _measured(X: Spins, seed: int, method: str) -> dict[str, Any]:
    rows, others = split(len(X), seed)
    fit = METHODS[method](X[rows], seed)
    return {
        "independent": site_means(X[rows]).score(X[others]),
        method: {"score": fit.score(X[others]), "settings": fit.settings, "CPU s": fit.seconds},
    }


def _row(name: str, runs: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured on a set: splits that ours was fitted to."""
    known = {tuple(key.split()): one for key, one in runs.items()}
    own = {int(s): one for (of, s), one in known.items() if of == name and OURS in one}
    if not own:
        return {}
    scores = {
        method: {seed: one[method]["score"] for seed, one in own.items() if method in one}
        for method in METHODS
    }
    scores |= {model: _elsewhere(name, model) for model in BESIDE}
    row: dict[str, Any] = {"data": name, "splits": len(own)}
    row["independent"] = spread([one["independent"] for one in own.values()])
    for method, found in scores.items():
        row[method] = spread([found[seed] for seed in own if seed in found])
    for method in (SCIKIT, TORCH):
        common = [seed for seed in own if seed in scores[method]]
        row[f"gain on {method}"] = spread([scores[OURS][s] - scores[method][s] for s in common])
    row["ours"] = ", ".join(sorted({one[OURS]["settings"] for one in own.values()}))
    for method in METHODS:
        seconds = [one[method]["CPU s"] for one in own.values() if method in one]
        row[f"{method}, s"] = float(np.median(seconds)) if seconds else "–"
    return row


def _elsewhere(name: str, model: str) -> dict[int, float]:
    """Return the scores of a model of the benchmark ``real``, by split."""
    file, method = BESIDE[model]
    path = RESULTS / file
    known = json.loads(path.read_text()) if path.exists() else []
    return {
        one["seed"]: one["score"]
        for one in known
        if one["set"] == name and one["method"] == method and "score" in one
    }


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Return on which sets ours is below a peer in the mean."""
    parts = []
    for method in (SCIKIT, TORCH):
        gains = {row["data"]: row[f"gain on {method}"] for row in rows}
        compared = {name: float(gain.split()[0]) for name, gain in gains.items() if gain != "–"}
        lost = [name for name, gain in compared.items() if gain < 0]
        where = f"below {method} on {', '.join(lost)}" if lost else f"never below {method}"
        parts.append(f"{where} ({len(compared) - len(lost)} of {len(compared)} sets)")
    return f"Ours is {', and '.join(parts)}."
