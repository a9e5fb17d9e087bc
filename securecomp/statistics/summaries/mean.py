"""The mean of a column."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from securecomp.statistics.measures import Centred, Measure
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.pool import Pool, Rational
from securecomp.statistics.summaries.statistic import AddedNoise, ColumnStatistic, Row, Totals

_NORMAL = 1.96


@dataclass(frozen=True, slots=True)
class Mean(ColumnStatistic):
    """The mean of a column."""

    name: ClassVar[str] = "mean"
    noised: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("n",)

    def measures(self) -> tuple[Measure, ...]:
        return (self.rows(), self.power(1))

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        counts, sums = (totals[m] for m in self.measures())
        scale = schema.grid(self.values).scale
        rows = [self._row(n, s, scale) for n, s in zip(counts, sums, strict=True)]
        return self.by_group(schema, rows)

    def _row(self, n: int, total: Rational, scale: int) -> Row:
        return {"value": self.ratio(total, n * scale) if n else None, "n": n}

    def noise_measures(self, middle: Callable[[str], int]) -> tuple[Measure, ...]:
        """Return rows, and distances from the middle of the bounds, which need less noise."""
        return self.rows(), Centred(self.power(1), self.rows(), middle(self.values))

    def noise_unit(self, schema: Schema) -> int:
        return schema.grid(self.values).scale

    def add_error(self, row: Row, noise: AddedNoise) -> None:
        """Give the error to first order; none, and no value, where the count is lost in noise."""
        n, mean = row["n"], row["value"]
        if mean is None or n <= 0:
            row["value"] = row["error"] = None
            return
        spread = math.hypot(noise.deviation, (mean - noise.middle) * noise.count_deviation) / n
        row["error"] = _NORMAL * spread if n > noise.count_half_width else None

    def clamp(self, row: Row, low: float, high: float) -> None:
        if row["value"] is not None:
            row["value"] = min(max(row["value"], low), high)

    def plaintext(self, pool: Pool) -> list[Any]:
        return pool.each(self, self.values, 1, lambda values: values.mean())

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        groups, scale = pool.numbers(self, self.values, rounded=rounded)
        return [self._row(len(numbers), sum(numbers), scale) for numbers in groups]

    def size(self, pool: Pool) -> list[Rational]:
        groups, _ = pool.numbers(self, self.values, rounded=False)
        return [max(map(abs, numbers), default=0) for numbers in groups]
