"""The loop: propose, refit, accept what shortens the description, until nothing does.

A step takes a state to a state and says what it did. Proposers know nothing of each other; the
description length alone decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap.recovery import calibration
from dualtap.recovery.confidence import magnetizations
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import (
    State,
    enlarged,
    freed,
    null,
    of_one_strength,
    simplest,
    stated,
    turned,
    with_fewer,
    with_patterns,
)
from dualtap.recovery.objective import sizes_of
from dualtap.recovery.proposers.rotation import (
    Residual,
    clustered,
    flat_set,
    looks_binary,
    residual_of,
    responds_linearly,
    rotated,
    rotations,
    share_direction,
    sparse_set,
    straightened,
    whole_sets,
)
from dualtap.recovery.proposers.students import MOST_SPINS, students
from dualtap.recovery.refit import at, refit
from dualtap.recovery.rotate import binary, row_basis
from dualtap.recovery.selection import chosen
from dualtap.recovery.space import leave_noise
from dualtap.recovery.spectrum import Spectrum, spectrum
from dualtap.spins import Spins, as_spins
from dualtap.spins.blocks import F32, Blocks
from dualtap.spins.cluster import blocks_of

_ENOUGH_SAMPLES = 2**16
"""Samples deep in a state say so much about it that no more of them are looked at."""
_NO_WORSE = 1e-3  # nats per entry by which draws may make the description longer
_FEWER = 4  # times as few patterns are added if all together do not pay


class Info(NamedTuple):
    """What a step did."""

    step: int
    move: str
    source: str
    n_patterns: int
    objective: float
    gain: float
    accepted: bool


@dataclass
class Search:
    """Samples, the best model of them so far, and how it was found."""

    blocks: Blocks
    judge: Judge
    rng: np.random.Generator
    n_patterns: int | None
    watch: Callable[[Info], None]
    trace: list[Info] = field(default_factory=list)
    n_left: int = 0
    """Directions above the noise edge that the last model looked at leaves."""
    largest: float = 0.0
    """The largest of their squared singular values, over the noise edge."""

    @cached_property
    def some(self) -> Blocks:
        """Samples by which patterns are looked for; all of them, unless there are very many."""
        return self.blocks if self.blocks.dense is not None else self.blocks.some(_ENOUGH_SAMPLES)

    @cached_property
    def whole(self) -> Spectrum:
        """Directions of the samples themselves."""
        return spectrum(self.some, self.rng, self.n_patterns or 1)

    def left(self, blocks: Blocks, state: State, n_least: int = 1) -> Residual:
        """Return what a model leaves of the samples, and remember how much that is."""
        left = residual_of(blocks, state.fit, self.rng, n_least)
        self.n_left = left.n_signal
        if not len(state.fit.Z):
            self.judge.n_seen = left.n_signal
        self.largest = float(left.spectrum.values[0] / left.spectrum.edge)
        return left

    def better(self, state: State, other: State, move: str, source: str) -> State:
        """Return the state with the shorter description, and note the step."""
        gain = state.objective - other.objective
        accepted = gain > calibration.LEAST_GAIN
        info = Info(
            len(self.trace), move, source, len(other.fit.Z), other.objective, gain, accepted
        )
        self.trace.append(info)
        self.watch(info)
        return other if accepted else state


class Recovery(NamedTuple):
    """What the samples say about the patterns behind them."""

    state: State
    m: F32
    """Posterior means of all entries, shape (n_patterns, n_spins)."""
    search: Search


def recover(
    spins: Spins,
    where: Any,
    rng: np.random.Generator,
    n_patterns: int | None = None,
    watch: Callable[[Info], None] = lambda info: None,
) -> Recovery:
    """Recover the patterns behind samples.

    Parameters
    ----------
    spins : Spins
    where : array or None
        An array of another library, which makes the products; None for NumPy.
    rng : Generator
    n_patterns : int, optional
        Their number, if known.
    watch : callable
        Called with every step.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.recovery.loop import recover
    >>> X = HopfieldModel.random(300, 3, beta=2.0, random_state=0).sample(30, random_state=1)
    >>> recover(as_spins(X), None, np.random.default_rng(0)).state.fit.g.round(1)
    array([2., 2., 2.])
    """
    search = Search(blocks_of(spins, where=where), Judge(spins), rng, n_patterns, watch)
    with one_blas_thread():
        nothing = null(search.judge)
        state, explained = of_samples(search, nothing)
        if not explained or (n_patterns is not None and spins.n_spins <= MOST_SPINS):
            # Large data are completed from what was found, for small ones that is only a rival.
            start = state if search.judge.n_spins > MOST_SPINS else nothing
            rivals = [state, grown(search, start)]
            if n_patterns is not None:
                rivals = [forced(search, rival, n_patterns) for rival in rivals]
            state = min(rivals, key=_objective if n_patterns is None else _misfit)
        elif n_patterns is not None:
            state = forced(search, state, n_patterns)
        elif 2 * spins.n_spins <= min(spins.n_samples, 2 * MOST_SPINS):
            state = with_flat(search, state, search.left(search.blocks, state))
        state = search.better(state, simplest(search.judge, state), "tie", "fit")
        m, Z = magnetizations(search.blocks, search.judge, state, rng)
        state = _at_means(search, state, m, Z)
    return Recovery(state, m, search)


def _objective(state: State) -> float:
    return state.objective


def _misfit(state: State) -> tuple[int, float]:
    """Return what ranks models of a given number of patterns: that they have it, then their fit."""
    return -len(state.fit.Z), -state.fit.L


def of_samples(search: Search, state: State) -> tuple[State, bool]:
    """Look for patterns in the samples themselves: a Hopfield model of one strength, no fields.

    Returns the best state, and if it leaves nothing but noise.
    """
    whole, given = search.whole, search.n_patterns
    if not whole.n_signal and given is None:
        return state, False
    if responds_linearly(whole, search.some):
        return (state, False) if state.fit.parameters.fields else _linear(search, state)
    search.judge.n_seen = whole.n_signal
    for Z, settled in clustered(search.some, whole, search.rng, given):
        other = enlarged(search.judge, of_one_strength(search.judge, Z))
        state = search.better(state, other, "add", "samples")
        sure = settled or len(Z) == given
        if other is state and (sure or leave_noise(search.some, Z, search.rng)):
            return state, True
    if share_direction(search.some, whole):
        return state, False
    Z = straightened(search.some, whole, search.rng, given)
    if len(Z):
        other = enlarged(search.judge, of_one_strength(search.judge, Z))
        state = search.better(state, other, "add", "rotation, straightened")
    if not len(Z) or other is not state:
        return state, False
    return state, len(Z) == given or leave_noise(search.some, Z, search.rng)


def _linear(search: Search, state: State) -> tuple[State, bool]:
    """Rotate the directions above the noise in several ways, refine each, keep the likeliest."""
    blocks, given = search.blocks, search.n_patterns
    whole = search.whole if search.some is blocks else spectrum(blocks, search.rng, given or 1)
    k = given or whole.n_signal
    search.judge.n_seen = whole.n_signal
    one, explained = np.ones(blocks.n_spins, np.float32), False
    for m in rotated(blocks, one, whole.vectors[:k], search.rng):
        Z = binary(m)
        other = enlarged(search.judge, of_one_strength(search.judge, Z))
        if np.array_equal(other.fit.Z, Z):
            other = other._replace(m=m)
        state = search.better(state, other, "add", "rotation, refined by TAP")
        explained = explained or (other is state and len(m) == k)
    if len(state.fit.Z) and not looks_binary(state.fit.Z, row_basis(whole.vectors[:k])):
        for n in {k, min(k, whole.n_above)} - {0}:
            Z = sparse_set(row_basis(whole.vectors[:n]), search.rng)
            other = with_turned_bits(search, of_one_strength(search.judge, Z))
            state = search.better(state, enlarged(search.judge, other), "add", "sparse rotation")
    return state, explained


def grown(search: Search, state: State) -> State:
    """Add to the model what its residuals show, until nothing pays."""
    first, state = state, freed(search.judge, state)
    left = search.left(search.blocks, state)
    together = of_sets(search, state, left)
    rest = search.left(search.blocks, together)
    if together is not state and (not rest.n_signal or search.judge.n_spins > MOST_SPINS):
        first = min(first, with_flat(search, together, rest), key=_objective)
    while search.judge.n_spins <= MOST_SPINS:
        before, state = state, added(search, state, proposals(search, state, left))
        if state is before:
            break
        left = search.left(search.blocks, state)
    if state.objective < first.objective:
        return state
    search.n_left = rest.n_signal
    return first


def of_sets(search: Search, state: State, left: Residual) -> State:
    """Return the model with a pattern for every direction above the noise edge, if that pays.

    Of ±1 vectors and of sparse ones, the set of shortest description is taken.
    """
    best = state
    for Z in whole_sets(left, search.rng):
        Z = np.concatenate([state.fit.Z, Z])
        other = with_turned_bits(search, with_patterns(search.judge, Z, state))
        best = search.better(best, other, "add", "rotation of residuals")
    return best


def with_flat(search: Search, state: State, left: Residual) -> State:
    """Return the model with repulsive patterns along directions that hardly vary, if they pay."""
    Z = flat_set(left, search.rng)
    if not len(Z):
        return state
    Z, start = np.concatenate([state.fit.Z, Z]), freed(search.judge, state)
    other = with_turned_bits(search, with_patterns(search.judge, Z, start))
    return search.better(state, other, "add", "flat directions")


def proposals(search: Search, state: State, left: Residual) -> F32:
    """Return candidates of all proposers on the residuals of a model."""
    pool = rotations(left, search.rng)
    if left.n_signal or search.judge.n_spins <= calibration.ALWAYS_STUDENTS:
        pool = np.concatenate([pool, students(search.judge, state)])
    return pool[sizes_of(pool) > 1]


def added(search: Search, state: State, pool: F32) -> State:
    """Return the model with those candidates that pay together, or fewer, or as it was."""
    new = chosen(search.judge, state, pool)
    n = len(new)
    while n:
        Z = np.concatenate([state.fit.Z, new[:n]])
        other = with_turned_bits(search, with_patterns(search.judge, Z, state))
        if search.better(state, other, "add", "residuals") is other:
            return other
        n //= _FEWER
    return state


def with_turned_bits(search: Search, state: State) -> State:
    """Return the model with the bits turned that make the description shorter."""
    for _ in range(2):
        Z = turned(search.judge, state)
        if (Z == state.fit.Z).all():
            break
        other = with_patterns(search.judge, Z, state)
        if other.objective >= state.objective:
            break
        state = other
    return state


def forced(search: Search, state: State, n_patterns: int) -> State:
    """Return the model with so many patterns, whatever they cost."""
    judge = search.judge
    state = with_fewer(judge, state, n_patterns)
    while len(state.fit.Z) < n_patterns:
        missing = n_patterns - len(state.fit.Z)
        start = freed(judge, state)
        left = search.left(search.blocks, start, missing)
        pool = proposals(search, start, left.with_at_least(missing))
        new = chosen(judge, start, pool, free=True)[:missing]
        if not len(new):
            break
        Z = np.concatenate([state.fit.Z, new])
        other = with_patterns(judge, Z, start, least=len(Z))
        if len(other.fit.Z) == len(state.fit.Z):
            break
        state = other
    return state


def _at_means(search: Search, state: State, m: F32, Z: F32) -> State:
    """Return the model of the signs of m, with strengths fitted to a draw of the bits.

    The signs of m have been chosen to suit the samples, and would look too strong.
    """
    fit = state.fit
    signs = np.where(m == 0, fit.Z, binary(m)).astype(np.float32)
    if (Z == fit.Z).all() and (signs == fit.Z).all():
        return state
    drawn = refit(search.judge, Z, fit.g, fit.b, fit.parameters)
    own = at(search.judge, signs, drawn.g, drawn.b, fit.parameters, drawn.spread)
    other = stated(search.judge, own)
    if other.objective > state.objective + _NO_WORSE * search.judge.n_entries:
        return state
    return other


def refined_from(X: Any, patterns: ArrayLike, random_state: RandomState = None) -> Recovery:
    """Return the model of samples that the same moves reach from given patterns.

    What a search could at best find: started at the truth, it has nothing to search for.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins)
    patterns : array-like of shape (n_patterns, n_spins)
        -1, 0 or +1.
    random_state : int, RandomState, Generator or None
    """
    spins, rng = as_spins(X), as_generator(random_state)
    search = Search(blocks_of(spins), Judge(spins), rng, None, lambda info: None)
    Z = np.asarray(patterns, dtype=np.float32)
    with one_blas_thread():
        start = freed(search.judge, null(search.judge))
        state = with_turned_bits(search, with_patterns(search.judge, Z, start, least=len(Z)))
        state = simplest(search.judge, state)
        m, drawn = magnetizations(search.blocks, search.judge, state, rng)
        return Recovery(_at_means(search, state, m, drawn), m, search)


def steps(search: Search) -> Iterator[dict[str, Any]]:
    """Yield what was tried, as plain values."""
    for info in search.trace:
        yield info._asdict()
