r"""Overlaps of samples with patterns, and the pattern that each sample is nearest to.

An overlap is the mean of ζ_i s_i over the observed entries of the pattern's support, the spins with
ζ_i ≠ 0. It is 0 if none of those was observed, and NaN if nothing of the sample was. Of patterns of
one strength the nearest has the largest \|ζ·s\|/√n, n the number of these entries: that a pattern
of two spins agrees with a sample says little. Where strengths differ or spins have means of their
own, it is the attractive pattern that explains most of what sets the sample apart, the one with the
largest g [ζ·(s - s̄)]² (:class:`Pull`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap.spins import Spins
from dualtap.spins.matrix import blocks_of
from dualtap.spins.protocol import F32

_WHOLE = 2**22
"""Products of samples with patterns that are held at a time."""
_FOUND = np.dtype([("label", "i4"), ("sign", "i1"), ("overlap", "f8"), ("tied", "?")])
"""What is found of each sample: with millions of them every byte counts."""
_AT_ONCE = 2**20
"""Samples that are counted together."""


class Pull(NamedTuple):
    """How strongly samples are drawn to patterns."""

    root: F32
    """Square roots of the strengths, 0 of repulsive patterns, shape (n_patterns,)."""
    centre: F32
    """Means of the spins, or 0 if patterns explain them, shape (n_spins,)."""


def pull_of(
    strengths: NDArray[np.floating], fields: NDArray[np.floating], means: NDArray[np.floating]
) -> Pull | None:
    """Return how strongly patterns draw samples; None if all do equally.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.nearest import pull_of
    >>> pull_of(np.array([4.0, -1.0]), np.array([0.5, 0.0]), np.array([0.4, 0.0])).root
    array([2., 0.], dtype=float32)
    """
    g = np.maximum(strengths, 0)
    if not g.any() or (not fields.any() and (strengths == strengths[0]).all()):
        return None
    centre = means if fields.any() else np.zeros_like(means)
    return Pull(np.sqrt(g).astype(np.float32), centre.astype(np.float32))


class Assignment(NamedTuple):
    """The state each sample is nearest to: ``sign[:, None] * patterns_[label]``.

    The label is -1 without patterns, and for a sample without an observed entry.
    """

    label: NDArray[np.int32]
    sign: NDArray[np.int8]
    overlap: NDArray[np.float64]

    def canonical(
        self, n_patterns: int, weights: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the order and the signs of patterns that do not depend on how they were found.

        Those with most samples come first, and of as many those whose first sample comes first.
        The sign of a pattern is that of most of its samples, or of the first if it is a draw.
        A row of weight w counts as w samples.
        """
        if not n_patterns:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        counts, balance = np.zeros(n_patterns), np.zeros(n_patterns)
        first = np.full(n_patterns, len(self.label))
        for rows, w in self._known(weights):
            label = self.label[rows]
            counts += np.bincount(label, w, n_patterns)
            balance += np.bincount(label, w * self.sign[rows], n_patterns)
            np.minimum.at(first, label, rows)
        of_first = np.where(counts > 0, self.sign[np.minimum(first, len(self.label) - 1)], 1)
        return np.lexsort((first, -counts)), np.where(balance == 0, of_first, np.sign(balance))

    def totals(self, n_patterns: int, weights: NDArray[np.float64] | None = None) -> Totals:
        """Return how many samples are nearest to each pattern, and how near they are."""
        n_nearest, total = np.zeros(n_patterns), np.zeros(n_patterns)
        for rows, w in self._known(weights):
            n_nearest += np.bincount(self.label[rows], w, n_patterns)
            total += np.bincount(self.label[rows], w * self.overlap[rows], n_patterns)
        mean = np.divide(total, n_nearest, out=np.zeros(n_patterns), where=n_nearest > 0)
        return Totals(n_nearest, mean, self._median_overlap(weights))

    def _known(
        self, weights: NDArray[np.float64] | None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield samples with a pattern and their weights, some at a time."""
        for start in range(0, len(self.label), _AT_ONCE):
            rows = start + np.flatnonzero(self.label[start : start + _AT_ONCE] >= 0)
            yield rows, np.ones(len(rows)) if weights is None else weights[rows]

    def _median_overlap(self, weights: NDArray[np.float64] | None) -> float:
        """Return the median overlap, each as often as its weight."""
        known = self.label >= 0
        if not known.any():
            return np.nan
        values = self.overlap[known]
        if weights is None:
            return float(np.median(values, overwrite_input=True))
        order = np.argsort(values)
        below = np.cumsum(weights[known][order])
        middle = [np.searchsorted(below, below[-1] / 2, side=side) for side in ("left", "right")]
        return float(values[order[np.minimum(middle, len(order) - 1)]].mean())

    def renamed(self, order: NDArray[np.int64]) -> Assignment:
        """Return the same with patterns in another order, the first of ``order`` first."""
        place = np.full(len(order) + 1, -1, dtype=np.int32)
        place[order] = np.arange(len(order))
        return self._replace(label=place[self.label])


class Totals(NamedTuple):
    """What the nearest patterns of samples say of each pattern."""

    n_nearest: NDArray[np.float64]
    """Samples nearest to each, shape (n_patterns,)."""
    mean_overlap: NDArray[np.float64]
    """Of these, shape (n_patterns,)."""
    median_overlap: float
    """Of all samples with their nearest pattern; NaN without any."""


def signs(m: ArrayLike) -> NDArray[np.int8]:
    """Return the signs of m as int8, +1 where it is zero.

    Examples
    --------
    >>> from dualtap.fitted.nearest import signs
    >>> signs([[0.3, -0.2, 0.0]])
    array([[ 1, -1,  1]], dtype=int8)
    """
    return np.where(np.asarray(m) < 0, np.int8(-1), np.int8(1))


def overlaps_on_support(spins: Spins, patterns: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the overlap of every sample with every pattern, shape (n_samples, n_patterns).

    Parameters
    ----------
    spins : Spins
    patterns : array of shape (n_patterns, n_spins)
        -1, 0 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.fitted.nearest import overlaps_on_support
    >>> X = as_spins([[1, 1, -1], [np.nan, 1, 1], [np.nan] * 3])
    >>> overlaps_on_support(X, np.array([[1, 0, 1], [1, 1, 1]], dtype=np.int8)).round(2)
    array([[0.  , 0.33],
           [1.  , 1.  ],
           [ nan,  nan]])
    """
    blocks = blocks_of(spins, held=False)
    zeta = patterns.astype(np.float32)
    if patterns.all():
        result: NDArray[np.float64] = blocks.dot(zeta).astype(np.float64)
        result /= blocks.n_observed[:, None]
    else:
        result = blocks.map(partial(_overlaps, zeta=zeta))
    result[unobserved(spins)] = np.nan
    return result


def observed_on_support(spins: Spins, patterns: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return how many entries of each pattern's support every sample has.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.fitted.nearest import observed_on_support
    >>> observed_on_support(as_spins([[1, 0, 1], [None, 0, 1]]), np.array([[1, 0, -1]]))
    array([[2.],
           [1.]])
    """
    if patterns.all():
        n_observed = spins.n_observed.astype(np.float64)
        return np.broadcast_to(n_observed[:, None], (spins.n_samples, len(patterns)))
    support = np.abs(patterns).astype(np.float32)
    counts = blocks_of(spins, held=False).map(partial(_counts, support=support))
    return counts.astype(np.float64)


def nearest_patterns(
    spins: Spins, patterns: NDArray[np.int8], pull: Pull | None = None
) -> tuple[Assignment, bool]:
    """Return the pattern that each sample is nearest to, ties to the first.

    Missing entries are left out, zeros of a pattern are not: of two patterns that a sample agrees
    with, the one with more entries is nearer.

    Parameters
    ----------
    spins : Spins
    patterns : array of shape (n_patterns, n_spins)
        -1, 0 or +1.
    pull : Pull, optional
        Of the patterns; the largest absolute cosine counts when not given.

    Returns
    -------
    Assignment
    bool
        Whether there are ties.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.fitted.nearest import nearest_patterns
    >>> patterns = np.array([[1, 1, 1, 1], [1, -1, 0, 0]], dtype=np.int8)
    >>> nearest_patterns(as_spins([[1, 1, 1, -1], [-1, 1, 1, 1]]), patterns)[0].label
    array([0, 1], dtype=int32)
    """
    if not len(patterns):
        found = np.broadcast_to(np.array((-1, 1, 0.0, False), dtype=_FOUND), spins.n_samples)
        return Assignment(found["label"], found["sign"], found["overlap"]), False
    blocks = blocks_of(spins, held=False)
    zeta = patterns.astype(np.float32)
    if pull is None and patterns.all() and len(patterns) * spins.n_samples <= _WHOLE:
        found = _nearest(blocks.sign_dot(zeta), blocks.n_observed[:, None])
    else:
        seen = _seen(spins, patterns)
        found = blocks.map(partial(_nearest_of_block, zeta=zeta, pull=pull), seen)
    without = unobserved(spins)
    found["label"][without], found["overlap"][without] = -1, np.nan
    return Assignment(found["label"], found["sign"], found["overlap"]), bool(found["tied"].any())


def nearest_labels(
    spins: Spins, patterns: NDArray[np.int8], pull: Pull | None = None
) -> NDArray[np.int32]:
    """Return the labels of :func:`nearest_patterns` alone, with nothing else as long as these.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.fitted.nearest import nearest_labels
    >>> nearest_labels(as_spins([[1, 1], [0, 1]]), np.array([[1, -1], [1, 1]], dtype=np.int8))
    array([1, 0], dtype=int32)
    """
    if not len(patterns):
        return np.full(spins.n_samples, -1, dtype=np.int32)
    zeta = patterns.astype(np.float32)
    of_block = partial(_label_of_block, zeta=zeta, pull=pull)
    label = blocks_of(spins, held=False).map(of_block, _seen(spins, patterns))
    label[unobserved(spins)] = -1
    return label


def from_overlaps(
    overlaps: ArrayLike, patterns: NDArray[np.int8], means: NDArray[np.float64]
) -> NDArray[np.int8]:
    r"""Return spins of given overlaps: signs of the vector nearest to the means that has them.

    With :math:`N_\mu` spins in the support of pattern μ, the vector solves
    :math:`\zeta^\mu\cdot s = N_\mu o_\mu` for all patterns (in the sense of least squares, if it
    cannot) and :math:`|s - \bar s|^2` is smallest.

    Parameters
    ----------
    overlaps : array-like of shape (n_samples, n_patterns)
        NaN where an overlap is not known.
    patterns : array of shape (n_patterns, n_spins)
        -1, 0 or +1.
    means : array of shape (n_spins,)
        Means of the spins.

    Returns
    -------
    array of shape (n_samples, n_spins), int8 ±1

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.nearest import from_overlaps
    >>> patterns = np.array([[1, 1, -1, -1], [1, -1, 0, 0]], dtype=np.int8)
    >>> from_overlaps([[1.0, 0.0], [0.0, -1.0]], patterns, np.zeros(4))
    array([[ 1,  1, -1, -1],
           [-1,  1,  1,  1]], dtype=int8)
    """
    o = np.asarray(overlaps, dtype=np.float64)
    if o.ndim != 2 or o.shape[1] != len(patterns):
        raise ValueError(
            f"overlaps must have shape (n_samples, {len(patterns)}), one column per pattern, "
            f"got shape {o.shape}"
        )
    zeta = patterns.astype(np.float64)
    missing = o * np.abs(zeta).sum(axis=1) - zeta @ means
    return signs(means + np.nan_to_num(missing) @ np.linalg.pinv(zeta).T)


def unobserved(spins: Spins) -> NDArray[np.int64]:
    """Return the samples without an observed entry.

    Examples
    --------
    >>> from dualtap import as_spins
    >>> from dualtap.fitted.nearest import unobserved
    >>> unobserved(as_spins([[1, 0], [None, None]]))
    array([1])
    """
    if spins.complete:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(spins.n_observed == 0)


def log_cosh(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log cosh x, also where cosh x overflows.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.nearest import log_cosh
    >>> log_cosh(np.array([0.0, 1000.0])).round(3)
    array([  0.   , 999.307])
    """
    result: NDArray[np.float64] = np.logaddexp(x, -x) - np.log(2)
    return result


def _overlaps(S: F32, zeta: F32) -> NDArray[np.float64]:
    result: NDArray[np.float64] = (S @ zeta.T).astype(np.float64)
    result /= np.maximum(np.abs(S) @ np.abs(zeta).T, 1)
    return result


def _counts(S: F32, support: F32) -> F32:
    return np.abs(S) @ support.T


def _seen(spins: Spins, patterns: NDArray[np.int8]) -> NDArray[np.integer] | None:
    """Return how many entries each sample has of every pattern; None if that differs."""
    return spins.n_observed if patterns.all() else None


def _label_of_block(
    S: F32, seen: NDArray[np.integer] | None, zeta: F32, pull: Pull | None
) -> NDArray[np.int32]:
    label: NDArray[np.int32] = _nearest_of_block(S, seen, zeta, pull)["label"].copy()
    return label


def _nearest_of_block(
    S: F32, seen: NDArray[np.integer] | None, zeta: F32, pull: Pull | None
) -> NDArray[np.void]:
    products = S @ zeta.T
    counts: NDArray[np.floating]
    if seen is None:
        counts = np.abs(S) @ np.abs(zeta).T
    else:
        counts = np.broadcast_to(seen.astype(np.float32)[:, None], products.shape)
    if pull is None:
        return _nearest(products, counts)
    apart = pull.root * (products - np.abs(S) @ (zeta * pull.centre).T)
    # Of patterns that explain nothing, an attractive one.
    return _chosen(np.where(pull.root > 0, np.abs(apart), -1), apart, products, counts)


def _nearest(products: F32, counts: NDArray[np.floating]) -> NDArray[np.void]:
    """Return what is nearest to each sample, by ζ·s and the number of entries that it sums over."""
    counts = np.broadcast_to(np.maximum(counts, 1), products.shape)
    # All patterns over as many spins are compared by whole numbers, which are exact.
    alike = (counts == counts[:, :1]).all()
    size = np.abs(products) if alike else np.abs(products) / np.sqrt(counts)
    return _chosen(size, products, products, counts)


def _chosen(
    size: F32, signed: F32, products: F32, counts: NDArray[np.floating]
) -> NDArray[np.void]:
    """Return the pattern of largest size for each sample, with its sign and overlap."""
    label = np.argmax(size, axis=1)[:, None]
    found = np.empty(len(products), dtype=_FOUND)
    found["label"] = label[:, 0]
    found["tied"] = np.count_nonzero(size == np.take_along_axis(size, label, 1), axis=1) > 1
    product, n, turned = (np.take_along_axis(x, label, 1)[:, 0] for x in (products, counts, signed))
    found["sign"] = np.where(turned < 0, -1, 1)
    found["overlap"] = np.abs(product) / np.maximum(n, 1).astype(np.float64)
    return found
