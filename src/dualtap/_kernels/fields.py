"""Sums over the local fields of all spins, in one pass over them."""

from typing import Any

import numpy as np
from numba import njit

Array = Any  # Numba infers the types; the docstrings say them

_FAST = {"reassoc", "nsz", "contract", "arcp", "nnan"}


# The python error model looks for division by zero, and then nothing is vectorised.
@njit(cache=True, fastmath=_FAST, error_model="numpy")
def count_aligned(s: Array, g: Array, own: Array, bound: float, counts: Array) -> None:
    """Add the aligned fields s_i h_i of some samples to a histogram between -bound and bound.

    Parameters
    ----------
    s : (M, N) float32
        Spins, 0 where one is missing.
    g : (M, N) float32
        Σ_μ ζ_i (ζ·s): n h_i with the spin's own part in it, n counting observed spins.
    own : (N,) float32
        Σ_μ ζ_i², the part of its own.
    bound : float
        Larger than any |h_i|.
    counts : (n_bins + 1,) int64
        The last is for missing spins. Changed in place.
    """
    n_bins = counts.shape[0] - 1
    place = np.empty(s.shape[1], dtype=np.int32)
    width = np.float32(n_bins / (2 * bound))
    middle = np.float32(n_bins / 2)
    for a in range(s.shape[0]):
        n_observed = np.float32(0)
        for i in range(s.shape[1]):
            n_observed += abs(s[a, i])
        scale = width / max(n_observed, np.float32(1))
        for i in range(s.shape[1]):
            k = np.int32((s[a, i] * g[a, i] - own[i]) * scale + middle)
            k = min(max(k, np.int32(0)), np.int32(n_bins - 1))  # nothing is written elsewhere
            place[i] = k if s[a, i] != 0 else n_bins
        for i in range(s.shape[1]):
            counts[place[i]] += 1


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def newton_sums(s: Array, h: Array, T: Array, sums: Array, common: Array) -> None:
    """Add up what a Newton step needs, r = s - T and c = 1 - T² at the observed spins.

    Parameters
    ----------
    s, h, T : (M, N) float32
        Spins, fields on them, and their expected values, of which those of missing spins (s = 0)
        count as nothing.
    sums : (3, N) float64
        Σ r, Σ c and Σ h c of every site. Changed in place.
    common : (2,) float64
        Σ h r and Σ h² c over all sites. Changed in place.
    """
    slope, stiffness = 0.0, 0.0
    for a in range(s.shape[0]):
        for i in range(s.shape[1]):
            observed = abs(s[a, i])
            t = T[a, i] * observed
            r, c, field = s[a, i] - t, observed - t * t, h[a, i]
            sums[0, i] += r
            sums[1, i] += c
            sums[2, i] += field * c
            slope += np.float64(field * r)
            stiffness += np.float64(field * field * c)
    common[0] += slope
    common[1] += stiffness
