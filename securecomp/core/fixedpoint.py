"""Reals to integers and back, with an exact headroom budget.

`FixedPoint` maps numbers to integers once, at the edge: value = integer / scale. A decimal grid is
exact (a value off the grid is refused); a binary grid rounds to nearest, with an error of at most
half a unit. `Limbs` proves, before anything is sent, that so many terms of such a size add up
without wrapping, and cuts wider integers into limbs that are summed apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError, RangeError

Integers = npt.NDArray[Any]
"""int64, or objects that are Python ints where int64 could be too small."""

Number = int | float | Decimal | Fraction

_EXACT = 1 << 53  # float64 holds every integer up to here
_INT64 = (1 << 63) - 1
MAX_BITS = 1000
"""The finest binary grid; 2^1000 is still a float64."""
HIDING_BITS = 40
"""Each limb's carry is hidden under a uniform number of this many bits."""
_MIN_WIDTH = 4


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A grid for real numbers: integer = value * scale, and |value| <= bound.

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
        if not 0 <= decimals <= 22:  # 10^22 is the last power of ten that float64 holds
            raise ParameterError(f"decimals must be from 0 to 22, not {decimals}")
        return cls(_bound(bound), 10**decimals, True)

    @classmethod
    def binary(cls, bound: Number, bits: int) -> "FixedPoint":
        """The grid of multiples of 2^-bits; values are rounded to the nearest, ties to even.

        Raises:
            ParameterError: `bound` is not a finite number of at least 0, or `bits` not in
                [0, 1000].
        """
        if not 0 <= bits <= MAX_BITS:
            raise ParameterError(f"bits must be from 0 to {MAX_BITS}, not {bits}")
        return cls(_bound(bound), 1 << bits, False)

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
        array = np.asarray(values)
        kind = array.dtype.kind
        if kind in "biu":
            encoded = self._from_integers(array, where, item)
        elif kind == "f" and array.dtype.itemsize <= 8:
            encoded = self._from_floats(array.astype(np.float64), where, item)
        elif kind == "O" or kind == "f":
            encoded = self._from_objects(array, where, item)
        else:
            raise ParameterError(f"{where}: expected numbers, got {array.dtype}")
        return encoded if self.limit >= 1 << 62 else encoded.astype(np.int64)

    def decode(self, integer: int) -> float | int:
        """Return integer / scale: an int on the integer grid, else the nearest float."""
        return int(integer) if self.scale == 1 else int(integer) / self.scale

    def _from_integers(self, array: Integers, where: str, item: str) -> Integers:
        if array.size == 0:
            return array.astype(np.int64)
        low, high = int(array.min()), int(array.max())
        if max(-low, high) > self.bound:
            wide = array.astype(object) if array.dtype.kind != "b" else array.astype(np.int64)
            raise self._beyond(np.abs(wide) > self.bound, where, item)
        if max(-low, high) * self.scale <= _INT64:
            return array.astype(np.int64) * np.int64(self.scale)
        return array.astype(object) * self.scale

    def _from_floats(self, array: npt.NDArray[np.float64], where: str, item: str) -> Integers:
        finite = np.isfinite(array)
        if not finite.all():
            raise RangeError(f"{where}: {_position(~finite, item)} is NaN or infinite; correct it")
        if array.size == 0:
            return array.astype(np.int64)
        beyond = np.abs(array) > float(self.bound)
        if beyond.any():
            raise self._beyond(beyond, where, item)
        if float(np.abs(array).max()) * self.scale >= _EXACT:
            return self._from_objects(array.astype(object), where, item)
        integers = np.rint(array * float(self.scale))
        if self.exact:
            off = integers / float(self.scale) != array
            if off.any():
                raise self._off_grid(off, where, item)
        return integers.astype(np.int64)

    def _from_objects(self, array: Integers, where: str, item: str) -> Integers:
        out = np.empty(array.shape, object)
        for position, value in np.ndenumerate(array):
            here = np.zeros(array.shape, bool)
            here[position] = True
            exact = _fraction(value)
            if exact is None:
                raise ParameterError(f"{where}: {_position(here, item)} is not a real number")
            if exact is _NOT_FINITE:
                raise RangeError(f"{where}: {_position(here, item)} is NaN or infinite; correct it")
            if abs(exact) > self.bound:
                raise self._beyond(here, where, item)
            integer = round(exact * self.scale)
            # A float stands for the shortest decimal that rounds to it, so 0.1 is on the grid.
            on_grid = Fraction(integer, self.scale) == exact or (
                isinstance(value, float) and integer / self.scale == value
            )
            if self.exact and not on_grid:
                raise self._off_grid(here, where, item)
            out[position] = integer
        return out

    def _beyond(self, mask: npt.NDArray[np.bool_], where: str, item: str) -> RangeError:
        return RangeError(
            f"{where}: {_position(mask, item)} is beyond the agreed bound {shown(self.bound)}; "
            "correct it, or agree on a larger bound"
        )

    def _off_grid(self, mask: npt.NDArray[np.bool_], where: str, item: str) -> RangeError:
        decimals = len(str(self.scale)) - 1
        grid = "an integer" if decimals == 0 else f"a number with {decimals} decimals"
        return RangeError(
            f"{where}: {_position(mask, item)} is not {grid}; "
            "declare more decimals, or a binary grid to round"
        )


_NOT_FINITE = Fraction(-1, 7)  # a marker, compared by identity


def _fraction(value: object) -> Fraction | None:
    if isinstance(value, np.generic):
        value = value.item() if not isinstance(value, np.longdouble) else value
    if isinstance(value, np.longdouble):
        return Fraction(*map(int, value.as_integer_ratio())) if np.isfinite(value) else _NOT_FINITE
    if isinstance(value, int | Fraction):
        return Fraction(value)
    if isinstance(value, float):
        return Fraction(value) if np.isfinite(value) else _NOT_FINITE
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else _NOT_FINITE
    return None


def _bound(bound: Number) -> Fraction:
    fraction = _fraction(bound)
    if fraction is None or fraction is _NOT_FINITE or fraction < 0:
        raise ParameterError(f"a bound must be a finite number of at least 0, not {bound!r}")
    return fraction


def shown(number: Number) -> str:
    """Return a public number as people write it."""
    value = float(number)
    return str(int(number)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _position(mask: npt.NDArray[np.bool_], item: str) -> str:
    """Name the first true position, counted from 1, and how many more there are."""
    first = np.unravel_index(int(np.argmax(mask)), mask.shape)
    more = int(mask.sum()) - 1
    place = (
        f"the {item}" if mask.ndim == 0 else f"{item} " + ", ".join(str(int(i) + 1) for i in first)
    )
    return place + (f" (and {more} more)" if more else "")


@dataclass(frozen=True, slots=True)
class Limbs:
    """How integers of one size travel through a sum that takes totals up to a limit.

    The proof of headroom: terms x (largest limb) <= limit, whatever the inputs.

    A total that fits is one limb. A wider one is cut in base 2^width, low limb first, and every
    party adds r 2^width to a limb and takes r from the next, r uniform with HIDING_BITS bits, so
    that the sums of the limbs show the total and hide how it was carried: the view of the sums is
    within terms x count x 2^-40 of one that depends on the total alone.

    Attributes:
        bound: Largest absolute integer of one party.
        terms: How many parties add.
        limit: Largest absolute total that the protocol returns exactly.
        count: Limbs per integer.
        width: Bits per limb, 0 if there is one.
    """

    bound: int
    terms: int
    limit: int
    count: int
    width: int

    @classmethod
    def plan(cls, bound: int, terms: int, limit: int) -> "Limbs":
        """Choose the limbs.

        Raises:
            RangeError: The protocol's limit leaves no room for this many terms.
        """
        if bound * terms <= limit:
            return cls(bound, terms, limit, 1, 0)
        # Largest limb: 2^(width + hiding) + 2^hiding + 2^width <= 2^(width + hiding + 1).
        width = (limit // terms).bit_length() - 2 - HIDING_BITS
        if width < _MIN_WIDTH:
            raise RangeError(
                f"{terms} parties with values up to {bound} do not fit a total of {limit}, not "
                "even in limbs; use a smaller bound or fewer parties"
            )
        return cls(bound, terms, limit, -(-(bound.bit_length() + 1) // width), width)

    @property
    def largest(self) -> int:
        """The largest absolute limb."""
        return self.bound if self.count == 1 else 1 << (self.width + HIDING_BITS + 1)

    def split(self, values: Iterable[int], entropy: Entropy) -> list[int]:
        """Cut integers into limbs, `count` of each, low limb first.

        Raises:
            RangeError: A value is beyond `bound`.
        """
        limbs: list[int] = []
        for value in map(int, values):
            if abs(value) > self.bound:
                raise RangeError(f"a value is beyond the bound {self.bound} that was agreed")
            carry = 0
            for _ in range(self.count - 1):
                random = int.from_bytes(entropy(HIDING_BITS // 8), "little")
                limbs.append(value % (1 << self.width) + (random << self.width) - carry)
                value >>= self.width
                carry = random
            limbs.append(value - carry)
        return limbs

    def join(self, totals: Sequence[int]) -> list[int]:
        """Put summed limbs together."""
        joined = []
        for start in range(0, len(totals), self.count):
            value = 0
            for limb in reversed(totals[start : start + self.count]):
                value = (value << self.width) + int(limb)
            joined.append(value)
        return joined
