"""The partition function: by enumeration where that is possible, by annealing or by tempering."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from sklearn.exceptions import ConvergenceWarning

from dualtap._chains import seeded_generators
from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap.local_fields import log_sigmoid
from dualtap.rbm.gibbs import Chains, advance
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import BinaryPrior, FloatArray, random_signs
from dualtap.rbm.tempering import Tempering, at_scale, run_tempered, tuned_chains

PartitionMethod = Literal["auto", "enumeration", "annealing", "tempering"]

_MOST_ENUMERATED = 20
_BLOCK_BITS = 14
_POPULATIONS = 20
"""Of chains in annealing, independent of each other: their spread is the error."""
_FEWEST = 0.5
"""Share of the chains of a population worth their weight, below which heavy ones are continued."""
_LARGEST_SPREAD = 1.0
"""Standard deviation of log Z between populations that a mean can be taken of."""

INCOMPLETE = "the likelihood needs samples without missing entries; score() does not"


class LogPartition(NamedTuple):
    """log Z with its standard error, and how it was found."""

    value: float
    error: float
    """Standard error; 0 when the sum is exact."""
    method: str
    """"enumeration", "annealing" or "tempering"."""


def log_partition(
    model: RBM,
    *,
    method: PartitionMethod = "auto",
    base: FloatArray | None = None,
    random_state: RandomState = None,
    **options: int,
) -> LogPartition:
    r"""Return :math:`\log Z = \log\sum_s e^{-F(s)}`.

    Parameters
    ----------
    model : RBM
    method : {"auto", "enumeration", "annealing", "tempering"}
        "auto" is the exact sum over the states of at most 20 visible units, or of at most 20 hidden
        ones if they are ±1; otherwise annealing. See below for both estimates.
    base : array of shape (n_spins,), optional
        Fields of the independent spins that annealing and tempering start from; those of the model
        by default.
    random_state : int, RandomState, Generator or None
    **options : int
        Of annealing: ``n_temperatures``, the scales between 0 and 1 (3000), and ``n_chains`` (200),
        in 20 populations of equal size.
        Of tempering: ``n_sweeps``, the sweeps at the scales that were found to suit (1000), of
        which the second half counts, and ``n_ladders`` (20).

    Returns
    -------
    LogPartition

    Notes
    -----
    Both estimates start from independent spins with the fields ``base``, whose Z is known.

    *Annealed importance sampling* (Neal, Stat. Comput. 11, 125, 2001) scales weights from 0 to W
    while the fields go from ``base`` to b. Scales are spaced evenly in their square, which for
    Gaussian hidden units is the inverse temperature. Where less than half of the chains of a
    population keep their weight, heavy ones are continued in place of light ones (Hukushima and
    Iba, AIP Conf. Proc. 690, 200, 2003). The estimates of populations are independent, and log Z of
    each is close to normal with a variance v: Z is the mean of :math:`e^{\log Z}`, so that
    log Z is their mean plus v/2, and the error is that of both. A warning says when they differ by
    more than 1.

    *Parallel tempering* (:mod:`dualtap.rbm.tempering`) finds ratios of Z between neighbouring rungs
    from the states of both (Bennett, J. Comput. Phys. 22, 245, 1976), in the second half of the
    sweeps. Ladders are independent: the error is that of the mean over them, and includes how
    slowly their states change. Ladders that have not forgotten their start are wrong together,
    which their spread does not tell; so the difference between the halves of the sweeps is part of
    the error as far as it is more than chance, and a warning says when too few states came from the
    independent spins.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.likelihood import log_partition
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> value, error, method = log_partition(RBM(np.zeros((3, 10)), np.zeros(10), BinaryPrior()))
    >>> round(value, 4), error, method
    (6.9315, 0.0, 'enumeration')

    >>> from dualtap.rbm.priors import GaussianPrior
    >>> W = np.random.default_rng(0).normal(scale=0.2, size=(3, 12))
    >>> model = RBM(W, np.zeros(12), GaussianPrior())
    >>> exact = log_partition(model).value
    >>> for method in ("annealing", "tempering"):
    ...     estimate = log_partition(model, method=method, random_state=0)
    ...     print(abs(estimate.value - exact) < 5 * estimate.error < 0.1)
    True
    True
    """
    if method not in ("auto", "enumeration", "annealing", "tempering"):
        raise ValueError(
            f'method must be "auto", "enumeration", "annealing" or "tempering", got {method!r}'
        )
    exact_model = RBM(
        model.weights.astype(np.float64), model.fields.astype(np.float64), model.prior
    )
    exact = None if method in ("annealing", "tempering") else _enumerated(exact_model)
    if exact is not None:
        return LogPartition(exact, 0.0, "enumeration")
    if method == "enumeration":
        raise ValueError(
            f"enumeration needs at most {_MOST_ENUMERATED} spins, or as many ±1 hidden units: take "
            'method="annealing" or method="tempering"'
        )
    by_tempering = method == "tempering"
    estimate = _by_tempering if by_tempering else _by_annealing
    start = exact_model.fields if base is None else base.astype(np.float64)
    rise, error = estimate(exact_model, start, as_generator(random_state), **options)
    log_Z = float(_log_2cosh(start).sum()) + rise
    return LogPartition(log_Z, error, "tempering" if by_tempering else "annealing")


def _enumerated(model: RBM) -> float | None:
    """Return log Z as an exact sum, None if that has too many terms."""
    if model.n_spins <= _MOST_ENUMERATED:
        blocks = [logsumexp(-model.free_energy(s)) for s in _states(model.n_spins)]
        return float(logsumexp(blocks))
    if isinstance(model.prior, BinaryPrior) and model.n_hidden <= _MOST_ENUMERATED:
        blocks = [
            logsumexp(_log_2cosh(model.visible_fields(hidden)).sum(axis=1))
            for hidden in _states(model.n_hidden)
        ]
        # The prior gives every state the weight 2^-N_h.
        return float(logsumexp(blocks)) - model.n_hidden * math.log(2)
    return None


def _by_annealing(
    model: RBM,
    base: FloatArray,
    rng: np.random.Generator,
    n_temperatures: int = 3000,
    n_chains: int = 200,
) -> tuple[float, float]:
    """Return log Z less that of the independent spins, and its error."""
    if n_temperatures < 1 or n_chains < 2:
        raise ValueError(
            "annealing needs n_temperatures >= 1 and n_chains >= 2, "
            f"got {n_temperatures} and {n_chains}"
        )
    n_populations = min(_POPULATIONS, n_chains)
    log_weights = np.zeros((n_populations, n_chains // n_populations))
    up = rng.random((log_weights.size, model.n_spins)) < (1 + np.tanh(base)) / 2
    chains = Chains(
        np.where(up, 1, -1).astype(np.float32), seeded_generators(log_weights.size, rng)
    )
    scales = np.sqrt(np.linspace(0, 1, n_temperatures + 1))
    with one_blas_thread():
        for cold, colder in pairwise(scales):
            if cold > 0:
                chains, log_weights = _resampled(chains, log_weights, rng)
                chains = advance(at_scale(model, base, cold), chains, 1)
            x = model.inputs(chains.spins)
            rise = (colder - cold) * (chains.spins @ (model.fields - base)) + np.sum(
                model.prior.log_normalizer(colder * x) - model.prior.log_normalizer(cold * x),
                axis=1,
            )
            log_weights = log_weights + rise.reshape(log_weights.shape)
    log_z = logsumexp(log_weights, axis=1) - math.log(log_weights.shape[1])
    variance = float(log_z.var(ddof=1))
    error = math.sqrt(variance / n_populations + variance**2 / (2 * (n_populations - 1)))
    if variance > _LARGEST_SPREAD**2:
        warnings.warn(
            f"the log Z of {n_populations} independent populations of chains differ by "
            f"{math.sqrt(variance):.2g} (standard deviation), too much for their mean and its "
            f"error ({error:.2g}): raise n_temperatures above {n_temperatures}, or n_chains "
            f"above {n_chains}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return float(log_z.mean()) + variance / 2, error


def _resampled(
    chains: Chains, log_weights: NDArray[np.float64], rng: np.random.Generator
) -> tuple[Chains, NDArray[np.float64]]:
    """Continue heavy chains in place of light ones in populations where few carry the weight.

    The weight of a population, (n_populations, n_each), stays what it is.
    """
    total, n_each = logsumexp(log_weights, axis=1, keepdims=True), log_weights.shape[1]
    shares = np.exp(log_weights - total)
    uneven = 1 / np.square(shares).sum(axis=1) < _FEWEST * n_each
    if not uneven.any():
        return chains, log_weights
    rows = np.arange(log_weights.size).reshape(log_weights.shape)
    for k in np.flatnonzero(uneven):
        marks = (np.arange(n_each) + rng.random()) / n_each
        heavy = np.searchsorted(np.cumsum(shares[k]), marks)
        rows[k] = rows[k, np.minimum(heavy, n_each - 1)]
    even = np.where(uneven[:, None], total - math.log(n_each), log_weights)
    return chains._replace(spins=chains.spins[rows.ravel()]), even


def _by_tempering(
    model: RBM,
    base: FloatArray,
    rng: np.random.Generator,
    n_sweeps: int = 1000,
    n_ladders: int = 20,
) -> tuple[float, float]:
    """Return the same from ladders of replicas."""
    if n_sweeps < 1 or n_ladders < 2:
        raise ValueError(
            f"tempering needs n_sweeps >= 1 and n_ladders >= 2, got {n_sweeps} and {n_ladders}"
        )
    spins = random_signs(np.tile(base, (n_ladders, 1)), rng)
    with one_blas_thread():
        chains = tuned_chains(model, spins, base, rng)
        found = run_tempered(model, chains, n_sweeps, keep_every=n_sweeps)
    first, first_error = _climbed(found, slice(None, n_sweeps // 2))
    total, error = _climbed(found, slice(n_sweeps // 2, None))
    # All ladders share what is left of their start; it shows in the drift between the halves.
    drift = (total - first) ** 2 - first_error**2 - error**2 if n_sweeps > 1 else 0.0
    error = math.sqrt(error**2 + max(drift, 0.0))
    if found.arrivals.sum() < n_ladders:
        warnings.warn(
            f"{found.arrivals.sum()} states passed from independent spins to the model in "
            f"{n_ladders} ladders of {len(found.ladder.scales)} rungs, so the error of log Z "
            f"({error:.2g}) may be understated: raise n_sweeps above {n_sweeps}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return total, error


def _climbed(found: Tempering, sweeps: slice) -> tuple[float, float]:
    """Return log Z of the model less that of the lowest rung, from some of the sweeps."""
    total, shifts, n_ladders = 0.0, np.zeros(found.hotter.shape[2]), found.hotter.shape[2]
    for k in range(found.hotter.shape[1]):
        rise, shift = _bennett(found.colder[sweeps, k], found.hotter[sweeps, k])
        total += rise
        shifts += shift
    return total, math.sqrt(n_ladders / (n_ladders - 1) * float(np.square(shifts).sum()))


def _bennett(
    up: NDArray[np.float64], down: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    r"""Return log Z'/Z of two rungs, and by how much each ladder moves it.

    ``up`` is log p'/p at states of p and ``down`` log p/p' at those of p', without normalisation,
    (n_sweeps, n_ladders). The ratio r solves :math:`\sum \sigma(up - r) = \sum \sigma(down + r)`.
    """
    ends = min(float(up.min()), -float(down.max())), max(float(up.max()), -float(down.min()))
    ratio = brentq(
        lambda r: float(expit(up - r).sum() - expit(down + r).sum()), ends[0] - 1, ends[1] + 1
    )
    above, below = expit(up - ratio), expit(down + ratio)
    slope = (above * (1 - above)).sum() + (below * (1 - below)).sum()
    return ratio, (above - below).sum(axis=0) / max(float(slope), 1e-300)


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
