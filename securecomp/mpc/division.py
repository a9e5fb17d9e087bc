"""Division of shared numbers: exact quotients, exact integer division, reciprocals.

A quotient is exact: its grid's floor of X / Y, for integers X and Y over their scales. 1/Y is
approximated as v r / 2^(B + 28), where v is a power of 2 that brings Y < 2^B to w = Y v / 2^B in
[1/2, 1), and r is 1/w with 28 digits, by Newton's iteration. Then, as in long division,

    q = the nearest integer to R v r / 2^(B + 28 + k),  R becomes R - 2^k q Y,

begins with R = X and goes on until |R| < Y: with |R| < 2^m Y before a step, the error of 2^k q is
below 2^max(k + 1, m - 25), and below 1 for k = 0 and m <= 25. A comparison of the last R with 0
gives the floor. k is as small as the field allows: R v takes m - k + B bits.

A divisor of 0 gives 0. Nothing but shapes, scales and bounds decides how many steps there are.

Source: Catrina, Saxena, Financial Cryptography 2010 (normalisation, Newton's iteration); the first
guess 48/17 - 32/17 w is the classical linear one.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic

import numpy as np

from securecomp.core import checks
from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import normalisation
from securecomp.mpc.arithmetic_array import A, Operand, broadcast_shapes
from securecomp.mpc.normalisation import WORK, coefficient, over, rounded
from securecomp.mpc.public_values import Public

RELATIVE_ERROR = 2.0**-22
"""`reciprocal` is within this of the value, and a unit of the result's grid; `divide` where its
grid has room."""
_RELATIVE_BITS = 22
_HALF_WORK = WORK // 2
_MOST_BITS = 56
"""Bits of a dividend, so that R stays below 2^57 and can be truncated with half a unit added."""
_ROOM = 58
"""Bits of R v."""
_WIDEST_INVERSE = 30
_WIDEST_DIVISOR = 50
"""Bits of a divisor. At this width a step gives 7 bits of the quotient, and more below it."""


@dataclass(frozen=True, slots=True)
class _Divisor(Generic[A]):
    """A divisor Y >= 0, and the factors that approximate 1/Y.

    Attributes:
        y: Y, flat integers.
        v: Powers of 2; 0 where Y is 0.
        r: 1/w, over 2^28.
        bits: B.
        least: Bits of the smallest Y that is not 0.
    """

    y: "A | Public"
    v: "A | Public"
    r: "A | Public"
    bits: int
    least: int


def divide(x: A, y: Operand, bits: int | None = None) -> A:
    """Return the floor of x / y on a binary grid: exact, less than a unit below x / y.

    By default the grid has 22 bits more than the smallest quotient that the bounds allow, so that
    the relative error is below 2^-22 for all of them. Where the field has no room for so many, it
    is as fine as there is room. Quotients of integers that are integers come out as they are.

    Args:
        x: The dividend, on any grid.
        y: The divisor, on any grid. A shared 0 gives 0. By public numbers the quotient is exact,
            over a finer scale, unless bits are given.
        bits: Binary digits of the result, if the default leaves too little room for later products.

    Raises:
        ParameterError: Arrays of different computations, shapes that do not go together, or a
            public divisor that is 0.
        RangeError: The bounds leave no room, or none for so many bits.
    """
    divisor = x.operand(y, 1)
    if bits is not None:
        checks.integer(bits, "the number of bits", 0, _MOST_BITS)
        return _quotient(x, divisor, 1 << bits)
    if isinstance(divisor, Public):
        return exact_ratio(x, divisor)
    ratio = Fraction(divisor.scale, x.scale)
    # A dividend's unit over the largest divisor is to have 22 bits.
    wanted = divisor.bound.bit_length() + _RELATIVE_BITS - ratio.numerator.bit_length() + 1
    room = _MOST_BITS - (max(x.bound, 1) * ratio.numerator).bit_length()
    return _quotient(x, divisor, ratio.denominator << max(0, min(wanted, room)))


def floor_divide(x: A, y: Operand) -> A:
    """Return the floor of x / y, an integer, exactly; y is shared or public.

    Raises:
        ParameterError: A public divisor that is 0.
        RangeError: The bounds leave no room.
    """
    divisor = x.operand(y, 1)
    return _quotient(x, divisor, 1)


def remainder(x: A, y: Operand) -> A:
    """Return x - y floor(x / y), exactly: of the sign of y, as Python's `%`. A shared 0 gives x.

    Raises:
        ParameterError, RangeError: As `floor_divide`.
    """
    divisor = x.operand(y, 1)
    whole = floor_divide(x, divisor)
    scale = math.lcm(x.scale, divisor.scale)
    product = whole.times(divisor, x.bound * divisor.scale // x.scale + divisor.bound + 1)
    # The remainder is below the divisor, though the two terms are larger.
    bound = divisor.bound * (scale // divisor.scale)
    if not isinstance(divisor, Public):
        bound = max(bound, x.bound * (scale // x.scale))
    return x.finer(scale).plus(-product.finer(scale), bound=bound)


def exact_ratio(x: A, y: Public) -> A:
    """Return x / y for public numbers, exactly: the integers of x over a finer scale.

    Raises:
        ParameterError: A divisor that is 0.
        RangeError: The divisors have a common multiple for which the field has no room.
    """
    integers = _nonzero(y)
    common = math.lcm(*(abs(int(v)) for v in integers.flat))
    # x / (k / s) = x (s L / k) / L for the common multiple L of all k
    factors = np.array([y.scale * (common // int(v)) for v in integers.flat], object)
    shrink = math.gcd(common, *factors.tolist()) if factors.size else 1
    product = x * Public((factors // shrink).reshape(integers.shape), 1)
    return over(product, common // shrink)


def reciprocal(x: A) -> A:
    """Return 1 / x with a relative error of 2^-22; 0 for 0.

    Args:
        x: Up to 2^30 units.

    Returns:
        The same shape. On a binary grid of x, a grid with as many digits as 28 plus the bits of the
        bound, less x's.

    Raises:
        RangeError: The bound is too wide.
    """
    if x.bound.bit_length() > _WIDEST_INVERSE:
        raise RangeError(
            f"values up to {x.bound:.3g} units are too wide for a reciprocal, which takes up to "
            f"2^{_WIDEST_INVERSE}; share them with a smaller bound or fewer digits, or divide"
        )
    units = normalisation.units(x.reshape(-1))
    sign = _signs(units)
    divisor, _ = _shared(units.times(sign, units.bound))
    # 1/x = s / X = s v r / 2^(B + 28)
    power = Fraction(x.scale, 1 << (WORK + divisor.bits))
    found = divisor.r * (divisor.v * sign) * power.numerator
    return found.like(found.value, x.shape, power.denominator)


def _quotient(x: A, y: "A | Public", scale: int) -> A:
    """Return the floor of x / y over a scale."""
    ratio = Fraction(scale * y.scale, x.scale)
    shape = broadcast_shapes(x.shape, y.shape)
    flat = x.broadcast(shape).reshape(-1)
    dividend = normalisation.units(flat).scaled(ratio.numerator)
    if dividend.bound.bit_length() > _MOST_BITS:
        raise RangeError(
            f"a dividend could reach {dividend.bound:.3g} units of the result's grid, and division "
            f"takes up to 2^{_MOST_BITS}; share with smaller bounds or fewer digits, or ask for "
            "fewer bits"
        )
    if isinstance(y, Public):
        integers = _nonzero(y).reshape(-1) * ratio.denominator
        if integers.size != 1:
            integers = np.broadcast_to(integers.reshape(y.shape), shape).reshape(-1)
        divisor: _Divisor[A] = _public(abs(integers))
        _check_width(max(divisor.y.bound, 1))
        dividend = dividend * Public(np.sign(integers), 1)
    else:
        units = normalisation.units(y.broadcast(shape).reshape(-1)).scaled(ratio.denominator)
        _check_width(units.bound)
        sign = _signs(units)
        divisor, there = _shared(units.times(sign, units.bound))
        # Without a divisor there is no dividend either.
        dividend = dividend.times((sign - 1 + there).within(1), dividend.bound)
    found = _floor(dividend, divisor)
    return found.like(found.value, shape, scale)


def _check_width(bound: int) -> None:
    if bound.bit_length() > _WIDEST_DIVISOR:
        raise RangeError(
            f"a divisor could reach {bound:.3g} units, and division takes up to "
            f"2^{_WIDEST_DIVISOR}; share it with a smaller bound or fewer digits"
        )


def _floor(x: A, divisor: "_Divisor[A]") -> A:
    """Return floor(X / Y) for flat integers X, and Y > 0 or X = 0."""
    limit = max(x.bound, 1)
    bits = limit.bit_length()
    b, m = divisor.bits, max(1, bits - divisor.least + 1)
    found, rest = x * 0, x
    while True:
        k = max(0, m + b - _ROOM)
        # |2^k q Y| is below 2 |R| + 2^k, and |R| never grows by more than a hundredth.
        step = _nearest(rest, divisor, m, k).within(((4 << bits) >> k) + 1)
        taken = step.times(divisor.y, step.bound).scaled(1 << k)
        found = found.plus(step.scaled(1 << k), bound=2 << bits)
        rest = rest.plus(-taken, bound=2 << bits)
        if k == 0 and m <= WORK - 3:
            break
        m = max(k + 1, m - (WORK - 3))
    return found.plus(-(rest < 0), bound=limit)


def _nearest(rest: A, divisor: "_Divisor[A]", m: int, k: int) -> A:
    """Return about R / (2^k Y), to the nearest integer, where |R| < 2^m Y."""
    a = _shifted(rest, k)
    z = a.times(divisor.v, (1 << (m - k + divisor.bits)) + (1 << divisor.bits))
    drop = max(0, m - k + divisor.bits - (WORK + 1))
    z = _shifted(z, drop).within((2 << WORK) + 1)
    return _shifted(z * divisor.r, WORK + divisor.bits - drop)


def _shifted(x: A, by: int) -> A:
    """Return the nearest integer to x / 2^by."""
    if not by:
        return x
    half = x + (1 << (by - 1))
    cut = half.like(half.value, half.shape, 1 << by).truncate(by)
    return cut.like(cut.value, cut.shape, 1)


def _signs(x: A) -> A:
    """Return -1 where x is negative, and 1 elsewhere."""
    return (1 - 2 * (x < 0)).within(1)


def _shared(y: A) -> "tuple[_Divisor[A], A]":
    """Return the divisor of flat integers Y >= 0, and 1 where Y is not 0."""
    lengths = normalisation.lengths(y)
    bits = len(lengths)
    v = normalisation.chosen(lengths, [1 << (bits - length) for length in range(1, bits + 1)])
    there = normalisation.chosen(lengths, [1] * bits)
    r = normalisation.units(_inverse(normalisation.fraction(y, v, bits)))
    return _Divisor(y, v, r, bits, 1), there


def _inverse(w: A) -> A:
    """Return 1/w for w from 1/2 to below 1, with a relative error of 2^-27.

    The first guess is within 1/17 of it, and each step squares the relative error. Until the last
    step r has 14 digits, so that r (2 - w r) is exact in 56 and rounded once.
    """
    half = 3 << _HALF_WORK
    r = rounded(w * -coefficient(32 / 17) + coefficient(48 / 17), _HALF_WORK).within(half)
    for digits in (_HALF_WORK, _HALF_WORK, WORK):
        rest = (2 - w * r).within(2 << (WORK + _HALF_WORK))
        r = rounded(r * rest, digits).within((2 << digits) + 1)
    return r


def _public(integers: "np.ndarray[tuple[int], np.dtype[np.object_]]") -> "_Divisor[A]":
    """Return the divisor of public integers above 0."""
    lengths = [int(v).bit_length() for v in integers]
    bits = max(lengths, default=1)
    v = np.array([1 << (bits - length) for length in lengths], object)
    # 1/w = 2^L / Y
    r = [
        round(Fraction(1 << (WORK + length), int(y)))
        for y, length in zip(integers, lengths, strict=True)
    ]
    return _Divisor(
        Public(integers, 1),
        Public(v, 1),
        Public(np.array(r, object), 1),
        bits,
        min(lengths, default=1),
    )


def _nonzero(y: Public) -> "np.ndarray[tuple[int, ...], np.dtype[np.object_]]":
    integers = y.integers.astype(object)
    if any(v == 0 for v in integers.flat):
        raise ParameterError("a public divisor is 0; leave it out")
    return integers
