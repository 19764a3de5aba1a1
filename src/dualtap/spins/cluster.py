"""Samples on the workers of a Dask cluster, one bit per spin.

Chunks of samples are packed where they are and stay there. A pass sends a function to all of them
and brings back the sum of what it returns, added up along a tree of workers, or its rows. Whatever
a lost worker held is made again from the array it came from; a pass that was lost with it is
repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property, partial
from hashlib import blake2b
from operator import iadd, itemgetter
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.blocks import Blocks
from dualtap.spins.packed import PackedSpins, joined
from dualtap.spins.protocol import F32, Add, Rows
from dualtap.spins.storage import Encoding, Spins, weights_of

T = TypeVar("T")


class NoWorkerError(ConnectionError):
    """The cluster has no worker."""


_FAN_IN = 4
"""Terms that one worker adds up at a time: each comes over the network, one after the other."""
_ATTEMPTS = 5
_PATIENCE = 300
"""Seconds to wait where there is no worker: as long as Dask waits for one that is silent."""
_FEW_ENTRIES = 2**27
"""Samples that are brought here rather than left on the workers: 16 MB of them."""


class ClusterSpins(Spins):
    """Samples of which every chunk is on a worker.

    Parameters
    ----------
    client : distributed.Client
    chunks : list of Future
        Of PackedSpins.
    sizes : sequence of int
        Samples of each chunk.
    n_spins : int
    encoding : str
    n_missing : int
    """

    def __init__(
        self,
        client: Any,
        chunks: list[Any],
        sizes: Sequence[int],
        n_spins: int,
        encoding: Encoding,
        n_missing: int,
    ) -> None:
        self.client, self.chunks = client, chunks
        self.bounds = np.cumsum([0, *sizes])
        self.encoding = encoding
        self.n_samples, self.n_spins = int(self.bounds[-1]), n_spins
        self._n_missing = n_missing

    @property
    def n_missing(self) -> int:
        """Entries without a value."""
        return self._n_missing

    @cached_property
    def n_observed(self) -> NDArray[np.integer]:
        """Entries with a value in each sample, shape (n_samples,)."""
        if self.complete:
            return np.broadcast_to(self.n_spins, self.n_samples)
        return np.concatenate(self.each(lambda chunk: chunk.n_observed))

    @property
    def values(self) -> NDArray[np.int8]:
        """All spins as bytes, brought here."""
        return self.block(slice(0, self.n_samples))

    def block(self, rows: slice) -> NDArray[np.int8]:
        """Return some samples as bytes."""
        return self.take(np.arange(*rows.indices(self.n_samples))).values

    def take(self, samples: NDArray[np.int64]) -> PackedSpins:
        """Return chosen samples, packed, in this process."""
        order = np.argsort(samples, kind="stable")
        picked = [p for p in self.each(PackedSpins.take, self._split(samples[order])) if len(p)]
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return joined(picked).take(back).weighted(weights_of(self, samples))

    def subsample(self, n_entries: int, *, least: int = 1) -> Spins:
        """Return evenly spread rows: here if they are few, or there."""
        n_samples = self.n_rows_within(n_entries, least)
        if n_samples == self.n_samples:
            return self
        chosen, weights = self.chosen(n_entries, least=least)
        if n_samples * self.n_spins <= _FEW_ENTRIES:
            return self.take(chosen).weighted(weights)
        parts = self._split(chosen)
        chunks = self.submit(PackedSpins.take, parts)
        with told_if_lost(self.client):
            counts = self.client.map(_n_missing, chunks, pure=False)
            missing = sum(gathered(self.client, counts))
        sizes = [len(part) for part in parts]
        some = ClusterSpins(self.client, chunks, sizes, self.n_spins, self.encoding, missing)
        return some.weighted(weights)

    def columns(self, sites: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return chosen spins of all samples."""
        return np.concatenate(self.each(lambda chunk: chunk.columns(sites)))

    def submit(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return futures of ``function(chunk, *its arguments)`` of every chunk.

        Parameters
        ----------
        function : callable
            Sent once, with all that it refers to; workers pass it on to each other.
        *arguments : sequences with an item per chunk
        """
        from dask import config

        # All of it as arguments of tasks, which the scheduler keeps: scattered data would be lost
        # with a worker, and tasks that need them would wait for ever.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            sent = self.client.submit(_same, function, pure=False)
            return [
                self.client.submit(_call, sent, chunk, *items, pure=False)
                for chunk, *items in zip(self.chunks, *arguments, strict=True)
            ]

    def each(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return ``function(chunk, *its arguments)`` of every chunk."""
        return self.surely(lambda: gathered(self.client, self.submit(function, *arguments)))

    def surely(self, run: Callable[[], T]) -> T:
        """Return the result of ``run``, repeated if it was lost with a worker."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                with told_if_lost(self.client):
                    return run()
            except ConnectionError as error:
                gone = self.client.status != "running" or isinstance(error, NoWorkerError)
                if gone or not left:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def split(self, array: Rows | None) -> Sequence[Rows | None]:
        """Return the rows of an array that belong to each chunk."""
        if array is None:
            return [None] * len(self.chunks)
        return np.split(array, self.bounds[1:-1])

    def _split(self, samples: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return which samples of each chunk are among ascending ones."""
        parts = np.split(samples, np.searchsorted(samples, self.bounds[1:-1]))
        return [part - first for part, first in zip(parts, self.bounds[:-1], strict=True)]

    def _up_and_down(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        both = self.each(PackedSpins._up_and_down)
        up, down = (np.logical_or.reduce(x) for x in zip(*both, strict=True))
        return up, down

    def _n_duplicates(self) -> int:
        digests = [digest for part in self.each(_digests) for digest in part]
        return self.n_samples - len(set(digests))


class ClusterBlocks(Blocks):
    """The sample matrix in float32, a block of rows at a time, on the workers of a cluster.

    Parameters
    ----------
    spins : ClusterSpins
    """

    _spins: ClusterSpins

    def _blocks_of_part(self, part: Spins) -> Blocks:
        return ClusterBlocks(part) if isinstance(part, ClusterSpins) else Blocks(part)

    def map(self, function: Callable[..., Rows], *arrays: Rows | None) -> Rows:
        return self._rows_of(lambda blocks, *cut: blocks.map(function, *cut), *arrays)

    def sum(self, function: Callable[..., Any], *arrays: Rows | None, add: Add = iadd) -> Any:
        return self._sum_of(lambda blocks, *cut: blocks.sum(function, *cut, add=add), arrays, add)

    def map_sum(
        self, function: Callable[..., tuple[Rows, Any]], *arrays: Rows | None, add: Add = iadd
    ) -> tuple[Rows, Any]:
        def run() -> tuple[Rows, Any]:
            both = self._submit(lambda b, *cut: b.map_sum(function, *cut, add=add), arrays)
            client = self._spins.client
            rows = client.map(itemgetter(0), both, pure=False)
            total = self._tree(client.map(itemgetter(1), both, pure=False), add)
            *parts, term = gathered(client, [*rows, total])
            return np.concatenate(parts), term

        return self._spins.surely(run)

    def dot(self, V: F32) -> F32:
        return self._rows_of(lambda blocks: blocks.dot(V))

    def transposed_dot(self, X: F32) -> F32:
        result: F32 = self._sum_of(lambda blocks, x: blocks.transposed_dot(x), (X,), iadd)
        return result

    def gram_dot(self, V: F32) -> F32:
        if self._gram is not None:
            return V @ self._gram
        result: F32 = self._sum_of(lambda blocks: blocks.gram_dot(V), (), iadd)
        return result

    def _rows_of(self, function: Callable[..., Rows], *arrays: Rows | None) -> Rows:
        run = partial(gathered, self._spins.client)
        return np.concatenate(self._spins.surely(lambda: run(self._submit(function, arrays))))

    def _sum_of(
        self, function: Callable[..., Any], arrays: tuple[Rows | None, ...], add: Add
    ) -> Any:
        def run() -> Any:
            total = self._tree(self._submit(function, arrays), add)
            return gathered(self._spins.client, [total])[0]

        return self._spins.surely(run)

    def _submit(self, function: Callable[..., Any], arrays: tuple[Rows | None, ...]) -> list[Any]:
        """Return futures of ``function(blocks, *rows of arrays)`` of every chunk."""
        self._spins.begin_pass()
        changes = [change.function for change in self._changes]
        widths = [len(change.arrays) for change in self._changes]

        def work(chunk: PackedSpins, weights: Any, *cut: Rows | None) -> Any:
            blocks = Blocks(chunk.weighted(weights), workers=_threads_to_spare())
            rest = list(cut)
            for change, width in zip(changes, widths, strict=True):
                blocks, rest = blocks.changed(change, *rest[:width]), rest[width:]
            return function(blocks, *rest)

        belonging = [a for change in self._changes for a in change.arrays]
        every = [self._spins.weights, *belonging, *arrays]
        return self._spins.submit(work, *(self._spins.split(a) for a in every))

    def _tree(self, terms: list[Any], add: Add) -> Any:
        """Return the future of the sum of futures, added in their order."""
        while len(terms) > 1:
            groups = [terms[k : k + _FAN_IN] for k in range(0, len(terms), _FAN_IN)]
            terms = [self._spins.client.submit(_added, add, group, pure=False) for group in groups]
        return terms[0]


def _threads_to_spare() -> int:
    """Return how many threads this worker has for each of the tasks that it runs now."""
    from distributed import get_worker

    try:
        state = get_worker().state
    except ValueError:  # not on a worker
        return 1
    return max(1, int(state.nthreads) // max(1, int(state.executing_count)))


def gathered(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures, as they come; but do not wait for ever without workers.

    Raises
    ------
    NoWorkerError
        If the cluster has no worker and gets none.
    """
    from distributed import wait

    seen = monotonic()
    while monotonic() - seen < _PATIENCE:
        try:
            wait(futures, timeout=_PATIENCE / 10)
        except TimeoutError:  # workers are slow, or start again, or are gone
            seen = monotonic() if client.scheduler_info()["workers"] else seen
        else:
            return list(client.gather(futures))
    raise NoWorkerError(f"the Dask cluster has had no worker for {_PATIENCE} s: start some first")


@contextmanager
def told_if_lost(client: Any) -> Iterator[None]:
    """Say what became of a cluster, if that is why something failed.

    Raises
    ------
    ConnectionError
        If the scheduler is gone, or if workers ended while they worked.
    """
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except (CancelledError, asyncio.CancelledError, CommClosedError, KilledWorker, TimeoutError):
        if client.status == "running":
            raise ConnectionError(
                "workers of the Dask cluster ended while they worked, again and again; if they "
                "lack memory, give them more, or use more workers or smaller chunks"
            ) from None
        raise _gone() from None
    except RuntimeError:
        if client.status == "running":
            raise
        raise _gone() from None


def _gone() -> ConnectionError:
    return ConnectionError("the Dask scheduler does not answer any more: start it, then fit again")


def _same(function: T) -> T:
    return function


def _call(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


def _added(add: Add, terms: list[Any]) -> Any:
    # The first is used up, and it may be needed again if the worker that adds is lost.
    result = deepcopy(terms[0])
    for term in terms[1:]:
        result = add(result, term)
    return result


def _n_missing(chunk: PackedSpins) -> int:
    return chunk.n_missing


def _digests(chunk: PackedSpins) -> list[bytes]:
    rows = (chunk.block(rows) for rows in chunk.blocks())
    return [blake2b(row.tobytes(), digest_size=16).digest() for block in rows for row in block]
