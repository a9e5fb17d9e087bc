"""Commands of questions: ask a consortium, consent at a site, read a site's log."""

import json
from pathlib import Path
from typing import Any

import click

from securecomp.cli import answers
from securecomp.cli import network_options as net
from securecomp.cli.written_pages import check_page, write_page
from securecomp.show.console import plain_errors, plain_warnings, status

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("study", type=_PATH)
@click.argument("question", nargs=-1)
@click.option("--analyst", required=True, metavar="NAME", help="Your name in the study.")
@click.option("--identity", "key", required=True, type=_PATH, metavar="FILE", help="Your key.")
@net.network
@click.option("--done", is_flag=True, help="Afterwards say that you have no more questions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", type=_PATH, metavar="FILE", help="Write the result to a page too.")
def ask(
    study: Path,
    question: tuple[str, ...],
    analyst: str,
    key: Path,
    done: bool,
    as_json: bool,
    html: Path | None,
    **given: Any,
) -> None:
    """Ask the agents of STUDY's sites a QUESTION: a method of Study, and NAME=VALUE arguments.

    A value is JSON, or else text: mean column=los by=ward, or quantiles column=los
    probabilities=[.25,.75]. Without a QUESTION you hear the study's own answers, if they are for
    analysts.
    """
    with plain_errors(), plain_warnings():
        from securecomp.net.questions import asking

        asked = _question(question) if question else None
        if html is not None:
            check_page(html)
        with (
            asking.connected(
                study, analyst, key, net.connection(given), **net.heard()
            ) as consortium,
            status("asking"),
        ):
            if asked is not None:
                found = [(asked, consortium.ask(asked))]
            else:
                found = [] if done else consortium.own()
            if done:
                consortium.no_more()
        if html is not None:
            from securecomp.cli.report_page import page

            write_page(html, page([result for _, result in found]))
    if as_json:
        click.echo(json.dumps({"results": answers.as_json(found)}, allow_nan=False))
        return
    answers.print_answers(found, analyst)


def _question(words: tuple[str, ...]) -> Any:
    from securecomp.errors import ParameterError
    from securecomp.net.questions import study_questions

    given: dict[str, Any] = {"ask": words[0]}
    for word in words[1:]:
        name, equals, text = word.partition("=")
        if not equals or name == "ask" or name in given:
            raise ParameterError(f"{word!r}: an argument is NAME=VALUE, each name once")
        try:
            given[name] = json.loads(text)
        except ValueError:
            given[name] = text
    return study_questions.made(given, "the question")


@click.command()
@click.argument("state", type=_PATH)
@click.argument("number", type=int, required=False)
@click.option("--allow", is_flag=True, help="Let this site take part.")
@click.option("--refuse", metavar="REASON", help="Refuse; the analyst and all sites read why.")
def consent(state: Path, number: int | None, allow: bool, refuse: str | None) -> None:
    """List the questions that wait for a person at the agent with this STATE, or answer one."""
    with plain_errors():
        from securecomp.errors import ParameterError
        from securecomp.net.questions import consent_files

        if number is None:
            waiting = consent_files.waiting(state)
            for each, text in waiting.items():
                click.echo(f"{each}: {text}")
            if not waiting:
                click.echo("no question waits")
            return
        if allow == (refuse is not None) or refuse == "":
            raise ParameterError("say --allow, or --refuse with a reason")
        consent_files.answer(state, number, refuse or "")


@click.command("log")
@click.argument("study", type=_PATH)
@click.argument("file", type=_PATH)
@click.option("--site", required=True, metavar="NAME", help="Whose log it is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def log(study: Path, file: Path, site: str, as_json: bool) -> None:
    """Verify and print a site's log of questions: who asked, and what was opened to whom."""
    with plain_errors():
        from securecomp.errors import ParameterError
        from securecomp.net import parties
        from securecomp.net.questions import question_log

        sites = parties.load(study)[1].sites
        if site not in sites:
            raise ParameterError(f"the study has no site {site!r}: {', '.join(sites)}")
        entries = question_log.read(file, site, sites[site])
    if as_json:
        click.echo(json.dumps({"site": site, "entries": entries}, allow_nan=False))
        return
    for entry in entries:
        facts = {k: v for k, v in entry.items() if k not in ("time", "part", "event", "signature")}
        told = "; ".join(f"{name} {_plain(value)}" for name, value in facts.items())
        click.echo(f"{entry['time']}  question {entry['part']} {entry['event']}: {told}")


def _plain(value: Any) -> str:
    if isinstance(value, list):
        more = f" and {len(value) - 8} more" if len(value) > 8 else ""
        return ", ".join(map(str, value[:8])) + more
    if isinstance(value, dict):
        return "; ".join(f"{k}: {v}" for k, v in value.items()) or "none"
    return str(value)
