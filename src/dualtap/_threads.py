"""How many threads a matrix product deserves."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL_PRODUCT = 2**26
"""Multiplications below which a second BLAS thread gains little and can cost much.

Threads of a small product meet at a barrier every fraction of a millisecond. On a busy machine
each meeting may wait for a time slice, and a fit slows down twentyfold.
"""


@lru_cache(maxsize=1)
def _controller() -> Any:
    return ThreadpoolController()


def blas_threads(n_multiplications: int) -> AbstractContextManager[Any]:
    """Return a context in which products of this size use a sensible number of threads.

    Large products keep whatever the user has set (``OMP_NUM_THREADS`` and the like).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._threads import blas_threads
    >>> with blas_threads(1000):
    ...     product = np.eye(10) @ np.eye(10)
    """
    if n_multiplications >= SMALL_PRODUCT:
        return nullcontext()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
