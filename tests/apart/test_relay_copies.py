"""The page on running a relay: its way to copy the queues while the relay runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from consortium import Consortium
from test_hospital_networks import ONE, SITES

from securecomp.net import study_file
from securecomp.net.relay_client import RelayClient

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "running-a-relay.md"


def test_a_relay_goes_on_from_a_copy_that_was_made_while_it_ran(tmp_path):
    (line,) = re.findall(r"^python3 (-c .*backup.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    consortium = Consortium(tmp_path, ONE, sites=SITES)
    study = study_file.read(consortium.path).id
    north, south = (
        RelayClient(consortium.url, study, name, consortium.key(name)) for name in SITES
    )
    with consortium.relay():
        north.post([("south", "first", b"one")])
        subprocess.run([sys.executable, *shlex.split(line)], cwd=tmp_path, check=True)  # noqa: S603
    for file in tmp_path.glob("relay.db*"):
        file.unlink()
    (tmp_path / "relay-copy.db").rename(tmp_path / "relay.db")
    with consortium.relay():
        north.post([("south", "first", b"one"), ("south", "second", b"two")])
        found = south.take(0, 0)
    assert [(tag, body) for _, _, tag, body in found] == [("first", b"one"), ("second", b"two")]
    north.close()
    south.close()
