"""Selection among shared values: where, maximum, sort, median. Nothing is revealed."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError
from securecomp.mpc.arithmetic_array import A, ArithmeticArray, Operand

Places = npt.NDArray[np.intp]


def where(condition: A, x: Operand, y: Operand) -> A:
    """Return x where the condition is 1 and y where it is 0: one round.

    Args:
        condition: What a comparison returned.
        x: Shared or public.
        y: The same; at least one of the two is shared.

    Raises:
        ParameterError: The condition is not of zeros and ones, or nothing to choose is shared.
    """
    if not isinstance(condition, ArithmeticArray) or (condition.scale, condition.bound) != (1, 1):
        raise ParameterError("where: the condition is what a comparison returns, ones and zeros")
    if isinstance(x, ArithmeticArray):
        return _chosen(condition, cast("A", x), y)
    if not isinstance(y, ArithmeticArray):
        raise ParameterError("where: share one of the values; both are public here")
    return _chosen((1 - condition).within(1), cast("A", y), x)


def _chosen(condition: A, x: A, y: Operand) -> A:
    x, other = x.together(y)
    # One of the two, though the terms of this sum are larger.
    return (condition * (x - other)).plus(other, max(x.bound, other.bound))


def concatenate(parts: list[A]) -> A:
    """Return the elements of several vectors of one scale in one vector."""
    if not parts or any(p.scale != parts[0].scale or p.ndim != 1 for p in parts):
        raise ParameterError("concatenate takes vectors of one scale")
    first = parts[0]
    if any(p.engine is not first.engine for p in parts):
        raise ParameterError("concatenate: the vectors are of different computations")
    value = first.engine.join([p.value for p in parts])
    return first.like(value, (sum(p.size for p in parts),), bound=max(p.bound for p in parts))


def maximum(x: A) -> A:
    """Return the largest element. The rounds grow with the logarithm of the size."""
    return _tournament(x, lambda a, b: a < b)


def minimum(x: A) -> A:
    """Return the smallest element."""
    return _tournament(x, lambda a, b: a > b)


def argmax(x: A) -> A:
    """Return the index of a vector's largest element, the first if there are several."""
    if x.ndim != 1 or not x.size:
        raise ParameterError("argmax takes a vector with at least one element")
    nothing = x * 0
    places = nothing.like(nothing.value, x.shape, 1, 0) + np.arange(x.size)
    values = x
    while values.size > 1:
        half = values.size // 2
        even, odd = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        later = values[even] < values[odd]  # of equal ones the earlier one stays
        rest = slice(2 * half, None)
        places = concatenate([where(later, places[odd], places[even]), places[rest]])
        values = concatenate([where(later, values[odd], values[even]), values[rest]])
    return places.reshape(())


def _tournament(x: A, worse: Callable[[A, A], A]) -> A:
    if not x.size:
        raise ParameterError("an empty array has no extreme")
    x = x.reshape(-1)
    while x.size > 1:
        half = x.size // 2
        a, b = x[:half], x[half : 2 * half]
        x = concatenate([where(worse(a, b), b, a), x[2 * half :]])
    return x.reshape(())


def sort(x: A) -> A:
    """Return a vector's elements in ascending order, by Batcher's odd-even merge sort.

    Source: K. E. Batcher, Sorting networks and their applications, AFIPS 1968.
    """
    if x.ndim != 1:
        raise ParameterError("sort takes a vector")
    n = x.size
    for low, high in network(n):
        a, b = x[low], x[high]
        swap = (b < a) * (b - a)
        # The source of each element of the next order: it stays, or is the lower or the higher.
        source = np.arange(n)
        source[low] = n + np.arange(len(low))
        source[high] = n + len(low) + np.arange(len(high))
        parts = [x, a.plus(swap, x.bound), b.plus(-swap, x.bound)]
        x = concatenate(parts)[source]
    return x


def quantile(x: A, q: float) -> A:
    """Return the element of rank ceil(q n): the lower inverse of the distribution function.

    A float q stands for the decimal that it is printed as, so that 0.1 of 10 elements is 1.
    """
    if not is_number(q) or not 0 <= q <= 1 or not x.size:
        raise ParameterError("a quantile is from 0 to 1, of at least one element")
    rank = max(1, math.ceil(Fraction(str(q)) * x.size))
    return sort(x.reshape(-1))[rank - 1]


def median(x: A) -> A:
    """Return the exact median: of an even number of elements the mean of the middle two."""
    if not x.size:
        raise ParameterError("an empty array has no median")
    ordered, n = sort(x.reshape(-1)), x.size
    if n % 2:
        return ordered[n // 2]
    both = ordered[n // 2 - 1] + ordered[n // 2]
    return both.like(both.value, (), both.scale * 2)


def network(count: int) -> list[tuple[Places, Places]]:
    """Return the layers of the sorting network: the lower and the higher places to compare."""
    layers = []
    p = 1
    while p < count:
        k = p
        while k >= 1:
            pairs: list[tuple[int, int]] = [
                (i + j, i + j + k)
                for j in range(k % p, count - k, 2 * k)
                for i in range(min(k, count - j - k))
                if (i + j) // (2 * p) == (i + j + k) // (2 * p)
            ]
            table: npt.NDArray[Any] = np.array(pairs)
            layers.append((table[:, 0], table[:, 1]))
            k //= 2
        p *= 2
    return layers
