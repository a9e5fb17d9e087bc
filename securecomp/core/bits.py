"""Bit slices: element i of a vector is bit i mod 64 of word i div 64, one row of words a bit.

One operation on a word then does 64 elements, which is what makes Boolean circuits on shared bits
cheap. `slices` transposes residues into 61 rows, `spread` makes a residue of every bit.
"""

import numpy as np
import numpy.typing as npt

from securecomp.core import bit_kernels, buffers
from securecomp.core.field import BITS, Residues

Words = npt.NDArray[np.uint64]


def words(count: int) -> int:
    """Return the words that a slice of so many elements has."""
    return -(-count // 64)


def slices(residues: Residues, bits: int = BITS) -> Words:
    """Return the lowest bits of residues, shape (n,), as slices, shape (bits, words)."""
    width = words(residues.size)
    out = buffers.residues(bits * width).reshape(bits, width)
    bit_kernels.transpose(np.ascontiguousarray(residues), out)
    return out


def spread(slice_: Words, count: int) -> Residues:
    """Return the bits of a slice, shape (words,), as residues 0 and 1, shape (count,)."""
    out = buffers.residues(count)
    bit_kernels.spread(np.ascontiguousarray(slice_), count, out)
    return out


def tail(count: int) -> Words:
    """Return a slice with a one for every element and zeros behind the last."""
    out: Words = np.full(words(count), ~np.uint64(0))
    if count % 64:
        out[-1] = (np.uint64(1) << np.uint64(count % 64)) - np.uint64(1)
    return out
