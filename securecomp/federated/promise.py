"""Privacy of a training: from rate, noise and steps to epsilon, and back.

The theorems on Poisson samples are on continuous Gaussian noise N. Our sums S are vectors of
integers, so that rint(S + N) = S + rint(N): adding rounded continuous noise only processes what
the Gaussian mechanism gave, and promises the same. What is drawn is discrete Gaussian noise. Their
probabilities of an integer x, q of rint(N) and p of the discrete Gaussian, with phi the density of
N and Z the sum of exp(-x^2 / 2 sigma^2) over the integers:

- q(x) / phi(x) is the integral over s from -1/2 to 1/2 of exp(-s^2 / 2 sigma^2) cosh(x s /
  sigma^2). From below, cosh is at least 1 and the exponential at least 1 - s^2 / 2 sigma^2, which
  gives 1 - 1 / 24 sigma^2; from above it is at most the integral of the cosh, sinh(y) / y at
  y = x / 2 sigma^2, at most exp(y^2 / 6) = exp(x^2 / 24 sigma^4).
- phi(x) / p(x) = Z / (sqrt(2 pi) sigma) is at least 1 and, by Poisson's summation, at most
  1 + 3 exp(-2 pi^2 sigma^2) for sigma >= 1.

So for |x| <= t sigma the logarithm of p / q is within (t^2 + 2) / (23 sigma^2) of 0 (for sigma of
at least 2^20, as it is here). Beyond t sigma lies at most 4 exp(-t^2 / 2) of either: the discrete
Gaussian is sub-Gaussian as N is, because the sum of exp(s x - x^2 / 2 sigma^2) is exp(s^2 sigma^2 /
2) times a sum that is largest, Z, where s sigma^2 is an integer; and rint moves N by half a unit.
Of all numbers of all steps together, let h be the first bound times their count, and tau the
second. With P' what training draws and P what the theorems are on, for data sets X and Y, and any
event E:

    P'_X(E) <= e^h P_X(E) + tau <= e^h (e^eps P_Y(E) + delta) + tau
            <= e^(eps + 2 h) P'_Y(E) + e^h delta + tau (1 + e^(eps + h)).

That is what `spent` accounts; sigma is about 2^40, so that h is below 1e-12 for 10^9 numbers.

The randomness is AES-256's; what is said holds against those who cannot tell that from chance.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache

from scipy.optimize import brentq

from securecomp.errors import ParameterError
from securecomp.federated.clipping import UNIT
from securecomp.privacy.accounting import (
    Accountant,
    Sampled,
    TotalCost,
    renyi,
    renyi_epsilon,
    total,
)
from securecomp.privacy.calibration import gaussian_ratio
from securecomp.privacy.privacy_amounts import Amount, delta_of, epsilon_of

_T = 30.0
MOST_NOISE = 1000.0
LEAST_NOISE = 0.1
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 10**9), 100
_MOST_TOLD = 299
_NEAR = 1e-3


def rounding(numbers: int, sigma: float) -> tuple[float, float]:
    """Return by what discrete noise differs from rounded continuous noise: h and tau, see above.

    Args:
        numbers: How many are drawn, over all steps.
        sigma: The noise's standard deviation, in integers, at least 2^20.

    Raises:
        ParameterError: Sigma is below 2^20.
    """
    if not sigma >= 2**20:
        raise ParameterError(f"the bound holds from a sigma of 2^20 on, not at {sigma:g}")
    return numbers * (_T**2 + 2) / (23 * sigma**2), numbers * 4 * math.exp(-(_T**2) / 2)


def spent(noise: float, rate: float, steps: int, numbers: int, delta: Amount) -> TotalCost:
    """Return what training costs, by the tightest accountant, all roundings included.

    Args:
        noise: The noise multiplier: standard deviation over clip.
        rate: The sampling rate.
        steps: How many.
        numbers: Of the model: how many get noise in each step.
        delta: At which delta.

    Raises:
        ParameterError: Delta or noise is impossible, or so small that nothing is promised.
        BackendUnavailableError: dp-accounting is not installed.
    """
    found = _accounted(check_noise(noise), rate, steps, numbers, delta_of(delta, needed=True))
    if found.epsilon > _MOST_TOLD:
        raise ParameterError(
            f"a noise multiplier of {noise:g} promises an epsilon of more than {_MOST_TOLD}, which "
            "is nothing; take more noise, or 0 to promise nothing openly"
        )
    return found


def _accounted(
    noise: float,
    rate: float,
    steps: int,
    numbers: int,
    delta: Fraction,
    accountant: Accountant | None = None,
) -> TotalCost:
    factor, tail = rounding(numbers * steps, noise * UNIT)
    # e^(eps + h) is at most e^300.
    inner = (float(delta) - tail * math.exp(_MOST_TOLD + 1)) * math.exp(-factor)
    if not inner > 0:
        raise ParameterError(
            f"a delta of {float(delta):.2g} is less than what the proof leaves out, about "
            f"{tail * math.exp(_MOST_TOLD + 1):.0e} for {numbers * steps:,} numbers of noise; take "
            "a larger one"
        )
    steps_made = [(Sampled(rate, noise), steps)]
    # A fraction, because floats are read as 15 digits, which could be more.
    less = Fraction(math.nextafter(inner, 0))
    found = total(steps_made, less, accountant=accountant)

    def both(epsilon: float) -> float:
        return math.nextafter(epsilon + 2 * factor, math.inf)

    bounds = {name: both(epsilon) for name, epsilon in found.bounds.items()}
    return replace(found, epsilon=both(found.epsilon), delta=float(delta), bounds=bounds)


def check_noise(noise: float) -> float:
    """Return a noise multiplier.

    Raises:
        ParameterError: It is not from 0.1 to 1000.
    """
    if not LEAST_NOISE <= noise <= MOST_NOISE:
        raise ParameterError(
            f"a noise multiplier is from {LEAST_NOISE} to {MOST_NOISE:g}, not {noise:g}: below it "
            "protects nobody, and above nothing is learnt; 0 trains without noise and promise"
        )
    return noise


@lru_cache(maxsize=256)
def least_noise(
    rate: float, steps: int, numbers: int, epsilon: Amount, delta: Amount
) -> tuple[float, TotalCost]:
    """Return the smallest noise multiplier that keeps a promise, within .2 %, and what it costs.

    Args:
        rate: The sampling rate.
        steps: How many.
        numbers: Of the model.
        epsilon: The promise.
        delta: The promise.

    Raises:
        ParameterError: Epsilon is not from 1e-9 to 100, or no noise within bounds keeps it.
        BackendUnavailableError: dp-accounting is not installed.
    """
    target, beyond = epsilon_of(epsilon), delta_of(delta, needed=True)
    if target < _LEAST_EPSILON:
        raise ParameterError(
            f"epsilon {epsilon} drowns all that could be learnt; take at least "
            f"{float(_LEAST_EPSILON):g}"
        )
    if target > _MOST_EPSILON:
        raise ParameterError(
            f"epsilon {epsilon} protects nobody; take at most {_MOST_EPSILON}, or "
            "noise_multiplier=0, which says so openly"
        )
    goal = math.log(target)

    @cache
    def gap(log_noise: float) -> float:
        asked = (math.exp(log_noise), rate, steps, numbers, beyond)
        try:
            found = _accounted(*asked, "PLD")
        except ParameterError:  # of deltas that it cannot tell from rounding
            found = _accounted(*asked, "RDP")
        return math.log(max(found.epsilon, 1e-300)) - goal

    # By the central limit theorem (Bu, Dong, Long, Su 2020) training is about one Gaussian
    # mechanism; that is near enough to begin.
    ratio = gaussian_ratio(target, beyond)
    guess = 1 / math.sqrt(math.log1p(1 / (ratio**2 * rate**2 * steps)))
    lowest, highest = math.log(LEAST_NOISE), math.log(MOST_NOISE)
    low = high = min(max(math.log(guess), lowest), highest)
    # Epsilon falls at least as fast as noise grows, more or less: this passes the other side.
    while low > lowest and gap(low) <= 0:
        high, low = low, max(low + min(gap(low), 0.5) - 0.02, lowest)
    while gap(high) > 0:
        if high >= highest:
            raise ParameterError(
                f"epsilon {float(target):g} at delta {float(beyond):g} needs a noise multiplier "
                f"above {MOST_NOISE:g} for {steps:,} steps at a rate of {rate:g}; nothing would be "
                "learnt; take fewer steps, a smaller rate or a larger epsilon"
            )
        low, high = high, min(high + min(gap(high), 0.5) + 0.02, highest)
    found = low
    if gap(low) > 0:
        # Aimed at a little less, so that the root's own error is on the safe side.
        found = high
        if gap(high) + _NEAR / 2 < 0:
            found = float(brentq(lambda x: gap(x) + _NEAR / 2, low, high, xtol=_NEAR / 4))
        while gap(found) > 0:
            found += _NEAR / 4
    noise = math.exp(found)
    return noise, spent(noise, rate, steps, numbers, beyond)


def simple_epsilon(noise: float, rate: float, steps: int, delta: Amount) -> float:
    """Return epsilon as textbooks compute it: more than `spent` says, for the same noise.

    Renyi divergences of integer orders alone (Mironov, Talwar, Zhang 2019, section 3.3), turned
    into epsilon by Mironov (2017), proposition 3.
    """
    orders = range(2, 257)
    divergences = renyi([(Sampled(rate, noise), steps)], orders)
    return renyi_epsilon(orders, divergences, delta, basic=True)


def variance(noise: float) -> Fraction:
    """Return the noise's exact variance, in integers."""
    return (Fraction(noise) * UNIT) ** 2
