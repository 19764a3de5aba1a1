"""The random numbers of block Gibbs sampling alone, for chains that move on another device."""

from typing import Any

import numpy as np
from numba import prange

from dualtap._kernels.compiled import parallel
from dualtap._kernels.gibbs import LANES, _sample_hidden
from dualtap._kernels.signs import uniform
from dualtap._kernels.xoshiro import draw

Array = Any  # Numba infers the types; the docstrings say them


@parallel()
def gibbs_noise(hidden: Array, visible: Array, generators: Array, binary: bool) -> None:
    """Fill in what one of ``gibbs_steps`` would draw, and leave generators where it would.

    Parameters
    ----------
    hidden : (n_chains, N_h) float32
        Receives standard normal numbers, or uniform ones if ``binary``. N_h is a multiple of
        ``UNITS``.
    visible : (n_chains, N) float32
        Receives uniform numbers. N is a multiple of ``LANES``.
    generators : (n_chains, 4, LANES) uint32
        States of xoshiro128++.
    binary : bool
        Hidden units are ±1; else they are normal.
    """
    n_chains, n_visible = visible.shape
    n_hidden = hidden.shape[1]
    for a in prange(n_chains):
        word = np.empty(LANES, dtype=np.uint32)
        zero = np.zeros(n_hidden, dtype=np.float32)
        if binary:
            for first in range(0, n_hidden, LANES):
                draw(generators[a], word)
                for k in range(min(LANES, n_hidden - first)):
                    hidden[a, first + k] = uniform(word[k])
        else:
            _sample_hidden(zero, generators[a], word, False, hidden[a])
        for first in range(0, n_visible, LANES):
            draw(generators[a], word)
            for k in range(LANES):
                visible[a, first + k] = uniform(word[k])
