"""A disk that is really full, a tmpfs of two megabytes: at the relay, and at a site."""

import contextlib
import shutil
import subprocess
import threading
import time

import pytest
from consortium import Consortium, rows
from test_hospital_networks import SITES
from test_over_a_network import ONE, documents, in_one_process

from securecomp.net import programs
from securecomp.net.relay_client import RelayClient
from securecomp.net.relay_store import RelayStore
from securecomp.net.site_state import StateError

TWO = ONE + '[[analyses]]\nask = "variance"\ncolumn = "age"\n'


@pytest.fixture
def disk(tmp_path):
    """A folder with a disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    command = [mount, "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True).returncode:  # noqa: S603
        pytest.skip("nobody here may mount a disk")
    yield folder
    subprocess.run([umount, "-l", str(folder)], check=True)  # noqa: S603


def fill(folder):
    """Leave no byte; return the file to delete."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


def test_a_relay_says_that_its_disk_is_full_until_there_is_room(disk, tmp_path, monkeypatch):
    consortium = Consortium(tmp_path, TWO, sites=SITES)
    (tmp_path / "relay.db").symlink_to(disk / "relay.db")
    told, found = [], {}
    init = RelayClient.__init__
    monkeypatch.setattr(
        RelayClient, "__init__", lambda self, *a, **k: init(self, *a, **{**k, "note": told.append})
    )
    with consortium.relay():
        ballast = fill(disk)
        thread = threading.Thread(target=lambda: found.update(consortium.run()))
        thread.start()
        end = time.monotonic() + 60
        while time.monotonic() < end and not any("make room" in text for text in told):
            time.sleep(0.05)
        ballast.unlink()
        thread.join(60)
    words = "the relay's disk cannot be written: database or disk is full; its operator has to make"
    assert any(text.startswith(words) for text in told), told
    want = documents(in_one_process(consortium.path, SITES))
    assert {site: documents(found[site]) for site in SITES} == dict.fromkeys(SITES, want)


def test_messages_are_taken_from_a_full_disk_and_dropped_when_there_is_room(disk):
    store = RelayStore(disk / "relay.db")
    store.put("study/1", "north", [("south", "a", b"one"), ("south", "b", bytes(50_000))])
    (first, second) = store.take("study/1", "south", 0, 1 << 20)
    ballast = fill(disk)
    assert store.take("study/1", "south", first[0], 1 << 20) == [second]
    assert store.counts() == (2, 50_003)
    ballast.unlink()
    assert store.counts() == (1, 50_000)
    store.close()


def test_a_site_on_a_full_disk_says_so_and_goes_on_when_there_is_room(disk, tmp_path):
    consortium = Consortium(tmp_path, TWO, sites=SITES)
    connection = programs.Connection(consortium.url, state=disk / "south.state")
    errors = []

    def south():
        return programs.ConnectedParty(
            consortium.path, "south", consortium.key("south"), connection
        )

    def site(name, frame, run):
        if name != "south":
            return consortium.site(name, frame, run)
        member = south()
        asked = programs.join(member, name, rows(name))
        next(asked)
        ballast = fill(disk)
        with pytest.raises(StateError) as caught:
            list(asked)
        errors.append(str(caught.value))
        member.close()
        ballast.unlink()
        member = south()
        try:
            return {str(a): result for a, result in programs.join(member, name, rows(name))}
        finally:
            member.close()

    with consortium.relay():
        found = consortium.run(site=site)
    want = documents(in_one_process(consortium.path, SITES))
    assert {site: documents(found[site]) for site in SITES} == dict.fromkeys(SITES, want)
    (words,) = errors
    assert "south.state: the state cannot be written: " in words
    assert "full; make room, and start again" in words
