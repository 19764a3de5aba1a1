r"""Patterns found in one half of the samples, judged by the other half.

Whoever knows one half can run the same proposers on it, so that a candidate needs no description:
its number among K of them, :math:`\log K` nats, tells which one it is. It is accepted if it gains
more than :math:`\rho \log K` in the other half, ρ being how often evidence is counted. This finds
what single entries are too uncertain to pay for: many weak patterns at once, as in most real data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.recovery import calibration
from dualtap.recovery.judge import F64, Judge
from dualtap.recovery.moves import State, freed, null, paying, stated, unlike
from dualtap.recovery.objective import sizes_of
from dualtap.recovery.proposers.rotation import Residual, residual_of, rotations
from dualtap.recovery.proposers.students import students
from dualtap.recovery.refit import Fit, Parameters, refit
from dualtap.recovery.selection import chosen, named_costs, promising
from dualtap.spins.blocks import F32
from dualtap.spins.cluster import blocks_of
from dualtap.spins.storage import DenseSpins, Reads


class Halves(NamedTuple):
    """Two judges of different samples."""

    one: Judge
    other: Judge
    reads: Reads
    """Counts what is read of either."""

    def turned(self) -> Halves:
        """Return the same in the other order."""
        return Halves(self.other, self.one, self.reads)


def halves_of(judge: Judge, rng: np.random.Generator, reads: Reads) -> Halves:
    """Return judges of two random halves of the rows."""
    order = rng.permutation(len(judge.rows))
    middle = len(order) // 2
    parts = np.sort(order[:middle]), np.sort(order[middle:])
    one, other = (Judge(DenseSpins(judge.rows[rows], "-1/+1")) for rows in parts)
    return Halves(one, other, reads)


class Found(NamedTuple):
    """Patterns that the half where they were not found confirms."""

    Z: F32
    costs: F64
    """Nats charged for each beside its strength, shape (n_patterns,)."""


def found_in_halves(halves: Halves, state: State, rng: np.random.Generator) -> Found:
    """Return patterns found in either half that the other confirms.

    Parameters
    ----------
    halves : Halves
    state : State
        The model that they are added to.
    rng : Generator
    """
    models = _model_of(halves.one, state), _model_of(halves.other, state)
    one = _found_in_first(halves, models, rng)
    other = _found_in_first(halves.turned(), models[::-1], rng)
    return Found(np.concatenate([one.Z, other.Z]), np.concatenate([one.costs, other.costs]))


def _found_in_first(halves: Halves, models: tuple[State, State], rng: np.random.Generator) -> Found:
    """Return patterns found in the first half that the second confirms.

    They are charged what names them and, as far as they gain more where they were found than
    where they were not, that difference.
    """
    here, there = models
    blocks = blocks_of(DenseSpins(halves.one.rows, "-1/+1", halves.reads))
    pool = candidates(halves.one, here, residual_of(blocks, here.fit, rng), rng)
    pool = promising(halves.one, here, pool)
    name = float(np.log(len(pool) + 1))
    new = chosen(halves.other, there, pool, name)
    while len(new):
        fit = _with(halves.other, there, new)
        costs = named_costs(halves.other, new, fit.g[-len(new) :], name)
        kept = _paying(halves.other, fit, costs)
        gain = fit.L - there.fit.L
        if kept.all() and gain > costs.sum() + calibration.CONFIRMED:
            surplus = _with(halves.one, here, new).L - here.fit.L - gain
            return Found(new, costs + max(surplus, 0.0) / len(new))
        new = new[kept] if not kept.all() else new[: len(new) // 2]
    return Found(new, np.empty(0))


def _with(judge: Judge, state: State, new: F32) -> Fit:
    """Return the model of a half with more patterns."""
    Z = np.concatenate([state.fit.Z, new])
    g = np.concatenate([state.fit.g, np.zeros(len(new))])
    return refit(judge, Z, g, state.fit.b, Parameters())


def _paying(judge: Judge, fit: Fit, costs: F64) -> NDArray[np.bool_]:
    """Return which of the last patterns pay for themselves where they are fitted."""
    n_known = len(fit.Z) - len(costs)
    number = 0.5 * np.log(judge.n_samples)  # which is not charged here
    found = np.concatenate([np.full(n_known, -np.inf), costs - number])
    return paying(stated(judge, fit, found), judge)[0][n_known:]


def _model_of(judge: Judge, state: State) -> State:
    """Return the model with strengths and fields fitted to a half."""
    fit = state.fit
    if not len(fit.Z):
        return freed(judge, null(judge))
    return stated(judge, refit(judge, fit.Z, fit.g, fit.b, Parameters()))


def candidates(judge: Judge, state: State, left: Residual, rng: np.random.Generator) -> F32:
    """Return candidates of all proposers on the residuals of a model."""
    Z = np.concatenate([rotations(left, rng), students(judge, state)])
    return Z[sizes_of(Z) > 1]


def with_found(judge: Judge, state: State, found: Found) -> State:
    """Return the model with patterns that a half has confirmed, fitted to all samples."""
    fit = state.fit
    Z = np.concatenate([fit.Z, found.Z])
    new = unlike(Z)
    g = np.concatenate([fit.g, np.zeros(len(found.Z))])[new]
    charged = np.concatenate([state.found, found.costs])[new]
    return stated(judge, refit(judge, Z[new], g, fit.b, Parameters()), charged)
