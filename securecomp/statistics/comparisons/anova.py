"""Are the means of several groups equal? One-way analysis of variance, Fisher's and Welch's.

Sums of squares are exact, and rounded once.

Sources: Fisher, Statistical Methods for Research Workers (1925), ch. VII; Welch, Biometrika 38
(1951) 330-336.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from securecomp.errors import RangeError, ThresholdError
from securecomp.show.exhibit import TextTable
from securecomp.show.numbers import show
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.comparisons.t_tests import Sample
from securecomp.statistics.distributions import f_pvalue, number, root, show_p
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.moments import Moments, chosen_levels, group_moments, two_columns
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.site_table import Level


@dataclass(frozen=True, slots=True)
class Anova(Analysis):
    """A one-way analysis of variance.

    Attributes:
        column: What is compared.
        by: The groups' column.
        samples: Rows, mean and standard deviation of each group; no sd with one row.
        statistic: F.
        df: Degrees of freedom between groups.
        df_resid: Within groups; Welch's need not be whole.
        pvalue: Probability of such an F, or a larger one, if all means are equal.
        ss: Sum of squares between groups.
        ss_resid: Within groups.
        eta_squared: ss / (ss + ss_resid).
        equal_variance: False for Welch's F.
        absent: Levels without rows, which are left out.
        run: What it took.
    """

    column: str
    by: str
    samples: tuple[Sample, ...]
    statistic: float
    df: int
    df_resid: float
    pvalue: float
    ss: float
    ss_resid: float
    eta_squared: float
    equal_variance: bool
    absent: tuple[str, ...]
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        kind = "analysis of variance" if self.equal_variance else "Welch's analysis of variance"
        return f"{kind} of {self.column}, by {self.by}"

    @property
    def ms(self) -> float:
        """Mean square between groups."""
        return self.ss / self.df

    @property
    def ms_resid(self) -> float:
        """Mean square within groups, whose degrees of freedom are rows less groups."""
        return self.ss_resid / (sum(s.n for s in self.samples) - len(self.samples))

    def grids(self) -> list[TextTable]:
        """Return the groups and the table of variance."""
        groups = tuple((s.name, show(s.n), show(s.mean), show(s.sd)) for s in self.samples)
        n, k = sum(s.n for s in self.samples), len(self.samples)
        sums = TextTable(
            "",
            ("source", "SS", "df", "MS", *(("F", "p") if self.equal_variance else ())),
            (
                (
                    self.by,
                    show(self.ss),
                    show(self.df),
                    show(self.ms),
                    *((show(self.statistic), show_p(self.pvalue)) if self.equal_variance else ()),
                ),
                (
                    "within",
                    show(self.ss_resid),
                    show(n - k),
                    show(self.ms_resid),
                    *(("", "") if self.equal_variance else ()),
                ),
            ),
        )
        cells = (show(self.statistic), show(self.df), show(self.df_resid), show_p(self.pvalue))
        welch = TextTable("", ("Welch's F", "df", "df within", "p"), (cells,))
        return [
            TextTable("", ("group", "rows", "mean", "sd"), groups),
            sums,
            *([] if self.equal_variance else [welch]),
            TextTable("", ("eta squared",), ((f"{self.eta_squared:.4f}",),)),
        ]

    def remarks(self) -> list[str]:
        """Return which groups have no rows, and whether others are small."""
        left = [f"left out, as no row has it: {', '.join(self.absent)}"] if self.absent else []
        return left + small_counts(sample.n for sample in self.samples)

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name."""
        names = ("statistic", "df", "df_resid", "pvalue", "ss", "ss_resid", "ms", "ms_resid")
        return {
            "column": self.column,
            "by": self.by,
            "equal_variance": self.equal_variance,
            "samples": [
                {"name": s.name, "n": s.n, "mean": s.mean, "sd": s.sd} for s in self.samples
            ],
            **{name: getattr(self, name) for name in names},
            "eta_squared": self.eta_squared,
            "absent": list(self.absent),
        }

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the table of variance to a data frame, in statsmodels' columns."""
        n, k = sum(s.n for s in self.samples), len(self.samples)
        return data_frame(
            {
                "source": [self.by, "within"],
                "sum_sq": [self.ss, self.ss_resid],
                "df": [float(self.df), float(n - k)],
                "mean_sq": [self.ms, self.ms_resid],
                "F": [self.statistic, None],
                "PR(>F)": [self.pvalue, None],
            },
            backend,
        )


def anova(
    study: Asks,
    column: str,
    by: str,
    *,
    groups: Sequence[Level] | None = None,
    equal_variance: bool = True,
) -> Anova:
    """Compare the means of groups: one-way analysis of variance.

    Opened: of each group the number of rows, their sum and sum of squares.

    Args:
        column: What is compared.
        by: Categorical column of the groups.
        groups: Some of its levels; by default all agreed ones that have rows. Those that have none
            are left out, and named.
        equal_variance: False for Welch's test.

    Raises:
        ThresholdError: A group that was named has no row (Welch: a group has fewer than 2); fewer
            than two groups have rows.
        RangeError: Nothing varies within the groups.
    """
    ask = study.inquiry()
    two_columns(column, by, "anova")
    names, found, absent = _groups(ask, column, by, groups, 1 if equal_variance else 2)
    what = f"anova of {column!r}"
    n = sum(m.n for m in found)
    if n <= len(found):
        raise ThresholdError(len(found) + 1, n, f"{what}: more rows than groups are needed")
    total = sum((m.total for m in found), Fraction(0))
    within = sum((m.within for m in found), Fraction(0))
    between = sum((m.total**2 / m.n for m in found), Fraction(0)) - total**2 / n
    if not within:
        raise RangeError(
            f"{what}: it does not vary within the groups, so that there is no error to compare "
            "with; compare the means alone"
        )
    df = len(found) - 1
    if equal_variance:
        statistic, df_resid = between / df / (within / (n - len(found))), Fraction(n - len(found))
    else:
        statistic, df_resid = _welch(found, names)
    f = number(statistic, what)
    return Anova(
        column=column,
        by=by,
        samples=tuple(
            Sample(
                name,
                m.n,
                number(m.mean, f"mean of {name}"),
                root(m.variance, f"sd of {name}") if m.n > 1 else None,
            )
            for name, m in zip(names, found, strict=True)
        ),
        statistic=f,
        df=df,
        df_resid=float(df_resid),
        pvalue=f_pvalue(f, df, float(df_resid)),
        ss=number(between, what),
        ss_resid=number(within, what),
        eta_squared=float(between / (between + within)),
        equal_variance=bool(equal_variance),
        absent=absent,
        run=ask.done(),
    )


def _groups(
    ask: Inquiry, column: str, by: str, groups: Sequence[Level] | None, least: int
) -> tuple[list[str], list[Moments], tuple[str, ...]]:
    """Add up the groups, by one sum; return their names, moments, and the names of empty ones."""
    chosen = chosen_levels(ask, by, groups, "anova")
    if len(chosen) < 2:
        raise ThresholdError(2, len(chosen), f"anova: groups of {by!r}")
    found = group_moments(ask, column, by, chosen)
    names = [f"{by}={level}" for level in chosen]
    there = [i for i, moments in enumerate(found) if moments.n or groups is not None]
    if len(there) < 2:
        raise ThresholdError(2, len(there), f"anova: groups of {by!r} that have rows")
    absent = tuple(name for i, name in enumerate(names) if i not in there)
    names, found = [names[i] for i in there], [found[i] for i in there]
    for name, moments in zip(names, found, strict=True):
        if moments.n < least:
            raise ThresholdError(
                least,
                moments.n,
                f"anova: {name} has too few rows over all sites; leave it out with groups",
            )
    return names, found, absent


def _welch(found: list[Moments], names: list[str]) -> tuple[Fraction, Fraction]:
    """Return Welch's F and its degrees of freedom within."""
    for name, moments in zip(names, found, strict=True):
        if not moments.variance:
            raise RangeError(
                f"anova: {name} does not vary, so that its mean has no error; leave it out with "
                "groups, or take equal_variance=True"
            )
    k = len(found)
    weights = [m.n / m.variance for m in found]
    weight = sum(weights, Fraction(0))
    mean = sum((w * m.mean for w, m in zip(weights, found, strict=True)), Fraction(0)) / weight
    spread = sum(
        (w * (m.mean - mean) ** 2 for w, m in zip(weights, found, strict=True)), Fraction(0)
    )
    off = sum(
        ((1 - w / weight) ** 2 / (m.n - 1) for w, m in zip(weights, found, strict=True)),
        Fraction(0),
    )
    statistic = spread / (k - 1) / (1 + Fraction(2 * (k - 2), k * k - 1) * off)
    return statistic, Fraction(k * k - 1) / (3 * off)
