"""How estimators take in samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_n_features, validate_data

from dualtap.spins import Spins, as_spins


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

    Returns
    -------
    tuple of int

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
