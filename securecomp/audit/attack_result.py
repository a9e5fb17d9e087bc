"""Results of attacks: success, success by guessing, and the knowledge that was assumed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from securecomp.audit.bounds import share_high, share_low
from securecomp.errors import ParameterError
from securecomp.show.exhibit import Exhibit, TextTable

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of trials, with its exact interval.

    Attributes:
        hits: Number of trials that succeeded.
        trials: Number of trials.
    """

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials or not self.trials:
            raise ParameterError(f"{self.hits} of {self.trials} is not a rate")

    @property
    def value(self) -> float:
        """The share."""
        return self.hits / self.trials

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return Clopper and Pearson's interval (Biometrika 26, 1934): exact, so conservative.

        Trials must be independent of each other. Rows of one patient are not.
        """
        each = (1 - level) / 2
        return share_low(self.hits, self.trials, each), share_high(self.hits, self.trials, each)

    def facts(self) -> dict[str, Any]:
        """Return plain values."""
        low, high = self.interval()
        return {
            "hits": self.hits,
            "trials": self.trials,
            "value": self.value,
            "low": low,
            "high": high,
        }

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:.1%} ({low:.1%} to {high:.1%})"


def difference(one: Rate, other: Rate) -> tuple[float, float]:
    """Return an interval of the difference of two rates, with at least 95 % confidence.

    Each rate's interval is wrong in at most 2.5 % of cases, so both are right in 95 % (Bonferroni).
    """
    level = 1 - (1 - LEVEL) / 2
    (low, high), (less, most) = one.interval(level), other.interval(level)
    return low - most, high - less


class AttackResult(Exhibit):
    """Base class of attack results. Subclasses are frozen dataclasses.

    Attributes:
        knows: The attacker's assumed knowledge, in words.
    """

    knows: ClassVar[str] = ""

    def notes(self) -> list[str]:
        """Return the attacker's knowledge, and the remarks."""
        return [f"the attacker knew: {self.knows}", *self.remarks()]

    def to_json(self) -> dict[str, Any]:
        """Return `facts`, with the attack's name and the attacker's knowledge."""
        return {**super().to_json(), "knows": self.knows}


class Comparable(Protocol):
    """An attack's result that can stand in a table beside others of its kind."""

    def comparison(self) -> dict[str, str]:
        """Return the result as one row for `compared`: column to text."""


def compared(results: Sequence[tuple[str, Comparable]]) -> TextTable:
    """Return results of one attack side by side, for example under several forms of answers.

    Args:
        results: Pairs of a form's name and the attack's result under it.

    Raises:
        ParameterError: There is no result.
    """
    if not results:
        raise ParameterError("there is no result to compare; give at least one")
    shown = [(name, result.comparison()) for name, result in results]
    header = ("answers", *shown[0][1])
    return grid("", header, [(name, *columns.values()) for name, columns in shown])


def grid(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> TextTable:
    """Return a table of text."""
    return TextTable(title, tuple(header), tuple(map(tuple, rows)))
