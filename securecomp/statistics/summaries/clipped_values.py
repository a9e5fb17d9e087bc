"""Preparation of a site's rows for noised counts and sums: leave out and clip.

Each patient has no more than an agreed number of rows at a site, and each value is within agreed
bounds, so that it is known how much one patient can change. Nothing says how many rows or values
that concerned: it would be an answer about the data, without noise.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import Number, shown
from securecomp.errors import ParameterError, RangeError
from securecomp.privacy.policy import Privacy
from securecomp.privacy.sensitivity import Bounds
from securecomp.statistics.measures import Missing
from securecomp.statistics.schema import Column, Schema
from securecomp.statistics.site_table import Table

_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Clipping:
    """The agreed bounds, and how rows come within them.

    Attributes:
        privacy: Terms.
        columns: What is declared about columns.
        missing: What an empty cell does.
    """

    privacy: Privacy
    columns: Mapping[str, Column]
    missing: Missing

    def bounds(self, column: str) -> Bounds:
        """Return the bounds that a column's values are moved into."""
        declared = self.columns.get(column, Column())
        if declared.bound is None or (declared.decimals is None and declared.bits is None):
            raise ParameterError(
                f"column {column!r}: with privacy nothing is taken from the data; declare its "
                "bound, and its decimals or bits"
            )
        exact = declared.bits is None
        bound = _meant(declared.bound, exact)
        most = Bounds(-bound, bound)
        limits = self.privacy.limits(column)
        bounds = most if limits is None else Bounds(*(_meant(end, exact) for end in limits))
        if bounds.magnitude > most.magnitude:
            raise ParameterError(
                f"column {column!r}: values are clipped to {bounds}, beyond its declared bound "
                f"{shown(most.magnitude)}; declare a larger one"
            )
        return bounds

    def integers(self, column: str, schema: Schema) -> tuple[int, int]:
        """Return a column's bounds as integers."""
        grid, ends = schema.grid(column), self.bounds(column)
        low, high = (Fraction(end) * grid.scale for end in (ends.lower, ends.upper))
        if grid.exact and not low.denominator == high.denominator == 1:
            raise ParameterError(
                f"column {column!r}: {ends}, which has more decimals than were declared; declare "
                "more, or other bounds"
            )
        return math.floor(low), math.ceil(high)

    def table(self, table: Table, columns: Iterable[str]) -> Table:
        """Return a site's table with few enough rows of a patient, and values within bounds.

        Raises:
            RangeError: A row says not whose it is.
        """
        if self.privacy.identifier is not None:
            table = table.kept(self._first_rows(table, self.privacy.identifier))
        for column in columns:
            numbers = table.numbers(column)
            moved = _moved(numbers.values, numbers.missing, self.bounds(column))
            table = table.moved(column, moved)
        return table

    def _first_rows(self, table: Table, identifier: str) -> npt.NDArray[np.bool_]:
        seen: dict[Any, int] = {}
        keep = np.zeros(table.rows, np.bool_)
        for row, key in enumerate(table.keys([identifier])):
            if key is None:
                if self.missing == "error":
                    raise RangeError(
                        f"{table.where(identifier)}: row {table.row(row)} says not whose it is; "
                        'fill it in, or drop such rows with missing="drop" (--missing drop)'
                    )
                continue
            seen[key] = seen.get(key, 0) + 1
            keep[row] = seen[key] <= self.privacy.records
        return keep


def _meant(end: Number, exact: bool) -> Fraction:
    """Return an end of bounds as columns mean numbers: on decimals, a float as it prints."""
    return Fraction(repr(float(end))) if exact and isinstance(end, float) else Fraction(end)


def _moved(
    values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], bounds: Bounds
) -> npt.NDArray[Any]:
    """Return values moved into bounds, in their own type where that holds the bounds."""
    low, high = Fraction(bounds.lower), Fraction(bounds.upper)
    if values.dtype.kind == "f":
        return np.asarray(np.clip(values, float(low), float(high)))
    whole = low.denominator == high.denominator == 1 and low >= -_INT64 and high <= _INT64
    if whole and values.dtype.kind in "bi":
        return np.asarray(np.clip(values.astype(np.int64), int(low), int(high)))
    wide = values.astype(object)
    for ends, beyond in ((low, wide < low), (high, wide > high)):
        where = np.asarray(beyond, np.bool_) & ~missing
        wide[where] = ends.numerator if ends.denominator == 1 else ends
    return wide
