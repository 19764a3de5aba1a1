"""Overlaps of samples with patterns."""

from __future__ import annotations

import numpy as np

from dualtap.spins import DenseSpins
from dualtap.spins.blocks import F32, Blocks
from dualtap.spins.words import padded_words, words_of

_WORTH_COUNTING = 2**16  # products of floats below which the kernel is not worth a call


def products_with(blocks: Blocks, Z: F32) -> F32:
    """Return S Zᵀ for ±1 patterns Z, shape (n_samples, n_patterns).

    Samples at hand as bytes are made bits, and those that differ counted: as exact as products of
    floats, and several times as fast.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.subspace.overlaps import products_with
    >>> from dualtap.spins.blocks import Blocks
    >>> blocks = Blocks(as_spins(np.array([[1, 1, -1], [1, 1, 1]])))
    >>> products_with(blocks, np.array([[1, 1, 1]], dtype=np.float32))
    array([[1.],
           [3.]], dtype=float32)
    """
    n_products = len(Z) * blocks.n_samples * blocks.n_spins
    at_hand = isinstance(blocks.spins, DenseSpins) and blocks.plain
    if not at_hand or n_products < _WORTH_COUNTING:
        return blocks.dot(Z)
    samples = words_of(blocks.spins, of_sites=False)
    if samples is None:
        return blocks.dot(Z)
    from dualtap._kernels.overlaps import products_of_bits

    blocks.spins.begin_pass()
    result = np.empty((blocks.n_samples, len(Z)), dtype=np.float32)
    products_of_bits(samples, padded_words(Z > 0), blocks.n_spins, result)
    return result


def overlaps_of(blocks: Blocks, Z: F32) -> F32:
    """Return the overlaps of every sample with patterns, shape (n_samples, n_patterns)."""
    result: F32 = (products_with(blocks, Z) / blocks.n_observed[:, None]).astype(np.float32)
    return result
