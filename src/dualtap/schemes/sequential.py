"""Site after site with damping, on the host: TAP and AMP where their parallel forms may fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import to_numpy
from dualtap.couplings import Couplings, FloatArray, factors_of
from dualtap.schemes._base import SINGULARITY, DampsOnlyM, StepInfo, susceptibility
from dualtap.schemes.tap import TAPState


class SequentialAMPState(NamedTuple):
    """Magnetizations now, and magnetizations and u before the last sweep."""

    m: FloatArray
    m_prev: FloatArray
    u_prev: FloatArray


@dataclass(frozen=True)
class _Sequential(DampsOnlyM):
    couplings: Couplings
    beta: float
    damping: float = 0.95
    _VT: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _w: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping must be in [0, 1), got {self.damping}")
        V, w = factors_of(self.couplings)
        object.__setattr__(self, "_VT", np.ascontiguousarray(V.T, dtype=np.float64))
        object.__setattr__(self, "_w", np.ascontiguousarray(w, dtype=np.float64))

    def _arguments(self) -> tuple[NDArray[np.float64] | float, ...]:
        """Return what every sweep takes after its state."""
        alpha = self.couplings.alpha
        return self._VT, self._w, alpha, self.beta, self.damping, SINGULARITY

    def _info(self, residual: NDArray[np.float64], before: FloatArray) -> StepInfo:
        """Return the diagnostics of a sweep that started at the magnetizations ``before``."""
        guarded = np.abs(1 - susceptibility(before, self.beta)[:, 0]) < SINGULARITY
        # The sweep damps itself: nothing is left for the loop to tame.
        return StepInfo(residual, np.zeros(len(before)), guarded)


@dataclass(frozen=True)
class SequentialTAP(_Sequential):
    r"""TAP with the naive time index, one site at a time.

    .. math:: m_i \leftarrow (1-d) \tanh\!\left(\beta (J m)_i - \frac{\alpha\beta}{1-u} m_i\right)
              + d\, m_i,

    each site seeing the latest magnetizations of all others; u is that of the last sweep.

    Parameters
    ----------
    couplings : Couplings
    beta : float
        Inverse temperature.
    damping : float
        d, in [0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.schemes import SequentialTAP
    >>> from dualtap.solve import solve
    >>> rng = np.random.default_rng(0)
    >>> pattern = rng.choice([-1.0, 1.0], size=(1, 50))
    >>> tap = SequentialTAP(HebbianCouplings(pattern, np.float64), beta=2.0, damping=0.5)
    >>> solution = solve(tap, rng.choice([-1.0, 1.0], size=(3, 50)))
    >>> bool(np.all(np.abs(solution.magnetizations @ pattern[0]) / 50 > 0.9))
    True
    """

    def init(self, m: FloatArray) -> TAPState:
        """Start at ``m``."""
        return TAPState(np.array(to_numpy(m), dtype=np.float64))

    def step(self, state: TAPState) -> tuple[TAPState, StepInfo]:
        """Sweep once over all sites of all students."""
        from dualtap._kernels.sweeps import tap_sweep

        m = state.m.copy()
        residual = tap_sweep(m, *self._arguments())
        return TAPState(m), self._info(residual, state.m)


@dataclass(frozen=True)
class SequentialAMP(_Sequential):
    r"""AMP one site at a time with :math:`m_i \leftarrow (1-d)\tanh\beta H_i' + d\,m_i`.

    The paper's appendix uses d = 0.95 and stops when the mean change of :math:`\tanh\beta H` over
    a sweep is below 0.001. The residual reported here is the mean of
    :math:`|\tanh\beta H' - m|`: the other vanishes too early, whenever H saturates. H on the
    right-hand side is that of the damped m, :math:`\mathrm{artanh}(m)/\beta`: kept as it was
    before damping, it would be multiplied by -u/(1-u) a sweep and blow up at u > 1/2.

    In the direct problem a pattern can grow from a random start only where u > 1, and there
    1/(1-u) has turned the flow round, whatever the damping. In the dual problem with enough data
    (large λ_max) it grows at u < 1, and the rule works.

    Parameters
    ----------
    couplings : Couplings
    beta : float
        Inverse temperature.
    damping : float
        d, in [0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.schemes import SequentialAMP
    >>> from dualtap.solve import solve
    >>> rng = np.random.default_rng(0)
    >>> samples = np.repeat(rng.choice([-1.0, 1.0], size=(1, 50)), 5, axis=0)
    >>> amp = SequentialAMP(HebbianCouplings(samples, np.float64), beta=0.8, damping=0.5)
    >>> solution = solve(amp, rng.uniform(-1, 1, size=(3, 50)))
    >>> bool(np.all(np.abs(solution.magnetizations @ samples[0]) / 50 > 0.9))
    True
    """

    def init(self, m: FloatArray) -> SequentialAMPState:
        """Start at ``m`` as if it had been there for ever."""
        m = np.array(to_numpy(m), dtype=np.float64)
        return SequentialAMPState(m, m, susceptibility(m, self.beta)[:, 0])

    def step(self, state: SequentialAMPState) -> tuple[SequentialAMPState, StepInfo]:
        """Sweep once over all sites of all students."""
        from dualtap._kernels.sweeps import amp_sweep

        m, m_prev, u_prev = (x.copy() for x in state)
        residual = amp_sweep(m, m_prev, u_prev, *self._arguments())
        return SequentialAMPState(m, m_prev, u_prev), self._info(residual, state.m)
