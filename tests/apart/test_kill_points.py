"""Every role is killed before and after its transactions: the same result, and no other bytes.

Each point is killed once. By default every few of them; `-m slow` takes all.
"""

import hashlib
import json
import sqlite3
import threading
from collections import defaultdict

import pytest
from consortium import SITES, Consortium, Killed, described
from test_over_a_network import ONE, documents, in_one_process

from securecomp.errors import LocalProtocolError
from securecomp.net.relay_store import RelayStore
from securecomp.net.site_state import SiteState
from securecomp.paillier import PrivateKey

TWO = ONE + '[[analyses]]\nask = "count"\nby = "ward"\n'
PAIR = SITES[:2]  # masking needs three
ALL = 1
ROLES = [
    ("masking", "server", 6),
    ("sharing", "server 2", 6),
    ("paillier", "aggregator", 9),
    ("paillier", "key holder", 9),
]


class KilledListeningError(LocalProtocolError):
    """The same in a thread, which tells the main one."""


class Points:
    """Numbers what is new, and says at which of these to kill."""

    def __init__(self, every):
        self.every, self.seen, self.kills = every, set(), 0

    def kill_at(self, point):
        if point in self.seen:
            return False
        self.seen.add(point)
        if len(self.seen) % self.every != self.every // 2:
            return False
        self.kills += 1
        return True


@pytest.fixture
def sent(monkeypatch):
    """Digests of all messages that the relay was ever given, and how often, by place and tag."""
    put, given = RelayStore.put, defaultdict(list)

    def noted(self, study, sender, posts):
        for recipient, tag, body in posts:
            given[study, sender, recipient, tag].append(hashlib.sha256(body).digest())
        put(self, study, sender, posts)

    monkeypatch.setattr(RelayStore, "put", noted)
    return given


def check(consortium, found, sent, key=None):
    """The result is that of one process, and nothing went out with other bytes."""
    want = documents(in_one_process(consortium.path, consortium.sites, key=key))
    for site in consortium.sites:
        assert documents(found[site]) == want
    assert all(found[name] is None for name in consortium.servers)
    assert {len(set(digests)) for digests in sent.values()} == {1}


def killing(monkeypatch, victim, points):
    """Kill a party at its transactions, in whichever of its threads they are."""
    write = SiteState._write

    def counted(self, commands):
        commands = list(commands)
        if not commands or f".{victim}.1." not in self._path.name:
            write(self, commands)
            return
        what = described(commands)
        for after in (False, True):
            if after:
                write(self, commands)
            if points.kill_at((after, what)):
                self._db.close()  # and no thread of it does anything more
                listening = "_listen" in threading.current_thread().name
                raise (KilledListeningError("killed") if listening else Killed)

    monkeypatch.setattr(SiteState, "_write", counted)


def until_done(work, points):
    """Start a party again whenever it was killed."""
    while True:
        before = points.kills
        try:
            return work()
        except (Killed, LocalProtocolError, sqlite3.ProgrammingError):
            if points.kills == before:
                raise


def kill_a_role(protocol, victim, every, folder, monkeypatch, sent):
    key = PrivateKey.generate(2048) if protocol == "paillier" else None
    facts = f"paillier_public = {json.dumps(key.public.to_json())}\n" if key else ""
    consortium = Consortium(folder, TWO, protocol, SITES if protocol == "masking" else PAIR, facts)
    consortium.private = key
    points = Points(every)
    killing(monkeypatch, victim, points)

    def server(name, run):
        return until_done(lambda: consortium.server(name, run), points)

    with consortium.relay():
        found = consortium.run(server=server)
    check(consortium, found, sent, key)
    return points


@pytest.mark.parametrize(
    ("protocol", "victim", "every"),
    [*ROLES[:3], pytest.param(*ROLES[3], marks=pytest.mark.slow)],
)
def test_a_server_killed_at_some_transactions_goes_on(
    protocol, victim, every, tmp_path, monkeypatch, sent
):
    points = kill_a_role(protocol, victim, every, tmp_path, monkeypatch, sent)
    assert points.kills >= 2


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "victim"), [role[:2] for role in ROLES])
def test_a_server_killed_at_every_transaction_goes_on(
    protocol, victim, tmp_path, monkeypatch, sent
):
    points = kill_a_role(protocol, victim, ALL, tmp_path, monkeypatch, sent)
    assert points.kills == len(points.seen) > 20


def kill_the_relay(every, folder, monkeypatch, sent):
    """Before a batch, at each of its messages, before its answer; so too where messages are taken.

    What was not committed is gone, as is what the relay has in memory; the request is not answered.
    """
    consortium = Consortium(folder, TWO, sites=PAIR)
    points = Points(every)
    put, put_one, take = RelayStore.put, RelayStore._put, RelayStore.take

    def crash(store):
        lock = store._lock
        store._db.close()
        RelayStore.__init__(store, folder / "relay.db")
        store._lock = lock  # who waits for it goes on
        raise RuntimeError("the relay was killed")

    def at(store, *point):
        if points.kill_at(point):
            with store._lock:
                crash(store)

    def killed_put(self, study, sender, posts):
        what = tuple((recipient, tag) for recipient, tag, _ in posts)
        at(self, "put", sender, what)
        put(self, study, sender, posts)
        at(self, "stored", sender, what)

    def killed_put_one(self, study, sender, recipient, tag, body):
        put_one(self, study, sender, recipient, tag, body)
        if points.kill_at(("in", sender, recipient, tag)):
            crash(self)

    def killed_take(self, study, recipient, after, most):
        at(self, "take", recipient, after)
        found = take(self, study, recipient, after, most)
        at(self, "taken", recipient, after, len(found))
        return found

    monkeypatch.setattr(RelayStore, "put", killed_put)
    monkeypatch.setattr(RelayStore, "_put", killed_put_one)
    monkeypatch.setattr(RelayStore, "take", killed_take)
    with consortium.relay():
        found = consortium.run()
    check(consortium, found, sent)
    return points


def test_a_relay_killed_at_some_points_loses_nothing(tmp_path, monkeypatch, sent):
    points = kill_the_relay(12, tmp_path, monkeypatch, sent)
    assert points.kills >= 5


@pytest.mark.slow
def test_a_relay_killed_at_every_point_loses_nothing(tmp_path, monkeypatch, sent):
    points = kill_the_relay(ALL, tmp_path, monkeypatch, sent)
    assert points.kills == len(points.seen) > 100
    assert max(map(len, sent.values())) > 1  # some came again
