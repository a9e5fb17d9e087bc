"""The site with the largest value. Only its name is opened."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import argmax, concatenate
from securecomp.show.exhibit import TextTable
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import PowerSum, Tally, kept_rows
from securecomp.statistics.ranks.share_engines import Engine, check_engine, computation
from securecomp.statistics.results import Run
from securecomp.statistics.site_table import Table, check_column

Measured = Literal["mean", "sum", "count"]
_FINER = 1 << 10
"""Means are compared on a grid that is so much finer than the column's."""
_LARGEST = 1 << 58


@dataclass(frozen=True, slots=True)
class Winner(Analysis):
    """The site that has the largest (or smallest) mean, sum or count.

    Attributes:
        column: What was compared; None for rows.
        of: "mean", "sum" or "count".
        smallest: Whether the smallest was asked for.
        site: Its name; of several the first. None if no site has a row to take the mean of.
        run: Protocol and cost.
    """

    column: str | None
    of: Measured
    smallest: bool
    site: str | None
    run: Run

    @property
    def value(self) -> str | None:
        """The site's name."""
        return self.site

    @property
    def title(self) -> str:
        """The question in words."""
        what = "rows" if self.column is None else self.column
        return f"site with the {'smallest' if self.smallest else 'largest'} {self.of} of {what}"

    def grids(self) -> list[TextTable]:
        """Return one cell."""
        return [TextTable("", ("", "site"), ((self.of, self.site or "none has rows"),))]

    def facts(self) -> dict[str, Any]:
        """Return the question and the name."""
        return {
            "column": self.column,
            "of": self.of,
            "smallest": self.smallest,
            "site": self.site,
        }

    def remarks(self) -> list[str]:
        """Return how close is equal, and what was opened."""
        near = f"means are compared on a grid of 1/{_FINER} of the column's unit; "
        return [
            (near if self.of == "mean" else "")
            + "of equal ones the first site is named; nothing but the name was opened"
        ]


def winner(
    study: Asks,
    column: str | None,
    *,
    of: Measured = "mean",
    smallest: bool = False,
    engine: Engine = "replicated",
) -> Winner:
    """Find the site with the largest mean, sum or count; nobody's number is opened.

    Args:
        column: A numeric column; None for the count of rows.
        of: "mean", "sum" or "count".
        smallest: Find the smallest instead.
        engine: Who computes on shares, as `median` has it.

    Raises:
        ParameterError: No such column or choice.
        RangeError: A value is missing or beyond its bound.
    """
    ask = study.inquiry()
    if of not in get_args(Measured):
        raise ParameterError(f'of is "mean", "sum" or "count", not {of!r}')
    if (column is None) != (of == "count"):
        raise ParameterError("name a column for a mean or a sum, and None for a count of rows")
    if not isinstance(smallest, bool):
        raise ParameterError(f"smallest is True or False, not {smallest!r}")
    check_engine(engine)
    if column is None:
        bound = ask.schema.most_rows()
    else:
        check_column("column", column)
        limit = ask.schema.grid(column).limit
        bound = 1 + limit * (_FINER if of == "mean" else ask.schema.most_rows())
    if bound >= _LARGEST:
        raise RangeError(
            f"column {column!r}: its {of} is too wide to be compared; declare a smaller bound, "
            "fewer decimals, or (rows) the most rows of a site"
        )
    numbers = {table.site: _number(ask, table, column, of) for table in ask.tables}
    run = computation(ask, engine)
    sign = -1 if smallest else 1
    # A site without rows has no mean; it is below all that have one.
    shared = concatenate(
        [
            run.share(site, [-bound if number is None else sign * number], bound=bound)
            for site, number in numbers.items()
        ]
    )
    place = argmax(shared)
    nobody = False
    if of == "mean":
        nobody = bool(((shared > -bound).sum() == 0).reveal(to=ask.sites))
    first = int(place.reveal(to=ask.sites)) if not nobody else -1
    return Winner(column, of, smallest, None if nobody else ask.sites[first], ask.done())


def _number(ask: Inquiry, table: Table, column: str | None, of: Measured) -> int | None:
    """Return one site's own number, on the grid that all compare."""
    if column is None:
        return Tally(()).part(table, ask.schema, ask.missing)[0]
    (total,) = PowerSum(column, 1, ()).part(table, ask.schema, ask.missing)
    if of == "sum":
        return total
    rows = int(np.count_nonzero(kept_rows(table, (column,), (), ask.missing)))
    return (2 * total * _FINER + rows) // (2 * rows) if rows else None
