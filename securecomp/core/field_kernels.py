"""The loops behind `field`, `prg` and `wire`: numpy's here, numba's in `field_loops`.

Every kernel works on contiguous one-dimensional arrays; shapes, broadcasting and checks are the
callers' business. `field_loops` says why the arithmetic is right: the functions here are the same
operations, on whole arrays. Unsigned numbers wrap modulo 2^64, in both.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.kernel_compiler import in_numpy_first, loop

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

P = np.uint64((1 << 61) - 1)
HALF = np.uint64((1 << 60) - 1)
"""(p - 1) / 2: residues above it stand for negative numbers."""

_LOOPS = "securecomp.core.field_loops"
_kernel = in_numpy_first(_LOOPS)
_BITS = np.uint64(61)
_LOW32 = np.uint64(0xFFFFFFFF)
_LOW29 = np.uint64((1 << 29) - 1)
_SIGNED_P = np.int64(P)
_DIGIT = np.int64(1 << 21)
_THIRD = np.uint64(pow(3, -1, 1 << 64))

beaver = loop(__name__, "beaver", _LOOPS)
add_cross = loop(__name__, "add_cross", _LOOPS)
shifted = loop(__name__, "shifted", _LOOPS)


def _reduced(s: Words) -> Words:
    """Return s mod p, for s < 2^62."""
    s = (s & P) + (s >> _BITS)
    reduced: Words = np.minimum(s, s - P)
    return reduced


def _product(x: Words, y: Any) -> Words:
    low_x, high_x = x & _LOW32, x >> np.uint64(32)
    low_y, high_y = y & _LOW32, y >> np.uint64(32)
    low, high = low_x * low_y, high_x * high_y
    mid = low_x * high_y + high_x * low_y
    return _reduced(
        (high << np.uint64(3))
        + (mid >> np.uint64(29))
        + ((mid & _LOW29) << np.uint64(32))
        + (low & P)
        + (low >> _BITS)
    )


def _signed(residues: Words) -> Integers:
    values = residues.astype(np.int64)
    return values - (_SIGNED_P & ((HALF - residues).astype(np.int64) >> np.int64(63)))


@_kernel
def add(a: Words, b: Words, out: Words) -> None:
    """Write a + b mod p."""
    s = a + b
    np.minimum(s, s - P, out=out)


@_kernel
def subtract(a: Words, b: Words, out: Words) -> None:
    """Write a - b mod p."""
    d = a - b
    np.minimum(d, d + P, out=out)


@_kernel
def multiply(a: Words, b: Words, out: Words) -> None:
    """Write a b mod p."""
    out[:] = _product(a, b)


@_kernel
def scale(a: Words, k: np.uint64, out: Words) -> None:
    """Write a k mod p, for one residue k."""
    out[:] = _product(a, np.uint64(k))


@_kernel
def canonical(a: Words) -> bool:
    """Return whether all words are below p."""
    return bool((a < P).all())


@_kernel
def encode(values: Integers, bound: int, out: Words) -> bool:
    """Write signed integers as residues; return false if any is beyond +-bound."""
    words = values.astype(np.uint64)
    np.minimum(words, words + P, out=out)
    return not bool(((values > bound) | (values < -bound)).any())


@_kernel
def decode(residues: Words, bound: int, out: Integers) -> bool:
    """Write residues as signed integers; return false if any is beyond +-bound."""
    out[:] = _signed(residues)
    return not bool(((out > bound) | (out < -bound)).any())


@_kernel
def mask_add(acc: Words, words: Words) -> bool:
    """Add the low bits of random words; true if some are no residue, and must be drawn again."""
    masks = words & P
    s = acc + masks
    np.minimum(s, s - P, out=acc)
    return bool((masks == P).any())


@_kernel
def mask_subtract(acc: Words, words: Words) -> bool:
    """Subtract the low bits of random words; true if some must be drawn again."""
    masks = words & P
    d = acc - masks
    np.minimum(d, d + P, out=acc)
    return bool((masks == P).any())


@_kernel
def mask_difference(plus: Words, minus: Words, out: Words) -> bool:
    """Write the difference of two sets of random words; true if some must be drawn again."""
    one, two = plus & P, minus & P
    d = one - two
    np.minimum(d, d + P, out=out)
    return bool((np.maximum(one, two) == P).any())


@_kernel
def keep_below(words: Words, mask: np.uint64, modulus: np.uint64, out: Words) -> bool:
    """Write the low bits of random words; true if any is not below the modulus."""
    np.bitwise_and(words, mask, out=out)
    return bool((out >= modulus).any())


def _bits(words: Words) -> npt.NDArray[np.uint8]:
    """Return the bits of words, lowest first."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")


def _joined(bits: npt.NDArray[np.uint8], count: int) -> Words:
    """Return `count` words that have these bits, lowest first, and zeros after them."""
    padded = np.zeros(64 * count, np.uint8)
    padded[: bits.size] = bits
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


@_kernel
def pack(values: Words, bits: int, words: Words) -> None:
    """Write integers of so many bits one after another; words after the last bit stay."""
    used = -(-values.size * bits // 64)
    chosen = _bits(values).reshape(-1, 64)[:, :bits]
    words[:used] = _joined(chosen.reshape(-1), used)


@_kernel
def unpack(words: Words, bits: int, values: Words) -> bool:
    """Write what `pack` has packed; return false if an element is all ones."""
    count = values.size
    padded = np.zeros((count, 64), np.uint8)
    padded[:, :bits] = _bits(words)[: count * bits].reshape(count, bits)
    values[:] = _joined(padded.reshape(-1), count)
    return not bool((values == np.uint64((1 << bits) - 1)).any())


@_kernel
def pack61(values: Words, words: Words) -> None:
    """Write residues as `pack` does."""
    pack.in_numpy(values, 61, words)


@_kernel
def unpack61(words: Words, values: Words) -> bool:
    """Write what `pack61` has packed; return false if an element is the modulus."""
    return bool(unpack.in_numpy(words, 61, values))


@_kernel
def digits(residues: Words, out: Floats) -> None:
    """Write values of a residue's polynomial at five points, shape (5, size)."""
    half = _DIGIT >> np.int64(1)
    values = _signed(residues)
    d0 = ((values + half) & (_DIGIT - np.int64(1))) - half
    values = (values - d0) >> np.int64(21)
    d1 = ((values + half) & (_DIGIT - np.int64(1))) - half
    d2 = (values - d1) >> np.int64(21)
    out[:] = [d0, d2, d0 + d1 + d2, d0 - d1 + d2, d0 + 2 * d1 + 4 * d2]


def _shift_add(r: Words, c: Integers) -> Words:
    """Return r 2^21 + c mod p, for residues r and |c| < 2^60."""
    r = ((r << np.uint64(21)) & P) + (r >> np.uint64(40))
    return _reduced(r + (c + (_SIGNED_P & (c >> np.int64(63)))).astype(np.uint64))


@_kernel
def join_products(products: Floats, acc: Words) -> None:
    """Add the matrix product to `acc`, given the five products of the rows of `digits`."""
    c0, c4, one, minus_one, two = products.astype(np.int64)
    odd = (one - minus_one) >> np.int64(1)
    c2 = ((one + minus_one) >> np.int64(1)) - c0 - c4
    rest = (two - c0 - (c2 << np.int64(2)) - (c4 << np.int64(4))) >> np.int64(1)
    c3 = ((rest - odd).astype(np.uint64) * _THIRD).astype(np.int64)
    r = np.zeros_like(acc)
    for coefficient in (c4, c3, c2, odd - c3, c0):
        r = _shift_add(r, coefficient)
    s = acc + r
    np.minimum(s, s - P, out=acc)
