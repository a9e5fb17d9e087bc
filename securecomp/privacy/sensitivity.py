"""Sensitivity: how much one person can change a result, by declared bounds and not the data.

Sensitivities are exact fractions, of whatever numbers bounds are given in; only the noise's scale
becomes a float, rounded up. Two data sets are neighbours if they differ in one *unit*: a record, or
a patient with all of at most m records. Under `add/remove` one of them lacks the unit, under
`replace-one` it has another one in its place. A unit may also be a whole site with all of its
rows: no bound on values limits what a site changes, so that only updates are clipped to it.

Source: Dwork, Roth, The Algorithmic Foundations of Differential Privacy (2014), 2.3 and 3.3; for
the relations and units Near, Abuah, Programming Differential Privacy (2021), chapters 3 and 5.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Literal

import numpy as np
import numpy.typing as npt

from securecomp.core import checks
from securecomp.core.fixedpoint import Number, is_number, shown
from securecomp.errors import ParameterError, RangeError
from securecomp.privacy.privacy_amounts import above

Relation = Literal["add/remove", "replace-one"]
Unit = Literal["record", "patient", "site"]
RELATIONS: tuple[Relation, ...] = ("add/remove", "replace-one")
UNITS: tuple[Unit, ...] = ("record", "patient", "site")


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Relation of neighbouring data sets, which must look alike.

    Attributes:
        relation: Whether a unit is there or not, or is replaced by another.
        unit: What is protected: one record, a patient with all records, or a site with all rows.
        records: The most records of one unit; must be enforced before anything is summed.
    """

    relation: Relation = "add/remove"
    unit: Unit = "record"
    records: int = 1

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise ParameterError(f"the relation is one of {RELATIONS}, not {self.relation!r}")
        if self.unit not in UNITS:
            raise ParameterError(f"the unit is one of {UNITS}, not {self.unit!r}")
        if isinstance(self.records, bool) or not isinstance(self.records, int) or self.records < 1:
            raise ParameterError(f"a unit has at least one record, not {self.records!r}")
        if self.unit != "patient" and self.records != 1:
            raise ParameterError(
                f"a unit of {self.records} records is a patient; say unit 'patient'"
            )

    def __str__(self) -> str:
        if self.unit == "record":
            return f"{self.relation} of one record"
        if self.unit == "site":
            return f"{self.relation} of one site with all of its rows"
        some = "record" if self.records == 1 else "records"
        return f"{self.relation} of one patient with at most {self.records} {some}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Declared public interval of values. A value outside is moved to the nearest end.

    Attributes:
        lower: The smallest value.
        upper: The largest value.
    """

    lower: Number
    upper: Number

    def __post_init__(self) -> None:
        low, high = _rational(self.lower, "lower bound"), _rational(self.upper, "upper bound")
        if low > high:
            raise ParameterError(
                f"the bounds are crossed: {shown(low)} is above {shown(high)}; exchange them"
            )
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    @property
    def width(self) -> Fraction:
        """Distance of the ends."""
        return Fraction(self.upper) - Fraction(self.lower)

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value."""
        return max(abs(Fraction(self.lower)), abs(Fraction(self.upper)))

    def clip(self, values: npt.ArrayLike, name: str = "values") -> npt.NDArray[np.float64]:
        """Return values moved into the bounds. How many were moved is private, and not returned.

        Args:
            values: Numbers, of any shape.
            name: What they are, for messages.

        Raises:
            RangeError: No values, or one is NaN: it has no place within bounds.
        """
        array = np.asarray(values, dtype=np.float64)
        if array.size == 0:
            raise RangeError(f"{name}: there are none; nothing was computed or spent")
        missing = np.isnan(array)
        if missing.any():
            raise RangeError(
                f"{name}: {int(missing.sum())} are NaN, the first in row "
                f"{int(np.argmax(missing.reshape(-1))) + 1}; fill them in or leave them out"
            )
        return np.clip(array, _inside(self.lower, up=True), _inside(self.upper, up=False))

    def __str__(self) -> str:
        return f"clipped to [{shown(self.lower)}, {shown(self.upper)}]"


def _inside(bound: Number, *, up: bool) -> float:
    """Return the float nearest to a bound that is not beyond it."""
    value = float(bound)
    if up and Fraction(value) < bound:
        return math.nextafter(value, math.inf)
    if not up and Fraction(value) > bound:
        return math.nextafter(value, -math.inf)
    return value


def _rational(value: Number, name: str) -> Fraction:
    """Return a bound exactly, of whatever width it is stored in."""
    try:
        if not is_number(value):
            raise ValueError
        if isinstance(value, Integral):  # also numpy's, which would overflow in fractions
            return Fraction(int(value))
        numerator, denominator = value.as_integer_ratio()
        return Fraction(int(numerator), int(denominator))
    except (ValueError, OverflowError, AttributeError):
        raise ParameterError(f"the {name} is a finite number, not {value!r}") from None


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The most that a result can differ between neighbours.

    Attributes:
        l1: As the sum of absolute differences.
        squared: As the sum of squared differences.
    """

    l1: Fraction
    squared: Fraction

    def __post_init__(self) -> None:
        for name in ("l1", "squared"):
            exact = _rational(getattr(self, name), f"sensitivity's {name}")
            object.__setattr__(self, name, exact)
        if self.l1 <= 0 or self.squared <= 0:
            raise ParameterError(
                "the sensitivity is 0: nobody can change this result, so noise would protect "
                "nothing; check the bounds, or publish the constant"
            )

    @property
    def l2(self) -> float:
        """The square root of `squared`, rounded up."""
        try:
            root = math.sqrt(above(self.squared))
        except OverflowError:
            raise ParameterError("the sensitivity is beyond all floating-point numbers") from None
        # A correctly rounded root of something rounded up may lie below or far above by one step.
        while Fraction(root) ** 2 < self.squared:
            root = math.nextafter(root, math.inf)
        return root

    def scaled(self, factor: Number) -> "Sensitivity":
        """Return the sensitivity of a multiple of the result, as on a finer grid."""
        exact = abs(_rational(factor, "factor"))
        return Sensitivity(self.l1 * exact, self.squared * exact**2)


def _one(value: Fraction) -> Sensitivity:
    return Sensitivity(value, value**2)


def count(neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of a number of rows that meet a condition."""
    return _one(Fraction(neighbours.records))


def total(bounds: Bounds, neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of a sum of values.

    A patient who is replaced may have fewer records than the next, also none.
    """
    low, high, most = Fraction(bounds.lower), Fraction(bounds.upper), neighbours.records
    if neighbours.relation == "add/remove":
        return _one(most * bounds.magnitude)
    if neighbours.unit == "record":
        return _one(bounds.width)
    return _one(max(Fraction(0), most * high) - min(Fraction(0), most * low))


def mean(bounds: Bounds, records: int, neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of a mean over a public number of records.

    Args:
        bounds: Where the values lie.
        records: Over how many records, which everybody may know.
        neighbours: Must leave that number as it is: `replace-one` of records.

    Raises:
        ParameterError: There are no records, or neighbours differ in their number, which the
            denominator would then reveal.
    """
    if neighbours.relation != "replace-one" or neighbours.unit != "record":
        raise ParameterError(
            f"under {neighbours} the number of records is private, and a mean's denominator would "
            "reveal it; divide a noised sum by a noised count (`mean_parts`)"
        )
    checks.integer(records, "the number of records of a mean", 1)
    return _one(bounds.width / records)


def mean_parts(bounds: Bounds, neighbours: Neighbours) -> tuple[Sensitivity, Sensitivity]:
    """Return the sensitivities of a mean's two parts, each of which gets noise of its own.

    They are the sum of (value - middle of the bounds), which is as small as it can be, and the
    count: mean = middle + noised sum / noised count.
    """
    half = bounds.width / 2
    return total(Bounds(-half, half), neighbours), count(neighbours)


def histogram(neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of counts in disjoint bins, or of the cells of a cross table.

    All records of a patient may lie in one bin, and those of the next patient in another.
    """
    most = Fraction(neighbours.records)
    changed = 1 if neighbours.relation == "add/remove" else 2
    return Sensitivity(changed * most, changed * most**2)


crosstab = histogram
"""Every record is in one cell of a cross table."""


def vector(norm: Number, dimension: int, neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of a sum of vectors that were clipped to a Euclidean norm.

    Args:
        norm: The largest norm of one record's vector.
        dimension: Its number of coordinates.
        neighbours: Which data sets must look alike.

    Raises:
        ParameterError: The norm is not above 0, or there are no coordinates.
    """
    length = _rational(norm, "norm")
    if length <= 0 or dimension < 1:
        raise ParameterError("a vector has coordinates and a norm above 0")
    far = length * neighbours.records * (1 if neighbours.relation == "add/remove" else 2)
    # |x|_1 is at most sqrt(dimension) |x|_2; the root is rounded up.
    root = Fraction(math.isqrt(dimension * 10**24 - 1) + 1, 10**12)
    return Sensitivity(far * root, far**2)


def together(*parts: Sensitivity) -> Sensitivity:
    """Return the sensitivity of several results that are noised as one vector."""
    if not parts:
        raise ParameterError("there is no result to noise")
    return Sensitivity(
        sum((part.l1 for part in parts), Fraction(0)),
        sum((part.squared for part in parts), Fraction(0)),
    )
