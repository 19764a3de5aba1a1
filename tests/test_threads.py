"""Threads: tasks run side by side, BLAS does not, and the answer does not depend on how many."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from dualtap import DualTAP, HopfieldModel
from dualtap._threads import n_threads, parallel_map
from dualtap.published.deflate import GROUP


def _blas_threads():
    controller = ThreadpoolController().select(user_api="blas")
    return {library["num_threads"] for library in controller.info()}


@pytest.mark.parametrize("n", [1, 2])
def test_blas_has_one_thread_inside_and_what_it_had_outside(n):
    with threadpool_limits(n):
        assert n_threads() == n
        assert parallel_map(lambda _: _blas_threads(), range(3)) == [{1}] * 3
        assert _blas_threads() == {n}


def test_as_many_tasks_at_once_as_blas_may_use_threads():
    together = threading.Barrier(2, timeout=120)
    with threadpool_limits(2):
        parallel_map(lambda _: together.wait(), range(2))  # breaks if one waits for the other


def test_an_error_in_a_task_is_raised():
    with pytest.raises(ZeroDivisionError):
        parallel_map(lambda x: 1 / x, [1, 0])


def test_a_fit_does_not_depend_on_the_number_of_threads():
    teacher = HopfieldModel.random(400, 5, 2.0, random_state=0)
    X = teacher.sample(60, random_state=1)
    fits = []
    for n in (1, 2):
        with threadpool_limits(n):  # more students than one group holds
            fits.append(DualTAP(n_students=2 * GROUP + 3, random_state=0).fit(X))
    np.testing.assert_array_equal(fits[0].magnetizations_, fits[1].magnetizations_)
    assert fits[0].beta_ == fits[1].beta_
