"""Terms under which a study answers with noise."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol

from securecomp.core import checks
from securecomp.core.fixedpoint import Number
from securecomp.errors import ParameterError
from securecomp.privacy.privacy_amounts import (
    Amount,
    PrivacyCost,
    check_promised_delta,
    delta_of,
    epsilon_of,
)
from securecomp.privacy.sensitivity import Bounds, Neighbours, Relation, Unit

Kind = Literal["skellam", "discrete-gaussian", "laplace"]
_LEAST, _MOST = Fraction(1, 10**9), Fraction(100)
KINDS: tuple[Kind, ...] = ("skellam", "discrete-gaussian", "laplace")


class Budget(Protocol):
    """Ledger that the study spends from."""

    def spending(
        self, what: str, cost: PrivacyCost, neighbours: Neighbours
    ) -> AbstractContextManager[Any]:
        """Reserve before a block, and settle after it."""


def check_ledger(ledger: object) -> None:
    """Refuse what nothing can be paid from, such as a path; None is no ledger.

    Raises:
        ParameterError: It is no ledger.
    """
    if ledger is not None and not hasattr(ledger, "spending"):
        raise ParameterError("ledger is a Ledger; open the file with Ledger(path)")


@dataclass(frozen=True, slots=True)
class Privacy:
    """Terms of a study's answers. All of them are public, and the same for all sites.

    Attributes:
        epsilon: Of all questions of one run together.
        delta: Of all questions of one run together; 0 only for Laplace noise. Well below one over
            the number of persons; above 0.01 it is refused.
        unit: What is protected: a "record", a "patient" with all records, or in training a "site".
        identifier: For patients: the column that says whose record it is. Every site keeps the
            first `records` rows of each, and leaves out the rest.
        records: The most records of a patient that a site keeps.
        sites: The most sites at which one patient has records. Declared, and not checked: no site
            can; a patient at more of them has less than what is promised.
        relation: "add/remove" or "replace-one".
        noise: "skellam", "discrete-gaussian" or "laplace".
        bounds: Column to lowest and highest value; what is beyond is moved there. By default
            the range of a codebook, else from minus the column's declared bound to it.
        ledger: What answers are paid from; without one nobody counts them.
        colluding: How many sites may put together what they know; each knows its own noise.
        dropouts: How many sites may drop out before a sum.
        clamp: Whether negative counts are shown as 0, and means within their bounds. It loses
            nothing of the promise; averages of several such answers are biased.
    """

    epsilon: Amount
    delta: Amount = 0
    unit: Unit = "record"
    identifier: str | None = None
    records: int = 1
    sites: int = 1
    relation: Relation = "add/remove"
    noise: Kind = "skellam"
    bounds: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)
    ledger: Budget | None = None
    colluding: int = 1
    dropouts: int = 0
    clamp: bool = False

    def __post_init__(self) -> None:
        if not _LEAST <= epsilon_of(self.epsilon) <= _MOST:
            raise ParameterError(
                f"epsilon of a run is from {float(_LEAST):g} to {_MOST}, not {self.epsilon}: "
                "below, noise drowns all results, and above it protects nobody"
            )
        if not isinstance(self.bounds, Mapping):
            raise ParameterError("bounds are a mapping from column to lowest and highest value")
        check_ledger(self.ledger)
        if self.noise not in KINDS:
            raise ParameterError(f"noise is one of {', '.join(KINDS)}, not {self.noise!r}")
        check_promised_delta(delta_of(self.delta, needed=self.noise != "laplace"))
        checks.integer(self.sites, "sites of a patient", 1)
        checks.integer(self.records, "records of a patient", 1)
        checks.integer(self.colluding, "colluding", 0)
        checks.integer(self.dropouts, "dropouts", 0)
        checks.truth(self.clamp, "clamp")
        if (self.unit == "patient") != (self.identifier is not None):
            raise ParameterError(
                'with unit="patient" name the column that says whose record it is, as identifier '
                "(--identifier); other units have none"
            )
        for column in self.bounds:
            self.limits(column)
        if self.unit != "patient" and self.sites != 1:
            raise ParameterError(f'a {self.unit} is at one site; sites is for unit="patient"')
        self.neighbours  # noqa: B018 - it checks relation, unit and records

    @property
    def neighbours(self) -> Neighbours:
        """Neighbouring data sets; a patient's records are those of all sites."""
        return Neighbours(self.relation, self.unit, self.records * self.sites)

    @property
    def cost(self) -> PrivacyCost:
        """Cost of one run. Laplace noise keeps delta 0, whatever was allowed."""
        return PrivacyCost.of(self.epsilon, 0 if self.noise == "laplace" else self.delta)

    def limits(self, column: str) -> tuple[Number, Number] | None:
        """Return the bounds that a column's values are clipped to, None if none are given."""
        if column not in self.bounds:
            return None
        try:
            low, high = self.bounds[column]
        except (TypeError, ValueError):
            raise ParameterError(
                f"bounds of {column!r} are a lowest and a highest value, not "
                f"{self.bounds[column]!r}"
            ) from None
        Bounds(low, high)
        return low, high


def from_options(
    epsilon: Amount,
    delta: Amount = 0,
    *,
    clip: Sequence[str] = (),
    ledger: str | None = None,
    **others: Any,
) -> Privacy:
    """Return the terms that a command line says.

    Args:
        epsilon: As text or a number.
        delta: As text or a number.
        clip: Texts of the form "column=lowest:highest".
        ledger: The file of a budget.
        others: As `Privacy` has them.

    Raises:
        ParameterError: A text that says no bounds, or terms that cannot be.
    """
    bounds = {}
    for text in clip:
        column, _, ends = text.rpartition("=")
        low, separator, high = ends.partition(":")
        if column in bounds:
            raise ParameterError(f"--clip: {column!r} is given twice")
        try:
            bounds[column] = (_number(low), _number(high))
        except ValueError:
            column = ""
        if not column or not separator:
            raise ParameterError(f"--clip {text!r}: say column=lowest:highest, such as los=0:365")
    budget: Budget | None = None
    if ledger is not None:
        from securecomp.privacy.ledger import Ledger

        budget = Ledger(ledger)
    return Privacy(epsilon, delta, bounds=bounds, ledger=budget, **others)


def _number(text: str) -> Number:
    return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
