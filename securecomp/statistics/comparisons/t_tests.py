"""Are means equal? Student's and Welch's t test, with one, two or paired samples.

Means, variances and standard errors are exact; what follows is rounded once.

Sources: Welch, Biometrika 34 (1947) 28-35, for unequal variances; Hedges, J. Educ. Stat. 6 (1981)
107-128, for g.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from securecomp.core.fixedpoint import FixedPoint, Number
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.distributions import (
    Alternative,
    check_alternative,
    check_confidence,
    number,
    root,
    show_p,
    signed_root,
    t_pvalue,
    t_quantile,
)
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import kept_rows
from securecomp.statistics.moments import (
    Moments,
    check_columns,
    chosen_levels,
    group_moments,
    two_columns,
)
from securecomp.statistics.power_sums import power_sums
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the samples that are compared.

    Attributes:
        name: The group, column or difference, as people know it.
        n: Rows.
        mean: Their mean.
        sd: Their standard deviation; None where it was not opened.
    """

    name: str
    n: int
    mean: float
    sd: float | None


@dataclass(frozen=True, slots=True)
class TTest(Analysis):
    """A t test of means.

    Attributes:
        kind: "Welch's t test", "Student's t test", "one-sample t test", "paired t test".
        column: What is compared.
        samples: The samples; a paired test has both columns and their difference.
        difference: The first mean minus the second; with one sample its mean.
        bse: Its standard error.
        statistic: t.
        df: Degrees of freedom; Welch's need not be whole.
        pvalue: Of the alternative.
        low: Lower end of the difference's interval; minus infinity if the alternative is "less".
        high: Upper end; infinity if the alternative is "greater".
        confidence: Of the interval.
        alternative: "two-sided", "less" or "greater".
        mu: The difference that is tested.
        cohen_d: The difference from mu in standard deviations: pooled ones of two groups, else
            the sample's (of paired ones, of the differences).
        hedges_g: The same without its bias in small samples; NaN with one degree of freedom.
        run: What it took.
    """

    kind: str
    column: str
    samples: tuple[Sample, ...]
    difference: float
    bse: float
    statistic: float
    df: float
    pvalue: float
    low: float
    high: float
    confidence: float
    alternative: Alternative
    mu: float
    cohen_d: float
    hedges_g: float
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"{self.kind} of {self.column}"

    def grids(self) -> list[TextTable]:
        """Return the samples and the test."""
        samples = tuple((s.name, show(s.n), show(s.mean), show(s.sd)) for s in self.samples)
        numbers = (self.difference, self.bse, self.low, self.high, self.statistic, self.df)
        cells = (*(f"{v:,.6g}" for v in numbers), show_p(self.pvalue))
        level = f"{self.confidence * 100:g} %"
        what = "difference" if len(self.samples) > 1 else "mean"
        sizes = (f"{self.cohen_d:.4f}", f"{self.hedges_g:.4f}")
        return [
            TextTable("", ("sample", "rows", "mean", "sd"), samples),
            TextTable("", (what, "std err", f"{level} from", "to", "t", "df", "p"), (cells,)),
            TextTable("", ("Cohen's d", "Hedges' g"), (sizes,)),
        ]

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name; an end at infinity is None."""
        return {
            "test": self.kind,
            "column": self.column,
            "samples": [
                {"name": s.name, "n": s.n, "mean": s.mean, "sd": s.sd} for s in self.samples
            ],
            "difference": self.difference,
            "bse": self.bse,
            "statistic": self.statistic,
            "df": self.df,
            "pvalue": self.pvalue,
            "low": self.low if math.isfinite(self.low) else None,
            "high": self.high if math.isfinite(self.high) else None,
            "confidence": self.confidence,
            "alternative": self.alternative,
            "mu": self.mu,
            "cohen_d": self.cohen_d,
            "hedges_g": None if math.isnan(self.hedges_g) else self.hedges_g,
        }

    def conf_int(self) -> tuple[float, float]:
        """Return the interval of the difference (of the mean, with one sample)."""
        return self.low, self.high

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the test to a data frame of one row."""
        facts = self.facts()
        return data_frame({k: [v] for k, v in facts.items() if k != "samples"}, backend)

    def plots(self) -> list[Plot]:
        """Return the difference with its interval."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return []
        interval: dict[str, Sequence[float]] = {
            "estimate": [self.difference],
            "low": [self.low],
            "high": [self.high],
        }
        what = "difference of means" if len(self.samples) > 1 else "mean"
        return [Plot("forest", self.title, what, "", {self.column: interval}, reference=self.mu)]

    def remarks(self) -> list[str]:
        """Return what is tested, where it is not the usual."""
        first = self.samples[0].name
        what = f"difference {first} minus {self.samples[1].name}" if self.samples[1:] else "mean"
        than = {"two-sided": "is not", "less": "is less than", "greater": "is greater than"}
        said = f"the alternative: the {what} {than[self.alternative]} {self.mu:g}"
        return [said, *small_counts(sample.n for sample in self.samples)]


def t_test(
    study: Asks,
    column: str,
    *,
    by: str | None = None,
    groups: Sequence[Level] | None = None,
    paired: str | None = None,
    mu: Number = 0,
    equal_variance: bool = False,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> TTest:
    """Test a difference of means: of two groups, of two columns of a row, or from a number.

    Opened: of each group the number of rows, their sum and sum of squares; of a pair the
    number of rows, the two sums, and the sum of squared differences.

    Args:
        column: What is compared.
        by: Categorical column of two groups; the difference is the first less the second.
        groups: Two of its levels, if it has more, or in another order.
        paired: A second column, which is subtracted from the first in each row.
        mu: The mean, or difference of means, that is tested.
        equal_variance: Student's pooled variance instead of Welch's test.
        alternative: "two-sided", or that the difference is "less" or "greater" than `mu`.
        confidence: Of the difference's interval.

    Raises:
        ParameterError: Not two groups.
        ThresholdError: Fewer than 2 rows in a sample.
        RangeError: Nothing varies.
    """
    ask = study.inquiry()
    check_columns((column, *([] if by is None else [by])), 1, "t_test")
    check_alternative(alternative)
    asked = _Asked(column, _exact(mu), alternative, check_confidence(confidence))
    if by is not None and paired is not None:
        raise ParameterError("t_test takes groups (by) or a second column (paired), not both")
    if groups is not None and by is None:
        raise ParameterError("t_test: groups are levels of a column; name it with by")
    if equal_variance and by is None:
        raise ParameterError("t_test: equal_variance is for two groups (by)")
    if by is not None:
        return _two_groups(ask, asked, by, groups, equal_variance)
    if paired is not None:
        return _paired(ask, asked, paired)
    (moments,) = group_moments(ask, column)
    sample = _sample(column, moments)
    return asked.result(ask, "one-sample t test", (sample,), moments)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The request, whatever the samples are."""

    column: str
    mu: Fraction
    alternative: Alternative
    confidence: float

    def result(
        self, ask: Inquiry, kind: str, samples: tuple[Sample, ...], moments: Moments
    ) -> TTest:
        """Return the test of one sample's mean."""
        variance = _varies(moments.variance, self.column)
        df = Fraction(moments.n - 1)
        return self.finish(ask, kind, samples, moments.mean, variance / moments.n, df, variance, df)

    def finish(
        self,
        ask: Inquiry,
        kind: str,
        samples: tuple[Sample, ...],
        difference: Fraction,
        square_error: Fraction,
        df: Fraction,
        variance: Fraction,
        variance_df: Fraction,
    ) -> TTest:
        """Return the test: the difference, the square of its error, the variance of one row."""
        away, what = difference - self.mu, f"t test of {self.column!r}"
        t, error = signed_root(away, square_error, what), root(square_error, what)
        freedom, estimate = float(df), number(difference, what)
        two_sided = self.alternative == "two-sided"
        level = 0.5 + self.confidence / 2 if two_sided else self.confidence
        margin = error * t_quantile(level, freedom)
        d = signed_root(away, variance, what)
        return TTest(
            kind=kind,
            column=self.column,
            samples=samples,
            difference=estimate,
            bse=error,
            statistic=t,
            df=freedom,
            pvalue=t_pvalue(t, freedom, self.alternative),
            low=-math.inf if self.alternative == "less" else estimate - margin,
            high=math.inf if self.alternative == "greater" else estimate + margin,
            confidence=self.confidence,
            alternative=self.alternative,
            mu=float(self.mu),
            cohen_d=d,
            hedges_g=d * _unbiased(float(variance_df)),
            run=ask.done(),
        )


def _two_groups(
    ask: Inquiry, asked: _Asked, by: str, groups: Sequence[Level] | None, equal_variance: bool
) -> TTest:
    chosen = chosen_levels(ask, by, groups, "t_test")
    if len(chosen) != 2:
        raise ParameterError(
            f"t_test compares two groups; {by!r} has {len(chosen)}: "
            f"{', '.join(map(str, chosen[:20]))}; name two of its levels with groups"
        )
    one, two = group_moments(ask, asked.column, by, chosen)
    names = [f"{by}={level}" for level in chosen]
    samples = (_sample(names[0], one), _sample(names[1], two))
    _varies(one.within + two.within, asked.column)
    df = Fraction(one.n + two.n - 2)
    pooled = (one.within + two.within) / df
    difference = one.mean - two.mean
    if equal_variance:
        error, kind, freedom = pooled / one.n + pooled / two.n, "Student's t test", df
    else:
        parts = [m.variance / m.n for m in (one, two)]
        error, kind = sum(parts, Fraction(0)), "Welch's t test"
        freedom = error**2 / (parts[0] ** 2 / (one.n - 1) + parts[1] ** 2 / (two.n - 1))
    return asked.finish(ask, kind, samples, difference, error, freedom, pooled, df)


def _paired(ask: Inquiry, asked: _Asked, other: str) -> TTest:
    """Test the differences of two columns of a row.

    Opened: rows, the sum of each column, and the sum of squared differences; not how either column
    varies, or how they go together.
    """
    columns = two_columns(asked.column, other, "t_test, paired")
    grids = [ask.schema.grid(column) for column in columns]
    scale = math.lcm(*(grid.scale for grid in grids))
    factors = [scale // grid.scale for grid in grids]
    largest = sum(grid.limit * factor for grid, factor in zip(grids, factors, strict=True))
    counts: dict[str, list[int]] = {}
    squares: dict[str, list[int]] = {}
    sums: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
    for table in ask.tables:
        keep = kept_rows(table, columns, (), ask.missing)
        codes = np.zeros(int(keep.sum()), np.int64)
        kind = object if largest >= 1 << 62 else np.int64
        values = []
        for column, grid, total in zip(columns, grids, sums, strict=True):
            integers = grid.encode(table.numbers(column).values, table.where(column), "row")[keep]
            total[table.site] = power_sums(integers, codes, 1, 1)
            values.append(integers.astype(kind))
        apart = values[0] * factors[0] - values[1] * factors[1]
        counts[table.site] = [len(codes)]
        squares[table.site] = power_sums(apart, codes, 1, 2)
    n, square, *totals = ask.adder.add(
        IntegerBlock([f"rows with {', '.join(columns)}"], MAX_ROWS, counts),
        IntegerBlock(
            [f"sum of ({' minus '.join(columns)}) squared"], MAX_ROWS * largest**2, squares
        ),
        *(
            IntegerBlock([f"sum of {column}"], MAX_ROWS * grid.limit, part)
            for column, grid, part in zip(columns, grids, sums, strict=True)
        ),
    )
    means = [Fraction(t[0], grid.scale) for t, grid in zip(totals, grids, strict=True)]
    moments = Moments(n[0], means[0] - means[1], Fraction(square[0], scale**2))
    apart_sample = _sample(f"{columns[0]} minus {columns[1]}", moments)
    samples = [
        Sample(column, moments.n, number(total / moments.n, f"mean of {column!r}"), None)
        for column, total in zip(columns, means, strict=True)
    ]
    return asked.result(ask, "paired t test", (*samples, apart_sample), moments)


def _sample(name: str, moments: Moments) -> Sample:
    if moments.n < 2:
        raise ThresholdError(2, moments.n, f"t_test: {name} has too few rows over all sites")
    return Sample(
        name,
        moments.n,
        number(moments.mean, f"mean of {name}"),
        root(moments.variance, f"sd of {name}"),
    )


def _varies(variance: Fraction, column: str) -> Fraction:
    if not variance:
        raise RangeError(
            f"t_test: {column!r} does not vary within its samples, so that there is no error to "
            "compare with; compare the means alone"
        )
    return variance


def _unbiased(df: float) -> float:
    """Return the factor from d to g: Gamma(df/2) / (sqrt(df/2) Gamma((df-1)/2)); df 1 has none."""
    if df <= 1:
        return math.nan
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def _exact(mu: Number) -> Fraction:
    """Return mu as people mean it: a float is the decimal that it prints as."""
    if isinstance(mu, bool):
        raise ParameterError(f"mu is a number, not {mu!r}")
    try:
        size: Number = abs(mu)  # type: ignore[assignment]
        return FixedPoint.decimal(size).bound * (-1 if mu < 0 else 1)
    except (TypeError, ParameterError):
        raise ParameterError(f"mu is a finite number, not {mu!r}") from None
