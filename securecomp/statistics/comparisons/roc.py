"""ROC curve: how well a score tells cases from controls, from counts in agreed bins.

Within a bin nobody knows which score is larger: the true area lies between two bounds, which are
stated, and is exact if scores that share a bin are equal.

Sources: DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837-845; Hanley and McNeil,
Radiology 143 (1982) 29-36; Youden, Cancer 3 (1950) 32-35.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from securecomp.core.fixedpoint import shown
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.comparisons.risks import marked_level
from securecomp.statistics.distributions import check_confidence, half_width
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import bin_names, group_codes, kept_rows
from securecomp.statistics.moments import two_columns
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level, Table

MAX_BINS = 10_000


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
            control.
        bse_hanley: By Hanley and McNeil, from the area alone.
        low: Lower end of the confidence interval by DeLong's error, not below 0; 0 without one.
        high: Upper end, not above 1; 1 without one.
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
        names = ("score", "outcome", "event", "auc", "auc_low", "auc_high", "bse_hanley")
        more = ("low", "high", "confidence", "youden")
        lists = ("edges", "cases", "controls", "sensitivity", "specificity")
        return {
            **{name: getattr(self, name) for name in (*names, *more)},
            "bse": None if math.isnan(self.bse) else self.bse,
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
        """Return what the bins cost, and whether the score points the other way."""
        remarks = []
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
    exact if scores that share a bin are equal. Opened: the numbers of cases and controls in
    each bin.

    Args:
        score: Numeric column; larger scores speak for the event.
        outcome: Column of two levels.
        event: The level that is the event; by default 1 of 0 and 1, True of False and True.
        edges: The bins' borders, [a, b), the last one closed; they hold all scores.
        bins: Without edges: so many equal bins of [0, 1] if the score's agreed bound is at
            most 1, else from minus the bound to the bound.
        confidence: Of the interval.

    Raises:
        RangeError: A score is outside the bins.
        ThresholdError: There are no cases, or no controls.
    """
    ask = study.inquiry()
    check_confidence(confidence)
    two_columns(score, outcome, "roc_auc")
    event = marked_level(ask, outcome, event, "event", "roc_auc")
    borders = _edges(ask, score, edges, bins)
    names = [f"rows with {score} {name}" for name in bin_names(borders)]
    levels = ask.schema.levels(outcome)
    labels = [f"{name} {outcome}={level}" for level in levels for name in names]
    parts = {table.site: _counts(ask, table, score, outcome, borders) for table in ask.tables}
    (found,) = ask.adder.add(IntegerBlock(labels, MAX_ROWS, parts))
    halves = found[: len(names)], found[len(names) :]
    cases, controls = halves if levels[0] == event else halves[::-1]
    for counts, who in ((cases, "with"), (controls, "without")):
        if not sum(counts):
            raise ThresholdError(1, 0, f"roc_auc: rows {who} {outcome}={event} over all sites")
    low, high = _bounds(cases, controls)
    auc = (low + high) / 2
    bse = _delong(cases, controls)
    margin = 1.0 if math.isnan(bse) else half_width(confidence) * bse
    return Discrimination(
        score=score,
        outcome=outcome,
        event=event,
        edges=borders,
        cases=tuple(cases),
        controls=tuple(controls),
        auc=float(auc),
        auc_low=float(low),
        auc_high=float(high),
        bse=bse,
        bse_hanley=_hanley(auc, sum(cases), sum(controls)),
        low=max(0.0, float(auc) - margin),
        high=min(1.0, float(auc) + margin),
        confidence=confidence,
        run=ask.done(),
    )


def _edges(ask: Inquiry, score: str, edges: Sequence[float] | None, bins: int) -> tuple[float, ...]:
    """Return the bins' borders: those given, or equal ones over [0, 1], or within the bound."""
    if edges is not None:
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
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MAX_BINS:
        raise ParameterError(f"roc_auc: bins is a number from 1 to {MAX_BINS}, not {bins!r}")
    bound = ask.schema.grid(score).bound
    start, stop = (Fraction(0), Fraction(1)) if bound <= 1 else (-bound, bound)
    try:
        return tuple(float(start + (stop - start) * i / bins) for i in range(bins + 1))
    except OverflowError:
        raise RangeError(f"roc_auc: the bound of {score!r} is larger than any float") from None


def _counts(
    ask: Inquiry, table: Table, score: str, outcome: str, edges: tuple[float, ...]
) -> list[int]:
    """Count one site's rows in each bin, for each level of the outcome."""
    keep = kept_rows(table, (score,), (outcome,), ask.missing)
    codes, levels = group_codes(table, ask.schema, (outcome,))
    values = table.numbers(score).values
    ask.schema.grid(score).encode(values, table.where(score), "row")
    scores, width = values.astype(np.float64), len(edges) - 1
    outside = keep & ((scores < edges[0]) | (scores > edges[-1]))
    if outside.any():
        raise RangeError(
            f"{table.where(score)}: row {table.row(outside)} is outside the bins, "
            f"{shown(edges[0])} to {shown(edges[-1])}; give edges that hold all scores"
        )
    index = np.searchsorted(np.array(edges), scores[keep], "right") - 1
    index[index == width] = width - 1  # the last bin is closed
    counts = np.bincount(codes[keep] * width + index, minlength=levels * width)
    return [int(count) for count in counts]


def _bounds(cases: Sequence[int], controls: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Return the area where in each bin all controls score higher, and where all cases do."""
    below = [0, *accumulate(controls)]
    pairs = sum(cases) * sum(controls)
    won = sum(n * lower for n, lower in zip(cases, below, strict=False))
    shared = sum(a * b for a, b in zip(cases, controls, strict=True))
    return Fraction(won, pairs), Fraction(won + shared, pairs)


def _delong(cases: Sequence[int], controls: Sequence[int]) -> float:
    """Return DeLong's standard error, bins being scores; NaN with a single case or control."""
    p, n = sum(cases), sum(controls)
    if p < 2 or n < 2:
        return math.nan
    lower = [0, *accumulate(controls)]
    higher = [p - total for total in accumulate(cases)]
    # Twice the number of the others that a case, or a control, is on the right side of.
    of_cases = [2 * a + b for a, b in zip(lower, controls, strict=False)]
    of_controls = [2 * a + b for a, b in zip(higher, cases, strict=True)]
    variance = Fraction(0)
    for counts, places, own, others in ((cases, of_cases, p, n), (controls, of_controls, n, p)):
        total = sum(c * v for c, v in zip(counts, places, strict=True))
        squares = sum(c * v * v for c, v in zip(counts, places, strict=True))
        spread = Fraction(own * squares - total * total, own * (own - 1))
        variance += spread / (4 * others * others) / own
    return math.sqrt(variance)


def _hanley(auc: Fraction, cases: int, controls: int) -> float:
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    square = auc * auc
    spread = auc - square + (cases - 1) * (q1 - square) + (controls - 1) * (q2 - square)
    return math.sqrt(spread / (cases * controls))


def _shares(counts: Sequence[int]) -> tuple[float, ...]:
    """Return the share at or above each edge."""
    total = sum(counts)
    return tuple((total - below) / total for below in (0, *accumulate(counts)))
