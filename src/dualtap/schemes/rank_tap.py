"""TAP equations for all patterns at once: coupled students of one joint posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import like, namespace, to_numpy
from dualtap.couplings import FloatArray, Products
from dualtap.schemes._base import DampsOnlyM, StepInfo, mean_change

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

_INNER_ROUNDS = 3


class RankTAPState(NamedTuple):
    """One student that holds the magnetizations of all patterns."""

    m: FloatArray
    """Shape (1, n_patterns · n_spins)."""
    prior: FloatArray
    """Covariance of the coefficients of a sample, (1, n_patterns, n_patterns), on the host."""


class SitePosterior(NamedTuple):
    """The posterior of the bits z of site i, ∝ exp(F_i·z - ½ D_i zᵀ L z)."""

    F: F32
    """Shape (n_patterns, n_spins)."""
    L: FloatArray
    """Shape (n_patterns, n_patterns), on the host."""


class _Coefficients(NamedTuple):
    C: FloatArray
    prior: FloatArray
    sites: SitePosterior


@dataclass(frozen=True)
class RankTAP(DampsOnlyM):
    r"""Parallel TAP update of P coupled students, for weak fields.

    Sample a has coefficients :math:`x_a \sim N(0, \Sigma)` and spins
    :math:`s_i^a = x_a \cdot \zeta_i + \text{noise}` of variance :math:`D_i`. With
    :math:`K = \sum_i D_i m_i m_i^\top` and :math:`U` the diagonal of
    :math:`\sum_i D_i (1 - m_i^2)`,

    .. math::
        x_a &= (\Sigma^{-1} + K + U)^{-1} \sum_i s_i^a m_i, \qquad
        C = (\Sigma^{-1} + K)^{-1}, \qquad L = \sum_a x_a x_a^\top, \\
        m_i' &= \tanh(F_i - D_i L^{\mathrm{off}} m_i), \qquad
        F_i = \sum_a x_a s_i^a - D_i M C\, m_i,

    and :math:`\Sigma' = L/M + C`. L couples the patterns at a site, as :math:`-M \log Z` couples
    the students. For one pattern and :math:`1/\Sigma = N/\beta - N` this is
    :class:`dualtap.schemes.TAP`: C is then its reaction term.

    What has the length of the spins is in the namespace of the magnetizations; matrices of the
    size of the patterns are inverted on the host.

    Parameters
    ----------
    samples : Products
        The centred samples S, with zeros for missing entries.
    n_patterns : int
    D : array of shape (n_spins,)
        Variance of the spins given their fields; 1 without fields.
    share : float
        Share of the entries that were observed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.schemes.rank_tap import RankTAP
    >>> from dualtap.solve import solve
    >>> teacher = HopfieldModel.random(300, 2, beta=0.8, random_state=0)
    >>> samples = blocks_of(as_spins(teacher.sample(600, random_state=1)))
    >>> tap = RankTAP(samples, 2, np.ones(300, np.float32))
    >>> start = teacher.patterns.reshape(1, -1).astype(np.float32)
    >>> m = solve(tap, start, damping="auto", max_iter=100).magnetizations.reshape(2, 300)
    >>> bool((np.sign(m) == teacher.patterns).mean() > 0.95)
    True
    """

    samples: Products
    n_patterns: int
    D: F32
    share: float = 1.0

    def init(self, m: FloatArray) -> RankTAPState:
        """Start at ``m``, shape (1, n_patterns · n_spins), near ±1."""
        n, P = self.samples.n_spins * self.share, self.n_patterns
        rows, xp = self._rows(m), namespace(m)
        one = xp.ones_like(rows)
        z = xp.where(rows < 0, -one, one)
        second = _products(self.samples.gram_dot(z), z) / (n**2 * self.samples.total_weight)
        w, V = np.linalg.eigh(second - np.eye(P) / n)
        prior = (V * np.maximum(w, 0.3 / n)) @ V.T
        return RankTAPState(m, prior[None])

    def step(self, state: RankTAPState) -> tuple[RankTAPState, StepInfo]:
        """Update coefficients, prior, and all bits."""
        C, prior, sites = self._coefficients(state)
        new, xp = self._rows(state.m), namespace(state.m)
        D, off = like(new, self.D), like(new, sites.L - np.diag(np.diag(sites.L)))
        for _ in range(_INNER_ROUNDS):
            new = (new + xp.tanh(sites.F - D * (off @ new))) / 2
        flat = xp.reshape(new, (1, -1))
        stiffness = self.share * self.samples.total_weight * np.linalg.eigvalsh(C)[-1:]
        info = StepInfo(mean_change(flat, state.m), stiffness, np.zeros(1, dtype=np.bool_))
        return RankTAPState(flat, prior[None]), info

    def sites(self, state: RankTAPState) -> SitePosterior:
        """Return the posterior of the bits of every site."""
        return self._coefficients(state).sites

    def _rows(self, m: FloatArray) -> F32:
        xp = namespace(m)
        rows: F32 = xp.astype(xp.reshape(m, (self.n_patterns, -1)), xp.float32, copy=False)
        return rows

    def _coefficients(self, state: RankTAPState) -> _Coefficients:
        m, M = self._rows(state.m), self.samples.total_weight
        D = like(m, self.D)
        precision = np.linalg.inv(state.prior[0])
        K = self.share * to_numpy((D * m) @ m.T).astype(np.float64)
        U = self.share * np.diag(to_numpy((1 - m * m) @ D))
        C = np.linalg.inv(precision + K)
        A = np.linalg.inv(precision + K + U)
        G = self.samples.gram_dot(m)  # x = S mᵀ A is never formed: one pass, nothing of length M
        L = A @ _products(G, m) @ A
        F: F32 = like(m, A) @ G
        F -= self.share * D * (like(m, M * C) @ m)
        return _Coefficients(C, L / M + C, SitePosterior(F, self.share * L))


def _products(G: Any, m: Any) -> F64:
    """Return G mᵀ, summed in double precision, on the host."""
    xp = namespace(m)
    return to_numpy(xp.astype(G, xp.float64) @ xp.astype(m, xp.float64).T)
