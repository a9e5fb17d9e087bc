"""What an attack returns: its success beside what guessing gives, and what it had to know."""

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
        hits: Trials that succeeded.
        trials: All of them.
    """

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials or not self.trials:
            raise ParameterError(f"{self.hits} of {self.trials} is no rate")

    @property
    def value(self) -> float:
        """The share."""
        return self.hits / self.trials

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return Clopper and Pearson's interval (Biometrika 26, 1934), exact and so conservative.

        Trials must be independent of each other: rows of one patient are not.
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
    """Return where one rate less the other is, with 95 % confidence at least.

    Each rate's interval is wrong in 2.5 % of cases at most (Bonferroni), so both are right in 95 %.
    """
    level = 1 - (1 - LEVEL) / 2
    (low, high), (less, most) = one.interval(level), other.interval(level)
    return low - most, high - less


class AttackResult(Exhibit):
    """Base of the attacks' results. Subclasses are frozen dataclasses.

    Attributes:
        knows: What the attacker was assumed to know, in words.
    """

    knows: ClassVar[str] = ""

    def notes(self) -> list[str]:
        """Return what the attacker knew, and the remarks."""
        return [f"the attacker knew: {self.knows}", *self.remarks()]

    def to_json(self) -> dict[str, Any]:
        """Return `facts`, the attack's name and what it assumed."""
        return {**super().to_json(), "knows": self.knows}


class Comparable(Protocol):
    """An attack's result that can stand in a table beside others of its kind."""

    def comparison(self) -> dict[str, str]:
        """Return what `compared` shows of it: column to text."""


def compared(results: Sequence[tuple[str, Comparable]]) -> TextTable:
    """Return one attack's results side by side, say under several forms of answers.

    Args:
        results: Name of a form, and the attack's result under it; all of one attack.

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
