"""How sure every bit of the patterns is: a stage of its own, after the search.

Where spins respond linearly to ±1 patterns, TAP equations for all of them and exact draws of the
bits of each site. For any other attractive patterns without zeros, draws of coefficients and bits
from their posterior. In any other model each entry given all others: by how much
likelier a spin is given the others than with its entry turned. Where the samples were halved, a
pattern is at most as sure as what the halves propose for it is alike, and an entry as sure as the
halves agree on it.
"""

from __future__ import annotations

import numpy as np

from dualtap.recovery import calibration
from dualtap.recovery.halves import Pools
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import State, of_sites
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.subspace.posterior import strong_field_posterior
from dualtap.subspace.weak_field import WeakFieldPosterior


def magnetizations(
    blocks: SampleMatrix, judge: Judge, state: State, rng: np.random.Generator, pools: Pools
) -> tuple[F32, F32]:
    """Return posterior means of all entries, and the patterns that are likeliest given them.

    Parameters
    ----------
    blocks : SampleMatrix
        The samples.
    judge : Judge
    state : State
    rng : Generator
    pools : Pools
        What halves of the samples proposed.

    Returns
    -------
    m : array of shape (n_patterns, n_spins)
        Posterior means; 0 where the pattern is 0.
    Z : array of shape (n_patterns, n_spins)
        A draw from the posterior, which is as likely as the truth.
    """
    if np.isfinite(state.found).any():
        m, Z = given_others(judge, state), state.fit.Z
    else:
        m, Z = _given_model(blocks, judge, state, rng)
    return as_halves_allow(m, state, pools), Z


def as_halves_allow(m: F32, state: State, pools: Pools) -> F32:
    """Return means no surer than what halves of the samples propose independently of each other.

    Entries that suit all samples together show less than they seem to.
    """
    Z = state.fit.Z
    if not len(pools) or not len(Z):
        return m
    most = pools.reliability(Z) * pools.agreement(Z)
    return np.clip(m, -most, most)


def _given_model(
    blocks: SampleMatrix, judge: Judge, state: State, rng: np.random.Generator
) -> tuple[F32, F32]:
    """Return posterior means if the samples are from such a model, and a draw of the patterns."""
    fit = state.fit
    if not len(fit.Z):
        return fit.Z, fit.Z
    if _responds_linearly(judge, state):
        t = np.tanh(fit.b).astype(np.float32)
        around = blocks.minus(t) if t.any() else blocks
        least = min(calibration.FEWEST_EVENTS / blocks.total_weight, 1)
        posterior = WeakFieldPosterior(around, np.maximum(1 - t * t, least), len(fit.Z))
        m = state.m if state.m is not None else posterior.means(fit.Z)
        drawn = posterior.drawn(m, rng)
        return drawn.m, drawn.Z
    if (fit.Z != 0).all() and fit.g.min() > 0:
        b = fit.b.astype(np.float32)
        drawn = strong_field_posterior(blocks, fit.Z, fit.g, b, rng)
        return drawn.m, drawn.Z
    return given_others(judge, state), fit.Z


def given_others(judge: Judge, state: State) -> F32:
    """Return the mean of each entry given all others."""
    sites = of_sites(judge, state.fit)
    odds = 2 * (state.fit.Z * sites.A + sites.c)
    result: F32 = (state.fit.Z * np.tanh(np.maximum(odds, 0) / 2)).astype(np.float32)
    return result


def _responds_linearly(judge: Judge, state: State) -> bool:
    """Say whether patterns explain so little that tanh h is nearly linear in their fields."""
    fit = state.fit
    if (fit.Z == 0).any() or fit.g.min() <= 0:
        return False
    rest = 1 - np.square(np.tanh(fit.mean_field)) if fit.parameters.fields else np.ones(1)
    left = fit.statistics.variance.sum() / judge.n_entries
    return bool(1 - left / float(np.mean(rest)) < calibration.LINEAR)
