"""Make the trials that are missing: on this machine's processes, or on a Dask cluster.

Workers only compute. The process that called writes a row as soon as its trial ends, in whatever
order they end; seeds belong to trials, so the rows do not depend on who made them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from threading import Thread

import joblib

from dualtap._progress import progress
from dualtap.experiments.experiment import Experiment, Outcome, Results, Task
from dualtap.experiments.store import Store
from dualtap.spins.cluster import told_if_lost
from dualtap.spins.dask_arrays import connected

Finished = tuple[Task, Outcome, float]

_SECONDS_BETWEEN_LOOKS = 0.5


def run(
    experiment: Experiment,
    store: Store,
    tasks: Sequence[Task],
    *,
    n_jobs: int = -1,
    dask: str | None = None,
    repeat: bool = False,
    verbose: bool = False,
) -> Results:
    """Make those of the trials that the store does not have, and return the rows of all.

    Parameters
    ----------
    experiment : Experiment
    store : Store
    tasks : sequence of Task
        From :meth:`Experiment.tasks`.
    n_jobs : int
        Processes; -1 for as many as the machine has cores, 1 for this one alone.
    dask : str, optional
        Address of a Dask scheduler, or "local" for a cluster on this machine.
    repeat : bool
        Make trials again that are there.
    verbose : bool
        Show a progress bar on a terminal.

    Returns
    -------
    Results
    """
    missing = [task for task in tasks if repeat or task not in store]
    with (
        progress(experiment.name, len(missing), verbose and bool(missing)) as advance,
        closing(_finished(experiment, missing, n_jobs, dask)) as finished,
    ):
        for task, outcome, seconds in finished:
            store.add(task, outcome, seconds)
            advance(1)
    return store.results(tasks)


def _finished(
    experiment: Experiment, tasks: Sequence[Task], n_jobs: int, dask: str | None
) -> Generator[Finished, None, None]:
    """Yield trials as they end."""
    if dask is not None and tasks:
        yield from _on_dask(experiment, tasks, dask, n_jobs)
    elif n_jobs == 1 or len(tasks) <= 1:
        for task in tasks:
            yield _make(experiment, task)
    else:
        # A process each, one thread inside: trials share nothing, and never meet.
        watched = {"initializer": end_with, "initargs": (os.getpid(),)}
        with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1, **watched):
            parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")
            yield from parallel(joblib.delayed(_make)(experiment, task) for task in tasks)


def end_with(parent: int) -> None:
    """End this process once another is its parent: joblib's workers would wait for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _make(experiment: Experiment, task: Task) -> Finished:
    # On a busy machine a trial waits, which says nothing of the next one; with several threads it
    # takes more CPU time than time: the smaller is what it takes where nothing else runs.
    clocks = (time.perf_counter, time.process_time)
    start = [clock() for clock in clocks]
    outcome = experiment.trial(task.parameters, task.seed)
    return task, outcome, min(clock() - t for clock, t in zip(clocks, start, strict=True))


def _on_dask(
    experiment: Experiment, tasks: Sequence[Task], address: str, n_jobs: int
) -> Generator[Finished, None, None]:
    """Submit all trials; one whose worker dies is made again by another."""
    with connected(address, None if n_jobs < 1 else n_jobs) as client:
        from distributed import as_completed

        futures = [client.submit(_make, experiment, task, pure=False, retries=5) for task in tasks]
        for future in as_completed(futures):
            with told_if_lost(client):
                finished = future.result()
            yield finished
            future.release()
