"""The statistics: which measures each needs, what it makes of their totals, and the plaintext.

`finish` works on exact integers and rounds once, at the end. `plaintext` computes the same from
pooled rows with plain numpy, as anybody would who had them all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import FixedPoint
from securecomp.errors import ParameterError, RangeError
from securecomp.statistics.cell_values import Mask
from securecomp.statistics.measures import Bins, Measure, PowerSum, Tally, positions
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Table, check_column

Totals = Mapping[Measure, list[int]]
Row = dict[str, Any]
_EXACT = 1 << 53  # float64 holds every integer up to here


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

    def __post_init__(self) -> None:
        for what, value in (("column", self.column), ("by", self.by)):
            if value is not None:
                check_column(what, value)

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

    def outside(self, pool: "Pool") -> list[Any]:  # noqa: ARG002
        """Return, from pooled rows, what a row holds besides its value; empty if nothing."""
        return []

    def magnitude(self, schema: Schema, rows: int) -> float:  # noqa: ARG002
        """Return the size of the terms that plaintext adds, and so rounds; 0 if it is exact."""
        return 0.0

    def _group_rows(self, schema: Schema, values: list[Row]) -> list[Row]:
        if self.by is None:
            return values
        levels = schema.levels(self.by)
        return [{"group": level, **row} for level, row in zip(levels, values, strict=True)]


class Pool:
    """All sites' rows in one place, as the plaintext computation has them.

    Numbers as numpy has them, categories as their index among the agreed levels; both are put
    together at the first use.
    """

    def __init__(self, tables: Sequence[Table], schema: Schema) -> None:
        self.schema = schema
        self._tables = tables
        self._columns: dict[tuple[str, bool], tuple[npt.NDArray[Any], Mask]] = {}

    def groups(
        self, statistic: Statistic, numeric: tuple[str, ...], categorical: tuple[str, ...] = ()
    ) -> list[dict[tuple[str, bool], npt.NDArray[Any]]]:
        """Return the columns of the rows that have all of them, for each group apart.

        A column goes by its name and whether it is numbers (or codes of levels).
        """
        keys = [(c, True) for c in numeric]
        keys += [(c, False) for c in (*statistic.groups, *categorical)]
        columns = {key: self._column(*key) for key in keys}
        rows = sum(table.rows for table in self._tables)
        keep = np.ones(rows, bool)
        for _, missing in columns.values():
            keep &= ~missing
        kept = {c: values if keep.all() else values[keep] for c, (values, _) in columns.items()}
        kept = kept or {("", True): np.zeros(rows)}
        if statistic.by is None:
            return [kept]
        codes = kept[statistic.by, False]
        return [
            {c: values[codes == code] for c, values in kept.items()}
            for code in range(len(self.schema.levels(statistic.by)))
        ]

    def _column(self, name: str, is_number: bool) -> tuple[npt.NDArray[Any], Mask]:
        key = (name, is_number)
        if key not in self._columns:
            self._columns[key] = self._read(name, is_number)
        return self._columns[key]

    def _read(self, name: str, is_number: bool) -> tuple[npt.NDArray[Any], Mask]:
        if is_number:
            numbers = [table.numbers(name) for table in self._tables]
            return (
                _pooled([part.values for part in numbers]),
                np.concatenate([part.missing for part in numbers]),
            )
        levels = self.schema.levels(name)
        found = [table.categories(name) for table in self._tables]
        codes = np.concatenate(
            [np.array([*positions(levels, part.present), -1])[part.codes] for part in found]
        )
        return codes, codes < 0


def _integral(grid: FixedPoint) -> bool:
    """Whether a column holds integers, so that its sum is one, however long."""
    return grid.scale == 1 and grid.exact


@dataclass(frozen=True, slots=True)
class Count(Statistic):
    """The number of rows."""

    name: ClassVar[str] = "count"

    def measures(self) -> tuple[Measure, ...]:
        return (Tally(self.groups),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        return self._group_rows(schema, [{"value": n} for n in totals[Tally(self.groups)]])

    def plaintext(self, pool: Pool) -> list[Any]:
        return [len(next(iter(g.values()))) for g in pool.groups(self, ())]


@dataclass(frozen=True, slots=True)
class Sum(Statistic):
    """The sum of a column."""

    name: ClassVar[str] = "sum"

    def measures(self) -> tuple[Measure, ...]:
        return (PowerSum(_column(self), 1, self.groups),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        grid = schema.grid(_column(self))
        sums = totals[self.measures()[0]]
        try:
            rows = [{"value": s if _integral(grid) else s / grid.scale} for s in sums]
        except OverflowError:
            raise _too_large(self) from None
        return self._group_rows(schema, rows)

    def plaintext(self, pool: Pool) -> list[Any]:
        column = _column(self)
        grid = pool.schema.grid(column)
        return [_plain_sum(g[column, True], _integral(grid)) for g in pool.groups(self, (column,))]

    def magnitude(self, schema: Schema, rows: int) -> float:
        grid = schema.grid(_column(self))
        return 0.0 if _integral(grid) else _size(grid.bound) * rows


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
            {"value": _ratio(s, n * scale, self) if n else None, "n": n}
            for n, s in zip(counts, sums, strict=True)
        ]
        return self._group_rows(schema, rows)

    def plaintext(self, pool: Pool) -> list[Any]:
        return _each(pool, self, 1, lambda values: values.mean())

    def magnitude(self, schema: Schema, rows: int) -> float:  # noqa: ARG002
        return _size(schema.grid(_column(self)).bound)


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
            variance = _ratio(n * q - s * s, n * (n - 1) * scale * scale, self)
            rows.append({"value": variance, "sd": variance**0.5, "n": n})
        return self._group_rows(schema, rows)

    def plaintext(self, pool: Pool) -> list[Any]:
        return _each(pool, self, 2, lambda values: values.var(ddof=1))

    def magnitude(self, schema: Schema, rows: int) -> float:  # noqa: ARG002
        return _size(schema.grid(_column(self)).bound ** 2)


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
            np.histogram(g[column, True].astype(np.float64), self.edges)[0].tolist()
            for g in pool.groups(self, (column,))
        ]

    def outside(self, pool: Pool) -> list[Any]:
        column = _column(self)
        groups = [g[column, True].astype(np.float64) for g in pool.groups(self, (column,))]
        return [
            [int((values < self.edges[0]).sum()), int((values > self.edges[-1]).sum())]
            for values in groups
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
        down, across = len(pool.schema.levels(self.row)), len(pool.schema.levels(self.col))
        return [
            [
                [
                    int(((g[self.row, False] == a) & (g[self.col, False] == b)).sum())
                    for b in range(across)
                ]
                for a in range(down)
            ]
            for g in pool.groups(self, (), (self.row, self.col))
        ]


def _column(statistic: Statistic) -> str:
    if statistic.column is None:
        raise ParameterError(f"{statistic.name}: name a column")
    return statistic.column


def _each(
    pool: Pool, statistic: Statistic, least: int, compute: Callable[[npt.NDArray[Any]], Any]
) -> list[Any]:
    column = _column(statistic)
    groups = [g[column, True].astype(np.float64) for g in pool.groups(statistic, (column,))]
    with np.errstate(over="ignore", invalid="ignore"):
        return [float(compute(values)) if len(values) >= least else None for values in groups]


def _plain_sum(values: npt.NDArray[Any], integers: bool) -> Any:
    if values.dtype == object:  # decimals, perhaps beside floats
        exact = sum((Fraction(_plain(v)) for v in values), Fraction(0))
        return exact.numerator if exact.denominator == 1 else float(exact)
    kind = values.dtype.kind
    # From here on numpy would wrap integers, and round whole floats, without a word.
    safe = {"i": 1 << 63, "u": 1 << 63, "f": _EXACT if integers else None}.get(kind)
    if safe and len(values) and _largest(values) * len(values) >= safe:
        return sum(map(int, values.tolist()))
    return values.sum().item() if len(values) else 0


def _pooled(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Put a column together, without the floats that numpy makes of integers beside floats."""
    values = np.concatenate(parts)
    wide = (p.dtype.kind in "iu" and len(p) and _largest(p) > _EXACT for p in parts)
    if values.dtype.kind == "f" and any(wide):
        values = np.concatenate([part.astype(object) for part in parts])
    return values


def _largest(values: npt.NDArray[Any]) -> int:
    return max(abs(int(values.max())), abs(int(values.min())))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _size(bound: Fraction) -> float:
    try:
        return float(bound)
    except OverflowError:
        return float("inf")


def _ratio(numerator: int, denominator: int, statistic: Statistic) -> float:
    try:
        return float(Fraction(numerator, denominator))
    except OverflowError:
        raise _too_large(statistic) from None


def _too_large(statistic: Statistic) -> RangeError:
    return RangeError(
        f"{statistic.name} of {statistic.column!r}: the result is larger than any float"
    )
