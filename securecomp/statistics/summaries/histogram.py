"""Counts of a column's values in bins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from securecomp.show.exhibit import Plot
from securecomp.show.numbers import show
from securecomp.statistics.axes import Axis, bin_parts
from securecomp.statistics.measures import Bins, Measure, Missing, Tally, bin_names
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.pool import Pool
from securecomp.statistics.summaries.statistic import ColumnStatistic, Mark, Row, Totals


@dataclass(frozen=True, slots=True)
class Histogram(ColumnStatistic):
    """The number of rows in each bin of a column, below and above them."""

    name: ClassVar[str] = "histogram"
    of_values: ClassVar[bool] = False
    noised: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("value", "below", "above")
    edges: tuple[float, ...] = ()

    def _bins(self) -> Bins:
        return Bins(self.values, self.edges, self.groups)

    def measures(self) -> tuple[Measure, ...]:
        return (self._bins(),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        counts, width = totals[self._bins()], self._bins().width
        rows = []
        for start in range(0, len(counts), width):
            *bins, below, above = counts[start : start + width]
            rows.append({"value": bins, "edges": list(self.edges), "below": below, "above": above})
        return self.by_group(schema, rows)

    def counted(self, missing: Missing) -> Tally | Bins:
        del missing
        return self._bins()

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        del schema
        return (Axis(self.values, bin_parts(self.edges)),)

    def marks(self, row: Row, mark: Mark, *, flags: bool) -> dict[str, Any]:
        del flags
        bins = len(row["value"])
        values = [mark(i) for i in range(bins)]
        return {"value": values, "below": mark(bins), "above": mark(bins + 1)}

    def fields(self, row: Row) -> list[str]:
        del row
        return ["from", "to", "count"]

    def cells(self, row: Row, fields: Sequence[str]) -> list[list[Any]]:
        del fields
        edges = [float(edge) for edge in row["edges"]]
        bins = [[a, b, n] for (a, b), n in zip(pairwise(edges), row["value"], strict=True)]
        return [*bins, [None, edges[0], row["below"]], [edges[-1], None, row["above"]]]

    def header(self, row: Row) -> list[str]:
        del row
        return [str(self.column), "rows"]

    def lines(self, row: Row, fields: Sequence[str]) -> list[list[str]]:
        del fields
        names = [*bin_names(row["edges"]), "below", "above"]
        counts = [*row["value"], row["below"], row["above"]]
        return [[name, show(n)] for name, n in zip(names, counts, strict=True)]

    def plots(self, title: str, rows: Sequence[Row]) -> list[Plot]:
        series = {}
        for row in rows:
            counts = [math.nan if n is None else n for n in row["value"]]
            ends = {"from": row["edges"][:-1], "to": row["edges"][1:], "count": counts}
            series["rows" if self.by is None else f"{self.by}={row['group']}"] = ends
        hidden = any(n is None for row in rows for n in row["value"])
        note = "; bins with * are not shown" if hidden else ""
        return [Plot("bars", title + note, str(self.column), "rows", series)]

    def _numbers(self, pool: Pool) -> list[Any]:
        groups = pool.groups(self, (self.values,))
        return [g[self.values, True].astype(np.float64) for g in groups]

    def plaintext(self, pool: Pool) -> list[Any]:
        return [np.histogram(x, self.edges)[0].tolist() for x in self._numbers(pool)]

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        low, high = self.edges[0], self.edges[-1]
        return [
            {"value": bins, "below": int((x < low).sum()), "above": int((x > high).sum())}
            for x, bins in zip(self._numbers(pool), self.plaintext(pool), strict=True)
        ]
