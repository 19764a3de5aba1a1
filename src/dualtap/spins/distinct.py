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
    part of them is like the whole. Rows of which nothing was observed are left out. If all rows
    differ and have weight 1, they stay as they are; so do samples in a mapped file or on Dask
    workers.

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
    if not spins.complete and 0 < np.count_nonzero(spins.n_observed) < spins.n_samples:
        seen = np.flatnonzero(spins.n_observed)
        spins, keys = spins.take(seen), keys[seen]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == spins.n_samples and (spins.weights is None or (spins.weights == 1).all()):
        return spins if spins.weights is None else spins.weighted(None)
    weights = np.bincount(which, spins.weights).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(first))
    rows = spins.take(first[order]).weighted(weights[order])
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
