"""A whole training by ours, and by float32 NumPy; both look for Gaussian hidden units."""

import time

import numpy as np
from protocol import serve

import dualtap
from benchmarks.references import NumpyPCD
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import pseudo_likelihood
from dualtap.rbm.priors import PRIORS


def ours(X, setup, seed):
    """Fit with the package: its own rate, a look every ten updates."""
    rbm = dualtap.HopfieldRBM.paper(
        setup["n_hidden"], max_updates=setup["n_updates"], early_stopping=False, random_state=seed
    )
    start = time.perf_counter()
    rbm.fit(X)
    return rbm.components_, time.perf_counter() - start


def with_numpy(X, setup, seed):
    """Fit with the reference."""
    rbm = NumpyPCD(X, setup["n_hidden"], setup["n_chains"], setup["learning_rate"], seed)
    start = time.perf_counter()
    for _ in range(setup["n_updates"]):
        rbm.update(setup["batch_size"], setup["n_steps"])
    return rbm.W, time.perf_counter() - start


METHODS = {"dualtap": ours, "NumPy": with_numpy}


def prepare(setup, request):
    """Return the training, which is timed, and its score, which is not."""
    X = np.load(request["samples"])

    def work():
        W, seconds = METHODS[setup["method"]](X, setup, request["seed"])
        zero = np.zeros(X.shape[1], dtype=np.float32)
        model = RBM(W.astype(np.float32), zero, PRIORS["gaussian"])
        return np.array(pseudo_likelihood(model, X[:100])), seconds

    return work


serve(prepare, {"version": f"dualtap {dualtap.__version__}"})
