"""Operations on shared arrays, each with the numpy code that computes the same in plaintext."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.mpc.computation import Computation
from securecomp.mpc.functions import SIGMOID_ERROR, sigmoid
from securecomp.mpc.selection import sort
from securecomp.mpc.shared_array import SharedArray
from securecomp.overhead.cases.synthetic_data import integers

Array = npt.NDArray[Any]
BITS = 16


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on two arrays, on shares and in numpy.

    Attributes:
        title: One line.
        bound: Largest absolute integer in the arrays.
        bits: The arrays hold multiples of 2^-bits.
        secure: The secure side.
        plain: The plaintext side on the integers. It takes two arrays, and one for the result.
        square: Whether the arrays are square matrices of `elements` elements.
        floats: Whether the plaintext side takes its integers as float64.
        error: Largest difference from plaintext, in units; 0 for the same integers.
        truth: Whether the result is 0 or 1.
    """

    title: str
    bound: int
    bits: int
    secure: Callable[[SharedArray, SharedArray], SharedArray]
    plain: Callable[[Array, Array, Array], Any]
    square: bool = False
    floats: bool = False
    error: float = 0.0
    truth: bool = False

    def inputs(self, elements: int) -> tuple[Array, Array]:
        """Return two arrays of integers."""
        side = isqrt(elements)
        shape = (side, side) if self.square else (elements,)
        first, second = integers((2, *shape), self.bound)
        return first, second

    def sharing(self, elements: int) -> Callable[[Computation], list[SharedArray]]:
        """Return a function by which the first two parties share one array each."""
        unit = 1 << self.bits
        facts: dict[str, Any] = {"bits": self.bits} if self.bits else {}
        arrays = [values / unit if self.bits else values for values in self.inputs(elements)]

        def share(mpc: Computation) -> list[SharedArray]:
            return [
                mpc.share(name, values, bound=self.bound // unit, **facts)
                for name, values in zip(mpc.engine.names, arrays, strict=False)
            ]

        return share

    def plaintext(self, elements: int) -> Callable[[], Array]:
        """Return the plaintext side."""
        a, b = (v.astype(np.float64) if self.floats else v for v in self.inputs(elements))
        out = np.empty_like(a, dtype=np.bool_ if self.truth else None)

        def plain() -> Array:
            self.plain(a, b, out)
            return out

        return plain


def shift(a: Array, b: Array, out: Array) -> None:
    """Multiply integers, and round down to their grid."""
    np.multiply(a, b, out=out)
    np.right_shift(out, BITS, out=out)


def shift_matrix(a: Array, b: Array, out: Array) -> None:
    """Multiply matrices of integers, and round down to their grid."""
    np.matmul(a, b, out=out)
    np.multiply(out, 2.0**-BITS, out=out)
    np.floor(out, out=out)


def logistic(a: Array, _: Array, out: Array) -> None:
    """Compute the sigmoid of integers on their grid."""
    np.multiply(a, -(2.0**-BITS), out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


_FIXED = 16 << BITS  # products, and sums of 500 of them, stay where float64 is exact
OPERATIONS = {
    "products": Operation(
        "products", 1 << 29, 0, lambda x, y: x * y, lambda a, b, out: np.multiply(a, b, out=out)
    ),
    "truncated": Operation(
        "fixed-point products, truncated exactly",
        _FIXED,
        BITS,
        lambda x, y: (x * y).truncate(BITS),
        shift,
    ),
    "matmul": Operation(
        "matrix product",
        _FIXED,
        0,
        lambda x, y: x @ y,
        lambda a, b, out: np.matmul(a, b, out=out),
        square=True,
        floats=True,
    ),
    "matmul-truncated": Operation(
        "fixed-point matrix product, truncated exactly",
        _FIXED,
        BITS,
        lambda x, y: (x @ y).truncate(BITS),
        shift_matrix,
        square=True,
        floats=True,
    ),
    "sigmoid": Operation(
        "sigmoids",
        _FIXED,
        BITS,
        lambda x, _: sigmoid(x),
        logistic,
        floats=True,
        error=SIGMOID_ERROR,
    ),
    "equal": Operation(
        "tests for equality",
        1 << 40,
        0,
        lambda x, y: x == y,
        lambda a, b, out: np.equal(a, b, out=out),
        truth=True,
    ),
    "sort": Operation(
        "a vector sorted",
        1 << 40,
        0,
        lambda x, _: sort(x),
        lambda a, _, out: out.__setitem__(slice(None), np.sort(a)),
    ),
    "compare": Operation(
        "comparisons",
        1 << 40,
        0,
        lambda x, y: x < y,
        lambda a, b, out: np.less(a, b, out=out),
        truth=True,
    ),
}
