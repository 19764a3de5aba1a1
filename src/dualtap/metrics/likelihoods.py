"""How likely patterns make the samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap._parameters import as_fields, as_strengths
from dualtap.local_fields import local_fields, log_likelihoods
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.cluster import blocks_of


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
    X: ArrayLike | Spins,
    patterns: ArrayLike,
    beta: float | None = None,
    fields: ArrayLike | None = None,
    *,
    strengths: ArrayLike | None = None,
) -> float:
    r"""Return the mean log pseudo-likelihood per spin of a model of ``patterns``.

    .. math:: \frac1{MN} \sum_{a,i} \log\frac1{1+e^{-2 s_i^a h_i^a}}, \qquad
              h_i = b_i + \sum_\mu \frac{g_\mu}N \zeta^\mu_i \sum_{j\ne i} \zeta^\mu_j s_j

    Missing entries are left out of the mean, and the missing spins of a pattern are taken to be
    aligned with it as much as the observed ones (:func:`dualtap.local_fields.local_fields`).
    No patterns and no fields give -log 2, that of independent random spins.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    patterns : array-like of shape (k, n_spins)
        The ζ^μ; a spin of 0 takes no part in a pattern.
    beta : float, optional
        The strength of all patterns; either this or ``strengths``.
    fields : array-like of shape (n_spins,), optional
        The b_i; zero by default.
    strengths : array-like of shape (k,), optional
        The g_μ, of any sign.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.metrics import pseudo_likelihood
    >>> round(pseudo_likelihood([[1, 1, -1, -1]], [[1, 1, -1, -1]], beta=2.0), 4)
    -0.0486
    >>> round(pseudo_likelihood([[1, 1, -1, -1]], [[1, 1, 0, 0]], strengths=[4.0]), 4)
    -0.41
    """
    sums, counts = _log_pseudo_likelihoods(X, patterns, beta, fields, strengths)
    if not counts.any():
        raise ValueError("X has no observed entry")
    return float(sums.sum() / counts.sum())


def sample_pseudo_likelihoods(
    X: ArrayLike | Spins,
    patterns: ArrayLike,
    beta: float | None = None,
    fields: ArrayLike | None = None,
    *,
    strengths: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Return each sample's mean log pseudo-likelihood per observed spin.

    Their mean, weighted by observed entries, is :func:`pseudo_likelihood`. Low values are samples
    that the model does not explain.

    Parameters
    ----------
    X, patterns, beta, fields, strengths : as in :func:`pseudo_likelihood`

    Returns
    -------
    array of shape (n_samples,)
        NaN for a sample without an observed entry.

    Examples
    --------
    >>> from dualtap.metrics import sample_pseudo_likelihoods
    >>> X = [[1, 1, -1, -1], [1, -1, 1, -1], [0, 0, 0, 0]]
    >>> sample_pseudo_likelihoods(X, [[1, 1, -1, -1]], beta=2.0).round(3)
    array([-0.049, -1.313,    nan])
    """
    sums, counts = _log_pseudo_likelihoods(X, patterns, beta, fields, strengths)
    means = np.full(len(sums), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _log_pseudo_likelihoods(
    X: ArrayLike | Spins,
    patterns: ArrayLike,
    beta: float | None,
    fields: ArrayLike | None,
    strengths: ArrayLike | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return Σ_i log P(s_i | rest) over the observed entries of each sample, and their number."""
    spins = X if isinstance(X, Spins) else DenseSpins(np.asarray(X).astype(np.int8), "-1/+1")
    zeta = np.asarray(patterns, dtype=np.float32)
    g = as_strengths(len(zeta), beta, strengths)
    b = None if fields is None else as_fields(fields, spins.n_spins)
    blocks = blocks_of(spins, held=False)
    complete = blocks.complete

    def sums(s: NDArray[np.float32]) -> NDArray[np.float64]:
        total = log_likelihoods(s, local_fields(s, zeta, g, b, complete))
        return np.column_stack([total, np.count_nonzero(s, axis=1)])

    result = blocks.map(sums)
    return result[:, 0], result[:, 1].astype(np.int64)


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
    >>> from dualtap.metrics.likelihoods import field_blocks
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
    >>> from dualtap.metrics.likelihoods import aligned
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
