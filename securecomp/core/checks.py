"""Checks of agreed numbers: each is what it should be before anything is compared with it.

A comparison with NaN is false, `True` counts as 1, and numpy's integers wrap. A number that
parties agree on is therefore checked for its type first, where it is taken.
"""

import math

from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError, brief


def integer(value: object, what: str, least: int | None = None, most: int | None = None) -> int:
    """Return an agreed number if it is a plain integer within its ends.

    Args:
        value: The number. It is public: the error shows it.
        what: What to call it in an error, such as "the minimum".
        least: The smallest that is allowed.
        most: The largest that is allowed.

    Raises:
        ParameterError: Another type, also `bool` and numpy's integers, or not within the ends.
    """
    if type(value) is not int:
        raise ParameterError(f"{what} is a plain integer, not {brief(repr(value))}")
    if (least is not None and value < least) or (most is not None and value > most):
        ends = f"from {least} to {most}" if most is not None else f"at least {least}"
        if least is None:
            ends = f"at most {most}"
        raise ParameterError(f"{what} must be {ends}, not {value}")
    return value


def real(value: object, what: str, kind: str = "a finite number") -> float:
    """Return an agreed number as a float, if it is one real and finite number.

    Args:
        value: The number, of any of Python's or numpy's types but truth values. It is public.
        what: What to call it in an error.
        kind: What it should be, in words.

    Raises:
        ParameterError: Another type, NaN, infinite, or beyond all floats.
    """
    try:
        number = float(value) if is_number(value) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ParameterError(f"{what} is {kind}, not {brief(repr(value))}")
    return number


def truth(value: object, what: str) -> bool:
    """Return an agreed yes or no.

    Raises:
        ParameterError: Neither `True` nor `False`.
    """
    if not isinstance(value, bool):
        raise ParameterError(f"{what} is True or False, not {brief(repr(value))}")
    return value
