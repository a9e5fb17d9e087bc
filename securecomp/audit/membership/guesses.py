"""From scores to guesses of membership that prove something, and what they prove.

The theorem of `bounds` is about units that are in the training data by a fair coin each. How the
members came about says which coins there were:

- "coins": each unit was a member by its own fair coin. Guessed is: the highest scores are members,
  the lowest are not. The data sets differ in one unit that is there or not: `add/remove`.
- "split": the members were drawn at random, a fixed number of all units, as by scikit-learn's
  `train_test_split`. A random pairing of members and others leaves open, in each pair, which of the
  two was the member: a fair coin, independent of the other pairs' (by symmetry). Guessed is: the
  one that scores higher. The data sets differ in one unit that is replaced by another.
- "otherwise": by time, by site, by who came. Then members and others may differ in more than
  membership, and no guess proves anything about epsilon.

How many guesses are made is fixed beforehand: all, half of them, a quarter, ...; those of which the
scores are surest. All numbers are tried, and the failure probability is divided by how many. Fewer
guesses than that may be made, and those left out count as wrong: of pairs whose scores are equal,
and of coins whose scores nine in ten units share. To guess them by a lot that the scores decide
would give a model that says the same of everybody the same luck every time.
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
"""Fewer guesses can refute hardly any promise, and would be paid for all the same."""
_UNFAIR = 1e-6
_ALIKE = 0.9
"""Where more of the scores are equal, a lot among them would say more than the scores do."""


@dataclass(frozen=True, slots=True)
class Guesses:
    """How one rule did.

    Attributes:
        rule: What was guessed.
        guesses: How many guesses it made.
        right: How many of them are right.
    """

    rule: str
    guesses: int
    right: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What all rules together say about epsilon.

    Attributes:
        relation: Between which data sets the coins decided.
        units: How many coins there were.
        tests: The rules.
    """

    relation: Relation
    units: int
    tests: tuple[Guesses, ...]

    def pvalue(self, epsilon: float, delta: float, relation: Relation) -> float:
        """Return how likely what was seen is, at most, if a promise is kept; all rules paid for.

        Raises:
            ParameterError: The coins say nothing about such neighbours.
        """
        epsilon, delta = converted(epsilon, delta, relation, self.relation)
        each = [self._alone(test, epsilon, delta) for test in self.tests]
        return min(1.0, len(each) * min(each))

    def bound(self, delta: float, confidence: float, relation: Relation) -> tuple[float, Guesses]:
        """Return what epsilon is at least, at a delta, and the rule that shows it.

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
    """Return what scores of members and others show.

    Args:
        members: Scores, larger ones speak for membership.
        holdout: Likewise.
        chosen: How the members came about.
        relation: Of the promise that is asked about.

    Raises:
        ParameterError: No such way, or numbers of members and others that fair coins do not give.
    """
    check_chosen(chosen, len(members), len(holdout))
    lots = SeededRandom.of("guesses", members, holdout)
    if chosen == "coins" and relation == "add/remove":
        return _by_coins(members, holdout, lots)
    return _by_pairs(members, holdout, lots)


def check_chosen(chosen: str, members: int, holdout: int) -> None:
    """Refuse what is no way to choose members, or was not the way to choose these.

    Args:
        chosen: How they came about.
        members: How many there are.
        holdout: How many others.

    Raises:
        ParameterError: It says which ways there are, or that coins do not give such numbers.
    """
    if chosen not in CHOSEN:
        raise ParameterError(
            f"chosen says how the members were chosen: one of {', '.join(CHOSEN)}, not {chosen!r}"
        )
    if chosen == "coins" and stats.binomtest(members, members + holdout).pvalue < _UNFAIR:
        raise ParameterError(
            f"{members:,} members and {holdout:,} others are not what fair coins give; if so many "
            'were drawn at random, say chosen="split" (--chosen split)'
        )


def _by_coins(members: Floats, holdout: Floats, lots: SeededRandom) -> Evidence:
    units = len(members) + len(holdout)
    places = lots.ranks(np.concatenate([members, holdout]))
    rising = np.zeros(units, bool)  # whether the unit at this place is a member
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
