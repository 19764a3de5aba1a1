"""The samples read against the patterns: overlaps, nearest patterns, means of the spins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from dualtap.fitted.nearest import Pull, nearest_patterns
from dualtap.spins import Spins


@dataclass(frozen=True)
class Reading:
    """How samples lie towards patterns.

    Attributes
    ----------
    overlaps : array of shape (n_samples, n_patterns), float32
        Means over the observed entries of a pattern's support; 0 if there are none.
    label : array of shape (n_samples,), int
        The nearest pattern, -1 if there is none or nothing of the sample was observed.
    sign : array of shape (n_samples,), int
        -1 where the sample is nearer to the negative of the pattern.
    best : array of shape (n_samples,)
        Absolute overlap with the nearest pattern.
    n_up, n_observed : array of shape (n_spins,)
        Samples with +1 at each spin, and with any value.
    weights : array of shape (n_samples,)
        Samples that a row stands for.
    """

    overlaps: NDArray[np.float32]
    label: NDArray[np.int64]
    sign: NDArray[np.int64]
    best: NDArray[np.float32]
    n_up: NDArray[np.float64]
    n_observed: NDArray[np.float64]
    weights: NDArray[np.float64]


def read(spins: Spins, patterns: NDArray[np.int8], pull: Pull | None = None) -> Reading:
    """Read all samples once, a block of rows at a time.

    Parameters
    ----------
    spins : Spins
    patterns : array of shape (n_patterns, n_spins)
    pull : Pull, optional
        As in :func:`dualtap.fitted.nearest.nearest_patterns`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.report.reading import read
    >>> reading = read(as_spins([[1, 1, -1, -1], [-1, -1, 1, -1]]), np.array([[1, 1, -1, -1]]))
    >>> reading.label, reading.sign, reading.best
    (array([0, 0]), array([ 1, -1]), array([1. , 0.5], dtype=float32))
    """
    o = np.empty((spins.n_samples, len(patterns)), dtype=np.float32)
    n_up, n_observed = np.zeros(spins.n_spins), np.zeros(spins.n_spins)
    weights = np.ones(spins.n_samples) if spins.weights is None else spins.weights
    zeta = patterns.T.astype(np.float32)
    for rows in spins.blocks():
        s = spins.block(rows)
        floats = s.astype(np.float32)
        o[rows] = floats @ zeta / np.maximum(_n_common(floats, zeta), 1)
        n_up += weights[rows] @ (s == 1)
        n_observed += weights[rows] @ (s != 0)
    nearest = nearest_patterns(spins, patterns, pull)[0]
    best = np.nan_to_num(nearest.overlap).astype(np.float32)
    label, sign = nearest.label.astype(np.int64), nearest.sign.astype(np.int64)
    return Reading(o, label, sign, best, n_up, n_observed, weights)


def _n_common(s: NDArray[np.float32], zeta: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how many observed entries each sample has in the support of each pattern."""
    common: NDArray[np.float32]
    if zeta.all():
        common = np.count_nonzero(s, axis=1).astype(np.float32)[:, None]
    else:
        common = np.abs(s) @ np.abs(zeta)
    return common


def score_of_means(reading: Reading) -> float:
    r"""Return the mean log-likelihood per observed spin when every spin has its own mean only.

    .. math:: \frac1n \sum_i \left(n_i^+ \log\frac{n_i^+}{n_i}
              + n_i^- \log\frac{n_i^-}{n_i}\right), \qquad n = \sum_i n_i.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.report.reading import read, score_of_means
    >>> reading = read(as_spins([[1, 1], [1, -1]]), np.empty((0, 2), dtype=np.int8))
    >>> round(score_of_means(reading), 4)  # the first is certain, the second fair
    -0.3466
    """
    up, n = reading.n_up, reading.n_observed
    p = up / np.maximum(n, 1)
    return float((xlogy(up, p) + xlogy(n - up, 1 - p)).sum() / max(n.sum(), 1))


def nearest_samples(reading: Reading, pattern: int, n_most: int) -> NDArray[np.int64]:
    """Return the samples of a pattern, those with the largest overlap first.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.report.reading import nearest_samples, read
    >>> X = as_spins([[1, 1, -1, -1], [1, 1, 1, -1], [-1, -1, 1, 1]])
    >>> nearest_samples(read(X, np.array([[1, 1, -1, -1]])), 0, n_most=2)
    array([0, 2])
    """
    members = np.flatnonzero(reading.label == pattern)
    return members[np.argsort(-reading.best[members], kind="stable")[:n_most]]


def by_pattern(reading: Reading, n_most: int) -> NDArray[np.int64]:
    """Return samples in the order of their patterns and overlaps, evenly thinned to ``n_most``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.report.reading import by_pattern, read
    >>> X = as_spins([[1, -1, 1, -1], [1, 1, 1, -1], [1, 1, -1, -1]])
    >>> by_pattern(read(X, np.array([[1, 1, -1, -1], [1, -1, 1, -1]])), n_most=9)
    array([2, 1, 0])
    """
    order = np.lexsort((-reading.best, reading.label))
    if len(order) <= n_most:
        return order
    return order[np.linspace(0, len(order) - 1, n_most).astype(np.int64)]
