"""`securecomp audit`: attacks on one's own models and files."""

import json
from pathlib import Path

import click

from securecomp import cli_values as values
from securecomp.console import check_page, console, plain_errors, plain_writing, progress_bar, show

_SHOWN = 50
"""So many row numbers are printed; `--json` has all."""


@click.group()
def audit() -> None:
    """Attack your own models and files, before somebody else does."""


@audit.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--quasi",
    multiple=True,
    required=True,
    metavar="A,B,C",
    help="Columns that others may know of a person.",
)
@click.option("--sensitive", multiple=True, metavar="COL", help="What nobody should learn.")
@click.option("--identifier", metavar="COL", help="Column that says whose row it is.")
@click.option("--population", type=int, metavar="N", help="People whom the rows are a sample of.")
@click.option("--fraction", type=float, metavar="F", help="Or: which part of them is in the rows.")
@click.option(
    "--min-count",
    default=11,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=2),
    help="Fewest people of a group that is large enough.",
)
@click.option(
    "--largest",
    default=3,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="Search sets of at most so many columns.",
)
@click.option("--show-rows", is_flag=True, help="Number the rows that stand alone; no values.")
@click.option("--delimiter", metavar="CHAR", help="Between the columns of a CSV file.")
@click.option("--decimal-comma", is_flag=True, help="The CSV file writes 3,5 for 3.5.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write tables and a figure to a page too.",
)
def uniqueness(
    file: Path,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    identifier: str | None,
    population: int | None,
    fraction: float | None,
    min_count: int,
    largest: int,
    show_rows: bool,
    delimiter: str | None,
    decimal_comma: bool,
    as_json: bool,
    html: Path | None,
) -> None:
    """How many people of a FILE stand alone by what others may know of them.

    Groups of rows that are alike, k-anonymity, l-diversity, the risk of being found, which columns
    tell people apart, and what coarser ones would change. No value of a row is printed.

    \b
    Example:
      securecomp audit uniqueness stays.csv --quasi age,sex,zip --sensitive diagnosis
    """  # noqa: D301 - the escape is click's mark for "do not fold"
    with plain_errors():
        from securecomp.audit import uniqueness as audits
        from securecomp.statistics.files import read_table

        if html is not None:
            check_page(html)
        frame = read_table(file, delimiter=delimiter, decimal_comma=decimal_comma)
        with progress_bar("grouping rows") as report:
            found = audits.uniqueness(
                frame,
                values.names(quasi, "--quasi"),
                sensitive=values.names(sensitive, "--sensitive"),
                identifier=identifier,
                population=population,
                fraction=fraction,
                minimum=min_count,
                largest=largest,
                source=str(file),
                report=report,
            )
        if html is not None:
            from securecomp.reports import exhibition

            title, about = f"Who stands alone in {file.name}", "No value of a row is on this page."
            with plain_writing(html):
                html.write_text(exhibition([found], title, about), encoding="utf-8")
    rows = found.rows_alone.tolist()
    if as_json:
        more = {"rows_alone": rows} if show_rows else {}
        click.echo(json.dumps({**found.to_json(), **more}, allow_nan=False))
        return
    screen = console()
    show(screen, found)
    if show_rows and rows:
        listed = ", ".join(map(str, rows[:_SHOWN]))
        more_rows = len(rows) - _SHOWN
        rest = f" and {more_rows:,} more, all with --json" if more_rows > 0 else ""
        screen.print(f"rows that stand alone: {listed}{rest}", soft_wrap=True)
