"""From numbers to spins: `BinarizeSpins`, a threshold for every column."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dualtap._validation import Interval, StrOptions, fit_context

__all__ = ["BinarizeSpins"]

Floats = NDArray[np.floating[Any]]


class BinarizeSpins(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn columns of numbers into ±1 spins: +1 above the threshold of the column, -1 otherwise.

    A value equal to the threshold becomes -1. Missing values stay missing.

    Parameters
    ----------
    threshold : {"median", "mean"}, float or array-like of shape (n_features,)
        "median" or "mean" of each column, learned by :meth:`fit` from what is not missing; one
        number for all columns; or a number for each column. The median makes every spin +1 about
        as often as -1, so that spins have no means of their own and patterns stand out best.

    Attributes
    ----------
    thresholds_ : array of shape (n_features,)
        The threshold of each column.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only when X has string column names.

    Notes
    -----
    Many columns have their median at an end of their range. Counts that are mostly 0 have the
    median 0, and the spin says whether there was anything at all. Where no value lies above the
    median, as in a 0/1 column of mostly ones, the threshold is the largest value below it, so
    that the column still tells its two kinds of values apart. A constant column becomes -1
    everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.preprocessing import BinarizeSpins
    >>> X = [[0.2, 5.0], [0.9, np.nan], [0.4, 7.0], [0.8, 6.0]]
    >>> to_spins = BinarizeSpins().fit(X)
    >>> to_spins.thresholds_
    array([0.6, 6. ])
    >>> to_spins.transform(X)
    array([[-1., -1.],
           [ 1., nan],
           [-1.,  1.],
           [ 1., -1.]], dtype=float32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [
            StrOptions({"median", "mean"}),
            Interval(Real, None, None, closed="neither"),
            "array-like",
        ],
    }

    def __init__(self, threshold: Literal["median", "mean"] | float | ArrayLike = "median") -> None:
        self.threshold = threshold

    @fit_context()
    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the threshold of every column.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Numbers; NaN or None where a value is missing.
        y : ignored

        Returns
        -------
        self
        """
        values = self._validated(X, reset=True)
        if not isinstance(self.threshold, str):
            self.thresholds_ = _given_thresholds(self.threshold, values.shape[1])
            return self
        empty = np.flatnonzero(np.isnan(values).all(axis=0))
        if empty.size:
            raise ValueError(
                f"column {self._name(empty[0])} has no value, so it has no {self.threshold}: "
                "leave the column out, or give thresholds as numbers"
            )
        self.thresholds_ = _medians(values) if self.threshold == "median" else _means(values)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return X as spins.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features)
            int8 ±1; float32 with NaN if values are missing. A DataFrame after
            ``set_output(transform="pandas")`` or ``"polars"``.
        """
        check_is_fitted(self)
        values = self._validated(X, reset=False)
        S = np.where(values > self.thresholds_, np.int8(1), np.int8(-1))
        missing = np.isnan(values)
        return np.where(missing, np.float32(np.nan), S) if missing.any() else S

    def _validated(self, X: Any, *, reset: bool) -> Floats:
        try:
            values: Floats = validate_data(
                self,
                X,
                reset=reset,
                dtype=(np.float64, np.float32),
                ensure_all_finite="allow-nan",
            )
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"X holds text, which has no threshold ({error}): encode it as numbers first"
            ) from error
        return values

    def _name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return str(column) if names is None else repr(str(names[column]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _given_thresholds(threshold: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """Return one threshold a column, or say what is wrong with them."""
    given = np.asarray(threshold, dtype=np.float64)
    if given.ndim and given.shape != (n_features,):
        raise ValueError(
            f"threshold must be one number or have shape ({n_features},), one per column, "
            f"got shape {given.shape}"
        )
    if not np.isfinite(given).all():
        raise ValueError("threshold must be finite, got NaN or infinity")
    return np.array(np.broadcast_to(given, n_features))


def _medians(values: Floats) -> NDArray[np.float64]:
    """Return the medians, or the largest value below where no value lies above."""
    median = np.nanmedian(values, axis=0).astype(np.float64)
    at_top = np.flatnonzero(~(values > median).any(axis=0) & (values < median).any(axis=0))
    below = np.where(values[:, at_top] < median[at_top], values[:, at_top], -np.inf)
    median[at_top] = below.max(axis=0)
    return median


def _means(values: Floats) -> NDArray[np.float64]:
    """Return the means, kept within the range that rounding could leave."""
    mean = np.nanmean(values, axis=0, dtype=np.float64)
    return np.clip(mean, np.nanmin(values, axis=0), np.nanmax(values, axis=0))
