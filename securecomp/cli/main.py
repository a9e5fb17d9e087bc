"""The command line: options, tables and errors in plain words. It has no logic.

Nothing heavy is imported before a command needs it, so `--help` answers at once.
"""

import json
from pathlib import Path

import click

from securecomp.cli import option_values as values
from securecomp.cli.audit import audit
from securecomp.cli.bench import bench
from securecomp.cli.budget import budget, dial
from securecomp.cli.ckks import ckks
from securecomp.cli.codebook import codebook
from securecomp.cli.consortium import identity, join, relay, server, simulate, study
from securecomp.cli.paillier import paillier
from securecomp.cli.questions import ask, consent, log
from securecomp.cli.stats import stats
from securecomp.cli.transcripts import verify
from securecomp.cli.written_pages import check_page, write_page
from securecomp.show.console import console, plain_errors, progress_bar, shades, status


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="securecomp")
def main() -> None:
    """Compute together on data that nobody may show.

    Hospitals, banks or statistics offices get one total, one table or one mean over all of their
    rows, and none sees another's.
    """


for command in (identity, study, relay, server, join, ask, consent, log, verify, simulate):
    main.add_command(command)
main.add_command(audit)
main.add_command(bench)
main.add_command(paillier)
main.add_command(ckks)
main.add_command(stats)
main.add_command(codebook)
main.add_command(budget)
main.add_command(dial)


@main.group()
def demo() -> None:
    """Run a protocol on real data and compare with plaintext."""


@demo.command()
@click.option(
    "--servers",
    default="3",
    show_default=True,
    metavar="N|all",
    help="Number of servers that compute (sharing).",
)
def hospitals(servers: str) -> None:
    """Count stays and deaths at 54 hospitals; repeat a published trial at 4."""
    computing = values.servers(servers)
    with plain_errors():
        from securecomp.demos import hospitals

        with status("computing"):
            parts = list(hospitals.hospitals(computing))
        screen = console()
        for part in parts:
            screen.print(part)


@demo.command()
@click.option("--protect-model", is_flag=True, help="Hide all of the model but the logits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inference(protect_model: bool, as_json: bool) -> None:
    """Predict tumours from encrypted rows of 569 patients."""
    with plain_errors():
        from securecomp.demos import inference

        with status("training and predicting"):
            found = inference.run(protect_model)
        if as_json:
            click.echo(json.dumps(found.facts()))
            return
        screen = console()
        for part in found.parts():
            screen.print(part)


@demo.command()
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with the pictures.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def leakage(html: Path | None, as_json: bool) -> None:
    """Reconstruct images from gradients and from their sums: the reason for masks."""
    with plain_errors():
        from securecomp.demos import leakage

        if html is not None:
            check_page(html)
        with status("training and attacking"):
            found = leakage.run()
        if html is not None:
            write_page(html, found.page())
        if as_json:
            click.echo(json.dumps(found.facts()))
            return
        screen = console()
        for part in found.parts(shades(screen), screen.width):
            screen.print(part)
    if html is not None:
        click.echo(f"{html}: open it in a browser")


@demo.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each data set.")
def training(as_json: bool) -> None:
    """Train over 54 hospitals, 4 clinics and more: pooled, by secure sums, with noise."""
    with plain_errors():
        from securecomp.demos import training

        with progress_bar("training") as update:
            found = list(training.run(progress=update))
        if as_json:
            for one in found:
                click.echo(json.dumps(one.facts()))
            return
        screen = console()
        for part in training.parts(found):
            screen.print(part)


if __name__ == "__main__":
    main()
