"""The fixed-point loop that runs every scheme.

It owns damping, tolerance, the removal of students that have converged, the guard against
non-finite values and the recording of trajectories. It knows no formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import like, namespace, take, to_numpy
from dualtap.couplings import FloatArray
from dualtap.schemes._base import Scheme, SchemeState, StepInfo, mean_change

__all__ = ["Solution", "StopReason", "join", "solve"]

S = TypeVar("S", bound=SchemeState)

_CYCLE_CHECK = 16
"""Steps from one look for two-cycles to the next."""
_CYCLE = 1e-3
"""Change over two steps, relative to that over one, below which students alternate for good.

Oscillations that die out with a factor -ρ per step have 1 - ρ: at 0.001 they would take more than
a thousand steps to shrink to a third.
"""


class StopReason(StrEnum):
    """Why a student stopped."""

    CONVERGED = "converged"
    CYCLE = "cycle"
    MAX_ITER = "max_iter"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Solution:
    """Where every student ended, and why.

    Magnetizations are in the namespace they started in, all else is NumPy.

    Attributes
    ----------
    magnetizations : array of shape (students, spins)
        The last finite magnetizations.
    converged : array of shape (students,), bool
    n_iter : array of shape (students,), int
        Steps taken.
    residual : array of shape (students,)
        Mean :math:`|f(m) - m|` at the last step, before damping.
    reason : array of shape (students,)
        A :class:`StopReason` each.
    n_guarded : array of shape (students,), int
        Steps at which 1 - u had to be kept away from zero.
    trajectory : array of shape (steps + 1, students, spins) or None
        Magnetizations from the start on; students that are done keep their last value.
    """

    magnetizations: FloatArray
    converged: NDArray[np.bool_]
    n_iter: NDArray[np.int64]
    residual: FloatArray
    reason: NDArray[np.object_]
    n_guarded: NDArray[np.int64]
    trajectory: FloatArray | None = None


def solve(
    scheme: Scheme[S],
    start: FloatArray,
    *,
    damping: float | Literal["auto"] = 0.0,
    tol: float = 1e-3,
    max_iter: int = 1000,
    record: bool = False,
) -> Solution:
    r"""Iterate a scheme from every row of ``start`` until each student is done.

    The update is :math:`m \leftarrow (1-d) f(m) + d\,m`. With ``damping="auto"`` every student
    takes :math:`d = c/(1+c)` at every step, c being the stiffness that the scheme reports: then,
    at given q, no mode of the linearised update has a negative multiplier, and what makes the
    parallel iteration oscillate is gone. (q itself may still cycle where there is nothing to
    find.) A student that has come to alternate between two states is stopped, unless
    the trajectory is recorded.

    Parameters
    ----------
    scheme : Scheme
        An update rule from :mod:`dualtap.schemes`.
    start : array of shape (students, spins)
        Starting magnetizations, in [-1, 1]. They may be an array of PyTorch, or of any library
        that follows the array API standard: then so is what the scheme works with.
    damping : float in [0, 1) or "auto"
        Share d of the old magnetizations that is kept.
    tol : float
        A student has converged when its mean :math:`|f(m) - m|` falls below this.
    max_iter : int
        Steps after which a student gives up.
    record : bool
        Keep the whole trajectory.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.schemes import TAP
    >>> from dualtap.solve import solve
    >>> rng = np.random.default_rng(0)
    >>> pattern = rng.choice([-1.0, 1.0], size=(1, 200))
    >>> tap = TAP(HebbianCouplings(pattern), beta=2.0)
    >>> solution = solve(tap, rng.uniform(-1, 1, size=(4, 200)).astype(np.float32))
    >>> solution.converged.all(), [str(r) for r in solution.reason[:2]]
    (np.True_, ['converged', 'converged'])
    """
    known = damping == "auto" if isinstance(damping, str) else 0 <= damping < 1
    if not known:
        raise ValueError(f"damping must be 'auto' or a number in [0, 1), got {damping!r}")
    state = scheme.init(start)
    n_students = start.shape[0]
    ended = _Ended(state.m)
    n_iter = np.full(n_students, max_iter)
    n_guarded = np.zeros(n_students, dtype=np.int64)
    residual = np.full(n_students, np.inf)
    reason = np.full(n_students, StopReason.MAX_ITER, dtype=object)
    active = np.arange(n_students)
    trajectory = [ended.joined(active, state.m)] if record else None
    alternation = _Alternation(np.inf if record else 3 * tol)

    for iteration in range(1, max_iter + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is dealt with below
            new, info = scheme.step(state)
            info = StepInfo(*(to_numpy(x) for x in info))
            m = _damped(new.m, state.m, info.stiffness, damping)
        finite = _finite(new) & np.isfinite(info.residual) & np.isfinite(info.stiffness)
        done = finite & (info.residual < tol)
        cycles = finite & ~done & alternation.found(iteration, m, info.residual)
        n_guarded[active] += info.guarded
        keep = finite & ~done & ~cycles
        if iteration == max_iter or not keep.all():
            residual[active] = info.residual
            n_iter[active[~keep]] = iteration
            ended.add(active, m, done | cycles)
            ended.add(active, state.m, ~finite)
            reason[active[done]] = StopReason.CONVERGED
            reason[active[cycles]] = StopReason.CYCLE
            reason[active[~finite]] = StopReason.DIVERGED
        state = new if m is new.m else scheme.damped(new, m)
        if not keep.all():
            rows = np.flatnonzero(keep)
            active, scheme, state = active[rows], scheme.taking(rows), _select(state, rows)
            alternation.keep(rows)
        if trajectory is not None:
            trajectory.append(ended.joined(active, state.m))
        if active.size == 0:
            break
    return Solution(
        magnetizations=ended.joined(active, state.m),
        converged=reason == StopReason.CONVERGED,
        n_iter=n_iter,
        residual=residual,
        reason=reason,
        n_guarded=n_guarded,
        trajectory=None if trajectory is None else namespace(state.m).stack(trajectory),
    )


def join(solutions: Sequence[Solution]) -> Solution:
    """Return the solutions of several batches as one; trajectories are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.schemes import TAP
    >>> from dualtap.solve import join, solve
    >>> tap = TAP(HebbianCouplings(np.ones((1, 9))), beta=2.0)
    >>> parts = [solve(tap, np.full((n, 9), 0.5, dtype=np.float32)) for n in (1, 2)]
    >>> join(parts).magnetizations.shape
    (3, 9)
    """
    names = [field.name for field in fields(Solution) if field.name != "trajectory"]
    columns = {name: [getattr(s, name) for s in solutions] for name in names}
    return Solution(**{name: namespace(parts[0]).concat(parts) for name, parts in columns.items()})


class _Ended:
    """Magnetizations of the students that are done, as they come; nothing is written into."""

    def __init__(self, m: FloatArray) -> None:
        self._dtype = m.dtype
        self._students: list[NDArray[np.int64]] = []
        self._m: list[FloatArray] = []

    def add(self, students: NDArray[np.int64], m: FloatArray, which: NDArray[np.bool_]) -> None:
        """Take in the rows of some students."""
        if which.any():
            self._students.append(students[which])
            self._m.append(take(m, np.flatnonzero(which)))

    def joined(self, others: NDArray[np.int64], m: FloatArray) -> FloatArray:
        """Return the magnetizations of all students in a new array, ``m`` being the others'."""
        xp = namespace(m)
        rows = xp.astype(xp.concat([*self._m, m]), self._dtype, copy=False)
        order = np.argsort(np.concatenate([*self._students, others]))
        joined: FloatArray = take(rows, order)
        return joined


class _Alternation:
    """Recognises students that alternate between two states, from three steps in a row.

    Only where the residual is well above the tolerance: what is about to converge shall.
    """

    def __init__(self, smallest_residual: float) -> None:
        self._smallest_residual = smallest_residual
        self._past: list[FloatArray] = []

    def found(self, iteration: int, m: FloatArray, residual: FloatArray) -> NDArray[np.bool_]:
        """Return which students have m_{t+2} = m_t but not m_{t+1} = m_t."""
        phase = iteration % _CYCLE_CHECK
        if phase < 2:
            self._past.append(m)
        elif phase == 2 and len(self._past) == 2:
            first, second = self._past
            self._past = []
            over_two = to_numpy(mean_change(m, first))
            over_one = to_numpy(mean_change(second, first))
            return (over_two < _CYCLE * over_one) & (residual > self._smallest_residual)
        else:
            self._past = []
        return np.zeros(len(residual), dtype=np.bool_)

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Forget the students that are done."""
        self._past = [take(m, rows) for m in self._past]


def _damped(
    new: FloatArray, old: FloatArray, stiffness: FloatArray, damping: float | Literal["auto"]
) -> FloatArray:
    """Return (1 - d) new + d old."""
    if damping == 0:
        return new
    d: Any = damping
    if damping == "auto":
        d = like(new, (stiffness / (1 + stiffness))[:, None])
    mixed: FloatArray = (1 - d) * new + d * old
    return mixed


def _finite(state: SchemeState) -> NDArray[np.bool_]:
    """Return which students have only finite numbers in their state, m aside.

    The residual speaks for m, and is cheaper to look at.
    """
    arrays: Any = state  # a NamedTuple, which no protocol can spell
    n_students = state.m.shape[0]
    finite = np.ones(n_students, dtype=np.bool_)
    for x in arrays:
        if x is not state.m:
            xp = namespace(x)
            finite &= to_numpy(xp.all(xp.reshape(xp.isfinite(x), (n_students, -1)), axis=1))
    return finite


def _select(state: S, rows: NDArray[np.int64]) -> S:
    """Take the students that are done out of every array of the state."""
    arrays: Any = state  # a NamedTuple, which no protocol can spell
    return cast(S, type(arrays)(*(take(x, rows) for x in arrays)))
