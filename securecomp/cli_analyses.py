"""The analyses as options of `securecomp stats`: what each takes, and whom it asks.

An analysis is one entry of `QUESTIONS`; options that refine several of them are in `CHOICES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from securecomp import cli_values as values

if TYPE_CHECKING:
    from securecomp.statistics import Study
    from securecomp.statistics.analysis import Analysis

F = TypeVar("F", bound=Callable[..., Any])
Choices = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """An option that asks for an analysis, and may be given several times.

    Attributes:
        name: The option, without dashes.
        takes: What its arguments are, one word each.
        help: One line.
        ask: Takes the study, the arguments, the grouping column and the choices.
    """

    name: str
    takes: str
    help: str
    ask: Callable[["Study", list[str], str | None, Choices], "Analysis"]

    @property
    def key(self) -> str:
        """The name of click's parameter."""
        return self.name.replace("-", "_")


def _how(choices: Choices) -> dict[str, Any]:
    """Return who computes, where rows are compared on shares."""
    return {"method": choices["method"], "engine": choices["engine"]}


QUESTIONS = (
    Question(
        "median",
        "COL",
        "Exact median.",
        lambda study, a, by, c: study.median(a[0], by=by, **_how(c)),
    ),
    Question(
        "quantiles",
        "COL",
        "Exact quantiles; see --q.",
        lambda study, a, by, c: study.quantiles(a[0], c["q"], by=by, **_how(c)),
    ),
    Question(
        "extremes",
        "COL",
        "Smallest and largest value.",
        lambda study, a, by, c: study.extremes(a[0], by=by, **_how(c)),
    ),
    Question(
        "winner",
        "COL",
        "Site with the largest mean; its name only.",
        lambda study, a, _, c: study.winner(a[0], engine=c["engine"]),
    ),
)


def _numbers(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    return None if text is None else values.edges(text)


CHOICES = (
    click.option(
        "--q",
        metavar="A,B,C",
        default="0.25,0.5,0.75",
        show_default=True,
        callback=_numbers,
        help="Which --quantiles.",
    ),
    click.option(
        "--method",
        type=click.Choice(["shares", "counts"]),
        help="Medians: open the result only, or the counts on the way too.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["replicated", "dealer", "mac"]),
        default="replicated",
        show_default=True,
        help="Who computes on shares.",
    ),
)


def options(command: F) -> F:
    """Give a command the options of all analyses."""
    for choice in reversed(CHOICES):
        command = choice(command)
    for question in reversed(QUESTIONS):
        takes = question.takes.split()
        command = click.option(
            f"--{question.name}",
            question.key,
            multiple=True,
            nargs=len(takes),
            metavar=question.takes,
            help=question.help,
        )(command)
    return command


def asked(given: Choices) -> bool:
    """Return whether an analysis is asked for."""
    return any(given[question.key] for question in QUESTIONS)


def ask(study: "Study", by: str | None, given: Choices) -> list["Analysis"]:
    """Ask a study for all that was given, in the order of `QUESTIONS`."""
    found = []
    for question in QUESTIONS:
        for arguments in given[question.key]:
            words = [arguments] if isinstance(arguments, str) else list(arguments)
            found.append(question.ask(study, words, by, given))
    return found
