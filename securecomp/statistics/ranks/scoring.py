"""Logistic scores where the model is hidden from the sites, and the rows from its owner.

Rows are scaled by their columns' public bounds into [-1, 1], weights the other way round, and both
are rounded to multiples of 2^-20. Inner products of those are exact; then one truncation and the
sigmoid of `sharing.functions`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import concatenate, sigmoid
from securecomp.mpc.functions import SIGMOID_ERROR
from securecomp.protocol import wire
from securecomp.show.exhibit import TextTable
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.cell_values import Mask
from securecomp.statistics.inquiry import Asks
from securecomp.statistics.measures import kept_rows
from securecomp.statistics.ranks.share_engines import Engine, check_engine, computation, padded_rows
from securecomp.statistics.results import Run
from securecomp.statistics.site_table import check_column

_BITS = 20
_ROOM = 1 << 18  # of the sum of the weights' bounds: 2^58 units, which can be truncated


@dataclass(frozen=True, slots=True)
class Scores(Analysis):
    """Scores of every site's rows; each site learns its own.

    Attributes:
        columns: The columns that the model takes.
        labels: Whether the scores are 1 where the logit is at least 0, else 0, or probabilities.
        values: Site to scores, shape (rows,); NaN for rows that were dropped.
        error: What a probability is within of the exact one; for labels, what a logit is. Proven.
        run: Protocol and cost.
    """

    columns: tuple[str, ...]
    labels: bool
    values: Mapping[str, npt.NDArray[np.float64]]
    error: float
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"scores by a hidden model of {', '.join(self.columns)}"

    def grids(self) -> list[TextTable]:
        """Return how much was scored; the scores are each site's own."""
        count = sum(int(np.count_nonzero(~np.isnan(v))) for v in self.values.values())
        what = "labels" if self.labels else "probabilities"
        return [
            TextTable(
                "", ("scores", "sites", "rows"), ((what, str(len(self.values)), f"{count:,}"),)
            )
        ]

    def facts(self) -> dict[str, Any]:
        """Return the scores; null for rows that were dropped."""
        return {
            "columns": list(self.columns),
            "labels": self.labels,
            "error": self.error,
            "scores": {
                site: [None if math.isnan(v) else v for v in values.tolist()]
                for site, values in self.values.items()
            },
        }

    def remarks(self) -> list[str]:
        """Return the error, and what scores tell of the model."""
        if self.labels:
            return [
                f"a label is that of a logit within {self.error:.2g} of the exact one",
                "many labels still tell a site about the model's direction",
            ]
        return [
            f"each score is within {self.error:.2g} of the exact one",
            f"a site with more than {len(self.columns)} rows can work out the model from its "
            "scores, about as well as they are exact; labels tell less",
        ]


def scores(
    study: Asks,
    weights: Mapping[str, float],
    intercept: float = 0.0,
    *,
    owner: str = "model owner",
    weight_bound: float | None = None,
    labels: bool = False,
    engine: Engine = "replicated",
) -> Scores:
    """Score every site's rows by a logistic model that no site sees, and that sees no row.

    Args:
        weights: Column to coefficient; the owner's secret, but for the columns' names.
        intercept: The owner's secret.
        owner: The owner's name; it computes nothing, and learns shapes alone.
        weight_bound: Largest absolute coefficient times its column's bound, public; by default
            the power of two above it.
        labels: Open 1 or 0 for each row, for a logit of at least 0 or not, in place of its
            probability: it tells the sites less of the model.
        engine: Who computes on shares, as `median` has it.

    Returns:
        Each site's scores, for itself.

    Raises:
        ParameterError: No such column or choice.
        RangeError: A value is missing or beyond its bound, or weights leave no room.
    """
    ask = study.inquiry()
    if not isinstance(weights, Mapping) or not weights:
        raise ParameterError("weights: name at least one column, and its coefficient")
    columns = tuple(weights)
    for column in columns:
        check_column("weights: a key", column)
    wire.check_name(owner)
    if owner in ask.sites:
        raise ParameterError(f"{owner!r} is a site; give the model's owner another name")
    if not isinstance(labels, bool):
        raise ParameterError(f"labels is True or False, not {labels!r}")
    check_engine(engine)
    grids = [ask.schema.grid(column) for column in columns]
    scales = np.array([_float(grid.bound, "a column's bound") or 1.0 for grid in grids] + [1.0])
    given = (*weights.values(), intercept)
    with np.errstate(over="ignore"):
        scaled = np.array([_float(v, "a weight") for v in given]) * scales
    largest = float(np.abs(scaled).max())
    if not math.isfinite(largest):
        raise RangeError(f"{owner}: a weight times its column's bound is beyond any float")
    if weight_bound is None:
        weight_bound = max(1.0, 2.0 ** math.frexp(largest)[1])  # a power of two above it
        ask.schema.from_data["bound of the weights"] = f"{weight_bound:g}"
    weight_bound = _float(weight_bound, "weight_bound")
    if not largest <= weight_bound:
        raise RangeError(
            f"{owner}: a weight times its column's bound is beyond weight_bound {weight_bound:g}"
        )
    if weight_bound * scaled.size > _ROOM:
        raise RangeError(
            f"{scaled.size} weights up to {weight_bound:g} leave no room for exact sums, at most "
            f"{_ROOM:,} together; declare smaller bounds of the columns"
        )
    most = padded_rows(ask, len(columns) + 1)
    kept: dict[str, Mask] = {}
    rows: dict[str, npt.NDArray[np.float64]] = {}
    for table in ask.tables:
        keep = kept_rows(table, columns, (), ask.missing)
        kept[table.site] = keep
        rows[table.site] = np.zeros((most, len(columns)))
        for place, (column, grid) in enumerate(zip(columns, grids, strict=True)):
            numbers = table.numbers(column).values
            grid.encode(numbers, table.where(column), "row")  # refuses what is beyond the bound
            scaled_column = np.asarray(numbers[keep], np.float64) / scales[place]
            rows[table.site][: scaled_column.size, place] = scaled_column
    run = computation(ask, engine, (owner,))
    model = run.share(owner, scaled[:-1], bound=weight_bound, bits=_BITS)
    start = run.share(owner, scaled[-1:], bound=weight_bound, bits=_BITS)
    shared = [run.share(site, rows[site].reshape(-1), bound=1, bits=_BITS) for site in ask.sites]
    table_of_all = concatenate(shared).reshape(-1, len(columns))
    logits = table_of_all @ model + start.finer(1 << (2 * _BITS))
    scored = logits >= 0 if labels else sigmoid(logits.truncate(_BITS))
    # What fills a site's rows up has a score too, which would tell the intercept.
    there = {site: (np.arange(most) < kept[site].sum()).astype(np.int64) for site in ask.sites}
    flags = concatenate([run.share(site, there[site], bound=1) for site in ask.sites])
    found = scored * flags
    values: dict[str, npt.NDArray[np.float64]] = {}
    for place, site in enumerate(ask.sites):
        mine = found[place * most : (place + 1) * most].reveal(to=site)
        values[site] = np.full(kept[site].size, np.nan)
        values[site][kept[site]] = mine[: np.count_nonzero(kept[site])]
    half = 2.0 ** -(_BITS + 1)
    # Rows and weights, scaled in floats and rounded; then the floor. The sigmoid's slope is at
    # most 1/4.
    logit_error = half * (len(columns) * (weight_bound + 1 + half) + 1)
    logit_error += len(columns) * weight_bound * 2.0**-51
    error = logit_error if labels else SIGMOID_ERROR + (logit_error + 2 * half) / 4
    return Scores(columns, labels, values, error, ask.done())


def _float(value: Any, what: str) -> float:
    """Return a number as a float.

    Raises:
        ParameterError: Not a number.
        RangeError: NaN, infinite, or beyond any float.
    """
    if not is_number(value):
        raise ParameterError(f"weights are numbers; {what} is {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RangeError(f"{what} is NaN or infinite, or beyond any float; correct it")
    return number
