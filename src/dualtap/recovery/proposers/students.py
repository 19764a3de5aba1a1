r"""Students on the residual couplings: the paper's step, with a refit for its deflation.

Along a new pattern ζ the log pseudo-likelihood rises by :math:`g\, \zeta^\top G \zeta / 2N`,
:math:`G = R^\top S + S^\top R` without its diagonal, R what the model leaves of the samples S. A
student starts at an eigenvector of G, or at a pair of spins, and goes over to the entries that gain
most until they stay; entries that do not gain are 0, and G may also be followed downhill, to a
repulsive pattern.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from dualtap._eigen import extreme
from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import State
from dualtap.recovery.objective import pattern_costs
from dualtap.spins.protocol import F32
from dualtap.spins.storage import different_rows
from dualtap.spins.weights import weighted

MOST_SPINS = 700
"""Spins beyond which no matrix of residual couplings is made."""
_ITERATIONS = 6
_WORK = 2**21
_DENSE, _TOLERANCE = 200, 1e-2  # spins up to which all eigenvectors are computed, and of fewer


class ResidualCouplings(NamedTuple):
    """What the model leaves, pair by pair."""

    G: F64
    """Slopes of L along single couplings, shape (n_spins, n_spins)."""
    C: F64
    """Covariance of the spins."""
    w: F64
    """Information on the field of each spin, shape (n_spins,)."""
    pairs: F64
    """What a coupling of two spins would gain, same shape as G."""


def residual_couplings(judge: Judge, state: State) -> ResidualCouplings:
    """Return the slopes along all couplings, in one pass."""
    N, fit = judge.n_spins, state.fit
    G, C, V, A = (np.zeros((N, N)) for _ in range(4))
    mean, n = judge.mean.astype(np.float32), 0.0
    for S, R, W, weights in judge.residuals(fit.Z, fit.g, fit.b):
        G += R.T @ S
        centred = S - mean
        C += weighted(centred, weights).T @ centred
        n += len(S) if weights is None else float(weights.sum(dtype=np.float64))
        A += W.T @ S
        V += W.T @ np.square(S)
    G, A, V = judge.weight * (G + G.T), judge.weight * A, judge.weight * V
    np.fill_diagonal(G, 0)
    w = fit.statistics.variance + 1e-3 * float(fit.statistics.variance.mean()) + 1e-9
    curvature = V - np.square(A) / w[:, None]
    curvature = np.maximum(curvature + curvature.T, 1e-6)
    return ResidualCouplings(G, C / n, w, np.square(G) / (2 * curvature))


def students(judge: Judge, state: State) -> F32:
    """Return vectors that students pass through."""
    if judge.n_spins > MOST_SPINS:
        return np.empty((0, judge.n_spins), np.float32)
    return _pool(residual_couplings(judge, state), judge)


def _pool(couplings: ResidualCouplings, judge: Judge) -> F32:
    """Return every vector that students pass through."""
    from dualtap._kernels.atoms import best_supports

    pairs, of_pairs = _pairs(couplings)
    Y, sign = _directions(couplings, judge.n_samples)
    Y = np.concatenate([Y, of_pairs[:, None] * (pairs @ couplings.G)])
    sign = np.concatenate([sign, of_pairs])
    one = np.ones(judge.n_spins)
    G, C = couplings.G.astype(np.float32), couplings.C.astype(np.float32)  # rows stay in the cache
    parts = []
    for counted in (1.0, 2.0):
        sizes = np.arange(1.0, judge.n_spins + 1)
        costs = pattern_costs(sizes, counted * one, judge)
        y, Z = Y, np.zeros_like(Y)
        moving = np.arange(len(Y))
        for _ in range(_ITERATIONS):
            new = np.empty((len(moving), judge.n_spins))
            best_supports(G, C, couplings.w, y, sign[moving], costs, new)
            changed = (new != Z[moving]).any(axis=1)
            Z[moving] = new
            parts.append(new[changed])
            moving = moving[changed]
            if not len(moving):
                break
            y = sign[moving][:, None] * (Z[moving] @ couplings.G)
    pool = np.concatenate([*parts, pairs]).astype(np.int8)
    pool = pool[np.count_nonzero(pool, axis=1) > 1]
    first = np.argmax(pool != 0, axis=1)
    pool *= pool[np.arange(len(pool)), first][:, None]
    return different_rows(pool).astype(np.float32)


def _directions(couplings: ResidualCouplings, n_samples: float) -> tuple[F64, F64]:
    """Return orders of entries to start from, and the signs of the strengths."""
    scale = np.sqrt(couplings.w)
    k, N = _n_students(len(scale)), len(scale)
    down, up = (V * scale for V in _extremes(couplings.G / np.outer(scale, scale), k))
    if n_samples <= N:  # there are always sums of spins that are equal in all of few samples
        return np.concatenate([up, down]), np.repeat([1.0, -1.0], k)
    # Directions in which spins hardly vary are where repulsive patterns are.
    flat = eigh(couplings.C + 1e-6 * np.eye(N), subset_by_index=[0, k - 1])[1].T
    return np.concatenate([up, down, flat]), np.repeat([1.0, -1.0, -1.0], k)


def _extremes(A: F64, k: int) -> tuple[F64, F64]:
    """Return the eigenvectors of the k lowest and of the k highest eigenvalues, in rows."""
    v0 = np.ones(len(A))
    vectors = extreme(A, 2 * k, v0, which="BE", tolerance=_TOLERANCE, small=_DENSE)[1]
    V: F64 = vectors.T.astype(np.float64, copy=False)
    return V[:k], V[-k:]


def _n_students(n_spins: int) -> int:
    """Return students of each kind: fewer where a step of one takes long."""
    return min(calibration.STUDENTS, 2 + _WORK // n_spins**2, n_spins)


def _pairs(couplings: ResidualCouplings) -> tuple[F64, F64]:
    """Return the pairs of spins that gain most, as attractive and as repulsive patterns."""
    i, j = np.triu_indices(len(couplings.G), 1)
    gain, n = couplings.pairs[i, j], 2 * _n_students(len(couplings.G))
    least = np.partition(gain, -n)[-n] if n < len(gain) else -np.inf
    top = np.flatnonzero(gain >= least)
    top = top[np.argsort(-gain[top], kind="stable")][:n]
    i, j, rows = i[top], j[top], np.arange(len(top))
    Z = np.zeros((len(top), len(couplings.G)))
    Z[rows, i] = 1
    Z[rows, j] = np.where(couplings.G[i, j] < 0, -1, 1)
    other = Z.copy()
    other[rows, j] *= -1
    return np.concatenate([Z, other]), np.repeat([1.0, -1.0], len(top))
