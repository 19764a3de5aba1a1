"""The fixed-point loop: every iteration of the package runs here and nowhere else.

It owns damping, tolerance, the retirement of students that are done, the guard against
non-finite values and the recording of trajectories. It knows no formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dualtap.couplings import FloatArray
from dualtap.schemes._base import Scheme, State

__all__ = ["Solution", "StopReason", "join", "solve"]

S = TypeVar("S", bound=State)


class StopReason(StrEnum):
    """Why a student stopped."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Solution:
    """Where every student ended, and why.

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
    find.)

    Parameters
    ----------
    scheme : Scheme
        An update rule from :mod:`dualtap.schemes`.
    start : array of shape (students, spins)
        Starting magnetizations, in [-1, 1].
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
    n_students = len(start)
    final = np.array(state.m)
    n_iter = np.full(n_students, max_iter)
    n_guarded = np.zeros(n_students, dtype=np.int64)
    residual = np.full(n_students, np.inf)
    reason = np.full(n_students, StopReason.MAX_ITER, dtype=object)
    active = np.arange(n_students)
    trajectory = [final.copy()] if record else None

    for iteration in range(1, max_iter + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is dealt with below
            new, info = scheme.step(state)
            m = _damped(new.m, state.m, info.stiffness, damping)
        finite = _finite(new) & np.isfinite(info.residual) & np.isfinite(info.stiffness)
        done = finite & (info.residual < tol)
        n_guarded[active] += info.guarded
        if iteration == max_iter or done.any() or not finite.all():
            residual[active] = info.residual
            n_iter[active[done | ~finite]] = iteration
            final[active[done]] = m[done]
            final[active[~finite]] = state.m[~finite]
            reason[active[done]] = StopReason.CONVERGED
            reason[active[~finite]] = StopReason.DIVERGED
        keep = finite & ~done
        active = active[keep]
        state = _select(new if m is new.m else scheme.damped(new, m), keep)
        if trajectory is not None:
            final[active] = state.m
            trajectory.append(final.copy())
        if active.size == 0:
            break
    final[active] = state.m
    return Solution(
        magnetizations=final,
        converged=reason == StopReason.CONVERGED,
        n_iter=n_iter,
        residual=residual,
        reason=reason,
        n_guarded=n_guarded,
        trajectory=None if trajectory is None else np.stack(trajectory),
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
    return Solution(
        **{name: np.concatenate([getattr(s, name) for s in solutions]) for name in names}
    )


def _damped(
    new: FloatArray, old: FloatArray, stiffness: FloatArray, damping: float | Literal["auto"]
) -> FloatArray:
    """Return (1 - d) new + d old."""
    if damping == 0:
        return new
    d: Any = damping
    if damping == "auto":
        d = (stiffness / (1 + stiffness))[:, None].astype(new.dtype)
    mixed: FloatArray = (1 - d) * new + d * old
    return mixed


def _finite(state: State) -> NDArray[np.bool_]:
    """Return which students have only finite numbers in their state, m aside.

    The residual speaks for m, and is cheaper to look at.
    """
    arrays: Any = state  # a NamedTuple, which no protocol can spell
    finite = np.ones(len(state.m), dtype=np.bool_)
    for x in arrays:
        if x is not state.m:
            finite &= np.isfinite(x).reshape(len(x), -1).all(axis=1)
    return finite


def _select(state: S, keep: NDArray[np.bool_]) -> S:
    """Take the students that are done out of every array of the state."""
    arrays: Any = state  # a NamedTuple, which no protocol can spell
    return state if keep.all() else cast(S, type(arrays)(*(x[keep] for x in arrays)))
