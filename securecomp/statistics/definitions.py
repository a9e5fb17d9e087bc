"""The statistics: which measures each needs, what it makes of their totals, and the plaintext.

`finish` works on exact integers and rounds once, at the end. `plaintext` computes the same from
pooled rows with plain numpy, as anybody would who had them all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.statistics.measures import Bins, Measure, PowerSum, Tally
from securecomp.statistics.schema import Schema
from securecomp.statistics.tables import Table, pooled

Totals = Mapping[Measure, list[int]]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One question about all rows, or about each group of them.

    Attributes:
        column: What is asked about; None where it is the rows themselves.
        by: Column to group by.
    """

    name: ClassVar[str]
    column: str | None = None
    by: str | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The grouping columns."""
        return () if self.by is None else (self.by,)

    def measures(self) -> tuple[Measure, ...]:
        """Return what the sites must measure."""
        raise NotImplementedError

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        """Turn totals into rows of a result: `group` (if grouped), `value` and more."""
        raise NotImplementedError

    def plaintext(self, pool: "Pool") -> list[Any]:
        """Return the values of `finish`, computed from pooled rows."""
        raise NotImplementedError

    def _group_rows(self, schema: Schema, values: list[Row]) -> list[Row]:
        if self.by is None:
            return values
        levels = schema.levels(self.by)
        return [{"group": level, **row} for level, row in zip(levels, values, strict=True)]


@dataclass(slots=True)
class Pool:
    """All sites' rows in one place, as the plaintext computation has them."""

    tables: list[Table]
    schema: Schema

    def prepare(self, statistic: Statistic, numeric: tuple[str, ...]) -> list[dict[str, Any]]:
        """Return the columns of the rows that count, split by group."""
        wanted = dict.fromkeys(numeric, True) | dict.fromkeys(_categorical(statistic), False)
        columns = {c: pooled(self.tables, c, is_number) for c, is_number in wanted.items()}
        rows = sum(table.rows for table in self.tables)
        keep = np.ones(rows, bool)
        for _, missing in columns.values():
            keep &= ~missing
        kept = {c: values[keep] for c, (values, _) in columns.items()}
        if not kept:
            kept = {"": np.zeros(rows)}
        if statistic.by is None:
            return [kept]
        groups = kept[statistic.by]
        return [
            {c: values[groups == level] for c, values in kept.items()}
            for level in self.schema.levels(statistic.by)
        ]


def _categorical(statistic: Statistic) -> tuple[str, ...]:
    if isinstance(statistic, CrossTable):
        return (*statistic.groups, statistic.row, statistic.col)
    return statistic.groups


def _decode(total: int, scale: int, exact: bool) -> int | float:
    return total if scale == 1 and exact else total / scale


@dataclass(frozen=True, slots=True)
class Count(Statistic):
    """The number of rows."""

    name: ClassVar[str] = "count"

    def measures(self) -> tuple[Measure, ...]:
        return (Tally(self.groups),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        return self._group_rows(schema, [{"value": n} for n in totals[Tally(self.groups)]])

    def plaintext(self, pool: Pool) -> list[Any]:
        return [len(next(iter(g.values()))) for g in pool.prepare(self, ())]


@dataclass(frozen=True, slots=True)
class Sum(Statistic):
    """The sum of a column."""

    name: ClassVar[str] = "sum"

    def measures(self) -> tuple[Measure, ...]:
        return (PowerSum(_column(self), 1, self.groups),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        grid = schema.grid(_column(self))
        sums = totals[self.measures()[0]]
        return self._group_rows(
            schema, [{"value": _decode(s, grid.scale, grid.exact)} for s in sums]
        )

    def plaintext(self, pool: Pool) -> list[Any]:
        column = _column(self)
        return [g[column].sum() if len(g[column]) else 0 for g in pool.prepare(self, (column,))]


@dataclass(frozen=True, slots=True)
class Mean(Statistic):
    """The mean of a column."""

    name: ClassVar[str] = "mean"

    def measures(self) -> tuple[Measure, ...]:
        column = _column(self)
        return (Tally(self.groups, (column,)), PowerSum(column, 1, self.groups))

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        scale = schema.grid(_column(self)).scale
        counts, sums = (totals[m] for m in self.measures())
        rows = [
            {"value": float(Fraction(s, n * scale)) if n else None, "n": n}
            for n, s in zip(counts, sums, strict=True)
        ]
        return self._group_rows(schema, rows)

    def plaintext(self, pool: Pool) -> list[Any]:
        return _each(pool, self, 1, lambda values: values.mean())


@dataclass(frozen=True, slots=True)
class Variance(Statistic):
    """The sample variance (divisor n - 1) and standard deviation of a column."""

    name: ClassVar[str] = "variance"

    def measures(self) -> tuple[Measure, ...]:
        column = _column(self)
        return (
            Tally(self.groups, (column,)),
            PowerSum(column, 1, self.groups),
            PowerSum(column, 2, self.groups),
        )

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        scale = schema.grid(_column(self)).scale
        rows: list[Row] = []
        for n, s, q in zip(*(totals[m] for m in self.measures()), strict=True):
            if n < 2:
                rows.append({"value": None, "sd": None, "n": n})
                continue
            variance = float(Fraction(n * q - s * s, n * (n - 1) * scale * scale))
            rows.append({"value": variance, "sd": variance**0.5, "n": n})
        return self._group_rows(schema, rows)

    def plaintext(self, pool: Pool) -> list[Any]:
        return _each(pool, self, 2, lambda values: values.var(ddof=1))


@dataclass(frozen=True, slots=True)
class Histogram(Statistic):
    """The number of rows in each bin of a column."""

    name: ClassVar[str] = "histogram"
    edges: tuple[float, ...] = ()

    def _bins(self) -> Bins:
        return Bins(_column(self), self.edges, self.groups)

    def measures(self) -> tuple[Measure, ...]:
        return (self._bins(),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        counts, width = totals[self._bins()], self._bins().width
        rows = []
        for start in range(0, len(counts), width):
            *bins, below, above = counts[start : start + width]
            rows.append({"value": bins, "edges": list(self.edges), "below": below, "above": above})
        return self._group_rows(schema, rows)

    def plaintext(self, pool: Pool) -> list[Any]:
        column = _column(self)
        return [
            np.histogram(g[column].astype(np.float64), self.edges)[0].tolist()
            for g in pool.prepare(self, (column,))
        ]


@dataclass(frozen=True, slots=True)
class CrossTable(Statistic):
    """The number of rows for each pair of levels of two columns.

    Attributes:
        row: Column whose levels are the table's rows.
        col: Column whose levels are the table's columns.
    """

    name: ClassVar[str] = "crosstab"
    row: str = ""
    col: str = ""

    def _tally(self) -> Tally:
        return Tally((*self.groups, self.row, self.col))

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
        return self._group_rows(schema, rows)

    def plaintext(self, pool: Pool) -> list[Any]:
        down, across = pool.schema.levels(self.row), pool.schema.levels(self.col)
        return [
            [[int(((g[self.row] == a) & (g[self.col] == b)).sum()) for b in across] for a in down]
            for g in pool.prepare(self, ())
        ]


def _column(statistic: Statistic) -> str:
    if statistic.column is None:
        raise ParameterError(f"{statistic.name}: name a column")
    return statistic.column


def _each(
    pool: Pool, statistic: Statistic, least: int, compute: Callable[[npt.NDArray[Any]], Any]
) -> list[Any]:
    column = _column(statistic)
    groups = [g[column].astype(np.float64) for g in pool.prepare(statistic, (column,))]
    return [float(compute(values)) if len(values) >= least else None for values in groups]
