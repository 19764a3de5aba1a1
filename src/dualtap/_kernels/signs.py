"""A spin drawn from its field, in single precision; every function vectorises over lanes."""

from typing import Any

import numpy as np
from numba import njit

_f32 = np.float32
_u32 = np.uint32


@njit(inline="always")
def uniform(word: Any) -> Any:
    """Return a float32 between 0 and 1, at the middle of one of 2^23 intervals."""
    return (_f32(np.int32(word >> _u32(9))) + _f32(0.5)) * _f32(2.0**-23)


@njit(inline="always")
def _halved(t: Any) -> Any:
    """Return 2^-t in float32 for t ≥ 0, to 3e-7; it vectorises, unlike the functions of libm.

    2^-n times the polynomial of degree 5 with the least relative error, 8e-8, on |t - n| ≤ 1/2.
    """
    t = min(t, _f32(115))
    n = np.int32(t + _f32(0.5))
    r = t - _f32(n)
    p = _f32(-0.00132670)
    p = p * r + _f32(0.00967546)
    p = p * r + _f32(-0.05550743)
    p = p * r + _f32(0.24022122)
    p = p * r + _f32(-0.69314695)
    p = p * r + _f32(1.00000007)
    exponent = np.int32((np.int32(127) - n) << np.int32(23))
    return p * exponent.view(np.float32)


@njit(inline="always")
def draw_sign(field: Any, uniform: Any) -> Any:
    """Return the sign of the field with probability 1 / (1 + e^{-2 |field|}), else the other."""
    aligned = _f32(1) if field >= _f32(0) else _f32(-1)
    odds = _halved(abs(field) * _f32(2 / np.log(2)))
    return aligned if uniform * (_f32(1) + odds) < _f32(1) else -aligned
