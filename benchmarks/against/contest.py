"""Contenders, each in a process of its own, asked the same questions in turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import OURS, Peer, PeerError, python_of
from dualtap._progress import Advance

Request = dict[str, Any]
Judge = Callable[[int, NDArray[Any]], dict[str, float]]
"""Marks of the answer to the request of this number."""


@dataclass(frozen=True)
class Contender:
    """Something to compare: a script, where it runs, and what it is told at the start."""

    name: str
    script: str | Path
    setup: dict[str, Any]
    environment: str = OURS
    limit: float = 300.0
    """Seconds after which it is stopped."""


@dataclass
class Result:
    """How a contender did in one case."""

    contender: str
    threads: int
    version: str = ""
    seconds: list[float] = field(default_factory=list)
    marks: list[dict[str, float]] = field(default_factory=list)
    peak_mb: float = float("nan")
    grown_mb: float = float("nan")
    failure: str = ""

    @property
    def median_s(self) -> float:
        """Median time of the work alone, NaN if it never ended."""
        return statistics.median(self.seconds) if self.seconds else float("nan")

    def mark(self, name: str) -> float:
        """Mean of a mark over the runs, NaN if there is none."""
        return float(np.mean([marks[name] for marks in self.marks])) if self.marks else np.nan

    def row(self, case: str) -> dict[str, Any]:
        """Return everything measured, as one row of a table."""
        names = self.marks[0] if self.marks else {}
        return {
            "case": case,
            "contender": self.contender,
            "threads": self.threads,
            "runs": len(self.seconds),
            "median_s": self.median_s,
            "marks": {name: self.mark(name) for name in names},
            "seconds": self.seconds,
            "peak_mb": self.peak_mb,
            "grown_mb": self.grown_mb,
            "version": self.version,
            "failure": self.failure,
        }


def contest(
    contenders: Sequence[Contender],
    warm_up: Request,
    requests: Sequence[Request],
    judge: Judge,
    threads: int,
    advance: Advance,
    n_untimed: int = 0,
) -> list[Result]:
    """Ask everybody every request: all the first one, then all the second one, and so on.

    Parameters
    ----------
    contenders : sequence of Contender
    warm_up : dict
        A small request that comes first: compilation and the like are not timed.
    requests : sequence of dict
    judge : callable
    threads : int
        Of every contender.
    advance : callable
        Told of every answer.
    n_untimed : int
        So many requests come first that show how much memory the work takes, and nothing else:
        what grows on first use with the size of the data is not timed either.

    Returns
    -------
    list of Result
        In the order of the contenders, with the reason for those that did not do it.
    """
    results = [Result(one.name, threads) for one in contenders]
    with ExitStack() as stack:
        peers: dict[int, Peer] = {}
        for k, one in enumerate(contenders):
            try:
                setup = one.setup | {"threads": threads}
                peer = Peer(python_of(one.environment), one.script, setup, one.limit)
                peers[k] = stack.enter_context(peer)
                results[k].version = str(peer.about["version"])
                peer.ask(warm_up)
            except PeerError as error:
                results[k].failure = str(error)
        for number, request in enumerate(requests):
            for one, result, k in zip(contenders, results, range(len(results)), strict=True):
                if not result.failure:
                    _measure(peers[k], result, request, number, judge, number >= n_untimed)
                advance(1, one.name)
    return results


def _measure(
    peer: Peer, result: Result, request: Request, number: int, judge: Judge, timed: bool
) -> None:
    try:
        answer = peer.ask(request)
    except PeerError as error:
        result.failure = str(error)
        return
    if timed:
        with np.load(answer["answer"]) as file:
            result.marks.append(judge(number, file["answer"]))
        result.seconds.append(answer["seconds"])
    if number == 0:  # a peak does not fall again, so only the first says what the work needs
        result.peak_mb, result.grown_mb = answer["peak_mb"], answer["grown_mb"]
