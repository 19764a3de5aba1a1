"""Whole samples, or whole sites, as words of 64 bits, and products made by counting these.

Counting the bits in which ±1 vectors differ is as exact as products of floats, and faster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.packed import PackedSpins
from dualtap.spins.protocol import F32
from dualtap.spins.storage import DenseSpins, Spins

_WORTH_GRAM, _WORTH_PRODUCTS = 2**18, 2**16
"""Products of floats below which a kernel is not worth a call."""


def words_of(spins: Spins, *, of_sites: bool) -> NDArray[np.uint64] | None:
    """Return every sample, or every site, as a row of words, padded with zeros.

    Parameters
    ----------
    spins : Spins
    of_sites : bool
        A row per site, a bit per sample; else a row per sample, a bit per site.

    Returns
    -------
    array of shape (n_rows, n_words) or None
        None if entries are missing, which take a second bit, or are in other processes.

    Examples
    --------
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.words import words_of
    >>> words_of(as_spins([[0, 0, 1], [1, 0, 1]]), of_sites=True).view("u1")[:, 0]
    array([ 64,   0, 192], dtype=uint8)
    """
    if not spins.complete:
        return None
    if isinstance(spins, DenseSpins):
        up = spins.values > 0
        return padded_words(np.ascontiguousarray(up.T) if of_sites else up)
    if isinstance(spins, PackedSpins):
        bits = (spins.transposed() if of_sites else spins).bits
        return _in_words(bits, spins.n_samples if of_sites else spins.n_spins)
    return None


def counted_gram(spins: Spins, *, of_sites: bool) -> F32 | None:
    """Return the products of all sites, or of all samples, with each other.

    None if entries are missing or in other processes, or too few to be worth it.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.words import counted_gram
    >>> counted_gram(as_spins(np.ones((2000, 100))), of_sites=True)[0, :2]
    array([2000., 2000.], dtype=float32)
    """
    n, length = (spins.n_spins, spins.n_samples) if of_sites else spins.shape
    words = words_of(spins, of_sites=of_sites) if n * n * length > _WORTH_GRAM else None
    if words is None:
        return None
    from dualtap._kernels.overlaps import overlaps_of_bits

    spins.begin_pass()
    G = np.empty((n, n), dtype=np.float32)
    overlaps_of_bits(words, length, G)
    return G


def counted_products(spins: Spins, Z: F32) -> F32 | None:
    """Return S Zᵀ for vectors Z of ±1, or None as :func:`counted_gram` does.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins import as_spins
    >>> from dualtap.spins.words import counted_products
    >>> Z = np.ones((1, 100), dtype=np.float32)
    >>> counted_products(as_spins(np.ones((2000, 100))), Z)[:2]
    array([[100.],
           [100.]], dtype=float32)
    """
    worth = len(Z) * spins.n_entries >= _WORTH_PRODUCTS
    words = words_of(spins, of_sites=False) if worth else None
    if words is None:
        return None
    from dualtap._kernels.overlaps import products_of_bits

    spins.begin_pass()
    result = np.empty((spins.n_samples, len(Z)), dtype=np.float32)
    products_of_bits(words, padded_words(Z > 0), spins.n_spins, result)
    return result


def padded_words(up: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return rows of truth values as words, padded with zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.spins.words import padded_words
    >>> padded_words(np.array([[True, False, True]])).view("u1")
    array([[160,   0,   0,   0,   0,   0,   0,   0]], dtype=uint8)
    """
    return _in_words(np.packbits(up, axis=1), up.shape[1])


def _in_words(bits: NDArray[np.uint8], n: int) -> NDArray[np.uint64]:
    """Return rows of bytes as words; bits after the first n of a row are cleared."""
    words = np.zeros((len(bits), -(-bits.shape[1] // 8)), dtype=np.uint64)
    words.view(np.uint8)[:, : bits.shape[1]] = bits
    if n % 8:
        words.view(np.uint8)[:, bits.shape[1] - 1] &= 256 - (256 >> n % 8)
    return words
