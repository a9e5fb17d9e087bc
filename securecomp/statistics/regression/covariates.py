"""Covariates of a regression: numbers as they are, categories as indicators of their levels.

A category's first level is the reference; the others have an indicator each (treatment coding).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import to_floats
from securecomp.errors import ParameterError
from securecomp.statistics.cell_values import Mask
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.power_sums import power_sums
from securecomp.statistics.regression.expressions import ExpressionRows, indicator
from securecomp.statistics.schema import MAX_ROWS, Schema
from securecomp.statistics.site_table import Level, Table

_EXACT = 1 << 53


@dataclass(frozen=True, slots=True)
class Covariate:
    """One coefficient's variable.

    Attributes:
        column: Its column.
        level: The level that it indicates; None for a numeric column.
        bound: Largest absolute value. Public.
        scale: Its values times this are integers, unless the grid rounds.
    """

    column: str
    level: Level | None
    bound: float
    scale: int

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.column if self.level is None else f"{self.column}={self.level}"

    @property
    def sum_bound(self) -> int:
        """Largest absolute integer that one site's rows add up to."""
        largest = Fraction(self.bound) * self.scale
        # Of few digits the product in floats is exact where 0.1 itself is not.
        near = float(largest) if largest < _EXACT else 0.0
        return MAX_ROWS * math.ceil(near or largest)


@dataclass(frozen=True, slots=True)
class Covariates:
    """All covariates, in order.

    Attributes:
        terms: One a coefficient.
        references: Categorical column to its first level.
    """

    terms: tuple[Covariate, ...]
    references: dict[str, Level]

    @classmethod
    def agree(
        cls, ask: Inquiry, columns: Sequence[str], categorical: Sequence[str]
    ) -> "Covariates":
        """Agree on terms: columns of text, with declared levels or in `categorical` are categories.

        Raises:
            ParameterError: No columns, one twice, one with a single level or of mixed kinds.
        """
        for what, names in (("covariates", columns), ("categorical", categorical)):
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise ParameterError(f"{what} are a list of columns' names, not {names!r}")
        columns = list(columns)
        if not columns:
            raise ParameterError("name at least one covariate")
        twice = [c for c in columns if columns.count(c) > 1]
        if twice:
            raise ParameterError(f"covariate {twice[0]!r} is there twice; name it once")
        strange = [c for c in categorical if c not in columns]
        if strange:
            raise ParameterError(f"categorical: {strange[0]!r} is not one of the covariates")
        terms: list[Covariate] = []
        references: dict[str, Level] = {}
        for column in columns:
            if not (column in categorical or _has_levels(ask, column)):
                grid = ask.schema.grid(column)
                if not grid.bound:
                    raise ParameterError(
                        f"column {column!r}: its agreed bound is 0, so that it is 0 in every row; "
                        "leave it out"
                    )
                terms.append(Covariate(column, None, float(grid.bound), grid.scale))
                continue
            levels = ask.schema.levels(column)
            if len(levels) < 2:
                raise ParameterError(
                    f"column {column!r} has one level, {levels[0]}, which explains nothing; leave "
                    "it out"
                )
            references[column] = levels[0]
            terms += [Covariate(column, level, 1.0, 1) for level in levels[1:]]
        return cls(tuple(terms), references)

    @property
    def numeric(self) -> tuple[str, ...]:
        """The numeric columns."""
        return tuple(t.column for t in self.terms if t.level is None)

    @property
    def categorical(self) -> tuple[str, ...]:
        """The categorical columns."""
        return tuple(self.references)

    def integers(self, table: Table, schema: Schema) -> list[npt.NDArray[np.int64]]:
        """Return each term's values at one site times its scale, as integers (or objects)."""
        found: list[npt.NDArray[np.int64]] = []
        rows = ExpressionRows(table, schema, np.ones(table.rows, bool))
        for term in self.terms:
            if term.level is None:
                found.append(rows.numbers(term.column))
            else:
                place = schema.levels(term.column).index(term.level)
                found.append(indicator(term.name, term.column, place).compute(rows))
        return found

    def values(
        self, columns: Sequence[npt.NDArray[np.int64]], keep: Mask
    ) -> npt.NDArray[np.float64]:
        """Return the values of some rows, shape (rows, terms)."""
        x = np.empty((int(keep.sum()), len(self.terms)))
        for j, (term, column) in enumerate(zip(self.terms, columns, strict=True)):
            x[:, j] = to_floats(column[keep], term.scale)
        return x

    def vector(self, row: dict[str, object]) -> npt.NDArray[np.float64]:
        """Return the values of one row that is given by its columns.

        Raises:
            ParameterError: A column is missing, unknown, no number or not one of the levels.
        """
        columns = [*self.numeric, *self.categorical]
        if set(row) != set(columns):
            raise ParameterError(f"give a value for each of {', '.join(columns)}, and no other")
        x = np.zeros(len(self.terms))
        for j, term in enumerate(self.terms):
            value = row[term.column]
            if term.level is not None:
                levels = [self.references[term.column]]
                levels += [t.level for t in self.terms if t.column == term.column]  # type: ignore[misc]
                if value not in levels:
                    raise ParameterError(
                        f"{term.column!r} is one of {', '.join(map(str, levels))}; not {value!r}"
                    )
                x[j] = value == term.level
            elif isinstance(value, int | float | np.number) and np.isfinite(float(value)):
                x[j] = float(value)
            else:
                raise ParameterError(f"{term.column!r} is a finite number, not {value!r}")
        return x


def total(column: npt.NDArray[np.int64], which: Mask) -> int:
    """Return the exact sum of some rows' integers."""
    chosen = column[which]
    return power_sums(chosen, np.zeros(len(chosen), np.int64), 1, 1)[0]


def _has_levels(ask: Inquiry, column: str) -> bool:
    """Whether levels are declared, or the column is text at every site that has rows."""
    declared = ask.schema.declared.get(column)
    if declared is not None and declared.levels is not None:
        return True
    kinds = []
    for table in ask.tables:
        if table.rows:
            try:
                table.numbers(column)
            except ParameterError:
                kinds.append(True)
            else:
                kinds.append(False)
    return bool(kinds) and all(kinds)
