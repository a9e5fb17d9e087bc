"""The report of an attack on membership, for people and machines, and its verdict on a claim."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from securecomp.audit.bounds import converted, from_counts
from securecomp.audit.confidences import Confidences
from securecomp.audit.membership.claims import ASSUMED, Claim, Verdict, above, below, check_units
from securecomp.audit.membership.guesses import Chosen, Evidence, evidence
from securecomp.audit.membership.roc_curve import Columns, Detection, Estimate, Roc, rows_needed
from securecomp.audit.membership.trials import Trials
from securecomp.errors import RefutedError
from securecomp.privacy.guarantee import best_detection
from securecomp.privacy.sensitivity import Neighbours, Relation
from securecomp.show.exhibit import Exhibit, Plot, TextTable

_POINTS = 60
_SHORT = {
    "split": "members were drawn at random",
    "coins": "each row had a fair coin",
    "otherwise": "not valid: members were not drawn",
}


@dataclass(frozen=True, slots=True)
class GeneralisationGap:
    """A model's fit to the rows it learned, and to others.

    Attributes:
        accuracy: Share of members, and of holdout rows, that it classifies rightly.
        loss: Their mean cross-entropy, in nats; infinite if a label has probability 0.
    """

    accuracy: tuple[float, float]
    loss: tuple[float, float]

    @classmethod
    def of(cls, members: Confidences, holdout: Confidences) -> "GeneralisationGap":
        """Compute it from the model's answers."""
        return cls(
            (members.accuracy, holdout.accuracy),
            (float(members.losses.mean()), float(holdout.losses.mean())),
        )

    @property
    def gap(self) -> float:
        """The generalisation gap: accuracy on members less accuracy on others."""
        return self.accuracy[0] - self.accuracy[1]


@dataclass(frozen=True, slots=True, repr=False)
class MembershipReport(Exhibit):
    """The findings of an attack on membership.

    Attributes:
        attack: Name of the attack.
        roc: The ROC curve of its scores.
        chosen: How the members were chosen. The meaning of the bound on epsilon depends on it.
        units: The unit of a score: a record, or a patient with a largest number of records.
        delta: Delta of the bound on epsilon if there is no claim.
        confidence: Confidence of each interval and each bound.
        detections: Shares of members found at rates of false alarms.
        too_small: Rates for which the holdout has too few rows.
        fit: The model's fit to members and holdout.
        claim: The claim in tables and figures.
    """

    attack: str
    roc: Roc
    chosen: Chosen
    units: Neighbours
    delta: float
    confidence: float
    detections: tuple[Detection, ...]
    too_small: tuple[float, ...] = ()
    fit: GeneralisationGap | None = None
    claim: Claim | None = None

    @property
    def title(self) -> str:
        """The title, with the attack's name."""
        return f"Membership inference by {self.attack}"

    @property
    def area(self) -> Estimate:
        """The area under the ROC curve."""
        return self.roc.area(self.confidence)

    @property
    def reversed(self) -> bool:
        """Whether members score lower than others, beyond chance: something is the wrong way round.

        No attack means to do that. See `words` for the usual causes.
        """
        return self.area.high < 0.5

    @property
    def relation(self) -> Relation:
        """Relation of the neighbouring data sets in the bound on epsilon."""
        if self.claim is not None:
            return self.claim.relation
        return "add/remove" if self.chosen == "coins" else "replace-one"

    def evidence(self, relation: Relation | None = None) -> Evidence:
        """Return the guesses as evidence about promises for neighbours of a relation."""
        return evidence(*self.roc.scores, self.chosen, relation or self.relation)

    def bound(self) -> float:
        """Return a lower bound of epsilon, at the claim's delta or else at this audit's.

        It is valid if the members were chosen as `chosen` tells. For "otherwise" it is not valid.
        """
        return self.evidence().bound(self._delta, self.confidence, self.relation)[0]

    def against(self, claim: Claim) -> "MembershipReport":
        """Return the same report with a claim in its tables and figures.

        Raises:
            ParameterError: The claim is about another unit than was audited.
        """
        check_units(claim, self.units)
        return replace(self, claim=claim)

    def verdict(self, claim: Claim) -> Verdict:
        """Return the verdict on a claim. A refuted claim raises no error here.

        Raises:
            ParameterError: The claim is about another unit than was audited.
        """
        held = self.against(claim).evidence()
        epsilon, delta = claim.amounts
        least, by = held.bound(delta, self.confidence, claim.relation)
        pvalue = held.pvalue(epsilon, delta, claim.relation)
        return Verdict(claim, pvalue, least, by, self.confidence, self.chosen)

    def check(self, claim: Claim) -> Verdict:
        """Refuse a claim that the attack refutes.

        Returns:
            The verdict, if it does not refute the claim. If the members were chosen "otherwise",
            the verdict may be that the claim was exceeded; that is not an error.

        Raises:
            RefutedError: The claim does not hold, at this audit's confidence.
            ParameterError: The claim is about another unit than was audited.
        """
        found = self.verdict(claim)
        if found.refuted:
            raise RefutedError(str(found))
        return found

    def words(self) -> str:
        """Return the attack's strength as people understand it."""
        if self.reversed:
            return (
                f"Members score lower than others: the area under the ROC curve is "
                f"{self.area.value:.2f} ({self.area.low:.2f} to {self.area.high:.2f}), and 0.5 is "
                "chance. Either members and holdout are swapped, or lower scores speak for "
                "membership here; correct that and audit again. If both are right, members and "
                "holdout are not of one population. The numbers below do not measure a leak."
            )
        right = self.roc.balanced_accuracy(self.confidence).value
        perhaps = "" if self.area.low > 0.5 else " The difference may be chance."
        all_of_them = (
            f"Among as many members as others, guesses about everybody are right "
            f"{_thousandth(right)} times in 1,000; a coin is right 500 times.{perhaps}"
        )
        near = sorted(self.detections, key=lambda one: abs(math.log(one.false_alarms / 0.01)))
        at = next((one for one in near if one.accused or one.found), None)
        if at is None:
            return all_of_them
        n, m = self.roc.members, self.roc.holdout
        share = at.found / (at.found + at.accused / m)
        more = from_counts(round(at.found * n), n, at.accused, m, 0, 1 - self.confidence) > 0
        return (
            f"If half of all people are members, then of 1,000 people that the attack names at "
            f"{_percent(at.false_alarms)} false alarms {_thousandth(share)} are members; by chance "
            f"it would be 500. It finds {_thousandth(at.found)} of 1,000 members"
            f"{'' if more else ', which may be chance'}. {all_of_them}"
        )

    def grids(self) -> list[TextTable]:
        """Return fit, attack, bounds on epsilon, and the claim's verdict."""
        level = f"{100 * self.confidence:g} %"
        roc = self.roc
        kind = "rows" if self.units.unit == "record" else "persons"
        header = ("", kind, "accuracy", "mean loss")
        sides = [("members", f"{roc.members:,}"), ("holdout", f"{roc.holdout:,}")]
        fit = self.fit
        rows = [
            (
                *side,
                *(("", "") if fit is None else (f"{fit.accuracy[i]:.3f}", f"{fit.loss[i]:.3f}")),
            )
            for i, side in enumerate(sides)
        ]
        if fit is not None:
            rows.append(("gap", "", f"{fit.gap:+.3f}", f"{fit.loss[0] - fit.loss[1]:+.3f}"))
        numbers = [
            ("area under the ROC curve", self.area, "0.5"),
            ("balanced accuracy, best threshold", roc.balanced_accuracy(self.confidence), "0.5"),
            *(
                (
                    f"found at {_percent(one.false_alarms)} false alarms",
                    one.estimate,
                    f"{one.false_alarms:g}",
                )
                for one in self.detections
            ),
        ]
        attack = [
            (name, f"{e.value:.3f}", f"{e.low:.3f}", f"{e.high:.3f}", chance)
            for name, e, chance in numbers
        ]
        found = [
            TextTable("fit of the model", header, tuple(rows)),
            TextTable(
                "findings of the attack",
                ("", "found", f"{level} from", "to", "by chance"),
                tuple(attack),
            ),
            TextTable(
                f"epsilon is at least, {self.promise()}",
                ("", "epsilon", "if"),
                tuple(self._bounds()),
            ),
        ]
        if self.claim is not None:
            verdict = self.verdict(self.claim)
            said = (
                "refuted" if verdict.refuted else "exceeded" if verdict.exceeded else "not refuted"
            )
            cells = (str(self.claim), above(verdict.pvalue), said)
            found.append(TextTable("the claim", ("claimed", "p at most", f"at {level}"), (cells,)))
        return found

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name, with None for infinite ones."""
        held = self.evidence()
        least, by = held.bound(self._delta, self.confidence, self.relation)
        found: dict[str, Any] = {
            "attack": self.attack,
            "unit": self.units.unit,
            "records": self.units.records,
            "members": self.roc.members,
            "holdout": self.roc.holdout,
            "confidence": self.confidence,
            "auc": _ends(self.area),
            "balanced_accuracy": _ends(self.roc.balanced_accuracy(self.confidence)),
            "detection": [
                {"false_alarms": one.false_alarms, **_ends(one.estimate), "accused": one.accused}
                for one in self.detections
            ],
            "needs_rows": {f"{rate:g}": rows_needed(rate) for rate in self.too_small},
            "chosen": self.chosen,
            "epsilon_at_least": {
                "epsilon": least,
                "delta": self._delta,
                "relation": self.relation,
                "valid": self.chosen != "otherwise",
                "guesses": by.guesses,
                "right": by.right,
            },
            "words": self.words(),
        }
        if self.fit is not None:
            sides = ("members", "holdout")
            finite = (value if math.isfinite(value) else None for value in self.fit.loss)
            found["accuracy"] = dict(zip(sides, self.fit.accuracy, strict=True))
            found["loss"] = dict(zip(sides, finite, strict=True))
            found["gap"] = self.fit.gap
        if self.claim is not None:
            verdict = self.verdict(self.claim)
            epsilon, delta = self.claim.amounts
            found["claim"] = {
                "epsilon": epsilon,
                "delta": delta,
                "unit": self.claim.neighbours.unit,
                "records": self.claim.records,
                "relation": self.claim.relation,
                "p_at_most": verdict.pvalue,
                "exceeded": verdict.exceeded,
                "refuted": verdict.refuted,
            }
        return found

    def plots(self) -> list[Plot]:
        """Return both ends of the ROC curve on logarithmic axes, with the limit by the claim."""
        series: dict[str, Columns] = {
            "members, by the highest scores": self.roc.band(self.confidence),
            "others, by the lowest scores": self.roc.turned().band(self.confidence),
        }
        if self.claim is not None:
            series[f"at most, by {self.claim}"] = self._allowed(self.claim)
        return [
            Plot(
                "line",
                f"{self.title}: shares recognised against false alarms; dotted: chance",
                "share of the other side that is mistaken for them (false alarms)",
                "share that is recognised",
                series,
                reference=1.0,
                logarithmic=True,
            )
        ]

    def remarks(self) -> list[str]:
        """Return the strength in words, and the assumptions behind the numbers."""
        found = [self.words()]
        for rate in self.too_small:
            found.append(
                f"A rate of {_percent(rate)} false alarms needs {rows_needed(rate):,} rows of "
                f"holdout, and there are {self.roc.holdout:,}, so it is not estimated."
            )
        if self.claim is not None:
            found.append(_sentence(str(self.verdict(self.claim))))
            if self.evidence().relation != self.claim.relation:
                found.append(
                    "Members and others differ by one unit in place of another. For this a promise "
                    "for add/remove holds with twice its epsilon, as in the figure."
                )
        if self.chosen == "otherwise":
            found.append(
                "The members were not drawn at random. They may differ from the holdout by time or "
                "place, and not only by having been learned, so nothing follows about epsilon."
            )
        else:
            found.append(
                f"The bound on epsilon assumes that {ASSUMED[self.chosen]}. The rows cannot show "
                "whether this is so."
            )
        found.append(
            "An attack that finds little proves nothing. Another one, or one with more shadow "
            "models, may find more."
        )
        return found

    @property
    def _delta(self) -> float:
        return self.delta if self.claim is None else self.claim.amounts[1]

    def promise(self) -> str:
        """Return the kind of promise that is bounded, for example "at delta 0 (...)"."""
        return f"at delta {self._delta:g} ({replace(self.units, relation=self.relation)})"

    def _bounds(self) -> list[tuple[str, str, str]]:
        least, by = self.evidence().bound(self._delta, self.confidence, self.relation)
        rows = [
            (
                f"{by.right:,} of {by.guesses:,} guesses right",
                below(least),
                _SHORT[self.chosen],
            )
        ]
        if min(self.roc.members, self.roc.holdout) >= 4:
            trials = Trials(*self.roc.scores).bound(self._delta, self.confidence)
            estimate = (
                "threshold, with rows taken for runs",
                below(trials.epsilon),
                "an estimate only",
            )
            rows.append(estimate)
        return rows

    def _allowed(self, claim: Claim) -> Columns:
        """Return the largest detection at each rate of false alarms if a claim holds."""
        epsilon, delta = converted(*claim.amounts, claim.relation, self.evidence().relation)
        rates = np.geomspace(1 / max(self.roc.holdout, self.roc.members), 1, _POINTS).tolist()
        most = [best_detection(epsilon, min(delta, 1 - 1e-12), rate) for rate in rates]
        return {"x": rates, "y": most}


def _ends(found: Estimate) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _percent(rate: float) -> str:
    return f"{100 * rate:g} %"


def _thousandth(share: float) -> str:
    return f"{1000 * share:,.0f}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
