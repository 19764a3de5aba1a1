"""Threads: small products use one, large ones what the user has set."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from dualtap import DualTAP, HopfieldModel
from dualtap._threads import SMALL_PRODUCT, blas_threads


def _blas_threads():
    controller = ThreadpoolController().select(user_api="blas")
    return {library["num_threads"] for library in controller.info()}


@pytest.mark.parametrize(("size", "expected"), [(SMALL_PRODUCT - 1, {1}), (SMALL_PRODUCT, {2})])
def test_small_products_use_one_thread(size, expected):
    with threadpool_limits(2):
        with blas_threads(size):
            assert _blas_threads() == expected
        assert _blas_threads() == {2}


def test_a_fit_does_not_depend_on_the_number_of_threads():
    teacher = HopfieldModel.random(400, 5, 2.0, random_state=0)
    X = teacher.sample(60, random_state=1)
    fits = []
    for n in (1, 2):
        with threadpool_limits(n):
            fits.append(DualTAP(random_state=0).fit(X))
    np.testing.assert_array_equal(fits[0].magnetizations_, fits[1].magnetizations_)
    assert fits[0].beta_ == fits[1].beta_
