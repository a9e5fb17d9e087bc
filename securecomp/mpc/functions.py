"""Functions of shared numbers on a binary grid: clamp, sigmoid, square root.

Comparisons with public numbers bring a value into a fixed range, where a polynomial or Newton's
iteration holds. The stated errors include all rounding.

Sources: Chebyshev series by T_(m+j) = 2 T_m T_j - T_(m-j); Newton's iteration as in Catrina,
Saxena, Financial Cryptography 2010; the first guess is the classical linear one.
"""

import math
from collections.abc import Sequence

from securecomp.core import checks, minimax
from securecomp.errors import RangeError
from securecomp.mpc import normalisation
from securecomp.mpc.arithmetic_array import A
from securecomp.mpc.normalisation import WORK, coefficient, over, rounded
from securecomp.mpc.selection import concatenate

SIGMOID_ERROR = 2e-3
"""`sigmoid` is within this everywhere: 8.9e-4 of the polynomial, 3.4e-4 of the range, rounding."""
SQRT_ERROR = 2.0**-22
"""`sqrt` is within this of the value, and a unit of the result's grid."""
_RANGE = 8
_F = 14  # digits of T_1, so that T_2 has 28, and T_2 squared 56 of the 59 that can be truncated
_ONE = 1 << _F
_MOST_BITS = 30


def clamp(x: A, limit: int) -> A:
    """Return x where it is from -limit to limit, and the nearer of the two elsewhere.

    Raises:
        ParameterError: The limit is no integer of at least 0.
    """
    checks.integer(limit, "the limit", 0)
    if x.bound <= limit * x.scale:
        return x
    flat = x.reshape(-1)
    n = flat.size
    ends = concatenate([flat - limit, -flat - limit])
    beyond = ends > 0
    excess = beyond * ends
    inside = (flat - excess[:n] + excess[n:]).within(limit * x.scale)
    return inside.reshape(x.shape)


def sigmoid(x: A) -> A:
    """Return 1 / (1 + exp(-x)) within `SIGMOID_ERROR`, for every x.

    x is clamped to [-8, 8], because beyond 8 the function is within 3.4e-4 of its value there. On
    that range the best odd polynomial of degree 15 is evaluated.

    Args:
        x: On a binary grid.

    Returns:
        The same shape on a grid of 14 digits. A value may be up to `SIGMOID_ERROR` below 0 or
        above 1.

    Raises:
        ParameterError: Not on a binary grid.
    """
    normalisation.binary_digits(x)
    t = rounded(over(clamp(x.reshape(-1), _RANGE), _RANGE), _F).within(_ONE)
    series = minimax.sigmoid(float(_RANGE), 15).coefficients
    return (_odd_series(t, series) + 0.5).reshape(x.shape)


def _odd_series(t: A, c: Sequence[float]) -> A:
    """Return the sum of c_k T_k(t) for odd k up to 15; t is within -1 and 1, on 14 digits.

    Bounds: |T_k| <= 1, and so every part of the series is within the sum of its coefficients.
    """
    n = t.size
    t2 = (2 * t.square() - 1).within(1 << (2 * _F))
    t4 = rounded(2 * t2.square() - 1, _F).within(_ONE)
    t8 = (2 * t4.square() - 1).within(1 << (2 * _F))
    # c = high T_8 + low, and each of the two again over T_4: four series of degree 3.
    high, low = _cut(list(c), 8)
    parts = [part for half in (low, high) for part in _cut(half, 4)]
    # h T_3 + l T_1 = t (2 h T_2 + l - h)
    inner = [(t2 * _short(2 * p[3]) + _short(p[1] - p[3])).finer(1 << (3 * _F)) for p in parts]
    threes = rounded(concatenate([t] * 4) * concatenate(inner), _F)
    threes = threes.within(_within(max(parts, key=_sum), _F))
    upper, lower = (concatenate([threes[i * n :][:n] for i in pair]) for pair in ((0, 2), (1, 3)))
    sevens = concatenate([t4, t4]) * upper + lower
    low7 = sevens[:n].within(_within(low, 2 * _F))
    high7 = sevens[n:].within(_within(high, 2 * _F))
    return rounded(high7 * t8 + low7, _F)


def _cut(c: list[float], m: int) -> tuple[list[float], list[float]]:
    """Return (high, low), both odd and of degree below m: the series is high T_m + low."""
    high, low = [0.0] * m, c[:m]
    for k in range(m + 1, min(len(c), 2 * m)):
        high[k - m] += 2 * c[k]
        low[2 * m - k] -= c[k]
    return high, low


def _short(coefficient: float) -> float:
    return round(coefficient * _ONE) / _ONE


def _sum(c: Sequence[float]) -> float:
    return sum(map(abs, c[1::2]))


def _within(c: Sequence[float], digits: int) -> int:
    """Return a bound of a series in units. A hundredth covers all rounding."""
    return math.ceil((_sum(c) + 0.01) * 2.0**digits)


def sqrt(x: A) -> A:
    """Return the square root within `SQRT_ERROR`, relative. Zero and negative numbers give 0.

    Args:
        x: On a binary grid; below 2^30 units.

    Returns:
        The same shape, on a grid of 28 digits and half of x's.

    Raises:
        ParameterError: Not on a binary grid.
        RangeError: The bound is too wide.
    """
    f = normalisation.binary_digits(x)
    if f % 2:
        x, f = x.finer(2 * x.scale), f + 1
    if x.bound.bit_length() > _MOST_BITS:
        raise RangeError(
            f"values up to {x.bound:.3g} units are too wide for sqrt, which takes 2^{_MOST_BITS}; "
            "share them with a smaller bound or fewer digits"
        )
    units = normalisation.units(x.reshape(-1))
    lengths = normalisation.lengths(units)
    bits = len(lengths) + len(lengths) % 2
    # By an even number of places, so that w is from 1/4 to below 1 and X = w 4^ceil(L/2).
    v = normalisation.chosen(
        lengths, [1 << ((bits - n) // 2 * 2) for n in range(1, len(lengths) + 1)]
    )
    power = normalisation.chosen(lengths, [1 << -(-n // 2) for n in range(1, len(lengths) + 1)])
    w = normalisation.fraction(units, v, bits)
    # Within 9 % of 1/sqrt(w); each step y (3 - w y^2) / 2 leaves 3/2 of the square of that.
    y = rounded(w * -coefficient(1.22) + coefficient(2.15), WORK).within(5 << (WORK - 1))
    for _ in range(3):
        rest = (3 - _product(w, _product(y, y, 7), 3)).within(3 << WORK)
        y = rounded(over(y * rest, 2), WORK).within(5 << (WORK - 1))
    # For x = 0 the iteration diverges, and its result is multiplied by w = 0.
    root = _product(w, y, 1) * power
    return root.like(root.value, x.shape, 1 << (WORK + f // 2))


def _product(x: A, y: A, bound: int) -> A:
    return rounded(x * y, WORK).within(bound << WORK)
