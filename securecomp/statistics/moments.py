"""Exact numbers of rows, sums and sums of squares and products over all sites, from one sum.

A column's values are integers on its agreed grid; so are their sums. What is made of them here are
fractions, which lose nothing where terms cancel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.measures import group_codes, kept_rows
from securecomp.statistics.power_sums import power_sums, product_sums
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level, Table


@dataclass(frozen=True, slots=True)
class Moments:
    """A column in one group.

    Attributes:
        n: Number of rows.
        total: Their sum.
        squares: The sum of their squares.
    """

    n: int
    total: Fraction
    squares: Fraction

    @property
    def mean(self) -> Fraction:
        """The mean; there is at least one row."""
        return self.total / self.n

    @property
    def within(self) -> Fraction:
        """The sum of squares around the mean; there is at least one row."""
        return self.squares - self.total**2 / self.n

    @property
    def variance(self) -> Fraction:
        """The sample variance; there are at least two rows."""
        return self.within / (self.n - 1)


@dataclass(frozen=True, slots=True)
class JointMoments:
    """Several columns over the rows that have all of them.

    Attributes:
        n: Number of rows.
        totals: Sum of each column.
        products: Sum of the products of two columns, for i <= j.
    """

    n: int
    totals: tuple[Fraction, ...]
    products: Mapping[tuple[int, int], Fraction]

    def around(self, i: int, j: int) -> Fraction:
        """Return the sum of products around the means; there is at least one row."""
        pair = (i, j) if i <= j else (j, i)
        return self.products[pair] - self.totals[i] * self.totals[j] / self.n


def check_columns(columns: Sequence[str], least: int, what: str) -> tuple[str, ...]:
    """Return the names of several different columns.

    Raises:
        ParameterError: Not a list of names, too few, or one twice.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise ParameterError(f"{what} takes a list of columns, not {columns!r}")
    for column in columns:
        if not isinstance(column, str):
            raise ParameterError(f"{what}: a column is a name, not {column!r}")
    if len(columns) < least:
        raise ParameterError(f"{what}: name at least {least} column{'s' * (least > 1)}")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise ParameterError(f"{what}: column {twice[0]!r} is named twice")
    return tuple(columns)


def two_columns(one: str, other: str, what: str) -> tuple[str, str]:
    """Return the names of two different columns.

    Raises:
        ParameterError: They are not.
    """
    names = check_columns((one, other), 2, what)
    return names[0], names[1]


def chosen_levels(
    ask: Inquiry, by: str, groups: Sequence[Level] | None, what: str
) -> tuple[Level, ...]:
    """Return the groups that are compared: those that were named, or all agreed levels.

    Raises:
        ParameterError: A group is not a level of the column, or is named twice.
    """
    levels = ask.schema.levels(by)
    if groups is None:
        return levels
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise ParameterError(f"{what}: groups are a list of levels of {by!r}, not {groups!r}")
    for group in groups:
        if not any(_same(group, level) for level in levels):
            raise ParameterError(
                f"{what}: {group!r} is not a level of {by!r}; it has: "
                + ", ".join(map(repr, levels[:20]))
            )
    if len(set(groups)) != len(groups):
        raise ParameterError(f"{what}: a group is named twice")
    return tuple(groups)


def _same(one: Any, other: Level) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def group_moments(
    ask: Inquiry, column: str, by: str | None = None, groups: Sequence[Level] = ()
) -> list[Moments]:
    """Add up rows, values and their squares of a column.

    Args:
        ask: The inquiry; one sum of it is used.
        column: A numeric column.
        by: Categorical column of the groups; without, there is one group, of all rows.
        groups: Which of its levels; only their totals are opened.

    Raises:
        ParameterError, RangeError: A site's data do not allow it; nothing was sent.
    """
    counts, sums, squares = ask.adder.add(*_blocks(ask, column, by, groups))
    return _moments(ask, column, counts, sums, squares)


def column_moments(ask: Inquiry, columns: Sequence[str]) -> list[Moments]:
    """Do the same for several columns, each over the rows that have it, with one sum."""
    blocks = [block for column in columns for block in _blocks(ask, column, None, ())]
    found = ask.adder.add(*blocks)
    return [_moments(ask, column, *found[3 * i : 3 * i + 3])[0] for i, column in enumerate(columns)]


def _moments(
    ask: Inquiry, column: str, counts: list[int], sums: list[int], squares: list[int]
) -> list[Moments]:
    scale = ask.schema.grid(column).scale
    return [
        Moments(n, Fraction(total, scale), Fraction(square, scale**2))
        for n, total, square in zip(counts, sums, squares, strict=True)
    ]


def _blocks(
    ask: Inquiry, column: str, by: str | None, groups: Sequence[Level]
) -> tuple[IntegerBlock, IntegerBlock, IntegerBlock]:
    """Return every site's rows, sums and sums of squares, for each group."""
    names = [""] if by is None else [f"{by}={level}" for level in groups]
    grid = ask.schema.grid(column)
    counts: dict[str, list[int]] = {}
    sums: dict[str, list[int]] = {}
    squares: dict[str, list[int]] = {}
    for table in ask.tables:
        keep, codes = _places(ask, table, column, by, groups)
        integers = grid.encode(table.numbers(column).values, table.where(column), "row")[keep]
        counts[table.site] = np.bincount(codes, minlength=len(names)).tolist()
        sums[table.site] = power_sums(integers, codes, len(names), 1)
        squares[table.site] = power_sums(integers, codes, len(names), 2)
    return (
        _block(f"rows with {column}", names, MAX_ROWS, counts),
        _block(f"sum of {column}", names, MAX_ROWS * grid.limit, sums),
        _block(f"sum of {column} squared", names, MAX_ROWS * grid.limit**2, squares),
    )


def _places(
    ask: Inquiry, table: Table, column: str, by: str | None, groups: Sequence[Level]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return which rows are in a group, and the group of each of them."""
    keep = kept_rows(table, (column,), () if by is None else (by,), ask.missing)
    if by is None:
        return keep, np.zeros(int(keep.sum()), np.int64)
    levels = ask.schema.levels(by)
    places = np.full(len(levels), -1, np.int64)
    for place, group in enumerate(groups):
        places[levels.index(group)] = place
    codes, _ = group_codes(table, ask.schema, (by,))
    keep &= places[codes] >= 0
    return keep, places[codes[keep]]


def _block(
    what: str, names: Sequence[str], bound: int, parts: Mapping[str, Sequence[int]]
) -> IntegerBlock:
    return IntegerBlock([f"{what} {name}".strip() for name in names], bound, parts)


def products(ask: Inquiry, columns: Sequence[str]) -> JointMoments:
    """Add up rows, values, squares and products of columns, over the rows that have all of them.

    Args:
        ask: The inquiry; one sum of it is used.
        columns: Numeric columns.

    Raises:
        ParameterError, RangeError: A site's data do not allow it; nothing was sent.
    """
    grids = [ask.schema.grid(column) for column in columns]
    pairs = list(combinations_with_replacement(range(len(columns)), 2))
    counts: dict[str, list[int]] = {}
    sums: list[dict[str, list[int]]] = [{} for _ in columns]
    crossed: dict[tuple[int, int], dict[str, list[int]]] = {pair: {} for pair in pairs}
    for table in ask.tables:
        keep = kept_rows(table, tuple(columns), (), ask.missing)
        integers = [
            grid.encode(table.numbers(column).values, table.where(column), "row")[keep]
            for grid, column in zip(grids, columns, strict=True)
        ]
        codes = np.zeros(int(keep.sum()), np.int64)
        counts[table.site] = [len(codes)]
        for part, values in zip(sums, integers, strict=True):
            part[table.site] = power_sums(values, codes, 1, 1)
        for i, j in pairs:
            crossed[i, j][table.site] = product_sums(integers[i], integers[j], codes, 1)
    rows = "rows with " + ", ".join(columns)
    n, *found = ask.adder.add(
        IntegerBlock([rows], MAX_ROWS, counts),
        *(
            IntegerBlock([f"sum of {column}"], MAX_ROWS * grid.limit, part)
            for column, grid, part in zip(columns, grids, sums, strict=True)
        ),
        *(
            IntegerBlock(
                [_product(columns, i, j)], MAX_ROWS * grids[i].limit * grids[j].limit, part
            )
            for (i, j), part in crossed.items()
        ),
    )
    scales = [grid.scale for grid in grids]
    return JointMoments(
        n[0],
        tuple(Fraction(t[0], scale) for t, scale in zip(found, scales, strict=False)),
        {
            (i, j): Fraction(t[0], scales[i] * scales[j])
            for (i, j), t in zip(pairs, found[len(columns) :], strict=True)
        },
    )


def _product(columns: Sequence[str], i: int, j: int) -> str:
    if i == j:
        return f"sum of {columns[i]} squared"
    return f"sum of {columns[i]} times {columns[j]}"
