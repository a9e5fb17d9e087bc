"""Cox's proportional hazards over sites: the regression, and what is agreed on before it begins.

`cox_likelihood` has the sums over the rows at risk, and Newton's method on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import shown
from securecomp.errors import RangeError
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.analysis import small_counts
from securecomp.statistics.distributions import check_confidence, chi_square_pvalue
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import cell_names
from securecomp.statistics.regression.covariates import Covariates, total
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.survival.cox_likelihood import Events, PartialLikelihood, RiskRows, climb
from securecomp.statistics.survival.cox_result import Baseline, CoefficientTest, Cox
from securecomp.statistics.survival.follow_up import SurvivalRows, TimeGrid, distinct, integers

Floats = npt.NDArray[np.float64]
_FAR = 0.9  # of its bound: from there on it is agreed how far a covariate is from its centre
_FINEST = 40  # powers of two by which a covariate may be nearer to its centre than its bound


def cox(
    study: Asks,
    time: str,
    event: str,
    covariates: Sequence[str],
    *,
    times: Sequence[float] | None = None,
    strata: str | None = None,
    categorical: Sequence[str] = (),
    confidence: float = 0.95,
) -> Cox:
    """Fit Cox's model of proportional hazards, with ties as Breslow's.

    Args:
        time: Column of times, as `kaplan_meier` has it.
        event: Column of events, 1 or 0.
        covariates: Columns. Those of text, with declared levels or in `categorical` are
            categories, compared with their first level; others are numbers.
        times: The grid, as `kaplan_meier` has it; the fit is of the times rounded up to it.
        strata: Categorical column whose levels have a baseline hazard each.
        categorical: Covariates whose numbers are codes.
        confidence: Of the intervals.

    Returns:
        Coefficients, hazard ratios, standard errors, tests, likelihoods, baseline hazards and
        predicted survival.

    Raises:
        ParameterError: As `kaplan_meier`; covariates that do not exist or cannot be used.
        RangeError: As `kaplan_meier`; no event; a level without events, a constant or
            redundant covariate, a coefficient without a finite estimate: the column is named.

    Opens: rows; events at each time of each stratum; each covariate's sum over events; then in
    every step, at each time with events, the sum of exp(x'b) over the rows at risk and that of
    exp(x'b) x, and one matrix over all times. Of a covariate whose mean over events is beyond nine
    tenths of its bound also how many sites have rows further from that mean, for powers of two. If
    one row leaves between two such times, its covariates follow from these sums: a coarser grid of
        times opens less.

    Example:
        >>> study.cox("days", "died", ["age", "treatment"]).hazard_ratios  # doctest: +SKIP
    """
    ask = study.inquiry()
    distinct(time=time, event=event, strata=strata)
    check_confidence(confidence)
    design = Covariates.agree(ask, covariates, categorical)
    for column in (*design.numeric, *design.categorical):
        distinct(time=time, event=event, strata=strata, covariate=column)
    outer = () if strata is None else (strata,)
    layers = cell_names(ask.schema, outer)
    grid = TimeGrid.agree(ask.schema, time, event, times)
    sites = {
        t.site: grid.rows(ask, t, outer, design.numeric, design.categorical) for t in ask.tables
    }
    values = {t.site: design.integers(t, ask.schema) for t in ask.tables}
    events, counts, rounded = _first_sum(ask, grid, design, layers, sites, values)
    cells = [
        f"at {grid.names()[k]} {layers[s]}".strip()
        for s, k in zip(events.layer, events.place, strict=True)
    ]
    rows = {name: design.values(values[name], found.keep) for name, found in sites.items()}
    bounds, reach, events = _agree_reach(ask, design, events, rows)
    scaled = {
        name: _at_risk(sites[name], (x - events.centre) / bounds, events)
        for name, x in rows.items()
    }
    model = PartialLikelihood(ask, design, reach, events, cells, scaled)
    fit = climb(model)
    df = len(fit.g)
    tests = (2 * (fit.llf - fit.llnull), fit.score, float(fit.g @ fit.information @ fit.g))
    ratio, score, wald = (CoefficientTest(max(0.0, t), df, chi_square_pvalue(t, df)) for t in tests)
    names = [*map(str, ask.schema.levels(strata))] if strata is not None else [""]
    baselines = {}
    for s, name in enumerate(names):
        here = events.layer == s
        hazard = events.d[here] / fit.s0[here]
        baselines[name] = Baseline(grid.times[events.place[here]], events.d[here], hazard)
    return Cox(
        time=time,
        event=event,
        covariates=design,
        strata=strata,
        names=tuple(model.names),
        params=fit.g / bounds,
        covariance=np.linalg.inv(fit.information) / np.outer(bounds, bounds),
        confidence=confidence,
        llf=fit.llf,
        llnull=fit.llnull,
        likelihood_ratio=ratio,
        score=score,
        wald=wald,
        rows=counts,
        events=int(events.d.sum()),
        centre=events.centre,
        baselines=baselines,
        history=fit.history,
        smallest=tuple(small_counts(round(n) for n in (*events.d, *fit.at_risk))),
        rounded=rounded,
        grid=grid,
        run=ask.done(),
    )


def _first_sum(
    ask: Inquiry,
    grid: TimeGrid,
    design: Covariates,
    layers: Sequence[str],
    sites: Mapping[str, SurvivalRows],
    values: Mapping[str, Sequence[npt.NDArray[np.int64]]],
) -> tuple[Events, int, int]:
    """Add up events at each time of each stratum, and covariates over events."""
    parts: dict[str, list[int]] = {}
    sums: list[dict[str, list[int]]] = [{} for _ in design.terms]
    for site, found in sites.items():
        happened = found.tally(grid.size + 1, found.event)[:, : grid.size]
        parts[site] = [*integers(happened), len(found.index), found.rounded]
        for j, column in enumerate(values[site]):
            sums[j][site] = [total(column[found.keep], found.event)]
    labels = [f"events at {t} {layer}".strip() for layer in layers for t in grid.names()]
    blocks = [IntegerBlock([*labels, "rows", grid.rounded_label], MAX_ROWS, parts)]
    for term, part in zip(design.terms, sums, strict=True):
        what = "sum of" if term.level is None else "number of"
        blocks.append(IntegerBlock([f"{what} {term.name} over events"], term.sum_bound, part))
    totals, *over = ask.adder.add(*blocks)
    d = np.array(totals[:-2], np.int64).reshape(len(layers), grid.size)
    number = int(d.sum())
    if number == 0:
        raise RangeError(
            f"column {grid.event!r}: no site has an event up to the last time, so that there is "
            "nothing to fit"
        )
    whole = [summed for (summed,) in over]
    _refuse_without_events(design, whole, number)
    exact = [Fraction(s, t.scale) for s, t in zip(whole, design.terms, strict=True)]
    centre = [float(s / number) for s in exact]
    rest = [
        float((s - number * Fraction(c)) / Fraction(t.bound))
        for s, c, t in zip(exact, centre, design.terms, strict=True)
    ]
    layer, place = np.nonzero(d)
    events = Events(
        layer, place, d[layer, place].astype(np.float64), np.array(centre), np.array(rest)
    )
    return events, totals[-2], totals[-1]


def _agree_reach(
    ask: Inquiry, design: Covariates, events: Events, rows: Mapping[str, Floats]
) -> tuple[Floats, Floats, Events]:
    """Agree on how far covariates are from their centre; one more sum where that is unclear.

    A number is within its bound, and so within twice the bound of its centre. Of a calendar year
    that says nothing. Where the centre is near the bound, each site adds, for each power
    of two, whether it has a row that is further away; the smallest that no site passes is agreed.

    Returns:
        For each covariate its unit, and the largest absolute value in that unit once it is
        centred; and the events with totals in these units.
    """
    bounds = np.array([t.bound for t in design.terms])
    numeric = np.array([t.level is None for t in design.terms])
    centre = events.centre / bounds
    # An indicator is between 0 and 1, a number between minus its bound and its bound.
    reach = np.where(numeric, 1 + np.abs(centre), np.maximum(centre, 1 - centre))
    far = np.flatnonzero(numeric & (np.abs(centre) > _FAR)).tolist()
    if not far:
        return bounds, reach, events
    steps = np.ldexp(2.0, -np.arange(1, _FINEST + 1))
    parts = {}
    for site, x in rows.items():
        away = np.abs(x - events.centre).max(axis=0, initial=0.0)
        parts[site] = [int(away[j] > bounds[j] * step) for j in far for step in steps.tolist()]
    labels = [
        f"sites with {design.terms[j].name} further than {shown(float(bounds[j] * step))} from its "
        "mean over events"
        for j in far
        for step in steps.tolist()
    ]
    (beyond,) = ask.adder.add(IntegerBlock(labels, 1, parts))
    unit, total = bounds.copy(), events.total.copy()
    for place, j in enumerate(far):
        passed = np.array(beyond[place * _FINEST : (place + 1) * _FINEST]) > 0
        factor = 2.0 if passed[0] else float(steps[np.flatnonzero(~passed).max()])
        unit[j], total[j], reach[j] = bounds[j] * factor, total[j] / factor, 1.0
    return unit, reach, replace(events, total=total)


def _refuse_without_events(design: Covariates, sums: Sequence[int], events: int) -> None:
    left = dict.fromkeys(design.references, events)
    for term, count in zip(design.terms, sums, strict=True):
        if term.level is not None:
            left[term.column] -= count
    empty = [
        (term.column, term.level)
        for term, count in zip(design.terms, sums, strict=True)
        if term.level is not None and count == 0
    ]
    empty += [(c, level) for c, level in design.references.items() if left[c] == 0]
    if empty:
        column, level = empty[0]
        raise RangeError(
            f"column {column!r}: level {level} has no events, so that its hazard ratio is 0 or not "
            "known; merge it with another level, or leave out its rows"
        )


def _at_risk(rows: SurvivalRows, u: Floats, events: Events) -> RiskRows:
    """Keep the rows that are at risk at some event of their stratum, with the last such event."""
    last = np.full(len(rows.index), -1, np.int64)
    for s in np.unique(events.layer).tolist():
        here = np.flatnonzero(events.layer == s)
        mine = rows.codes == s
        seen = np.searchsorted(events.place[here], rows.index[mine], "right")
        last[mine] = np.where(seen > 0, here[0] + seen - 1, -1)
    return RiskRows(u[last >= 0], last[last >= 0])
