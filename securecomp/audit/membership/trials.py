"""Audits by many runs: training is repeated with a unit and without it, with a score for each run.

This bounds epsilon under the only assumption that the runs are independent, and as closely as many
runs allow. It takes hundreds of trainings, where `guesses` takes one. The closest bounds come from
a unit that is far from all others, and from data that an adversary would choose.

Source: Jagielski, Ullman, Oprea, Auditing Differentially Private Machine Learning, NeurIPS 2020.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.audit.bounds import checked_scores, converted, from_counts, halvings
from securecomp.audit.confidences import Rows, answers, checked_rows
from securecomp.audit.labelled_rows import joined
from securecomp.audit.membership.claims import Claim, below, check_units
from securecomp.audit.membership.shadows import Progress, trained
from securecomp.audit.seeded_random import Order, SeededRandom
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError, RefutedError, ThresholdError
from securecomp.privacy.privacy_amounts import Amount, delta_of
from securecomp.privacy.sensitivity import Neighbours
from securecomp.statistics.distributions import check_confidence

Choice = Literal["all", "half"]

_FEWEST = 4


@dataclass(frozen=True, slots=True)
class TrialsBound:
    """A lower bound on epsilon from trials.

    Attributes:
        epsilon: The bound, at `delta`, for the trials' own neighbours.
        delta: Delta of the promise.
        confidence: Probability that the bound holds.
        rules: Number of rules that were tried, and among which the failure probability is divided.
        recognises: The trials that the best rule recognises: "with" or "without" the unit.
        units: The neighbouring data sets.
    """

    epsilon: float
    delta: float
    confidence: float
    rules: int
    recognises: str
    units: Neighbours

    def __str__(self) -> str:
        return (
            f"epsilon is at least {below(self.epsilon)} at delta {self.delta:g} ({self.units}), "
            f"confidence {100 * self.confidence:g} %"
        )


class Trials:
    """Scores of independent runs.

    Args:
        with_unit: One score for each run with the unit. Larger ones speak for "with".
        without: One score for each run without it, or with another in its place.
        units: The difference between the runs. By default one record, present or absent.

    Raises:
        ParameterError: A score that is not a number.
        ThresholdError: Fewer than 4 runs on a side.
    """

    def __init__(
        self, with_unit: npt.ArrayLike, without: npt.ArrayLike, units: Neighbours | None = None
    ) -> None:
        self.units = units or Neighbours()
        self._with = checked_scores(with_unit, "with_unit")
        self._without = checked_scores(without, "without")
        least = min(len(self._with), len(self._without))
        if least < _FEWEST:
            raise ThresholdError(_FEWEST, least, "an audit by trials: runs on each side")

    def bound(
        self, delta: Amount = 0, confidence: float = 0.95, choice: Choice = "all"
    ) -> TrialsBound:
        """Bound epsilon from below.

        With choice "all", the thresholds are scores of one side: the lowest, the median, the upper
        quarter and so on, to the highest. That side's true rate beyond its k-th score has a known
        distribution (beta), and the other side's count is binomial. So the threshold needs no
        scores of its own. All thresholds and both directions share the failure probability. With
        "half", a random half of each side chooses threshold and direction, and the other half is
        counted. Equal scores are ordered at random.

        Args:
            delta: Delta of the promise.
            confidence: Confidence of the bound.
            choice: "all" or "half".

        Raises:
            ParameterError: An invalid argument.
        """
        failure = 1 - check_confidence(confidence)
        beyond = float(delta_of(delta, needed=False))
        lots = SeededRandom.of("trials", self._with, self._without)
        places = lots.ranks(np.concatenate([self._with, self._without]))
        sides = places[: len(self._with)], places[len(self._with) :]
        if choice == "all":
            found, rules = _best(*sides, beyond, failure)
        elif choice == "half":
            orders = [lots.order(len(side)) for side in sides]
            chosen = [side[order[::2]] for side, order in zip(sides, orders, strict=True)]
            counted = [side[order[1::2]] for side, order in zip(sides, orders, strict=True)]
            rule, rules = _best(chosen[0], chosen[1], beyond, failure)[0], 1
            found = rule.counted(counted[0], counted[1], beyond, failure)
        else:
            raise ParameterError(f'choice must be "all" or "half", not {choice!r}')
        return TrialsBound(found.epsilon, beyond, confidence, rules, found.recognises, self.units)

    def check(self, claim: Claim, confidence: float = 0.95, choice: Choice = "all") -> TrialsBound:
        """Refuse a claim that the trials refute.

        Returns:
            The bound, at the claim's delta translated to the trials' neighbours.

        Raises:
            RefutedError: The claim does not hold.
            ParameterError: The claim is about another unit, or about neighbours of which these
                trials show nothing.
        """
        check_units(claim, self.units)
        epsilon, delta = converted(*claim.amounts, claim.relation, self.units.relation)
        found = self.bound(min(delta, 1 - 1e-12), confidence, choice)
        if found.epsilon > epsilon:
            raise RefutedError(
                f"the claim of {claim} does not hold: by {len(self._with):,} runs with the unit "
                f"and {len(self._without):,} without it, {found}"
            )
        return found


def retrained(
    estimator: Any,
    rows: Rows,
    canary: Rows,
    runs: int,
    *,
    score: Callable[[Any], float] | None = None,
    entropy: Entropy = entropy_.system,
    progress: Progress | None = None,
) -> Trials:
    """Train an estimator many times with a record and without it.

    Args:
        estimator: An estimator with scikit-learn's interface. It is cloned, and each `random_state`
            drawn anew. An estimator with another source of noise draws that anew itself.
        rows: Features and labels of every run.
        canary: One more row, as features of shape (1, d) and labels of shape (1,). Choose it
            without looking at the runs.
        runs: Number of trainings with it, and of trainings without it.
        score: Function from a fitted model to a score. By default the logit of the canary's label.
        entropy: Source of the seeds.
        progress: Called with the number of trained models, and of all.

    Raises:
        ParameterError: Rows that do not fit together, or a class that the rows lack.
        ThresholdError: Fewer than 4 runs.
    """
    x, y = checked_rows(rows, "rows")
    one, label = checked_rows(canary, "canary")
    if len(label) != 1:
        raise ParameterError(f"canary: give one row, not {len(label)}")
    if isinstance(runs, bool) or not isinstance(runs, int):
        raise ParameterError(f"runs must be a whole number of at least {_FEWEST}, not {runs!r}")
    if runs < _FEWEST:
        raise ThresholdError(_FEWEST, runs, "an audit by trials: runs on each side")
    inside = np.ones((2 * runs, len(y) + 1), bool)
    inside[runs:, -1] = False
    labels = np.concatenate([y, label])
    classes = sorted(set(labels.tolist()))
    lots = SeededRandom.fresh("retrained", entropy)
    models = trained(estimator, joined(x, one), labels, inside, classes, lots, progress)

    def logit(model: Any) -> float:
        return float(answers(model, (one, label), "canary").logits[0])

    found = [(score or logit)(model) for model in models]
    return Trials(found[:runs], found[runs:])


@dataclass(frozen=True, slots=True)
class _Rule:
    """Recognises runs with scores beyond a place, and the epsilon that this shows."""

    epsilon: float
    recognises: str
    place: int

    def counted(self, inside: Order, outside: Order, delta: float, failure: float) -> "_Rule":
        """Return the same rule, with the epsilon that other trials show."""
        ours, others = _facing(inside, outside)[self.recognises]
        hits, alarms = int((ours > self.place).sum()), int((others > self.place).sum())
        shown = from_counts(hits, len(ours), alarms, len(others), delta, failure)
        return _Rule(shown, self.recognises, self.place)


def _facing(inside: Order, outside: Order) -> dict[str, tuple[Order, Order]]:
    """Return, for each direction, the places of the runs to recognise and of the others."""
    return {"with": (inside, outside), "without": (-outside, -inside)}


def _best(inside: Order, outside: Order, delta: float, failure: float) -> tuple[_Rule, int]:
    """Return the best rule at the last place, the middle and so on, and the number of rules."""
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
