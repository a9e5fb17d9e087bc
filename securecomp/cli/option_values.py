"""Readers of option values (columns, levels, numbers), whose errors name the option.

Also the options of all commands that read tables and show results.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

if TYPE_CHECKING:
    from securecomp.statistics import Column

F = TypeVar("F", bound=Callable[..., Any])


def reading_and_showing(page: str) -> Callable[[F], F]:
    """Return the options of reading files and showing results.

    Args:
        page: The help of `--html`.
    """
    options = (
        click.option("--delimiter", metavar="CHAR", help="Delimiter of a CSV file."),
        click.option("--decimal-comma", is_flag=True, help="CSV files with a decimal comma, 3,5."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option(
            "--html",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False),
            help=page,
        ),
    )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    """Return the values of COL=VALUE arguments, by column."""
    found: dict[str, str] = {}
    for value in values:
        column, separator, rest = value.partition("=")
        if not separator or not column or not rest:
            raise click.BadParameter(f"expected COL=VALUE, got {value!r}", param_hint=option)
        if column in found:
            raise click.BadParameter(f"{column!r} is given twice", param_hint=option)
        found[column] = rest
    return found


def levels(text: str) -> list[str | int]:
    """Return categories, as integers if all of them are."""
    cells: list[str] = [cell.strip() for cell in text.split(",")]
    try:
        return [int(cell) for cell in cells]
    except ValueError:
        return list(cells)


def names(given: tuple[str, ...], option: str) -> list[str]:
    """Return names of columns, separated by commas or given in several options."""
    found = [name.strip() for text in given for name in text.split(",")]
    if not all(found):
        raise click.BadParameter("expected names with commas between them", param_hint=option)
    return found


def key_files(name: Path, secret: str, public: str) -> tuple[Path, Path]:
    """Return the files NAME.secret and NAME.public.

    Raises:
        ParameterError: The name has no last part.
    """
    from securecomp.errors import ParameterError

    if not name.name:
        raise ParameterError(f"{name}: is no name for a key")
    return name.with_name(f"{name.name}.{secret}"), name.with_name(f"{name.name}.{public}")


def servers(text: str) -> int | Literal["all"]:
    """Return a number of servers, or "all"."""
    if text == "all":
        return "all"
    if not text.isdecimal():
        raise click.BadParameter(f'a number or "all", not {text!r}', param_hint="--servers")
    if len(text) > 6:
        raise click.BadParameter("at most 1000 servers", param_hint="--servers")
    return int(text)


def edges(text: str, option: str = "--edges") -> tuple[float, ...]:
    """Return the numbers of a comma-separated list."""
    try:
        return tuple(float(edge) for edge in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"expected numbers with commas between them, got {text!r}", param_hint=option
        ) from None


def times(text: str) -> tuple[float, ...]:
    """Return increasing times: a comma-separated list, or FROM:TO:STEP with TO included."""
    from decimal import Decimal, InvalidOperation

    if ":" not in text:
        return edges(text, "--times")
    try:
        # In decimals, so that three tenths are 0.3 and on the grid.
        start, stop, step = (Decimal(part.strip()) for part in text.split(":"))
        count = int((stop - start) / step) if step > 0 else -1
    except (InvalidOperation, ValueError, OverflowError):
        count = -1
    if not 0 <= count < 10**5:
        raise click.BadParameter(
            f"expected FROM:TO:STEP, such as 0:365:30, got {text!r}", param_hint="--times"
        )
    return tuple(float(start + i * step) for i in range(count + 1))


def columns(
    bounds: dict[str, str], decimals: dict[str, str], categories: dict[str, str]
) -> dict[str, "Column"]:
    """Return the declared facts about columns."""
    from decimal import Decimal, InvalidOperation

    from securecomp.errors import ParameterError
    from securecomp.statistics import Column

    declared = {}
    for name in {**bounds, **decimals, **categories}:
        try:
            bound = Decimal(bounds[name]) if name in bounds else None
        except InvalidOperation:
            raise click.BadParameter(f"{name}: expected a number", param_hint="--bound") from None
        try:
            places = int(decimals[name]) if name in decimals else None
        except ValueError:
            raise click.BadParameter(
                f"{name}: expected an integer", param_hint="--decimals"
            ) from None
        found = levels(categories[name]) if name in categories else None
        try:
            declared[name] = Column(bound=bound, decimals=places, levels=found)
        except ParameterError as error:
            raise ParameterError(f"column {name!r}: {error}") from None
    return declared
