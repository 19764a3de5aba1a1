"""What to recover patterns from and how, and what is recovered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.recovery.biased import description_gain
from dualtap.recovery.overlaps import products_with
from dualtap.recovery.spectrum import Spectrum
from dualtap.recovery.starts import Start
from dualtap.recovery.temperature import best_temperature, enough, fit_beta
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.blocks import F32, Blocks

CHANCE = 5.0
"""Standard deviations of the overlap with a coin beyond which it is none."""

_COMPARED = 2**20  # entries


class Regime(StrEnum):
    """What the data look like."""

    NOTHING = "nothing"
    """No direction stands out of the noise."""
    WEAK = "weak"
    """Samples lean on patterns, a little on each."""
    MIXED = "mixed"
    """Samples lie deep in states that are mixtures of patterns."""
    CLUSTERED = "clustered"
    """Each sample lies near one pattern."""


class Recovery(NamedTuple):
    """What the samples say about the patterns behind them."""

    m: F32
    """Posterior means of the bits, shape (n_patterns, n_spins)."""
    beta: float
    """Given or fitted; NaN if there is neither."""
    fields: F32
    """Site fields b, shape (n_spins,); zero unless the data need them."""
    spectrum: Spectrum
    regime: Regime
    by_length: bool = False
    """Their number is the one that pays for itself, not that of signals above noise."""


@dataclass(frozen=True)
class Task:
    """What to recover from, and how."""

    spins: Spins
    rng: np.random.Generator
    n_patterns: int | None = None
    beta: float | None = None
    start: Start = "auto"
    effort: int = 1
    where: Any = None
    """An array of another library, where products are to be made."""

    def fit_beta(self, Z: F32, fields: NDArray[np.floating]) -> float:
        """Return β, given or by maximum pseudo-likelihood over samples that lean on patterns."""
        if self.beta is not None:
            return self.beta
        return fit_beta(self._leaning(Z), Z, fields if fields.any() else None)

    def likelihood(self, Z: F32, fields: NDArray[np.floating]) -> float:
        """Return the greatest pseudo-likelihood that patterns reach at any temperature."""
        return best_temperature(self.some, Z, fields if fields.any() else None)[1]

    def shortening(self, Z: F32) -> float:
        """Return by how much patterns shorten the description of the samples, by a few of them."""
        likelihood = best_temperature(self.few, Z)[1] if len(Z) else -np.log(2)
        return description_gain(likelihood, len(Z), self.spins.n_samples, with_fields=False)

    @cached_property
    def few(self) -> NDArray[np.int8]:
        """Samples by which candidates are compared."""
        return self.spins.some(max(_COMPARED // self.spins.n_spins, 256)).values

    @cached_property
    def some(self) -> NDArray[np.int8]:
        """Samples that temperature and fields are fitted to."""
        return enough(self.spins)

    def _leaning(self, Z: F32) -> NDArray[np.int8]:
        """Return the samples whose largest overlap is more than chance, if they are the most.

        The others carry no pattern, and would make the rest look warmer than they are.
        """
        some = Blocks(DenseSpins(self.some, self.spins.encoding, self.spins.reads), held=False)
        largest = np.abs(products_with(some, Z)).max(axis=1)
        leaning: NDArray[np.bool_] = largest > CHANCE * np.sqrt(some.n_observed)
        if leaning.all() or leaning.mean() <= 0.5:
            return self.some
        return self.some[leaning]
