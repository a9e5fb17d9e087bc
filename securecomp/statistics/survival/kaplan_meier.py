"""Kaplan-Meier curves over sites, from summed events and censorings on a grid of times."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from securecomp.errors import ParameterError, RangeError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.distributions import check_confidence, half_width
from securecomp.statistics.inquiry import Asks
from securecomp.statistics.measures import cell_names
from securecomp.statistics.results import Run
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level
from securecomp.statistics.survival.follow_up import TimeGrid, distinct, integers
from securecomp.statistics.survival.survival_curve import Curve, Interval, RestrictedMean, estimate

_PRINTED = 12
"""Times of one curve that are printed; all are in the curve."""


@dataclass(frozen=True, slots=True, eq=False)
class KaplanMeier(Analysis):
    """Survival curves.

    Attributes:
        time: Column of times.
        event: Column of events.
        by: Column of groups, or None.
        curves: Group to curve; {None: curve} without groups.
        interval: How intervals are computed.
        rounded: Rows whose time is between times of the grid.
        run: Protocol and cost.
    """

    time: str
    event: str
    by: str | None
    curves: dict[Level | None, Curve]
    interval: Interval
    rounded: int
    grid: TimeGrid
    run: Run

    def curve(self, group: Level | None = None) -> Curve:
        """Return one group's curve.

        Raises:
            ParameterError: There is no such group.
        """
        if group not in self.curves:
            known = ", ".join(map(str, self.curves))
            raise ParameterError(f"there is no group {group!r}; choose from: {known}")
        return self.curves[group]

    def survival_at(self, time: float, group: Level | None = None) -> float:
        """Return a group's survival at any time; see `Curve.survival_at`."""
        return self.curve(group).survival_at(time)

    def restricted_mean(self, tau: float, group: Level | None = None) -> RestrictedMean:
        """Return a group's mean time without event up to `tau`; see `Curve.restricted_mean`."""
        return self.curve(group).restricted_mean(tau)

    @property
    def title(self) -> str:
        """The question in words."""
        by = f", by {self.by}" if self.by is not None else ""
        return f"Kaplan-Meier survival of {self.time} until {self.event}{by}"

    def grids(self) -> list[TextTable]:
        """Return medians of all groups, and each group's life table."""
        percent = f"{show(100 * next(iter(self.curves.values())).confidence)}%"
        head = (self.by or "", "rows", "events", "median", f"{percent} from", "to")
        medians = [
            (
                "" if c.group is None else str(c.group),
                *map(show, (c.rows, int(c.events.sum()), c.median, c.median_low, c.median_high)),
            )
            for c in self.curves.values()
        ]
        header = (self.time, "at risk", "events", "censored", "survival", "se", "from", "to")
        tables = [TextTable(f"median {self.time}", head, tuple(medians))]
        for c in self.curves.values():
            places = np.flatnonzero(c.events).tolist()
            name = "" if c.group is None else f"{self.by}={c.group}: "
            title = f"{name}times with an event"
            if len(places) > _PRINTED:
                title = f"{name}{_PRINTED} of {len(places)} times with an event; records() has all"
                places = [
                    places[round(i * (len(places) - 1) / (_PRINTED - 1))] for i in range(_PRINTED)
                ]
            lines = [_line(c, k) for k in places]
            tables += [TextTable(title, header, tuple(lines))] if lines else []
        return tables

    def records(self) -> list[dict[str, Any]]:
        """Return flat records, one for each group and time, for a data frame."""
        return [self._record(c, k) for c in self.curves.values() for k in range(len(c.times))]

    def _record(self, c: Curve, k: int) -> dict[str, Any]:
        return {
            **({} if self.by is None else {"group": c.group}),
            "time": float(c.times[k]),
            "at_risk": int(c.at_risk[k]),
            "events": int(c.events[k]),
            "censored": int(c.censored[k]),
            "survival": _number(c.survival[k]),
            "std_error": _number(c.std_error[k]),
            "low": _number(c.low[k]),
            "high": _number(c.high[k]),
        }

    def facts(self) -> dict[str, Any]:
        """Return medians and curves as plain objects."""
        return {
            "time": self.time,
            "event": self.event,
            "by": self.by,
            "interval": self.interval,
            "rounded": self.rounded,
            "curves": [
                {
                    "group": c.group,
                    "rows": c.rows,
                    "confidence": c.confidence,
                    "median": c.median,
                    "median_low": c.median_low,
                    "median_high": c.median_high,
                    "grid_error": c.grid_error,
                    "times": c.times.tolist(),
                    "at_risk": c.at_risk.tolist(),
                    "events": c.events.tolist(),
                    "censored": c.censored.tolist(),
                    **{
                        name: [_number(v) for v in getattr(c, name)]
                        for name in ("survival", "std_error", "low", "high")
                    },
                }
                for c in self.curves.values()
            ],
        }

    def plots(self) -> list[Plot]:
        """Return the curves as steps with their bands."""
        named = {
            str(c.group) if self.by else "survival": c.steps()
            for c in self.curves.values()
            if c.rows
        }
        return [Plot("steps", self.title, self.time, "survival", named)]

    def remarks(self) -> list[str]:
        """Return what the grid did to times, empty groups and small counts."""
        said = self.grid.remarks(self.rounded)
        error = max(c.grid_error for c in self.curves.values())
        if error:
            said.append(
                "At times of the grid no curve is below the one of the times as they are, and none "
                f"is above it by more than {show(error)}."
            )
        empty = [str(c.group) for c in self.curves.values() if not c.rows]
        said += [f"No rows: {', '.join(empty)}."] if empty else []
        curves = self.curves.values()
        counts = (n for c in curves for n in (*c.at_risk, *c.events, *c.censored))
        return said + small_counts(map(int, counts))


def kaplan_meier(
    study: Asks,
    time: str,
    event: str,
    *,
    times: Sequence[float] | None = None,
    by: str | None = None,
    confidence: float = 0.95,
    interval: Interval = "log-log",
) -> KaplanMeier:
    """Estimate survival curves from events and rows at risk on a grid of times.

    Args:
        time: Column of times from 0 until the event, or until the row is censored.
        event: Column that is 1 where the event happened and 0 where the row is censored.
        times: The grid, increasing; public. An event between two of its times counts at the
            later one, and who is censored between them is at risk there: so curves are exact if
            all times are on the grid, and otherwise too high by at most `Curve.grid_error` at
            its times. Rows are followed up to its last time; later events do not count. By
            default all integers up to the time column's bound, if that is at most 1,000.
        by: Categorical column; a curve for each level.
        confidence: Of the intervals.
        interval: "log-log", which stay within 0 and 1, or "plain", cut there.

    Returns:
        For each group the survival with Greenwood's standard error and interval at each time,
        the counts, the median, and the restricted mean.

    Raises:
        ParameterError: A column that there is not; times that are no grid, or none where one
            is needed.
        RangeError: A negative time, an event that is not 0 or 1; no rows at any site.

    Opens: each group's events and censorings at each time of the grid and beyond it; how many
    times are off the grid. One sum.

    Example:
        >>> study.kaplan_meier("days", "died", by="treatment").survival_at(365, "a")
        ... # doctest: +SKIP
    """
    ask = study.inquiry()
    distinct(time=time, event=event, by=by)
    z = half_width(check_confidence(confidence))
    if interval not in ("log-log", "plain"):
        raise ParameterError(f'interval is "log-log" or "plain", not {interval!r}')
    groups = () if by is None else (by,)
    levels: Sequence[Level | None] = (None,) if by is None else ask.schema.levels(by)
    grid = TimeGrid.agree(ask.schema, time, event, times)
    parts: dict[str, list[int]] = {}
    for table in ask.tables:
        rows = grid.rows(ask, table, groups)
        events = rows.tally(grid.size + 1, rows.event)[:, : grid.size]
        censored = rows.tally(grid.size + 1, ~rows.event)
        parts[table.site] = [*integers(events), *integers(censored), rows.rounded]
    cells = cell_names(ask.schema, groups)
    labels = [f"events at {t} {c}".strip() for c in cells for t in grid.names()]
    ends = [*(f"censored at {t}" for t in grid.names()), f"rows beyond {grid.names()[-1]}"]
    labels += [f"{e} {c}".strip() for c in cells for e in ends]
    (totals,) = ask.adder.add(IntegerBlock([*labels, grid.rounded_label], MAX_ROWS, parts))
    cut = len(cells) * grid.size
    events = np.array(totals[:cut], np.int64).reshape(len(cells), grid.size)
    ended = np.array(totals[cut:-1], np.int64).reshape(len(cells), grid.size + 1)
    rounded = totals[-1]
    if not events.any() and not ended.any():
        raise RangeError(f"no site has a row with {time} and {event}; there is no curve")
    curves = {
        group: estimate(group, grid.times, d, c, confidence, z, interval, bool(rounded))
        for group, d, c in zip(levels, events, ended, strict=True)
    }
    return KaplanMeier(time, event, by, curves, interval, rounded, grid, ask.done())


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _line(c: Curve, k: int) -> tuple[str, ...]:
    counts = (int(n[k]) for n in (c.at_risk, c.events, c.censored))
    chances = (c.survival[k], c.std_error[k], c.low[k], c.high[k])
    return (
        show(float(c.times[k])),
        *map(show, counts),
        *("-" if math.isnan(p) else f"{p:.4f}" for p in chances),
    )
