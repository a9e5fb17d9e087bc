"""Audits by many runs: a training is repeated with a unit and without it, and one score taken each.

This bounds epsilon without any supposition but that the runs are independent, and as closely as
many runs allow; it takes hundreds of trainings where `guesses` takes one. The closest bounds come
from a unit that is far from all others, and from data as an adversary would choose them.

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
    """What trials show.

    Attributes:
        epsilon: At least this, at `delta`, for the trials' own neighbours.
        delta: Of the promise.
        confidence: With this probability the bound holds.
        rules: How many rules were tried, and paid for.
        recognises: Which trials the best rule recognises: "with" or "without" the unit.
        units: Between which data sets.
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
        with_unit: One score for each run with the unit; larger ones speak for "with".
        without: One for each run without it, or with another in its place.
        units: What the runs differ in: by default one record, there or not.

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
        quarter, ..., the highest. That side's true rate beyond its k-th score is distributed as is
        known (a beta variable), and the other side's count is binomial, so that the threshold needs
        no scores of its own; all thresholds and both directions share the failure probability. With
        "half", one half of each side, by lot, chooses threshold and direction, and the other is
        counted. Equal scores are put in order by lot.

        Args:
            delta: Of the promise.
            confidence: Of the bound.
            choice: "all" or "half".

        Raises:
            ParameterError: An argument that cannot be.
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
            raise ParameterError(f'choice is "all" or "half", not {choice!r}')
        return TrialsBound(found.epsilon, beyond, confidence, rules, found.recognises, self.units)

    def check(self, claim: Claim, confidence: float = 0.95, choice: Choice = "all") -> TrialsBound:
        """Refuse a claim that cannot be true.

        Returns:
            The bound, at the claim's delta as it is for the trials' neighbours.

        Raises:
            RefutedError: The claim does not hold.
            ParameterError: The claim is about another unit, or neighbours of which trials like
                these say nothing.
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
        estimator: Anything like scikit-learn's; cloned, and each `random_state` drawn anew. What
            draws its noise elsewhere draws it anew by itself.
        rows: Features and labels that every run has.
        canary: One more row, as features of shape (1, d) and labels of shape (1,). It is chosen
            without the runs.
        runs: Trainings with it, and as many without.
        score: What a run says of the record, of a fitted model; by default its label's logit.
        entropy: Source of the seeds.
        progress: Called with how many are trained, of how many.

    Raises:
        ParameterError: Rows that do not go together, or a class that the rows lack.
        ThresholdError: Fewer than 4 runs.
    """
    x, y = checked_rows(rows, "rows")
    one, label = checked_rows(canary, "canary")
    if len(label) != 1:
        raise ParameterError(f"canary: give one row, not {len(label)}")
    if isinstance(runs, bool) or not isinstance(runs, int):
        raise ParameterError(f"runs: a whole number from {_FEWEST} on; not {runs!r}")
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
    """Return what is best at the last, the middle, ... place, and how many rules paid for it."""
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
