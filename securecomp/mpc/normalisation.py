"""Normalisation: numbers on a binary grid are brought into a fixed range.

Comparisons with public powers of 2 find the length of a value, in shares. The value is multiplied
by the power of 2 that belongs to its length, so that it is from 1/2 to below 1. Nothing of its size
is revealed.

Source: Catrina, Saxena, Financial Cryptography 2010 (normalisation).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from securecomp.errors import ParameterError
from securecomp.mpc.arithmetic_array import A
from securecomp.mpc.selection import concatenate

WORK = 28
"""Digits of a value in the range, and of what is computed from it."""


def binary_digits(x: A) -> int:
    """Return f of a scale 2^f.

    Raises:
        ParameterError: It is not a power of 2.
    """
    if x.scale & (x.scale - 1):
        raise ParameterError("this function takes values on a binary grid; share them with bits=")
    return x.scale.bit_length() - 1


def rounded(x: A, digits: int) -> A:
    """Return x on a binary grid of so many digits: rounded to nearest, or the same numbers."""
    drop = binary_digits(x) - digits
    if drop <= 0:
        return x.finer(1 << digits)
    half = x.like(x.value, x.shape, 1) + (1 << (drop - 1))
    return half.like(half.value, half.shape, x.scale).truncate(drop)


def over(x: A, factor: int) -> A:
    """Return x / factor: the same integers over a finer scale."""
    return x.like(x.value, x.shape, x.scale * factor)


def units(x: A) -> A:
    """Return a flat array's integers, over the scale 1."""
    return x.like(x.value, (x.size,), 1)


def lengths(x: A) -> list[A]:
    """Return for L = 1, 2, ... whether each of x's integers is positive and has L bits."""
    bits = max(x.bound.bit_length(), 1)
    n = x.size
    limits = np.repeat([1 << j for j in range(bits)], n)
    reached = concatenate([x] * bits) >= limits
    steps = [reached[j * n : (j + 1) * n] for j in range(bits)]
    return [a - b for a, b in pairwise(steps)] + steps[-1:]


def chosen(where: Sequence[A], numbers: Sequence[int]) -> A:
    """Return the number that goes with each value's length; at most one of `where` is 1."""
    terms = [is_it * number for is_it, number in zip(where, numbers, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total.within(max(numbers))


def fraction(x: A, factor: A, bits: int) -> A:
    """Return X factor / 2^bits, which is below 1, with `WORK` digits."""
    w = x.times(factor, (1 << bits) - 1)
    return rounded(w.like(w.value, w.shape, 1 << bits), WORK).within(1 << WORK)


def coefficient(number: float) -> float:
    """Return a constant of an iteration, on a grid of 20 digits."""
    return round(number * 2.0**20) / 2.0**20
