"""A claimed guarantee about a model, and the verdict of an attack on it."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from securecomp.audit.membership.guesses import Chosen, Guesses
from securecomp.errors import ParameterError
from securecomp.privacy.privacy_amounts import Amount, delta_of, epsilon_of, exact
from securecomp.privacy.sensitivity import Neighbours, Relation, Unit

_MOST = Fraction(10_000)
ASSUMED = {
    "split": "the members were drawn at random from the rows of both",
    "coins": "each row was a member by a fair coin of its own",
}
"""The assumption behind a bound on epsilon, by how the members were chosen."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed guarantee of differential privacy.

    Attributes:
        epsilon: Epsilon, above 0.
        delta: Delta. It must be given, even if it is 0.
        unit: The protected unit: "record" or "patient".
        relation: Whether neighbours differ in one unit's presence, or in its replacement.
        records: Largest number of records of one patient.
    """

    epsilon: Amount
    delta: Amount | None = None
    unit: Unit | None = None
    relation: Relation = "add/remove"
    records: int = 1

    def __post_init__(self) -> None:
        epsilon_of(self.epsilon)
        if self.delta is None:
            raise ParameterError(
                f"epsilon {self.epsilon} without a delta promises nothing; give the delta that the "
                "training states (--delta 1e-5, or 0)"
            )
        delta_of(self.delta, needed=False)
        if self.unit is None:
            raise ParameterError(
                f"epsilon {self.epsilon} needs its unit; give the one that the training states: "
                "record or patient (--unit)"
            )
        self.neighbours  # noqa: B018 - it checks relation, unit and records

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring data sets of the claim."""
        # The unit is never None here: it was checked when the claim was made.
        return Neighbours(self.relation, self.unit or "record", self.records)

    @property
    def amounts(self) -> tuple[float, float]:
        """Epsilon and delta as floats; a larger epsilon counts as 10,000."""
        return float(min(epsilon_of(self.epsilon), _MOST)), float(exact(self.delta or 0, "delta"))

    def __str__(self) -> str:
        epsilon, delta = self.amounts
        return f"epsilon {epsilon:g}, delta {delta:g} ({self.neighbours})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of holding a claim against an attack.

    Attributes:
        claim: The claim.
        pvalue: Upper bound of the probability of guesses as good as these, if the claim holds.
        epsilon: The least epsilon that is consistent with the attack, at the claim's delta and for
            its neighbours.
        guesses: The rule that shows it.
        confidence: Confidence of each of the two.
        chosen: How the members were chosen.
    """

    claim: Claim
    pvalue: float
    epsilon: float
    guesses: Guesses
    confidence: float
    chosen: Chosen

    @property
    def exceeded(self) -> bool:
        """Whether the attack did better than the claim allows by chance."""
        return self.pvalue < 1 - self.confidence

    @property
    def refuted(self) -> bool:
        """Whether the claim is false: it was exceeded, and the members were drawn at random."""
        return self.exceeded and self.chosen != "otherwise"

    def __str__(self) -> str:
        g, level = self.guesses, f"{100 * self.confidence:g} %"
        seen = f"{g.right:,} of {g.guesses:,} guesses ({g.rule}) are right"
        p = "below 1e-12" if self.pvalue < 1e-12 else f"at most {above(self.pvalue)}"
        if self.refuted:
            return (
                f"the claim of {self.claim} does not hold: {seen}; if it held, that many or more "
                f"would be right with probability {p}. Epsilon is at least {below(self.epsilon)} "
                f"(confidence {level}). This assumes that {ASSUMED[self.chosen]}; if they were "
                'not, give chosen="otherwise" (--chosen otherwise)'
            )
        if self.exceeded:
            return (
                f"the attack does better than {self.claim} would allow: {seen}. This refutes "
                "nothing, because the members were not drawn at random and may differ from the "
                "holdout in more than membership: train once on a random part, and audit that"
            )
        return (
            f"the attack does not refute {self.claim}: {seen}, and more are needed for confidence "
            f"{level}. That does not prove the claim"
        )


def below(epsilon: float) -> str:
    """Return a lower bound as text, never rounded up."""
    return f"{Decimal(epsilon).quantize(Decimal('0.01'), ROUND_FLOOR)}"


def above(pvalue: float) -> str:
    """Return an upper bound as text, never rounded down."""
    rounded = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(pvalue)
    return f"{float(rounded):.2g}"


def check_units(claim: Claim, seen: Neighbours) -> None:
    """Refuse to hold a claim against an audit of another unit.

    Raises:
        ParameterError: The claim is about another unit, or a smaller one, than was audited.
    """
    if not isinstance(claim, Claim):
        raise ParameterError(f"give a Claim(epsilon, delta, unit), not {claim!r}")
    theirs = claim.neighbours
    if theirs.unit != seen.unit:
        remedy = {
            "patient": "give identifiers that tell whose row each is (--identifier)",
            "record": "leave out identifiers (--identifier), so that each row is a unit",
        }[theirs.unit]
        raise ParameterError(
            f"the claim is about a {theirs.unit}, and the audit about a {seen.unit}; {remedy}"
        )
    if seen.records > theirs.records:
        raise ParameterError(
            f"the claim is about a patient with at most {theirs.records} records, and one here "
            f"has {seen.records}; leave out the others, as in training"
        )
