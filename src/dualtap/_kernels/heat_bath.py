"""Sequential heat-bath sweeps with a strength per pattern, of any sign, zeros, and fields.

Laid out like :mod:`dualtap._kernels.glauber`: one lane per chain, every innermost loop over lanes,
a generator per chain. The local field is no integer here, so its odds are computed, in single
precision, where the other kernel looks them up.
"""

from typing import Any

import numpy as np
from numba import prange

from dualtap._kernels.compiled import parallel
from dualtap._kernels.glauber import add_overlaps
from dualtap._kernels.signs import draw_sign, uniform
from dualtap._kernels.xoshiro import draw

Array = Any  # Numba infers the types; the docstrings say them

_f32 = np.float32


@parallel()
def heat_bath_sweeps(
    spins: Array,
    patterns: Array,
    weights: Array,
    own: Array,
    biases: Array,
    generators: Array,
    n_sweeps: int,
) -> None:
    """Advance every chain by ``n_sweeps`` sweeps over the sites 0 … N-1, in place.

    Parameters
    ----------
    spins : (n_groups, N, lanes) int8, ±1
    patterns : (N, P) float32
        -1, 0 or +1.
    weights : (N, P) float32
        g_μ ζ_i^μ / N.
    own : (N,) float32
        Σ_μ w_i^μ ζ_i^μ, what a spin would contribute to its own field.
    biases : (N,) float32
        The fields b_i.
    generators : (n_groups, 4, lanes) uint32
        States of xoshiro128++.
    n_sweeps : int
    """
    n_groups, n_spins, lanes = spins.shape
    n_patterns = patterns.shape[1]
    for g in prange(n_groups):
        s = spins[g]
        generator = generators[g]
        # Integers below 2^24 are exact in float32: the overlaps never drift.
        overlaps = np.zeros((n_patterns, lanes), dtype=np.float32)
        for i in range(n_spins):
            for mu in range(n_patterns):
                for lane in range(lanes):
                    overlaps[mu, lane] += patterns[i, mu] * _f32(s[i, lane])
        field = np.empty(lanes, dtype=np.float32)
        word = np.empty(lanes, dtype=np.uint32)
        change = np.zeros(lanes, dtype=np.float32)
        j = 0
        for _ in range(n_sweeps):
            for i in range(n_spins):
                draw(generator, word)
                for lane in range(lanes):
                    field[lane] = biases[i] - own[i] * _f32(s[i, lane])
                add_overlaps(patterns, weights, overlaps, i, j, change, field)
                for lane in range(lanes):
                    new = draw_sign(field[lane], uniform(word[lane]))
                    change[lane] = new - _f32(s[i, lane])
                    s[i, lane] = np.int8(new)
                j = i
