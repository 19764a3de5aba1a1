"""Entries of patterns, site by site, that make a quadratic form in them largest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap._kernels.compiled import compiled

F64 = NDArray[np.float64]


@compiled()
def best_entries(
    zeta: F64, A: F64, c: F64, r: F64, entry: F64, free: NDArray[np.bool_], gain: F64, most: int
) -> None:
    r"""Change entries of each site, singly or in pairs, as long as that gains.

    Changes :math:`\delta` gain :math:`A \cdot \delta - \frac12 \sum_{\mu\nu} \delta_\mu
    r_{\mu\nu} \sqrt{c_\mu c_\nu} \delta_\nu`, less what the code of entries that are not 0 costs.
    In pairs, because two patterns whose overlaps vary together hide each other's errors.

    Parameters
    ----------
    zeta, A, c : array of shape (n_spins, n_patterns)
        Entries, which are changed in place; slopes, which follow; curvatures.
    r : array of shape (n_patterns, n_patterns)
        Correlations of the overlaps.
    entry : array of shape (n_patterns,)
        What an entry that is not 0 costs.
    free : array of shape (n_patterns,)
        Whether entries may be 0.
    gain : array of shape (n_spins,)
        Filled with what the changes gain.
    most : int
        Changes of a site, at most.
    """
    N, P = zeta.shape
    delta, alone = np.empty(P), np.empty(P)
    for i in range(N):
        root = np.sqrt(c[i])
        gain[i] = 0.0
        for _ in range(most):
            for mu in range(P):
                alone[mu], delta[mu] = _best_alone(
                    zeta[i, mu], A[i, mu], c[i, mu], entry[mu], free[mu]
                )
            best, first, second = 1e-9, -1, -1
            for mu in range(P):
                if alone[mu] > best:
                    best, first, second = alone[mu], mu, -1
                for nu in range(mu):
                    both = alone[mu] + alone[nu]
                    both -= delta[mu] * delta[nu] * r[mu, nu] * root[mu] * root[nu]
                    if both > best:
                        best, first, second = both, mu, nu
            if first < 0:
                break
            gain[i] += best
            for changed in (first, second):
                if changed >= 0:
                    zeta[i, changed] += delta[changed]
                    for nu in range(P):
                        A[i, nu] -= r[changed, nu] * root[changed] * root[nu] * delta[changed]


@compiled()
def _best_alone(z: float, A: float, c: float, entry: float, free: bool) -> tuple[float, float]:
    """Return the gain of the best other value of an entry, and the change."""
    best, change = -np.inf, 0.0
    for new in (-1.0, 0.0, 1.0):
        if new == z or (new == 0.0 and not free):
            continue
        delta = new - z
        gain = A * delta - 0.5 * c * delta * delta + entry * (abs(z) - abs(new))
        if gain > best:
            best, change = gain, delta
    return best, change
