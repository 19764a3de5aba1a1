"""What follows from recovered patterns: assignments, likelihoods, new samples, a summary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.validation import check_is_fitted

from dualtap._html import SummaryInNotebooks
from dualtap._namespace import origin
from dualtap._random import RandomState, as_generator
from dualtap._validation import TakesSpins, checked_weights, counted, fit_context, validated_spins
from dualtap.edges import FloatArray, HasCouplings, IntArray, low_rank_rows, pattern_intervals
from dualtap.fitted.checks import check_learned, checked_covariance, learned_arrays
from dualtap.fitted.entries import CouplingConditionals, pairs_beside, patterns_law
from dualtap.fitted.later import Later
from dualtap.fitted.meaning import Profiles, n_profiled, profiles
from dualtap.fitted.nearest import (
    Assignment,
    Pull,
    from_overlaps,
    log_cosh,
    nearest_labels,
    nearest_patterns,
    observed_on_support,
    overlaps_on_support,
    pull_of,
    unobserved,
)
from dualtap.fitted.summary import summary
from dualtap.fitted.training import row_likelihoods, spread_rows, usual_scores
from dualtap.fitted.unexplained import doubt_about_couplings, pair_share
from dualtap.gaps import Conditionals, FillsGaps
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import pseudo_likelihood, sample_pseudo_likelihoods
from dualtap.spins import Spins, as_spins
from dualtap.spins.passes import count_reads, counted_reads
from dualtap.spins.storage import Encoding

_SMALLEST_OVERLAP = 1e-3


class LearnedPatterns(
    SummaryInNotebooks,
    TakesSpins,
    HasCouplings,
    FillsGaps,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    BaseEstimator,
    ABC,
):
    """The common base of the estimators of patterns: all that follows from what was learned.

    A fitted model is a set of patterns with a strength each, and a field on every spin. An
    estimator implements ``_learn``, which sets them.
    """

    random_state: RandomState

    patterns_: NDArray[np.int8]
    magnetizations_: NDArray[np.floating]
    strengths_: NDArray[np.float64]
    fields_: NDArray[np.float64]
    means_: NDArray[np.float64]
    objective_: float
    weights_: NDArray[np.float64]
    labels_: NDArray[np.int32]
    trace_: list[dict[str, Any]]
    reason_: str
    n_passes_: float
    n_features_in_: int
    _typical_overlaps: NDArray[np.float64]
    path_: Later[dict[str, NDArray[Any]] | None] = Later(None)
    """Description length and held-out score with fewer patterns."""
    _median_overlap: float
    _encoding: Encoding
    _training_scores: NDArray[np.float64]
    """Scores of training samples in ascending order: what is usual."""
    _strength_covariance: Later[FloatArray | None] = Later(None)
    """Of fitted strengths, zero if β was given; None for a model of an old file."""
    _profiles: Later[Profiles | None] = Later(None)
    """The two sides of each pattern; None for a model of an old file."""
    _pair_share: Later[float] = Later(np.nan)
    """What pairs would gain beside the patterns, over the gain of the patterns."""
    _beside: Later[CouplingConditionals | None] = Later(None)
    """What predicts entries where patterns alone predict them worse."""

    @fit_context()
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Recover the patterns behind X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            ±1, 0/1 or boolean; NaN or None where a value is missing. For ±1 data with 0 for
            missing pass ``as_spins(X, zero_is_missing=True)``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Number of samples that each row stands for: 3 is the same as three equal rows, 0 as
            none.

        Returns
        -------
        self
        """
        spins = validated_spins(self, X, reset=True)
        rows = counted(spins, sample_weight)
        with counted_reads() as reads:
            count_reads(0 if isinstance(X, Spins) else spins.n_entries)
            self._learn(rows, origin(X), as_generator(self.random_state))
            if rows is not spins:
                self.labels_ = nearest_labels(spins, self.patterns_, self._pull)
        self.n_passes_ = reads.entries / spins.n_entries
        self._encoding = spins.encoding
        kept = spread_rows(rows)
        found = row_likelihoods(kept, **self._model(), means=self.means_)
        self._training_scores = usual_scores(found)
        self._keep_of_training(kept, rows.total_weight)
        self._keep_of_samples(spread_rows(rows, n_profiled(rows.n_spins)))
        check_learned(learned_arrays(self), kept, found, best=self._is_best())
        return self

    def _keep_of_training(self, rows: NDArray[np.int8], n_samples: float) -> None:
        """Set the covariance of strengths: zero if β was given."""
        if self.n_patterns_ and getattr(self, "beta", None) is None:
            model = self._model() | {"means": self.means_, "tied": not np.isnan(self.beta_)}
            self._strength_covariance = partial(checked_covariance, rows, n_samples, **model)
        else:
            self._strength_covariance = np.zeros((self.n_patterns_, self.n_patterns_))

    def _keep_of_samples(self, rows: NDArray[np.int8]) -> None:
        """Set what the patterns mean for the samples, and what they leave of their pairs."""
        self._profiles = partial(profiles, rows, self.patterns_)
        self._pair_share = partial(pair_share, rows, **self._model(), means=self.means_)
        self._beside = partial(pairs_beside, rows, patterns_law(self), clone(self))

    @abstractmethod
    def _learn(self, spins: Spins, where: Any, rng: np.random.Generator) -> None:
        """Set all that is learned; ``where`` is an array of the library that makes products."""

    def _is_best(self) -> bool:
        """Whether the model was chosen among all, see :func:`check_learned`."""
        return False

    @property
    def n_patterns_(self) -> int:
        """Number of patterns."""
        return len(self.patterns_)

    @property
    def beta_(self) -> float:
        """The common strength of the patterns; NaN if they differ, or without patterns."""
        first = float(self.strengths_[0]) if len(self.strengths_) else np.nan
        return first if (self.strengths_ == first).all() else np.nan

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the overlap of every sample with every pattern, in [-1, 1].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples, n_patterns)
            Means of ζ_i s_i over the observed entries of the pattern's support (ζ_i ≠ 0); 0 if
            none of them was observed, NaN for a sample without any observed entry.
        """
        check_is_fitted(self)
        return overlaps_on_support(validated_spins(self, X), self.patterns_)

    def inverse_transform(self, X: Any) -> NDArray[np.int8]:
        """Return spins that have these overlaps with the patterns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_patterns)
            Overlaps, as :meth:`transform` returns them; NaN where they are not known.

        Returns
        -------
        array of shape (n_samples, n_spins), int8 ±1
            Signs of the vector nearest to ``means_`` that has the overlaps: a sample freed of all
            that patterns do not explain.
        """
        check_is_fitted(self)
        return from_overlaps(X, self.patterns_, self.means_)

    def predict(self, X: Any) -> NDArray[np.int32]:
        r"""Return the index of the pattern nearest to each sample.

        Of patterns of one strength, without fields, the one of largest absolute cosine; otherwise
        the attractive one with the largest :math:`g_\mu [\zeta^\mu \cdot (s - \bar s)]^2`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples,), int
            The first of several that are as near; -1 for a sample without an observed entry, and
            everywhere if there is no pattern.
        """
        return self.assign(X).label

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        r"""Return the probability that a sample belongs to each pattern or its negative.

        Each pattern stands for two states :math:`\pm\zeta^\mu`. In these the :math:`N_\mu` spins
        of its support are independent with field :math:`x_\mu = \beta_\mu r_\mu N_\mu / N`, where
        β_μ is its strength and r_μ the mean overlap of the training samples nearest to it; the
        other spins are random. With its share of the samples as prior,
        :math:`P(\mu | s) \propto w_\mu \cosh(x_\mu\, \zeta^\mu \cdot s) / \cosh(x_\mu)^{n_\mu}`,
        where :math:`n_\mu` spins of the support were observed.
        Where samples do not cluster around patterns the answer is accordingly undecided.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples, n_patterns)
            Rows add up to one. A sample without an observed entry has the shares as
            probabilities.
        """
        check_is_fitted(self)
        spins = validated_spins(self, X)
        o = np.nan_to_num(overlaps_on_support(spins, self.patterns_))
        if not self.n_patterns_:
            return o
        support = np.count_nonzero(self.patterns_, axis=1)
        n = observed_on_support(spins, self.patterns_)
        r = np.maximum(self._typical_overlaps, _SMALLEST_OVERLAP)
        x = self.strengths_ * r * (support / spins.n_spins)
        with np.errstate(divide="ignore"):  # a pattern that no training sample is nearest to
            log_weights = np.log(self.weights_)
        result: NDArray[np.float64] = softmax(
            log_weights + log_cosh(n * o * x) - n * log_cosh(x), axis=1
        )
        return result

    def assign(self, X: Any) -> Assignment:
        """Return the nearest pattern of each sample with its sign and overlap.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        Assignment
            ``label``, ``sign`` (-1: nearer to the negative) and ``overlap``, each of shape
            (n_samples,). For a sample without an observed entry they are -1, 1 and NaN.
        """
        check_is_fitted(self)
        return nearest_patterns(validated_spins(self, X), self.patterns_, self._pull)[0]

    @property
    def _pull(self) -> Pull | None:
        return pull_of(self.strengths_, self.fields_, self.means_)

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return the mean log pseudo-likelihood per spin of X under the recovered model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Number of samples that each row stands for, 1 by default.

        Returns
        -------
        float
            -log 2 for independent random spins, 0 for certainty. Missing entries do not count.
        """
        check_is_fitted(self)
        spins = validated_spins(self, X)
        w = checked_weights(sample_weight, spins.n_samples)
        return pseudo_likelihood(spins, **self._model(), means=self.means_, sample_weight=w)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the mean log pseudo-likelihood per spin of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples,)
            Low for samples unlike the training data, NaN for one without an observed entry.
        """
        check_is_fitted(self)
        spins = validated_spins(self, X)
        result = sample_pseudo_likelihoods(spins, **self._model(), means=self.means_)
        result[unobserved(spins)] = np.nan
        return result

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.int8]:
        """Draw new samples from the recovered model.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState, Generator or None

        Returns
        -------
        array of shape (n_samples, n_spins), int8 ±1
            Without patterns the spins are independent, with means tanh(``fields_``).
        """
        check_is_fitted(self)
        Z = self.patterns_
        patterns = as_spins(Z, zero_is_missing=True) if len(Z) else Z
        model = HopfieldModel(**self._model() | {"patterns": patterns})
        return model.sample(n_samples, random_state=random_state)

    def summary(self) -> str:
        """Return what was found in a few lines, and what the first patterns mean.

        A line per pattern has the share of the samples on either side of it, and the spins on which
        it has the largest effect: by how much the probability of +1 differs between the sides.

        Examples
        --------
        >>> import dualtap as dt
        >>> teacher = dt.HopfieldModel.random(n_spins=500, n_patterns=2, beta=2.0, random_state=0)
        >>> X = teacher.sample(50, random_state=1)
        >>> print(dt.HopfieldPatterns(random_state=0).fit(X).summary())
        2 patterns, β = 1.99: minimum description length; residuals are consistent with noise
        median overlap with the nearest pattern: ...
        samples per pattern: 25
        bits: mean |m| 1.000, 0 of 1000 uncertain (|m| < 0.8)
        pattern 0: ... of samples on its + side, ... on its − side; effect: ...
        pattern 1: ... of samples on its + side, ... on its − side; effect: ...
        """
        check_is_fitted(self)
        return summary(self)

    def _rows_of_couplings(self) -> Callable[[slice], FloatArray]:
        return low_rank_rows(self.patterns_, self.strengths_ / self.n_features_in_)

    def _doubt_about_couplings(self) -> str:
        return doubt_about_couplings(self.n_patterns_, self.n_features_in_, self._pair_share)

    def _coupling_intervals(self, i: IntArray, j: IntArray) -> tuple[FloatArray, FloatArray]:
        m, g, C = self.magnetizations_, self.strengths_, self._strength_covariance
        if C is None:
            C = np.full((len(g), len(g)), np.nan)
        return pattern_intervals(i, j, self.patterns_, m, g, C)

    def _conditionals(self) -> Conditionals:
        return patterns_law(self) if self._beside is None else self._beside

    def _usual_scores(self) -> NDArray[np.float64]:
        """Return scores of training samples in ascending order; none of a model of an old file."""
        return getattr(self, "_training_scores", np.empty(0))

    def _model(self) -> dict[str, Any]:
        """Return patterns, strengths and fields as HopfieldModel and the metrics take them."""
        return {
            "patterns": self.patterns_,
            "strengths": self.strengths_,
            "fields": self.fields_ if self.fields_.any() else None,
        }

    def _learn_assignments(self, nearest: Assignment, weights: FloatArray | None) -> None:
        """Set labels, shares and typical overlaps from those of the training samples."""
        self.labels_ = np.ascontiguousarray(nearest.label)
        self._total_weight = len(nearest.label) if weights is None else float(weights.sum())
        totals = nearest.totals(self.n_patterns_, weights)
        self.weights_ = totals.n_nearest / self._total_weight
        self._typical_overlaps, self._median_overlap = totals.mean_overlap, totals.median_overlap

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_patterns_)
