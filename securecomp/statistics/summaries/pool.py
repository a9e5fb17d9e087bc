"""All sites' rows in one place, which only a simulation has."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from securecomp.statistics.cell_values import Mask
from securecomp.statistics.measures import positions
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Table

_EXACT = 1 << 53  # float64 holds every integer up to here
Rational = int | Fraction
Key = tuple[str, bool]
"""A column's name, and whether it is numbers or codes of levels."""


class Grouped(Protocol):
    """A statistic, as far as its groups go."""

    @property
    def by(self) -> str | None:
        """Column to group by."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The grouping columns."""


class Pool:
    """The pooled rows: numbers as numpy has them, categories as their index among the levels."""

    def __init__(self, tables: Sequence[Table], schema: Schema) -> None:
        self.schema = schema
        self._tables = tables
        self._columns: dict[Key, tuple[npt.NDArray[Any], Mask]] = {}

    def groups(
        self, statistic: Grouped, numeric: tuple[str, ...], categorical: tuple[str, ...] = ()
    ) -> list[dict[Key, npt.NDArray[Any]]]:
        """Return the columns of the rows that have all of them, for each group apart."""
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

    def numbers(
        self, statistic: Grouped, column: str, *, rounded: bool
    ) -> tuple[list[list[Any]], int]:
        """Return a column's values as exact numbers, for each group apart, and their scale.

        With `rounded` they are integers on the agreed grid; otherwise fractions, a float being the
        shortest decimal that gives it.
        """
        groups = [g[column, True] for g in self.groups(statistic, (column,))]
        if not rounded:
            return [[_fraction(v) for v in values.tolist()] for values in groups], 1
        grid = self.schema.grid(column)
        encoded = [grid.encode(values, column, "row") for values in groups]
        return [[int(v) for v in integers] for integers in encoded], grid.scale

    def each(
        self,
        statistic: Grouped,
        column: str,
        least: int,
        compute: Callable[[npt.NDArray[Any]], Any],
        *,
        varying: bool = False,
    ) -> list[float | None]:
        """Return a number for each group; None where it has fewer than `least` rows.

        With `varying`, also None where all values are the same.
        """
        groups = [g[column, True].astype(np.float64) for g in self.groups(statistic, (column,))]
        with np.errstate(over="ignore", invalid="ignore"):
            return [
                None
                if len(x) < least or (varying and bool((x == x[0]).all()))
                else float(compute(x))
                for x in groups
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


def plain_sum(values: npt.NDArray[Any], integers: bool) -> Any:
    """Return a sum as numpy would have it, without wrapping integers."""
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


def _fraction(value: Any) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(_plain(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
