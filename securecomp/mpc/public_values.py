"""Public numbers in a computation on shares, as exact integers over a scale."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core import field
from securecomp.core.field import LIMIT, Residues
from securecomp.core.fixedpoint import as_array
from securecomp.errors import ParameterError, RangeError

_MOST_DIGITS = 24
_EXACT = 1 << 53
_EXPONENT = 400  # of every float, and far beyond the field
_EXPECTED = "expected a shared array, or finite numbers"


class Public:
    """Public numbers as integers over a scale."""

    def __init__(self, integers: Any, scale: int) -> None:
        # Arithmetic on an array of one object gives the object.
        self.integers: npt.NDArray[Any] = np.asarray(integers)
        self.shape = self.integers.shape
        self.scale = scale

    @classmethod
    def of(cls, numbers: Any, scale: int) -> "Public":
        """Take numbers exactly.

        They are put on the grid of `scale` if all are on it, where a float is on a grid point if no
        other float is nearer to it: 10.05 is on the grid of two decimals. Otherwise their own
        binary grid is taken, or the grid of the decimals that floats are printed as.

        Args:
            numbers: Any of Python's or numpy's types of real numbers, any shape.
            scale: The scale of the array that they meet.

        Raises:
            ParameterError: Not finite numbers, or their grid is finer than 2^-24.
        """
        if isinstance(numbers, cls):
            return numbers
        array = as_array(numbers, "a public operand")
        if array.dtype.kind in "iub":
            return cls(array.astype(object if array.dtype.kind == "u" else np.int64), 1)
        if array.dtype.kind not in "fO":
            raise ParameterError(_EXPECTED)
        values = list(array.flat)
        exact = [_exact(v) for v in values]
        on_grid = [_at(v, f, scale) for v, f in zip(values, exact, strict=True)]
        if None not in on_grid:
            return cls(np.array(on_grid, object).reshape(array.shape), scale)
        grid = _grid(exact)
        if grid is None:
            exact = [_as_printed(v) for v in values]
            grid = _grid(exact)
        if grid is None:
            raise ParameterError(
                f"a public number has more than {_MOST_DIGITS} binary digits and 7 decimals; round "
                "it to a multiple of a power of 2, or to the grid of what it meets"
            )
        integers = np.array([int(f * grid) for f in exact], object).reshape(array.shape)
        return cls(integers, grid)

    @property
    def bound(self) -> int:
        """Largest absolute integer."""
        return max((abs(int(v)) for v in self.integers.flat), default=0)

    @property
    def residues(self) -> Residues:
        """Flat residues; a single number gives a scalar, which fits every shape."""
        residues = field.public(self.integers)
        return residues.reshape(()) if residues.size == 1 else residues.reshape(-1)

    def broadcast(self, shape: tuple[int, ...]) -> "Public":
        """Return them repeated to a larger shape. A single number stays one."""
        if self.integers.size == 1:
            return self
        return Public(np.broadcast_to(self.integers, shape), self.scale)

    def negative(self) -> "Public":
        """Return them with the other sign."""
        return Public(-self.integers.astype(object), self.scale)

    def finer(self, scale: int) -> "Public":
        """Return them over a multiple of their scale."""
        return Public(self.integers.astype(object) * (scale // self.scale), scale)


def _exact(number: object) -> Fraction:
    if isinstance(number, int | np.integer | np.bool_) and not isinstance(number, np.timedelta64):
        return Fraction(int(number))
    if isinstance(number, float | np.floating) and np.isfinite(number):
        numerator, denominator = number.as_integer_ratio()
        return Fraction(int(numerator), int(denominator))
    if isinstance(number, Fraction):
        return number
    # Written out, an exponent of millions would fill the memory.
    if isinstance(number, Decimal) and number.is_finite() and abs(number.adjusted()) <= _EXPONENT:
        return Fraction(number)
    raise ParameterError(_EXPECTED)


def _grid(numbers: Sequence[Fraction]) -> int | None:
    """Return the coarsest scale over which all numbers are integers; None if it is too fine."""
    grid = 1
    for number in numbers:
        grid = math.lcm(grid, number.denominator)
        if grid > 1 << _MOST_DIGITS:
            return None
    return grid


def _at(number: object, exact: Fraction, scale: int) -> int | None:
    """Return the integer that a number is over a scale; None if it is not on that grid."""
    found = exact * scale
    if found.denominator == 1:
        return int(found)
    nearest = round(found)
    if isinstance(number, float | np.floating) and type(number)(nearest / scale) == number:
        return nearest
    return None


def _as_printed(number: object) -> Fraction:
    """Return the decimal that a float is printed as; another number as it is."""
    if isinstance(number, np.floating):
        return Fraction(np.format_float_scientific(number, unique=True))
    return Fraction(repr(number)) if isinstance(number, float) else _exact(number)


def check_bound(bound: int, what: str) -> int:
    """Refuse integers that the field could not hold.

    Raises:
        RangeError: They could pass (p-1)/2.
    """
    if bound > LIMIT:
        raise RangeError(
            f"{what} could reach {_about(bound)} units of its grid, and the field holds "
            f"{_about(LIMIT)}; "
            "truncate the operands, or share them with smaller bounds or fewer digits"
        )
    return bound


def _about(number: int) -> str:
    try:
        return f"{number:.3g}"
    except OverflowError:  # beyond all floats
        return f"2^{number.bit_length() - 1}"


def in_units(integers: npt.NDArray[np.int64], scale: int) -> npt.NDArray[Any]:
    """Return integers over their scale: int64 if it is 1, else the nearest float64."""
    if scale == 1:
        return integers
    if scale < _EXACT and (not integers.size or np.abs(integers).max() < _EXACT):
        return integers / float(scale)
    return np.array([float(Fraction(int(v), scale)) for v in integers], np.float64)
