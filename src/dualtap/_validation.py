"""How estimators take in samples and check parameters.

The private names of scikit-learn that the package needs are imported here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_n_features, validate_data

from dualtap.spins import Spins, as_spins
from dualtap.spins.distinct import distinct_rows
from dualtap.spins.weights import with_weights

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "TakesSpins",
    "checked_weights",
    "counted",
    "fit_context",
    "image_shape",
    "validated_spins",
]

FitMethod = TypeVar("FitMethod", bound=Callable[..., Any])


def fit_context(*, skip_nested: bool = True) -> Callable[[FitMethod], FitMethod]:
    """Return scikit-learn's decorator of ``fit``, which checks parameters, for type checkers.

    Parameters
    ----------
    skip_nested : bool
        The parameters of estimators that this one makes need no check.
    """

    def decorate(method: FitMethod) -> FitMethod:
        decorated: FitMethod = _fit_context(prefer_skip_nested_validation=skip_nested)(method)
        return decorated

    return decorate


def validated_spins(estimator: Any, X: Any, *, reset: bool = False) -> Spins:
    """Return X as spins; learn the number and names of spins if ``reset``, else check them.

    Names are those of the columns of pandas, polars and PyArrow tables. Spins that were validated
    before carry no names, so only their number is checked.
    """
    tabular = len(getattr(X, "shape", ())) == 2
    if not reset and tabular:  # other columns are the first thing to say, whatever they hold
        _check_columns(estimator, X, reset=False)
    spins = as_spins(X)
    if reset or not tabular:
        _check_columns(estimator, X, reset=reset)
    return spins


def checked_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Return weights of samples as an array, or say what is wrong with them.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
    n_samples : int

    Examples
    --------
    >>> from dualtap._validation import checked_weights
    >>> checked_weights([1, -2], 2)
    Traceback (most recent call last):
    ...
    ValueError: sample_weight is -2 at sample 1; weights are numbers of samples, 0 or more
    """
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight contains a value that is not a number") from None
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; one weight for each of the {n_samples} "
            f"samples is needed, shape ({n_samples},)"
        )
    wrong = np.flatnonzero(~(weights >= 0) | np.isinf(weights))
    if len(wrong):
        raise ValueError(
            f"sample_weight is {weights[wrong[0]]:g} at sample {wrong[0]}; weights are numbers of "
            "samples, 0 or more"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for all samples: none is left")
    return weights


def counted(spins: Spins, sample_weight: Any) -> Spins:
    """Return samples to fit: those of weight 0 left out, equal ones as one row with a weight.

    Repeated rows and rows with weights are the same data from here on, and what is fitted to
    either is equal to the last bit.

    Parameters
    ----------
    spins : Spins
    sample_weight : array-like of shape (n_samples,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap._validation import counted
    >>> counted(as_spins([[1, 0], [1, 0]]), [3, 0.5]).weights
    array([3.5])
    """
    weights = checked_weights(sample_weight, spins.n_samples)
    if weights is not None:
        spins = with_weights(spins, weights)
        if spins.n_missing == spins.n_entries:
            raise ValueError("X has no observed entry in samples of a weight above 0")
    return distinct_rows(spins)


def _check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Learn or check the number of columns and, where there are some, their names."""
    if not isinstance(X, Spins):
        try:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            if "must be in the same order" not in str(error):
                raise
            remedy = "Put them in that order: X[list(model.feature_names_in_)]."
            raise ValueError(f"{error}{remedy}") from None
        return
    nameless = np.empty((0, X.n_spins), dtype=np.int8)  # no sample need be unpacked
    if reset:  # forgets the names of an earlier fit
        validate_data(estimator, nameless, reset=True, skip_check_array=True)
    else:
        _check_n_features(estimator, nameless, reset=False)


def image_shape(shape: Any, n_spins: int) -> tuple[int, int]:
    """Return (height, width) if that many pixels are spins, or say what would fit.

    Parameters
    ----------
    shape : pair of int
    n_spins : int

    Examples
    --------
    >>> from dualtap._validation import image_shape
    >>> image_shape([2, 3], n_spins=6)
    (2, 3)
    """
    height, width = (int(side) for side in shape) if len(shape) == 2 else (0, 0)
    if height < 1 or width < 1 or height * width != n_spins:
        sides = [h for h in range(1, n_spins + 1) if n_spins % h == 0]
        square = min(sides, key=lambda h: abs(h - n_spins // h))
        raise ValueError(
            f"shape {tuple(shape)} is not that of a picture of {n_spins} spins: give height and "
            f"width whose product is {n_spins}, such as ({square}, {n_spins // square})"
        )
    return height, width


class TakesSpins:
    """Tells scikit-learn what every estimator of spins takes: missing entries, sparse matrices."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
