"""Rotations of the leading space of the samples, or of what a model leaves of them, to patterns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import erf

from dualtap._eigen import complement
from dualtap.recovery import calibration
from dualtap.recovery.residuals import Residual
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.subspace.noise import squared_cosines
from dualtap.subspace.rotate import (
    are_products,
    binary,
    depth,
    independent,
    nearest_ternary,
    polish,
    row_basis,
    unmixed,
)
from dualtap.subspace.search import SearchResult, all_at_once, search
from dualtap.subspace.space import likely_ranks, linear_space, pattern_space
from dualtap.subspace.spectrum import Spectrum
from dualtap.subspace.starts import MOST_ROTATED, far_apart, shared
from dualtap.subspace.weak_field import WeakFieldPosterior

_ROTATIONS = 6
_SAME_ANSWER = 0.9
_MOST_PAIRED = 40
_VARIMAX_STEPS = 200
_DEEPEST, _IN_VAIN = 0.97, 3
_NORMAL = 2 / np.pi  # squared mean size over mean square of normal numbers
_NEW = 0.2  # share of a vector that others must leave unexplained


def responds_linearly(whole: Spectrum, blocks: SampleMatrix) -> bool:
    """Say whether signals explain so little of the variance that tanh θ is nearly θ."""
    excess = np.maximum(whole.values[: whole.n_signal] - whole.edge, 0)
    return bool(excess.sum() < calibration.LINEAR * blocks.total_weight * blocks.n_spins)


def share_direction(blocks: SampleMatrix, whole: Spectrum) -> bool:
    """Say whether all samples lie on one side of the leading direction: their common mean."""
    x = blocks.dot(whole.vectors[:1])[:, 0]
    mean = np.average(x, weights=blocks.weights)
    return bool(mean**2 > 4 * np.average(np.square(x - mean), weights=blocks.weights))


def clustered(
    blocks: SampleMatrix, whole: Spectrum, rng: np.random.Generator, rank: int | None
) -> Iterator[F32]:
    """Yield patterns that show in the linear space, one per dimension.

    Looked for at samples far apart, each near a pattern of its own if samples cluster; if they
    do not, by one rotation.
    """
    ranks, settled = likely_ranks(whole, blocks.total_weight, blocks.n_spins)
    for k in ranks if rank is None else [rank]:
        factors = linear_space(blocks, whole, k)
        u = row_basis(factors.V)
        found = all_at_once(polish(far_apart(factors.X, factors.V), u), u)
        if not len(found) and len(u) <= MOST_ROTATED:
            found = all_at_once(polish(binary(unmixed(u, int(rng.integers(2**31)))), u), u)
        if len(found) and (settled or (k <= _MOST_PAIRED and not are_products(found))):
            yield found


def rotated(
    residual: SampleMatrix, D: F32, vectors: F32, rng: np.random.Generator, most: int = _ROTATIONS
) -> Iterator[F32]:
    """Yield rotations of a space to ±1 vectors, each refined by TAP for all of them together.

    Where spins respond linearly. Several are tried, until two agree.

    Parameters
    ----------
    residual : SampleMatrix
        What the model leaves of the samples.
    D : array of shape (n_spins,)
        Variance of the residuals.
    vectors : array of shape (k, n_spins)
        Directions above the noise, of the residuals divided by the root of D.
    rng : Generator
    """
    u = row_basis(vectors / np.sqrt(D))
    refined = WeakFieldPosterior(residual, D, len(u))
    starts: list[F32] = []
    for rotation in range(most if len(u) > 1 else 1):
        contrast = ("logcosh", "cube")[rotation % 2]
        Z = binary(unmixed(u, int(rng.integers(2**31)), contrast))
        if any(agree(Z, other) for other in starts):
            return
        m = refined.means(Z)
        known = any(agree(m, other) for other in starts)
        starts += [Z, m]
        if known:
            return
        yield m


def sparse(u: F32, rng: np.random.Generator) -> F32:
    """Return vectors of -1, 0 and +1 near a space, some for each of its dimensions.

    Rotations of the space, to simple structure (varimax) and to independent components, are
    rounded, and polished within it.
    """
    scale = np.float32(np.sqrt(u.shape[1]))
    starts = [varimax(scale * u), unmixed(u, int(rng.integers(2**31)), "exp")]
    rounded = nearest_ternary(np.concatenate(starts))
    return np.concatenate([rounded, polish(rounded, u, nearest_ternary)])


def varimax(V: F32) -> F32:
    r"""Return the rotation of the rows of V that makes their squared entries vary most.

    Iterates :math:`R \leftarrow` the orthogonal part of :math:`V (Y^3 - Y \overline{Y^2})^\top`,
    :math:`Y = R^\top V` (Kaiser 1958).
    """
    R, V = np.eye(len(V)), V.astype(np.float64)
    for _ in range(_VARIMAX_STEPS):
        Y = R.T @ V
        square = np.square(Y)
        A, _, B = np.linalg.svd(V @ (Y * (square - square.mean(axis=1, keepdims=True))).T)
        new = A @ B
        change = np.abs(new - R).max()
        R = new
        if change < 1e-4:
            break
    return (R.T @ V).astype(np.float32)


def plain_directions(left: Residual, known: F32) -> F32:
    """Return patterns of all spins that need no rotation to be found, but for those that are known.

    That of the means of the samples, if these differ by more than noise does, so that it lies in
    the space above the noise edge; and the signs of the leading direction, if it has one size.
    """
    V, N = left.spectrum.vectors[: left.n_signal], len(left.variance)
    one = np.ones((1, N), np.float32)
    plain = np.concatenate([one, binary(V[:1])])
    share = np.square(V @ one.T).sum(), *np.square(np.abs(V[:1]).sum(axis=1))
    new = (np.abs(plain @ known.T) < calibration.SAME * N).all(axis=1)
    return plain[new & (np.array(share) > calibration.PLAIN * N)]


def simple_structure(left: Residual) -> F32:
    r"""Return a sparse vector for every direction above the noise edge.

    Loadings :math:`v_{ki} \sqrt{\lambda_k - 1}` of standardised spins on the directions, λ the
    eigenvalues of their correlations, are rotated by varimax, those of each spin scaled to one
    length meanwhile (Kaiser 1958), and rounded. Weak directions have small loadings and hardly
    change the others.
    """
    k, values = left.n_signal, left.spectrum.values
    V, N = left.spectrum.vectors[:k], len(left.variance)
    excess = np.maximum(N * values[:k] / left.spectrum.total - 1, 0)
    loadings = V * np.sqrt(excess)[:, None]
    size = np.maximum(np.linalg.norm(loadings, axis=0), 1e-12)
    return nearest_ternary(varimax((loadings / size).astype(np.float32)) * size)


def agree(a: F32, b: F32) -> bool:
    """Say whether two answers have the same patterns, up to sign and order."""
    overlap = np.abs(binary(a) @ binary(b).T) / a.shape[1]
    return bool(overlap.max(axis=1).min() > _SAME_ANSWER)


def straightened(
    blocks: SampleMatrix, whole: Spectrum, rng: np.random.Generator, rank: int | None
) -> SearchResult:
    """Return the patterns of a logistic factor model that leaves nothing but noise."""
    factors = pattern_space(blocks, whole, rng, rank)
    return search(blocks, factors, rng)


def sparse_set(u: F32, rng: np.random.Generator) -> F32:
    """Return a sparse vector for every dimension of a space, those that lie deepest in it.

    The deepest vectors of a rotation are taken, and what they leave of the space is rotated
    again, until as many are found or nothing new comes.
    """
    pool = sparse(u, rng)
    taken, in_vain = pool[:0], 0
    while len(taken) < len(u) and in_vain < _IN_VAIN:
        pool = pool[np.count_nonzero(pool, axis=1) > 1]
        if not len(pool):
            return u[:0]
        d = depth(pool, u)
        deep = d >= _DEEPEST * d.max()
        found = independent(pool[deep], d[deep], len(u), _NEW)
        in_vain = in_vain + 1 if len(found) <= len(taken) else 0
        taken = found
        rest = complement(u, row_basis(taken), max(len(u) - len(taken), 1))
        rounded = nearest_ternary(unmixed(rest, int(rng.integers(2**31)), "exp"))
        pool = np.concatenate([pool, polish(rounded, u, nearest_ternary)])
    pool = pool[np.count_nonzero(pool, axis=1) > 1]
    return independent(pool, depth(pool, u), len(u), _NEW)


def looks_binary(Z: F32, whole: Spectrum, k: int, blocks: SampleMatrix) -> bool:
    """Say whether vectors have entries of one size in a space of k directions, but for the noise.

    The squared mean size over the mean square of their projections is 2/π for normal entries, and
    1 for ±1 entries; less with the noise that directions have at these samples.
    """
    V = whole.vectors[:k]
    along = Z @ V.T
    y = np.abs(along @ V)
    ratio = np.square(y.mean(axis=1)) / np.square(y).mean(axis=1)
    c2 = squared_cosines(whole.values[:k], whole.total, blocks.total_weight, blocks.n_spins)
    c2 = np.square(along) @ c2 / np.square(along).sum(axis=1)
    c, s = np.sqrt(c2), np.sqrt(np.maximum(1 - c2, 1e-12))
    size = s * np.sqrt(_NORMAL) * np.exp(-np.square(c / s) / 2) + c * erf(c / (s * np.sqrt(2)))
    most = np.median(np.square(size)) - _NORMAL
    return bool(np.median(ratio) - _NORMAL > calibration.ONE_SIZE * most)


def binary_sets(left: Residual, rng: np.random.Generator) -> Iterator[F32]:
    """Yield ±1 vectors for all directions above the noise edge together.

    At samples that lie far apart in their space, and by rotations.
    """
    if left.n_signal:
        V = left.spectrum.vectors[: left.n_signal]
        scale = np.sqrt(left.variance).astype(np.float32)
        apart = shared(left.blocks, far_apart(left.blocks.dot(V / scale), V * scale))
        if len(apart):
            yield apart
        for m in rotated(left.blocks, left.variance, V, rng, 2):
            yield binary(m)


def _leading(left: Residual) -> Iterator[F32]:
    """Yield bases of the spaces of the strongest 1, 2, 4 ... and all directions above the edge."""
    k = left.n_signal
    for n in sorted({min(2**j, k) for j in range(k.bit_length() + 1)}) if k else ():
        yield row_basis(left.spectrum.vectors[:n] / np.sqrt(left.variance))


def rotations(left: Residual, rng: np.random.Generator) -> F32:
    """Return ±1 and sparse vectors near the directions that a model leaves above the noise."""
    spaces = list(_leading(left))
    pool = [np.empty((0, len(left.variance)), np.float32)]
    pool += [sparse(u, rng) for u in spaces]
    for u in spaces[-1:]:
        pool.append(polish(binary(unmixed(u, int(rng.integers(2**31)))), u))
    return np.concatenate(pool)
