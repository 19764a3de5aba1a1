"""Forks, signals, caches that cannot be written, clusters that go away."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dualtap as dt
from dualtap import cli
from dualtap._kernels import compiled
from dualtap._threads import _OneThread, n_threads, one_blas_thread
from dualtap.experiments import runner

X = dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0).sample(40, random_state=1)
on_posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")


# --- Forks


def kernel_in(child):
    """Return what a parallel kernel gives in a forked child."""
    parent_end, child_end = multiprocessing.Pipe()
    pid = os.fork()
    if not pid:
        try:
            child_end.send(child())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return parent_end.recv() if parent_end.poll(10) else None


@on_posix
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_kernels_run_in_children_of_a_process_that_had_threads():
    """Numba's threads do not survive a fork: such a child was ended by the library."""
    model = dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0)
    expected = model.sample(16, random_state=1)
    assert compiled._Threads.started
    np.testing.assert_array_equal(kernel_in(lambda: model.sample(16, random_state=1)), expected)
    assert kernel_in(lambda: compiled._Threads.lost)
    assert not compiled._Threads.lost


@on_posix
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_during_a_fit_leaves_the_child_its_threads():
    before = n_threads()
    with one_blas_thread():
        assert kernel_in(n_threads) == before
        assert n_threads() == 1


# --- Threads


def test_concurrent_fits_leave_the_number_of_threads(monkeypatch):
    """The last of two to end found one thread when it began, and left one."""
    changes = []

    class Limit:
        def __enter__(self):
            changes.append(1)

        def __exit__(self, *args):
            changes.append("all")

    class Library:
        lib_controllers = ()

        def limit(self, limits):
            return Limit()

    monkeypatch.setattr("dualtap._threads._blas", Library)
    barrier = threading.Barrier(2)

    def fit(wait):
        with one_blas_thread():
            barrier.wait()
            time.sleep(wait)

    threads = [threading.Thread(target=fit, args=(wait,)) for wait in (0, 0.05)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert changes == [1, "all"]
    assert _OneThread.depth == 0


def test_a_limit_that_is_not_lifted_at_once_is_lifted_later(monkeypatch):
    """OpenBLAS may ignore for a while that it may use more threads again."""

    class Library:
        num_threads = 4

    class Limit:
        def __init__(self):
            self.before = Library.num_threads

        def __enter__(self):
            Library.num_threads = 1

        def __exit__(self, *args):
            if not Blas.deaf:
                Library.num_threads = self.before

    class Blas:
        lib_controllers = (Library,)
        deaf = True

        def limit(self, limits):
            return Limit()

    monkeypatch.setattr("dualtap._threads._blas", Blas)
    for deaf, after in ((True, 1), (True, 1), (False, 4), (False, 4)):
        Blas.deaf = deaf
        with one_blas_thread():
            assert Library.num_threads == 1
        assert Library.num_threads == after
    Blas.deaf = True
    with one_blas_thread():
        pass
    Library.num_threads, Blas.deaf = 3, False  # by the user, meanwhile
    with one_blas_thread():
        pass
    assert Library.num_threads == 3
    assert _OneThread.owed is None


# --- Compiled code


def double(x):
    return 2 * x


def test_without_a_folder_for_compiled_code(monkeypatch):
    """As in a container that is read-only and has no home."""
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    assert compiled.compiled()(double)(21) == 42


def test_a_full_disk_does_not_stop_a_kernel(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    kernel = compiled.compiled()(double)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    assert kernel(21) == 42


# --- Signals


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
@on_posix
@pytest.mark.usefixtures("in_foreground")
def test_signals_end_the_command_in_good_order(run, tmp_path, monkeypatch, name, code):
    np.save(tmp_path / "d.npy", X)

    def interrupted(self, *args, **kwargs):
        signal.raise_signal(getattr(signal, name))
        pytest.fail("the signal was not heeded")

    monkeypatch.setattr("dualtap.HopfieldRBM._follow", interrupted)
    words = ("--method", "rbm-paper", "--hidden", 2, "--checkpoint", "run.npz", "-o", "m.npz", "-q")
    assert run("fit", "d.npy", *words) == (
        code,
        "",
        "dualtap: interrupted after 0 updates; continue with --resume run.npz\n",
    )
    assert dt.load(tmp_path / "run.npz").n_updates_ == 0
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
@on_posix
@pytest.mark.usefixtures("in_foreground")
def test_signals_that_are_ignored_from_the_start_do_not_end_the_command(
    run, tmp_path, monkeypatch, name
):
    """As under nohup, or in the background of a shell."""
    np.save(tmp_path / "d.npy", X)
    number, follow = getattr(signal, name), dt.HopfieldRBM._follow

    def signalled(self, *args, **kwargs):
        signal.raise_signal(number)
        return follow(self, *args, **kwargs)

    signal.signal(number, signal.SIG_IGN)
    monkeypatch.setattr("dualtap.HopfieldRBM._follow", signalled)
    words = ("--method", "rbm-paper", "--hidden", 2, "--updates", 3, "-o", "m.npz", "-q")
    code, out, _ = run("fit", "d.npy", *words)
    assert (code, out) == (0, "")
    assert dt.load(tmp_path / "m.npz").n_updates_ == 3


def test_the_command_is_imported_when_it_is_called():
    """So that Ctrl-C while it is imported can be caught."""
    code = "import sys, dualtap.__main__; print({'numpy', 'typer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_interrupt_while_importing_is_quiet(monkeypatch):
    from dualtap import __main__

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 130


def test_workers_end_with_their_parent(monkeypatch):
    parents, ended = iter([7, 7, 1]), threading.Event()
    monkeypatch.setattr("os.getppid", lambda: next(parents))
    monkeypatch.setattr("os._exit", lambda code: ended.set())
    monkeypatch.setattr(runner, "_SECONDS_BETWEEN_LOOKS", 0.001)
    runner.end_with(7)
    assert ended.wait(10)


# --- Clusters


class _Gone:
    status = "closed"


class _There:
    status = "running"


@pytest.mark.parametrize(
    ("client", "message"), [(_Gone, "scheduler does not answer"), (_There, "if they lack memory")]
)
def test_a_lost_cluster_is_one_clear_error(client, message):
    pytest.importorskip("distributed")
    from concurrent.futures import CancelledError

    from dualtap.spins.cluster import told_if_lost

    def fail(error):
        with told_if_lost(client):
            raise error

    with pytest.raises(ConnectionError, match=message):
        fail(CancelledError())
    with pytest.raises(ZeroDivisionError):
        fail(ZeroDivisionError())
    with pytest.raises(ConnectionError if client is _Gone else RuntimeError):
        fail(RuntimeError("of the client"))
