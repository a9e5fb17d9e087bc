"""ROC curve: how well a score tells cases from controls, from counts in bins.

Within a bin nobody knows which score is larger: the true area lies between two bounds, which are
stated, and is exact if scores that share a bin are equal.

Source: Youden, Cancer 3 (1950) 32-35.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import shown
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.comparisons import roc_area
from securecomp.statistics.comparisons.risks import marked_level
from securecomp.statistics.comparisons.score_bins import ScoreBins, chosen_bins
from securecomp.statistics.distributions import check_confidence, half_width
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import bin_names, group_codes, kept_rows
from securecomp.statistics.moments import two_columns
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level, Table

MAX_BINS = 10_000
_LARGEST = 10**300
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Discrimination(Analysis):
    """A ROC curve and the area under it.

    Attributes:
        score: The score's column; larger ones speak for the event.
        outcome: The outcome's column.
        event: Its level that is the event.
        edges: The bins' borders.
        cases: Rows with the event, in each bin.
        controls: Rows without it.
        auc: Area under the curve, with half of what shares a bin: the probability that a case
            scores higher than a control.
        auc_low: The true area is at least this, whatever the scores within the bins.
        auc_high: And at most this.
        bse: Standard error of `auc` by DeLong, with the bins as scores; NaN with a single case or
            control. It is 0, and says nothing, where the area is 0 or 1.
        bse_hanley: By Hanley and McNeil, from the area alone; the same holds.
        low: Lower end of the confidence interval by Newcombe's method 5, which needs neither.
        high: Upper end.
        confidence: Of the interval.
        run: What it took.
    """

    score: str
    outcome: str
    event: Level
    edges: tuple[float, ...]
    cases: tuple[int, ...]
    controls: tuple[int, ...]
    auc: float
    auc_low: float
    auc_high: float
    bse: float
    bse_hanley: float
    low: float
    high: float
    confidence: float
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"ROC curve of {self.score} for {self.outcome}={self.event}"

    @property
    def sensitivity(self) -> tuple[float, ...]:
        """Share of the cases at or above each edge."""
        return _shares(self.cases)

    @property
    def specificity(self) -> tuple[float, ...]:
        """Share of the controls below each edge."""
        return tuple(1 - share for share in _shares(self.controls))

    @property
    def youden(self) -> float:
        """The edge where sensitivity + specificity is largest; the lowest of several."""
        # Integers, so that equal ones are equal.
        cases, controls = sum(self.cases), sum(self.controls)
        sums = [
            sum(self.cases[i:]) * controls - sum(self.controls[i:]) * cases
            for i in range(len(self.edges))
        ]
        return self.edges[sums.index(max(sums))]

    def at(self, threshold: float) -> tuple[float, float]:
        """Return sensitivity and specificity where scores at or above an edge are called events.

        Raises:
            ParameterError: The threshold is no edge.
        """
        if threshold not in self.edges:
            near = min(self.edges, key=lambda edge: abs(edge - threshold))
            raise ParameterError(
                f"roc_auc: {threshold!r} is not an edge of the bins; the nearest is {near!r}"
            )
        i = self.edges.index(threshold)
        return self.sensitivity[i], self.specificity[i]

    def grids(self) -> list[TextTable]:
        """Return the area, and the curve at up to 11 edges."""
        numbers = (self.auc, self.auc_low, self.auc_high, self.bse, self.low, self.high)
        level = f"{self.confidence * 100:g} %"
        header = ("AUC", "at least", "at most", "std err", f"{level} from", "to")
        best = self.youden
        step = max(1, -(-(len(self.edges) - 1) // 10))
        chosen = sorted({*range(0, len(self.edges), step), self.edges.index(best)})
        rows = tuple(
            (
                shown(self.edges[i]) + (" (Youden)" if self.edges[i] == best else ""),
                f"{self.sensitivity[i]:.4f}",
                f"{self.specificity[i]:.4f}",
            )
            for i in chosen
        )
        counts = (show(sum(self.cases)), show(sum(self.controls)))
        return [
            TextTable("", ("cases", "controls"), (counts,)),
            TextTable("", header, (tuple(f"{v:.4f}" for v in numbers),)),
            TextTable("", (f"{self.score} from", "sensitivity", "specificity"), rows),
        ]

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name."""
        names = ("score", "outcome", "event", "auc", "auc_low", "auc_high")
        more = ("low", "high", "confidence", "youden")
        lists = ("edges", "cases", "controls", "sensitivity", "specificity")
        return {
            **{name: getattr(self, name) for name in (*names, *more)},
            "bse": None if math.isnan(self.bse) else self.bse,
            "bse_hanley": None if math.isnan(self.bse_hanley) else self.bse_hanley,
            **{name: list(getattr(self, name)) for name in lists},
        }

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the curve to a data frame, a row for each edge as a threshold."""
        columns = {
            "threshold": self.edges,
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
        }
        return data_frame(columns, backend)

    def plots(self) -> list[Plot]:
        """Return the curve."""
        curve: dict[str, Sequence[float]] = {
            "x": [1 - v for v in reversed(self.specificity)],
            "y": list(reversed(self.sensitivity)),
        }
        chance: dict[str, Sequence[float]] = {"x": [0.0, 1.0], "y": [0.0, 1.0]}
        name = f"{self.score}, AUC {self.auc:.3f}"
        return [
            Plot(
                "line",
                self.title,
                "1 - specificity",
                "sensitivity",
                {name: curve, "chance": chance},
            )
        ]

    def remarks(self) -> list[str]:
        """Return what the bins cost, what is not known, and whether the score points elsewhere."""
        remarks = []
        few = [
            what
            for what, counts in (("case", self.cases), ("control", self.controls))
            if sum(counts) < 2
        ]
        if few:
            remarks.append(
                f"a single {' and a single '.join(few)}: how much another would differ is not "
                "known; there is no standard error, and the interval supposes that all vary alike"
            )
        elif self.auc in (0, 1):
            remarks.append(
                "no case is mistaken for a control: standard errors of 0 say nothing of other "
                "rows, for which the interval speaks"
                if self.auc
                else "every case is mistaken for a control: standard errors of 0 say nothing of "
                "other rows, for which the interval speaks"
            )
        if self.auc_high - self.auc_low > 0.01:
            remarks.append(
                f"the bins leave the area open between {self.auc_low:.4f} and {self.auc_high:.4f}; "
                "more bins narrow it"
            )
        if self.auc_high < 0.5:
            remarks.append("larger scores go with fewer events; is event the right level?")
        return remarks + small_counts([*self.cases, *self.controls])


def roc_auc(
    study: Asks,
    score: str,
    outcome: str,
    *,
    event: Level | None = None,
    edges: Sequence[float] | None = None,
    bins: int = 100,
    confidence: float = 0.95,
) -> Discrimination:
    """Compute a score's ROC curve, the area under it, its bounds and standard errors.

    The area lies within `auc_low` and `auc_high`, whatever the scores within a bin; `auc` is
    exact if scores that share a bin are equal, as they are in bins of one unit of the score's
    decimals. Opened: the numbers of cases and controls in each bin. Bins that are not given are
    chosen by some sums, one after the other: of those that hold both cases and controls, the
    fullest are split.

    Args:
        score: Numeric column; larger scores speak for the event.
        outcome: Column of two levels.
        event: The level that is the event; by default 1 of 0 and 1, True of False and True.
        edges: The bins' borders, [a, b), the last one closed; they hold all scores.
        bins: Without edges: so many bins hold scores, at most.
        confidence: Of the interval.

    Raises:
        RangeError: A score is outside the edges, or beyond its bound.
        ThresholdError: There are no cases, or no controls.
    """
    ask = study.inquiry()
    check_confidence(confidence)
    two_columns(score, outcome, "roc_auc")
    event = marked_level(ask, outcome, event, "event", "roc_auc")
    borders = None if edges is None else _edges(edges)
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MAX_BINS:
        raise ParameterError(f"roc_auc: bins is a number from 1 to {MAX_BINS}, not {bins!r}")
    grid = ask.schema.grid(score)
    if borders is None and grid.bound > _LARGEST:
        raise RangeError(f"roc_auc: the bound of {score!r} is larger than any float; give edges")
    unit = Fraction(1, grid.scale)
    scores = {table.site: _scores(ask, table, score, outcome, borders) for table in ask.tables}

    def count(lists: Sequence[Sequence[float]], last: float) -> tuple[list[int], list[int]]:
        return _count(ask, scores, score, (outcome, event), lists, last)

    if borders is None:
        found = chosen_bins(grid.bound, unit, bins, count)
    else:
        found = ScoreBins.given(borders, unit, count([borders], borders[-1]))
    cases, controls = found.cases, found.controls
    equal = found.narrow if grid.exact else [False] * len(cases)
    low, high = roc_area.bounds(cases, controls, equal)
    auc = (low + high) / 2
    p, n = sum(cases), sum(controls)
    ends = roc_area.newcombe(float(auc), p, n, half_width(confidence))
    return Discrimination(
        score=score,
        outcome=outcome,
        event=event,
        edges=found.edges,
        cases=cases,
        controls=controls,
        auc=float(auc),
        auc_low=float(low),
        auc_high=float(high),
        bse=roc_area.delong(cases, controls),
        bse_hanley=roc_area.hanley(auc, p, n),
        low=ends[0],
        high=ends[1],
        confidence=confidence,
        run=ask.done(),
    )


def _edges(edges: Sequence[float]) -> tuple[float, ...]:
    """Return the bins' borders that were given."""
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ParameterError(f"roc_auc: edges are the bins' borders, not {edges!r}")
    try:
        borders = tuple(map(float, edges))
    except (TypeError, ValueError, OverflowError):
        raise ParameterError("roc_auc: edges are numbers") from None
    if len(borders) < 2 or any(not a < b for a, b in pairwise(borders)):
        raise ParameterError("roc_auc: give at least two edges that increase")
    if not np.isfinite(borders).all():
        raise ParameterError("roc_auc: edges are finite")
    if len(borders) > MAX_BINS + 1:
        raise ParameterError(f"roc_auc: at most {MAX_BINS} bins")
    return borders


def _scores(
    ask: Inquiry, table: Table, score: str, outcome: str, edges: tuple[float, ...] | None
) -> list[Scores]:
    """Return one site's scores in order, for each level of the outcome."""
    keep = kept_rows(table, (score,), (outcome,), ask.missing)
    codes, levels = group_codes(table, ask.schema, (outcome,))
    values = table.numbers(score).values
    ask.schema.grid(score).encode(values, table.where(score), "row")
    scores = values.astype(np.float64)
    if edges is not None:
        outside = keep & ((scores < edges[0]) | (scores > edges[-1]))
        if outside.any():
            raise RangeError(
                f"{table.where(score)}: row {table.row(outside)} is outside the bins, "
                f"{shown(edges[0])} to {shown(edges[-1])}; give edges that hold all scores, or none"
            )
    return [np.sort(scores[keep & (codes == level)]) for level in range(levels)]


def _count(
    ask: Inquiry,
    scores: Mapping[str, Sequence[Scores]],
    score: str,
    event: tuple[str, Level],
    lists: Sequence[Sequence[float]],
    last: float,
) -> tuple[list[int], list[int]]:
    """Add up the sites' cases and controls in the bins between edges, by one secure sum.

    Bins are [a, b); one that ends at the last edge of all is closed.

    Raises:
        ThresholdError: There are no cases, or no controls.
    """
    levels = ask.schema.levels(event[0])
    names = [
        f"rows with {score} {name}"
        for edges in lists
        for name in bin_names(edges, edges[-1] == last)
    ]
    labels = [f"{name} {event[0]}={level}" for level in levels for name in names]
    parts = {
        site: [n for own in by_level for edges in lists for n in _within(own, edges, last)]
        for site, by_level in scores.items()
    }
    (found,) = ask.adder.add(IntegerBlock(labels, MAX_ROWS, parts))
    halves = found[: len(names)], found[len(names) :]
    cases, controls = halves if levels[0] == event[1] else halves[::-1]
    if ask.adder.count == 1:  # all rows are in the first
        if not sum(cases) + sum(controls):
            raise ThresholdError(1, 0, f"roc_auc: rows with {score} and {event[0]} over all sites")
        for counts, who in ((cases, "with"), (controls, "without")):
            if not sum(counts):
                what = f"roc_auc: rows {who} {event[0]}={event[1]} over all sites"
                raise ThresholdError(1, 0, what)
    return cases, controls


def _within(scores: Scores, edges: Sequence[float], last: float) -> list[int]:
    """Count sorted scores in the bins between edges."""
    below = np.searchsorted(scores, edges, "left")
    if edges[-1] == last:
        below[-1] = len(scores)
    return [int(n) for n in np.diff(below)]


def _shares(counts: Sequence[int]) -> tuple[float, ...]:
    """Return the share at or above each edge."""
    total = sum(counts)
    return tuple((total - below) / total for below in (0, *accumulate(counts)))
