"""What every update rule shares: its protocol, its diagnostics, and the guard on 1 - u."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import namespace, overwritten, row_squares
from dualtap.couplings import FloatArray, StackedCouplings

SINGULARITY = 1e-3
"""Closest that 1 - u may come to zero; the rules divide by it and random starts cross it."""


class StepInfo(NamedTuple):
    """Diagnostics of one step, one entry per student, on the host or with the magnetizations."""

    residual: FloatArray
    """Mean absolute value of f(m) - m over the spins, before any damping."""
    stiffness: FloatArray
    """c such that no mode of the update is multiplied by less than -c; sets the safe damping."""
    guarded: NDArray[np.bool_]
    """True where 1 - u was pushed away from zero."""


class SchemeState(Protocol):
    """A NamedTuple of arrays whose first axis is the student; ``m`` is one of them."""

    @property
    def m(self) -> FloatArray:
        """Magnetizations, shape (students, spins)."""


S = TypeVar("S", bound=SchemeState)


class Scheme(Protocol[S]):
    """An update rule: ``init`` makes a state from magnetizations, ``step`` is pure."""

    def init(self, m: FloatArray) -> S:
        """Return the state that starts at ``m``, shape (students, spins)."""

    def step(self, state: S) -> tuple[S, StepInfo]:
        """Return the next state and its diagnostics."""

    def damped(self, state: S, m: FloatArray) -> S:
        """Return ``state`` moved to ``m``, where damping has put the magnetizations."""

    def taking(self, students: NDArray[np.int64]) -> Self:
        """Return the rule for these students alone, when others are done."""


class ServesAnyStudents:
    """Rules that treat all students alike, unless each has couplings of its own."""

    def taking(self, students: NDArray[np.int64]) -> Self:
        """Return the rule for these students alone, when others are done."""
        rule: Any = self
        if isinstance(getattr(rule, "couplings", None), StackedCouplings):
            return cast(Self, replace(rule, couplings=rule.couplings.taking(students)))
        return self


class DampsOnlyM(ServesAnyStudents):
    """Rules in which damping changes the magnetizations and nothing else."""

    def damped(self, state: S, m: FloatArray) -> S:
        """Return ``state`` moved to ``m``, where damping has put the magnetizations."""
        fields: Any = state  # a NamedTuple, which no protocol can spell
        return cast(S, fields._replace(m=m))


def susceptibility(m: FloatArray, beta: float) -> FloatArray:
    """Return u = β(1 - q), q the mean square magnetization, shape (students, 1)."""
    q = namespace(m).reshape(row_squares(m), (-1, 1)) / m.shape[1]
    u: FloatArray = beta * (1 - q)
    return u


def away_from_zero(x: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Push entries of ``x`` closer to zero than ``SINGULARITY`` out to it, sign kept."""
    xp = namespace(x)
    near = xp.abs(x) < SINGULARITY
    return xp.where(near, xp.copysign(xp.full_like(x, SINGULARITY), x), x), near[:, 0]


def mean_change(new: FloatArray, old: FloatArray) -> FloatArray:
    """Return the mean absolute difference over the spins, one value per student."""
    xp = namespace(new)
    mean: FloatArray = xp.sum(overwritten(xp.abs, new - old), axis=1) / new.shape[1]
    return mean
