"""Sums of products of columns, exact: what a site computes, and what all sites' totals say.

Every column is integers: multiples of its unit, or, where it has none (a logarithm, say) or is too
wide, of a 40th binary digit of its bound. A site's sums of products are computed by BLAS on digits
that are small enough for float64 to add up without rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp
from typing import Any

import numpy as np
import numpy.typing as npt
from gmpy2 import mpq

from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.regression.expressions import Expression
from securecomp.statistics.schema import MAX_ROWS

_WIDEST = 50  # bits of a column's own integers, which floats still tell apart
_ROUNDED = 40  # bits of a column that is rounded
_WEIGHTS = 31  # bits of weights; times a digit they are below 2^52
_DIGIT = 20
_EXACT = 1 << 53
_MOST = 1 << 16  # rows of a chunk
_FLUSH = 512  # chunks that int64 holds


@dataclass(frozen=True, slots=True)
class ColumnGrid:
    """A column's grid: it turns values into integers.

    Attributes:
        unit: One integer step.
        limit: The largest absolute integer.
        exact: Whether every value is a whole multiple.
    """

    unit: Fraction
    limit: int
    exact: bool

    @classmethod
    def of(cls, column: Expression, widest: int, rounded: int) -> "ColumnGrid":
        """Choose a column's grid.

        Args:
            column: The column.
            widest: Its own grid is taken if its integers have at most so many bits.
            rounded: Otherwise they are rounded to so many.
        """
        if column.unit is not None and column.units <= 1 << widest:
            return cls(column.unit, column.units, True)
        exponent = frexp(float(column.largest))[1]
        unit = Fraction(2) ** (exponent - rounded + 1)
        return cls(unit, int(column.largest / unit) + 1, False)

    def integers(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return values in units, as floats that are integers."""
        return np.rint(values * float(1 / self.unit))


def grids_of(
    columns: Sequence[Expression], weights: Expression | None
) -> tuple[tuple[ColumnGrid, ...], ColumnGrid | None]:
    """Choose the grids of columns and of weights."""
    grids = tuple(ColumnGrid.of(column, _WIDEST, _ROUNDED) for column in columns)
    return grids, None if weights is None else ColumnGrid.of(weights, _WEIGHTS, _WEIGHTS)


def products(
    columns: npt.NDArray[np.float64],
    grids: Sequence[ColumnGrid],
    weights: npt.NDArray[np.float64] | None = None,
    weight_grid: ColumnGrid | None = None,
) -> npt.NDArray[Any]:
    """Return the sums over rows of the products of all pairs of columns, in units; exact.

    Args:
        columns: Shape (rows, p), each in its own unit.
        grids: Of each column.
        weights: Shape (rows,), or None.
        weight_grid: Of the weights.

    Returns:
        The upper triangle row by row, shape (p (p + 1) / 2,): int64, or Python ints.
    """
    widest = max(grid.limit for grid in grids)
    heaviest = widest * (weight_grid.limit if weight_grid else 1)
    left, right = _digits(heaviest), _digits(widest)
    # A digit of a product with weights is the sum of as many as the column has.
    largest = min(heaviest, right << _DIGIT) * min(widest, 1 << _DIGIT)
    step = max(1, min(_MOST, _EXACT // max(1, largest)))
    inverse = np.array([float(1 / grid.unit) for grid in grids])
    triangle = np.triu_indices(len(grids))
    total = _Total(len(triangle[0]), left, right, heaviest * widest * len(columns))
    for start in range(0, len(columns), step):
        other = _cut(np.rint(columns[start : start + step] * inverse), right)
        one = other
        if weights is not None and weight_grid is not None:
            by = weight_grid.integers(weights[start : start + step])[:, None]
            one = _multiplied(other, by, left)
        for i, a in enumerate(one):
            for j, b in enumerate(other):
                if weights is not None or j >= i:
                    found = a.T @ b
                    if weights is None and j > i:
                        found = found + found.T
                    total.add(i + j, found[triangle])
    return total.value()


def _digits(limit: int) -> int:
    return max(1, -(-limit.bit_length() // _DIGIT)) if limit > 1 << _DIGIT else 1


def _cut(integers: npt.NDArray[np.float64], count: int) -> list[npt.NDArray[np.float64]]:
    """Cut integers in base 2^20, the last digit signed and the others not."""
    digits = []
    for _ in range(count - 1):
        above = np.floor(integers / (1 << _DIGIT))
        digits.append(integers - above * (1 << _DIGIT))
        integers = above
    return [*digits, integers]


def _multiplied(
    digits: Sequence[npt.NDArray[np.float64]], by: npt.NDArray[np.float64], count: int
) -> list[npt.NDArray[np.float64]]:
    """Return the digits of a product; each is the sum of as many digits as there are factors."""
    found = [np.zeros_like(digits[0]) for _ in range(count)]
    for i, digit in enumerate(digits):
        for j, part in enumerate(_cut(digit * by, count - i)):
            found[i + j] += part
    return found


class _Total:
    """Adds up products of digits: int64 as long as it has room."""

    def __init__(self, size: int, left: int, right: int, largest: int) -> None:
        self._parts = np.zeros((left + right - 1, size), np.int64)
        self._wide: npt.NDArray[Any] | None = None
        self._narrow = largest < 1 << 62
        self._count = 0

    def add(self, place: int, values: npt.NDArray[np.float64]) -> None:
        self._parts[place] += values.astype(np.int64)
        self._count += 1
        if self._count >= _FLUSH:
            self._wide = self.value()
            self._narrow = False
            self._parts[:] = 0
            self._count = 0

    def value(self) -> npt.NDArray[Any]:
        parts = self._parts if self._narrow else self._parts.astype(object)
        found = parts[0].copy()
        for place in range(1, len(parts)):
            found += parts[place] << _DIGIT * place
        wide: npt.NDArray[Any] = found
        return wide if self._wide is None else wide.astype(object) + self._wide


@dataclass(frozen=True, slots=True)
class ProductTotals:
    """Totals over all sites, exact.

    Attributes:
        rows: The number of rows.
        weight: The sum of the weights; the rows without.
        sums: Sum of each column, shape (d,), as mpq; all weighted.
        squares: Sums of products of columns, shape (d, d).
        with_response: Sums of products with the response, shape (d,).
        response: Sum of the response.
        response_squared: Sum of its squares; 0 if it was not asked for.
        units: The unit of each column's integers, shape (d,); 1 for one without a grid.
        rounding: The unit that each column was rounded to, shape (d,); 0 for one on its grid.
        response_rounded: Whether the response was rounded.
        exact: Whether every column, the response and the weights were on their grids.
    """

    rows: int
    weight: Any
    sums: npt.NDArray[Any]
    squares: npt.NDArray[Any]
    with_response: npt.NDArray[Any]
    response: Any
    response_squared: Any
    units: npt.NDArray[Any]
    rounding: npt.NDArray[Any]
    response_rounded: bool
    exact: bool


@dataclass(frozen=True, slots=True)
class Products:
    """Summed products of 1, the columns and the response, each with each.

    Attributes:
        names: Of the columns.
        response: The response's name.
        weights: The weights' name; "" without.
        grids: Of 1, each column and the response.
        weight_grid: Of the weights.
        squared: Whether the response's square is summed too.
    """

    names: tuple[str, ...]
    response: str
    weights: str
    grids: tuple[ColumnGrid, ...]
    weight_grid: ColumnGrid | None
    squared: bool

    def _pairs(self) -> list[tuple[int, int]]:
        size = len(self.grids)
        pairs = [(i, j) for i in range(size) for j in range(i, size)]
        return pairs if self.squared else pairs[:-1]

    def _sizes(self) -> list[tuple[int, list[int]]]:
        """Return entries of about one size together: the largest absolute value, and which."""
        heaviest = self.weight_grid.limit if self.weight_grid else 1
        sizes: dict[int, list[int]] = {}
        bounds = []
        for at, (i, j) in enumerate(self._pairs()):
            bounds.append(MAX_ROWS * self.grids[i].limit * self.grids[j].limit * heaviest)
            sizes.setdefault(-(-bounds[at].bit_length() // 8), []).append(at)
        return [(max(bounds[at] for at in chosen), chosen) for chosen in sizes.values()]

    def _label(self, i: int, j: int) -> str:
        names = ("", *self.names, self.response)
        factors = [name for name in (self.weights, names[i], names[j]) if name]
        return "sum of " + " * ".join(factors) if factors else "rows"

    def blocks(
        self, parts: Mapping[str, npt.NDArray[Any]], rows: Mapping[str, int]
    ) -> list[IntegerBlock]:
        """Return what is added: entries of about one size together.

        Args:
            parts: Each site's `products` of 1, the columns and the response.
            rows: Each site's number of rows, which is summed too where there are weights.
        """
        pairs = self._pairs()
        blocks = [
            IntegerBlock(
                [self._label(*pairs[at]) for at in chosen],
                bound,
                {site: part[chosen] for site, part in parts.items()},
            )
            for bound, chosen in self._sizes()
        ]
        if self.weights:
            blocks.append(IntegerBlock(["rows"], MAX_ROWS, {site: [n] for site, n in rows.items()}))
        return blocks

    def moments(self, totals: list[list[int]]) -> ProductTotals:
        """Read the totals of `blocks`."""
        pairs, grids = self._pairs(), self.grids
        units = [mpq(grid.unit) for grid in grids]
        weight = mpq(1)
        if self.weight_grid:
            weight = mpq(self.weight_grid.unit)
        size = len(grids)
        full = np.full((size, size), mpq(0), object)
        for (_, chosen), found in zip(self._sizes(), totals, strict=False):
            for at, value in zip(chosen, found, strict=True):
                i, j = pairs[at]
                full[i, j] = full[j, i] = value * units[i] * units[j] * weight
        rows = totals[-1][0] if self.weights else int(full[0, 0])
        every = [*grids, *([self.weight_grid] if self.weight_grid else [])]
        return ProductTotals(
            rows,
            full[0, 0],
            full[0, 1:-1],
            full[1:-1, 1:-1],
            full[1:-1, -1],
            full[0, -1],
            full[-1, -1],
            np.array([mpq(g.unit) if g.exact else mpq(1) for g in grids[1:-1]], object),
            np.array([mpq(0) if g.exact else mpq(g.unit) for g in grids[1:-1]], object),
            not grids[-1].exact,
            all(grid.exact for grid in every),
        )


def add_products(
    ask: Inquiry,
    what: Products,
    parts: Mapping[str, npt.NDArray[Any]],
    rows: Mapping[str, int],
    *more: Any,
) -> tuple[ProductTotals, list[Any]]:
    """Run one secure sum of products, and of more blocks, whose totals are returned beside."""
    blocks = what.blocks(parts, rows)
    totals = ask.adder.add(*blocks, *more)
    return what.moments(totals[: len(blocks)]), totals[len(blocks) :]
