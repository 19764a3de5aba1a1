"""Couplings by pseudolm: a regression a spin, plain or with Firth's penalty."""

from importlib.metadata import version

import numpy as np
from joblib import Parallel
from protocol import serve
from pyplm.inference.plmfirthcor import firth_plm
from pyplm.inference.pseudolikelihoodmax import plm

METHODS = {"plain": plm, "Firth": firth_plm}


def prepare(setup, request):
    """Return the fit; fields are on the diagonal of what it finds."""
    X = np.load(request["samples"])
    find = METHODS[setup["method"]]

    def work():
        with Parallel(n_jobs=setup["threads"]) as parallel:
            J = find(X, parallel)
        np.fill_diagonal(J, 0)
        return J

    return work


serve(prepare, {"version": f"pseudolm {version('pseudolm')}"})
