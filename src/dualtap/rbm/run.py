"""A training run at one moment: all that its future depends on.

Runs are values: an update makes a new one. Whoever stops between two of them, by Ctrl-C, by a
crash or by the end of a budget, holds a run that goes on as if nothing had happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import Array, namespace
from dualtap.hopfield import HopfieldModel
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import (
    LearningCurve,
    error_of_difference,
    mean_score,
    scores_at_a_look,
)
from dualtap.rbm.pcd import Ascent, Training, has_diverged, step
from dualtap.rbm.priors import Prior
from dualtap.rbm.samples import TrainingSet, mean_fields

_MORE_THAN_CHANCE = 3.0
"""Standard errors by which independent spins have to be exceeded: the best of many looks is, by
two or so, without any reason. Set by ``python -m benchmarks rbm-robust``."""


class Best(NamedTuple):
    """The state with the largest score of held-out samples so far."""

    state: Training
    update: int
    """Updates made before it; 0 for independent spins, which every run has to exceed."""
    scores: NDArray[np.float64]
    """Of every held-out sample: Σ log P(s_i | rest) and the number of its entries."""


@dataclass(frozen=True)
class Run:
    """A training run at one moment.

    Attributes
    ----------
    state : Training
        In any namespace, on any device; all else is on the host.
    curve : LearningCurve
    update : int
        Updates made.
    seed : int
        Of the order of samples and of the looks; chains own their generators.
    learning_rate, fields_rate : float
        The factors in use, also when they were chosen from the data.
    data : str
        Fingerprint of the samples.
    stop_reason : str
        "flat", "validation", "diverged", "max_updates", "max_seconds" or "callback"; "" while it
        goes on.
    best : Best, optional
        None where no sample is held out.
    stage : int
        Update at which the present rate and number of hidden units began.
    cuts : int
        How often the rate was cut.
    grown_from : float, optional
        The best score before the last growth; None before the first.
    prior : str
        Name of the prior that was chosen, "" if it was given.
    patterns : array of shape (n_patterns, n_spins), int8, optional
        ±1, found with the samples at the end, where the weights show no gap.
    """

    state: Training
    curve: LearningCurve
    update: int
    seed: int
    learning_rate: float
    fields_rate: float
    data: str
    stop_reason: str = ""
    best: Best | None = None
    stage: int = 0
    cuts: int = 0
    grown_from: float | None = None
    prior: str = ""
    patterns: NDArray[np.int8] | None = None

    def moved(self, x: Array) -> Run:
        """Return the same run where ``x`` is; goes on up to rounding, which chains amplify."""
        return replace(self, state=self.state.moved(x))

    def on_host(self) -> Run:
        """Return the same run with arrays of NumPy, as files have it."""
        return self.moved(np.empty(0, dtype=np.float32))

    def model(self, prior: Prior) -> RBM:
        """Return the RBM as it is now, on the host."""
        state = self.on_host().state
        return RBM(state.weights, state.fields, prior)

    def best_model(self, prior: Prior) -> RBM:
        """Return the RBM with the best score of held-out samples, the present one without any."""
        if self.best is None:
            return self.model(prior)
        return RBM(self.best.state.weights, self.best.state.fields, prior)

    def after_update(self, batch: NDArray[np.int8], prior: Prior, how: Ascent) -> Run:
        """Return the run one update later, or where it is and stopped if that diverges."""
        with np.errstate(over="ignore", invalid="ignore"):  # noticed below
            state = step(self.state, batch, prior, how)
        if has_diverged(state, prior):
            return replace(self, stop_reason="diverged")
        return replace(self, state=state, update=self.update + 1)

    def after_look(
        self,
        prior: Prior,
        X: NDArray[np.float32],
        teacher: HopfieldModel | None,
        data: TrainingSet | None = None,
    ) -> Run:
        """Return the run with its present state in the learning curve, and kept if it is best."""
        if self.update in self.curve.update[-1:]:
            return self
        rng = np.random.default_rng([self.seed, self.update])
        now, best, seen = self.on_host(), self.best, (np.nan, np.nan)
        model = RBM(now.state.weights, now.state.fields, prior)
        if data is not None and len(data.held_out):
            weights = data.held_out_weights
            scores = scores_at_a_look(data.held_out, model)
            best = best or independent_spins(now.state, data, prior)
            seen = mean_score(scores, weights), error_of_difference(scores, best.scores, weights)
            # Few samples favour some state by chance: independent spins give way to more than that.
            least = _MORE_THAN_CHANCE * seen[1] if best.update == 0 else 0.0
            if seen[0] - mean_score(best.scores, weights) > least:
                best = Best(now.state, self.update, scores)
        curve = self.curve.after_look(self.update, model, X, rng, teacher, seen)
        return replace(self, curve=curve, best=best)


def independent_spins(state: Training, data: TrainingSet, prior: Prior) -> Best:
    """Return the state without weights whose fields explain the means of the training samples."""
    fields = mean_fields(data.spins, data.row_weights()).astype(np.float32)
    state = state._replace(weights=np.zeros_like(state.weights), fields=fields)
    scores = scores_at_a_look(data.held_out, RBM(state.weights, fields, prior))
    return Best(state, 0, scores)


def resized(state: Training, weights: Array) -> Training:
    """Return the state with other weights, at rest."""
    xp = namespace(weights)
    velocity = state.velocity._replace(
        weights=xp.zeros_like(weights), fields=xp.zeros_like(state.fields)
    )
    return state._replace(weights=weights, velocity=velocity)
