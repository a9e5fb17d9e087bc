"""Parties and relays that do not keep to the protocol, and failures that must not spread."""

import re
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each_case
from consortium import SITES, Consortium, rows
from msgspec import structs
from test_over_a_network import ONE, documents
from test_relay import ask

from securecomp.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from securecomp.net import programs, signed_requests, study_file, sum_server
from securecomp.net.post_office import PostOffice
from securecomp.net.relay_client import RelayClient
from securecomp.net.site_state import SESSION
from securecomp.net.study_messages import Announcement, Proposal
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Layout


def test_who_still_waits_in_one_run_takes_nothing_of_the_next(tmp_path):
    """One party is told of a new run while it is in the old one."""
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        slow = consortium.member("north", "1")
        south = consortium.member("south", "ü 2&after=9")
        south.office.put([("north", "t", b"of the new run")])
        south.close()
        object.__setattr__(slow.study, "patience", 2)
        with pytest.raises(RemoteProtocolError, match="nothing came"):
            slow.carrier.begin()
        assert slow.state.read == 0
        slow.close()
        later = consortium.member("north", "ü 2&after=9")
        try:
            assert later.office.wait(
                lambda: "south" in later.state.senders("t"),
                time.monotonic() + 10,
            )
            assert later.state.message("south", "t") == b"of the new run"
        finally:
            later.close()


def test_a_wrong_clock_at_one_site_stops_nobody_for_good(tmp_path, monkeypatch):
    """It is set right, the site is started again, and the run goes on."""
    consortium = Consortium(tmp_path, ONE)
    right, wrong = signed_requests.sign, threading.local()

    def signed(*what):
        headers = right(*what)
        if getattr(wrong, "clock", False):
            created = re.compile(r"created=\d+")
            headers["Signature-Input"] = created.sub("created=1", headers["Signature-Input"])
        return headers

    monkeypatch.setattr(signed_requests, "sign", signed)

    def site(name, frame, run):
        if name == "south":
            wrong.clock = True
            with pytest.raises(RemoteProtocolError, match=r"^relay: "):
                consortium.site(name, frame, run)
            wrong.clock = False
        return consortium.site(name, frame, run)

    with consortium.relay():
        found = consortium.run(site=site)
    assert documents(found["south"]) == documents(found["north"])


def test_who_waited_in_vain_goes_on_when_all_are_started_again(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        member = consortium.member("south")
        object.__setattr__(member.study, "patience", 1)
        with pytest.raises(RemoteProtocolError, match="north: nothing came"):
            list(programs.join(member, "south", rows("south")))
        member.close()
        found = consortium.run()
    assert documents(found["south"]) == documents(found["north"])


def test_a_sum_that_was_played_is_not_played_again_under_another_tag(tmp_path):
    """A server would seal other messages with the salts of the first time."""
    sites = ("east", "north", "south")
    consortium = Consortium(tmp_path, ONE, "masking", sites, "answer_within = 1\n")
    with consortium.relay():
        site = consortium.member("north")
        study = programs.study_at(site.study, site.carrier, {"north": rows("north")})
        session = study.protocol.session(site.carrier, Layout(1, 5), sites)
        tag = f"{SESSION}{bytes(16).hex()}"
        announced = Announcement("1", 0, session.to_bytes())
        site.channel.tell(["server"], tag, announced)
        server = consortium.member("server")
        server.state.spend(session.id)
        with pytest.raises(RemoteProtocolError, match="north: announced a sum under another"):
            sum_server.serve(server)
        site.close()
        server.close()


def test_the_randomness_of_a_sum_that_is_over_is_refused(tmp_path):
    """Also to a server that hears of it again: its messages are gone, and would be others."""
    sites = ("east", "north", "south")
    consortium = Consortium(tmp_path, ONE, "masking", sites)
    with consortium.relay():
        server = consortium.member("server")
        session = (
            study_file.read(consortium.path).sums().session(server.carrier, Layout(1, 5), sites)
        )
        server.carrier.randomness(session, "server", "server")
        tag = f"{SESSION}{session.id.hex()}"
        server.state.heard([("north", tag, b"before"), ("north", f"{session.id.hex()}/x", b"")], 1)
        server.state.spend(session.id)
        assert not server.state.tagged(SESSION)
        assert not server.state.senders(f"{session.id.hex()}/x")
        with pytest.raises(LocalProtocolError, match="this sum is over; it is not played again"):
            server.carrier.randomness(session, "server", "server")
        server.close()


def test_a_listener_that_breaks_is_not_awaited_for_an_hour():
    def broken(after):
        raise ZeroDivisionError("a fault of a library")

    client = SimpleNamespace(take=broken, close=lambda: None)
    state = SimpleNamespace(read=0)
    office = PostOffice(state, lambda: client)
    with pytest.raises(LocalProtocolError, match="listening has failed: ZeroDivisionError"):
        office.wait(lambda: False, time.monotonic() + 20)
    office.close()


@each_case("values", [b"abc", bytes(8), b""])
def test_a_malformed_proposal_is_refused_by_name(values, tmp_path_factory):
    consortium = Consortium(tmp_path_factory.mktemp("study"), ONE)
    with consortium.relay():
        north, south = consortium.member("north"), consortium.member("south")
        north.channel.tell(["south"], "1/agree/0", Proposal(values))
        with pytest.raises(RemoteProtocolError, match="north: proposed other numbers"):
            south.carrier.agree("a step", [np.nan], 1e-6)
        north.close()
        south.close()


def test_a_run_may_be_named_as_announcements_are(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        found = consortium.run(run="session")
    assert documents(found["south"]) == documents(found["north"])
    assert found["server 1"] is None


@each_case("run", ["", "a/b", "\0", "\udc80", "a\nb", "x" * 41])
def test_names_of_runs_that_no_file_can_have(run, tmp_path_factory):
    consortium = Consortium(tmp_path_factory.mktemp("study"), ONE)
    with pytest.raises(ParameterError, match="the run's name has"):
        consortium.member("north", run)


def test_a_party_with_a_slash_in_its_name_has_a_state(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    state = programs.Connection("http://x").state_file(consortium.path, "a/b")
    assert state.parent == tmp_path
    assert state.name == "study.toml.a%2Fb.1.state"


@each_case("query", ["wait=nan", "after=" + "9" * 30, "after=-1"])
def test_the_relay_refuses_numbers_that_would_upset_it(query, tmp_path_factory):
    consortium = Consortium(tmp_path_factory.mktemp("study"), ONE)
    with consortium.relay():
        answer = ask(consortium, "GET", "messages", query)
    assert (answer.status_code, answer.text) == (400, "after and wait are numbers\n")


@each_case(
    "url, proxy",
    [("foo", None), ("http://a:b", None), ("ftp://x", None), ("http://x", "foo")],
)
def test_an_address_that_is_none_is_refused_at_once(url, proxy):
    with pytest.raises(ParameterError, match=r"^(foo|http://a:b|ftp://x): not an address"):
        RelayClient(url, "0" * 32, "north", Identity.generate(), proxy=proxy)


def test_hiding_numbers_of_a_sum_serve_no_other_sum(tmp_path):
    """A program that is mended before its restart draws less before the same sums."""
    consortium = Consortium(tmp_path, ONE)
    drawn = []
    for before in (5, 0):
        member = consortium.member("north")
        carrier = member.carrier
        carrier.entropy(before)  # a question that was refused, and is asked no more
        session = study_file.read(consortium.path).sums().session(carrier, Layout(1, 5), SITES)
        for _ in range(2):
            drawn.append(carrier.entropy(40))
            carrier.opened(session, lambda: np.zeros(1, np.int64))
            session = structs.replace(session, id=carrier.session_ids(16))
        member.close()
    assert drawn[1] == drawn[3]  # the second sum is the same, whatever came before the first
    assert drawn[2] != drawn[1]
