"""`securecomp codebook`: draft a codebook from a file, and check a file against a codebook."""

import json
import sys
from pathlib import Path

import click

from securecomp.show.console import console, plain_errors, printable

_file = click.Path(path_type=Path)


@click.group()
def codebook() -> None:
    """Agree on the meaning of columns, and check your own file, before anything is summed.

    A codebook is a readable JSON file: units, plausible ranges, levels, codes for missing values,
    and the columns that identify a patient. All sites use the same one.
    """


@codebook.command()
@click.argument("file", type=_file)
@click.option("-o", "--output", type=_file, help="File to write; by default the screen.")
@click.option("--name", default="draft", show_default=True, help="Name of the codebook.")
@click.option("--version", default="0", show_default=True, help="Version of the codebook.")
@click.option("--delimiter", metavar="CHAR", help="Delimiter of a CSV file.")
@click.option("--decimal-comma", is_flag=True, help="CSV files with a decimal comma, 3,5.")
def draft(
    file: Path,
    output: Path | None,
    name: str,
    version: str,
    delimiter: str | None,
    decimal_comma: bool,
) -> None:
    """Draft a codebook from one site's FILE. Edit it before you send it to anybody.

    It contains the file's levels and rounded ranges, which others will read.
    """
    with plain_errors():
        from securecomp.protocol.storage import write_output
        from securecomp.statistics import Codebook
        from securecomp.statistics.table_files import read_table

        frame = read_table(file, delimiter=delimiter, decimal_comma=decimal_comma)
        text = Codebook.draft(frame, name=name, version=version).to_json()
        if output is None:
            click.echo(text)
            return
        if output.exists():
            raise click.UsageError(f"{output} exists already; name another file")
        write_output(output, f"{text}\n".encode(), [file])


@codebook.command()
@click.argument("book", type=_file)
@click.argument("file", type=_file)
@click.option("--delimiter", metavar="CHAR", help="Delimiter of a CSV file.")
@click.option("--decimal-comma", is_flag=True, help="CSV files with a decimal comma, 3,5.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(
    book: Path, file: Path, delimiter: str | None, decimal_comma: bool, as_json: bool
) -> None:
    """Check your own FILE against a codebook BOOK; exit with 1 if it breaks a rule.

    The findings stay here. They name columns, rows, rules and remedies, and no value.
    """
    with plain_errors():
        from securecomp.statistics import Codebook
        from securecomp.statistics.table_files import read_table, site_name

        agreed = Codebook.read(book)
        frame = read_table(file, delimiter=delimiter, decimal_comma=decimal_comma)
        found = agreed.check(frame, site_name(file), str(file))
    errors = sum(finding.severity == "error" for finding in found)
    if as_json:
        facts = [
            {
                "severity": f.severity,
                "rule": f.rule,
                "column": f.column,
                "rows": f.rows,
                "first": f.first,
                "problem": f.problem,
                "remedy": f.remedy,
            }
            for f in found
        ]
        click.echo(json.dumps({"codebook": agreed.digest.hex(), "findings": facts}))
    else:
        screen = console()
        for finding in found:
            screen.print(printable(f"{finding.severity}: {finding}"), soft_wrap=True, markup=False)
        what = f"{errors} errors, {len(found) - errors} warnings"
        screen.print(f"{file}: {what if found else 'follows the codebook'}", markup=False)
    if errors:
        sys.exit(1)
