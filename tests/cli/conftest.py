"""Files in a folder of their own, and the command run on them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from securecomp.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder is empty, so that paths in messages are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder):
    """`write(name, content)` writes a file and returns its name."""

    def write(name, content):
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return write


@pytest.fixture
def run():
    """`run("stats", ...)` runs the command in this process."""

    def run(*arguments):
        result = CliRunner().invoke(main, list(arguments), prog_name="securecomp")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def stats(run):
    """`stats(...)` is the object that `securecomp stats ... --json` prints, small cells too."""

    def stats(*arguments):
        result = run("stats", *arguments, "--json", "--min-count", "0")
        assert (result.exit_code, result.stderr) == (0, "")
        return json.loads(result.stdout)

    return stats


@pytest.fixture
def made(monkeypatch):
    """The names of the parties that made a message, in order."""
    from securecomp.sharing import Contributor, Server

    names = []

    def spied(make):
        def spy(role, *args):
            names.append(role.name)
            return make(role, *args)

        return spy

    for role, method in ((Contributor, "contribute"), (Server, "publish")):
        monkeypatch.setattr(role, method, spied(getattr(role, method)))
    return names
