"""How good a recovery is: overlaps, matching, errors of the couplings, likelihood, calibration.

Patterns are known only up to sign and order, and every function here respects that. Nothing
forms an N×N matrix: couplings are compared through the overlaps of their factors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from dualtap.hopfield import as_fields
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.cluster import blocks_of

__all__ = [
    "Calibration",
    "CouplingError",
    "Match",
    "calibration",
    "coupling_error",
    "coupling_error_path",
    "match",
    "n_recovered",
    "overlaps",
    "pseudo_likelihood",
    "sample_pseudo_likelihoods",
    "scores",
    "simplified_likelihood",
]


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
    a, b = _rows(a), _rows(b)
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


class CouplingError(NamedTuple):
    """Distance between two coupling matrices over the pairs i < j."""

    relative: float
    """‖J^r - J*‖ / ‖J*‖."""
    printed: float
    """The paper's ε: the relative error divided by N(N-1)/2."""


def coupling_error(estimate: ArrayLike, truth: ArrayLike) -> CouplingError:
    r"""Compare :math:`J^r = \frac1N \sum_t m_t m_t^\top` with the teacher's J*.

    .. math:: \epsilon = \left[\tfrac{N(N-1)}2\right]^{-1} \sqrt{\frac{\sum_{i<j}
              (J^r_{ij} - J^*_{ij})^2}{\sum_{i<j} (J^*_{ij})^2}}

    as printed; the bare square root is the relative error. Computed from overlaps of the factors,
    in O(N (k + p)²).

    Parameters
    ----------
    estimate : array-like of shape (k, n_spins)
        Factors of J^r: magnetizations or signs.
    truth : array-like of shape (p, n_spins)
        The teacher's patterns.

    Returns
    -------
    CouplingError

    Examples
    --------
    >>> from dualtap.metrics import coupling_error
    >>> coupling_error([[1, 1, -1, -1]], [[-1, -1, 1, 1]])
    CouplingError(relative=0.0, printed=0.0)
    >>> coupling_error([[0, 0, 0, 0]], [[-1, -1, 1, 1]]).relative
    1.0
    """
    relative = float(coupling_error_path(estimate, truth)[-1])
    n_spins = _rows(truth).shape[1]
    return CouplingError(relative, relative / (n_spins * (n_spins - 1) / 2))


def coupling_error_path(estimate: ArrayLike, truth: ArrayLike) -> NDArray[np.float64]:
    """Return the relative error of J^r after the first 1, 2, …, k factors.

    Parameters
    ----------
    estimate, truth : as in :func:`coupling_error`

    Returns
    -------
    array of shape (k,); a single 1.0 for an empty estimate (J^r = 0)

    Examples
    --------
    >>> from dualtap.metrics import coupling_error_path
    >>> truth = [[1, 1, -1, -1], [1, -1, 1, -1]]
    >>> coupling_error_path(truth, truth).round(3)
    array([0.866, 0.   ])
    """
    m, zeta = _rows(estimate), _rows(truth)
    if m.shape[1] != zeta.shape[1]:
        raise ValueError(f"patterns of different length: {m.shape[1]} and {zeta.shape[1]} spins")
    diagonal = np.square(zeta).sum(axis=0)
    norm = np.square(zeta @ zeta.T).sum() - np.square(diagonal).sum()
    if norm <= 0:
        raise ValueError("the true couplings are all zero: a relative error has no meaning")
    if len(m) == 0:
        return np.ones(1)
    # Σ_{i≠j} (J^r - J*)² = Σ_{tt'} (m_t·m_t')² - 2 Σ_{tμ} (m_t·ζ_μ)² + Σ (ζ·ζ')² - diagonals,
    # accumulated over t.
    gram = np.square(m @ m.T)
    within = np.cumsum(2 * np.tril(gram, -1).sum(axis=1) + np.diag(gram))
    cross = np.cumsum(np.square(m @ zeta.T).sum(axis=1))
    own = np.cumsum(np.square(m), axis=0)
    off = np.square(own - diagonal).sum(axis=1)
    total = within - 2 * cross + np.square(zeta @ zeta.T).sum() - off
    path: NDArray[np.float64] = np.sqrt(np.maximum(total, 0) / norm)
    return path


def scores(X: ArrayLike, magnetizations: ArrayLike) -> NDArray[np.float64]:
    r"""Return the paper's score :math:`S_\mu = \sum_a (s^a \cdot m^\mu)^2` of every student.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins)
    magnetizations : array-like of shape (k, n_spins)

    Returns
    -------
    array of shape (k,)

    Examples
    --------
    >>> from dualtap.metrics import scores
    >>> scores([[1, 1, -1], [1, -1, -1]], [[1, 1, -1]])
    array([10.])
    """
    m = np.asarray(magnetizations)
    m = m.astype(np.result_type(m, np.float32), copy=False)
    products = m @ np.asarray(X).astype(m.dtype, copy=False).T
    result: NDArray[np.float64] = np.square(products, dtype=np.float64).sum(axis=1)
    return result


def simplified_likelihood(X: ArrayLike, magnetizations: ArrayLike) -> float:
    r"""Return :math:`\hat{\mathcal L} = \frac1{2N} \sum_\mu \sum_a (s^a \cdot m^\mu)^2`.

    The log-likelihood of the patterns over β, its partition function left out.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins)
    magnetizations : array-like of shape (k, n_spins)

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.metrics import simplified_likelihood
    >>> simplified_likelihood([[1, 1, -1, -1]], [[1, 1, -1, -1]])
    2.0
    """
    m = np.asarray(magnetizations)
    return float(scores(X, m).sum() / (2 * m.shape[1]))


def pseudo_likelihood(
    X: ArrayLike | Spins, patterns: ArrayLike, beta: float, fields: ArrayLike | None = None
) -> float:
    r"""Return the mean log pseudo-likelihood per spin of the Hopfield model of ``patterns``.

    .. math:: \frac1{MN} \sum_{a,i} \log\frac1{1+e^{-2 s_i^a (\beta h_i^a + b_i)}},
              \qquad h_i = \sum_{j\ne i} J_{ij} s_j.

    Missing entries are left out of the mean, and h is scaled up for those it lacks.
    No patterns and no fields give -log 2, a fair coin.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    patterns : array-like of shape (k, n_spins)
    beta : float
    fields : array-like of shape (n_spins,), optional
        The b_i; zero without.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.metrics import pseudo_likelihood
    >>> round(pseudo_likelihood([[1, 1, -1, -1]], [[1, 1, -1, -1]], beta=2.0), 4)
    -0.0486
    """
    sums, counts = _log_pseudo_likelihoods(X, patterns, beta, fields)
    if not counts.any():
        raise ValueError("X has no observed entry")
    return float(sums.sum() / counts.sum())


def sample_pseudo_likelihoods(
    X: ArrayLike | Spins, patterns: ArrayLike, beta: float, fields: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return each sample's mean log pseudo-likelihood per observed spin.

    Their mean, weighted by observed entries, is :func:`pseudo_likelihood`. Low values are samples
    that the model does not explain.

    Parameters
    ----------
    X, patterns, beta, fields : as in :func:`pseudo_likelihood`

    Returns
    -------
    array of shape (n_samples,)
        0 for a sample without an observed entry.

    Examples
    --------
    >>> from dualtap.metrics import sample_pseudo_likelihoods
    >>> X = [[1, 1, -1, -1], [1, -1, 1, -1], [0, 0, 0, 0]]
    >>> sample_pseudo_likelihoods(X, [[1, 1, -1, -1]], beta=2.0).round(3)
    array([-0.049, -1.313,  0.   ])
    """
    sums, counts = _log_pseudo_likelihoods(X, patterns, beta, fields)
    means: NDArray[np.float64] = sums / np.maximum(counts, 1)
    return means


def _log_pseudo_likelihoods(
    X: ArrayLike | Spins, patterns: ArrayLike, beta: float, fields: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return Σ_i log P(s_i | rest) over the observed entries of each sample, and their number."""
    spins = X if isinstance(X, Spins) else DenseSpins(np.asarray(X).astype(np.int8), "-1/+1")
    zeta = np.asarray(patterns, dtype=np.float32)
    b = None if fields is None else as_fields(fields, spins.n_spins).astype(np.float32)

    def sums(s: NDArray[np.float32]) -> NDArray[np.float64]:
        observed = s != 0
        # A NumPy scalar would promote the block to float64.
        argument = float(beta) * aligned(s, zeta)
        if b is not None:
            argument += s * b
        costs = np.logaddexp(0, -2 * argument)
        total = 0 - costs.sum(axis=1, dtype=np.float64, where=observed)
        return np.column_stack([total, observed.sum(axis=1)])

    result = blocks_of(spins, held=False).map(sums)
    return result[:, 0], result[:, 1].astype(np.int64)


def aligned_fields(
    X: ArrayLike, patterns: ArrayLike, block_entries: int = 2**20
) -> Iterator[NDArray[np.float32]]:
    """Yield s_i h_i of the Hopfield model of ``patterns`` at the observed entries, by blocks.

    Examples
    --------
    >>> from dualtap.metrics import aligned_fields
    >>> next(aligned_fields([[1, 1, -1, -1]], [[1, 1, -1, -1]]))
    array([0.75, 0.75, 0.75, 0.75], dtype=float32)
    """
    for s, toward in field_blocks(X, patterns, block_entries):
        yield toward[s != 0]


def field_blocks(
    X: ArrayLike, patterns: ArrayLike, block_entries: int = 2**20
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Yield s_i and s_i h_i for one block of samples after another, 0 at missing entries.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    patterns : array-like of shape (k, n_spins)
    block_entries : int
        Most entries of a block, unless a single sample has more.

    Yields
    ------
    spins, aligned : arrays of shape (n_block, n_spins)

    Examples
    --------
    >>> from dualtap.metrics import field_blocks
    >>> s, aligned = next(field_blocks([[1, 1, -1, 0]], [[1, 1, -1, 1]]))
    >>> aligned.round(2)
    array([[0.67, 0.67, 0.67, 0.  ]], dtype=float32)
    """
    S, zeta = np.asarray(X), np.asarray(patterns, dtype=np.float32)
    step = max(1, block_entries // S.shape[1])
    for first in range(0, len(S), step):
        s = S[first : first + step].astype(np.float32)
        yield s, aligned(s, zeta)


def aligned(s: NDArray[np.float32], zeta: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return s_i h_i of the Hopfield model of the patterns, 0 at missing entries.

    Parameters
    ----------
    s : array of shape (n_samples, n_spins)
    zeta : array of shape (n_patterns, n_spins)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.metrics import aligned
    >>> aligned(np.array([[1, 1, -1, 0]], np.float32), np.array([[1, 1, -1, 1]], np.float32))
    array([[0.66..., 0.66..., 0.66..., 0.  ...]], dtype=float32)
    """
    observed = np.square(s)
    scale = 1 / np.maximum(observed.sum(axis=1, keepdims=True), 1)
    h: NDArray[np.float32] = ((s @ zeta.T) * scale) @ zeta
    h *= s
    observed *= np.square(zeta).sum(axis=0)
    observed *= scale
    h -= observed
    return h


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
    m, zeta = _rows(magnetizations), _rows(patterns)
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


def _rows(patterns: ArrayLike) -> NDArray[np.float64]:
    rows = np.asarray(patterns, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(
            f"patterns must have shape (n_patterns, n_spins), got {rows.ndim} dimension(s)"
        )
    return rows
