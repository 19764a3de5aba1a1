"""The sample matrix of any samples."""

from __future__ import annotations

from typing import Any

from dualtap._namespace import is_foreign
from dualtap.spins.blocks import Blocks
from dualtap.spins.cluster import ClusterBlocks, ClusterSpins
from dualtap.spins.foreign import ForeignBlocks
from dualtap.spins.protocol import SampleMatrix
from dualtap.spins.storage import Spins


def blocks_of(spins: Spins, *, held: bool = True, where: Any = None) -> SampleMatrix:
    """Return samples as a matrix, worked on in blocks of rows wherever they are.

    Parameters
    ----------
    spins : Spins
    held : bool
        Small data are held as floats; not worth it for a single pass.
    where : array of any namespace, optional
        Products are made where it is.

    Examples
    --------
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> float(blocks_of(as_spins([[1, 1, 0], [0, 1, 0]])).sum(lambda S: S.sum()))
    0.0
    """
    if isinstance(spins, ClusterSpins):
        return ClusterBlocks(spins)
    return ForeignBlocks(spins, where) if is_foreign(where) else Blocks(spins, held=held)
