"""Log pseudo-likelihoods of single samples, and their comparison between two states of a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.local_fields import log_sigmoid
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import GaussianPrior

HELD_OUT_ENTRIES = 1280
"""Entries scored at a look if hidden units are not Gaussian, so that looks take a small share of
the time. Set by ``python -m benchmarks rbm-looks``."""


def sample_scores(S: NDArray[np.float32], model: RBM) -> NDArray[np.float64]:
    """Return Σ log P(s_i | rest) over the observed entries of each sample, and their number.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.sample_scores import sample_scores
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> model = RBM(np.zeros((1, 3)), np.zeros(3), GaussianPrior())
    >>> sample_scores(np.array([[1, -1, 0]]), model).round(4)
    array([[-1.3863,  2.    ]])
    """
    observed = S != 0
    terms = log_sigmoid(2 * model.aligned_fields(S))
    total = terms.sum(axis=1, dtype=np.float64, where=observed)
    return np.column_stack([total, np.count_nonzero(observed, axis=1)])


def scores_at_a_look(
    S: NDArray[np.float32], model: RBM, n_entries: int = HELD_OUT_ENTRIES
) -> NDArray[np.float64]:
    """Return the scores of samples from some of their entries, the same ones at every look.

    An entry costs a function per hidden unit, unless these are Gaussian: then all are taken. Every
    sample has as many entries, drawn at random; those that are missing do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.sample_scores import scores_at_a_look
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> model = RBM(np.zeros((1, 500)), np.zeros(500), BinaryPrior())
    >>> scores_at_a_look(np.ones((64, 500), np.float32), model)[0].round(1)
    array([-13.9,  20. ])
    """
    if isinstance(model.prior, GaussianPrior):
        return sample_scores(S, model)
    n_sites = max(1, n_entries // len(S))
    if n_sites >= S.shape[1]:
        n_sites = S.shape[1]
        sites = np.tile(np.arange(n_sites), len(S))
    else:
        sites = np.random.default_rng(S.shape).integers(S.shape[1], size=len(S) * n_sites)
    rows = np.repeat(np.arange(len(S)), n_sites)
    terms = log_sigmoid(2 * model.aligned_fields_at(S, rows, sites)).reshape(len(S), -1)
    observed = S[rows, sites].reshape(len(S), -1) != 0
    total = terms.sum(axis=1, dtype=np.float64, where=observed)
    return np.column_stack([total, np.count_nonzero(observed, axis=1)])


def mean_score(scores: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the mean log pseudo-likelihood per entry of weighted samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.sample_scores import mean_score
    >>> mean_score(np.array([[-1.0, 2.0], [-4.0, 2.0]]), np.array([1.0, 3.0]))
    -1.625
    """
    total, n_entries = weights @ scores
    return float(total / max(n_entries, 1))


def error_of_difference(
    scores: NDArray[np.float64], others: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """Return the standard error of the difference of two mean scores of the same samples.

    They may be of different numbers of entries, as those of different priors are.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.sample_scores import error_of_difference
    >>> scores = np.array([[-1.0, 2.0], [-4.0, 2.0]])
    >>> error_of_difference(scores, scores - [1.0, 0.0], np.ones(2))
    0.0
    """
    n_entries = scores[:, 1] / np.maximum(others[:, 1], 1)
    difference = scores[:, 0] - n_entries * others[:, 0]
    mean = weights @ difference / max(weights.sum(), 1e-300)
    n = np.count_nonzero(weights)
    spread = np.square(weights * (difference - mean)).sum() * n / max(n - 1, 1)
    return float(np.sqrt(spread) / max(weights @ scores[:, 1], 1))
