"""The sum of a column."""

from dataclasses import dataclass
from typing import Any, ClassVar

from securecomp.show.numbers import show_exactly
from securecomp.statistics.disclosure.suppression import HIDDEN
from securecomp.statistics.measures import Bins, Measure, Missing, Tally
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.pool import Pool, Rational, plain_sum
from securecomp.statistics.summaries.statistic import (
    AddedNoise,
    ColumnStatistic,
    Mark,
    Row,
    Totals,
    integral,
)


@dataclass(frozen=True, slots=True)
class Sum(ColumnStatistic):
    """The sum of a column; of integers it is one, however long."""

    name: ClassVar[str] = "sum"
    noised: ClassVar[bool] = True

    def measures(self) -> tuple[Measure, ...]:
        return (self.power(1),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        grid = schema.grid(self.values)
        whole = integral(grid)
        sums = totals[self.power(1)]
        rows = [{"value": s if whole else self.ratio(s, grid.scale)} for s in sums]
        return self.by_group(schema, rows)

    def counted(self, missing: Missing) -> Tally | Bins:
        # Without missing values it is the count of all rows, which may be summed anyway.
        return Tally(self.groups) if missing == "error" or self.column is None else self.rows()

    def marks(self, row: Row, mark: Mark, *, flags: bool) -> dict[str, Any]:
        del row
        return {"value": mark(1) if flags else HIDDEN if mark(0) else ""}

    def noise_unit(self, schema: Schema) -> int:
        return schema.grid(self.values).scale

    def add_error(self, row: Row, noise: AddedNoise) -> None:
        row["error"] = int(noise.half_width) if noise.unit == 1 else noise.half_width

    def write(self, value: Any) -> str:
        return show_exactly(value)  # what was divided is not worth all its digits; a sum is

    def plaintext(self, pool: Pool) -> list[Any]:
        whole = integral(pool.schema.grid(self.values))
        groups = pool.groups(self, (self.values,))
        return [plain_sum(g[self.values, True], whole) for g in groups]

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        groups, scale = pool.numbers(self, self.values, rounded=rounded)
        whole = integral(pool.schema.grid(self.values))
        sums = [sum(numbers) for numbers in groups]
        return [{"value": int(s) if whole else self.ratio(s, scale)} for s in sums]

    def size(self, pool: Pool) -> list[Rational]:
        groups, _ = pool.numbers(self, self.values, rounded=False)
        return [sum(map(abs, numbers)) for numbers in groups]
