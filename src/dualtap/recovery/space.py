"""The linear space that the patterns span: how many dimensions, and which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.recovery.factors import Factors, iterate, start_factors
from dualtap.recovery.spectrum import (
    Spectrum,
    balanced,
    count_signals,
    deviates,
    is_small,
    leading,
    noise_edge,
    values_alone,
)
from dualtap.spins.blocks import F32, Blocks
from dualtap.spins.storage import spread

_GAP = 3.0  # ratio of successive squared singular values that settles the rank at once;
_NEAR_EDGE = 0.2  # the more, the higher above the noise edge the next one lies
_FACTOR_STEPS = 6
_RANK_ROUNDS = 8
_RESIDUAL_RANK = 32
_RESIDUAL_ENTRIES = 2**26  # in which signals are looked for, if the data have more;
_RESIDUAL_SAMPLES = 8  # but no fewer samples than this for each direction
_BINARY = 0.9  # share of the squares of a ±1 vector that its mean size explains, with some noise


def pattern_space(
    blocks: Blocks, whole: Spectrum, rng: np.random.Generator, n_patterns: int | None
) -> Factors:
    """Return the factor model that leaves nothing but noise, or the one of given rank.

    A gap in the spectrum that ends at the noise settles the rank. Otherwise the model grows by
    as many vectors as stand out of its residual, scaled to unit variance, until none does: the
    law of noise holds for such residuals in every phase, while for the samples themselves it
    holds only where fields are weak.

    Parameters
    ----------
    blocks : Blocks
    whole : Spectrum
        Of the samples.
    rng : Generator
    n_patterns : int, optional

    Returns
    -------
    Factors

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.space import pattern_space
    >>> from dualtap.recovery.spectrum import spectrum
    >>> X = HopfieldModel.random(300, 3, beta=1.2, random_state=0).sample(500, random_state=1)
    >>> blocks, rng = Blocks(as_spins(X)), np.random.default_rng(0)
    >>> len(pattern_space(blocks, spectrum(blocks, rng), rng, None).V)
    3
    """
    # Near full rank the values of noise fall to zero, and their ratios mean nothing.
    values = whole.values[: min(whole.n_signal, 3 * min(blocks.spins.shape) // 4) + 1]
    ratio = values[:-1] / np.maximum(values[1:], 1e-9 * values[0])
    k = int(np.argmax(ratio)) + 1 if len(ratio) else 1
    settled = bool(
        len(ratio) and ratio[k - 1] > _GAP * (1 + _height(whole, k, blocks) / _NEAR_EDGE) ** 2
    )
    if settled and n_patterns in (None, k):
        return start_factors(blocks, _vectors(blocks, whole, k))
    if n_patterns is not None:
        return _fitted(blocks, whole, n_patterns)
    most = max(1, min(whole.n_signal, min(blocks.spins.shape) // 2))
    for _ in range(_RANK_ROUNDS):
        factors = _fitted(blocks, whole, k)
        missing = n_missing(blocks, factors, rng)
        if missing == 0 or k == most:
            break
        k = min(k + missing, most)
    return factors


def n_missing(blocks: Blocks, factors: Factors, rng: np.random.Generator) -> int:
    """Count the signals in what a factor model leaves of the samples."""
    V, b = factors.V, factors.fields
    n_samples = max(_RESIDUAL_ENTRIES // blocks.n_spins, _RESIDUAL_SAMPLES * len(V))
    X = factors.X[spread(blocks.n_samples, n_samples)]
    blocks = blocks.some(n_samples)
    complete = blocks.complete

    def response(S: F32, x: F32) -> F32:
        T: F32 = np.tanh(x @ V + b)
        return T if complete else T * (S != 0)

    residual = blocks.changed(lambda S, x: S - response(S, x), X)
    variance = blocks.changed(lambda S, x: np.square(S) - np.square(response(S, x)), X)
    W = balanced(residual, variance)
    values = _squared_singular_values(W, rng)
    t = deviates(values, W.sum_of_squares(), W.n_samples, W.n_spins, n_removed=len(V))
    return count_signals(t)


def site_sums(blocks: Blocks) -> tuple[F32, F32]:
    """Return the sum of every spin over the samples, and how often it was observed."""
    total: F32 = blocks.sum(lambda S: np.array([S.sum(axis=0), np.square(S).sum(axis=0)]))
    return total[0], total[1]


def static_fields(blocks: Blocks) -> F32:
    """Return the fields that explain the mean of the samples; zero if noise or a pattern does.

    For data without clusters, which have no other mean than that of their fields. If all fields
    have the same size, they are a pattern.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.space import static_fields
    >>> rng = np.random.default_rng(0)
    >>> b = rng.uniform(-0.5, 0.5, size=200)
    >>> X = np.where(rng.random((1000, 200)) < 1 / (1 + np.exp(-2 * b)), 1, -1)
    >>> bool(np.corrcoef(b, static_fields(Blocks(as_spins(X))))[0, 1] > 0.98)
    True
    """
    total, observed = site_sums(blocks)
    observed = np.maximum(observed, 1)
    mean = total / observed
    signal = np.square(mean) - 1 / observed
    # Patterns that fluctuate move the mean as well, but by no more than noise does.
    significant = float((signal * observed).mean()) > 1 + 5 * np.sqrt(2 / blocks.n_spins)
    binary = _BINARY * float(signal.mean()) < float(np.abs(mean).mean() ** 2)
    if binary or not significant:
        return np.zeros(blocks.n_spins, dtype=np.float32)
    fields: F32 = np.arctanh(np.clip(mean, -0.98, 0.98)).astype(np.float32)
    return fields


def marginals_explained(blocks: Blocks, V: F32, X: F32) -> bool:
    """Test whether the mean of every spin is what vectors and coefficients make of it."""
    complete = blocks.complete

    def sums(S: F32, x: F32) -> F32:
        T = x @ V
        np.tanh(T, out=T)
        if not complete:
            T *= S != 0
        # Nothing else of the size of a block is made: with many spins a block is large.
        squares = np.einsum("ai,ai->i", S, S) - np.einsum("ai,ai->i", T, T)
        return np.array([S.sum(axis=0) - T.sum(axis=0), squares])

    residual, variance = blocks.sum(sums, X)
    chi_square = float(np.mean(np.square(residual) / np.maximum(variance, 1e-3)))
    return bool(chi_square < 1 + 6 * np.sqrt(2 / blocks.n_spins))


def _vectors(blocks: Blocks, whole: Spectrum, k: int) -> F32:
    vectors: F32 = np.float32(np.sqrt(blocks.n_spins)) * whole.vectors[:k]
    return vectors


def _fitted(blocks: Blocks, whole: Spectrum, k: int) -> Factors:
    factors = start_factors(blocks, _vectors(blocks, whole, k))
    return iterate(blocks, factors, _FACTOR_STEPS)


def _height(whole: Spectrum, k: int, blocks: Blocks) -> float:
    """Return how far the value after the first k lies above the noise edge, relative to it."""
    if k >= len(whole.deviates):
        return 0.0
    centre, width = noise_edge(max(blocks.n_samples - k, 1), max(blocks.n_spins - k, 1))
    return max(float(whole.deviates[k]) * width / centre, 0.0)


def _squared_singular_values(W: Blocks, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return all of them, or the largest of a large matrix."""
    if not is_small(W):
        return leading(W, _RESIDUAL_RANK, rng)[0]
    return values_alone(W)
