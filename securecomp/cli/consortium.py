"""Commands of a consortium: identity, study, relay, server, join, simulate."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securecomp.cli import answers, own_page, transcripts
from securecomp.cli import network_options as net
from securecomp.cli import option_values as values
from securecomp.cli.without_pandas import without_pandas
from securecomp.cli.written_pages import check_page, write_page
from securecomp.show.console import plain_errors, plain_warnings, status

if TYPE_CHECKING:
    from securecomp.net.pages.site_page import SitePage

_PATH = click.Path(path_type=Path)


@click.group()
def identity() -> None:
    """Long-term keys of a site or a server."""


@identity.command("new")
@click.argument("file", type=_PATH)
def identity_new(file: Path) -> None:
    """Draw a key and write it to FILE, which stays secret."""
    with plain_errors():
        from securecomp.net import identity_file

        _print_key(identity_file.create(file).public)
    net.note(f"{file}: keep it secret; send the public key, and compare the words by phone")


@identity.command("show")
@click.argument("file", type=_PATH)
def identity_show(file: Path) -> None:
    """Print the public key of FILE, and its fingerprint in words."""
    with plain_errors():
        from securecomp.net import identity_file

        _print_key(identity_file.read(file).public)


def _print_key(public: bytes) -> None:
    from securecomp.net import key_texts

    click.echo(f"public key: {key_texts.to_text(public)}")
    click.echo(f"in words:   {key_texts.fingerprint(public)}")


@click.group()
def study() -> None:
    """Study files: what all parties agree on."""


@study.command("new")
@click.argument("file", type=_PATH)
def study_new(file: Path) -> None:
    """Write a study file to fill in."""
    with plain_errors():
        from securecomp.net.study_template import TEMPLATE
        from securecomp.protocol.storage import write_new

        write_new(file, TEMPLATE.rstrip("\n"), 0o644)
    net.note(f"{file}: fill it in, send it to all sites, and let each sign it")


@study.command("show")
@click.argument("file", type=_PATH)
def study_show(file: Path) -> None:
    """Show what will be computed, by whom, and what each party learns."""
    with plain_errors():
        from securecomp.net import study_file

        for line in _summary(study_file.read(file)):
            click.echo(line)


@study.command("sign")
@click.argument("file", type=_PATH)
@click.option("--party", required=True, metavar="NAME", help="Who signs.")
@click.option("--identity", "key", required=True, type=_PATH, metavar="FILE", help="Its key.")
def study_sign(file: Path, party: str, key: Path) -> None:
    """Sign a study file for a site; the signature goes beside it."""
    with plain_errors():
        from securecomp.net import identity_file, study_file

        study_file.sign(file, party, identity_file.read(key))
        beside = study_file.signatures_path(file)
    net.note(f"{beside}: send it along with {file.name}")


@study.command("check")
@click.argument("file", type=_PATH)
def study_check(file: Path) -> None:
    """Check that a study file can be used, and that all sites have signed it."""
    with plain_errors():
        from securecomp.net import study_file

        found = study_file.verify(file)
    click.echo(f"{file}: signed by all {len(found.sites)} sites; id {found.id}")


@study.command("parties")
@click.argument("file", type=_PATH)
@click.argument("out", type=_PATH)
def study_parties(file: Path, out: Path) -> None:
    """Write the parties of FILE to OUT, which is all that a relay needs of it."""
    with plain_errors():
        from securecomp.net import parties, study_file
        from securecomp.protocol.storage import write_new

        write_new(out, parties.listing(study_file.read(file)), 0o644)
    net.note(f"{out}: send it to whoever runs the relay, and keep {file.name} among the parties")


def _summary(found: Any) -> list[str]:
    from securecomp.net import key_texts, private_study

    lines = [f"study: {found.name}", f"id: {found.id}", "", "sites (each brings rows):"]
    lines += [f"  {n}: {key_texts.fingerprint(k)}" for n, k in found.sites.items()]
    lines += ["", f"servers (protocol {found.protocol}):"]
    lines += [f"  {n}: {key_texts.fingerprint(k)}" for n, k in found.servers.items()]
    if found.analysts:
        lines += ["", "analysts (they ask, and bring no rows):"]
        lines += [f"  {n}: {key_texts.fingerprint(k)}" for n, k in found.analysts.items()]
    lines += ["", "what will be computed, and who hears the totals:"]
    lines += [f"  {q}: {', '.join(found.hearers(q))}" for q in found.analyses] or ["  nothing yet"]
    if found.analysts:
        lines += _of_analysts(found)
    lines += private_study.summary(found.privacy, len(found.analyses))
    if found.codebook is not None:
        lines += ["", f"codebook: {found.codebook.path.name}, {found.codebook.sha256.hex()}"]
    lines += ["", "what each party learns:"]
    lines += [f"  {party}: {what}" for party, what in found.sums().learned().items()]
    shown = f"cells below {found.minimum_count} rows" if found.minimum_count else "no cell"
    lines += ["", f"left out of counts, sums, means and tables: {shown}"]
    return lines


def _of_analysts(found: Any) -> list[str]:
    rules, many = found.rules, ", ".join
    lines = ["", f"what analysts may ask, at most {rules.most} questions:"]
    lines += [f"  each site answers by itself: {many(rules.answer) or 'nothing'}"]
    lines += [f"  a person at each site is asked first: {many(rules.ask) or 'nothing'}"]
    if found.receivers == "analysts":
        lines += ["  what one sum answers is opened to the analyst alone; where a further step"]
        lines += ["  depends on totals (a regression, a median), the sites hear these too"]
    else:
        lines += ["  all sites and the analyst who asked hear the answer"]
    return lines


@click.command()
@click.argument("study", type=_PATH)
@click.option("--site", required=True, metavar="NAME", help="Your site's name in the study.")
@click.option("--data", required=True, type=_PATH, metavar="FILE", help="Your rows.")
@click.option("--identity", "key", required=True, type=_PATH, metavar="FILE", help="Your key.")
@net.network
@click.option(
    "--ledger", type=_PATH, metavar="FILE", help="Your privacy budget; by default beside the state."
)
@click.option("--yes", is_flag=True, help="Do not ask before anything is sent.")
@click.option("--serve", is_flag=True, help="Stay, and answer the analysts' questions.")
@own_page.options
@transcripts.option
@values.reading_and_showing("Write the results to a page too.")
def join(
    study: Path,
    site: str,
    data: Path,
    key: Path,
    yes: bool,
    serve: bool,
    as_json: bool,
    html: Path | None,
    **given: Any,
) -> None:
    """Take part in a study with your rows.

    Every site runs the same program. The rows stay here; sealed shares or masked sums leave. If it
    is stopped, start it again in the same way: it goes on where it was.
    """
    with plain_errors(), plain_warnings():
        from securecomp.net import programs, study_file
        from securecomp.statistics.table_files import read_table

        if html is not None:
            check_page(html)
        own_page.check(given)
        transcripts.check(given["transcript"], serve)
        agreed = study_file.verify(study)
        if not as_json:
            for line in _summary(agreed):
                click.echo(line)
        without_pandas()
        frame = read_table(data, delimiter=given["delimiter"], decimal_comma=given["decimal_comma"])
        if not yes:
            click.confirm("Send this site's part of these totals?", abort=True, err=True)
        connection = net.connection(given)
        state = connection.state_file(study, site)
        with own_page.showing(given, site, agreed.name, state) as shown:
            watching = net.heard(None if shown is None else shown.watch)
            with programs.connected(study, site, key, connection, **watching) as member:
                transcripts.start(member, given["transcript"])
                if serve:
                    found = _stay(member, frame, state, as_json, shown)
                else:
                    with status("computing together"):
                        found = []
                        for question, result in programs.join(member, site, frame):
                            found.append((question, result))
                            if shown is not None:
                                shown.heard(question, result)
                        transcripts.finish(member, study, given["transcript"])
            if html is not None:
                from securecomp.cli.report_page import page

                write_page(html, page([result for _, result in found if result is not None]))
            if as_json:
                facts = {"study": agreed.digest.hex(), "results": answers.as_json(found)}
                click.echo(json.dumps(facts, allow_nan=False))
            elif not serve:
                answers.print_answers(found, site)


def _stay(
    member: Any, frame: Any, state: Path, quiet: bool, shown: "SitePage | None"
) -> list[tuple[Any, Any]]:
    """Run an agent until the analysts have no more questions; return what it heard."""
    from securecomp.net.questions import consent_files
    from securecomp.net.questions.site_agent import SiteAgent

    def person(number: int, analyst: str, question: Any, opened: Any) -> str:
        if shown is not None or not sys.stdin.isatty():
            net.note(f"question {number} waits: securecomp consent {state} {number} --allow")
            return consent_files.ask(state, number, analyst, question, opened)
        net.note(consent_files.wording(analyst, question, opened))
        if click.confirm("Take part?", err=True):
            return ""
        return str(click.prompt("Why not? (the analyst and all sites read it)", err=True))

    found: list[tuple[Any, Any]] = []

    def heard(question: Any, result: Any) -> None:
        found.append((question, result))
        if shown is not None:
            shown.heard(question, result)
        if not quiet:
            answers.print_answers([(question, result)], member.channel.name)

    log = state.with_name(f"{state.name}.log")
    net.note(f"answering; the log of questions is {log}")
    SiteAgent(member, frame, person, log, heard).run()
    return found


@click.command()
@click.argument("study", type=_PATH)
@click.option("--name", required=True, metavar="NAME", help="The server's name in the study.")
@click.option("--identity", "key", required=True, type=_PATH, metavar="FILE", help="Its key.")
@click.option("--paillier-key", type=_PATH, metavar="FILE", help="Private key of a key holder.")
@net.network
def server(study: Path, name: str, key: Path, paillier_key: Path | None, **given: Any) -> None:
    """Run a computing server of a study until its run is done.

    It knows no analysis: it adds what the sites announce, and cannot read what it adds.
    """
    with plain_errors():
        from securecomp.net import programs, sum_server
        from securecomp.protocol.storage import read_text

        private = None
        if paillier_key is not None:
            from securecomp.paillier.keys import PrivateKey

            private = PrivateKey.from_json(read_text(paillier_key))
        with programs.connected(study, name, key, net.connection(given), **net.heard()) as member:
            sum_server.serve(member, private)
    net.note(f"{name}: all sites say that the run is done")


@click.command()
@click.argument("studies", nargs=-1, required=True, type=_PATH)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8443, show_default=True, help="Port to listen on.")
@click.option("--store", type=_PATH, default=Path("relay.db"), show_default=True, help="Queues.")
@click.option("--tls-cert", type=_PATH, metavar="FILE", help="Certificate; by default no TLS.")
@click.option("--tls-key", type=_PATH, metavar="FILE", help="The certificate's key.")
@click.option(
    "--page-token",
    type=_PATH,
    metavar="FILE",
    help="Serve a page to who knows this file's token; it is drawn if there is no file.",
)
def relay(
    studies: tuple[Path, ...],
    host: str,
    port: int,
    store: Path,
    tls_cert: Path | None,
    tls_key: Path | None,
    page_token: Path | None,
) -> None:
    """Store and forward the sealed messages of STUDIES.

    STUDIES are study files, or what `securecomp study parties` wrote of them. The relay learns who
    sends, when and how many bytes. It cannot read a message.
    """
    with plain_errors():
        import uvicorn

        from securecomp.net import parties
        from securecomp.net.relay import Relay

        token = None
        if page_token is not None:
            from securecomp.net.pages.page_guard import token_file

            token = token_file(page_token)
            scheme = "http" if tls_cert is None else "https"
            net.note(f"page: {scheme}://{host}:{port}/page, with the token in {page_token}")
        app = Relay([parties.served(path) for path in studies], store, token).app()
        uvicorn.run(
            app,
            host=host,
            port=port,
            log_level="warning",
            timeout_keep_alive=60,
            timeout_graceful_shutdown=1,  # who waits for messages asks again
            ssl_certfile=None if tls_cert is None else str(tls_cert),
            ssl_keyfile=None if tls_key is None else str(tls_key),
        )


@click.command()
@click.argument("study", type=_PATH)
@click.argument("files", nargs=-1, required=True, type=_PATH)
def simulate(study: Path, files: tuple[Path, ...]) -> None:
    """Run STUDY on this machine: relay, servers and a site for each FILE, as processes.

    Each site is named as its file. The keys are drawn afresh; the results come as JSON.
    """
    with plain_errors(), status("computing"):
        from securecomp.net.simulation import simulate as run
        from securecomp.statistics.table_files import name_sites

        answer = run(study, name_sites(files))
    click.echo(answer, nl=False)
