"""The number of rows."""

from dataclasses import dataclass
from typing import Any, ClassVar

from securecomp.statistics.measures import Measure
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.pool import Pool
from securecomp.statistics.summaries.statistic import AddedNoise, Row, Statistic, Totals


@dataclass(frozen=True, slots=True)
class Count(Statistic):
    """The number of rows."""

    name: ClassVar[str] = "count"
    noised: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("value",)

    def measures(self) -> tuple[Measure, ...]:
        return (self.counted("error"),)

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        return self.by_group(schema, [{"value": n} for n in totals[self.counted("error")]])

    def add_error(self, row: Row, noise: AddedNoise) -> None:
        row["error"] = int(noise.half_width)

    def plaintext(self, pool: Pool) -> list[Any]:
        return [len(next(iter(g.values()))) for g in pool.groups(self, ())]

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        return [{"value": n} for n in self.plaintext(pool)]
