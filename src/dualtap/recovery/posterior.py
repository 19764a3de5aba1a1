"""How sure we are of every bit: refine patterns to posterior means, in weak and strong fields."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dualtap._namespace import to_numpy
from dualtap.recovery.bits import sweep
from dualtap.recovery.rotate import binary, depth
from dualtap.schemes.rank_tap import RankTAP, SitePosterior
from dualtap.solve import solve
from dualtap.spins.blocks import F32, Blocks

_TOLERANCE = 3e-4
_PRIOR_STEPS = 5  # the prior settles within these at given magnetizations
_SITE_BURN, _SITE_SWEEPS = 10, 60
_CERTAIN = 1e-4
_BEYOND_DOUBT = 6.0  # field on a bit that no correction for saturated spins turns
_UNSURE = 0.02
_BURN, _SWEEPS = 10, 30


class Posterior(NamedTuple):
    """What is known of the patterns."""

    m: F32
    """Posterior means, shape (n_patterns, n_spins)."""
    Z: F32
    """One draw from the posterior, ±1: as likely as the truth, unlike the signs of m."""
    drawn: bool = True
    """False if every bit was certain at first sight, and nothing was drawn."""


def weak_field_posterior(
    blocks: Blocks, Z: F32, fields: F32, rng: np.random.Generator, max_iter: int = 100
) -> Posterior:
    """Refine by TAP on the joint posterior, then draw the bits of each site from what it says.

    Mean-field equations within a site are overconfident where patterns are correlated in the
    samples; drawing the few bits of a site is cheap and exact.

    Parameters
    ----------
    blocks : Blocks
    Z : array of shape (n_patterns, n_spins)
        Where to start.
    fields : array of shape (n_spins,)
    rng : Generator
    max_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.posterior import weak_field_posterior
    >>> teacher = HopfieldModel.random(300, 2, beta=0.8, random_state=0)
    >>> blocks = Blocks(as_spins(teacher.sample(600, random_state=1)))
    >>> zeta = teacher.patterns.astype(np.float32)
    >>> b, rng = np.zeros(300, np.float32), np.random.default_rng(0)
    >>> m = weak_field_posterior(blocks, zeta, b, rng).m
    >>> bool((np.sign(m) == zeta).mean() > 0.95)
    True
    """
    t = np.tanh(fields)
    centred = blocks.minus(t) if t.any() else blocks
    tap = RankTAP(centred, len(Z), 1 - np.square(t), blocks.share)
    start = blocks.place((np.float32(0.9) * Z).reshape(1, -1))
    m = solve(tap, start, damping="auto", tol=_TOLERANCE, max_iter=max_iter).magnetizations
    state = tap.init(m)
    for _ in range(_PRIOR_STEPS):
        state = tap.step(state)[0]._replace(m=m)
    F, L = tap.sites(state)
    return _draw_sites(SitePosterior(to_numpy(F), L), tap.D, to_numpy(m).reshape(Z.shape), rng)


def _draw_sites(sites: SitePosterior, D: F32, m: F32, rng: np.random.Generator) -> Posterior:
    """Gibbs sampling of the bits of every site; means are averages of conditional means."""
    P = len(m)
    off = (sites.L - np.diag(np.diag(sites.L))).astype(np.float32)
    z = binary(m)
    total = np.zeros(z.shape)
    for k in range(_SITE_BURN + _SITE_SWEEPS if P > 1 else 1):
        h = sites.F - D * (off @ z)
        u = rng.random(z.shape, dtype=np.float32)
        for mu in range(P):
            mean = np.tanh(h[mu])
            new = np.where(u[mu] < (1 + mean) / 2, np.float32(1), np.float32(-1))
            h -= np.outer(off[:, mu], D * (new - z[mu]))
            z[mu] = new
            if k >= _SITE_BURN or P == 1:
                total[mu] += mean
    total /= _SITE_SWEEPS if P > 1 else 1
    return Posterior(total.astype(np.float32), z)


def strong_field_posterior(
    blocks: Blocks,
    Z: F32,
    beta: float,
    fields: F32,
    rng: np.random.Generator,
    overlaps: F32 | None = None,
) -> Posterior:
    r"""Draw coefficients and bits in turn from the Hopfield posterior at β.

    :math:`x_a | s, \zeta \sim N(\beta \zeta s^a / N, \beta / N)`, and every bit by its exact
    conditional. If all bits are certain at the first visit, nothing is drawn.

    Parameters
    ----------
    blocks : Blocks
    Z : array of shape (n_patterns, n_spins)
        Where to start.
    beta : float
    fields : array of shape (n_spins,)
    rng : Generator
    overlaps : array of shape (n_samples, n_patterns), optional
        Of the samples with Z, if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.posterior import strong_field_posterior
    >>> teacher = HopfieldModel.random(300, 2, beta=2.0, random_state=0)
    >>> blocks = Blocks(as_spins(teacher.sample(20, random_state=1)))
    >>> zeta, b = teacher.patterns.astype(np.float32), np.zeros(300, np.float32)
    >>> m = strong_field_posterior(blocks, zeta, 2.0, b, np.random.default_rng(0)).m
    >>> bool((np.sign(m) == zeta).all())
    True
    """
    X = np.float32(beta) * (overlaps_of(blocks, Z) if overlaps is None else overlaps)
    toward = blocks.transposed_dot(X)
    # A field explains aligned spins as well as a bit does: then every site is looked at.
    doubtful = (toward * Z).min(axis=0) < _BEYOND_DOUBT
    doubtful |= fields.any()
    Z, m = sweep(blocks, Z, X, fields, sites=np.flatnonzero(doubtful), toward=toward)
    if float(np.mean(1 - np.abs(m))) < _CERTAIN:
        return Posterior(m, Z, drawn=False)
    total = np.zeros(m.shape)
    for k in range(_BURN + _SWEEPS):
        X = coefficients(blocks, Z, beta)
        noise = np.sqrt(beta / blocks.n_observed)[:, None] * rng.standard_normal(X.shape)
        Z, m = sweep(blocks, Z, X + noise.astype(np.float32), fields, rng=rng)
        if k >= _BURN:
            total += m
    return Posterior((total / _SWEEPS).astype(np.float32), Z)


def overlaps_of(blocks: Blocks, Z: F32) -> F32:
    """Return the overlaps of every sample with patterns, shape (n_samples, n_patterns)."""
    result: F32 = (blocks.dot(Z) / blocks.n_observed[:, None]).astype(np.float32)
    return result


def coefficients(blocks: Blocks, Z: F32, beta: float) -> F32:
    """Return β times the overlaps of every sample, shape (n_samples, n_patterns)."""
    return np.float32(beta) * overlaps_of(blocks, Z)


def confidence_in_space(Z: F32, u: F32) -> F32:
    r"""Return posterior means of patterns of which only the space is known.

    The projection of a pattern of depth d onto the space is
    :math:`y_i = d\,\zeta_i + \sqrt{d(1-d)}\,\text{noise}`, so the field on a bit is
    :math:`y_i / (1 - d)`.

    Parameters
    ----------
    Z : array of shape (n_patterns, n_spins), ±1
    u : array of shape (k, n_spins)
        Orthonormal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.posterior import confidence_in_space
    >>> u = np.array([[0.7, 0.5, 0.5, 0.1]], dtype=np.float32)
    >>> confidence_in_space(np.ones((1, 4), np.float32), u).round(2)
    array([[1.  , 1.  , 1.  , 0.74]], dtype=float32)
    """
    d = np.clip(depth(Z, u), 0, 1 - 1e-3)[:, None]
    y = (Z @ u.T) @ u
    # The sign is that of the pattern as the search left it, even against the projection.
    result: F32 = (Z * np.tanh(np.maximum(Z * y, _UNSURE) / (1 - d))).astype(np.float32)
    return result
