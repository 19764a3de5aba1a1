"""Kills, signals, forks, full disks and two writers: no file is lost, no process is left."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import dualtap as dt
from benchmarks.attack import clusters
from dualtap._files import atomic_write
from dualtap.io import read_samples, write_samples

X = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(60, 40))
_TRAIN = """
import pathlib, sys, warnings
import numpy as np
import dualtap as dt
import dualtap.rbm.fitting

dualtap.rbm.fitting._CHECKPOINT_SECONDS = 0.05
warnings.simplefilter("ignore")
path = pathlib.Path(sys.argv[2])
model = dt.HopfieldRBM(6, max_updates=3000, early_stopping=False, random_state=0)
told = [lambda model: print("under way", flush=True)]
before = path if path.exists() else None
try:
    model.fit(np.load(sys.argv[1]), checkpoint=path, resume_from=before, callbacks=told)
except KeyboardInterrupt:
    sys.exit("interrupted")
"""
_FULL = """
import resource, sys, numpy as np
from dualtap.io import write_samples
X = np.random.default_rng(1).choice(np.array([-1, 1], dtype=np.int8), size=(3000, 400))
for path in sys.argv[2:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
    try:
        write_samples(path, X, force=True)
        sys.exit(f"{path} was written")
    except OSError:
        pass
"""


def _write_forever(ready: Connection, paths: list[Path]) -> None:
    ready.send("ready")
    while True:
        for path in paths:
            write_samples(path, -X, force=True)
            write_samples(path, X, force=True)


def killed_writers(folder: Path, seed: int) -> str:
    """Kill processes that replace files again and again; all of them must be whole."""
    rng = np.random.default_rng(seed)
    suffixes = (".npz", ".csv", ".csv.gz", ".h5", ".parquet", ".zarr")
    paths = [folder / f"d{suffix}" for suffix in suffixes]
    for path in paths:
        write_samples(path, X, force=True)
    context = multiprocessing.get_context("forkserver")  # which imports but once
    context.set_forkserver_preload(["benchmarks.attack.faults", "h5py", "pyarrow.parquet", "zarr"])
    for _ in range(20):
        here, there = context.Pipe()
        writer = context.Process(target=_write_forever, args=(there, paths))
        writer.start()
        here.recv()
        time.sleep(float(rng.uniform(0, 0.3)))  # a round takes as long
        writer.kill()
        writer.join()
        for path in paths:
            values = read_samples(path).spins.values
            if not (np.array_equal(values, X) or np.array_equal(values, -X)):
                raise AssertionError(f"{path.name} is neither the old nor the new")
    for path in paths:
        write_samples(path, X, force=True)
    left = {path.name for path in folder.iterdir()} - {path.name for path in paths}
    if left:
        raise AssertionError(f"left behind: {sorted(left)}")
    return "whole"


def killed_training(folder: Path, seed: int) -> str:
    """Kill or interrupt a training run, resume it, and compare with one that was left alone."""
    rng, resumed = np.random.default_rng(seed), 0
    np.save(folder / "x.npy", X)
    whole, path = folder / "whole.npz", folder / "run.npz"
    for k in range(5):
        child = _training(folder, path)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(float(rng.uniform(0, 0.3)))
        resumed += path.exists()
        child.send_signal((signal.SIGKILL, signal.SIGINT)[k % 2])
        told = child.communicate()[1]
        if told not in ("", "interrupted\n"):
            raise AssertionError(f"ended with {child.returncode}: {told[-300:]!r}")
    for target in (path, whole):
        told = _training(folder, target).communicate()[1]
        if told:
            raise AssertionError(f"could not go on: {told[-300:]!r}")
    one, other = dt.load(whole), dt.load(path)
    if not np.array_equal(one.components_, other.components_):
        raise AssertionError("the resumed run differs")
    left = {each.name for each in folder.iterdir()} - {"x.npy", "whole.npz", "run.npz"}
    if left or not resumed:
        raise AssertionError(f"left behind: {sorted(left)}" if left else "nothing was resumed")
    return "the same to the bit"


def _training(folder: Path, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _TRAIN, str(folder / "x.npy"), str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def full_disk(folder: Path, seed: int) -> str:
    """Write beyond a limit; the older files must stay."""
    rng = np.random.default_rng(seed)
    suffixes = (".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".arrow", ".h5", ".zarr")
    paths = [folder / f"d{suffix}" for suffix in suffixes]
    for path in paths:
        write_samples(path, X, force=True)
    limit = str(int(rng.integers(0, 40_000)))
    done = subprocess.run(
        [sys.executable, "-c", _FULL, limit, *map(str, paths)], capture_output=True, text=True
    )
    if done.returncode or done.stderr:
        raise AssertionError(f"ended with {done.returncode}: {done.stderr[-300:]!r}")
    for path in paths:
        if not np.array_equal(read_samples(path).spins.values, X):
            raise AssertionError(f"{path.name} was lost")
    return "old files whole"


def two_writers(folder: Path, seed: int) -> str:
    """Let two threads take the same names without force; each name has one winner."""

    def take(me: bytes) -> set[int]:
        won = set()
        for k in range(50):
            try:
                with atomic_write(folder / f"{seed}-{k}") as file:
                    file.write(me)
                won.add(k)
            except FileExistsError:
                pass
        return won

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(take, (b"a", b"b"))
    if one & other or one | other != set(range(50)):
        raise AssertionError(f"{len(one & other)} names were won twice")
    return "one winner each"


def _in_child(kind: str) -> float:
    model = dt.HopfieldPatterns(random_state=0)
    if kind == "dualtap":
        return float(dt.DualTAP(2, 2.0, random_state=0, scheme="sequential-tap").fit(X).score(X))
    if kind == "rbm":
        return float(dt.HopfieldRBM(3, max_updates=5, random_state=0).fit(X).score(X))
    return float(model.fit(X).score(X))


def fork(folder: Path, seed: int) -> str:
    """Fit, fork, and fit in the children: the same results, in bounded time."""
    import warnings

    warnings.simplefilter("ignore")
    kinds = ("patterns", "dualtap", "rbm")
    here = [_in_child(kind) for kind in kinds]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        there = pool.map_async(_in_child, kinds).get(timeout=120)
    if here != there:
        raise AssertionError(f"{there} in children, {here} here")
    return "the same in children"


def ended_reproduction(folder: Path, seed: int) -> str:
    """End ``reproduce`` by a signal: its workers must end, too."""
    number = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT)[seed % 4]
    words = ["fig4", "--set", "N=2000", "trials=50", "--jobs", "2", "--out", str(folder / "out")]
    command = [sys.executable, "-m", "dualtap", "reproduce", *words, "-q"]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    start = time.monotonic()
    while len(_descendants(child.pid)) < 3 and time.monotonic() - start < 60:
        time.sleep(0.1)
    time.sleep(float(np.random.default_rng(seed).uniform(0, 3)))
    workers = _descendants(child.pid)
    child.send_signal(number)
    child.wait(60)
    start = time.monotonic()
    while (left := [pid for pid in workers if _lives(pid)]) and time.monotonic() - start < 20:
        time.sleep(0.2)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if left:
        raise AssertionError(f"{len(left)} processes were left after {number.name}")
    return "no process left"


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _descendants(pid: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                told = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(told[1])
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {pid}


FAULTS: dict[str, tuple[Callable[[Path, int], str], int]] = {
    "two writers, 50 names": (two_writers, 20),
    "full disk, 8 formats": (full_disk, 10),
    "writer killed, 20 times": (killed_writers, 10),
    "training killed and resumed, 5 times": (killed_training, 8),
    "fork after fits, 3 kinds": (fork, 2),
    "reproduce ended by a signal": (ended_reproduction, 4),
    "Dask scheduler killed in mid-fit": (clusters.lost_scheduler, 2),
    "Dask workers killed in mid-fit": (clusters.lost_workers, 2),
    "Dask worker stopped in mid-fit": (clusters.stopped_worker, 2),
    "Dask worker out of memory": (clusters.worker_out_of_memory, 1),
}
"""What is tried, and how often in the whole attack."""
