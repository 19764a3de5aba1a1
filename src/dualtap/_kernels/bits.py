r"""Pattern bits given the coefficients of the samples: exact conditionals, one bit after another.

With :math:`E_a = e^{-2\theta_a}` at a site, turning bit μ from -1 to +1 changes the log-likelihood
of the site by

.. math:: 2h = -4\sum_{a: s_a = -1} x_{a\mu}
               - \sum_a \log\frac{1 + E^-_a e^{-2x_{a\mu}}}{1 + E^-_a e^{2x_{a\mu}}},

E⁻ being E without the bit. Exponentials of x are shared by all sites and E is updated by products,
so the inner loop has none; a missing entry has E = 0. A sample's factor in the ratio is within
e^{±4x}, so it is known beforehand how many of them a double holds, and the logarithm of their
product is taken only when it is full. Mostly it never is, and

.. math:: m = \tanh h = \frac{o - r}{o + r}, \quad o = e^{-4\sum_{s_a = -1} x_{a\mu}},

r being the product of the ratios. Rows that stand for several samples have the logarithm of each
ratio taken, times their weight.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from dualtap._kernels.compiled import compiled, parallel
from dualtap._kernels.fields import log_of_one_and

Array = Any  # Numba infers the types; the docstrings say them

_LANES = 8
BLOCK = 4 * _LANES
"""The number of samples is padded to a multiple of this, with E = 0."""

_f32 = np.float32

_LOG_2 = _f32(np.log(2))
_LARGE = _f32(np.exp(10))  # with x at most 5, four factors stay below e^80, which a float holds
_LARGEST = _f32(np.exp(20))  # odds beyond which a spin is as good as certain
_ROOM = 640.0  # logarithm of a product that is held in a double: a block of x = 5 has this
_FARTHEST = 690.0  # e^±690 is a double, and compared with e^±640 as good as infinity

_FAST = {"reassoc", "nsz", "contract", "arcp", "nnan"}


# The python error model looks for division by zero, and then nothing is done eight at a time.
@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _block_ratio(e: Array, without: Array, minus: Array, plus: Array) -> Any:
    """Return Π_a (1 + e·without·minus) / (1 + e·without·plus) of a block."""
    product = 1.0
    for a in range(_LANES):
        b, c, d = a + _LANES, a + 2 * _LANES, a + 3 * _LANES
        p, q = min(e[a] * without[a], _LARGE), min(e[b] * without[b], _LARGE)
        r, s = min(e[c] * without[c], _LARGE), min(e[d] * without[d], _LARGE)
        up = ((_f32(1) + p * minus[a]) * (_f32(1) + q * minus[b])) * (
            (_f32(1) + r * minus[c]) * (_f32(1) + s * minus[d])
        )
        down = ((_f32(1) + p * plus[a]) * (_f32(1) + q * plus[b])) * (
            (_f32(1) + r * plus[c]) * (_f32(1) + s * plus[d])
        )
        product *= np.float64(up / down)
    return product


@njit(inline="always")
def _logarithm(x: Any) -> Any:
    """Return log x in float32 for x > 0: of its exponent, and of what is left between 1 and 2."""
    bits = np.float32(x).view(np.int32)
    exponent = (bits >> np.int32(23)) - np.int32(127)
    rest = np.int32((bits & np.int32(0x7FFFFF)) | np.int32(0x3F800000)).view(np.float32)
    return _f32(exponent) * _LOG_2 + log_of_one_and(rest - _f32(1))


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _block_logarithm(e: Array, without: Array, minus: Array, plus: Array, weights: Array) -> Any:
    """Return Σ_a w_a log (1 + e·without·minus) / (1 + e·without·plus) of a block."""
    total = _f32(0)
    for a in range(BLOCK):
        p = min(e[a] * without[a], _LARGE)
        total += weights[a] * _logarithm((_f32(1) + p * minus[a]) / (_f32(1) + p * plus[a]))
    return np.float64(total)


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _weighted_mean(
    e: Array, without: Array, minus: Array, plus: Array, weights: Array, against: Any
) -> Any:
    """Return the conditional mean of a bit of samples with weights."""
    log_odds = -4.0 * against
    for first in range(0, e.shape[0], BLOCK):
        block = slice(first, first + BLOCK)
        log_odds -= _block_logarithm(
            e[block], without[block], minus[block], plus[block], weights[block]
        )
    return np.tanh(0.5 * log_odds)


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _mean(
    e: Array,
    without: Array,
    minus: Array,
    plus: Array,
    sizes: Array,
    weights: Array | None,
    against: Any,
) -> Any:
    """Return the conditional mean of a bit."""
    if weights is not None:  # a type of its own, so that the other loop is compiled without them
        return _weighted_mean(e, without, minus, plus, weights, against)
    log_odds = -4.0 * against
    product, room = 1.0, _ROOM
    for k in range(sizes.shape[0]):
        if sizes[k] > room:
            log_odds -= np.log(product)
            product, room = 1.0, _ROOM
        room -= sizes[k]
        block = slice(k * BLOCK, (k + 1) * BLOCK)
        product *= _block_ratio(e[block], without[block], minus[block], plus[block])
    odds = np.exp(min(max(log_odds, -_FARTHEST), _FARTHEST))
    return (odds - product) / (odds + product)


@parallel(fastmath=_FAST, error_model="numpy")
def sweep_bits(
    E: Array,
    minus: Array,
    plus: Array,
    sizes: Array,
    weights: Array | None,
    against: Array,
    visit: Array,
    uniform: Array,
    bits: Array,
    m: Array,
) -> None:
    """Set every bit in turn, site by site, and keep its conditional mean.

    Parameters
    ----------
    E : (sites, M) float32
        e^{-2θ}, 0 where a spin is missing; M is a multiple of ``BLOCK``. Changed in place.
    minus, plus : (P, M) float32
        e^{-2x} and e^{2x}, x being at most 5 in size.
    sizes : (P, M / BLOCK) float32
        4 Σ|x| over the samples of each block.
    weights : (M,) float32, or None
        Samples that each row stands for; None if each is one.
    against : (P, sites) float32
        Σ of x over the samples whose spin is -1.
    visit : (P, sites) bool
        Which bits are set; the others stay.
    uniform : (P, sites) float32
        In [0, 1): a bit becomes +1 if this is below its probability; 1/2 takes the likelier sign.
    bits : (P, sites) float32
        ±1; changed in place.
    m : (P, sites) float32
        Conditional mean of each bit at the moment it was set.
    """
    n_sites, n_samples = E.shape
    for i in prange(n_sites):
        e = E[i]
        for mu in range(bits.shape[0]):
            if not visit[mu, i]:
                continue
            old = bits[mu, i]
            without = plus[mu] if old > 0 else minus[mu]
            mean = _mean(e, without, minus[mu], plus[mu], sizes[mu], weights, against[mu, i])
            m[mu, i] = mean
            new = _f32(1) if uniform[mu, i] < 0.5 * (1 + mean) else _f32(-1)
            if new != old:
                bits[mu, i] = new
                for a in range(n_samples):
                    e[a] = e[a] * without[a] * without[a]


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _odds(bits: Array, s: Array, start: Any, minus: Array, plus: Array, e: Array) -> None:
    """Set e to e^{-2θ} at a site, by products; 0 where there is no spin."""
    for a in range(e.shape[0]):
        e[a] = start * abs(s[a])
    for mu in range(bits.shape[0]):
        factor = minus[mu] if bits[mu] > 0 else plus[mu]
        for a in range(e.shape[0]):
            e[a] *= factor[a]
    for a in range(e.shape[0]):
        e[a] = min(e[a], _LARGEST)


@compiled(fastmath=_FAST, error_model="numpy")
def redraw_bits(
    spins: Array,
    start: Array,
    x: Array,
    minus: Array,
    plus: Array,
    sizes: Array,
    weights: Array | None,
    sites: Array,
    which: Array,
    uniform: Array,
    bits: Array,
    overlaps: Array,
    m: Array,
) -> None:
    """Draw some bits of small data in turn, and keep their conditional means.

    Parameters
    ----------
    spins : (N, M) float32
        ±1 and 0 where one is missing; M is a multiple of ``BLOCK``.
    start : (N,) float32
        e^{-2b} of the fields.
    x, minus, plus : (P, M) float32
        Coefficients, e^{-2x} and e^{2x}. The sum of |x| over patterns is at most 40.
    sizes : (P, M / BLOCK) float32
        4 Σ|x| over the samples of each block.
    weights : (M,) float32, or None
        Samples that each row stands for; None if each is one.
    sites, which : (n,) int64
        Where the bits are, in the order of sites, and of which pattern.
    uniform : (n,) float32
        In [0, 1): a bit becomes +1 if this is below its probability.
    bits, m : (N, P) float32
        ±1, and conditional means. Changed in place.
    overlaps : (P, M) float32
        Σ_i ζ_i s_i, which follows the bits.
    """
    n_samples = spins.shape[1]
    e = np.empty(n_samples, dtype=np.float32)
    last = -1
    for k in range(sites.shape[0]):
        i, mu = sites[k], which[k]
        s = spins[i]
        if i != last:
            _odds(bits[i], s, start[i], minus, plus, e)
            last = i
        against = _f32(0)
        for a in range(n_samples):
            if weights is None:
                against += x[mu, a] * (abs(s[a]) - s[a])
            else:
                against += weights[a] * x[mu, a] * (abs(s[a]) - s[a])
        old = bits[i, mu]
        without = plus[mu] if old > 0 else minus[mu]
        toward = _f32(0.5) * against
        mean = _mean(e, without, minus[mu], plus[mu], sizes[mu], weights, toward)
        m[i, mu] = mean
        new = _f32(1) if uniform[k] < 0.5 * (1 + mean) else _f32(-1)
        if new != old:
            bits[i, mu] = new
            for a in range(n_samples):
                e[a] = e[a] * without[a] * without[a]
                overlaps[mu, a] += _f32(2) * new * s[a]
