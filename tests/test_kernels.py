"""Kernels: polynomials are as exact as they say, and cached code computes the same numbers."""

import os
import subprocess
import sys

import numba
import numpy as np

from dualtap._kernels.fields import _exponential, log_of_one_and

SCRIPT = """
import numpy as np
from dualtap._kernels.fields import log_likelihood_of, statistics_of
from dualtap.spins import as_spins
from dualtap.spins.blocks import Blocks
from dualtap.subspace.bits import sweep

rng = np.random.default_rng(0)
M, N = 80, 60
s = rng.choice(np.array([-1, 1], np.int8), size=(M, N))
f = rng.normal(size=(M, N)).astype(np.float32)
own, b = rng.random((2, N)).astype(np.float32)
w = np.ones(M, np.float32)
print(log_likelihood_of(s, f, own, b, w).hex())
sums = np.zeros((3, N))
print(statistics_of(s, f, own, b, w, sums).hex(), sums.tobytes().hex())
X = rng.normal(size=(M, 3)).astype(np.float32)
Z = np.sign(rng.normal(size=(3, N))).astype(np.float32)
print(sweep(Blocks(as_spins(s)), Z, X, np.zeros(N, np.float32))[1].tobytes().hex())
"""


def of_array(function):
    @numba.vectorize(["float32(float32)"])
    def result(x):
        return function(x)

    return result


def test_exponential():
    x = np.linspace(0, 79, 1_000_001, dtype=np.float32)
    exact = np.exp(-x.astype(np.float64))
    # Single precision rounds the exponent as well, by a share of it.
    assert (np.abs(of_array(_exponential)(x) / exact - 1) < 2e-7 + 1.2e-7 * x).all()


def test_logarithm():
    e = np.linspace(0, 1, 100_001, dtype=np.float32)
    exact = np.log1p(e.astype(np.float64))
    assert np.abs(of_array(log_of_one_and)(e) - exact).max() < 3e-7


def test_compiled_code_is_that_of_the_cache(tmp_path):
    """A function that is linked, not inlined, is optimised differently in the two."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT]
    compiled, cached = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert compiled
    assert compiled == cached
