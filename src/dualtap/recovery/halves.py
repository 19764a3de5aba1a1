r"""Patterns found in one half of the samples, judged by the other half.

Whoever knows one half can run the same proposers on it, so that a candidate needs no description:
its number among K of them, :math:`\log K` nats, tells which one it is. It is accepted if it gains
more than :math:`\rho \log K` in the other half, ρ being how often evidence is counted. This finds
patterns whose entries would cost more than they gain: many weak ones at once, as in most real data.
What both halves propose independently of each other also tells how sure the entries are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64
from dualtap.recovery.independent import null
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import State, freed, stated, unlike, worthwhile
from dualtap.recovery.objective import sizes_of
from dualtap.recovery.proposers.rotation import rotations
from dualtap.recovery.proposers.students import students
from dualtap.recovery.refit import Fit, Parameters, refit
from dualtap.recovery.residuals import Residual, residual_of
from dualtap.recovery.selection import chosen, named_costs, promising
from dualtap.spins.matrix import blocks_of
from dualtap.spins.protocol import F32
from dualtap.spins.weights import divided


class Halves(NamedTuple):
    """Two judges of different samples."""

    one: Judge
    other: Judge

    def turned(self) -> Halves:
        """Return the same in the other order."""
        return Halves(self.other, self.one)


def halves_of(judge: Judge, rng: np.random.Generator) -> Halves:
    """Return judges of two random halves of the samples."""
    one, other = (Judge(part) for part in divided(judge.as_spins(), int(judge.n_judged) // 2, rng))
    return Halves(one, other)


class Found(NamedTuple):
    """Patterns that the half where they were not found confirms."""

    Z: F32
    costs: F64
    """Nats charged for each beside its strength, shape (n_patterns,)."""

    def and_also(self, other: Found) -> Found:
        """Return these and others."""
        Z, costs = np.concatenate([self.Z, other.Z]), np.concatenate([self.costs, other.costs])
        return Found(Z, costs)


class Pools:
    """Vectors that either half proposes, the most promising of all rounds.

    Attributes
    ----------
    one, other : list of arrays of shape (n_candidates, n_spins)
    """

    def __init__(self) -> None:
        self.one: list[F32] = []
        self.other: list[F32] = []

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.one)

    def reliability(self, Z: F32) -> F32:
        r"""Return how sure patterns are, by what halves propose independently.

        Of a pattern, the vectors nearest to it that the halves propose have the cosine c. All
        samples together have the reliability :math:`2c / (1 + c)` (Spearman and Brown), and the
        pattern the correlation :math:`\sqrt{2c / (1 + c)}` with what no sampling disturbs.

        Parameters
        ----------
        Z : array of shape (n_patterns, n_spins)

        Returns
        -------
        array of shape (n_patterns, 1)
            In [0, 1].
        """
        one, other = self._nearest(Z)
        size = np.sqrt(sizes_of(one) * sizes_of(other))
        c = np.maximum((one * other).sum(axis=1) / np.maximum(size, 1), 0)
        result: F32 = np.sqrt(2 * c / (1 + c))[:, None].astype(np.float32)
        return result

    def agreement(self, Z: F32) -> F32:
        """Return how many of the halves agree with each entry of patterns: 0, a half or 1."""
        one, other = self._nearest(Z)
        result: F32 = np.maximum(Z * (one + other) / 2, 0)
        return result

    def _nearest(self, Z: F32) -> tuple[F32, F32]:
        """Return the vectors of either half that are nearest to patterns."""
        return _nearest(Z, np.concatenate(self.one)), _nearest(Z, np.concatenate(self.other))


def _nearest(Z: F32, pool: F32) -> F32:
    """Return the vector nearest to each pattern, with its sign; zeros if there is none."""
    if not len(pool):
        return np.zeros_like(Z)
    cosine = (Z @ pool.T) / np.sqrt(sizes_of(pool))
    k = np.argmax(np.abs(cosine), axis=1)
    sign = np.where(cosine[np.arange(len(Z)), k] < 0, -1, 1).astype(np.float32)
    result: F32 = pool[k] * sign[:, None]
    return result


def found_in_halves(halves: Halves, state: State, pools: Pools, rng: np.random.Generator) -> Found:
    """Return patterns found in either half that the other confirms.

    Parameters
    ----------
    halves : Halves
    state : State
        The model that they are added to.
    pools : Pools
        Gets what either half proposes.
    rng : Generator
    """
    here, there = propose(halves, state, pools, rng)
    one = _confirmed(halves, here, there, pools.one[-1])
    return one.and_also(_confirmed(halves.turned(), there, here, pools.other[-1]))


def propose(
    halves: Halves, state: State, pools: Pools, rng: np.random.Generator
) -> tuple[State, State]:
    """Add to the pools what either half proposes, and return the model fitted to either."""
    here, there = _model_of(halves.one, state), _model_of(halves.other, state)
    pools.one.append(_proposed(halves.one, here, rng))
    pools.other.append(_proposed(halves.other, there, rng))
    return here, there


def _proposed(judge: Judge, state: State, rng: np.random.Generator) -> F32:
    """Return the most promising candidates of all proposers, no two of them alike."""
    blocks = blocks_of(judge.as_spins())
    pool = candidates(judge, state, residual_of(blocks, state.fit, rng), rng)
    return promising(judge, state, pool)


def _confirmed(halves: Halves, here: State, there: State, pool: F32) -> Found:
    """Return the candidates of the first half that the second confirms.

    They are charged what names them and, as far as they gain more where they were found than
    where they were not, that difference.
    """
    named = partial(named_costs, halves.other, float(np.log(len(pool) + 1)))
    new = chosen(halves.other, there, pool, named)
    while len(new):
        fit = _with(halves.other, there, new)
        costs = named(new, fit.g[-len(new) :])
        kept = _worthwhile(halves.other, fit, costs)
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


def _worthwhile(judge: Judge, fit: Fit, costs: F64) -> NDArray[np.bool_]:
    """Return which of the last patterns gain more than they cost where they are fitted."""
    n_known = len(fit.Z) - len(costs)
    number = 0.5 * np.log(judge.n_samples)  # which is not charged here
    found = np.concatenate([np.full(n_known, -np.inf), costs - number])
    return worthwhile(stated(judge, fit, found), judge)[0][n_known:]


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


def averaged(judge: Judge, n_common: int, states: Sequence[State]) -> State:
    """Return the mean of models that have the first patterns in common, fitted anew.

    L is concave in the couplings: it is at least the mean of theirs, for unseen samples as well. So
    is the description, if each of k models is given with probability 1/k.

    Parameters
    ----------
    judge : Judge
    n_common : int
        Patterns that all have, as their first ones.
    states : sequence of State
    """
    number = 0.5 * np.log(judge.n_samples)  # is charged for a strength whatever was found
    k, n, first = len(states), n_common, states[0]
    common = np.mean([state.fit.g[:n] for state in states], axis=0)
    Z = np.concatenate([first.fit.Z[:n], *(state.fit.Z[n:] for state in states)])
    g = np.concatenate([common, *(state.fit.g[n:] / k for state in states)])
    b = np.mean([state.fit.b for state in states], axis=0)
    costs = [(state.found[n:] + number) / k - number for state in states]
    new = unlike(Z)
    fit = refit(judge, Z[new], g[new], b, Parameters())
    return stated(judge, fit, np.concatenate([first.found[:n], *costs])[new])


def with_found(judge: Judge, state: State, found: Found) -> State:
    """Return the model with patterns that a half has confirmed, fitted to all samples."""
    fit = state.fit
    Z = np.concatenate([fit.Z, found.Z])
    new = unlike(Z)
    g = np.concatenate([fit.g, np.zeros(len(found.Z))])[new]
    charged = np.concatenate([state.found, found.costs])[new]
    return stated(judge, refit(judge, Z[new], g, fit.b, Parameters()), charged)
