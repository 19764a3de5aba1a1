r"""What pure noise looks like in a spectrum.

The singular values of a matrix of independent entries of unit variance end at the edge of the
Marchenko–Pastur law, :math:`\sqrt M + \sqrt N`, and the largest one fluctuates around it by the
law of Tracy and Widom. What lies above is signal.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted

LEVEL = 1.0
"""Tracy–Widom deviate above which data are not noise; the false-positive rate on independent random
spins is 3 to 4 %."""
NEXT_LEVEL = 2.0
"""The same for every direction after the first: 1 %, for there are many of them."""

_GAP = 3.0  # ratio of successive squared singular values that settles the rank at once;
_NEAR_EDGE = 0.2  # the more, the higher above the noise edge the next one lies
_DISTANCES = (-14.0, 14.0)  # logs of where the edge of unequal rows is looked for
_SINKHORN_ROUNDS, _BALANCED = 10, 1e-4
_WITHOUT_NOISE = 1e12  # times the variance of the noise: nothing is seen of it beside that


def noise_edge(n_samples: float, n_spins: float) -> tuple[float, float]:
    r"""Return centre and width of the largest squared singular value of pure noise.

    .. math:: \mu = (\sqrt M + \sqrt N)^2, \qquad
              \sigma = (\sqrt M + \sqrt N)\,(1/\sqrt M + 1/\sqrt N)^{1/3}.

    Examples
    --------
    >>> from dualtap.subspace.noise import noise_edge
    >>> noise_edge(100, 400)
    (900.0, 15.9...)
    """
    centre, width = _edges(np.array(n_samples), np.array(n_spins))
    return float(centre), float(width)


def edge_of_unequal(
    sizes: NDArray[np.floating[Any]], weights: NDArray[np.floating[Any]] | None, n_spins: float
) -> float:
    r"""Return the largest squared singular value of noise whose rows differ in size.

    .. math:: \min_{x > \max_a r_a} x \Big(N + \sum_a \frac{w_a r_a}{x - r_a}\Big)

    for rows of variances r (Silverstein and Choi 1995); :func:`noise_edge` where all are 1.

    Parameters
    ----------
    sizes : array of shape (n_rows,)
        Variance of the entries of each row.
    weights : array of shape (n_rows,), optional
        Rows that each stands for.
    n_spins : int or float

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.noise import edge_of_unequal
    >>> round(edge_of_unequal(np.ones(100), None, 400), 3)
    900.0
    """
    r = np.asarray(sizes, dtype=np.float64)
    wr = r if weights is None else weights * r
    largest = float(r.max())

    def edge(log_distance: float) -> float:
        x = largest * (1 + np.exp(log_distance))
        return float(x * (n_spins + (wr / (x - r)).sum()))

    return float(minimize_scalar(edge, bounds=_DISTANCES, method="bounded").fun)


def mean_sizes(
    sizes: NDArray[np.floating[Any]], weights: NDArray[np.floating[Any]] | None
) -> tuple[float, float]:
    """Return the means of the two groups that sizes fall into, cut where these differ most.

    The cut has the largest variance between the groups (Otsu 1979).

    Parameters
    ----------
    sizes, weights : as in :func:`edge_of_unequal`

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.noise import mean_sizes
    >>> mean_sizes(np.array([1.0, 9.0, 3.0]), None)
    (2.0, 9.0)
    """
    order = np.argsort(sizes)
    r = np.asarray(sizes, dtype=np.float64)[order]
    w = np.ones(len(r)) if weights is None else np.asarray(weights, dtype=np.float64)[order]
    n, total = w.cumsum(), (w * r).cumsum()
    if len(r) < 2:
        return float(r[0]), float(r[0])
    below, above = n[:-1], n[-1] - n[:-1]
    small, large = total[:-1] / below, (total[-1] - total[:-1]) / above
    cut = np.argmax(below * above * np.square(large - small))
    return float(small[cut]), float(large[cut])


def _edges(
    m: NDArray[np.generic], n: NDArray[np.generic]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.sqrt(m, dtype=np.float64), np.sqrt(n, dtype=np.float64)
    return (a + b) ** 2, (a + b) * (1 / a + 1 / b) ** (1 / 3)


def squared_cosines(
    values: NDArray[np.float64], total: float, n_samples: float, n_spins: int
) -> NDArray[np.float64]:
    r"""Return the squared cosine of each direction with the signal behind it.

    A signal that adds θ to the variance of unit noise along its direction shows at
    :math:`\lambda / M \sigma^2 = (1 + \theta)(1 + \gamma / \theta)`, :math:`\gamma = N / M`,
    along a direction with :math:`c^2 = (1 - \gamma / \theta^2) / (1 + \gamma / \theta)`; 0 at and
    below the edge (Paul 2007). The noise is what the values leave of the total.

    Parameters
    ----------
    values : array of shape (k,)
        Squared singular values of all signals.
    total, n_samples, n_spins : as in :func:`deviates`

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.noise import squared_cosines
    >>> rng = np.random.default_rng(0)
    >>> S = rng.normal(size=(1000, 500)) + 0.1 * rng.normal(size=(1000, 1))
    >>> u, s, v = np.linalg.svd(S)
    >>> one = squared_cosines(s[:1] ** 2, (s**2).sum(), 1000, 500)[0]
    >>> bool(abs(one - v[0].sum() ** 2 / 500) < 0.02)
    True
    """
    M, N, k = n_samples, n_spins, len(values)
    noise = max(total - float(values.sum()), 1e-300) / max((M - k) * (N - k), 1)
    gamma = N / M
    above = np.minimum(values / (noise * M), _WITHOUT_NOISE)
    twice = np.maximum(above - 1 - gamma, 2 * np.sqrt(gamma))
    theta = (twice + np.sqrt(np.square(twice) - 4 * gamma)) / 2
    result: NDArray[np.float64] = (1 - gamma / np.square(theta)) / (1 + gamma / theta)
    return result


def deviates(
    values: NDArray[np.float64], total: float, n_samples: float, n_spins: int, n_removed: int = 0
) -> NDArray[np.float64]:
    r"""Return by how many widths each squared singular value exceeds the noise edge.

    The noise variance is what the values up to and including the k-th leave of the total, so that
    earlier signals do not hide later ones (Kritchman and Nadler):
    :math:`t_k = (\lambda_k / \hat\sigma_k^2 - \mu_k) / \sigma_k`, with M and N reduced by the
    number of directions in front.

    Parameters
    ----------
    values : array of shape (k,)
        Descending.
    total : float
        Sum of all squared singular values.
    n_samples : int or float
        M, the sum of the weights of the rows.
    n_spins : int
    n_removed : int
        Directions taken out of the data before.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.noise import deviates
    >>> S = np.random.default_rng(0).choice([-1.0, 1.0], size=(100, 300))
    >>> values = np.linalg.svd(S, compute_uv=False) ** 2
    >>> bool(deviates(values[:3], S.size, 100, 300).max() < 1.1)
    True
    """
    k = np.arange(len(values))
    m = np.maximum(n_samples - n_removed - k, 1)
    n = np.maximum(n_spins - n_removed - k, 1)
    rest = np.maximum(total - np.cumsum(values), 1e-9 * total + 1e-300)
    variance = rest / (np.maximum(m - 1, 1) * np.maximum(n - 1, 1))
    centre, width = _edges(m, n)
    result: NDArray[np.float64] = (values / variance - centre) / width
    return result


def count_signals(t: NDArray[np.float64]) -> int:
    """Return how many leading deviates lie above ``LEVEL`` and ``NEXT_LEVEL``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.noise import count_signals
    >>> count_signals(np.array([9.0, 4.0, 1.5, 7.0])), count_signals(np.array([1.5, 1.5]))
    (2, 1)
    """
    above = t > np.where(np.arange(len(t)) == 0, LEVEL, NEXT_LEVEL)
    return len(t) if above.all() else int(np.argmin(above))


def likely_rank(
    values: NDArray[np.float64], t: NDArray[np.float64], n_samples: float, n_spins: int
) -> tuple[int, bool]:
    """Return after how many squared singular values they fall most, and if that settles the rank.

    Parameters
    ----------
    values, t : array of shape (k,)
        Descending, and their deviates.
    n_samples, n_spins : int or float

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.noise import likely_rank
    >>> likely_rank(np.array([900.0, 800.0, 60.0, 55.0]), np.array([90.0, 80.0, 0.0, 0.0]), 20, 40)
    (2, True)
    """
    # Near full rank the values of noise fall to zero, and their ratios mean nothing.
    values = values[: int(3 * min(n_samples, n_spins) // 4) + 1]
    ratio = values[:-1] / np.maximum(values[1:], 1e-9 * values[0] + 1e-300)
    if not len(ratio):
        return 1, False
    k = int(np.argmax(ratio)) + 1
    height = 0.0
    if k < len(t):  # of the next value above the noise edge, relative to it
        centre, width = noise_edge(max(n_samples - k, 1), max(n_spins - k, 1))
        height = max(float(t[k]) * width / centre, 0.0)
    return k, bool(ratio[k - 1] > _GAP * (1 + height / _NEAR_EDGE) ** 2)


def balanced(residual: SampleMatrix, variance: SampleMatrix) -> SampleMatrix:
    """Scale rows and columns so that the noise of each has unit variance on average.

    Parameters
    ----------
    residual : SampleMatrix
    variance : SampleMatrix
        Variances of its entries.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.noise import balanced
    >>> ones = blocks_of(as_spins(np.ones((2, 2))))
    >>> size = np.array([[2.0], [4.0]], dtype=np.float32)
    >>> residual = ones.changed(lambda S, a: a * S, size)
    >>> balanced(residual, ones.changed(lambda S, a: a**2 * S, size)).at_hand()
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    n_rows, n_columns = residual.total_weight, residual.n_spins
    column = np.ones(n_columns, np.float32)
    tiny = np.float32(1e-6)
    for _ in range(_SINKHORN_ROUNDS):
        function = partial(_balanced_rows, column=column, tiny=tiny)
        row, total = variance.map_sum(function, variance.weights)
        before, column = column, n_rows / np.maximum(total, tiny * n_rows)
        if np.abs(column - before).max() < _BALANCED * np.abs(column).max():
            break
    right = np.sqrt(column)
    return residual.changed(lambda S, left: S * left * right, np.sqrt(row)[:, None])


def _balanced_rows(D: F32, weights: F32 | None, column: F32, tiny: np.float32) -> tuple[F32, F32]:
    """Return the scales that give the rows of a block unit variance, and what it adds to sites."""
    n_columns = D.shape[1]
    row: F32 = n_columns / np.maximum(D @ column, tiny * n_columns)
    return row, weighted(row, weights) @ D
