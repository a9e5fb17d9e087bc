"""A site's process that is stopped in the middle, as a suspended machine is, and wakes later."""

import json
import os
import signal
import threading
import time

import pytest
from consortium import SITES, Consortium, rows
from test_over_a_network import ONE, documents, in_one_process

from securecomp.net import simulation
from securecomp.net.relay_store import RelayStore

ASKED = ONE + '[[analyses]]\nask = "count"\nby = "ward"\n'
VICTIM = "west"


class Stall:
    """Stops a process at its first message for a sum, and wakes it later."""

    def __init__(self, monkeypatch):
        self.process, self.stopped = None, threading.Event()
        put = RelayStore.put

        def noted(store, study, sender, posts):
            put(store, study, sender, posts)
            if sender == VICTIM and any("nonces" not in tag for _, tag, _ in posts):
                self.stop()

        monkeypatch.setattr(RelayStore, "put", noted)

    def stop(self):
        if not self.stopped.is_set():
            os.kill(self.process.pid, signal.SIGSTOP)
            self.stopped.set()

    def wake(self):
        os.kill(self.process.pid, signal.SIGCONT)


def run(consortium, stall, meanwhile):
    """Run the victim as a process, and all others in threads; return all results.

    While the victim stands still, `meanwhile` is called with the sites that are done.
    """
    folder = consortium.folder
    identity, data = (folder / f"{VICTIM}.{end}" for end in ("identity", "csv"))
    rows(VICTIM).to_csv(data, index=False)
    out, done = folder / "victim.out", []
    command = simulation.join_command(
        consortium.path, VICTIM, data, identity, consortium.url, "--json"
    )

    def site(name, frame, run):
        if name != VICTIM:
            found = consortium.site(name, frame, run)
            done.append(name)
            return documents(found)
        with simulation.started(command, out) as stall.process:
            try:
                assert stall.stopped.wait(60)
                meanwhile(done)
            finally:
                stall.wake()
            code = stall.process.wait(60)
        assert code == 0, out.with_name("victim.out.errors").read_text()
        return {one["ask"]: one["result"] for one in json.loads(out.read_text())["results"]}

    with consortium.relay():
        return consortium.run(site=site)


@pytest.mark.slow
def test_all_wait_for_a_site_that_stalls_and_go_on_when_it_wakes(tmp_path, monkeypatch):
    consortium = Consortium(tmp_path, ASKED, "sharing")

    def meanwhile(done):
        time.sleep(1)
        assert done == []

    found = run(consortium, Stall(monkeypatch), meanwhile)
    want = json.loads(json.dumps(documents(in_one_process(consortium.path))))
    assert {site: json.loads(json.dumps(found[site])) for site in SITES} == dict.fromkeys(
        SITES, want
    )
    assert all(found[name] is None for name in consortium.servers)


@pytest.mark.slow
def test_masking_goes_on_without_a_site_that_stalls_which_wakes_to_the_same_result(
    tmp_path, monkeypatch
):
    """It stands still before it has sent its numbers: the others' sums are without them."""
    sites = ("east", *SITES)
    consortium = Consortium(tmp_path, ASKED, "masking", sites, "answer_within = 3\n")

    def meanwhile(done):
        end = time.monotonic() + 90
        while len(done) < 3 and time.monotonic() < end:
            time.sleep(0.1)
        assert sorted(done) == sorted(set(sites) - {VICTIM})

    found = run(consortium, Stall(monkeypatch), meanwhile)
    stayed = documents(in_one_process(consortium.path, [s for s in sites if s != VICTIM]))
    want = json.loads(json.dumps(stayed))
    assert {site: json.loads(json.dumps(found[site])) for site in sites} == dict.fromkeys(
        sites, want
    )
    assert found["server"] is None
