"""A whole consortium on one machine: relay, servers and sites, each a process of its own."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from securecomp.errors import ParameterError, ProtocolError
from securecomp.net import identity_file, key_texts, parties, study_codebook, study_file
from securecomp.net.programs import Connection
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.paillier.keys import PrivateKey
from securecomp.privacy.ledger import Ledger
from securecomp.protocol import storage
from securecomp.protocol import sum_protocols as sums

_STUDY_TABLE = re.compile(r"^\[study\][ \t]*(#.*)?$", re.MULTILINE)
_PUBLIC_KEY = re.compile(
    r"""^[ \t]*paillier_public[ \t]*=[ \t]*"""
    r"""('{3}.*?'{3}|"{3}.*?"{3}|'[^'\n]*'|"(\\.|[^"\\\n])*")[^\n]*$""",
    re.MULTILINE | re.DOTALL,
)
_STARTS = 60.0  # seconds for a relay to answer


def prepare(
    folder: Path,
    text: str,
    sites: Sequence[str],
    servers: Sequence[str],
    analysts: Sequence[str] = (),
) -> Path:
    """Draw keys, write the study file with them, and have all sites sign it.

    Args:
        folder: Where the keys and the study file go.
        text: The study file without its tables of parties.
        sites: Names of the sites.
        servers: Names of the servers.
        analysts: Names of the analysts.

    Returns:
        The study file.
    """
    everybody = (*sites, *servers, *analysts)
    keys = {name: identity_file.create(folder / f"{name}.identity") for name in everybody}
    tables = ""
    for what, names in (("sites", sites), ("servers", servers), ("analysts", analysts)):
        tables += f"\n[{what}]\n"
        for name in names:
            tables += f'"{name}" = "{key_texts.to_text(keys[name].public)}"\n'
    path = folder / "study.toml"
    path.write_text(tables + "\n" + text, encoding="utf-8")
    for name in sites:
        study_file.sign(path, name, keys[name])
    return path


@contextlib.contextmanager
def relay(study: Path, store: Path, port: int = 0) -> Iterator[str]:
    """Run a relay in a process of its own on this machine; give its URL."""
    port = port or _free_port()
    command = [
        sys.executable, "-m", "securecomp", "relay", str(study),
        "--store", str(store), "--port", str(port),
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    out = store.with_name(f"{store.name}.out")
    with started(command, out) as process:
        end = time.monotonic() + _STARTS
        while True:
            if process.poll() is not None or time.monotonic() > end:
                words = out.with_name(f"{out.name}.errors").read_text(encoding="utf-8").strip()
                raise ProtocolError(f"the relay did not start: {words or 'it does not answer'}")
            with (
                contextlib.suppress(OSError, urllib.error.URLError),
                urllib.request.urlopen(f"{url}/health", timeout=5) as answer,  # noqa: S310
            ):
                if answer.status == 200:
                    break
            time.sleep(0.05)
        yield url


@contextlib.contextmanager
def started(command: Sequence[str], out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process while the block runs; it is ended with the block.

    Args:
        command: Program and arguments.
        out: File of what it prints; its errors go to the same name with ".errors".
    """
    errors = out.with_name(f"{out.name}.errors")
    with out.open("wb") as printed, errors.open("wb") as complaints:
        process = subprocess.Popen(  # noqa: S603 - our own commands
            command, stdout=printed, stderr=complaints
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def join_command(
    study: Path, site: str, data: Path, identity: Path, url: str, *more: str
) -> list[str]:
    """Return the command line of a site."""
    return [
        sys.executable, "-m", "securecomp", "join", str(study), "--site", site,
        "--data", str(data), "--identity", str(identity), "--relay", url, "--yes", *more,
    ]  # fmt: skip


def server_command(study: Path, name: str, identity: Path, url: str, *more: str) -> list[str]:
    """Return the command line of a server."""
    return [
        sys.executable, "-m", "securecomp", "server", str(study), "--name", name,
        "--identity", str(identity), "--relay", url, *more,
    ]  # fmt: skip


def simulate(template: Path, data: Mapping[str, Path]) -> str:
    """Run a study on files of this machine, every party in a process of its own.

    Args:
        template: A study file; its keys do not matter, and it need not have any.
        data: Each site's name and file of rows.

    Returns:
        The results as JSON, as the first site has them.

    Raises:
        ProtocolError: A party failed; its words are in the error.
    """
    text, servers, paillier = _without_parties(template)
    if len(data) < 2:
        raise ParameterError("a study has at least two sites; give two files or more")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="securecomp-")))
        more: dict[str, list[str]] = {}
        if paillier:
            text, key_file = _with_paillier_key(text, folder)
            more[Paillier.key_holder] = ["--paillier-key", str(key_file)]
        _copy_codebook(template, text, folder)
        study = prepare(folder, text, list(data), servers)
        _create_ledgers(study, list(data))
        url = stack.enter_context(relay(study, folder / "relay.db"))
        commands = {
            name: server_command(study, name, folder / f"{name}.identity", url, *more.get(name, ()))
            for name in servers
        } | {
            site: join_command(study, site, file, folder / f"{site}.identity", url, "--json")
            for site, file in data.items()
        }
        running = {
            name: stack.enter_context(started(command, folder / f"{name}.out"))
            for name, command in commands.items()
        }
        _finish(running, folder)
        return (folder / f"{next(iter(data))}.out").read_text(encoding="utf-8")


def _finish(running: Mapping[str, subprocess.Popen[bytes]], folder: Path) -> None:
    """Wait for all processes. The first that fails ends it: the others would wait for it long.

    Raises:
        ProtocolError: One failed; its words are in the error.
    """
    while any(process.poll() is None for process in running.values()):
        failed = [name for name, process in running.items() if process.poll()]
        if failed:
            break
        time.sleep(0.05)
    said = {
        name: (folder / f"{name}.out.errors").read_text(encoding="utf-8", errors="replace").strip()
        for name, process in running.items()
        if process.poll()
    }
    # Who was stopped by another says so; the other says why.
    causes = [name for name, words in said.items() if "has stopped" not in words]
    if said:
        name = [*causes, *said][0]
        words = said[name].removeprefix("error: ") or "ended without a word"
        raise ProtocolError(f"{name}: {words}")


def _with_paillier_key(text: str, folder: Path) -> tuple[str, Path]:
    """Draw a key pair; return the study's text with the public half, and the private half's file.

    Raises:
        ParameterError: The key that the text has is not where it can be replaced.
    """
    private = PrivateKey.generate(Paillier().bits)
    path = folder / "paillier.key"
    storage.write_new(path, private.to_json(), 0o600)
    line = f"paillier_public = {json.dumps(private.public.to_json())}"
    if "paillier_public" in tomllib.loads(text)["study"]:
        new, number = _PUBLIC_KEY.subn(lambda _: line, text)
    else:
        new, number = _STUDY_TABLE.subn(lambda found: f"{found[0]}\n{line}", text)
    wanted = tomllib.loads(text)
    wanted["study"]["paillier_public"] = private.public.to_json()
    if number != 1 or tomllib.loads(new) != wanted:
        raise ParameterError(
            "a simulation puts a public key into the study file: write [study] and "
            "paillier_public each on a line of its own"
        )
    return new, path


def _copy_codebook(template: Path, text: str, folder: Path) -> None:
    """Lay the codebook beside the simulated study file, if there is one.

    Raises:
        ParameterError: It is not the one that the study names.
    """
    study = parties.table(tomllib.loads(text), "study")
    codebook = study_codebook.named(study, template.parent)
    if codebook is not None:
        codebook.read()
        (folder / codebook.path.name).write_bytes(storage.read_bytes(codebook.path))


def _create_ledgers(study: Path, sites: Sequence[str]) -> None:
    """Give every simulated site a budget that covers one run, if the study has noise."""
    privacy = study_file.read(study).privacy
    if privacy is None:
        return
    cost = privacy.cost
    for site in sites:
        ledger = Connection("").ledger_file(study, site)
        Ledger.create(ledger, site, cost.epsilon, cost.delta, privacy.neighbours)


def _without_parties(path: Path) -> tuple[str, list[str], bool]:
    """Return a study file's text without its parties, the servers' names, whether by Paillier."""
    text = path.read_text(encoding="utf-8")
    try:
        facts = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path}: not a study file: {error}") from None
    protocol = facts.get("study", {}).get("protocol", "sharing")
    scheme = sums.protocol(protocol)
    named = list(facts.get("servers", ()))
    if not named and isinstance(scheme, sums.PlayedSum):
        named = list(scheme.server_names())
    kept, keep = [], True
    for line in text.splitlines():
        if line.strip().startswith("["):
            keep = line.strip() not in ("[sites]", "[servers]")
        if keep:
            kept.append(line)
    return "\n".join(kept) + "\n", named, protocol == Paillier.name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
