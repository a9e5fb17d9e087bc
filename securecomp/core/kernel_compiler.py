"""Compilation of numba kernels: once per machine where a cache can be written, else per process.

numba keeps compiled code beside the source file or in the user's cache folder. A package on a
read-only file system, used by somebody without a home folder, has neither, and numba refuses to
compile at all if it is told to keep the code. Kernels are then compiled without keeping them, which
takes several seconds at the first import in each process. `NUMBA_CACHE_DIR` names another
folder for the cache.
"""

from collections.abc import Callable
from typing import Any

import numba


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function for one signature.

    The GIL is released while the function runs.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit([signature], cache=True, nogil=True)(function)
        except (RuntimeError, OSError):
            # There is no place for the cache, or it is full. An error of the function itself
            # comes again.
            return numba.njit([signature], nogil=True)(function)

    return compiled
