r"""How many directions of the data stand out of noise.

The singular values of a matrix of independent entries of unit variance end at the edge of the
Marchenko–Pastur law, :math:`\sqrt M + \sqrt N`, and the largest one fluctuates around it by the
law of Tracy and Widom. What lies above is signal.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse.linalg import ArpackError, eigsh

from dualtap.spins.blocks import F32, Blocks
from dualtap.spins.words import words_of

LEVEL = 1.0
"""Tracy–Widom deviate above which data are not noise: coins exceed it in 3 to 4 % of data sets."""
NEXT_LEVEL = 2.0
"""The same for every direction after the first: 1 %, for there are many of them."""

SMALL = 1200
"""Largest Gram matrix that is made."""
_WHOLE = 128  # the largest whose spectrum is computed whole
_GAP = 3.0  # ratio of successive squared singular values that settles the rank at once;
_NEAR_EDGE = 0.2  # the more, the higher above the noise edge the next one lies
_WORTH_COUNTING = 2**18  # products of floats below which the kernel is not worth a call
_TOLERANCE, _VALUES_TOLERANCE = 1e-5, 1e-3  # of Lanczos; signals near noise need the first
_FEW_VALUES = 4
_ROUNDING = 1e-6  # share of the largest eigenvalue that single precision does not see
_FIRST_VALUES = 16
_FIRST_RANK = 64
_SINKHORN_ROUNDS, _BALANCED = 10, 1e-4
_POWER_ITERATIONS, _OVERSAMPLING = 4, 10


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

    def likely_rank(self, n_samples: int, n_spins: int) -> tuple[int, bool]:
        """Return after how many values the spectrum falls most, and if that settles the rank."""
        return _likely_rank(self.values[: self.n_signal + 1], self.deviates, n_samples, n_spins)

    def relative(self, most: int = 200) -> NDArray[np.float64]:
        """Return the leading values over the noise edge."""
        return self.values[:most] / self.edge


def noise_edge(n_samples: float, n_spins: float) -> tuple[float, float]:
    r"""Return centre and width of the largest squared singular value of pure noise.

    .. math:: \mu = (\sqrt M + \sqrt N)^2, \qquad
              \sigma = (\sqrt M + \sqrt N)\,(1/\sqrt M + 1/\sqrt N)^{1/3}.

    Examples
    --------
    >>> from dualtap.recovery.spectrum import noise_edge
    >>> noise_edge(100, 400)
    (900.0, 15.9...)
    """
    centre, width = _edges(np.array(n_samples), np.array(n_spins))
    return float(centre), float(width)


def _edges(
    m: NDArray[np.generic], n: NDArray[np.generic]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.sqrt(m, dtype=np.float64), np.sqrt(n, dtype=np.float64)
    return (a + b) ** 2, (a + b) * (1 / a + 1 / b) ** (1 / 3)


def deviates(
    values: NDArray[np.float64], total: float, n_samples: int, n_spins: int, n_removed: int = 0
) -> NDArray[np.float64]:
    r"""Return by how many widths each squared singular value exceeds the noise edge.

    The noise variance is what the values up to and including the k-th leave of the total, so that
    earlier signals do not hide later ones (Kritchman and Nadler):
    :math:`t_k = (\lambda_k / \hat\sigma_k^2 - \mu_k) / \sigma_k`, with M and N reduced by the
    number of directions in front.

    Parameters
    ----------
    values : array of shape (k,)
        Descending.
    total : float
        Sum of all squared singular values.
    n_samples, n_spins : int
    n_removed : int
        Directions taken out of the data before.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.spectrum import deviates
    >>> S = np.random.default_rng(0).choice([-1.0, 1.0], size=(100, 300))
    >>> values = np.linalg.svd(S, compute_uv=False) ** 2
    >>> bool(deviates(values[:3], S.size, 100, 300).max() < 1.1)
    True
    """
    k = np.arange(len(values))
    m = np.maximum(n_samples - n_removed - k, 1)
    n = np.maximum(n_spins - n_removed - k, 1)
    rest = np.maximum(total - np.cumsum(values), 1e-9 * total)
    variance = rest / (np.maximum(m - 1, 1) * np.maximum(n - 1, 1))
    centre, width = _edges(m, n)
    result: NDArray[np.float64] = (values / variance - centre) / width
    return result


def spectrum(
    blocks: Blocks,
    rng: np.random.Generator,
    n_least: int = 1,
    variance: F32 | None = None,
) -> Spectrum:
    """Return the singular directions of the samples that stand out of noise.

    Samples and sites with more missing entries count less, so that all have the same noise.

    Parameters
    ----------
    blocks : Blocks
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
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.spectrum import spectrum
    >>> X = HopfieldModel.random(300, 4, beta=0.8, random_state=0).sample(400, random_state=1)
    >>> spectrum(Blocks(as_spins(X)), np.random.default_rng(0)).n_signal
    4
    """
    S = blocks if blocks.complete else balanced(blocks, blocks.changed(np.square))
    if variance is not None:
        scale = (1 / np.sqrt(variance)).astype(np.float32)
        S = S.changed(lambda s: s * scale)
    shape = S.n_samples, S.n_spins
    total = S.sum_of_squares()
    if is_small(S):
        values, vectors = _of_gram(S, total, n_least, rng)
    else:
        rank, most = min(max(_FIRST_RANK, n_least), min(shape)), min(shape)
        space = _grown(S, None, rank + _OVERSAMPLING, rng)
        values, vectors = _ritz(space, rank)
        while count_signals(deviates(values, total, *shape)) == len(values) < most:
            # What is found stays: only as many directions again are iterated.
            space, rank = _grown(S, space, rank, rng), min(2 * rank, most)
            values, vectors = _ritz(space, rank)
    t = deviates(values, total, *shape)
    n_signal = count_signals(t)
    k = min(max(n_signal, n_least), len(values))
    if len(vectors[0]) != S.n_spins:
        vectors = _over_sites(S, vectors[:k])
    return Spectrum(values, vectors[:k], t, total, noise_edge(*shape)[0], n_signal)


def _likely_rank(
    values: NDArray[np.float64], t: NDArray[np.float64], n_samples: int, n_spins: int
) -> tuple[int, bool]:
    # Near full rank the values of noise fall to zero, and their ratios mean nothing.
    values = values[: 3 * min(n_samples, n_spins) // 4 + 1]
    ratio = values[:-1] / np.maximum(values[1:], 1e-9 * values[0])
    if not len(ratio):
        return 1, False
    k = int(np.argmax(ratio)) + 1
    height = 0.0
    if k < len(t):  # of the next value above the noise edge, relative to it
        centre, width = noise_edge(max(n_samples - k, 1), max(n_spins - k, 1))
        height = max(float(t[k]) * width / centre, 0.0)
    return k, bool(ratio[k - 1] > _GAP * (1 + height / _NEAR_EDGE) ** 2)


def is_small(blocks: Blocks) -> bool:
    """Say whether singular values are those of a Gram matrix of the shorter side."""
    if blocks.n_spins <= blocks.n_samples:
        return blocks.n_spins <= SMALL
    return blocks.dense is not None and blocks.n_samples <= SMALL


def count_signals(t: NDArray[np.float64]) -> int:
    """Return how many leading deviates lie above ``LEVEL`` and ``NEXT_LEVEL``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.spectrum import count_signals
    >>> count_signals(np.array([9.0, 4.0, 1.5, 7.0])), count_signals(np.array([1.5, 1.5]))
    (2, 1)
    """
    above = t > np.where(np.arange(len(t)) == 0, LEVEL, NEXT_LEVEL)
    return len(t) if above.all() else int(np.argmin(above))


def balanced(residual: Blocks, variance: Blocks) -> Blocks:
    """Scale rows and columns so that the noise of each has unit variance on average.

    Parameters
    ----------
    residual : Blocks
    variance : Blocks
        Variances of its entries.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.spectrum import balanced
    >>> ones = Blocks(as_spins(np.ones((2, 2))))
    >>> size = np.array([[2.0], [4.0]], dtype=np.float32)
    >>> residual = ones.changed(lambda S, a: a * S, size)
    >>> balanced(residual, ones.changed(lambda S, a: a**2 * S, size)).dense
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    n_rows, n_columns = residual.n_samples, residual.n_spins
    column = np.ones(n_columns, np.float32)
    tiny = np.float32(1e-6)
    for _ in range(_SINKHORN_ROUNDS):
        row, total = variance.map_sum(partial(_balanced_rows, column=column, tiny=tiny))
        before, column = column, n_rows / np.maximum(total, tiny * n_rows)
        if np.abs(column - before).max() < _BALANCED * np.abs(column).max():
            break
    right = np.sqrt(column)
    return residual.changed(lambda S, left: S * left * right, np.sqrt(row)[:, None])


def _balanced_rows(D: F32, column: F32, tiny: np.float32) -> tuple[F32, F32]:
    """Return the scales that give the rows of a block unit variance, and what it adds to sites."""
    n_columns = D.shape[1]
    row: F32 = n_columns / np.maximum(D @ column, tiny * n_columns)
    return row, row @ D


def leading(blocks: Blocks, rank: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], F32]:
    """Return the largest squared singular values and right singular vectors of a large matrix.

    Subspace iteration on SᵀS from a random start, five passes over the data in all.

    Parameters
    ----------
    blocks : Blocks
    rank : int
    rng : Generator

    Returns
    -------
    values : array of shape (rank,)
        The largest first.
    vectors : array of shape (rank, n_spins)
        Orthonormal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.spectrum import leading
    >>> s = np.array([[1, 1, -1], [1, 1, -1]])
    >>> leading(Blocks(as_spins(s)), 1, np.random.default_rng(0))[0].round(3)
    array([6.])
    """
    return _ritz(_grown(blocks, None, rank + _OVERSAMPLING, rng), rank)


class _Space(NamedTuple):
    """A space that the leading directions are looked for in."""

    V: F32
    """Orthonormal rows, shape (k, n_spins)."""
    G: F32
    """V SᵀS."""


def _grown(blocks: Blocks, known: _Space | None, n_more: int, rng: np.random.Generator) -> _Space:
    """Return a space with so many dimensions more, as long as there are any."""
    n_known = 0 if known is None else len(known.V)
    n_more = min(n_more, blocks.n_samples - n_known, blocks.n_spins - n_known)
    V: F32 = rng.standard_normal((n_more, blocks.n_spins), dtype=np.float32)
    for _ in range(_POWER_ITERATIONS):
        V = _orthonormal(_apart(blocks.gram_dot(V), known))
    G = blocks.gram_dot(V)
    if known is None:
        return _Space(V, G)
    return _Space(np.concatenate([known.V, V]), np.concatenate([known.G, G]))


def _apart(V: F32, known: _Space | None) -> F32:
    """Return rows without their part in a known space."""
    if known is not None:
        for _ in range(2):  # once leaves the rounding errors of what was large
            V -= (V @ known.V.T) @ known.V
    return V


def _ritz(space: _Space, rank: int) -> tuple[NDArray[np.float64], F32]:
    """Return the largest squared singular values within a space, and their directions."""
    w, U = np.linalg.eigh((space.V @ space.G.T).astype(np.float64))
    chosen = U[:, ::-1][:, :rank].T.astype(np.float32)
    return np.maximum(w[::-1][:rank], 0), chosen @ space.V


def _orthonormal(G: F32) -> F32:
    """Return orthonormal rows that span the rows of G, in its memory."""
    # NumPy's QR works on copies in double precision, eight times as much.
    Q: F32 = qr(G.T, mode="economic", overwrite_a=True, check_finite=False)[0].T
    return np.ascontiguousarray(Q)


def _of_gram(
    S: Blocks, total: float, n_least: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], F32]:
    """Return leading squared singular values beyond the signals, and vectors of the shorter side.

    The vectors are orthonormal rows.
    """
    G = _gram(S)
    shape = S.n_samples, S.n_spins
    k = max(_FIRST_VALUES, n_least + 2)
    while True:
        values, U = _leading_of(G, k, rng)
        t = deviates(values, total, *shape)
        seen = count_signals(t) < len(values) or len(values) == len(G)
        # What follows is too small to be patterns, or is not asked for and might be noise.
        small = _likely_rank(values, t, *shape)[1]
        asked = n_least > 1 and values[-1] < noise_edge(*shape)[0]
        if seen or small or asked:
            return values, U
        k *= 2


def n_signals(S: Blocks, n_removed: int, most: int, rng: np.random.Generator) -> int:
    """Count the directions that stand out of noise, up to so many.

    Parameters
    ----------
    S : Blocks
    n_removed : int
        Directions taken out of the data before.
    most : int
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.blocks import Blocks
    >>> from dualtap.recovery.spectrum import n_signals
    >>> X = HopfieldModel.random(300, 4, beta=0.8, random_state=0).sample(400, random_state=1)
    >>> n_signals(Blocks(as_spins(X)), 0, 32, np.random.default_rng(0))
    4
    """
    total, shape = S.sum_of_squares(), (S.n_samples, S.n_spins)
    if not is_small(S):
        return count_signals(deviates(leading(S, most, rng)[0], total, *shape, n_removed))
    G = _gram(S)
    for k in (_FEW_VALUES, most):  # values of noise lie close to each other and take long
        values = _leading_of(G, k, rng, _VALUES_TOLERANCE)[0]
        count = count_signals(deviates(values, total, *shape, n_removed))
        if count < k:
            break
    return min(count, most)


def _leading_of(
    G: F32, k: int, rng: np.random.Generator, tolerance: float = _TOLERANCE
) -> tuple[NDArray[np.float64], F32]:
    """Return the k largest eigenvalues of a Gram matrix and their vectors, or all of them."""
    v0 = rng.standard_normal(len(G), dtype=np.float32)
    found = _by_lanczos(G, k, v0, tolerance) if len(G) > max(_WHOLE, 4 * k) else None
    w, U = np.linalg.eigh(G) if found is None else found
    order = np.argsort(w)[::-1]
    return np.maximum(w[order].astype(np.float64), 0), U.T[order].astype(np.float32)


def _by_lanczos(
    G: F32, k: int, v0: F32, tolerance: float
) -> tuple[NDArray[np.floating], NDArray[np.floating]] | None:
    """Return k eigenvalues and vectors in single precision, far finer than noise fluctuates.

    None if there are fewer directions: without noise, rounding errors would pass for signals, and
    iterations go on from vectors that no seed decides.
    """
    try:
        w, U = eigsh(G, k, v0=v0, tol=tolerance)
    except ArpackError:
        return None
    return (w, U) if w.min() > _ROUNDING * w.max() else None


def _gram(S: Blocks) -> F32:
    """Return the products of the samples with each other, or of the spins if these are fewer."""
    of_sites = S.n_spins <= S.n_samples
    n, length = sorted((S.n_samples, S.n_spins))
    if S.plain and n * n * length > _WORTH_COUNTING:
        words = words_of(S.spins, of_sites=of_sites)
        if words is not None:
            G = _counted(S, words, length)
            S.gram = G if of_sites else None
            return G
    if of_sites:
        S.gram = S.sum(lambda s: s.T @ s)
        return S.gram
    assert S.dense is not None  # see is_small
    S.spins.begin_pass()
    return S.dense @ S.dense.T


def _counted(S: Blocks, words: NDArray[np.uint64], length: int) -> F32:
    """Return the same by counting bits, much faster than products of floats."""
    from dualtap._kernels.overlaps import overlaps_of_bits

    S.spins.begin_pass()
    G = np.empty((len(words), len(words)), dtype=np.float32)
    overlaps_of_bits(words, length, G)
    return G


def _over_sites(S: Blocks, U: F32) -> F32:
    """Return right singular vectors, from left ones in rows."""
    vectors: F32 = S.transposed_dot(np.ascontiguousarray(U.T))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return vectors
