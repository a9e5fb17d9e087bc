"""Axes of tables of counts: a column, and the parts that its values are divided into."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from securecomp.statistics.schema import Schema

Chosen = Callable[[Any], bool]
"""Whether a value belongs to a part of a column."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a table of counts: a column, and the parts that it is divided into."""

    column: str
    parts: tuple[Chosen, ...]


def any_value(value: Any) -> bool:  # noqa: ARG001
    """Return True: all values belong to the whole column."""
    return True


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class LevelPart:
    """One level."""

    level: Any

    def __call__(self, value: Any) -> bool:
        return type(value) is type(self.level) and bool(value == self.level)


@dataclass(frozen=True, slots=True)
class BinPart:
    """Values from `low` to `high`; which of the two belong to it."""

    low: float
    high: float
    closed: tuple[bool, bool]

    def __call__(self, value: Any) -> bool:
        number = _number(value)
        if number is None:
            return False
        above = number > self.low or (self.closed[0] and number == self.low)
        return above and (number < self.high or (self.closed[1] and number == self.high))


@dataclass(frozen=True, slots=True)
class FlagPart:
    """Zero, or one."""

    value: int

    def __call__(self, value: Any) -> bool:
        return _number(value) == self.value


FLAGS = (FlagPart(0), FlagPart(1))


def bin_parts(edges: Sequence[float]) -> tuple[Chosen, ...]:
    """Return the parts of a histogram: bins, below, above."""
    last = len(edges) - 2
    bins = [BinPart(a, b, (True, i == last)) for i, (a, b) in enumerate(pairwise(edges))]
    below = BinPart(-math.inf, edges[0], (True, False))
    above = BinPart(edges[-1], math.inf, (False, True))
    return (*bins, below, above)


def level_axis(schema: Schema, column: str) -> Axis:
    """Return the axis of a categorical column: a part for each level."""
    return Axis(column, tuple(LevelPart(v) for v in schema.levels(column)))
