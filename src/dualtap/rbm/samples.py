"""The samples of a training run: their order, the share held out, and what is measured at once."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._eigen import shorter_gram
from dualtap._threads import one_blas_thread
from dualtap.couplings import HebbianCouplings
from dualtap.published.starts import leading_eigenpair
from dualtap.spins import DenseSpins, Spins

Samples = Spins | NDArray[np.int8]
"""±1 with 0 for missing entries; rows are taken out as they are needed."""

_WATCHED_SAMPLES = 64
_MOST_SAMPLES = 1000
_MOST_HELD_OUT = 256
_FEWEST_SAMPLES = 10  # below, none is held out


@dataclass(frozen=True)
class TrainingSet:
    """Samples that are learned from, and those that are held out.

    Attributes
    ----------
    spins : Spins
        All samples.
    rows : array of shape (n_training,)
        Those that are learned from; a row of weight 3 is three times among them.
    weights : array of shape (n_training,), optional
        How often each counts if weights are no whole numbers; once if there are none.
    held_out : array of shape (n_held_out, n_spins), float32
    held_out_weights : array of shape (n_held_out,)
    seed : int
        Of the split and of the order of samples.
    """

    spins: Spins
    rows: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    held_out: NDArray[np.float32]
    held_out_weights: NDArray[np.float64]
    seed: int

    def row_weights(self) -> NDArray[np.float64]:
        """Return the weight of every sample in training, zero if it is held out."""
        return np.bincount(self.rows, self.weights, self.spins.n_samples).astype(np.float64)

    def take(self, chosen: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return training samples by their number among these."""
        return self.spins.take(self.rows[chosen]).values

    def watched(self, seed: int) -> NDArray[np.float32]:
        """Return the few training samples that every look sees."""
        some = np.random.default_rng(seed).permutation(len(self.rows))[:_WATCHED_SAMPLES]
        return self.take(some).astype(np.float32)

    def drawn(self, rng: np.random.Generator) -> NDArray[np.int8]:
        """Return at most a thousand training samples, as often as their weights say."""
        order = next(batches(len(self.rows), 10**9, int(rng.integers(2**62)), 0, self.weights))
        return self.take(order[:_MOST_SAMPLES])


def training_set(
    X: Samples,
    validation: float | NDArray[np.int8] | None,
    seed: int,
    weights: NDArray[np.float64] | None = None,
) -> TrainingSet:
    """Return samples with a share held out, or with given ones beside them.

    Of fewer than ten samples none is held out, of many at most 256 are looked at. A row whose
    weight is a whole number is as many samples, each of which is learned from or held out.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.samples import training_set
    >>> data = training_set(np.ones((50, 3), dtype=np.int8), 0.2, seed=0)
    >>> len(data.rows), data.held_out.shape
    (40, (10, 3))
    """
    spins = as_spin_rows(X)
    samples = np.arange(spins.n_samples)
    if weights is not None and (weights == np.round(weights)).all():
        samples, weights = np.repeat(samples, weights.astype(np.int64)), None
    rows = np.arange(len(samples))
    held_out = np.empty((0, spins.n_spins), dtype=np.float32)
    beside = np.empty(0)
    if isinstance(validation, np.ndarray):
        held_out, beside = validation.astype(np.float32), np.ones(len(validation))
    elif validation is not None and len(rows) >= _FEWEST_SAMPLES:
        order = np.random.default_rng([seed, 2]).permutation(len(rows))
        first, rows = np.split(order, [max(1, round(validation * len(rows)))])
        rows = np.sort(rows)
        first = first[:_MOST_HELD_OUT]
        held_out = spins.take(samples[first]).values.astype(np.float32)
        beside = np.ones(len(first)) if weights is None else weights[first]
    own = None if weights is None else weights[rows]
    return TrainingSet(spins, samples[rows], own, held_out, beside, seed)


def batches(
    n_samples: int,
    batch_size: int,
    seed: int,
    first: int,
    weights: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.int64]]:
    """Yield the samples of update ``first``, of the next one, and so on.

    Each epoch has its own order, a function of seed and epoch alone: any run can go on anywhere.
    The mini-batches of an epoch differ in size by one at most. With weights, as many samples are
    drawn as have one, in proportion to it.

    Examples
    --------
    >>> from itertools import islice
    >>> from dualtap.rbm.samples import batches
    >>> whole = list(islice(batches(5, 2, seed=0, first=0), 6))
    >>> rest = list(islice(batches(5, 2, seed=0, first=4), 2))
    >>> [len(batch) for batch in whole], [list(a) == list(b) for a, b in zip(whole[4:], rest)]
    ([2, 2, 1, 2, 2, 1], [True, True])
    """
    n_drawn = n_samples if weights is None else int(np.count_nonzero(weights))
    n_batches = -(-n_drawn // batch_size)
    epoch, skip = divmod(first, n_batches)
    while True:
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(n_drawn)
        if weights is not None:
            order = _systematic(weights, n_drawn, rng)[order]
        yield from np.array_split(order, n_batches)[skip:]
        epoch, skip = epoch + 1, 0


def _systematic(
    weights: NDArray[np.float64], n_drawn: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return rows, each as often as its weight says, up to rounding at random."""
    ends = np.cumsum(weights)
    marks = (np.arange(n_drawn) + rng.random()) * (ends[-1] / n_drawn)
    drawn: NDArray[np.int64] = np.searchsorted(ends, marks, side="right")
    last = int(np.flatnonzero(weights)[-1])
    return np.where(drawn > last, last, drawn)


def largest_second_moment(
    X: Samples, rng: np.random.Generator, samples: NDArray[np.int64] | None = None
) -> float:
    r"""Return the largest eigenvalue of :math:`S^\top S / M`, from at most 1000 samples.

    ``samples`` are the rows that count, all if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.samples import largest_second_moment
    >>> X = np.ones((10, 30), dtype=np.int8)
    >>> round(largest_second_moment(X, np.random.default_rng(0)), 3)
    30.0
    """
    samples = np.arange(len(X)) if samples is None else samples
    some = as_spin_rows(X).take(samples[rng.permutation(len(samples))[:_MOST_SAMPLES]]).values
    with one_blas_thread():
        value, _ = leading_eigenpair(HebbianCouplings(some), rng)
    moment: float = value * X.shape[1] / len(some)
    return max(moment, 1.0)


def largest_variance(S: NDArray[np.int8]) -> float:
    """Return the largest eigenvalue of the covariance of the spins, one at least.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.samples import largest_variance
    >>> largest_variance(np.ones((10, 30), dtype=np.int8))
    1.0
    """
    Z = S - (S.sum(axis=0) / np.maximum(np.count_nonzero(S, axis=0), 1)) * (S != 0)
    return max(float(np.linalg.eigvalsh(shorter_gram(Z))[-1]) / len(Z), 1.0)


def fingerprint(
    X: Samples,
    weights: NDArray[np.float64] | None = None,
    beside: NDArray[np.int8] | None = None,
) -> str:
    """Return a text that differs for different samples, weights or samples to choose by.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.samples import fingerprint
    >>> fingerprint(np.ones((2, 3), dtype=np.int8))
    '2 samples of 3 spins, checksum ...'
    """
    spins, checksum = as_spin_rows(X), 0
    for rows in spins.blocks():
        checksum = zlib.crc32(spins.block(rows).tobytes(), checksum)
    for other in (weights, beside):
        if other is not None:
            checksum = zlib.crc32(other.tobytes(), checksum)
    return f"{X.shape[0]} samples of {X.shape[1]} spins, checksum {checksum:08x}"


def as_spin_rows(X: Samples) -> Spins:
    """Return samples that rows can be taken from."""
    return X if isinstance(X, Spins) else DenseSpins(X, "-1/+1")


def mean_fields(X: Samples, weights: NDArray[Any] | None = None) -> NDArray[np.float64]:
    """Return the fields that alone explain the means of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.samples import mean_fields
    >>> mean_fields(np.array([[1, 1], [1, -1]], dtype=np.int8)).round(3)
    array([0.549, 0.   ])
    """
    total, observed = _sums(X, weights)
    # One more sample of each sign keeps the field of a constant spin finite.
    return np.arctanh(total / (observed + 2))


def have_means(X: Samples, weights: NDArray[Any] | None = None) -> bool:
    """Tell whether means of spins differ from zero by more than those of fair spins would.

    The mean square of n fair ±1 numbers is 1/n, and their mean over many spins varies little
    unless few patterns decide all of them; data with means of their own exceed it many times.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.samples import have_means
    >>> S = np.random.default_rng(0).choice([-1, 1], size=(100, 20)).astype(np.int8)
    >>> have_means(S), have_means(np.maximum(S, S[::-1]))
    (False, True)
    """
    total, observed = _sums(X, weights)
    square = np.square(total) / np.maximum(observed, 1)
    return float(square.mean()) > _FAIR_SQUARE


_FAIR_SQUARE = 4.0


def _sums(
    X: Samples, weights: NDArray[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum of every spin and the number of its observed values, weighted."""
    spins = as_spin_rows(X)
    total, observed = np.zeros(spins.n_spins), np.zeros(spins.n_spins)
    for rows in spins.blocks():
        s = spins.block(rows)
        w = np.ones(len(s)) if weights is None else weights[rows]
        total += w @ s
        observed += w @ (s != 0)
    return total, observed
