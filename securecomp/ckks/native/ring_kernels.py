"""Compiled loops over polynomials modulo a word-sized prime.

Every product has one operand that is used again and again (a secret key, a weight, a root of
unity). For it `precompute` gives floor(w 2^64 / q); then w x mod q costs two low and one high
multiplication and no division (Shoup). Products stay below 2q, and transforms below 4q until the
end (Harvey), so primes are below 2^61. No loop branches on data.

Sources: D. Harvey, Faster arithmetic for number-theoretic transforms, J. Symb. Comp. 60 (2014);
P. Longa, M. Naehrig, Speeding up the number theoretic transform for faster ideal lattice-based
cryptography, CANS 2016 (the negacyclic order of the roots).
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import boolean, float64, int64, types, uint64
from numba.extending import intrinsic

from securecomp.core.field_loops import unpack_bits
from securecomp.core.kernel_compiler import kernel

MAX_BITS = 61
"""Bits of the largest prime: the transforms let residues grow to four times the prime."""

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_S1 = np.uint64(1)
_S21 = np.uint64(21)
_LOW21 = np.uint64((1 << 21) - 1)
NOISE_BOUND = 21
"""Noise is a difference of two counts of 21 random bits: |e| <= 21, standard deviation 3.24."""

U = uint64[::1]
U2 = uint64[:, ::1]
U3 = uint64[:, :, ::1]
RU = types.Array(uint64, 1, "C", readonly=True, aligned=False)
RU2 = types.Array(uint64, 2, "C", readonly=True)
RF = types.Array(float64, 1, "C", readonly=True)
RF2 = types.Array(float64, 2, "A", readonly=True)
I2 = int64[:, :]
RI2 = types.Array(int64, 2, "C", readonly=True)


def _high(_typing: Any, _a: Any, _b: Any) -> Any:
    """Give the upper 64 bits of a 128-bit product; numba has no operation for it."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(x, wide) for x in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


def _ones(_typing: Any, _a: Any) -> Any:
    """Give the number of bits that are set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_multiply_high: Any = intrinsic(_high)
_count_ones: Any = intrinsic(_ones)

_inline = numba.njit(inline="always")
_inner = numba.njit(nogil=True)


@_inline
def _times(x: Any, w: Any, ws: Any, q: Any) -> Any:
    """x w mod q, or q more. `x` may be any word, `w` is below q."""
    return x * w - _multiply_high(x, ws) * q


@_inline
def _below(x: Any, q: Any) -> Any:
    """x mod q, for x < 2q."""
    return min(x, x - q)


@kernel(numba.void(RU, uint64, U))
def precompute(w, q, out):  # type: ignore[no-untyped-def]
    """floor(w 2^64 / q) by long division, for w < q."""
    for i in range(w.size):
        r = w[i]
        quotient = _ZERO
        for _ in range(64):
            r <<= _S1
            over = np.uint64(r >= q)
            r -= q * over
            quotient = (quotient << _S1) | over
        out[i] = quotient


@_inner
def _forward(a, roots, roots_s, q):  # type: ignore[no-untyped-def]
    n = a.size
    q2 = q + q
    half = n
    groups = 1
    while groups < n:
        half //= 2
        for i in range(groups):
            w = roots[groups + i]
            ws = roots_s[groups + i]
            low = a[2 * i * half : (2 * i + 1) * half]
            high = a[(2 * i + 1) * half : (2 * i + 2) * half]
            for j in range(half):
                x = _below(low[j], q2)
                y = _times(high[j], w, ws, q)
                low[j] = x + y
                high[j] = x + q2 - y
        groups *= 2
    for j in range(n):
        a[j] = _below(_below(a[j], q2), q)


@kernel(numba.void(U2, RU, RU, uint64))
def forward(polynomials, roots, roots_s, q):  # type: ignore[no-untyped-def]
    """Coefficients below 2q to values at the odd powers of a 2N-th root, in bit-reversed order."""
    for p in range(polynomials.shape[0]):
        _forward(polynomials[p], roots, roots_s, q)


@kernel(numba.void(U2, RU, RU, uint64, uint64, uint64))
def inverse(polynomials, roots, roots_s, scale, scale_s, q):  # type: ignore[no-untyped-def]
    """Values below 2q back to coefficients; `scale` is 1/N mod q, the roots are the inverses."""
    n = polynomials.shape[1]
    q2 = q + q
    for p in range(polynomials.shape[0]):
        a = polynomials[p]
        half = 1
        groups = n // 2
        while groups > 0:
            for i in range(groups):
                w = roots[groups + i]
                ws = roots_s[groups + i]
                low = a[2 * i * half : (2 * i + 1) * half]
                high = a[(2 * i + 1) * half : (2 * i + 2) * half]
                for j in range(half):
                    x = low[j]
                    y = high[j]
                    low[j] = _below(x + y, q2)
                    high[j] = _times(x + q2 - y, w, ws, q)
            half *= 2
            groups //= 2
        for j in range(n):
            a[j] = _below(_times(a[j], scale, scale_s, q), q)


@kernel(numba.void(RF2, RF, I2))
def rounded(rows, scale, out):  # type: ignore[no-untyped-def]
    """The integers nearest to x scale, for every column its scale; below 2^53 in size."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[i, j] = np.int64(np.rint(rows[i, j] * scale[j]))


@_inner
def _noisy(messages, words, lift, lift_s, q, out):  # type: ignore[no-untyped-def]
    for j in range(out.size):
        m = np.uint64(messages[j])
        m = min(m, m + q)  # a negative m is 2^64 - |m|
        word = words[j]
        e = _count_ones(word & _LOW21) - _count_ones((word >> _S21) & _LOW21)
        e = min(e, e + q)
        out[j] = _below(_below(_times(m, lift, lift_s, q), q) + e, q)


@kernel(numba.void(RI2, RU, uint64, uint64, uint64, U2))
def noisy(messages, words, lift, lift_s, q, out):  # type: ignore[no-untyped-def]
    """m lift + e mod q, for integers |m| < q and a random word for each noise e."""
    n = messages.shape[1]
    for p in range(messages.shape[0]):
        _noisy(messages[p], words[p * n : (p + 1) * n], lift, lift_s, q, out[p])


@kernel(numba.void(RI2, RU, uint64, uint64, RU, RU, RU2, RU, RU, uint64, U2))
def encrypt(messages, words, lift, lift_s, roots, roots_s, masks, s, ss, q, out):  # type: ignore[no-untyped-def]
    """Values of m lift + e, minus masks s: polynomial by polynomial, while it is in cache."""
    n = messages.shape[1]
    for p in range(messages.shape[0]):
        row = out[p]
        _noisy(messages[p], words[p * n : (p + 1) * n], lift, lift_s, q, row)
        _forward(row, roots, roots_s, q)
        for j in range(n):
            d = row[j] - _below(_times(masks[p, j], s[j], ss[j], q), q)
            row[j] = min(d, d + q)


@kernel(numba.void(RU, U))
def ternary(words, out):  # type: ignore[no-untyped-def]
    """0, 1 or -1 (as 2^64 - 1) from a random word each; the bias is below 2^-62."""
    for j in range(out.size):
        out[j] = words[j] % np.uint64(3) - _ONE


@kernel(numba.void(U2, RU2, RU, RU, uint64))
def subtract_products(acc, a, w, ws, q):  # type: ignore[no-untyped-def]
    """acc - a w mod q for every row, `w` of shape (N,)."""
    for p in range(acc.shape[0]):
        for j in range(acc.shape[1]):
            d = acc[p, j] - _below(_times(a[p, j], w[j], ws[j], q), q)
            acc[p, j] = min(d, d + q)


@kernel(numba.void(U, RU, RU, RU, uint64))
def add_product(acc, a, w, ws, q):  # type: ignore[no-untyped-def]
    """acc + a w mod q, all of shape (N,)."""
    for j in range(acc.size):
        acc[j] = _below(acc[j] + _below(_times(a[j], w[j], ws[j], q), q), q)


GOOD, MASKS, BODIES = 0, 1, 2
"""Results of `absorb`: all good, or c_1 or c_0 has a residue that is not below the prime."""


@kernel(int64(RU, int64, RU, uint64, RU2, RU2, uint64, U, U3))
def absorb(words, bits, masks, kept, w, ws, q, row, acc):  # type: ignore[no-untyped-def]
    """Add multiples of ciphertexts to every logit, straight from a message and a keystream.

    `words` has c_0 of some polynomials in `bits` bits per residue. The bits `kept` of the random
    words `masks` are c_1. `w` has the factors, shape (K, polynomials); `row` is room for one
    polynomial; `acc` has (c_0, c_1) of the logits below 2q, shape (K, 2, N). If the result is
    `MASKS`, nothing was added.
    """
    n = row.size
    count = w.shape[1]
    q2 = q + q
    bad = _ZERO
    for j in range(count * n):
        bad |= np.uint64((masks[j] & kept) >= q)
    if bad:
        return MASKS
    for t in range(count):
        unpack_bits(words[t * n * bits // 64 :], np.uint64(bits), row)
        bad = _ZERO
        for j in range(n):
            bad |= np.uint64(row[j] >= q)
        if bad:
            return BODIES
        part = masks[t * n : (t + 1) * n]
        for k in range(w.shape[0]):
            x = w[k, t]
            xs = ws[k, t]
            body = acc[k, 0]
            mask = acc[k, 1]
            for j in range(n):
                body[j] = _below(body[j] + _times(row[j], x, xs, q), q2)
            for j in range(n):
                mask[j] = _below(mask[j] + _times(part[j] & kept, x, xs, q), q2)
    return GOOD


@kernel(numba.void(U, uint64))
def reduce(acc, q):  # type: ignore[no-untyped-def]
    """Reduce residues below 2q to residues below q."""
    for j in range(acc.size):
        acc[j] = _below(acc[j], q)


@kernel(numba.void(U, RU, uint64))
def add(acc, a, q):  # type: ignore[no-untyped-def]
    """acc + a mod q."""
    for j in range(acc.size):
        acc[j] = _below(acc[j] + a[j], q)


@kernel(boolean(RU, uint64))
def canonical(a, q):  # type: ignore[no-untyped-def]
    """Whether every residue is below q."""
    bad = _ZERO
    for j in range(a.size):
        bad |= np.uint64(a[j] >= q)
    return bad == _ZERO
