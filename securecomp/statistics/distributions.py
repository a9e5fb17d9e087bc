"""p values and quantiles of the distributions that tests use, and how exact numbers become floats.

The distributions are scipy's.
"""

import math
from fractions import Fraction
from typing import Any, Literal

from securecomp.errors import ParameterError, RangeError

Alternative = Literal["two-sided", "less", "greater"]


def _special() -> Any:
    """Return scipy's special functions. They take .3 seconds and 30 MB to load, so late."""
    from scipy import special

    return special


def check_confidence(confidence: float) -> float:
    """Return a confidence level.

    Raises:
        ParameterError: It is not a number between 0 and 1.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise ParameterError(f"confidence is a number between 0 and 1, not {confidence!r}")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence is between 0 and 1, say 0.95; not {confidence!r}")
    return float(confidence)


def check_alternative(alternative: Alternative) -> Alternative:
    """Return what is tested against.

    Raises:
        ParameterError: There is no such alternative.
    """
    if alternative not in ("two-sided", "less", "greater"):
        raise ParameterError(
            f'alternative is "two-sided", "less" or "greater", not {alternative!r}'
        )
    return alternative


def t_pvalue(statistic: float, df: float, alternative: Alternative = "two-sided") -> float:
    """Return the p value of a t statistic."""
    if alternative == "two-sided":
        return float(2 * _special().stdtr(df, -abs(statistic)))
    return float(_special().stdtr(df, statistic if alternative == "less" else -statistic))


def t_quantile(probability: float, df: float) -> float:
    """Return the quantile of Student's t."""
    return float(_special().stdtrit(df, probability))


def normal_pvalue(statistic: float) -> float:
    """Return the two-sided p value of a normal statistic."""
    return float(2 * _special().ndtr(-abs(statistic)))


def normal_quantile(probability: float) -> float:
    """Return the quantile of the standard normal."""
    return float(_special().ndtri(probability))


def half_width(confidence: float) -> float:
    """Return how many standard errors a two-sided normal interval extends to each side."""
    return normal_quantile(0.5 + confidence / 2)


def f_pvalue(statistic: float, df: float, df_error: float) -> float:
    """Return the upper tail of Fisher's F."""
    return float(_special().fdtrc(df, df_error, statistic))


def chi_square_pvalue(statistic: float, df: float) -> float:
    """Return the upper tail of the chi-square distribution."""
    return float(_special().chdtrc(df, max(statistic, 0.0)))  # rounding may leave it below 0


def number(exact: Fraction, what: str) -> float:
    """Return the nearest float.

    Raises:
        RangeError: No float is as large; it names what.
    """
    try:
        return float(exact)
    except OverflowError:
        raise RangeError(f"{what}: the result is larger than any float") from None


def root(exact: Fraction, what: str) -> float:
    """Return the square root of a fraction of any size, to the last digit but one.

    Raises:
        RangeError: No float is as large; it names what.
    """
    half = (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2
    scaled = exact / 4**half if half >= 0 else exact * 4**-half
    try:
        return math.ldexp(math.sqrt(scaled), half)
    except OverflowError:
        raise RangeError(f"{what}: the result is larger than any float") from None


def signed_root(value: Fraction, square: Fraction, what: str) -> float:
    """Return sqrt(value^2 / square) with the sign of value, rounded once.

    What is squared may be beyond any float, the result need not.
    """
    size = root(value * value / square, what)
    return -size if value < 0 else size


def show_p(pvalue: float) -> str:
    """Format a p value."""
    return "<0.0001" if pvalue < 1e-4 else f"{pvalue:.4f}"
