"""The numba loops behind bit slices and the circuits on them (`bits`, `sharing.comparing`)."""

import numba
import numpy as np
from numba import boolean, int64, types, uint64

from securecomp.core.field import MODULUS
from securecomp.core.kernel_compiler import kernel

_U = uint64[::1]
_U2 = uint64[:, ::1]
_RU = types.Array(uint64, 1, "C", readonly=True, aligned=False)
_RU2 = types.Array(uint64, 2, "C", readonly=True, aligned=False)
_P = np.uint64(MODULUS)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_S63 = np.uint64(63)
_S6 = np.uint64(6)


@kernel(numba.void(_RU, _U2))
def transpose(values, out):  # type: ignore[no-untyped-def]
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


@kernel(numba.void(_RU, int64, _U))
def spread(words, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        j = np.uint64(i)
        out[i] = (words[j >> _S6] >> (j & _S63)) & _ONE


# One party's part of circuits on shared slices, each in one pass. Comparisons have two rows for a
# range of bits, the lowest range first: `less` and `same`. Neighbours p, p + 1 combine to
# less[p + 1] ^ (same[p + 1] & less[p]) and same[p + 1] & same[p].


@kernel(numba.void(_RU2, _RU2, _RU2, boolean, _U2, _U2))
def leaves(r, products, c, first, less, same):  # type: ignore[no-untyped-def]
    """[c < r] and [c = r] of pairs of bits, for a public c and shared bits r.

    `products` has each pair's r & r, so that all is linear: with n = ~c and
    t = (n_high & r_low) ^ (r_high & r_low), it is less = (n_high & r_high) ^ (n_low & t) and
    same = (n_high & n_low) ^ t ^ (n_low & r_high). A last bit without a pair is a range of its own.
    """
    keep = ~_ZERO if first else _ZERO  # the first party adds what is public
    for p in range(products.shape[0]):
        for w in range(r.shape[1]):
            low, high = ~c[2 * p, w], ~c[2 * p + 1, w]
            t = (high & r[2 * p, w]) ^ products[p, w]
            less[p, w] = (high & r[2 * p + 1, w]) ^ (low & t)
            same[p, w] = (keep & high & low) ^ t ^ (low & r[2 * p + 1, w])
    if r.shape[0] % 2:
        k, p = r.shape[0] - 1, products.shape[0]
        for w in range(r.shape[1]):
            less[p, w] = r[k, w] & ~c[k, w]
            same[p, w] = r[k, w] ^ (keep & ~c[k, w])


@kernel(numba.void(_RU2, _RU2, _RU2, _RU2, _U2))
def hide_pairs(less, same, x, y, out):  # type: ignore[no-untyped-def]
    """Opened values that combine neighbours: same[p + 1], then less[p], then same[p], masked."""
    pairs = x.shape[0]
    for p in range(pairs):
        for w in range(x.shape[1]):
            out[p, w] = same[2 * p + 1, w] ^ x[p, w]
            out[pairs + p, w] = less[2 * p, w] ^ y[p, w]
            out[2 * pairs + p, w] = same[2 * p, w] ^ y[pairs + p, w]


@kernel(numba.void(_RU2, _RU2, _RU2, _RU2, _RU2, _U2, _U2))
def join_pairs(less, same, opened, y, z, new_less, new_same):  # type: ignore[no-untyped-def]
    """Combine neighbours, where z = x & y and the masked rows are `opened`."""
    pairs = y.shape[0] // 2
    for p in range(pairs):
        for w in range(y.shape[1]):
            d, high = opened[p, w], same[2 * p + 1, w]
            products = z[p, w] ^ (d & y[p, w]) ^ (high & opened[pairs + p, w])
            new_less[p, w] = less[2 * p + 1, w] ^ products
            new_same[p, w] = (
                z[pairs + p, w] ^ (d & y[pairs + p, w]) ^ (high & opened[2 * pairs + p, w])
            )
    for p in range(pairs, new_less.shape[0]):  # an odd one out waits for the next level
        for w in range(y.shape[1]):
            new_less[p, w] = less[2 * p, w]
            new_same[p, w] = same[2 * p, w]


@kernel(numba.void(_RU, _RU, _RU, _RU, _RU, _U))
def join_gates(d, e, x, y, z, out):  # type: ignore[no-untyped-def]
    """A share of the product of bits x and y + e, where z is one of (x + d) & y."""
    for w in range(out.size):
        out[w] = z[w] ^ (d[w] & y[w]) ^ (x[w] & e[w])


@kernel(numba.void(_RU, _RU, boolean, _U))
def unmask(shown, b, first, out):  # type: ignore[no-untyped-def]
    """Shares of b ^ o over the field, for public bits o: b, or 1 - b."""
    one = _ONE if first else _ZERO
    for w in range(shown.size):
        word = shown[w]
        start = 64 * w
        for i in range(min(64, out.size - start)):  # without a branch: the bits are random
            value = b[start + i]
            d = one - value
            flip = _ZERO - ((word >> np.uint64(i)) & _ONE)
            out[start + i] = value ^ ((value ^ min(d, d + _P)) & flip)
