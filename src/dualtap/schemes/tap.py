"""TAP equations with the naive time index: the paper's iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dualtap._namespace import namespace, overwritten
from dualtap.couplings import Couplings, FloatArray
from dualtap.schemes._base import (
    DampsOnlyM,
    StepInfo,
    away_from_zero,
    mean_change,
    susceptibility,
)


class TAPState(NamedTuple):
    """Magnetizations, shape (students, spins)."""

    m: FloatArray


@dataclass(frozen=True)
class TAP(DampsOnlyM):
    r"""Parallel TAP update with the naive time index.

    .. math:: m' = \tanh\!\left(\beta J m - \frac{\alpha\beta}{1-u}\, m\right),
              \qquad u = \beta (1 - q), \quad q = \frac1N \sum_i m_i^2,

    with J including its diagonal.

    Parameters
    ----------
    couplings : Couplings
    beta : float
        Inverse temperature.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.schemes import TAP
    >>> pattern = np.ones((1, 100), dtype=np.float32)
    >>> tap = TAP(HebbianCouplings(pattern), beta=2.0)
    >>> state, info = tap.step(tap.init(0.5 * pattern))
    >>> round(float(state.m[0, 0]), 2)
    0.77
    """

    couplings: Couplings
    beta: float

    def init(self, m: FloatArray) -> TAPState:
        """Start at ``m``."""
        return TAPState(m)

    def step(self, state: TAPState) -> tuple[TAPState, StepInfo]:
        """Update all spins of all students at once."""
        (m,) = state
        xp = namespace(m)
        beta, alpha = self.beta, self.couplings.alpha
        one_minus_u, guarded = away_from_zero(1 - susceptibility(m, beta))
        reaction = alpha * beta / one_minus_u
        field = self.couplings.dot(m)
        field *= beta
        field -= reaction * m
        m_new = overwritten(xp.tanh, field)
        info = StepInfo(mean_change(m_new, m), xp.clip(reaction[:, 0], min=0), guarded)
        return TAPState(m_new), info
