r"""Pattern bits given the coefficients of the samples: exact conditionals, one bit after another.

With :math:`E_a = e^{-2\theta_a}` at a site, turning bit μ from -1 to +1 changes the log-likelihood
of the site by

.. math:: 2h = -4\sum_{a: s_a = -1} x_{a\mu}
               - \sum_a \log\frac{1 + E^-_a e^{-2x_{a\mu}}}{1 + E^-_a e^{2x_{a\mu}}},

E⁻ being E without the bit. Exponentials of x are shared by all sites and E is updated by products,
so the inner loop has none; a missing entry has E = 0.
"""

from typing import Any

import numpy as np
from numba import njit, prange

Array = Any  # Numba infers the types; the docstrings say them

LANES = 16
BLOCK = 4 * LANES
"""The number of samples is padded to a multiple of this, with E = 0."""

_f32 = np.float32

_LARGE = _f32(np.exp(10))  # with x at most 5, four factors stay below e^80, which a float holds
_ROUNDS = 8  # such products that a double holds


@njit(fastmath={"reassoc", "nsz", "contract", "arcp", "nnan"})
def _log_ratio(e: Array, without: Array, minus: Array, plus: Array, product: Array) -> Any:
    """Return Σ_a log (1 + e·without·minus) / (1 + e·without·plus)."""
    total = 0.0
    pending = 0
    for lane in range(LANES):
        product[lane] = 1.0
    for first in range(0, e.shape[0], BLOCK):
        for lane in range(LANES):
            a, b = first + lane, first + LANES + lane
            c, d = b + LANES, b + 2 * LANES
            p, q = min(e[a] * without[a], _LARGE), min(e[b] * without[b], _LARGE)
            r, s = min(e[c] * without[c], _LARGE), min(e[d] * without[d], _LARGE)
            up = ((_f32(1) + p * minus[a]) * (_f32(1) + q * minus[b])) * (
                (_f32(1) + r * minus[c]) * (_f32(1) + s * minus[d])
            )
            down = ((_f32(1) + p * plus[a]) * (_f32(1) + q * plus[b])) * (
                (_f32(1) + r * plus[c]) * (_f32(1) + s * plus[d])
            )
            product[lane] *= np.float64(up / down)
        pending += 1
        if pending == _ROUNDS:
            pending = 0
            for lane in range(LANES):
                total += np.log(product[lane])
                product[lane] = 1.0
    for lane in range(LANES):
        total += np.log(product[lane])
    return total


def _sweep_bits(
    E: Array, minus: Array, plus: Array, against: Array, bits: Array, uniform: Array, m: Array
) -> None:
    """Set every bit in turn, site by site, and keep its conditional mean.

    Parameters
    ----------
    E : (sites, M) float32
        e^{-2θ}, 0 where a spin is missing; M is a multiple of ``BLOCK``. Changed in place.
    minus, plus : (P, M) float32
        e^{-2x} and e^{2x}, x being at most 5 in size.
    against : (P, sites) float32
        Σ of x over the samples whose spin is -1.
    bits : (P, sites) float32
        ±1; changed in place.
    uniform : (P, sites) float32
        In [0, 1): a bit becomes +1 if this is below its probability; 1/2 takes the likelier sign.
    m : (P, sites) float32
        Conditional mean of each bit at the moment it was set.
    """
    n_sites, n_samples = E.shape
    for i in prange(n_sites):
        e = E[i]
        product = np.empty(LANES)
        for mu in range(bits.shape[0]):
            old = bits[mu, i]
            without = plus[mu] if old > 0 else minus[mu]
            ratio = _log_ratio(e, without, minus[mu], plus[mu], product)
            mean = np.tanh(-2.0 * against[mu, i] - 0.5 * ratio)
            m[mu, i] = mean
            new = _f32(1) if uniform[mu, i] < 0.5 * (1 + mean) else _f32(-1)
            if new != old:
                bits[mu, i] = new
                for a in range(n_samples):
                    e[a] = e[a] * without[a] * without[a]


_FAST = {"reassoc", "nsz", "contract", "arcp", "nnan"}
sweep_bits = njit(parallel=True, cache=True, fastmath=_FAST)(_sweep_bits)
# Waking threads takes milliseconds: for small work, without.
sweep_bits_alone = njit(cache=True, fastmath=_FAST)(_sweep_bits)
