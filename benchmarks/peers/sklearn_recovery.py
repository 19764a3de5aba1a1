"""Patterns found by scikit-learn's estimators, and by a mixture model written with NumPy."""

import numpy as np
import sklearn
from methods import METHODS
from protocol import serve


def prepare(setup, request):
    """Return the fit of the method named in the setup."""
    spins = np.load(request["samples"])
    find = METHODS[setup["method"]]
    return lambda: find(spins, request["n_patterns"], request["seed"])


serve(prepare, {"version": f"scikit-learn {sklearn.__version__}"})
