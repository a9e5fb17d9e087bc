"""Coarser values of columns, which make groups larger. Each is tried on the data.

Whether a coarser column is still of use matters as much. Only the users of the data can tell.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.audit.reidentification.equivalence import Coded, Codes, Groups

_WIDTHS = 3
"""Number of interval widths that are tried on a column of numbers."""
_FEWEST = 4
"""Fewest intervals of a column, with the widest width."""

_NARROWEST = 1e-290
"""Least span of a column: smaller widths would be subnormal floats."""

_CODES = 10
"""Number of values from which text of one length is taken for codes, such as postal codes."""


@dataclass(frozen=True, slots=True)
class Coarsening:
    """A coarser form of one column, or of several at once.

    Attributes:
        column: Name of the column; `TOGETHER` for several.
        how: Description of the coarser form.
        values: Number of distinct values that are left.
        people: Number of people who stand alone afterwards.
    """

    column: str
    how: str
    values: int
    people: int


def coarsenings(
    groups: Groups, minimum: int, report: Callable[[int, int], None]
) -> tuple[Coarsening, ...]:
    """Try coarser forms of each column alone, and then the best of each together.

    Numbers are cut into intervals, dates to months and years, and text to its first letters. Values
    of fewer than `minimum` rows are taken together.
    """
    tried = [(i, *step) for i, c in enumerate(groups.columns) for step in _steps(c, minimum)]
    found: list[Coarsening] = []
    most: dict[int, tuple[Coarsening, Codes]] = {}
    for done, (place, how, places) in enumerate(tried, 1):
        parts = list(groups.codes)
        parts[place] = places[parts[place]]
        people = groups.count(groups.alone(parts))
        step = Coarsening(groups.columns[place].name, how, int(places.max(initial=0)), people)
        best = most.get(place)
        # Of equal gains, take the one that keeps more values.
        if best is None or (people, -step.values) < (best[0].people, -best[0].values):
            most[place] = (step, places)
        found.append(step)
        report(done, len(tried) + 1)
    if len(most) > 1:
        parts = [most[i][1][c] if i in most else c for i, c in enumerate(groups.codes)]
        how = "; ".join(f"{step.column}: {step.how}" for step, _ in most.values())
        left = sum(step.values for step, _ in most.values())
        found.append(Coarsening(TOGETHER, how, left, groups.count(groups.alone(parts))))
    return tuple(found)


TOGETHER = "the best of each"


def _steps(column: Coded, minimum: int) -> list[tuple[str, Codes]]:
    """Return coarser forms, each with a description and the new code of each code."""
    values = column.values
    if len(values) < 3:
        return []
    steps = []
    if all(isinstance(v, Real | Decimal) and not isinstance(v, bool) for v in values):
        steps = _intervals(np.array(values, np.float64))
    elif all(isinstance(v, date) for v in values):
        steps = [
            ("month and year", _grouped([(v.year, v.month) for v in values])),
            ("year", _grouped([v.year for v in values])),
        ]
    else:
        steps = _beginnings(values)
        rare = np.bincount(column.codes, minlength=len(values) + 1)[1:] < minimum
        kept = [-1 if few else place for place, few in enumerate(rare.tolist())]
        steps.append((f"values of fewer than {minimum} rows as one", _grouped(kept)))
    left = [(how, places, int(places.max())) for how, places in steps]
    # Of forms that keep equally many values, only the finest is tried.
    first = {kept: (how, places) for how, places, kept in reversed(left)}
    return [
        (how, places)
        for how, places, kept in left
        if 1 < kept < len(values) and how == first[kept][0]
    ]


def _grouped(labels: list[Any]) -> Codes:
    """Return codes of labels, after a 0 for an empty cell."""
    places: dict[Any, int] = {}
    return np.array([0, *(places.setdefault(label, len(places)) + 1 for label in labels)], np.int64)


def _intervals(numbers: npt.NDArray[np.float64]) -> list[tuple[str, Codes]]:
    span = float(numbers.max()) - float(numbers.min())
    if not _NARROWEST < span < math.inf:
        return []
    widths: list[float] = []
    power = math.floor(math.log10(span / _FEWEST))
    for exponent in range(power, power - 3, -1):
        widths += [lead * 10.0**exponent for lead in (5, 2, 1)]
    fitting = [w for w in widths if w <= span / _FEWEST][:_WIDTHS]
    steps = []
    for width in sorted(fitting):
        # A number that rounding put a hair below a border belongs above it.
        places = np.unique(np.floor(numbers / width + 1e-9), return_inverse=True)[1] + 1
        steps.append((f"in intervals of {width:g}", np.append(0, places)))
    return steps


def _beginnings(texts: tuple[Any, ...]) -> list[tuple[str, Codes]]:
    """Return coarser forms of codes of one length, such as postal codes and diagnoses."""
    if not all(isinstance(text, str) for text in texts):
        return []
    length = len(texts[0])
    if length < 2 or len(texts) < _CODES or any(len(text) != length for text in texts):
        return []
    kept = sorted({length - 1, max(1, length - 2)}, reverse=True)
    return [
        (f"first {n} of {length} letters", _grouped([text[:n] for text in texts])) for n in kept
    ]
