"""Cox's proportional hazards over sites, by Newton's method on sums over the rows at risk.

With u the covariates, centred at their mean over events and divided by a public unit, and w =
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

import numpy as np
import numpy.typing as npt

from securecomp.errors import RangeError
from securecomp.statistics.adder import RealBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.regression.covariates import Covariates
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.survival.cox_result import CoxStep

Floats = npt.NDArray[np.float64]
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
    """One site's rows that are ever at risk at an event: covariates, and the last such event."""

    u: Floats
    last: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CoxMaximum:
    """The end point of Newton's method.

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


class PartialLikelihood:
    """The likelihood and its derivatives at any coefficients, each from secure sums."""

    def __init__(
        self,
        ask: Inquiry,
        covariates: Covariates,
        reach: Floats,
        events: Events,
        cells: Sequence[str],
        sites: Mapping[str, RiskRows],
    ) -> None:
        self.ask, self.events, self.sites, self.reach = ask, events, sites, reach
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
        return math.fsum(np.abs(g) * self.reach)

    def likelihood(self, g: Floats) -> tuple[float, Floats, Floats]:
        """Return the partial log likelihood, S0 and S1 (times, covariates): one secure sum."""
        most = self.predictor(g)
        # exp is at least e^-most: so many bits keep the 52 of a double.
        bits = 52 + math.ceil(most / math.log(2))
        parts = {site: self._risk(rows, g) for site, rows in self.sites.items()}
        bound = MAX_ROWS * math.exp(most) * max(1.0, float(self.reach.max())) * (1 + 1e-9)
        (sums,) = self.ask.adder.add(RealBlock(self.labels, bound, bits, parts))
        s0, s1 = sums[: len(self.events.d)], sums[len(self.events.d) :]
        value = math.fsum(self.events.total * g) - math.fsum(self.events.d * np.log(s0))
        return value, s0, s1.reshape(len(g), -1).T

    def _risk(self, rows: RiskRows, g: Floats) -> Floats:
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


def climb(model: PartialLikelihood) -> CoxMaximum:
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
        move, (gain,) = model.ask.agreed("Newton's step", move, [float(gradient @ move)])
        gain = float(gain)
        score = gain if number == 0 else score
        history.append(CoxStep(value, math.sqrt(max(gain, 0.0)), halved))
        if gain <= _SHIFT**2:
            return CoxMaximum(g, value, information, s0, llnull, score, at_risk, tuple(history))
        if number < MAX_STEPS:
            g, value, s0, s1, halved = _step(model, g, value, move)
    raise _endless(model, move)


def _step(
    model: PartialLikelihood, g: Floats, value: float, move: Floats
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
