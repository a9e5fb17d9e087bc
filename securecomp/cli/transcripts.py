"""Transcripts of runs: `join --transcript` writes one, `verify` checks one."""

import json
from pathlib import Path
from typing import Any

import click

from securecomp.cli import answers
from securecomp.show.console import plain_errors, plain_warnings

_PATH = click.Path(path_type=Path)
option = click.option(
    "--transcript", type=_PATH, metavar="FILE", help="Write what was opened and who signed it."
)


def check(path: Path | None, serve: bool) -> None:
    """Refuse a transcript that could not be written, before anything is sent.

    Raises:
        click.UsageError: The file exists, its folder does not, or the site stays as an agent.
    """
    if path is None:
        return
    if serve:
        raise click.UsageError("an agent keeps a signed log instead; leave --transcript out")
    if path.exists():
        raise click.UsageError(
            f"{path} exists, and a transcript is never overwritten; name another"
        )
    if not path.parent.is_dir():
        raise click.UsageError(f"there is no folder {path.parent}")


def start(member: Any, path: Path | None) -> None:
    """Keep the steps of a run, if a transcript is asked for."""
    if path is not None:
        from securecomp.net import run_transcript

        run_transcript.start(member)


def finish(member: Any, study: Path, path: Path | None) -> None:
    """Write the transcript, if one is asked for."""
    if path is not None:
        from securecomp.net import run_transcript

        run_transcript.finish(member, study, path)


@click.command()
@click.argument("study", type=_PATH)
@click.argument("transcript", type=_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(study: Path, transcript: Path, as_json: bool) -> None:
    """Verify the TRANSCRIPT of a run of STUDY, and compute its results from the totals.

    It needs no key, no network and no row. It shows that the sites signed this study and these
    totals, and that the results follow. It cannot show that the rows were true.
    """
    with plain_errors(), plain_warnings():
        from securecomp.net import transcript_replay

        found = transcript_replay.verify(study, transcript)
    if as_json:
        click.echo(json.dumps(_facts(found), allow_nan=False))
        return
    for line in _words(found):
        click.echo(line)
    answers.print_answers(found.results, found.transcript.site)


def _facts(found: Any) -> dict[str, Any]:
    return {
        "study": found.transcript.study,
        "run": found.transcript.run,
        "site": found.transcript.site,
        "sums": [
            {"labels": list(session.layout.labels), "counted": list(counted)}
            for session, counted in found.sums
        ],
        "unsigned": list(found.unsigned),
        "results": answers.as_json(found.results),
    }


def _words(found: Any) -> list[str]:
    sites, told = list(found.study.sites), found.transcript
    signed = [site for site in sites if site not in found.unsigned]
    opened = sum(session.layout.length for session, _ in found.sums)
    lines = [
        f"study: {found.study.name}, id {found.study.id}, signed by {', '.join(sites)}",
        f"run {told.run}, as {told.site} saw it; its totals are signed by {', '.join(signed)}",
    ]
    if found.unsigned:
        lines.append(f"not signed, as they had dropped out: {', '.join(found.unsigned)}")
    lines.append(f"sums: {len(found.sums)}, of {opened} totals")
    for number, (session, counted) in enumerate(found.sums, start=1):
        absent = [name for name in session.contributors if name not in counted]
        if absent:
            lines.append(f"sum {number} is without {', '.join(absent)}")
    lines += ["It holds. The results below follow from these totals.", ""]
    return lines
