"""The sample skewness of a column."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from securecomp.errors import RangeError
from securecomp.statistics.measures import Measure
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.pool import Pool, Rational
from securecomp.statistics.summaries.statistic import ColumnStatistic, Row, Totals


@dataclass(frozen=True, slots=True)
class Skewness(ColumnStatistic):
    """The adjusted Fisher-Pearson coefficient of skewness of a column.

    G_1 = sqrt(n (n - 1)) / (n - 2) * m_3 / m_2^(3/2), with the central moments m_2 and m_3 of
    divisor n; scipy has it as `skew(x, bias=False)`. None for fewer than 3 rows, or rows that are
    all the same.

    Source: Joanes, Gill, The Statistician 47 (1998), equation for G_1.
    """

    name: ClassVar[str] = "skewness"

    def measures(self) -> tuple[Measure, ...]:
        return (self.rows(), self.power(1), self.power(2), self.power(3))

    def finish(self, totals: Totals, schema: Schema) -> list[Row]:
        sums = zip(*(totals[m] for m in self.measures()), strict=True)
        return self.by_group(schema, [_row(*each) for each in sums])

    def plaintext(self, pool: Pool) -> list[Any]:
        def skew(x: Any) -> float:
            d, n = x - x.mean(), len(x)
            spread = (d**2).mean() ** 1.5
            return float((d**3).mean() / spread * np.sqrt(n * (n - 1)) / (n - 2))

        return pool.each(self, self.values, 3, skew, varying=True)

    def exact(self, pool: Pool, *, rounded: bool) -> list[Row]:
        groups, _ = pool.numbers(self, self.values, rounded=rounded)
        return [_row(len(x), *(sum(v**k for v in x) for k in (1, 2, 3))) for x in groups]

    def size(self, pool: Pool) -> list[Rational]:
        return [1] * len(pool.groups(self, ()))


def _row(n: int, s: Rational, q: Rational, c: Rational) -> Row:
    """Return a row from the number of values, and the sums of their first three powers.

    The unit cancels: integers on the grid have the skewness of the values.
    """
    second = Fraction(n * q - s * s, n * n) if n else Fraction(0)
    if n < 3 or not second:
        return {"value": None, "n": n}
    third = Fraction(n * n * c - 3 * n * s * q + 2 * s**3, n**3)
    # G_1^2 is a fraction, and exact; its root is rounded once.
    square = third * third / second**3 * Fraction(n * (n - 1), (n - 2) ** 2)
    return {"value": math.copysign(root(square), third), "n": n}


def root(square: Fraction) -> float:
    """Return the square root of a fraction that is not negative, within one unit in the last place.

    Raises:
        RangeError: It is larger than any float.
    """
    # 128 bits more than the fraction's own keep the integer root exact far beyond a float's 53.
    shift = 2 * (max(0, square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 64)
    whole = math.isqrt((square.numerator << shift) // square.denominator)
    try:
        return float(Fraction(whole, 1 << shift // 2))
    except OverflowError:
        raise RangeError("skewness: the result is larger than any float") from None
