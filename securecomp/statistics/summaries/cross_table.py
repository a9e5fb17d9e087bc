"""Counts of rows for each pair of levels of two columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from securecomp.show.numbers import show
from securecomp.statistics.axes import Axis, level_axis
from securecomp.statistics.measures import Bins, Measure, Missing, Tally
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.pool import Pool
from securecomp.statistics.summaries.statistic import Mark, Row, Statistic, Totals


@dataclass(frozen=True, slots=True)
class CrossTable(Statistic):
    """The number of rows for each pair of levels of two columns.

    Attributes:
        row: Column whose levels are the table's rows.
        col: Column whose levels are the table's columns.
    """

    name: ClassVar[str] = "crosstab"
    noised: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("value",)
    row: str = ""
    col: str = ""

    @property
    def categories(self) -> tuple[str, ...]:
        return (*self.groups, self.row, self.col)

    @property
    def what(self) -> str:
        return f"{self.row} by {self.col}"

    @property
    def summarised(self) -> str | None:
        return None

    def _tally(self) -> Tally:
        return Tally(self.categories)

    def measures(self) -> tuple[Measure, ...]:
        return (self._tally(),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        down, across = schema.levels(self.row), schema.levels(self.col)
        counts = totals[self._tally()]
        size = len(down) * len(across)
        rows: list[Row] = []
        for start in range(0, len(counts), size):
            table = [counts[i : i + len(across)] for i in range(start, start + size, len(across))]
            rows.append(
                {
                    "value": table,
                    "row": self.row,
                    "col": self.col,
                    "row_levels": list(down),
                    "col_levels": list(across),
                }
            )
        return self.by_group(schema, rows)

    def counted(self, missing: Missing) -> Tally | Bins:
        del missing
        return self._tally()

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        return (level_axis(schema, self.row), level_axis(schema, self.col))

    def marks(self, row: Row, mark: Mark, *, flags: bool) -> dict[str, Any]:
        del flags
        down, across = range(len(row["row_levels"])), range(len(row["col_levels"]))
        return {"value": [[mark(a, b) for b in across] for a in down]}

    def fields(self, row: Row) -> list[str]:
        del row
        return [self.row, self.col, "count"]

    def cells(self, row: Row, fields: Sequence[str]) -> list[list[Any]]:
        del fields
        return [
            [a, b, n]
            for a, counts in zip(row["row_levels"], row["value"], strict=True)
            for b, n in zip(row["col_levels"], counts, strict=True)
        ]

    def header(self, row: Row) -> list[str]:
        return [self.row, *(f"{self.col}={b}" for b in row["col_levels"])]

    def lines(self, row: Row, fields: Sequence[str]) -> list[list[str]]:
        del fields
        pairs = zip(row["row_levels"], row["value"], strict=True)
        return [[str(a), *map(show, counts)] for a, counts in pairs]

    def plaintext(self, pool: Pool) -> list[Any]:
        down, across = (range(len(pool.schema.levels(c))) for c in (self.row, self.col))
        tables = []
        for group in pool.groups(self, (), (self.row, self.col)):
            rows, cols = group[self.row, False], group[self.col, False]
            tables.append([[int(((rows == a) & (cols == b)).sum()) for b in across] for a in down])
        return tables

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        return [{"value": table} for table in self.plaintext(pool)]
