"""Dask arrays as spins: every chunk packed on the worker that makes it."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from dualtap.spins.builder import Seen, SpinsBuilder
from dualtap.spins.cluster import ClusterSpins, gathered, told_if_lost
from dualtap.spins.packed import PackedSpins, joined
from dualtap.spins.storage import Spins

_LEAST_ENTRIES = 2**20
"""Spins of a chunk; smaller ones are put together."""


@contextmanager
def connected(address: str, n_workers: int | None = None) -> Iterator[Any]:
    """Give the client of a Dask cluster, which Dask and this package use until the end.

    Parameters
    ----------
    address : str
        Of a scheduler, or "local" for a cluster of processes on this machine.
    n_workers : int, optional
        Processes of a local cluster; one per core when not given.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ValueError("Dask needs: pip install 'dualtap[distributed]'") from None
    if address != "local":
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # an error says it once
        try:
            client = Client(address)
        except (OSError, ValueError) as error:
            raise ValueError(f"no Dask scheduler answers at {address!r}: {error}") from None
        with client:
            yield client
        return
    options = {} if n_workers is None else {"n_workers": n_workers}
    with ExitStack() as stack:
        with _interrupts_held_back():
            cluster = LocalCluster(
                threads_per_worker=1,
                dashboard_address=":0",  # any free port
                silence_logs=logging.CRITICAL,
                **options,
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        yield client


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: this one ends them in good order.

    A signal that comes meanwhile is heard afterwards: half a cluster cannot be closed.
    """
    held: list[int] = []
    before: dict[int, Any] = {}
    if current_thread() is main_thread():
        known = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
        heard = [number for number in known if number and callable(signal.getsignal(number))]
        for number in heard:
            before[number] = signal.signal(number, lambda number, frame: held.append(number))
    mask = None
    if hasattr(signal, "pthread_sigmask"):  # what a thread blocks, its processes do too
        resource_tracker.ensure_running()  # started later, it would unblock them
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in held[:1]:
        before[number](number, None)


def is_dask_array(X: Any) -> bool:
    """Say whether X is a Dask array, without importing Dask."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(X, array.Array)


def dask_spins(X: Any, *, zero_is_missing: bool = False) -> Spins:
    """Return a Dask array as spins: on the workers of the present client, or here without one.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_spins)
    zero_is_missing : bool

    Returns
    -------
    Spins
        Without a client, one chunk after the other is computed and packed in this process.

    Examples
    --------
    >>> import dask.array as da
    >>> from dualtap.spins.dask_arrays import dask_spins
    >>> dask_spins(da.ones((6, 4), chunks=(2, 4))).shape
    (6, 4)
    """
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X must have shape "
            "(n_samples, n_spins)."
        )
    if np.isnan(X.shape).any():
        X = X.compute_chunk_sizes()
    X = X.rechunk({1: -1})
    client = _present_client()
    if client is not None:
        return _packed_on(client, X, zero_is_missing)
    builder = SpinsBuilder(zero_is_missing=zero_is_missing, n_samples=X.shape[0])
    for k in range(X.numblocks[0]):
        builder.add(X.blocks[k].compute())
    return builder.finish()


def _present_client() -> Any:
    """Return the client that Dask would use, or None if it has none."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _packed_on(client: Any, X: Any, zero_is_missing: bool) -> ClusterSpins:
    from dask.delayed import delayed

    first = np.cumsum([0, *X.chunks[0][:-1]])
    pack = delayed(_pack, pure=False)
    blocks = zip(X.to_delayed().ravel(), first, X.chunks[0], strict=True)
    filled = [block for block in blocks if block[2]]
    parts = [pack(block, zero_is_missing, int(row)) for block, row, _ in filled]
    sizes = [size for *_, size in filled]
    # Futures, not values: what is lost with a worker the scheduler makes again.
    packed = client.compute(parts)
    seen, missing = None, 0
    with told_if_lost(client):
        facts = gathered(client, client.map(_facts, packed, pure=False))
    for one, n_missing in facts:
        seen = one if seen is None else seen.also(one)
        missing += n_missing
    encoding = (seen or Seen()).checked(*X.shape)
    groups = _groups(sizes, X.shape[1])
    chunks = [client.submit(_joined, packed[group], pure=False) for group in groups]
    sizes = [sum(sizes[group]) for group in groups]
    return ClusterSpins(client, chunks, sizes, X.shape[1], encoding, missing)


def _groups(sizes: Sequence[int], n_spins: int) -> list[slice]:
    """Return which chunks are put together, so that none is too small to be worth a task.

    Examples
    --------
    >>> from dualtap.spins.dask_arrays import _groups
    >>> _groups([600, 600, 600, 10], 1000)
    [slice(0, 2, None), slice(2, 4, None)]
    """
    least = -(-_LEAST_ENTRIES // n_spins)
    groups, first, size = [], 0, 0
    for k, n in enumerate(sizes):
        size += n
        if size >= least:
            groups.append(slice(first, k + 1))
            first, size = k + 1, 0
    if first < len(sizes):
        groups.append(slice(first, len(sizes)))
    return groups


def _pack(block: Any, zero_is_missing: bool, first_row: int) -> tuple[PackedSpins, Seen]:
    """Return a chunk packed, and the values that it holds."""
    builder = SpinsBuilder(
        zero_is_missing=zero_is_missing, n_samples=len(block), first_row=first_row
    )
    builder.add(block)
    return builder.part(), builder.seen


def _joined(parts: list[tuple[PackedSpins, Seen]]) -> PackedSpins:
    return joined([spins for spins, _ in parts]) if len(parts) > 1 else parts[0][0]


def _facts(part: tuple[PackedSpins, Seen]) -> tuple[Seen, int]:
    return part[1], part[0].n_missing
