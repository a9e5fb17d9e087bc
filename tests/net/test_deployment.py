"""Units and image of `deploy/`: they start what the package has, with rights for nothing else."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cases import each_case

from securecomp.cli.main import main

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = ("securecomp-relay.service", "securecomp-server.service")


def parsed(words):
    """Let a command read its options, and do nothing."""
    command = main.commands[words[0]]
    return command.make_context(words[0], list(words[1:]))


@each_case("unit", UNITS)
def test_a_unit_starts_a_command_that_there_is(unit):
    text = (DEPLOY / unit).read_text()
    program, *words = shlex.split(re.search("^ExecStart=(.*)$", text, re.MULTILINE)[1])
    assert program == "/opt/securecomp/bin/securecomp"
    assert parsed(words).params["study" if words[0] == "server" else "studies"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@each_case("unit", UNITS)
def test_systemd_finds_nothing_wrong_with_a_unit(unit, tmp_path):
    text = (DEPLOY / unit).read_text()
    place = tmp_path / unit
    place.write_text(text.replace("/opt/securecomp/bin/securecomp", sys.executable))
    found = subprocess.run(  # noqa: S603
        [shutil.which("systemd-analyze"), "verify", "--man=no", str(place)],
        capture_output=True,
        text=True,
    )
    about = [line for line in found.stderr.splitlines() if unit in line]
    assert not about, about


def test_the_image_runs_as_a_user_of_its_own_and_starts_a_relay():
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    names = [name for name, _ in steps]
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN")
    assert dict(steps)["USER"] == "relay"
    entry, words = (json.loads(dict(steps)[name]) for name in ("ENTRYPOINT", "CMD"))
    assert entry == ["securecomp"]
    assert parsed(words).params["host"] == "0.0.0.0"  # noqa: S104
    for name, value in steps:
        if name == "COPY":
            for source in value.split()[:-1]:
                assert (DEPLOY.parent / source).exists(), source
