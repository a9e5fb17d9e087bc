"""Boolean circuits on shared bit slices: comparing with a mask's bits, and back to the field.

To learn something of the bits of a shared x, the parties open c = x + r for a mask r that is
uniform below p, with r's bits shared; c is uniform and says nothing of x. Then x = c - r + p w,
where w = [c < r] tells whether the sum wrapped. For each bit, from the least,

    less_i = r_i and not c_i,  same_i = not (r_i xor c_i)

are linear in r_i, as c is public. Neighbours combine, the higher over the lower,

    less = less_high xor (same_high and less_low),  same = same_high and same_low,

in a tree of depth log2: each level is one opening of masked bits (AND gates).

Source: Damgård, Fitzi, Kiltz, Nielsen, Toft, TCC 2006; the tree as in Catrina, de Hoogh, SCN 2010.
"""

from collections.abc import Sequence

import numpy as np

from securecomp.core import bits, field
from securecomp.core.bits import Words
from securecomp.core.field import Residues
from securecomp.sharing.computing import Lockstep

Shares = list[Residues]
"""One array a party that runs here."""
Slices = list[Words]


def exclusive_or(slices: Slices, constant: Words) -> Slices:
    """Return shares of x xor a public constant: one party changes its own."""
    return [slices[0] ^ constant, *slices[1:]]


def both(run: Lockstep, x: Slices, y: Slices) -> Slices:
    """Return shares of x and y, bit by bit: one round."""
    shape = x[0].shape
    size = x[0].size
    parts = run.correlation("gates", (size,))
    masked = [
        np.concatenate([xs.reshape(-1) ^ a, ys.reshape(-1) ^ b])
        for xs, ys, (a, b, _) in zip(x, y, parts, strict=True)
    ]
    opened = run.open_words(masked)
    d, e = opened[:size], opened[size:]
    out = []
    for party, (a, b, c) in zip(run.parties, parts, strict=True):
        z = c ^ (d & b) ^ (e & a)
        if party.index == 0:
            z ^= d & e
        out.append(z.reshape(shape))
    return out


class Opened:
    """c = x + r, and shares of r's bits.

    Attributes:
        value: c, shape (n,).
        bits: Shares of r's slices, shape (61, words).
        slices: c's, shape (61, words).
        high: Shares of floor(r / 2^by), if there is a cut.
    """

    def __init__(self, run: Lockstep, x: Shares, by: int = 0) -> None:
        count = x[0].size
        parts = run.correlation("cut", (count, by)) if by else run.correlation("mask", (count,))
        self.value = run.open([field.add(xs, p[0]) for xs, p in zip(x, parts, strict=True)])
        self.bits = [p[-1].reshape(field.BITS, -1) for p in parts]
        self.high = [p[1] for p in parts] if by else []
        self.slices = bits.slices(self.value)


def less_and_same(run: Lockstep, opened: Opened, low: int, high: int) -> tuple[Slices, Slices]:
    """Return shares of [c' < r'] and [c' = r'] for the bits from low to below high, as slices."""
    c = opened.slices[low:high]
    less = [b[low:high] & ~c for b in opened.bits]
    same = exclusive_or([b[low:high] for b in opened.bits], ~c)
    while len(less[0]) > 1:
        odd = len(less[0]) % 2
        # Row 0 is the least bit. An odd one out at the top waits for the next level.
        pairs = len(less[0]) // 2
        top = [s[0 : 2 * pairs : 2] for s in less], [s[0 : 2 * pairs : 2] for s in same]
        less_low, same_low = top
        less_high = [s[1 : 2 * pairs : 2] for s in less]
        same_high = [s[1 : 2 * pairs : 2] for s in same]
        products = both(
            run,
            [np.concatenate([s, s]) for s in same_high],
            [np.concatenate([a, b]) for a, b in zip(less_low, same_low, strict=True)],
        )
        new_less = [h ^ p[:pairs] for h, p in zip(less_high, products, strict=True)]
        new_same = [p[pairs:] for p in products]
        if odd:
            new_less = [np.concatenate([n, s[-1:]]) for n, s in zip(new_less, less, strict=True)]
            new_same = [np.concatenate([n, s[-1:]]) for n, s in zip(new_same, same, strict=True)]
        less, same = new_less, new_same
    return [s[0] for s in less], [s[0] for s in same]


def to_field(run: Lockstep, slices: Sequence[Words], count: int) -> Shares:
    """Return shares over the field of shared bits, shape (count,): one round.

    For a random bit m that is shared both ways o = b xor m is opened, and b = o + (1 - 2 o) m.
    """
    parts = run.correlation("bits", (count,))
    keep = bits.tail(count)
    opened = run.open_words([(s ^ m) & keep for s, (_, m) in zip(slices, parts, strict=True)])
    shown = bits.spread(opened, count)
    sign = np.where(shown == 1, np.uint64(field.MODULUS - 1), np.uint64(1))
    out = []
    for party, (b, _) in zip(run.parties, parts, strict=True):
        share = field.multiply(sign, b)
        out.append(field.add(share, shown) if party.index == 0 else share)
    return out


def negative(run: Lockstep, x: Shares) -> Shares:
    """Return shares of [x < 0] over the field, for |x| <= (p-1)/2.

    2x mod p is odd exactly if x is negative: p is odd, and taken off once. Its last bit is
    c_0 xor r_0 xor w.
    """
    opened = Opened(run, [field.add(xs, xs) for xs in x])
    wrapped, _ = less_and_same(run, opened, 0, field.BITS)
    odd = [w ^ b[0] for w, b in zip(wrapped, opened.bits, strict=True)]
    return to_field(run, exclusive_or(odd, opened.slices[0]), x[0].size)


def zero(run: Lockstep, x: Shares) -> Shares:
    """Return shares of [x = 0]: c and r are the same number."""
    opened = Opened(run, x)
    same = exclusive_or(opened.bits, ~opened.slices)
    while len(same[0]) > 1:
        pairs = len(same[0]) // 2
        rest = [s[2 * pairs :] for s in same]
        halves = both(run, [s[:pairs] for s in same], [s[pairs : 2 * pairs] for s in same])
        same = [np.concatenate([h, r]) for h, r in zip(halves, rest, strict=True)]
    return to_field(run, [s[0] for s in same], x[0].size)


_OFFSET = 1 << 59


def shifted(run: Lockstep, x: Shares, by: int) -> Shares:
    """Return shares of floor(x / 2^by), exactly, for |x| < 2^59 and 0 < by < 59.

    With x' = x + 2^59 = c - r + p w, c = c1 2^by + c0 and r = r1 2^by + r0, and p = 2^61 - 1,
    floor(x' / 2^by) = c1 - r1 + w 2^(61-by) - u, where u = [c0 < r0 + w]: the low parts borrow.
    """
    lifted = [field.add(x[0], np.array(_OFFSET, np.uint64)), *x[1:]]
    opened = Opened(run, lifted, by)
    less_low, same_low = less_and_same(run, opened, 0, by)
    less_high, same_high = less_and_same(run, opened, by, field.BITS)
    count = x[0].size
    # w, then u = less_low xor (w and same_low): w and same_low exclude less_low's case.
    first = both(run, same_high, less_low)
    wrapped = [h ^ f for h, f in zip(less_high, first, strict=True)]
    second = both(run, wrapped, same_low)
    borrowed = [low ^ s for low, s in zip(less_low, second, strict=True)]
    w, u = to_field(run, wrapped, count), to_field(run, borrowed, count)
    public = (opened.value >> np.uint64(by)) % np.uint64(field.MODULUS)
    back = np.array(_OFFSET >> by, np.uint64)
    turn = np.array(1 << (field.BITS - by), np.uint64)
    out = []
    for party, ws, us, rs in zip(run.parties, w, u, opened.high, strict=True):
        share = field.multiply(ws, turn)
        share = field.subtract(field.subtract(share, us), rs)
        if party.index == 0:
            share = field.subtract(field.add(share, public), back)
        out.append(share)
    return out
