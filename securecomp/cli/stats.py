"""`securecomp stats`: statistics and analyses over files, one a site."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from securecomp.cli import analysis_options, privacy_options
from securecomp.cli import option_values as values
from securecomp.cli.written_pages import check_page, write_page
from securecomp.show.console import (
    console,
    plain_errors,
    plain_warnings,
    say,
    show,
    status,
    table,
)

if TYPE_CHECKING:
    from securecomp.secagg import Security
    from securecomp.statistics import Result, Run, Statistic
    from securecomp.statistics.analysis import Analysis

F = TypeVar("F", bound=Callable[..., Any])
OF_A_COLUMN = {
    "sum": "Sum of a column.",
    "mean": "Mean of a column.",
    "variance": "Sample variance and sd.",
    "skewness": "Sample skewness.",
}
"""Statistics that take one column, and the help of their options."""


def _of_a_column(command: F) -> F:
    for name, words in reversed(OF_A_COLUMN.items()):
        command = click.option(f"--{name}", multiple=True, metavar="COL", help=words)(command)
    return command


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--count", is_flag=True, help="Number of rows.")
@_of_a_column
@click.option(
    "--histogram", "histograms", multiple=True, metavar="COL", help="Counts in bins; see --edges."
)
@click.option("--edges", multiple=True, metavar="A,B,C", help="Bin edges of each --histogram.")
@click.option(
    "--crosstab", "crosstabs", multiple=True, nargs=2, metavar="ROW COL", help="Cross table."
)
@analysis_options.options
@click.option("--by", metavar="COL", help="Group every statistic by a column.")
@click.option(
    "--protocol", default="sharing", show_default=True, help="sharing, masking or paillier."
)
@click.option(
    "--security",
    type=click.Choice(["semi-honest", "active"]),
    help="Masking: against which server.  [default: semi-honest]",
)
@click.option("--servers", metavar="N|all", help="Sharing: who computes.  [default: 3]")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="What an empty or NaN cell does: stop, or drop its row.",
)
@click.option("--bound", multiple=True, metavar="COL=X", help="Largest absolute value of a column.")
@click.option("--decimals", multiple=True, metavar="COL=N", help="Decimals of a column.")
@click.option("--levels", multiple=True, metavar="COL=A,B,C", help="All categories of a column.")
@click.option(
    "--codebook",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What the columns mean; every site's file is checked against it first.",
)
@click.option(
    "--min-count",
    default=11,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=0),
    help="Fewest rows of a cell that a table shows; 0 shows all.",
)
@click.option(
    "--min-sites",
    default=1,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="Fewest sites with rows in a cell that is shown.",
)
@privacy_options.options
@values.reading_and_showing("Write tables and figures to a page too.")
def stats(
    files: tuple[Path, ...],
    count: bool,
    histograms: tuple[str, ...],
    edges: tuple[str, ...],
    crosstabs: tuple[tuple[str, str], ...],
    by: str | None,
    protocol: str,
    security: str | None,
    servers: str | None,
    missing: str,
    bound: tuple[str, ...],
    decimals: tuple[str, ...],
    levels: tuple[str, ...],
    codebook: Path | None,
    min_count: int,
    min_sites: int,
    delimiter: str | None,
    decimal_comma: bool,
    as_json: bool,
    html: Path | None,
    **others: Any,
) -> None:
    """Statistics over the rows of several sites, one FILE (CSV or Parquet) a site.

    All sites run in this process, and exchange the messages that would cross a network. What is
    not declared (bounds, decimals, levels) is taken from the data and is public.

    \b
    Example:
      securecomp stats north.csv south.csv west.parquet --count --mean los --by ward
    """  # noqa: D301 - the escape is click's mark for "do not fold"
    if len(edges) not in (0, 1, len(histograms)) or (histograms and not edges):
        raise click.UsageError("give --edges once, or once for each --histogram")
    if edges and not histograms:
        raise click.UsageError("--edges needs a --histogram")
    computing = None if servers is None else values.servers(servers)
    bins = [values.edges(text) for text in edges]
    bins = bins * len(histograms) if len(bins) == 1 else bins
    with plain_errors(), plain_warnings(), status("computing"):
        from securecomp.protocol import sum_protocols as protocols
        from securecomp.statistics import Codebook, Count, CrossTable, Histogram, Study
        from securecomp.statistics.summaries import STATISTICS
        from securecomp.statistics.table_files import name_sites, read_table

        wanted: list[Statistic] = [Count(None, by)] if count else []
        kinds = {kind.name: kind for kind in STATISTICS}
        wanted += [kinds[name](column, by) for name in OF_A_COLUMN for column in others[name]]
        wanted += [
            Histogram(column, by, these) for column, these in zip(histograms, bins, strict=True)
        ]
        wanted += [CrossTable(None, by, row, col) for row, col in crosstabs]
        more = analysis_options.asked(by, others)
        if not more and not wanted:
            raise click.UsageError("ask for something: --count, --sum COL, --mean COL, ...")
        privacy = privacy_options.terms(others)
        if more and privacy is not None:  # before the budget pays for the rest
            raise click.UsageError(
                "--epsilon is for counts, sums, means, histograms and cross tables; ask for "
                "analyses apart, if their results may be shown without noise"
            )
        if html is not None:
            check_page(html)
        sites = name_sites(files)
        study = Study(
            {
                name: read_table(path, delimiter=delimiter, decimal_comma=decimal_comma)
                for name, path in sites.items()
            },
            columns=values.columns(
                values.pairs(bound, "--bound"),
                values.pairs(decimals, "--decimals"),
                values.pairs(levels, "--levels"),
            ),
            protocol=protocols.protocol(
                protocol,
                servers=computing,
                security=cast("Security | None", security),
            ),
            missing="drop" if missing == "drop" else "error",
            codebook=None if codebook is None else Codebook.read(codebook),
            minimum_count=min_count,
            minimum_sites=min_sites,
            privacy=privacy,
            sources={name: str(path) for name, path in sites.items()},
        )
        results = study.run(wanted) if wanted else []
        found = analysis_options.ask(study, by, others)
        if html is not None:
            from securecomp.cli.report_page import page

            write_page(html, page([*results, *found]))
    if as_json:
        click.echo(json.dumps(_report(results, found), allow_nan=False))
    else:
        _print(results, found)


def _report(results: list["Result"], analyses: list["Analysis"]) -> dict[str, Any]:
    run = results[0].run if results else analyses[0].run
    return {
        "results": [row for result in results for row in result.to_json()],
        "analyses": [{**analysis.to_json(), **_cost(analysis.run)} for analysis in analyses],
        "parties": len(run.parties),
        "sites": list(run.parties),
        **_cost(run),
    }


def _cost(run: "Run") -> dict[str, Any]:
    return {
        "protocol": run.protocol,
        "servers": run.servers,
        "rounds": run.transcript.rounds,
        "messages": run.transcript.messages,
        "bytes_sent": run.transcript.bytes_sent,
        "seconds": run.seconds,
        "learned": dict(run.learned),
        "taken_from_data": dict(run.from_data),
    }


def _print(results: list["Result"], analyses: list["Analysis"]) -> None:
    screen = console()
    for result in results:
        header, cells = result.grid()
        table(screen, result.title, header, cells)
        if result.guarantee is not None:
            say(screen, f"noised, {result.guarantee}")
    for remark in dict.fromkeys(remark for result in results for remark in result.cautions):
        say(screen, remark)
    if results:
        run = results[0].run
        for line in run.summary().split("\n"):
            say(screen, line)
        for party, what in run.learned.items():
            say(screen, f"each {party} learned: {what}")
        if run.from_data:
            facts = "; ".join(f"{name}: {value}" for name, value in run.from_data.items())
            say(screen, f"public, taken from the data: {facts}")
    if analyses and any("suppressed" in row for result in results for row in result.rows):
        say(screen, "the analyses below show the counts that they are made of, also small ones")
    for analysis in analyses:
        show(screen, analysis)
