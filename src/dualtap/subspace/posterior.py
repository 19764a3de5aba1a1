"""Posteriors of pattern bits where fields are strong, or only the space is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted
from dualtap.subspace.bits import FewBits, sweep

_CERTAIN = 1e-4
_BEYOND_DOUBT = 6.0  # field on a bit that no correction for saturated spins turns
_CROSSTALK = 4.0  # standard deviations of what samples of other patterns add to it
_BURN, _SWEEPS = 10, 30
_FEW = 0.04
"""Doubt, the mean of 1-|m|, below which bits in doubt are too few to feel each other."""
_FIRST = 3
"""Draws not counted then: one after the other they are correlated by 0.1 or less."""
_SMALL, _MODERATE = 2**22, 20.0
"""Entries of data, and |θ|, of which few bits are drawn by products alone."""
_NEVER, _SELDOM, _EVERY = 1e-4, 1e-2, 5
"""Doubt of a bit below which it is not drawn, and below which it is in every fifth sweep."""


class Posterior(NamedTuple):
    """What is known of the patterns."""

    m: F32
    """Posterior means, shape (n_patterns, n_spins)."""
    Z: F32
    """One draw from the posterior, ±1: as likely as the truth, unlike the signs of m."""
    drawn: bool = True
    """False if every bit was certain at first sight, and nothing was drawn."""


def strong_field_posterior(
    blocks: SampleMatrix,
    Z: F32,
    strengths: NDArray[np.float64],
    fields: F32,
    rng: np.random.Generator,
    overlaps: F32 | None = None,
) -> Posterior:
    r"""Draw coefficients and bits in turn from the posterior of attractive patterns without zeros.

    :math:`x_a^\mu | s, \zeta \sim N(g_\mu \zeta^\mu s^a / N, g_\mu / N)`, and every bit by its
    exact conditional. If all bits are certain at the first visit, nothing is drawn; if most are,
    those beyond doubt are left as they are.

    Parameters
    ----------
    blocks : SampleMatrix
    Z : array of shape (n_patterns, n_spins)
        Where to start.
    strengths : array of shape (n_patterns,)
        Positive.
    fields : array of shape (n_spins,)
    rng : Generator
    overlaps : array of shape (n_samples, n_patterns), optional
        Of the samples with Z, if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.posterior import strong_field_posterior
    >>> teacher = HopfieldModel.random(300, 2, beta=2.0, random_state=0)
    >>> blocks = blocks_of(as_spins(teacher.sample(20, random_state=1)))
    >>> zeta, b = teacher.patterns.astype(np.float32), np.zeros(300, np.float32)
    >>> m = strong_field_posterior(blocks, zeta, np.full(2, 2.0), b, np.random.default_rng(0)).m
    >>> bool((np.sign(m) == zeta).all())
    True
    """
    g = strengths.astype(np.float32)
    X = g * (overlaps_of(blocks, Z) if overlaps is None else overlaps)
    toward = blocks.transposed_dot(X)
    # A field explains aligned spins as well as a bit does: then every site is looked at.
    doubtful = np.ones(Z.shape, np.bool_) if fields.any() else in_doubt(blocks, Z, X, toward)
    if not doubtful.any():
        return Posterior(Z, Z, drawn=False)
    before, (Z, m) = Z, sweep(blocks, Z, X, fields, visit=doubtful, toward=toward)
    turned = (before != Z).any(axis=0)
    if turned.any():  # other bits of the site have been judged beside a wrong one
        X = coefficients(blocks, Z, g)
        Z, again = sweep(blocks, Z, X, fields, visit=np.broadcast_to(turned, Z.shape))
        m = np.where(turned, again, m)
    doubt = float(np.mean(1 - np.abs(m)))
    if doubt < _CERTAIN:
        return Posterior(m, Z, drawn=False)
    if doubt < _FEW and _small(blocks, X, fields):
        return _draw_few(blocks, Posterior(m, Z), g, fields, rng)
    return _draw_all(blocks, Z, g, fields, rng)


def in_doubt(blocks: SampleMatrix, Z: F32, X: F32, toward: F32) -> NDArray[np.bool_]:
    """Return which bits something could turn, where spins have no fields.

    Those to which the samples add up to less than a bound; in part these are samples of other
    patterns, which only the exact conditional sees through.

    Parameters
    ----------
    blocks : SampleMatrix
    Z : array of shape (n_patterns, n_spins)
    X : array of shape (n_samples, n_patterns)
        Coefficients.
    toward : array of shape (n_patterns, n_spins)
        Xᵀ S.
    """
    square = np.square(X)
    own = np.where(square == square.max(axis=1, keepdims=True), square, 0)
    others = weighted(square, blocks.weights).sum(axis=0)
    others -= weighted(own, blocks.weights).sum(axis=0)
    bound = _BEYOND_DOUBT + _CROSSTALK * np.sqrt(np.maximum(others, 0))
    result: NDArray[np.bool_] = toward * Z < bound[:, None]
    return result


def _small(blocks: SampleMatrix, X: F32, fields: F32) -> bool:
    """Say whether the data are small, and θ such that e^{2θ} is far from what a float holds."""
    if blocks.n_samples * blocks.n_spins > _SMALL:
        return False
    return float(np.abs(X).sum(axis=1).max() + np.abs(fields).max()) < _MODERATE


def _draw_all(
    blocks: SampleMatrix, Z: F32, g: F32, fields: F32, rng: np.random.Generator
) -> Posterior:
    deviation = _deviations(blocks, g)
    total = np.zeros_like(Z)
    for k in range(_BURN + _SWEEPS):
        X = coefficients(blocks, Z, g)
        X += deviation * rng.standard_normal(X.shape, dtype=np.float32)
        Z, m = sweep(blocks, Z, X, fields, rng=rng)
        if k >= _BURN:
            total += m
    return Posterior(total / np.float32(_SWEEPS), Z)


def _draw_few(
    blocks: SampleMatrix, first: Posterior, g: F32, fields: F32, rng: np.random.Generator
) -> Posterior:
    """Draw the bits in doubt, the others less often or not at all.

    Bits wrong in less than one of 20,000 are not drawn and their first means are kept, which are
    as often right as they say: turning, one of them would move an overlap by 2/N. Those wrong in
    less than one of 200 are drawn in turn with the others, only less often, which leaves the
    posterior as it is; their means hardly change from draw to draw.
    """
    S = blocks.at_hand()
    if S is None:
        S = blocks.rows(np.arange(blocks.n_samples))
    doubt = 1 - np.abs(first.m.T)
    often, seldom = np.nonzero(doubt > _SELDOM), np.nonzero(doubt > _NEVER)
    few = FewBits(S, first.Z, first.m, fields, blocks.weights)
    deviation, n = _deviations(blocks, g), blocks.n_observed.astype(np.float32)
    total = np.zeros_like(few.m)  # ordered as it is
    for k in range(_FIRST + _SWEEPS):
        X = (few.overlaps / n).T * g
        X += deviation * rng.standard_normal(X.shape, np.float32)
        few.draw(X, often if k % _EVERY else seldom, rng)
        if k >= _FIRST:
            total += few.m
    mean = total / np.float32(_SWEEPS)
    return Posterior(np.ascontiguousarray(mean), np.ascontiguousarray(few.patterns))


def _deviations(blocks: SampleMatrix, g: F32) -> F32:
    """Return the standard deviations of coefficients, shape (n_samples, n_patterns).

    The samples that a row of weight w stands for have one each, and their mean is drawn: what w
    of them say of a bit then varies as much as if each were drawn.
    """
    n = blocks.n_observed.astype(np.float32)[:, None]
    result: F32 = np.sqrt(g / weighted(n, blocks.weights))
    return result


def coefficients(blocks: SampleMatrix, Z: F32, g: F32) -> F32:
    """Return strengths times the overlaps of every sample, shape (n_samples, n_patterns)."""
    return g * overlaps_of(blocks, Z)


def overlaps_of(blocks: SampleMatrix, Z: F32) -> F32:
    """Return the overlaps of every sample with ±1 patterns, shape (n_samples, n_patterns)."""
    result: F32 = (blocks.sign_dot(Z) / blocks.n_observed[:, None]).astype(np.float32)
    return result
