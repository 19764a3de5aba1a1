"""The loop of training: update, look, judge; when it stops, and what it tries before that.

What it tries is more hidden units and a smaller learning rate. Everything is decided at looks, from
the run alone: a run that is resumed decides the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.hopfield import HopfieldModel
from dualtap.rbm.monitors import error_of_difference, mean_score, sample_scores
from dualtap.rbm.pcd import Ascent
from dualtap.rbm.priors import Prior
from dualtap.rbm.run import Best, Run, resized
from dualtap.rbm.samples import Samples, TrainingSet, batches, training_set
from dualtap.rbm.start import random_weights

_PATIENCE = 10
"""Looks without a better score, at least, ..."""
_PATIENT_SHARE = 0.25
"""... and this share of the updates of the run."""
_LONGEST_STAGE, _EPOCHS = 2500, 10
"""Updates, or passes over the data, with one rate and number of hidden units, at most."""
_CUT = 0.25
_MOST_CUTS = 2
_GROWTH = 4
"""Hidden units after a growth, in units of those before."""
_NOISE = 2.0
"""Standard errors by which a difference of scores is more than noise."""
_LEAST_GAIN = 1e-3
"""Rise of the score per entry, at least, for which there are fields, or hidden units are added
again."""
_FALL = 0.25
"""Share of its whole rise by which the score of training samples falls when a run diverges."""
_LEAST_FALL = 0.02


class Plan(NamedTuple):
    """How long training goes on, and what it may do of its own accord."""

    look_every: int = 10
    """Updates between looks."""
    batch_size: int = 100
    max_updates: int = 2000
    max_seconds: float | None = None
    early_stopping: bool = True
    cuts_rate: bool = False
    """Cut the learning rate where the score of held-out samples stalls."""
    most_hidden: int = 0
    """Add hidden units up to this number while that helps."""


class Candidate(NamedTuple):
    """A run to go on with, and the prior of its hidden units."""

    run: Run
    prior: Prior


def train(
    run: Run,
    X: Samples | TrainingSet,
    prior: Prior,
    how: Ascent,
    plan: Plan,
    *,
    teacher: HopfieldModel | None = None,
) -> Iterator[Run]:
    """Yield the run as it is and after every update, until one of them has a reason to stop."""
    data = X if isinstance(X, TrainingSet) else training_set(X, None, run.seed)
    order = batches(len(data.rows), plan.batch_size, run.seed, run.update, data.weights)
    watched, began = data.watched(run.seed), time.monotonic()
    while True:
        if run.update % plan.look_every == 0:
            run = judged(run.after_look(prior, watched, teacher, data), data, plan)
        if not run.stop_reason and run.update >= plan.max_updates:
            run = replace(run, stop_reason="max_updates")
        if not run.stop_reason and time.monotonic() - began > (plan.max_seconds or np.inf):
            run = replace(run, stop_reason="max_seconds")
        yield run
        if run.stop_reason:
            return
        rates = replace(how, learning_rate=run.learning_rate, fields_rate=run.fields_rate)
        run = run.after_update(data.take(next(order)), prior, rates)
        if run.stop_reason == "diverged":
            run = after_divergence(run, plan)


def judged(run: Run, data: TrainingSet, plan: Plan) -> Run:
    """Return the run as it goes on after a look: unchanged, changed, or stopped."""
    if not plan.early_stopping or run.stop_reason:
        return run
    if run.best is None:
        return replace(run, stop_reason="flat") if run.curve.is_over() else run
    if has_fallen(run):
        return after_divergence(replace(run, stop_reason="diverged"), plan)
    if not _is_exhausted(run, run.best, data, plan):
        return run
    score = mean_score(run.best.scores, data.held_out_weights)
    may_grow = len(run.best.state.weights) < plan.most_hidden
    gained = run.grown_from is None or score - run.grown_from > _LEAST_GAIN
    if may_grow and gained:
        return _grown(run, run.best, plan, score)
    if plan.cuts_rate and run.cuts < _MOST_CUTS:
        return _cut(run, run.best)
    return replace(run, stop_reason="validation" if _overfits(run, run.best) else "flat")


def _is_exhausted(run: Run, best: Best, data: TrainingSet, plan: Plan) -> bool:
    """Tell whether the present rate and number of hidden units have given what they can."""
    highest = int(run.curve.update[np.argmax(run.curve.validation)])
    since = run.update - max(best.update, highest, run.stage)
    if since >= max(_PATIENCE * plan.look_every, _PATIENT_SHARE * run.update):
        return True
    longest = max(_LONGEST_STAGE, _EPOCHS * -(-len(data.rows) // plan.batch_size))
    return plan.cuts_rate and run.update - run.stage >= longest


def after_divergence(run: Run, plan: Plan) -> Run:
    """Return a diverged run back at its best state with a smaller rate, if that is allowed."""
    if run.best is None or not plan.cuts_rate or run.cuts >= _MOST_CUTS:
        return run
    return _cut(replace(run, stop_reason=""), run.best)


def has_fallen(run: Run) -> bool:
    """Tell whether the score of training samples is far below its best since the last change.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.start import start_run
    >>> from dualtap.rbm.training import has_fallen
    >>> run = start_run(np.ones((20, 5), dtype=np.int8), 1, 2, 5, (0.1, 0.1), seed=0)
    >>> has_fallen(run)
    False
    """
    # The look at a change was at the state before it.
    since = run.curve.update > run.stage if run.stage else run.curve.update >= 0
    seen = run.curve.pseudo_likelihood[since]
    if len(seen) < 2:
        return False
    best, first = float(seen.max()), float(run.curve.pseudo_likelihood.min())
    return bool(best - seen[-1] > max(_LEAST_FALL, _FALL * (best - first)))


def better_of(data: TrainingSet, first: Candidate, second: Candidate) -> Candidate:
    """Return what predicts held-out samples better, the first if the difference is small.

    Between priors it has to exceed its standard error. Fields, which are tried where spins have
    means, have to gain 0.001 per entry: of few samples the error is far larger than what real data
    lose without them. Looks score few entries if units are not Gaussian, too few to tell laws
    apart: here all entries of held-out samples count.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import BinaryPrior, GaussianPrior
    >>> from dualtap.rbm.samples import training_set
    >>> from dualtap.rbm.start import start_run
    >>> from dualtap.rbm.training import Candidate, better_of
    >>> data = training_set(np.ones((20, 5), dtype=np.int8), None, seed=0)
    >>> run = start_run(data, 1, 2, 5, (0.1, 0.1), seed=0)
    >>> found = [Candidate(run, GaussianPrior()), Candidate(run, BinaryPrior())]
    >>> better_of(data, *found).prior  # nothing is held out: the first one
    GaussianPrior()
    """
    if first.run.best is None or second.run.best is None:
        return first
    scores = [
        sample_scores(data.held_out, one.run.best_model(one.prior)) for one in (first, second)
    ]
    weights = data.held_out_weights
    gain = mean_score(scores[1], weights) - mean_score(scores[0], weights)
    if second.prior == first.prior:
        return second if gain > _LEAST_GAIN else first
    return second if gain > error_of_difference(scores[1], scores[0], weights) else first


def advice(run: Run, weights: NDArray[np.float64], *, early_stopping: bool) -> str:
    """Return what the user should know of how training ended, or nothing.

    ``weights`` are those of the held-out samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.start import start_run
    >>> from dualtap.rbm.training import advice
    >>> run = start_run(np.ones((20, 5), dtype=np.int8), 1, 2, 5, (0.1, 0.1), seed=0)
    >>> advice(run, np.empty(0), early_stopping=True)
    ''
    """
    said = []
    kept = run.update if run.best is None else run.best.update
    if run.stop_reason == "diverged":
        said.append(
            f"training diverged after update {run.update}, and the state after update {kept} is "
            f"kept{_scores(run)}: the learning rate ({run.learning_rate:.3g}) is too large for "
            'these data, try a tenth of it, or "auto"'
        )
    is_cut_short = run.stop_reason in ("max_updates", "max_seconds") and early_stopping
    if is_cut_short and kept >= _STILL_RISES * run.update:
        said.append(
            f"the pseudo-likelihood still rises after {run.update} updates{_scores(run)}: "
            f"raise {run.stop_reason}"
        )
    ended = run.stop_reason not in ("", "callback")
    if run.best is not None and ended and run.best.update == 0 and run.update:
        said.append(
            f"no state of {run.update} updates predicts held-out samples better, by more than "
            f"chance, than independent spins do: weights are zero and fields explain the means, "
            f"with the score {mean_score(run.best.scores, weights):.4f}{_scores(run)}"
        )
    return "; ".join(said)


def how_it_ended(run: Run) -> str:
    """Return why training stopped, with the numbers, or nothing while it goes on.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from dualtap.rbm.start import start_run
    >>> from dualtap.rbm.training import how_it_ended
    >>> run = start_run(np.ones((20, 5), dtype=np.int8), 1, 2, 5, (0.1, 0.1), seed=0)
    >>> how_it_ended(replace(run, stop_reason="max_updates"))
    'max_updates is reached'
    """
    reason = _STOPPED.get(run.stop_reason, "")
    return reason and f"{reason}{_scores(run)}"


_STOPPED = {
    "flat": "the pseudo-likelihood no longer rises",
    "validation": "held-out samples score worse, and training samples better",
    "max_updates": "max_updates is reached",
    "max_seconds": "max_seconds are over",
    "diverged": "it diverged",
    "callback": "a callback asked for it",
}


def _scores(run: Run) -> str:
    """Return scores per entry in words, of the highest look and of the last one."""
    curve = run.curve
    if not len(curve.update):
        return ""
    seen = {"training samples": curve.pseudo_likelihood}
    if run.best is not None:
        seen = {"held-out samples": curve.validation} | seen
    at = int(np.argmax(next(iter(seen.values()))))
    looks = [at] if at == len(curve.update) - 1 else [at, -1]
    scores = (
        f"{whose} " + " and ".join(f"{of[k]:.4f}" for k in looks) for whose, of in seen.items()
    )
    return (
        f" ({'; '.join(scores)} after update {' and '.join(str(curve.update[k]) for k in looks)})"
    )


_STILL_RISES = 0.9
"""Share of the updates after which a best state says that there is more to come."""


def _overfits(run: Run, best: Best) -> bool:
    """Tell whether held-out samples score worse than at best, but training samples do not."""
    curve = run.curve
    then = min(int(np.searchsorted(curve.update, best.update)), len(curve.update) - 1)
    fall = curve.validation[then:].max() - curve.validation[-1]
    is_more_than_noise = fall > max(_NOISE * curve.validation_error[-1], _LEAST_GAIN)
    return bool(is_more_than_noise and curve.pseudo_likelihood[-1] > curve.pseudo_likelihood[then])


def _cut(run: Run, best: Best) -> Run:
    """Return the run back at its best state, with a smaller rate."""
    weights = best.state.weights
    if not weights.any():  # nothing to go back to: start anew
        weights = _random_like(run, *weights.shape)
    return replace(
        run,
        state=resized(best.state, weights).moved(run.state.weights),
        learning_rate=_CUT * run.learning_rate,
        fields_rate=_CUT * run.fields_rate,
        cuts=run.cuts + 1,
        stage=run.update,
    )


def _grown(run: Run, best: Best, plan: Plan, score: float) -> Run:
    """Return the run back at its best state, with small random hidden units added."""
    n_hidden, n_spins = best.state.weights.shape
    n_more = min(_GROWTH * n_hidden, plan.most_hidden) - n_hidden
    weights = np.concatenate([best.state.weights, _random_like(run, n_more, n_spins)])
    state = resized(best.state, weights).moved(run.state.weights)
    return replace(run, state=state, stage=run.update, grown_from=score)


def _random_like(run: Run, n_hidden: int, n_spins: int) -> NDArray[np.float32]:
    rng = np.random.default_rng([run.seed, run.update, 4])
    return random_weights(n_hidden, n_spins, rng)
