"""The terms of answers with noise as options of a command: `--epsilon` and its companions."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from securecomp.privacy.policy import Privacy

F = TypeVar("F", bound=Callable[..., Any])


def unit(words: str, *others: str) -> Callable[[F], F]:
    """Return the option `--unit`.

    Args:
        words: Its help.
        *others: Units beside records and patients.
    """
    return click.option(
        "--unit",
        type=click.Choice(["record", "patient", *others]),
        default="record",
        show_default=True,
        help=words,
    )


relation = click.option(
    "--relation",
    type=click.Choice(["add/remove", "replace-one"]),
    default="add/remove",
    show_default=True,
    help="Difference of neighbouring data sets.",
)
_OPTIONS = (
    click.option("--epsilon", metavar="E", help="Answer with noise: differential privacy."),
    click.option("--delta", default="0", metavar="D", help="Delta beside --epsilon, such as 1e-6."),
    unit("Unit that noise protects; a patient needs --identifier."),
    click.option("--identifier", metavar="COL", help="Column that says whose record it is."),
    click.option(
        "--records",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Most records of a patient.",
    ),
    click.option(
        "--clip", multiple=True, metavar="COL=A:B", help="Bounds to which values are clipped."
    ),
    click.option(
        "--noise",
        type=click.Choice(["skellam", "discrete-gaussian", "laplace"]),
        default="skellam",
        show_default=True,
        help="Noise, of which each site adds its part within the sum.",
    ),
    relation,
    click.option(
        "--holding",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Most sites that hold records of one patient.",
    ),
    click.option(
        "--colluding",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Sites that may collude.",
    ),
    click.option(
        "--dropouts",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Sites that may drop out.",
    ),
    click.option(
        "--ledger", metavar="FILE", help="Budget that pays for it; see securecomp budget."
    ),
)
_OTHERS = (
    *("delta", "unit", "identifier", "records", "clip", "noise", "relation", "holding"),
    *("colluding", "dropouts", "ledger"),
)


def options(command: F) -> F:
    """Give a command the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def terms(given: Mapping[str, Any]) -> "Privacy | None":
    """Return the terms that were given; None without --epsilon.

    Raises:
        click.UsageError: One of the options without --epsilon.
        ParameterError: Impossible terms.
    """
    if given["epsilon"] is None:
        context = click.get_current_context()
        for name in _OTHERS:
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--{name} needs --epsilon")
        return None
    from securecomp.privacy.policy import from_options

    chosen = {name: given[name] for name in _OTHERS if name not in ("delta", "holding")}
    return from_options(given["epsilon"], given["delta"], sites=given["holding"], **chosen)
