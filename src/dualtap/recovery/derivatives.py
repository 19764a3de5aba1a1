"""Derivatives of the log pseudo-likelihood along strengths, of a block of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.local_fields import local_fields
from dualtap.spins.protocol import F32

F64 = NDArray[np.float64]


class Features:
    r"""The derivatives :math:`\partial h_{ai} / \partial g_\mu` of the fields on a block of spins.

    :math:`x_{ai}^\mu = \zeta_i^\mu (F_{a\mu} - \zeta_i^\mu s_{ai} / N)` with
    :math:`F = S \zeta^\top / N`.
    """

    def __init__(self, S: F32, Z: F32, overlaps: F32 | None = None) -> None:
        self.S, self.Z, self.Z2 = S, Z, np.square(Z)
        self.N = np.float32(S.shape[1])
        self.O: F32 = S @ Z.T if overlaps is None else overlaps
        self.F: F32 = self.O / self.N

    def fields(self, g: F64, b: F64) -> F32:
        """Return the leave-one-out fields h."""
        return local_fields(self.S, self.Z, g, b, overlaps=self.O)

    def slope(self, R: F32) -> F64:
        """Return dL/dg."""
        total = np.einsum("ap,ap->p", self.F, R @ self.Z.T, dtype=np.float64)
        own = (R * self.S).sum(axis=0, dtype=np.float64) @ self.Z2.T / self.N
        result: F64 = total - own
        return result

    def mixed(self, W: F32) -> F32:
        """Return -d²L/dg db."""
        result: F32 = self.Z * (self.F.T @ W)
        result -= self.Z2 * ((W * self.S).sum(axis=0) / self.N)
        return result

    def own_curvature(self, W: F32) -> F64:
        """Return the diagonal of -d²L/dg²."""
        along = W @ self.Z2.T
        squares = (np.square(self.F) + 1 / self.N**2) * along
        squares -= 2 * self.F / self.N * ((W * self.S) @ self.Z.T)
        result: F64 = squares.sum(axis=0, dtype=np.float64)
        return result


def curvature_of_pairs(F: F32, W: F32, Z: F32) -> F64:
    """Return Σ_ai F_aμ F_aν W_ai ζ_i^μ ζ_i^ν, site by site, from the patterns that are not 0 there.

    Where sites are many and patterns few, pattern by pattern.
    """
    H = np.zeros((len(Z), len(Z)))
    if 2 * len(Z) < Z.shape[1]:
        for mu in range(len(Z)):
            on = np.flatnonzero(Z[mu])
            zeta, variances = (Z, W) if len(on) == Z.shape[1] else (Z[:, on], W[:, on])
            nu = mu + np.flatnonzero(zeta[mu:].any(axis=1))
            products = (F[:, nu] * F[:, mu : mu + 1]).T @ variances
            products *= zeta[nu]
            H[mu, nu] = H[nu, mu] = products @ zeta[mu]
        return H
    columns, roots = np.ascontiguousarray(F.T), np.sqrt(W.T)
    for i, root in enumerate(roots):
        on = np.flatnonzero(Z[:, i])
        A = columns[on] * root
        H[on[:, None], on] += (A @ A.T) * (Z[on, i, None] * Z[on, i])
    return H
