"""Reals to integers and back, with an exact headroom budget.

`FixedPoint` maps numbers to integers once, at the edge: value = integer / scale. A decimal grid is
exact (a value off the grid is refused); a binary grid rounds to nearest, with an error of at most
half a unit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, RangeError

Integers = npt.NDArray[Any]
"""int64, or objects that are Python ints where int64 could be too small."""

Mask = npt.NDArray[np.bool_]
Number = int | float | Decimal | Fraction

_MANTISSA = 53
_EXACT = 1 << _MANTISSA  # float64 holds every integer up to here
_INT64 = (1 << 63) - 1
MAX_BITS = 1000
"""The finest binary grid; 2^1000 is still a float64."""
MAX_DECIMALS = 22
"""The finest decimal grid; 10^22 is the last power of ten that float64 holds."""


def is_number(value: object) -> bool:
    """Return whether a value is one real number of Python's or numpy's, and no truth value."""
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        return False
    if isinstance(value, Decimal) and value.is_nan():
        return False  # it cannot even be compared
    return isinstance(value, int | float | Decimal | Fraction | np.integer | np.floating)


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A grid for real numbers: integer = value * scale, and |value| <= bound.

    On a decimal grid a float that is no integer stands for the shortest decimal that rounds to it,
    as it is printed, so that 0.1 is on the grid of one decimal; on a binary grid it stands for its
    exact value.

    Attributes:
        bound: Largest absolute value, in the data's own unit. Public.
        scale: Integers per unit. Public.
        exact: Refuse what is not on the grid instead of rounding it.
    """

    bound: Fraction
    scale: int
    exact: bool

    @classmethod
    def decimal(cls, bound: Number, decimals: int = 0) -> "FixedPoint":
        """The exact grid of numbers with so many decimals; 0 means integers.

        Raises:
            ParameterError: `bound` is not a finite number of at least 0, or `decimals` not in
                [0, 22].
        """
        return cls(_bound(bound, True), 10 ** _whole(decimals, "decimals", MAX_DECIMALS), True)

    @classmethod
    def binary(cls, bound: Number, bits: int) -> "FixedPoint":
        """The grid of multiples of 2^-bits; values are rounded to the nearest, ties to even.

        Raises:
            ParameterError: `bound` is not a finite number of at least 0, or `bits` not in
                [0, 1000].
        """
        return cls(_bound(bound, False), 1 << _whole(bits, "bits", MAX_BITS), False)

    @property
    def limit(self) -> int:
        """The largest absolute integer that `encode` returns."""
        return int(self.bound * self.scale) if self.exact else round(self.bound * self.scale)

    @property
    def error(self) -> float:
        """The largest rounding error of one value, in the data's unit."""
        return 0.0 if self.exact else 0.5 / self.scale

    def encode(self, values: Any, where: str = "values", item: str = "value") -> Integers:
        """Encode numbers of any Python, numpy or Decimal type.

        Args:
            values: Numbers, any shape: bool, int, float, Decimal, Fraction, numpy scalars and
                arrays of every integer, boolean and floating type.
            where: Whose values they are, for errors.
            item: What one of them is, for errors.

        Returns:
            Integers of the same shape: int64, or Python ints where `limit` is beyond 62 bits.

        Raises:
            ParameterError: Not real numbers.
            RangeError: NaN, infinite, beyond the bound, or off an exact grid. The message names
                the first position, never the value.
        """
        array = as_array(values, where)
        kind = array.dtype.kind
        if kind in "biu":
            encoded = self._from_integers(array, where, item)
        elif kind == "f" and array.dtype.itemsize <= 8:
            encoded = self._from_floats(array, where, item)
        elif kind in "Of":
            encoded = self._from_objects(array, where, item)
        else:
            raise ParameterError(f"{where}: expected numbers, got {array.dtype}")
        return np.asarray(encoded if self.limit >= 1 << 62 else encoded.astype(np.int64))

    def decode(self, integer: int) -> float | int:
        """Return integer / scale: an int on the integer grid, else the nearest float.

        Raises:
            RangeError: No float is as large.
        """
        if self.scale == 1:
            return int(integer)
        try:
            return int(integer) / self.scale
        except OverflowError:
            raise RangeError("the result is larger than any float") from None

    def _from_integers(self, array: Integers, where: str, item: str) -> Integers:
        if array.size == 0:
            return array.astype(np.int64)
        largest = max(-int(array.min()), int(array.max()))
        if largest > self.bound:
            beyond = np.abs(array.astype(object)) > self.bound
            raise self._beyond(np.asarray(beyond, bool), where, item)
        if largest * self.scale <= _INT64 and self.scale <= _INT64:
            return np.asarray(array.astype(np.int64) * np.int64(self.scale))
        return np.asarray(array.astype(object) * self.scale, object)

    def _from_floats(self, array: npt.NDArray[Any], where: str, item: str) -> Integers:
        finite = np.isfinite(array)
        if not finite.all():
            raise self._not_finite(~finite, where, item)
        if array.size == 0:
            return array.astype(np.int64)
        wide = array.astype(np.float64)
        scale = float(self.scale)
        # A decimal of so many digits is the only one that its float stands for.
        digits = {2: 3, 4: 6, 8: 15}[array.dtype.itemsize]
        largest = float(np.abs(wide).max()) * scale
        if largest >= (10**digits if self.exact else _EXACT):
            binary = not self.exact and self.scale & (self.scale - 1) == 0
            way = self._from_wide_floats if binary else self._from_objects
            return way(array, where, item)
        integers = np.rint(wide * scale)
        if self.exact:
            self._check(
                np.abs(integers) > float(min(self.limit, _EXACT)), self._beyond, where, item
            )
            there = (integers / scale).astype(array.dtype) == array
            self._check(~there, self._off_grid, where, item)
        else:
            self._check(np.abs(wide) > self._float_bound(), self._beyond, where, item)
        return np.asarray(integers.astype(np.int64))

    def _from_wide_floats(self, array: npt.NDArray[Any], where: str, item: str) -> Integers:
        """Encode finite floats on a binary grid by their mantissas, whatever their size."""
        self._check(np.abs(array) > self._float_bound(), self._beyond, where, item)
        # A single number too is shifted as a Python int: numpy's would wrap.
        wide = array.astype(np.float64).reshape(-1)
        fractions, exponents = np.frexp(wide)
        mantissas = np.ldexp(fractions, _MANTISSA).astype(np.int64).astype(object)
        places = exponents.astype(np.int64) - _MANTISSA + self.scale.bit_length() - 1
        integers = np.left_shift(mantissas, np.maximum(places, 0).astype(object))
        # Below the grid: a shift of mantissas of 53 bits by more than 60 gives 0 anyway.
        for at in np.flatnonzero(places < 0):
            integers[at] = round(Fraction(int(mantissas[at]), 1 << min(-int(places[at]), 60)))
        return np.asarray(integers, object).reshape(array.shape)

    def _float_bound(self) -> float:
        """Return the largest float that is not beyond the bound."""
        if self.bound >= _LARGEST_FLOAT:
            return float(_LARGEST_FLOAT)
        near = float(self.bound)
        return near if Fraction(near) <= self.bound else float(np.nextafter(near, -np.inf))

    def _from_objects(self, array: Integers, where: str, item: str) -> Integers:
        out = np.empty(array.shape, object)

        def here(position: tuple[int, ...]) -> Mask:
            mask = np.zeros(array.shape, bool)
            mask[position] = True
            return mask

        for position, value in np.ndenumerate(array):
            exact = _fraction(value, self.exact)
            if exact is None:
                place = _position(here(position), item)
                raise ParameterError(f"{where}: {place} is not a real number")
            if exact is _NOT_FINITE:
                raise self._not_finite(here(position), where, item)
            if exact is _ENDLESS:
                place = _position(here(position), item)
                raise RangeError(f"{where}: {place} {_TOO_LONG}; correct it")
            if abs(exact) > self.bound:
                raise self._beyond(here(position), where, item)
            integer = round(exact * self.scale)
            if self.exact and Fraction(integer, self.scale) != exact:
                raise self._off_grid(here(position), where, item)
            out[position] = integer
        return out

    @staticmethod
    def _check(
        wrong: Any, error: Callable[[Mask, str, str], RangeError], where: str, item: str
    ) -> None:
        if np.any(wrong):
            raise error(np.asarray(wrong), where, item)

    @staticmethod
    def _not_finite(mask: Mask, where: str, item: str) -> RangeError:
        return RangeError(f"{where}: {_position(mask, item)} is NaN or infinite; correct it")

    def _beyond(self, mask: Mask, where: str, item: str) -> RangeError:
        return RangeError(
            f"{where}: {_position(mask, item)} is beyond the agreed bound {shown(self.bound)}; "
            "correct it, or agree on a larger bound"
        )

    def _off_grid(self, mask: Mask, where: str, item: str) -> RangeError:
        decimals = len(str(self.scale)) - 1
        grid = "an integer" if decimals == 0 else f"a number with {decimals} decimals"
        return RangeError(
            f"{where}: {_position(mask, item)} is not {grid}; "
            "declare more decimals, or a binary grid to round"
        )


_NOT_FINITE, _ENDLESS = Fraction(-1, 7), Fraction(-1, 7)  # markers, compared by identity
_MOST_DIGITS = 5000  # the largest exponent of a decimal number
_TOO_LONG = f"has an exponent beyond {_MOST_DIGITS}"
_LARGEST_FLOAT = Fraction(np.finfo(np.float64).max)


def as_array(values: Any, where: str) -> npt.NDArray[Any]:
    """Return numbers as an array, without numpy making floats of integers on the way.

    Raises:
        ParameterError: A masked array, or rows of different lengths.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError(f"{where}: an array with a mask; fill in or drop what is masked")
    if isinstance(values, np.ndarray | np.generic):
        return np.asarray(values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ParameterError(f"{where}: not an array: {error}") from None
    if array.dtype.kind == "f":
        # numpy makes float64 of integers beside floats, and of integers around 2^63.
        objects = np.array(values, object)
        if not all(isinstance(v, float | np.floating) for v in objects.flat):
            return objects
    return array


def to_floats(integers: Integers, scale: int) -> npt.NDArray[np.float64]:
    """Return integers divided by a scale, as floats; of wide integers each rounded once."""
    if integers.dtype != object:
        return integers.astype(np.float64) / float(scale)
    divided = [value / scale for value in integers.reshape(-1).tolist()]
    return np.array(divided, np.float64).reshape(integers.shape)


def _fraction(value: object, as_decimal: bool) -> Fraction | None:
    """Return an exact number; None if it is no number."""
    if isinstance(value, np.timedelta64):  # numpy counts it among the integers
        return None
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return _NOT_FINITE
        if as_decimal and value != np.rint(value):
            return Fraction(
                np.format_float_scientific(value, unique=True)
                if isinstance(value, np.floating)
                else repr(value)
            )
        numerator, denominator = value.as_integer_ratio()
        return Fraction(int(numerator), int(denominator))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if isinstance(exponent, str):
            return _NOT_FINITE
        # Written out, 1e999999999 fills the memory.
        return Fraction(value) if abs(exponent) <= _MOST_DIGITS else _ENDLESS
    return None


def _bound(bound: Number, as_decimal: bool) -> Fraction:
    truth = isinstance(bound, bool | np.bool_)
    fraction = None if truth else _fraction(bound, as_decimal)
    if fraction is _ENDLESS:
        raise ParameterError(f"the bound {bound} {_TOO_LONG}")
    if fraction is None or fraction is _NOT_FINITE or fraction < 0:
        raise ParameterError(f"a bound must be a finite number of at least 0, not {bound}")
    return fraction


def _whole(value: int, what: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterError(f"{what} must be an integer, not {value!r}")
    if not 0 <= value <= most:
        raise ParameterError(f"{what} must be from 0 to {most}, not {value}")
    return int(value)


def shown(number: Number) -> str:
    """Return a public number as people write it, with all of its digits."""
    exact = number if isinstance(number, Fraction) else Fraction(number)
    if exact.denominator == 1 and abs(exact) < 10**22:
        return str(exact.numerator)
    if abs(exact) <= _LARGEST_FLOAT:
        text = repr(float(exact))
        if Fraction(float(exact)) == exact or Fraction(text) == exact:
            return text
    rest = exact.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        whole = exact.numerator // exact.denominator
        return f"{float(exact)!r}..." if whole < _LARGEST_FLOAT else f"{whole}..."
    with localcontext() as context:
        context.prec = 2000
        return f"{Decimal(exact.numerator) / Decimal(exact.denominator):f}"


def _position(mask: Mask, item: str) -> str:
    """Name the first true position, counted from 1, and how many more there are."""
    first = np.unravel_index(int(np.argmax(mask)), mask.shape)
    more = int(mask.sum()) - 1
    place = (
        f"the {item}" if mask.ndim == 0 else f"{item} " + ", ".join(str(int(i) + 1) for i in first)
    )
    return place + (f" (and {more} more)" if more else "")
