"""A whole consortium on one machine: relay, servers and sites, each a process of its own."""

import contextlib
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
from securecomp.net import identity_file, key_texts, study_file
from securecomp.protocol import sum_protocols as sums

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
    parties = (*sites, *servers, *analysts)
    keys = {name: identity_file.create(folder / f"{name}.identity") for name in parties}
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
    text, servers = _without_parties(template)
    if len(data) < 2:
        raise ParameterError("a study has at least two sites; give two files or more")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="securecomp-")))
        study = prepare(folder, text, list(data), servers)
        url = stack.enter_context(relay(study, folder / "relay.db"))
        commands = {
            name: server_command(study, name, folder / f"{name}.identity", url) for name in servers
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


def _without_parties(path: Path) -> tuple[str, list[str]]:
    """Return a study file's text without its parties, and the servers' names."""
    text = path.read_text(encoding="utf-8")
    try:
        facts = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path}: not a study file: {error}") from None
    protocol = facts.get("study", {}).get("protocol", "sharing")
    if protocol == "paillier":  # its key would have to be drawn, and its public half agreed on
        raise ParameterError(f"{path}: a simulation runs sharing or masking")
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
    return "\n".join(kept) + "\n", named


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
