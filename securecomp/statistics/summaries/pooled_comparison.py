"""Results held against the pooled rows: what a simulation can do, and no consortium.

Every figure is held against exact arithmetic over the pooled rows, twice. Over the values as the
sites round them to the agreed grid it must be the same: a count equal, a float the one that the
exact fraction rounds to. Over the values as they are it may differ by 1e-9 of itself, and by what
no float computation of that cell can avoid: 2^-50 of its terms. So a grid that is too coarse shows.
Nothing in this grows with declared bounds. Beside it stands what plain numpy makes of the rows.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from securecomp.statistics.results import Result
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Table
from securecomp.statistics.summaries.pool import Pool, Rational


@dataclass(frozen=True, slots=True)
class Comparison:
    """A result beside what the pooled rows give.

    Attributes:
        result: From the secure computation.
        plaintext: For each row, its value by plain numpy; None where it is suppressed.
        wrong: Places whose figure is not that of exact arithmetic, as "row 1: value".
        seconds: What numpy took for all compared results together.
    """

    result: Result
    plaintext: tuple[Any, ...]
    wrong: tuple[str, ...]
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether every figure that is shown is that of exact arithmetic over the pooled rows."""
        return not self.wrong


def compare(results: Sequence[Result], tables: Sequence[Table], schema: Schema) -> list[Comparison]:
    """Compare results with the pooled rows. It reads all sites' rows."""
    pool = Pool(tables, schema)
    for result in results:  # the pool reads each column once, before the clock starts
        result.statistic.plaintext(pool)
    start = time.perf_counter()
    plain = [result.statistic.plaintext(pool) for result in results]
    seconds = time.perf_counter() - start
    found = []
    for result, values in zip(results, plain, strict=True):
        statistic = result.statistic
        rounded, true = (statistic.exact(pool, rounded=r) for r in (True, False))
        sizes = statistic.size(pool)
        wrong = []
        for number, (row, one, other, size) in enumerate(
            zip(result.rows, rounded, true, sizes, strict=True), 1
        ):
            for key, figure in one.items():
                mark = row.get("suppressed", {}).get(key, "")
                near = mark or key == "sd" or _near(row[key], other[key], size)
                if not (_same(row[key], figure, mark) and near):
                    wrong.append(f"row {number}: {key}")
        shown = [_visible(v, row["value"]) for v, row in zip(values, result.rows, strict=True)]
        found.append(Comparison(result, tuple(shown), tuple(wrong), seconds))
    return found


def _same(value: Any, exact: Any, mark: Any) -> bool:
    if isinstance(value, list):
        marks = mark if isinstance(mark, list) else [mark] * len(value)
        return len(value) == len(exact) and all(map(_same, value, exact, marks))
    return bool(value is None if mark else value == exact and type(value) is type(exact))


def _near(value: Any, true: Any, size: Rational) -> bool:
    if isinstance(value, float) and isinstance(true, float):
        exact = Fraction(true)
        return abs(Fraction(value) - exact) <= abs(exact) / 10**9 + Fraction(size) / 2**50
    return bool(value == true)


def _visible(plain: Any, value: Any) -> Any:
    """Return plaintext where the value is shown."""
    if isinstance(value, list):
        return [_visible(p, v) for p, v in zip(plain, value, strict=True)]
    return None if value is None else plain
