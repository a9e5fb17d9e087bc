"""Guarantee of a private result, with the meaning of epsilon and delta in words.

Sources: Wasserman, Zhou, A Statistical Framework for Differential Privacy (2010), theorem 2.4, and
Kairouz, Oh, Viswanath, The Composition Theorem for Differential Privacy (2015), theorem 2.1, for
what any test can reach.
"""

import math
import warnings
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from securecomp.core import checks
from securecomp.errors import ParameterError
from securecomp.privacy.privacy_amounts import Amount, PrivacyCost, delta_of, epsilon_of, written
from securecomp.privacy.sensitivity import Neighbours

FALSE_ALARMS = 0.01
"""The rate of false alarms at which detection is reported."""


class PrivacyWarning(UserWarning):
    """A promise that is kept, and that is worth less than it seems."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Guarantee that one private result gives.

    Attributes:
        epsilon: The promise, at `delta`.
        delta: How much may be beyond it.
        neighbours: Between which data sets it holds: relation and unit.
        mechanism: What was done, such as "Laplace" or "distributed Skellam, 5 of 6 sites".
        scale: The noise's scale, in the result's unit: b of Laplace, else a standard deviation.
        error: With probability 95 % the noise is at most this.
        accountant: How epsilon was worked out, such as "analytic" or "PLD".
        spent: What it took out of the budget, exactly; nothing without a ledger.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    mechanism: str
    scale: float
    error: float
    accountant: str = "analytic"
    spent: PrivacyCost | None = None

    def explain(self) -> str:
        """Return the promise in words."""
        return explain(self.epsilon, self.delta, self.neighbours)

    def facts(self) -> dict[str, Any]:
        """Return all of it for machines: numbers, text and nothing else."""
        spent = self.spent and {
            "epsilon": written(self.spent.epsilon),
            "delta": written(self.spent.delta),
        }
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            **asdict(self.neighbours),
            "mechanism": self.mechanism,
            "scale": self.scale,
            "error_95": self.error,
            "accountant": self.accountant,
            "spent": spent,
        }

    def __str__(self) -> str:
        spent = "no ledger" if self.spent is None else f"spent {self.spent}"
        return (
            f"epsilon {self.epsilon:g}, delta {self.delta:g} ({self.neighbours}; {self.mechanism}, "
            f"scale {self.scale:.4g}; {self.accountant}): within {self.error:.4g} in 95 of 100 "
            f"runs; {spent}"
        )


def best_accuracy(epsilon: Amount, delta: Amount = 0) -> float:
    """Return how often any attacker who guesses whether a unit is in the data is right.

    Before the result the attacker holds both for equally likely; everything else is known. It is
    (e^epsilon + delta) / (1 + e^epsilon).
    """
    least = math.exp(-_known(epsilon))
    return (1 + float(delta_of(delta, needed=False)) * least) / (1 + least)


def best_detection(epsilon: Amount, delta: Amount = 0, false_alarms: float = FALSE_ALARMS) -> float:
    """Return what share of units any attacker can recognise, who accuses so many falsely.

    It is the smaller of e^epsilon alpha + delta and 1 - e^-epsilon (1 - delta - alpha).
    """
    if not 0 <= checks.real(false_alarms, "the rate of false alarms") <= 1:
        raise ParameterError(f"a rate of false alarms is from 0 to 1, not {false_alarms}")
    number, beyond = _known(epsilon), float(delta_of(delta, needed=False))
    first = math.exp(min(number, 700.0)) * false_alarms + beyond
    second = 1 - math.exp(-number) * (1 - beyond - false_alarms)
    return min(first, second, 1.0)


def explain(epsilon: Amount, delta: Amount = 0, neighbours: Neighbours | None = None) -> str:
    """Return in words what a promise keeps from whom.

    Args:
        epsilon: The promise.
        delta: How much may be beyond it.
        neighbours: Between which data sets it holds; by default of one record.

    Raises:
        ParameterError: Epsilon is not a finite number above 0, or delta not a probability below 1.
    """
    units = neighbours or Neighbours()
    who = {
        "record": "one record",
        "patient": "one patient with all records",
        "site": "one site with all of its rows",
    }[units.unit]
    told = {
        "add/remove": f"whether {who} is in the data",
        "replace-one": f"which of two possible contents {who} has",
    }[units.relation]
    beyond = float(delta_of(delta, needed=False))
    extra = (
        f" These figures include delta, the chance of about 1 in {1 / beyond:,.0f} that more shows."
        if beyond
        else ""
    )
    return (
        f"Whoever sees the result, knows all other rows and guesses {told} is right at most "
        f"{_percent(best_accuracy(epsilon, delta))} of the time; a coin is right 50 %. A guess "
        f"with 1 % false alarms finds at most {_percent(best_detection(epsilon, delta))} of "
        f"those that are to be found.{extra}"
    )


def check_delta(delta: Amount, persons: int) -> None:
    """Warn of a delta that would allow to publish somebody's row.

    Args:
        delta: The delta.
        persons: How many units there are, a public number.
    """
    beyond = delta_of(delta, needed=False)
    checks.integer(persons, "the number of persons", 0, 10**15)
    if persons > 0 and beyond * persons >= 1:
        warnings.warn(
            f"delta {float(beyond):g} is not below 1/{persons}: publishing one of {persons} "
            "persons' data as they are, drawn by lot, would keep this promise too; take a delta "
            f"of {0.01 / persons:.0e} or less",
            PrivacyWarning,
            stacklevel=2,
        )


def _known(epsilon: Amount) -> float:
    return float(min(epsilon_of(epsilon), Fraction(10**4)))


def _percent(share: float) -> str:
    """Return a share rounded up, so that the words promise no more than the number."""
    if share >= 1:
        return "100 %"
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %"
