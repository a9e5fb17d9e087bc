"""Cox's proportional hazards over sites, by Newton's method on sums over the rows at risk.

With u the covariates, centred at their mean over events and divided by their public bounds, and w =
exp(u'g), a step needs at each time t with d(t) events (of each stratum, ties as Breslow's)

    S0(t) = sum of w,   S1(t) = sum of w u,   over the rows at risk,

both of which are opened, as in WebDISCO; they enter by their ratio. The sums S2(t) of w u u' are
not: once S0 is known, the information needs only the sum over t of S2(t) d(t) / S0(t), which is
linear in the sites' rows, so that one matrix is opened in place of one for each time.

Source: Cox, JRSS B 34 (1972) 187-220; Breslow, Biometrics 30 (1974) 89-99; over sites: Lu et al.,
WebDISCO, J. Am. Med. Inform. Assoc. 22 (2015) 1212-1219.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from securecomp.errors import RangeError
from securecomp.statistics.adder import IntegerBlock, RealBlock
from securecomp.statistics.analysis import small_counts
from securecomp.statistics.distributions import check_confidence, chi_square_pvalue
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import cell_names
from securecomp.statistics.regression.covariates import Covariates, total
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.survival.cox_result import Baseline, CoefficientTest, Cox, CoxStep
from securecomp.statistics.survival.follow_up import SurvivalRows, TimeGrid, distinct, integers

Floats = npt.NDArray[np.float64]
MAX_STEPS = 15
MAX_PREDICTOR = 100.0
"""The linear predictor that the public bounds allow; exp of it is what sums must have room for."""
_SHIFT = 1e-8  # converged: no combination of coefficients moves by so much of its standard error
_SINGULAR = 1e-9  # of a column's information: what the columns before it leave
_NOTHING = 1e-24  # of one event's information, in units of the bound: a constant column
_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class _Events:
    """What is known after the first sum.

    Attributes:
        layer: Stratum of each time with events, ascending.
        place: Place of that time on the grid, ascending in a stratum.
        d: Its events.
        centre: Covariates' means over events.
        total: Sum over events of the scaled, centred covariates.
    """

    layer: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    d: Floats
    centre: Floats
    total: Floats


@dataclass(frozen=True, slots=True)
class _Site:
    """One site's rows that are ever at risk at an event: covariates, and the last such event."""

    u: Floats
    last: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Fit:
    """Where Newton's method ends.

    Attributes:
        g: Coefficients of the scaled covariates.
        llf: Log likelihood there.
        information: And information.
        s0: Sum of exp(u'g) over the rows at risk.
        llnull: Log likelihood at 0.
        score: Score statistic at 0.
        at_risk: Rows at risk at each time with events, which S0 is at 0.
        history: The steps.
    """

    g: Floats
    llf: float
    information: Floats
    s0: Floats
    llnull: float
    score: float
    at_risk: Floats
    history: tuple[CoxStep, ...]


class _Model:
    """The likelihood and its derivatives at any coefficients, each from secure sums."""

    def __init__(
        self, ask: Inquiry, covariates: Covariates, events: _Events, cells: Sequence[str],
        sites: Mapping[str, _Site],
    ) -> None:  # fmt: skip
        self.ask, self.events, self.sites = ask, events, sites
        bounds = np.array([t.bound for t in covariates.terms])
        numeric = np.array([t.level is None for t in covariates.terms])
        centre = events.centre / bounds
        # An indicator is between 0 and 1, a number between minus its bound and its bound.
        self.reach = np.where(numeric, 1 + np.abs(centre), np.maximum(centre, 1 - centre))
        self.names = [t.name for t in covariates.terms]
        starts = np.flatnonzero(np.diff(events.layer, prepend=-1))
        self.ends = [*starts[1:].tolist(), len(events.d)]
        self.starts = starts.tolist()
        every = "in every step: sum of exp(x'b)"
        self.labels = [f"{every} over rows at risk {c}" for c in cells]
        self.labels += [f"{every} {n} over rows at risk {c}" for n in self.names for c in cells]
        self.pairs = [(i, j) for i in range(len(self.names)) for j in range(i + 1)]
        self.folded = [
            f"{every} {self.names[i]} {self.names[j]} over rows at risk, times events / sum of "
            "exp(x'b), over all times"
            for i, j in self.pairs
        ]

    def predictor(self, g: Floats) -> float:
        """Return the public bound of |u'g|."""
        return float(np.abs(g) @ self.reach)

    def likelihood(self, g: Floats) -> tuple[float, Floats, Floats]:
        """Return the partial log likelihood, S0 and S1 (times, covariates): one secure sum."""
        most = self.predictor(g)
        # exp is at least e^-most: so many bits keep the 52 of a double.
        bits = 52 + math.ceil(most / math.log(2))
        parts = {site: self._risk(rows, g) for site, rows in self.sites.items()}
        bound = MAX_ROWS * math.exp(most) * max(1.0, float(self.reach.max())) * (1 + 1e-9)
        (sums,) = self.ask.adder.add(RealBlock(self.labels, bound, bits, parts))
        s0, s1 = sums[: len(self.events.d)], sums[len(self.events.d) :]
        value = float(self.events.total @ g) - math.fsum(self.events.d * np.log(s0))
        return value, s0, s1.reshape(len(g), -1).T

    def _risk(self, rows: _Site, g: Floats) -> Floats:
        w = np.exp(rows.u @ g)
        size = len(self.events.d)
        sums = [np.bincount(rows.last, w, size)]
        sums += [np.bincount(rows.last, w * column, size) for column in rows.u.T]
        for start, end in zip(self.starts, self.ends, strict=True):
            for values in sums:  # who is at risk later was at risk before
                values[start:end] = np.cumsum(values[start:end][::-1])[::-1]
        return np.concatenate(sums)

    def derivatives(self, g: Floats, s0: Floats, s1: Floats) -> tuple[Floats, Floats, Floats]:
        """Return gradient, information, and the part of the latter that is summed: one sum."""
        d = self.events.d
        share = d / s0
        until = np.empty(len(d))
        for start, end in zip(self.starts, self.ends, strict=True):
            until[start:end] = np.cumsum(share[start:end])
        parts = {}
        for site, rows in self.sites.items():
            weight = np.exp(rows.u @ g) * until[rows.last]
            second = rows.u.T @ (rows.u * weight[:, None])
            parts[site] = np.array([second[i, j] for i, j in self.pairs])
        most = math.exp(self.predictor(g)) * float(until.max()) * float(self.reach.max()) ** 2
        bound = MAX_ROWS * most * (1 + 1e-9)
        (sums,) = self.ask.adder.add(RealBlock(self.folded, bound, 64, parts))
        second = np.zeros((len(g), len(g)))
        for (i, j), value in zip(self.pairs, sums, strict=True):
            second[i, j] = second[j, i] = value
        ratio = s1 / s0[:, None]
        gradient = self.events.total - d @ ratio
        return gradient, second - (ratio * d[:, None]).T @ ratio, second


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
        ParameterError: As `kaplan_meier`; covariates that are none.
        RangeError: As `kaplan_meier`; no event; a level without events, a constant or
            redundant covariate, a coefficient without a finite estimate: the column is named.

    Opens: rows; events at each time of each stratum; each covariate's sum over events; then in
    every step, at each time with events, the sum of exp(x'b) over the rows at risk and that of
    exp(x'b) x, and one matrix over all times. If one row leaves between two such times, its
    covariates follow from these sums: a coarser grid of times opens less.

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
    bounds = np.array([t.bound for t in design.terms])
    scaled = {}
    for table in ask.tables:
        x = design.values(values[table.site], sites[table.site].keep)
        scaled[table.site] = _at_risk(sites[table.site], (x - events.centre) / bounds, events)
    model = _Model(ask, design, events, cells, scaled)
    fit = _newton(model)
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
) -> tuple[_Events, int, int]:
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
    events = _Events(
        layer, place, d[layer, place].astype(np.float64), np.array(centre), np.array(rest)
    )
    return events, totals[-2], totals[-1]


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


def _at_risk(rows: SurvivalRows, u: Floats, events: _Events) -> _Site:
    """Keep the rows that are at risk at some event of their stratum, with the last such event."""
    last = np.full(len(rows.index), -1, np.int64)
    for s in np.unique(events.layer).tolist():
        here = np.flatnonzero(events.layer == s)
        mine = rows.codes == s
        seen = np.searchsorted(events.place[here], rows.index[mine], "right")
        last[mine] = np.where(seen > 0, here[0] + seen - 1, -1)
    return _Site(u[last >= 0], last[last >= 0])


def _newton(model: _Model) -> _Fit:
    """Climb from 0 until a step is far below the standard errors."""
    g = np.zeros(len(model.names))
    value, s0, s1 = model.likelihood(g)
    llnull, at_risk, score, history, halved = value, s0, 0.0, list[CoxStep](), 0
    for number in range(MAX_STEPS + 1):
        gradient, information, second = model.derivatives(g, s0, s1)
        if number == 0:
            _refuse_singular(model, information, second)
        try:
            np.linalg.cholesky(information)
        except np.linalg.LinAlgError:
            raise _endless(model, g) from None
        move = np.linalg.solve(information, gradient).astype(np.float64)
        gain = float(gradient @ move)
        score = gain if number == 0 else score
        history.append(CoxStep(value, math.sqrt(max(gain, 0.0)), halved))
        if gain <= _SHIFT**2:
            return _Fit(g, value, information, s0, llnull, score, at_risk, tuple(history))
        if number < MAX_STEPS:
            g, value, s0, s1, halved = _climb(model, g, value, move)
    raise _endless(model, move)


def _climb(
    model: _Model, g: Floats, value: float, move: Floats
) -> tuple[Floats, float, Floats, Floats, int]:
    """Go along a step, half of it, a quarter .. until the likelihood is no smaller."""
    for halved in range(_HALVINGS + 1):
        there = g + move / 2**halved
        if model.predictor(there) > MAX_PREDICTOR:
            if model.predictor(g) > 0.75 * MAX_PREDICTOR:
                raise _endless(model, there)
            continue
        found, s0, s1 = model.likelihood(there)
        if found >= value - 1e-12 * abs(value):
            return there, found, s0, s1, halved
    raise _endless(model, g + move)


def _refuse_singular(model: _Model, information: Floats, second: Floats) -> None:
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


def _endless(model: _Model, direction: Floats) -> RangeError:
    name = model.names[int(np.argmax(np.abs(direction) * model.reach))]
    return RangeError(
        f"covariate {name!r}: its coefficient grows beyond what its agreed bound allows. Either it "
        "tells events from the others at risk without exception (a monotone likelihood): leave it "
        "out, or merge levels. Or the bound is far beyond the values' spread: subtract a typical "
        "value at all sites, take logarithms, or agree on a smaller bound"
    )
