"""`PseudoLikelihood`: couplings of a pairwise Ising model by N regressions at once."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._validation import Interval, StrOptions
from dualtap.baselines._pairwise import PairwiseIsing, few_samples
from dualtap.baselines.regressions import (
    GRID,
    FloatArray,
    Minimum,
    PenalisedLoss,
    RegularizationPath,
    ising_pseudo_likelihood,
    minimise,
    regularization_path,
    symmetrised,
)
from dualtap.spins import Spins
from dualtap.spins.weights import divided

_HELD_OUT = 0.2


class PairwiseRegressions(PairwiseIsing):
    """Couplings by N regressions at once, λ given or chosen by held-out samples.

    A subclass says which loss is minimised, and how.
    """

    _method = "L-BFGS"
    _precision: type[np.floating[Any]] = np.float32
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "regularization": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "fields": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        regularization: float | Literal["auto"] = "auto",
        *,
        fields: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.regularization = regularization
        self.fields = fields
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _learn(self, spins: Spins) -> None:
        self.path_ = self._path(spins) if self.regularization == "auto" else None
        self.regularization_ = float(self.regularization if self.path_ is None else self.path_.best)
        found = self._minimum(self._loss(spins, self.regularization_))
        if not found.converged:
            warnings.warn(
                f"{self._method} has not converged within {self.max_iter} iterations: raise "
                "max_iter, tol or regularization",
                ConvergenceWarning,
                stacklevel=4,  # past fit and scikit-learn's wrapper, to the caller of fit
            )
        self.n_iter_ = found.n_iter
        self.couplings_, self.fields_ = symmetrised(found.weights)

    def _loss(self, spins: Spins, regularization: float) -> PenalisedLoss:
        """Return what is minimised."""
        S = spins.values.astype(self._precision)
        return PenalisedLoss(S, self.fields, regularization, spins.weights)

    def _minimum(self, loss: PenalisedLoss, start: FloatArray | None = None) -> Minimum:
        """Return its minimum."""
        return minimise(loss, start, self.tol, self.max_iter)

    def _grid(self, loss: PenalisedLoss) -> FloatArray:
        """Return the λ to try, from large to small."""
        return GRID

    def _path(self, spins: Spins) -> RegularizationPath:
        """Hold samples out and go down the grid."""
        if few := few_samples(spins):
            raise ValueError(
                f'regularization="auto" holds samples out and X has {few}: give a number'
            )
        n_held_out = max(1, round(_HELD_OUT * spins.total_weight))
        held_out, rest = divided(spins, n_held_out, as_generator(self.random_state))
        loss = self._loss(rest, GRID[0])
        grid = self._grid(loss)
        with progress("λ", len(grid), bool(self.verbose)) as advance:
            return regularization_path(
                loss,
                lambda J, h: ising_pseudo_likelihood(held_out.values, J, h, held_out.weights),
                self._minimum,
                advance,
                grid,
            )


class PseudoLikelihood(PairwiseRegressions):
    r"""Couplings of a pairwise Ising model by L2-regularised maximum pseudo-likelihood.

    The model is :math:`P(s) \propto \exp(\sum_{i<j} J_{ij} s_i s_j + \sum_i b_i s_i)`, β included
    in J and b. Minimised is

    .. math:: -\frac1M \sum_{a,i} \log\sigma(2 s_i^a h_i^a)
              + \frac\lambda2 \big(\|J\|^2 + \|b\|^2\big), \qquad
              h_i = \sum_{j\ne i} J_{ij} s_j + b_i,

    over all entries off the diagonal of J, those of (i, j) and (j, i) apart: N independent
    regressions, solved as one problem. Afterwards :math:`J \leftarrow (J + J^\top)/2`. The fields
    are penalised like couplings (to a spin that is always up), so nothing diverges where spins
    are separable or constant.

    Missing entries are absent: they act on no other spin, and their own terms are left out.

    Parameters
    ----------
    regularization : "auto" or float
        λ. "auto" takes, from a logarithmic grid, the one with the best pseudo-likelihood on a
        fifth of the samples, fitted on the others; the final fit is on all.
    fields : bool
        Learn fields b.
    tol : float
        Stop when an iteration lowers the objective by a smaller share of it.
    max_iter : int
        Iterations after which L-BFGS gives up.
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
    >>> from dualtap.baselines import PseudoLikelihood
    >>> teacher = dt.HopfieldModel.random(n_spins=50, n_patterns=2, beta=0.8, random_state=0)
    >>> X = teacher.sample(2000, random_state=1)
    >>> model = PseudoLikelihood(random_state=0).fit(X)
    >>> bool(model.path_.score.max() > model.path_.score[0])
    True
    >>> J = teacher.beta * teacher.couplings()
    >>> bool(abs(model.couplings_ - J).mean() < abs(J).mean())
    True
    """
