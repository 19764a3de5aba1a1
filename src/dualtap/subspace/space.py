"""The linear space that the patterns span: how many dimensions, and which."""

from __future__ import annotations

import numpy as np

from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.subspace.factors import Factors, iterate, start_factors
from dualtap.subspace.noise import balanced
from dualtap.subspace.spectrum import Spectrum, n_signals

_ZERO = 1e-6  # of the largest squared singular value
_FACTOR_STEPS = 6
_RANK_ROUNDS = 8
_RESIDUAL_RANK = 32
_RESIDUAL_ENTRIES = 2**24  # in which signals are looked for, if the data have more;
_RESIDUAL_SAMPLES = 8  # but no fewer samples than this for each direction
_FEW_ENTRIES, _FEW_ROWS = 2**17, 8  # looked at together, and no fewer samples


def pattern_space(
    blocks: SampleMatrix, whole: Spectrum, rng: np.random.Generator, n_patterns: int | None
) -> Factors:
    """Return the factor model that leaves nothing but noise, or the one of given rank.

    A gap in the spectrum that ends at the noise settles the rank. Otherwise the model grows by
    as many directions as its residuals, scaled to unit variance, have above the noise edge, until
    there are none: the law of noise holds for such residuals in every phase, while for the samples
    themselves it holds only where fields are weak.

    Parameters
    ----------
    blocks : SampleMatrix
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
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.space import pattern_space
    >>> from dualtap.subspace.spectrum import spectrum
    >>> X = HopfieldModel.random(300, 3, beta=1.2, random_state=0).sample(500, random_state=1)
    >>> blocks, rng = blocks_of(as_spins(X)), np.random.default_rng(0)
    >>> len(pattern_space(blocks, spectrum(blocks, rng), rng, None).V)
    3
    """
    k, settled = whole.likely_rank(blocks.total_weight, blocks.n_spins)
    if settled and n_patterns in (None, k):
        return linear_space(blocks, whole, k)
    if n_patterns is not None:
        return _fitted(blocks, whole, n_patterns)
    most = max(1, min(whole.n_signal, min(blocks.n_samples, blocks.n_spins) // 2))
    for _ in range(_RANK_ROUNDS):
        factors = _fitted(blocks, whole, k)
        missing = n_missing(blocks, factors, rng)
        if missing == 0 or k == most:
            break
        k = min(k + missing, most)
    return factors


def likely_ranks(whole: Spectrum, n_samples: float, n_spins: int) -> tuple[list[int], bool]:
    """Return ranks that the spectrum suggests, the smallest first, and if one of them is certain.

    Where the spectrum falls most. If that is to zero, at the rank of the data, or not to noise:
    also where it falls most before, and where it does with none left above the edge. Spins vary no
    more than independent fair spins, so what lies above the edge of these is never noise.
    """
    k, settled = whole.likely_rank(n_samples, n_spins)
    values = whole.values[: whole.n_signal + 1]
    values = values[values > _ZERO * values[0]] if len(values) else values
    if settled and k < len(values):
        return [k], True
    ranks = {k}
    for least in (1, max(int(np.count_nonzero(values > whole.edge)), 1)):
        rest = values[least - 1 :]
        if len(rest) > 1:
            ranks.add(least + int(np.argmax(rest[:-1] / rest[1:])))
    return sorted(ranks), False


def linear_space(blocks: SampleMatrix, whole: Spectrum, k: int) -> Factors:
    """Return the factor model of the first k singular directions."""
    scale = np.float32(np.sqrt(blocks.n_spins))
    known = None if whole.coefficients is None else scale * whole.coefficients[:, :k]
    return start_factors(blocks, scale * whole.vectors[:k], known)


def n_missing(blocks: SampleMatrix, factors: Factors, rng: np.random.Generator) -> int:
    """Count the signals in what a factor model leaves of the samples."""
    V = factors.V
    least = _RESIDUAL_SAMPLES * len(V)
    X = factors.X[blocks.chosen(_RESIDUAL_ENTRIES, least=least)]
    blocks = blocks.subsample(_RESIDUAL_ENTRIES, least=least)
    complete = blocks.complete

    def response(S: F32, x: F32) -> F32:
        T: F32 = np.tanh(x @ V)
        return T if complete else T * (S != 0)

    residual = blocks.changed(lambda S, x: S - response(S, x), X)
    variance = blocks.changed(lambda S, x: np.square(S) - np.square(response(S, x)), X)
    W = balanced(residual, variance)
    return n_signals(W, len(V), _RESIDUAL_RANK, rng)


def _fitted(blocks: SampleMatrix, whole: Spectrum, k: int) -> Factors:
    return iterate(blocks, linear_space(blocks, whole, k), _FACTOR_STEPS)
