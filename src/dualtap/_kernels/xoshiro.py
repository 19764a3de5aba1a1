"""The generator of every kernel: xoshiro128++, as many independent ones as there are lanes.

Lanes advance together, which the compiler turns into vector instructions. The state of one
stream must not be all zero.
"""

from typing import Any

import numpy as np
from numba import njit

Array = Any  # Numba infers the types; the docstrings say them

_u32 = np.uint32


@njit(inline="always")
def _rotate(x: Any, k: int) -> Any:
    return _u32(_u32(x << _u32(k)) | (x >> _u32(32 - k)))


@njit(inline="always")
def draw(generator: Array, word: Array) -> None:
    """Put one 32-bit word a lane into ``word``, (lanes,); ``generator`` is (4, lanes) uint32."""
    for lane in range(word.shape[0]):
        a, b = generator[0, lane], generator[1, lane]
        c, d = generator[2, lane], generator[3, lane]
        word[lane] = _u32(_rotate(_u32(a + d), 7) + a)
        t = _u32(b << _u32(9))
        c ^= a
        d ^= b
        generator[1, lane] = b ^ c
        generator[0, lane] = a ^ d
        generator[2, lane] = c ^ t
        generator[3, lane] = _rotate(d, 11)
