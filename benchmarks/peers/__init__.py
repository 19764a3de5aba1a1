"""Peers in environments of their own, timed in turns with ours.

A peer is a script in this folder. It runs in ``.peers/<name>``, built from the registries when it
is missing, reads one JSON request a line, does the work, and answers with one JSON line. The time
it reports is that of the work alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ENVIRONMENTS = ROOT / ".peers"
OURS = "dualtap"
# What each environment holds; every tuple is one call of pip.
REQUIREMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "scikit-learn": (("scikit-learn==1.9.1", "numpy==2.4.6"),),
    # Its build imports itself, with functions that SciPy has since dropped.
    "coniii": (
        ("numpy==1.26.4", "scipy==1.11.4", "numba==0.60.0", "setuptools<70", "wheel"),
        ("multiprocess", "matplotlib", "mpmath", "dill"),
        ("--no-build-isolation", "coniii==3.0.1"),
    ),
    # Firth's penalty calls what later versions of scikit-learn have no more.
    "pseudolm": (("pseudolm==1.0.1", "scikit-learn==1.5.2", "scipy==1.14.1", "numpy==2.0.2"),),
    "dwave-samplers": (("dwave-samplers==1.8.0",),),
    "stepmix": (("stepmix==3.0.0", "scikit-learn==1.9.1", "numpy==2.4.6"),),
    "logisticpca": (("logisticpca==0.4.0", "scikit-learn==1.9.1", "numpy==2.4.6"),),
    # torch first and pinned: otherwise pip takes the build with the CUDA libraries.
    "rbms": (("torch==2.13.0",), ("rbms==0.5.0",)),
}


class PeerError(RuntimeError):
    """A peer cannot be installed, does not start or gives no answer; the message is the reason."""


def python_of(name: str, *requirements: tuple[str, ...]) -> Path:
    """Return the interpreter of a peer's environment; each tuple is one call of pip.

    Raises
    ------
    PeerError
        With the reason that pip gave.
    """
    if name == OURS:
        return Path(sys.executable)
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    complete = folder / ".complete"
    if not complete.exists():
        # The project's constraints are for the project, not for its peers. coniii looks for
        # headers in an environment of conda and does not build where none is named.
        environment = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}
        environment["CONDA_PREFIX"] = str(folder)
        _build([sys.executable, "-m", "venv", str(folder)], environment)
        for packages in requirements or REQUIREMENTS[name]:
            _build([str(python), "-m", "pip", "install", "--quiet", *packages], environment)
        complete.touch()
    return python


def _build(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise PeerError(f"not installed: {reason(done.stderr + done.stdout)}")


def reason(output: str) -> str:
    r"""Return the line of an output that says what went wrong, without addresses and folders.

    Examples
    --------
    >>> from benchmarks.peers import reason
    >>> reason("Traceback:\n  KeyError: 'PREFIX'\nnote: not a problem with pip")
    "KeyError: 'PREFIX'"
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    told = [line for line in lines if line.startswith("ERROR: ")]
    line = ((raised or told or lines or ["no reason given"])[-1]).removeprefix("ERROR: ")
    line = re.sub(r"\w+://\S+", "…", line)
    line = re.sub(r"(?<![\w.])/(?:[^/\s'\"]+/)+", "", line)
    return line if len(line) <= 120 else line[:119] + "…"


class Peer:
    """A running peer that answers requests.

    Parameters
    ----------
    python : Path
        From :func:`python_of`.
    script : str or Path
        File in this folder.
    setup : dict
        First request, which it answers when it is ready; ``threads`` is how many it may use.
    limit : float
        Seconds after which it is stopped when it has not answered.
    """

    def __init__(
        self, python: Path, script: str | Path, setup: dict[str, Any], limit: float = 3600
    ) -> None:
        self._limit = limit
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in __exit__)
        threads = str(setup["threads"])
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={
                **os.environ,
                **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads),
                **dict.fromkeys(("MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), threads),
                "PYTHONPATH": os.pathsep.join(
                    [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
                ),
            },
        )
        try:
            self.about = self.ask(setup)
        except PeerError:
            self.__exit__(None, None, None)
            raise

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = Timer(self._limit, self._process.kill)
        late.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            in_time = late.is_alive()
            late.cancel()
        if not line:
            raise PeerError(self._last_words() if in_time else f"more than {self._limit:g} s")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(reason(answer["error"]))
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return f"stopped with code {code}: {reason(self._errors.read())}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
