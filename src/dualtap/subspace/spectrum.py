"""How many directions of the data lie above the noise edge, and which."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted
from dualtap.subspace.noise import balanced, count_signals, deviates, likely_rank, noise_edge
from dualtap.subspace.singular import (
    extended,
    gram_of,
    is_small,
    leading,
    leading_of,
    over_sites,
    ritz,
)

_FIRST_VALUES, _FIRST_RANK = 16, 64  # of a Gram matrix, and of passes
_FEW_VALUES, _VALUES_TOLERANCE = 4, 1e-3  # where only values count, and the first may be noise


class Spectrum(NamedTuple):
    """The leading singular directions of the data, and which of them are signal."""

    values: NDArray[np.float64]
    """Squared singular values, descending, shape (k,)."""
    vectors: F32
    """Their directions over sites, orthonormal rows, shape (k, n_spins)."""
    deviates: NDArray[np.float64]
    """How far each lies above the noise edge, in widths of its fluctuations, shape (k,)."""
    total: float
    """Sum of all squared singular values."""
    edge: float
    """The largest squared singular value to expect of noise alone."""
    n_signal: int
    """Leading directions above the noise, of those computed."""
    coefficients: F32 | None = None
    """Of the samples along the directions, shape (n_samples, k), if they are known."""

    @property
    def n_above(self) -> int:
        """Directions above the edge of noise of unit variance, whatever the others leave."""
        return int(np.count_nonzero(self.values[: len(self.vectors)] > self.edge))

    def likely_rank(self, n_samples: float, n_spins: int) -> tuple[int, bool]:
        """Return after how many values the spectrum falls most, and if that settles the rank."""
        return likely_rank(self.values[: self.n_signal + 1], self.deviates, n_samples, n_spins)

    def relative(self, most: int = 200) -> NDArray[np.float64]:
        """Return the leading values over the noise edge."""
        return self.values[:most] / self.edge


def spectrum(
    blocks: SampleMatrix,
    rng: np.random.Generator,
    n_least: int = 1,
    variance: F32 | None = None,
    n_removed: int = 0,
) -> Spectrum:
    """Return the singular directions of the samples that lie above the noise edge.

    Samples and sites with more missing entries count less, so that all have the same noise.

    Parameters
    ----------
    blocks : SampleMatrix
    rng : Generator
    n_least : int
        Directions to return at least.
    variance : array of shape (n_spins,), optional
        Of the noise at each site; 1 when not given. The directions are those of the samples
        divided by its root.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.spectrum import spectrum
    >>> X = HopfieldModel.random(300, 4, beta=0.8, random_state=0).sample(400, random_state=1)
    >>> spectrum(blocks_of(as_spins(X)), np.random.default_rng(0)).n_signal
    4
    """
    S = blocks if blocks.complete else balanced(blocks, blocks.changed(np.square))
    if variance is not None:
        scale = (1 / np.sqrt(variance)).astype(np.float32)
        S = S.changed(lambda s: s * scale)
    shape = S.total_weight, S.n_spins
    total = S.sum_of_squares()
    if is_small(S):
        values, vectors = _of_gram(S, total, n_least, rng, n_removed)
    else:
        most = min(S.n_samples, S.n_spins)
        rank = min(max(_FIRST_RANK, n_least), most)
        space = extended(S, None, rank, rng)
        values, vectors = ritz(space, rank)
        while count_signals(deviates(values, total, *shape, n_removed)) == len(values) < most:
            # What is found stays: only as many directions again are iterated.
            space, rank = extended(S, space, rank, rng), min(2 * rank, most)
            values, vectors = ritz(space, rank)
    t = deviates(values, total, *shape, n_removed)
    n_signal = count_signals(t)
    k = min(max(n_signal, n_least), len(values))
    vectors, coefficients = vectors[:k], None
    if len(vectors[0]) != S.n_spins:
        if S is blocks:
            coefficients = (vectors.T * np.sqrt(values[:k])).astype(np.float32)
            if S.weights is not None:
                coefficients = weighted(coefficients, 1 / np.sqrt(S.weights))
        vectors = over_sites(S, vectors)
    return Spectrum(values, vectors, t, total, noise_edge(*shape)[0], n_signal, coefficients)


def _of_gram(
    S: SampleMatrix, total: float, n_least: int, rng: np.random.Generator, n_removed: int
) -> tuple[NDArray[np.float64], F32]:
    """Return leading squared singular values beyond the signals, and vectors of the shorter side.

    The vectors are orthonormal rows.
    """
    G = gram_of(S)
    shape = S.total_weight, S.n_spins
    k = max(_FIRST_VALUES, n_least + 2)
    while True:
        values, U = leading_of(G, k, rng)
        t = deviates(values, total, *shape, n_removed)
        seen = count_signals(t) < len(values) or len(values) == len(G)
        # What follows is too small to be patterns, or is not asked for and might be noise.
        small = likely_rank(values, t, *shape)[1]
        asked = n_least > 1 and values[-1] < noise_edge(*shape)[0]
        if seen or small or asked:
            return values, U
        k *= 2


def n_signals(S: SampleMatrix, n_removed: int, most: int, rng: np.random.Generator) -> int:
    """Count the directions above the noise edge, at most ``most``.

    Parameters
    ----------
    S : SampleMatrix
    n_removed : int
        Directions taken out of the data before.
    most : int
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.spectrum import n_signals
    >>> X = HopfieldModel.random(300, 4, beta=0.8, random_state=0).sample(400, random_state=1)
    >>> n_signals(blocks_of(as_spins(X)), 0, 32, np.random.default_rng(0))
    4
    """
    total, shape = S.sum_of_squares(), (S.total_weight, S.n_spins)
    if not is_small(S):
        return count_signals(deviates(leading(S, most, rng)[0], total, *shape, n_removed))
    G = gram_of(S)
    for k in (_FEW_VALUES, most):  # values of noise lie close to each other and take long
        values = leading_of(G, k, rng, _VALUES_TOLERANCE)[0]
        count = count_signals(deviates(values, total, *shape, n_removed))
        if count < k:
            break
    return min(count, most)
