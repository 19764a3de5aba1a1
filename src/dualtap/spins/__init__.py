"""The data: a validated matrix of spins, whatever encoding the user's file has.

Everything downstream sees values in {-1, 0, +1}, rows being samples. 0 means "no information": it
contributes nothing to any product. Small data are kept as bytes; larger ones as one bit per spin
(and one more where entries are missing), unpacked a block of samples at a time.
"""

from __future__ import annotations

from typing import Any

from dualtap.spins.builder import SpinsBuilder
from dualtap.spins.dask_arrays import dask_spins, is_dask_array
from dualtap.spins.numbers import chunks
from dualtap.spins.packed import PackedSpins
from dualtap.spins.storage import CHUNK, DenseSpins, Spins, SpinSummary

__all__ = ["DenseSpins", "PackedSpins", "SpinSummary", "Spins", "SpinsBuilder", "as_spins"]


def as_spins(X: Any, *, zero_is_missing: bool = False) -> Spins:
    """Validate a matrix of binary samples and bring it to ±1.

    The encoding is detected from the values: -1/+1, 0/1 or boolean. NaN and None (and ``NA`` of
    pandas, and masked entries) mark missing ones.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins)
        Boolean, integer, floating, or objects that are numbers or None: an array, also masked or
        memory-mapped, a tensor of PyTorch or any array that follows the array API standard (it
        is brought to the host), a DataFrame of pandas or polars, a PyArrow table, a SciPy sparse
        matrix (what it does not store is 0), a Dask array (packed on the workers of the present
        client).
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
    if is_dask_array(X):
        return dask_spins(X, zero_is_missing=zero_is_missing)
    builder = SpinsBuilder(zero_is_missing=zero_is_missing, n_samples=_length(X))
    for block in chunks(X, CHUNK):
        builder.add(block)
    return builder.finish()


def _length(X: Any) -> int | None:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) == 2 else None
