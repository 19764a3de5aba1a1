"""An RBM by `rbms` with given settings, as held-out samples prefer it, and its parameters."""

import time

import numpy as np
import torch
from protocol import serve
from rbms_pcd import VERSION, Training
from scores import pseudo_likelihood

FIRST_LOOK, PER_DOUBLING = 20, 4
MOST_SCORED = 256
LEAST = 2000  # updates, before which training does not end


def looks(n_updates):
    """Return after how many updates held-out samples are scored."""
    n = int(np.log2(n_updates / FIRST_LOOK) * PER_DOUBLING) + 1
    steps = FIRST_LOOK * 2.0 ** (np.arange(n) / PER_DOUBLING)
    return sorted({int(step) for step in steps} | {n_updates})


def filled(samples):
    """Return 0/1 units, 1/2 where an entry is missing."""
    return (samples.astype(np.float32) + 1) / 2


def prepare(setup, request):
    """Return the training, which is timed without its looks."""
    samples, held_out = np.load(request["samples"]), np.load(request["queries"])[:MOST_SCORED]
    settings = setup | request | {"batch_size": min(request["batch_size"], len(samples))}

    def work():
        training = Training(samples, settings, request["seed"])
        training.data = torch.from_numpy(filled(samples))
        best, parameters, seconds, done = -np.inf, None, 0.0, 0
        for n_updates in looks(request["n_updates"]):
            start = time.process_time()
            training.update(n_updates - done)
            seconds, done = seconds + time.process_time() - start, n_updates
            W, visible, hidden = training.parameters()
            score = pseudo_likelihood(W, visible, hidden, filled(held_out))
            if score > best:
                best, at = score, n_updates
                parameters = np.block([[np.array([[at]]), hidden[None]], [visible[:, None], W]])
            if done >= max(2 * at, LEAST):
                break
        return parameters.astype(np.float64), seconds

    return work


serve(prepare, {"version": f"rbms {VERSION}, torch {torch.__version__}"})
