"""The base of all summary statistics: one class brings with it all that the rest needs.

A statistic says which measures the sites sum for it, makes rows of a result of their totals, and
knows how its rows are suppressed, noised, printed, drawn and compared with plaintext. So nobody
else asks which statistic it is, and a new one is a module and a line in `summaries.STATISTICS`.

`finish` works on exact integers and rounds once, at the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from securecomp.core.fixedpoint import FixedPoint
from securecomp.errors import ParameterError, RangeError
from securecomp.show.exhibit import Plot
from securecomp.show.numbers import show
from securecomp.statistics.axes import Axis
from securecomp.statistics.disclosure.suppression import HIDDEN
from securecomp.statistics.measures import Bins, Measure, Missing, PowerSum, Tally
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import check_column
from securecomp.statistics.summaries.pool import Pool, Rational

Totals = Mapping[Measure, list[int]]
Row = dict[str, Any]
Mark = Callable[..., str]
"""Takes a cell's index beyond the group's; returns what is shown instead of it, or ""."""


@dataclass(frozen=True, slots=True)
class AddedNoise:
    """The noise in one statistic's answer.

    Attributes:
        unit: Integers per unit of the result.
        deviation: Standard deviation of the last measure's total, in the result's unit.
        half_width: 95 of 100 totals are off by less, in the result's unit.
        count_deviation: Standard deviation of the first measure's total.
        count_half_width: 95 of 100 totals of the first measure are off by less.
        middle: The middle of the column's bounds.
    """

    unit: int
    deviation: float
    half_width: float
    count_deviation: float
    count_half_width: int
    middle: float


@dataclass(frozen=True, slots=True)
class Statistic:
    """One question about all rows, or about each group of them.

    Attributes:
        name: What it is called.
        of_values: Whether it sums a column's values: of zeros and ones such a sum is a count.
        noised: Whether it can be answered with noise.
        counts: Keys of a row that are numbers of rows.
        column: What is asked about; None where it is the rows themselves.
        by: Column to group by.
    """

    name: ClassVar[str]
    of_values: ClassVar[bool] = False
    noised: ClassVar[bool] = False
    counts: ClassVar[tuple[str, ...]] = ()
    column: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        for what, value in (("column", self.column), ("by", self.by)):
            if value is not None:
                check_column(what, value)

    @property
    def groups(self) -> tuple[str, ...]:
        """The grouping columns."""
        return () if self.by is None else (self.by,)

    @property
    def categories(self) -> tuple[str, ...]:
        """All columns whose levels it needs."""
        return self.groups

    @property
    def what(self) -> str:
        """Subject of the question, in words."""
        return self.column or "rows"

    @property
    def title(self) -> str:
        """The question in words."""
        of = "" if self.what == "rows" and not self.column else f" of {self.what}"
        return f"{self.name}{of}" + (f", by {self.by}" if self.by else "")

    @property
    def summarised(self) -> str | None:
        """The column that is summarised, as JSON has it."""
        return self.column

    # What the sites sum, and what becomes of it

    def measures(self) -> tuple[Measure, ...]:
        """Return what the sites must measure."""
        raise NotImplementedError

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        """Turn totals into rows of a result: `group` (if grouped), `value` and more."""
        raise NotImplementedError

    def by_group(self, schema: Schema, values: list[Row]) -> list[Row]:
        """Return rows with their groups, if there are groups."""
        if self.by is None:
            return values
        levels = schema.levels(self.by)
        return [{"group": level, **row} for level, row in zip(levels, values, strict=True)]

    # Suppression

    def counted(self, missing: Missing) -> Tally | Bins:
        """Return the measure that counts the rows behind each value."""
        del missing
        return Tally(self.groups)

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """Return the dimensions of its table of counts, beyond the groups'."""
        del schema
        return ()

    def marks(self, row: Row, mark: Mark, *, flags: bool) -> dict[str, Any]:
        """Return what is shown instead of a row's values, in their form; "" for what is shown.

        Args:
            row: A row of `finish`.
            mark: What the rule says of a cell of the group.
            flags: Whether the column has zeros and ones alone.
        """
        del row, flags
        return {"value": mark()}

    # Noise

    def noise_measures(self, middle: Callable[[str], int]) -> tuple[Measure, ...]:
        """Return what is summed with noise.

        Args:
            middle: Gives the middle of a column's bounds, on its grid.
        """
        del middle
        return self.measures()

    def noise_unit(self, schema: Schema) -> int:
        """Return the integers per unit of the result."""
        del schema
        return 1

    def add_error(self, row: Row, noise: AddedNoise) -> None:
        """Write into a row what its noise stays within in 95 of 100 runs, where it is a number."""

    def clamp(self, row: Row, low: float, high: float) -> None:
        """Move a value into the column's bounds, where that makes sense."""

    # What people and machines read

    def fields(self, row: Row) -> list[str]:
        """Return the names of a record's cells."""
        return [key for key in row if key not in ("group", "suppressed")]

    def cells(self, row: Row, fields: Sequence[str]) -> list[list[Any]]:
        """Return flat records of a row: one for each bin or cell."""
        return [[row[key] for key in fields]]

    def header(self, row: Row) -> list[str]:
        """Return the header of the table that is printed."""
        return [self.name, *(key for key in self.fields(row) if key != "value")]

    def lines(self, row: Row, fields: Sequence[str]) -> list[list[str]]:
        """Return a row's lines of the table that is printed."""
        return [[self.write(row["value"]), *(show(row[k]) for k in fields if k != "value")]]

    def write(self, value: Any) -> str:
        """Format a value."""
        return show(value)

    def plots(self, title: str, rows: Sequence[Row]) -> list[Plot]:
        """Return what is better seen than read."""
        del title, rows
        return []

    # Comparison with plaintext, which only a simulation can make

    def plaintext(self, pool: Pool) -> list[Any]:
        """Return the values of `finish`, computed from pooled rows as anybody would, by numpy."""
        raise NotImplementedError

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        """Return parts of the rows of `finish`, computed from pooled rows by exact arithmetic.

        Args:
            pool: The rows.
            rounded: Whether values are rounded to the agreed grid first, as the sites do.
        """
        raise NotImplementedError

    def size(self, pool: Pool) -> list[Rational]:
        """Return, for each group, how large the terms are that a float computation adds."""
        return [0] * len(pool.groups(self, ()))


@dataclass(frozen=True, slots=True)
class ColumnStatistic(Statistic):
    """A statistic of a column's values: a number, perhaps with more beside it."""

    of_values: ClassVar[bool] = True

    @property
    def values(self) -> str:
        """The column.

        Raises:
            ParameterError: None is named.
        """
        if self.column is None:
            raise ParameterError(f"{self.name}: name a column")
        return self.column

    def power(self, exponent: int) -> PowerSum:
        """Return the measure of a sum of powers."""
        return PowerSum(self.values, exponent, self.groups)

    def rows(self) -> Tally:
        """Return the measure that counts rows with a value."""
        return Tally(self.groups, (self.values,))

    def counted(self, missing: Missing) -> Tally | Bins:
        """Return the measure that counts the rows behind each value."""
        del missing
        return Tally(self.groups) if self.column is None else self.rows()

    def marks(self, row: Row, mark: Mark, *, flags: bool) -> dict[str, Any]:
        """Hide numbers over few rows; of zeros and ones also what tells few ones."""
        rows = mark(None) if flags else mark(0)
        ones = mark(1) if flags else ""
        hidden = HIDDEN if rows or ones else ""
        return {k: rows if k == "n" else hidden for k in ("value", "sd", "n") if k in row}

    def ratio(self, numerator: Rational, denominator: Rational) -> float:
        """Round a fraction, once.

        Raises:
            RangeError: It is larger than any float.
        """
        try:
            return float(Fraction(numerator, denominator))
        except OverflowError:
            raise self.too_large() from None

    def too_large(self) -> RangeError:
        """Return the error of a result that no float holds."""
        return RangeError(f"{self.name} of {self.column!r}: the result is larger than any float")


def integral(grid: FixedPoint) -> bool:
    """Whether a column holds integers, so that its sum is one, however long."""
    return grid.scale == 1 and grid.exact
