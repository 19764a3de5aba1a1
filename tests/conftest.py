"""What tests share: reproducible examples, and the command as a user types it."""

import signal
import sys

import numba
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from dualtap import cli
from dualtap.spins.passes import counted_reads

# The same examples on every machine and every run: a red test is a fact, not luck.
settings.register_profile(
    "reproducible",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # machines differ in speed
)
settings.load_profile("reproducible")


@pytest.fixture(scope="module")
def one_kernel_thread():
    """Threads meet after every update, which is slow on a busy machine and changes no bit."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="module")
def one_blas_thread():
    """BLAS threads that wait for each other on a busy machine make small products slow."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def reads():
    """Count the entries of samples that the test reads."""
    with counted_reads() as reads:
        yield reads


@pytest.fixture
def in_foreground():
    """Heed signals as on a terminal, in this process and in those that it starts.

    Shells start background jobs with SIGINT ignored and nohup ignores SIGHUP; processes inherit
    that, and the command leaves it so.
    """
    handlers = {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}
    numbers = {getattr(signal, name): h for name, h in handlers.items() if hasattr(signal, name)}
    before = {number: signal.signal(number, handler) for number, handler in numbers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run ``dualtap`` with arguments in an empty folder; return code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def _run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dualtap", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capfd.readouterr()
        return exit_.value.code or 0, out, err

    return _run
