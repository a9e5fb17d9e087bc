"""Cox's proportional hazards over sites: the likelihood, from sums over the rows at risk.

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
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import shown
from securecomp.statistics.adder import IntegerBlock, RealBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.schema import MAX_ROWS

Floats = npt.NDArray[np.float64]
Ties = Literal["efron", "breslow"]
MAX_PREDICTOR = 100.0
"""The linear predictor whose exp sums have room for."""
_PARTS = 8  # of it, each half of the one before, that rows may be agreed to be within
_SPREAD = 2.0**-24  # of a covariate in its unit, squared: sums of less are too coarse
FINEST = 40  # powers of two by which a covariate may be nearer to its centre than its bound


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


class PartialLikelihood:
    """The likelihood and its derivatives at any coefficients, each from secure sums.

    Attributes:
        unit: What each covariate is divided by.
        fine: Whether covariates vary enough in their units for sums to be exact far from 0.
    """

    def __init__(
        self,
        ask: Inquiry,
        names: Sequence[str],
        unit: Floats,
        reach: Floats,
        events: Events,
        cells: Sequence[str],
        sites: Mapping[str, RiskRows],
        ties: Ties,
    ) -> None:
        self.ask, self.events, self.sites = ask, events, sites
        self.unit, self.reach = unit, reach
        self.names = list(names)
        self.fine = False
        self._agreed: tuple[Floats, float] | None = None
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
        """Return a bound of |u'g|: the public one, or one that is agreed on by a secure sum.

        Of covariates that go together, such as a year and its square, the public one may be far
        beyond any row. Then each site adds, for each of a few bounds, whether it has a row beyond
        it; the smallest that no site passes is agreed, or infinity if some site passes each.
        """
        most = math.fsum(np.abs(g) * self.reach)
        if most <= MAX_PREDICTOR or not self.fine:
            return most
        if self._agreed is None or self._agreed[0].tolist() != g.tolist():
            steps = MAX_PREDICTOR * np.ldexp(1.0, -np.arange(_PARTS))
            parts = {}
            for site, rows in self.sites.items():
                furthest = float(np.abs(rows.u @ g).max(initial=0.0))
                parts[site] = [int(furthest > step) for step in steps.tolist()]
            labels = [f"in every step: sites with |x'b| beyond {shown(s)}" for s in steps.tolist()]
            (beyond,) = self.ask.adder.add(IntegerBlock(labels, 1, parts))
            within = steps[np.array(beyond) == 0]
            self._agreed = (g.copy(), float(within.min(initial=math.inf)))
        return self._agreed[1]

    def narrow(self, second: Floats) -> bool:
        """Agree on smaller units where rows turn out to be far within the public bounds.

        Args:
            second: The totals of products, at 0.

        Returns:
            Whether a unit has changed, and with it all totals.
        """
        places = np.flatnonzero(np.diag(second) < _SPREAD * self.events.d.sum()).tolist()
        self.fine = not places
        if not places:
            return False
        furthest = {
            site: np.abs(rows.u).max(axis=0, initial=0.0) * self.unit
            for site, rows in self.sites.items()
        }
        factors = np.minimum(1.0, within(self.ask, self.names, places, self.unit, furthest))
        self.unit = self.unit * factors
        self.reach = np.where(factors < 1, 1.0, self.reach)
        self.events = replace(self.events, total=self.events.total / factors)
        self.sites = {site: replace(rows, u=rows.u / factors) for site, rows in self.sites.items()}
        return bool((factors < 1).any())

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
        value = math.fsum(self.events.total * g)
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


def within(
    ask: Inquiry,
    names: Sequence[str],
    places: Sequence[int],
    bounds: Floats,
    furthest: Mapping[str, Floats],
) -> Floats:
    """Agree on how far covariates are from their centres: one secure sum.

    Each site adds, for each power of two, whether it has a row that is further away.

    Args:
        ask: The inquiry.
        names: Of all covariates.
        places: Which of them it is about.
        bounds: What their distances are compared with.
        furthest: Each site's largest distance of each covariate.

    Returns:
        For each covariate the smallest power of two that, times its bound, no site passes; 2 if
        the bound is passed, and 1 where nothing was asked.
    """
    steps = np.ldexp(2.0, -np.arange(1, FINEST + 1)).tolist()
    parts = {
        site: [int(away[j] > bounds[j] * step) for j in places for step in steps]
        for site, away in furthest.items()
    }
    labels = [
        f"sites with {names[j]} further than {shown(float(bounds[j] * step))} from its mean over "
        "events"
        for j in places
        for step in steps
    ]
    (beyond,) = ask.adder.add(IntegerBlock(labels, 1, parts))
    factors = np.ones(len(names))
    for place, j in enumerate(places):
        passed = np.array(beyond[place * FINEST : (place + 1) * FINEST]) > 0
        factors[j] = 2.0 if passed[0] else float(steps[np.flatnonzero(~passed).max()])
    return factors
