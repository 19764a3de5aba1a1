"""From parameters to a training run: the part of :class:`HopfieldRBM` between fit and the loop."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap.hopfield import HopfieldModel
from dualtap.rbm.learned import LearnedRBM
from dualtap.rbm.monitors import singular_values
from dualtap.rbm.patterns import is_divided, patterns_without_gap
from dualtap.rbm.pcd import Ascent, GradientName
from dualtap.rbm.priors import GaussianPrior, Prior, as_prior
from dualtap.rbm.run import Run
from dualtap.rbm.samples import TrainingSet, fingerprint, have_means, training_set
from dualtap.rbm.start import FIRST_SINGULAR_VALUE, Init, first_rates, first_weights, start_run
from dualtap.rbm.training import Candidate, Plan, advice, better_of, train
from dualtap.spins import Spins

Callback = Callable[[Any], object]

CANDIDATES = ("gaussian", "binary")
"""Priors that hidden="auto" chooses from, in the order of preference."""
_FIRST_HIDDEN, _MOST_HIDDEN = 64, 256
_PILOT_UPDATES = 1200
"""With each candidate. Set by ``python -m benchmarks rbm-real``: after half of them Gaussian units,
which start at the modes of the data, are ahead of ±1 units that end better."""
_CHECKPOINT_SECONDS = 5.0


class TrainedRBM(LearnedRBM):
    """Training runs that follow from the parameters of :class:`HopfieldRBM`."""

    n_hidden: int | Literal["auto"]
    fields: bool | Literal["auto"]
    learning_rate: float | Literal["auto", "paper"]
    batch_size: int
    n_chains: int
    n_steps: int
    estimate: GradientName
    momentum: float
    weight_decay: float
    centering: bool
    validation: float | None
    max_updates: int
    max_seconds: float | None
    early_stopping: bool
    look_every: int
    random_state: RandomState
    verbose: bool
    _weights: NDArray[np.float64] | None
    """Of the samples."""
    _beside: NDArray[np.int8] | None
    """Samples to choose by, if they were given."""

    def _follow(
        self,
        X: Spins,
        run: Run,
        teacher: HopfieldModel | None,
        callbacks: list[Callback],
        path: Path | None,
    ) -> None:
        """Let the run go on to its end; after every update the estimator holds it."""
        runs = self._runs(run, self._data(X, run.seed), self._prior(), teacher)
        written = time.monotonic()
        with one_blas_thread(), progress("updates", self.max_updates, bool(self.verbose)) as bar:
            bar(run.update)
            for now in runs:
                bar(now.update - run.update, str(now.curve))
                run = now
                self._keep(run)
                if run.update % self.look_every or run.stop_reason == "diverged":
                    continue
                answers = [callback(self) for callback in callbacks]
                if any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers):
                    self._keep(replace(run, stop_reason="callback"))
                    break
                if path is not None and time.monotonic() - written > _CHECKPOINT_SECONDS:
                    self.write(path, force=True)
                    written = time.monotonic()

    def _runs(
        self,
        run: Run,
        data: TrainingSet,
        prior: Prior,
        teacher: HopfieldModel | None,
        max_updates: int | None = None,
    ) -> Iterator[Run]:
        """Yield the run after every update."""
        plan = Plan(
            look_every=self.look_every,
            batch_size=self.batch_size,
            max_updates=min(self.max_updates, max_updates or self.max_updates),
            max_seconds=self.max_seconds,
            early_stopping=self.early_stopping,
            cuts_rate=self.learning_rate == "auto",
            most_hidden=_MOST_HIDDEN if self.n_hidden == "auto" else 0,
        )
        return train(
            run,
            data,
            prior,
            self._ascent(run),
            plan,
            teacher=teacher if isinstance(prior, GaussianPrior) else None,
        )

    def _fingerprint(self, X: Spins) -> str:
        return fingerprint(X, self._weights, self._beside)

    def _data(self, X: Spins, seed: int) -> TrainingSet:
        held_out = self.validation if self._beside is None else self._beside
        return training_set(X, held_out, seed, self._weights)

    def _start(self, X: Spins, init: Init | None, teacher: HopfieldModel | None) -> Run:
        """Return a run before its first update, or after those that chose prior and fields."""
        rng = as_generator(self.random_state)
        data = self._data(X, int(rng.integers(2**62)))
        candidates = self._candidates(data)
        if len(candidates) == 1:
            return self._new_run(data, *candidates[0], init, rng)
        state = rng.bit_generator.state
        found: list[Candidate] = []
        for name, fields in candidates:
            rng.bit_generator.state = state  # all have the same start
            run = self._new_run(data, name, fields, init, rng)
            prior = as_prior(name)
            with one_blas_thread():
                *_, run = self._runs(run, data, prior, teacher, _PILOT_UPDATES)
            found.append(Candidate(replace(run, stop_reason=""), prior))
        with one_blas_thread():
            return reduce(partial(better_of, data), found).run

    def _candidates(self, data: TrainingSet) -> list[tuple[str | Prior, bool]]:
        """Return priors and whether fields are learned, the simplest first."""
        names = CANDIDATES if self.hidden == "auto" else (self.hidden,)
        first, *others = names if len(data.held_out) else names[:1]
        if self.fields != "auto" or self.centering or not len(data.held_out):
            fields = self.centering if self.fields == "auto" else bool(self.fields)
        elif have_means(data.spins, data.row_weights()):
            return [(first, False), (first, True), *((name, True) for name in others)]
        else:
            fields = False
        return [(name, fields) for name in (first, *others)]

    def _new_run(
        self,
        data: TrainingSet,
        hidden: str | Prior,
        fields: bool,
        init: Init | None,
        rng: np.random.Generator,
    ) -> Run:
        if self.centering and not fields:
            raise ValueError("centering=True needs fields=True: it moves weight into the fields")
        prior = as_prior(hidden)
        rates = first_rates(self.learning_rate, data, prior, fields, rng)
        n_hidden = _FIRST_HIDDEN if self.n_hidden == "auto" else self.n_hidden
        if init is None:
            # ±1 units that start along modes stay there, and find less; Gaussian ones turn.
            by_modes = len(data.held_out) and isinstance(prior, GaussianPrior)
            init = "data" if by_modes else "random"
        n_chains = self.batch_size if self.estimate == "cd" else self.n_chains
        run = start_run(
            data,
            n_hidden,
            n_chains,
            self.batch_size,
            rates,
            data.seed,
            first_weights(init, data, n_hidden, fields),
            tempering=self.estimate == "tempering",
        )
        name = hidden if self.hidden == "auto" and isinstance(hidden, str) else ""
        return replace(run, data=self._fingerprint(data.spins), prior=name)

    def _continued(self) -> Run:
        """Return the run so far, for more of the same."""
        n_hidden, most = len(self._run.state.weights), len(self._run.state.imputing)
        wanted = n_hidden if self.n_hidden == "auto" else self.n_hidden
        if wanted != n_hidden or self.batch_size > most:
            raise ValueError(
                f"training began with n_hidden={n_hidden} and batch_size={most}, and cannot go on "
                f"with {self.n_hidden} and {self.batch_size}: use fit to begin anew"
            )
        best = self._run.best
        state = self._run.state if best is None else best.state
        return replace(self._run, state=state, stop_reason="", patterns=None)

    def _ascent(self, run: Run) -> Ascent:
        return Ascent(
            run.learning_rate,
            run.fields_rate,
            n_steps=self.n_steps,
            estimate=self.estimate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            centering=self.centering,
        )

    def _with_patterns(self, run: Run, X: Spins) -> Run:
        """Return the run with its patterns, if the weights alone do not tell them.

        The paper's run, which holds out nothing, is read by its weights alone.
        """
        has_none = run.best is None or run.best.update == 0 or run.fields_rate > 0
        if has_none or not isinstance(self._prior(), GaussianPrior):
            return run
        if is_divided(singular_values(self.components_), FIRST_SINGULAR_VALUE):
            return run
        with one_blas_thread():
            rng, counted = np.random.default_rng([run.seed, 6]), X.weighted(self._weights)
            return replace(run, patterns=patterns_without_gap(self.components_, counted, rng))

    def _warn(self, X: Spins) -> None:
        """Say so when training ended for a reason the user should act on."""
        is_chosen = self._run.best is not None
        weights = self._data(X, self._run.seed).held_out_weights if is_chosen else np.empty(0)
        text = advice(self._run, weights, early_stopping=self.early_stopping)
        if text:
            warnings.warn(text, ConvergenceWarning, stacklevel=4)  # past scikit-learn's wrapper
