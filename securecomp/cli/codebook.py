"""`securecomp codebook`: propose one from a file, and hold a file against one."""

import json
import sys
from pathlib import Path

import click

from securecomp.show.console import console, plain_errors, printable

_file = click.Path(path_type=Path)


@click.group()
def codebook() -> None:
    """Agree on what columns mean, and check your own file, before anything is summed.

    A codebook is a JSON file that people read: units, plausible ranges, levels, codes for missing
    values, and which columns identify a patient. All sites use the same one.
    """


@codebook.command()
@click.argument("file", type=_file)
@click.option("-o", "--output", type=_file, help="Where it goes; by default the screen.")
@click.option("--name", default="draft", show_default=True, help="Its name.")
@click.option("--version", default="0", show_default=True, help="Its version.")
@click.option("--delimiter", metavar="CHAR", help="Between the columns of a CSV file.")
@click.option("--decimal-comma", is_flag=True, help="CSV files write 3,5 for 3.5.")
def draft(
    file: Path,
    output: Path | None,
    name: str,
    version: str,
    delimiter: str | None,
    decimal_comma: bool,
) -> None:
    """Propose a codebook from one site's FILE; edit it before you send it to anybody.

    It has the file's levels and rounded ranges, which others will read.
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
            raise click.UsageError(f"{output} is there already; name another file")
        write_output(output, f"{text}\n".encode(), [file])


@codebook.command()
@click.argument("book", type=_file)
@click.argument("file", type=_file)
@click.option("--delimiter", metavar="CHAR", help="Between the columns of a CSV file.")
@click.option("--decimal-comma", is_flag=True, help="CSV files write 3,5 for 3.5.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(
    book: Path, file: Path, delimiter: str | None, decimal_comma: bool, as_json: bool
) -> None:
    """Hold your own FILE against a codebook BOOK; exit with 1 if it does not follow it.

    What is found stays here: columns, rows, rules and remedies, and no value.
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
