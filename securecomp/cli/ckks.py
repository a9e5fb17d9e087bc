"""`securecomp ckks`: predictions on rows that the server cannot read, over files."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from securecomp.cli import option_values as values
from securecomp.show.console import plain_errors, progress_bar, status

if TYPE_CHECKING:
    from securecomp.ckks import InferenceClient, LogisticModel

_PATH = click.Path(path_type=Path)
_CHUNK = 1 << 14  # rows of one message, so that a bar can move


@click.group(name="ckks")
def ckks() -> None:
    """Predict with a logistic regression on encrypted rows.

    \b
    The model's side:  securecomp ckks publish model.json risk
    The rows' side:    securecomp ckks keygen risk.offer north
                       securecomp ckks encrypt north.key patients.csv -o request.enc
    The model's side:  securecomp ckks predict risk.server model.json north.pub request.enc
                                               -o answer.enc
    The rows' side:    securecomp ckks decrypt north.key request.enc answer.enc -o risks.csv

    model.json comes from Python:  LogisticModel.from_sklearn(fitted).to_json()
                               or  study.glm(...).logistic_model().to_json()
    """  # noqa: D301 - the escape is click's mark for "do not fold"


def _planning(command: Any) -> Any:
    """Add the options that a plan takes."""
    for option in (
        click.option("--domain", type=float, help="Largest logit of the server's polynomial."),
        click.option(
            "--degree", type=int, help="Degree of the server's polynomial; by default as needed."
        ),
        click.option(
            "--activation",
            type=click.Choice(["client", "server"]),
            default="client",
            show_default=True,
            help="Side that turns logits into probabilities.",
        ),
        click.option(
            "--backend",
            type=click.Choice(["seal", "native"]),
            help="Code that computes on ciphertexts. By default SEAL, where it can do it.",
        ),
        click.option("--max-rows", type=int, help="Most rows that one client may ask for."),
        click.option(
            "--shareable-rows",
            default=0,
            show_default=True,
            help="Rows with results that may be given to anybody.",
        ),
        click.option("--protect-model", is_flag=True, help="Hide all of the model but the logits."),
        click.option(
            "--precision",
            type=float,
            help="Largest error: of a logit (1e-4), or of the server's probabilities (0.01).",
        ),
    ):
        command = option(command)
    return command


def _model(path: Path) -> "LogisticModel":
    from securecomp.ckks import LogisticModel

    return LogisticModel.read(path)


@ckks.command()
@click.argument("model", type=_PATH)
@_planning
def plan(model: Path, activation: Literal["client", "server"], **options: Any) -> None:
    """Print a plan for MODEL and write nothing."""
    with plain_errors():
        from securecomp.ckks import plan as choose

        click.echo(str(choose(_model(model), activation=activation, **options)))


@ckks.command()
@click.argument("model", type=_PATH)
@click.argument("name", type=_PATH)
@_planning
def publish(
    model: Path, name: Path, activation: Literal["client", "server"], **options: Any
) -> None:
    """Plan for MODEL: write NAME.server, which is secret, and NAME.offer for the clients.

    The folder NAME.server.ledger keeps a log of the answers. Every published offer has its own, and
    so its own budget of rows for each client.
    """
    with plain_errors():
        from securecomp.ckks import FileRequestLog, InferenceServer
        from securecomp.errors import ParameterError
        from securecomp.protocol.storage import check_output, write_new

        secret, public = values.key_files(name, "server", "offer")
        ledger = _ledger(secret)
        check_output(secret, [model])
        with status("planning"):
            server = InferenceServer.create(
                _model(model), name.name, activation=activation, **options
            )
        for path in (secret, public, ledger):
            if os.path.lexists(path):
                raise ParameterError(f"{path}: cannot be written: File exists")
        FileRequestLog(ledger)
        write_new(secret, server.to_json(), 0o600)
        write_new(public, server.offer.to_json(), 0o644)
    click.echo(str(server.offer.plan))
    click.echo(f"{secret}: keep it secret; its holder can answer in the server's name")
    click.echo(f"{ledger}: keep it beside; it counts the rows that each client of this offer gets")
    click.echo(f"{public}: hand it out; fingerprint {server.offer.fingerprint}, compare by phone")


def _ledger(server: Path) -> Path:
    """Return the folder of a server file's log; a link to the file leads to the same folder."""
    real = Path(os.path.realpath(server))
    return real.with_name(f"{real.name}.ledger")


@ckks.command()
@click.argument("offer", type=_PATH)
@click.argument("name", type=_PATH)
def keygen(offer: Path, name: Path) -> None:
    """Draw a client's keys for an OFFER: NAME.key, which is secret, and NAME.pub for the server."""
    with plain_errors():
        from securecomp.ckks import InferenceClient, Offer
        from securecomp.errors import DecodeError, ParameterError
        from securecomp.protocol.storage import read_text, write_new, write_output

        secret, public = values.key_files(name, "key", "pub")
        try:
            found = Offer.from_json(read_text(offer))
        except DecodeError as error:
            raise DecodeError(f"{offer}: {error}") from None
        if public.exists():
            raise ParameterError(f"{public}: cannot be written: File exists")
        with status("drawing keys"):
            client = InferenceClient.create(found, name.name)
        write_new(secret, client.to_json(), 0o600)
        write_output(public, client.registration.encode(), [offer])
    click.echo(str(found.plan))
    click.echo(f"the offer of {found.server!r}: fingerprint {found.fingerprint}, compare by phone")
    click.echo(f"{secret}: keep it secret; its holder can read every row and prediction")
    click.echo(
        f"{public}: for the server; fingerprint {client.registration.fingerprint}, compare by phone"
    )


def _client(path: Path) -> "InferenceClient":
    from securecomp.ckks import InferenceClient
    from securecomp.errors import SecureCompError
    from securecomp.protocol.storage import read_text

    try:
        return InferenceClient.from_json(read_text(path))
    except (SecureCompError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None


@ckks.command()
@click.argument("key", type=_PATH)
@click.argument("table", type=_PATH)
@click.option("-o", "--output", required=True, type=_PATH, help="Request to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def encrypt(key: Path, table: Path, output: Path, as_json: bool) -> None:
    """Encrypt the rows of a CSV or Parquet TABLE. Columns that are no features stay here."""
    with plain_errors(), progress_bar("encrypting") as progress:
        from securecomp.ckks import inference_files
        from securecomp.ckks.inputs import check_count, rows
        from securecomp.errors import ParameterError, RangeError
        from securecomp.protocol.storage import write_output
        from securecomp.statistics.table_files import read_table

        client = _client(key)
        whole = read_table(table)
        size = min(_CHUNK, client.offer.plan.rows_per_request)
        starts = range(0, max(whole.num_rows, 1), size)
        try:
            check_count(whole.num_rows, client.offer.plan)
            for start in starts:  # all of the table is checked before any of it is encrypted
                rows(whole.slice(start, size), client.offer.plan, start + 1)
        except (ParameterError, RangeError) as error:
            raise type(error)(f"{table}: {error}") from None
        messages = []
        for start in starts:
            messages.append(client.encrypt(whole.slice(start, size)))
            progress(min(start + size, whole.num_rows), whole.num_rows)
        data = inference_files.join(messages)
        write_output(output, data, [key, table])
    _say(as_json, output, rows=whole.num_rows, bytes=len(data))


def _say(as_json: bool, output: Path, **facts: int) -> None:
    if as_json:
        click.echo(json.dumps({"output": str(output), **facts}))
        return
    click.echo(f"{output}: " + ", ".join(f"{value:,} {what}" for what, value in facts.items()))


@ckks.command()
@click.argument("server", type=_PATH)
@click.argument("model", type=_PATH)
@click.argument("client", type=_PATH)
@click.argument("request", type=_PATH)
@click.option("-o", "--output", required=True, type=_PATH, help="Answer to write.")
@click.option("--workers", default=1, show_default=True, help="Threads.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def predict(
    server: Path,
    model: Path,
    client: Path,
    request: Path,
    output: Path,
    workers: int,
    as_json: bool,
) -> None:
    """Answer a REQUEST of a CLIENT (its .pub file) with the MODEL, as the SERVER.

    The folder beside the SERVER file, which `publish` made, keeps a log of the answers. Rows count
    once they are answered, even if the answer is then lost because the process is killed or the
    disk is full.
    """
    with plain_errors(), progress_bar("predicting") as progress:
        from securecomp.ckks import FileRequestLog, InferenceServer, inference_files
        from securecomp.errors import ParameterError, SecureCompError
        from securecomp.protocol.storage import check_output, read_bytes, read_text, write_output

        check_output(output, [server, model, client, request])  # before rows are spent
        text = read_text(server)
        try:
            ledger = FileRequestLog(_ledger(server), create=False)
        except ParameterError as error:
            raise ParameterError(
                f"{error}; bring back what `publish` made beside {server}, or publish a new offer"
            ) from None
        role = InferenceServer.from_json(text, _model(model), ledger=ledger, workers=workers)
        try:
            name = role.register(read_bytes(client))
        except (SecureCompError, ValueError) as error:
            raise click.ClickException(f"{client}: {error}") from None
        messages = inference_files.split(read_bytes(request), str(request))
        role.check(messages)  # all of them, before rows are spent for one
        answers = []
        for done, message in enumerate(messages):
            answers.append(role.predict(message))
            progress(done + 1, len(messages))
        data = inference_files.join(answers)
        write_output(output, data, [server, model, client, request])
    _say(as_json, output, bytes=len(data))
    if not as_json:
        click.echo(f"for {name}, whose registration has the fingerprint {role.fingerprint(name)}")


@ckks.command()
@click.argument("key", type=_PATH)
@click.argument("request", type=_PATH)
@click.argument("answer", type=_PATH)
@click.option(
    "--table", type=_PATH, help="The encrypted table in the clear, to precede the results."
)
@click.option("-o", "--output", required=True, type=_PATH, help="CSV file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def decrypt(
    key: Path, request: Path, answer: Path, table: Path | None, output: Path, as_json: bool
) -> None:
    """Read the ANSWER to a REQUEST."""
    with plain_errors(), progress_bar("decrypting") as progress:
        from securecomp.ckks import inference_files
        from securecomp.errors import ParameterError
        from securecomp.protocol.storage import read_bytes, write_output
        from securecomp.statistics.table_files import read_table

        client = _client(key)
        requests = inference_files.split(read_bytes(request), str(request))
        answers = inference_files.split(read_bytes(answer), str(answer))
        if len(requests) != len(answers):
            raise ParameterError(f"{answer}: answers another request than {request}")
        parts, count = [], 0
        for done, (asked, got) in enumerate(zip(requests, answers, strict=True)):
            parts.append(client.decrypt(got, asked, count + 1))
            count += len(parts[-1].values)
            progress(done + 1, len(answers))
        header: list[str] = []
        cells: Any = ()
        if table is not None:
            before = read_table(table)
            if before.num_rows != count:
                raise ParameterError(f"{table}: has {before.num_rows} rows, the answer {count}")
            header = before.column_names
            cells = zip(*(column.to_pylist() for column in before.columns), strict=True)
        decimals = client.offer.plan.decimals
        text = inference_files.format_csv(header, cells, parts, decimals)
        inputs = [path for path in (key, request, answer, table) if path is not None]
        write_output(output, text.encode(), inputs)
    outside = sum(int(part.outside.sum()) for part in parts)
    more = {"rows outside the polynomial, finished here": outside} if outside else {}
    _say(as_json, output, rows=count, **more)
