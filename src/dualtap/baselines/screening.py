r"""Interaction screening: RISE and logRISE, couplings of a pairwise Ising model with an L1 penalty.

The loss of spin i is not a likelihood but

.. math:: S_i = \frac1M \sum_a \exp(-s_i^a h_i^a), \qquad h_i = \sum_{j\ne i} J_{ij} s_j + b_i,

or its logarithm: with the true couplings each factor screens what acts on spin i, so that the
expected gradient vanishes there.
"""

from __future__ import annotations

from math import inf
from typing import Any, ClassVar, Literal

import numpy as np

from dualtap._random import RandomState
from dualtap._threads import one_blas_thread
from dualtap.baselines.pseudo_likelihood import PairwiseRegressions
from dualtap.baselines.regressions import FloatArray, Minimum, PenalisedLoss, RealArray
from dualtap.spins import Spins

_DECADES, _PER_DECADE = 3, 3  # of the λ of a path, below the one that leaves no coupling
_LONGER = 0.9  # factor by which the steepness is tried smaller in every iteration
_ROUNDING = 1e-24  # square of a step too short to be judged
_STEADY = 3  # iterations in a row that must lower the objective by less than the tolerance


class ScreeningLoss(PenalisedLoss):
    r"""The interaction screening objectives of all N spins, or their logarithms.

    .. math:: F(W) = \sum_i S_i + \lambda \|W\|_1 \qquad\text{or}\qquad
              F(W) = \sum_i \log S_i + \lambda \|W\|_1,

    S_i over the samples in which spin i was observed. To S_i in the logarithm 1/M² is added: where
    spins are separable there would be no minimum. Laid out like
    :class:`dualtap.baselines.regressions.PenalisedLoss`, whose call is of the L2 penalty;
    :func:`minimise_l1` takes this one.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1 with 0 for missing.
    fields : bool
    regularization : float
        λ; may be changed between calls.
    logarithm : bool
    weights : array of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.screening import ScreeningLoss
    >>> loss = ScreeningLoss(np.array([[1.0, 1.0], [1.0, -1.0]]), False, 0.1, logarithm=False)
    >>> loss.columns(np.zeros(loss.shape))[0]
    array([1., 1.])
    """

    def __init__(
        self,
        S: RealArray,
        fields: bool,
        regularization: float,
        logarithm: bool,
        weights: FloatArray | None = None,
    ) -> None:
        super().__init__(S, fields, regularization, weights)
        self.logarithm = logarithm

    def _terms(self, x: RealArray, slopes: RealArray) -> FloatArray:
        """Return the objective of every spin, and put its slopes."""
        np.negative(x, out=x)
        with np.errstate(over="ignore"):  # a step that is refused for it
            np.exp(x, out=slopes)
        if self._rows is not None:
            slopes *= self._rows
        # Not 0 where a spin was never observed.
        n_observed = self._total - self._n_missing
        scale: FloatArray = np.where(n_observed > 0, n_observed, 1.0)
        values: FloatArray = slopes.sum(axis=0, dtype=np.float64) - self._n_missing
        values /= scale
        if self.logarithm:
            values += 1 / self._total**2
            scale = scale * values
            values = np.log(values)
        np.divide(slopes, -scale, out=slopes, casting="same_kind")
        return values


def minimise_l1(
    loss: PenalisedLoss, start: FloatArray | None = None, tol: float = 1e-8, max_iter: int = 1000
) -> Minimum:
    r"""Minimise a loss with the penalty :math:`\lambda\|W\|_1` by accelerated proximal steps.

    FISTA, every regression with a step and a momentum of its own: the step is halved until the
    quadratic bound holds, the momentum restarts where it points uphill.

    Parameters
    ----------
    loss : PenalisedLoss
    start : array of shape ``loss.shape``, optional
    tol : float
        Stop when steps lower the objective by a smaller share of it.
    max_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.screening import ScreeningLoss, minimise_l1
    >>> S = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> found = minimise_l1(ScreeningLoss(S, False, 0.1, logarithm=False))
    >>> found.weights.round(3)  # 3 e^{-J} - e^J = 0.4, from the stationary point
    array([[0.   , 0.434],
           [0.434, 0.   ]])
    """
    W = np.zeros(loss.shape) if start is None else start.copy()
    Y, momentum = W.copy(), np.ones(loss.shape[1])
    steepness = np.ones(loss.shape[1])
    penalty = loss.regularization
    last, steady = inf, 0
    with one_blas_thread():
        for iteration in range(1, max_iter + 1):
            new, values, steepness = _proximal_step(loss, Y, steepness)
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            move = new - W
            uphill = ((Y - new) * move).sum(axis=0) > 0
            Y = new + np.where(uphill, 0.0, (momentum - 1) / grown) * move
            momentum = np.where(uphill, 1.0, grown)
            W = new
            objective = float(values.sum()) + penalty * float(np.abs(W).sum())
            steady = steady + 1 if abs(last - objective) <= tol * abs(objective) else 0
            last = objective
            if steady >= _STEADY:
                return Minimum(W, iteration, True)
    return Minimum(W, max_iter, False)


def _proximal_step(
    loss: PenalisedLoss, Y: FloatArray, steepness: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the soft-thresholded gradient step from Y, the loss there, and the steepness used."""
    _, gradient = loss.columns(Y)
    L = steepness * _LONGER
    while True:
        target = Y - gradient / L
        new = np.copysign(np.maximum(np.abs(target) - loss.regularization / L, 0.0), target)
        new *= loss.free
        step = new - Y
        values, there = loss.columns(new)
        # By convexity, what makes the quadratic bound hold; slopes round less than values do.
        curvature = ((there - gradient) * step).sum(axis=0)
        square = np.square(step).sum(axis=0)
        refused = ~(curvature <= L / 2 * square) & (square > _ROUNDING)
        if not refused.any():
            return new, values, L
        L = np.where(refused, 2 * L, L)


class InteractionScreening(PairwiseRegressions):
    r"""Couplings of a pairwise Ising model by interaction screening (RISE, logRISE).

    Minimised, for every spin by itself, is

    .. math:: \frac1M \sum_a \exp\Big(-s_i^a \big(\sum_{j\ne i} J_{ij} s_j^a + b_i\big)\Big)
              + \lambda \Big(\sum_j |J_{ij}| + |b_i|\Big)

    (RISE), or the same with the logarithm of the first term plus 1/M² (logRISE), which tolerates
    larger couplings; afterwards :math:`J \leftarrow (J + J^\top)/2`. β is included in J and b.

    Parameters
    ----------
    regularization : "auto" or float
        λ. "auto" takes, from a logarithmic grid below the λ that leaves no coupling, the one with
        the best pseudo-likelihood on a fifth of the samples, fitted on the others; the final fit
        is on all.
    logarithm : bool
        Minimise the logarithm: logRISE.
    fields : bool
        Learn fields b.
    tol : float
        Stop when iterations lower the objective by a smaller share of it.
    max_iter : int
        Iterations after which the minimisation gives up.
    random_state : int, RandomState, Generator or None
        Which samples "auto" holds out.
    verbose : bool
        Show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    couplings_ : array of shape (n_spins, n_spins)
        Symmetric, zero diagonal.
    fields_ : array of shape (n_spins,)
        Zero if ``fields=False``.
    regularization_ : float
        λ, given or chosen.
    path_ : RegularizationPath or None
        The grid with its held-out scores; None when λ was given.
    n_iter_ : int
        Iterations of the final fit.
    n_features_in_ : int
        Number of spins.
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.baselines import InteractionScreening
    >>> teacher = dt.HopfieldModel.random(n_spins=30, n_patterns=2, beta=0.8, random_state=0)
    >>> X = teacher.sample(2000, random_state=1)
    >>> model = InteractionScreening(random_state=0).fit(X)
    >>> J = teacher.beta * teacher.couplings()
    >>> bool(abs(model.couplings_ - J).mean() < abs(J).mean())
    True
    """

    _method = "FISTA"
    _precision = np.float64  # exponentials of fields have too wide a range for less
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PairwiseRegressions._parameter_constraints,
        "logarithm": ["boolean"],
    }

    def __init__(
        self,
        regularization: float | Literal["auto"] = "auto",
        *,
        logarithm: bool = False,
        fields: bool = False,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            regularization,
            fields=fields,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.logarithm = logarithm

    def _loss(self, spins: Spins, regularization: float) -> PenalisedLoss:
        S = spins.values.astype(self._precision)
        return ScreeningLoss(S, self.fields, regularization, self.logarithm, spins.weights)

    def _minimum(self, loss: PenalisedLoss, start: FloatArray | None = None) -> Minimum:
        return minimise_l1(loss, start, self.tol, self.max_iter)

    def _grid(self, loss: PenalisedLoss) -> FloatArray:
        """Return λ below the smallest one that leaves no coupling, the steepest slope at zero."""
        largest = float(np.abs(loss.columns(np.zeros(loss.shape))[1]).max())
        steps = np.arange(1, _DECADES * _PER_DECADE + 1)
        smallest = float(np.finfo(np.float32).tiny)  # for data without any correlation
        grid: FloatArray = max(largest, smallest) * 10.0 ** (-steps / _PER_DECADE)
        return grid
