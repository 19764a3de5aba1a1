"""Whole samples, or whole sites, as words of 64 bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.packed import PackedSpins
from dualtap.spins.storage import DenseSpins, Spins


def words_of(spins: Spins, *, of_sites: bool) -> NDArray[np.uint64] | None:
    """Return every sample, or every site, as a row of words, padded with zeros.

    Parameters
    ----------
    spins : Spins
    of_sites : bool
        A row a site, a bit a sample; else a row a sample, a bit a site.

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
