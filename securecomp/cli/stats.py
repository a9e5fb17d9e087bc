"""`securecomp stats`: statistics and analyses over files, one for each site."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securecomp.cli import analysis_options, privacy_options, summary_options
from securecomp.cli import option_values as values
from securecomp.cli.without_pandas import without_pandas
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
    from securecomp.privacy.policy import Privacy
    from securecomp.statistics import Result, Run, Study
    from securecomp.statistics.analysis import Analysis


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@summary_options.options
@analysis_options.options
@click.option("--by", metavar="COL", help="Group every statistic by a column.")
@click.option(
    "--protocol", default="sharing", show_default=True, help="sharing, masking or paillier."
)
@click.option(
    "--security",
    type=click.Choice(["semi-honest", "active"]),
    help="Masking: the server that is defended against.  [default: semi-honest]",
)
@click.option("--servers", metavar="N|all", help="Sharing: how many servers compute.  [default: 3]")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="An empty or NaN cell stops the command, or its row is dropped.",
)
@click.option("--bound", multiple=True, metavar="COL=X", help="Largest absolute value of a column.")
@click.option("--decimals", multiple=True, metavar="COL=N", help="Decimals of a column.")
@click.option("--levels", multiple=True, metavar="COL=A,B,C", help="All categories of a column.")
@click.option(
    "--codebook",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Meaning of the columns; every site's file is checked against it first.",
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
    files: tuple[Path, ...], by: str | None, as_json: bool, html: Path | None, **given: Any
) -> None:
    """Statistics over the rows of several sites, one FILE (CSV or Parquet) a site.

    All sites run in this process, and exchange the messages that would cross a network. Bounds,
    decimals and levels that are not declared are taken from the data and are public.

    \b
    Example:
      securecomp stats north.csv south.csv west.parquet --count --mean los --by ward
    """  # noqa: D301 - the escape is click's mark for "do not fold"
    summary_options.edges(given)  # a usage error before anything heavy is loaded
    with plain_errors(), plain_warnings(), status("computing"):
        wanted = summary_options.asked(by, given)
        more = analysis_options.asked(by, given)
        if not more and not wanted:
            raise click.UsageError("ask for something: --count, --sum COL, --mean COL, ...")
        privacy = privacy_options.terms(given)
        if more and privacy is not None:  # before the budget pays for the rest
            raise click.UsageError(
                "--epsilon is for counts, sums, means, histograms and cross tables; ask for "
                "analyses apart, if their results may be shown without noise"
            )
        if html is not None:
            check_page(html)
        study = _study(files, privacy, given)
        results = study.run(wanted) if wanted else []
        found = analysis_options.ask(study, by, given)
        if html is not None:
            from securecomp.cli.report_page import page

            write_page(html, page([*results, *found]))
    if as_json:
        click.echo(json.dumps(_report(results, found), allow_nan=False))
    else:
        _print(results, found)


def _study(files: tuple[Path, ...], privacy: "Privacy | None", given: Mapping[str, Any]) -> "Study":
    """Return the study of the files, as the options say."""
    without_pandas()
    from securecomp.protocol import sum_protocols as protocols
    from securecomp.statistics import Codebook, Study
    from securecomp.statistics.table_files import name_sites, read_table

    servers, codebook = given["servers"], given["codebook"]
    scheme = protocols.protocol(
        given["protocol"],
        servers=None if servers is None else values.servers(servers),
        security=given["security"],
    )
    reading = {name: given[name] for name in ("delimiter", "decimal_comma")}
    sites = name_sites(files)
    return Study(
        {name: read_table(path, **reading) for name, path in sites.items()},
        columns=values.columns(
            values.pairs(given["bound"], "--bound"),
            values.pairs(given["decimals"], "--decimals"),
            values.pairs(given["levels"], "--levels"),
        ),
        protocol=scheme,
        missing=given["missing"],
        codebook=None if codebook is None else Codebook.read(codebook),
        minimum_count=given["min_count"],
        minimum_sites=given["min_sites"],
        privacy=privacy,
        sources={name: str(path) for name, path in sites.items()},
    )


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
