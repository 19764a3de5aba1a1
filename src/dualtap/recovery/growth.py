"""Models that grow: patterns for all directions at once, and candidates a few at a time."""

from __future__ import annotations

from functools import partial

import numpy as np

from dualtap.recovery import calibration
from dualtap.recovery.halves import candidates
from dualtap.recovery.moves import State, freed, halved, with_patterns
from dualtap.recovery.proposers.flat import flat_set
from dualtap.recovery.proposers.rotation import (
    binary_sets,
    plain_directions,
    simple_structure,
)
from dualtap.recovery.proposers.students import MOST_SPINS
from dualtap.recovery.refinement import all_finer, drawn, finer, hopfield, with_turned_bits
from dualtap.recovery.refit import HOPFIELD
from dualtap.recovery.selection import chosen, described_costs
from dualtap.recovery.steps import Search
from dualtap.spins.protocol import F32

_FEWER = 4  # times as few candidates are tried if those together gain too little


def length_of(state: State) -> float:
    """Return the description length of a model."""
    return state.objective


def grown(search: Search, state: State) -> State:
    """Return the model with patterns for all directions that it leaves above the noise edge.

    Either a ±1 vector for each of them, or a sparse one for each and then whatever shortens the
    description most, a few at a time. The first pattern to shorten it most would be a mixture of
    several, like a first principal component, and no later move would take it apart.
    """
    is_large = search.judge.n_spins > MOST_SPINS
    if is_large:  # directions of large data show the errors of few rows
        state = finer(search, state)
    starts = [state, search.nothing] if len(state.fit.Z) and not is_large else [state]
    best = min((with_binary_set(search, start) for start in starts), key=length_of)
    if not is_large or not len(best.fit.Z) or search.left(search.blocks, best).n_signal:
        start = best if is_large else with_simple_structure(search, search.nothing)
        best = min(best, completed(search, freed(search.judge, start)), key=length_of)
    if not len(best.fit.Z):
        return state
    if search.fine is not search.judge:  # what few rows show may be their own
        state, best = all_finer(search, [state, best])
        best = completed(search, freed(search.judge, best))
    left = search.left(search.blocks, best)
    flat = flat_set(left.blocks, left.variance, best.fit.Z, search.rng)
    best = with_flat(search, best, flat) if len(flat) else best
    return min(state, best, key=length_of)


def with_binary_set(search: Search, state: State) -> State:
    """Return the model with a ±1 vector for every direction above the noise edge, if shorter."""
    tied = state.fit.parameters == HOPFIELD
    best = free = freed(search.judge, state)
    for Z in binary_sets(search.left(search.blocks, free), search.rng):
        Z = np.concatenate([free.fit.Z, Z])
        other = with_turned_bits(search, with_patterns(search.judge, Z, free))
        best = search.better(best, other, "add", "rotation of residuals")
        if tied and (Z != 0).all():
            one = drawn(search, hopfield(search, Z))
            best = search.better(best, one, "add", "rotation of residuals, tied")
        if best is not free and search.explained_by(best):
            break
    return state if best is free else best


def with_simple_structure(search: Search, state: State) -> State:
    """Return the model with a sparse vector for each direction above the noise, if shorter.

    But for leading directions that are patterns as they are: a rotation would make two groups of
    spins of what all have in common and what tells the groups apart.
    """
    judge, other = search.judge, freed(search.judge, state)
    left = search.left(search.blocks, other)
    while len(plain := plain_directions(left, other.fit.Z)):
        wider = with_patterns(judge, np.concatenate([other.fit.Z, plain[:1]]), other)
        if wider.objective > other.objective - calibration.LEAST_GAIN:
            break
        other, left = wider, search.left(search.blocks, wider)
    if left.n_signal:
        Z = np.concatenate([other.fit.Z, simple_structure(left)])
        other = with_patterns(judge, Z, other)
    return search.better(state, other, "add", "rotation to simple structure")


def completed(search: Search, state: State) -> State:
    """Return the model with candidates of all proposers added, a few at a time, while shorter."""
    fewer = 1
    while most := _at_once(state) // fewer:
        pool = candidates(search.judge, state, search.left(search.blocks, state), search.rng)
        new = chosen(search.judge, state, pool, partial(described_costs, search.judge, state), most)
        if not len(new):
            return state
        other = with_patterns(search.judge, np.concatenate([state.fit.Z, new]), state)
        other = with_turned_bits(search, other)
        apart = halved(search.judge, other)
        other = other if apart is other else with_turned_bits(search, apart)
        better = search.better(state, other, "add", "candidates")
        if better is state:
            fewer = _FEWER * _at_once(state) // len(new)
        state = better
    return state


def _at_once(state: State) -> int:
    """Return how many candidates are added at once: a share of the patterns of a large model."""
    return max(calibration.ADDED_AT_ONCE, len(state.fit.Z) // calibration.ADDED_PER)


def with_flat(search: Search, state: State, flat: F32) -> State:
    """Return the model with repulsive patterns along directions that hardly vary, if shorter."""
    Z, start = np.concatenate([state.fit.Z, flat]), freed(search.judge, state)
    other = with_turned_bits(search, with_patterns(search.judge, Z, start))
    return search.better(state, other, "add", "flat directions")
