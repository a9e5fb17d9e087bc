"""Follow-up of patients on a grid of times that the sites agree on.

Times are rounded up to the grid: an event in (t[k-1], t[k]] counts at t[k], a row that is censored
in that interval is at risk at t[k] and no longer. So all is exact when every time is on the grid,
as events come before censorings at the same time. A row that is followed past the last time of the
grid is at risk to the end; what happens to it later does not count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import FixedPoint, shown
from securecomp.errors import ParameterError, RangeError
from securecomp.statistics.cell_values import Mask
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.measures import group_codes, kept_rows
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Table

MAX_TIMES = 100_000
_SAME = 1e-9  # of a time: what arithmetic on times may be off, and no two agreed times are apart
DEFAULT_BOUND = 1000
"""Up to this agreed bound, all integers are the grid if none is given."""


@dataclass(frozen=True, slots=True)
class SurvivalRows:
    """One site's rows that have all values. They do not leave the site.

    Attributes:
        keep: Which of the table's rows these are.
        index: Place of each row's time on the grid; the grid's length if it is beyond.
        event: Whether the row has an event on the grid.
        codes: Each row's group.
        groups: Number of groups.
        rounded: How many times are between times of the grid.
    """

    keep: Mask
    index: npt.NDArray[np.int64]
    event: Mask
    codes: npt.NDArray[np.int64]
    groups: int
    rounded: int

    def tally(self, size: int, which: Mask | None = None) -> npt.NDArray[np.int64]:
        """Count rows for each group and each of `size` places, shape (groups, size)."""
        cells = self.codes * size + self.index
        counted = np.bincount(
            cells if which is None else cells[which], minlength=self.groups * size
        )
        return counted.reshape(self.groups, size).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class TimeGrid:
    """The times at which events are counted. Public.

    Attributes:
        time: Column of times, from 0.
        event: Column that is 1 where the time ends with an event, 0 where it is censored.
        times: Increasing.
        given: Whether the analyst gave them.
    """

    time: str
    event: str
    times: npt.NDArray[np.float64]
    given: bool

    @classmethod
    def agree(
        cls, schema: Schema, time: str, event: str, times: Sequence[float] | None
    ) -> "TimeGrid":
        """Return the grid that was given, or all integers up to the time column's bound.

        Raises:
            ParameterError: Not increasing, finite times from 0; or none are given where the bound
                is large or times are no integers.
        """
        if times is not None:
            return cls(time, event, _increasing(times), True)
        grid = schema.grid(time)
        integers = grid.scale == 1 and grid.exact
        if integers and grid.bound <= DEFAULT_BOUND:
            return cls(time, event, np.arange(int(grid.bound) + 1, dtype=np.float64), False)
        why = f"its bound is beyond {DEFAULT_BOUND}" if integers else "it holds no integers"
        raise ParameterError(
            f"column {time!r}: {why}, so give the increasing times at which events are counted, "
            "say times=range(0, 3651, 30); times between them are rounded up"
        )

    @property
    def size(self) -> int:
        """The number of times."""
        return len(self.times)

    def names(self) -> list[str]:
        """Name the times, as labels have them."""
        return [f"{self.time}={shown(t)}" for t in self.times.tolist()]

    @property
    def rounded_label(self) -> str:
        """The label of the number of times that are off the grid."""
        return f"rows with {self.time} between times of the grid"

    def rows(
        self,
        ask: Inquiry,
        table: Table,
        groups: tuple[str, ...],
        numeric: tuple[str, ...] = (),
        categorical: tuple[str, ...] = (),
    ) -> SurvivalRows:
        """Read one site's follow-up.

        Args:
            ask: The inquiry.
            table: The site.
            groups: Categorical columns whose cells are the groups.
            numeric: Further columns that must have a value.
            categorical: The same, of categories.

        Raises:
            RangeError: A time is negative or infinite, an event is not 0 or 1, a value is missing,
                or not one of the agreed levels. It names site, column and row.
        """
        keep = kept_rows(
            table, (self.time, self.event, *numeric), (*groups, *categorical), ask.missing
        )
        codes, cells = group_codes(table, ask.schema, groups)
        values = table.numbers(self.time).values
        if self.given:
            _hold_to_declared(ask.schema, table, self.time, values)
        else:
            ask.schema.grid(self.time).encode(values, table.where(self.time), "row")
        spans = values.astype(np.float64)
        _refuse(table, self.time, keep & ~np.isfinite(spans), "is NaN or infinite; correct it")
        _refuse(table, self.time, keep & (spans < 0), "is negative; count time from 0")
        happened = table.numbers(self.event).values
        happened = happened if happened.dtype.kind == "O" else np.asarray(happened)
        ones = np.asarray(happened == 1, bool)
        _refuse(
            table,
            self.event,
            keep & ~ones & ~np.asarray(happened == 0, bool),
            "is neither 0 (censored) nor 1 (event); recode it",
        )
        spans, ones = spans[keep], ones[keep]
        index, off = self._places(spans)
        inside = index < self.size
        return SurvivalRows(keep, index, ones & inside, codes[keep], cells, int(off.sum()))

    def _places(
        self, spans: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return each time's place on the grid, rounded up, and whether it was rounded.

        A time within `_SAME` of a time of the grid is that time: 0.1 + 0.2 is 0.3. R's survival
        package has the same as `timefix`.
        """
        index = np.searchsorted(self.times, spans, "left")
        before = self.times[np.maximum(index - 1, 0)]
        index = index - ((index > 0) & (spans - before <= _SAME * before))
        nearest = self.times[np.minimum(index, self.size - 1)]
        off = (index < self.size) & (np.abs(nearest - spans) > _SAME * nearest)
        return index, off

    def remarks(self, rounded: int) -> list[str]:
        """Return what a reader must know of the grid."""
        said = []
        if rounded:
            many = (
                f"{rounded:,} rows have a {self.time}"
                if rounded > 1
                else f"1 row has a {self.time}"
            )
            said.append(f"{many} between times of the grid, rounded up to the next of them.")
        if self.given:
            said.append(
                f"Follow-up ends at {self.time} {shown(float(self.times[-1]))}, the last time of "
                "the grid; events after it do not count."
            )
        return said


def _hold_to_declared(schema: Schema, table: Table, column: str, values: Any) -> None:
    """Refuse times that do not follow what was declared about their column.

    Raises:
        RangeError: A value is beyond the bound, or has more decimals; it names the row.
    """
    declared = schema.declared.get(column)
    if declared is None or declared.decimals is None:
        return
    largest = max((abs(v) for v in values.tolist() if np.isfinite(v)), default=0)
    bound = largest if declared.bound is None else declared.bound
    FixedPoint.decimal(bound, declared.decimals).encode(values, table.where(column), "row")


def distinct(**columns: str | None) -> None:
    """Refuse a column that is asked for in two roles, or is no name.

    Raises:
        ParameterError: It names the roles.
    """
    roles: dict[str, str] = {}
    for role, column in columns.items():
        if column is None:
            continue
        if not isinstance(column, str | int):
            raise ParameterError(f"{role} is a column's name, not {column!r}")
        if column in roles:
            raise ParameterError(
                f"column {column!r} is both {roles[column]} and {role}; name two columns"
            )
        roles[column] = role


def integers(array: npt.NDArray[Any]) -> list[int]:
    """Return an array as plain integers."""
    return [int(n) for n in array.reshape(-1).tolist()]


def _increasing(times: Sequence[float]) -> npt.NDArray[np.float64]:
    refusal = "times are a list of increasing numbers from 0, say times=range(0, 366, 7)"
    if isinstance(times, str) or not isinstance(times, Iterable):
        raise ParameterError(f"{refusal}; not {times!r}")
    try:
        listed = [float(t) for t in times]
    except (TypeError, ValueError):
        raise ParameterError(refusal) from None
    if not listed:
        raise ParameterError(f"{refusal}; there is none")
    if not np.isfinite(listed).all() or listed[0] < 0:
        raise ParameterError(f"{refusal}; one is negative, NaN or infinite")
    if any(not a < b for a, b in pairwise(listed)):
        raise ParameterError(f"{refusal}; sort them, each once")
    if any(b - a <= _SAME * b for a, b in pairwise(listed)):
        raise ParameterError(f"{refusal}; two are nearer than floats tell apart reliably")
    if len(listed) > MAX_TIMES:
        raise ParameterError(f"at most {MAX_TIMES:,} times; use a coarser grid")
    return np.array(listed, np.float64)


def _refuse(table: Table, column: str, wrong: Mask, what: str) -> None:
    if wrong.any():
        more = int(wrong.sum()) - 1
        row = f"row {table.row(wrong)}" + (f" (and {more} more)" if more else "")
        raise RangeError(f"{table.where(column)}: {row} {what}")
