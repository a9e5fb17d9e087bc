"""Correlations with MACs, which a dealer gives to parties that may deviate.

Every party has a share of the key alpha. Of every dealt value x it has a share of x and a share of
alpha x, the *MAC*. A party expands its shares from its seed, as in `correlated_randomness`. Only
the last party gets some as corrections: those of all MACs, and of the values that follow from
others.

Kinds, for n elements:

- triple: a, b uniform and c = a b; square: a and c = a^2; matrix: A, B and C = A B;
- own: r uniform, known to one party, which expands it from its own seed;
- digits: r uniform below p, cut into digits of three bits (`digits`), the least first. For each
  digit d there are rows of [d >= 1], [d >= 2] ... [d >= 7], each an element of the field.

The dealer learns shapes only. It is assumed to deal right correlations and to collude with nobody.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from securecomp.core import field
from securecomp.core.field import Residues
from securecomp.mpc.correlated_randomness import Correlations, Shape

Kind = Literal["triple", "square", "matrix", "own", "digits"]

CORRECTED: dict[Kind, tuple[int, ...]] = {
    "triple": (2,),
    "square": (1,),
    "matrix": (2,),
    "own": (0,),
    "digits": (0,),
}
"""The vectors whose share the last party gets from the dealer. It gets the MACs of all."""

_DIGIT = 3  # fewer bits: more openings; more bits: more to deal
_KEY = 0  # correlations are counted from 1
_KNOWN = 1 << 16  # parts of a correlation are counted from 0


def key_share(part: Correlations) -> Residues:
    """Return a party's share of alpha, shape ()."""
    return part.residues(_KEY, 0, 1).reshape(())


def known(part: Correlations, serial: int, size: int) -> Residues:
    """Return the mask that only the party with this part knows, beside the dealer."""
    return part.residues(serial, _KNOWN, size)


def sizes(kind: Kind, shape: Shape) -> tuple[int, ...]:
    """Return the number of elements of each vector of a correlation.

    Args:
        kind: The kind of correlation.
        shape: (n,); (m, k, n) for a matrix product; (n, owner) for an own mask; (n, cut) for
            digits.
    """
    if kind == "matrix":
        m, k, n = shape
        return m * k, k * n, m * n
    n = shape[0]
    if kind == "digits":
        return (n * sum((1 << bits) - 1 for _, bits in digits(shape[1])),)
    return {"triple": (n, n, n), "square": (n, n), "own": (n,)}[kind]


def digits(cut: int) -> list[tuple[int, int]]:
    """Return the lowest bit, and the number of bits, of every digit of a residue.

    Args:
        cut: A bit at which a digit must begin; 0 for no such bit.
    """
    return [
        (place, min(_DIGIT, end - place))
        for start, end in ((0, cut), (cut, field.BITS))
        for place in range(start, end, _DIGIT)
    ]


def expand(
    part: Correlations,
    serial: int,
    kind: Kind,
    shape: Shape,
    corrections: Sequence[Residues] | None = None,
) -> list[Residues]:
    """Return a party's vectors of a correlation, each of shape (2, n): shares, and their MACs.

    Args:
        part: The party's.
        serial: Number of the correlation.
        kind: The kind of correlation.
        shape: As `sizes` takes it.
        corrections: For the last party, the result of `corrections`.
    """
    rest = iter(corrections or ())
    out = []
    for vector, size in enumerate(sizes(kind, shape)):
        pair = np.empty((2, size), np.uint64)
        for row in (0, 1):
            corrected = row == 1 or vector in CORRECTED[kind]
            if corrections is not None and corrected:
                pair[row] = next(rest)
            else:
                pair[row] = part.residues(serial, 2 * vector + row, size)
        out.append(pair)
    return out


def corrections(
    parts: Sequence[Correlations],
    serial: int,
    kind: Kind,
    shape: Shape,
    clients: Sequence[Correlations] = (),
) -> list[Residues]:
    """Return the last party's corrections, in the order of the vectors.

    Args:
        parts: All parties', the last party's at the end.
        serial: Number of the correlation.
        kind: The kind of correlation.
        shape: As `sizes` takes it.
        clients: The clients', who know masks too. They are counted after the parties.
    """
    key = _total([key_share(part) for part in parts])
    others = [expand(part, serial, kind, shape) for part in parts[:-1]]
    values: list[Residues] = []
    out: list[Residues] = []
    for vector, size in enumerate(sizes(kind, shape)):
        shares = [pairs[vector][0] for pairs in others]
        if vector in CORRECTED[kind]:
            values.append(_value((parts, clients), serial, kind, shape, values))
            out.append(_rest(values[-1], shares))
        else:
            values.append(_total([*shares, parts[-1].residues(serial, 2 * vector, size)]))
        tags = field.multiply(values[-1], key)
        out.append(_rest(tags, [pairs[vector][1] for pairs in others]))
    return out


def _value(
    held: tuple[Sequence[Correlations], Sequence[Correlations]],
    serial: int,
    kind: Kind,
    shape: Shape,
    free: list[Residues],
) -> Residues:
    """Return a vector that follows from the vectors before it, or from parties' own masks."""
    parts, clients = held
    if kind == "matrix":
        m, k, n = shape
        return field.matmul(free[0].reshape(m, k), free[1].reshape(k, n)).reshape(-1)
    if kind == "own":
        return known((*parts, *clients)[shape[1]], serial, shape[0])
    if kind == "digits":
        r = _total([known(part, serial, shape[0]) for part in parts])
        rows = []
        for place, bits in digits(shape[1]):
            digit = (r >> np.uint64(place)) & np.uint64((1 << bits) - 1)
            rows += [digit >= np.uint64(value) for value in range(1, 1 << bits)]
        return np.concatenate(rows).astype(np.uint64)
    return field.multiply(free[0], free[-1])


def _total(shares: Sequence[Residues]) -> Residues:
    out = shares[0].copy()
    for share in shares[1:]:
        field.add(out, share, out=out)
    return out


def _rest(value: Residues, shares: Sequence[Residues]) -> Residues:
    out = value.copy()
    for share in shares:
        field.subtract(out, share, out=out)
    return out
