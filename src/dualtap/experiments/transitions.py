"""Where the direct problem changes phase, by replica theory, as figures use it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple

from dualtap.theory.replica import (
    metastable_temperature,
    retrieval_temperature,
    spin_glass_temperature,
)

Phase = Literal["retrieval", "metastable", "none"]


class Transitions(NamedTuple):
    """Transition temperatures at one load α = P/N."""

    T_R: float
    """Retrieval states have the lowest free energy below."""
    T_M: float
    """Retrieval states exist below."""
    T_g: float
    """The spin glass melts here."""

    def phase(self, T: float) -> Phase:
        """Return what retrieval states are at a temperature."""
        return "retrieval" if T < self.T_R else "metastable" if T < self.T_M else "none"


@cache
def transitions(alpha: float) -> Transitions:
    """Return the replica-symmetric transition temperatures at a load.

    Examples
    --------
    >>> from dualtap.experiments.transitions import transitions
    >>> lines = transitions(0.03)
    >>> round(lines.T_R, 3), round(lines.T_M, 3)
    (0.479, 0.65)
    >>> lines.phase(0.5)
    'metastable'
    """
    # Beyond the capacity of T = 0 there is no such line: retrieval at no temperature.
    return Transitions(
        _or_zero(retrieval_temperature, alpha),
        _or_zero(metastable_temperature, alpha),
        spin_glass_temperature(alpha),
    )


def _or_zero(line: Callable[[float], float], alpha: float) -> float:
    try:
        return line(alpha)
    except ValueError:
        return 0.0
