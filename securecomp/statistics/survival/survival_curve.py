"""One Kaplan-Meier curve, from the counts of events and censorings at each time.

Source: Kaplan and Meier, JASA 53 (1958) 457-481. Standard errors: Greenwood 1926. Intervals and
the median's: Klein and Moeschberger, Survival Analysis (2003), sections 4.3 to 4.5.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import shown
from securecomp.errors import RangeError
from securecomp.statistics.distributions import half_width
from securecomp.statistics.site_table import Level

Interval = Literal["log-log", "plain"]
Reals64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RestrictedMean:
    """The mean time without event up to `tau`, with its standard error and interval."""

    tau: float
    value: float
    se: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The survival curve of one group. Arrays have one element for each time of the grid.

    Attributes:
        group: The group's level; None if there are no groups.
        times: The grid.
        at_risk: Rows at risk at each time.
        events: Events at each time.
        censored: Rows that are censored at each time (or before, after the time before).
        survival: Estimate of the probability to have no event up to and including each time; NaN
            in a group without rows.
        std_error: Greenwood's standard error; NaN where the survival is 0.
        low: Lower end of the interval; NaN where the survival is 0.
        high: Upper end.
        confidence: Of the intervals.
        median: First time at which the survival is at most 1/2; None if it stays above.
        median_low: First time at which `low` is at most 1/2, or None.
        median_high: First time at which `high` is, or None.
        grid_error: At times of the grid the curve is above the one of unrounded times by at most
            this, and never below it; 0 if all times are on the grid.
    """

    group: Level | None
    times: Reals64
    at_risk: npt.NDArray[np.int64]
    events: npt.NDArray[np.int64]
    censored: npt.NDArray[np.int64]
    survival: Reals64
    std_error: Reals64
    low: Reals64
    high: Reals64
    confidence: float
    median: float | None
    median_low: float | None
    median_high: float | None
    grid_error: float

    @property
    def rows(self) -> int:
        """The group's rows."""
        return int(self.at_risk[0])

    @property
    def end(self) -> float:
        """The time up to which the curve is known: the last one with rows at risk, or for ever."""
        if self.rows == 0:
            return -math.inf
        last = int(np.flatnonzero(self.at_risk)[-1])
        return math.inf if self.survival[last] == 0 else float(self.times[last])

    def survival_at(self, time: float) -> float:
        """Return the survival at any time from 0 on.

        Raises:
            RangeError: Negative, or after the last time with rows at risk.
        """
        self._check(time)
        place = bisect.bisect_right(self.times.tolist(), time)
        return float(self.survival[place - 1]) if place else 1.0

    def restricted_mean(self, tau: float) -> RestrictedMean:
        """Return the area under the curve up to `tau`.

        Of times that were rounded up it is too large, by at most `grid_error` times `tau` and each
        step of the curve times the interval before it.

        Raises:
            RangeError: Not above 0, or after the last time with rows at risk.
        Source: Klein and Moeschberger, section 4.5, (4.5.1) and (4.5.2).
        """
        self._check(tau)
        if tau == 0:
            raise RangeError("tau is above 0")
        inside = (self.times < tau) & (self.events > 0)
        starts = np.concatenate([[0.0], self.times[inside]])
        heights = np.concatenate([[1.0], self.survival[inside]])
        areas = heights * np.diff(np.append(starts, tau))
        after = np.cumsum(areas[::-1])[::-1][1:]  # from each event on
        n, d = self.at_risk[inside], self.events[inside]
        left = (n - d).astype(np.float64)
        terms = np.divide(after**2 * d, n * left, out=np.zeros(len(n)), where=left > 0)
        value, se = math.fsum(areas), math.sqrt(math.fsum(terms))
        z = half_width(self.confidence)
        return RestrictedMean(float(tau), value, se, value - z * se, value + z * se)

    def _check(self, time: float) -> None:
        if not time >= 0:
            raise RangeError("the time is at least 0")
        if time > self.end:
            raise RangeError(
                "nobody of the group was followed so long"
                + (f"; the curve ends at {shown(self.end)}" if self.rows else "; it has no rows")
            )

    def steps(self) -> dict[str, Sequence[float]]:
        """Return the curve as steps from time 0, with its band, as far as it is known."""
        known = np.flatnonzero((self.events > 0) & (self.at_risk > 0)).tolist()
        last = np.flatnonzero(self.at_risk)
        shown_at = sorted({*known, *last[-1:].tolist()})
        columns = {"x": self.times, "y": self.survival, "low": self.low, "high": self.high}
        return {
            name: [0.0 if name == "x" else 1.0, *values[shown_at].tolist()]
            for name, values in columns.items()
        }


def estimate(
    group: Level | None,
    times: Reals64,
    events: npt.NDArray[np.int64],
    ended: npt.NDArray[np.int64],
    confidence: float,
    z: float,
    interval: Interval,
    rounded: bool,
) -> Curve:
    """Estimate a curve from events at each time, and censorings at each time and later."""
    censored = ended[:-1]
    at_risk = np.cumsum((events + censored)[::-1])[::-1] + ended[-1]
    exact = _survival(events, at_risk)
    survival = np.array([float(s) for s in exact]) if at_risk[0] else np.full(len(times), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(events > 0, events / (at_risk * (at_risk - events).astype(float)), 0.0)
        spread = np.sqrt(np.cumsum(terms))  # of the logarithm
        error = survival * spread
        if interval == "plain":
            low, high = np.clip(survival - z * error, 0, 1), np.clip(survival + z * error, 0, 1)
        else:
            log = np.log(survival)
            factor = np.exp(z * spread / np.abs(log))
            low, high = np.exp(log * factor), np.exp(log / factor)
            low, high = (np.where(survival == 1, 1.0, end) for end in (low, high))
    for values in (error, low, high):
        values[survival == 0] = np.nan
    worst = 0.0
    if rounded and at_risk[0]:
        # At worst, all that were censored in an interval had left before its first event.
        lowest = _survival(events, at_risk - censored)
        worst = float(max(s - w for s, w in zip(exact, lowest, strict=True)))
    half = Fraction(1, 2)
    return Curve(
        group=group,
        times=times,
        at_risk=at_risk,
        events=events,
        censored=censored,
        survival=survival,
        std_error=error,
        low=low,
        high=high,
        confidence=confidence,
        median=_first(times, [s <= half for s in exact]),
        median_low=_first(times, low <= 0.5),
        median_high=_first(times, high <= 0.5),
        grid_error=worst,
    )


def _survival(events: npt.NDArray[np.int64], at_risk: npt.NDArray[np.int64]) -> list[Fraction]:
    """Return the product of (1 - events / at risk) up to each time, exactly."""
    value, values = Fraction(1), []
    for d, n in zip(events.tolist(), at_risk.tolist(), strict=True):
        if d:
            value *= Fraction(n - d, n)
        values.append(value)
    return values


def _first(times: Reals64, reached: Any) -> float | None:
    places = np.flatnonzero(reached)
    return float(times[places[0]]) if len(places) else None
