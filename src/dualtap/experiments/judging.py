"""What figures share when they sum up trials and judge claims."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualtap.experiments.experiment import Verdict


def mean_and_error(values: ArrayLike) -> tuple[Any, Any]:
    """Return the mean over trials (the first axis) and its standard error.

    Examples
    --------
    >>> from dualtap.experiments.judging import mean_and_error
    >>> mean, error = mean_and_error([1.0, 3.0])
    >>> float(mean), float(error)
    (2.0, 1.0)
    """
    trials = np.asarray(values, dtype=np.float64)
    # A single trial has no spread to estimate an error from: no bar is drawn.
    ddof = min(1, len(trials) - 1)
    return trials.mean(axis=0), trials.std(axis=0, ddof=ddof) / np.sqrt(len(trials))


def grade(fully: Any, partly: Any) -> Verdict:
    """Return the verdict on a claim that holds in full, in part, or neither.

    Examples
    --------
    >>> from dualtap.experiments.judging import grade
    >>> grade(False, True)
    'holds with a limit'
    """
    return "holds" if fully else "holds with a limit" if partly else "does not hold"
