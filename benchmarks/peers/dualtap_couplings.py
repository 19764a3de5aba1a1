"""Couplings found by ours: from patterns, by pseudo-likelihood, by mean field."""

import numpy as np
from protocol import serve

import dualtap
from dualtap.baselines import NaiveMeanField, PseudoLikelihood


def from_patterns(X, seed):
    """Fit patterns and strengths, with default parameters."""
    model = dualtap.HopfieldPatterns(random_state=seed).fit(X)
    Z = model.magnetizations_.astype(np.float64)
    if not len(Z):
        return np.zeros((X.shape[1], X.shape[1]))
    J = (Z.T * model.strengths_) @ Z / X.shape[1]
    np.fill_diagonal(J, 0)
    return J


METHODS = {
    "patterns": from_patterns,
    "pseudo-likelihood": lambda X, seed: PseudoLikelihood(random_state=seed).fit(X).couplings_,
    "no penalty": lambda X, seed: PseudoLikelihood(1e-6).fit(X).couplings_,
    "mean field": lambda X, seed: NaiveMeanField().fit(X).couplings_,
}


def prepare(setup, request):
    """Return the fit of the method named in the setup."""
    X = np.load(request["samples"])
    find = METHODS[setup["method"]]
    return lambda: find(X, request["seed"])


serve(prepare, {"version": f"dualtap {dualtap.__version__}"})
