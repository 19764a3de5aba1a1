"""Back from spins to the values, the type and the container that samples came in."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.storage import Encoding, Spins


def shown_encoding(spins: Spins, usual: Encoding) -> Encoding:
    """Return how samples are written; as usual, if all that is observed are ones.

    Examples
    --------
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.encodings import shown_encoding
    >>> shown_encoding(as_spins([[1, None]]), "0/1"), shown_encoding(as_spins([[1, -1]]), "0/1")
    ('0/1', '-1/+1')
    """
    if spins.encoding != "-1/+1" or any((spins.block(r) == -1).any() for r in spins.blocks()):
        return spins.encoding
    return usual


def as_given(X: Any, values: NDArray[np.int8], encoding: Encoding) -> Any:
    """Return complete spins as what X was, a matrix of the same samples with or without gaps.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins)
    values : array of shape (n_samples, n_spins), ±1
    encoding : str
        How X is written.

    Returns
    -------
    DataFrame if X is one of pandas or polars, with its names and types; else array
        Of the type of X if that is an array of booleans or numbers, int8 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.encodings import as_given
    >>> X = np.array([[0.0, np.nan], [1.0, 1.0]])
    >>> as_given(X, np.array([[-1, -1], [1, 1]], dtype=np.int8), "0/1")
    array([[0., 0.],
           [1., 1.]])
    """
    coded = values if encoding == "-1/+1" else (values > 0).astype(np.int8)
    if hasattr(X, "iloc"):
        return _pandas_frame(X, coded)
    if type(X).__module__.startswith("polars"):
        return _polars_frame(X, coded)
    is_plain = isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray)
    return coded.astype(X.dtype) if is_plain and X.dtype.kind in "biuf" else coded


def _pandas_frame(X: Any, coded: NDArray[np.int8]) -> Any:
    result = X.copy()
    for k, kind in enumerate(X.dtypes):
        column = X.iloc[:, k]
        values: NDArray[Any] = coded[:, k]
        if kind.kind == "O" and all(isinstance(value, bool) for value in column.dropna()):
            values = values.astype(bool)
        result.isetitem(k, type(column)(values, index=X.index, dtype=kind))
    return result


def _polars_frame(X: Any, coded: NDArray[np.int8]) -> Any:
    series = sys.modules["polars"].Series  # it is imported: X is of it
    columns = zip(X.schema.items(), coded.T, strict=True)
    return X.with_columns(series(name, values).cast(kind) for (name, kind), values in columns)
