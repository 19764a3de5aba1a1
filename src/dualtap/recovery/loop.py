"""The loop: propose, refit, accept what shortens the description, until nothing does.

A step takes a state to a state and says what it did. Proposers know nothing of each other; the
description length alone decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from dualtap._random import RandomState, as_generator
from dualtap._threads import FALSE_ALARMS, one_blas_thread
from dualtap.recovery import calibration
from dualtap.recovery.confidence import as_halves_allow, given_others, magnetizations
from dualtap.recovery.growth import (
    completed,
    grown,
    length_of,
    with_flat,
    with_simple_structure,
)
from dualtap.recovery.halves import (
    Halves,
    Pools,
    averaged,
    candidates,
    found_in_halves,
    halves_of,
    propose,
    with_found,
)
from dualtap.recovery.independent import with_means
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import (
    State,
    distinct,
    enlarged,
    freed,
    of_one_strength,
    simplest,
    stated,
    with_all,
    with_fewer,
    with_patterns,
)
from dualtap.recovery.objective import likelihood_of_all
from dualtap.recovery.proposers.flat import flat_set, has_flat
from dualtap.recovery.proposers.rotation import (
    clustered,
    looks_binary,
    responds_linearly,
    rotated,
    share_direction,
    sparse_set,
    straightened,
)
from dualtap.recovery.proposers.students import MOST_SPINS
from dualtap.recovery.refinement import drawn, finer, hopfield, refined, with_turned_bits
from dualtap.recovery.refit import HOPFIELD, at, numbers_of
from dualtap.recovery.residuals import unexplained
from dualtap.recovery.selection import chosen, no_costs
from dualtap.recovery.steps import Info, Search
from dualtap.spins import Spins, as_spins
from dualtap.spins.matrix import blocks_of
from dualtap.spins.protocol import F32
from dualtap.subspace.rotate import binary, row_basis
from dualtap.subspace.spectrum import spectrum

_FEWEST_HALVED = 16  # samples, in halves of which anything may be looked for
_FEW_FORCED = 16  # patterns are forced one by one, up to so many


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
        For draws from the posterior; the search itself is deterministic.
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
    search = Search(spins, blocks_of(spins, where=where), Judge(spins), n_patterns, watch)
    with one_blas_thread(), np.errstate(**FALSE_ALARMS):
        state, explained = of_samples(search)
        if n_patterns is not None:
            state = _likeliest(search, state, n_patterns)
        elif explained:
            state, explained = _or_sparse(search, _or_flat(search, state))
        else:
            state = grown(search, state)
        if n_patterns is None and not explained:
            state = confirmed(search, state)
        state = refined(search, state)
        simple = simplest(search.judge, state)
        # A number that is requested may describe the data worse than independent spins do.
        if n_patterns is None or simple.fit.L >= search.nothing.fit.L:
            state = search.better(state, simple, "tie", "fit")
        if n_patterns is None and not search.is_evident(state):
            state = search.nothing
        state = _no_less_likely(search, state)
        m, Z = magnetizations(search.blocks, search.judge, state, rng, search.pools)
        state, m = _at_means(search, state, m, Z)
    return Recovery(state, m, search)


def _no_less_likely(search: Search, state: State) -> State:
    """Return the model, with fields or without patterns if the means alone are likelier.

    A description may be short because it has no fields, and fit the samples worse. Patterns that
    are requested stay, without strength.
    """
    judge = search.judge
    means = with_means(judge, search.nothing)
    if not len(state.fit.Z):
        return means
    least = likelihood_of_all(means.fit, judge)
    if likelihood_of_all(state.fit, judge) < least:
        state = freed(judge, state)
    if likelihood_of_all(state.fit, judge) >= least:
        return state
    if search.n_patterns is None:
        return means
    spread = freed(judge, search.nothing).fit.spread
    means = means._replace(fit=means.fit._replace(spread=spread))
    return _as_likely(judge, means, state.fit.Z)


def of_samples(search: Search, given: int | None = None) -> tuple[State, bool]:
    """Look for patterns in the samples themselves: a Hopfield model of one strength, no fields.

    As many as the samples show, or a given number. Returns the best state, and if it leaves nothing
    but noise or has that number.
    """
    whole, state = search.whole, search.nothing
    if not whole.n_signal and given is None:
        return state, False
    if responds_linearly(whole, search.some):
        return (state, False) if state.fit.parameters.fields else _linear(search, state, given)
    search.judge.n_seen = whole.n_signal
    for Z in clustered(search.some, whole, search.rng, given):
        other = enlarged(search.judge, hopfield(search, Z))
        state = search.better(state, other, "add", "samples")
        if other is state and (len(Z) == given or search.explained_by(state)):
            return state, True
    if share_direction(search.some, whole):
        return state, False
    found = straightened(search.some, whole, search.rng, given)
    if not len(found.patterns):
        return state, False
    other = hopfield(search, found.patterns)
    if search.explained_by(other):
        other = enlarged(search.judge, other)
        state = search.better(state, other, "add", "rotation, straightened")
        return state, other is state
    other = enlarged(search.judge, drawn(search, other))
    state = search.better(state, other, "add", "rotation, straightened")
    if len(found.rest):
        # Entries set without the patterns that are missing would become those of mixtures.
        Z = np.concatenate([found.patterns, found.rest])
        state = search.better(state, _of_all(search, Z), "add", "samples in the rest of the space")
    return state, len(state.fit.Z) == given or search.explained_by(state)


def _of_all(search: Search, Z: F32) -> State:
    """Return the model of patterns worth their cost, with strengths of their own or one for all."""
    one = enlarged(search.judge, of_one_strength(search.judge, Z))
    free = with_patterns(search.judge, one.fit.Z, freed(search.judge, one))
    one = drawn(search, hopfield(search, free.fit.Z))
    return min(free, one, key=length_of)


def _or_flat(search: Search, state: State) -> State:
    """Return a model, with repulsive patterns if samples vary less than noise in some direction."""
    if not has_flat(search.blocks, search.whole):
        return state
    Z = flat_set(*unexplained(search.blocks, state.fit), state.fit.Z, search.rng)
    return with_flat(search, finer(search, state), Z) if len(Z) else state


def _or_sparse(search: Search, state: State) -> tuple[State, bool]:
    """Return a model that leaves noise or a shorter one of sparse patterns, and if the first.

    Sums and differences of sparse patterns have their couplings, where spins respond linearly.
    """
    if search.judge.n_spins > MOST_SPINS or not responds_linearly(search.whole, search.some):
        return state, True
    sparse = completed(search, freed(search.judge, with_simple_structure(search, search.nothing)))
    return (state, True) if state.objective <= sparse.objective else (sparse, False)


def _linear(search: Search, state: State, given: int | None) -> tuple[State, bool]:
    """Rotate the directions above the noise in several ways, refine each, keep the shortest."""
    blocks = search.blocks
    whole = search.whole if search.some is blocks else spectrum(blocks, search.rng, given or 1)
    k = given or whole.n_signal
    search.judge.n_seen = whole.n_signal
    one, explained = np.ones(blocks.n_spins, np.float32), False
    hidden = max(calibration.HIDDEN * whole.n_signal, 1)
    keep_all = given is not None and k <= whole.n_signal + hidden
    for m in rotated(blocks, one, whole.vectors[:k], search.rng):
        Z = distinct(binary(m)) if keep_all else binary(m)
        model = with_all if keep_all else of_one_strength
        other = enlarged(search.judge, model(search.judge, Z))
        if np.array_equal(other.fit.Z, binary(m)):
            other = other._replace(m=m)
        asked = keep_all and len(state.fit.Z) < len(other.fit.Z)
        better = search.better(state, other, "add", "rotation, refined by TAP")
        state = other if asked else better
        explained = explained or (other is state and len(other.fit.Z) == k)
    if len(state.fit.Z) and not looks_binary(state.fit.Z, whole, k, blocks):
        for n in {k, min(k, whole.n_above)} - {0}:
            Z = sparse_set(row_basis(whole.vectors[:n]), search.rng)
            other = with_turned_bits(search, of_one_strength(search.judge, Z))
            state = search.better(state, enlarged(search.judge, other), "add", "sparse rotation")
        explained = False  # sparse patterns may be there below the noise edge
    return state, explained


def confirmed(search: Search, state: State) -> State:
    """Add patterns that one half of the samples shows and the other confirms, until none is.

    Of small data, the mean of the models that several halvings lead to is returned, if shorter.
    """
    judge, rng = search.judge, np.random.default_rng(0)
    if judge.n_samples < _FEWEST_HALVED or judge.n_spins > MOST_SPINS:
        return state
    is_small = judge.n_spins * max(judge.rows.shape) <= calibration.HALVED_OFTEN
    models: list[State] = []
    for _ in range(calibration.HALVINGS if is_small else 1):
        halves, pools = halves_of(judge, rng), Pools()
        model = _confirmed_by(halves, search, state, pools)
        if not search.pools:
            search.pools = pools
            if len(state.fit.Z):  # are in no pool yet
                propose(halves, search.nothing, pools, search.rng)
        if model is state and not models:
            return state
        models += [] if model is state else [model]
    if len(models) == 1:
        return models[0]
    mean = averaged(judge, len(state.fit.Z), models)
    length = float(np.mean([model.objective for model in models]))
    any_of_them = models[0]._replace(objective=length)
    if search.better(any_of_them, mean, "average", f"{len(models)} halvings") is mean:
        return mean
    return min(models, key=length_of)


def _confirmed_by(halves: Halves, search: Search, state: State, pools: Pools) -> State:
    """Return the model with what one half of the samples shows and the other confirms."""
    while True:
        start = freed(search.judge, state)
        found = found_in_halves(halves, start, pools, search.rng)
        if not len(found.Z):
            return state
        other = search.better(state, with_found(search.judge, start, found), "add", "halves")
        if other is state:
            return state
        state = other


def _likeliest(search: Search, state: State, n_patterns: int) -> State:
    """Return the likeliest model of so many patterns that several starts lead to.

    What the samples show, if that is so many; else also what they show of so many. Large data have
    no other start, unless they show nothing: entries turned while patterns are missing become those
    of mixtures, so patterns are first of all as many as they should be.
    """
    is_small, found = search.judge.n_spins <= MOST_SPINS, len(state.fit.Z) == n_patterns
    starts = [state] if len(state.fit.Z) else []
    if not found or (is_small and not search.explained_by(state)):
        own, explained = of_samples(search, n_patterns)
        enough = explained or (not is_small and len(own.fit.Z) > 0)
        starts.append(own if enough else grown(search, own))
        if is_small:
            starts += [confirmed(search, search.nothing), search.nothing]
    rivals = [simplest(search.judge, forced(search, start, n_patterns)) for start in starts]
    return max(rivals, key=lambda rival: (len(rival.fit.Z), rival.fit.L))


def forced(search: Search, state: State, n_patterns: int) -> State:
    """Return the model with so many patterns, whatever they cost."""
    judge = search.judge
    state = with_fewer(judge, state, n_patterns)
    while len(state.fit.Z) < n_patterns:
        missing = n_patterns - len(state.fit.Z)
        start = freed(judge, state)
        left = search.left(search.blocks, start, missing)
        pool = candidates(judge, start, left.with_at_least(missing), search.rng)
        new = chosen(judge, start, pool, no_costs)[: 1 if missing < _FEW_FORCED else missing]
        if not len(new):
            break
        Z = np.concatenate([state.fit.Z, new])
        other = with_patterns(judge, Z, start, least=len(Z))
        if len(other.fit.Z) == len(state.fit.Z):
            break
        least = max(state, start, key=lambda fewer: fewer.fit.L)
        state = other if other.fit.L >= least.fit.L else _as_likely(judge, least, other.fit.Z)
    return state


def _as_likely(judge: Judge, state: State, Z: F32) -> State:
    """Return a model with more patterns, those that are new without strength."""
    fit = state.fit
    g = np.concatenate([fit.g, np.zeros(len(Z) - len(fit.g))])
    found = np.concatenate([state.found, np.full(len(Z) - len(fit.g), np.nan)])
    parameters = fit.parameters._replace(tied=False)
    return stated(judge, at(judge, Z, g, fit.b, parameters, fit.spread), found)


def _at_means(search: Search, state: State, m: F32, Z: F32) -> tuple[State, F32]:
    """Return the model of the signs of m, with strengths fitted to a draw of the bits, and m.

    The signs of m have been chosen to suit the samples, and would look too strong. What is drawn
    from a posterior is less likely than its maximum by its entropy at most. If draws have left the
    model for one that is longer than that, it stays, with the mean of each entry given all others.
    """
    fit = state.fit
    judge = search.fine if fit.parameters == HOPFIELD else search.judge
    signs = np.where(m == 0, fit.Z, binary(m)).astype(np.float32)
    if (Z == fit.Z).all() and (signs == fit.Z).all() and judge is search.judge:
        return state, m
    g, b, spread = numbers_of(judge, Z, fit.g, fit.b, fit.parameters)
    own = at(search.judge, signs, g, b, fit.parameters, spread)
    other = stated(search.judge, own, state.found)
    means = with_means(search.judge, search.nothing).fit
    up = np.clip((1 + m.astype(np.float64)) / 2, 0, 1)
    most = state.objective + float((entr(up) + entr(1 - up)).sum())
    least = likelihood_of_all(means, search.judge)
    differ = len(distinct(signs)) == len(signs)
    if differ and other.objective <= most and likelihood_of_all(own, search.judge) >= least:
        return other, m
    if (signs == fit.Z).all():
        return state, m
    return state, as_halves_allow(given_others(search.judge, state), state, search.pools)


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
    search = Search(spins, blocks_of(spins), Judge(spins))
    Z = np.asarray(patterns, dtype=np.float32)
    with one_blas_thread(), np.errstate(**FALSE_ALARMS):
        start = freed(search.judge, search.nothing)
        state = with_turned_bits(search, with_patterns(search.judge, Z, start, least=len(Z)))
        state = simplest(search.judge, refined(search, state))
        m, drawn = magnetizations(search.blocks, search.judge, state, rng, search.pools)
        return Recovery(*_at_means(search, state, m, drawn), search)
