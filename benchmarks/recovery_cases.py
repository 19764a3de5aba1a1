"""Teachers with known patterns, and what happens to their samples on the way to the student.

A draw is a pure function of a case and a seed; see ``list(CASES)`` for the names of the cases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap import HopfieldModel

N_SPINS = 1000
FIRST_SEED = 100  # nothing was tuned on these
Bits = NDArray[np.int8]


@dataclass(frozen=True)
class Case:
    """A teacher and what happens to its samples on the way to the student."""

    beta: float
    n_patterns: int
    n_samples: int
    n_spins: int = N_SPINS
    n_sweeps: int = 100
    uneven: bool = False
    flipped: bool = False
    missing: float = 0.0
    field: float = 0.0
    random_share: float = 0.0

    @property
    def name(self) -> str:
        """What the case is called in the tables."""
        extras = {
            f"{self.n_sweeps} sweeps": self.n_sweeps != Case.n_sweeps,
            "weights 1 to 15 %": self.uneven,
            "half flipped": self.flipped,
            f"{self.missing:.0%} missing": self.missing,
            f"fields ±{self.field:g}": self.field,
            f"{self.random_share:.0%} random samples": self.random_share,
        }
        size = f"β={self.beta:g} P={self.n_patterns} M={self.n_samples}"
        return ", ".join([size, *(text for text, present in extras.items() if present)])

    def resized(self, n_spins: int) -> Case:
        """Return the case at another N and the same P/N and M/N, as near as can be."""
        scale = n_spins / self.n_spins
        return replace(
            self,
            n_spins=n_spins,
            n_patterns=max(1, round(self.n_patterns * scale)),
            n_samples=max(2, round(self.n_samples * scale)),
        )


_CASES = (
    *(Case(2.0, 20, n_samples) for n_samples in (40, 60, 200, 1000)),
    Case(2.0, 20, 200, flipped=True),
    Case(2.0, 20, 2000, uneven=True),
    Case(2.0, 20, 2000, uneven=True, flipped=True),
    Case(4.0, 100, 1000, n_sweeps=20),
    Case(4.0, 100, 1000),
    *(Case(0.8, 1, n_samples) for n_samples in (125, 250, 500, 1000, 2000)),
    *(Case(0.5, 1, n_samples) for n_samples in (2000, 5000)),
    *(Case(0.8, 20, n_samples) for n_samples in (1000, 2000, 5000)),
    Case(0.5, 20, 8000),
    Case(0.8, 5, 1000),
    Case(1.2, 10, 2000),
    Case(1.2, 20, 5000),
    Case(1.5, 30, 2000),
    Case(2.0, 60, 3000),
    *(Case(2.0, 20, 200, missing=share) for share in (0.3, 0.5)),
    Case(2.0, 10, 500, field=0.5),
    Case(2.0, 20, 250, random_share=0.2),
)
CASES = {case.name: case for case in _CASES}


class Data(NamedTuple):
    """Samples of a case, and what only the teacher knows of them."""

    case: Case
    X: NDArray[Any]
    """What ours is given: ±1, NaN where an entry is missing."""
    spins: Bits
    """What peers are given: 0 where an entry is missing."""
    patterns: Bits
    label: NDArray[np.int64]
    """The pattern where the chain of each sample started; -1 for random samples."""
    sign: Bits
    """-1 for flipped samples."""
    fields: NDArray[np.float64] | None


def draw(case: Case, seed: int) -> Data:
    """Return the samples of a case."""
    rng = np.random.default_rng(2000 + seed)
    teacher = _teacher(case, seed, rng)
    label = _starts(case)
    spins = teacher.sample(
        case.n_samples,
        start=teacher.patterns[label] if case.beta > 1 else "random",
        n_sweeps=case.n_sweeps,
        random_state=1000 + seed,
    )
    sign = np.ones(case.n_samples, dtype=np.int8)
    if case.flipped:
        sign[rng.permutation(case.n_samples)[: case.n_samples // 2]] = -1
        spins *= sign[:, None]
    if case.random_share:
        drawn = rng.permutation(case.n_samples)[: round(case.random_share * case.n_samples)]
        spins[drawn] = fair_spins(rng, (len(drawn), case.n_spins))
        label[drawn] = -1
    if case.missing:
        spins[rng.random(spins.shape) < case.missing] = 0
    X = np.where(spins == 0, np.float32(np.nan), spins) if case.missing else spins
    return Data(case, X, spins, teacher.patterns, label, sign, teacher.fields)


def _teacher(case: Case, seed: int, rng: np.random.Generator) -> HopfieldModel:
    teacher = HopfieldModel.random(case.n_spins, case.n_patterns, case.beta, random_state=seed)
    if not case.field:
        return teacher
    fields = rng.uniform(-case.field, case.field, size=case.n_spins)
    return HopfieldModel(teacher.patterns, case.beta, fields=fields)


def _starts(case: Case) -> NDArray[np.int64]:
    if not case.uneven:
        return np.arange(case.n_samples) % case.n_patterns
    weights = np.geomspace(0.01, 0.15, case.n_patterns)
    bounds = np.round(np.cumsum(weights) / weights.sum() * case.n_samples)
    return np.repeat(np.arange(case.n_patterns), np.diff(bounds, prepend=0).astype(int))


def fair_spins(rng: np.random.Generator, shape: tuple[int, ...]) -> Bits:
    """Return independent spins of mean 0."""
    return 2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1
