"""Amounts of epsilon and delta as exact numbers, so that ten times 0.1 is 1.

A float is read as people write it, at the 15 significant digits that a double always keeps: 0.1 is
1/10, and 0.1 + 0.2 or 1.0000000000000002, which differ from 0.3 and 1 by rounding only, are 0.3 and
1. So a float is read at most 5e-15 of itself too low. Text, `Decimal`, `Fraction` and integers are
taken with all of their digits: `Decimal("1.0000000000000002")` is more than 1.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from securecomp.errors import ParameterError

Amount = int | float | str | Decimal | Fraction
"""An epsilon or a delta, as it is given."""

_MOST_DIGITS = 400
_MOST_BITS = 1328  # of 400 digits
_SHORT = Decimal("1e-6")
_MOST_DELTA = Fraction(1, 100)


def exact(value: Amount, name: str) -> Fraction:
    """Return an amount as a fraction.

    Args:
        value: The amount; a float, also one of numpy's, at 15 significant digits.
        name: What it is, for messages.

    Raises:
        ParameterError: It is not a finite number.
    """
    if isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} is a number, not {value}")
    try:
        if isinstance(value, int | Fraction) or (isinstance(value, str) and "/" in value):
            found = Fraction(value)
            if max(abs(found.numerator), found.denominator).bit_length() > _MOST_BITS:
                raise ValueError
            return found
        number = Decimal(value if isinstance(value, str | Decimal) else f"{float(value):.15g}")
        if not number.is_finite() or (number and abs(number.adjusted()) > _MOST_DIGITS):
            raise ValueError  # a huge exponent would fill the memory
        if len(number.as_tuple().digits) > _MOST_DIGITS:
            raise ValueError  # and what is written must be read back
        return Fraction(number)
    except (ValueError, TypeError, ArithmeticError):
        raise ParameterError(f"{name} is a finite number such as 0.5, not {value!r}") from None


def epsilon_of(value: Amount) -> Fraction:
    """Return a mechanism's epsilon.

    Raises:
        ParameterError: It is not a finite number above 0.
    """
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise ParameterError(
            f"epsilon must be above 0, not {value}: at 0 a result could say nothing about the data"
        )
    return epsilon


def delta_of(value: Amount, *, needed: bool) -> Fraction:
    """Return a mechanism's delta.

    Args:
        value: The delta.
        needed: Whether the mechanism has no guarantee at delta 0.

    Raises:
        ParameterError: It is not a number from 0 to below 1, or is 0 where one is needed.
    """
    delta = exact(value, "delta")
    if not 0 <= delta < 1:
        raise ParameterError(f"delta is a probability, at least 0 and below 1, not {value}")
    if needed and delta == 0:
        raise ParameterError(
            "only Laplace noise has a guarantee at delta 0, Gaussian and Skellam noise have none; "
            "give a delta well below one over the number of persons, such as 1e-6 (--delta), or "
            "take Laplace noise (--noise laplace)"
        )
    return delta


def check_promised_delta(delta: Fraction) -> Fraction:
    """Return the delta of a promise to people, of whom there may be any number.

    Raises:
        ParameterError: It is above 0.01. Whoever publishes one of n persons' data as they are,
            drawn by lot, keeps a delta of 1/n. Well below is a hundredth of that, and at most 0.01
            whatever n is.
    """
    if delta > _MOST_DELTA:
        raise ParameterError(
            f"delta {float(delta):g} promises nothing: publishing one of {math.floor(1 / delta)} "
            "persons' data as they are would keep it; take a delta well below one over the number "
            "of persons, such as 1e-6, and at most 0.01"
        )
    return delta


def above(value: Fraction) -> float:
    """Return the smallest float that is not below a number: rounding never takes noise away.

    Raises:
        ParameterError: The number is beyond all floats.
    """
    try:
        nearest = float(value)
    except OverflowError:
        raise ParameterError("the noise would be beyond all floating-point numbers") from None
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def below(amount: Fraction) -> float:
    """Return the largest float that is not above an amount: rounding promises nothing more."""
    near = float(amount)
    return near if Fraction(near) <= amount else math.nextafter(near, -math.inf)


def written(value: Fraction) -> str:
    """Return an amount as text that `exact` reads back: a decimal where it has one."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return str(value)
    with localcontext() as context:
        context.prec = 3 * _MOST_DIGITS
        number = Decimal(value.numerator) / Decimal(value.denominator)
    text = f"{number:f}" if abs(number) >= _SHORT or not number else f"{number.normalize():e}"
    return text if Fraction(text) == value else str(value)  # too long a decimal was rounded


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """A budget, or an amount that is spent of one.

    Attributes:
        epsilon: The epsilon, exact.
        delta: The delta, exact.
    """

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not type(self.epsilon) is type(self.delta) is Fraction:
            raise ParameterError("a cost is of fractions; PrivacyCost.of takes other numbers")

    @classmethod
    def of(cls, epsilon: Amount, delta: Amount = 0) -> "PrivacyCost":
        """Return a cost.

        Raises:
            ParameterError: An amount is no finite number, epsilon is negative, or delta is not a
                probability below 1.
        """
        least = exact(epsilon, "epsilon")
        if least < 0:
            raise ParameterError(f"epsilon must not be negative: {epsilon}")
        return cls(least, delta_of(delta, needed=False))

    def __add__(self, other: "PrivacyCost") -> "PrivacyCost":
        return PrivacyCost(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: "PrivacyCost") -> "PrivacyCost":
        return PrivacyCost(self.epsilon - other.epsilon, self.delta - other.delta)

    def fits(self, other: "PrivacyCost") -> bool:
        """Return whether this is at most another in both parts."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def __str__(self) -> str:
        return f"epsilon {written(self.epsilon)}, delta {written(self.delta)}"


NOTHING = PrivacyCost(Fraction(0), Fraction(0))
