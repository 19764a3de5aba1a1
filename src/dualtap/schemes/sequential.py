"""Site after site with damping, on the host: TAP and AMP where their parallel forms may fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import to_numpy
from dualtap.couplings import Couplings, FloatArray, StackedCouplings, factors_of
from dualtap.schemes._base import (
    SINGULARITY,
    DampsOnlyM,
    ServesAnyStudents,
    StepInfo,
    susceptibility,
)
from dualtap.schemes.amp import AMPState, field_of
from dualtap.schemes.tap import TAPState


@dataclass(frozen=True)
class _Sequential(ServesAnyStudents):
    couplings: Couplings
    beta: float
    damping: float = 0.95
    _V: NDArray[Any] = field(init=False, repr=False, compare=False)
    _w: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping must be in [0, 1), got {self.damping}")
        if isinstance(self.couplings, StackedCouplings):
            V: NDArray[Any] = _in_lanes(self.couplings.patterns)
            w: FloatArray = np.ones(V.shape[2])
        else:
            vectors, w = factors_of(self.couplings)
            V = np.ascontiguousarray(vectors.T, dtype=np.float64)
        object.__setattr__(self, "_V", V)
        object.__setattr__(self, "_w", np.ascontiguousarray(w, dtype=np.float64))

    def _arguments(self) -> tuple[NDArray[Any] | float, ...]:
        """Return what every sweep takes after its state."""
        alpha = self.couplings.alpha
        return self._V, self._w, alpha, self.beta, self.damping, SINGULARITY

    def _info(self, residual: NDArray[np.float64], before: FloatArray) -> StepInfo:
        """Return the diagnostics of a sweep that started at the magnetizations ``before``."""
        guarded = np.abs(1 - susceptibility(before, self.beta)[:, 0]) < SINGULARITY
        # The sweep damps itself: nothing is left for the loop to tame.
        return StepInfo(residual, np.zeros(len(before)), guarded)


def _in_lanes(patterns: FloatArray) -> NDArray[np.int8]:
    """Return patterns (students, R, N) as the kernel reads them: (groups, N, R, lanes).

    Groups are of equal size; lanes of the last one that have no student stay unused.
    """
    from dualtap._kernels.sweeps import LANES

    n_students, n_vectors, n_spins = patterns.shape
    n_groups = -(-n_students // LANES)
    lanes = -(-n_students // max(1, n_groups))
    V = np.zeros((n_groups, n_spins, n_vectors, lanes), dtype=np.int8)
    for a, pattern in enumerate(patterns):
        V[a // lanes, :, :, a % lanes] = pattern.T
    return V


@dataclass(frozen=True)
class SequentialTAP(_Sequential, DampsOnlyM):
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
    r"""AMP one site at a time, damped.

    .. math:: H_i' = \frac{1}{1-u} \left[ \sum_{j \ne i} J_{ij} m_j - u H_i
              - \frac{\alpha u}{1-u_{\rm prev}}\, m_{i,\rm prev} \right],

    each site seeing the latest magnetizations of all others; u and the values marked prev are
    those before the sweep and the one before it. What is damped makes the difference:

    - ``damps="field"``: :math:`H_i \leftarrow (1-d) H_i' + d H_i`, :math:`m_i = \tanh \beta H_i`.
      In the direct problem it reaches patterns from random starts, as TAP does.
    - ``damps="magnetization"``: :math:`m_i \leftarrow (1-d) \tanh \beta H_i' + d\, m_i`, as the
      paper's appendix prints it, with :math:`H_i = \mathrm{artanh}(m_i)/\beta` following: kept as
      it was before damping, it would be multiplied by -u/(1-u) per sweep and blow up at u > 1/2.
      In the direct problem it reaches no pattern. In the dual problem with enough data (large
      λ_max) it works.

    The paper uses d = 0.95 and stops when the mean change of :math:`\tanh\beta H` over a sweep is
    below 0.001. The residual reported here is the mean of :math:`|\tanh\beta H' - m|`, which does
    not depend on d: the other vanishes too early, whenever damping is strong.

    Parameters
    ----------
    couplings : Couplings
    beta : float
        Inverse temperature.
    damping : float
        d, in [0, 1).
    damps : {"field", "magnetization"}
        What is damped.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel
    >>> from dualtap.schemes import SequentialAMP
    >>> from dualtap.solve import solve
    >>> teacher = HopfieldModel.random(300, 2, beta=2.0, random_state=0)
    >>> start = np.random.default_rng(1).choice([-1.0, 1.0], size=(3, 300))
    >>> for damps in ("field", "magnetization"):
    ...     amp = SequentialAMP(teacher.coupling_operator(), 2.0, damps=damps)
    ...     m = solve(amp, start).magnetizations
    ...     print(np.abs(m @ teacher.patterns.T / 300).max(axis=1) > 0.7)
    [ True  True  True]
    [False False False]
    """

    damps: Literal["field", "magnetization"] = "field"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.damps not in ("field", "magnetization"):
            raise ValueError(f"damps must be 'field' or 'magnetization', got {self.damps!r}")

    def init(self, m: FloatArray) -> AMPState:
        """Start at ``m`` as if it had been there for ever."""
        m = np.array(to_numpy(m), dtype=np.float64)
        return AMPState(field_of(m, self.beta), m, m, susceptibility(m, self.beta))

    def damped(self, state: AMPState, m: FloatArray) -> AMPState:
        """Return ``state`` moved to ``m``, with the field that belongs to it."""
        return state._replace(H=field_of(m, self.beta), m=m)

    def step(self, state: AMPState) -> tuple[AMPState, StepInfo]:
        """Sweep once over all sites of all students."""
        from dualtap._kernels.sweeps import amp_sweep

        H, m, m_prev, u_prev = (x.copy() for x in state)
        arguments = *self._arguments(), self.damps == "field"
        residual = amp_sweep(H, m, m_prev, u_prev[:, 0], *arguments)
        return AMPState(H, m, m_prev, u_prev), self._info(residual, state.m)
