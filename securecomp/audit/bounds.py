"""Lower bounds on epsilon, from guesses that came true.

There are two kinds of evidence, and each bound holds only for its own kind:

- *Trials*: many independent runs of the mechanism, with the unit and without it, and one score for
  each. The shares of scores beyond a threshold are bounded by Clopper and Pearson.
- *One run*: a single run on data that contained each of many units or not, by a fair coin of its
  own, and guesses about these coins that saw nothing but the run's output.

A bound is too high with probability at most 1 - confidence, whatever the scores are. A bound of 0
shows nothing: neither a leak nor its absence.

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
"""Bounds are computed to this precision, and rounded down."""
_FAR = 40.0
"""Standard deviations beyond which a binomial number is negligible."""
_BEYOND = 500.0
"""Largest bound: nobody makes enough guesses for more."""
_LARGEST = 300.0


def share_low(hits: int, trials: int, failure: float) -> float:
    """Return a lower bound of a share, wrong with probability `failure` (Clopper, Pearson)."""
    return float(special.betaincinv(hits, trials - hits + 1, failure)) if hits > 0 else 0.0


def share_high(hits: int, trials: int, failure: float) -> float:
    """Return an upper bound of a share, wrong with probability `failure` (Clopper, Pearson)."""
    if hits >= trials:
        return 1.0
    return float(special.betainccinv(hits + 1, trials - hits, failure))


def from_counts(
    found: int, members: int, alarms: int, others: int, delta: float, failure: float
) -> float:
    """Return the lower bound on epsilon that one rule shows. It was chosen without these trials.

    Args:
        found: Number of trials with the unit for which the rule says "with".
        members: Number of trials with the unit.
        alarms: Number of trials without the unit for which the rule says "with".
        others: Number of trials without the unit.
        delta: Delta of the promise.
        failure: Probability that the bound is wrong; half of it for each share.
    """
    low = share_low(found, members, failure / 2) - delta
    return max(0.0, math.log(low / share_high(alarms, others, failure / 2))) if low > 0 else 0.0


def halvings(count: int, least: int = 1) -> list[int]:
    """Return count, its half, its quarter and so on, down to `least`, each rounded down."""
    found = []
    while count >= least:
        found.append(count)
        count //= 2
    return found


def guessing_pvalue(units: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return an upper bound of the probability of so many right guesses, if a promise is kept.

    Args:
        units: Number of units that were in the data by a fair coin each, or of pairs of which one
            unit was.
        guesses: Largest number of guesses, fixed before the membership was seen.
        right: Number of right guesses.
        epsilon: Epsilon of the promise.
        delta: Delta of the promise.

    Raises:
        ParameterError: More right guesses than guesses, or more guesses than units.
    """
    if not 0 <= right <= guesses <= units:
        raise ParameterError(
            f"{right} right of {guesses} guesses about {units} units is impossible"
        )
    chance = float(special.expit(epsilon))
    tail = float(stats.binom.sf(right - 1, guesses, chance))
    if delta == 0 or right == 0:
        return tail
    # The maximum over i of P[right - i <= Binomial < right] / i. Beyond `far` the probability no
    # longer grows, so one term bounds all others.
    spread = _FAR * math.sqrt(guesses * chance * (1 - chance)) + _FAR
    far = min(right, max(1, right - math.floor(guesses * chance - spread)))
    i = np.arange(1, far + 1)
    slopes = (stats.binom.sf(right - i - 1, guesses, chance) - tail) / i
    steepest = max(float(slopes.max()), (1 - tail) / (far + 1) if far < right else 0.0)
    return min(1.0, tail + 2 * units * delta * steepest)


def first_kept(pvalue: Callable[[float], float], level: float) -> float:
    """Return the epsilon up to which every promise is refuted at a level, or 0.

    `pvalue` takes an epsilon. A promise of an epsilon implies that of every larger one. So the
    bound is too high with probability at most `level` if it stops at the first promise that is not
    refuted.
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
    """Return scores as numbers, shape (n,). They may be infinite.

    Raises:
        ParameterError: No scores, not a vector of numbers, or NaN among them.
    """
    try:
        found = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name}: the scores must be numbers") from None
    if found.ndim != 1 or not found.size:
        raise ParameterError(
            f"{name}: the scores must be a vector with at least one score, not of shape "
            f"{found.shape}"
        )
    if np.isnan(found).any():
        raise ParameterError(
            f"{name}: the score of row {int(np.isnan(found).argmax()) + 1} is not a number"
        )
    return found


def converted(
    epsilon: float, delta: float, promised: Relation, seen: Relation
) -> tuple[float, float]:
    """Translate a promise for one relation of neighbours to another relation.

    To replace a unit is to remove one and to add one. This takes epsilon twice, and delta of both
    steps, the second times e^epsilon (Dwork, Roth 2014, 2.3). A promise about replacing says
    nothing about the number of units.

    Raises:
        ParameterError: Nothing follows from the promise.
    """
    if promised == seen:
        return epsilon, delta
    if promised == "replace-one":
        raise ParameterError(
            "units that are present or absent say nothing about a promise for replace-one; "
            "compare data sets of one size"
        )
    return 2 * epsilon, min(1.0, delta * (1 + math.exp(min(epsilon, _LARGEST))))
