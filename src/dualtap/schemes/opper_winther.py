"""The iteration of Opper, Çakmak and Winther, as printed in the paper and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import namespace, overwritten
from dualtap.couplings import Couplings, FloatArray
from dualtap.schemes._base import (
    DampsOnlyM,
    StepInfo,
    away_from_zero,
    mean_change,
    susceptibility,
)


class OpperWintherState(NamedTuple):
    """Memory field and magnetizations, each of shape (students, spins)."""

    z: FloatArray
    m: FloatArray


@dataclass(frozen=True)
class OpperWinther(DampsOnlyM):
    r"""Parallel update with a memory field z.

    .. math:: z' = A (J m - \alpha m - m) + c A z, \qquad m' = \tanh(z' + A m).

    Printed in the paper: :math:`A = \beta/(1+\alpha u)`, :math:`c = \alpha(1-q)`. Its fixed points
    are those of TAP only to first order in αu. Corrected (the default):
    :math:`A = \beta (1 - \alpha u/(1-u))`, :math:`c = 1/A - 1/\beta`, whose fixed points are
    exactly those of TAP.

    Parameters
    ----------
    couplings : Couplings
    beta : float
        Inverse temperature.
    printed : bool
        Use the pair (A, c) as printed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.schemes import OpperWinther
    >>> pattern = np.ones((1, 100), dtype=np.float32)
    >>> rule = OpperWinther(HebbianCouplings(pattern), beta=2.0)
    >>> state, info = rule.step(rule.init(0.5 * pattern))
    >>> bool(state.m[0, 0] > 0.7)
    True
    """

    couplings: Couplings
    beta: float
    printed: bool = False

    def init(self, m: FloatArray) -> OpperWintherState:
        """Start at ``m`` with no memory."""
        return OpperWintherState(namespace(m).zeros_like(m), m)

    def step(self, state: OpperWintherState) -> tuple[OpperWintherState, StepInfo]:
        """Update all spins of all students at once."""
        z, m = state
        xp = namespace(m)
        alpha = self.couplings.alpha
        A, c, guarded = self._coefficients(m)
        z_new = self.couplings.dot(m)
        z_new -= (1 + alpha) * m
        z_new *= A
        z_new += (c * A) * z
        m_new = overwritten(xp.tanh, z_new + A * m)
        info = StepInfo(mean_change(m_new, m), xp.clip(alpha * A[:, 0], min=0), guarded)
        return OpperWintherState(z_new, m_new), info

    def _coefficients(self, m: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        alpha, beta = self.couplings.alpha, self.beta
        u = susceptibility(m, beta)
        one_minus_u, guarded = away_from_zero(1 - u)
        if self.printed:
            return beta / (1 + alpha * u), alpha * u / beta, namespace(m).zeros_like(guarded)
        A, A_guarded = away_from_zero(beta * (1 - alpha * u / one_minus_u))
        return A, 1 / A - 1 / beta, guarded | A_guarded
