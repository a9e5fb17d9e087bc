"""Large buffers, used again instead of allocated again.

A fresh page costs several times what AES does to it: the kernel clears it, and it is not in any
cache. A buffer taken here goes back by itself when the last view of it is gone, so no caller has
to return it and none can be handed out twice.
"""

import sys
import threading

import numpy as np
import numpy.typing as npt

SMALLEST = 1 << 18
"""Below this many bytes an ordinary allocation is as good."""
LARGEST_POOL = 1 << 28
"""Bytes that are kept at most; more is allocated, and given back to the system."""

_pool: list[npt.NDArray[np.uint8]] = []
_lock = threading.Lock()


def _references(index: int) -> int:
    return sys.getrefcount(_pool[index])


def take(size: int) -> npt.NDArray[np.uint8]:
    """Return `size` bytes with arbitrary contents, aligned to 16."""
    if size < SMALLEST:
        return np.empty(size, np.uint8)
    with _lock:
        for index in range(len(_pool)):
            # No view is alive: the pool's list and the call hold the only references.
            if size <= _pool[index].size <= 2 * size and _references(index) == _FREE:
                return _pool[index][:size]
        buffer = np.empty(size, np.uint8)
        if size + sum(b.size for b in _pool) <= LARGEST_POOL:
            _pool.append(buffer)
        else:
            # Make room by forgetting what is free; what is in use stays alive by itself.
            used = [_references(index) > _FREE for index in range(len(_pool))]
            _pool[:] = [b for b, keep in zip(_pool, used, strict=True) if keep]
            if size + sum(b.size for b in _pool) <= LARGEST_POOL:
                _pool.append(buffer)
        return buffer[:size]


def residues(length: int) -> npt.NDArray[np.uint64]:
    """Return uint64 words, shape (length,), with arbitrary contents."""
    return take(8 * length).view(np.uint64)


def zeros(length: int) -> npt.NDArray[np.uint64]:
    """Return zeros, shape (length,), uint64."""
    words = residues(length)
    words.fill(0)
    return words


# What `_references` counts for a buffer that nobody uses; measured, as interpreters differ.
_pool.append(np.empty(0, np.uint8))
_FREE = _references(0)
_pool.clear()
