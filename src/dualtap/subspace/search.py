"""The patterns of a factor model: candidates, the surest of them, and the model fitted anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dualtap._eigen import complement
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted
from dualtap.subspace.bits import sweep
from dualtap.subspace.factors import Factors, iterate
from dualtap.subspace.rotate import (
    depth,
    independent,
    polish,
    row_basis,
    spurious_depth,
)
from dualtap.subspace.starts import far_apart, pattern_candidates, shared

_ALL_AT_ONCE = 0.9  # share of the greatest depth that suffices if every dimension is explained
_ONE_BY_ONE = 0.97  # share of it otherwise; a mixture of three patterns has 3/4
_MARGIN = 0.05  # by which a pattern lies deeper than the deepest of spurious vectors
_DEEP_ENOUGH = 0.8  # polished vectors of a random space reach 0.78 at most, for k = N/10
_STILL_NEW = 0.2  # as _NEW, if all dimensions are explained
_NEW = 0.5  # share of a vector that patterns found before must leave unexplained
_MOST_IN_VAIN = 2


class SearchResult(NamedTuple):
    """What a search has found in a space."""

    patterns: F32
    """Shape (n_patterns, n_spins)."""
    rest: F32
    """±1 vectors for the dimensions that no pattern explains, at samples far apart in them."""


def search(
    blocks: SampleMatrix,
    factors: Factors,
    rng: np.random.Generator,
) -> SearchResult:
    """Find the patterns of a factor model, as many as there are, the surest first.

    Candidates are the rotations of what no pattern explains yet to independent components, and
    samples that patterns explain least, both polished within the space. If they explain every
    dimension, all are taken; if not, the deepest ones become patterns, the model is fitted again
    with them, and the rest is searched anew.

    Parameters
    ----------
    blocks : SampleMatrix
    factors : Factors
        Its V spans the space to search.
    rng : Generator

    Returns
    -------
    SearchResult
    """
    k, n_spins = factors.V.shape
    u = row_basis(factors.V)
    at_once = all_at_once(polish(pattern_candidates(blocks, u, factors.V[:0], rng), u), u)
    if len(at_once):
        return SearchResult(at_once, at_once[:0])
    spurious = spurious_depth(k, n_spins, rng)
    Z = np.empty((0, n_spins), dtype=np.float32)
    in_vain = 0
    while len(Z) < k and in_vain <= _MOST_IN_VAIN:
        u = row_basis(factors.V)
        pool = polish(pattern_candidates(blocks, u, Z, rng), u)
        found = _deepest(pool, u, Z, len(u), spurious)
        in_vain = in_vain + 1 if len(found) == len(Z) else 0
        if len(found) == len(Z):
            continue
        factors = _refit(blocks, factors, found, u)
        Z = factors.V[: len(found)]
    n = len(Z)
    if not 0 < n < k:
        return SearchResult(Z, Z[:0])
    return SearchResult(Z, shared(blocks, far_apart(factors.X[:, n:], factors.V[n:])))


def all_at_once(pool: F32, u: F32) -> F32:
    """Return a vector of the pool for every dimension, if these are equally deep; else none."""
    d = depth(pool, u)
    found = independent(pool, d, len(u), _STILL_NEW)
    deep = depth(found, u).min() >= max(_ALL_AT_ONCE * d.max(), _DEEP_ENOUGH)
    return found if deep and len(found) == len(u) else found[:0]


def _deepest(pool: F32, u: F32, Z: F32, most: int, spurious: float) -> F32:
    """Return the patterns Z and those of the pool that are beyond doubt."""
    d = depth(pool, u)
    allowed = d > spurious + _MARGIN
    if len(Z):
        allowed &= 1 - depth(pool, row_basis(Z)) > _NEW
    if not allowed.any():
        return Z
    allowed &= d >= _ONE_BY_ONE * d[allowed].max()
    order = np.concatenate([np.full(len(Z), 2.0), d[allowed]])
    return independent(np.concatenate([Z, pool[allowed]]), order, most, _NEW)


def _refit(blocks: SampleMatrix, factors: Factors, Z: F32, u: F32) -> Factors:
    """Return the model with the patterns as first vectors and free ones for the rest."""
    n_patterns, n_spins = Z.shape
    rest = complement(u, row_basis(Z), len(u) - n_patterns)
    V = np.concatenate([Z, 0.3 * np.sqrt(n_spins) * rest]).astype(np.float32)
    # The same θ in the new basis.
    X = (factors.X @ (factors.V @ np.linalg.pinv(V.astype(np.float64)))).astype(np.float32)
    prior = (weighted(X, blocks.weights).T @ X / blocks.total_weight).astype(np.float64)
    factors = iterate(blocks, factors._replace(V=V, X=X, prior=prior), 2, n_fixed=n_patterns)
    none = np.zeros(n_spins, np.float32)
    V, _ = sweep(blocks, factors.V, factors.X, none, n_bits=n_patterns)
    return iterate(blocks, factors._replace(V=V), 2, n_fixed=n_patterns)
