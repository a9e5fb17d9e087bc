"""Comparisons and truncation by Boolean circuits on shared bits.

The parties open c = x + r for a mask r that is uniform below p and whose bits are shared. c is
uniform and tells nothing of x. Then x = c - r + p w, where w = [c < r] is 1 if the sum wrapped. For
each bit, from the least,

    less_i = r_i and not c_i,  same_i = not (r_i xor c_i)

are linear in r_i, because c is public. Two neighbours combine to

    less = less_high xor (same_high and less_low),  same = same_high and same_low,

in a tree of depth log2. The first level needs no opening: for two bits, both are linear in r_low,
r_high and their product, which the dealer shares too. Each further level is one opening of masked
bits, and one mask of same_high serves both of its gates.

Source: Damgård, Fitzi, Kiltz, Nielsen, Toft, TCC 2006; the tree as in Catrina, de Hoogh, SCN 2010.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from securecomp.core import bit_kernels, bits, buffers, field, field_kernels
from securecomp.core.bits import Words
from securecomp.core.field import Residues
from securecomp.core.secret import Secret
from securecomp.mpc import correlated_randomness
from securecomp.mpc.dealer_parties import Lockstep
from securecomp.protocol.carrier import T

Shares = list[Residues]
"""One array a party that runs here."""
Slices = list[Words]
Range = tuple[Words, Words]
"""One party's shares of `less` and `same` of ranges of bits, each of shape (ranges, words)."""


@dataclass(frozen=True, slots=True, repr=False)
class OpenedBits(Secret):
    """One party's view of c = x + r: c itself, and its shares of r's bits.


    Attributes:
        value: c, shape (n,).
        slices: c's, shape (61, words).
        bits: Its shares of r's slices, shape (61, words).
        products: Its shares of r_low and r_high of each pair of bits, shape (30, words).
        high: Its share of floor(r / 2^by), if r is cut.
        first: Whether this party adds public numbers.
    """

    value: Residues
    slices: Words
    bits: Words
    products: Words
    high: Residues
    first: bool

    def leaves(self, low: int = 0, high: int = field.BITS) -> Range:
        """Return `less` and `same` of the pairs of bits from low to below high, pairs from low."""
        pairs = (high - low) // 2
        rows = -(-(high - low) // 2)
        less, same = (_rows(rows, self.bits.shape[1]) for _ in range(2))
        products = self.products[low // 2 :][:pairs]
        bit_kernels.leaves(
            self.bits[low:high], products, self.slices[low:high], self.first, less, same
        )
        return less, same


def opened(
    run: Lockstep,
    x: Callable[[int], Residues],
    count: int,
    then: Callable[[OpenedBits], T],
    by: int = 0,
) -> list[T]:
    """Open c = x + r, and return each party's result of a local step.

    Args:
        run: The parties.
        x: Gives a party's share of x, by its index. The array is overwritten.
        count: Number of elements.
        then: The local step.
        by: The bit at which r is cut; 0 for no cut.
    """
    parts = run.correlation("cut", (count, by)) if by else run.correlation("mask", (count,))

    def share(party: int) -> Residues:
        mine = x(party)
        return field.add(mine, parts[party][0], out=mine)

    def heard(party: int, value: Residues) -> T:
        rows = parts[party][-1].reshape(correlated_randomness.ROWS, -1)
        ours, products = rows[: field.BITS], rows[field.BITS :]
        high = parts[party][1]
        return then(OpenedBits(value, bits.slices(value), ours, products, high, party == 0))

    return run.open(count, share, heard)


def _rows(count: int, width: int) -> Words:
    return buffers.residues(count * width).reshape(count, width)


def both(run: Lockstep, x: Slices, y: Slices) -> Slices:
    """Return shares of x and y, bit by bit: one round."""
    shape, size = x[0].shape, x[0].size
    parts = run.correlation("gates", (size,))

    def share(party: int) -> Words:
        a, b, _ = parts[party]
        out = buffers.residues(2 * size)
        np.bitwise_xor(x[party].reshape(-1), a, out=out[:size])
        np.bitwise_xor(y[party].reshape(-1), b, out=out[size:])
        return out

    def product(party: int, shown: Words) -> Words:
        _, b, c = parts[party]
        out = buffers.residues(size)
        bit_kernels.join_gates(shown[:size], shown[size:], x[party].reshape(-1), b, c, out)
        return out.reshape(shape)

    return run.open(2 * size, share, product, 64)


def combined(run: Lockstep, forest: list[list[Range]]) -> list[list[Range]]:
    """Combine the ranges of each tree to one. A level takes one round for all trees together.

    Args:
        run: The parties.
        forest: For each party, the ranges of each tree.
    """
    width = forest[0][0][0].shape[1]
    while any(len(less) > 1 for less, _ in forest[0]):
        forest = _level(run, forest, [len(less) // 2 for less, _ in forest[0]], width)
    return forest


def _level(
    run: Lockstep, forest: list[list[Range]], pairs: Sequence[int], width: int
) -> list[list[Range]]:
    """Combine this number of pairs of neighbours in each tree."""
    dealt = [run.correlation("fork", (n * width,)) if n else [] for n in pairs]
    total = sum(pairs)
    ends = [3 * end for end in accumulate(pairs)]

    def share(party: int) -> Words:
        out = _rows(3 * total, width)
        for (less, same), parts, n, end in zip(forest[party], dealt, pairs, ends, strict=True):
            if n:
                x, y, _ = parts[party]
                x, y = x.reshape(n, width), y.reshape(2 * n, width)
                bit_kernels.hide_pairs(less, same, x, y, out[end - 3 * n : end])
        return out.reshape(-1)

    def join(party: int, shown: Words) -> list[Range]:
        rows = shown.reshape(3 * total, width)
        made = []
        for (less, same), parts, n, end in zip(forest[party], dealt, pairs, ends, strict=True):
            if not n:
                made.append((less, same))
                continue
            _, y, z = (v.reshape(-1, width) if width else v.reshape(2 * n, 0) for v in parts[party])
            new = _rows(len(less) - n, width), _rows(len(less) - n, width)
            bit_kernels.join_pairs(less, same, rows[end - 3 * n : end], y, z, *new)
            made.append(new)
        return made

    return run.open(3 * total * width, share, join, 64)


def to_field(
    run: Lockstep,
    slices: Slices,
    count: int,
    then: Callable[[int, list[Residues]], Residues] = lambda _, vectors: vectors[0],
) -> Shares:
    """Turn shared bits into shares over the field: one round.

    A random bit m is shared both ways. o = b xor m is opened, and b = o + (1 - 2 o) m.

    Args:
        run: The parties.
        slices: A party's slices, shape (rows, words), of `count` bits each.
        count: See `slices`.
        then: A local step of a party, by its index, on one vector a row; by default the first row.

    Returns:
        Each party's result of the local step.
    """
    rows, width = slices[0].shape
    size = 64 * width * (rows - 1) + count
    parts = run.correlation("bits", (size,))
    keep = bits.tail(count)

    def share(party: int) -> Words:
        mask = parts[party][1].reshape(rows, width)
        return ((slices[party] ^ mask) & keep).reshape(-1)

    def unmasked(party: int, shown: Words) -> Residues:
        out = buffers.residues(size)
        bit_kernels.unmask(shown, parts[party][0], party == 0, out)
        return then(party, [out[64 * width * row :][:count] for row in range(rows)])

    return run.open(rows * width, share, unmasked, 64)


def negative(run: Lockstep, x: Shares) -> Shares:
    """Return shares of [x < 0] over the field, for |x| <= (p-1)/2.

    2x mod p is odd exactly if x is negative, because the odd p is then subtracted once. Its last
    bit is c_0 xor r_0 xor w.
    """

    def start(c: OpenedBits) -> tuple[Range, Words]:
        last = c.bits[0] ^ c.slices[0] if c.first else c.bits[0]
        return c.leaves(), last

    count = x[0].size
    begun = opened(run, lambda i: field.add(x[i], x[i]), count, start)
    found = combined(run, [[leaves] for leaves, _ in begun])
    odd = [less ^ last for ((less, _),), (_, last) in zip(found, begun, strict=True)]
    return to_field(run, odd, count)


def zero(run: Lockstep, x: Shares) -> Shares:
    """Return shares of [x = 0], which holds if c and r are the same number."""
    count = x[0].size
    same = opened(run, lambda i: x[i].copy(), count, lambda c: c.leaves()[1])
    while len(same[0]) > 1:
        pairs = len(same[0]) // 2
        halves = both(run, [s[:pairs] for s in same], [s[pairs : 2 * pairs] for s in same])
        if len(same[0]) % 2:
            halves = [np.concatenate([h, s[-1:]]) for h, s in zip(halves, same, strict=True)]
        same = halves
    return to_field(run, same, count)


_OFFSET = 1 << 59


def shifted(run: Lockstep, x: Shares, by: int) -> Shares:
    """Return shares of floor(x / 2^by), exactly, for |x| < 2^59 and 0 < by < 59.

    With x' = x + 2^59 = c - r + p w, c = c1 2^by + c0 and r = r1 2^by + r0, and p = 2^61 - 1,
    floor(x' / 2^by) = c1 - r1 + w 2^(61-by) - u, where u = [c0 < r0 + w]: the low parts borrow.
    """
    count = x[0].size
    offset = np.array(_OFFSET, np.uint64)

    def start(c: OpenedBits) -> tuple[list[Range], OpenedBits]:
        return [c.leaves(0, by), c.leaves(by)], c

    def lifted(party: int) -> Residues:
        return x[party].copy() if party else field.add(x[0], offset)

    begun = opened(run, lifted, count, start, by)
    found = combined(run, [trees for trees, _ in begun])
    # w = less_high xor (same_high and less_low), and u = less_low xor (w and same_low). There
    # same_low excludes less_low, so that w and same_low = less_high and same_low.
    lower = [np.concatenate(low) for low, _ in found]  # less, then same
    upper = [np.concatenate([same, less]) for _, (less, same) in found]
    products = both(run, upper, lower)
    rows = [
        np.concatenate([less_high, low[:1]]) ^ p
        for (_, (less_high, _)), low, p in zip(found, lower, products, strict=True)
    ]

    def join(party: int, vectors: list[Residues]) -> Residues:
        out = buffers.residues(count)
        c = begun[party][1]
        field_kernels.shifted(*vectors, c.high, c.value, by, _OFFSET >> by, c.first, out)
        return out

    return to_field(run, rows, count, join)
