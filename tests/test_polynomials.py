"""The exponential and the logarithm of the kernels are as exact as they say."""

import numba
import numpy as np

from dualtap._kernels.fields import _exponential, log_of_one_and


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
