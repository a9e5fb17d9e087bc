"""Cox's proportional hazards over sites: the regression, from what was asked to its result.

`cox_rows` has what is agreed on before the first step, `cox_likelihood` the sums over the rows at
risk, and `cox_newton` the steps.
"""

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np

from securecomp.errors import ParameterError
from securecomp.statistics.analysis import small_counts
from securecomp.statistics.distributions import check_confidence, chi_square_pvalue
from securecomp.statistics.inquiry import Asks
from securecomp.statistics.measures import cell_names
from securecomp.statistics.regression import covariates as covariates_
from securecomp.statistics.survival.cox_likelihood import Events, Floats, PartialLikelihood, Ties
from securecomp.statistics.survival.cox_newton import climb
from securecomp.statistics.survival.cox_result import Baseline, CoefficientTest, Cox
from securecomp.statistics.survival.cox_rows import CoxRows
from securecomp.statistics.survival.follow_up import TimeGrid, distinct


def cox(
    study: Asks,
    time: str,
    event: str,
    covariates: Sequence[str] | str,
    *,
    times: Sequence[float] | None = None,
    strata: str | None = None,
    categorical: Sequence[str] = (),
    ties: Ties = "efron",
    bounds: Mapping[str, float] | None = None,
    confidence: float = 0.95,
) -> Cox:
    """Fit Cox's model of proportional hazards, with ties as Efron's or Breslow's.

    Args:
        time: Column of times, as `kaplan_meier` has it.
        event: Column of events, 1 or 0.
        covariates: Columns: those of text, with declared levels or in `categorical` are
            categories, compared with their first level; others are numbers. Or a formula's side
            as in R and in `glm`, "~ age + C(ward) * log(dose)"; the baseline hazard is its
            constant, whether it has one or not. Levels without rows are left out, and said.
        times: The grid, as `kaplan_meier` has it; the fit is of the times rounded up to it.
        strata: Categorical column whose levels have a baseline hazard each.
        categorical: Covariates of a list whose numbers are codes.
        ties: Events at the same time. "efron", as R and lifelines have by default, is nearer to
            the fit of the times without ties, and so of a grid that is coarse; "breslow", as
            statsmodels has by default, opens less.
        bounds: Largest absolute value of a factor of the formula, as `glm` has it.
        confidence: Of the intervals.

    Returns:
        Coefficients, hazard ratios, standard errors, tests, likelihoods, baseline hazards and
        predicted survival.

    Raises:
        ParameterError: As `kaplan_meier`; covariates that do not exist or cannot be used; a
            formula that cannot be read.
        RangeError: As `kaplan_meier`; no event; a level without events, a constant or
            redundant covariate, a coefficient without a finite estimate: the column is named.
        BackendUnavailableError: A formula, and `formulaic` is not installed.

    Opens, to every site alike: rows, and rows with each level; events at each time of each
    stratum; each covariate's sum over events; then in every step, at each time with events, the
    sum of exp(x'b) over the rows at risk and that of exp(x'b) x, and one matrix over all times.
    If one row leaves between two such times, its covariates follow from these sums: a coarser grid
    of times opens less. Efron's ties open, at each time with two or more events, the same two sums
    over these events alone: they set events apart from rows that were censored before the next
    time, and from the sums of several steps the covariates of two or three tied patients follow.
    Breslow's open neither. Of a covariate whose mean over events is beyond nine tenths of its
    bound, or whose values are all far below it, also how many sites have rows further from that
    mean, for powers of two; and where by the bounds x'b could be beyond 100, how many sites have
    rows beyond 100, 50, 25 ..

    Example:
        >>> study.cox("days", "died", ["age", "treatment"]).hazard_ratios  # doctest: +SKIP
        >>> study.cox("days", "died", "~ I(age - 60) * treatment")  # doctest: +SKIP
    """
    ask = study.inquiry()
    distinct(time=time, event=event, strata=strata)
    check_confidence(confidence)
    if ties not in get_args(Ties):
        raise ParameterError(f'ties are "efron" or "breslow", not {ties!r}')
    asked, design = covariates_.agree(ask, covariates, categorical, bounds)
    for column in (*design.numeric, *design.categorical):
        distinct(time=time, event=event, strata=strata, covariate=column)
    outer = () if strata is None else (strata,)
    strata_names = [""] if strata is None else [*map(str, ask.schema.levels(strata))]
    layers = cell_names(ask.schema, outer)
    grid = TimeGrid.agree(ask.schema, time, event, times)
    found = CoxRows.gather(ask, grid, asked, design, outer, layers)
    events, names = found.events, found.covariates.names
    cells = [
        f"at {grid.names()[k]} {layers[s]}".strip()
        for s, k in zip(events.layer, events.place, strict=True)
    ]
    model = PartialLikelihood(ask, names, found.unit, found.reach, events, cells, found.sites, ties)
    fit = climb(model)
    unit, df = model.unit, len(fit.g)
    # All sites show one result: what was computed since the last step is agreed on as steps are.
    (inverse,) = ask.agreed("the covariance", np.linalg.inv(fit.information))
    wald = float(fit.g @ fit.information @ fit.g)
    (tests,) = ask.agreed("the tests", [2 * (fit.llf - fit.llnull), fit.score, wald])
    ratio, score, wald_test = (
        CoefficientTest(max(0.0, t), df, chi_square_pvalue(t, df)) for t in tests.tolist()
    )
    return Cox(
        time=time,
        event=event,
        covariates=found.covariates,
        strata=strata,
        ties=ties,
        names=names,
        params=fit.g / unit,
        covariance=inverse / np.outer(unit, unit),
        confidence=confidence,
        llf=fit.llf,
        llnull=fit.llnull,
        likelihood_ratio=ratio,
        score=score,
        wald=wald_test,
        rows=found.rows,
        events=int(events.d.sum()),
        centre=events.centre,
        baselines=_baselines(strata_names, grid, events, fit.hazard),
        history=fit.history,
        smallest=tuple(small_counts(round(n) for n in (*events.d, *fit.at_risk))),
        rounded=found.rounded,
        grid=grid,
        run=ask.done(),
    )


def _baselines(
    names: Sequence[str], grid: TimeGrid, events: Events, hazard: Floats
) -> dict[str, Baseline]:
    """Return the baseline hazard of each stratum."""
    found = {}
    for s, name in enumerate(names):
        here = events.layer == s
        found[name] = Baseline(grid.times[events.place[here]], events.d[here], hazard[here])
    return found
