r"""The regressions of a pairwise Ising model: their loss, its minimum, the path of minima in λ.

The law of a spin given the others is a logistic regression,

.. math:: P(s_i \mid s_{\setminus i}) = \sigma(2 s_i h_i), \qquad
          h_i = \sum_{j\ne i} J_{ij} s_j + b_i,

and the N of them are one smooth convex problem, here given to L-BFGS as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit

from dualtap._progress import Advance
from dualtap._threads import one_blas_thread
from dualtap.local_fields import log_likelihoods, log_sigmoid

FloatArray = NDArray[np.float64]
RealArray = NDArray[np.float32] | NDArray[np.float64]

GRID = np.logspace(2, -4, 19)
"""The λ of a path: three values a decade."""

_PATIENCE = 2  # values of the grid in a row without a better score, after which it is left
_CORRECTIONS = 6  # of L-BFGS: each is two more arrays of the size of the couplings


def ising_pseudo_likelihood(
    X: ArrayLike,
    couplings: ArrayLike,
    fields: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean log pseudo-likelihood per spin of a pairwise Ising model.

    .. math:: \frac1{MN} \sum_{a,i} \log \sigma(2 s_i^a h_i^a), \qquad
              h_i = \sum_{j\ne i} J_{ij} s_j + b_i.

    Missing entries are left out of the mean and add nothing to the fields of others.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    couplings : array-like of shape (n_spins, n_spins)
        β included, zero on the diagonal.
    fields : array-like of shape (n_spins,), optional
        β included.
    sample_weight : array-like of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.

    Examples
    --------
    >>> from dualtap.baselines.regressions import ising_pseudo_likelihood
    >>> round(ising_pseudo_likelihood([[1, 1], [-1, -1]], [[0, 1], [1, 0]]), 4)
    -0.1269
    """
    S = np.asarray(X, dtype=np.float32)
    w = np.ones(len(S)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    count = float(w @ np.count_nonzero(S, axis=1))
    if count == 0:
        raise ValueError("X has no observed entry")
    with one_blas_thread():
        h = S @ np.asarray(couplings, dtype=np.float32).T
    if fields is not None:
        h += np.asarray(fields, dtype=np.float32)
    return float(w @ log_likelihoods(S, h) / count)


class PenalisedLoss:
    r"""The loss of all N regressions and its gradient, as a function of one flat vector.

    .. math:: F(W) = -\frac1M \sum_{a,i} \log\sigma(2 s_i^a h_i^a) + \frac\lambda2 \|W\|^2, \qquad
              h = A W, \qquad
              \nabla F = -\frac2M A^\top \big[s \odot \sigma(-2 s \odot h)\big] + \lambda W,

    the diagonal of the gradient being set to zero. A is the samples, with a last column of ones
    if there are fields; column i of W holds the couplings (and field) that act on spin i. A
    missing entry is 0 in A and in s: it acts on no spin, and its own term is left out. A row of
    weight w counts as w of the M samples.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1 with 0 for missing; its floating type is that of the products.
    fields : bool
    regularization : float
        λ; may be changed between calls.
    weights : array of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.

    Attributes
    ----------
    free : array of shape ``shape``, bool
        Entries of W that may differ from zero: all but the diagonal, unless it is replaced.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.regressions import PenalisedLoss
    >>> loss = PenalisedLoss(np.array([[1.0, 1.0], [1.0, -1.0]]), fields=True, regularization=0.1)
    >>> value, gradient = loss(np.zeros(loss.shape).ravel())
    >>> round(value, 4)
    1.3863
    >>> gradient.reshape(loss.shape)
    array([[ 0.,  0.],
           [ 0.,  0.],
           [-1.,  0.]])
    """

    def __init__(
        self,
        S: RealArray,
        fields: bool,
        regularization: float,
        weights: FloatArray | None = None,
    ) -> None:
        self.regularization = regularization
        self._spins = S
        w = np.ones(len(S)) if weights is None else weights
        self._total = float(w.sum())
        self._rows: Any = None if weights is None else w.astype(S.dtype)[:, None]
        self._inputs = np.column_stack([S, np.ones(len(S), S.dtype)]) if fields else S
        self.shape = (self._inputs.shape[1], S.shape[1])
        self.free: NDArray[np.bool_] = np.ones(self.shape, dtype=np.bool_)
        np.fill_diagonal(self.free[: S.shape[1]], False)
        self._n_missing: FloatArray = w @ (S == 0)
        # Every call needs these; new ones each time would cost page faults.
        self._weights = np.empty(self.shape, S.dtype)
        self._h = np.empty_like(S)
        self._residuals = np.empty_like(S)

    def columns(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of every regression without its penalty, and the gradient of all.

        Parameters
        ----------
        W : array of shape ``shape``

        Returns
        -------
        values : array of shape (n_spins,)
        gradient : array of shape ``shape``
            Zero where W is not free.
        """
        S, x = self._spins, self._h
        np.copyto(self._weights, W, casting="same_kind")
        np.matmul(self._inputs, self._weights, out=x)
        x *= S
        values = self._terms(x, self._residuals)
        self._residuals *= S
        gradient = np.matmul(self._inputs.T, self._residuals, out=self._weights).astype(np.float64)
        gradient *= self.free
        return values, gradient

    def _terms(self, x: RealArray, slopes: RealArray) -> FloatArray:
        """Return the loss of every regression from x = s ⊙ h, and put its slopes there.

        The x may be overwritten. An entry that is missing has x = 0.
        """
        x *= -2
        expit(x, out=slopes)
        slopes *= -2 / self._total
        np.negative(x, out=x)
        terms = log_sigmoid(x, out=x)
        if self._rows is not None:
            slopes *= self._rows
            terms *= self._rows
        total = terms.sum(axis=0, dtype=np.float64)
        values: FloatArray = -(total + self._n_missing * log(2)) / self._total
        return values

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss and its gradient at ``w``, of the length of W."""
        W = w.reshape(self.shape)
        values, gradient = self.columns(W)
        gradient += self.regularization * W
        gradient *= self.free
        return float(values.sum()) + self.regularization / 2 * float(w @ w), gradient.ravel()


class Minimum(NamedTuple):
    """Where L-BFGS ended."""

    weights: FloatArray
    """Shape of :attr:`PenalisedLoss.shape`."""
    n_iter: int
    converged: bool


def minimise(
    loss: PenalisedLoss, start: FloatArray | None = None, tol: float = 1e-8, max_iter: int = 1000
) -> Minimum:
    """Minimise the loss by L-BFGS, from zero or from another minimum.

    Parameters
    ----------
    loss : PenalisedLoss
    start : array of shape ``loss.shape``, optional
        With a zero diagonal, which no step then leaves.
    tol : float
        Stop when a step lowers the loss by a smaller share of it.
    max_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.regressions import PenalisedLoss, minimise
    >>> loss = PenalisedLoss(np.array([[1.0, 1.0], [-1.0, -1.0]]), False, regularization=0.1)
    >>> minimise(loss).weights.round(3)
    array([[0.   , 1.323],
           [1.323, 0.   ]])
    """
    first = np.zeros(loss.shape) if start is None else start
    with one_blas_thread():
        found = minimize(
            loss,
            first.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={
                "ftol": tol,
                "gtol": 0.0,
                "maxiter": max_iter,
                "maxfun": 10 * max_iter,
                "maxcor": _CORRECTIONS,
            },
        )
    # A line search that finds nothing lower (status 2) has met the rounding of the products.
    return Minimum(found.x.reshape(loss.shape), int(found.nit), found.status != 1)


def symmetrised(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return symmetric couplings, the mean of W and its transpose, and fields from W.

    The regressions of spins i and j both estimate J_ij, each on its own.

    Parameters
    ----------
    weights : array of shape (n_spins, n_spins) or (n_spins + 1, n_spins)
        A last row, if there is one, holds the fields.

    Returns
    -------
    couplings : array of shape (n_spins, n_spins)
    fields : array of shape (n_spins,)
        Zero without that row.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.regressions import symmetrised
    >>> J, h = symmetrised(np.array([[0.0, 1.0], [2.0, 0.0], [0.5, -0.5]]))
    >>> J
    array([[0. , 1.5],
           [1.5, 0. ]])
    >>> h
    array([ 0.5, -0.5])
    """
    n_spins = weights.shape[1]
    W = weights[:n_spins]
    fields = weights[n_spins] if len(weights) > n_spins else np.zeros(n_spins)
    return (W + W.T) / 2, fields.copy()


class RegularizationPath(NamedTuple):
    """What the choice of λ by held-out samples saw, from the largest λ down.

    Examples
    --------
    >>> from dualtap.baselines import RegularizationPath
    >>> path = RegularizationPath([1.0, 0.1, 0.01], [-0.6, -0.4, -0.5], [0.1, 0.8, 2.0])
    >>> path.best
    0.1
    """

    regularization: FloatArray
    """λ, shape (n_values,)."""
    score: FloatArray
    """Mean log pseudo-likelihood per spin of the held-out samples."""
    norm: FloatArray
    """Frobenius norm of the symmetric couplings."""

    @property
    def best(self) -> float:
        """λ of the best score."""
        return float(self.regularization[int(np.argmax(self.score))])


def regularization_path(
    loss: PenalisedLoss,
    score: Callable[[FloatArray, FloatArray], float],
    minimum: Callable[[PenalisedLoss, FloatArray | None], Minimum] = minimise,
    advance: Advance | None = None,
    grid: FloatArray = GRID,
) -> RegularizationPath:
    """Minimise the loss on a grid of λ from large to small, each from the last minimum.

    The grid, by default 100, 46, 22, 10, …, 1e-4, is left once two values in a row brought no
    better score: smaller λ take longer and overfit more.

    Parameters
    ----------
    loss : PenalisedLoss
        Of the training samples; its λ is changed.
    score : callable
        From couplings and fields to a number, the higher the better.
    minimum : callable
        :func:`minimise`, or the same with other options.
    advance : callable, optional
        Called after each λ.
    grid : array of shape (n_values,)
        The λ, from large to small.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.regressions import PenalisedLoss, regularization_path
    >>> S = np.sign(np.random.default_rng(0).normal(size=(50, 1)) * np.ones(3))
    >>> path = regularization_path(PenalisedLoss(S, False, 1.0), lambda J, h: -abs(J[0, 1] - 0.5))
    >>> round(path.best, 3), len(path.score)
    (0.464, 10)
    """
    rows: list[tuple[float, float, float]] = []
    weights, best = None, 0
    for index, value in enumerate(grid):
        loss.regularization = float(value)
        weights = minimum(loss, weights).weights
        J, h = symmetrised(weights)
        rows.append((loss.regularization, score(J, h), float(np.linalg.norm(J))))
        if advance is not None:
            advance(1, f"λ = {value:.2g}: held-out score {rows[-1][1]:.4f}")
        if rows[-1][1] > rows[best][1]:
            best = index
        elif index - best >= _PATIENCE:
            break
    return RegularizationPath(*np.array(rows).T)
