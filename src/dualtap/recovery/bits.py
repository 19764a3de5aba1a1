"""Pattern bits drawn, or chosen, by their exact conditional probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.blocks import F32, Blocks

LARGEST_COEFFICIENT = 5.0
"""Beyond this a spin is as good as certain, and products of odds would overflow."""

_BLOCK = 64  # of the kernel; repeated here because importing it starts Numba
_ENTRIES = 2**22
"""Odds held at a time."""
_WORTH_THREADS = 2_000_000
"""Factors to multiply from which threads are worth waking."""


def sweep(
    blocks: Blocks,
    V: F32,
    X: F32,
    fields: F32,
    *,
    n_bits: int | None = None,
    sites: NDArray[np.int64] | None = None,
    rng: np.random.Generator | None = None,
    toward: F32 | None = None,
) -> tuple[F32, F32]:
    r"""Visit every bit of every pattern once, given the coefficients of the samples.

    Bit :math:`\zeta_i^\mu` has the posterior log-odds
    :math:`\sum_a \log P(s_i^a | \theta^+) / P(s_i^a | \theta^-)`, the other bits of its site
    being as they are.

    Parameters
    ----------
    blocks : Blocks
    V : array of shape (k, n_spins)
        Patterns, ±1, and perhaps other vectors after them.
    X : array of shape (n_samples, k)
        Coefficients x.
    fields : array of shape (n_spins,)
    n_bits : int, optional
        Leading rows of V that are patterns; all when not given.
    sites : array of int, optional
        Visit only these; the bits of the others are taken for certain.
    rng : Generator, optional
        Draw the bits; without it each takes its likelier sign.
    toward : array of shape (n_bits, n_spins), optional
        Xᵀ S of the patterns, if it is known.

    Returns
    -------
    V : array of shape (k, n_spins)
        With the bits after the sweep.
    m : array of shape (n_bits, n_spins)
        Their conditional means.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.recovery.bits import sweep
    >>> from dualtap.spins.blocks import Blocks
    >>> s = np.array([[1, 1, -1, -1]])
    >>> blocks = Blocks(as_spins(np.repeat(s, 3, axis=0)))
    >>> V, m = sweep(blocks, np.ones((1, 4), np.float32), np.ones((3, 1), np.float32), np.zeros(4))
    >>> V.astype(int), m.round(3)
    (array([[ 1,  1, -1, -1]]), array([[ 0.995,  0.995, -0.995, -0.995]], dtype=float32))
    """
    from dualtap._kernels.bits import sweep_bits, sweep_bits_alone

    n_bits = len(V) if n_bits is None else n_bits
    chosen = np.arange(blocks.n_spins) if sites is None else sites
    if not len(chosen):
        return V.copy(), V[:n_bits].copy()
    n_samples, n_spins = blocks.n_samples, blocks.n_spins
    padded = -(-n_samples // _BLOCK) * _BLOCK
    if np.abs(X).max() > LARGEST_COEFFICIENT:
        X, toward = np.clip(X, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT), None
    minus = np.ones((n_bits, padded), dtype=np.float32)
    minus[:, :n_samples] = np.exp(-2 * X[:, :n_bits].T)
    plus = 1 / minus
    against = _against(blocks, X[:, :n_bits], toward)
    uniform = np.full((n_bits, n_spins), 0.5, dtype=np.float32)
    if rng is not None:
        uniform = rng.random((n_bits, n_spins), dtype=np.float32)
    V, m = V.copy(), V[:n_bits].copy()
    step = max(1, _ENTRIES // padded)
    for first in range(0, len(chosen), step):
        some = chosen[first : first + step]
        E = _odds(blocks, V[:, some], X, fields[some], some, padded)
        bits = V[:n_bits, some]
        means = np.empty_like(bits)
        kernel = sweep_bits if E.size * n_bits > _WORTH_THREADS else sweep_bits_alone
        kernel(E, minus, plus, against[:, some], bits, uniform[:, some], means)
        V[:n_bits, some], m[:, some] = bits, means
    return V, m


def _against(blocks: Blocks, X: F32, toward: F32 | None) -> F32:
    """Return Σ of x over the samples whose spin is -1, shape (k, n_spins)."""
    if toward is None:
        toward = blocks.transposed_dot(X)
    if blocks.complete:
        total = X.sum(axis=0, dtype=np.float64)[:, None]
    else:
        total = blocks.sum(lambda S, x: x.T @ np.square(S), X)
    result: F32 = ((total - toward) / 2).astype(np.float32)
    return result


def _odds(
    blocks: Blocks, V: F32, X: F32, fields: F32, sites: NDArray[np.int64], padded: int
) -> F32:
    """Return e^{-2θ}, shape (sites, padded), 0 where there is no spin."""
    theta = V.T @ X.T
    theta += fields[:, None]
    E = np.zeros((theta.shape[0], padded), dtype=np.float32)
    np.exp(np.clip(-2 * theta, -20, 20), out=E[:, : len(X)])
    if not blocks.complete:
        E[:, : len(X)] *= np.abs(blocks.spins.columns(sites).T)
    return E
