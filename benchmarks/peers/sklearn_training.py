"""A whole training by scikit-learn's BernoulliRBM: one step of its chains an update."""

import time

import numpy as np
import sklearn
from protocol import serve
from scores import pseudo_likelihood
from sklearn.neural_network import BernoulliRBM


def prepare(setup, request):
    """Return the training, which is timed, and its score, which is not."""
    v = (np.load(request["samples"]) > 0).astype(np.float32)
    size = setup["batch_size"]

    def work():
        rng = np.random.default_rng(request["seed"])
        batches = [v[rng.permutation(len(v))[:size]] for _ in range(setup["n_updates"])]
        machine = BernoulliRBM(
            setup["n_hidden"],
            learning_rate=setup["learning_rate"],
            batch_size=size,
            random_state=request["seed"],
        )
        start = time.perf_counter()
        for batch in batches:
            machine.partial_fit(batch)
        seconds = time.perf_counter() - start
        biases = (machine.intercept_visible_, machine.intercept_hidden_)
        return np.array(pseudo_likelihood(machine.components_.T, *biases, v[:100])), seconds

    return work


serve(prepare, {"version": f"scikit-learn {sklearn.__version__}"})
