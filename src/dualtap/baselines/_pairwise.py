"""What every fitted pairwise Ising model has: couplings, fields, and the score they give."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dualtap._validation import (
    TakesSpins,
    checked_weights,
    counted,
    fit_context,
    validated_spins,
)
from dualtap.baselines.regressions import ising_pseudo_likelihood
from dualtap.edges import HasCouplings, RowsOfJ
from dualtap.spins import Spins


class PairwiseIsing(TakesSpins, HasCouplings, BaseEstimator):
    """An estimator that learns ``couplings_`` and ``fields_``, by ``_learn``."""

    couplings_: NDArray[np.float64]
    fields_: NDArray[np.float64]

    @fit_context()
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Fit the couplings to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            ±1, 0/1 or boolean; NaN or None where a value is missing. Sparse matrices are 0/1.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Number of samples that each row stands for: 3 is the same as three equal rows, 0 as
            none.

        Returns
        -------
        self
        """
        self._learn(counted(validated_spins(self, X, reset=True), sample_weight))
        return self

    @abstractmethod
    def _learn(self, spins: Spins) -> None:
        """Set all that is learned."""

    def _rows_of_couplings(self) -> RowsOfJ:
        return self.couplings_.__getitem__

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return the mean log pseudo-likelihood per spin of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            Missing entries take no part.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Number of samples that each row stands for, 1 by default.

        Returns
        -------
        float
            -log 2 for independent random spins, 0 for certainty.
        """
        check_is_fitted(self)
        values = validated_spins(self, X).values
        weights = checked_weights(sample_weight, len(values))
        return ising_pseudo_likelihood(values, self.couplings_, self.fields_, weights)


def few_samples(spins: Spins) -> str:
    """Return how few samples there are if there are fewer than two, for a message."""
    M = spins.total_weight
    if M >= 2:
        return ""
    return "only 1 sample" if M == 1 else f"weights that add up to {M:g} samples"
