"""How well a trained RBM predicts samples: pseudo-likelihood, log Z, likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dualtap._random import RandomState
from dualtap._validation import checked_weights, validated_spins
from dualtap.rbm.likelihood import INCOMPLETE, LogPartition, PartitionMethod, log_partition
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import sample_scores
from dualtap.rbm.priors import FloatArray
from dualtap.spins import Spins
from dualtap.spins.matrix import blocks_of


class HasScores(ABC):
    """Scores of samples under the model of an estimator."""

    @abstractmethod
    def model(self) -> RBM:
        """Return the RBM that was learned."""

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return the exact mean log pseudo-likelihood per spin of X.

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
            -log 2 for independent fair spins, 0 for certain ones.
        """
        check_is_fitted(self)
        spins = validated_spins(self, X)
        weights = checked_weights(sample_weight, spins.n_samples)
        scores = self._log_probabilities(spins)
        total, n_observed = scores.sum(axis=0) if weights is None else weights @ scores
        return float(total / n_observed)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the exact mean log pseudo-likelihood per spin of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            Missing entries take no part.

        Returns
        -------
        array of shape (n_samples,)
            Low for samples unlike the training data, NaN for one without an observed entry.
        """
        check_is_fitted(self)
        total, n_observed = self._log_probabilities(validated_spins(self, X)).T
        result = np.full(len(total), np.nan)
        np.divide(total, n_observed, out=result, where=n_observed > 0)
        return result

    def _log_probabilities(self, spins: Spins) -> NDArray[np.float64]:
        return blocks_of(spins, held=False).map(partial(sample_scores, model=self.model()))

    @abstractmethod
    def _base(self) -> FloatArray:
        """Return fields of independent spins that are like samples of the model."""

    def log_partition(
        self, random_state: RandomState = None, *, method: PartitionMethod = "auto", **options: int
    ) -> LogPartition:
        """Return log Z with its standard error.

        Parameters
        ----------
        random_state : int, RandomState, Generator or None
        method : {"auto", "enumeration", "annealing", "tempering"}
            "auto" is the exact sum for few units, else annealed importance sampling; parallel
            tempering is the other estimate, to compare it with.
        **options
            ``n_temperatures`` and ``n_chains`` of annealing, or ``n_sweeps`` and ``n_ladders`` of
            tempering, as in :func:`dualtap.rbm.likelihood.log_partition`.

        Returns
        -------
        LogPartition
        """
        check_is_fitted(self)
        return log_partition(
            self.model(), method=method, base=self._base(), random_state=random_state, **options
        )

    def log_likelihood(self, X: Any, partition: LogPartition | None = None) -> float:
        """Return the mean log-likelihood of complete samples, in nats per sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            Without missing entries.
        partition : LogPartition, optional
            From :meth:`log_partition`, which is called with ``random_state=0`` when it is not
            given. Its error is the error of this.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        spins, model = validated_spins(self, X), self.model()
        if not spins.complete:
            raise ValueError(INCOMPLETE)
        free_energy = blocks_of(spins, held=False).map(model.free_energy)
        log_z = (partition or self.log_partition(0)).value
        return -float(np.mean(free_energy, dtype=np.float64)) - log_z
