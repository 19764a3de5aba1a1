"""Fit the same samples with another version of this package, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SCRIPT = """
import json, sys, time, warnings
import numpy as np
import dualtap
warnings.simplefilter("ignore")
source, target = sys.argv[1:3]
seed, n_patterns = map(json.loads, sys.argv[3:])
Model = getattr(dualtap, "HopfieldPatterns", None) or dualtap.DualTAP
X = np.load(source)
seconds = np.inf
for _ in range(2):
    start = time.perf_counter()
    model = Model(n_patterns=n_patterns, random_state=seed).fit(X)
    seconds = min(seconds, time.perf_counter() - start)
    if seconds > 10:
        break
np.savez(target, patterns=model.patterns_, seconds=seconds)
"""


def fitted_by(
    source: Path, X: NDArray[Any], seed: int, n_patterns: int | None = None
) -> tuple[NDArray[np.int8], float]:
    """Return patterns and seconds of the default estimator of another version.

    Parameters
    ----------
    source : Path
        Folder that holds the other ``dualtap``.
    X : array of shape (n_samples, n_spins)
        ±1, NaN where an entry is missing.
    seed : int
    n_patterns : int, optional

    Returns
    -------
    patterns : array of shape (n_patterns, n_spins)
    seconds : float
    """
    one_thread = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONPATH": str(source)}
    with tempfile.TemporaryDirectory() as folder:
        samples, answer = Path(folder) / "X.npy", Path(folder) / "answer.npz"
        np.save(samples, X)
        subprocess.run(
            [sys.executable, "-c", _SCRIPT, samples, answer, str(seed), json.dumps(n_patterns)],
            env=os.environ | one_thread,
            check=True,
        )
        with np.load(answer) as file:
            return file["patterns"], float(file["seconds"])
