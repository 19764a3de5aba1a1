"""How near patterns are to true ones, and whether their confidence is justified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment


def overlaps(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    r"""Return the overlap matrix :math:`\frac1N a^\mu \cdot b^\nu`.

    Parameters
    ----------
    a : array-like of shape (k, n_spins)
    b : array-like of shape (p, n_spins)

    Returns
    -------
    array of shape (k, p)

    Examples
    --------
    >>> from dualtap.metrics import overlaps
    >>> overlaps([[1, 1, -1, -1]], [[1, 1, -1, -1], [1, 1, 1, -1]])
    array([[1. , 0.5]])
    """
    a, b = as_rows(a), as_rows(b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"patterns of different length: {a.shape[1]} and {b.shape[1]} spins")
    result: NDArray[np.float64] = a @ b.T / a.shape[1]
    return result


@dataclass(frozen=True)
class Match:
    """A one-to-one matching of estimated to true patterns, up to sign.

    Attributes
    ----------
    overlaps : array of shape (n_true,)
        Absolute overlap of each true pattern with its partner, 0 where it has none.
    index : array of shape (n_true,), int
        The partner of each true pattern, -1 where it has none.
    sign : array of shape (n_true,), int
        Sign that turns the partner towards the true pattern, 0 where it has none.
    """

    overlaps: NDArray[np.float64]
    index: NDArray[np.int64]
    sign: NDArray[np.int64]

    @property
    def mean_overlap(self) -> float:
        """Mean over the true patterns."""
        return float(self.overlaps.mean())

    def n_recovered(self, threshold: float = 0.9) -> int:
        """Count true patterns whose overlap exceeds ``threshold``."""
        return int(np.count_nonzero(self.overlaps > threshold))

    def __str__(self) -> str:
        return (
            f"{self.n_recovered()} of {len(self.overlaps)} patterns recovered "
            f"(overlap > 0.9), mean overlap {self.mean_overlap:.3f}, "
            f"smallest {self.overlaps.min():.3f}"
        )


def match(estimate: ArrayLike, truth: ArrayLike) -> Match:
    """Match estimated patterns one to one to the true ones, up to sign and permutation.

    The assignment maximises the sum of absolute overlaps (Hungarian algorithm).

    Parameters
    ----------
    estimate : array-like of shape (k, n_spins)
        Signs or magnetizations; k may differ from the true number, 0 included.
    truth : array-like of shape (p, n_spins)

    Returns
    -------
    Match

    Examples
    --------
    >>> from dualtap.metrics import match
    >>> truth = [[1, 1, -1, -1], [1, -1, 1, -1]]
    >>> found = match([[-1, 1, -1, 1], [1, 1, -1, -1]], truth)
    >>> found.overlaps, found.index, found.sign
    (array([1., 1.]), array([1, 0]), array([ 1, -1]))
    """
    o = overlaps(estimate, truth)
    if o.shape[1] == 0:
        raise ValueError("there is no true pattern to match")
    rows, columns = linear_sum_assignment(np.abs(o), maximize=True)
    n_true = o.shape[1]
    best = np.zeros(n_true)
    index = np.full(n_true, -1)
    sign = np.zeros(n_true, dtype=np.int64)
    best[columns] = np.abs(o[rows, columns])
    index[columns] = rows
    sign[columns] = np.where(o[rows, columns] < 0, -1, 1)
    return Match(best, index, sign)


def n_recovered(estimate: ArrayLike, truth: ArrayLike, threshold: float = 0.9) -> int:
    """Count true patterns with a partner of overlap above ``threshold``.

    Parameters
    ----------
    estimate, truth : as in :func:`match`
    threshold : float

    Returns
    -------
    int

    Examples
    --------
    >>> from dualtap.metrics import n_recovered
    >>> n_recovered([[1, 1, -1, -1]], [[-1, -1, 1, 1], [1, -1, 1, -1]])
    1
    """
    return match(estimate, truth).n_recovered(threshold)


class Calibration(NamedTuple):
    """How far confidence can be trusted: what was claimed and what was right, bin by bin."""

    error: float
    """Expected calibration error: mean distance of accuracy and confidence, 0 at best."""
    confidence: NDArray[np.float64]
    """Mean confidence of the bits in each bin, (n_bins,); NaN where there are none."""
    accuracy: NDArray[np.float64]
    """Share of right signs in each bin, (n_bins,); NaN where there are none."""
    counts: NDArray[np.int64]
    """Bits in each bin, (n_bins,)."""


def calibration(magnetizations: ArrayLike, patterns: ArrayLike, n_bins: int = 10) -> Calibration:
    r"""Compare how sure magnetizations are of each bit with how often they are right.

    A bit of magnetization m has the sign of m with confidence :math:`c = (1+|m|)/2`. Magnetizations
    are matched to the true patterns up to sign and order; bits of those with a partner go into
    equal bins of c between 1/2 and 1, and

    .. math:: \mathrm{error} = \sum_k \frac{n_k}{n}\, |\mathrm{accuracy}_k - \bar c_k|.

    Parameters
    ----------
    magnetizations : array-like of shape (k, n_spins)
        Between -1 and 1. A bit of exactly 0 counts as half right.
    patterns : array-like of shape (p, n_spins), ±1
        The truth.
    n_bins : int

    Returns
    -------
    Calibration

    Examples
    --------
    Ten bits at 80 % confidence (m = 0.6), nine of them right:

    >>> from dualtap.metrics import calibration
    >>> found = calibration([[0.6] * 10], [[1] * 9 + [-1]], n_bins=2)
    >>> found.counts, found.accuracy, round(found.error, 3)
    (array([ 0, 10]), array([nan, 0.9]), 0.1)
    """
    m, zeta = as_rows(magnetizations), as_rows(patterns)
    if n_bins < 1:
        raise ValueError(f"calibration needs n_bins >= 1, got {n_bins}")
    if not np.all(np.abs(m) <= 1 + 1e-6):  # float32 may round a tanh up
        raise ValueError("magnetizations must be numbers between -1 and 1: divide by their bound")
    if m.size == 0:
        raise ValueError("there are no magnetizations to calibrate")
    found = match(m, zeta)
    is_matched = found.index >= 0
    sizes = np.abs(m[found.index[is_matched]]).ravel()
    signs = np.sign(m[found.index[is_matched]] * found.sign[is_matched, None] * zeta[is_matched])
    bins = np.minimum((sizes * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    n = np.where(counts, counts, np.nan)
    confidence = np.bincount(bins, (1 + sizes) / 2, n_bins) / n
    accuracy = np.bincount(bins, (1 + signs.ravel()) / 2, n_bins) / n
    error = float(np.nansum(counts * np.abs(accuracy - confidence)) / counts.sum())
    return Calibration(error, confidence, accuracy, counts)


def as_rows(patterns: ArrayLike) -> NDArray[np.float64]:
    """Return patterns as a matrix, or say what is wrong with them."""
    rows = np.asarray(patterns, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(
            f"patterns must have shape (n_patterns, n_spins), got {rows.ndim} dimension(s)"
        )
    return rows
