"""Equal samples as one row with a weight: samples and their histogram are then the same data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.builder import DENSE
from dualtap.spins.packed import PackedSpins
from dualtap.spins.storage import DenseSpins, Spins


def distinct(spins: Spins) -> Spins:
    """Return every different row once, with the sum of its weights.

    Repeated rows, rows with weights and a histogram of either lead to the same rows and weights,
    in whatever order they come: they are sorted, and shuffled always in the same way, so that any
    part of them is like the whole. Rows of which nothing was observed come last, so that the others
    are as they would be without them. If all others differ and have weight 1, all stay as they are;
    so do samples in a mapped file or on Dask workers.

    Parameters
    ----------
    spins : Spins

    Returns
    -------
    Spins

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.distinct import distinct
    >>> rows = distinct(as_spins([[1, 1], [0, 1], [1, 1]]))
    >>> rows.values, rows.weights
    (array([[-1,  1],
           [ 1,  1]], dtype=int8), array([1., 2.]))
    """
    keys = _keys(spins)
    if keys is None:
        return spins
    seen = np.flatnonzero(spins.n_observed)
    _, first, which = np.unique(keys[seen], return_index=True, return_inverse=True)
    if len(first) == len(seen) and (spins.weights is None or (spins.weights == 1).all()):
        return spins if spins.weights is None else spins.weighted(None)
    each = np.ones(spins.n_samples) if spins.weights is None else spins.weights
    order = np.random.default_rng(0).permutation(len(first))
    chosen = seen[first[order]]
    weights = np.bincount(which, each[seen]).astype(np.float64)[order]
    if len(seen) < spins.n_samples:
        empty = np.flatnonzero(spins.n_observed == 0)
        chosen, weights = np.append(chosen, empty[0]), np.append(weights, each[empty].sum())
    rows = spins.take(chosen).weighted(weights)
    if isinstance(rows, PackedSpins) and rows.n_entries <= DENSE:  # as a histogram is kept
        return DenseSpins(rows.values, rows.encoding, rows.reads).weighted(rows.weights)
    return rows


def _keys(spins: Spins) -> NDArray[np.generic] | None:
    """Return a value per row that is the same for equal rows, whichever way they are kept."""
    if isinstance(spins, PackedSpins):
        if isinstance(spins.bits, np.memmap):
            return None
        rows = spins.row_bytes()
    elif isinstance(spins, DenseSpins):
        rows = np.packbits(spins.values > 0, axis=1)
        if not spins.complete:
            rows = np.hstack([rows, np.packbits(spins.values != 0, axis=1)])
    else:
        return None
    n_bytes = rows.shape[1]
    if n_bytes > 8:
        return np.ascontiguousarray(rows).view(np.dtype((np.void, n_bytes)))[:, 0]
    whole = np.zeros((len(rows), 8), dtype=np.uint8)  # numbers are sorted faster than bytes
    whole[:, :n_bytes] = rows
    return whole.view(">u8")[:, 0].astype(np.uint64)
