"""Couplings by coniii's pseudo-likelihood: a regression a spin, without regularisation."""

import coniii
import numpy as np
from protocol import serve
from scipy.spatial.distance import squareform


def prepare(setup, request):
    """Return the fit; the multipliers are fields first, then couplings of the pairs."""
    X = np.load(request["samples"]).astype(int)

    def work():
        multipliers = coniii.Pseudo(X, iprint=False).solve()
        return squareform(multipliers[X.shape[1] :])

    return work


serve(prepare, {"version": f"coniii {coniii.__version__}"})
