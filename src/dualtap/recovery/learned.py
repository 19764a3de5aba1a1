"""What follows from recovered patterns: assignments, likelihoods, new samples, a summary."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from dualtap._html import SummaryInNotebooks
from dualtap._random import RandomState
from dualtap._validation import TakesSpins, validated_spins
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import pseudo_likelihood, sample_pseudo_likelihoods
from dualtap.recovery.history import History
from dualtap.recovery.overlaps import products_with
from dualtap.recovery.reasons import distance, phase
from dualtap.recovery.task import Regime
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.cluster import blocks_of

_SMALLEST_OVERLAP = 1e-3


class Assignment(NamedTuple):
    """The state each sample is nearest to: ``sign[:, None] * patterns_[label]``.

    Without patterns the label is -1.
    """

    label: NDArray[np.int64]
    sign: NDArray[np.int64]
    overlap: NDArray[np.float64]

    def canonical(self, n_patterns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the order and the signs of patterns that do not depend on how they were found.

        Those with most samples come first, and of as many those whose first sample comes first.
        The sign of a pattern is that of most of its samples, or of the first if it is a draw.
        """
        if not n_patterns:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        n_samples = len(self.label)
        counts = np.bincount(self.label, minlength=n_patterns)
        balance = np.bincount(self.label, self.sign, minlength=n_patterns)
        first = np.full(n_patterns, n_samples)
        first[self.label[::-1]] = np.arange(n_samples)[::-1]  # of a label's places the last stays
        of_first = np.where(counts > 0, self.sign[np.minimum(first, n_samples - 1)], 1)
        return np.lexsort((first, -counts)), np.where(balance == 0, of_first, np.sign(balance))

    def renamed(self, order: NDArray[np.int64]) -> Assignment:
        """Return the same with patterns in another order, the first of ``order`` first."""
        place = np.full(len(order) + 1, -1)
        place[order] = np.arange(len(order))
        return self._replace(label=place[self.label])


def _nearest_pattern(S: NDArray[np.float32], zeta: NDArray[np.float32]) -> NDArray[np.float32]:
    return _nearest(S @ zeta.T)


def _nearest(o: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the pattern of largest overlap with each sample, N times that, and if it is a tie."""
    size = np.abs(o)
    label = np.argmax(size, axis=1)
    chosen = np.take_along_axis(o, label[:, None], axis=1)
    tied = np.count_nonzero(size == np.abs(chosen), axis=1) > 1
    # Whole numbers below 2²⁴, exact in single precision: with millions of samples it counts.
    return np.column_stack([label, chosen[:, 0], tied]).astype(np.float32)


class LearnedPatterns(
    SummaryInNotebooks,
    TakesSpins,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    BaseEstimator,
):
    """The part of :class:`dualtap.DualTAP` that needs no more than what was learned."""

    patterns_: NDArray[np.int8]
    magnetizations_: NDArray[np.floating]
    n_patterns_: int
    beta_: float
    fields_: NDArray[np.float64]
    weights_: NDArray[np.float64]
    labels_: NDArray[np.int64]
    regime_: str
    reason_: str
    history_: History

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the overlap of every sample with every pattern, in [-1, 1].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples, n_patterns)
            Means over the observed entries.
        """
        check_is_fitted(self)
        return self._overlaps(validated_spins(self, X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the pattern nearest to each sample, in absolute overlap.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples,), int
            -1 everywhere if no pattern was found.
        """
        return self.assign(X).label

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        r"""Return the probability that a sample belongs to each pattern or its negative.

        Each pattern stands for two states :math:`\pm\zeta^\mu` in which spins are independent with
        field :math:`x_\mu = \beta r_\mu`, r the typical overlap of the training samples nearest to
        it, and has its share of the samples as prior:
        :math:`P(\mu | s) \propto w_\mu \cosh(x_\mu\, \zeta^\mu \cdot s) / \cosh(x_\mu)^N`.
        Where samples do not cluster around patterns the answer is accordingly undecided.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples, n_patterns)
            Rows add up to one.
        """
        check_is_fitted(self)
        spins = validated_spins(self, X)
        o = self._overlaps(spins)
        if not self.n_patterns_:
            return o
        n = spins.n_observed[:, None]
        x = self.beta_ * np.maximum(self._typical_overlaps, _SMALLEST_OVERLAP)
        with np.errstate(divide="ignore"):  # a pattern that no training sample is nearest to
            log_weights = np.log(self.weights_)
        field = np.abs(n * o * x)
        log_cosh = field + np.log1p(np.exp(-2 * field))
        result: NDArray[np.float64] = softmax(
            log_weights + log_cosh - n * np.logaddexp(x, -x), axis=1
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
            ``label``, ``sign`` (-1 where the sample is nearer to the negative) and ``overlap``,
            each of shape (n_samples,).
        """
        check_is_fitted(self)
        return self._assign(validated_spins(self, X))

    def score(self, X: Any, y: None = None) -> float:
        """Return the mean log pseudo-likelihood per spin of X under the recovered model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
        y : ignored

        Returns
        -------
        float
            -log 2 for a fair coin, 0 for certainty.
        """
        check_is_fitted(self)
        return pseudo_likelihood(validated_spins(self, X), *self._model())

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the mean log pseudo-likelihood per spin of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples,)
            Low for samples unlike the training data.
        """
        check_is_fitted(self)
        return sample_pseudo_likelihoods(validated_spins(self, X), *self._model())

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.int8]:
        """Draw new samples from the Hopfield model of the recovered patterns.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState, Generator or None

        Returns
        -------
        array of shape (n_samples, n_spins), int8 ±1
        """
        check_is_fitted(self)
        if not self.n_patterns_:
            raise ValueError("no pattern was found in the data, so there is nothing to sample from")
        model = HopfieldModel(*self._model())
        return model.sample(n_samples, random_state=random_state)

    def summary(self) -> str:
        """Return what was found in a few lines: how many, which phase, how far above threshold.

        Examples
        --------
        >>> import dualtap as dt
        >>> teacher = dt.HopfieldModel.random(n_spins=500, n_patterns=5, beta=2.0, random_state=0)
        >>> print(dt.DualTAP(random_state=0).fit(teacher.sample(50, random_state=1)).summary())
        5 patterns, β = 2: what they leave of the data is noise, or not ±1
        phase: each sample lies near one pattern (retrieval)
        samples: 10 for each pattern
        bits: mean |m| 1.000, 0 of 2500 unsure (|m| < 0.8)
        """
        check_is_fitted(self)
        if not self.n_patterns_:
            return f"no pattern: {self.reason_}"
        regime = Regime(self.regime_)
        sure = np.abs(self.magnetizations_)
        found = "1 pattern" if self.n_patterns_ == 1 else f"{self.n_patterns_} patterns"
        lines = [
            f"{found}, β = {self.beta_:.3g}" + (f": {self.reason_}" if self.reason_ else ""),
            f"phase: {phase(regime)}",
            f"samples: {self._distance()}",
            f"bits: mean |m| {sure.mean():.3f}, {(sure < 0.8).sum()} of {sure.size} unsure "
            "(|m| < 0.8)",
        ]
        if self.fields_.any():
            size = np.sqrt(np.mean(np.square(self.fields_)))
            lines.append(
                f"fields: spins have means of their own, root mean square field {size:.2g}"
            )
        return "\n".join(lines)

    def _distance(self) -> str:
        regime = Regime(self.regime_)
        n_spins = self.patterns_.shape[1]
        return distance(regime, self.beta_, self.weights_, len(self.labels_), n_spins)

    def _model(self) -> tuple[NDArray[np.int8], float, NDArray[np.float64] | None]:
        """Return patterns, β and fields; a single empty pattern where there is none."""
        fields = self.fields_ if self.fields_.any() else None
        if not self.n_patterns_:
            return np.zeros((1, self.patterns_.shape[1]), dtype=np.int8), 1.0, fields
        return self.patterns_, self.beta_, fields

    def _overlaps(self, spins: Spins) -> NDArray[np.float64]:
        blocks = blocks_of(spins, held=False)
        products = blocks.dot(self.patterns_.astype(np.float32))
        result: NDArray[np.float64] = products.astype(np.float64) / blocks.n_observed[:, None]
        return result

    def _assign(self, spins: Spins) -> Assignment:
        return self._assigned(spins)[0]

    def _assigned(self, spins: Spins) -> tuple[Assignment, bool]:
        """Return the assignment, and if the order of patterns has decided some of it."""
        if not self.n_patterns_:
            n = spins.n_samples
            return Assignment(np.full(n, -1), np.ones(n, dtype=np.int64), np.zeros(n)), False
        blocks = blocks_of(spins, held=False)
        zeta = self.patterns_.astype(np.float32)
        if isinstance(spins, DenseSpins):
            nearest = _nearest(products_with(blocks, zeta))
        else:
            nearest = blocks.map(partial(_nearest_pattern, zeta=zeta))
        chosen = nearest[:, 1] / blocks.n_observed
        sign = np.where(chosen < 0, -1, 1)
        label = nearest[:, 0].astype(np.int64)
        assignment = Assignment(label, sign, np.abs(chosen, out=chosen))
        return assignment, bool(nearest[:, 2].any())

    def _learn_assignments(self, assignment: Assignment) -> None:
        """Set labels, shares and typical overlaps from those of the training samples."""
        self.labels_ = assignment.label
        counts = np.bincount(self.labels_[self.labels_ >= 0], minlength=self.n_patterns_)
        self.weights_ = counts / len(self.labels_)
        totals = np.bincount(
            self.labels_[self.labels_ >= 0],
            assignment.overlap[self.labels_ >= 0],
            minlength=self.n_patterns_,
        )
        self._typical_overlaps = totals / np.maximum(counts, 1)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    @property
    def n_iter_(self) -> int:
        """Most iterations that a student took in any round; deflation only."""
        return int(self.history_.n_iter.max())

    @property
    def _n_features_out(self) -> int:
        return int(self.n_patterns_)
