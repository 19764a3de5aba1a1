"""The data: a validated matrix of spins, whatever encoding the user's file has.

Everything downstream sees int8 values in {-1, 0, +1}, rows being samples. 0 means "no
information": it contributes nothing to any product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

__all__ = ["SpinSummary", "Spins", "as_spins"]

Encoding = Literal["-1/+1", "0/1", "boolean"]


@dataclass(frozen=True)
class SpinSummary:
    """What there is to know about a sample matrix before fitting it.

    Attributes
    ----------
    n_samples, n_spins : int
    encoding : str
        How the input was read: "-1/+1", "0/1" or "boolean".
    n_missing : int
        Entries without a value.
    n_constant : int
        Spins that never change (missing entries aside); they carry no information on couplings.
    n_duplicates : int
        Samples equal to an earlier one.
    """

    n_samples: int
    n_spins: int
    encoding: Encoding
    n_missing: int
    n_constant: int
    n_duplicates: int

    def __str__(self) -> str:
        share = self.n_missing / (self.n_samples * self.n_spins)
        return (
            f"{self.n_samples} samples of {self.n_spins} spins, read as {self.encoding}; "
            f"{self.n_missing} missing entries ({share:.1%}), "
            f"{self.n_constant} constant spins, {self.n_duplicates} duplicate samples"
        )


@dataclass(frozen=True)
class Spins:
    """A validated sample matrix; make one with :func:`as_spins`.

    Attributes
    ----------
    values : array of shape (n_samples, n_spins), int8
        -1, +1, or 0 for a missing entry.
    encoding : str
        How the input was read.
    """

    values: NDArray[np.int8]
    encoding: Encoding

    @property
    def n_samples(self) -> int:
        """Number of samples M."""
        return len(self.values)

    @property
    def n_spins(self) -> int:
        """Number of spins N."""
        return int(self.values.shape[1])

    @cached_property
    def summary(self) -> SpinSummary:
        """Counts of missing entries, constant spins and duplicate samples."""
        values = self.values
        constant = ~((values == 1).any(axis=0) & (values == -1).any(axis=0))
        # A row of bytes is one opaque value: sorting those finds duplicates without a copy.
        rows = values.view(np.dtype((np.void, self.n_spins)))
        return SpinSummary(
            n_samples=self.n_samples,
            n_spins=self.n_spins,
            encoding=self.encoding,
            n_missing=values.size - int(np.count_nonzero(values)),
            n_constant=int(np.count_nonzero(constant)),
            n_duplicates=self.n_samples - len(np.unique(rows)),
        )


def as_spins(X: Any, *, zero_is_missing: bool = False) -> Spins:
    """Validate a matrix of binary samples and bring it to ±1.

    The encoding is detected from the values: -1/+1, 0/1 or boolean. NaN and None (and ``NA`` of
    pandas, and masked entries) mark missing ones.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_spins)
        Boolean, integer, floating, or objects that are numbers or None.
    zero_is_missing : bool
        The data are -1/+1 and 0 marks a missing entry. Without it a matrix that holds -1, 0 and
        +1 is refused, because 0 could mean anything.

    Returns
    -------
    Spins

    Raises
    ------
    ValueError
        For an empty or one-dimensional input, fewer than two spins, infinite values, text, or a
        value that is none of -1, 0, 1 (named with its row and column).
    TypeError
        For sparse matrices.

    Examples
    --------
    >>> from dualtap.spins import as_spins
    >>> spins = as_spins([[0, 1, 1], [1, None, 0]])
    >>> spins.values
    array([[-1,  1,  1],
           [ 1,  0, -1]], dtype=int8)
    >>> print(spins.summary)
    2 samples of 3 spins, read as 0/1; 1 missing entries (16.7%), 1 constant spins,
    0 duplicate samples
    """
    if isinstance(X, Spins):
        return X
    array = _numeric(X)
    _check_shape(array)
    missing = _missing(array)
    low, encoding = _detect_encoding(array, missing, zero_is_missing)
    values = np.where(array == 1, np.int8(1), np.int8(-1))
    if missing is not None:
        values[missing] = 0
    if zero_is_missing and low == -1:
        values[array == 0] = 0
    if not values.any():
        raise ValueError("X has no observed entry: every value is missing")
    return Spins(np.ascontiguousarray(values), encoding)


def _numeric(X: Any) -> NDArray[Any]:
    """Return X as a boolean, integer or floating array, None and NA turned into NaN."""
    if scipy.sparse.issparse(X):
        raise TypeError("X is a sparse matrix, which is not supported; pass X.toarray()")
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    array = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind != "O":
        first = array.ravel()[0].item() if array.size else ""
        raise ValueError(
            f"X holds values of type {array.dtype} (the first is {first!r}); "
            "spins are numbers or booleans"
        )
    _check_shape(array)
    numeric = np.empty(array.shape, dtype=np.float64)
    for index, value in np.ndenumerate(array):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            numeric[index] = np.nan
        elif isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
            try:
                numeric[index] = value
            except OverflowError:  # an integer that no float holds
                raise _third_value(value, *index) from None
        else:
            raise ValueError(
                f"X is an object array and holds {value!r} at row {index[0]}, column {index[1]}; "
                "spins are numbers or booleans, with None or NaN where a value is missing"
            )
    return numeric


def _check_shape(array: NDArray[Any]) -> None:
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: X must have shape "
            "(n_samples, n_spins). Reshape your data with X.reshape(1, -1) if it is one sample."
        )
    n_samples, n_spins = array.shape
    if n_samples == 0 or n_spins == 0:
        raise ValueError(
            f"X is empty: found {n_samples} sample(s) and {n_spins} feature(s) "
            f"(shape={array.shape}) while a minimum of 1 is required."
        )
    if n_spins < 2:
        raise ValueError(
            "X has 1 feature(s) (spins); couplings need at least two. Is it transposed?"
        )


def _missing(array: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where entries are NaN, or None when the type or the data have none."""
    if array.dtype.kind != "f":
        return None
    if np.isinf(array).any():
        row, column = np.argwhere(np.isinf(array))[0]
        raise ValueError(f"X contains infinity, at row {row}, column {column}")
    missing = np.isnan(array)
    return missing if missing.any() else None


def _third_value(value: Any, row: int, column: int) -> ValueError:
    return ValueError(
        f"X holds a third value: {value!r} at row {row}, column {column}; spins are -1/+1, 0/1 or "
        "boolean, with NaN or None where a value is missing"
    )


def _detect_encoding(
    array: NDArray[Any], missing: NDArray[np.bool_] | None, zero_is_missing: bool
) -> tuple[int, Encoding]:
    """Return the value that stands for -1, and the name of the encoding."""
    if array.dtype.kind == "b":
        return 0, "boolean"
    minus, zero = array == -1, array == 0
    known = minus | zero | (array == 1)
    if missing is not None:
        known |= missing
    if not known.all():
        row, column = np.argwhere(~known)[0]
        raise _third_value(array[row, column].item(), row, column)
    if zero_is_missing:
        return -1, "-1/+1"
    if minus.any() and zero.any():
        row, column = np.argwhere(zero)[0]
        raise ValueError(
            f"X holds -1, 0 and +1 (the first 0 at row {row}, column {column}); "
            "pass zero_is_missing=True if 0 marks a missing entry"
        )
    return (0, "0/1") if zero.any() else (-1, "-1/+1")
