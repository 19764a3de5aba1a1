"""Threads: a task each, and one BLAS thread inside.

The threads of a BLAS product meet at barriers many times a millisecond. On a busy machine every
meeting may wait for a time slice and the product slows down tenfold. Independent tasks never
meet, and what they compute does not depend on how many of them run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


@lru_cache(maxsize=1)
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def n_threads() -> int:
    """Return the number of threads that BLAS may use: what the user has set or the machine has.

    Examples
    --------
    >>> from dualtap._threads import n_threads
    >>> n_threads() >= 1
    True
    """
    return max((library.num_threads for library in _blas().lib_controllers), default=1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which products do not depend on the number of threads.

    Examples
    --------
    >>> from dualtap._threads import n_threads, one_blas_thread
    >>> with one_blas_thread():
    ...     n_threads()
    1
    """
    limited: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limited


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
