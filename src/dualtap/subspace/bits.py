"""Pattern bits drawn, or chosen, by their exact conditional probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted

LARGEST_COEFFICIENT = 5.0
"""Beyond this a spin is as good as certain, and products of odds would overflow."""

_BLOCK = 32  # of the kernel; repeated here because importing it starts Numba
_ENTRIES = 2**22
"""Odds held at a time."""
_WORTH_THREADS = 10_000_000
"""Factors to multiply from which threads are worth waking."""


def sweep(
    blocks: SampleMatrix,
    V: F32,
    X: F32,
    fields: F32,
    *,
    n_bits: int | None = None,
    visit: NDArray[np.bool_] | None = None,
    rng: np.random.Generator | None = None,
    toward: F32 | None = None,
) -> tuple[F32, F32]:
    r"""Visit every bit of every pattern once, given the coefficients of the samples.

    Bit :math:`\zeta_i^\mu` has the posterior log-odds
    :math:`\sum_a w_a \log P(s_i^a | \theta^+) / P(s_i^a | \theta^-)`, w the weights of the
    samples, the other bits of its site being as they are.

    Parameters
    ----------
    blocks : SampleMatrix
    V : array of shape (k, n_spins)
        Patterns, ±1, and perhaps other vectors after them.
    X : array of shape (n_samples, k)
        Coefficients x.
    fields : array of shape (n_spins,)
    n_bits : int, optional
        Leading rows of V that are patterns; all when not given.
    visit : array of shape (n_bits, n_spins), optional
        Visit only these bits; the others stay as they are.
    rng : Generator, optional
        Draw the bits; without it each takes its likelier sign.
    toward : array of shape (n_bits, n_spins), optional
        Xᵀ S of the patterns, if it is known.

    Returns
    -------
    V : array of shape (k, n_spins)
        With the bits after the sweep.
    m : array of shape (n_bits, n_spins)
        Their conditional means, and the signs of bits that were not visited.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.subspace.bits import sweep
    >>> from dualtap.spins.matrix import blocks_of
    >>> s = np.array([[1, 1, -1, -1]])
    >>> blocks = blocks_of(as_spins(np.repeat(s, 3, axis=0)))
    >>> V, m = sweep(blocks, np.ones((1, 4), np.float32), np.ones((3, 1), np.float32), np.zeros(4))
    >>> V.astype(int), m.round(3)
    (array([[ 1,  1, -1, -1]]), array([[ 0.995,  0.995, -0.995, -0.995]], dtype=float32))
    """
    from dualtap._kernels.bits import sweep_bits

    n_bits = len(V) if n_bits is None else n_bits
    V, m = V.copy(), V[:n_bits].copy()
    if visit is None:
        visit = np.ones(m.shape, dtype=np.bool_)
    sites = np.flatnonzero(visit.any(axis=0))
    if not len(sites):
        return V, m
    if np.abs(X).max() > LARGEST_COEFFICIENT:
        X, toward = np.clip(X, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT), None
    factors = _factors(X[:, :n_bits])[1:]
    weights = _padded_weights(blocks.weights, factors[0].shape[1])
    against = _against(blocks, X[:, :n_bits], toward)
    uniform = np.full(m.shape, 0.5, dtype=np.float32)
    if rng is not None:
        uniform = rng.random(m.shape, dtype=np.float32)
    for some in _parts(sites, blocks.n_spins, max(1, _ENTRIES // factors[0].shape[1])):
        E = _odds(blocks, V[:, some], X, fields[some], some, factors[0].shape[1])
        given = (np.ascontiguousarray(x[:, some]) for x in (against, visit, uniform))
        bits, mean = (np.ascontiguousarray(x[:, some]) for x in (V[:n_bits], m))
        n_factors = np.count_nonzero(visit[:, some]) * E.shape[1]
        kernel = sweep_bits if n_factors > _WORTH_THREADS else sweep_bits.alone
        kernel(E, *factors, weights, *given, bits, mean)
        V[:n_bits, some], m[:, some] = bits, mean
    return V, m


def _parts(sites: NDArray[np.int64], n_spins: int, step: int) -> list[Any]:
    """Return what picks so many sites at a time; everything, if it can be, without a copy."""
    if len(sites) == n_spins <= step:
        return [slice(None)]
    return [sites[first : first + step] for first in range(0, len(sites), step)]


def _factors(X: F32) -> tuple[F32, F32, F32, F32]:
    """Return x, e^{-2x} and e^{2x}, padded, and 4 Σ|x| of each block, a row per pattern."""
    n_samples, n_bits = X.shape
    x = np.zeros((n_bits, -(-n_samples // _BLOCK) * _BLOCK), dtype=np.float32)
    x[:, :n_samples] = X.T
    minus = np.exp(-2 * x)
    sizes = 4 * np.abs(x).reshape(n_bits, -1, _BLOCK).sum(axis=2)
    return x, minus, 1 / minus, sizes


def _padded_weights(weights: F32 | None, padded: int) -> F32 | None:
    """Return weights as the kernels take them; None if every row is one sample."""
    if weights is None:
        return None
    return np.concatenate([weights, np.zeros(padded - len(weights), np.float32)])


def _against(blocks: SampleMatrix, X: F32, toward: F32 | None) -> F32:
    """Return Σ of x over the samples whose spin is -1, shape (k, n_spins)."""
    if toward is None:
        toward = blocks.transposed_dot(X)
    if blocks.complete:
        total = weighted(X, blocks.weights).sum(axis=0, dtype=np.float64)
        total = total.astype(np.float32)[:, None]
    else:
        total = blocks.sum(lambda S, x: x.T @ np.square(S), weighted(X, blocks.weights))
    result: F32 = total - toward
    result *= np.float32(0.5)
    return result


def _odds(blocks: SampleMatrix, V: F32, X: F32, fields: F32, sites: Any, padded: int) -> F32:
    """Return e^{-2θ}, shape (sites, padded), 0 where there is no spin."""
    x = np.zeros((padded, X.shape[1]), dtype=np.float32)
    np.multiply(X, -2, out=x[: len(X)])
    E: F32 = V.T @ x.T
    if fields.any():
        E -= 2 * fields[:, None]
    np.clip(E, -20, 20, out=E)
    np.exp(E, out=E)
    E[:, len(X) :] = 0
    if not blocks.complete:
        every = np.arange(blocks.n_spins)
        E[:, : len(X)] *= np.abs(blocks.columns(every[sites]).T)
    return E


class FewBits:
    """Small data of which few bits are in doubt, to be drawn over and over.

    The overlaps are held and follow the bits that turn, so that a sweep costs no more than the
    bits it visits.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1 with 0 for missing, float32.
    Z : array of shape (n_patterns, n_spins)
        Patterns, ±1.
    m : array of shape (n_patterns, n_spins)
        Means of the bits.
    fields : array of shape (n_spins,)
    weights : array of shape (n_samples,), optional
        Number of samples that each row stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.subspace.bits import FewBits
    >>> S, Z = np.ones((3, 4), np.float32), np.ones((1, 4), np.float32)
    >>> few = FewBits(S, Z, Z, np.zeros(4, np.float32))
    >>> few.overlaps
    array([[4., 4., 4.]], dtype=float32)
    >>> X = np.full((3, 1), 0.5, np.float32)
    >>> few.draw(X, np.nonzero(np.ones((4, 1))), np.random.default_rng(0))
    >>> few.m.round(2)  # tanh(3/2)
    array([[0.91, 0.91, 0.91, 0.91]], dtype=float32)
    """

    def __init__(self, S: F32, Z: F32, m: F32, fields: F32, weights: F32 | None = None) -> None:
        self._n_samples = len(S)
        self._spins = np.zeros((S.shape[1], -(-len(S) // _BLOCK) * _BLOCK), dtype=np.float32)
        self._spins[:, : len(S)] = S.T
        self._start = np.exp(-2 * fields)
        self._bits, self._m = Z.T.copy(), m.T.copy()
        self._overlaps: F32 = Z @ self._spins
        self._weights = _padded_weights(weights, self._spins.shape[1])

    @property
    def overlaps(self) -> F32:
        """Products of patterns and samples, shape (n_patterns, n_samples)."""
        return self._overlaps[:, : self._n_samples]

    @property
    def patterns(self) -> F32:
        """The bits, shape (n_patterns, n_spins)."""
        return self._bits.T

    @property
    def m(self) -> F32:
        """Conditional mean of each bit when it was drawn last, shape (n_patterns, n_spins)."""
        return self._m.T

    def draw(self, X: F32, visit: tuple[NDArray[np.int64], ...], rng: np.random.Generator) -> None:
        """Draw bits in turn.

        Parameters
        ----------
        X : array of shape (n_samples, n_patterns)
            Coefficients. Their sizes add up to 40 at most for any sample.
        visit : sites and patterns of the bits, ordered by site
        rng : Generator
        """
        from dualtap._kernels.bits import redraw_bits

        sites, which = visit
        x, *factors = _factors(np.clip(X, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT))
        uniform = rng.random(len(sites), dtype=np.float32)
        given = self._spins, self._start, x, *factors, self._weights, sites, which, uniform
        redraw_bits(*given, self._bits, self._overlaps, self._m)
