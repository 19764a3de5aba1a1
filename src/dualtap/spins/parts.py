"""Parts of samples: chosen columns, and what is left without empty rows and columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.builder import SpinsBuilder
from dualtap.spins.packed import PackedSpins
from dualtap.spins.storage import DenseSpins, Spins


def with_columns(spins: Spins, columns: NDArray[np.int64]) -> Spins:
    """Return the same samples with these columns, kept as they are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.parts import with_columns
    >>> with_columns(as_spins([[1, 0, 0]]), np.array([2, 0])).values
    array([[-1,  1]], dtype=int8)
    """
    if isinstance(spins, DenseSpins):
        part = DenseSpins(spins.values[:, columns], spins.encoding)
        return part.weighted(spins.weights)
    builder = SpinsBuilder(zero_is_missing=True, n_samples=spins.n_samples)
    for rows in spins.blocks():
        builder.add(spins.block(rows)[:, columns])
    result = builder.finish()
    result.encoding = spins.encoding
    return result.weighted(spins.weights)


class Observed(NamedTuple):
    """Samples without empty rows and columns, and which columns are left."""

    spins: Spins
    columns: NDArray[np.int64]


def observed_part(spins: Spins) -> Observed:
    """Return samples without rows and columns of which nothing was observed.

    Samples on a cluster, and those with less than two columns left, are returned as they are.

    Examples
    --------
    >>> from dualtap import as_spins
    >>> from dualtap.spins.parts import observed_part
    >>> part = observed_part(as_spins([[1, None, 0], [None, None, None]]))
    >>> part.spins.values, part.columns
    (array([[ 1, -1]], dtype=int8), array([0, 2]))
    """
    every = np.arange(spins.n_spins)
    if spins.complete or not isinstance(spins, (DenseSpins, PackedSpins)):
        return Observed(spins, every)
    seen = spins.n_observed > 0
    columns = np.flatnonzero(np.logical_or(*spins._up_and_down()))
    if not seen.all():
        spins = spins.take(np.flatnonzero(seen))
    if 2 <= len(columns) < spins.n_spins:
        return Observed(with_columns(spins, columns), columns)
    return Observed(spins, every)
