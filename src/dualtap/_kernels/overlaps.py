"""Products of ±1 vectors by counting the bits in which they differ."""

from typing import Any

import numpy as np
from numba import njit, prange, types
from numba.extending import intrinsic

from dualtap._kernels.compiled import parallel

Array = Any  # Numba infers the types; the docstrings say them


@intrinsic
def _n_ones(typing_context: Any, word: Any) -> Any:
    """Return how many bits of a 64-bit word are set, by the machine's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit
def _product(a: Array, b: Array, n_bits: int) -> Any:
    different = np.uint64(0)
    for w in range(a.shape[0]):
        different += _n_ones(a[w] ^ b[w])
    return np.float32(n_bits - 2 * np.int64(different))


@parallel()
def overlaps_of_bits(words: Array, n_bits: int, result: Array) -> None:
    """Fill in the products of all vectors with each other.

    Parameters
    ----------
    words : (n, k) uint64
        A vector per row, a bit per entry, the same bits in the padding of all.
    n_bits : int
        Entries of a vector.
    result : (n, n) float32
    """
    for i in prange(len(words)):
        for j in range(i + 1):
            result[i, j] = result[j, i] = _product(words[i], words[j], n_bits)


@parallel()
def products_of_bits(a: Array, b: Array, n_bits: int, result: Array) -> None:
    """Fill in the products of every vector of one set with every one of another.

    Parameters
    ----------
    a, b : (n, k) and (m, k) uint64
    n_bits : int
    result : (n, m) float32
    """
    for i in prange(len(a)):
        for j in range(len(b)):
            result[i, j] = _product(a[i], b[j], n_bits)
