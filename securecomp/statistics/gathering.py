"""What the sites bring to a regression: their rows as columns, and the first secure sum.

Every site's rows are read, and refused if they must be, before anything is sent.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from securecomp.errors import ParameterError
from securecomp.statistics import crossproducts, expressions
from securecomp.statistics.adding import Reals
from securecomp.statistics.crossproducts import Moments, Products
from securecomp.statistics.designs import INTERCEPT, Design
from securecomp.statistics.families import Family
from securecomp.statistics.fitting import Part
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.schema import MAX_ROWS

STEEPEST = 300.0
"""Of a linear predictor whose exp is still summed."""
_BITS = 50


@dataclass(slots=True)
class Gathered:
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
    def of(cls, ask: Inquiry, family: Family, design: Design) -> "Gathered":
        """Read every site's rows, then run the first sum."""
        intercept = INTERCEPT in design.names
        others = [i for i, name in enumerate(design.names) if name != INTERCEPT]
        order = [*([design.names.index(INTERCEPT)] if intercept else []), *others]
        names = tuple(design.names[i] for i in others)
        response = design.response
        if family.name == "linear" and design.offset is not None:
            response = expressions.add(response.text, response, design.offset, -1)
        one = expressions.constant("1", 1)
        columns = [one, *(design.columns[i] for i in others), response]
        grids, heavy = crossproducts.grids_of(columns, design.weights)
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
        more = _exposures(family, design, parts)
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


def _exposures(family: Family, design: Design, parts: Mapping[str, Part]) -> list[Reals]:
    """Return the sum of exp(offset), which gives a Poisson model's constant."""
    if family.name != "poisson" or design.offset is None:
        return []
    largest = float(design.offset.largest)
    if largest > STEEPEST:
        raise ParameterError(
            f"offset {design.offset.text}: by its bound, a row's exposure could be "
            f"e^{largest:.0f}; agree on a smaller bound of the column, and take its logarithm"
        )
    heaviest = 1.0 if design.weights is None else float(design.weights.largest)
    label = f"sum of exp({design.offset.text})"
    values = {
        site: np.array([part.weighted(np.exp(part.offset)).sum()])
        for site, part in parts.items()
        if part.offset is not None
    }
    return [Reals([label], MAX_ROWS * heaviest * math.exp(largest), _BITS, values)]
