"""Measures that a site takes of its own rows: blocks of integers that add up over the sites.

A measure knows the agreed schema, labels its cells, bounds them, and computes one site's part.
Equal measures are summed once, however many statistics use them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import shown
from securecomp.errors import ParameterError, RangeError
from securecomp.statistics.cell_values import Mask
from securecomp.statistics.power_sums import power_sums
from securecomp.statistics.schema import MAX_ROWS, Schema
from securecomp.statistics.site_table import Level, Table

Missing = Literal["error", "drop"]
_POWERS = {1: "", 2: " squared", 3: " cubed"}


class Measure(Protocol):
    """A block of integers, one site's part of sums."""

    def labels(self, schema: Schema) -> list[str]:
        """Name the cells."""

    def bound(self, schema: Schema) -> int:
        """Return the largest absolute value of a cell of one site."""

    def part(self, table: Table, schema: Schema, missing: Missing) -> list[int]:
        """Compute the cells of one site.

        Raises:
            ParameterError, RangeError: The site's data do not allow it; nothing was sent.
        """


def kept_rows(
    table: Table, numeric: tuple[str, ...], categorical: tuple[str, ...], missing: Missing
) -> Mask:
    """Return the rows that have all of these values.

    Raises:
        RangeError: A cell is empty and missing values are not to be dropped; or too many rows.
    """
    if table.rows > MAX_ROWS:
        raise RangeError(f"{table.source}: more than {MAX_ROWS} rows")
    keep = np.ones(table.rows, bool)
    for columns, is_number in ((numeric, True), (categorical, False)):
        for column in columns:
            empty = table.missing(column, is_number)
            count = int(empty.sum())
            if count and missing == "error":
                raise RangeError(
                    f"{table.where(column)}: {count} empty or NaN cell{'s' * (count > 1)}, the "
                    f"first in row {table.row(empty)}; fill them in, or drop such rows "
                    'with missing="drop" (--missing drop)'
                )
            keep &= ~empty
    return keep


def group_codes(
    table: Table, schema: Schema, columns: tuple[str, ...]
) -> tuple[npt.NDArray[np.int64], int]:
    """Return each row's cell in the cross table of some columns, and the number of cells.

    Raises:
        RangeError: A value is not one of the agreed levels.
    """
    codes = np.zeros(table.rows, np.int64)
    cells = 1
    for column in columns:
        levels = schema.levels(column)
        found = table.categories(column)
        index = np.array(positions(levels, found.present) or [0], np.int64)
        mapped = index[found.codes]
        outside = (mapped < 0) & (found.codes >= 0)
        if outside.any():
            raise RangeError(
                f"{table.where(column)}: row {table.row(outside)} has a value that is "
                "not one of the agreed levels; correct it, or agree on one more level"
            )
        codes = codes * len(levels) + mapped
        cells *= len(levels)
    return codes, cells


def positions(levels: Sequence[Level], values: Sequence[Level]) -> list[int]:
    """Return each value's place among the levels, -1 if it has none.

    Levels that are all text are matched with numbers and truth values as a file writes them: codes
    may be numbers at one site and text at another.
    """
    places = {level: i for i, level in enumerate(levels)}
    if all(isinstance(level, str) for level in levels):
        written = [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
        return [places.get(text, -1) for text in written]
    kinds = {type(level) for level in levels}
    return [places.get(value, -1) if type(value) in kinds else -1 for value in values]


def cell_names(schema: Schema, columns: tuple[str, ...]) -> list[str]:
    """Name the cells of the cross table of some columns; one empty name without columns."""
    levels = [[f"{column}={level}" for level in schema.levels(column)] for column in columns]
    return [" ".join(cell) for cell in product(*levels)]


def bin_names(edges: Sequence[float], closed: bool = True) -> list[str]:
    """Name the bins between edges, [a, b), the last one closed or not."""
    names = [f"[{shown(a)}, {shown(b)})" for a, b in pairwise(edges)]
    return [*names[:-1], names[-1][:-1] + "]"] if closed else names


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of rows in each cell of a cross table.

    Attributes:
        by: Categorical columns.
        given: Numeric columns that must have a value for a row to count.
    """

    by: tuple[str, ...]
    given: tuple[str, ...] = ()

    def labels(self, schema: Schema) -> list[str]:
        """Name the cells."""
        what = " ".join(("rows", *(f"with {column}" for column in self.given)))
        return [f"{what} {cell}".strip() for cell in cell_names(schema, self.by)]

    def bound(self, schema: Schema) -> int:  # noqa: ARG002
        """Return the largest number of rows."""
        return MAX_ROWS

    def part(self, table: Table, schema: Schema, missing: Missing) -> list[int]:
        """Count one site's rows."""
        keep = kept_rows(table, self.given, self.by, missing)
        codes, cells = group_codes(table, schema, self.by)
        return list(map(int, np.bincount(codes[keep], minlength=cells)))


@dataclass(frozen=True, slots=True)
class PowerSum:
    """The sum of a column, or of its squares or cubes, in each cell of a cross table."""

    column: str
    power: int
    by: tuple[str, ...]

    def labels(self, schema: Schema) -> list[str]:
        """Name the cells."""
        what = f"sum of {self.column}{_POWERS[self.power]}"
        return [f"{what} {cell}".strip() for cell in cell_names(schema, self.by)]

    def bound(self, schema: Schema) -> int:
        """Return the largest sum."""
        return MAX_ROWS * int(schema.grid(self.column).limit ** self.power)

    def part(self, table: Table, schema: Schema, missing: Missing) -> list[int]:
        """Sum one site's rows."""
        keep = kept_rows(table, (self.column,), self.by, missing)
        codes, cells = group_codes(table, schema, self.by)
        values = table.numbers(self.column).values
        integers = schema.grid(self.column).encode(values, table.where(self.column), "row")
        return power_sums(integers[keep], codes[keep], cells, self.power)


@dataclass(frozen=True, slots=True)
class Centred:
    """A sum of distances from a middle, which no row is as far from as it may be from zero.

    Attributes:
        sums: Of the values.
        rows: How many there are.
        middle: On the column's grid.
    """

    sums: PowerSum
    rows: Tally
    middle: int

    def labels(self, schema: Schema) -> list[str]:
        """Name the cells."""
        return [f"{label}, from the middle" for label in self.sums.labels(schema)]

    def bound(self, schema: Schema) -> int:
        """Return the largest sum."""
        return self.sums.bound(schema) + abs(self.middle) * self.rows.bound(schema)

    def part(self, table: Table, schema: Schema, missing: Missing) -> list[int]:
        """Sum one site's rows."""
        totals = self.sums.part(table, schema, missing)
        rows = self.rows.part(table, schema, missing)
        return [s - self.middle * n for s, n in zip(totals, rows, strict=True)]


@dataclass(frozen=True, slots=True)
class Bins:
    """The number of rows in each bin of a column, and below and above all bins.

    Bins are [a, b), the last one [a, b], as numpy has them.
    """

    column: str
    edges: tuple[float, ...]
    by: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or any(not a < b for a, b in pairwise(self.edges)):
            raise ParameterError(
                f"histogram of {self.column!r}: give at least two edges that increase"
            )
        if not np.isfinite(self.edges).all():
            raise ParameterError(
                f"histogram of {self.column!r}: edges are finite; what is outside is counted too"
            )

    @property
    def width(self) -> int:
        """Cells of one group: the bins, below and above."""
        return len(self.edges) + 1

    def labels(self, schema: Schema) -> list[str]:
        """Name the cells."""
        names = [*bin_names(self.edges), "below", "above"]
        return [
            f"rows with {self.column} {name} {cell}".strip()
            for cell in cell_names(schema, self.by)
            for name in names
        ]

    def bound(self, schema: Schema) -> int:  # noqa: ARG002
        """Return the largest number of rows."""
        return MAX_ROWS

    def part(self, table: Table, schema: Schema, missing: Missing) -> list[int]:
        """Count one site's rows."""
        keep = kept_rows(table, (self.column,), self.by, missing)
        codes, cells = group_codes(table, schema, self.by)
        values = table.numbers(self.column).values
        # The codec refuses what is infinite or beyond the bound, and names the row.
        schema.grid(self.column).encode(values, table.where(self.column), "row")
        kept = values[keep].astype(np.float64)
        edges = np.array(self.edges)
        index = np.searchsorted(edges, kept, "right") - 1
        index[kept == edges[-1]] = len(edges) - 2
        index[kept > edges[-1]] = self.width - 1
        index[index < 0] = self.width - 2
        counts = np.bincount(codes[keep] * self.width + index, minlength=cells * self.width)
        return list(map(int, counts))


@dataclass(frozen=True, slots=True)
class Contributors:
    """The number of sites that add something to each cell of another measure."""

    measure: Tally | PowerSum | Bins

    def labels(self, schema: Schema) -> list[str]:
        """Name the cells."""
        return [f"sites with {label}" for label in self.measure.labels(schema)]

    def bound(self, schema: Schema) -> int:  # noqa: ARG002
        """Return what one site adds at most."""
        return 1

    def part(self, table: Table, schema: Schema, missing: Missing) -> list[int]:
        """Return 1 where the site's own part is not zero."""
        return [int(n != 0) for n in self.measure.part(table, schema, missing)]
