"""Designs: the columns that a formula's terms become, equal at every site.

Levels are agreed, so that a site without a level has a column of zeros for it. Categories are in
treatment coding; a category whose level means are not in the span of the terms before has all of
its levels, as in R, patsy and formulaic.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, brief
from securecomp.statistics.measures import Missing, kept_rows
from securecomp.statistics.regression import expressions, formulas
from securecomp.statistics.regression.expressions import Expression, ExpressionRows
from securecomp.statistics.regression.formulas import Category, Factor, Formula
from securecomp.statistics.schema import Column, Schema
from securecomp.statistics.site_table import Level, Table

INTERCEPT = "Intercept"
MAX_COLUMNS = 1000
Parts = tuple[tuple[Factor, int | None], ...]
"""What a column is the product of: numbers, and levels with their places."""
_Coded = tuple[tuple[Factor, bool], ...]
"""The factors of a term, and whether each lacks its reference level."""


@dataclass(frozen=True, slots=True)
class Design:
    """The columns that every site computes from its rows.

    Attributes:
        formula: What it was made of.
        names: The columns' names, as statsmodels has them.
        columns: The columns.
        response: The response.
        response_name: Its name, with the level that is modelled if it is a category of two.
        weights: Weights; None without.
        offset: An offset; None without.
        numeric: Columns that must have numbers.
        categorical: Columns that must have categories.
        references: Reference levels, as "type[1]", to the names of the columns of all others.
        parts: Of each column, what it is the product of; none for the intercept.
    """

    formula: Formula
    names: tuple[str, ...]
    columns: tuple[Expression, ...]
    response: Expression
    response_name: str
    weights: Expression | None
    offset: Expression | None
    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    references: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, Parts]

    @classmethod
    def of(
        cls, formula: Formula, schema: Schema, weights: str | None, offset: str | None
    ) -> "Design":
        """Make a formula's columns.

        Raises:
            ParameterError: No columns, too many, or a response that is no number.
        """
        text = brief(formula.text)
        named: dict[str, Expression] = {}
        references: dict[str, tuple[str, ...]] = {}
        parts: dict[str, Parts] = {}
        for term in _coded(formula.terms):
            columns = list(islice(_columns(term), MAX_COLUMNS + 1))
            if len(term) == 1 and isinstance(term[0][0], Category) and term[0][1]:
                factor = term[0][0]
                levels = tuple(name for name, _, _ in columns)
                references[factor.called(factor.reference)] = levels
            for name, column, made_of in columns:
                if name in named or (name == INTERCEPT and term):
                    raise ParameterError(
                        f"formula {text!r}: two columns of the design are named "
                        f"{brief(name)!r}; rename a column or a level"
                    )
                named[name], parts[name] = column, made_of
                if len(named) > MAX_COLUMNS:
                    raise ParameterError(
                        f"formula {text!r}: more than {MAX_COLUMNS} columns; use fewer "
                        "terms or levels"
                    )
        if not named:
            raise ParameterError(f"formula {text!r}: nothing explains the response")
        response, response_name = formula.response, formula.response.text
        if isinstance(response, Category):
            if len(response.levels) != 2:
                raise ParameterError(
                    f"formula {text!r}: the response has {len(response.levels)} levels, "
                    f"not 2; write I({response.column} == 'level') for one of them"
                )
            other = 1 - response.reference
            response_name = f"{response.text}[{response.names[other]}]"
            response = response.levels[other]
        extra = [name for name in (weights, offset) if name is not None]
        return cls(
            formula,
            tuple(named),
            tuple(named.values()),
            response,
            response_name,
            None if weights is None else expressions.column(schema, weights),
            None if offset is None else expressions.column(schema, offset),
            (*formula.numeric, *(n for n in extra if n not in formula.numeric)),
            formula.categorical,
            references,
            parts,
        )

    def only(self, names: Collection[str]) -> "Design":
        """Return the design with some of its columns."""
        kept = [(n, c) for n, c in zip(self.names, self.columns, strict=True) if n in names]
        references = {
            reference: tuple(name for name in others if name in names)
            for reference, others in self.references.items()
        }
        return replace(
            self,
            names=tuple(name for name, _ in kept),
            columns=tuple(column for _, column in kept),
            references=references,
        )

    @property
    def coded(self) -> set[str]:
        """The columns that are levels of a category which has a reference."""
        return {name for levels in self.references.values() for name in levels}

    def rows(self, table: Table, schema: Schema, missing: Missing) -> ExpressionRows:
        """Return the rows of a site that have all values.

        Raises:
            RangeError: A value is missing and must not be.
        """
        return ExpressionRows(
            table, schema, kept_rows(table, self.numeric, self.categorical, missing)
        )

    def matrix(self, rows: ExpressionRows) -> npt.NDArray[np.float64]:
        """Return one site's design, shape (rows, columns), in the columns' own units."""
        found = np.empty((rows.count, len(self.columns)), np.float64, "F")
        for i, column in enumerate(self.columns):
            found[:, i] = rows.floats(column)
        return found


def new_rows(
    frame: Any, formula: str, levels: Mapping[str, Sequence[Level]], offset: str | None = None
) -> tuple["Design", ExpressionRows]:
    """Return a formula's design, and rows that stay here; nothing is sent.

    Args:
        frame: A data frame with the columns that the formula uses (and the offset).
        formula: As it was fitted.
        levels: The agreed levels of its categorical columns.
        offset: Column of an offset.

    Raises:
        ParameterError: A column is missing.
        RangeError: A cell is empty, or not one of the levels.
    """
    table = Table("new rows", frame)
    schema = Schema([table], {name: Column(levels=v) for name, v in levels.items()})
    design = Design.of(formulas.parse(formula, schema, new_rows=True), schema, None, offset)
    return design, design.rows(table, schema, "error")


def _columns(term: _Coded) -> Iterator[tuple[str, Expression, Parts]]:
    """Yield the columns of a term: the last category's levels change slowest."""
    if not term:
        yield INTERCEPT, expressions.constant(INTERCEPT, 1), ()
        return
    choices: list[list[tuple[str, Expression, tuple[Factor, int | None]]]] = []
    for factor, reduced in term:
        if isinstance(factor, Expression):
            choices.append([(factor.text, factor, (factor, None))])
            continue
        mark = "T." if reduced else ""
        choices.append(
            [
                (factor.called(i, mark), level, (factor, i))
                for i, level in enumerate(factor.levels)
                if not (reduced and i == factor.reference)
            ]
        )
    for chosen in product(*reversed(choices)):
        name, column, _ = chosen[-1]
        for more, number, _ in reversed(chosen[:-1]):
            name = f"{name}:{more}"
            column = expressions.multiply(name, column, number)
        yield name, column, tuple(part for _, _, part in reversed(chosen))


def _coded(terms: tuple[tuple[Factor, ...], ...]) -> Iterator[_Coded]:
    """Yield terms with their coding, so that no column is in the span of others by construction.

    A term spans the products of its numeric factors with every subset of its categories, each
    without its reference level. What earlier terms span is left out; of the rest, subsets that
    differ by one category are one term with all levels of it.
    """
    # A factor is one object however often it is in a formula; texts of two factors may be equal.
    seen: set[tuple[frozenset[int], frozenset[int]]] = set()
    for term in terms:
        numeric = frozenset(id(f) for f in term if isinstance(f, Expression))
        categories = [id(f) for f in term if isinstance(f, Category)]
        subsets = [
            frozenset(c for c, there in zip(categories, chosen, strict=True) if there)
            for chosen in product((True, False), repeat=len(categories))
        ]
        new = [(frozenset[int](), s) for s in subsets if (numeric, s) not in seen]
        seen.update((numeric, s) for s in subsets)
        for full, reduced in _merged(new):
            yield tuple(
                (f, id(f) in reduced)
                for f in term
                if isinstance(f, Expression) or id(f) in full | reduced
            )


_Part = tuple[frozenset[int], frozenset[int]]
"""Categories with all of their levels, and those without the reference, by identity."""


def _merged(parts: list[_Part]) -> list[_Part]:
    """Merge parts of a term, smaller ones first: without x, and with x reduced, is all of x."""
    merged: list[_Part] = []
    for full, reduced in sorted(parts, key=lambda part: len(part[0] | part[1])):
        for other in merged:
            more = reduced - other[1]
            if full == other[0] and len(more) == 1 and other[1] < reduced:
                kept = [part for part in merged if part != other]
                merged = _merged([*kept, (full | more, reduced - more)])
                break
        else:
            merged.append((full, reduced))
    return merged
