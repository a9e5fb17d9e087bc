"""Layout of rows and features in the coefficients of polynomials, and of the logits.

A linear model needs no slots and no rotations. Numbers are encoded as coefficients: this halves the
bytes of the canonical embedding, and noise does not spread.

- *Columns*, for many rows: polynomial j holds feature j of up to N rows, coefficient i row i. A
  weight is a number, and logit i comes out at coefficient i.
- *Rows*, for few rows: a polynomial holds the features of floor(N/d) rows, one after another. The
  weights are w_0 - sum_(j>0) w_j X^(N-j), which is sum_j w_j X^-j, and row r's logit comes out at
  coefficient r d. A row of more than N features takes several polynomials.

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
    """Consecutive rows with one layout.

    Attributes:
        degree: N.
        features: d.
        by_columns: Whether the layout is by columns.
        start: Index of the first row.
        rows: Number of rows.
        most: Most rows of a group; 0 for as many as fit.
    """

    degree: int
    features: int
    by_columns: bool
    start: int
    rows: int
    most: int = 0

    @cached_property
    def terms(self) -> int:
        """Polynomials of one group of rows."""
        return self.features if self.by_columns else -(-self.features // self.degree)

    @cached_property
    def capacity(self) -> int:
        """Rows in a full group."""
        room = self.degree if self.by_columns else max(1, self.degree // self.features)
        return min(room, self.most) if self.most else room

    @cached_property
    def groups(self) -> int:
        """Number of groups. A group has `terms` polynomials and gives one polynomial per logit."""
        return -(-self.rows // self.capacity)

    @property
    def polynomials(self) -> int:
        """Polynomials of all groups."""
        return self.groups * self.terms

    def count(self, group: int) -> int:
        """Return the number of rows in a group."""
        return min(self.capacity, self.rows - group * self.capacity)

    def place(self, group: int) -> slice:
        """Return the rows of a group, as indices into all rows of the request."""
        start = self.start + group * self.capacity
        return slice(start, start + self.count(group))

    def positions(self, group: int) -> npt.NDArray[np.intp]:
        """Return the coefficients of a group's logits, one for each row."""
        stride = 1 if self.by_columns or self.features > self.degree else self.features
        return np.arange(self.count(group)) * stride

    def pack(self, integers: Integers, group: int, terms: slice, out: Integers) -> None:
        """Lay out some of a group's polynomials.

        Args:
            integers: All rows of the request, shape (n, d).
            group: Index of the group.
            terms: Range of its polynomials.
            out: Their coefficients, shape (terms, N). Every place is written.
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
        section: The rows that the group belongs to.
        output: Index of the group among all groups of the request.
        group: Index of the group in its section.
        terms: Range of the group's polynomials.
        first: Position of the first of them in the whole request.
        index: Block of the masks' stream that belongs to them.
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
    """Return the layout of rows: full columns first, the rest in the way that takes fewer bytes."""
    whole = rows // degree * degree
    found = [RowRun(degree, features, True, 0, whole)] if whole else []
    rest = rows - whole
    if rest:
        ways = [RowRun(degree, features, way, whole, rest) for way in (True, False)]
        # residues there (half of a fresh ciphertext is a seed) and back
        cost = [(s.polynomials + outputs * s.groups) * degree for s in ways]
        found.append(ways[cost[1] < cost[0]])
    return found
