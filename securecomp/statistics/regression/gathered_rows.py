"""Rows of the sites as a regression's columns, and the first secure sum.

Every site's rows are read, and refused if they must be, before anything is sent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from securecomp.errors import ParameterError, brief
from securecomp.statistics.adder import IntegerBlock, RealBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.regression import cross_products, empty_levels, expressions
from securecomp.statistics.regression.cross_products import ColumnGrid, Products, ProductTotals
from securecomp.statistics.regression.designs import INTERCEPT, Design
from securecomp.statistics.regression.empty_levels import UnseenCell
from securecomp.statistics.regression.families import Family
from securecomp.statistics.regression.fitting import SitePart
from securecomp.statistics.schema import MAX_ROWS

STEEPEST = 300.0
"""Of a linear predictor whose exp is still summed."""
_BITS = 50
_WIDE = 100  # columns; of more, rows are counted before there are products


@dataclass(slots=True)
class GatheredRows:
    """The input of a fit, after the first sum.

    Attributes:
        ask: The inquiry.
        family: The distribution.
        design: The columns.
        names: The columns beside the intercept, in order.
        intercept: Whether there is one.
        parts: What each site has.
        moments: The first sum's totals.
        offsets: Weighted sum of the offset for logistic, of exp(offset) for poisson; 0 without.
        order: Where each coefficient of (intercept, others) is in the design.
        moved: What `centre` has subtracted from the offset.
        left_out: What was done about levels without rows, in words.
        unseen: Levels, and combinations of levels, that no row has.
    """

    ask: Inquiry
    family: Family
    design: Design
    names: tuple[str, ...]
    intercept: bool
    parts: dict[str, SitePart]
    moments: ProductTotals
    offsets: float
    order: list[int]
    moved: float = 0.0
    left_out: tuple[str, ...] = ()
    unseen: tuple[UnseenCell, ...] = ()

    @classmethod
    def of(cls, ask: Inquiry, family: Family, design: Design) -> "GatheredRows":
        """Read every site's rows, then run the first sum.

        Raises:
            ParameterError: Fewer rows than coefficients; of a wide design, before its products.
            RangeError: A site's value that cannot be; it is named and nothing is sent.
        """
        intercept = INTERCEPT in design.names
        others = [i for i, name in enumerate(design.names) if name != INTERCEPT]
        order = [*([design.names.index(INTERCEPT)] if intercept else []), *others]
        names = tuple(design.names[i] for i in others)
        response = design.response
        if family.name == "linear" and design.offset is not None:
            response = expressions.add(response.text, response, design.offset, -1)
        one = expressions.constant("1", 1)
        columns = [one, *(design.columns[i] for i in others), response]
        grids, heavy = cross_products.grids_of(columns, design.weights)
        what = Products(
            names,
            design.response_name if response is design.response else f"{response.text} less offset",
            design.weights.text if design.weights is not None else "",
            grids,
            heavy,
            family.name == "linear",
        )
        # Columns stay integers where they have a grid: far from zero their floats have few digits.
        stepped = [ColumnGrid(Fraction(1), g.limit, True) if g.exact else g for g in grids[1:-1]]
        stepped = [grids[0], *stepped, grids[-1]]
        blocks, counts, parts = {}, {}, {}
        for table in ask.tables:
            rows = design.rows(table, ask.schema, ask.missing)
            block = np.empty((rows.count, len(columns)), np.float64, "F")
            for i, column in enumerate(columns):
                whole = grids[i].exact and 0 < i < len(columns) - 1
                block[:, i] = rows.values(column) if whole else rows.floats(column)
            family.check(rows, design.response_name, block[:, -1])
            weight = shift = None
            if design.weights is not None:
                weight = rows.floats(design.weights)
                none = weight <= 0 if family.name == "linear" else weight < 0
                low = "is not above 0" if family.name == "linear" else "is negative"
                rows.refuse(none, f"weights {design.weights.text}", f"{low}; correct it")
            if design.offset is not None:
                shift = rows.floats(design.offset)
            blocks[table.site] = block
            counts[table.site] = rows.count
            start = 0 if intercept else 1
            own_shift = None if family.name == "linear" else shift
            parts[table.site] = SitePart(block[:, start:-1], block[:, -1], weight, own_shift)
        more = _offsets(family, design, parts)
        if len(order) > _WIDE:
            rows_ = ask.adder.add(
                IntegerBlock(["rows"], MAX_ROWS, {s: [n] for s, n in counts.items()})
            )
            _enough(rows_[0][0], len(order), family)
        sums = {
            site: cross_products.products(block, stepped, parts[site].weights, heavy)
            for site, block in blocks.items()
        }
        moments, totals = cross_products.add_products(ask, what, sums, counts, *more)
        _enough(moments.rows, len(order), family)
        offsets = float(totals[0][0]) if more else 0.0
        found = cls(ask, family, design, names, intercept, parts, moments, offsets, order)
        found._leave_out_empty_levels()
        return found

    def _leave_out_empty_levels(self) -> None:
        """Drop what `empty_levels` finds."""
        m = self.moments
        sizes = {name: m.squares[i, i] for i, name in enumerate(self.names)}
        found = empty_levels.find(self.design, sizes, m.weight)
        self.left_out, self.unseen = found.words, found.unseen
        if found.gone:
            self.design = found.left(self.design)
            self._keep([i for i, name in enumerate(self.names) if name not in found.gone])

    def _keep(self, places: Sequence[int]) -> None:
        """Go on with some of the columns beside the intercept."""
        m, first = self.moments, int(self.intercept)
        at = np.array(places, np.int64)
        self.names = tuple(self.names[i] for i in places)
        self.moments = replace(
            m,
            sums=m.sums[at],
            squares=m.squares[np.ix_(at, at)],
            with_response=m.with_response[at],
            units=m.units[at],
            rounding=m.rounding[at],
        )
        columns = np.array([*range(first), *(at + first)], np.int64)
        for part in self.parts.values():
            part.z = np.asfortranarray(part.z[:, columns])
        names = self.design.names
        self.order = [names.index(n) for n in (*((INTERCEPT,) if first else ()), *self.names)]

    @property
    def shift(self) -> float:
        """No absolute offset is more, as the family sees it."""
        if self.design.offset is None or self.family.name == "linear":
            return 0.0
        low, high = float(self.design.offset.low), float(self.design.offset.high)
        return max(abs(low - self.moved), abs(high - self.moved))

    @property
    def extreme(self) -> bool:
        """Whether every response is the least, or for logistic the largest, that there is."""
        m = self.moments
        largest = self.family.name == "logistic" and m.response == m.weight
        return self.family.name != "linear" and bool(m.response == 0 or largest)

    @property
    def constant(self) -> float:
        """The predictor of a constant alone, beside the offset; about that for logistic."""
        weight = float(self.moments.weight)
        if self.family.name == "poisson" and self.offsets:
            response = weight if self.extreme else float(self.moments.response)
            return math.log(response / self.offsets)
        beside = self.offsets / weight - self.moved if self.offsets else 0.0
        return (0.0 if self.extreme else self.family.predictor(self.mean)) - beside

    def centre(self) -> None:
        """Subtract the offset's mean from it, for logistic: beside a constant it says nothing.

        With all offsets of 40 no row would have a weight where the constant is 0.
        """
        if self.family.name != "logistic" or not self.offsets:
            return
        self.moved = self.offsets / float(self.moments.weight)
        for part in self.parts.values():
            if part.offset is not None:
                part.offset = part.offset - self.moved

    @property
    def mean(self) -> float:
        """The response's weighted mean."""
        return float(self.moments.response / self.moments.weight)


def _enough(rows: int, size: int, family: Family) -> None:
    if not rows:
        raise ParameterError(
            "no site has a row to fit a model to; check the files, and whether each row lacks one "
            'of the columns, where missing="drop" leaves it out'
        )
    if rows < size + (family.name == "linear"):
        raise ParameterError(
            f"{rows} rows do not determine {size} coefficients; use fewer columns, or more rows"
        )


def _offsets(family: Family, design: Design, parts: Mapping[str, SitePart]) -> list[RealBlock]:
    """Return the sum from which a constant beside the offset is found, or about found."""
    if family.name == "linear" or design.offset is None:
        return []
    largest = float(design.offset.largest)
    heaviest = 1.0 if design.weights is None else float(design.weights.largest)
    if family.name == "logistic":
        label = "sum of " + (f"{design.weights.text} * " if design.weights else "")
        values = {
            site: np.array([part.weighted(part.offset).sum()])
            for site, part in parts.items()
            if part.offset is not None
        }
        bits = max(0, _BITS - math.frexp(largest)[1])
        label += design.offset.text
        return [RealBlock([label], MAX_ROWS * heaviest * largest, bits, values)]
    if largest > STEEPEST:
        raise ParameterError(
            f"offset {brief(design.offset.text)}: by its bound, a row's exposure could be "
            f"e^{largest:.0f}; agree on a smaller bound of the column, and take its logarithm"
        )
    label = f"sum of exp({design.offset.text})"
    values = {
        site: np.array([part.weighted(np.exp(part.offset)).sum()])
        for site, part in parts.items()
        if part.offset is not None
    }
    bound = MAX_ROWS * heaviest * math.exp(largest)
    # Exposures may all be as small as exp(-largest), and their logarithm counts.
    bits = min(_BITS + math.ceil(largest / math.log(2)), 1000 - math.frexp(bound)[1])
    return [RealBlock([label], bound, bits, values)]
