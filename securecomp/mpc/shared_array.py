"""Shared arrays, which are used as numpy's arrays are."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Self

import numpy as np

from securecomp.errors import ParameterError
from securecomp.mpc import division, numpy_functions
from securecomp.mpc.arithmetic_array import ArithmeticArray, Operand

_MOST_POWER = 64


class SharedArray(ArithmeticArray):
    """An array that the parties hold in shares. Operators compute; `reveal` opens.

    Attributes:
        shape: As numpy's.
        scale: Integers per unit, public.
        bound: Largest absolute integer that an element can be, public.
    """

    def __truediv__(self, other: Operand) -> Self:
        """Divide: exactly by public numbers, on the grid of `division.divide` by shared ones."""
        return division.divide(self, other)

    def __rtruediv__(self, other: Operand) -> Self:
        return division.divide(self._public(other), self)

    def __floordiv__(self, other: Operand) -> Self:
        return division.floor_divide(self, other)

    def __rfloordiv__(self, other: Operand) -> Self:
        return division.floor_divide(self._public(other), self)

    def __mod__(self, other: Operand) -> Self:
        return division.remainder(self, other)

    def __rmod__(self, other: Operand) -> Self:
        return division.remainder(self._public(other), self)

    def __pow__(self, exponent: int) -> Self:
        """Raise to a public power of at least 1."""
        if isinstance(exponent, bool) or not isinstance(exponent, int | np.integer):
            raise ParameterError("a power of a shared array is a public integer")
        if not 1 <= exponent <= _MOST_POWER:
            raise ParameterError(f"a power is from 1 to {_MOST_POWER}, not {exponent}")
        found, square, rest = None, self, int(exponent)
        while True:
            if rest & 1:
                found = square if found is None else found * square
            rest >>= 1
            if not rest:
                return found  # type: ignore[return-value]
            square = square.square()

    def __abs__(self) -> Self:
        """Return the absolute values: a comparison and a product."""
        return self.times((1 - 2 * (self < 0)).within(1), self.bound)

    def __iter__(self) -> Iterator[Self]:
        return (self[index] for index in range(len(self)))

    def _public(self, numbers: Operand) -> Self:
        """Return public numbers as an array of these parties."""
        zero = self.reshape(-1)[:0].sum()
        return zero.like(zero.value, (), 1, 0) + numbers

    # numpy's own functions

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise ParameterError("a shared array has no numbers to give away; reveal() it first")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return numpy_functions.universal(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], _: Any, args: Any, options: Any
    ) -> Any:
        return numpy_functions.array_function(function, args, options)
