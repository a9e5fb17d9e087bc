"""Log-rank tests over sites, stratified and weighted, from events and rows at risk on a grid.

The sites first add up the events at each time; then, at the times that have any, the rows at risk
in each group; and last, for a weighted test, each group's events times weights that are known from
the totals before. So a group's events at single times stay unknown.

Source: Mantel, Cancer Chemother. Rep. 50 (1966) 163-170; weights: Gehan 1965, Tarone and Ware 1977,
Fleming and Harrington 1981; Klein and Moeschberger, Survival Analysis (2003), sections 7.3 and 7.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, RangeError
from securecomp.show.exhibit import TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import IntegerBlock, RealBlock
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.distributions import chi_square_pvalue
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import cell_names
from securecomp.statistics.results import Run
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level
from securecomp.statistics.survival.follow_up import SurvivalRows, TimeGrid, distinct, integers

Weighting = Literal["logrank", "wilcoxon", "tarone-ware", "fleming-harrington"]
_NAMES = {
    "logrank": "log-rank",
    "wilcoxon": "Gehan's Wilcoxon",
    "tarone-ware": "Tarone-Ware",
    "fleming-harrington": "Fleming-Harrington",
}
_BITS = 60
_RANK = 1e-10  # of the largest eigenvalue: below it there is no variance


@dataclass(frozen=True, slots=True, eq=False)
class LogRank(Analysis):
    """A test that the hazards of several groups are equal.

    Attributes:
        time: Column of times.
        event: Column of events.
        by: Column of groups.
        strata: Column of strata, or None.
        weighting: Weights of the times.
        powers: p and q of Fleming and Harrington's weights S^p (1 - S)^q, S just before the time.
        statistic: Chi-square.
        df: Its degrees of freedom.
        pvalue: Probability of at least this statistic if the hazards are equal.
        groups: The groups' levels.
        rows: Each group's rows.
        events: Each group's events.
        observed: Each group's weighted events; the events themselves for the log-rank test.
        expected: The same, as expected from the rows at risk.
        covariance: Of observed - expected, shape (groups, groups).
        smallest: How many of the counts that were opened are small, as a remark.
        rounded: Rows whose time is between times of the grid.
        run: Protocol and cost.
    """

    time: str
    event: str
    by: str
    strata: str | None
    weighting: Weighting
    powers: tuple[float, float]
    statistic: float
    df: int
    pvalue: float
    groups: tuple[Level, ...]
    rows: tuple[int, ...]
    events: tuple[int, ...]
    observed: tuple[float, ...]
    expected: tuple[float, ...]
    covariance: npt.NDArray[np.float64]
    smallest: tuple[str, ...]
    rounded: int
    grid: TimeGrid
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        name = _NAMES[self.weighting]
        if self.weighting == "fleming-harrington":
            name += f"({show(self.powers[0])}, {show(self.powers[1])})"
        strata = f", stratified by {self.strata}" if self.strata is not None else ""
        return f"{name} test of {self.time} until {self.event} by {self.by}{strata}"

    def grids(self) -> list[TextTable]:
        """Return the groups and the test."""
        weighted = self.weighting != "logrank"
        head = ("weighted observed", "weighted expected") if weighted else ("expected",)
        lines = []
        for group, n, d, o, e in zip(
            self.groups, self.rows, self.events, self.observed, self.expected, strict=True
        ):
            sums = (o, e) if weighted else (e,)
            lines.append((str(group), show(n), show(d), *(show(float(v)) for v in sums)))
        test = (f"{self.statistic:.4f}", str(self.df), f"{self.pvalue:.4g}")
        return [
            TextTable("", (self.by, "rows", "events", *head), tuple(lines)),
            TextTable("", ("chi-square", "df", "p value"), (test,)),
        ]

    def facts(self) -> dict[str, Any]:
        """Return the test as plain objects."""
        return {
            "time": self.time,
            "event": self.event,
            "by": self.by,
            "strata": self.strata,
            "weighting": self.weighting,
            "powers": list(self.powers),
            "statistic": self.statistic,
            "df": self.df,
            "pvalue": self.pvalue,
            "rounded": self.rounded,
            "groups": [
                {"group": g, "rows": n, "events": d, "observed": o, "expected": e}
                for g, n, d, o, e in zip(
                    self.groups, self.rows, self.events, self.observed, self.expected, strict=True
                )
            ],
        }

    def remarks(self) -> list[str]:
        """Return what the grid did to times, and small counts."""
        return [*self.grid.remarks(self.rounded), *self.smallest]


def logrank(
    study: Asks,
    time: str,
    event: str,
    by: str,
    *,
    times: Sequence[float] | None = None,
    strata: str | None = None,
    weighting: Weighting = "logrank",
    p: float = 0,
    q: float = 0,
) -> LogRank:
    """Test whether groups have the same hazard at all times.

    Args:
        time: Column of times, as `kaplan_meier` has it.
        event: Column of events, 1 or 0.
        by: Categorical column of two or more groups.
        times: The grid, as `kaplan_meier` has it; the test is of the times rounded up to it.
        strata: Categorical column within whose levels groups are compared.
        weighting: Of the times: "logrank" (1), "wilcoxon" (Gehan's: rows at risk),
            "tarone-ware" (their square root) or "fleming-harrington" (S^p (1 - S)^q with the
            stratum's survival S just before the time).
        p: For "fleming-harrington".
        q: For "fleming-harrington".

    Returns:
        Chi-square, degrees of freedom, p value; observed and expected events of each group.

    Raises:
        ParameterError: As `kaplan_meier`; one group only; an unknown weighting.
        RangeError: As `kaplan_meier`; no event, or never two groups at risk.

    Opens: rows and events of each group; events at each time of each stratum; at times with
    events, the rows at risk in each group; and each group's weighted events. Two sums, or
    three.

    Example:
        >>> study.logrank("days", "died", "treatment").pvalue  # doctest: +SKIP
    """
    ask = study.inquiry()
    powers = (p, q)
    distinct(time=time, event=event, by=by, strata=strata)
    _check(weighting, powers)
    groups = ask.schema.levels(by)
    if len(groups) < 2:
        raise ParameterError(
            f"column {by!r} has one level, {groups[0]}; a test compares two or more"
        )
    outer = () if strata is None else (strata,)
    layers = cell_names(ask.schema, outer)
    grid = TimeGrid.agree(ask.schema, time, event, times)
    sites = {t.site: grid.rows(ask, t, (*outer, by)) for t in ask.tables}
    shape = (len(layers), len(groups), grid.size + 1)
    events, rows, happened, rounded = _first_sum(ask, grid, sites, shape, layers, (by, groups))
    if not events.any():
        raise RangeError(
            f"column {event!r}: no site has an event up to the last time; there is nothing to test"
        )
    layer, place = np.nonzero(events)
    d = events[layer, place].astype(np.float64)
    cells = [f"at {grid.names()[k]} {layers[s]}".strip() for s, k in zip(layer, place, strict=True)]
    risk: dict[str, list[int]] = {}
    for site, found in sites.items():
        ended = found.tally(shape[2]).reshape(shape)
        later = np.cumsum(ended[:, :, ::-1], axis=2)[:, :, ::-1]
        risk[site] = integers(later[layer, :, place])
    names = [f"{by}={level}" for level in groups]
    (totals,) = ask.adder.add(
        IntegerBlock([f"rows at risk {c} {n}" for c in cells for n in names], MAX_ROWS, risk)
    )
    at_risk = np.array(totals, np.float64).reshape(len(cells), len(groups))
    n = at_risk.sum(axis=1)
    w = _weights(weighting, powers, layer, d, n)
    if not w.any():
        raise RangeError(
            "at all times with events the weight is 0; choose q=0, or another weighting"
        )
    observed = np.array(happened, np.float64)
    if weighting != "logrank":
        scale = float(w.max())
        parts = {}
        for site, found in sites.items():
            by_group = found.tally(shape[2], found.event).reshape(shape)[layer, :, place]
            parts[site] = (w / scale) @ by_group
        labels = [f"weighted events {name}" for name in names]
        (weighted,) = ask.adder.add(RealBlock(labels, float(MAX_ROWS), _BITS, parts))
        observed = weighted * scale
    share = at_risk / n[:, None]
    expected = (w * d) @ share
    factor = w**2 * d * np.divide(n - d, n - 1, out=np.zeros(len(n)), where=n > 1)
    covariance = np.diag(factor @ share) - (share * factor[:, None]).T @ share
    statistic, df = _chi_square(observed - expected, covariance)
    if df == 0:
        raise RangeError(
            f"columns {time!r} and {by!r}: at each event only one group is at risk, so that groups "
            "cannot be compared"
        )
    return LogRank(
        time=time,
        event=event,
        by=by,
        strata=strata,
        weighting=weighting,
        powers=powers,
        statistic=statistic,
        df=df,
        pvalue=chi_square_pvalue(statistic, df),
        groups=tuple(groups),
        rows=tuple(rows),
        events=tuple(happened),
        observed=tuple(observed.tolist()),
        expected=tuple(expected.tolist()),
        covariance=covariance,
        smallest=tuple(small_counts([*integers(events), *totals, *rows])),
        rounded=rounded,
        grid=grid,
        run=ask.done(),
    )


def _check(weighting: str, powers: tuple[float, float]) -> None:
    if weighting not in _NAMES:
        raise ParameterError(f"weighting is one of {', '.join(_NAMES)}; not {weighting!r}")
    if weighting != "fleming-harrington" and powers != (0, 0):
        raise ParameterError('p and q belong to weighting="fleming-harrington"')
    if any(not 0 <= power < np.inf for power in powers):
        raise ParameterError("p and q are numbers of at least 0")


def _first_sum(
    ask: Inquiry,
    grid: TimeGrid,
    sites: dict[str, SurvivalRows],
    shape: tuple[int, int, int],
    layers: Sequence[str],
    by: tuple[str, Sequence[Level]],
) -> tuple[npt.NDArray[np.int64], list[int], list[int], int]:
    """Add up events at each time of each stratum, and rows and events of each group."""
    parts: dict[str, list[int]] = {}
    for site, found in sites.items():
        ended = found.tally(shape[2]).reshape(shape)
        happened = found.tally(shape[2], found.event).reshape(shape)
        parts[site] = [
            *integers(happened.sum(axis=1)[:, : grid.size]),
            *integers(ended.sum(axis=(0, 2))),
            *integers(happened.sum(axis=(0, 2))),
            found.rounded,
        ]
    labels = [f"events at {t} {layer}".strip() for layer in layers for t in grid.names()]
    labels += [f"{what} {by[0]}={level}" for what in ("rows", "events") for level in by[1]]
    (totals,) = ask.adder.add(IntegerBlock([*labels, grid.rounded_label], MAX_ROWS, parts))
    cut, many = len(layers) * grid.size, shape[1]
    events = np.array(totals[:cut], np.int64).reshape(len(layers), grid.size)
    return events, totals[cut : cut + many], totals[cut + many : -1], totals[-1]


def _weights(
    weighting: str,
    powers: tuple[float, float],
    layer: npt.NDArray[np.int64],
    d: npt.NDArray[np.float64],
    n: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return each time's weight; strata have curves of their own."""
    if weighting == "wilcoxon":
        return n
    if weighting == "tarone-ware":
        return np.sqrt(n)
    if weighting == "logrank":
        return np.ones(len(n))
    before = np.ones(len(n))
    for s in np.unique(layer):
        here = layer == s
        before[here] = np.concatenate([[1.0], np.cumprod(1 - d[here] / n[here])[:-1]])
    weights: npt.NDArray[np.float64] = before ** powers[0] * (1 - before) ** powers[1]
    return weights


def _chi_square(
    difference: npt.NDArray[np.float64], covariance: npt.NDArray[np.float64]
) -> tuple[float, int]:
    """Return z' V^- z and V's rank: groups that are never at risk, or never together, drop out."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _RANK * max(float(values.max()), 0.0)
    along = vectors.T @ difference
    return float(np.sum(along[kept] ** 2 / values[kept])), int(kept.sum())
