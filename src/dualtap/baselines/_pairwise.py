"""What every fitted pairwise Ising model has: couplings, fields, and the score they give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dualtap._validation import TakesSpins, checked_weights, validated_spins
from dualtap.baselines.regressions import ising_pseudo_likelihood
from dualtap.edges import HasCouplings, RowsOfJ


class PairwiseIsing(TakesSpins, HasCouplings, BaseEstimator):
    """An estimator that learns ``couplings_`` and ``fields_``."""

    couplings_: NDArray[np.float64]
    fields_: NDArray[np.float64]

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
