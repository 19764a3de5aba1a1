"""How much of the samples is read: counted where a pass begins, if a caller asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Reads:
    """How many entries were read."""

    entries: int = 0


_reads: ContextVar[Reads | None] = ContextVar("reads", default=None)


@contextmanager
def counted_reads() -> Iterator[Reads]:
    """Count the entries that are read from here to the end, of whatever samples.

    A pass is counted by the thread that asks for it, not by those that share its work.

    Examples
    --------
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.passes import counted_reads
    >>> with counted_reads() as reads:
    ...     as_spins([[1, 0, 0], [0, 1, 0]]).begin_pass()
    >>> reads.entries
    6
    """
    reads = Reads()
    token = _reads.set(reads)
    try:
        yield reads
    finally:
        _reads.reset(token)
        count_reads(reads.entries)  # for a caller that counts, too


def count_reads(entries: int) -> None:
    """Add entries to what is counted now, if anything is."""
    reads = _reads.get()
    if reads is not None:
        reads.entries += entries
