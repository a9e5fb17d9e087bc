"""Calibration: the least noise for an epsilon and a delta.

A *ratio* is the noise's scale over the sensitivity. Scales are rounded up: a guarantee is never
lost to floating point.

Sources: Dwork, McSherry, Nissim, Smith, Calibrating Noise to Sensitivity (2006) for Laplace; Balle,
Wang, Improving the Gaussian Mechanism (2018), theorem 8, for the Gaussian; Dwork, Roth (2014),
theorem A.1, for the classical formula; Bun, Steinke, Concentrated Differential Privacy (2016),
proposition 1.3, for where the search begins.
"""

import math
from fractions import Fraction

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri

from securecomp.core import checks
from securecomp.errors import ParameterError
from securecomp.privacy.privacy_amounts import Amount, above, delta_of, epsilon_of
from securecomp.privacy.sensitivity import Sensitivity

_ROUNDING = 1e-15
_LOST = 1e-3
"""The relative error in delta from which a search is refused: floats do not reach as far."""


def laplace_scale(sensitivity: Sensitivity, epsilon: Amount) -> float:
    """Return the scale b of Laplace noise, density exp(-|x|/b) / 2b in each coordinate.

    Raises:
        ParameterError: Epsilon is not a finite number above 0.
    """
    return above(sensitivity.l1 / epsilon_of(epsilon))


def gaussian_scale(sensitivity: Sensitivity, epsilon: Amount, delta: Amount) -> float:
    """Return the standard deviation of Gaussian noise, the smallest that keeps the promise.

    Raises:
        ParameterError: Epsilon is not above 0, delta is not between 0 and 1, or both are so small
            that floats cannot tell.
    """
    return above(Fraction(sensitivity.l2) * Fraction(gaussian_ratio(epsilon, delta)))


def classical_gaussian_scale(sensitivity: Sensitivity, epsilon: Amount, delta: Amount) -> float:
    """Return the textbook's standard deviation: more noise than `gaussian_scale`, same promise.

    It is proved below epsilon 1, and by continuity at 1; above, its noise can be too small.

    Raises:
        ParameterError: Epsilon is above 1, or as `gaussian_scale`.
    """
    exact = epsilon_of(epsilon)
    if exact > 1:
        raise ParameterError(
            f"the classical formula holds up to epsilon 1, not at {epsilon}; use gaussian_scale"
        )
    root = math.sqrt(2 * (math.log(1.25) - _log(delta)))
    return above(Fraction(sensitivity.l2) * Fraction(root) / exact)


def gaussian_ratio(epsilon: Amount, delta: Amount) -> float:
    """Return the standard deviation at sensitivity 1."""
    number, target = _float(epsilon_of(epsilon)), _log(delta)
    most = -target
    high = (math.sqrt(most + number) + math.sqrt(most)) / (math.sqrt(2) * number)
    low = high
    while _log_delta(low, number) <= target:  # ends: at no noise delta is 1
        high, low = low, low / 2

    def gap(log_ratio: float) -> float:
        return max(_log_delta(math.exp(log_ratio), number) - target, -1e3)

    ratio = math.exp(brentq(gap, math.log(low), math.log(high), xtol=1e-15, rtol=1e-14))
    step = _ROUNDING
    while _log_delta(ratio, number) > target:  # the root is right to rounding, on either side
        ratio *= 1 + step
        step *= 2
    return float(ratio)


def gaussian_delta(ratio: float, epsilon: Amount) -> float:
    """Return the exact delta of Gaussian noise at an epsilon, which may be 0.

    Raises:
        ParameterError: The ratio is not a finite number above 0, or epsilon is negative.
    """
    number = 0.0 if epsilon == 0 else _float(epsilon_of(epsilon))
    return math.exp(_log_delta(positive(ratio, "ratio of noise"), number))


def gaussian_epsilon(ratio: float, delta: Amount) -> float:
    """Return the epsilon of Gaussian noise at a delta; 0 if that much delta is enough alone.

    Raises:
        ParameterError: The ratio is not a finite number above 0, or delta not a probability
            above 0.
    """
    noise, target = positive(ratio, "ratio of noise"), _log(delta)
    if _log_delta(noise, 0.0) <= target:
        return 0.0
    rho = 1 / (2 * noise**2)
    high = rho + 2 * math.sqrt(-rho * target)

    def gap(epsilon: float) -> float:
        return max(_log_delta(noise, epsilon) - target, -1e3)

    found = float(brentq(gap, 0.0, high * (1 + 1e-9), xtol=1e-300, rtol=1e-14))
    step = _ROUNDING
    while _log_delta(noise, found) > target:
        found *= 1 + step
        step *= 2
    return found


def laplace_error(scale: float, confidence: float = 0.95) -> float:
    """Return how far Laplace noise stays within, with this probability."""
    return positive(scale, "scale") * math.log(1 / (1 - _confidence(confidence)))


def gaussian_error(scale: float, confidence: float = 0.95) -> float:
    """Return how far Gaussian noise stays within, with this probability."""
    return positive(scale, "scale") * float(ndtri((1 + _confidence(confidence)) / 2))


def _log_delta(ratio: float, epsilon: float) -> float:
    """Return the logarithm of delta, on the safe side of what was lost to rounding."""
    upper = float(log_ndtr(1 / (2 * ratio) - epsilon * ratio))
    lower = epsilon + float(log_ndtr(-1 / (2 * ratio) - epsilon * ratio))
    if upper < -800:
        return -math.inf  # below all floats
    lost = _ROUNDING * (1 + abs(upper) + epsilon) / max(upper - lower, 1e-300)
    if lost > _LOST:
        raise ParameterError(
            "epsilon and delta are so small, or the noise so large, that floating point cannot "
            "tell one delta from another; take a larger epsilon or delta"
        )
    return min(0.0, upper + math.log(-math.expm1(lower - upper)) + lost)


def _log(delta: Amount) -> float:
    number = float(delta_of(delta, needed=True))
    if number < 1e-300:
        raise ParameterError("a delta below 1e-300 cannot be computed with; take a larger one")
    return math.log(number)


def _float(epsilon: Fraction) -> float:
    if epsilon > 10**6:
        raise ParameterError(
            f"epsilon {float(min(epsilon, Fraction(10**300))):g} promises nothing; above 10 there "
            "is hardly a reason for noise"
        )
    return float(epsilon)


def positive(value: float, name: str) -> float:
    """Return a finite number above 0.

    Raises:
        ParameterError: It is not a number that can be used.
    """
    number = checks.real(value, f"the {name}", "a finite number above 0")
    if number <= 0:
        raise ParameterError(f"the {name} is a finite number above 0, not {value}")
    return number


def _confidence(value: float) -> float:
    if not 0 < checks.real(value, "the confidence", "between 0 and 1") < 1:
        raise ParameterError(f"the confidence is between 0 and 1, not {value}")
    return value
