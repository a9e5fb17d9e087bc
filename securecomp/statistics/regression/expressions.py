"""Row by row arithmetic on columns, with what everybody knows of it beforehand.

An `Expression` knows, from the agreed bounds and grids of its columns alone, an interval that holds
its values at every site, and, where it has one, the unit that they are whole multiples of. Values
with a unit are computed as integers, exactly. A positive value on a grid is at least one unit, so
that even a logarithm has a bound; a site refuses a row where it does not exist.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import to_floats
from securecomp.errors import ParameterError, RangeError, brief
from securecomp.statistics.cell_values import Mask
from securecomp.statistics.measures import group_codes
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Table

Values = npt.NDArray[Any]
"""int64 multiples of the expression's unit, or float64 where it has none."""
Real = Any
"""A Fraction where there is a unit, else a float."""

_LARGEST = 1e300
_ROOM = 1 << 62  # of integers on the way
_SLACK = 1e-9  # relative; for what rounding may add to an interval


@dataclass(slots=True)
class ExpressionRows:
    """The rows of one site that are used, as expressions read them.

    Attributes:
        table: The site's rows.
        schema: What was agreed.
        kept: The rows that are used.
    """

    table: Table
    schema: Schema
    kept: Mask
    _known: dict[int, Values] = field(default_factory=dict)
    _codes: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.kept.sum())

    def numbers(self, column: str) -> npt.NDArray[Any]:
        """Return a column's values on its grid, in units."""
        values = self.table.numbers(column).values
        grid = self.schema.grid(column)
        return np.asarray(grid.encode(values, self.table.where(column), "row")[self.kept])

    def codes(self, column: str) -> npt.NDArray[np.int64]:
        """Return the places of a column's values among the agreed levels."""
        if column not in self._codes:
            codes, _ = group_codes(self.table, self.schema, (column,))
            self._codes[column] = codes[self.kept]
        return self._codes[column]

    def values(self, expression: "Expression") -> Values:
        """Return an expression's values, computed once."""
        if id(expression) not in self._known:
            self._known[id(expression)] = expression.compute(self)
        return self._known[id(expression)]

    def floats(self, expression: "Expression") -> npt.NDArray[np.float64]:
        """Return an expression's values in its own unit, as floats."""
        values = self.values(expression)
        if expression.unit is None:
            return np.asarray(values)
        unit = expression.unit
        # One rounding each, so that 0.1 is the float 0.1.
        scaled = values.astype(np.float64)
        if max(unit.numerator, unit.denominator) > 1 << 53:
            if unit > _LARGEST:
                raise ParameterError(f"{brief(expression.text)} has numbers beyond {_LARGEST:g}")
            with np.errstate(over="ignore"):
                return np.asarray(scaled * float(unit))
        return np.asarray(scaled * float(unit.numerator) / float(unit.denominator))

    def refuse(self, wrong: Mask, text: str, why: str) -> None:
        """Refuse rows.

        Raises:
            RangeError: It names the first of them.
        """
        if wrong.any():
            row = int(np.flatnonzero(self.kept)[int(np.argmax(wrong))]) + 1
            more = int(wrong.sum()) - 1
            rest = f" (and {more} more)" if more else ""
            raise RangeError(f"{self.table.source}: {brief(text)}: row {row}{rest} {why}")


@dataclass(frozen=True, slots=True)
class Expression:
    """A computation on each row.

    Attributes:
        text: As the formula has it.
        low: No value is less, unless a site refuses it; -inf if nothing is known.
        high: No value is more; inf if nothing is known.
        unit: Values are whole multiples of it; None if they have no grid.
        compute: One site's values, shape (rows,).
    """

    text: str
    low: Real
    high: Real
    unit: Fraction | None
    compute: Callable[[ExpressionRows], Values]

    @property
    def largest(self) -> Real:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def units(self) -> int:
        """The largest absolute value in units; for an expression that has one."""
        return math.ceil(self.largest / self.unit) if self.unit else 0

    @property
    def binary(self) -> bool:
        """Whether its values are 0 and 1."""
        return self.unit == 1 and self.low >= 0 and self.high <= 1

    def least(self) -> Real:
        """Return what no positive value is less than; 0 if nothing is known."""
        return max(self.low, self.unit or 0)


def _inexact(
    text: str, low: Real, high: Real, compute: Callable[[ExpressionRows], Values]
) -> Expression:
    low, high = _float(low, -math.inf), _float(high, math.inf)
    low, high = low - _SLACK * abs(low), high + _SLACK * abs(high)

    def finite(rows: ExpressionRows) -> Values:
        with np.errstate(all="ignore"):
            values = np.asarray(compute(rows))
        rows.refuse(~np.isfinite(values), text, "has no finite value; correct it")
        return values

    return Expression(text, low, high, None, finite)


def _float(value: Real, unknown: float) -> float:
    """Return an end of an interval; infinity for an open one."""
    try:
        number = float(value)
    except OverflowError:
        return unknown
    return unknown if math.isnan(number) else number


def _end(value: Real) -> float:
    """Return an end of an interval as a float; beyond all floats, infinity of its sign."""
    return _float(value, math.inf if value > 0 else -math.inf)


def _ends(values: list[Real]) -> tuple[Real, Real]:
    """Return the least and the largest; infinite where something is not known."""
    if any(v != v for v in values):
        return -math.inf, math.inf
    return min(values), max(values)


def column(schema: Schema, name: str) -> Expression:
    """Return a numeric column."""
    grid = schema.grid(name)
    unit, bound = Fraction(1, grid.scale), Fraction(grid.limit, grid.scale)
    if grid.limit < _ROOM:
        return Expression(name, -bound, bound, unit, lambda rows: rows.numbers(name))
    return _inexact(name, -bound, bound, lambda rows: to_floats(rows.numbers(name), grid.scale))


def constant(text: str, value: int | float | bool) -> Expression:
    """Return a number."""
    if not abs(value) < _LARGEST:  # nor NaN
        raise ParameterError(
            f"{brief(text)} is no number that a formula can hold, which are below {_LARGEST:g}"
        )
    exact = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(int(value))
    sign = 0 if not exact else 1 if exact > 0 else -1
    return Expression(
        text, exact, exact, abs(exact) or Fraction(1), lambda rows: np.full(rows.count, sign)
    )


def indicator(text: str, name: str, place: int) -> Expression:
    """Return whether a categorical column has the level at this place, as 0 and 1."""

    def compute(rows: ExpressionRows) -> Values:
        return np.asarray(rows.codes(name) == place, np.int64)

    return Expression(text, Fraction(0), Fraction(1), Fraction(1), compute)


def _common(a: Expression, b: Expression, largest: Real) -> Fraction | None:
    """Return the unit of a sum, if integers have room for it."""
    if a.unit is None or b.unit is None:
        return None
    below = a.unit.denominator * b.unit.denominator
    unit = Fraction(
        math.gcd(a.unit.numerator * b.unit.denominator, b.unit.numerator * a.unit.denominator),
        below,
    )
    return unit if max(a.largest, b.largest, largest) / unit < _ROOM else None


def _plus(a: Real, b: Real) -> Real:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    return _end(a) + _end(b)


def add(text: str, a: Expression, b: Expression, sign: int = 1) -> Expression:
    """Return a + b, or a - b with sign -1."""
    first, last = (b.low, b.high) if sign > 0 else (-b.high, -b.low)
    low, high = _plus(a.low, first), _plus(a.high, last)
    unit = _common(a, b, max(abs(low), abs(high)))
    if unit is None:
        return _inexact(text, low, high, lambda rows: rows.floats(a) + sign * rows.floats(b))
    left, right = _factor(a, unit), sign * _factor(b, unit)
    return Expression(
        text, low, high, unit, lambda rows: left * rows.values(a) + right * rows.values(b)
    )


def _factor(a: Expression, unit: Fraction) -> int:
    """Return what integers of an expression are multiplied by to be in a smaller unit."""
    # One that is 0 in every row leaves no bound of the quotient.
    return int(a.unit / unit) if a.unit is not None and a.largest >= a.unit else 0


def _times(a: Real, b: Real) -> Real:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    return _end(a) * _end(b)


def multiply(text: str, a: Expression, b: Expression) -> Expression:
    """Return a b."""
    low, high = _ends([_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)])
    if a.unit is None or b.unit is None or a.units * b.units >= _ROOM:
        return _inexact(text, low, high, lambda rows: rows.floats(a) * rows.floats(b))
    return Expression(
        text, low, high, a.unit * b.unit, lambda rows: rows.values(a) * rows.values(b)
    )


def _quotient(a: Real, b: Real) -> float:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return _float(a / b, math.inf)
    below = _end(b)
    return _float(a, math.inf) / below if below else math.inf


def divide(text: str, a: Expression, b: Expression) -> Expression:
    """Return a / b; a site refuses a row where b is 0."""
    if b.low == b.high and b.low and isinstance(b.low, Fraction):
        by = 1 / b.low
        sign = 1 if by > 0 else -1
        inverse = Expression(b.text, by, by, abs(by), lambda rows: np.full(rows.count, sign))
        return multiply(text, a, inverse)
    least = b.low if b.low > 0 else -b.high if b.high < 0 else (b.unit or 0)
    most = _quotient(a.largest, least) if least else math.inf
    low = 0.0 if a.low >= 0 and b.low >= 0 else -most

    def compute(rows: ExpressionRows) -> Values:
        below = rows.floats(b)
        rows.refuse(below == 0, text, "divides by 0; correct it")
        return rows.floats(a) / below

    return _inexact(text, low, most, compute)


def power(text: str, a: Expression, exponent: Fraction) -> Expression:
    """Return a to a constant power.

    Raises:
        ParameterError: The exponent is too large, or no base has such a power.
    """
    if abs(exponent) > 64:
        raise ParameterError(f"{brief(text)}: exponents are from -64 to 64")
    if exponent.denominator == 1 and exponent >= 0:
        found = constant("1", 1)
        times = int(exponent)
        for _ in range(times):
            found = multiply(f"({a.text})**..", found, a)  # not looked up: computed below
        low = Fraction(0) if exponent % 2 == 0 else found.low
        if found.unit is None:
            return _inexact(text, low, found.high, lambda rows: rows.floats(a) ** times)
        return Expression(text, low, found.high, found.unit, lambda rows: rows.values(a) ** times)
    if exponent.denominator == 1:
        return divide(text, constant("1", 1), power(f"{a.text}**{-exponent}", a, -exponent))
    least = _positive(text, a, strictly=exponent < 0)
    raised = float(exponent)
    ends = _ends([_raised(_float(v, math.inf), raised) for v in (least, max(least, a.high))])

    def compute(rows: ExpressionRows) -> Values:
        base = rows.floats(a)
        rows.refuse(base < 0, text, "takes a root of a negative number; correct it")
        rows.refuse((base == 0) & (raised < 0), text, "divides by 0; correct it")
        return np.asarray(base**raised)

    return _inexact(text, ends[0], ends[1], compute)


def _raised(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except (OverflowError, ZeroDivisionError):
        return math.inf


def _positive(text: str, a: Expression, *, strictly: bool) -> Real:
    """Return what no value that exists is less than."""
    if a.high < 0 or (strictly and a.high <= 0):
        raise ParameterError(f"{brief(text)}: by the columns' bounds it exists for no row")
    return a.least() if strictly else max(a.low, Fraction(0))


def _increasing(function: Any, inside: float = -math.inf, strictly: bool = False) -> Any:
    """Return the maker of a function that grows where it exists, which is beyond `inside`."""

    def make(text: str, a: Expression) -> Expression:
        low, high = a.low, a.high
        if math.isfinite(inside):
            shifted = add(f"{a.text} - {inside}", a, constant("", -inside))
            low = _positive(text, shifted, strictly=strictly) + Fraction(int(inside))

        def compute(rows: ExpressionRows) -> Values:
            values = rows.floats(a)
            outside = values <= inside if strictly else values < inside
            than = f"not more than {inside:g}" if strictly else f"less than {inside:g}"
            rows.refuse(outside, text, f"has an argument {than}; correct it")
            return np.asarray(function(values))

        with np.errstate(all="ignore"):
            ends = [function(_end(v)) for v in (low, high)]
        return _inexact(text, float(ends[0]), float(ends[1]), compute)

    return make


def _absolute(text: str, a: Expression) -> Expression:
    low = max(a.low, -a.high, Fraction(0))
    return Expression(text, low, a.largest, a.unit, lambda rows: np.abs(rows.values(a)))


FUNCTIONS: Mapping[str, Callable[[str, Expression], Expression]] = {
    "I": lambda text, a: Expression(text, a.low, a.high, a.unit, a.compute),
    "abs": _absolute,
    "exp": _increasing(np.exp),
    "expm1": _increasing(np.expm1),
    "log": _increasing(np.log, 0, strictly=True),
    "log10": _increasing(np.log10, 0, strictly=True),
    "log1p": _increasing(np.log1p, -1, strictly=True),
    "log2": _increasing(np.log2, 0, strictly=True),
    "sqrt": _increasing(np.sqrt, 0),
}
"""What a formula may call; each acts on a row alone."""


def compare(text: str, a: Expression, b: Expression, operator: Any) -> Expression:
    """Return a comparison as 0 and 1."""
    unit = _common(a, b, 0)

    def compute(rows: ExpressionRows) -> Values:
        if unit is None or a.unit is None or b.unit is None:
            found = operator(rows.floats(a), rows.floats(b))
        else:
            found = operator(rows.values(a) * _factor(a, unit), rows.values(b) * _factor(b, unit))
        return np.asarray(found, np.int64)

    return Expression(text, Fraction(0), Fraction(1), Fraction(1), compute)


def bounded(a: Expression, bound: float) -> Expression:
    """Return the same with an agreed bound; a site refuses a row beyond it."""

    def compute(rows: ExpressionRows) -> Values:
        values = rows.values(a)
        rows.refuse(
            np.abs(rows.floats(a)) > bound,
            a.text,
            f"is beyond the agreed bound {bound:g}; correct it, or agree on a larger bound",
        )
        return values

    low, high = max(a.low, -bound), min(a.high, bound)
    return Expression(f"{a.text} within {bound:g}", low, high, a.unit, compute)
