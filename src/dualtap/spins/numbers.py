"""Rows of arrays, frames, tables and sparse matrices as numbers, NaN where one is missing."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualtap._namespace import is_foreign, to_numpy


def chunks(X: Any, entries: int) -> Iterator[NDArray[Any]]:
    """Yield blocks of rows of about so many entries, as boolean, integer or floating arrays.

    A memory-mapped array gives its pages back after each block, so that passing over a file does
    not fill the memory with it.

    Parameters
    ----------
    X : array-like, DataFrame, Table or sparse matrix of shape (n_samples, n_spins)
    entries : int

    Examples
    --------
    >>> from dualtap.spins.numbers import chunks
    >>> [block.tolist() for block in chunks([[1, 0], [None, 1], [0, 0]], 4)]
    [[[1.0, 0.0], [nan, 1.0]], [[0.0, 0.0]]]
    """
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if scipy.sparse.issparse(X):
        X = X.tocsr()  # type: ignore[attr-defined]
    if len(X.shape) != 2 or 0 in X.shape:
        yield numbers(X if isinstance(X, np.ndarray) else _rows(X, slice(None)))
        return
    n_rows, n_columns = X.shape
    step = max(1, entries // n_columns)
    for first in range(0, n_rows, step):
        yield numbers(_rows(X, slice(first, min(first + step, n_rows))), first)
        give_back(X)


def give_back(X: Any) -> None:
    """Let the system take back the pages of a mapped file; they are read again when needed."""
    # Changes to a private mapping (mode "c") are nowhere else: they would be lost.
    if not isinstance(X, np.memmap) or X.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    pages = X._mmap  # type: ignore[attr-defined]
    if pages is not None:
        pages.madvise(mmap.MADV_DONTNEED)


def _rows(X: Any, rows: slice) -> Any:
    """Return some rows of anything with a shape as an array, masked array included."""
    if scipy.sparse.issparse(X):
        return X[rows].toarray()  # type: ignore[index]
    if isinstance(X, np.ndarray):
        return X[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows].to_numpy()
    if hasattr(X, "column_names") or hasattr(X, "schema"):
        part = X[rows] if rows != slice(None) else X
        if hasattr(part, "to_numpy"):  # polars
            return part.to_numpy()
        columns = [part.column(k).to_numpy(zero_copy_only=False) for k in range(part.num_columns)]
        return np.column_stack(columns) if columns else np.empty((part.num_rows, 0))
    if is_foreign(X):  # a block at a time comes from the device
        return to_numpy(X if rows == slice(None) else X[rows, ...])
    return np.asarray(X)[rows]


def numbers(X: Any, first_row: int = 0) -> NDArray[Any]:
    """Return an array as a boolean, integer or floating one, None and NA turned into NaN.

    Parameters
    ----------
    X : array
    first_row : int
        Number of the first row, for the message of an error.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.numbers import numbers
    >>> numbers(np.array([[True, None]], dtype=object))
    array([[ 1., nan]])
    """
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    array = np.asarray(X)
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind != "O":
        first = array.ravel()[0].item() if array.size else ""
        unsupported = "Complex data not supported: " if array.dtype.kind == "c" else ""
        raise ValueError(
            f"{unsupported}X holds values of type {array.dtype} (the first is {first!r}); "
            "spins are numbers or booleans"
        )
    if array.ndim != 2:
        return np.empty(array.shape)
    numeric = np.empty(array.shape, dtype=np.float64)
    for (row, column), value in np.ndenumerate(array):
        numeric[row, column] = _number(value, row + first_row, column)
    return numeric


def _number(value: Any, row: int, column: int) -> float:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return float("nan")
    if not isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        raise ValueError(
            f"X is an object array and holds {value!r} at row {row}, column {column}; "
            "spins are numbers or booleans, with None or NaN where a value is missing"
        )
    try:
        return float(value)
    except OverflowError:  # an integer that no float holds
        raise third_value(value, row, column) from None


def third_value(value: Any, row: int, column: int) -> ValueError:
    """Return the error that a value other than two makes."""
    return ValueError(
        f"X holds a third value: {value!r} at row {row}, column {column}; spins are -1/+1, 0/1 or "
        "boolean, with NaN or None where a value is missing"
    )
