"""Generalised linear models over sites: the sums that a fit asks for, in order.

1. Sums of products of all columns and the response, exact: the same as the first step of least
   squares. From them everybody computes coordinates in which the columns are orthogonal, finds
   columns that are combinations of others and levels with one response only, and starts at the
   model with a constant alone. A linear model on agreed grids is finished here.
2. One sum a Newton step, see `fitting`.
3. What the summary needs beside: Pearson's chi squared, and the response's own terms.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.statistics import crossproducts, expressions, formulas, whitening
from securecomp.statistics.adding import Reals
from securecomp.statistics.crossproducts import Grid, Moments, Products
from securecomp.statistics.designs import INTERCEPT, Design
from securecomp.statistics.families import FAMILIES, Family, family as family_of
from securecomp.statistics.fitting import Fit, Likelihood, Part, State, Step, newton
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.regressions import Regression, check_level
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.whitening import Whitening

Vector = npt.NDArray[np.float64]
_STEEPEST = 300.0  # of a linear predictor whose Pearson residual is still summed
_BITS = 40  # of sums of the response's own terms


def fit(
    ask: Inquiry,
    formula: str,
    family: str,
    *,
    weights: str | None,
    offset: str | None,
    level: float,
    bounds: Mapping[str, float] | None,
    tolerance: float,
    iterations: int,
) -> Regression:
    """Fit a model; see `Analyses.glm`."""
    kind = family_of(family)
    check_level(level)
    number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if not number or not 0 < tolerance < 1:
        raise ParameterError(f"tolerance is between 0 and 1, such as 1e-8, not {tolerance!r}")
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise ParameterError(f"iterations are at least 1, not {iterations!r}")
    parsed = formulas.parse(formula, ask.schema, bounds)
    design = Design.of(parsed, ask.schema, weights, offset)
    work = _Work.begin(ask, kind, design)
    _check(work)
    white = whitening.whiten(work.moments, work.names, work.intercept)
    if kind.name == "linear" and work.moments.exact:
        found = _closed(white)
    else:
        for part in work.parts.values():
            white.apply(part.z[:, int(work.intercept) :])
        found = _climbed(work, white, tolerance, iterations)
    return _summary(work, white, found, level)


@dataclass(slots=True)
class _Work:
    """What a fit works with, after the first sum.

    Attributes:
        ask: The inquiry.
        family: The distribution.
        design: The columns.
        names: The columns beside the intercept, in order.
        intercept: Whether there is one.
        parts: What each site has.
        moments: The first sum's totals.
        offsets: Sum of exp(offset), weighted; 0 where it was not summed.
        order: Where each coefficient of (intercept, others) is in the design.
    """

    ask: Inquiry
    family: Family
    design: Design
    names: tuple[str, ...]
    intercept: bool
    parts: dict[str, Part]
    moments: Moments
    offsets: float
    order: list[int]

    @classmethod
    def begin(cls, ask: Inquiry, family: Family, design: Design) -> "_Work":
        """Read every site's rows, then run the first sum."""
        intercept = INTERCEPT in design.names
        others = [i for i, name in enumerate(design.names) if name != INTERCEPT]
        order = [*([design.names.index(INTERCEPT)] if intercept else []), *others]
        names = tuple(design.names[i] for i in others)
        response = design.response
        if family.name == "linear" and design.offset is not None:
            response = expressions.add(response.text, response, design.offset, -1)
        weighted = design.weights is not None
        one = expressions.constant("1", 1)
        columns = [one, *(design.columns[i] for i in others), response]
        grids = tuple(Grid.of(column, weighted) for column in columns)
        heavy = Grid.of(design.weights, True) if design.weights is not None else None
        what = Products(
            names,
            design.response_name if response is design.response else f"{response.text} less offset",
            design.weights.text if design.weights is not None else "",
            grids,
            heavy,
            family.name == "linear",
        )
        sums, counts, parts = {}, {}, {}
        for table in ask.tables:
            rows = design.rows(table, ask.schema, ask.missing)
            block = np.empty((rows.count, len(columns)), np.float64, "F")
            for i, column in enumerate(columns):
                block[:, i] = rows.floats(column)
            family.check(rows, design.response_name, block[:, -1])
            weight = shift = None
            if design.weights is not None:
                weight = rows.floats(design.weights)
                none = weight <= 0 if family.name == "linear" else weight < 0
                low = "is not above 0" if family.name == "linear" else "is negative"
                rows.refuse(none, f"weights {design.weights.text}", f"{low}; correct it")
            if design.offset is not None:
                shift = rows.floats(design.offset)
            sums[table.site] = crossproducts.products(block, grids, weight, heavy)
            counts[table.site] = rows.count
            start = 0 if intercept else 1
            own_shift = None if family.name == "linear" else shift
            parts[table.site] = Part(block[:, start:-1], block[:, -1], weight, own_shift)
        more = _exposures(ask, family, design, parts)
        moments, totals = crossproducts.add_products(ask, what, sums, counts, *more)
        offsets = float(totals[0][0]) if more else 0.0
        return cls(ask, family, design, names, intercept, parts, moments, offsets, order)

    @property
    def shift(self) -> float:
        """No absolute offset is more, as the family sees it."""
        if self.design.offset is None or self.family.name == "linear":
            return 0.0
        return float(self.design.offset.largest)

    @property
    def mean(self) -> float:
        """The response's weighted mean."""
        return float(self.moments.response / self.moments.weight)


def _exposures(
    ask: Inquiry, family: Family, design: Design, parts: Mapping[str, Part]
) -> list[Reals]:
    """Return the sum of exp(offset), which gives a Poisson model's constant."""
    if family.name != "poisson" or design.offset is None:
        return []
    largest = float(design.offset.largest)
    if largest > _STEEPEST:
        raise ParameterError(
            f"offset {design.offset.text}: by its bound, a row's exposure could be "
            f"e^{largest:.0f}; agree on a smaller bound of the column, and take its logarithm"
        )
    heaviest = 1.0 if design.weights is None else float(design.weights.largest)
    label = f"sum of exp({design.offset.text})"
    values = {s: np.array([p.weighted(np.exp(p.offset)).sum()]) for s, p in parts.items()}
    return [Reals([label], MAX_ROWS * heaviest * math.exp(largest), _BITS + 10, values)]


def _check(work: _Work) -> None:
    """Refuse data that determine no model.

    Raises:
        ParameterError: Too few rows, one response only, or a level that has one response only.
    """
    m, size = work.moments, len(work.order)
    if m.rows < size + (work.family.name == "linear"):
        raise ParameterError(
            f"{m.rows} rows do not determine {size} coefficients; use fewer columns, or more rows"
        )
    if m.weight <= 0:
        raise ParameterError("all weights are 0; a row counts as often as its weight says")
    response = work.design.response_name
    if work.family.name == "linear":
        return
    logistic = work.family.name == "logistic"
    if m.response == 0 or (logistic and m.response == m.weight):
        value = 0 if m.response == 0 else 1
        raise ParameterError(f"{response} is {value} in every row: there is nothing to explain")
    for name, rows, sum_ in _levels(work):
        if rows > 0 and (sum_ == 0 or (logistic and sum_ == rows)):
            value = 0 if sum_ == 0 else 1
            raise ParameterError(
                f"separation: {response} is {value} in every row with {name}, so that its "
                "coefficient has no finite value; leave it out, or join levels"
            )


def _levels(work: _Work) -> list[tuple[str, Any, Any]]:
    """Return groups of rows that coefficients set apart: their name, weight and response."""
    m, found = work.moments, []
    columns = [work.design.columns[i] for i in work.order[int(work.intercept) :]]
    for i, (name, column) in enumerate(zip(work.names, columns, strict=True)):
        if not column.binary:
            continue
        found.append((name, m.sums[i], m.with_response[i]))
        if work.intercept and name not in work.design.coded:
            rest = m.weight - m.sums[i], m.response - m.with_response[i]
            found.append((f"{name} = 0", *rest))
    for text, levels in work.design.references.items() if work.intercept else ():
        at = [work.names.index(name) for name in levels]
        rest = m.weight - sum(m.sums[at]), m.response - sum(m.with_response[at])
        found.append((text, *rest))
    return found


@dataclass(frozen=True, slots=True)
class _Found:
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
    history: tuple[Step, ...]
    sums: Likelihood | None


def _closed(white: Whitening) -> _Found:
    """Return least squares from exact sums: rounded once."""
    inverse = np.eye(len(white.solution)) / white.weight
    return _Found(
        white.coefficients, white.solution, inverse, -0.5 * max(0.0, white.residual), (), None
    )


def _climbed(work: _Work, white: Whitening, tolerance: float, iterations: int) -> _Found:
    """Fit by Newton's method."""
    m, family, back = work.moments, work.family, white.back()
    variance = family.variance(work.mean) if family.name != "linear" else 1.0
    spread, largest = math.sqrt(variance), float(work.design.response.largest)
    if family.name == "linear":
        spread = math.sqrt(max(white.residual, 1e-30 * white.total) / white.weight)
        largest = math.sqrt(float(m.response_squared / m.weight))
    chosen = [work.design.columns[i] for i in work.order]
    low = np.array([float(c.low) for c in chosen])
    high = np.array([float(c.high) for c in chosen])
    first = int(work.intercept)

    def reach(at: Vector) -> float:
        by = back @ at
        ends = float(np.maximum(by * low, by * high).sum())
        if work.design.weights is None:
            # No row's leverage passes 1.
            lead = float(at[0]) if work.intercept else 0.0
            ends = min(ends, lead + float(np.linalg.norm(at[first:])) * math.sqrt(m.rows))
        return ends + work.shift

    names = [work.design.names[i] for i in work.order]
    sums = Likelihood(
        work.ask, family, work.parts, names, white.weight, variance, max(spread, 1e-150), largest,
        reach, work.shift,
    )  # fmt: skip

    def diverging(step: Vector) -> ParameterError:
        size = np.abs(back @ step) * _deviations(work)
        size[:first] = 0
        led = [names[i] for i in np.argsort(-size) if size[i] > 0.1 * size.max()]
        if family.name == "linear":
            return ParameterError(f"{', '.join(led[:5])}: nearly a combination of other columns")
        return ParameterError(
            f"separation: {', '.join(sorted(led[:8], key=names.index))} tell"
            f"{'s' * (len(led) == 1)} {work.design.response_name} apart for some rows without a "
            "mistake, so that coefficients have no finite values; leave out or coarsen such columns"
        )

    found = newton(
        sums, _start(work, white, sums), tolerance=tolerance, iterations=iterations,
        diverging=diverging,
    )  # fmt: skip
    return _Found(
        back @ found.at,
        found.at,
        found.covariance,
        found.state.likelihood + 0.5 * found.history[-1].decrement ** 2,
        found.history,
        sums,
    )


def _deviations(work: _Work) -> Vector:
    """Return each column's root mean square, about its mean with an intercept."""
    m = work.moments
    mean = np.array([float(s / m.weight) for s in m.sums])
    squares = np.array([float(m.squares[i, i] / m.weight) for i in range(len(mean))])
    spread = np.sqrt(np.maximum(squares - mean**2 * work.intercept, 0))
    return np.append(np.ones(int(work.intercept)), spread)


def _start(work: _Work, white: Whitening, sums: Likelihood) -> State:
    """Return where Newton begins: the constant alone, whose totals the first sum has given."""
    family, size = work.family, len(work.order)
    if family.name == "linear":
        return sums.at(white.solution)
    if work.shift:
        at = np.zeros(size)
        if family.name == "poisson" and white.constant:
            constant = math.log(float(work.moments.response) / work.offsets)
            at = constant * white.ones / white.weight
        return sums.at(at)
    if not white.constant:
        return sums.at(np.zeros(size))
    eta = family.predictor(work.mean)
    return State(
        eta * white.ones / white.weight,
        white.weight * family.likelihood(work.mean, eta),
        white.start - work.mean * white.ones,
        white.weight * family.variance(work.mean) * np.eye(size),
    )


def _summary(work: _Work, white: Whitening, found: _Found, level: float) -> Regression:
    """Put the result together, after the last sum."""
    m, family, design, size = work.moments, work.family, work.design, len(work.order)
    back, likelihood = white.back(), found.likelihood
    extras, pearson = _extras(work, found), 0.0
    weight = float(m.weight)
    if family.name == "linear":
        df_resid: float = m.rows - size
        deviance, null_deviance = -2 * likelihood, white.total if white.constant else _raw(m)
        scale = deviance / df_resid
        logs = 0.5 * extras[0] if extras else 0.0
        llf = _gaussian(deviance, m.rows) + logs
        llnull = _gaussian(white.total if work.intercept else _centred(m), m.rows) + logs
        pearson, df_model = deviance, size - int(white.constant)
    else:
        scale, df_model = 1.0, size - 1
        df_resid = weight - size
        null = _null(work, found, extras)
        pearson, own = extras[0], extras[1:]
        llf, llnull = likelihood, null
        deviance, null_deviance = -2 * llf, -2 * llnull
        if family.name == "poisson":
            llf, llnull = likelihood - own[0], null - own[0]
            deviance, null_deviance = 2 * (own[1] - likelihood), 2 * (own[1] - null)
    covariance = back @ found.covariance @ back.T * scale
    place = np.argsort(work.order)
    df_resid = int(df_resid) if float(df_resid).is_integer() else df_resid
    return Regression(
        formula=design.formula.text,
        family=family.name,
        response=design.response_name,
        names=design.names,
        params=found.coefficients[place],
        covariance=covariance[np.ix_(place, place)],
        nobs=m.rows,
        weight=weight,
        df_model=df_model,
        df_resid=df_resid,
        llf=llf,
        llnull=llnull,
        deviance=deviance,
        null_deviance=null_deviance,
        pearson_chi2=pearson,
        scale=scale,
        history=found.history,
        level=level,
        weights=None if design.weights is None else design.weights.text,
        offset=None if design.offset is None else design.offset.text,
        levels={name: work.ask.schema.levels(name) for name in design.categorical},
        run=work.ask.done(),
    )


def _raw(m: Moments) -> float:
    return float(m.response_squared)


def _centred(m: Moments) -> float:
    return float(m.response_squared - m.response**2 / m.weight)


def _gaussian(squares: float, rows: int) -> float:
    """Return the log likelihood at the maximum over the variance."""
    if squares <= 0:
        return math.inf
    return -0.5 * rows * (math.log(2 * math.pi * squares / rows) + 1)


def _extras(work: _Work, found: _Found) -> list[float]:
    """Run the last sum: Pearson's chi squared, and what of the response alone is needed."""
    family, sums, design = work.family, found.sums, work.design
    labels: list[str] = []
    bounds: list[float] = []
    largest = float(design.response.largest)
    weight = float(work.moments.weight)

    def values(part: Part) -> list[Vector]:
        if family.name == "linear":
            return [np.log(part.weights)] if part.weights is not None else []
        _, residual, variance = family.terms(part.predictor(found.at), part.y)
        chosen = [part.weighted(v) for v in family.extras(part.y)]
        if part.offset is not None and family.name == "poisson":
            chosen.append(part.weighted(part.y * part.offset))
        if steep <= _STEEPEST:
            chosen.insert(0, part.weighted(residual**2 / variance))
        return chosen

    steep = 0.0
    if family.name == "linear":
        if design.weights is not None:
            weight = work.moments.rows
            labels = [f"sum of log({design.weights.text})"]
            ends = float(design.weights.largest), float(design.weights.least())
            bounds = [max(abs(math.log(end)) for end in ends)]
    else:
        assert_ = sums
        steep = max(assert_.reach(found.at), assert_.reach(-found.at)) if assert_ else 0.0
        if family.name == "poisson":
            labels = ["sum of log(response!)", "sum of response * log(response) - response"]
            log = largest * math.log(largest + 1) + largest
            bounds = [log, log]
            if design.offset is not None:
                labels.append("sum of response * offset")
                bounds.append(largest * work.shift)
        if steep <= _STEEPEST:
            labels.insert(0, "Pearson chi squared")
            most = math.exp(steep)
            bounds.insert(0, most if family.name == "logistic" else most * (1 + largest) ** 2)
    if not labels:
        return [] if family.name == "linear" else [math.nan]
    own = {site: [float(v.sum()) for v in values(part)] for site, part in work.parts.items()}
    blocks = []
    for i, (label, bound) in enumerate(zip(labels, bounds, strict=True)):
        bits = max(0, math.ceil(_BITS - math.log2(max(weight, 1))))
        parts = {site: np.array([v[i]]) for site, v in own.items()}
        blocks.append(Reals([label], max(bound, 1e-9) * weight * (1 + 1e-6), bits, parts))
    totals = [float(total[0]) for total in work.ask.adder.add(*blocks)]
    return totals if family.name == "linear" or steep <= _STEEPEST else [math.nan, *totals]


def _null(work: _Work, found: _Found, extras: Sequence[float]) -> float:
    """Return the log likelihood of a constant alone, without the response's own terms."""
    family, m = work.family, work.moments
    if not work.shift:
        return float(m.weight) * family.likelihood(work.mean, family.predictor(work.mean))
    total = float(m.response)
    if family.name == "poisson":
        constant = math.log(total / work.offsets)
        return extras[-1] + total * constant - total
    parts = {
        site: Part(np.ones((len(p.y), 1)), p.y, p.weights, p.offset)
        for site, p in work.parts.items()
    }
    sums = Likelihood(
        work.ask, family, parts, ["constant"], float(m.weight), family.variance(work.mean),
        math.sqrt(family.variance(work.mean)), 1.0, lambda at: float(at[0]) + work.shift,
        work.shift, "constant alone",
    )  # fmt: skip
    fitted: Fit = newton(
        sums,
        sums.at(np.zeros(1)),
        tolerance=1e-8,
        iterations=50,
        diverging=lambda _: ParameterError("the constant alone has no finite coefficient"),
    )
    return fitted.state.likelihood


__all__ = ["FAMILIES", "fit"]
