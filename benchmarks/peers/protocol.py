"""How a contender answers: one JSON request a line in, one JSON answer a line out.

Runs in every contender's own environment, so it needs nothing beyond NumPy.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answer = NDArray[Any]
Work = Callable[[], Answer | tuple[Answer, float]]
"""Returns its answer; with seconds of its own where only a part of the work is to be timed."""


def serve(prepare: Callable[[dict[str, Any], dict[str, Any]], Work], about: dict[str, Any]) -> None:
    """Answer requests until the input ends.

    The first line is the setup, answered by ``about``. For every further one ``prepare(setup,
    request)`` reads files and the like, and what it returns is timed. An error is an answer too.
    """
    # Libraries print, and their workers inherit the output: only answers go to the real one.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    setup = json.loads(sys.stdin.readline())
    answers.write(json.dumps(about) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            try:
                answer = _measured(prepare(setup, json.loads(line)), Path(folder, "answer.npz"))
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")


def _measured(work: Work, path: Path) -> dict[str, Any]:
    before = _peak_mb()
    start = time.perf_counter()
    answer = work()
    seconds = time.perf_counter() - start
    if isinstance(answer, tuple):
        answer, seconds = answer
    peak = _peak_mb()
    np.savez(path, answer=answer)
    return {
        "seconds": seconds,
        "peak_mb": peak,
        "grown_mb": peak - before,
        "answer": str(path),
    }


def _peak_mb() -> float:
    """Return the most memory this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # a child's ru_maxrss begins with what its parent held
        line = next(one for one in status.read_text().splitlines() if one.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
