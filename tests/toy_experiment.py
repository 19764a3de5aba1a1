"""An experiment that costs nothing, for the tests of the runner; workers import it."""

import os
import time
from pathlib import Path

import numpy as np

from dualtap.experiments.experiment import Claim, Experiment


def trial(parameters, seed):
    """Draw numbers; take as many seconds as TOY_SECONDS says, which changes no result."""
    rng = np.random.default_rng(seed)
    time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
    if "log" in parameters:
        with Path(parameters["log"]).open("a") as file:
            file.write(".")
    return {
        "mean": rng.normal(parameters["center"], size=100).mean(),
        "count": np.int64(rng.integers(10)),
        "path": rng.normal(size=5),
    }


def points(full, *, center=(0.0, 1.5, -2.0)):
    """Three points, more trials when full."""
    return [({"center": c}, 5 if full else 3) for c in center]


def many_points(full):
    """Sixty trials, to be interrupted."""
    return [({"center": float(c)}, 10) for c in range(6)]


def plot(results):
    """Draw the means."""
    from matplotlib.figure import Figure  # not in every worker

    figure = Figure()
    figure.subplots().plot(results.column("mean"))
    return figure


def claims(results):
    """Judge."""
    measured = f"{results.column('mean', center=1.5).mean():.2f}"
    return [Claim("The mean | is the centre.", "Sec. 1", "its mean", measured, "holds", "a slip")]


def make(points=points, name="toy"):
    """Return the experiment."""
    return Experiment(name, "A toy", trial, points, plot, lambda r: f"{len(r)} trials.", claims)
