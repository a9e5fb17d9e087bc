"""Functions of shared numbers on a binary grid: sigmoid, reciprocal, division, square root.

A value is first brought into a fixed range, by comparisons with public numbers; there a polynomial
or Newton's iteration holds. Errors are stated with all rounding in them.

Sources: Chebyshev series by T_(m+j) = 2 T_m T_j - T_(m-j); normalisation and Newton's iteration as
in Catrina, Saxena, Financial Cryptography 2010; the first guess is the classical linear one.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from securecomp.core import field, minimax
from securecomp.errors import ParameterError, RangeError
from securecomp.mpc.selection import concatenate
from securecomp.mpc.shared_array import SharedArray

SIGMOID_ERROR = 2e-3
"""`sigmoid` is within this everywhere: 8.9e-4 of the polynomial, 3.4e-4 of the range, rounding."""
RELATIVE_ERROR = 2.0**-22
"""`reciprocal` and `sqrt` are within this of the value, and a unit of the result's grid."""
_RANGE = 8
_F = 14  # digits of T_1, so that T_2 has 28, and T_2 squared 56 of the 59 that can be truncated
_ONE = 1 << _F
_WORK = 28  # digits of Newton's iteration
_MOST_BITS = 30


def _digits(x: SharedArray) -> int:
    """Return f of a scale 2^f.

    Raises:
        ParameterError: It is no power of 2.
    """
    if x.scale & (x.scale - 1):
        raise ParameterError("this function takes values on a binary grid; share them with bits=")
    return x.scale.bit_length() - 1


def _to(x: SharedArray, digits: int) -> SharedArray:
    """Return x on a grid of so many digits: rounded to nearest, or the same numbers."""
    drop = _digits(x) - digits
    if drop <= 0:
        return x.finer(1 << digits)
    half = x.like(x.value, x.shape, 1) + (1 << (drop - 1))
    return half.like(half.value, half.shape, x.scale).truncate(drop)


def _over(x: SharedArray, factor: int) -> SharedArray:
    """Return x / factor: the same integers over a finer scale."""
    return x.like(x.value, x.shape, x.scale * factor)


def clamp(x: SharedArray, limit: int) -> SharedArray:
    """Return x where it is within -limit and limit, else the nearer of the two."""
    if x.bound <= limit * x.scale:
        return x
    flat = x.reshape(-1)
    n = flat.size
    ends = concatenate([flat - limit, -flat - limit])
    beyond = ends > 0
    excess = beyond * ends
    inside = (flat - excess[:n] + excess[n:]).within(limit * x.scale)
    return inside.reshape(x.shape)


def sigmoid(x: SharedArray) -> SharedArray:
    """Return 1 / (1 + exp(-x)) within `SIGMOID_ERROR`, for every x.

    The best odd polynomial of degree 15 on [-8, 8], where x was clamped to: beyond, the function is
    within 3.4e-4 of its value at the end.

    Args:
        x: On a binary grid.

    Returns:
        The same shape on a grid of 14 digits; by `SIGMOID_ERROR` below 0 or above 1 at most.

    Raises:
        ParameterError: Not on a binary grid.
    """
    _digits(x)
    t = _to(_over(clamp(x.reshape(-1), _RANGE), _RANGE), _F).within(_ONE)
    series = minimax.sigmoid(float(_RANGE), 15).coefficients
    return (_odd_series(t, series) + 0.5).reshape(x.shape)


def _odd_series(t: SharedArray, c: Sequence[float]) -> SharedArray:
    """Return the sum of c_k T_k(t) for odd k up to 15; t is within -1 and 1, on 14 digits.

    Bounds: |T_k| <= 1, and so every part of the series is within the sum of its coefficients.
    """
    n = t.size
    t2 = (2 * t.square() - 1).within(1 << (2 * _F))
    t4 = _to(2 * t2.square() - 1, _F).within(_ONE)
    t8 = (2 * t4.square() - 1).within(1 << (2 * _F))
    # c = high T_8 + low, and each of the two again over T_4: four series of degree 3.
    high, low = _cut(list(c), 8)
    parts = [part for half in (low, high) for part in _cut(half, 4)]
    # h T_3 + l T_1 = t (2 h T_2 + l - h)
    inner = [(t2 * _rounded(2 * p[3]) + _rounded(p[1] - p[3])).finer(1 << (3 * _F)) for p in parts]
    threes = _to(concatenate([t] * 4) * concatenate(inner), _F)
    threes = threes.within(_within(max(parts, key=_sum), _F))
    upper, lower = (concatenate([threes[i * n :][:n] for i in pair]) for pair in ((0, 2), (1, 3)))
    sevens = concatenate([t4, t4]) * upper + lower
    low7 = sevens[:n].within(_within(low, 2 * _F))
    high7 = sevens[n:].within(_within(high, 2 * _F))
    return _to(high7 * t8 + low7, _F)


def _cut(c: list[float], m: int) -> tuple[list[float], list[float]]:
    """Return (high, low), both odd and of degree below m: the series is high T_m + low."""
    high, low = [0.0] * m, c[:m]
    for k in range(m + 1, min(len(c), 2 * m)):
        high[k - m] += 2 * c[k]
        low[2 * m - k] -= c[k]
    return high, low


def _rounded(coefficient: float) -> float:
    return round(coefficient * _ONE) / _ONE


def _sum(c: Sequence[float]) -> float:
    return sum(map(abs, c[1::2]))


def _within(c: Sequence[float], digits: int) -> int:
    """Return what a series stays within, in units: a hundredth covers all rounding."""
    return math.ceil((_sum(c) + 0.01) * 2.0**digits)


def _lengths(x: SharedArray) -> tuple[SharedArray, list[SharedArray]]:
    """Return X, x in units of its grid, and for L = 1, 2, ... whether X has L bits (X > 0)."""
    bits = x.bound.bit_length()
    if bits > _MOST_BITS:
        raise RangeError(
            f"values up to {x.bound:.3g} units are too wide here, at most 2^{_MOST_BITS}; share "
            "them with a smaller bound or fewer digits"
        )
    n = x.size
    units = x.like(x.value, (n,), 1)
    limits = np.repeat([1 << j for j in range(bits)], n)
    reached = concatenate([units] * bits) >= limits
    steps = [reached[j * n : (j + 1) * n] for j in range(bits)]
    return units, [a - b for a, b in pairwise(steps)] + steps[-1:]


def _chosen(lengths: list[SharedArray], numbers: Sequence[int]) -> SharedArray:
    """Return the number that goes with each value's length; at most one of `lengths` is 1."""
    terms = [is_it * number for is_it, number in zip(lengths, numbers, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total.within(max(numbers))


def _fraction(units: SharedArray, factor: SharedArray, bits: int) -> SharedArray:
    """Return X factor / 2^bits, which is below 1, on the working grid."""
    w = (units * factor).within((1 << bits) - 1)
    return _to(w.like(w.value, w.shape, 1 << bits), _WORK)


def _product(x: SharedArray, y: SharedArray, bound: int) -> SharedArray:
    return _to(x * y, _WORK).within(bound << _WORK)


def reciprocal(x: SharedArray) -> SharedArray:
    """Return 1 / x for x of at least one unit of its grid: relative error 2^-22.

    Args:
        x: On a binary grid; below 2^30 units. What is not positive gives 0.

    Returns:
        The same shape, on a grid with as many digits as 28 plus the bits of the bound, less x's.

    Raises:
        ParameterError: Not on a binary grid.
        RangeError: The bound is too wide.
    """
    f = _digits(x)
    units, lengths = _lengths(x.reshape(-1))
    bits = len(lengths)
    v = _chosen(lengths, [1 << (bits - length) for length in range(1, bits + 1)])
    w = _fraction(units, v, bits)
    # 48/17 - 32/17 w is within 1/17 of 1/w; each step squares the relative error.
    r = _to(w * -_exactly(32 / 17) + _exactly(48 / 17), _WORK).within(3 << _WORK)
    for _ in range(3):
        r = _product(r, (2 - _product(w, r, 2)).within(2 << _WORK), 3)
    # 1/x = 2^f / X = 2^f v r / 2^bits
    found = r * v * (1 << max(f - bits, 0))
    return found.like(found.value, x.shape, 1 << (_WORK + max(bits - f, 0)))


def sqrt(x: SharedArray) -> SharedArray:
    """Return the square root: relative error 2^-22. What is not positive gives 0.

    Args:
        x: On a binary grid; below 2^30 units.

    Returns:
        The same shape, on a grid of 28 digits and half of x's.

    Raises:
        ParameterError: Not on a binary grid.
        RangeError: The bound is too wide.
    """
    f = _digits(x)
    if f % 2:
        x, f = x.finer(2 * x.scale), f + 1
    units, lengths = _lengths(x.reshape(-1))
    bits = len(lengths) + len(lengths) % 2
    # By an even number of places, so that w is from 1/4 to below 1 and X = w 4^ceil(L/2).
    v = _chosen(lengths, [1 << ((bits - n) // 2 * 2) for n in range(1, len(lengths) + 1)])
    power = _chosen(lengths, [1 << -(-n // 2) for n in range(1, len(lengths) + 1)])
    w = _fraction(units, v, bits)
    # Within 9 % of 1/sqrt(w); each step y (3 - w y^2) / 2 leaves 3/2 of the square of that.
    y = _to(w * -_exactly(1.22) + _exactly(2.15), _WORK).within(5 << (_WORK - 1))
    for _ in range(3):
        rest = (3 - _product(w, _product(y, y, 7), 3)).within(3 << _WORK)
        y = _to(_over(y * rest, 2), _WORK).within(5 << (_WORK - 1))
    # For x = 0 the iteration runs away, and is multiplied by w = 0.
    root = _product(w, y, 1) * power
    return root.like(root.value, x.shape, 1 << (_WORK + f // 2))


def _exactly(number: float) -> float:
    return round(number * 2.0**20) / 2.0**20


def divide(x: SharedArray, y: SharedArray) -> SharedArray:
    """Return x / y for y of at least one unit of its grid: `reciprocal`, then a product.

    The reciprocal has 24 digits, or fewer where x and y are so wide that the product would leave
    the field: the error is 2^-22 of the value, and |x| times half of its last digit.

    Raises:
        ParameterError, RangeError: As `reciprocal`, and where no digit would be left.
    """
    inverse = reciprocal(y)
    whole = inverse.bound // inverse.scale + 1
    room = field.LIMIT.bit_length() - 1 - (x.bound * whole).bit_length()
    return x * _to(inverse, max(1, min(_WORK - 4, room)))
