"""The analyses as options of `securecomp stats`.

An analysis is one entry of `QUESTIONS`. Options that refine several analyses are in `CHOICES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from securecomp.cli import option_values as values

if TYPE_CHECKING:
    from securecomp.statistics import Study
    from securecomp.statistics.analysis import Analysis

F = TypeVar("F", bound=Callable[..., Any])
Choices = Mapping[str, Any]
Words = list[str]


@dataclass(frozen=True, slots=True)
class Question:
    """An option that asks for an analysis, and may be given several times.

    Attributes:
        name: The option, without dashes.
        takes: Its arguments, one word each.
        help: One line.
        ask: Asks a study, given the arguments and the choices.
        groups: Whether --by groups it. Otherwise the two cannot be given together.
        uses: Names of the choices that it uses.
    """

    name: str
    takes: str
    help: str
    ask: Callable[["Study", Words, Choices], "Analysis"]
    groups: bool = False
    uses: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name of click's parameter."""
        return "ask_" + self.name.replace("-", "_")


def _chosen(choices: Choices, *names: str) -> dict[str, Any]:
    """Return the choices that were made, as keyword arguments of a study's method."""
    return {name: choices[name] for name in names if choices[name] is not None}


def _ranked(choices: Choices) -> dict[str, Any]:
    return _chosen(choices, "by", "method", "engine")


def _risk(choices: Choices) -> dict[str, Any]:
    return _chosen(choices, "exposed", "event")


def _distinct(study: "Study", words: Words, choices: Choices) -> "Analysis":
    if choices["expected"] is None:
        raise click.UsageError("--distinct needs --expected N, the agreed largest number")
    return study.distinct(words[0].split(","), expected=choices["expected"])


def _covariates(text: str) -> str | list[str]:
    return text if text.strip().startswith("~") else text.split(",")


QUESTIONS = (
    Question(
        "median",
        "COL",
        "Exact median.",
        lambda s, w, c: s.median(w[0], **_ranked(c)),
        groups=True,
        uses=("method", "engine"),
    ),
    Question(
        "quantiles",
        "COL",
        "Exact quantiles; see --q.",
        lambda s, w, c: s.quantiles(w[0], c["q"], **_ranked(c)),
        groups=True,
        uses=("q", "method", "engine"),
    ),
    Question(
        "extremes",
        "COL",
        "Smallest and largest value.",
        lambda s, w, c: s.extremes(w[0], **_ranked(c)),
        groups=True,
        uses=("method", "engine"),
    ),
    Question(
        "winner",
        "COL",
        "Name of the site with the largest mean, and nothing else.",
        lambda s, w, c: s.winner(w[0], engine=c["engine"]),
        uses=("engine",),
    ),
    Question(
        "correlation",
        "A,B,C",
        "Pearson's correlations.",
        lambda s, w, c: s.correlation(w[0].split(",")),
    ),
    Question("covariance", "A,B,C", "Covariances.", lambda s, w, c: s.covariance(w[0].split(","))),
    Question(
        "t-test",
        "COL BY",
        "Means of two groups, by Welch's test.",
        lambda s, w, c: s.t_test(w[0], by=w[1]),
    ),
    Question("anova", "COL BY", "Means of groups.", lambda s, w, c: s.anova(w[0], w[1])),
    Question("chi-square", "ROW COL", "Independence.", lambda s, w, c: s.chi_square(w[0], w[1])),
    Question("fisher", "ROW COL", "Fisher's exact test.", lambda s, w, c: s.fisher(w[0], w[1])),
    Question(
        "odds-ratio",
        "EXPOSURE OUTCOME",
        "With its interval; see --exposed, --event.",
        lambda s, w, c: s.odds_ratio(w[0], w[1], **_risk(c)),
        uses=("exposed", "event"),
    ),
    Question(
        "relative-risk",
        "EXPOSURE OUTCOME",
        "With its interval.",
        lambda s, w, c: s.relative_risk(w[0], w[1], **_risk(c)),
        uses=("exposed", "event"),
    ),
    Question(
        "risk-difference",
        "EXPOSURE OUTCOME",
        "With its interval.",
        lambda s, w, c: s.risk_difference(w[0], w[1], **_risk(c)),
        uses=("exposed", "event"),
    ),
    Question(
        "mantel-haenszel",
        "EXPOSURE OUTCOME",
        "Odds ratio over strata, by default the sites; see --strata.",
        lambda s, w, c: s.mantel_haenszel(w[0], w[1], **_chosen(c, "strata"), **_risk(c)),
        uses=("exposed", "event", "strata"),
    ),
    Question(
        "roc-auc",
        "SCORE OUTCOME",
        "Area under the ROC curve, from binned scores.",
        lambda s, w, c: s.roc_auc(w[0], w[1], **_chosen(c, "event", "bins")),
        uses=("event", "bins"),
    ),
    Question(
        "glm",
        "FORMULA",
        "Regression, such as 'died ~ los + C(type)'; see --family.",
        lambda s, w, c: s.glm(w[0], c["family"], **_chosen(c, "weights", "offset")),
        uses=("family", "weights", "offset"),
    ),
    Question(
        "kaplan-meier",
        "TIME EVENT",
        "Survival curves; see --times.",
        lambda s, w, c: s.kaplan_meier(w[0], w[1], **_chosen(c, "by", "times")),
        groups=True,
        uses=("times",),
    ),
    Question(
        "logrank",
        "TIME EVENT BY",
        "Test for equal survival of groups; see --times, --strata.",
        lambda s, w, c: s.logrank(w[0], w[1], w[2], **_chosen(c, "times", "strata")),
        uses=("times", "strata"),
    ),
    Question(
        "cox",
        "TIME EVENT A,B,C|~FORMULA",
        "Cox's regression on columns, or by a formula such as '~ age + C(ward)'; see --times, "
        "--strata, --ties.",
        lambda s, w, c: s.cox(
            w[0], w[1], _covariates(w[2]), **_chosen(c, "times", "strata", "ties")
        ),
        uses=("times", "strata", "ties"),
    ),
    Question(
        "distinct",
        "A,B,C",
        "Number of patients, each counted once; the columns identify them.",
        _distinct,
        uses=("expected",),
    ),
)


def _numbers(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    return None if text is None else values.edges(text)


def _times(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    return None if text is None else values.times(text)


def _level(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> str | int | None:
    return None if text is None else values.levels(text)[0]


CHOICES = (
    click.option(
        "--q",
        metavar="A,B,C",
        default="0.25,0.5,0.75",
        show_default=True,
        callback=_numbers,
        help="Levels of --quantiles.",
    ),
    click.option(
        "--method",
        type=click.Choice(["shares", "counts"]),
        help="Medians: open only the result, or also the counts that lead to it.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["replicated", "dealer", "mac"]),
        default="replicated",
        show_default=True,
        help="Engine that computes on shares.",
    ),
    click.option(
        "--family",
        type=click.Choice(["logistic", "poisson", "linear"]),
        default="logistic",
        show_default=True,
        help="Family of --glm.",
    ),
    click.option("--weights", metavar="COL", help="Column of weights of --glm."),
    click.option("--offset", metavar="COL", help="Column that --glm adds to its predictor."),
    click.option(
        "--exposed", metavar="LEVEL", callback=_level, help="Level that counts as exposed."
    ),
    click.option(
        "--event", metavar="LEVEL", callback=_level, help="Level that counts as the event."
    ),
    click.option(
        "--times",
        metavar="A,B,C|A:B:STEP",
        callback=_times,
        help="Agreed times of survival analyses: a list, or A to B in steps.",
    ),
    click.option("--strata", metavar="COL", help="Column of strata, for analyses that have them."),
    click.option(
        "--ties",
        type=click.Choice(["efron", "breslow"]),
        help="How --cox takes events at the same time; by default efron. breslow opens less.",
    ),
    click.option("--bins", type=int, metavar="N", help="Bins of the scores of --roc-auc."),
    click.option(
        "--expected", type=int, metavar="N", help="Largest number of patients for --distinct."
    ),
)


def options(command: F) -> F:
    """Give a command the options of all analyses."""
    for choice in reversed(CHOICES):
        command = choice(command)
    for question in reversed(QUESTIONS):
        command = click.option(
            f"--{question.name}",
            question.key,
            multiple=True,
            nargs=len(question.takes.split()),
            metavar=question.takes,
            help=question.help,
        )(command)
    return command


def asked(by: str | None, given: Choices) -> bool:
    """Return whether an analysis is asked for.

    Raises:
        click.UsageError: --by with an analysis that it does not group, or a choice that no
            analysis uses.
    """
    found = [question for question in QUESTIONS if given[question.key]]
    for question in found:
        if by is not None and not question.groups:
            raise click.UsageError(f"--by does not group --{question.name}; ask for it apart")
    used = {name for question in found for name in question.uses}
    context = click.get_current_context()
    for name in {name for question in QUESTIONS for name in question.uses} - used:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            users = [f"--{q.name}" for q in QUESTIONS if name in q.uses]
            raise click.UsageError(f"--{name} is for {', '.join(users)}, which is not asked for")
    return bool(found)


def ask(study: "Study", by: str | None, given: Choices) -> list["Analysis"]:
    """Ask a study for all analyses that were given, in the order of `QUESTIONS`."""
    choices = {**given, "by": by}
    found = []
    for question in QUESTIONS:
        for arguments in given[question.key]:
            words = [arguments] if isinstance(arguments, str) else list(arguments)
            found.append(question.ask(study, words, choices))
    return found
