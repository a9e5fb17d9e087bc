"""Arithmetic on arrays of shares: sums, products, comparisons, truncation.

Values are integers over a public scale. The scale and the largest possible absolute integer
(`bound`) go along with every array. So sums and products are exact, and an operation whose result
could pass (p-1)/2 is refused before anything is sent: `truncate`, or smaller bounds, make room.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar, Union, cast

import numpy as np
import numpy.typing as npt

from securecomp.core import field
from securecomp.errors import ParameterError, RangeError
from securecomp.mpc.engine import Engine, Value
from securecomp.mpc.public_values import Public, check_bound, in_units

Operand = Union["ArithmeticArray", Public, npt.ArrayLike]
A = TypeVar("A", bound="ArithmeticArray")
CUT_LIMIT = 1 << 59
"""`truncate` takes integers below this."""


class ArithmeticArray:
    """The arithmetic of `SharedArray`. Operators compute; `reveal` opens.

    Attributes:
        shape: As numpy's.
        scale: Integers per unit, public.
        bound: Largest absolute integer that an element can be, public.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, engine: Engine, value: Value, shape: tuple[int, ...], scale: int, bound: int
    ) -> None:
        self.engine = engine
        self.value = value
        self.shape = shape
        self.scale = scale
        self.bound = bound

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a shared number has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("a shared value has no truth; use where(), or reveal() it")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, scale={self.scale}, bound={self.bound})"

    def like(
        self,
        value: Value,
        shape: tuple[int, ...],
        scale: int | None = None,
        bound: int | None = None,
    ) -> Self:
        """Return an array of the same parties; scale and bound are this one's if not given."""
        return type(self)(
            self.engine,
            value,
            shape,
            self.scale if scale is None else scale,
            self.bound if bound is None else bound,
        )

    def within(self, bound: int) -> Self:
        """Return the array with a smaller bound. The caller knows that it holds."""
        return self.like(self.value, self.shape, bound=min(bound, self.bound))

    # Without messages

    def _move(self, change: Callable[[npt.NDArray[Any]], Any]) -> Self:
        """Return the elements in the places to which the change moves an array of this shape."""
        shape = np.shape(change(np.empty(self.shape, np.bool_)))
        value = self.engine.move(self.value, lambda a: np.asarray(change(a.reshape(self.shape))))
        return self.like(value, shape)

    def __getitem__(self, index: Any) -> Self:
        return self._move(lambda a: a[index])

    def reshape(self, *shape: Any) -> Self:
        """Return the elements in another shape."""
        return self._move(lambda a: a.reshape(*shape))

    @property
    def T(self) -> Self:  # noqa: N802
        """The transpose."""
        return self._move(lambda a: a.T)

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """Return the array repeated to a larger shape, as numpy's `broadcast_to`."""
        return self if shape == self.shape else self._move(lambda a: np.broadcast_to(a, shape))

    def __neg__(self) -> Self:
        return self.scaled(-1)

    def scaled(self, factor: int, finer: int = 1) -> Self:
        """Return the array times a public integer, over a scale that is `finer` times as fine."""
        bound = check_bound(self.bound * abs(factor), "a multiple")
        value = self.engine.scale(self.value, field.public(factor))
        return self.like(value, self.shape, self.scale * finer, bound)

    def finer(self, scale: int) -> Self:
        """Return the same numbers over a multiple of their scale."""
        factor = scale // self.scale
        return self if factor == 1 else self.scaled(factor, factor)

    def operand(self, other: Operand, scale: int) -> Self | Public:
        """Return an operand: public numbers over a scale, or an array of the same computation.

        Raises:
            ParameterError: An array of another computation, or numbers that have no grid.
        """
        if not isinstance(other, ArithmeticArray):
            return Public.of(other, scale)
        if other.engine is not self.engine:
            raise ParameterError("the two arrays are of different computations; share both in one")
        return cast("Self", other)

    def together(self, other: Operand) -> tuple[Self, Self | Public]:
        """Return this array and an operand, brought to one shape and one scale.

        Raises:
            ParameterError: Their shapes do not go together, or no scale is a multiple of both.
        """
        y = self.operand(other, self.scale)
        shape = broadcast_shapes(self.shape, y.shape)
        scale = math.lcm(self.scale, y.scale)
        if isinstance(y, ArithmeticArray) and scale not in (self.scale, y.scale):
            raise ParameterError(
                f"the scales {self.scale} and {y.scale} have no common grid that is one of them; "
                "share both with decimals, or both with bits"
            )
        return self.broadcast(shape).finer(scale), y.broadcast(shape).finer(scale)

    def __add__(self, other: Operand) -> Self:
        return self.plus(other)

    def plus(self, other: Operand, bound: int | None = None) -> Self:
        """Return the sum. A caller that knows a smaller bound for it may give it."""
        x, y = self.together(other)
        if bound is None:
            bound = check_bound(x.bound + y.bound, "a sum")
        if isinstance(y, ArithmeticArray):
            value = self.engine.add(x.value, y.value)
        else:
            value = self.engine.add_public(x.value, y.residues)
        return x.like(value, x.shape, bound=bound)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Self:
        y = self.operand(other, self.scale)
        return self + (y.negative() if isinstance(y, Public) else -y)

    def __rsub__(self, other: Operand) -> Self:
        return -self + other

    def sum(self, axis: int | None = None) -> Self:
        """Return the sum of all elements, or along an axis."""
        if axis is None:
            return self.reshape(-1).sum(0)
        axis = range(self.ndim)[axis]
        count = self.shape[axis]
        bound = check_bound(self.bound * max(count, 1), "a sum")
        first = self._move(lambda a: np.moveaxis(a, axis, 0))
        value = self.engine.total(first.value, count, math.prod(first.shape[1:]))
        return self.like(value, first.shape[1:], bound=bound)

    def mean(self) -> Self:
        """Return the mean of all elements, exactly: the sum over a scale `size` times as fine."""
        if not self.size:
            raise ParameterError("an empty array has no mean")
        total = self.sum()
        return total.like(total.value, (), total.scale * self.size)

    # Products: one round for two shared arrays, no message for a public one

    def __mul__(self, other: Operand) -> Self:
        return self.times(other)

    def times(self, other: Operand, bound: int | None = None) -> Self:
        """Return the product. A caller that knows a smaller bound for it may give it."""
        y = self.operand(other, 1)
        shape = broadcast_shapes(self.shape, y.shape)
        if bound is None:
            bound = check_bound(self.bound * y.bound, "a product")
        x, y = self.broadcast(shape), y.broadcast(shape)
        if isinstance(y, ArithmeticArray):
            value = self.engine.multiply(x.value, y.value)
        else:
            value = self.engine.scale(x.value, y.residues)
        return x.like(value, shape, x.scale * y.scale, bound)

    __rmul__ = __mul__

    def square(self) -> Self:
        """Return the squares, at half the cost of a product."""
        bound = check_bound(self.bound**2, "a square")
        return self.like(self.engine.square(self.value), self.shape, self.scale**2, bound)

    def __matmul__(self, other: Operand) -> Self:
        y = self.operand(other, 1)
        if self.ndim == 1:
            return (self.reshape(1, -1) @ y)._move(lambda a: a.reshape(a.shape[1:]))
        if len(y.shape) == 1:
            column = Public(y.integers[:, None], y.scale) if isinstance(y, Public) else y[:, None]
            return (self @ column)._move(lambda a: a.reshape(a.shape[:-1]))
        m, k, n = _matrix_shape(self.shape, y.shape)
        bound = check_bound(self.bound * y.bound * max(k, 1), "a matrix product")
        if isinstance(y, ArithmeticArray):
            value = self.engine.matmul(self.value, y.value, (m, k, n))
        else:
            table = y.residues.reshape(k, n)
            value = self.engine.matmul_public(self.value, (m, k), table, left=False)
        return self.like(value, (m, n), self.scale * y.scale, bound)

    def __rmatmul__(self, other: npt.ArrayLike) -> Self:
        y = self.operand(other, 1)
        if not isinstance(y, Public):
            return y @ self
        if len(y.shape) == 1:
            row = Public(y.integers[None], y.scale)
            return self._rmatmul(row)._move(lambda a: a.reshape(a.shape[1:]))
        return self._rmatmul(y)

    def _rmatmul(self, y: Public) -> Self:
        if self.ndim == 1:
            return self[:, None]._rmatmul(y)._move(lambda a: a.reshape(a.shape[:-1]))
        m, k, n = _matrix_shape(y.shape, self.shape)
        bound = check_bound(self.bound * y.bound * max(k, 1), "a matrix product")
        table = y.residues.reshape(m, k)
        value = self.engine.matmul_public(self.value, (k, n), table, left=True)
        return self.like(value, (m, n), self.scale * y.scale, bound)

    def dot(self, other: Operand) -> Self:
        """Return the inner product or the matrix product."""
        return self @ other

    # Comparisons: seven rounds; 1 for true, 0 for false

    def __lt__(self, other: Operand) -> Self:
        d = self - other
        return d.like(self.engine.negative(d.value), d.shape, 1, 1)

    def __gt__(self, other: Operand) -> Self:
        d = other - self
        return d.like(self.engine.negative(d.value), d.shape, 1, 1)

    def __ge__(self, other: Operand) -> Self:
        return (1 - (self < other)).within(1)

    def __le__(self, other: Operand) -> Self:
        return (1 - (self > other)).within(1)

    def __eq__(self, other: Operand) -> Self:  # type: ignore[override]
        d = self - other
        return d.like(self.engine.zero(d.value), d.shape, 1, 1)

    def __ne__(self, other: Operand) -> Self:  # type: ignore[override]
        return (1 - (self == other)).within(1)

    def truncate(self, bits: int) -> Self:
        """Return floor(x) on a grid that is 2^bits coarser: exact, never off by one.

        Raises:
            ParameterError: The scale is not a multiple of 2^bits.
            RangeError: Values beyond 2^59 units.
        """
        if bits not in range(1, 59) or self.scale % (1 << bits):
            raise ParameterError(
                f"a scale of {self.scale} has no {bits} binary digits to drop; share with bits="
            )
        if self.bound >= CUT_LIMIT:
            raise RangeError("values beyond 2^59 units cannot be truncated; share fewer digits")
        value = self.engine.shifted(self.value, bits)
        return self.like(value, self.shape, self.scale >> bits, (self.bound >> bits) + 1)

    def reveal(self, to: Sequence[str] | str | None = None) -> npt.NDArray[Any]:
        """Open the values to some parties or clients, by default to all parties.

        Returns:
            int64 if the scale is 1, else the nearest float64.

        Raises:
            ParameterError: A name that is neither a party nor a client.
            RangeError: A value beyond its bound: a party did not keep to the protocol.
        """
        everyone = self.engine.names
        names = [to] if isinstance(to, str) else list(dict.fromkeys(everyone if to is None else to))
        known = (*everyone, *self.engine.clients)
        if not names or any(name not in known for name in names):
            raise ParameterError(f"reveal to parties or clients: {', '.join(known)}")
        opened = self.engine.reveal(self.value, names)
        integers = field.decode(opened, bound=self.bound, what="a revealed value")
        return in_units(integers, self.scale).reshape(self.shape)


def broadcast_shapes(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that two shapes are repeated to.

    Raises:
        ParameterError: They do not go together.
    """
    try:
        return np.broadcast_shapes(x, y)
    except ValueError:
        raise ParameterError(f"shapes {x} and {y} do not go together") from None


def _matrix_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, int, int]:
    if len(x) != 2 or len(y) != 2 or x[1] != y[0]:
        raise ParameterError(f"matmul: shapes {x} and {y} do not match")
    return x[0], x[1], y[1]
