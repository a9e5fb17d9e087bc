"""Compilation of numba kernels: once per machine where a cache can be written, else per process.

numba keeps compiled code beside the source file or in the user's cache folder. A package on a
read-only file system, used by somebody without a home folder, has neither, and numba refuses to
compile at all if it is told to keep the code. Kernels are then compiled without keeping them, which
takes several seconds in each process. `NUMBA_CACHE_DIR` names another
folder for the cache.
"""

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numba


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function for one signature, at its first call.

    The GIL is released while the function runs. Loading all kernels at import would take seconds,
    also in a process that needs three of them.
    """

    def waiting(function: Callable[..., Any]) -> Any:
        return _Kernel(function, signature)

    return waiting


class _Kernel:
    """A kernel that is compiled, or taken from the cache, when it is first called."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self._function, self._signature = function, signature
        self._lock = threading.Lock()
        self._compiled: Any = None
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compiled())(*arguments)

    def compiled(self) -> Any:
        """Return numba's function, compiled. Callers that name the module find it from now on."""
        with self._lock:
            self._compiled = self._compiled or self._compile()
        module = sys.modules[self._function.__module__].__dict__
        if module.get(self._function.__name__) is self:
            module[self._function.__name__] = self._compiled
        return self._compiled

    def _compile(self) -> Any:
        try:
            return numba.njit([self._signature], cache=True, nogil=True)(self._function)
        except (RuntimeError, OSError):
            # There is no place for the cache, or it is full. An error of the function itself
            # comes again.
            return numba.njit([self._signature], nogil=True)(self._function)
