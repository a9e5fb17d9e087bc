"""Bit slices: element i of a vector is bit i mod 64 of word i div 64, one row of words a bit.

One operation on a word then does 64 elements, which is what makes Boolean circuits on shared bits
cheap. `slices` transposes residues into 61 rows, `spread` makes a residue of every bit.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import int64, types, uint64

from securecomp.core.field import BITS, Residues

Words = npt.NDArray[np.uint64]

_U = uint64[::1]
_U2 = uint64[:, ::1]
_RU = types.Array(uint64, 1, "C", readonly=True, aligned=False)
_ONE = np.uint64(1)
_S63 = np.uint64(63)
_S6 = np.uint64(6)


def _kernel(signature: Any) -> Callable[..., Any]:
    compiled: Callable[..., Any] = numba.njit([signature], cache=True, nogil=True)
    return compiled


@_kernel(numba.void(_RU, _U2))
def _transpose(values, out):  # type: ignore[no-untyped-def]
    """Words of 64 bits to rows, shape (rows, words), 64 elements at a time.

    The recursive exchange of blocks of H. S. Warren, Hacker's Delight, 7-3.
    """
    block = np.empty(64, np.uint64)
    for w in range(out.shape[1]):
        first = 64 * w
        for i in range(64):
            block[i] = values[first + i] if first + i < values.size else np.uint64(0)
        half = np.uint64(32)
        mask = np.uint64(0xFFFFFFFF)
        while half > np.uint64(0):
            k = np.int64(0)
            while k < 64:
                other = k + np.int64(half)
                t = ((block[k] >> half) ^ block[other]) & mask
                block[k] ^= t << half
                block[other] ^= t
                k = ((k | np.int64(half)) + np.int64(1)) & ~np.int64(half)
            half >>= _ONE
            mask ^= mask << half
        for i in range(out.shape[0]):
            out[i, w] = block[i]


@_kernel(numba.void(_RU, int64, _U))
def _spread(words, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        j = np.uint64(i)
        out[i] = (words[j >> _S6] >> (j & _S63)) & _ONE


def words(count: int) -> int:
    """Return the words that a slice of so many elements has."""
    return -(-count // 64)


def slices(residues: Residues, bits: int = BITS) -> Words:
    """Return the lowest bits of residues, shape (n,), as slices, shape (bits, words)."""
    out = np.empty((bits, words(residues.size)), np.uint64)
    _transpose(np.ascontiguousarray(residues), out)
    return out


def spread(slice_: Words, count: int) -> Residues:
    """Return the bits of a slice, shape (words,), as residues 0 and 1, shape (count,)."""
    out = np.empty(count, np.uint64)
    _spread(np.ascontiguousarray(slice_), count, out)
    return out


def gather(bits: Residues) -> Words:
    """Return residues 0 and 1, shape (n,), as a slice: the inverse of `spread`."""
    row: Words = slices(bits, 1)[0]
    return row


def tail(count: int) -> Words:
    """Return a slice with a one for every element and zeros behind the last."""
    out: Words = np.full(words(count), ~np.uint64(0))
    if count % 64:
        out[-1] = (_ONE << np.uint64(count % 64)) - _ONE
    return out
