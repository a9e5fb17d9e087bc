"""The compiled loops behind `field`, `prg` and `wire`.

Every kernel has an explicit signature and works on contiguous one-dimensional arrays; shapes,
broadcasting and checks are the callers' business. All constants are typed: numba turns
`uint64 + int` into float64, which would lose the low bits without a word.

The modulus is p = 2^61 - 1. A sum of two residues needs one comparison, and a 122-bit product
folds because 2^61 = 1 (mod p). `min(s, s - p)` reduces without a branch: for s < p the
subtraction wraps to a huge number.
"""

from typing import Any

import numba
import numpy as np
from numba import boolean, float64, int64, uint64

from securecomp.core.kernel_compiler import kernel

P = np.uint64((1 << 61) - 1)
HALF = np.uint64((1 << 60) - 1)  # (p - 1) / 2: residues above it stand for negative numbers
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_LOW32 = np.uint64(0xFFFFFFFF)
_LOW29 = np.uint64((1 << 29) - 1)
_LOW30 = np.uint64((1 << 30) - 1)
_LOW31 = np.uint64((1 << 31) - 1)
_S3 = np.uint64(3)
_S21 = np.uint64(21)
_S6 = np.uint64(6)
_S29 = np.uint64(29)
_S30 = np.uint64(30)
_S31 = np.uint64(31)
_S32 = np.uint64(32)
_S40 = np.uint64(40)
_S61 = np.uint64(61)
_S63 = np.uint64(63)
_S64 = np.uint64(64)
_SIGN = np.int64(63)
_SIGNED_P = np.int64((1 << 61) - 1)
_DIGIT = np.int64(21)  # balanced base 2^21 for matrix products
_DIGIT_HALF = np.int64(1 << 20)
_DIGIT_MASK = np.int64((1 << 21) - 1)
_BIT = np.int64(1)
_TWICE = np.int64(2)
_FOURTH = np.int64(4)
_THIRD = np.uint64(pow(3, -1, 1 << 64))
_TWO = np.float64(2)

U = uint64[::1]
I = int64[::1]  # noqa: E741
# Inputs may be read-only, and lie anywhere in a message.
RU = numba.types.Array(uint64, 1, "C", readonly=True, aligned=False)
RI = numba.types.Array(int64, 1, "C", readonly=True, aligned=False)
F2 = float64[:, ::1]


_inline = numba.njit(inline="always")


@_inline
def _product(x: Any, y: Any) -> Any:
    xl = x & _LOW32
    xh = x >> _S32
    yl = y & _LOW32
    yh = y >> _S32
    low = xl * yl
    mid = xl * yh + xh * yl  # below 2^62
    high = xh * yh  # below 2^58; 2^64 = 8 (mod p)
    r = (
        (high << _S3)
        + (mid >> _S29)
        + ((mid & _LOW29) << _S32)  # mid * 2^32, folded at bit 61
        + (low & P)
        + (low >> _S61)
    )
    r = (r & P) + (r >> _S61)
    return min(r, r - P)


@_inline
def _reduced(s: Any) -> Any:
    """s mod p for s < 2p, for loops that do not vectorise: there, LLVM makes a branch of `min`,
    which random residues mispredict half of the time."""
    d = np.int64(s - P)
    return np.uint64(d + (_SIGNED_P & (d >> _SIGN)))


@_inline
def _signed(r: Any) -> Any:
    """The signed integer that a residue stands for, without a branch."""
    return np.int64(r) - (_SIGNED_P & (np.int64(HALF - r) >> _SIGN))


@kernel(numba.void(RU, RU, U))
def add(a, b, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        s = a[i] + b[i]
        out[i] = min(s, s - P)


@kernel(numba.void(RU, RU, U))
def subtract(a, b, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        d = a[i] - b[i]
        out[i] = min(d, d + P)


@kernel(numba.void(RU, RU, U))
def multiply(a, b, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = _product(a[i], b[i])


@_inline
def _two_products(u, v, x, y, c):  # type: ignore[no-untyped-def]
    """c + u v + x y: halves of 31 bits leave room to add the products before they fold."""
    ul, uh, vl, vh = u & _LOW31, u >> _S31, v & _LOW31, v >> _S31
    xl, xh, yl, yh = x & _LOW31, x >> _S31, y & _LOW31, y >> _S31
    low = ul * vl + xl * yl  # below 2^63
    mid = ul * vh + uh * vl + xl * yh + xh * yl  # below 2^63
    high = uh * vh + xh * yh  # below 2^61; 2^62 = 2 (mod p)
    r = (high << _ONE) + (mid >> _S30) + ((mid & _LOW30) << _S31) + (low & P) + (low >> _S61) + c
    r = (r & P) + (r >> _S61)
    return min(r, r - P)


@kernel(numba.void(RU, RU, RU, RU, RU, U))
def beaver(d, e, x, b, c, out):  # type: ignore[no-untyped-def]
    """A share of x y, for x = a + d, y = b + e and c = a b, where d and e are public."""
    for i in range(out.size):
        out[i] = _two_products(d[i], b[i], e[i], x[i], c[i])


@kernel(numba.void(RU, RU, RU, RU, U))
def add_cross(x, x_next, y, y_next, acc):  # type: ignore[no-untyped-def]
    """Add what a holder of two of three shares has of a product: x (y + y_next) + x_next y."""
    for i in range(acc.size):
        s = y[i] + y_next[i]
        acc[i] = _two_products(x[i], min(s, s - P), x_next[i], y[i], acc[i])


@kernel(numba.void(RU, RU, RU, RU, int64, int64, boolean, U))
def shifted(w, u, high, c, by, less, first, out):  # type: ignore[no-untyped-def]
    """w 2^(61-by) - u - high, and floor(c / 2^by) - less for one party."""
    down = np.uint64(by)
    up = _S61 - down
    public = P - np.uint64(less)
    for i in range(out.size):
        s = ((w[i] << up) & P) + (w[i] >> down) + (P - u[i]) + (P - high[i])
        if first:
            s += (c[i] >> down) + public
        s = (s & P) + (s >> _S61)
        out[i] = min(s, s - P)


@kernel(numba.void(RU, uint64, U))
def scale(a, k, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = _product(a[i], k)


@kernel(boolean(RU))
def canonical(a):  # type: ignore[no-untyped-def]
    bad = _ZERO
    for i in range(a.size):
        bad |= np.uint64(a[i] >= P)
    return bad == _ZERO


@kernel(boolean(RI, int64, U))
def encode(values, bound, out):  # type: ignore[no-untyped-def]
    """Signed integers to residues; false if any is beyond +-bound (or is the lowest int64)."""
    bad = _ZERO
    for i in range(values.size):
        v = values[i]
        bad |= np.uint64(v > bound) | np.uint64(v < -bound)
        w = np.uint64(v)
        out[i] = min(w, w + P)  # a negative v is 2^64 - |v|, and adding p wraps to p - |v|
    return bad == _ZERO


@kernel(boolean(RU, int64, I))
def decode(residues, bound, out):  # type: ignore[no-untyped-def]
    """Residues to signed integers; false if any is beyond +-bound."""
    bad = _ZERO
    for i in range(residues.size):
        v = _signed(residues[i])
        bad |= np.uint64(v > bound) | np.uint64(v < -bound)
        out[i] = v
    return bad == _ZERO


# Masks. Each takes the low 61 bits of a random word; a word whose low bits are all ones equals p,
# is not canonical, and counts as zero here. The caller sees the return value and draws again.


@kernel(boolean(U, RU))
def mask_add(acc, words):  # type: ignore[no-untyped-def]
    rejected = _ZERO
    for i in range(acc.size):
        v = words[i] & P
        rejected |= np.uint64(v == P)
        s = acc[i] + v
        acc[i] = min(s, s - P)
    return rejected != _ZERO


@kernel(boolean(U, RU))
def mask_subtract(acc, words):  # type: ignore[no-untyped-def]
    rejected = _ZERO
    for i in range(acc.size):
        v = words[i] & P
        rejected |= np.uint64(v == P)
        d = acc[i] - v
        acc[i] = min(d, d + P)
    return rejected != _ZERO


@kernel(boolean(RU, RU, U))
def mask_difference(plus, minus, out):  # type: ignore[no-untyped-def]
    rejected = _ZERO
    for i in range(out.size):
        v, w = plus[i] & P, minus[i] & P
        rejected |= np.uint64(max(v, w) == P)
        d = v - w
        out[i] = min(d, d + P)
    return rejected != _ZERO


@kernel(boolean(RU, uint64, uint64, U))
def keep_below(words, mask, modulus, out):  # type: ignore[no-untyped-def]
    """The low bits of random words; true if any is not below the modulus."""
    rejected = _ZERO
    for i in range(out.size):
        v = words[i] & mask
        rejected |= np.uint64(v >= modulus)
        out[i] = v
    return rejected != _ZERO


# Bit packing: element i takes bits [i k, (i+1) k) of a little-endian bit string.


@_inline
def _pack(values, width, words):  # type: ignore[no-untyped-def]
    acc = _ZERO
    used = _ZERO
    j = 0
    for i in range(values.size):
        v = values[i]
        acc |= v << used
        used += width
        if used >= _S64:
            words[j] = acc
            j += 1
            used -= _S64
            # a shift by 64 is undefined, so the case of nothing left over is apart
            acc = v >> (width - used) if used > _ZERO else _ZERO
    if used > _ZERO:
        words[j] = acc


@_inline
def unpack_bits(words, width, values):  # type: ignore[no-untyped-def]
    """For other kernels, with a width of type uint64; false if an element is all ones."""
    keep = ~_ZERO >> (_S64 - width)
    last = np.uint64(words.size - 1)
    full = _ZERO
    for i in range(values.size):
        position = np.uint64(i) * width
        j = position >> _S6
        shift = position & _S63
        above = words[min(j + _ONE, last)]  # its bits fall outside `keep` where it is not needed
        v = ((words[j] >> shift) | ((above << _ONE) << (_S63 - shift))) & keep
        full |= np.uint64(v == keep)
        values[i] = v
    return full == _ZERO


@kernel(numba.void(RU, int64, U))
def pack(values, bits, words):  # type: ignore[no-untyped-def]
    _pack(values, np.uint64(bits), words)


@kernel(boolean(RU, int64, U))
def unpack(words, bits, values):  # type: ignore[no-untyped-def]
    """The inverse of `pack`; false if an element is all ones."""
    return unpack_bits(words, np.uint64(bits), values)


# The same for the field's 61 bits, where 64 elements take 61 words: between two elements the
# shift moves by 3, so that a group is three runs with contiguous loads, which vectorise.


@kernel(numba.void(RU, U))
def pack61(values, words):  # type: ignore[no-untyped-def]
    groups = values.size // 64
    for g in range(groups):
        v = values[64 * g : 64 * g + 64]
        w = words[61 * g : 61 * g + 61]
        for j in range(20):
            s = np.uint64(3 * j)
            w[j] = (v[j] >> s) | (v[j + 1] << (_S61 - s))
        w[20] = (v[20] >> np.uint64(60)) | (v[21] << _ONE) | (v[22] << np.uint64(62))
        for j in range(19):
            s = np.uint64(3 * j + 2)
            w[j + 21] = (v[j + 22] >> s) | (v[j + 23] << (_S61 - s))
        w[40] = (v[41] >> np.uint64(59)) | (v[42] << np.uint64(2)) | (v[43] << _S63)
        for j in range(20):
            s = np.uint64(3 * j + 1)
            w[j + 41] = (v[j + 43] >> s) | (v[j + 44] << (_S61 - s))
    _pack(values[64 * groups :], _S61, words[61 * groups :])


@kernel(boolean(RU, U))
def unpack61(words, values):  # type: ignore[no-untyped-def]
    """The inverse of `pack61`; false if an element is the modulus."""
    groups = values.size // 64
    bad = _ZERO
    for g in range(groups):
        w = words[61 * g : 61 * g + 61]
        v = values[64 * g : 64 * g + 64]
        v[0] = w[0] & P
        for i in range(21):
            s = np.uint64(61 - 3 * i)
            v[i + 1] = ((w[i] >> s) | (w[i + 1] << (_S64 - s))) & P
        for i in range(21):
            s = np.uint64(62 - 3 * i)
            v[i + 22] = ((w[i + 20] >> s) | (w[i + 21] << (_S64 - s))) & P
        for i in range(20):
            s = np.uint64(63 - 3 * i)
            v[i + 43] = ((w[i + 40] >> s) | (w[i + 41] << (_S64 - s))) & P
        v[63] = w[60] >> _S3
        for i in range(64):
            bad |= np.uint64(v[i] == P)
    return unpack_bits(words[61 * groups :], _S61, values[64 * groups :]) and bad == _ZERO


# Matrix products: three balanced digits a residue are a polynomial of degree 2 in 2^21. Its values
# at 0, 1, -1, 2 and infinity go through float64 BLAS, and `join_products` has the product's
# coefficients again (Toom and Cook: five products instead of nine).


@kernel(numba.void(RU, F2))
def digits(residues, out):  # type: ignore[no-untyped-def]
    """Write values of d0 + d1 X + d2 X^2, a residue at X = 2^21: |d0|, |d1| <= 2^20, |d2| <= 2^18.

    Rows of `out`, shape (5, d): d0, d2, d0 + d1 + d2, d0 - d1 + d2, d0 + 2 d1 + 4 d2, which is
    the largest, at most 2^22.
    """
    for i in range(residues.size):
        v = _signed(residues[i])
        d0 = ((v + _DIGIT_HALF) & _DIGIT_MASK) - _DIGIT_HALF
        v = (v - d0) >> _DIGIT
        d1 = ((v + _DIGIT_HALF) & _DIGIT_MASK) - _DIGIT_HALF
        d2 = (v - d1) >> _DIGIT
        f0, f1, f2 = np.float64(d0), np.float64(d1), np.float64(d2)
        ends = f0 + f2
        out[0, i] = f0
        out[1, i] = f2
        out[2, i] = ends + f1
        out[3, i] = ends - f1
        out[4, i] = f0 + _TWO * (f1 + _TWO * f2)


@_inline
def _shift_add(r, c):  # type: ignore[no-untyped-def]
    """r 2^21 + c mod p, for a residue r and |c| < 2^60."""
    r = ((r << _S21) & P) + (r >> _S40)
    r += np.uint64(c + (_SIGNED_P & (c >> _SIGN)))
    return _reduced((r & P) + (r >> _S61))


@kernel(numba.void(F2, U))
def join_products(products, acc):  # type: ignore[no-untyped-def]
    """Add the matrix product to `acc`, given the five products of the rows of `digits`."""
    for i in range(acc.size):
        c0 = np.int64(products[0, i])
        c4 = np.int64(products[1, i])
        one = np.int64(products[2, i])
        minus_one = np.int64(products[3, i])
        two = np.int64(products[4, i])
        odd = (one - minus_one) >> _BIT  # c1 + c3
        c2 = ((one + minus_one) >> _BIT) - c0 - c4
        rest = (two - c0 - (c2 << _TWICE) - (c4 << _FOURTH)) >> _BIT  # c1 + 4 c3
        # Exact, as the difference is a multiple of 3; unsigned, as a signed product may not wrap.
        c3 = np.int64(np.uint64(rest - odd) * _THIRD)
        r = _shift_add(_ZERO, c4)
        r = _shift_add(r, c3)
        r = _shift_add(r, c2)
        r = _shift_add(r, odd - c3)
        r = _shift_add(r, c0)
        s = acc[i] + r
        acc[i] = min(s, s - P)
