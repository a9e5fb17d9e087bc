"""A relay's file, logs and memory: nothing of the rows, the columns, the totals or the keys."""

import contextlib
import sqlite3
import struct
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from consortium import SITES, Consortium

from securecomp.cli.main import main
from securecomp.errors import ParameterError
from securecomp.net import parties, simulation, study_file
from securecomp.net.network_carrier import NetworkCarrier
from securecomp.protocol import identity as identity_

PLANTED = 9_876_543_217
COLUMNS = f"""
[columns.plantedcolumn]
bound = {PLANTED}
decimals = 0
[columns.plantedage]
bound = 120
decimals = 1
[columns.planteddied]
bound = 1
decimals = 0
[columns.plantedward]
levels = ["plantedlevel", "surgical"]
"""
ASKED = """
[[analyses]]
ask = "mean"
column = "plantedcolumn"
by = "plantedward"
[[analyses]]
ask = "glm"
formula = "planteddied ~ plantedage"
"""


def planted_rows(site, size=40):
    rng = np.random.default_rng(len(site))
    return pd.DataFrame(
        {
            "plantedcolumn": np.full(size, PLANTED),
            "plantedage": rng.integers(200, 1000, size) / 10,
            "planteddied": rng.integers(0, 2, size),
            "plantedward": ["plantedlevel", "surgical"] * (size // 2),
        }
    )


def memory(pid):
    """What a process has written into its memory."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            place, rights, *_ = line.split()
            if "w" in rights:
                first, last = (int(end, 16) for end in place.split("-"))
                mem.seek(first)
                with contextlib.suppress(OSError):
                    found.append(mem.read(last - first))
    return b"".join(found)


def opened_bodies(monkeypatch):
    """Return a list of what is sealed from now on: shares, masked numbers, layouts, totals."""
    bodies, seal = [], identity_.seal

    def noted(identity, session, header, body, *more):
        bodies.append(bytes(body.data))
        return seal(identity, session, header, body, *more)

    monkeypatch.setattr(identity_, "seal", noted)
    return bodies


def samples(bodies, public):
    """The middle of each sealed body, unless it is public or says too little to be looked for."""
    middles = {body[(len(body) - 16) // 2 :][:16] for body in bodies if len(body) >= 16}
    return {word for word in middles if len(set(word)) > 8 and word not in public}


def secrets(consortium, found, agreed):
    """All that a relay must not see, in the forms that it would have."""
    words = {b"plantedcolumn", b"plantedward", b"planteddied", b"plantedage", b"plantedlevel"}
    total = PLANTED * sum(len(planted_rows(site)) for site in SITES) // 2  # of one ward
    for number in (PLANTED, total):
        words |= {str(number).encode(), *(number.to_bytes(8, end) for end in ("little", "big"))}
        words.add(struct.pack("<d", number))
    coordinates = {v for values in agreed for v in np.ravel(values).tolist() if v % 1}
    assert len(coordinates) >= 2
    words |= {struct.pack(form, v) for v in coordinates for form in ("<d", ">d")}
    words |= {consortium.key(name).export() for name in (*SITES, *consortium.servers)}
    assert all(not isinstance(one, BaseException) for one in found.values()), found
    return words


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["masking", "sharing"])
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no /proc here")
def test_a_relay_s_file_logs_and_memory_have_nothing_that_was_planted(
    protocol, tmp_path, monkeypatch
):
    consortium = Consortium(tmp_path, ASKED, protocol, SITES, columns=COLUMNS)
    bodies = opened_bodies(monkeypatch)
    listing, store = tmp_path / "relay.toml", tmp_path / "relay.db"
    told = CliRunner().invoke(main, ["study", "parties", str(consortium.path), str(listing)])
    assert told.exit_code == 0, told.output
    agreed, agree = [], NetworkCarrier.agree

    def noted(self, what, values, tolerance):
        agreed.append(agree(self, what, values, tolerance))
        return agreed[-1]

    monkeypatch.setattr(NetworkCarrier, "agree", noted)
    command = [
        sys.executable, "-m", "securecomp", "relay", str(listing),
        "--store", str(store), "--port", str(consortium.port),
    ]  # fmt: skip
    with simulation.started(command, tmp_path / "relay.out") as process:
        wait_for(f"{consortium.url}/health", process)
        found = consortium.run({site: planted_rows(site) for site in SITES})
        try:
            seen = {"memory": memory(process.pid)}
        except PermissionError:
            pytest.skip("nobody here may read a process's memory")
    for file in tmp_path.glob("relay.*"):
        seen[file.name] = file.read_bytes()
    study = study_file.read(consortium.path)
    sealed = samples(bodies, b"".join([study.digest, *study.keys.values()]))
    assert len(sealed) > len(bodies) // 3 > 10
    for word in secrets(consortium, found, agreed) | sealed:
        assert [place for place, data in seen.items() if word in data] == [], word
    # What is looked for would be found.
    for name in SITES:
        assert consortium.key(name).public in seen["memory"]
    (tag,) = sqlite3.connect(store).execute("SELECT tag FROM messages LIMIT 1").fetchone()
    assert tag.encode() in seen["relay.db"] + seen.get("relay.db-wal", b"")
    assert tag.encode() in seen["memory"]


def wait_for(url, process):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310
            return
        time.sleep(0.1)
    raise AssertionError("the relay does not answer")


def test_a_relay_serves_the_parties_of_a_study_as_the_study(tmp_path):
    consortium = Consortium(tmp_path, ASKED, sites=SITES, columns=COLUMNS, analysts=("é a",))
    study, listing = study_file.read(consortium.path), tmp_path / "relay.toml"
    listing.write_text(parties.listing(study))
    agreed, whole = parties.served(listing), parties.served(consortium.path)
    assert (agreed.id, agreed.keys) == (whole.id, whole.keys) == (study.id, study.keys)
    with pytest.raises(ParameterError, match="digest"):  # nobody computes by it
        study_file.read(listing)
    listing.write_text(listing.read_text().replace(study.digest.hex(), "ab"))
    with pytest.raises(ParameterError, match="securecomp study parties writes this file"):
        parties.served(listing)
