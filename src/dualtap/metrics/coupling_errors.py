"""How near the couplings that patterns imply are to true ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap.metrics.matching import as_rows


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
    n_spins = as_rows(truth).shape[1]
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
    m, zeta = as_rows(estimate), as_rows(truth)
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
