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
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from securecomp.audit.lots import Lots, Order
from securecomp.errors import ParameterError, ThresholdError
from securecomp.privacy.amounts import delta_of
from securecomp.statistics.tails import check_confidence

Floats = npt.NDArray[np.float64]
Choice = Literal["all", "half"]

_DIGITS = 1e-7
"""A bound is found to this, and rounded down."""
_FAR = 40.0
"""Standard deviations beyond which a binomial number does not matter."""
_BEYOND = 500.0
"""No bound is larger: so many guesses nobody makes."""


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


@dataclass(frozen=True, slots=True)
class TrialsBound:
    """What independent trials show.

    Attributes:
        epsilon: At least this, at `delta`.
        delta: Of the promise.
        confidence: With this probability the bound holds.
        rules: How many rules were tried, and paid for.
        recognises: Which trials the best rule recognises: "with" or "without" the unit.
        unit: What the trials with it have more, in words.
    """

    epsilon: float
    delta: float
    confidence: float
    rules: int
    recognises: str
    unit: str


def from_trials(
    with_unit: npt.ArrayLike,
    without: npt.ArrayLike,
    *,
    unit: str,
    delta: float = 0.0,
    confidence: float = 0.95,
    choice: Choice = "all",
) -> TrialsBound:
    """Bound epsilon from independent runs with a unit and without it, one score a run.

    With choice "all", the thresholds are the 1st, 2nd, 4th, ... score of one side. That side's true
    rate beyond its k-th score is distributed as is known (a beta variable), and the other side's
    count is binomial, so that the bound needs no threshold from elsewhere; all thresholds and both
    directions share the failure probability. With "half", one half of each side, by lot, chooses
    the threshold, and the other is counted. Scores that are equal are put in order by lot.

    Args:
        with_unit: Scores of runs with the unit; larger ones speak for "with".
        without: Scores of runs without it.
        unit: What the former have more, such as "one record", "one patient with 5 records".
        delta: Of the promise.
        confidence: Of the bound.
        choice: "all" or "half".

    Raises:
        ParameterError: A score that is no number, or an argument that cannot be.
        ThresholdError: Fewer than 4 scores on a side.
    """
    failure = 1 - check_confidence(confidence)
    beyond = float(delta_of(delta, needed=False))
    if not unit.strip():
        raise ParameterError("unit: say what the runs with it have more, such as 'one record'")
    inside, outside = checked_scores(with_unit, "with_unit"), checked_scores(without, "without")
    least = min(len(inside), len(outside))
    if least < 4:
        raise ThresholdError(4, least, "an audit by trials: runs on each side")
    lots = Lots.of("trials", inside, outside)
    places = lots.ranks(np.concatenate([inside, outside]))
    sides = places[: len(inside)], places[len(inside) :]
    if choice == "all":
        found, rules = _best(*sides, beyond, failure)
    elif choice == "half":
        halves = [
            (side[order[::2]], side[order[1::2]])
            for side in sides
            for order in (lots.order(len(side)),)
        ]
        (chosen_in, counted_in), (chosen_out, counted_out) = halves
        rule, rules = _best(chosen_in, chosen_out, beyond, failure)[0], 1
        found = rule.counted(counted_in, counted_out, beyond, failure)
    else:
        raise ParameterError(f'choice is "all" or "half", not {choice!r}')
    return TrialsBound(found.epsilon, beyond, confidence, rules, found.recognises, unit)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Whose scores are beyond a place, and what that shows."""

    epsilon: float
    recognises: str
    place: int

    def counted(self, inside: Order, outside: Order, delta: float, failure: float) -> "_Rule":
        """Return the same rule with what other trials show."""
        ours, others = _facing(inside, outside)[self.recognises]
        hits, alarms = int((ours > self.place).sum()), int((others > self.place).sum())
        shown = from_counts(hits, len(ours), alarms, len(others), delta, failure)
        return _Rule(shown, self.recognises, self.place)


def _facing(inside: Order, outside: Order) -> dict[str, tuple[Order, Order]]:
    """Return, for each direction, the places of those to recognise and of the others."""
    return {"with": (inside, outside), "without": (-outside, -inside)}


def _best(inside: Order, outside: Order, delta: float, failure: float) -> tuple[_Rule, int]:
    """Return what is best at the 1st, 2nd, 4th, ... place, and how many rules paid for it."""
    sides = _facing(inside, outside)
    each = {name: halvings(len(others)) for name, (_, others) in sides.items()}
    rules = sum(map(len, each.values()))
    found = []
    for name, (ours, others) in sides.items():
        falling, rising = -np.sort(-others), np.sort(ours)
        for k in each[name]:
            place = int(falling[k - 1])
            hits = len(ours) - int(np.searchsorted(rising, place, "right"))
            shown = from_counts(hits, len(ours), k - 1, len(others), delta, failure / rules)
            found.append(_Rule(shown, name, place))
    return max(found, key=lambda rule: rule.epsilon), rules


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
