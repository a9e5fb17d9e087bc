"""Questions of a study: those that its file lists, and those that analysts may ask later.

A question is a method of `Study` and its arguments, never code.
"""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from securecomp.core import checks
from securecomp.errors import ParameterError
from securecomp.statistics import Study

ONE_SUM = ("count", "crosstab", "histogram", "mean", "skewness", "sum", "variance")
"""Analyses that one secure sum answers. The steps of other analyses depend on totals."""

FOR_ANALYSTS = ("distinct",)
"""Analyses whose totals no site may hear, whatever was agreed about receivers."""

ANALYSES = tuple(
    sorted(
        (
            *ONE_SUM, *FOR_ANALYSTS, "anova", "chi_square", "correlation", "covariance", "cox",
            "fisher", "glm", "kaplan_meier", "logrank", "mantel_haenszel", "median", "odds_ratio",
            "quantiles", "relative_risk", "risk_difference", "roc_auc", "standardisation", "t_test",
        )
    )
)  # fmt: skip
"""Methods of `Study` that can be asked for over a network: they need sums and nothing else."""

MOST_TEXT = 10_000
"""Characters of a question."""


@dataclass(frozen=True, slots=True)
class StudyQuestion:
    """One question: a method of `Study`, and its arguments."""

    ask: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.ask}({given})"

    def to_json(self) -> str:
        """Return the question as JSON; equal questions give equal text."""
        return json.dumps([self.ask, dict(self.arguments)], sort_keys=True, allow_nan=False)

    def put_to(self, study: Study) -> Any:
        """Ask a study, and return its result."""
        return getattr(study, self.ask)(**self.arguments)


def made(given: Any, where: str) -> StudyQuestion:
    """Return a question from a table with `ask` and arguments.

    Raises:
        ParameterError: There is no such analysis, or it does not take such arguments.
    """
    if not isinstance(given, Mapping) or given.get("ask") not in ANALYSES:
        raise ParameterError(f"{where}: ask is one of {', '.join(ANALYSES)}")
    ask = given["ask"]
    arguments = {str(name): value for name, value in given.items() if name != "ask"}
    if ask in ("median", "quantiles") and arguments.setdefault("method", "counts") != "counts":
        raise ParameterError(f'{where}: over a network {ask} has method = "counts"')
    try:
        inspect.signature(getattr(Study, ask)).bind(None, **arguments)
    except TypeError as error:
        raise ParameterError(f"{where}: {ask}: {error}") from None
    question = StudyQuestion(ask, arguments)
    try:
        question.to_json()
    except (TypeError, ValueError):
        raise ParameterError(
            f"{where}: {ask}: arguments are text, finite numbers, true, false, and lists of them"
        ) from None
    return question


def from_json(text: str, where: str) -> StudyQuestion:
    """Read what `to_json` wrote.

    Raises:
        ParameterError: It is something else.
    """
    try:
        if len(text) > MOST_TEXT:
            raise ValueError
        ask, arguments = msgspec.json.decode(text, type=tuple[str, dict[str, Any]])
        question = made({**arguments, "ask": ask}, where)
        if "ask" in arguments or question.to_json() != text:
            raise ValueError
    except (msgspec.DecodeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"{where}: not a question as this version writes them") from None
    return question


@dataclass(frozen=True, slots=True)
class QuestionRules:
    """Rules on the questions of analysts, as all sites signed them.

    Attributes:
        answer: Analyses that each site's program answers by itself.
        ask: Analyses for which a person at each site is asked first.
        most: How many questions are answered in a run.
    """

    answer: Sequence[str] = ()
    ask: Sequence[str] = ()
    most: int = 100

    @property
    def allowed(self) -> tuple[str, ...]:
        """Analyses that may be asked."""
        return (*self.answer, *self.ask)

    def refusal(self, question: StudyQuestion, answered: int) -> str | None:
        """Return the rule by which a question is refused, or None.

        Args:
            question: What is asked.
            answered: How many questions of this run were answered.
        """
        if question.ask not in self.allowed:
            return f"the study does not allow {question.ask} ([questions] answer, ask)"
        if answered >= self.most:
            return f"{answered} questions were answered, and the study allows no more"
        return None


def rules(given: Mapping[str, Any]) -> QuestionRules:
    """Read the table [questions] of a study file.

    Raises:
        ParameterError: It names what is wrong.
    """
    if unknown := sorted(set(given) - {"answer", "ask", "most"}):
        raise ParameterError(f"[questions] has no {unknown[0]!r}; one of answer, ask, most")
    lists = {}
    for name in ("answer", "ask"):
        found = given.get(name, [])
        if not isinstance(found, list) or any(each not in ANALYSES for each in found):
            raise ParameterError(f"[questions] {name} is a list of {', '.join(ANALYSES)}")
        lists[name] = tuple(found)
    both = set(lists["answer"]) & set(lists["ask"])
    if both:
        raise ParameterError(f"[questions] {min(both)} is in both lists; keep it in one")
    return QuestionRules(
        **lists, most=checks.integer(given.get("most", 100), "[questions] most", 1)
    )
