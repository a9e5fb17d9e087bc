"""One attack on several models, to compare its strength as noise in training grows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from securecomp.audit.membership.claims import below
from securecomp.audit.membership.membership_report import MembershipReport
from securecomp.errors import ParameterError
from securecomp.show.exhibit import Exhibit, Plot, TextTable

_CHANCE = 0.5


@dataclass(frozen=True, slots=True, repr=False)
class Strength(Exhibit):
    """Audits of several models side by side.

    Attributes:
        audits: Name of a model, such as "epsilon 2", to its audit, in the order of the table.
    """

    audits: Mapping[str, MembershipReport]

    def __post_init__(self) -> None:
        if not self.audits:
            raise ParameterError("there are no audits to compare; give at least one")

    @property
    def title(self) -> str:
        """The title."""
        return "Strength of the attack on each model"

    def grids(self) -> list[TextTable]:
        """Return a table with one row for each model."""
        first = next(iter(self.audits.values()))
        rates = sorted({d.false_alarms for a in self.audits.values() for d in a.detections})
        found = [f"found at {100 * rate:g} %" for rate in rates]
        level = f"{100 * first.confidence:g} %"
        header = ("", "accuracy", "gap", "AUC", f"{level} from", "to", *found, "epsilon at least")
        rows = []
        for name, audit in self.audits.items():
            area, fit = audit.area, audit.fit
            at = {one.false_alarms: f"{one.found:.3f}" for one in audit.detections}
            rows.append(
                (
                    name,
                    *(("", "") if fit is None else (f"{fit.accuracy[1]:.3f}", f"{fit.gap:+.3f}")),
                    *(f"{value:.3f}" for value in (area.value, area.low, area.high)),
                    *(at.get(rate, "") for rate in rates),
                    "" if audit.chosen == "otherwise" else below(audit.bound()),
                )
            )
        return [TextTable("", header, tuple(rows))]

    def facts(self) -> dict[str, Any]:
        """Return the facts of each audit by the model's name."""
        return {"models": {name: audit.facts() for name, audit in self.audits.items()}}

    def plots(self) -> list[Plot]:
        """Return the areas with their intervals, and the ROC curves on logarithmic axes."""
        areas: dict[str, dict[str, Sequence[float]]] = {}
        for name, audit in self.audits.items():
            area = audit.area
            areas[name] = {"estimate": [area.value], "low": [area.low], "high": [area.high]}
        return [
            Plot("forest", "Area under the ROC curve; dotted: chance", "AUC", "", areas, _CHANCE),
            Plot(
                "line",
                "Members found against false alarms; dotted: chance",
                "share of others that are accused (false alarms)",
                "share of members that are found",
                {name: audit.roc.points() for name, audit in self.audits.items()},
                reference=1.0,
                logarithmic=True,
            ),
        ]

    def remarks(self) -> list[str]:
        """Return the strength on each model in words, and the promises that are bounded."""
        found = [f"{name}: {audit.words()}" for name, audit in self.audits.items()]
        about: dict[str, list[str]] = {}
        for name, audit in self.audits.items():
            if audit.chosen != "otherwise":
                about.setdefault(audit.promise(), []).append(name)
        for promise, names in about.items():
            which = "" if len(about) == 1 else f" of {', '.join(names)}"
            found.append(f"The bounds on epsilon{which} hold {promise}.")
        return found
