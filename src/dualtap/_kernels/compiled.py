"""How kernels are compiled: kept on disk where that can be, and without threads after a fork.

The threads of GNU OpenMP, which Numba uses, do not survive a fork: a child that calls for them is
ended, and a pool of such children waits for ever. So every parallel kernel is compiled a second
time without threads, for children of a process that had some. The results are the same.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any

from numba import njit


class _Threads:
    """Whether threads were started, and whether a fork has lost them."""

    started = False
    lost = False

    @classmethod
    def forked(cls) -> None:
        """Note that this process is a child."""
        cls.lost = cls.lost or cls.started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Threads.forked)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function and keeps the result, if there is a place.

    Parameters
    ----------
    **options
        As :func:`numba.njit` takes them.

    Examples
    --------
    >>> from dualtap._kernels.compiled import compiled
    >>> twice = compiled()(lambda x: 2 * x)
    >>> twice(3)
    6
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            kernel = njit(cache=True, **options)(function)
        except RuntimeError:  # neither this folder nor that of the user can be written to
            return njit(**options)(function)
        _tolerate_full_disks(kernel)
        return kernel

    return decorate


def _tolerate_full_disks(kernel: Any) -> None:
    cache = kernel._cache
    save = cache.save_overload

    def save_if_possible(*arguments: Any) -> None:
        with suppress(OSError):  # it will be compiled again
            save(*arguments)

    cache.save_overload = save_if_possible


class Parallel:
    """A kernel with threads, and the same without.

    Attributes
    ----------
    alone : callable
        The kernel without threads, which take milliseconds to wake up.

    Examples
    --------
    >>> import numpy as np
    >>> from numba import prange
    >>> from dualtap._kernels.compiled import parallel
    >>> @parallel()
    ... def fill(x):
    ...     for k in prange(len(x)):
    ...         x[k] = k
    >>> x = np.zeros(3)
    >>> fill(x)
    >>> x
    array([0., 1., 2.])
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.__doc__ = function.__doc__
        self._together = compiled(parallel=True, **options)(function)
        self.alone = compiled(**options)(_renamed(function))

    def __call__(self, *arguments: Any) -> Any:
        """Run with threads, unless a fork has lost them."""
        if _Threads.lost:
            return self.alone(*arguments)
        _Threads.started = True
        return self._together(*arguments)


def parallel(**options: Any) -> Callable[[Callable[..., Any]], Parallel]:
    """Return a decorator that compiles a function with ``prange``, with threads and without."""
    return lambda function: Parallel(function, options)


def _renamed(function: Any) -> Any:
    """Return the same function under another name: Numba keeps one result per name."""
    copy = FunctionType(
        function.__code__, function.__globals__, f"{function.__name__}_alone", None,
        function.__closure__,
    )  # fmt: skip
    copy.__qualname__ = f"{function.__qualname__}_alone"
    copy.__module__ = function.__module__
    return copy
