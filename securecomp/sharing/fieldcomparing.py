"""The circuits of `comparing` with bits that are elements of the field, for shares with MACs.

c = x + r is opened for a mask r whose 61 bits are shared over the field, so that every step carries
a MAC. With public c, less_i = r_i (1 - c_i) and same_i = (1 - c_i) + r_i (2 c_i - 1) are linear,
and neighbours combine by products. Every party computes with the c that it heard itself.

Source: Damgård, Fitzi, Kiltz, Nielsen, Toft, TCC 2006.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from securecomp.core import field
from securecomp.core.field import Residues

Pairs = list[Residues]
"""A party's shares and MACs, one array a party, shape (2, n), or (2, rows, n) for rows of bits."""

_ONE = np.array(1, np.uint64)
_OFFSET = 1 << 59


class Arithmetic(Protocol):
    """What the circuits need of an engine."""

    def add(self, x: Pairs, y: Pairs) -> Pairs:
        """x + y."""

    def subtract(self, x: Pairs, y: Pairs) -> Pairs:
        """x - y."""

    def scale(self, x: Pairs, constant: Residues) -> Pairs:
        """x times public residues."""

    def multiply(self, x: Pairs, y: Pairs) -> Pairs:
        """x y."""

    def add_each(self, x: Pairs, constants: Sequence[Residues]) -> Pairs:
        """x + a public vector, as each party heard it."""

    def mask_bits(self, count: int) -> Pairs:
        """The bits of random masks below p, shape (2, 61, count)."""

    def open(self, x: Pairs) -> list[Residues]:
        """Open x; as each party heard it."""


def compose(rows: Pairs) -> Pairs:
    """Return sum 2^i row_i, shape (2, n)."""
    powers = np.array([[1 << i for i in range(rows[0].shape[1])]], np.uint64)
    return [np.concatenate([field.matmul(powers, row) for row in pair]) for pair in rows]


class Opened:
    """c = x + r, and r's bits.

    Attributes:
        values: c as each party heard it, shape (n,).
        bits: r's, shape (2, 61, n).
        public: c's, as each party heard it, shape (61, n).
    """

    def __init__(self, engine: Arithmetic, x: Pairs) -> None:
        self.bits = engine.mask_bits(x[0].shape[1])
        self.values = engine.open(engine.add(x, compose(self.bits)))
        places = np.arange(field.BITS, dtype=np.uint64)[:, None]
        self.public = [(c[None] >> places) & _ONE for c in self.values]


def flip(engine: Arithmetic, rows: Pairs, bits: Sequence[Residues]) -> Pairs:
    """Return b + x - 2 b x for public bits b: the exclusive or, shape (2, n) or (2, rows, n)."""
    turned = [np.where(b == _ONE, field.negative(x), x) for x, b in zip(rows, bits, strict=True)]
    flat = engine.add_each([t.reshape(2, -1) for t in turned], [b.reshape(-1) for b in bits])
    return [f.reshape(x.shape) for f, x in zip(flat, rows, strict=True)]


def both(engine: Arithmetic, x: Pairs, y: Pairs) -> Pairs:
    """Return the products of rows: one round."""
    flat = engine.multiply([a.reshape(2, -1) for a in x], [b.reshape(2, -1) for b in y])
    return [f.reshape(a.shape) for f, a in zip(flat, x, strict=True)]


def row(rows: Pairs, index: int) -> Pairs:
    """Return one of the rows, shape (2, n)."""
    return [np.ascontiguousarray(pair[:, index]) for pair in rows]


def less_and_same(engine: Arithmetic, opened: Opened, low: int, high: int) -> tuple[Pairs, Pairs]:
    """Return [c' < r'] and [c' = r'] for the bits from low to below high, shape (2, n)."""
    public = [c[low:high] for c in opened.public]
    bits = [b[:, low:high] for b in opened.bits]
    zero = np.uint64(0)
    less = [np.where(c == _ONE, zero, b) for b, c in zip(bits, public, strict=True)]
    same = flip(engine, bits, [c ^ _ONE for c in public])
    while less[0].shape[1] > 1:
        # Row 0 is the least bit. An odd one out at the top waits for the next level.
        even = less[0].shape[1] // 2 * 2
        products = both(
            engine,
            [np.concatenate([s[:, 1:even:2], s[:, 1:even:2]], axis=1) for s in same],
            [
                np.concatenate([a[:, :even:2], s[:, :even:2]], axis=1)
                for a, s in zip(less, same, strict=True)
            ],
        )
        half = even // 2
        less = [
            np.concatenate([field.add(a[:, 1:even:2], p[:, :half]), a[:, even:]], axis=1)
            for a, p in zip(less, products, strict=True)
        ]
        same = [
            np.concatenate([p[:, half:], s[:, even:]], axis=1)
            for s, p in zip(same, products, strict=True)
        ]
    return row(less, 0), row(same, 0)


def negative(engine: Arithmetic, x: Pairs) -> Pairs:
    """Return [x < 0], for |x| <= (p-1)/2: the last bit of 2x mod p, c_0 xor r_0 xor [c < r]."""
    opened = Opened(engine, engine.add(x, x))
    wrapped, _ = less_and_same(engine, opened, 0, field.BITS)
    last = row(opened.bits, 0)
    product = engine.multiply(wrapped, last)
    odd = engine.subtract(engine.add(wrapped, last), engine.add(product, product))
    return flip(engine, odd, [c[0] for c in opened.public])


def zero(engine: Arithmetic, x: Pairs) -> Pairs:
    """Return [x = 0]: c and r are the same number."""
    opened = Opened(engine, x)
    same = flip(engine, opened.bits, [c ^ _ONE for c in opened.public])
    while same[0].shape[1] > 1:
        half = same[0].shape[1] // 2
        products = both(engine, [s[:, :half] for s in same], [s[:, half : 2 * half] for s in same])
        same = [
            np.concatenate([p, s[:, 2 * half :]], axis=1)
            for p, s in zip(products, same, strict=True)
        ]
    return row(same, 0)


def shifted(engine: Arithmetic, x: Pairs, by: int) -> Pairs:
    """Return floor(x / 2^by), exactly, for |x| < 2^59 and 0 < by < 59.

    As in `comparing`: c1 - r1 + w 2^(61-by) - u less the offset, where w = [c < r] and
    u = [c0 < r0 + w]; r1 = floor(r / 2^by) is composed of r's higher bits.
    """
    count = x[0].shape[1]
    offset = np.full(count, _OFFSET, np.uint64)
    opened = Opened(engine, engine.add_each(x, [offset] * len(x)))
    less_low, same_low = less_and_same(engine, opened, 0, by)
    less_high, same_high = less_and_same(engine, opened, by, field.BITS)
    # The summands exclude each other, so that sums are bits.
    w = engine.add(less_high, engine.multiply(same_high, less_low))
    u = engine.add(less_low, engine.multiply(w, same_low))
    out = engine.scale(w, np.array(1 << (field.BITS - by), np.uint64))
    out = engine.subtract(engine.subtract(out, u), compose([b[:, by:] for b in opened.bits]))
    back = np.array(_OFFSET >> by, np.uint64)
    return engine.add_each(out, [field.subtract(c >> np.uint64(by), back) for c in opened.values])
