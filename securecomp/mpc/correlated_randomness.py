"""Correlated randomness from a dealer that takes no part in the computation and sees no data.

Every party gets a 32-byte seed from the dealer at the start, and expands its part of each
correlation from it. The parts must fit together, so for each correlation the last party also gets a
*correction*. Correlations are numbered, and a number is used once.

Kinds, for n elements (shares over the field are added, shares of bits are exclusive-ored):

- triple: a, b uniform and c = a b; square: a and c = a^2; matrix: A, B and C = A B;
- mask: r uniform below p; and as shared bit slices its 61 bits, and the product of each pair of
  neighbours (bits 0 and 1, 2 and 3, and so on);
- cut: the same, with pairs of the bits below `by` and pairs of the others; and floor(r / 2^by) over
  the field;
- gates: slices x, y and z = x & y, bit by bit; fork: x, two of y and two of z;
- bits: b in {0, 1}, shared over the field and as a slice (a "daBit").

The dealer learns the shapes of the computation and nothing else. The dealer together with one party
opens everything. Every party trusts that the correlations are right: nothing checks them.

Sources: Beaver, CRYPTO 1991 (triples); Rotaru, Wood, INDOCRYPT 2019 (daBits); Boyle et al.,
CCS 2019 (expanding correlations from seeds).
"""

from collections.abc import Container, Sequence
from functools import reduce
from typing import Literal

import numpy as np

from securecomp.core import bits, buffers, field, field_kernels, prg
from securecomp.core.bits import Words
from securecomp.core.field import Residues
from securecomp.core.secret import Secret

Kind = Literal["triple", "square", "matrix", "mask", "cut", "gates", "fork", "bits"]
Shape = tuple[int, ...]
SEED_BYTES = prg.SEED_BYTES
ROWS = field.BITS + 30
"""Slices of a mask: 61 bits, then 30 products. Wherever the bits are cut, one has no pair."""


def seed_keys(seed: bytes, session: bytes) -> bytes:
    """Return the key from which a party expands its parts of a session's correlations."""
    return prg.derive(seed, "sharing correlations", session)


class Correlations(Secret):
    """One party's part of the correlations: what its key expands to."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def key(self, serial: int, part: int) -> bytes:
        """Return the key of a vector of residues."""
        return prg.derive(self._key, "residues", serial, part)

    def residues(self, serial: int, part: int, size: int) -> Residues:
        """Return uniform residues, shape (size,)."""
        return prg.expand(self.key(serial, part), size)

    def words(self, serial: int, part: int, size: int) -> Words:
        """Return uniform words, shape (size,)."""
        return prg.expand_words(prg.derive(self._key, "words", serial, part), size)


def sizes(kind: Kind, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how many residues, and how many words, each vector of a correlation has.

    Args:
        kind: The kind of correlation.
        shape: (n,); (m, k, n) for a matrix product, (n, by) for a cut.
    """
    if kind == "matrix":
        m, k, n = shape
        return (m * k, k * n, m * n), ()
    if kind == "cut":
        n, _ = shape
        return (n, n), (ROWS * bits.words(n),)
    (n,) = shape
    w = bits.words(n)
    return {
        "triple": ((n, n, n), ()),
        "square": ((n, n), ()),
        "mask": ((n,), (ROWS * w,)),
        "gates": ((), (n, n, n)),  # here n counts words
        "fork": ((), (n, 2 * n, 2 * n)),
        "bits": ((n,), (w,)),
    }[kind]


def expand(
    part: Correlations, serial: int, kind: Kind, shape: Shape, waiting: Container[int] = ()
) -> list[Residues]:
    """Return a party's vectors of a correlation, residues first.

    Args:
        part: The party's.
        serial: Number of the correlation.
        kind: The kind of correlation.
        shape: As `sizes` takes it.
        waiting: Vectors to leave empty, for the last party's corrections.
    """
    numbers, slices = sizes(kind, shape)
    found = []
    for vector, size in enumerate((*numbers, *slices)):
        if vector in waiting:
            found.append(np.zeros(0, np.uint64))
        elif vector < len(numbers):
            found.append(part.residues(serial, vector, size))
        else:
            found.append(part.words(serial, vector - len(numbers), size))
    return found


CORRECTED: dict[Kind, tuple[int, ...]] = {
    "triple": (2,),
    "square": (1,),
    "matrix": (2,),
    "mask": (1,),
    "cut": (1, 2),
    "gates": (2,),
    "fork": (2,),
    "bits": (0,),
}
"""The vectors that the last party gets from the dealer."""


def is_words(kind: Kind, vector: int) -> bool:
    """Return whether a vector of a correlation has words, not residues."""
    return kind in ("gates", "fork") or (kind, vector) in (("mask", 1), ("cut", 2), ("bits", 1))


def corrections(
    parts: Sequence[Correlations], serial: int, kind: Kind, shape: Shape
) -> list[Residues]:
    """Return the corrections: the last party's vectors that `CORRECTED` lists.

    Args:
        parts: All parties', the last party's at the end.
        serial: Number of the correlation.
        kind: The kind of correlation.
        shape: As `sizes` takes it.
    """
    numbers, slices = sizes(kind, shape)
    count = len(numbers)

    def keys(vector: int, of: Sequence[Correlations] = parts) -> list[bytes]:
        return [part.key(serial, vector) for part in of]

    def total(vector: int) -> Residues:
        out = buffers.zeros(numbers[vector])
        prg.accumulate(out, keys(vector))
        return out

    def joined(vector: int, of: Sequence[Correlations] = parts) -> Words:
        place = vector - count
        size = slices[place]
        return reduce(np.bitwise_xor, (part.words(serial, place, size) for part in of))

    def rest(value: Residues, vector: int) -> Residues:
        """Subtract the other parties' shares from a value, in place."""
        if is_words(kind, vector):
            value ^= joined(vector, parts[:-1])
        else:
            prg.accumulate(value, keys(vector, parts[:-1]), -1)
        return value

    values: list[Residues]
    if kind == "matrix":
        values = [_product(total(0), total(1), shape)]
    elif kind in ("triple", "square"):
        values = [_products(numbers[0], [keys(v) for v in range(count - 1)])]
    elif kind == "gates":
        values = [joined(0) & joined(1)]
    elif kind == "fork":
        values = [(joined(0) & joined(1).reshape(2, -1)).reshape(-1)]
    elif kind == "bits":
        values = [bits.spread(joined(1), shape[0])]
    else:
        r = total(0)
        by = shape[1] if kind == "cut" else 0
        sliced = _with_products(bits.slices(r), by)
        values = [r >> np.uint64(by), sliced] if by else [sliced]
    return [rest(v, vector) for v, vector in zip(values, CORRECTED[kind], strict=True)]


def _products(size: int, factors: Sequence[Sequence[bytes]]) -> Residues:
    """Return a b, or a^2 of one factor. Each factor is the sum of what its keys expand to."""
    masks = [prg.Masks(keys) for keys in factors]
    places = np.empty((len(masks), min(size, prg.BLOCK_WORDS)), np.uint64)
    out = buffers.residues(size)
    for index, start in enumerate(range(0, size, prg.BLOCK_WORDS)):
        block = out[start : start + prg.BLOCK_WORDS]
        factor = places[:, : block.size]
        factor[:] = 0
        for mask, one in zip(masks, factor, strict=True):
            mask.add_to(one, index)
        field_kernels.multiply(factor[0], factor[-1], block)
    return out


def _with_products(rows: Words, by: int) -> Words:
    """Return all slices of a mask, flat: its bits, and the products of pairs on each side."""
    out = buffers.residues(ROWS * rows.shape[1]).reshape(ROWS, -1)
    out[: field.BITS] = rows
    for side, place in ((rows[:by], 0), (rows[by:], by // 2)):
        pairs = len(side) // 2
        made = out[field.BITS + place :][:pairs]
        np.bitwise_and(side[: 2 * pairs : 2], side[1 : 2 * pairs : 2], out=made)
    return out.reshape(-1)


def _product(a: Residues, b: Residues, shape: Shape) -> Residues:
    m, k, n = shape
    return field.matmul(a.reshape(m, k), b.reshape(k, n)).reshape(-1)
