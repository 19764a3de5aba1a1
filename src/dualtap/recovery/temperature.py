"""The inverse temperature that the data themselves suggest."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from dualtap.metrics import aligned_fields

BETA_RANGE = 0.01, 50.0
"""Where β is looked for; data without a single misaligned spin push it to the upper end."""

_BINS = 8192


def fit_beta(X: ArrayLike, patterns: ArrayLike) -> float:
    r"""Return the β that maximises the pseudo-likelihood of X given the patterns.

    The pseudo-likelihood depends on the data only through the distribution of the aligned fields
    :math:`s_i h_i`; their histogram is taken once and the maximum found on it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    patterns : array-like of shape (n_patterns, n_spins), ±1

    Returns
    -------
    float

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.recovery.temperature import fit_beta
    >>> teacher = dt.HopfieldModel.random(500, 3, beta=1.5, random_state=0)
    >>> round(fit_beta(teacher.sample(100, random_state=1), teacher.patterns), 1)
    1.5
    """
    zeta = np.asarray(patterns)
    bound = float(len(zeta)) + 1e-6  # |h_i| ≤ P
    edges = np.linspace(-bound, bound, _BINS + 1)
    counts = np.zeros(_BINS)
    for aligned in aligned_fields(X, zeta):
        counts += np.histogram(aligned, bins=edges)[0]
    centres = (edges[1:] + edges[:-1]) / 2

    def cost(log_beta: float) -> float:
        return float(counts @ np.logaddexp(0, -2 * np.exp(log_beta) * centres) / counts.sum())

    low, high = np.log(BETA_RANGE)
    best = minimize_scalar(cost, bounds=(low, high), method="bounded")
    return float(np.exp(best.x))
