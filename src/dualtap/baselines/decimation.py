"""`DecimatedPseudoLikelihood`: the smallest couplings are removed until it begins to cost."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dualtap._validation import Interval
from dualtap.baselines._pairwise import PairwiseIsing
from dualtap.baselines.regressions import (
    FloatArray,
    Minimum,
    PenalisedLoss,
    minimise,
    symmetrised,
)
from dualtap.spins import Spins

_PATIENCE = 3  # steps in a row without a better tilted score, after which decimation ends


class DecimationPath(NamedTuple):
    """What decimation saw, from all couplings down.

    Examples
    --------
    >>> from dualtap.baselines import DecimationPath
    >>> path = DecimationPath([1.0, 0.5, 0.25], [-0.3, -0.31, -0.5], [0.0, 0.185, 0.095])
    >>> path.best
    0.5
    """

    share: FloatArray
    """Share of the pairs that still have a coupling, shape (n_steps,)."""
    score: FloatArray
    """Mean log pseudo-likelihood per spin of the samples, fitted with these."""
    tilted: FloatArray
    """The score less the straight line between all couplings and none."""

    @property
    def best(self) -> float:
        """Share with the largest tilted score."""
        return float(self.share[int(np.argmax(self.tilted))])


class DecimationStep(NamedTuple):
    """A fit with a part of the couplings."""

    share: float
    """Of the pairs that still have a coupling."""
    score: float
    """Mean log pseudo-likelihood per spin."""
    found: Minimum


def decimate(
    loss: PenalisedLoss, removed: float, tol: float = 1e-8, max_iter: int = 1000
) -> Iterator[DecimationStep]:
    """Yield the fit with all couplings, then with ever fewer, down to none.

    In every step the smallest go, both entries of a pair by the size of their mean, and the rest
    is fitted again.

    Parameters
    ----------
    loss : PenalisedLoss
        What is free in it is changed.
    removed : float
        Share of the remaining pairs that goes in a step, at least one.
    tol, max_iter
        As in :func:`dualtap.baselines.regressions.minimise`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.decimation import decimate
    >>> from dualtap.baselines.regressions import PenalisedLoss
    >>> S = np.sign(np.random.default_rng(0).normal(size=(200, 4)))
    >>> S[:150, 1] = S[:150, 0]
    >>> steps = list(decimate(PenalisedLoss(S, False, 0.01), removed=0.5))
    >>> [round(step.share, 2) for step in steps]
    [1.0, 0.5, 0.33, 0.17, 0.0]
    >>> np.flatnonzero(np.abs(steps[-2].found.weights) > 0.1)  # J_01 and J_10 are left
    array([1, 4])
    """
    n_spins = loss.shape[1]
    pairs = np.triu_indices(n_spins, k=1)
    kept = np.ones(len(pairs[0]), dtype=np.bool_)
    found = minimise(loss, None, tol, max_iter)
    while True:
        score = -float(loss.columns(found.weights)[0].mean())
        yield DecimationStep(float(kept.mean()) if len(kept) else 0.0, score, found)
        left = np.flatnonzero(kept)
        if len(left) == 0:
            return
        sizes = np.abs(symmetrised(found.weights)[0][pairs][left])
        n_removed = max(1, int(removed * len(left)))
        kept[left[np.argpartition(sizes, n_removed - 1)[:n_removed]]] = False
        free = np.zeros((n_spins, n_spins), dtype=np.bool_)
        free[pairs] = kept
        loss.free[:n_spins] = free | free.T
        found = minimise(loss, found.weights * loss.free, tol, max_iter)


class DecimatedPseudoLikelihood(PairwiseIsing):
    r"""Sparse couplings of a pairwise Ising model by decimation (Decelle and Ricci-Tersenghi).

    The pseudo-likelihood is maximised, the smallest couplings are set to zero, the rest is fitted
    again, and so on. Kept is the step with the largest tilted pseudo-likelihood

    .. math:: \mathcal{L}(x) - x\, \mathcal{L}(1) - (1 - x)\, \mathcal{L}(0),

    x being the share of pairs with a coupling: removing couplings that are not there costs less
    than the straight line, until true ones begin to go. Nothing is held out, nothing is random.

    Parameters
    ----------
    regularization : float
        Strength λ of a small L2 penalty, as in :class:`PseudoLikelihood`: without it couplings
        diverge where spins are separable.
    removed : float in (0, 1)
        Share of the remaining couplings that goes in a step.
    fields : bool
        Learn fields b.
    tol : float
        Stop a fit when an iteration lowers the objective by a smaller share of it.
    max_iter : int
        Iterations after which L-BFGS gives up.

    Attributes
    ----------
    couplings_ : array of shape (n_spins, n_spins)
        Symmetric, zero diagonal.
    fields_ : array of shape (n_spins,)
        Zero if ``fields=False``.
    path_ : DecimationPath
        The steps with their scores, up to some beyond the one that was kept.
    n_iter_ : int
        Iterations of the fit that was kept.
    n_features_in_ : int
        Number of spins.
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines import DecimatedPseudoLikelihood
    >>> X = np.sign(np.random.default_rng(0).normal(size=(300, 6)))
    >>> X[:200, 1] = X[:200, 0]
    >>> model = DecimatedPseudoLikelihood().fit(X)
    >>> np.argwhere(np.triu(model.couplings_))
    array([[0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "regularization": [Interval(Real, 0, None, closed="neither")],
        "removed": [Interval(Real, 0, 1, closed="neither")],
        "fields": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        regularization: float = 1e-3,
        *,
        removed: float = 0.2,
        fields: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.regularization = regularization
        self.removed = removed
        self.fields = fields
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, spins: Spins) -> None:
        loss = self._loss(spins)
        none = self._score_without_couplings(spins)
        rows: list[tuple[float, float, float]] = []
        best, kept = 0, None
        for step in decimate(loss, float(self.removed), self.tol, self.max_iter):
            all_of_them = rows[0][1] if rows else step.score
            line = step.share * all_of_them + (1 - step.share) * none
            rows.append((step.share, step.score, step.score - line))
            if kept is None or rows[-1][2] > rows[best][2]:
                best, kept = len(rows) - 1, step.found
            elif len(rows) - 1 - best >= _PATIENCE:
                break
        assert kept is not None
        self.path_ = DecimationPath(*np.array(rows).T)
        self.n_iter_ = kept.n_iter
        self.couplings_, self.fields_ = symmetrised(kept.weights)

    def _loss(self, spins: Spins) -> PenalisedLoss:
        # Which couplings are the smallest should not depend on rounding.
        S = spins.values.astype(np.float64)
        return PenalisedLoss(S, self.fields, float(self.regularization), spins.weights)

    def _score_without_couplings(self, spins: Spins) -> float:
        """Return the score of independent spins."""
        loss = self._loss(spins)
        loss.free[: loss.shape[1]] = False
        found = minimise(loss, None, self.tol, self.max_iter)
        return -float(loss.columns(found.weights)[0].mean())
