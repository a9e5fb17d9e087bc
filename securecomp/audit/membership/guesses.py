"""Guesses of membership from scores, and the evidence about epsilon that they give.

The theorem in `bounds` is about units that are in the training data by a fair coin each. The way in
which the members were chosen tells which coins there were:

- "coins": each unit was a member by a fair coin of its own. The highest scores are guessed to be
  members, and the lowest not. The data sets differ in the presence of one unit: `add/remove`.
- "split": a fixed number of all units was drawn at random, as by scikit-learn's
  `train_test_split`. Members and others are paired at random. Within a pair it was a fair coin,
  independent of the other pairs, which of the two was the member (by symmetry). The higher score is
  guessed. The data sets differ in one unit that is replaced by another.
- "otherwise": by time, by site, or by who came. Members and others may then differ in more than
  membership, and no guess proves anything about epsilon.

The numbers of guesses are fixed beforehand: all, half of them, a quarter and so on, the surest
first. All of these numbers are tried, and the failure probability is divided among them. A guess
may be left out, and then counts as wrong: for a pair with equal scores, and for coins with a score
that nine in ten units share. If a draw derived from the scores decided these, a model that says
the same of everybody would have the same luck every time.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from securecomp.audit.bounds import Floats, converted, first_kept, guessing_pvalue, halvings
from securecomp.audit.seeded_random import SeededRandom
from securecomp.errors import ParameterError
from securecomp.privacy.sensitivity import Relation

Chosen = Literal["split", "coins", "otherwise"]
CHOSEN: tuple[Chosen, ...] = ("split", "coins", "otherwise")

_FEWEST = 10
"""Fewest guesses of a rule: fewer refute hardly any promise, and would cost as much."""
_UNFAIR = 1e-6
_ALIKE = 0.9
"""Share of equal scores from which they are not guessed at all."""


@dataclass(frozen=True, slots=True)
class Guesses:
    """The success of one guessing rule.

    Attributes:
        rule: The rule, in words.
        guesses: Number of its guesses.
        right: Number of right guesses.
    """

    rule: str
    guesses: int
    right: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of all rules together about epsilon.

    Attributes:
        relation: Relation of the data sets between which the coins decided.
        units: Number of coins.
        tests: The rules.
    """

    relation: Relation
    units: int
    tests: tuple[Guesses, ...]

    def pvalue(self, epsilon: float, delta: float, relation: Relation) -> float:
        """Return a bound of the evidence's probability if a promise is kept, over all rules.

        Raises:
            ParameterError: The coins say nothing about such neighbours.
        """
        epsilon, delta = converted(epsilon, delta, relation, self.relation)
        each = [self._alone(test, epsilon, delta) for test in self.tests]
        return min(1.0, len(each) * min(each))

    def bound(self, delta: float, confidence: float, relation: Relation) -> tuple[float, Guesses]:
        """Return a lower bound of epsilon at a delta, and the rule that shows it.

        Raises:
            ParameterError: The coins say nothing about such neighbours.
        """
        level = (1 - confidence) / len(self.tests)
        best, by = 0.0, self.tests[0]
        for test in self.tests:

            def alone(epsilon: float, test: Guesses = test) -> float:
                return self._alone(test, *converted(epsilon, delta, relation, self.relation))

            if alone(best) < level:
                found = first_kept(alone, level)
                best, by = (found, test) if found > best else (best, by)
        return best, by

    def _alone(self, test: Guesses, epsilon: float, delta: float) -> float:
        return guessing_pvalue(self.units, test.guesses, test.right, epsilon, delta)


def evidence(members: Floats, holdout: Floats, chosen: Chosen, relation: Relation) -> Evidence:
    """Return the evidence in scores of members and others.

    Args:
        members: Scores of members. Larger ones speak for membership.
        holdout: Scores of others.
        chosen: How the members were chosen.
        relation: Relation of the promise in question.

    Raises:
        ParameterError: No such choice, or numbers of members and others that fair coins would not
            give.
    """
    check_chosen(chosen, len(members), len(holdout))
    lots = SeededRandom.of("guesses", members, holdout)
    if chosen == "coins" and relation == "add/remove":
        return _by_coins(members, holdout, lots)
    return _by_pairs(members, holdout, lots)


def check_chosen(chosen: str, members: int, holdout: int) -> None:
    """Refuse an unknown way to choose members, or one that cannot have given these numbers.

    Args:
        chosen: How the members were chosen.
        members: Number of members.
        holdout: Number of others.

    Raises:
        ParameterError: An unknown way, or numbers that fair coins would not give.
    """
    if chosen not in CHOSEN:
        raise ParameterError(
            f"chosen tells how the members were chosen: one of {', '.join(CHOSEN)}, not {chosen!r}"
        )
    if chosen == "coins" and stats.binomtest(members, members + holdout).pvalue < _UNFAIR:
        raise ParameterError(
            f"fair coins would not give {members:,} members and {holdout:,} others; if this number "
            'was drawn at random, give chosen="split" (--chosen split)'
        )


def _by_coins(members: Floats, holdout: Floats, lots: SeededRandom) -> Evidence:
    units = len(members) + len(holdout)
    places = lots.ranks(np.concatenate([members, holdout]))
    rising = np.zeros(units, bool)  # whether the unit at a place is a member
    rising[places[: len(members)]] = True
    ordered = np.sort(np.concatenate([members, holdout]))
    alike = ordered == ordered[units // 2]
    guessed = ~alike if alike.mean() > _ALIKE else np.ones(units, bool)
    top, bottom = np.cumsum((rising & guessed)[::-1]), np.cumsum(~rising & guessed)
    tests = []
    for many in halvings(units, _FEWEST) or [units]:
        low = many // 2
        high = many - low
        right = int(top[high - 1]) + (int(bottom[low - 1]) if low else 0)
        tests.append(Guesses("the highest scores are members, the lowest are not", many, right))
        if many < units:
            tests.append(Guesses("the highest scores are members", many, int(top[many - 1])))
            tests.append(Guesses("the lowest scores are no members", many, int(bottom[many - 1])))
    return Evidence("add/remove", units, tuple(tests))


def _by_pairs(members: Floats, holdout: Floats, lots: SeededRandom) -> Evidence:
    count = min(len(members), len(holdout))
    ours = members[lots.order(len(members))[:count]]
    others = holdout[lots.order(len(holdout))[:count]]
    # Two infinite scores of one sign are equal.
    apart = np.subtract(ours, others, where=ours != others, out=np.zeros(count))
    surest = np.cumsum((apart > 0)[np.lexsort((lots.words(count), -np.abs(apart)))])
    tests = tuple(
        Guesses("of a pair, the one that scores higher is the member", many, int(surest[many - 1]))
        for many in halvings(count, _FEWEST) or [count]
    )
    return Evidence("replace-one", count, tests)
