"""Lower bounds on epsilon: what a mechanism did not keep, shown by guesses that came true.

Two kinds of evidence, and each bound holds for its own only:

- *Trials*: many independent runs of the mechanism, with the unit and without it, and one score
  each. The shares of scores beyond a threshold are bounded by Clopper and Pearson.
- *One run*: one run on data in which each of many units was, or was not, by its own fair coin; and
  guesses about these coins that saw nothing but what the run gave.

A bound is too high with at most the probability 1 - confidence, whatever the scores are. If it
says 0, nothing is shown: neither that there is a leak, nor that there is none.

Sources: Jagielski, Ullman, Oprea, Auditing Differentially Private Machine Learning, NeurIPS 2020
(trials); Steinke, Nasr, Jagielski, Privacy Auditing with One (1) Training Run, NeurIPS 2023,
theorem 5.2 in the form for guesses of section 5.3 (one run); Clopper, Pearson, Biometrika 26 (1934)
404-413.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from securecomp.errors import ParameterError
from securecomp.privacy.sensitivity import Relation

Floats = npt.NDArray[np.float64]

_DIGITS = 1e-7
"""A bound is found to this, and rounded down."""
_FAR = 40.0
"""Standard deviations beyond which a binomial number does not matter."""
_BEYOND = 500.0
"""No bound is larger: so many guesses nobody makes."""
_LARGEST = 300.0


def share_low(hits: int, trials: int, failure: float) -> float:
    """Return what a share is at least, but with probability `failure` (Clopper and Pearson)."""
    return float(special.betaincinv(hits, trials - hits + 1, failure)) if hits > 0 else 0.0


def share_high(hits: int, trials: int, failure: float) -> float:
    """Return what a share is at most, but with probability `failure` (Clopper and Pearson)."""
    if hits >= trials:
        return 1.0
    return float(special.betainccinv(hits + 1, trials - hits, failure))


def from_counts(
    found: int, members: int, alarms: int, others: int, delta: float, failure: float
) -> float:
    """Return the epsilon that one rule shows, which was chosen without these trials.

    Args:
        found: Trials with the unit in which the rule says "with".
        members: Trials with it.
        alarms: Trials without the unit in which the rule says "with".
        others: Trials without it.
        delta: Of the promise.
        failure: Probability with which the bound may be wrong; half of it for each share.
    """
    low = share_low(found, members, failure / 2) - delta
    return max(0.0, math.log(low / share_high(alarms, others, failure / 2))) if low > 0 else 0.0


def halvings(count: int, least: int = 1) -> list[int]:
    """Return count, its half, its quarter, ..., down to `least`, each rounded down."""
    found = []
    while count >= least:
        found.append(count)
        count //= 2
    return found


def guessing_pvalue(units: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return how likely so many right guesses are, at most, if a promise is kept.

    Args:
        units: Units that were in the data by a fair coin each, or pairs of which one was.
        guesses: At most so many guesses about them; a number fixed before the membership was seen.
        right: Guesses that are right.
        epsilon: The promise.
        delta: Likewise.

    Raises:
        ParameterError: More right guesses than guesses, or more of these than units.
    """
    if not 0 <= right <= guesses <= units:
        raise ParameterError(f"{right} right of {guesses} guesses about {units} units cannot be")
    chance = float(special.expit(epsilon))
    tail = float(stats.binom.sf(right - 1, guesses, chance))
    if delta == 0 or right == 0:
        return tail
    # max over i of P[right - i <= Binomial < right] / i. Beyond `far` the probability no longer
    # grows, so that one term bounds all others.
    spread = _FAR * math.sqrt(guesses * chance * (1 - chance)) + _FAR
    far = min(right, max(1, right - math.floor(guesses * chance - spread)))
    i = np.arange(1, far + 1)
    slopes = (stats.binom.sf(right - i - 1, guesses, chance) - tail) / i
    steepest = max(float(slopes.max()), (1 - tail) / (far + 1) if far < right else 0.0)
    return min(1.0, tail + 2 * units * delta * steepest)


def first_kept(pvalue: Callable[[float], float], level: float) -> float:
    """Return the epsilon up to which every promise is refuted at a level; 0 if none is.

    `pvalue` takes an epsilon. A promise of a smaller epsilon is one of each larger epsilon too: so
    the bound is too high with at most the probability `level`, if it stops at the first that is
    not refuted.
    """
    if pvalue(0.0) >= level:
        return 0.0
    low, high = 0.0, 0.25
    while pvalue(high) < level:
        low, high = high, high + max(0.25, high / 8)
        if high > _BEYOND:
            return low
    while high - low > _DIGITS:
        middle = (low + high) / 2
        low, high = (middle, high) if pvalue(middle) < level else (low, middle)
    return low


def checked_scores(scores: npt.ArrayLike, name: str) -> Floats:
    """Return scores as numbers, shape (n,); infinite ones stay.

    Raises:
        ParameterError: There are none, they are no vector of numbers, or one is NaN.
    """
    try:
        found = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name}: scores are numbers") from None
    if found.ndim != 1 or not found.size:
        raise ParameterError(f"{name}: scores are a vector of at least one, not {found.shape}")
    if np.isnan(found).any():
        raise ParameterError(
            f"{name}: the score of row {int(np.isnan(found).argmax()) + 1} is not a number"
        )
    return found


def converted(
    epsilon: float, delta: float, promised: Relation, seen: Relation
) -> tuple[float, float]:
    """Return what a promise for neighbours of one relation means for those of another.

    To replace a unit is to remove one and to add one: epsilon twice, and delta of both steps, the
    second's times e^epsilon (Dwork, Roth 2014, 2.3). What is promised about replacing says nothing
    about how many units there are.

    Raises:
        ParameterError: Nothing follows.
    """
    if promised == seen:
        return epsilon, delta
    if promised == "replace-one":
        raise ParameterError(
            "units that are there or not say nothing about a promise for replace-one; compare "
            "data sets of one size"
        )
    return 2 * epsilon, min(1.0, delta * (1 + math.exp(min(epsilon, _LARGEST))))
