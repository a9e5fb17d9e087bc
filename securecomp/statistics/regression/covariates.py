"""Covariates of a model without a constant: columns, or one side of a formula, as a design.

Of columns, numbers are as they are, and categories have an indicator for each level but the first.
A formula is read as those of `glm` are; the baseline hazard takes the constant's place, whether the
formula has one or not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from securecomp.errors import ParameterError, brief
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.regression import expressions, formulas
from securecomp.statistics.regression.designs import INTERCEPT, Design
from securecomp.statistics.regression.empty_levels import (
    EmptyLevels,
    UnseenCell,
    refuse_unseen,
)
from securecomp.statistics.regression.formulas import Category, Factor, Formula
from securecomp.statistics.schema import Column, Schema
from securecomp.statistics.site_table import Level, Table

Asked = str | tuple[str, ...]
"""A formula's side, or columns."""


@dataclass(frozen=True, slots=True)
class Covariates:
    """The covariates of a fit, as what it needs to predict.

    Attributes:
        asked: Columns, or a formula's side.
        names: Of the coefficients.
        numeric: Columns of numbers.
        levels: Categorical column to its agreed levels.
        references: Category, as it was asked for, to the level that others are compared with.
        unseen: Levels, and combinations of levels, that no row of the fit had.
        left_out: What was done about them, in words.
    """

    asked: Asked
    names: tuple[str, ...]
    numeric: tuple[str, ...]
    levels: Mapping[str, tuple[Level, ...]]
    references: dict[str, Level]
    unseen: tuple[UnseenCell, ...]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, asked: Asked, design: Design, schema: Schema, found: EmptyLevels) -> "Covariates":
        """Return the covariates of a design, without what was found to have no rows."""
        levels = {column: schema.levels(column) for column in design.categorical}
        factors = {
            factor.text: factor
            for parts in design.parts.values()
            for factor, _ in parts
            if isinstance(factor, Category)
        }
        return cls(
            asked,
            tuple(name for name in design.names if name not in found.gone),
            design.numeric,
            levels,
            {t: levels[factors[t].column][place] for t, place in found.references.items()},
            found.unseen,
            found.words,
        )

    def vector(self, row: dict[str, object]) -> npt.NDArray[np.float64]:
        """Return the covariates of one row that is given by its columns.

        Raises:
            ParameterError: A column is missing, unknown, no number or not one of the levels.
            RangeError: A level that no row of the fit had; a number that has no logarithm, say.
        """
        columns = [*self.numeric, *self.levels]
        if set(row) != set(columns):
            raise ParameterError(f"give a value for each of {', '.join(columns)}, and no other")
        for column, value in row.items():
            known = self.levels.get(column)
            if known is not None and value not in known:
                raise ParameterError(
                    f"{column!r} is one of {', '.join(map(str, known))}; not {value!r}"
                )
            number = isinstance(value, int | float | np.number) and np.isfinite(float(value))
            if known is None and not number:
                raise ParameterError(f"{column!r} is a finite number, not {value!r}")
        table = Table("the row", pa.table({name: [value] for name, value in row.items()}))
        declared = {name: Column(levels=known) for name, known in self.levels.items()}
        # Of a single 0 the bound would be 0, and its logarithm be refused for no row's sake.
        declared |= {n: Column(bound=max(1.0, abs(float(row[n])))) for n in self.numeric}  # type: ignore[arg-type]
        schema = Schema([table], declared)
        design = _design(schema, self.asked, frozenset(self.levels), new_rows=True)
        rows = design.rows(table, schema, "error")
        refuse_unseen(design, rows, self.unseen)
        matrix = design.matrix(rows)
        return np.array([matrix[0, design.names.index(name)] for name in self.names])


def agree(
    ask: Inquiry,
    asked: Sequence[str] | str,
    categorical: Sequence[str] = (),
    bounds: Mapping[str, float] | None = None,
) -> tuple[Asked, Design]:
    """Agree on the columns of covariates.

    Args:
        ask: The inquiry.
        asked: Columns: those of text, with declared levels or in `categorical` are categories. Or
            a formula's side, such as "~ age + C(ward) * dose".
        categorical: Columns whose numbers are codes; a formula says so itself.
        bounds: Largest absolute values of a formula's factors.

    Returns:
        What was asked, and the design.

    Raises:
        ParameterError: No columns, one twice, one with a single level or of mixed kinds; a formula
            that cannot be read.
    """
    if isinstance(asked, str):
        if categorical:
            raise ParameterError("categorical is for a list of columns; a formula has C(column)")
        design = _design(ask.schema, asked, frozenset(), bounds)
        text: Asked = asked
    else:
        if bounds is not None:
            raise ParameterError(
                "bounds are for the factors of a formula; a column's is declared with the study"
            )
        columns = _columns(asked, categorical)
        of_levels = frozenset(c for c in columns if c in categorical or _has_levels(ask, c))
        for column in of_levels:
            levels = ask.schema.levels(column)
            if len(levels) < 2:
                raise ParameterError(
                    f"column {column!r} has one level, {levels[0]}, which explains nothing; leave "
                    "it out"
                )
        text = tuple(columns)
        design = _design(ask.schema, text, of_levels)
    for name, found in zip(design.names, design.columns, strict=True):
        if not found.largest:
            raise ParameterError(
                f"column {brief(name)!r}: its agreed bound is 0, so that it is 0 in every row; "
                "leave it out"
            )
    return text, design


def _design(
    schema: Schema,
    asked: Asked,
    of_levels: frozenset[str],
    bounds: Mapping[str, float] | None = None,
    *,
    new_rows: bool = False,
) -> Design:
    """Return the design without a constant."""
    if isinstance(asked, str):
        formula = formulas.parse(asked, schema, bounds, new_rows=new_rows, one_side=True)
        if () not in formula.terms:
            formula = replace(formula, terms=((), *formula.terms))
    else:
        formula = _formula(schema, asked, of_levels)
    design = Design.of(formula, schema, None, None)
    others = [name for name in design.names if name != INTERCEPT]
    if not others:
        raise ParameterError(f"formula {brief(formula.text)!r}: it has no covariate; name one")
    return design.only(others)


def _formula(schema: Schema, columns: Sequence[str], of_levels: frozenset[str]) -> Formula:
    """Return columns as the formula that adds them."""
    factors: list[Factor] = []
    for column in columns:
        if column in of_levels:
            factors.append(formulas.category(schema, str(column), column, plain=True))
        else:
            factors.append(replace(expressions.column(schema, column), text=str(column)))
    return Formula(
        " + ".join(map(str, columns)),
        expressions.constant("", 0),
        ((), *((factor,) for factor in factors)),
        tuple(c for c in columns if c not in of_levels),
        tuple(c for c in columns if c in of_levels),
    )


def _columns(columns: Sequence[str], categorical: Sequence[str]) -> list[str]:
    if not isinstance(columns, Iterable):
        raise ParameterError(
            "covariates are a list of columns' names, or a formula such as '~ age + C(ward)', not "
            f"{columns!r}"
        )
    if isinstance(categorical, str) or not isinstance(categorical, Iterable):
        raise ParameterError(f"categorical are a list of columns' names, not {categorical!r}")
    columns = list(columns)
    if not columns:
        raise ParameterError("name at least one covariate")
    twice = [c for c in columns if columns.count(c) > 1]
    if twice:
        raise ParameterError(f"covariate {twice[0]!r} is there twice; name it once")
    strange = [c for c in categorical if c not in columns]
    if strange:
        raise ParameterError(f"categorical: {strange[0]!r} is not one of the covariates")
    return columns


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


def levels_alone(parts: Sequence[tuple[Factor, Any]]) -> bool:
    """Whether a column is an indicator of levels: the product of nothing else."""
    return all(isinstance(factor, Category) for factor, _ in parts)
