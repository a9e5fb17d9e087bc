"""Odds ratio, relative risk and risk difference of an exposure and an event, from four counts.

Sources: Woolf, Ann. Hum. Genet. 19 (1955) 251-253, for the odds ratio's interval; Katz et al.,
Biometrics 34 (1978) 469-474, method C, for the relative risk's; Newcombe, Stat. Med. 17 (1998)
873-890, method 10, and Wald's for the difference's; Haldane, Ann. Hum. Genet. 20 (1956) 309-311,
for one half.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.show.numbers import show
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.distributions import check_confidence, half_width, normal_pvalue, show_p
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import Tally
from securecomp.statistics.moments import two_columns
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.site_table import Level

Effect = Literal["odds ratio", "relative risk", "risk difference"]
Cells = tuple[Fraction, Fraction, Fraction, Fraction]
"""Exposed with and without the event, then the others with and without it."""


@dataclass(frozen=True, slots=True)
class Risk(Analysis):
    """An effect of an exposure on an event.

    Attributes:
        effect: "odds ratio", "relative risk" or "risk difference".
        exposure: The exposure's column.
        exposed: Its level that is exposed; the other is not.
        outcome: The outcome's column.
        event: Its level that is the event.
        table: Counts: exposed with and without the event, then the others.
        estimate: The effect, of the exposed against the others.
        bse: Standard error: of the logarithm for ratios, else of the difference.
        low: Lower end of the confidence interval.
        high: Upper end.
        confidence: Of the interval.
        pvalue: Two-sided, of the estimate (its logarithm for ratios) over its standard error.
        method: How the interval was computed.
        halves: Whether one half was added to each count.
        run: What it took.
    """

    effect: Effect
    exposure: str
    exposed: Level
    outcome: str
    event: Level
    table: tuple[tuple[int, int], tuple[int, int]]
    estimate: float
    bse: float
    low: float
    high: float
    confidence: float
    pvalue: float
    method: str
    halves: bool
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"{self.effect} of {self.outcome}={self.event}, {self.exposure}={self.exposed}"

    def conf_int(self) -> tuple[float, float]:
        """Return the interval."""
        return self.low, self.high

    def grids(self) -> list[TextTable]:
        """Return the counts and the effect."""
        names = (f"{self.exposure}={self.exposed}", "the others")
        counts = tuple(
            (name, show(a), show(b), f"{a / (a + b):.4f}")
            for name, (a, b) in zip(names, self.table, strict=True)
        )
        header = ("", f"{self.outcome}={self.event}", "without", "risk")
        return [TextTable("", header, counts), effect_grid(self)]

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name."""
        names = ("effect", "exposure", "exposed", "outcome", "event", "estimate", "bse", "low")
        more = ("high", "confidence", "pvalue", "method", "halves")
        return {
            **{name: getattr(self, name) for name in (*names, *more)},
            "table": [list(counts) for counts in self.table],
        }

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the effect to a data frame of one row."""
        facts = self.facts()
        return data_frame({k: [v] for k, v in facts.items() if k != "table"}, backend)

    def plots(self) -> list[Plot]:
        """Return the effect with its interval."""
        return [effect_plot(self, f"{self.exposure}={self.exposed}")]

    def remarks(self) -> list[str]:
        """Return how the interval was computed, and what was added."""
        halves = "; one half was added to each count, as one is 0" if self.halves else ""
        few = small_counts(n for line in self.table for n in line)
        return [f"interval: {self.method}{halves}", *few]


class Estimated(Protocol):
    """An effect of an exposure, with its interval."""

    @property
    def title(self) -> str:
        """The question in words."""

    @property
    def effect(self) -> str:
        """Name of the estimate: a ratio, or the risk difference."""

    @property
    def estimate(self) -> float:
        """Its estimate."""

    @property
    def low(self) -> float:
        """The interval's lower end."""

    @property
    def high(self) -> float:
        """The interval's upper end."""

    @property
    def confidence(self) -> float:
        """The interval's confidence."""

    @property
    def pvalue(self) -> float:
        """Of no effect."""


def effect_grid(found: Estimated) -> TextTable:
    """Return an effect with its interval and p value as a table."""
    level = f"{found.confidence * 100:g} %"
    numbers = (f"{v:.6g}" for v in (found.estimate, found.low, found.high))
    cells = (*numbers, show_p(found.pvalue))
    return TextTable("", (found.effect, f"{level} from", "to", "p"), (cells,))


def effect_plot(found: Estimated, name: str) -> Plot:
    """Return an effect with its interval as a figure; ratios on a logarithmic axis."""
    interval: dict[str, Sequence[float]] = {
        "estimate": [found.estimate],
        "low": [found.low],
        "high": [found.high],
    }
    ratio = found.effect != "risk difference"
    reference = 1.0 if ratio else 0.0
    return Plot("forest", found.title, found.effect, "", {name: interval}, reference, ratio)


def odds_ratio(
    study: Asks,
    exposure: str,
    outcome: str,
    *,
    exposed: Level | None = None,
    event: Level | None = None,
    haldane: bool = False,
    confidence: float = 0.95,
) -> Risk:
    """Estimate the odds ratio of an event with and without an exposure, with Woolf's interval.

    Opened: the four counts.

    Args:
        exposure: Column of two levels.
        outcome: Column of two levels.
        exposed: The level that is exposed; by default 1 of 0 and 1, True of False and True.
        event: The level that is the event; by default as well.
        haldane: Add one half to each count if one is 0; otherwise that is refused.
        confidence: Of the interval.

    Raises:
        ParameterError: Not two levels, or it must be said which is meant.
        RangeError: A count is 0, without `haldane`.
        ThresholdError: There are no exposed rows, or no others.
    """
    return _risk(
        study.inquiry(),
        "odds ratio",
        exposure,
        outcome,
        exposed=exposed,
        event=event,
        haldane=haldane,
        confidence=confidence,
    )


def relative_risk(
    study: Asks,
    exposure: str,
    outcome: str,
    *,
    exposed: Level | None = None,
    event: Level | None = None,
    haldane: bool = False,
    confidence: float = 0.95,
) -> Risk:
    """Estimate the ratio of the risks with and without an exposure, with Katz' interval.

    Arguments, what is opened and errors are those of `odds_ratio`; only the counts of events
    must not be 0.
    """
    return _risk(
        study.inquiry(),
        "relative risk",
        exposure,
        outcome,
        exposed=exposed,
        event=event,
        haldane=haldane,
        confidence=confidence,
    )


def risk_difference(
    study: Asks,
    exposure: str,
    outcome: str,
    *,
    exposed: Level | None = None,
    event: Level | None = None,
    method: Literal["newcombe", "wald"] = "newcombe",
    confidence: float = 0.95,
) -> Risk:
    """Estimate the risk with an exposure less that without, by Newcombe's or Wald's interval.

    Arguments, what is opened and errors are those of `odds_ratio`; counts may be 0.
    """
    return _risk(
        study.inquiry(),
        "risk difference",
        exposure,
        outcome,
        exposed=exposed,
        event=event,
        method=method,
        confidence=confidence,
    )


def _risk(
    ask: Inquiry,
    effect: Effect,
    exposure: str,
    outcome: str,
    *,
    exposed: Level | None = None,
    event: Level | None = None,
    haldane: bool = False,
    method: Literal["newcombe", "wald"] = "newcombe",
    confidence: float = 0.95,
) -> Risk:
    """Estimate an effect; by one sum of four counts."""
    check_confidence(confidence)
    what = effect.replace(" ", "_")
    if method not in ("newcombe", "wald"):
        raise ParameterError(f'{what}: method is "newcombe" or "wald", not {method!r}')
    two_columns(exposure, outcome, what)
    exposed = marked_level(ask, exposure, exposed, "exposed", what)
    event = marked_level(ask, outcome, event, "event", what)
    ((a, b), (c, d)) = table = two_by_two(ask, exposure, outcome, exposed, event)[0]
    _check_margins(table, exposure, exposed, what)
    empty = 0 in ((a, b, c, d) if effect == "odds ratio" else (a, c))
    if empty and effect != "risk difference" and not haldane:
        raise RangeError(
            f"{what}: a count of the table is 0, so that the ratio or its interval is not defined; "
            "add one half to each count with haldane=True, or ask for fisher or risk_difference"
        )
    halves = haldane and effect != "risk difference" and 0 in (a, b, c, d)
    half = Fraction(int(halves), 2)
    cells = (a + half, b + half, c + half, d + half)
    margin = half_width(confidence)
    if effect == "risk difference":
        estimate, bse, low, high = _difference(cells, margin, method)
        z = _over(estimate, bse)
        named = "Newcombe, from Wilson's" if method == "newcombe" else "Wald"
    else:
        ratio, square = (odds if effect == "odds ratio" else relative)(cells)
        estimate, bse = float(ratio), math.sqrt(square)
        z = _over(math.log(ratio), bse)
        low, high = estimate * math.exp(-margin * bse), estimate * math.exp(margin * bse)
        named = "Woolf, of the logarithm" if effect == "odds ratio" else "Katz, of the logarithm"
    return Risk(
        effect=effect,
        exposure=exposure,
        exposed=exposed,
        outcome=outcome,
        event=event,
        table=table,
        estimate=estimate,
        bse=bse,
        low=low,
        high=high,
        confidence=confidence,
        pvalue=normal_pvalue(z),
        method=named,
        halves=halves,
        run=ask.done(),
    )


def odds(cells: Cells) -> tuple[Fraction, Fraction]:
    """Return the odds ratio and the variance of its logarithm; no cell is 0."""
    a, b, c, d = cells
    return a * d / (b * c), 1 / a + 1 / b + 1 / c + 1 / d


def relative(cells: Cells) -> tuple[Fraction, Fraction]:
    """Return the relative risk and the variance of its logarithm; events are not 0."""
    a, b, c, d = cells
    return a * (c + d) / (c * (a + b)), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)


def _difference(cells: Cells, margin: float, method: str) -> tuple[float, float, float, float]:
    """Return the risk difference, its standard error and its interval."""
    a, b, c, d = cells
    one, two = a / (a + b), c / (c + d)
    estimate = float(one - two)
    bse = math.sqrt(one * (1 - one) / (a + b) + two * (1 - two) / (c + d))
    if method == "wald":
        return estimate, bse, estimate - margin * bse, estimate + margin * bse
    (l1, u1), (l2, u2) = _wilson(a, a + b, margin), _wilson(c, c + d, margin)
    p, q = float(one), float(two)
    low = estimate - math.hypot(p - l1, u2 - q)
    return estimate, bse, low, estimate + math.hypot(u1 - p, q - l2)


def _wilson(events: Fraction, rows: Fraction, margin: float) -> tuple[float, float]:
    """Return Wilson's interval of a risk."""
    n, p, square = float(rows), float(events / rows), margin * margin
    centre = p + square / (2 * n)
    half = margin * math.sqrt(float(events * (rows - events) / rows**3) + square / (4 * n * n))
    return (centre - half) / (1 + square / n), (centre + half) / (1 + square / n)


def _over(estimate: float, bse: float) -> float:
    if bse:
        return estimate / bse
    return math.copysign(math.inf, estimate) if estimate else 0.0


def _check_margins(
    table: Sequence[Sequence[int]], exposure: str, exposed: Level, what: str
) -> None:
    for counts, who in zip(table, (f"with {exposure}={exposed}", "of the others"), strict=True):
        if not sum(counts):
            raise ThresholdError(1, 0, f"{what}: there are no rows {who} over all sites")


def marked_level(ask: Inquiry, column: str, level: Level | None, role: str, what: str) -> Level:
    """Return which of a column's two levels is exposed, or is the event.

    Without a name it is 1 of 0 and 1, and True of False and True.

    Raises:
        ParameterError: Not two levels, no level named where one must be, or an unknown level.
    """
    levels = ask.schema.levels(column)
    if len(levels) != 2:
        raise ParameterError(
            f"{what}: {column!r} must have two levels, not {len(levels)} "
            f"({', '.join(map(str, levels[:20]))}); declare two levels, or make a column of two"
        )
    if level is None:
        # Or False and True, which are equal to these; or as a codebook writes them.
        if set(levels) in ({0, 1}, {"0", "1"}, {"false", "true"}):
            return max(levels, key=str)
        raise ParameterError(
            f"{what}: say which level of {column!r} is meant: {role}={levels[0]!r} or "
            f"{role}={levels[1]!r} (--{role} {levels[0]})"
        )
    for known in levels:
        if known == level and isinstance(known, bool) == isinstance(level, bool):
            return known
    for known in levels:  # codes are numbers at one place and text at another
        if not isinstance(level, bool) and str(known) == str(level):
            return known
    raise ParameterError(
        f"{what}: {role}={level!r} is not a level of {column!r}; it has {levels[0]!r} and "
        f"{levels[1]!r}"
    )


def two_by_two(
    ask: Inquiry,
    exposure: str,
    outcome: str,
    exposed: Level,
    event: Level,
    strata: str | None = None,
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Count the four cells, of each stratum's rows, by one sum.

    Returns:
        For each level of `strata` (one table without): exposed with and without the event, then
        the others.
    """
    by = (*([] if strata is None else [strata]), exposure, outcome)
    tally = Tally(by)
    counts = ask.totals([tally])[tally]
    return [
        arranged(ask, counts[i : i + 4], exposure, outcome, exposed, event)
        for i in range(0, len(counts), 4)
    ]


def arranged(
    ask: Inquiry,
    counts: Sequence[int],
    exposure: str,
    outcome: str,
    exposed: Level,
    event: Level,
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Put four counts, in the order of the levels, as exposed and others, events first."""
    first, second = (counts[0], counts[1]), (counts[2], counts[3])
    if ask.schema.levels(exposure)[0] != exposed:
        first, second = second, first
    if ask.schema.levels(outcome)[0] != event:
        first, second = first[::-1], second[::-1]
    return first, second
