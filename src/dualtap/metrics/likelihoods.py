"""How likely patterns make the samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap._parameters import as_fields, as_strengths
from dualtap.local_fields import log_likelihoods, observed_fields
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.matrix import blocks_of


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
    means: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean log pseudo-likelihood per spin of a model of ``patterns``.

    .. math:: \frac1{MN} \sum_{a,i} \log\frac1{1+e^{-2 s_i^a h_i^a}}, \qquad
              h_i = b_i + \sum_\mu \frac{g_\mu}N \zeta^\mu_i \sum_{j\ne i} \zeta^\mu_j s_j

    Missing entries are left out of the mean; in the field on an observed spin they are taken at
    their means given other observed ones (:func:`dualtap.local_fields.cross_filled`).
    No patterns and no fields give -log 2, that of independent random spins.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    patterns : array-like of shape (k, n_spins)
        The ζ^μ; a spin of 0 is not in the pattern.
    beta : float, optional
        The strength of all patterns; either this or ``strengths``.
    fields : array-like of shape (n_spins,), optional
        The b_i; zero by default.
    strengths : array-like of shape (k,), optional
        The g_μ, of any sign.
    means : array-like of shape (n_spins,), optional
        Means of the spins, where missing entries start from; zero by default.
    sample_weight : array-like of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.

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
    sums, counts = _log_pseudo_likelihoods(X, patterns, beta, fields, strengths, means)
    w = np.ones(len(sums)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if not (w * counts).any():
        raise ValueError("X has no observed entry")
    return float((w * sums).sum() / (w * counts).sum())


def sample_pseudo_likelihoods(
    X: ArrayLike | Spins,
    patterns: ArrayLike,
    beta: float | None = None,
    fields: ArrayLike | None = None,
    *,
    strengths: ArrayLike | None = None,
    means: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Return each sample's mean log pseudo-likelihood per observed spin.

    Their mean, weighted by observed entries, is :func:`pseudo_likelihood`. Low values are samples
    that the model does not explain.

    Parameters
    ----------
    X, patterns, beta, fields, strengths, means : as in :func:`pseudo_likelihood`

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
    sums, counts = _log_pseudo_likelihoods(X, patterns, beta, fields, strengths, means)
    means = np.full(len(sums), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _log_pseudo_likelihoods(
    X: ArrayLike | Spins,
    patterns: ArrayLike,
    beta: float | None,
    fields: ArrayLike | None,
    strengths: ArrayLike | None,
    means: ArrayLike | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return Σ_i log P(s_i | rest) over the observed entries of each sample, and their number."""
    spins = X if isinstance(X, Spins) else DenseSpins(np.asarray(X).astype(np.int8), "-1/+1")
    zeta = np.asarray(patterns, dtype=np.float32)
    g = as_strengths(len(zeta), beta, strengths)
    b = None if fields is None else as_fields(fields, spins.n_spins)
    mean = None if means is None else as_fields(means, spins.n_spins)
    result = blocks_of(spins, held=False).map(lambda S: block_likelihoods(S, zeta, g, b, mean))
    return result[:, 0], result[:, 1].astype(np.int64)


def block_likelihoods(
    S: NDArray[np.float32],
    patterns: NDArray[np.float32],
    strengths: NDArray[np.float64],
    fields: NDArray[np.float64] | None,
    means: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return Σ_i log P(s_i | rest) over the observed entries of each sample, and their number.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1, or 0 for a missing entry.
    patterns, strengths, fields, means : as in :func:`dualtap.local_fields.filled`

    Returns
    -------
    array of shape (n_samples, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.metrics.likelihoods import block_likelihoods
    >>> S, zeta = np.array([[1, 1, 0]], np.float32), np.ones((1, 3), np.float32)
    >>> block_likelihoods(S, zeta, np.array([0.0]), None, None).round(4)
    array([[-1.3863,  2.    ]])
    """
    total = log_likelihoods(S, observed_fields(S, patterns, strengths, fields, means))
    return np.column_stack([total, np.count_nonzero(S, axis=1)])
