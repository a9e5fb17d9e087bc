"""The summary statistics as options of `securecomp stats`.

A statistic of one column is one entry of `OF_A_COLUMN`. Nothing heavy is imported for `--help`, so
the entry names the statistic and its class is found when it is asked for.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from securecomp.cli import option_values as values

if TYPE_CHECKING:
    from securecomp.statistics import Statistic

F = TypeVar("F", bound=Callable[..., Any])

OF_A_COLUMN = {
    "sum": "Sum of a column.",
    "mean": "Mean of a column.",
    "variance": "Sample variance and sd.",
    "skewness": "Sample skewness.",
}
"""Names of statistics that take one column, and the help of their options."""

_OTHERS = (
    click.option(
        "--histogram",
        "histograms",
        multiple=True,
        metavar="COL",
        help="Counts in bins; see --edges.",
    ),
    click.option("--edges", multiple=True, metavar="A,B,C", help="Bin edges of each --histogram."),
    click.option(
        "--crosstab", "crosstabs", multiple=True, nargs=2, metavar="ROW COL", help="Cross table."
    ),
)


def options(command: F) -> F:
    """Give a command the options of all summary statistics."""
    for other in reversed(_OTHERS):
        command = other(command)
    for name, words in reversed(OF_A_COLUMN.items()):
        command = click.option(f"--{name}", multiple=True, metavar="COL", help=words)(command)
    return click.option("--count", is_flag=True, help="Number of rows.")(command)


def edges(given: Mapping[str, Any]) -> list[tuple[float, ...]]:
    """Return the edges of each histogram.

    Raises:
        click.UsageError: Edges and histograms do not go together.
    """
    texts, histograms = given["edges"], given["histograms"]
    if len(texts) not in (0, 1, len(histograms)) or (histograms and not texts):
        raise click.UsageError("give --edges once, or once for each --histogram")
    if texts and not histograms:
        raise click.UsageError("--edges needs a --histogram")
    bins = [values.edges(text) for text in texts]
    return bins * len(histograms) if len(bins) == 1 else bins


def asked(by: str | None, given: Mapping[str, Any]) -> list["Statistic"]:
    """Return the statistics that are asked for, in the order of the options.

    Raises:
        click.UsageError: Edges and histograms do not go together.
    """
    bins = edges(given)
    from securecomp.statistics import Count, CrossTable, Histogram
    from securecomp.statistics.summaries import STATISTICS

    kinds = {kind.name: kind for kind in STATISTICS}
    wanted: list[Statistic] = [Count(None, by)] if given["count"] else []
    wanted += [kinds[name](column, by) for name in OF_A_COLUMN for column in given[name]]
    wanted += [
        Histogram(column, by, b) for column, b in zip(given["histograms"], bins, strict=True)
    ]
    wanted += [CrossTable(None, by, row, column) for row, column in given["crosstabs"]]
    return wanted
