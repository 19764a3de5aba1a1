"""Block Gibbs sampling of a ±1 RBM, every chain on its own: hidden units, then visible units.

A chain makes all its steps before the next one starts, so that it stays in the first cache while
the weights stay in the second. Every chain owns its generator: its history depends neither on
its thread nor on the number of threads.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from dualtap._kernels.xoshiro import draw

Array = Any  # Numba infers the types; the docstrings say them

LANES = 32  # streams of a chain; the number of visible units is a multiple of it

_f32 = np.float32
_u32 = np.uint32


@njit(inline="always")
def _uniform(word: Any) -> Any:
    """Return a float32 between 0 and 1, at the middle of one of 2^23 intervals."""
    return (_f32(np.int32(word >> _u32(9))) + _f32(0.5)) * _f32(2.0**-23)


@njit(inline="always")
def _exp(x: Any) -> Any:
    """Return e^x in float32 to 2e-7, |x| ≤ 80: 2^n times a polynomial; vectorises, unlike libm."""
    x = min(max(x, _f32(-80)), _f32(80))
    n = np.floor(x * _f32(1.4426950408889634) + _f32(0.5))
    # ln 2 in two parts: n times the first is exact.
    r = (x - n * _f32(0.693359375)) + n * _f32(2.12194440e-4)
    p = _f32(1.9875691500e-4)
    p = p * r + _f32(1.3981999507e-3)
    p = p * r + _f32(8.3334519073e-3)
    p = p * r + _f32(4.1665795894e-2)
    p = p * r + _f32(1.6666665459e-1)
    p = p * r + _f32(5.0000001201e-1)
    p = p * r * r + r + _f32(1)
    exponent = np.int32((np.int32(n) + np.int32(127)) << np.int32(23))
    return p * exponent.view(np.float32)


@njit(inline="always")
def _up(field: Any, uniform: Any) -> Any:
    """Return +1 with probability 1 / (1 + e^{-2 field}), else -1."""
    return _f32(1) if uniform * (_f32(1) + _exp(_f32(-2) * field)) < _f32(1) else _f32(-1)


@njit(fastmath={"reassoc", "nsz", "contract"})
def _dot(a: Array, b: Array) -> Any:
    total = _f32(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit
def _sample_hidden(
    x: Array, generator: Array, word: Array, second: Array, binary: bool, hidden: Array
) -> None:
    """Draw hidden units given their inputs x = W s: ±1, or N(x, 1) by Box and Muller."""
    n_hidden = x.shape[0]
    for first in range(0, n_hidden, LANES):
        last = min(first + LANES, n_hidden)
        draw(generator, word)
        if binary:
            for mu in range(first, last):
                hidden[mu] = _up(x[mu], _uniform(word[mu - first]))
        else:
            draw(generator, second)
            for mu in range(first, last):
                # 32 bits, because the smallest uniform bounds the tail.
                u = (np.float64(word[mu - first]) + 0.5) * 2.0**-32
                radius = np.sqrt(_f32(-2) * _f32(np.log(_f32(u))))
                angle = _f32(2 * np.pi) * _uniform(second[mu - first])
                hidden[mu] = x[mu] + radius * np.cos(angle)


@njit(fastmath={"contract"})
def _fields(weights: Array, biases: Array, hidden: Array, field: Array) -> None:
    """B + Wᵀλ; four hidden units a pass, to load and store the fields less often."""
    n_hidden, n_visible = weights.shape
    for i in range(n_visible):
        field[i] = biases[i]
    mu = 0
    while mu + 4 <= n_hidden:
        l0, l1, l2, l3 = hidden[mu], hidden[mu + 1], hidden[mu + 2], hidden[mu + 3]
        w0, w1, w2, w3 = weights[mu], weights[mu + 1], weights[mu + 2], weights[mu + 3]
        for i in range(n_visible):
            field[i] += (l0 * w0[i] + l1 * w1[i]) + (l2 * w2[i] + l3 * w3[i])
        mu += 4
    while mu < n_hidden:
        l0, w0 = hidden[mu], weights[mu]
        for i in range(n_visible):
            field[i] += l0 * w0[i]
        mu += 1


@njit
def _sample_visible(field: Array, generator: Array, words: Array, s: Array) -> None:
    n_visible = field.shape[0]
    for first in range(0, n_visible, LANES):
        draw(generator, words[first : first + LANES])
    for i in range(n_visible):
        s[i] = _up(field[i], _uniform(words[i]))


@njit(parallel=True, cache=True)
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
        ±1, or 0 for a unit that has no value yet; N is a multiple of ``LANES``.
    held : (n_chains or 0, N) float32
        ±1 for units that keep this value, 0 for those that are sampled; no row when all are.
    weights : (N_h, N) float32
    biases : (N,) float32
    generators : (n_chains, 4, LANES) uint32
        States of xoshiro128++.
    n_steps : int
    binary : bool
        Hidden units are ±1; else they are normal.
    """
    n_chains, n_visible = spins.shape
    n_hidden = weights.shape[0]
    clamped = held.shape[0] > 0
    for c in prange(n_chains):
        s, generator = spins[c], generators[c]
        x = np.empty(n_hidden, dtype=np.float32)
        hidden = np.empty(n_hidden, dtype=np.float32)
        field = np.empty(n_visible, dtype=np.float32)
        words = np.empty(n_visible, dtype=np.uint32)
        word = np.empty(LANES, dtype=np.uint32)
        second = np.empty(LANES, dtype=np.uint32)
        for _ in range(n_steps):
            for mu in range(n_hidden):
                x[mu] = _dot(weights[mu], s)
            _sample_hidden(x, generator, word, second, binary, hidden)
            _fields(weights, biases, hidden, field)
            _sample_visible(field, generator, words, s)
            if clamped:
                for i in range(n_visible):
                    if held[c, i] != _f32(0):
                        s[i] = held[c, i]
