"""`securecomp audit`: attacks on your own models and files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from securecomp.cli import option_values as values
from securecomp.cli.written_pages import check_page, write_page
from securecomp.show.console import console, plain_errors, progress_bar, show, status

if TYPE_CHECKING:
    from securecomp.audit.membership.guesses import Chosen
    from securecomp.audit.membership.membership_audit import Alike
    from securecomp.audit.membership.membership_report import MembershipReport
    from securecomp.show.exhibit import Exhibit

_FILE = click.Path(path_type=Path)
_SHOWN = 50
"""Row numbers that are printed. `--json` has all."""


@click.group()
def audit() -> None:
    """Attack your own models and files before somebody else does."""


@audit.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--quasi",
    multiple=True,
    required=True,
    metavar="A,B,C",
    help="Columns that others may know about a person.",
)
@click.option("--sensitive", multiple=True, metavar="COL", help="Column that nobody should learn.")
@click.option("--identifier", metavar="COL", help="Column that says whose row it is.")
@click.option(
    "--population", type=int, metavar="N", help="Size of the population that was sampled."
)
@click.option("--fraction", type=float, metavar="F", help="Or: the sampled fraction of it.")
@click.option(
    "--min-count",
    default=11,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=2),
    help="Fewest people of a group that counts as large enough.",
)
@click.option(
    "--largest",
    default=3,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="Largest set of columns to search.",
)
@click.option(
    "--show-rows", is_flag=True, help="Print the numbers of the rows that stand alone; no values."
)
@values.reading_and_showing("Write tables and a figure to a page too.")
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
    """Count the people of a FILE who stand alone by the columns that others may know.

    Prints groups of equal rows, k-anonymity, l-diversity, the risk of being found, the columns that
    tell people apart, and the effect of coarser columns. No value of a row is printed.

    \b
    Example:
      securecomp audit uniqueness stays.csv --quasi age,sex,zip --sensitive diagnosis
    """  # noqa: D301 - the escape is click's mark for "do not fold"
    with plain_errors():
        from securecomp.audit.reidentification import uniqueness as audits
        from securecomp.statistics.table_files import read_table

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
            _write(html, found, f"Rows that stand alone in {file.name}")
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


@audit.command()
@click.argument("model", type=_FILE)
@click.option("--members", required=True, type=_FILE, metavar="FILE", help="Rows that trained it.")
@click.option("--holdout", required=True, type=_FILE, metavar="FILE", help="Rows that did not.")
@click.option(
    "--label",
    metavar="COL",
    help="Column with the true class.  [default: the one that is no feature]",
)
@click.option("--identifier", metavar="COL", help="Column that says whose row it is.")
@click.option(
    "--chosen",
    type=click.Choice(["split", "coins", "otherwise"]),
    default="split",
    show_default=True,
    help="Choice of members: a random subset, a coin for each row, or not at random.",
)
@click.option(
    "--alike",
    type=click.Choice(["refuse", "keep"]),
    default="refuse",
    show_default=True,
    help="Equal rows in both files: refuse the files, or keep the rows.",
)
@click.option(
    "--epsilon", metavar="E", help="Epsilon that the model claims; the audit may refute it."
)
@click.option("--delta", metavar="D", help="Delta that it claims, such as 1e-5 or 0.")
@click.option(
    "--unit", type=click.Choice(["record", "patient"]), help="Unit that the claim protects."
)
@click.option(
    "--records",
    type=int,
    metavar="N",
    help="Most records of a patient, by the claim.  [default: 1]",
)
@click.option(
    "--relation",
    type=click.Choice(["add/remove", "replace-one"]),
    help="Difference of neighbouring data sets, by the claim.  [default: add/remove]",
)
@click.option(
    "--false-alarms", multiple=True, type=float, metavar="F", help="False alarm rate to report at."
)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    metavar="C",
    help="Confidence of each interval.",
)
@values.reading_and_showing("Write tables and the ROC curve to a page too.")
def model(
    model: Path,
    members: Path,
    holdout: Path,
    label: str | None,
    identifier: str | None,
    chosen: str,
    alike: str,
    epsilon: str | None,
    delta: str | None,
    unit: str | None,
    records: int | None,
    relation: str | None,
    false_alarms: tuple[float, ...],
    confidence: float,
    delimiter: str | None,
    decimal_comma: bool,
    as_json: bool,
    html: Path | None,
) -> None:
    """Try to tell the rows that trained a MODEL from other rows, by their loss.

    MODEL is a logistic model as `securecomp ckks` reads it. No value of a row is printed. The exit
    status is 1 if training cannot have been as private as claimed. From Python, any classifier can
    be audited, and by stronger attacks: see securecomp.audit.membership.

    \b
    Example:
      securecomp audit model risk.json --members train.csv --holdout test.csv --label died \\
          --epsilon 2 --delta 1e-5 --unit record --html audit.html
    """  # noqa: D301 - the escape is click's mark for "do not fold"
    claimed = {"delta": delta, "unit": unit, "records": records, "relation": relation}
    given = {name: value for name, value in claimed.items() if value is not None}
    if epsilon is None and given:
        raise click.UsageError(f"--{next(iter(given))} belongs to a claim and needs --epsilon")
    with plain_errors():
        from securecomp.audit.membership.claims import Claim

        if html is not None:
            check_page(html)
        claim = None if epsilon is None else Claim(epsilon, **cast("dict[str, Any]", given))
        with status("attacking"):
            found = _attacked(
                model,
                (members, holdout),
                label,
                identifier,
                {"delimiter": delimiter, "decimal_comma": decimal_comma},
                chosen=cast("Chosen", chosen),
                alike=cast("Alike", alike),
                confidence=confidence,
                false_alarms=false_alarms or None,
            )
            if claim is not None:
                found = found.against(claim)
            if html is not None:
                _write(html, found, f"Membership in the training of {model.name}")
        if as_json:
            click.echo(json.dumps(found.to_json(), allow_nan=False))
        else:
            show(console(), found)
        if claim is not None:
            found.check(claim)


def _attacked(
    model: Path,
    files: tuple[Path, Path],
    label: str | None,
    identifier: str | None,
    reading: dict[str, Any],
    **options: Any,
) -> "MembershipReport":
    """Attack a model with the rows of two files: its members and the holdout."""
    from securecomp.audit import model_file
    from securecomp.audit.labelled_rows import other_column
    from securecomp.audit.membership.membership_audit import membership_inference
    from securecomp.statistics.site_table import Table
    from securecomp.statistics.table_files import read_table

    classifier = model_file.classifier(model)
    tables = [Table(str(file), read_table(file, **reading)) for file in files]
    persons = None
    if identifier is not None:
        persons = tables[0].keys([identifier]), tables[1].keys([identifier])
    column = label or other_column(
        tables[0].columns, classifier.feature_names_in_.tolist(), str(files[0])
    )
    inside, outside = (model_file.read_rows(file, classifier, column, **reading) for file in files)
    options["names"] = (str(files[0]), str(files[1]))
    return membership_inference(classifier, inside, outside, identifiers=persons, **options)


def _write(html: Path, found: "Exhibit", title: str) -> None:
    from securecomp.cli.report_page import exhibition

    write_page(html, exhibition([found], title, "No value of a row is on this page."))
