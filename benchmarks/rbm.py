"""The RBM: speed against peers, growth with the size, and the paper's claims about learning."""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Contender, Row, compare, markdown, threads
from benchmarks.peers import Peer, python_of
from benchmarks.references import NumpyPCD
from dualtap import DualTAP, HopfieldModel, HopfieldRBM
from dualtap._threads import one_blas_thread
from dualtap.datasets import load_mnist
from dualtap.metrics import coupling_error, match
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import is_flat, pseudo_likelihood
from dualtap.rbm.patterns import data_modes, mode_errors
from dualtap.rbm.pcd import Ascent
from dualtap.rbm.priors import PRIORS
from dualtap.rbm.run import Run
from dualtap.rbm.start import start_run
from dualtap.rbm.training import Plan, train

CASE = "PCD-10, N=1000 N_h=15, batch 100, 100 chains"
RATE = 4e-4
UPDATES = 100
SEEDS = range(20, 25)  # the rule that finds where S is flat was chosen on others
PICTURES = Path(__file__).parent.parent / "docs" / "images"


def _data(n_spins: int = 1000, n_samples: int = 1000) -> tuple[HopfieldModel, NDArray[np.int8]]:
    teacher = HopfieldModel.random(n_spins, 10, 2.0, random_state=0)
    return teacher, teacher.sample(n_samples, random_state=1)


def _runs(
    X: NDArray[np.int8], n_hidden: int, n_chains: int, look_every: int, n_steps: int = 10
) -> Iterator[Run]:
    """Yield our run after every update, as ``HopfieldRBM.fit`` makes them."""
    run = start_run(X, n_hidden, n_chains, 100, (RATE * 1000 / X.shape[1], 0.0), seed=0)
    return train(
        run,
        X,
        PRIORS["gaussian"],
        Ascent(run.learning_rate, n_steps=n_steps),
        Plan(look_every, max_updates=10**9, early_stopping=False),
    )


def _advance(runs: Iterator[Run], n_updates: int) -> Run:
    with one_blas_thread():
        for _ in range(n_updates):
            run = next(runs)
    return run


def speed(n_threads: int, runs: int) -> list[Row]:
    """Time 100 updates of ours, looks included, against NumPy, rbms and scikit-learn."""
    from sklearn.neural_network import BernoulliRBM

    _, X = _data()
    ours = _runs(X, 15, 100, look_every=10)

    def own_score(run: Run) -> str:
        return f"S {pseudo_likelihood(run.model(PRIORS['gaussian']), X):.4f} per spin"

    plain = NumpyPCD(X, 15, 100, RATE, seed=0)

    def plain_updates() -> NDArray[np.float32]:
        for _ in range(UPDATES):
            plain.update(100, 10)
        return plain.W

    def plain_score(W: NDArray[np.float32]) -> str:
        model = RBM(W, np.zeros(X.shape[1], dtype=np.float32), PRIORS["gaussian"])
        return f"S {pseudo_likelihood(model, X):.4f} per spin"

    dualtap = Contender("dualtap", lambda: _advance(ours, UPDATES), own_score)
    rows = compare(
        f"{CASE}, {UPDATES} updates",
        Contender("NumPy float32", plain_updates, plain_score),
        dualtap,
        n_threads,
        runs,
    )

    machine = BernoulliRBM(15, learning_rate=0.01, batch_size=100, random_state=0)
    zero_one = (X > 0).astype(np.float32)
    batches = [zero_one[k : k + 100] for k in range(0, 1000, 100)]

    def sklearn_updates() -> Any:
        for k in range(UPDATES):
            machine.partial_fit(batches[k % 10])
        return machine

    single = _runs(X, 15, 100, look_every=10, n_steps=1)
    rows += compare(
        f"{CASE.replace('PCD-10', 'PCD-1')}, {UPDATES} updates (scikit-learn has 0/1 units)",
        Contender("scikit-learn BernoulliRBM, PCD-1", sklearn_updates, lambda answer: "-"),
        Contender("dualtap, PCD-1", lambda: _advance(single, UPDATES), own_score),
        n_threads,
        runs,
    )
    return rows + _against_rbms(X, dualtap, n_threads, runs)


def _against_rbms(X: NDArray[np.int8], dualtap: Contender, n_threads: int, runs: int) -> list[Row]:
    # torch first and pinned: otherwise pip takes the build with the CUDA libraries.
    python = python_of("rbms", ("torch==2.13.0",), ("rbms==0.5.0",))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        np.save(path, X)
        setup = {
            "threads": n_threads,
            "data": str(path),
            "n_hidden": 15,
            "n_chains": 100,
            "batch_size": 100,
            "n_steps": 10,
            "learning_rate": 0.01,
        }
        with Peer(python, "rbms_pcd.py", setup) as peer:
            name = f"rbms {peer.about['version']}, torch {peer.about['torch']}"
            return compare(
                f"{CASE}, {UPDATES} updates (rbms has 0/1 units)",
                Contender(
                    name,
                    lambda: peer.ask({"updates": UPDATES, "score": True}),
                    lambda answer: f"S {answer['score']:.4f} per spin, of 0/1 units",
                ),
                dualtap,
                n_threads,
                runs,
            )


def watching(n_threads: int, runs: int) -> list[Row]:
    """Time 100 updates with the looks of the default and without."""
    _, X = _data()
    watched, blind = _runs(X, 15, 100, look_every=10), _runs(X, 15, 100, look_every=10**9)
    return compare(
        f"{CASE}, 100 updates",
        Contender("without looks", lambda: _advance(blind, 100), lambda run: "-"),
        Contender("a look every 10 updates", lambda: _advance(watched, 100), lambda run: "-"),
        n_threads,
        runs,
    )


def looks(n_updates: int = 300) -> list[dict[str, Any]]:
    """Return which share of the time of training default looks take, held-out samples included."""
    clustered = {
        "N=60 M=400": HopfieldModel.random(60, 3, 2.0, random_state=0).sample(400, random_state=1),
        "N=1000 M=1000": _data()[1],
        "MNIST, N=784 M=5000": load_mnist().X,
    }
    rows = []
    for name, X in clustered.items():
        for hidden in ("gaussian", "binary", "relu", "spike_slab"):
            for n_hidden in (16, 256):
                share, seconds = _share_of_looks(X, hidden, n_hidden, n_updates)
                row: dict[str, Any] = {"data": name, "hidden units": f"{n_hidden} {hidden}"}
                rows.append(row | {"share of looks": share, "CPU s": seconds})
                print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def _share_of_looks(
    X: NDArray[np.int8], hidden: str, n_hidden: int, n_updates: int
) -> tuple[float, float]:
    real, spent = Run.after_look, 0.0

    def timed(*arguments: Any) -> Run:
        nonlocal spent
        start = time.process_time()
        run = real(*arguments)
        spent += time.process_time() - start
        return run

    options: dict[str, Any] = {"hidden": hidden, "fields": True, "early_stopping": False}
    with threads(1), warnings.catch_warnings(), mock.patch.object(Run, "after_look", timed):
        warnings.simplefilter("ignore", ConvergenceWarning)
        HopfieldRBM(n_hidden, max_updates=2, random_state=0, **options).fit(X)  # compiles
        spent, start = 0.0, time.process_time()
        HopfieldRBM(n_hidden, max_updates=n_updates, random_state=0, **options).fit(X)
    seconds = time.process_time() - start
    return spent / seconds, seconds


def growth(runs: int = 7) -> list[dict[str, Any]]:
    """Time an update against N, N_h and the number of chains, a decade each, one thread."""
    base = {"N": 1000, "N_h": 30, "chains": 100}
    rows = []
    for name, values in (
        ("N", (1000, 2000, 5000, 10_000)),
        ("N_h", (15, 30, 75, 150)),
        ("chains", (50, 100, 250, 500)),
    ):
        sizes = [base | {name: value} for value in values]
        trainings = [
            _runs(_data(size["N"], 500)[1], size["N_h"], size["chains"], 10**9) for size in sizes
        ]
        seconds = _interleaved(trainings, runs)
        exponent = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
        straight = float(np.corrcoef(values, seconds)[0, 1] ** 2)
        rows += [
            {
                "varied": name,
                "value": value,
                "milliseconds per update": 1e3 * s,
                "exponent": exponent,
                "R² of a straight line": straight,
            }
            for value, s in zip(values, seconds, strict=True)
        ]
    return rows


def _interleaved(trainings: list[Iterator[Run]], runs: int) -> list[float]:
    """Return the median seconds of an update of each training, timed in turns."""
    times: list[list[float]] = [[] for _ in trainings]
    with threads(1):
        for training in trainings:
            _advance(training, 3)
        for _ in range(runs):
            for training, seconds in zip(trainings, times, strict=True):
                start = time.perf_counter()
                _advance(training, 5)
                seconds.append((time.perf_counter() - start) / 5)
    return [statistics.median(seconds) for seconds in times]


def plot_growth(rows: list[dict[str, Any]]) -> None:
    """Draw time per update against each size, with the straight line through the points."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    names = list(dict.fromkeys(row["varied"] for row in rows))
    titles = {"N": "visible units N", "N_h": "hidden units N_h", "chains": "chains"}
    for ax, name in zip(figure.subplots(1, 3), names, strict=True):
        own = [row for row in rows if row["varied"] == name]
        x = np.array([row["value"] for row in own])
        y = np.array([row["milliseconds per update"] for row in own])
        slope, offset = np.polyfit(x, y, 1)
        ax.plot(x, y, "ko", label="measured")
        ax.plot(x, offset + slope * x, "C0--", label="straight line")
        ax.set(
            xlabel=titles[name],
            ylabel="ms per update",
            xlim=(0, None),
            ylim=(0, None),
            title=f"straight line: R² = {own[0]['R² of a straight line']:.3f}",
        )
        ax.legend(frameon=False)
    figure.suptitle("PCD-10 on one thread; N = 1000, N_h = 30, 100 chains unless varied")
    figure.savefig(PICTURES / "rbm-growth.png", dpi=120)


def learning(seed: int, n_samples: int) -> dict[str, Any]:
    """Measure one training of the paper's case, looked at often and longer than need be."""
    teacher = HopfieldModel.random(1000, 10, 2.0, random_state=seed)
    X = teacher.sample(n_samples, random_state=1000 + seed)
    modes = data_modes(X, 20)
    rbm = HopfieldRBM.paper(
        15, early_stopping=False, max_updates=600, look_every=5, random_state=seed
    ).fit(X, teacher=teacher)
    untrained = HopfieldRBM.paper(15, max_updates=1, random_state=seed).fit(X)
    first = mode_errors(untrained.components_, modes)
    stopped = HopfieldRBM.paper(15, random_state=seed).fit(X)
    curve = rbm.history_
    flat = int(np.argmax(is_flat(curve.update, curve.pseudo_likelihood)))
    best = int(np.argmin(curve.error))
    values = stopped.singular_values_
    left = mode_errors(stopped.components_, modes)
    tap = DualTAP(10, beta=2.0, random_state=seed).fit(X)
    found = match(stopped.patterns_, teacher.patterns)
    return {
        "M": n_samples,
        "seed": seed,
        "smallest error of J": curve.error[best],
        "at update": int(curve.update[best]),
        "S flat at update": int(curve.update[flat]),
        "flat / smallest": curve.update[flat] / curve.update[best],
        "error there": curve.error[flat],
        "error at the end (600)": curve.error[-1],
        "S start": curve.pseudo_likelihood[0],
        "S flat": curve.pseudo_likelihood[flat],
        "σ10": values[9],
        "σ11": values[10],
        "gap": values[9] / values[10],
        "t_1..10 start": f"{first[:10].min():.3f}-{first[:10].max():.3f}",
        "t_1..10 stopped": f"{left[:10].min():.3f}-{left[:10].max():.3f}",
        "t_11..20 stopped": f"{left[10:].min():.3f}-{left[10:].max():.3f}",
        "TAP's error of J": coupling_error(tap.magnetizations_, teacher.patterns).relative,
        "stopped at": stopped.n_updates_,
        "patterns": stopped.n_patterns_,
        "overlaps > 0.95": found.n_recovered(0.95),
        "smallest overlap": float(found.overlaps.min()),
    }


def plot_learning() -> None:
    """Draw the learning curve and the singular values of the paper's case."""
    from dualtap.plots import learning_figure

    teacher, X = _data()
    rbm = HopfieldRBM.paper(15, early_stopping=False, max_updates=500, look_every=5, random_state=0)
    figure = learning_figure(rbm.fit(X, teacher=teacher))
    figure.suptitle("N = 1000, P = 10, β = 2, M = 1000, 15 hidden units")
    figure.savefig(PICTURES / "rbm-learning.png", dpi=120)


def paper_case() -> list[dict[str, Any]]:
    """N=1000, P=10, β=2, N_h=15: five seeds for every M of the paper's figures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            learning(seed, n_samples) for n_samples in (100, 200, 500, 1000, 2000) for seed in SEEDS
        ]


def rates() -> list[dict[str, Any]]:
    """Train with the default rate at several sizes, and with ten times the rate."""
    rows = []
    for n_spins, n_patterns, beta, n_samples in (
        (100, 3, 2.0, 300),
        (1000, 5, 1.2, 2000),
        (1000, 10, 2.0, 1000),
        (10_000, 10, 2.0, 500),
    ):
        teacher = HopfieldModel.random(n_spins, n_patterns, beta, random_state=0)
        X = teacher.sample(n_samples, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rbm = HopfieldRBM.paper(15, random_state=0).fit(X)
            fast = HopfieldRBM.paper(15, learning_rate=20 * rbm.learning_rate_, random_state=0).fit(
                X
            )
        rows.append(
            {
                "case": f"N={n_spins} P={n_patterns} β={beta:g} M={n_samples}",
                "default rate": rbm.learning_rate_,
                "stopped": f"{rbm.stop_reason_} at {rbm.n_updates_}",
                "S": rbm.score(X),
                "patterns recovered": match(rbm.patterns_, teacher.patterns).n_recovered(0.95),
                "20 × the rate": f"{fast.stop_reason_} at {fast.n_updates_}",
                "S kept": fast.score(X),
            }
        )
    return rows
