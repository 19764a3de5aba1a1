"""What every update rule shares: its protocol, its diagnostics, and the guard on 1 - u."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dualtap.couplings import FloatArray

SINGULARITY = 1e-3
"""Closest that 1 - u may come to zero; the rules divide by it and random starts cross it."""


class StepInfo(NamedTuple):
    """Diagnostics of one step, one entry a student."""

    residual: FloatArray
    """Mean absolute value of f(m) - m over the spins, before any damping."""
    stiffness: FloatArray
    """c such that no mode of the update is multiplied by less than -c; sets the safe damping."""
    guarded: NDArray[np.bool_]
    """True where 1 - u was pushed away from zero."""


class State(Protocol):
    """A NamedTuple of arrays whose first axis is the student; ``m`` is one of them."""

    @property
    def m(self) -> FloatArray:
        """Magnetizations, shape (students, spins)."""


S = TypeVar("S", bound=State)


class Scheme(Protocol[S]):
    """An update rule: ``init`` makes a state from magnetizations, ``step`` is pure."""

    def init(self, m: FloatArray) -> S:
        """Return the state that starts at ``m``, shape (students, spins)."""

    def step(self, state: S) -> tuple[S, StepInfo]:
        """Return the next state and its diagnostics."""

    def damped(self, state: S, m: FloatArray) -> S:
        """Return ``state`` moved to ``m``, where damping has put the magnetizations."""


class DampsOnlyM:
    """Rules in which damping changes the magnetizations and nothing else."""

    def damped(self, state: S, m: FloatArray) -> S:
        """Return ``state`` moved to ``m``, where damping has put the magnetizations."""
        fields: Any = state  # a NamedTuple, which no protocol can spell
        return cast(S, fields._replace(m=m))


def susceptibility(m: FloatArray, beta: float) -> FloatArray:
    """Return u = β(1 - q), q the mean square magnetization, shape (students, 1)."""
    q = np.einsum("ki,ki->k", m, m)[:, None] / m.dtype.type(m.shape[1])
    u: FloatArray = beta * (1 - q)
    return u


def away_from_zero(x: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Push entries of ``x`` closer to zero than ``SINGULARITY`` out to it, sign kept."""
    near = np.abs(x) < SINGULARITY
    return np.where(near, np.copysign(x.dtype.type(SINGULARITY), x), x), near[:, 0]


def mean_change(new: FloatArray, old: FloatArray) -> FloatArray:
    """Return the mean absolute difference over the spins, one value a student."""
    change = new - old
    mean: FloatArray = np.abs(change, out=change).sum(axis=1) / new.shape[1]
    return mean
