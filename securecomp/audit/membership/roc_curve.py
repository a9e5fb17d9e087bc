"""The ROC curve of scores of members and others, and its numbers, each with an interval.

A score above a threshold accuses its row of membership. Equal scores are never told apart: a
threshold accuses all of them or none.

Sources: DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837-845, with midranks; Massart,
Annals of Probability 18 (1990) 1269-1283; Carlini et al., Membership Inference Attacks From First
Principles, IEEE S&P 2022, section III, on the importance of low rates of false alarms.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from securecomp.audit.bounds import Floats, checked_scores, share_high, share_low
from securecomp.errors import ParameterError
from securecomp.statistics.distributions import check_confidence, half_width

Counts = npt.NDArray[np.intp]
Columns = dict[str, Sequence[float]]
"""Columns of a figure: x and y, and sometimes low and high."""

_POINTS = 60
_BAND = 25


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval.

    Attributes:
        value: The number.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Detection:
    """The share of members found at a rate of false alarms.

    Attributes:
        false_alarms: The requested rate.
        threshold: Scores above it accuse. It is the smallest at which no larger share of the
            holdout is accused.
        accused: Number of accused rows of the holdout.
        found: Share of members found.
        low: Lower bound of the true share at the requested rate. The threshold was chosen on the
            same holdout, so it is moved to where its true rate is surely not higher.
        high: Upper bound of that share.
    """

    false_alarms: float
    threshold: float
    accused: int
    found: float
    low: float
    high: float

    @property
    def estimate(self) -> Estimate:
        """The share with its interval."""
        return Estimate(self.found, self.low, self.high)


def rows_needed(false_alarms: float) -> int:
    """Return the rows of holdout that a rate of false alarms needs, so that one row is that share.

    Raises:
        ParameterError: The rate is not above 0 and below 1.
    """
    number = isinstance(false_alarms, int | float) and not isinstance(false_alarms, bool)
    if not number or not 0 < false_alarms < 1:
        raise ParameterError(
            f"a rate of false alarms lies between 0 and 1, for example 0.001, not {false_alarms!r}"
        )
    return math.ceil(1 / Fraction(f"{float(false_alarms):.15g}"))


def check_rate(false_alarms: float, holdout: int) -> None:
    """Refuse a rate of false alarms for which the holdout has too few rows, or persons.

    Raises:
        ParameterError: The holdout is too small. The message tells the number that is needed.
    """
    needed = rows_needed(false_alarms)
    if holdout < needed:
        raise ParameterError(
            f"a rate of false alarms of {100 * false_alarms:g} % needs at least {needed:,} rows "
            f"of holdout, and there are {holdout:,}; give more, or ask for a higher rate"
        )


class Roc:
    """The ROC curve of scores.

    Args:
        members: Scores of members. Larger ones speak for membership; they may be infinite.
        holdout: Scores of others.

    Raises:
        ParameterError: A side is empty, or a score is not a number.
    """

    def __init__(self, members: npt.ArrayLike, holdout: npt.ArrayLike) -> None:
        self._members = np.sort(checked_scores(members, "members"))
        self._holdout = np.sort(checked_scores(holdout, "holdout"))

    @property
    def scores(self) -> tuple[Floats, Floats]:
        """Scores of members and of others, ascending."""
        return self._members, self._holdout

    @property
    def members(self) -> int:
        """Number of members."""
        return len(self._members)

    @property
    def holdout(self) -> int:
        """Number of others."""
        return len(self._holdout)

    def counts(self) -> tuple[Counts, Counts]:
        """Return the numbers of accused others and found members at each threshold, 0 to all."""
        thresholds = np.union1d(self._members, self._holdout)[::-1]
        alarms = self.holdout - np.searchsorted(self._holdout, thresholds, "left")
        found = self.members - np.searchsorted(self._members, thresholds, "left")
        return np.concatenate([[0], alarms]), np.concatenate([[0], found])

    def curve(self) -> tuple[Floats, Floats]:
        """Return rates of false alarms and shares found, from (0, 0) to (1, 1)."""
        alarms, found = self.counts()
        return alarms / self.holdout, found / self.members

    def area(self, confidence: float = 0.95) -> Estimate:
        """Return the area under the curve with an interval.

        The area is the probability that a member scores higher than a non-member; ties count half.
        The interval is DeLong's for the same scores and two more on each side, one above all and
        one below all, as Agresti and Coull (1998) do with shares. Without these its variance would
        be far too small where few rows are out of order, and 0 where all are in order.
        """
        width = half_width(check_confidence(confidence))
        area = float(_wins(*self.scores)[0].mean())
        wins, losses = _wins(*(np.concatenate([side, [-np.inf, np.inf]]) for side in self.scores))
        centre = float(wins.mean())
        margin = width * math.sqrt(sum(one.var(ddof=1) / len(one) for one in (wins, losses)))
        low, high = max(0.0, centre - margin), min(1.0, centre + margin)
        return Estimate(area, min(area, low), max(area, high))

    def detection(self, false_alarms: float, confidence: float = 0.95) -> Detection:
        """Return the share of members found at a rate of false alarms.

        Raises:
            ParameterError: The holdout is too small to estimate it. The message tells the number
                of rows that is needed.
        """
        check_rate(false_alarms, self.holdout)
        return self._detection(Fraction(f"{float(false_alarms):.15g}"), confidence)

    def accusing(self, others: int, confidence: float = 0.95) -> Detection:
        """Return the share of members found when at most `others` others are accused, 1 or more."""
        return self._detection(Fraction(others, self.holdout), confidence)

    def _detection(self, rate: Fraction, confidence: float) -> Detection:
        failure = 1 - check_confidence(confidence)
        allowed = math.floor(rate * self.holdout)
        threshold = self._above(allowed)
        # The true rate beyond the k-th of n scores is a beta variable of k and n + 1 - k, or
        # smaller where scores are equal. Half of the failure probability is for it, and half for
        # the members.
        places = range(1, self.holdout + 1)

        def over(k: int) -> float:
            return float(special.betaincc(k, self.holdout + 1 - k, float(rate)))

        surely = bisect.bisect_right(places, failure / 4, key=over)
        surely_not = bisect.bisect_left(places, 1 - failure / 4, key=over)
        low, high = 0.0, 1.0
        if surely:
            low = share_low(self._found(self._above(surely - 1)), self.members, failure / 4)
        if surely_not < self.holdout:
            least = float(self._holdout[self.holdout - 1 - surely_not])
            high = share_high(self._found(least), self.members, failure / 4)
        accused = self.holdout - int(np.searchsorted(self._holdout, threshold, "right"))
        found = self._found(threshold) / self.members
        return Detection(float(rate), threshold, accused, found, low, high)

    def advantage(self, confidence: float = 0.95) -> Estimate:
        """Return the largest difference of share found and rate of false alarms.

        The interval holds for all thresholds at once, so also for the best one (Dvoretzky, Kiefer,
        Wolfowitz, Massart; half of the failure probability for each side).
        """
        failure = 1 - check_confidence(confidence)
        alarms, found = self.curve()
        best = float((found - alarms).max())
        slack = sum(
            math.sqrt(math.log(4 / failure) / (2 * n)) for n in (self.members, self.holdout)
        )
        return Estimate(best, max(0.0, best - slack), min(1.0, best + slack))

    def balanced_accuracy(self, confidence: float = 0.95) -> Estimate:
        """Return the largest mean of the recognised shares of members and of others."""
        found = self.advantage(confidence)
        return Estimate(*((1 + value) / 2 for value in (found.value, found.low, found.high)))

    def turned(self) -> "Roc":
        """Return the curve of recognising others by low scores."""
        return Roc(-self._holdout, -self._members)

    def points(self) -> Columns:
        """Return points of the curve for logarithmic axes, without those at 0."""
        x, y = self.curve()
        x, y = x[(x > 0) & (y > 0)], y[(x > 0) & (y > 0)]
        steps = np.geomspace(1 / self.holdout, 1, _POINTS)
        at = np.unique(np.minimum(np.searchsorted(x, steps), len(x) - 1))
        return {"x": x[at].tolist(), "y": y[at].tolist()}

    def band(self, confidence: float = 0.95) -> Columns:
        """Return shares found at rates of false alarms, with intervals, without those at 0."""
        counts = np.unique(np.geomspace(1, self.holdout, _BAND, endpoint=False).astype(int))
        each = [self.accusing(int(count), confidence) for count in counts]
        found = [one for one in each if one.found > 0]
        least = 0.1 / self.members
        return {
            "x": [*(one.false_alarms for one in found), 1.0],
            "y": [*(one.found for one in found), 1.0],
            "low": [*(max(one.low, least) for one in found), 1.0],
            "high": [*(one.high for one in found), 1.0],
        }

    def _above(self, allowed: int) -> float:
        """Return the lowest threshold with at most `allowed` others above it."""
        return (
            float(self._holdout[self.holdout - 1 - allowed])
            if allowed < self.holdout
            else -math.inf
        )

    def _found(self, threshold: float) -> int:
        return self.members - int(np.searchsorted(self._members, threshold, "right"))


def _wins(members: Floats, holdout: Floats) -> tuple[Floats, Floats]:
    """Return the share of others below each member, and of members above each other."""
    n, m = len(members), len(holdout)
    ranks = stats.rankdata(np.concatenate([members, holdout]))
    above = (ranks[:n] - stats.rankdata(members)) / m
    return above, 1 - (ranks[n:] - stats.rankdata(holdout)) / n
