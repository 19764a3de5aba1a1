"""Block Gibbs sampling of a ±1 RBM: hidden units given visible ones, and back.

Two chains at a time make all their steps before the next two start: their spins stay in the first
cache, and every weight that comes from the second serves both. Every chain owns its generator: its
history depends neither on its neighbour nor on its thread, nor on the number of either.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from dualtap._kernels.compiled import parallel
from dualtap._kernels.signs import draw_sign, uniform
from dualtap._kernels.xoshiro import draw

Array = Any  # Numba infers the types; the docstrings say them

LANES = 32  # streams of a chain; the number of visible units is a multiple of it
UNITS = 4  # the number of hidden units is a multiple of it

_f32 = np.float32
_u32 = np.uint32


@njit(fastmath={"reassoc", "nsz", "contract"})
def _inputs(weights: Array, s: Array, t: Array, x: Array, y: Array) -> None:
    """Put W s into x and W t into y, four hidden units a pass."""
    n_hidden, n_visible = weights.shape
    for mu in range(0, n_hidden, UNITS):
        x0 = x1 = x2 = x3 = _f32(0)
        y0 = y1 = y2 = y3 = _f32(0)
        for i in range(n_visible):
            p, q = s[i], t[i]
            w0, w1 = weights[mu, i], weights[mu + 1, i]
            w2, w3 = weights[mu + 2, i], weights[mu + 3, i]
            x0 += w0 * p
            y0 += w0 * q
            x1 += w1 * p
            y1 += w1 * q
            x2 += w2 * p
            y2 += w2 * q
            x3 += w3 * p
            y3 += w3 * q
        x[mu], x[mu + 1], x[mu + 2], x[mu + 3] = x0, x1, x2, x3
        y[mu], y[mu + 1], y[mu + 2], y[mu + 3] = y0, y1, y2, y3


@njit(fastmath={"contract"})
def _sample_hidden(x: Array, generator: Array, word: Array, binary: bool, hidden: Array) -> None:
    """Draw hidden units given their inputs: ±1, or N(x, 1) in pairs by Box and Muller."""
    n_hidden = x.shape[0]
    for first in range(0, n_hidden, LANES):
        n = min(LANES, n_hidden - first)
        draw(generator, word)
        if binary:
            for k in range(n):
                hidden[first + k] = draw_sign(x[first + k], uniform(word[k]))
        else:
            for k in range(n // 2):
                mu = first + 2 * k
                # All 32 bits, because the smallest uniform bounds the tail: |λ - x| < 6.7.
                u = (_f32(word[k]) + _f32(1)) * _f32(2.0**-32)
                radius = np.sqrt(_f32(-2) * np.log(u))
                angle = _f32(2 * np.pi) * uniform(word[LANES // 2 + k])
                hidden[mu] = x[mu] + radius * np.cos(angle)
                hidden[mu + 1] = x[mu + 1] + radius * np.sin(angle)


@njit(fastmath={"contract"})
def _fields(weights: Array, biases: Array, hidden: Array, other: Array, f: Array, g: Array) -> None:
    """Put b + Wᵀ hidden into f and b + Wᵀ other into g, four hidden units a pass."""
    n_hidden, n_visible = weights.shape
    for i in range(n_visible):
        f[i] = biases[i]
        g[i] = biases[i]
    for mu in range(0, n_hidden, UNITS):
        l0, l1, l2, l3 = hidden[mu], hidden[mu + 1], hidden[mu + 2], hidden[mu + 3]
        m0, m1, m2, m3 = other[mu], other[mu + 1], other[mu + 2], other[mu + 3]
        for i in range(n_visible):
            w0, w1 = weights[mu, i], weights[mu + 1, i]
            w2, w3 = weights[mu + 2, i], weights[mu + 3, i]
            f[i] += (l0 * w0 + l1 * w1) + (l2 * w2 + l3 * w3)
            g[i] += (m0 * w0 + m1 * w1) + (m2 * w2 + m3 * w3)


@njit(fastmath={"contract"})
def _sample_visible(field: Array, generator: Array, words: Array, s: Array) -> None:
    n_visible = field.shape[0]
    for first in range(0, n_visible, LANES):
        draw(generator, words[first : first + LANES])
    for i in range(n_visible):
        s[i] = draw_sign(field[i], uniform(words[i]))


@njit
def _hold(held: Array, s: Array) -> None:
    for i in range(s.shape[0]):
        if held[i] != _f32(0):
            s[i] = held[i]


@parallel()
def gibbs_steps(
    spins: Array,
    held: Array,
    weights: Array,
    biases: Array,
    generators: Array,
    n_steps: int,
    binary: bool,
) -> None:
    """Advance every chain by ``n_steps`` of λ | s and s | λ, in place.

    Parameters
    ----------
    spins : (n_chains, N) float32
        ±1, or 0 for a unit that has no value yet. N is a multiple of ``LANES``, n_chains is even.
    held : (n_chains or 0, N) float32
        ±1 for units that keep this value, 0 for those that are sampled; no row when all are.
    weights : (N_h, N) float32
        N_h is a multiple of ``UNITS``.
    biases : (N,) float32
    generators : (n_chains, 4, LANES) uint32
        States of xoshiro128++.
    n_steps : int
    binary : bool
        Hidden units are ±1; else they are normal.
    """
    n_chains, n_visible = spins.shape
    n_hidden = weights.shape[0]
    for pair in prange(n_chains // 2):
        a = 2 * pair
        x = np.empty((2, n_hidden), dtype=np.float32)
        hidden = np.empty((2, n_hidden), dtype=np.float32)
        # Addresses that differ by a multiple of 4096 bytes stall each other: keep apart by more.
        fields = np.empty(2 * n_visible + LANES, dtype=np.float32)
        f, g = fields[:n_visible], fields[n_visible + LANES :]
        words = np.empty(n_visible, dtype=np.uint32)
        word = np.empty(LANES, dtype=np.uint32)
        # Numba aligns its own arrays, which saves a quarter of the time: states are written and
        # read again every 32 spins, and must not straddle cache lines.
        generator = generators[a : a + 2].copy()
        for _ in range(n_steps):
            _inputs(weights, spins[a], spins[a + 1], x[0], x[1])
            for k in range(2):
                _sample_hidden(x[k], generator[k], word, binary, hidden[k])
            _fields(weights, biases, hidden[0], hidden[1], f, g)
            _sample_visible(f, generator[0], words, spins[a])
            _sample_visible(g, generator[1], words, spins[a + 1])
            if held.shape[0] > 0:
                _hold(held[a], spins[a])
                _hold(held[a + 1], spins[a + 1])
        generators[a : a + 2] = generator
