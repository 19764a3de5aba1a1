"""What a search for patterns holds, and the steps that it has made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dualtap.recovery import calibration
from dualtap.recovery.halves import Pools
from dualtap.recovery.independent import null
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import State
from dualtap.recovery.residuals import Residual, leaves_only_noise, residual_of
from dualtap.spins import Spins
from dualtap.spins.protocol import SampleMatrix
from dualtap.subspace.spectrum import Spectrum, spectrum

_MOST_SAMPLES = 2**16
"""Samples deep in a state say so much about it that no more of them are looked at."""


class Info(NamedTuple):
    """What a step did."""

    step: int
    move: str
    source: str
    n_patterns: int
    objective: float
    gain: float
    accepted: bool

    def in_words(self) -> str:
        """Return the step as a line."""
        done = f"shorter by {self.gain:.3g} nats" if self.accepted else "no shorter"
        return f"{self.move}, {self.source}: {self.n_patterns} patterns, {done}"


@dataclass
class Search:
    """Samples, the best model of them so far, and how it was found."""

    spins: Spins
    blocks: SampleMatrix
    judge: Judge
    n_patterns: int | None = None
    watch: Callable[[Info], None] = lambda info: None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    """Where iterations start: always the same, so that the samples alone decide what is found."""
    trace: list[Info] = field(default_factory=list)
    n_left: int = 0
    """Directions above the noise edge that the last model looked at leaves."""
    largest: float = 0.0
    """The largest of their squared singular values, over the noise edge."""
    pools: Pools = field(default_factory=Pools)
    """What halves of the samples proposed, if patterns come from there."""
    _nothing: tuple[Judge, State] | None = None

    @property
    def nothing(self) -> State:
        """Independent spins, by the judge of now."""
        if self._nothing is None or self._nothing[0] is not self.judge:
            self._nothing = self.judge, null(self.judge)
        return self._nothing[1]

    @cached_property
    def some(self) -> SampleMatrix:
        """Samples by which patterns are looked for; all of them, unless there are very many."""
        if self.blocks.at_hand() is not None:
            return self.blocks
        return self.blocks.subsample(_MOST_SAMPLES * self.blocks.n_spins)

    @cached_property
    def fine(self) -> Judge:
        """The judge of single bits, which sees as many samples as memory allows."""
        if self.judge.n_judged == self.judge.n_samples:
            return self.judge
        return Judge(self.spins, calibration.REFINED_ENTRIES)

    @cached_property
    def whole(self) -> Spectrum:
        """Directions of the samples themselves."""
        return spectrum(self.some, self.rng, self.n_patterns or 1)

    def left(self, blocks: SampleMatrix, state: State, n_least: int = 1) -> Residual:
        """Return what a model leaves of the samples, and remember how much that is."""
        left = residual_of(blocks, state.fit, self.rng, n_least)
        self.n_left = left.n_signal
        if not len(state.fit.Z):
            self.judge.n_seen = left.n_signal
        self.largest = float(left.spectrum.values[0] / left.spectrum.edge)
        return left

    def explained_by(self, state: State) -> bool:
        """Say whether a model leaves nothing but noise of the samples."""
        return leaves_only_noise(self.some, state.fit, self.whole)

    def is_evident(self, state: State) -> bool:
        """Say whether patterns describe the data so much shorter that they are no accident.

        Among all that is tried, something is shorter by a few nats even if spins are independent.
        """
        return self.nothing.objective - state.objective > calibration.EVIDENT

    def better(self, state: State, other: State, move: str, source: str) -> State:
        """Return the state with the shorter description, and note the step."""
        gain = state.objective - other.objective
        accepted = gain > calibration.LEAST_GAIN
        info = Info(
            len(self.trace), move, source, len(other.fit.Z), other.objective, gain, accepted
        )
        self.trace.append(info)
        self.watch(info)
        return other if accepted else state


def steps(search: Search) -> Iterator[dict[str, Any]]:
    """Yield what was tried, as plain values."""
    for info in search.trace:
        yield info._asdict()
