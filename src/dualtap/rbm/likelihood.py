"""The partition function: by enumeration where that is possible, else by annealing."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from dualtap._chains import seeded_generators
from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap.local_fields import log_sigmoid
from dualtap.rbm.gibbs import Chains, advance
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import BinaryPrior, FloatArray

_MOST_ENUMERATED = 20
_BLOCK_BITS = 14
_FEWEST_CHAINS = 5

INCOMPLETE = "the likelihood needs samples without missing entries; score() does not"


class LogPartition(NamedTuple):
    """log Z with its standard error, and how it was found."""

    value: float
    error: float
    """Standard error; 0 when the sum is exact."""
    method: str
    """"enumeration" or "annealing"."""


def log_partition(
    model: RBM,
    *,
    n_temperatures: int = 3000,
    n_chains: int = 100,
    random_state: RandomState = None,
) -> LogPartition:
    r"""Return :math:`\log Z = \log\sum_s e^{-F(s)}`.

    The sum is exact over the states of at most 20 visible units, or of at most 20 hidden ones if
    they are ±1; otherwise :func:`annealed_log_partition`.

    Parameters
    ----------
    model : RBM
    n_temperatures, n_chains, random_state
        For annealing.

    Returns
    -------
    LogPartition

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.likelihood import log_partition
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> value, error, method = log_partition(RBM(np.zeros((3, 10)), np.zeros(10), BinaryPrior()))
    >>> round(value, 4), error, method
    (6.9315, 0.0, 'enumeration')
    """
    exact_model = RBM(
        model.weights.astype(np.float64), model.fields.astype(np.float64), model.prior
    )
    if model.n_spins <= _MOST_ENUMERATED:
        blocks = [logsumexp(-exact_model.free_energy(s)) for s in _states(model.n_spins)]
        return LogPartition(float(logsumexp(blocks)), 0.0, "enumeration")
    if isinstance(model.prior, BinaryPrior) and model.n_hidden <= _MOST_ENUMERATED:
        blocks = [
            logsumexp(_log_2cosh(exact_model.visible_fields(hidden)).sum(axis=1))
            for hidden in _states(model.n_hidden)
        ]
        uniform = model.n_hidden * math.log(2)  # the prior gives every state the weight 2^-N_h
        return LogPartition(float(logsumexp(blocks)) - uniform, 0.0, "enumeration")
    return annealed_log_partition(
        exact_model,
        n_temperatures=n_temperatures,
        n_chains=n_chains,
        random_state=random_state,
    )


def annealed_log_partition(
    model: RBM,
    *,
    n_temperatures: int = 3000,
    n_chains: int = 100,
    random_state: RandomState = None,
) -> LogPartition:
    r"""Estimate log Z by annealed importance sampling (Neal 2001).

    The weights are scaled from 0 to W; at 0 the spins are independent and Z is known. Scales are
    spaced evenly in their square, which for Gaussian hidden units is the inverse temperature. The
    error is that of the mean of the chains' weights; a warning says when too few chains carry
    that mean for the error to be believed.

    Parameters
    ----------
    model : RBM
    n_temperatures : int
        Scales between 0 and 1.
    n_chains : int
    random_state : int, RandomState, Generator or None

    Returns
    -------
    LogPartition

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.likelihood import annealed_log_partition, log_partition
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> W = np.random.default_rng(0).normal(scale=0.2, size=(3, 12))
    >>> model = RBM(W, np.zeros(12), GaussianPrior())
    >>> estimate = annealed_log_partition(model, random_state=0)
    >>> abs(estimate.value - log_partition(model).value) < 5 * estimate.error < 0.1
    True
    """
    if n_temperatures < 1 or n_chains < 2:
        raise ValueError(
            "annealing needs n_temperatures >= 1 and n_chains >= 2, "
            f"got {n_temperatures} and {n_chains}"
        )
    rng = as_generator(random_state)
    b = model.fields
    spins = np.where(rng.random((n_chains, model.n_spins)) < (1 + np.tanh(b)) / 2, 1, -1)
    chains = Chains(spins.astype(np.float32), seeded_generators(n_chains, rng))
    scales = np.sqrt(np.linspace(0, 1, n_temperatures + 1))
    log_weights = np.zeros(n_chains)
    with one_blas_thread():
        for cold, colder in pairwise(scales):
            if cold > 0:
                chains = advance(RBM(cold * model.weights, b, model.prior), chains, 1)
            x = model.inputs(chains.spins)
            log_weights += np.sum(
                model.prior.log_normalizer(colder * x) - model.prior.log_normalizer(cold * x),
                axis=1,
            )
    total = float(logsumexp(log_weights)) - math.log(n_chains)
    spread = np.exp(log_weights - total)
    error = float(spread.std(ddof=1) / math.sqrt(n_chains))
    carried_by = float(n_chains**2 / np.square(spread).sum())
    if carried_by < min(_FEWEST_CHAINS, n_chains / 2):
        warnings.warn(
            f"log Z rests on {carried_by:.1f} of {n_chains} chains, so its error ({error:.2g}) is "
            f"understated: raise n_temperatures above {n_temperatures}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LogPartition(float(_log_2cosh(b).sum()) + total, error, "annealing")


def log_likelihood(model: RBM, X: NDArray[Any], partition: LogPartition) -> float:
    """Return the mean log-likelihood of complete samples, in nats per sample.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.likelihood import log_likelihood, log_partition
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> model = RBM(np.zeros((1, 4)), np.zeros(4), GaussianPrior())
    >>> round(log_likelihood(model, np.ones((1, 4)), log_partition(model)), 4)
    -2.7726
    """
    if not np.all(X):
        raise ValueError(INCOMPLETE)
    return -float(np.mean(model.free_energy(X), dtype=np.float64)) - partition.value


def _states(n: int) -> Any:
    """Yield all ±1 vectors of length n, in blocks of rows."""
    low = min(n, _BLOCK_BITS)
    bits = np.arange(2**low)[:, None] >> np.arange(n) & 1
    block = 2.0 * bits - 1
    for high in range(2 ** (n - low)):
        block[:, low:] = 2 * (high >> np.arange(n - low) & 1) - 1
        yield block


def _log_2cosh(x: FloatArray) -> FloatArray:
    size = np.abs(x)
    result: FloatArray = size - log_sigmoid(2 * size)
    return result
