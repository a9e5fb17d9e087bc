"""Generalised linear models over sites: the sums that a fit asks for, in order.

1. Sums of products of all columns and the response, exact: the same as the first step of least
   squares. From them everybody computes coordinates in which the columns are orthogonal, finds
   columns that are combinations of others and levels with one response only, and starts at the
   model with a constant alone; beside an offset, the offset's sum (of its exp, for counts) says
   where that is. A design of more than 100 columns has its rows counted before. A linear model on
   agreed grids is finished here.
2. One sum a Newton step, see `fitting`.
3. What the summary needs beside: Pearson's chi squared, and the response's own terms.
"""

import math
from collections.abc import Mapping

import numpy as np

from securecomp.core import plain_products
from securecomp.errors import ParameterError, brief
from securecomp.statistics.distributions import check_confidence
from securecomp.statistics.inquiry import Asks
from securecomp.statistics.regression import formulas, separation, whitening
from securecomp.statistics.regression.designs import Design
from securecomp.statistics.regression.families import family as family_of
from securecomp.statistics.regression.fitting import Likelihood, ObjectiveTotals, Vector, newton
from securecomp.statistics.regression.gathered_rows import GatheredRows
from securecomp.statistics.regression.glm_summary import Found, summary
from securecomp.statistics.regression.regression_results import Regression
from securecomp.statistics.regression.whitening import Whitening
from securecomp.statistics.site_table import check_column

_NEAR = 0.99  # of the ones' sum of squares, what columns explain


def glm(
    study: Asks,
    formula: str,
    family: str = "logistic",
    *,
    weights: str | None = None,
    offset: str | None = None,
    confidence: float = 0.95,
    bounds: Mapping[str, float] | None = None,
    tolerance: float = 1e-8,
    iterations: int = 40,
) -> Regression:
    """Fit a generalised linear model to all sites' rows, by its canonical link.

    Newton's method: each step opens the totals of the log likelihood, its gradient and the
    information matrix, as if one site had all rows, and nothing of a site. A first sum opens
    the sums of products of all columns, from which everybody scales them alike; a linear
    model on agreed grids needs no other.

    Args:
        formula: As in R and statsmodels: "died ~ los + C(type) * age". Text columns are
            categories, with their first level as the reference; log(), exp(), sqrt(), I(...)
            and arithmetic act on each row. What depends on all rows of a site is refused. Names
            that Python could not read are in back quotes. At most 1,000 columns of the design.
        family: "logistic" (0 and 1, or two levels), "poisson" (counts, log link) or "linear".
        weights: Column of weights. Logistic, poisson: how many equal rows a row stands for
            (statsmodels' freq_weights). Linear: inverse variances (statsmodels' WLS).
        offset: Column that is added to the linear predictor as it is.
        confidence: Coverage of the intervals.
        bounds: Largest absolute value of a factor of the formula, {"exp(x)": 20}, where the
            columns' bounds give none, or one that is too large.
        tolerance: Stop when a step would move no coefficient by more standard errors.
        iterations: Give up after so many steps.

    Raises:
        ParameterError: A formula that cannot be read; a column that is a combination of
            others; separation; no convergence. It says what to do.
        RangeError: A site's value is missing, beyond a bound, outside its levels, or no
            response of the family; the site and the row are named and nothing is sent.
        BackendUnavailableError: `formulaic` is not installed.
    """
    ask = study.inquiry()
    kind = family_of(family)
    check_confidence(confidence)
    for what, name in (("weights", weights), ("offset", offset)):
        if name is not None:
            check_column(what, name)
    number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if not number or not 0 < tolerance < 1:
        raise ParameterError(f"tolerance is between 0 and 1, such as 1e-8, not {tolerance!r}")
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise ParameterError(f"iterations are at least 1, not {iterations!r}")
    parsed = formulas.parse(formula, ask.schema, bounds)
    design = Design.of(parsed, ask.schema, weights, offset)
    work = GatheredRows.of(ask, kind, design)
    separation.check(work)
    white = whitening.whiten(work.moments, work.names, work.intercept)
    if white.constant or (kind.name == "linear" and not work.moments.response_squared):
        separation.check_response(work)
    if kind.name == "linear" and work.moments.exact:
        found = _closed(white)
    else:
        for part in work.parts.values():
            white.apply(part.z[:, int(work.intercept) :])
        found = _climbed(work, white, tolerance, iterations)
    return summary(work, white, found, confidence)


def _closed(white: Whitening) -> Found:
    """Return least squares from exact sums: rounded once."""
    inverse = np.eye(len(white.solution)) / white.weight
    return Found(
        white.coefficients, white.solution, inverse, -0.5 * max(0.0, white.residual), (), None
    )


def _climbed(work: GatheredRows, white: Whitening, tolerance: float, iterations: int) -> Found:
    """Fit by Newton's method."""
    m, family, back = work.moments, work.family, white.back()
    if white.constant:
        work.centre()
    # Where all responses are 0, say, it is about that of a predictor of 0.
    variance = family.variance(family.mean(np.zeros(1))[0] if work.extreme else work.mean)
    spread, largest = math.sqrt(variance), float(work.design.response.largest)
    if family.name == "linear":
        spread = math.sqrt(max(white.residual, 1e-30 * white.total) / white.weight)
        largest = math.sqrt(float(m.response_squared / m.weight))
    chosen = [work.design.columns[i] for i in work.order]
    low = np.array([float(c.low) for c in chosen])
    high = np.array([float(c.high) for c in chosen])
    first = int(work.intercept)

    def reach(at: Vector) -> float:
        # A constant that is a combination of the columns is the same in every row.
        lead = float(at @ white.level) if white.constant else 0.0
        rest = at - lead * white.level
        ends = [0.0, lead]
        for i, part in enumerate((at, rest)):
            by = back @ part
            ends[i] += float(np.maximum(by * low, by * high).sum())
        if work.design.weights is None:
            # No row's leverage passes 1.
            ends.append(lead + float(np.linalg.norm(rest)) * math.sqrt(m.rows))
        return min(ends) + work.shift

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
            shown = ", ".join(map(brief, led[:5]))
            return ParameterError(f"{shown}: nearly a combination of other columns")
        offset = work.design.offset
        large = ""
        if offset is not None:
            large = f"the offset {brief(offset.text)} is so large that it leaves rows no weight"
        if not led:
            return ParameterError(
                f"no maximum is found: {large or 'no row has a weight'}; scale it, or subtract an "
                "agreed number from it"
            )
        return ParameterError(
            f"separation: {', '.join(map(brief, sorted(led[:8], key=names.index)))} tell"
            f"{'s' * (len(led) == 1)} {brief(work.design.response_name)} apart for some rows "
            "without a mistake, so that coefficients have no finite values; leave out or coarsen "
            "such columns" + (f" (or {large}; scale it)" if large else "")
        )

    found = newton(
        sums, _start(work, white, sums), tolerance=tolerance, iterations=iterations,
        diverging=diverging,
    )  # fmt: skip
    return Found(
        plain_products.product(back, found.at - work.moved * white.level),
        found.at,
        found.covariance,
        found.state.likelihood + 0.5 * found.history[-1].decrement ** 2,
        found.history,
        sums,
    )


def _deviations(work: GatheredRows) -> Vector:
    """Return each column's root mean square, about its mean with an intercept."""
    m = work.moments
    # Exact: the squares of columns far from zero differ in their last digits.
    exact = [m.squares[i, i] - s * s / m.weight * work.intercept for i, s in enumerate(m.sums)]
    spread = np.sqrt([float(s / m.weight) for s in exact])
    return np.append(np.ones(int(work.intercept)), spread)


def _start(work: GatheredRows, white: Whitening, sums: Likelihood) -> ObjectiveTotals:
    """Return where Newton begins: the constant alone, whose totals the first sum has given."""
    family, size = work.family, len(work.order)
    if family.name == "linear":
        return sums.at(white.solution)
    if work.shift or not white.constant:
        # Where no constant is a combination of the columns, one may nearly be.
        near = float(white.level @ white.level) > _NEAR
        at = work.constant * white.level * (bool(work.shift) or near)
        return sums.at(np.zeros(size) if sums.steep(at) else at)
    eta = family.predictor(work.mean)
    return ObjectiveTotals(
        eta * white.level,
        white.weight * family.likelihood(work.mean, eta),
        white.start - work.mean * white.ones,
        white.weight * family.variance(work.mean) * np.eye(size),
    )
