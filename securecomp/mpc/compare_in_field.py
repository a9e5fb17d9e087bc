"""Comparisons and truncation on elements of the field, so that every step carries a MAC.

The idea is that of `compare_bits`: c = x + r is opened for a mask r that is uniform below p. r is
cut into digits of three bits. The parties have shares over the field of [digit >= 1] to
[digit >= 7]. As c is public, less_i = [digit >= c_i + 1] is one of these rows, and
same_i = [digit >= c_i] - less_i. Neighbours combine by products. Every party computes with the c
that it heard itself.

Sources: Damgård, Fitzi, Kiltz, Nielsen, Toft, TCC 2006; larger digits as in a lookup table with one
row for each value: Keller, Orsini, Rotaru, Scholl, Soria-Vazquez, Vivek, ACNS 2017.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from securecomp.core import field
from securecomp.core.field import Residues
from securecomp.core.secret import Secret
from securecomp.mpc import mac_dealer

Pairs = list[Residues]
"""A party's shares and MACs, one array a party, shape (2, n), or (2, rows, n)."""

_ONE = np.array(1, np.uint64)
_OFFSET = 1 << 59


class BitArithmetic(Protocol):
    """The operations of an engine that the circuits use."""

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

    def mask_digits(self, count: int, cut: int) -> Pairs:
        """The digits of random masks below p, as `mac_dealer` deals them."""

    def open(self, x: Pairs) -> list[Residues]:
        """Open x. Each party has the value as it heard it."""


class OpenedDigits(Secret):
    """c = x + r, and r's digits.

    Attributes:
        values: c as each party heard it, shape (n,).
        digits: Lowest bit and number of bits of each digit.
        rows: For each digit [digit >= 1] and so on, shape (2, values - 1, n).
    """

    def __init__(self, engine: BitArithmetic, x: Pairs, cut: int = 0) -> None:
        self.digits = mac_dealer.digits(cut)
        masks = engine.mask_digits(x[0].shape[1], cut)
        ends = np.cumsum([(1 << bits) - 1 for _, bits in self.digits])[:-1]
        split = [np.split(mask, ends, axis=1) for mask in masks]
        self.rows = [list(pairs) for pairs in zip(*split, strict=True)]
        self._masks = masks
        self.values = engine.open(engine.add(x, self.high(0)))

    def high(self, cut: int) -> Pairs:
        """Return floor(r / 2^cut), shape (2, n): a digit is the sum of its rows."""
        out = [np.zeros((2, c.shape[-1]), np.uint64) for c in self._masks]
        for (place, _), rows in zip(self.digits, self.rows, strict=True):
            if place >= cut:
                weight = np.array(1 << (place - cut), np.uint64)
                for total, pair in zip(out, rows, strict=True):
                    field.add(total, field.multiply(added(pair), weight), out=total)
        return out

    def last_bit(self) -> Pairs:
        """Return r's last bit, shape (2, n): the first digit's rows with alternating signs."""
        rows = self.rows[0]
        return [field.subtract(added(pair[:, ::2]), added(pair[:, 1::2])) for pair in rows]

    def compared(self, engine: BitArithmetic, low: int, high: int) -> tuple[Pairs, Pairs]:
        """Return [c_i < r_i] and [c_i = r_i] for the digits in bits from low to below high."""
        less: list[list[Residues]] = [[] for _ in self.values]
        same: list[list[Residues]] = [[] for _ in self.values]
        least: list[list[Residues]] = [[] for _ in self.values]
        for (place, bits), rows in zip(self.digits, self.rows, strict=True):
            if not low <= place < high:
                continue
            for party, (c, pair) in enumerate(zip(self.values, rows, strict=True)):
                digit = (c >> np.uint64(place)) & np.uint64((1 << bits) - 1)
                # Before the first row [digit >= 0], which is 1 and added below; after the last a 0.
                padded = np.pad(pair, ((0, 0), (1, 1), (0, 0)))
                at = digit.astype(np.intp)[None, None]
                more = np.take_along_axis(padded, at + 1, axis=1)
                less[party].append(more)
                same[party].append(field.subtract(np.take_along_axis(padded, at, axis=1), more))
                least[party].append((digit == 0).astype(np.uint64))
        shared = [np.concatenate(s, axis=1) for s in same]
        flat = engine.add_each(
            [s.reshape(2, -1) for s in shared], [np.concatenate(ones) for ones in least]
        )
        return (
            [np.concatenate(each, axis=1) for each in less],
            [f.reshape(s.shape) for f, s in zip(flat, shared, strict=True)],
        )


def added(rows: Residues) -> Residues:
    """Return the sum of at most seven rows modulo p, shape (2, n)."""
    total: Residues = rows.sum(axis=1, dtype=np.uint64) % np.uint64(field.MODULUS)
    return total


def both(engine: BitArithmetic, x: Pairs, y: Pairs) -> Pairs:
    """Return the products of rows: one round."""
    flat = engine.multiply([a.reshape(2, -1) for a in x], [b.reshape(2, -1) for b in y])
    return [f.reshape(a.shape) for f, a in zip(flat, x, strict=True)]


def row(rows: Pairs, index: int) -> Pairs:
    """Return one of the rows, shape (2, n)."""
    return [np.ascontiguousarray(pair[:, index]) for pair in rows]


def less_and_same(
    engine: BitArithmetic, opened: OpenedDigits, low: int, high: int
) -> tuple[Pairs, Pairs]:
    """Return [c' < r'] and [c' = r'] for the bits from low to below high, shape (2, n)."""
    less, same = opened.compared(engine, low, high)
    while less[0].shape[1] > 1:
        # Row 0 is the least digit. If their number is odd, the top one waits for the next level.
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


def negative(engine: BitArithmetic, x: Pairs) -> Pairs:
    """Return [x < 0], for |x| <= (p-1)/2: the last bit of 2x mod p, c_0 xor r_0 xor [c < r]."""
    opened = OpenedDigits(engine, engine.add(x, x))
    wrapped, _ = less_and_same(engine, opened, 0, field.BITS)
    last = opened.last_bit()
    product = engine.multiply(wrapped, last)
    odd = engine.subtract(engine.add(wrapped, last), engine.add(product, product))
    # b + x - 2 b x for c's last bits b
    bits = [c & _ONE for c in opened.values]
    turned = [np.where(b == _ONE, field.negative(x), x) for x, b in zip(odd, bits, strict=True)]
    return engine.add_each(turned, bits)


def zero(engine: BitArithmetic, x: Pairs) -> Pairs:
    """Return [x = 0], which holds if c and r are the same number."""
    opened = OpenedDigits(engine, x)
    _, same = opened.compared(engine, 0, field.BITS)
    while same[0].shape[1] > 1:
        half = same[0].shape[1] // 2
        products = both(engine, [s[:, :half] for s in same], [s[:, half : 2 * half] for s in same])
        same = [
            np.concatenate([p, s[:, 2 * half :]], axis=1)
            for p, s in zip(products, same, strict=True)
        ]
    return row(same, 0)


def shifted(engine: BitArithmetic, x: Pairs, by: int) -> Pairs:
    """Return floor(x / 2^by), exactly, for |x| < 2^59 and 0 < by < 59.

    As in `compare_bits`, it is c1 - r1 + w 2^(61-by) - u less the offset, where w = [c < r] and
    u = [c0 < r0 + w].
    """
    count = x[0].shape[1]
    offset = np.full(count, _OFFSET, np.uint64)
    opened = OpenedDigits(engine, engine.add_each(x, [offset] * len(x)), by)
    less_low, same_low = less_and_same(engine, opened, 0, by)
    less_high, same_high = less_and_same(engine, opened, by, field.BITS)
    # At most one summand is 1, so that the sums are bits.
    w = engine.add(less_high, engine.multiply(same_high, less_low))
    u = engine.add(less_low, engine.multiply(w, same_low))
    out = engine.scale(w, np.array(1 << (field.BITS - by), np.uint64))
    out = engine.subtract(engine.subtract(out, u), opened.high(by))
    back = np.array(_OFFSET >> by, np.uint64)
    return engine.add_each(out, [field.subtract(c >> np.uint64(by), back) for c in opened.values])
