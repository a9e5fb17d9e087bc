"""Newton's method on the partial likelihood of `cox_likelihood`."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from securecomp.errors import RangeError
from securecomp.statistics.survival.cox_likelihood import (
    MAX_PREDICTOR,
    Floats,
    PartialLikelihood,
    RiskSums,
)

MAX_STEPS = 15
_SHIFT = 1e-8  # converged: no combination of coefficients moves by so much of its standard error
_SINGULAR = 1e-9  # of a column's information: what the columns before it leave
_NOTHING = 1e-24  # of one event's information, in units of the bound: a constant column
_HALVINGS = 12


class CoxStep(NamedTuple):
    """One step of the fit: log likelihood, how far the next goes in standard errors, halvings."""

    llf: float
    shift: float
    halvings: int


@dataclass(frozen=True, slots=True)
class CoxMaximum:
    """The end point of Newton's method.

    Attributes:
        g: Coefficients of the scaled covariates.
        llf: Log likelihood there.
        information: And information.
        hazard: Increment of the cumulative hazard at each time with events.
        llnull: Log likelihood at 0.
        score: Score statistic at 0.
        at_risk: Rows at risk at each time with events, which S0 is at 0.
        history: The steps.
    """

    g: Floats
    llf: float
    information: Floats
    hazard: Floats
    llnull: float
    score: float
    at_risk: Floats
    history: tuple[CoxStep, ...]


def climb(model: PartialLikelihood) -> CoxMaximum:
    """Climb from 0 until a step is far below the standard errors."""
    g = np.zeros(len(model.names))
    value, sums = model.likelihood(g)
    llnull, at_risk, score, history, halved = value, sums.s0, 0.0, list[CoxStep](), 0
    for number in range(MAX_STEPS + 1):
        gradient, information, second = model.derivatives(g, sums)
        if number == 0 and model.narrow(second):
            value, sums = model.likelihood(g)
            gradient, information, second = model.derivatives(g, sums)
        if number == 0:
            _refuse_singular(model, information, second)
        try:
            np.linalg.cholesky(information)
        except np.linalg.LinAlgError:
            raise _endless(model, g) from None
        move = np.linalg.solve(information, gradient).astype(np.float64)
        move, (gain,) = model.ask.agreed("Newton's step", move, [float(gradient @ move)])
        gain = float(gain)
        score = gain if number == 0 else score
        history.append(CoxStep(value, math.sqrt(max(gain, 0.0)), halved))
        if gain <= _SHIFT**2:
            hazard = model.hazard(sums)
            return CoxMaximum(g, value, information, hazard, llnull, score, at_risk, tuple(history))
        if number < MAX_STEPS:
            g, value, sums, halved = _step(model, g, value, move)
    raise _endless(model, move)


def _step(
    model: PartialLikelihood, g: Floats, value: float, move: Floats
) -> tuple[Floats, float, RiskSums, int]:
    """Go along a step, half of it, a quarter .. until the likelihood is no smaller."""
    for halved in range(_HALVINGS + 1):
        there = g + move / 2**halved
        if model.predictor(there) > MAX_PREDICTOR:
            if model.predictor(g) > 0.75 * MAX_PREDICTOR:
                raise _endless(model, there)
            continue
        found, sums = model.likelihood(there)
        if found >= value - 1e-12 * abs(value):
            return there, found, sums, halved
    raise _endless(model, g + move)


def _refuse_singular(model: PartialLikelihood, information: Floats, second: Floats) -> None:
    """Name the first column whose information at 0 the columns before it leave nothing of."""
    events = float(model.events.d.sum())
    left = information.copy()
    for j, name in enumerate(model.names):
        least = max(
            _NOTHING * events, _SINGULAR * information[j, j], _SINGULAR * 1e-2 * second[j, j]
        )
        if left[j, j] <= least:
            alone = information[j, j] <= max(_NOTHING * events, _SINGULAR * 1e-2 * second[j, j])
            if alone:
                raise RangeError(
                    f"covariate {name!r} is the same for all rows that are at risk at an event "
                    "(of a stratum); leave it out"
                )
            raise RangeError(
                f"covariate {name!r} is a combination of those before it, "
                f"{', '.join(model.names[:j])}; leave one out"
            )
        left = left - np.outer(left[:, j], left[j]) / left[j, j]


def _endless(model: PartialLikelihood, direction: Floats) -> RangeError:
    name = model.names[int(np.argmax(np.abs(direction) * model.reach))]
    return RangeError(
        f"covariate {name!r}: its coefficient grows beyond what its agreed bound allows. Either it "
        "tells events from the others at risk without exception (a monotone likelihood): leave it "
        "out, or merge levels. Or the bound is far beyond the values' spread: subtract a typical "
        "value at all sites, take logarithms, or agree on a smaller bound"
    )
