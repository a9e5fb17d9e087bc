"""A fitted logistic regression as a model of its columns alone: weights by name."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, brief
from securecomp.models import DEFAULT_BOUND, Bounds, Label, LogisticModel, bounds_of
from securecomp.statistics.regression import formula_terms
from securecomp.statistics.regression.designs import INTERCEPT


class Fitted(Protocol):
    """The parts of a fitted regression that a model's file is made of."""

    @property
    def family(self) -> str:
        """The response's distribution."""

    @property
    def offset(self) -> str | None:
        """The offset, if there is one."""

    @property
    def formula(self) -> str:
        """The formula as it was asked."""

    @property
    def response(self) -> str:
        """The modelled response."""

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients' names."""

    @property
    def params(self) -> npt.NDArray[np.float64]:
        """The coefficients."""

    @property
    def levels(self) -> Mapping[str, tuple[Label, ...]]:
        """Each categorical column's levels."""


def risk_model(fitted: Fitted, bounds: Bounds = None) -> LogisticModel:
    """Return a regression as a file's model, which needs no formula.

    Raises:
        ParameterError: Not logistic, an offset, no column at all, or a term that is no column of
            numbers as it is.
    """
    if fitted.family != "logistic":
        raise ParameterError(f"a {fitted.family} regression is no logistic model")
    if fitted.offset is not None:
        raise ParameterError(
            f"the offset {brief(fitted.offset)} adds to each row's logit, and a model's file has "
            "no place for it; fit without"
        )
    left, right, names = formula_terms.read(fitted.formula)
    weights = dict(zip(fitted.names, fitted.params.tolist(), strict=True))
    columns = [_column(fitted, names, term) for term in right if term]
    if not columns:
        raise ParameterError("the regression has a constant alone, and a model needs a column")
    return LogisticModel(
        weights=(tuple(weights[name] for name in columns),),
        intercepts=(weights.get(INTERCEPT, 0.0),),
        classes=_classes(fitted, _shown(names, *left[0][0])),
        features=tuple(columns),
        bounds=bounds_of(bounds, tuple(columns), np.full(len(columns), DEFAULT_BOUND)),
        link="sigmoid",
    )


def _shown(names: formula_terms.Names, factor: str, how: str) -> str:
    return names.column(factor) if how == "lookup" else names.shown(factor)


def _column(fitted: Fitted, names: formula_terms.Names, term: Sequence[tuple[str, str]]) -> str:
    text = ":".join(_shown(names, *factor) for factor in term)
    (factor, how), *more = term
    name = names.column(factor)
    if more or how != "lookup" or name in fitted.levels:
        what = "a category" if name in fitted.levels else "no column of numbers as it is"
        raise ParameterError(
            f"{brief(text)} is {what}, and a model's file has weights of columns alone; put its "
            "values into columns of their own, and fit with these"
        )
    return name


def _classes(fitted: Fitted, response: str) -> tuple[Label, ...]:
    """Return the response's levels, the modelled one last; 0 and 1 where it is a number."""
    # No term is a category here, so that the only levels are the response's.
    for levels in fitted.levels.values():
        for place, level in enumerate(levels):
            if len(levels) == 2 and fitted.response == f"{response}[{level}]":
                return (levels[1 - place], level)
    return (0, 1)
