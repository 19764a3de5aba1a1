"""Samples in the memory of another array library, PyTorch's on a GPU say: products are made there.

Everything else is done on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualtap._namespace import is_foreign, like, namespace, to_numpy
from dualtap.spins.blocks import Blocks
from dualtap.spins.protocol import F32, Rows
from dualtap.spins.storage import Spins


class ForeignBlocks(Blocks):
    """The sample matrix in float32, also where some array of another library is.

    Parameters
    ----------
    spins : Spins
    where : array of any namespace
        Says which library and which device.

    Examples
    --------
    >>> import numpy as np
    >>> import array_api_strict as xp
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.foreign import ForeignBlocks
    >>> blocks = ForeignBlocks(as_spins([[1, 0, 1], [1, 1, 0]]), xp.empty(0, dtype=xp.float32))
    >>> blocks.gram_dot(blocks.place(np.ones((1, 3), np.float32)))
    Array([[2., 0., 0.]], dtype=array_api_strict.float32)
    """

    def __init__(self, spins: Spins, where: Any) -> None:
        super().__init__(spins)
        self._there = self._moved(where)
        self._gram_there: Any = None
        self._weights_there: Any = None
        if self.weights is not None:
            self._weights_there = like(self._there, self.weights[:, None])

    def place(self, array: F32) -> Any:
        """Return an array where products are made."""
        return like(self._there, array)

    def changed(self, function: Callable[..., F32], *arrays: Rows | None) -> Blocks:
        other = super().changed(function, *arrays)
        assert isinstance(other, ForeignBlocks)  # a copy of this
        other._there, other._gram_there = other._moved(self._there), None
        return other

    def dot(self, V: Any) -> Any:
        return self._product(V, lambda v: self._there @ v.T)

    def transposed_dot(self, X: Any) -> Any:
        w = self._weights_there
        return self._product(X, lambda x: (x if w is None else x * w).T @ self._there)

    def gram_dot(self, V: Any) -> Any:
        if self._gram is None:
            return self._product(V, self._gram_product)
        if self._gram_there is None:
            self._gram_there = like(self._there, self._gram)
        return self._made_there(V, lambda v: v @ self._gram_there)

    def _gram_product(self, v: Any) -> Any:
        x = self._there @ v.T
        return (x if self._weights_there is None else x * self._weights_there).T @ self._there

    def _product(self, factor: Any, function: Callable[[Any], Any]) -> Any:
        self._spins.begin_pass()
        return self._made_there(factor, function)

    def _made_there(self, factor: Any, function: Callable[[Any], Any]) -> Any:
        result = function(like(self._there, factor))
        return result if is_foreign(factor) else to_numpy(result)

    def _moved(self, where: Any) -> Any:
        parts = [like(where, self._apply(lambda S: S, rows, ())) for rows in self._rows]
        return namespace(where).concat(parts)
