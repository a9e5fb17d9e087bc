"""From a maximum to what statsmodels' summary has: the last sum, and the null model."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from securecomp.core import plain_products
from securecomp.errors import ParameterError
from securecomp.statistics.adder import RealBlock
from securecomp.statistics.regression.fitting import (
    Likelihood,
    NewtonStep,
    SitePart,
    Vector,
    newton,
)
from securecomp.statistics.regression.gathered_rows import STEEPEST, GatheredRows
from securecomp.statistics.regression.regression_results import Regression
from securecomp.statistics.regression.whitening import Whitening

_BITS = 44  # of a total, below the sum of the weights


@dataclass(frozen=True, slots=True)
class Found:
    """A fit in the coordinates.

    Attributes:
        coefficients: In the order (intercept, others).
        at: The coordinates.
        covariance: Of the coordinates, for a scale of 1.
        likelihood: Log likelihood without the response's own terms.
        history: The iterations.
        sums: What evaluates it; None if nothing was.
    """

    coefficients: Vector
    at: Vector
    covariance: Vector
    likelihood: float
    history: tuple[NewtonStep, ...]
    sums: Likelihood | None


def summary(work: GatheredRows, white: Whitening, found: Found, confidence: float) -> Regression:
    """Put the result together, after the last sum."""
    m, design, size = work.moments, work.design, len(work.order)
    linear = work.family.name == "linear"
    figures = _linear(work, white, found) if linear else _counted(work, found)
    back = white.back()
    half = plain_products.product(back, found.covariance)
    covariance = plain_products.product(half, back.T) * figures["scale"]
    place = np.argsort(work.order)
    weight = float(m.weight)
    df_resid = (m.rows if linear else weight) - size
    return Regression(
        formula=design.formula.text,
        family=work.family.name,
        response=design.response_name,
        names=design.names,
        params=found.coefficients[place],
        covariance=covariance[np.ix_(place, place)],
        nobs=m.rows,
        weight=weight,
        df_model=size - int(white.constant or not linear),
        df_resid=int(df_resid) if float(df_resid).is_integer() else df_resid,
        history=found.history,
        confidence=confidence,
        weights=None if design.weights is None else design.weights.text,
        offset=None if design.offset is None else design.offset.text,
        levels={name: work.ask.schema.levels(name) for name in design.categorical},
        run=work.ask.done(),
        left_out=work.left_out,
        unseen=work.unseen,
        **figures,
    )


def _linear(work: GatheredRows, white: Whitening, found: Found) -> dict[str, float]:
    """Return a linear model's figures."""
    m = work.moments
    sums = _last(work, _linear_terms(work, white, found))
    deviance = max(0.0, -2 * found.likelihood)
    raw = float(m.response_squared)
    centred = float(m.response_squared - m.response**2 / m.weight)
    if not m.exact:
        # The first sum has rounded the response; these are about its mean.
        centred = sums["squares"] - sums["differences"] ** 2 / sums["weight"]
        mean = work.mean + sums["differences"] / sums["weight"]
        raw = centred + sums["weight"] * mean**2
    logs = 0.5 * sums.get("logs", 0.0)
    return {
        "llf": _gaussian(deviance, m.rows) + logs,
        "llnull": _gaussian(centred, m.rows) + logs,
        "deviance": deviance,
        "null_deviance": centred if white.constant else raw,
        "pearson_chi2": deviance,
        "scale": deviance / (m.rows - len(work.order)),
    }


def _counted(work: GatheredRows, found: Found) -> dict[str, float]:
    """Return a logistic or a Poisson model's figures."""
    sums = _last(work, _counted_terms(work, found))
    null = _null(work, sums)
    # Without the response's own terms, logistic: both are 0.
    factorial, best = sums.get("factorial", 0.0), sums.get("best", 0.0)
    return {
        "llf": found.likelihood - factorial,
        "llnull": null - factorial,
        "deviance": 2 * (best - found.likelihood),
        "null_deviance": 2 * (best - null),
        "pearson_chi2": sums.get("pearson", math.nan),
        "scale": 1.0,
    }


def _gaussian(squares: float, rows: int) -> float:
    """Return the log likelihood at the maximum over the variance."""
    if squares <= 0:
        return math.inf
    return -0.5 * rows * (math.log(2 * math.pi * squares / rows) + 1)


@dataclass(frozen=True, slots=True)
class _Term:
    """One number of the last sum.

    Attributes:
        label: What it is, for those who learn it.
        bound: No site's passes it.
        size: About what the total is.
        rows: What each row of a site adds.
    """

    label: str
    bound: float
    size: float
    rows: Callable[[SitePart], Vector]


def _linear_terms(work: GatheredRows, white: Whitening, found: Found) -> dict[str, _Term]:
    m, weights = work.moments, work.design.weights
    terms: dict[str, _Term] = {}
    if weights is not None:
        steep = max(abs(math.log(float(end))) for end in (weights.largest, weights.least()))
        terms["logs"] = _Term(
            f"sum of log({weights.text})",
            m.rows * max(steep, 1),
            m.rows,
            lambda part: np.log(part.weighted(np.ones_like(part.y))),
        )
    if found.sums is None:
        return terms
    mean, weight = work.mean, white.weight
    squares = float(m.response_squared) + weight * mean**2
    name = f"{work.design.response_name} less {mean:.6g}"
    return terms | {
        "weight": _Term(
            "sum of the weights", weight, weight, lambda p: p.weighted(np.ones(p.y.size))
        ),
        "squares": _Term(
            f"sum of squares of {name}",
            2 * squares,
            float(m.response_squared - m.response**2 / m.weight),
            lambda part: part.weighted((part.y - mean) ** 2),
        ),
        "differences": _Term(
            f"sum of {name}",
            math.sqrt(2 * weight * squares),
            math.sqrt(weight * squares),
            lambda part: part.weighted(part.y - mean),
        ),
    }


def _counted_terms(work: GatheredRows, found: Found) -> dict[str, _Term]:
    family, sums, weight = work.family, found.sums, float(work.moments.weight)
    terms: dict[str, _Term] = {}
    steep = max(sums.reach(found.at), sums.reach(-found.at)) if sums else math.inf
    largest = float(work.design.response.largest)
    if steep <= STEEPEST:

        def pearson(part: SitePart) -> Vector:
            _, residual, variance = family.terms(part.predictor(found.at), part.y)
            return part.weighted(residual**2 / variance)

        most = math.exp(steep) * (1 + largest) ** 2
        terms["pearson"] = _Term("Pearson chi squared", weight * most, weight, pearson)
    if family.name == "poisson":
        most = weight * (largest * math.log(largest + 1) + largest)
        terms["factorial"] = _Term(
            "sum of log(response!)", most, weight, lambda p: p.weighted(family.extras(p.y)[0])
        )
        terms["best"] = _Term(
            "sum of response * log(response) - response",
            most,
            weight,
            lambda part: part.weighted(family.extras(part.y)[1]),
        )
        if work.shift:
            terms["shift"] = _Term(
                "sum of response * offset",
                weight * largest * work.shift,
                weight,
                lambda part: part.weighted(part.y * part.predictor(np.zeros(part.z.shape[1]))),
            )
    return terms


def _last(work: GatheredRows, terms: Mapping[str, _Term]) -> dict[str, float]:
    """Run the last sum, if there is something to add."""
    if not terms:
        return {}
    blocks = [
        RealBlock(
            [term.label],
            term.bound * (1 + 1e-3),
            min(1000, max(0, math.ceil(_BITS - math.log2(max(term.size, 1e-280))))),
            {site: np.array([term.rows(part).sum()]) for site, part in work.parts.items()},
        )
        for term in terms.values()
    ]
    totals = work.ask.adder.add(*blocks)
    return {name: float(total[0]) for name, total in zip(terms, totals, strict=True)}


def _null(work: GatheredRows, sums: Mapping[str, float]) -> float:
    """Return the log likelihood of a constant alone, without the response's own terms."""
    family, m = work.family, work.moments
    if work.extreme:
        return 0.0
    if not work.shift:
        return float(m.weight) * family.likelihood(work.mean, family.predictor(work.mean))
    total = float(m.response)
    if family.name == "poisson":
        return sums["shift"] + total * work.constant - total
    parts = {
        site: SitePart(np.ones((len(p.y), 1)), p.y, p.weights, p.offset)
        for site, p in work.parts.items()
    }
    alone = Likelihood(
        work.ask, family, parts, ["constant"], float(m.weight), family.variance(work.mean),
        math.sqrt(family.variance(work.mean)), 1.0, lambda at: float(at[0]) + work.shift,
        work.shift, "constant alone",
    )  # fmt: skip
    fitted = newton(
        alone,
        alone.at(np.array([work.constant])),
        tolerance=1e-8,
        iterations=50,
        diverging=lambda _: ParameterError("the constant alone has no finite coefficient"),
    )
    return fitted.state.likelihood
