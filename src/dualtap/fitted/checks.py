"""What every fit returns is checked once, before it is published.

What fails here was computed wrongly: it is a mistake of this package, and never of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._schema import Entry, checked_arrays
from dualtap.fitted.training import strength_covariance
from dualtap.local_fields import log_sigmoid
from dualtap.spins.storage import different_rows

ROUNDED = 1.001
"""Bound of what is at most one, but for rounding."""
_BELOW = 0.05
"""How far a score per spin may lie below that of independent spins: a few rows stand for all."""
LEARNED = {
    "patterns": Entry("i", ("P", "N"), -1, 1),
    "magnetizations": Entry("f", ("P", "N"), -ROUNDED, ROUNDED),
    "strengths": Entry("f", ("P",)),
    "fields": Entry("f", ("N",)),
    "means": Entry("f", ("N",), -ROUNDED, ROUNDED),
    "objective": Entry("f", nan=True),
    "labels": Entry("i", ("M",), -1),
    "weights": Entry("f", ("P",), 0, ROUNDED),
    "typical_overlaps": Entry("f", ("P",), 0, ROUNDED),
    "median_overlap": Entry("f", (), 0, ROUNDED, nan=True),
}
"""What every model of patterns has learned, in memory and in files."""
SCORES = {"training_scores": Entry("f", ("rows",))}
COVARIANCE = {"strength_covariance": Entry("f", ("P", "P"))}
"""What models keep of their training samples, but for those of old files."""


def learned_arrays(model: Any) -> dict[str, NDArray[Any]]:
    """Return what a fitted model has learned, by the names that files give it."""
    learned = {
        "patterns": model.patterns_,
        "magnetizations": model.magnetizations_,
        "strengths": model.strengths_,
        "fields": model.fields_,
        "means": model.means_,
        "objective": model.objective_,
        "labels": model.labels_,
        "weights": model.weights_,
        "typical_overlaps": model._typical_overlaps,
        "median_overlap": model._median_overlap,
    }
    if hasattr(model, "_training_scores"):  # not of a model from an old file
        learned["training_scores"] = model._training_scores
    return {name: np.asarray(value) for name, value in learned.items()}


def check_learned(
    arrays: dict[str, NDArray[Any]],
    rows: NDArray[np.int8],
    found: NDArray[np.float64],
    *,
    best: bool,
) -> None:
    """Raise if what a fit has learned cannot be right.

    Parameters
    ----------
    arrays : dict of arrays
        As :func:`learned_arrays` returns them.
    rows : array of shape (n_rows, n_spins)
        Some of the training samples: ±1, or 0 for a missing entry.
    found : array of shape (n_rows, 2)
        Their log pseudo-likelihoods and numbers of entries, as
        :func:`dualtap.fitted.training.row_likelihoods` returns them.
    best : bool
        The model was chosen among all: no pattern comes twice, and independent spins with the
        means of the data are not better. The published algorithm promises neither.

    Raises
    ------
    RuntimeError

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.checks import without_duplicates
    >>> without_duplicates(np.array([[1, -1], [-1, 1]]))
    False
    """
    try:
        checked_arrays(arrays, LEARNED | SCORES)
        patterns = arrays["patterns"]
        if not patterns.any(axis=1).all():
            raise ValueError("a pattern has no entry")
        if best and not without_duplicates(patterns):
            raise ValueError("a pattern comes twice")
        total, n_entries = found.sum(axis=0)
        if best and n_entries:
            _check_score(float(total / n_entries), independent_score(rows, arrays["means"]))
    except ValueError as error:
        raise _mistake(error) from None


def checked_covariance(*training: Any, **model: Any) -> NDArray[np.float64]:
    """Return the covariance of strengths, which is computed after the fit, checked as the rest.

    Parameters
    ----------
    *training, **model
        As :func:`dualtap.fitted.training.strength_covariance` takes them.

    Raises
    ------
    RuntimeError
    """
    C = strength_covariance(*training, **model)
    try:
        checked_arrays({"strength_covariance": C}, COVARIANCE)
    except ValueError as error:
        raise _mistake(error) from None
    return C


def _mistake(error: ValueError) -> RuntimeError:
    return RuntimeError(
        f"the fit went wrong, which is a mistake in dualtap: {error}; please report it with "
        "the data"
    )


def _check_score(score: float, independent: float) -> None:
    if score < independent - _BELOW:
        raise ValueError(
            f"the training samples score {score:.3f} per spin, and {independent:.3f} if spins "
            "were independent"
        )


def without_duplicates(patterns: NDArray[Any]) -> bool:
    """Whether all patterns differ, also from the negatives of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.checks import without_duplicates
    >>> without_duplicates(np.array([[1, 1, 0], [1, 0, 1]]))
    True
    """
    first = np.argmax(patterns != 0, axis=1)
    upright = patterns * patterns[np.arange(len(patterns)), first][:, None]
    return len(different_rows(upright.astype(np.int8))) == len(patterns)


def independent_score(rows: NDArray[np.int8], means: NDArray[np.floating[Any]]) -> float:
    """Return the log-likelihood per observed entry of independent spins with these means.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.checks import independent_score
    >>> round(independent_score(np.array([[1, -1]], dtype=np.int8), np.zeros(2)), 3)
    -0.693
    """
    fields = 2 * np.arctanh(np.clip(means, -1 + 1e-6, 1 - 1e-6))
    up, down = log_sigmoid(fields), log_sigmoid(-fields)
    total = (rows > 0) @ up + (rows < 0) @ down
    return float(total.sum() / np.count_nonzero(rows))
