"""Correlated randomness from a dealer that takes no part in the computation and sees no data.

Every party has a 32-byte seed from the dealer, once for a computation, and expands its part of each
correlation from it. Only the last party needs more: what makes its part fit the others', a
*correction*, for each correlation. Correlations are numbered; a number is used once.

Kinds, for n elements (shares over the field sum up, shares of bits are exclusive-ored):

- triple: a, b uniform and c = a b; square: a and c = a^2; matrix: A, B and C = A B;
- mask: r uniform below p, and its 61 bits as shared bit slices;
- cut: the same, and floor(r / 2^by) over the field;
- gates: slices x, y and z = x & y, bit by bit;
- bits: b in {0, 1}, shared over the field and as a slice (a "daBit").

What the dealer learns: the shapes of the computation, nothing else. The dealer together with one
party opens everything. Every party trusts that the correlations are right (there is no check).

Sources: Beaver, CRYPTO 1991 (triples); Rotaru, Wood, INDOCRYPT 2019 (daBits); Boyle et al.,
CCS 2019 (expanding correlations from seeds).
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from securecomp.core import bits, field, prg
from securecomp.core.bits import Words
from securecomp.core.field import Residues

Kind = Literal["triple", "square", "matrix", "mask", "cut", "gates", "bits"]
Shape = tuple[int, ...]
SEED_BYTES = prg.SEED_BYTES


def seed_keys(seed: bytes, session: bytes) -> bytes:
    """Return the key that a party's part of all correlations of a session is expanded from."""
    return prg.derive(seed, "sharing correlations", session)


class Part:
    """One party's part of the correlations: what its key expands to. Shows no secret."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def residues(self, serial: int, part: int, size: int) -> Residues:
        """Return uniform residues, shape (size,)."""
        return prg.expand(prg.derive(self._key, "residues", serial, part), size)

    def words(self, serial: int, part: int, size: int) -> Words:
        """Return uniform words, shape (size,)."""
        stream = prg.Uniform(prg.derive(self._key, "words", serial, part))
        out = np.empty(size, np.uint64)
        for index, start in enumerate(range(0, size, prg.BLOCK_WORDS)):
            block = out[start : start + prg.BLOCK_WORDS]
            block[:] = stream.words(block.size, index)
        return out

    def __repr__(self) -> str:
        return "Part(secret)"


def sizes(kind: Kind, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how many residues, and how many words, each vector of a correlation has.

    Args:
        kind: Which.
        shape: (n,); (m, k, n) for a matrix product, (n, by) for a cut.
    """
    if kind == "matrix":
        m, k, n = shape
        return (m * k, k * n, m * n), ()
    if kind == "cut":
        n, _ = shape
        return (n, n), (field.BITS * bits.words(n),)
    (n,) = shape
    w = bits.words(n)
    return {
        "triple": ((n, n, n), ()),
        "square": ((n, n), ()),
        "mask": ((n,), (field.BITS * w,)),
        "gates": ((), (n, n, n)),  # here n counts words
        "bits": ((n,), (w,)),
    }[kind]


def expand(
    part: Part, serial: int, kind: Kind, shape: Shape, given: Mapping[int, Residues] | None = None
) -> list[Residues]:
    """Return a party's vectors of a correlation, residues first.

    Args:
        part: Whose.
        serial: Number of the correlation.
        kind: Which.
        shape: As `sizes` takes it.
        given: Vectors that are not expanded: the last party's corrections.
    """
    numbers, slices = sizes(kind, shape)
    given = given or {}
    found = []
    for vector, size in enumerate((*numbers, *slices)):
        if vector in given:
            found.append(given[vector])
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
    "bits": (0,),
}
"""Which vectors the last party gets from the dealer."""


def is_words(kind: Kind, vector: int) -> bool:
    """Return whether a vector of a correlation has words, not residues."""
    return kind == "gates" or (kind, vector) in (("mask", 1), ("cut", 2), ("bits", 1))


def corrections(parts: Sequence[Part], serial: int, kind: Kind, shape: Shape) -> list[Residues]:
    """Return the vectors that the last party takes in place of its own, as `CORRECTED` lists them.

    Args:
        parts: All parties', the last party's at the end.
        serial: Number of the correlation.
        kind: Which.
        shape: As `sizes` takes it.
    """
    each = [expand(part, serial, kind, shape) for part in parts[:-1]]
    nothing = np.zeros(0, np.uint64)  # what is made here
    each.append(expand(parts[-1], serial, kind, shape, dict.fromkeys(CORRECTED[kind], nothing)))

    def total(vector: int) -> Residues:
        out = each[0][vector].copy()
        for vectors in each[1:]:
            field.add(out, vectors[vector], out=out)
        return out

    def joined(vector: int) -> Words:
        out = each[0][vector].copy()
        for vectors in each[1:]:
            out ^= vectors[vector]
        return out

    def rest(value: Residues, vector: int) -> Residues:
        """What is left of a value without the others' shares."""
        value = value.copy()
        for vectors in each[:-1]:
            if is_words(kind, vector):
                value ^= vectors[vector]
            else:
                field.subtract(value, vectors[vector], out=value)
        return value

    values: list[Residues]
    if kind == "matrix":
        values = [_product(total(0), total(1), shape)]
    elif kind == "triple":
        values = [field.multiply(total(0), total(1))]
    elif kind == "square":
        a = total(0)
        values = [field.multiply(a, a)]
    elif kind == "gates":
        values = [joined(0) & joined(1)]
    elif kind == "bits":
        values = [bits.spread(joined(1), shape[0])]
    else:
        r = total(0)
        sliced = bits.slices(r).reshape(-1)
        values = [sliced] if kind == "mask" else [r >> np.uint64(shape[-1]), sliced]
    return [rest(v, vector) for v, vector in zip(values, CORRECTED[kind], strict=True)]


def _product(a: Residues, b: Residues, shape: Shape) -> Residues:
    m, k, n = shape
    return field.matmul(a.reshape(m, k), b.reshape(k, n)).reshape(-1)
