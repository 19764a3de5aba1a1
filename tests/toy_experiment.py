"""An experiment that costs nothing, for the tests of the runner; workers import it."""

import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dualtap.experiments.experiment import Claim, Experiment


def trial(parameters, seed):
    """Draw numbers; sleep if told to."""
    rng = np.random.default_rng(seed)
    time.sleep(parameters.get("sleep", 0))
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


def plot(results):
    """Draw the means."""
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
