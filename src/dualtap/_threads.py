"""Threads: a task each, and one BLAS thread inside.

The threads of a BLAS product meet at barriers many times a millisecond. On a busy machine every
meeting may wait for a time slice and the product slows down tenfold. Independent tasks never
meet, and what they compute does not depend on how many of them run at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, Final, TypeVar

from threadpoolctl import ThreadpoolController

FALSE_ALARMS: Final[dict[str, Any]] = {"invalid": "ignore"}
"""For :func:`numpy.errstate`: flags that products of finite numbers may raise. On AVX-512, sgemv of
OpenBLAS 0.3.31 with five columns reads stack that it has not written. The product is right, but
what lies there may be a signalling NaN."""

T = TypeVar("T")
R = TypeVar("R")


@lru_cache(maxsize=1)
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def _numbers() -> list[int]:
    """Return the number of threads of each BLAS library."""
    return [library.num_threads for library in _blas().lib_controllers]


def n_threads() -> int:
    """Return the number of threads that BLAS may use: what the user has set or the machine has.

    Examples
    --------
    >>> from dualtap._threads import n_threads
    >>> n_threads() >= 1
    True
    """
    return max(_numbers(), default=1)


class _OneThread:
    """A limit that all threads of this process share: the first sets it, the last lifts it.

    OpenBLAS sometimes ignores for a while that the limit is lifted (seen where the first fits of a
    process run in several threads). Who comes next would then take one thread for what the user
    had, so the first limit is kept until it has been lifted.
    """

    lock = Lock()
    depth = 0
    limiter: Any = None
    owed: list[int] | None = None

    @classmethod
    def enter(cls) -> None:
        with cls.lock:
            if not cls.depth:
                found, limiter = _numbers(), _blas().limit(limits=1)
                limiter.__enter__()
                if cls.owed is None or set(found) != {1}:
                    cls.limiter, cls.owed = limiter, found
            cls.depth += 1

    @classmethod
    def leave(cls) -> None:
        with cls.lock:
            cls.depth -= 1
            if not cls.depth:
                cls.limiter.__exit__(None, None, None)
                if _numbers() == cls.owed:
                    cls.owed = None

    @classmethod
    def forked(cls) -> None:
        """Forget the other threads of the parent, which do not live here."""
        cls.lock = Lock()
        if cls.depth:
            cls.depth, cls.owed = 0, None
            cls.limiter.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OneThread.forked)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which products do not depend on the number of threads.

    Examples
    --------
    >>> from dualtap._threads import n_threads, one_blas_thread
    >>> with one_blas_thread():
    ...     n_threads()
    1
    """
    _OneThread.enter()
    try:
        yield
    finally:
        _OneThread.leave()


def parallel_map(
    function: Callable[[T], R], tasks: Iterable[T], workers: int | None = None
) -> list[R]:
    """Apply ``function`` to every task, a thread each, with one BLAS thread in all of them.

    As many run at once as BLAS may use threads (``OMP_NUM_THREADS`` and the like), unless
    ``workers`` says how many. Worth it where the time goes into NumPy, which lets go of the
    interpreter.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._threads import parallel_map
    >>> parallel_map(lambda n: int(np.trace(np.eye(n) @ np.eye(n))), [1, 2, 3])
    [1, 2, 3]
    """
    todo = list(tasks)
    n_now = n_threads()
    n_workers = min(n_now if workers is None else workers, len(todo))
    if n_now == n_workers == 1:  # setting the number takes longer than a small task
        return [function(task) for task in todo]
    with one_blas_thread():
        if n_workers <= 1:
            return [function(task) for task in todo]
        with ThreadPoolExecutor(n_workers) as pool:
            return list(pool.map(function, todo))
