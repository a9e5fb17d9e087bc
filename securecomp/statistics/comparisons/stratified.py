"""An exposure and an event, within strata: Mantel and Haenszel's pooled effect, and its tests.

The strata may be the sites themselves. Then every site computes its own terms, and only their
totals over the sites are opened: no site's 2 x 2 table, and not the sum of the tables either.

Fine totals of few small sites say more than the effect: with three sites, one of them could search
for tables of the other two that give the totals.

Sources: Mantel and Haenszel, J. Natl. Cancer Inst. 22 (1959) 719-748; Robins, Breslow and
Greenland, Biometrics 42 (1986) 311-323, for the odds ratio's variance; Greenland and Robins,
Biometrics 41 (1985) 55-68, for the relative risk's; Breslow and Day, Statistical Methods in Cancer
Research I (1980), 4.4, and Tarone, Biometrika 72 (1985) 91-95, for homogeneity.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import RealBlock
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.comparisons.risks import (
    arranged,
    effect_grid,
    effect_plot,
    marked_level,
    two_by_two,
)
from securecomp.statistics.distributions import (
    check_confidence,
    chi_square_pvalue,
    half_width,
    normal_pvalue,
    show_p,
)
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import Tally
from securecomp.statistics.moments import check_columns, two_columns
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level

Effect = Literal["odds ratio", "relative risk"]
Table = tuple[tuple[int, int], tuple[int, int]]
_BITS = 40
"""The terms' grid: far finer than a standard error, and no finer than that needs."""
_ODDS = (
    "ad/n",
    "bc/n",
    "(a+d)ad/n^2",
    "((a+d)bc + (b+c)ad)/n^2",
    "(b+c)bc/n^2",
)
_RISK = ("a(c+d)/n", "c(a+b)/n", "((a+b)(c+d)(a+c) - acn)/n^2")
_TEST = ("a - its expectation", "the variance of a")
_TARONE = (
    "1 if no margin is 0",
    "(a - its fit)^2/its variance",
    "a - its fit",
    "the variance of the fit",
)


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Whether the odds ratio is the same in all strata: Breslow and Day's test, as Tarone has it.

    Attributes:
        statistic: Chi-square.
        df: Degrees of freedom: strata with all margins, less one.
        pvalue: Probability of such a statistic, or a larger one, with one odds ratio.
    """

    statistic: float
    df: int
    pvalue: float


@dataclass(frozen=True, slots=True)
class MantelHaenszel(Analysis):
    """A pooled effect within strata, with the test of no effect.

    Attributes:
        effect: "odds ratio" or "relative risk".
        exposure: The exposure's column.
        exposed: Its level that is exposed.
        outcome: The outcome's column.
        event: Its level that is the event.
        strata: The strata's column; None where the sites are the strata.
        estimate: The pooled effect.
        bse: Standard error of its logarithm.
        low: Lower end of its confidence interval.
        high: Upper end.
        confidence: Of the interval.
        pvalue: Two-sided, of the logarithm over its standard error.
        statistic: Cochran's, Mantel's and Haenszel's chi-square, 1 degree of freedom.
        test_pvalue: Its p value: no effect in any stratum.
        corrected: Whether it has the correction for continuity.
        homogeneity: The test of equal odds ratios, if it was asked for.
        run: What it took.
    """

    effect: Effect
    exposure: str
    exposed: Level
    outcome: str
    event: Level
    strata: str | None
    estimate: float
    bse: float
    low: float
    high: float
    confidence: float
    pvalue: float
    statistic: float
    test_pvalue: float
    corrected: bool
    homogeneity: Homogeneity | None
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        within = "the sites" if self.strata is None else f"strata of {self.strata}"
        what = f"{self.outcome}={self.event}, {self.exposure}={self.exposed}"
        return f"Mantel-Haenszel {self.effect} of {what}, within {within}"

    def conf_int(self) -> tuple[float, float]:
        """Return the interval."""
        return self.low, self.high

    def grids(self) -> list[TextTable]:
        """Return the effect and the tests."""
        tests = [("no effect in any stratum", show(self.statistic), "1", show_p(self.test_pvalue))]
        if self.homogeneity:
            h = self.homogeneity
            tests.append(("equal odds ratios", show(h.statistic), show(h.df), show_p(h.pvalue)))
        return [
            effect_grid(self),
            TextTable("", ("hypothesis", "chi-square", "df", "p"), tuple(tests)),
        ]

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name."""
        names = ("effect", "exposure", "exposed", "outcome", "event", "strata", "estimate", "bse")
        more = ("low", "high", "confidence", "pvalue", "statistic", "test_pvalue", "corrected")
        h = self.homogeneity
        return {
            **{name: getattr(self, name) for name in (*names, *more)},
            "homogeneity": h and {"statistic": h.statistic, "df": h.df, "pvalue": h.pvalue},
        }

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the effect and its test to a data frame of one row."""
        facts = self.facts()
        return data_frame({k: [v] for k, v in facts.items() if k != "homogeneity"}, backend)

    def plots(self) -> list[Plot]:
        """Return the effect with its interval."""
        return [effect_plot(self, "pooled")]

    def remarks(self) -> list[str]:
        """Return how the test was computed, and what the letters in `run.opened` mean."""
        remarks = ["the test has the correction for continuity"] if self.corrected else []
        if self.strata is None:
            remarks.append(
                "in what was opened, a and b are a site's exposed rows with and without the event, "
                "c and d its other rows, n all"
            )
        return remarks


Terms = Callable[[Table], list[Fraction]]


@dataclass(frozen=True, slots=True)
class _Strata:
    """The source of the tables: it turns their terms into totals."""

    ask: Inquiry
    exposure: str
    outcome: str
    exposed: Level
    event: Level
    opened: tuple[Table, ...] | None

    def of_sites(self) -> dict[str, Table]:
        """Return each site's table, which stays there."""
        tally = Tally((self.exposure, self.outcome))
        return {
            table.site: arranged(
                self.ask,
                tally.part(table, self.ask.schema, self.ask.missing),
                self.exposure,
                self.outcome,
                self.exposed,
                self.event,
            )
            for table in self.ask.tables
        }

    def totals(self, terms: Terms, names: Sequence[str], bound: float = MAX_ROWS) -> list[Fraction]:
        """Add up terms over the strata."""
        if self.opened is not None:
            found = [terms(table) for table in self.opened]
            return [sum(column, Fraction(0)) for column in zip(*found, strict=True)]
        parts = {s: np.array(list(map(float, terms(t)))) for s, t in self.of_sites().items()}
        labels = [f"sum over sites of {name}" for name in names]
        (sums,) = self.ask.adder.add(RealBlock(labels, bound, _BITS, parts))
        return [Fraction(v) for v in sums.tolist()]


def mantel_haenszel(
    study: Asks,
    exposure: str,
    outcome: str,
    strata: str | None = None,
    *,
    effect: Effect = "odds ratio",
    exposed: Level | None = None,
    event: Level | None = None,
    correction: bool = True,
    homogeneity: bool = False,
    confidence: float = 0.95,
) -> MantelHaenszel:
    """Pool an odds ratio or relative risk within strata: by default the sites.

    With the test of Cochran, Mantel and Haenszel. Opened, if the sites are the strata: the
    totals over sites of the terms that the estimate, its variance and the test are made of, and
    no table. With a column of strata: the four counts of each stratum over all sites.

    Args:
        exposure: Column of two levels.
        outcome: Column of two levels.
        strata: Categorical column; without, every site is a stratum.
        effect: "odds ratio" or "relative risk".
        exposed: The level that is exposed; by default 1 of 0 and 1, True of False and True.
        event: The level that is the event; by default as well.
        correction: The test's correction for continuity.
        homogeneity: Test too whether the strata share the odds ratio (Breslow-Day-Tarone); if
            the sites are the strata, by a second sum, of four more totals.
        confidence: Of the interval.

    Raises:
        ParameterError: Not two levels, or it must be said which is meant.
        RangeError: The pooled ratio is not defined.
        ThresholdError: No stratum has both exposed and others, events and none.
    """
    ask = study.inquiry()
    what = "mantel_haenszel"
    check_confidence(confidence)
    two_columns(exposure, outcome, what)
    if strata is not None:
        check_columns((exposure, outcome, strata), 3, what)
    if effect not in ("odds ratio", "relative risk"):
        raise ParameterError(f'{what}: effect is "odds ratio" or "relative risk", not {effect!r}')
    if homogeneity and effect != "odds ratio":
        raise ParameterError(f"{what}: homogeneity is tested for odds ratios")
    exposed = marked_level(ask, exposure, exposed, "exposed", what)
    event = marked_level(ask, outcome, event, "event", what)
    opened = None
    if strata is not None:
        opened = tuple(two_by_two(ask, exposure, outcome, exposed, event, strata))
    where = _Strata(ask, exposure, outcome, exposed, event, opened)
    if effect == "odds ratio":
        totals = where.totals(_odds_terms, (*_ODDS, *_TEST))
    else:
        totals = where.totals(_risk_terms, (*_RISK, *_TEST))
    away, variance = totals[-2:]
    if not variance:
        raise ThresholdError(
            1, 0, f"{what}: strata with exposed and others, and with events and none"
        )
    ratio, square = (_odds if effect == "odds ratio" else _relative)(totals)
    off = abs(away) - (min(Fraction(1, 2), abs(away)) if correction else 0)
    statistic = float(off * off / variance)
    bse, margin = math.sqrt(square), half_width(confidence)
    return MantelHaenszel(
        effect=effect,
        exposure=exposure,
        exposed=exposed,
        outcome=outcome,
        event=event,
        strata=strata,
        estimate=float(ratio),
        bse=bse,
        low=float(ratio) * math.exp(-margin * bse),
        high=float(ratio) * math.exp(margin * bse),
        confidence=confidence,
        pvalue=normal_pvalue(math.log(ratio) / bse) if bse else 1.0,
        statistic=statistic,
        test_pvalue=chi_square_pvalue(statistic, 1),
        corrected=bool(correction),
        homogeneity=_breslow_day(where, float(ratio)) if homogeneity else None,
        run=ask.done(),
    )


def _full(table: Table) -> bool:
    """Whether no margin is 0; other tables tell nothing of the effect."""
    (a, b), (c, d) = table
    return min(a + b, c + d, a + c, b + d) > 0


def _test_terms(table: Table) -> list[Fraction]:
    """Return what the exposed events exceed their expectation by, and their variance."""
    if not _full(table):
        return [Fraction(0)] * 2
    (a, b), (c, d) = table
    n, exposed, events = a + b + c + d, a + b, a + c
    expected = Fraction(exposed * events, n)
    return [a - expected, expected * (c + d) * (b + d) / (n * (n - 1))]


def _odds_terms(table: Table) -> list[Fraction]:
    (a, b), (c, d) = table
    n = a + b + c + d
    if not n:
        return [Fraction(0)] * 7
    r, s = Fraction(a * d, n), Fraction(b * c, n)
    p, q = Fraction(a + d, n), Fraction(b + c, n)
    return [r, s, p * r, p * s + q * r, q * s, *_test_terms(table)]


def _odds(totals: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Return the pooled odds ratio and the variance of its logarithm."""
    r, s, pr, psqr, qs = totals[:5]
    _check_ratio(r, s)
    return r / s, pr / (2 * r * r) + psqr / (2 * r * s) + qs / (2 * s * s)


def _risk_terms(table: Table) -> list[Fraction]:
    (a, b), (c, d) = table
    n = a + b + c + d
    if not n:
        return [Fraction(0)] * 5
    one, other = a + b, c + d
    spread = Fraction(one * other * (a + c) - a * c * n, n * n)
    return [Fraction(a * other, n), Fraction(c * one, n), spread, *_test_terms(table)]


def _relative(totals: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Return the pooled relative risk and the variance of its logarithm."""
    r, s, spread = totals[:3]
    _check_ratio(r, s)
    return r / s, spread / (r * s)


def _check_ratio(r: Fraction, s: Fraction) -> None:
    if not r or not s:
        raise RangeError(
            "mantel_haenszel: in no stratum that counts are there "
            + ("exposed" if not r else "unexposed")
            + " rows with the event beside others to compare them with, so that the pooled ratio "
            "is not defined; use fewer strata, or ask for fisher"
        )


def _breslow_day(where: _Strata, ratio: float) -> Homogeneity:
    """Test whether the strata share the pooled odds ratio, by one more sum."""
    full, square, away, variance = where.totals(
        lambda table: _fit_terms(table, ratio), _TARONE, float(1 << 62)
    )
    strata = int(full)
    if strata < 2:
        raise ThresholdError(
            2, strata, "mantel_haenszel, homogeneity: strata without an empty margin"
        )
    statistic = float(square - away * away / variance)
    return Homogeneity(statistic, strata - 1, chi_square_pvalue(statistic, strata - 1))


def _fit_terms(table: Table, ratio: float) -> list[Fraction]:
    """Compare the exposed events with those that the odds ratio gives with the same margins."""
    if not _full(table):
        return [Fraction(0)] * 4
    (a, b), (c, d) = table
    exposed, events, rest = a + b, a + c, d - a
    # fit (rest + fit) = ratio (exposed - fit) (events - fit), its root within the margins, by the
    # form in which nothing cancels.
    leading, linear = 1 - ratio, rest + ratio * (exposed + events)
    product = ratio * exposed * events
    square_root = math.sqrt(linear * linear + 4 * leading * product)
    if linear > 0:
        fit = 2 * product / (linear + square_root)
    else:
        fit = (square_root - linear) / (2 * leading)
    variance = 1 / sum(1 / cell for cell in (fit, exposed - fit, events - fit, rest + fit))
    off = a - fit
    return [Fraction(1), Fraction(off * off / variance), Fraction(off), Fraction(variance)]
