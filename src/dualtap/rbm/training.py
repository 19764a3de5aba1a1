"""The loop of training: update, look, judge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dualtap.hopfield import HopfieldModel
from dualtap.rbm.pcd import Ascent
from dualtap.rbm.priors import Prior
from dualtap.rbm.run import Run
from dualtap.rbm.samples import Samples, TrainingSet, batches, training_set
from dualtap.rbm.stop import Plan, after_divergence, judged


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
