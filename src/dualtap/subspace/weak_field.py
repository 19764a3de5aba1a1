"""Posteriors of pattern bits where fields are weak: TAP for all patterns, then the sites."""

from __future__ import annotations

import numpy as np

from dualtap._namespace import to_numpy
from dualtap.schemes.rank_tap import RankTAP, SitePosterior
from dualtap.solve import solve
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.subspace.posterior import Posterior
from dualtap.subspace.rotate import binary
from dualtap.subspace.singular import is_small

_TOLERANCE = 3e-4
_MOST_ITERATIONS = 100
_PRIOR_STEPS = 5  # the prior settles within these at given magnetizations
_BURN, _SWEEPS = 10, 60
_PASSES = 64  # over the samples at least, of as many vectors as there are patterns


class WeakFieldPosterior:
    """The posterior of patterns whose fields on the spins are weak.

    Parameters
    ----------
    residual : SampleMatrix
        What a model without them leaves of the samples.
    D : array of shape (n_spins,)
        Variance of the residuals.
    n_patterns : int

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.weak_field import WeakFieldPosterior
    >>> teacher = HopfieldModel.random(300, 2, beta=0.8, random_state=0)
    >>> blocks = blocks_of(as_spins(teacher.sample(600, random_state=1)))
    >>> zeta = teacher.patterns.astype(np.float32)
    >>> posterior = WeakFieldPosterior(blocks, np.ones(300, np.float32), 2)
    >>> m = posterior.drawn(posterior.means(zeta), np.random.default_rng(0)).m
    >>> bool((np.sign(m) == zeta).mean() > 0.95)
    True
    """

    def __init__(self, residual: SampleMatrix, D: F32, n_patterns: int) -> None:
        if _needs_gram(residual, n_patterns):
            residual.gram()  # which they keep
        self._blocks = residual
        share = residual.total_observed / (residual.total_weight * residual.n_spins)
        self._tap = RankTAP(residual, n_patterns, D, share)

    def means(self, Z: F32) -> F32:
        """Return the fixed point of TAP from patterns, shape (n_patterns, n_spins)."""
        start = self._blocks.place((np.float32(0.9) * Z).reshape(1, -1))
        fixed = solve(self._tap, start, damping="auto", tol=_TOLERANCE, max_iter=_MOST_ITERATIONS)
        m: F32 = to_numpy(fixed.magnetizations).reshape(Z.shape)
        return m

    def drawn(self, m: F32, rng: np.random.Generator) -> Posterior:
        """Draw the bits of each site from what a fixed point says.

        Mean-field equations within a site are overconfident where patterns are correlated in the
        samples; drawing the few bits of a site is cheap and exact.
        """
        there = self._blocks.place(m.reshape(1, -1))
        state = self._tap.init(there)
        for _ in range(_PRIOR_STEPS):
            state = self._tap.step(state)[0]._replace(m=there)
        F, L = self._tap.sites(state)
        return _draw_sites(SitePosterior(to_numpy(F), L), self._tap.D, m, rng)


def _needs_gram(blocks: SampleMatrix, n_patterns: int) -> bool:
    """Say whether products with SᵀS are worth making it: iterations take two passes else."""
    if blocks.knows_gram or blocks.at_hand() is None or not is_small(blocks):
        return False
    return blocks.n_spins <= min(blocks.n_samples, _PASSES * n_patterns)


def _draw_sites(sites: SitePosterior, D: F32, m: F32, rng: np.random.Generator) -> Posterior:
    """Gibbs sampling of the bits of every site; means are averages of conditional means."""
    P = len(m)
    off = (sites.L - np.diag(np.diag(sites.L))).astype(np.float32)
    z = binary(m)
    total = np.zeros(z.shape)
    for k in range(_BURN + _SWEEPS if P > 1 else 1):
        h = sites.F - D * (off @ z)
        u = rng.random(z.shape, dtype=np.float32)
        for mu in range(P):
            mean = np.tanh(h[mu])
            new = np.where(u[mu] < (1 + mean) / 2, np.float32(1), np.float32(-1))
            h -= np.outer(off[:, mu], D * (new - z[mu]))
            z[mu] = new
            if k >= _BURN or P == 1:
                total[mu] += mean
    total /= _SWEEPS if P > 1 else 1
    return Posterior(total.astype(np.float32), z)
