"""Rows of a Cox regression, and the facts that are agreed on before its first step.

1. Exact sums: events at each time of each stratum, rows with each level, and each covariate over
   events. Levels that no row has are left out; covariates are centred at their means over events.
2. Where such a mean is near the covariate's bound: how far rows are from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import frexp

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, RangeError, brief
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.power_sums import power_sums
from securecomp.statistics.regression import empty_levels
from securecomp.statistics.regression.covariates import Asked, Covariates, levels_alone
from securecomp.statistics.regression.designs import Design
from securecomp.statistics.regression.expressions import Expression, ExpressionRows, Values
from securecomp.statistics.regression.formulas import Category, Factor
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.survival.cox_likelihood import Events, RiskRows, within
from securecomp.statistics.survival.follow_up import SurvivalRows, TimeGrid, integers

Floats = npt.NDArray[np.float64]
_FAR = 0.9  # of its bound: from there on it is agreed how far a covariate is from its centre
_BITS = 80  # of a covariate without a grid


@dataclass(frozen=True, slots=True)
class CoxRows:
    """The input of a fit, after the first sums.

    Attributes:
        covariates: Those that have rows.
        events: The totals over events, in `unit`.
        unit: What each covariate is divided by.
        reach: The largest absolute value of each, centred and in that unit.
        sites: Each site's rows at risk.
        rows: The number of rows.
        rounded: How many of them have a time between times of the grid.
    """

    covariates: Covariates
    events: Events
    unit: Floats
    reach: Floats
    sites: Mapping[str, RiskRows]
    rows: int
    rounded: int

    @classmethod
    def gather(
        cls,
        ask: Inquiry,
        grid: TimeGrid,
        asked: Asked,
        design: Design,
        outer: tuple[str, ...],
        layers: Sequence[str],
    ) -> "CoxRows":
        """Read every site's rows, then run the first sum, and a second where it is needed.

        Args:
            ask: The inquiry.
            grid: The times.
            asked: The covariates as they were asked for.
            design: All columns of them.
            outer: The strata's column, or none.
            layers: The strata's names.

        Raises:
            RangeError: A site's value that cannot be; it is named and nothing is sent. No event; a
                level without events.
        """
        found = {
            t.site: grid.rows(ask, t, outer, design.numeric, design.categorical) for t in ask.tables
        }
        read = {t.site: ExpressionRows(t, ask.schema, found[t.site].keep) for t in ask.tables}
        values = {site: [rows.values(c) for c in design.columns] for site, rows in read.items()}
        counts, sizes, sums = _first_sum(ask, grid, design, layers, found, values)
        *happened, rows, rounded = counts
        d = np.array(happened, np.int64).reshape(len(layers), grid.size)
        number = int(d.sum())
        if number == 0:
            raise RangeError(
                f"column {grid.event!r}: no site has an event up to the last time, so that there "
                "is nothing to fit"
            )
        empty = empty_levels.find(design, sizes, rows, constant=True)
        covariates = Covariates.of(asked, design, ask.schema, empty)
        left = empty.left(design)
        if not left.names:
            raise ParameterError(f"no covariate is left: {'; '.join(empty.words)}")
        _refuse_without_events(left, sums, number)
        exact = [sums[name] for name in left.names]
        centre = [float(s / number) for s in exact]
        bounds = np.array([float(c.largest) for c in left.columns])
        rest = [
            float((s - number * Fraction(c)) / Fraction(b))
            for s, c, b in zip(exact, centre, bounds.tolist(), strict=True)
        ]
        layer, place = np.nonzero(d)
        happened_at = d[layer, place].astype(np.float64)
        events = Events(layer, place, happened_at, np.array(centre), np.array(rest))
        x = {site: np.column_stack([r.floats(c) for c in left.columns]) for site, r in read.items()}
        unit, reach, events = _agree_reach(ask, left, bounds, events, x)
        sites = {
            site: _at_risk(found[site], (part - events.centre) / unit, events)
            for site, part in x.items()
        }
        return cls(covariates, events, unit, reach, sites, rows, rounded)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A covariate as whole multiples of a unit: its own, or one too fine to matter."""

    unit: Fraction
    limit: int
    own: bool

    @classmethod
    def of(cls, column: Expression) -> "_Whole":
        if column.unit is not None:
            return cls(column.unit, column.units, True)
        unit = Fraction(2) ** (frexp(float(column.largest))[1] - _BITS)
        return cls(unit, int(Fraction(float(column.largest)) / unit) + 1, False)

    def total(self, values: Values) -> int:
        """Return the exact sum of values that are in the unit, or are floats."""
        if self.own:
            return power_sums(values, np.zeros(len(values), np.int64), 1, 1)[0]
        exponent = -(self.unit.numerator.bit_length() - self.unit.denominator.bit_length())
        return sum(map(int, np.rint(np.ldexp(values, exponent)).tolist()))


def _first_sum(
    ask: Inquiry,
    grid: TimeGrid,
    design: Design,
    layers: Sequence[str],
    found: Mapping[str, SurvivalRows],
    values: Mapping[str, Sequence[Values]],
) -> tuple[list[int], dict[str, int], dict[str, Fraction]]:
    """Add up events, rows with each level, and covariates over events.

    Returns:
        Events at each time of each stratum, rows, and rows whose times were rounded; the rows in
        which each column that has to do with levels is not 0; and each covariate's sum over events.
    """
    sized = [design.names.index(name) for name in empty_levels.sized(design)]
    whole = [_Whole.of(column) for column in design.columns]
    parts: dict[str, list[int]] = {}
    sums: list[dict[str, list[int]]] = [{} for _ in whole]
    for site, rows in found.items():
        happened = rows.tally(grid.size + 1, rows.event)[:, : grid.size]
        sizes = [int(np.count_nonzero(values[site][j])) for j in sized]
        parts[site] = [*integers(happened), *sizes, len(rows.index), rows.rounded]
        for part, column, one in zip(sums, values[site], whole, strict=True):
            part[site] = [one.total(column[rows.event])]
    labels = [f"events at {t} {layer}".strip() for layer in layers for t in grid.names()]
    cut = len(labels)
    labels += [_rows_label(design, design.names[j]) for j in sized]
    blocks = [IntegerBlock([*labels, "rows", grid.rounded_label], MAX_ROWS, parts)]
    for name, one, part in zip(design.names, whole, sums, strict=True):
        what = "number of" if levels_alone(design.parts[name]) else "sum of"
        blocks.append(IntegerBlock([f"{what} {name} over events"], MAX_ROWS * one.limit, part))
    totals, *over = ask.adder.add(*blocks)
    counted = {design.names[j]: n for j, n in zip(sized, totals[cut:-2], strict=True)}
    summed = [Fraction(total) * one.unit for (total,), one in zip(over, whole, strict=True)]
    return [*totals[:cut], *totals[-2:]], counted, dict(zip(design.names, summed, strict=True))


def _rows_label(design: Design, name: str) -> str:
    alone = levels_alone(design.parts[name])
    return f"rows with {name}" if alone else f"rows in which {name} is not 0"


def _refuse_without_events(design: Design, sums: Mapping[str, Fraction], events: int) -> None:
    """Refuse levels, and combinations of them, that have rows but no events."""
    for name in design.names:
        if levels_alone(design.parts[name]) and not sums[name]:
            raise _without_events(name, design.parts[name])
    for reference, others in design.references.items():
        if others and sum(sums[name] for name in others) == events:
            ((factor, _),) = design.parts[others[0]]
            if isinstance(factor, Category):
                (place,) = (i for i in range(len(factor.levels)) if factor.called(i) == reference)
                raise _without_events(reference, [(factor, place)])


def _without_events(name: str, parts: Sequence[tuple[Factor, int | None]]) -> RangeError:
    where = f"covariate {brief(name)!r}"
    for factor, place in parts if len(parts) == 1 else ():
        if isinstance(factor, Category) and place is not None:
            where = f"column {factor.column!r}: level {factor.names[place]}"
    return RangeError(
        f"{where} has no events, so that its hazard ratio is 0 or not known; merge it with another "
        "level, or leave out its rows"
    )


def _agree_reach(
    ask: Inquiry,
    design: Design,
    bounds: Floats,
    events: Events,
    rows: Mapping[str, Floats],
) -> tuple[Floats, Floats, Events]:
    """Agree on how far covariates are from their centre; one more sum where that is unclear.

    A number is within its bound, and so within twice the bound of its centre. Of a calendar year
    that says nothing: where the centre is near the bound, `within` is asked.

    Returns:
        For each covariate its unit, and the largest absolute value in that unit once it is
        centred; and the events with totals in these units.
    """
    low = np.array([float(c.low) for c in design.columns]) / bounds
    high = np.array([float(c.high) for c in design.columns]) / bounds
    binary = np.array([c.binary for c in design.columns])
    centre = events.centre / bounds
    reach = np.maximum(high - centre, centre - low)
    far = np.flatnonzero(~binary & (np.abs(centre) > _FAR)).tolist()
    if not far:
        return bounds, reach, events
    furthest = {s: np.abs(x - events.centre).max(axis=0, initial=0.0) for s, x in rows.items()}
    factors = within(ask, design.names, far, bounds, furthest)
    reach[far] = 1.0
    return bounds * factors, reach, replace(events, total=events.total / factors)


def _at_risk(rows: SurvivalRows, u: Floats, events: Events) -> RiskRows:
    """Keep the rows that are at risk at some event of their stratum, with the last such event."""
    last = np.full(len(rows.index), -1, np.int64)
    for s in np.unique(events.layer).tolist():
        here = np.flatnonzero(events.layer == s)
        mine = rows.codes == s
        seen = np.searchsorted(events.place[here], rows.index[mine], "right")
        last[mine] = np.where(seen > 0, here[0] + seen - 1, -1)
    kept = last >= 0
    return RiskRows(u[kept], last[kept], rows.event[kept])
