"""Patterns, strengths and fields as they are given to a model: read and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap.spins import Spins, as_spins
from dualtap.spins.numbers import chunks
from dualtap.spins.storage import CHUNK


def as_patterns(patterns: Any) -> NDArray[np.int8]:
    """Return patterns as -1, 0 and +1, where 0 is a spin that is not in a pattern.

    Parameters
    ----------
    patterns : array-like of shape (n_patterns, n_spins)
        Any binary encoding, or -1, 0 and +1. Without a -1, an array of 0 and 1 is read as 0/1:
        0 is then -1.

    Returns
    -------
    array of shape (n_patterns, n_spins), int8

    Examples
    --------
    >>> from dualtap._parameters import as_patterns
    >>> as_patterns([[1, -1, 0]])
    array([[ 1, -1,  0]], dtype=int8)
    >>> as_patterns([[1, 1, 0]])
    array([[ 1,  1, -1]], dtype=int8)
    """
    shape = np.shape(patterns)
    if len(shape) == 2 and shape[0] == 0 and shape[1] >= 2:
        return np.empty(shape, dtype=np.int8)
    zeta = _read(patterns)
    empty = np.flatnonzero(~zeta.any(axis=1))
    if empty.size:
        raise ValueError(f"pattern {empty[0]} is all zero: no spin takes part in it, leave it out")
    return zeta


def _read(patterns: Any) -> NDArray[np.int8]:
    if isinstance(patterns, Spins):
        return patterns.values
    ternary = False
    for block in chunks(patterns, CHUNK):
        ternary |= bool((block == -1).any())
        if block.dtype.kind == "f" and np.isnan(block).any():
            raise ValueError("patterns must be complete: every entry -1, 0 or +1")
    return as_spins(patterns, zero_is_missing=ternary).values


def as_strengths(
    n_patterns: int, beta: float | None, strengths: ArrayLike | None
) -> NDArray[np.float64]:
    """Return the strength of every pattern, given one β for all or one number each.

    Parameters
    ----------
    n_patterns : int
    beta : float or None
        Positive.
    strengths : array-like of shape (n_patterns,), or None
        Finite, of any sign.

    Returns
    -------
    array of shape (n_patterns,), float64 and read-only

    Raises
    ------
    ValueError
        Unless exactly one of ``beta`` and ``strengths`` is given, and is valid.

    Examples
    --------
    >>> from dualtap._parameters import as_strengths
    >>> as_strengths(2, 1.5, None)
    array([1.5, 1.5])
    >>> as_strengths(2, None, [1, -0.5])
    array([ 1. , -0.5])
    """
    if (beta is None) == (strengths is None):
        given = "neither" if beta is None else "both"
        raise ValueError(f"give either beta or strengths, got {given}")
    if beta is not None:
        if not (np.isfinite(beta) and beta > 0):
            raise ValueError(f"beta must be a positive number, got {beta!r}")
        g = np.full(n_patterns, beta, dtype=np.float64)
    else:
        g = np.array(strengths, dtype=np.float64)
        if g.shape != (n_patterns,):
            raise ValueError(
                f"strengths must have shape ({n_patterns},), one number per pattern, "
                f"got shape {g.shape}"
            )
        infinite = np.flatnonzero(~np.isfinite(g))
        if infinite.size:
            raise ValueError(f"strengths must be finite, got {g[infinite[0]]} at {infinite[0]}")
    g.flags.writeable = False
    return g


def as_fields(fields: ArrayLike, n_spins: int) -> NDArray[np.float64]:
    """Return fields as a read-only float64 copy, or say what is wrong with them.

    Parameters
    ----------
    fields : array-like of shape (n_spins,)
    n_spins : int

    Returns
    -------
    array of shape (n_spins,)

    Examples
    --------
    >>> from dualtap._parameters import as_fields
    >>> as_fields([0, 1, -2], n_spins=3)
    array([ 0.,  1., -2.])
    """
    b = np.array(fields, dtype=np.float64)
    if b.shape != (n_spins,):
        raise ValueError(
            f"fields must have shape ({n_spins},), one number per spin, got shape {b.shape}"
        )
    infinite = np.flatnonzero(~np.isfinite(b))
    if infinite.size:
        raise ValueError(
            f"fields must be finite, got {b[infinite[0]]} at spin {infinite[0]}; "
            "a field of 50 already fixes a spin"
        )
    b.flags.writeable = False
    return b
