"""Training of an RBM: time and likelihood after the same number of updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.against.contest import Contender, contest
from benchmarks.against.plots import save_scatter
from benchmarks.against.tables import Rows, Table, long, titled
from benchmarks.peers import OURS
from dualtap import HopfieldModel
from dualtap._progress import Advance

THREADS = 1
UPDATES = 300
OWN = "dualtap, PCD-10"
CAPTION = """300 updates at N=1000 (P=10, β=2, M=1000), 15 hidden units, batches of 100, 100 chains.
S: exact log pseudo-likelihood per spin of the data at the end, mean over seeds; -0.693 for
independent fair spins. Hidden units of dualtap and NumPy are Gaussian, of the others 0/1. dualtap
uses its own learning rate, and its time includes monitoring; the others have the rate with the
largest S on a grid of half decades. scikit-learn makes one step of its chains per update. One
thread; interleaved runs, one process per method."""


def contenders(quick: bool) -> list[Contender]:
    """Return everybody, ours first."""
    common = {
        "n_updates": UPDATES // 3 if quick else UPDATES,
        "n_hidden": 15,
        "n_chains": 100,
        "batch_size": 100,
        "n_steps": 10,
    }

    def entry(name: str, script: str, where: str = OURS, **own: Any) -> Contender:
        return Contender(name, script, common | own, where)

    return [
        entry(OWN, "dualtap_training.py", method="dualtap"),
        entry("NumPy, PCD-10", "dualtap_training.py", method="NumPy", learning_rate=4e-4),
        entry("rbms, PCD-10", "rbms_training.py", "rbms", learning_rate=10.0),
        entry(
            "scikit-learn BernoulliRBM, PCD-1",
            "sklearn_training.py",
            "scikit-learn",
            learning_rate=0.3,
        ),
    ]


def n_answers(runs: int, quick: bool) -> int:
    """Return how often the progress bar moves."""
    return runs * len(contenders(quick))


def measure(runs: int, quick: bool, folder: Path, advance: Advance) -> Rows:
    """Train everybody; a run is a seed of the training, the data stay."""
    teacher = HopfieldModel.random(1000, 10, 2.0, random_state=0)
    path = folder / "samples.npy"
    np.save(path, teacher.sample(1000, random_state=1))
    requests = [{"samples": str(path), "seed": run} for run in range(runs)]

    def judge(number: int, score: NDArray[Any]) -> dict[str, float]:
        return {"S": float(score)}

    results = contest(contenders(quick), requests[0], requests, judge, THREADS, advance)
    return [result.row("N=1000 P=10 β=2 M=1000") for result in results]


def tables(rows: Rows) -> list[Table]:
    """Return the table of likelihoods."""
    lines = long(rows, {"S": lambda row: f"{row['marks']['S']:.4f}"}, OWN)
    return [Table("peers-rbm", titled("RBM: likelihood and time", CAPTION, rows), lines)]


def plot(rows: Rows, folder: Path) -> Path:
    """Draw likelihoods against times."""
    return save_scatter(folder / "bench-rbm.png", rows, "S", "pseudo-likelihood S per spin")
