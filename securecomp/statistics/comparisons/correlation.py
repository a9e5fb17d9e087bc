"""Covariance and correlation of columns, and the scale that standardises them.

Source: Pearson's correlation; its t test and Fisher's interval: Fisher, Metron 1 (1921) 3-32.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.show.exhibit import TextTable
from securecomp.show.numbers import show
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.distributions import (
    check_confidence,
    half_width,
    number,
    root,
    show_p,
    signed_root,
    t_pvalue,
)
from securecomp.statistics.inquiry import Asks
from securecomp.statistics.moments import JointMoments, check_columns, column_moments, products
from securecomp.statistics.results import Backend, Run, data_frame
from securecomp.statistics.site_table import Table

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Covariance(Analysis):
    """Sample covariances, each exact and rounded once.

    Attributes:
        columns: The columns' names.
        values: The covariance matrix, shape (columns, columns).
        n: Rows that have all columns.
        run: What it took.
    """

    columns: tuple[str, ...]
    values: Matrix
    n: int
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"covariance of {_listed(self.columns)}, {self.n:,} rows"

    def grids(self) -> list[TextTable]:
        """Return the matrix."""
        return _square("", self.columns, self.values)

    def facts(self) -> dict[str, Any]:
        """Return the matrix as lists."""
        return {"columns": list(self.columns), "n": self.n, "values": self.values.tolist()}

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the matrix to a data frame; a first column names the rows."""
        return _frame(self.columns, self.values, backend)


@dataclass(frozen=True, slots=True, eq=False)
class Correlation(Analysis):
    """Pearson's correlations.

    Attributes:
        columns: The columns' names.
        values: The correlation matrix, shape (columns, columns).
        pvalues: Two-sided p values of Student's t test that a correlation is 0.
        low: Lower ends of the confidence intervals by Fisher's transform; NaN with 3 rows.
        high: Upper ends.
        confidence: Of the intervals.
        n: Rows that have all columns.
        run: What it took.
    """

    columns: tuple[str, ...]
    values: Matrix
    pvalues: Matrix
    low: Matrix
    high: Matrix
    confidence: float
    n: int
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"correlation of {_listed(self.columns)}, {self.n:,} rows"

    def grids(self) -> list[TextTable]:
        """Return the matrix, and each pair with its interval and p value."""
        level = f"{self.confidence * 100:g} %"
        pairs = [
            (
                f"{self.columns[i]}, {self.columns[j]}",
                f"{self.values[i, j]:.4f}",
                f"{self.low[i, j]:.4f}",
                f"{self.high[i, j]:.4f}",
                show_p(self.pvalues[i, j]),
            )
            for i in range(len(self.columns))
            for j in range(i + 1, len(self.columns))
        ]
        header = ("pair", "r", f"{level} from", "to", "p")
        return [
            *_square("", self.columns, self.values, "{:.4f}"),
            TextTable("", header, tuple(pairs)),
        ]

    def facts(self) -> dict[str, Any]:
        """Return the matrices as lists."""
        return {
            "columns": list(self.columns),
            "n": self.n,
            "confidence": self.confidence,
            "values": self.values.tolist(),
            "pvalues": self.pvalues.tolist(),
            "low": [[None if math.isnan(v) else v for v in row] for row in self.low.tolist()],
            "high": [[None if math.isnan(v) else v for v in row] for row in self.high.tolist()],
        }

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert the correlation matrix to a data frame; a first column names the rows."""
        return _frame(self.columns, self.values, backend)


@dataclass(frozen=True, slots=True)
class Standardisation(Analysis):
    """The mean and standard deviation over all sites' rows, and what a site does with them.

    Attributes:
        columns: The columns' names.
        means: Mean of each.
        sds: Standard deviation of each.
        n: Rows that have a value, for each column.
        ddof: What was subtracted from n in the variance.
        run: What it took.
    """

    columns: tuple[str, ...]
    means: tuple[float, ...]
    sds: tuple[float, ...]
    n: tuple[int, ...]
    ddof: int
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"standardisation of {_listed(self.columns)}"

    def grids(self) -> list[TextTable]:
        """Return a line for each column."""
        cells = zip(self.columns, self.means, self.sds, self.n, strict=True)
        rows = tuple((name, show(mean), show(sd), show(n)) for name, mean, sd, n in cells)
        return [TextTable("", ("column", "mean", "sd", "rows"), rows)]

    def facts(self) -> dict[str, Any]:
        """Return a dict for each column."""
        cells = zip(self.columns, self.means, self.sds, self.n, strict=True)
        return {
            "ddof": self.ddof,
            "columns": {name: {"mean": m, "sd": sd, "n": n} for name, m, sd, n in cells},
        }

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert to a data frame, a row for each column."""
        columns = {"column": self.columns, "mean": self.means, "sd": self.sds, "n": self.n}
        return data_frame(columns, backend)

    def apply(self, frame: Any) -> Any:
        """Return a frame with the columns as (value - mean) / sd; the others stay as they are.

        A site does this with its own rows. An empty cell stays empty.

        Args:
            frame: A data frame of pandas, polars or pyarrow; it is not changed.

        Raises:
            ParameterError: Not a data frame, or a column is missing or not numeric.
        """
        table = Table("rows", frame)
        native = nw.from_native(frame, eager_only=True)
        fresh = []
        for column, mean, sd in zip(self.columns, self.means, self.sds, strict=True):
            cells = table.numbers(column)
            scaled = (cells.values.astype(np.float64) - mean) / sd
            present = [
                None if gone else v
                for gone, v in zip(cells.missing.tolist(), scaled.tolist(), strict=True)
            ]
            fresh.append(
                nw.new_series(column, present, nw.Float64(), backend=native.implementation)
            )
        return native.with_columns(*fresh).to_native()


def covariance(study: Asks, columns: Sequence[str]) -> Covariance:
    """Compute the sample covariances of columns, over the rows that have all of them.

    Exact power sums and products; each covariance is rounded once. Opened: the number of rows,
    and the sums of columns, squares and products.

    Args:
        columns: Numeric columns.

    Raises:
        ThresholdError: Fewer than 2 complete rows.
    """
    ask = study.inquiry()
    names = check_columns(columns, 1, "covariance")
    found = products(ask, names)
    _enough(found.n, 2, "covariance")
    size = range(len(names))
    values = [
        [number(found.around(i, j) / (found.n - 1), f"covariance of {names[i]!r}") for j in size]
        for i in size
    ]
    return Covariance(names, np.array(values), found.n, ask.done())


def correlation(study: Asks, columns: Sequence[str], *, confidence: float = 0.95) -> Correlation:
    """Compute Pearson's correlations, over the rows that have all columns.

    With p values by Student's t and intervals by Fisher's transform. Opened: the number of
    rows, and the sums of columns, squares and products.

    Args:
        columns: At least two numeric columns.
        confidence: Of the intervals.

    Raises:
        RangeError: A column is constant; it is named.
        ThresholdError: Fewer than 3 complete rows.
    """
    ask = study.inquiry()
    names = check_columns(columns, 2, "correlation")
    check_confidence(confidence)
    found = products(ask, names)
    _enough(found.n, 3, "correlation")
    for i, name in enumerate(names):
        if not found.around(i, i):
            raise RangeError(
                f"correlation: column {name!r} is constant, so that it has no correlation; leave "
                "it out"
            )
    shape = (len(names), len(names))
    values, pvalues = np.ones(shape), np.zeros(shape)
    low, high = np.ones(shape), np.ones(shape)
    for i in range(len(names)):
        for j in range(i):
            r, p, ends = _pair(found, i, j, confidence)
            values[i, j] = values[j, i] = r
            pvalues[i, j] = pvalues[j, i] = p
            low[i, j], high[i, j] = low[j, i], high[j, i] = ends
    return Correlation(names, values, pvalues, low, high, confidence, found.n, ask.done())


def _pair(
    found: JointMoments, i: int, j: int, confidence: float
) -> tuple[float, float, tuple[float, float]]:
    """Return the correlation, its p value and its interval."""
    crossed = found.around(i, j)
    spread = found.around(i, i) * found.around(j, j)
    r = signed_root(crossed, spread, "correlation")
    rest = 1 - crossed * crossed / spread  # exact where r is near 1
    if not rest:
        return r, 0.0, (r, r)
    t = signed_root(crossed, rest * spread / (found.n - 2), "correlation")
    p = t_pvalue(t, found.n - 2)
    if found.n == 3:
        return r, p, (math.nan, math.nan)
    # atanh(r) without the cancellation in 1 - r.
    centre = math.copysign(math.log1p(abs(r)) - math.log(root(rest, "correlation")), r)
    margin = half_width(confidence) / math.sqrt(found.n - 3)
    return r, p, (math.tanh(centre - margin), math.tanh(centre + margin))


def standardisation(study: Asks, columns: Sequence[str], *, ddof: int = 1) -> Standardisation:
    """Compute what standardises columns alike at all sites: `result.apply(frame)`.

    Opened: of each column the number of rows that have it, their sum and sum of squares.

    Args:
        columns: Numeric columns.
        ddof: 1 for the sample's standard deviation, 0 for scikit-learn's.

    Raises:
        RangeError: A column is constant; it is named.
        ThresholdError: Fewer than 2 rows have a column.
    """
    ask = study.inquiry()
    names = check_columns(columns, 1, "standardisation")
    if isinstance(ddof, bool) or ddof not in (0, 1):
        raise ParameterError(f"ddof is 1 for the sample variance or 0, not {ddof!r}")
    found = column_moments(ask, names)
    means, sds = [], []
    for name, moments in zip(names, found, strict=True):
        _enough(moments.n, 2, f"standardisation of {name!r}")
        if not moments.within:
            raise RangeError(
                f"standardisation: column {name!r} is constant, so that it has no scale; leave it "
                "out"
            )
        means.append(number(moments.mean, f"mean of {name!r}"))
        sds.append(root(moments.within / (moments.n - ddof), f"sd of {name!r}"))
    counts = tuple(moments.n for moments in found)
    return Standardisation(names, tuple(means), tuple(sds), counts, int(ddof), ask.done())


def _enough(n: int, least: int, what: str) -> None:
    if n < least:
        raise ThresholdError(least, n, f"{what}: there are too few complete rows over all sites")


def _listed(columns: Sequence[str]) -> str:
    text = ", ".join(columns)
    return text if len(text) <= 60 else f"{len(columns)} columns"


def _square(
    title: str, columns: Sequence[str], values: Matrix, form: str = "{:,.6g}"
) -> list[TextTable]:
    """Show a matrix, in as many tables as the page's width asks for."""
    width, at_once = max(12, *map(len, columns)) + 2, 0
    at_once = max(1, 100 // width - 1)
    return [
        TextTable(
            title,
            ("", *columns[start : start + at_once]),
            tuple(
                (name, *(form.format(v) for v in row[start : start + at_once]))
                for name, row in zip(columns, values.tolist(), strict=True)
            ),
        )
        for start in range(0, len(columns), at_once)
    ]


def _frame(columns: Sequence[str], values: Matrix, backend: Backend) -> Any:
    first = "column"
    while first in columns:
        first += "_"
    cells: dict[str, Sequence[Any]] = {first: columns}
    cells |= {name: values[:, i].tolist() for i, name in enumerate(columns)}
    return data_frame(cells, backend)
