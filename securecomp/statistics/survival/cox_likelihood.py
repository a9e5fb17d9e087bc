"""Cox's proportional hazards over sites, by Newton's method on sums over the rows at risk.

With u the covariates, centred at their mean over events and divided by a public unit, and w =
exp(u'g), a step needs at each time t with d(t) events (of each stratum)

    S0(t) = sum of w,   S1(t) = sum of w u,   over the rows at risk,
    E0(t) = sum of w,   E1(t) = sum of w u,   over the rows with an event at t,

all of which are opened, the first two as in WebDISCO; they enter by the ratios

    (S1(t) - f E1(t)) / (S0(t) - f E0(t)),   f = 0, 1/d, .., (d - 1)/d:

with Efron's ties, of d events the first to happen met all of them at risk, the last one on average
only itself. With Breslow's all met all, f is 0 and E is not needed; nor is it where d is 1. The
sums S2(t) and E2(t) of w u u' are not opened: once the others are known, the information needs only
their sum over t with known weights, which is linear in the sites' rows, so that one matrix is
opened in place of two for each time.

Source: Cox, JRSS B 34 (1972) 187-220; Breslow, Biometrics 30 (1974) 89-99; Efron, J. Am. Stat.
Assoc. 72 (1977) 557-565; over sites: Lu et al., WebDISCO, J. Am. Med. Inform. Assoc. 22 (2015)
1212-1219.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from securecomp.errors import RangeError
from securecomp.statistics.adder import RealBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.schema import MAX_ROWS

Floats = npt.NDArray[np.float64]
Ties = Literal["efron", "breslow"]
MAX_STEPS = 15
MAX_PREDICTOR = 100.0
"""The linear predictor that the public bounds allow; exp of it is what sums must have room for."""
_SHIFT = 1e-8  # converged: no combination of coefficients moves by so much of its standard error
_SINGULAR = 1e-9  # of a column's information: what the columns before it leave
_NOTHING = 1e-24  # of one event's information, in units of the bound: a constant column
_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class Events:
    """The totals of the first sum.

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
class RiskRows:
    """One site's rows that are ever at risk at an event.

    Attributes:
        u: Covariates.
        last: The last event at which the row is at risk.
        event: Whether that is its own.
    """

    u: Floats
    last: npt.NDArray[np.int64]
    event: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RiskSums:
    """The totals of a step.

    Attributes:
        s0: Sum of exp(u'g) over the rows at risk at each time with events.
        s1: Sum of exp(u'g) u over them, shape (times, covariates).
        e0: Sum of exp(u'g) over the events at each time; 0 where ties do not ask for it.
        e1: Sum of exp(u'g) u over them.
    """

    s0: Floats
    s1: Floats
    e0: Floats
    e1: Floats


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


class PartialLikelihood:
    """The likelihood and its derivatives at any coefficients, each from secure sums."""

    def __init__(
        self,
        ask: Inquiry,
        names: Sequence[str],
        reach: Floats,
        events: Events,
        cells: Sequence[str],
        sites: Mapping[str, RiskRows],
        ties: Ties,
    ) -> None:
        self.ask, self.events, self.sites, self.reach = ask, events, sites, reach
        self.names = list(names)
        starts = np.flatnonzero(np.diff(events.layer, prepend=-1))
        self.ends = [*starts[1:].tolist(), len(events.d)]
        self.starts = starts.tolist()
        d = events.d.astype(np.int64)
        # One ratio for each event of a tied time, and one for all of any other.
        self.tied = np.flatnonzero((d > 1) & (ties == "efron"))
        many = np.where((d > 1) & (ties == "efron"), d, 1)
        self.cell = np.repeat(np.arange(len(d)), many)
        before = np.arange(len(self.cell)) - np.repeat(np.cumsum(many) - many, many)
        self.part = before / events.d[self.cell]
        self.count = (d // many)[self.cell].astype(np.float64)
        every = "in every step: sum of exp(x'b)"
        self.labels = [
            f"{every}{name} over {who} {cells[k]}"
            for who, places in (("rows at risk", range(len(d))), ("events", self.tied.tolist()))
            for name in ("", *(f" {n}" for n in self.names))
            for k in places
        ]
        self.pairs = [(i, j) for i in range(len(self.names)) for j in range(i + 1)]
        who = "rows at risk, less shares of tied events" if len(self.tied) else "rows at risk"
        self.folded = [
            f"{every} {self.names[i]} {self.names[j]} over {who}, times events / sum of exp(x'b), "
            "over all times"
            for i, j in self.pairs
        ]

    def predictor(self, g: Floats) -> float:
        """Return the public bound of |u'g|."""
        return float(np.abs(g) @ self.reach)

    def likelihood(self, g: Floats) -> tuple[float, RiskSums]:
        """Return the partial log likelihood and the sums it is made of: one secure sum."""
        most = self.predictor(g)
        # exp is at least e^-most: so many bits keep the 52 of a double.
        bits = 52 + math.ceil(most / math.log(2))
        parts = {site: self._risk(rows, g) for site, rows in self.sites.items()}
        bound = MAX_ROWS * math.exp(most) * max(1.0, float(self.reach.max())) * (1 + 1e-9)
        (totals,) = self.ask.adder.add(RealBlock(self.labels, bound, bits, parts))
        size, width = len(self.events.d), 1 + len(g)
        at_risk = totals[: width * size].reshape(width, size)
        tied = np.zeros((width, size))
        tied[:, self.tied] = totals[width * size :].reshape(width, -1)
        sums = RiskSums(at_risk[0], at_risk[1:].T, tied[0], tied[1:].T)
        value = float(self.events.total @ g)
        return value - math.fsum(self.count * np.log(self._left(sums))), sums

    def _left(self, sums: RiskSums) -> Floats:
        """Return the denominator of every ratio."""
        left: Floats = sums.s0[self.cell] - self.part * sums.e0[self.cell]
        return left

    def _over_times(self, values: Floats) -> Floats:
        """Add up ratios' values at each time."""
        return np.bincount(self.cell, values, len(self.events.d)).astype(np.float64)

    def hazard(self, sums: RiskSums) -> Floats:
        """Return the increments of the cumulative hazard."""
        return self._over_times(self.count / self._left(sums))

    def _risk(self, rows: RiskRows, g: Floats) -> Floats:
        w = np.exp(rows.u @ g)
        size = len(self.events.d)
        weighted = [w, *(w * column for column in rows.u.T)]
        sums = [np.bincount(rows.last, values, size) for values in weighted]
        for start, end in zip(self.starts, self.ends, strict=True):
            for values in sums:  # who is at risk later was at risk before
                values[start:end] = np.cumsum(values[start:end][::-1])[::-1]
        own = rows.last[rows.event]
        events = [np.bincount(own, v[rows.event], size)[self.tied] for v in weighted]
        return np.concatenate([*sums, *events])

    def derivatives(self, g: Floats, sums: RiskSums) -> tuple[Floats, Floats, Floats]:
        """Return gradient, information, and the part of the latter that is summed: one sum."""
        inverse = self.count / self._left(sums)
        share, own = self._over_times(inverse), self._over_times(inverse * self.part)
        until = np.empty(len(share))
        for start, end in zip(self.starts, self.ends, strict=True):
            until[start:end] = np.cumsum(share[start:end])
        parts = {}
        for site, rows in self.sites.items():
            weight = np.exp(rows.u @ g) * (until[rows.last] - own[rows.last] * rows.event)
            second = rows.u.T @ (rows.u * weight[:, None])
            parts[site] = np.array([second[i, j] for i, j in self.pairs])
        most = math.exp(self.predictor(g)) * float(until.max()) * float(self.reach.max()) ** 2
        bound = MAX_ROWS * most * (1 + 1e-9)
        (folded,) = self.ask.adder.add(RealBlock(self.folded, bound, 64, parts))
        second = np.zeros((len(g), len(g)))
        for (i, j), value in zip(self.pairs, folded, strict=True):
            second[i, j] = second[j, i] = value
        gradient = self.events.total - share @ sums.s1 + own @ sums.e1
        return gradient, second - self._ratios_squared(sums), second

    def _ratios_squared(self, sums: RiskSums) -> Floats:
        """Return the sum of the ratios' outer products with themselves."""
        inverse = self.count / self._left(sums) ** 2
        ss, se, ee = (self._over_times(inverse * self.part**power) for power in (0, 1, 2))
        crossed = (sums.s1 * se[:, None]).T @ sums.e1
        squared: Floats = (sums.s1 * ss[:, None]).T @ sums.s1 - crossed - crossed.T
        return squared + (sums.e1 * ee[:, None]).T @ sums.e1


def climb(model: PartialLikelihood) -> CoxMaximum:
    """Climb from 0 until a step is far below the standard errors."""
    g = np.zeros(len(model.names))
    value, sums = model.likelihood(g)
    llnull, at_risk, score, history, halved = value, sums.s0, 0.0, list[CoxStep](), 0
    for number in range(MAX_STEPS + 1):
        gradient, information, second = model.derivatives(g, sums)
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
