"""Entries of patterns, and the numbers that go with them, fitted better than proposers can."""

from __future__ import annotations

import numpy as np

from dualtap.recovery import calibration
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import (
    State,
    of_one_strength,
    stated,
    turning,
    with_all,
    with_patterns,
    without_idle,
)
from dualtap.recovery.refit import HOPFIELD, fields_for, refit
from dualtap.recovery.steps import Search
from dualtap.spins.protocol import F32
from dualtap.subspace.bits import sweep
from dualtap.subspace.posterior import coefficients, in_doubt, strong_field_posterior
from dualtap.subspace.rotate import binary

_REFINEMENTS, _SWEEPS = 12, 4
_FEWER = 4  # times as few changes are tried if all together gain too little
_LOST = 3.0  # times as unlikely: strengths fitted anew have never made up for it


def hopfield(search: Search, Z: F32) -> State:
    """Return the Hopfield model near patterns, each bit at its likelier sign given the others."""
    state = with_all(search.judge, Z)
    none = np.zeros(search.judge.n_spins, np.float32)
    for _ in range(_SWEEPS):
        X = coefficients(search.some, state.fit.Z, state.fit.g.astype(np.float32))
        toward = search.some.transposed_dot(X)
        visit = in_doubt(search.some, state.fit.Z, X, toward)
        Z = sweep(search.some, state.fit.Z, X, none, visit=visit, toward=toward)[0]
        if (Z == state.fit.Z).all():
            break
        other = with_all(search.judge, Z, float(state.fit.g[0]))
        if other.objective > state.objective - calibration.LEAST_GAIN:
            break
        state = other
    return without_idle(search.judge, state)


def drawn(search: Search, state: State) -> State:
    """Return the Hopfield model at the signs of posterior means, if that is shorter.

    Where many bits are wrong, each is judged beside the wrong ones of all others, and single turns
    lead nowhere; means over draws of all of them do not depend on any.
    """
    fit = state.fit
    if fit.parameters != HOPFIELD:
        return state
    none = np.zeros(search.judge.n_spins, np.float32)
    posterior = strong_field_posterior(search.some, fit.Z, fit.g, none, search.rng)
    other = of_one_strength(search.judge, binary(posterior.m))
    return other if other.objective < state.objective - calibration.LEAST_GAIN else state


def with_turned_bits(search: Search, state: State, most: int = 2, least: int = 0) -> State:
    """Return the model with entries turned that make the description shorter.

    All that gain alone, or fewer of them: those of one pattern gain less together.
    """
    while most and len(state.fit.Z):
        turns = turning(search.fine, state)
        n = int(np.count_nonzero(turns.gain))
        while n and most:
            Z, most = turns.first(state.fit.Z, n), most - 1
            if not _is_lost(search.judge, Z, state):
                other = with_patterns(search.judge, Z, state, least=least)
                if other.objective < state.objective and _keeps(other, state, least):
                    break
            n //= _FEWER
        else:
            break
        state = other
    return state


def _is_lost(judge: Judge, Z: F32, state: State) -> bool:
    """Say whether patterns are so unlikely with the numbers of others that no refit helps."""
    g = state.fit.g
    return judge.log_likelihood(Z, g, fields_for(judge, state.fit, Z, g)) < _LOST * state.fit.L


def _keeps(other: State, state: State, least: int) -> bool:
    """Say whether a model of at least so many patterns has them, and is no less likely."""
    return least == 0 or (len(other.fit.Z) >= least and other.fit.L >= state.fit.L)


def refined(search: Search, state: State) -> State:
    """Return the model with strengths, fields and bits fitted to all samples.

    One strength, without fields and zeros, needs no more than it has seen; bits come with their
    confidence.
    """
    fit = state.fit
    if fit.parameters == HOPFIELD and (fit.Z != 0).all():
        return state
    if np.isfinite(state.found).any():  # entries fitted to all samples predict others worse
        return finer(search, state)
    least = min(search.n_patterns or 0, len(fit.Z))
    return with_turned_bits(search, finer(search, state), _REFINEMENTS, least)


def finer(search: Search, state: State) -> State:
    """Judge by all samples from now on; return the model fitted to them."""
    return all_finer(search, [state])[0]


def all_finer(search: Search, states: list[State]) -> list[State]:
    """Judge by all samples from now on; return the models fitted to them."""
    if search.fine is search.judge:
        return states
    search.fine.n_seen = search.judge.n_seen
    search.judge = search.fine
    judge, result = search.judge, []
    for state in states:
        fit = state.fit
        fit = refit(judge, fit.Z, fit.g, fit.b, fit.parameters)
        result.append(stated(judge, fit, state.found))
    return result
