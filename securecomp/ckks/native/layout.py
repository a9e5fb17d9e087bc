"""Where rows and features go in the coefficients of polynomials, and where logits come out.

A linear model needs no slots and no rotations: numbers are encoded as coefficients, which halves
what is sent against the canonical embedding and keeps noise from being spread.

- *Columns*, for many rows: polynomial j holds feature j of up to N rows, coefficient i row i. A
  weight is a number, and logit i comes out at coefficient i.
- *Rows*, for few: a polynomial holds the features of floor(N/d) rows, one after the other. The
  weights are w_0 - sum_(j>0) w_j X^(N-j), which is sum_j w_j X^-j, and row r's logit comes out at
  coefficient r d. Rows of more than N features go over several polynomials.

Source of the second: inner products by coefficients, e.g. H. Chen, W. Dai, M. Kim, Y. Song,
Efficient multi-key homomorphic encryption ..., CCS 2019, section 5; M. Yasuda et al., Packed
homomorphic encryption based on ideal lattices, CD-ARES 2013.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowRun:
    """Consecutive rows that are laid out in one way.

    Attributes:
        degree: N.
        features: d.
        by_columns: Which way.
        start: The first row.
        rows: How many.
        most: Rows of a group at most; 0 for as many as it has room for.
    """

    degree: int
    features: int
    by_columns: bool
    start: int
    rows: int
    most: int = 0

    @cached_property
    def terms(self) -> int:
        """Polynomials that a group of rows takes."""
        return self.features if self.by_columns else -(-self.features // self.degree)

    @cached_property
    def capacity(self) -> int:
        """Rows of a group."""
        room = self.degree if self.by_columns else max(1, self.degree // self.features)
        return min(room, self.most) if self.most else room

    @cached_property
    def groups(self) -> int:
        """Groups of rows; a group has `terms` polynomials and gives one polynomial a logit."""
        return -(-self.rows // self.capacity)

    @property
    def polynomials(self) -> int:
        """Polynomials of all groups."""
        return self.groups * self.terms

    def count(self, group: int) -> int:
        """Return how many rows a group has."""
        return min(self.capacity, self.rows - group * self.capacity)

    def place(self, group: int) -> slice:
        """Return which rows a group has, of all sections' rows."""
        start = self.start + group * self.capacity
        return slice(start, start + self.count(group))

    def positions(self, group: int) -> npt.NDArray[np.intp]:
        """Return the coefficients where a group's logits come out, one a row."""
        stride = 1 if self.by_columns or self.features > self.degree else self.features
        return np.arange(self.count(group)) * stride

    def pack(self, integers: Integers, group: int, terms: slice, out: Integers) -> None:
        """Lay out some of a group's polynomials.

        Args:
            integers: All rows of all sections, shape (n, d).
            group: Which group.
            terms: Which of its polynomials.
            out: Their coefficients, shape (terms, N), written whole.
        """
        rows = integers[self.place(group)]
        if self.by_columns:
            out[:, : len(rows)] = rows[:, terms].T
            out[:, len(rows) :] = 0
            return
        flat = rows.reshape(-1)[terms.start * self.degree : terms.stop * self.degree]
        out.reshape(-1)[: flat.size] = flat
        out.reshape(-1)[flat.size :] = 0

    def weights(self, weights: Sequence[int]) -> npt.NDArray[np.object_]:
        """Return one logit's weights as polynomials, shape (terms, N), or (terms,) by columns."""
        numbers = np.array(weights, object)
        if self.by_columns:
            return numbers
        out = np.zeros((self.terms, self.degree), object)
        for term in range(self.terms):
            part = numbers[term * self.degree : (term + 1) * self.degree]
            out[term, 0] = part[0]
            out[term, self.degree - len(part) + 1 :] = -part[:0:-1]
        return out


@dataclass(frozen=True)
class Batch:
    """Polynomials of one group that are drawn and worked on together.

    Attributes:
        section: Of which section.
        output: The first of the group's logit polynomials, counted over all groups, in groups.
        group: Which group of the section.
        terms: Which of its polynomials.
        first: Position of the block's first polynomial in the whole request.
        index: Which block of the masks' stream it takes.
    """

    section: RowRun
    output: int
    group: int
    terms: slice
    first: int
    index: int


def blocks(found: Sequence[RowRun], step: int) -> list[Batch]:
    """Return a request's polynomials in blocks of at most `step`."""
    result: list[Batch] = []
    output = first = 0
    for section in found:
        for group in range(section.groups):
            for start in range(0, section.terms, step):
                terms = slice(start, min(start + step, section.terms))
                result.append(Batch(section, output, group, terms, first, len(result)))
                first += terms.stop - start
            output += 1
    return result


def sections(degree: int, features: int, outputs: int, rows: int) -> list[RowRun]:
    """Return how rows are laid out: whole columns first, the rest in what takes fewer bytes."""
    whole = rows // degree * degree
    found = [RowRun(degree, features, True, 0, whole)] if whole else []
    rest = rows - whole
    if rest:
        ways = [RowRun(degree, features, way, whole, rest) for way in (True, False)]
        # residues there (half of a fresh ciphertext is a seed) and back
        cost = [(s.polynomials + outputs * s.groups) * degree for s in ways]
        found.append(ways[cost[1] < cost[0]])
    return found
