"""Kernels: loops over words that start in numpy, and in numba once there is much to do.

Loading numba takes a second and 70 MB, and compiling a kernel for the first time on a machine takes
longer. A process that adds a few thousand numbers, or only passes messages on, never needs it. So
a kernel is two functions of one name: a numpy one, which runs while a process has little to do, and
a numba loop in another module, which is imported when there is more. Both give the same bits. A
kernel without a numpy function loads numba at its first call.

numba keeps compiled code beside the source file or in the user's cache folder. A package on a
read-only file system, used by somebody without a home folder, has neither, and numba refuses to
compile at all if it is told to keep the code. Kernels are then compiled without keeping them, which
takes several seconds in each process. `NUMBA_CACHE_DIR` names another
folder for the cache.
"""

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

LARGEST_IN_NUMPY = 1 << 15
"""Elements of one call; more would need temporary arrays of some size."""
_CALL = 1000  # elements that take as long as numpy's overhead of a call, about
_LITTLE = 1 << 22  # elements; about the time that it takes to load numba and some kernels
_KINDS: dict[Any, tuple[Any, int]] = {
    npt.NDArray[np.uint64]: (np.dtype(np.uint64), 1),
    npt.NDArray[np.int64]: (np.dtype(np.int64), 1),
    npt.NDArray[np.float64]: (np.dtype(np.float64), 2),
}
"""Of an annotation, what its loop takes: type and dimensions."""


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function for one signature, at its first call.

    The GIL is released while the function runs. Loading all kernels at import would take seconds,
    also in a process that needs three of them.
    """

    def waiting(function: Callable[..., Any]) -> Any:
        return _Loop(function, signature)

    return waiting


def in_numpy_first(loops: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of a numpy function whose loop has the same name in another module.

    Args:
        loops: That module.
    """

    def waiting(function: Callable[..., Any]) -> Any:
        return _Kernel(function.__module__, function.__name__, loops, function)

    return waiting


def loop(module: str, name: str, loops: str) -> Any:
    """Return a kernel that has no numpy function.

    Args:
        module: The module that calls it by its name.
        name: Its name there, and in the other module.
        loops: The module of the loop.
    """
    return _Kernel(module, name, loops, None)


KERNELS: dict[tuple[str, str], "_Kernel"] = {}
"""All kernels of the modules that are loaded, by module and name, before and after their loops."""


class _Kernel:
    """A kernel that looks, at each call, whether there is enough to do for its loop."""

    done = 0  # elements that all kernels of this process have done in numpy, and calls

    def __init__(
        self, module: str, name: str, loops: str, in_numpy: Callable[..., Any] | None
    ) -> None:
        self._module, self._name, self._loops, self.in_numpy = module, name, loops, in_numpy
        self._kinds: list[tuple[Any, int] | None] = []
        KERNELS[module, name] = self
        if in_numpy is not None:
            functools.update_wrapper(self, in_numpy)
            self._kinds = [_KINDS.get(a) for a in in_numpy.__annotations__.values()]

    def __call__(self, *arguments: Any) -> Any:
        size = arguments[0].size
        if self.in_numpy is not None and size <= LARGEST_IN_NUMPY and _Kernel.done <= _LITTLE:
            _Kernel.done += size + _CALL
            return self.interpreted(*arguments)
        return self.compiled()(*arguments)

    def interpreted(self, *arguments: Any) -> Any:
        """Run the numpy function.

        Raises:
            TypeError: Arrays that the loop would not take; numpy would convert them.
        """
        for kind, given in zip(self._kinds, arguments, strict=False):
            if kind is not None and (
                (given.dtype, given.ndim) != kind or not given.flags.c_contiguous
            ):
                raise TypeError(
                    f"No matching definition: {self._name} takes a contiguous array of {kind[0]}, "
                    f"not {given.dtype} of shape {given.shape}"
                )
        return self.in_numpy(*arguments)  # type: ignore[misc]

    def compiled(self) -> Any:
        """Return the loop, compiled. Callers that name the module find it from now on."""
        found = getattr(importlib.import_module(self._loops), self._name)
        found = found.compiled() if isinstance(found, _Loop) else found
        setattr(sys.modules[self._module], self._name, found)
        return found


class _Loop:
    """A loop that is compiled, or taken from the cache, when it is first called."""

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
        import numba  # see above

        try:
            return numba.njit([self._signature], cache=True, nogil=True)(self._function)
        except (RuntimeError, OSError):
            # There is no place for the cache, or it is full. An error of the function itself
            # comes again.
            return numba.njit([self._signature], nogil=True)(self._function)
