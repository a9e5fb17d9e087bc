"""A relay as in the container: another user, a read-only root, one volume, and no home."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from consortium import Consortium
from test_hospital_networks import ONE, SITES
from test_over_a_network import documents, in_one_process
from test_relay_sees_nothing import wait_for

import securecomp
from securecomp.net import parties, simulation, study_file

NOBODY = 65534
INSTALLED = Path(securecomp.__file__).parents[1].resolve()
TOOLS = [shutil.which(name) for name in ("unshare", "mount", "setpriv", "env")]


def enclosed(volume, command):
    """A command whose whole root is read-only but for a folder, run by nobody."""
    unshare, mount, setpriv, env = TOOLS
    steps = (
        f'set -e; {mount} --bind "$0" "$0"; {uncovered(mount)} {mount} -o remount,bind,ro /; '
        f'cd "$0"; exec {setpriv} --reuid {NOBODY} --regid {NOBODY} --clear-groups '
        f"--no-new-privs --bounding-set=-all {env} --unset HOME "
        f'PYTHONPATH={shlex.quote(str(INSTALLED))} "$@"'
    )
    return [unshare, "--mount", "sh", "-c", steps, str(volume), *command]


def uncovered(mount):
    """Steps that let nobody reach a Python in a home of root's, and nothing else there."""
    python = Path(sys.base_prefix).resolve()
    closed = [folder for folder in reversed(python.parents) if not folder.stat().st_mode & 1]
    if not closed:
        return ""
    cover, aside = shlex.quote(str(closed[0])), "/mnt"
    inside = shlex.quote(str(python))
    return (
        f"{mount} --bind {inside} {aside}; {mount} -t tmpfs -o mode=755 none {cover}; "
        f"mkdir -p {inside}; {mount} --bind {aside} {inside}; "
        f"{mount} -o remount,bind,ro {inside}; {mount} -o remount,bind,ro {aside}; "
        f"{mount} -o remount,ro {cover}; "
    )


@pytest.fixture
def volume():
    """A folder that is nobody's, where nobody can reach it."""
    if os.geteuid() or None in TOOLS:
        pytest.skip("only root may enclose a process")
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, NOBODY, NOBODY)
    probe = "touch inside && ! touch /outside 2>&- && ! touch /tmp/outside 2>&- && rm inside"
    tried = subprocess.run(  # noqa: S603 - our own command
        enclosed(folder, ["sh", "-c", f'{probe} && "$0" -c ""', sys.executable])
    )
    if tried.returncode:
        pytest.skip("nobody can be enclosed here, or cannot run this Python")
    yield folder
    shutil.rmtree(folder)


def test_a_relay_runs_on_a_read_only_root_as_another_user_without_a_home(volume, tmp_path):
    consortium = Consortium(tmp_path, ONE, sites=SITES)
    listing, store = volume / "relay.toml", volume / "relay.db"
    listing.write_text(parties.listing(study_file.read(consortium.path)))
    words = ["relay", str(listing), "--store", str(store), "--port", str(consortium.port)]
    command = enclosed(volume, [sys.executable, "-m", "securecomp", *words])
    with simulation.started(command, tmp_path / "relay.out") as process:
        wait_for(f"{consortium.url}/health", process)
        found = consortium.run()
        assert (tmp_path / "relay.out.errors").read_text() == ""
        held = {path.name: path.stat() for path in volume.glob("relay.db*")}
    want = documents(in_one_process(consortium.path, SITES))
    assert {site: documents(found[site]) for site in SITES} == dict.fromkeys(SITES, want)
    assert held["relay.db"].st_uid == NOBODY
    assert {stat.st_mode & 0o077 for stat in held.values()} == {0}  # nobody else reads them
