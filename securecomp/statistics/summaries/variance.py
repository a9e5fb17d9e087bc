"""The sample variance and standard deviation of a column."""

from dataclasses import dataclass
from typing import Any, ClassVar

from securecomp.statistics.measures import Measure
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.pool import Pool, Rational
from securecomp.statistics.summaries.statistic import ColumnStatistic, Row, Totals


@dataclass(frozen=True, slots=True)
class Variance(ColumnStatistic):
    """The sample variance (divisor n - 1) and standard deviation of a column."""

    name: ClassVar[str] = "variance"

    def measures(self) -> tuple[Measure, ...]:
        return (self.rows(), self.power(1), self.power(2))

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        sums = zip(*(totals[m] for m in self.measures()), strict=True)
        scale = schema.grid(self.values).scale
        return self.by_group(schema, [self._row(n, s, q, scale) for n, s, q in sums])

    def _row(self, n: int, s: Rational, q: Rational, scale: int) -> Row:
        if n < 2:
            return {"value": None, "sd": None, "n": n}
        variance = self.ratio(n * q - s * s, n * (n - 1) * scale * scale)
        return {"value": variance, "sd": variance**0.5, "n": n}

    def plaintext(self, pool: Pool) -> list[Any]:
        return pool.each(self, self.values, 2, lambda values: values.var(ddof=1))

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        groups, scale = pool.numbers(self, self.values, rounded=rounded)
        return [self._row(len(x), sum(x), sum(v * v for v in x), scale) for x in groups]

    def size(self, pool: Pool) -> list[Rational]:
        groups, _ = pool.numbers(self, self.values, rounded=False)
        return [max((v * v for v in numbers), default=0) for numbers in groups]
