"""Do two categorical columns go together? The chi-square test, and Fisher's exact test.

Sources: Pearson, Phil. Mag. 50 (1900) 157-175; Yates, Suppl. J. R. Stat. Soc. 1 (1934) 217-235, for
the correction; Cramér, Mathematical Methods of Statistics (1946), 21.9, for V; Cochran, Biometrics
10 (1954) 417-451, for expected counts; Fisher, Statistical Methods for Research Workers (1934),
21.02.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, ThresholdError
from securecomp.show.exhibit import TextTable
from securecomp.show.numbers import show
from securecomp.statistics.analysis import Analysis, small_counts
from securecomp.statistics.distributions import (
    Alternative,
    check_alternative,
    chi_square_pvalue,
    number,
    root,
    show_p,
)
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import Tally
from securecomp.statistics.moments import two_columns
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.site_table import Level

_FEW = 5  # expected counts below are few for the chi-square distribution
Table = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChiSquare(Analysis):
    """Pearson's chi-square test of independence.

    Attributes:
        row: Column whose levels are the table's rows.
        col: Column whose levels are the table's columns.
        row_levels: Levels that occur.
        col_levels: Levels that occur.
        table: Counts, shape (rows, columns).
        expected: Counts that independence would give, the same shape.
        statistic: Chi-square; with Yates' correction if `corrected`.
        df: Degrees of freedom.
        pvalue: Probability of such a statistic, or a larger one, under independence.
        cramers_v: Strength from 0 to 1, without correction.
        corrected: Whether Yates' correction was applied.
        absent: Levels without any row, which were left out, in words.
        run: What it took.
    """

    row: str
    col: str
    row_levels: tuple[Level, ...]
    col_levels: tuple[Level, ...]
    table: Table
    expected: npt.NDArray[np.float64]
    statistic: float
    df: int
    pvalue: float
    cramers_v: float
    corrected: bool
    absent: tuple[str, ...]
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"chi-square test of {self.row} by {self.col}"

    @property
    def n(self) -> int:
        """All rows of the table."""
        return sum(map(sum, self.table))

    def grids(self) -> list[TextTable]:
        """Return the counts, those expected, and the test."""
        header = (self.row, *(f"{self.col}={level}" for level in self.col_levels))
        counted, expected = (
            tuple(
                (str(level), *(form.format(v) for v in cells))
                for level, cells in zip(self.row_levels, table, strict=True)
            )
            for table, form in ((self.table, "{:,}"), (self.expected.tolist(), "{:,.2f}"))
        )
        test = (show(self.statistic), show(self.df), show_p(self.pvalue), f"{self.cramers_v:.4f}")
        return [
            TextTable("rows", header, counted),
            TextTable("expected", header, expected),
            TextTable("", ("chi-square", "df", "p", "Cramér's V"), (test,)),
        ]

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return {
            "row": self.row,
            "col": self.col,
            "row_levels": list(self.row_levels),
            "col_levels": list(self.col_levels),
            "table": [list(cells) for cells in self.table],
            "expected": self.expected.tolist(),
            "statistic": self.statistic,
            "df": self.df,
            "pvalue": self.pvalue,
            "cramers_v": self.cramers_v,
            "corrected": self.corrected,
        }

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the table to a data frame, a row for each cell."""
        names = _apart(self.row, self.col, "count", "expected")
        levels = [(a, b) for a in self.row_levels for b in self.col_levels]
        cells = (
            [a for a, _ in levels],
            [b for _, b in levels],
            [n for counts in self.table for n in counts],
            self.expected.reshape(-1).tolist(),
        )
        return data_frame(dict(zip(names, cells, strict=True)), backend)

    def remarks(self) -> list[str]:
        """Return what was corrected, left out, or is too few."""
        remarks = ["with Yates' correction for continuity"] if self.corrected else []
        remarks += [f"left out, as no row has it: {', '.join(self.absent)}"] if self.absent else []
        few = int((self.expected < _FEW).sum())
        if few:
            exact = "fisher is exact" if self.df == 1 else "put levels together"
            remarks.append(
                f"{few} of {self.expected.size} expected counts are below {_FEW}: the p value is "
                f"approximate; {exact}"
            )
        return remarks + small_counts(n for line in self.table for n in line)


@dataclass(frozen=True, slots=True)
class Fisher(Analysis):
    """Fisher's exact test of a 2 x 2 table.

    Attributes:
        row: Column whose levels are the table's rows.
        col: Column whose levels are the table's columns.
        row_levels: Its levels.
        col_levels: Its levels.
        table: Counts, shape (2, 2).
        odds_ratio: Of the counts: n11 n22 / (n12 n21); infinite or NaN where counts are 0.
        pvalue: Of the alternative, given all margins.
        alternative: Of the odds ratio against 1.
        run: What it took.
    """

    row: str
    col: str
    row_levels: tuple[Level, ...]
    col_levels: tuple[Level, ...]
    table: Table
    odds_ratio: float
    pvalue: float
    alternative: Alternative
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"Fisher's exact test of {self.row} by {self.col}"

    def grids(self) -> list[TextTable]:
        """Return the counts and the test."""
        header = (self.row, *(f"{self.col}={level}" for level in self.col_levels))
        counted = tuple(
            (str(level), *map(show, cells))
            for level, cells in zip(self.row_levels, self.table, strict=True)
        )
        test = (f"{self.odds_ratio:.6g}", show_p(self.pvalue), self.alternative)
        return [
            TextTable("rows", header, counted),
            TextTable("", ("odds ratio", "p", "alternative"), (test,)),
        ]

    def remarks(self) -> list[str]:
        """Return whether counts are small."""
        return small_counts(n for line in self.table for n in line)

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name; an odds ratio that is not finite is None."""
        return {
            "row": self.row,
            "col": self.col,
            "row_levels": list(self.row_levels),
            "col_levels": list(self.col_levels),
            "table": [list(cells) for cells in self.table],
            "odds_ratio": self.odds_ratio if np.isfinite(self.odds_ratio) else None,
            "pvalue": self.pvalue,
            "alternative": self.alternative,
        }


def chi_square(study: Asks, row: str, col: str, *, correction: bool = True) -> ChiSquare:
    """Test whether two categorical columns are independent, with Cramér's V.

    Levels that no row has are left out, and named. Opened: the number of rows of each cell.

    Args:
        row: Column whose levels are the table's rows.
        col: Column whose levels are the table's columns.
        correction: Yates' correction for 2 x 2 tables.

    Raises:
        ThresholdError: Fewer than 2 levels occur.
    """
    ask = study.inquiry()
    if not isinstance(correction, bool):
        raise ParameterError(f"correction is True or False, not {correction!r}")
    down, across, counts = cross_table(ask, row, col, "chi_square")
    present = [
        [i for i, cells in enumerate(lines) if any(cells)]
        for lines in (counts, list(zip(*counts, strict=True)))
    ]
    absent = [
        f"{column}={level}"
        for column, levels, kept in ((row, down, present[0]), (col, across, present[1]))
        for i, level in enumerate(levels)
        if i not in kept
    ]
    for column, kept in zip((row, col), present, strict=True):
        if len(kept) < 2:
            raise ThresholdError(
                2, len(kept), f"chi_square: levels of {column!r} that occur over all sites"
            )
    table = [[counts[i][j] for j in present[1]] for i in present[0]]
    n = sum(map(sum, table))
    sides, tops = [sum(cells) for cells in table], [sum(c) for c in zip(*table, strict=True)]
    df = (len(sides) - 1) * (len(tops) - 1)
    plain = corrected = Fraction(0)
    for cells, side in zip(table, sides, strict=True):
        for count, top in zip(cells, tops, strict=True):
            expected = Fraction(side * top, n)
            off = abs(count - expected)
            plain += off**2 / expected
            # Not beyond the expected count, as scipy has it.
            corrected += (off - min(Fraction(1, 2), off)) ** 2 / expected
    yates = correction and df == 1
    statistic = number(corrected if yates else plain, "chi_square")
    return ChiSquare(
        row=row,
        col=col,
        row_levels=tuple(down[i] for i in present[0]),
        col_levels=tuple(across[j] for j in present[1]),
        table=tuple(map(tuple, table)),
        expected=np.array([[side * top / n for top in tops] for side in sides]),
        statistic=statistic,
        df=df,
        pvalue=chi_square_pvalue(statistic, df),
        cramers_v=root(plain / n / min(len(sides) - 1, len(tops) - 1), "Cramér's V"),
        corrected=yates,
        absent=tuple(absent),
        run=ask.done(),
    )


def fisher(study: Asks, row: str, col: str, *, alternative: Alternative = "two-sided") -> Fisher:
    """Test exactly whether two columns of two levels are independent.

    Opened: the four counts.

    Args:
        row: Column whose levels are the table's rows.
        col: Column whose levels are the table's columns.
        alternative: "two-sided", or that the odds ratio is "less" or "greater" than 1.
    """
    ask = study.inquiry()
    from scipy.stats import fisher_exact  # a second to load, which no other analysis needs

    check_alternative(alternative)
    two_columns(row, col, "fisher")
    for column in (row, col):
        levels = ask.schema.levels(column)
        if len(levels) != 2:
            raise ParameterError(
                f"fisher is for 2 x 2 tables; {column!r} has {len(levels)} levels; ask for "
                "chi_square, or declare two levels"
            )
    down, across, counts = cross_table(ask, row, col, "fisher")
    if not any(map(any, counts)):
        raise ThresholdError(1, 0, "fisher: there are no complete rows over all sites")
    found = fisher_exact(counts, alternative)
    return Fisher(
        row,
        col,
        down,
        across,
        tuple(map(tuple, counts)),
        float(found.statistic),
        float(found.pvalue),
        alternative,
        ask.done(),
    )


def cross_table(
    ask: Inquiry, row: str, col: str, what: str
) -> tuple[tuple[Level, ...], tuple[Level, ...], list[list[int]]]:
    """Count rows for each pair of levels, by one sum; the levels come with it.

    Raises:
        ParameterError, RangeError: A site's data do not allow it; nothing was sent.
    """
    two_columns(row, col, what)
    down, across = ask.schema.levels(row), ask.schema.levels(col)
    tally = Tally((row, col))
    counts = ask.totals([tally])[tally]
    width = len(across)
    return down, across, [counts[i : i + width] for i in range(0, len(counts), width)]


def _apart(*names: str) -> list[str]:
    """Give way where a column has a name that the frame needs."""
    fresh = list(names)
    for i in (2, 3):
        while fresh[i] in fresh[:i]:
            fresh[i] += "_"
    return fresh
