"""The numpy functions that work on shared arrays; every other one is refused by its name."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from securecomp.errors import ParameterError
from securecomp.mpc import division, functions, selection
from securecomp.mpc.arithmetic_array import ArithmeticArray

OPERATORS: dict[str, tuple[str, str]] = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
}
"""Universal functions of two operands: the method if the first is shared, or only the second."""

UNIVERSAL: dict[str, Callable[..., Any]] = {
    "positive": lambda x: x,
    "negative": lambda x: -x,
    "absolute": abs,
    "square": lambda x: x.square(),
    "sqrt": functions.sqrt,
    "reciprocal": division.reciprocal,
    "power": lambda x, exponent: x**exponent,
    "maximum": lambda x, y: selection.where(x < y, y, x),
    "minimum": lambda x, y: selection.where(x < y, x, y),
}
"""The other universal functions."""


def _sum(a: ArithmeticArray, axis: int | None = None) -> ArithmeticArray:
    return a.sum(axis)


def _mean(a: ArithmeticArray) -> ArithmeticArray:
    return a.mean()


def _dot(a: Any, b: Any) -> Any:
    return a @ b


def _where(condition: ArithmeticArray, x: Any, y: Any) -> ArithmeticArray:
    return selection.where(condition, x, y)


def _concatenate(arrays: Sequence[ArithmeticArray]) -> ArithmeticArray:
    return selection.concatenate(list(arrays))


def _reshape(a: ArithmeticArray, shape: Any) -> ArithmeticArray:
    return a.reshape(shape)


def _transpose(a: ArithmeticArray) -> ArithmeticArray:
    return a.T


def _ravel(a: ArithmeticArray) -> ArithmeticArray:
    return a.reshape(-1)


def _broadcast_to(array: ArithmeticArray, shape: tuple[int, ...]) -> ArithmeticArray:
    return array.broadcast(shape)


def _quantile(a: ArithmeticArray, q: float) -> ArithmeticArray:
    return selection.quantile(a, q)


ARRAY_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.dot: _dot,
    np.where: _where,
    np.concatenate: _concatenate,
    np.reshape: _reshape,
    np.transpose: _transpose,
    np.ravel: _ravel,
    np.broadcast_to: _broadcast_to,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.sort: selection.sort,
    np.argmax: selection.argmax,
    np.max: selection.maximum,
    np.min: selection.minimum,
    np.median: selection.median,
    np.quantile: _quantile,
}


def universal(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Any) -> Any:
    """Do what a universal function does, by the operators of the shared array among its inputs.

    Raises:
        ParameterError: It does not work on shares, or not with these options.
    """
    name = ufunc.__name__
    if method != "__call__":
        raise _refused(f"{name}.{method}")
    if options:
        raise ParameterError(f"numpy.{name} of a shared array takes no {', '.join(options)}")
    if name in OPERATORS:
        forward, reflected = OPERATORS[name]
        x, y = inputs
        if isinstance(x, ArithmeticArray):
            return getattr(x, forward)(y)
        return getattr(y, reflected)(x)
    if name not in UNIVERSAL or (name == "power" and not isinstance(inputs[0], ArithmeticArray)):
        raise _refused(name)
    return UNIVERSAL[name](*inputs)


def array_function(function: Callable[..., Any], args: Any, options: Any) -> Any:
    """Do what another numpy function does.

    Raises:
        ParameterError: It does not work on shares, or not with these arguments.
    """
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    ours = ARRAY_FUNCTIONS.get(function)
    if ours is None:
        raise _refused(name)
    try:
        inspect.signature(ours).bind(*args, **options)
    except TypeError as error:
        raise ParameterError(f"numpy.{name} of a shared array: {error}") from None
    return ours(*args, **options)


def _refused(name: str) -> ParameterError:
    return ParameterError(
        f"numpy.{name} does not work on shares; use the operators and functions of securecomp.mpc, "
        "or reveal() the array"
    )
