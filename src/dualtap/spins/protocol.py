"""What all that learns from samples may ask of them, wherever they are kept."""

from __future__ import annotations

from collections.abc import Callable
from operator import iadd
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Rows = NDArray[Any]
Add = Callable[[Any, Any], Any]


class SampleMatrix(Protocol):
    """A sample matrix S in float32, shape (n_samples, n_spins), 0 for a missing entry.

    :func:`dualtap.spins.matrix.blocks_of` makes one of samples. Whether these are floats, bytes or
    bits, in a mapped file, on Dask workers or on the device of another array library is known to
    it alone. Sums over samples count every row with its weight, except in functions that are
    applied to blocks: they take the weights as one more array.
    """

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def n_spins(self) -> int:
        """Number of columns N."""

    @property
    def weights(self) -> F32 | None:
        """Number of samples that each row stands for, shape (n_samples,); None if each is one."""

    @property
    def total_weight(self) -> int | float:
        """Number of samples M that the rows stand for."""

    @property
    def complete(self) -> bool:
        """Nothing is missing."""

    @property
    def n_observed(self) -> NDArray[np.float64]:
        """Observed entries of each row, at least 1, shape (n_samples,)."""

    @property
    def total_observed(self) -> float:
        """Observed entries of all samples."""

    # Parts, brought to this process without a pass.

    def at_hand(self) -> F32 | None:
        """Return all entries if they are held as floats, else None."""

    def rows(self, samples: NDArray[np.int64]) -> F32:
        """Return chosen rows."""

    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return chosen spins of all samples as -1, 0 and +1, whatever was done to them since."""

    # Other matrices of the same samples.

    def chosen(self, n_entries: int, *, least: int = 1) -> NDArray[np.int64]:
        """Return which rows :meth:`subsample` takes."""

    def subsample(self, n_entries: int, *, least: int = 1) -> SampleMatrix:
        """Return evenly spread rows of at most that many entries, and at least ``least`` rows."""

    def changed(self, function: Callable[..., F32], *arrays: Rows | None) -> SampleMatrix:
        """Return the matrix of ``function(S, *rows of arrays)``, made when and where it is used."""

    def minus(self, t: F32) -> SampleMatrix:
        """Return the matrix with ``t``, one value per site, taken off the observed entries."""

    # Passes over all blocks of rows.

    def map(self, function: Callable[..., Rows], *arrays: Rows | None) -> Rows:
        """Return ``function(S, *rows of arrays)``, an array with a row per row of S."""

    def sum(self, function: Callable[..., Any], *arrays: Rows | None, add: Add = iadd) -> Any:
        """Return the sum of ``function(S, *rows of arrays)`` over blocks of rows.

        Few of its terms are held at a time. The first of two summands is used up by ``add``.
        """

    def map_sum(
        self, function: Callable[..., tuple[Rows, Any]], *arrays: Rows | None, add: Add = iadd
    ) -> tuple[Rows, Any]:
        """Do both in one pass: ``function`` returns an array with a row per row, and a term."""

    # Products, in the namespace of the factor.

    def place(self, array: F32) -> Any:
        """Return an array where products are made."""

    def dot(self, V: Any) -> Any:
        """Return S Vᵀ, shape (n_samples, len(V))."""

    def transposed_dot(self, X: Any) -> Any:
        """Return Xᵀ S, shape (X.shape[1], n_spins)."""

    def gram_dot(self, V: Any) -> Any:
        """Return V SᵀS, shape (len(V), n_spins), in one pass, or none if SᵀS is known."""

    def sign_dot(self, Z: F32) -> F32:
        """Return S Zᵀ for vectors Z of ±1, shape (n_samples, len(Z))."""

    @property
    def knows_gram(self) -> bool:
        """Whether SᵀS is known, so that products with it take no pass."""

    def gram(self) -> F32:
        """Return SᵀS, shape (n_spins, n_spins); it is kept."""

    def row_gram(self) -> F32:
        """Return √w S Sᵀ √w of rows at hand, shape (n_samples, n_samples)."""

    def sum_of_squares(self) -> float:
        """Return the sum of all squared entries."""
