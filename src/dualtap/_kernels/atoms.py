"""The best support of a candidate pattern: its entries are added in order, the gain is watched."""

from typing import Any

import numpy as np
from numba import njit

from dualtap._kernels.compiled import compiled

Array = Any  # Numba infers the types; the docstrings say them


@compiled(error_model="numpy")
def best_supports(
    G: Array, C: Array, w: Array, Y: Array, sign: Array, costs: Array, Z: Array
) -> None:
    """Set every row of Z to the signs of Y on the entries that gain most.

    ``G`` (N, N) are residual couplings, ``C`` (N, N) the covariance of the spins, both float32,
    ``w`` (N,) the information on the field of each, ``Y`` (k, N) the order of the entries by
    ``|Y|/w``, ``sign`` (k,) of the strength, ``costs`` (N,) of a pattern with 1, 2, … entries. With
    slope
    ``Σ_{i<j} ζ_i G_ij ζ_j`` and curvature ``Σ_i w_i Var(Σ_{j≠i} ζ_j s_j)`` the gain is
    ``slope² / 2 curvature - cost``, watched for every prefix in O(N²).
    """
    n_rows, N = Y.shape
    z = np.empty(N)
    for k in range(n_rows):
        order = np.argsort(-np.abs(Y[k]) / w)
        field, shared, turned = (
            np.zeros(N, np.float32),
            np.zeros(N, np.float32),
            np.zeros(N, np.float32),
        )
        slope = variance = weight = own = mixed = 0.0
        best, size = -np.inf, 0
        for n in range(N):
            i = order[n]
            z[n] = 1.0 if Y[k, i] >= 0 else -1.0
            slope += z[n] * field[i]
            variance += 2 * z[n] * shared[i] + C[i, i]
            mixed += z[n] * turned[i] + w[i] * (z[n] * shared[i] + C[i, i])
            weight += w[i]
            own += w[i] * C[i, i]
            curvature = weight * variance - 2 * mixed + own
            if n > 0 and sign[k] * slope > 0 and curvature > 0:
                gain = slope * slope / (2 * curvature) - costs[n]
                if gain > best:
                    best, size = gain, n + 1
            _add_entry(G[i], C[i], np.float32(z[n]), np.float32(w[i]), field, shared, turned)
        Z[k] = 0.0
        for n in range(size):
            Z[k, order[n]] = z[n]


@njit(error_model="numpy")
def _add_entry(
    g: Array, c: Array, z: float, w: float, field: Array, shared: Array, turned: Array
) -> None:
    """Add what an entry contributes to the sums of all others, along rows of the matrices."""
    for j in range(g.shape[0]):
        field[j] += g[j] * z
        shared[j] += c[j] * z
        turned[j] += w * (c[j] * z)
