"""Tails of the normal and the chi-square distribution, to double precision, without scipy."""

import math
from statistics import NormalDist

from securecomp.errors import ParameterError


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal variable is within [-z, z] with probability `level`.

    Raises:
        ParameterError: `level` is not between 0 and 1.
    Source: Wichura, Applied Statistics 37 (1988) 477-484, AS 241, as in the standard library.
    """
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise ParameterError(f"level is a probability between 0 and 1, say 0.95; not {level!r}")
    return NormalDist().inv_cdf((1 + level) / 2)


def normal_p_value(z: float) -> float:
    """Return the probability that a standard normal variable is as far from 0 as `z`."""
    return math.erfc(abs(z) / math.sqrt(2))


def chi_square_p_value(statistic: float, df: int) -> float:
    """Return the probability that a chi-square variable is at least `statistic`.

    Source: Abramowitz and Stegun, 26.4.4 and 26.4.5: finite sums, as `df` is an integer.
    """
    if statistic <= 0:
        return 1.0
    half = statistic / 2
    # Terms half^k / Gamma(k + 1) e^-half, in logarithms; k = 0, 1, .. or 1/2, 3/2, ..
    powers = (k + (df % 2) / 2 for k in range(df // 2))
    terms = [math.exp(k * math.log(half) - math.lgamma(k + 1) - half) for k in powers]
    return math.fsum([*terms, math.erfc(math.sqrt(half)) if df % 2 else 0.0])
