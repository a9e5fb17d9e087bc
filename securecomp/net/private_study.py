"""Noise in a study between organisations: terms that all sign, and each site's own budget.

Every site adds its own part of the noise to its own integers, within the sum: no total with less
noise exists anywhere. The part is drawn from the site's seed for this sum, so that a program that
is started again draws the same; a second draw, whose average with the first had less noise, is
never sent. A site's ledger reserves before anything that depends on its rows is sent, under the id
of the sum that is paid, so that a restart finds what it paid, and another sum is paid anew.

The study's own questions are answered by one sum; epsilon and delta are of all of them together.
Each question of an analyst, and each training, costs as much again.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from securecomp.errors import ParameterError
from securecomp.net.questions.study_questions import QuestionRules, StudyQuestion
from securecomp.net.site_state import SiteState
from securecomp.privacy.policy import Privacy
from securecomp.privacy.replayed_ledger import ReplayedLedger
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum
from securecomp.statistics.summaries import Statistic

_STATISTICS: Mapping[str, type[Statistic]] = {
    "count": Count, "crosstab": CrossTable, "histogram": Histogram, "mean": Mean, "sum": Sum,
}  # fmt: skip
_TERMS = {
    "epsilon", "delta", "unit", "identifier", "records", "sites", "relation", "noise", "colluding",
    "dropouts", "clamp", "bounds",
}  # fmt: skip


def terms(given: Mapping[str, Any]) -> Privacy | None:
    """Read the table [privacy] of a study file; None if it has no such table.

    Raises:
        ParameterError: It names what is wrong.
    """
    if not given:
        return None
    if unknown := sorted(set(given) - _TERMS):
        raise ParameterError(
            f"[privacy] has no {unknown[0]!r}; one of {', '.join(sorted(_TERMS))}"
            + "; each site names its own ledger when it joins" * (unknown[0] == "ledger")
        )
    if "epsilon" not in given:
        raise ParameterError("[privacy] epsilon: say what is promised")
    try:
        return Privacy(**given)
    except ParameterError as error:
        raise ParameterError(f"[privacy] {error}") from None


def check_questions(
    privacy: Privacy,
    questions: Sequence[StudyQuestion],
    rules: QuestionRules,
    minimum_sites: int,
) -> None:
    """Refuse what is not answered with noise.

    Raises:
        ParameterError: It names it.
    """
    if minimum_sites > 1:
        raise ParameterError(
            "[study] minimum_sites opens how many sites contribute, without noise; leave it out "
            "with [privacy]"
        )
    known = ", ".join(_STATISTICS)
    for number, question in enumerate(questions, start=1):
        if question.ask not in _STATISTICS:
            raise ParameterError(f"[[analyses]] {number}: with [privacy] ask is one of {known}")
        statistic(question)
    others = sorted(set(rules.allowed) - set(_STATISTICS))
    if others:
        raise ParameterError(f"[questions] {others[0]}: with [privacy] one of {known}")
    if privacy.unit == "site" and (questions or rules.allowed):
        raise ParameterError(
            '[privacy] unit = "site" is for training by Study.join; it has no [[analyses]] and no '
            "[questions]"
        )


def statistic(question: StudyQuestion) -> Statistic:
    """Return a question as `Study.run` takes it, together with others."""
    given = dict(question.arguments)
    if "edges" in given:
        given["edges"] = tuple(map(float, given["edges"]))
    return _STATISTICS[question.ask](**given)


def open_ledger(path: Path, privacy: Privacy, mark: Callable[[], str]) -> ReplayedLedger:
    """Return a site's ledger, after a check that it is one.

    Args:
        path: The file.
        privacy: The study's terms.
        mark: As of `ReplayedLedger`.

    Raises:
        ParameterError: There is no such file: a budget is set once, by a person.
        LocalProtocolError: It is no ledger, or was edited.
    """
    if not path.exists():
        near = privacy.neighbours
        records = f" --records {near.records}" if near.records > 1 else ""
        raise ParameterError(
            f"{path}: there is no ledger, and the study answers with noise that a budget pays for; "
            f"name your data set's (--ledger FILE), or make it once: securecomp budget create "
            f"{path.name} --dataset NAME --epsilon E --delta D --unit {near.unit} "
            f"--relation {near.relation}{records}"
        )
    ledger = ReplayedLedger(path, mark)
    ledger.state()
    return ledger


def check_budget(privacy: Privacy | None, ledger: ReplayedLedger | None, state: SiteState) -> None:
    """Refuse a run, before anything is sent, whose first question the budget does not cover.

    Raises:
        BudgetError: Nothing was spent.
    """
    checked = "budget checked"
    if privacy is None or ledger is None or state.known(checked) is not None:
        return  # after a restart the run's reservations are in the ledger already
    ledger.check(privacy.cost, privacy.neighbours)
    state.fact(checked, b"")


def summary(privacy: Privacy | None, questions: int) -> list[str]:
    """Return what a person reads of the terms before signing."""
    if privacy is None:
        return []
    return [
        "",
        f"noise: {privacy.noise}, {privacy.cost} for {privacy.neighbours}",
        f"  of all {questions} questions together; each question of an analyst, and each training, "
        "costs as much again",
        f"  each site adds its part; up to {privacy.colluding} may collude, and "
        f"{privacy.dropouts} drop out; each pays from its own ledger",
    ]
