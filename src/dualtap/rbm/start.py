"""Where a training run starts: rates, weights and chains."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from dualtap._chains import seeded_generators
from dualtap._eigen import shorter_gram
from dualtap.fitted.learned import LearnedPatterns
from dualtap.rbm.gibbs import random_chains
from dualtap.rbm.monitors import LearningCurve
from dualtap.rbm.pcd import Gradient, Training
from dualtap.rbm.priors import Prior
from dualtap.rbm.run import Run
from dualtap.rbm.samples import (
    Samples,
    TrainingSet,
    fingerprint,
    largest_second_moment,
    largest_variance,
    mean_fields,
    training_set,
)
from dualtap.rbm.tempering import with_ladder

Init = ArrayLike | LearnedPatterns | Literal["data", "random"]

FIRST_SINGULAR_VALUE = 0.1  # of the weights; below one, where they begin to matter
_PAPER_RATE = 0.05
_FIELDS_RATE = 0.05
_RATE = 0.1  # times the inverse of the largest variance of the data
_LARGEST_RATE = {"bounded": 0.02, "unbounded": 0.01}
_UNBOUNDED = 0.01  # slope of the response of a hidden unit
_SHARE_OF_MODES = 0.7
"""Of what mean-field theory gives to a mode: it overshoots where a mode is a cluster."""


def start_run(
    X: Samples | TrainingSet,
    n_hidden: int,
    n_chains: int,
    batch_size: int,
    rates: tuple[float, float],
    seed: int,
    init: NDArray[np.floating[Any]] | None = None,
    tempering: bool = False,
) -> Run:
    """Return a run before its first update: small random weights, random chains.

    With ``tempering`` every chain has replicas, down to independent spins with the first fields.

    Visible fields, when they are learned, start where they explain the means of the data. The
    first hidden units have the weights ``init``, if it is given.
    """
    data = X if isinstance(X, TrainingSet) else training_set(X, None, seed)
    n_spins = data.spins.n_spins
    rng = np.random.default_rng(seed)
    weights = random_weights(n_hidden, n_spins, rng)
    if init is not None:
        weights[: len(init)] = init
    first_fields = np.zeros(n_spins, dtype=np.float32)
    if rates[1] > 0:
        first_fields[:] = mean_fields(data.spins, data.row_weights())
    chains, imputing = random_chains(n_chains, n_spins, rng), seeded_generators(batch_size, rng)
    state = Training(
        weights=weights,
        fields=first_fields,
        velocity=Gradient(np.zeros_like(weights), np.zeros_like(first_fields)),
        chains=with_ladder(chains, first_fields, rng) if tempering else chains,
        imputing=imputing,
    )
    curve = LearningCurve.empty(n_hidden)
    return Run(state, curve, 0, seed, *rates, data=fingerprint(data.spins))


def random_weights(n_hidden: int, n_spins: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return weights whose singular values are far below one.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.start import random_weights
    >>> random_weights(3, 1000, np.random.default_rng(0)).std().round(4)
    np.float32(0.0031)
    """
    scale = FIRST_SINGULAR_VALUE / np.sqrt(n_spins)
    weights: NDArray[np.float32] = scale * rng.standard_normal((n_hidden, n_spins))
    return weights.astype(np.float32)


def first_rates(
    rate: float | str, data: TrainingSet, prior: Prior, fields: bool, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the factors of the gradients of weights and fields.

    "auto" is 0.1 over the largest variance of the data, because a mode of variance Λ moves inputs
    of hidden units Λ times as fast as weights; at most 0.02, or 0.01 for units whose response is
    not bounded. "paper" is 0.05 over the largest second moment.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.samples import training_set
    >>> from dualtap.rbm.start import first_rates
    >>> data = training_set(np.ones((10, 30), dtype=np.int8), None, seed=0)
    >>> first_rates("auto", data, GaussianPrior(), True, np.random.default_rng(0))
    (0.01, 0.05)
    """
    if rate == "paper":
        moment = largest_second_moment(data.spins, rng, data.rows)
        return _PAPER_RATE / moment, _FIELDS_RATE * fields
    if not isinstance(rate, str):
        return float(rate), float(rate) * fields
    kind = "unbounded" if response(prior) > _UNBOUNDED else "bounded"
    fastest = min(_LARGEST_RATE[kind], _RATE / largest_variance(data.drawn(rng)))
    return fastest / gain(prior), _FIELDS_RATE * fields


def response(prior: Prior) -> float:
    """Return the slope of ⟨λ⟩ at large inputs: 1 for Gaussian units, 0 for bounded ones.

    Examples
    --------
    >>> from dualtap.rbm.priors import BinaryPrior, SpikeSlabPrior
    >>> from dualtap.rbm.start import response
    >>> response(BinaryPrior()), round(response(SpikeSlabPrior(0.5)), 6)
    (0.0, 2.0)
    """
    near, far = (np.abs(prior.mean(np.array([-x, x]))).max() for x in (20.0, 30.0))
    return float(far - near) / 10


def gain(prior: Prior) -> float:
    """Return the largest slope of ⟨λ⟩, of those at zero and far away.

    Examples
    --------
    >>> from dualtap.rbm.priors import BinaryPrior, ZeroOnePrior
    >>> from dualtap.rbm.start import gain
    >>> round(gain(BinaryPrior()), 2), round(gain(ZeroOnePrior()), 2)
    (1.0, 0.25)
    """
    low, high = prior.mean(np.array([-0.05, 0.05]))
    return max(response(prior), float(high - low) * 10)


def first_weights(
    init: Init | None, data: TrainingSet, n_hidden: int, fields: bool = False
) -> NDArray[np.float32] | None:
    """Return the weights of the first hidden units, None for random ones.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.samples import training_set
    >>> from dualtap.rbm.start import first_weights
    >>> data = training_set(np.ones((10, 2), dtype=np.int8), None, seed=0)
    >>> first_weights([[0.5, -0.5]], data, 3)
    array([[ 0.5, -0.5]], dtype=float32)
    """
    if init is None or (isinstance(init, str) and init == "random"):
        return None
    if isinstance(init, str):
        if init != "data":
            raise ValueError(f'init is "data", "random", weights or a fitted model, got {init!r}')
        some = data.drawn(np.random.default_rng([data.seed, 3]))
        return modes_of_data(some, n_hidden, fields=fields)
    if isinstance(init, LearnedPatterns):
        strengths = np.maximum(init.strengths_, 0)
        init = np.sqrt(strengths / init.patterns_.shape[1])[:, None] * init.patterns_
    return checked_init(init, n_hidden, data.spins.n_spins)


def modes_of_data(
    S: NDArray[np.int8], n_modes: int, *, fields: bool = False
) -> NDArray[np.float32]:
    r"""Return weights along the modes of the data above the noise edge, by mean-field theory.

    For spins scaled to variance one, a mode of the correlations with eigenvalue Λ is made by the
    weights :math:`\sqrt{1 - 1/\Lambda}` along its vector (Cocco, Monasson and Sessak, Phys. Rev. E
    83, 051123, 2011). Modes below the noise edge :math:`(1 + \sqrt{N/M})^2` are left out.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins), ±1 with 0 for missing
    n_modes : int
        The largest number of modes.
    fields : bool
        Fields explain the means of the spins; else the means are a mode like others.

    Returns
    -------
    array of shape (n_found, n_spins), float32

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.hopfield import HopfieldModel
    >>> from dualtap.rbm.start import modes_of_data
    >>> teacher = HopfieldModel.random(200, 2, beta=2.0, random_state=0)
    >>> modes_of_data(teacher.sample(300, random_state=1), 5).shape
    (2, 200)
    """
    observed = np.maximum(np.count_nonzero(S, axis=0), 1)
    means = S.sum(axis=0) / (observed + 2) * fields
    deviation = np.sqrt(1 - np.square(means))
    Z = (S - means * (S != 0)) / deviation
    n_samples, n_spins = Z.shape
    values, U = np.linalg.eigh(shorter_gram(Z) / n_samples)
    vectors = U.T
    if n_samples <= n_spins:
        vectors = vectors @ Z / np.sqrt(np.maximum(values * n_samples, 1e-12))[:, None]
    edge = (1 + np.sqrt(n_spins / n_samples)) ** 2
    above = np.flatnonzero(values > edge)[::-1][:n_modes]
    size = _SHARE_OF_MODES * np.sqrt(1 - 1 / values[above])
    weights: NDArray[np.float32] = size[:, None] * vectors[above] / deviation
    return weights.astype(np.float32)


def checked_init(init: ArrayLike, n_hidden: int, n_spins: int) -> NDArray[np.float32]:
    """Return initial weights that fit the hidden units and the spins.

    Examples
    --------
    >>> from dualtap.rbm.start import checked_init
    >>> checked_init([[0.5, -0.5]], n_hidden=3, n_spins=2)
    array([[ 0.5, -0.5]], dtype=float32)
    """
    weights: NDArray[np.float32] = check_array(
        init, dtype=np.float32, ensure_2d=False, input_name="init"
    )
    if weights.ndim != 2 or len(weights) > n_hidden or weights.shape[1] != n_spins:
        raise ValueError(
            f"init has shape {weights.shape}; it needs at most n_hidden={n_hidden} rows and "
            f"{n_spins} columns, one for each spin"
        )
    return weights
