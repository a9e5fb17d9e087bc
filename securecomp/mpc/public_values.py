"""Public numbers beside shared ones: exact integers over a scale, and back to numbers."""

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
        """Take numbers exactly: on the grid of `scale` if they are on it, else on a binary one.

        Raises:
            ParameterError: Not finite numbers, or of more than 24 binary digits.
        """
        if isinstance(numbers, cls):
            return numbers
        array = as_array(numbers, "a public operand")
        if array.dtype.kind in "iub":
            return cls(array.astype(object if array.dtype.kind == "u" else np.int64), 1)
        if array.dtype.kind not in "fO":
            raise ParameterError(_EXPECTED)
        exact = [_exact(v) for v in array.flat]
        on_grid = all((f * scale).denominator == 1 for f in exact)
        grid = scale if on_grid else max((f.denominator for f in exact), default=1)
        if not on_grid and grid > 1 << _MOST_DIGITS:
            raise ParameterError(
                f"a public number has more than {_MOST_DIGITS} binary digits; round it to a "
                "multiple of a power of 2, or to the grid of what it meets"
            )
        integers = np.array([int(f * grid) for f in exact], object).reshape(array.shape)
        return cls(integers, grid)

    @property
    def bound(self) -> int:
        """Largest absolute integer."""
        return max((abs(int(v)) for v in self.integers.flat), default=0)

    @property
    def residues(self) -> Residues:
        """Flat residues; of one number a scalar, which goes with every shape."""
        residues = field.public(self.integers)
        return residues.reshape(()) if residues.size == 1 else residues.reshape(-1)

    def broadcast(self, shape: tuple[int, ...]) -> "Public":
        """Return them repeated to a larger shape; one number stays one."""
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
        return Fraction(*number.as_integer_ratio())
    raise ParameterError(_EXPECTED)


def check_bound(bound: int, what: str) -> int:
    """Refuse integers that the field could not hold.

    Raises:
        RangeError: They could pass (p-1)/2.
    """
    if bound > LIMIT:
        raise RangeError(
            f"{what} could reach {bound:.3g} units of its grid, and the field holds {LIMIT:.3g}; "
            "truncate the operands, or share them with smaller bounds or fewer digits"
        )
    return bound


def in_units(integers: npt.NDArray[np.int64], scale: int) -> npt.NDArray[Any]:
    """Return integers over their scale: int64 if it is 1, else the nearest float64."""
    if scale == 1:
        return integers
    if scale < _EXACT and (not integers.size or np.abs(integers).max() < _EXACT):
        return integers / float(scale)
    return np.array([float(Fraction(int(v), scale)) for v in integers], np.float64)
