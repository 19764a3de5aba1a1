"""Which of many candidates to add to a model together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64, Features
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import State, unlike
from dualtap.recovery.objective import pattern_costs, sizes_of
from dualtap.recovery.refit import strength_precision, times_counted
from dualtap.spins.protocol import F32

_ROUNDING = 1e-3  # of the curvature along a vector, which single precision may lose


Costs = Callable[[F32, F64], F64]
"""What patterns of given strengths cost, in nats."""


def chosen(judge: Judge, state: State, pool: F32, costs: Costs, most: int | None = None) -> F32:
    """Return the vectors of a pool that are worth their cost beside those before them.

    The slope along each and the curvature between all, with strengths and fields of the model
    following, make L a quadratic form in their strengths; the one that gains most is taken, the
    slopes of the others are what it leaves of them, and so on.

    Parameters
    ----------
    judge : Judge
    state : State
        The model that they are added to.
    pool : array of shape (n_candidates, n_spins)
        -1, 0 or +1.
    costs : callable
        Of vectors and their strengths.
    most : int, optional
        Vectors to take at most.
    """
    pool = promising(judge, state, pool)
    if not len(pool):
        return pool
    slope, H = _joint_form(judge, state, pool)
    taken: list[int] = []
    least = _ROUNDING * np.maximum(np.diag(H), 1e-300)
    while len(taken) < (most or calibration.COMPARED // 4):
        own = np.maximum(np.diag(H), least)
        net = np.square(slope) / (2 * own) - costs(pool, slope / own)
        net[taken] = -np.inf
        best = int(np.argmax(net))
        if net[best] <= 0:
            break
        taken.append(best)
        slope = slope - H[:, best] * (slope[best] / own[best])
        H = H - np.outer(H[:, best], H[best]) / own[best]
    return pool[taken]


def no_costs(Z: F32, g: F64) -> F64:
    """Return that patterns cost nothing."""
    return np.zeros(len(Z))


def described_costs(judge: Judge, state: State, Z: F32, g: F64) -> F64:
    """Return what one more pattern costs that is described entry by entry, with its strength.

    Entries were chosen to suit the rows that are judged, which are counted ``judge.weight`` times:
    so is the cost.
    """
    n_full = int(np.count_nonzero((state.fit.Z != 0).all(axis=1) & (state.fit.g > 0))) + 1
    costs = pattern_costs(sizes_of(Z), times_counted(Z, g, judge), judge, g > 0, n_full)
    result: F64 = judge.weight * (costs + 0.5 * np.log(judge.n_samples))
    return result


def named_costs(judge: Judge, name: float, Z: F32, g: F64) -> F64:
    """Return what patterns cost that so many nats name, counted as often as their evidence."""
    n = np.maximum(sizes_of(Z), 2)
    # Of n spins that determine each other n - 1 are explained, and all n are counted.
    result: F64 = np.maximum(times_counted(Z, g, judge), n / (n - 1)) * name
    return result


def promising(judge: Judge, state: State, pool: F32) -> F32:
    """Return the vectors that gain most alone, no two of them alike."""
    slope, curvature = np.zeros(len(pool)), np.zeros(len(pool))
    mixed = np.zeros(pool.shape)
    fit = state.fit
    for S, R, W, _ in judge.residuals(fit.Z, fit.g, fit.b):
        features = Features(S, pool)
        slope += features.slope(R)
        mixed += features.mixed(W)
        curvature += features.own_curvature(W)
    alone = curvature.copy()
    variance = fit.statistics.variance / judge.weight + 1e-3
    if fit.parameters.fields:
        curvature -= (np.square(mixed) / variance).sum(axis=1)
    curvature += _ROUNDING * alone + strength_precision(pool) / judge.weight
    gain = judge.weight * np.square(slope) / (2 * curvature)
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 0][: 8 * calibration.COMPARED]
    return _unlike(pool[order], fit.Z)[: calibration.COMPARED]


def _unlike(pool: F32, Z: F32) -> F32:
    """Return vectors that are nearly equal neither to a pattern nor to an earlier one."""
    size = np.sqrt(sizes_of(pool))
    new = np.ones(len(pool), dtype=np.bool_)
    if len(Z):
        cosine = np.abs(pool @ Z.T) / np.outer(size, np.sqrt(sizes_of(Z)))
        new = cosine.max(axis=1) <= calibration.SAME
    pool = pool[new]
    return pool[unlike(pool)]


def _joint_form(judge: Judge, state: State, pool: F32) -> tuple[F64, F64]:
    """Return slopes and curvatures of the pool, with the model's numbers following."""
    fit, n = state.fit, len(state.fit.g)
    Z = np.concatenate([fit.Z, pool])
    g = np.concatenate([fit.g, np.zeros(len(pool))])
    s, C = judge.statistics(Z, g, fit.b), judge.curvature(Z, g, fit.b)
    slope, H = s.slope, C.H
    ridge = _ROUNDING * np.diag(C.H) + strength_precision(Z)
    if fit.parameters.fields:
        A = judge.shift(Z)
        C = C.around(A)
        H = C.without_fields(fit.spread)
        residual = s.residual - fit.mean_field / fit.spread
        slope = slope - A @ s.residual - C.mixed @ (residual / (C.variance + 1 / fit.spread))
    H = H + np.diag(ridge)
    if n:
        H = H - H[:, :n] @ np.linalg.solve(H[:n, :n], H[:n])
    return slope[n:], H[n:, n:]
