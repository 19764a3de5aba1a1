"""How spins are kept: one interface, and a byte each behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.passes import count_reads

Encoding = Literal["-1/+1", "0/1", "boolean"]
ENCODINGS: tuple[Encoding, ...] = ("-1/+1", "0/1", "boolean")

Byte = TypeVar("Byte", np.int8, np.uint8)

CHUNK = 2**22
"""Entries looked at together in a pass over the data."""


@dataclass(frozen=True)
class SpinSummary:
    """What there is to know about a sample matrix before fitting it.

    Attributes
    ----------
    n_samples, n_spins : int
    encoding : str
        How the input was read: "-1/+1", "0/1" or "boolean".
    n_missing : int
        Entries without a value.
    n_constant : int
        Spins that never change (missing entries aside); they carry no information on couplings.
    n_duplicates : int
        Samples equal to an earlier one.
    """

    n_samples: int
    n_spins: int
    encoding: Encoding
    n_missing: int
    n_constant: int
    n_duplicates: int

    def __str__(self) -> str:
        share = self.n_missing / (self.n_samples * self.n_spins)
        return (
            f"{self.n_samples} samples of {self.n_spins} spins, read as {self.encoding}; "
            f"{self.n_missing} missing entries ({share:.1%}), "
            f"{self.n_constant} constant spins, {self.n_duplicates} duplicate samples"
        )


class Spins(ABC):
    """A validated sample matrix, whatever way it is stored; make one with :func:`as_spins`.

    Attributes
    ----------
    encoding : str
        How the input was read: "-1/+1", "0/1" or "boolean".
    n_samples, n_spins : int
    values : array of shape (n_samples, n_spins), int8
        -1, +1, or 0 for a missing entry. Of packed spins it is made anew each time.
    weights : array of shape (n_samples,) or None
        Number of samples that each row stands for; None if each is one.
    """

    encoding: Encoding
    n_samples: int
    n_spins: int
    weights: NDArray[np.float64] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples M and number of spins N."""
        return self.n_samples, self.n_spins

    @property
    def n_entries(self) -> int:
        """Number of entries, M N."""
        return self.n_samples * self.n_spins

    def __len__(self) -> int:
        return self.n_samples

    @property
    def total_weight(self) -> int | float:
        """Number of samples M that the rows stand for."""
        if self.weights is None:
            return self.n_samples
        total = float(self.weights.sum())
        return int(total) if total.is_integer() else total

    def weighted(self, weights: NDArray[np.float64] | None) -> Self:
        """Return the same rows, each standing for so many samples."""
        other = copy(self)
        other.weights = weights
        return other

    @property
    @abstractmethod
    def values(self) -> NDArray[np.int8]:
        """All spins as bytes."""

    @abstractmethod
    def block(self, rows: slice) -> NDArray[np.int8]:
        """Return some samples as bytes."""

    def floats(self, rows: slice) -> NDArray[np.float32]:
        """Return some samples as single precision numbers."""
        return self.block(rows).astype(np.float32)

    @abstractmethod
    def take(self, samples: NDArray[np.int64]) -> Spins:
        """Return chosen samples, stored in this process."""

    @abstractmethod
    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return chosen spins of all samples, shape (n_samples, len(sites))."""

    @property
    @abstractmethod
    def n_missing(self) -> int:
        """Entries without a value."""

    @property
    def complete(self) -> bool:
        """Nothing is missing."""
        return self.n_missing == 0

    def blocks(self, entries: int = CHUNK) -> Iterator[slice]:
        """Yield slices of samples, each of about as many entries."""
        step = max(1, entries // self.n_spins)
        for first in range(0, self.n_samples, step):
            yield slice(first, min(first + step, self.n_samples))

    @cached_property
    def n_observed(self) -> NDArray[np.integer]:
        """Entries with a value in each sample, shape (n_samples,), in as few bytes as hold them."""
        if self.complete:
            return np.broadcast_to(self.n_spins, self.n_samples)
        result = np.empty(self.n_samples, dtype=np.min_scalar_type(self.n_spins))
        for rows in self.blocks():
            result[rows] = np.count_nonzero(self.block(rows), axis=1)
        return result

    def n_rows_within(self, n_entries: int, least: int = 1) -> int:
        """Return how many rows have so many entries: at least ``least``, at most all."""
        return min(self.n_samples, max(n_entries // self.n_spins, least))

    def chosen(
        self, n_entries: int, *, least: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
        """Return which rows :meth:`subsample` takes, and their weights.

        A row of weight w stands for w samples next to each other; its new weight is how many of
        these are chosen.
        """
        n_samples = self.n_rows_within(n_entries, least)
        if self.weights is None or self.n_samples <= n_samples:
            return spread(self.n_samples, n_samples), self.weights
        rows, counts = np.unique(spread_by_weight(self.weights, n_samples), return_counts=True)
        return rows, counts.astype(np.float64)

    def subsample(self, n_entries: int, *, least: int = 1) -> Spins:
        """Return evenly spread rows of at most that many entries, and at least ``least`` rows."""
        if self.n_rows_within(n_entries, least) == self.n_samples:
            return self
        rows, weights = self.chosen(n_entries, least=least)
        return self.take(rows).weighted(weights)

    @cached_property
    def summary(self) -> SpinSummary:
        """Counts of missing entries, constant spins and duplicate samples."""
        up, down = self._up_and_down()
        return SpinSummary(
            n_samples=self.n_samples,
            n_spins=self.n_spins,
            encoding=self.encoding,
            n_missing=self.n_missing,
            n_constant=int(np.count_nonzero(~(up & down))),
            n_duplicates=self._n_duplicates(),
        )

    def begin_pass(self) -> None:
        """Count a pass over all entries."""
        count_reads(self.n_entries)

    def _up_and_down(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which spins are ever +1, and which are ever -1."""
        up, down = np.zeros(self.n_spins, dtype=bool), np.zeros(self.n_spins, dtype=bool)
        for rows in self.blocks():
            s = self.block(rows)
            up |= (s == 1).any(axis=0)
            down |= (s == -1).any(axis=0)
        return up, down

    @abstractmethod
    def _n_duplicates(self) -> int: ...


class DenseSpins(Spins):
    """A byte per spin.

    Parameters
    ----------
    values : array of shape (n_samples, n_spins), int8
        -1, +1, or 0 for a missing entry.
    encoding : str

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.storage import DenseSpins
    >>> DenseSpins(np.array([[1, -1], [0, 1]], dtype=np.int8), "-1/+1").n_observed
    array([2, 1], dtype=uint8)
    """

    def __init__(self, values: NDArray[np.int8], encoding: Encoding) -> None:
        self._values = np.ascontiguousarray(values)
        self.encoding = encoding
        self.n_samples, self.n_spins = self._values.shape

    @property
    def values(self) -> NDArray[np.int8]:
        """All spins as bytes."""
        return self._values

    def block(self, rows: slice) -> NDArray[np.int8]:
        """Return some samples as bytes."""
        return self._values[rows]

    def take(self, samples: NDArray[np.int64]) -> DenseSpins:
        """Return chosen samples."""
        taken = DenseSpins(self._values[samples], self.encoding)
        return taken.weighted(weights_of(self, samples))

    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return chosen spins of all samples."""
        return self._values[:, sites]

    @cached_property
    def n_missing(self) -> int:
        """Entries without a value."""
        return self._values.size - int(np.count_nonzero(self._values))

    def _n_duplicates(self) -> int:
        return self.n_samples - len(different_rows(self._values))


def spread(n: int, k: int) -> NDArray[np.int64]:
    """Return at most k of the numbers below n, evenly spread.

    Examples
    --------
    >>> from dualtap.spins.storage import spread
    >>> spread(9, 3)
    array([0, 4, 8])
    """
    return np.linspace(0, n - 1, min(n, k)).astype(np.int64)


def spread_by_weight(weights: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return at most k rows, evenly spread over the samples they stand for: some more than once.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.storage import spread_by_weight
    >>> spread_by_weight(np.array([1.0, 6.0, 2.0]), 3)
    array([1, 1, 2])
    """
    ends = np.cumsum(weights)
    k = min(k, int(np.ceil(ends[-1])))
    places = ends[-1] * (np.arange(k) + 0.5) / k
    rows: NDArray[np.int64] = np.searchsorted(ends, places, side="right")
    return np.minimum(rows, len(weights) - 1)


def weights_of(spins: Spins, samples: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Return the weights of chosen rows."""
    return None if spins.weights is None else spins.weights[samples]


def different_rows(rows: NDArray[Byte]) -> NDArray[Byte]:
    """Return every different row of bytes once, in some order.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.storage import different_rows
    >>> len(different_rows(np.array([[1, -1], [1, 1], [1, -1]], dtype=np.int8)))
    2
    """
    # A row of bytes is one opaque value: sorting those finds duplicates without a copy.
    whole = np.dtype((np.void, rows.shape[1]))
    found = np.unique(np.ascontiguousarray(rows).view(whole))
    return found.view(rows.dtype).reshape(-1, rows.shape[1])
