"""Approximate message passing: the time index that the expansion of BP gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dualtap._namespace import namespace, overwritten
from dualtap.couplings import Couplings, FloatArray
from dualtap.schemes._base import (
    ServesAnyStudents,
    StepInfo,
    away_from_zero,
    mean_change,
    susceptibility,
)


class AMPState(NamedTuple):
    """Fields and magnetizations now, magnetizations and u one step ago."""

    H: FloatArray
    m: FloatArray
    m_prev: FloatArray
    u_prev: FloatArray


def field_of(m: FloatArray, beta: float) -> FloatArray:
    """Return H with m = tanh βH, finite at |m| = 1, where float accuracy ends."""
    xp = namespace(m)
    edge = 1 - float(xp.finfo(m.dtype).eps)
    H: FloatArray = xp.atanh(xp.clip(m, -edge, edge)) / beta
    return H


@dataclass(frozen=True)
class AMP(ServesAnyStudents):
    r"""Parallel AMP update of the Hopfield model.

    .. math:: H' = \frac{1}{1-u} \left[ J m - \alpha m - u H
              - \frac{\alpha u}{1-u_{\rm prev}}\, m_{\rm prev} \right], \qquad m = \tanh(\beta H),

    where :math:`-\alpha m` removes the diagonal of J. From a random start in the direct problem
    it leaves the paramagnet at β = 1/2 along directions orthogonal to the patterns.

    Parameters
    ----------
    couplings : Couplings
    beta : float
        Inverse temperature.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.schemes import AMP
    >>> pattern = np.ones((1, 100), dtype=np.float32)
    >>> amp = AMP(HebbianCouplings(pattern), beta=2.0)
    >>> state, info = amp.step(amp.init(0.9575 * pattern))
    >>> float(info.residual[0]) < 1e-2
    True
    """

    couplings: Couplings
    beta: float

    def init(self, m: FloatArray) -> AMPState:
        """Start at ``m`` as if it had been there for ever."""
        return AMPState(field_of(m, self.beta), m, m, susceptibility(m, self.beta))

    def damped(self, state: AMPState, m: FloatArray) -> AMPState:
        """Return ``state`` moved to ``m``, with the field that belongs to it.

        A field left as it was would be multiplied by -u/(1-u) a step and overflow at u > 1/2.
        """
        return state._replace(H=field_of(m, self.beta), m=m)

    def step(self, state: AMPState) -> tuple[AMPState, StepInfo]:
        """Update all spins of all students at once."""
        H, m, m_prev, u_prev = state
        xp = namespace(m)
        alpha = self.couplings.alpha
        u = susceptibility(m, self.beta)
        one_minus_u, guarded = away_from_zero(1 - u)
        one_minus_u_prev, _ = away_from_zero(1 - u_prev)
        H_new = self.couplings.dot(m)
        H_new -= alpha * m
        H_new -= u * H
        H_new -= (alpha * u / one_minus_u_prev) * m_prev
        H_new /= one_minus_u
        m_new = overwritten(xp.tanh, self.beta * H_new)
        stiffness = (1 + alpha / one_minus_u_prev) * self.beta / one_minus_u
        info = StepInfo(mean_change(m_new, m), xp.clip(stiffness[:, 0], min=0), guarded)
        return AMPState(H_new, m_new, m, u), info
