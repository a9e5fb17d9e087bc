"""A whole consortium on one machine: relay, servers and sites, each a process of its own."""

import contextlib
import os
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


def prepare(folder: Path, text: str, sites: Sequence[str], servers: Sequence[str]) -> Path:
    """Draw keys, write the study file with them, and have all sites sign it.

    Args:
        folder: Where the keys and the study file go.
        text: The study file without its tables of sites and servers.
        sites: Names of the sites.
        servers: Names of the servers.

    Returns:
        The study file.
    """
    keys = {name: identity_file.create(folder / f"{name}.identity") for name in (*sites, *servers)}
    tables = ""
    for what, names in (("sites", sites), ("servers", servers)):
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
    with started(command) as process:
        end = time.monotonic() + _STARTS
        while True:
            if process.poll() is not None or time.monotonic() > end:
                raise ProtocolError(f"the relay did not start: {_words(process)}")
            with (
                contextlib.suppress(OSError, urllib.error.URLError),
                urllib.request.urlopen(f"{url}/health", timeout=5) as answer,  # noqa: S310
            ):
                if answer.status == 200:
                    break
            time.sleep(0.05)
        yield url


@contextlib.contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a process while the block runs; it is ended with the block."""
    process = subprocess.Popen(  # noqa: S603 - our own commands
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


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
        others = [
            stack.enter_context(
                started(server_command(study, name, folder / f"{name}.identity", url))
            )
            for name in servers
        ]
        sites = [
            stack.enter_context(
                started(join_command(study, site, file, folder / f"{site}.identity", url, "--json"))
            )
            for site, file in data.items()
        ]
        answers = [process.communicate() for process in sites]
        for site, process, (_, words) in zip(data, sites, answers, strict=True):
            if process.returncode:
                raise ProtocolError(f"{site}: {words.strip() or 'ended without a word'}")
        for process in others:
            process.wait(60)
    return answers[0][0]


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


def _words(process: subprocess.Popen[str]) -> str:
    if process.poll() is None or process.stderr is None:
        return "it does not answer"
    return process.stderr.read().strip()
