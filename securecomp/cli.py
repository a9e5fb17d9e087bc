"""The command line: options, tables, errors in plain words; no logic.

Nothing heavy is imported before a command needs it, so that `--help` answers at once.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from securecomp.cli_ckks import ckks
from securecomp.cli_paillier import paillier
from securecomp.console import plain_errors, status

if TYPE_CHECKING:
    from rich.console import Console

    from securecomp.secagg import Security
    from securecomp.statistics import Column, Result, Statistic


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="securecomp")
def main() -> None:
    """Compute together on data that nobody may show.

    Hospitals (or banks, or statistics offices) get one total, one table or one mean over all of
    their rows, and none sees another's.
    """


main.add_command(paillier)
main.add_command(ckks)


def _pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for value in values:
        column, separator, rest = value.partition("=")
        if not separator or not column or not rest:
            raise click.BadParameter(f"expected COL=VALUE, got {value!r}", param_hint=option)
        if column in pairs:
            raise click.BadParameter(f"{column!r} is given twice", param_hint=option)
        pairs[column] = rest
    return pairs


def _levels(text: str) -> list[str | int]:
    cells: list[str] = [cell.strip() for cell in text.split(",")]
    try:
        return [int(cell) for cell in cells]
    except ValueError:
        return list(cells)


def _servers(text: str) -> int | Literal["all"]:
    if text == "all":
        return "all"
    if not text.isdecimal():
        raise click.BadParameter(f'a number or "all", not {text!r}', param_hint="--servers")
    if len(text) > 6:
        raise click.BadParameter("at most 1000 servers", param_hint="--servers")
    return int(text)


def _edges(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(edge) for edge in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"expected numbers with commas between them, got {text!r}", param_hint="--edges"
        ) from None


def _columns(
    bounds: dict[str, str], decimals: dict[str, str], levels: dict[str, str]
) -> dict[str, "Column"]:
    from decimal import Decimal, InvalidOperation

    from securecomp.statistics import Column

    columns = {}
    for name in {**bounds, **decimals, **levels}:
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
        found = _levels(levels[name]) if name in levels else None
        columns[name] = Column(bound=bound, decimals=places, levels=found)
    return columns


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--count", is_flag=True, help="Number of rows.")
@click.option("--sum", "sums", multiple=True, metavar="COL", help="Sum of a column.")
@click.option("--mean", "means", multiple=True, metavar="COL", help="Mean of a column.")
@click.option(
    "--variance", "variances", multiple=True, metavar="COL", help="Sample variance and sd."
)
@click.option(
    "--histogram", "histograms", multiple=True, metavar="COL", help="Counts in bins; see --edges."
)
@click.option("--edges", multiple=True, metavar="A,B,C", help="Bin edges of each --histogram.")
@click.option(
    "--crosstab", "crosstabs", multiple=True, nargs=2, metavar="ROW COL", help="Cross table."
)
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
    "--min-count",
    default=11,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=0),
    help="Fewest rows of a cell that is shown; 0 shows all.",
)
@click.option(
    "--min-sites",
    default=1,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="Fewest sites with rows in a cell that is shown.",
)
@click.option("--delimiter", metavar="CHAR", help="Between the columns of a CSV file.")
@click.option("--decimal-comma", is_flag=True, help="CSV files write 3,5 for 3.5.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stats(
    files: tuple[Path, ...],
    count: bool,
    sums: tuple[str, ...],
    means: tuple[str, ...],
    variances: tuple[str, ...],
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
    min_count: int,
    min_sites: int,
    delimiter: str | None,
    decimal_comma: bool,
    as_json: bool,
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
    computing = None if servers is None else _servers(servers)
    bins = [_edges(text) for text in edges]
    bins = bins * len(histograms) if len(bins) == 1 else bins
    with plain_errors(), status("computing"):
        from securecomp import sums as protocols
        from securecomp.statistics import (
            Count,
            CrossTable,
            Histogram,
            Mean,
            Study,
            Sum,
            Variance,
        )
        from securecomp.statistics.files import name_sites, read_table

        wanted: list[Statistic] = [Count(None, by)] if count else []
        wanted += [Sum(column, by) for column in sums]
        wanted += [Mean(column, by) for column in means]
        wanted += [Variance(column, by) for column in variances]
        wanted += [
            Histogram(column, by, these) for column, these in zip(histograms, bins, strict=True)
        ]
        wanted += [CrossTable(None, by, row, col) for row, col in crosstabs]
        if not wanted:
            raise click.UsageError("ask for something: --count, --sum COL, --mean COL, ...")
        sites = name_sites(files)
        study = Study(
            {
                name: read_table(path, delimiter=delimiter, decimal_comma=decimal_comma)
                for name, path in sites.items()
            },
            columns=_columns(
                _pairs(bound, "--bound"), _pairs(decimals, "--decimals"), _pairs(levels, "--levels")
            ),
            protocol=protocols.protocol(
                protocol,
                servers=computing,
                security=cast("Security | None", security),
            ),
            missing="drop" if missing == "drop" else "error",
            sources={name: str(path) for name, path in sites.items()},
            minimum_count=min_count,
            minimum_sites=min_sites,
        )
        results = study.run(wanted)
    if as_json:
        click.echo(json.dumps(_report(results), allow_nan=False))
    else:
        _print_results(results)


def _report(results: list["Result"]) -> dict[str, Any]:
    run = results[0].run
    return {
        "results": [row for result in results for row in result.to_json()],
        "parties": len(run.parties),
        "sites": list(run.parties),
        "protocol": run.protocol,
        "servers": run.servers,
        "rounds": run.transcript.rounds,
        "messages": run.transcript.messages,
        "bytes_sent": run.transcript.bytes_sent,
        "seconds": run.seconds,
        "plaintext_seconds": run.plaintext_seconds,
        "learned": dict(run.learned),
        "taken_from_data": dict(run.from_data),
    }


def _console() -> "Console":
    from rich.console import Console

    # In a pipe there is no width to ask for; a table should not be folded there.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 100)


def _print_results(results: list["Result"]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = _console()
    for result in results:
        header, cells = result.grid()
        # The data are text, not rich's markup; and a title is not folded to its table's width.
        console.print(Text(result.title, style="bold"), soft_wrap=True)
        table = Table()
        for name in header:
            table.add_column(Text(name), justify="right")
        for row in cells:
            table.add_row(*map(Text, row))
        console.print(table)
    for remark in dict.fromkeys(remark for result in results for remark in result.remarks):
        console.print(remark, soft_wrap=True, markup=False)
    run = results[0].run
    console.print(run.summary(), soft_wrap=True, markup=False)
    for party, what in run.learned.items():
        console.print(f"each {party} learned: {what}", soft_wrap=True, markup=False)
    if run.from_data:
        facts = "; ".join(f"{name}: {value}" for name, value in run.from_data.items())
        console.print(f"public, taken from the data: {facts}", soft_wrap=True, markup=False)


@main.group()
def demo() -> None:
    """Run a protocol on real data and compare with plaintext."""


@demo.command()
@click.option(
    "--servers", default="3", show_default=True, metavar="N|all", help="Who computes (sharing)."
)
def hospitals(servers: str) -> None:
    """54 hospitals count stays and deaths; 4 hospitals repeat a published trial."""
    computing = _servers(servers)
    with plain_errors():
        from securecomp import demos

        with status("computing"):
            parts = list(demos.hospitals(computing))
        console = _console()
        for part in parts:
            console.print(part)


@demo.command()
@click.option("--protect-model", is_flag=True, help="Hide everything of the model but the logits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inference(protect_model: bool, as_json: bool) -> None:
    """Predict tumours of 569 patients, who stay encrypted."""
    with plain_errors():
        from securecomp import demo_inference

        with status("training and predicting"):
            found = demo_inference.run(protect_model)
        if as_json:
            click.echo(json.dumps(found.facts()))
            return
        console = _console()
        for part in found.parts():
            console.print(part)


if __name__ == "__main__":
    main()
