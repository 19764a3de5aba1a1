"""A whole training by `rbms`, from its own start."""

import time

import numpy as np
import torch
from protocol import serve
from rbms_pcd import VERSION, Training


def prepare(setup, request):
    """Return the training, which is timed, and its score, which is not."""
    samples = np.load(request["samples"])

    def work():
        training = Training(samples, setup, request["seed"])
        start = time.perf_counter()
        training.update(setup["n_updates"])
        seconds = time.perf_counter() - start
        return np.array(training.score()), seconds

    return work


serve(prepare, {"version": f"rbms {VERSION}, torch {torch.__version__}"})
