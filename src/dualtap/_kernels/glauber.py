"""Sequential heat-bath sweeps of a Hopfield model that keep its P overlaps, not its N fields.

A group of chains is advanced in lockstep, one lane a chain: every innermost loop runs over
lanes, which the compiler turns into vector instructions. Every chain owns its generator, so a
chain's history does not depend on its group, its thread, or the number of either.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from dualtap._kernels.compiled import parallel
from dualtap._kernels.xoshiro import draw

Array = Any  # Numba infers the types; the docstrings say them

_u32 = np.uint32


@njit(inline="always")
def add_overlaps(
    patterns: Array, weights: Array, overlaps: Array, i: int, j: int, change: Array, field: Array
) -> None:
    """Add Σ_μ w_i^μ M_μ to the fields, after the pending change at site j entered the M_μ.

    One pass over the overlaps does both; four patterns at a time keep them in registers.
    """
    n_patterns = patterns.shape[1]
    lanes = field.shape[0]
    mu = 0
    while mu + 4 <= n_patterns:
        w0, w1 = weights[i, mu], weights[i, mu + 1]
        w2, w3 = weights[i, mu + 2], weights[i, mu + 3]
        y0, y1 = patterns[j, mu], patterns[j, mu + 1]
        y2, y3 = patterns[j, mu + 2], patterns[j, mu + 3]
        for lane in range(lanes):
            delta = change[lane]
            m0 = overlaps[mu, lane] + y0 * delta
            m1 = overlaps[mu + 1, lane] + y1 * delta
            m2 = overlaps[mu + 2, lane] + y2 * delta
            m3 = overlaps[mu + 3, lane] + y3 * delta
            overlaps[mu, lane] = m0
            overlaps[mu + 1, lane] = m1
            overlaps[mu + 2, lane] = m2
            overlaps[mu + 3, lane] = m3
            field[lane] += (w0 * m0 + w1 * m1) + (w2 * m2 + w3 * m3)
        mu += 4
    while mu < n_patterns:
        w0, y0 = weights[i, mu], patterns[j, mu]
        for lane in range(lanes):
            m0 = overlaps[mu, lane] + y0 * change[lane]
            overlaps[mu, lane] = m0
            field[lane] += w0 * m0
        mu += 1


@njit(inline="always")
def _fields(
    patterns: Array, overlaps: Array, s: Array, i: int, j: int, change: Array, field: Array
) -> None:
    """N h_i = Σ_μ ζ_i^μ M_μ - P s_i, after the pending change at site j entered the M_μ."""
    self_coupling = np.float32(patterns.shape[1])
    for lane in range(field.shape[0]):
        field[lane] = -self_coupling * np.float32(s[i, lane])
    add_overlaps(patterns, patterns, overlaps, i, j, change, field)


@njit(inline="always")
def _last(table: Array) -> Any:
    """Return the last index of a table as the float32 that does not exceed it."""
    top = np.float32(table.shape[0] - 1)
    return top if np.int64(top) < table.shape[0] else np.nextafter(top, np.float32(0))


@njit(inline="always")
def _settle(s: Array, i: int, field: Array, high: Array, word: Array, change: Array) -> Any:
    """Set s_i against its field with probability ``high / 2^32``; count words equal to it."""
    ties = np.int32(0)
    top = _last(high)
    for lane in range(field.shape[0]):
        h = field[lane]
        threshold = high[_u32(np.int32(min(abs(h), top)))]
        aligned = np.int8(1) if h >= np.float32(0) else np.int8(-1)
        new = np.int8(-aligned) if word[lane] < threshold else aligned
        ties += np.int32(word[lane] == threshold)
        change[lane] = np.float32(np.int8(new - s[i, lane]))
        s[i, lane] = new
    return ties


@njit
def _break_ties(
    s: Array, i: int, field: Array, against: Array, word: Array, change: Array, generator: Array
) -> None:
    """Where the high words agree, a second word decides: the odds are exact to 2^-64."""
    top = _last(against)
    second = np.empty(1, dtype=np.uint32)
    for lane in range(field.shape[0]):
        h = field[lane]
        threshold = against[int(min(abs(h), top))]
        if word[lane] != _u32(threshold >> np.uint64(32)):
            continue
        draw(generator[:, lane : lane + 1], second)
        aligned = np.int8(1) if h >= np.float32(0) else np.int8(-1)
        new = np.int8(-aligned) if second[0] < _u32(threshold) else aligned
        change[lane] += np.float32(np.int8(new - s[i, lane]))
        s[i, lane] = new


@parallel()
def glauber_sweeps(
    spins: Array,
    patterns: Array,
    generators: Array,
    against: Array,
    n_sweeps: int,
    overlap_squares: Array,
) -> None:
    """Advance every chain by ``n_sweeps`` sweeps over the sites 0 … N-1, in place.

    Parameters
    ----------
    spins : (n_groups, N, lanes) int8, ±1
    patterns : (N, P) float32, ±1
    generators : (n_groups, 4, lanes) uint32
        States of xoshiro128++.
    against : (K + 1,) uint64
        2^64 P(s_i = -sign h_i) for N |h_i| = 0 … K; the last entry serves everything above.
    n_sweeps : int
    overlap_squares : (n_groups, n_sweeps, lanes) float64
        Receives Σ_μ (ζ^μ·s)² after every sweep.
    """
    n_groups, n_spins, lanes = spins.shape
    n_patterns = patterns.shape[1]
    high = (against >> np.uint64(32)).astype(np.uint32)
    for g in prange(n_groups):
        s = spins[g]
        generator = generators[g]
        # Integers below 2^24 are exact in float32: the overlaps never drift.
        overlaps = np.zeros((n_patterns, lanes), dtype=np.float32)
        for i in range(n_spins):
            for mu in range(n_patterns):
                for lane in range(lanes):
                    overlaps[mu, lane] += patterns[i, mu] * np.float32(s[i, lane])
        field = np.empty(lanes, dtype=np.float32)
        word = np.empty(lanes, dtype=np.uint32)
        change = np.zeros(lanes, dtype=np.float32)
        j = 0
        for sweep in range(n_sweeps):
            for i in range(n_spins):
                draw(generator, word)
                _fields(patterns, overlaps, s, i, j, change, field)
                if _settle(s, i, field, high, word, change) > 0:
                    _break_ties(s, i, field, against, word, change, generator)
                j = i
            for lane in range(lanes):
                total = 0.0
                for mu in range(n_patterns):
                    # The change at the last site is still pending.
                    m = overlaps[mu, lane] + patterns[j, mu] * change[lane]
                    total += np.float64(m) ** 2
                overlap_squares[g, sweep, lane] = total
