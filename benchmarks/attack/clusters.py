"""Faults of a Dask cluster of real processes on 127.0.0.1: the right answer or one error, soon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dualtap as dt

_SECONDS = 120
"""Until an answer or an error: a fit of these samples takes about a second on a whole cluster."""
_FORGOTTEN = "30s"
"""After which the scheduler gives up a worker that says nothing; five minutes by default."""
_FIT = """
import sys, time
import numpy as np
import dask.array as da
from distributed import Client
import dualtap as dt
import dualtap.spins.cluster

dualtap.spins.cluster._PATIENCE = 20

def swollen(x, megabytes):
    waste = np.ones(megabytes * 2**17)
    time.sleep(3)  # for whoever watches the memory of workers
    return x * waste[: len(x), None].astype(x.dtype)

with Client(sys.argv[1], timeout=20):
    X = da.from_array(np.load(sys.argv[2]), chunks=(100, -1))
    if int(sys.argv[3]):
        X = X.map_blocks(swollen, int(sys.argv[3]), dtype=X.dtype)
    try:
        for _ in range(int(sys.argv[4])):
            model = dt.HopfieldPatterns(random_state=0).fit(X)
            print("fitted", flush=True)
        np.save(sys.argv[2], model.patterns_)
    except ConnectionError as error:
        sys.exit(f"said: {error}")
"""


class _Cluster(NamedTuple):
    """Processes of a cluster, and where its scheduler listens."""

    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]
    address: str


@contextmanager
def _cluster(folder: Path, n_workers: int = 2, memory: str = "0") -> Iterator[_Cluster]:
    where, started = folder / "scheduler.json", []
    settings = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": _FORGOTTEN}

    def start(kind: str, *words: str) -> subprocess.Popen[bytes]:
        module = f"distributed.cli.dask_{kind}"
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", module, *words, "--scheduler-file", str(where)],
                env=settings,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return started[-1]

    try:
        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        words = ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit"]
        nanny = "--no-nanny" if memory == "0" else "--nanny"
        workers = [start("worker", *words, memory, nanny) for _ in range(n_workers)]
        from distributed import Client

        with Client(scheduler_file=str(where), timeout=60) as client:
            client.wait_for_workers(n_workers, timeout=60)
            address = client.scheduler.address
        yield _Cluster(scheduler, workers, address)
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class _Fit:
    """A process that fits samples on a cluster, some megabytes wasted per chunk, some times."""

    def __init__(self, folder: Path, address: str, wasted: int = 0, times: int = 1) -> None:
        teacher = dt.HopfieldModel.random(64, 2, beta=2.0, random_state=0)
        self._path = folder / "x.npy"
        X = teacher.sample(1000, random_state=1)
        self._right = dt.HopfieldPatterns(random_state=0).fit(X).patterns_
        np.save(self._path, X)
        words = [address, str(self._path), str(wasted), str(times)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _FIT, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_one(self) -> None:
        """Wait until it is well under way."""
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def outcome(self, error: str) -> str:
        """Return what came of it, which must be the right patterns or this error in one line."""
        try:
            told = self.process.communicate(timeout=_SECONDS)[1]
        finally:
            self.process.kill()
        said = [line for line in told.splitlines() if line.startswith("said: ")]
        if self.process.returncode == 0 and np.array_equal(np.load(self._path), self._right):
            return "right"
        if len(said) == 1 and error in said[0] and told.endswith(said[0] + "\n"):
            return "one error"  # after what Dask itself may log
        raise AssertionError(f"ended with {self.process.returncode}: {told[-300:]!r}")


def lost_scheduler(folder: Path, seed: int) -> str:
    """Kill the scheduler in the middle of a fit."""
    with _cluster(folder) as cluster:
        fit = _Fit(folder, cluster.address, times=1000)
        fit.wait_for_one()
        time.sleep(float(np.random.default_rng(seed).uniform(0, 1)))
        cluster.scheduler.kill()
        return fit.outcome("the Dask scheduler does not answer any more")


def lost_workers(folder: Path, seed: int) -> str:
    """Kill all workers in the middle of a fit."""
    with _cluster(folder) as cluster:
        fit = _Fit(folder, cluster.address, times=1000)
        fit.wait_for_one()
        for worker in cluster.workers:
            time.sleep(float(np.random.default_rng(seed).uniform(0, 1)))
            worker.kill()
        return fit.outcome("the Dask cluster has had no worker for 20 s")


def worker_out_of_memory(folder: Path, seed: int) -> str:
    """Let every chunk take more memory than a worker has."""
    with _cluster(folder, memory="600MB") as cluster:
        fit = _Fit(folder, cluster.address, wasted=1000)
        return fit.outcome("workers of the Dask cluster ended while they worked")


def stopped_worker(folder: Path, seed: int) -> str:
    """Stop a worker in the middle of fits: for a few seconds, or for good."""
    with _cluster(folder) as cluster:
        fit = _Fit(folder, cluster.address, times=6)
        fit.wait_for_one()
        time.sleep(float(np.random.default_rng(seed).uniform(0, 1)))
        cluster.workers[0].send_signal(signal.SIGSTOP)
        if seed % 2:
            time.sleep(5)
            cluster.workers[0].send_signal(signal.SIGCONT)
        return fit.outcome("workers of the Dask cluster ended while they worked")
