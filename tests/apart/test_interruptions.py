"""Parties that stall, vanish, come late or are of another release; a relay that restarts."""

import contextlib
import socket
import threading
import time

import httpx2
import pytest
from consortium import Consortium, rows
from test_hospital_networks import ONE, SITES, Proxy, certificates
from test_over_a_network import documents, in_one_process

from securecomp.net import programs, signed_requests, study_channel, study_file, sum_server
from securecomp.net import relay as relay_
from securecomp.net.relay_client import RelayClient, RelayError
from securecomp.net.study_channel import LateError

TWO = ONE + '[[analyses]]\nask = "count"\n'


@pytest.fixture
def consortium(tmp_path):
    return Consortium(tmp_path, ONE, sites=SITES)


def finished(consortium, found):
    """All sites have the result of one process."""
    want = documents(in_one_process(consortium.path, SITES))
    return {site: documents(found[site]) for site in SITES} == dict.fromkeys(SITES, want)


def client(consortium, name="north", **facts):
    study, key = study_file.read(consortium.path), consortium.key(name)
    return RelayClient(facts.pop("url", consortium.url), study.id, name, key, **facts)


def test_a_site_that_vanishes_is_named_where_others_wait_for_servers(tmp_path, monkeypatch):
    """The servers, who are awaited, are there; they lack that site."""
    monkeypatch.setattr(relay_, "LONGEST_WAIT", 0.3)
    monkeypatch.setattr(study_channel, "ABSENT", 1.5)
    consortium = Consortium(tmp_path, TWO, sites=SITES)
    members = {name: consortium.member(name) for name in (*SITES, *consortium.servers)}
    for member in members.values():
        object.__setattr__(member.study, "patience", 3)

    def serve(name):
        with contextlib.suppress(Exception):  # it is closed when the test is over
            sum_server.serve(members[name])

    def one_answer():
        next(programs.join(members["south"], "south", rows("south")))
        members["south"].close()

    with consortium.relay():
        threads = [threading.Thread(target=serve, args=(name,)) for name in consortium.servers]
        threads.append(threading.Thread(target=one_answer))
        for thread in threads:
            thread.start()
        with pytest.raises(LateError) as caught:
            list(programs.join(members["north"], "north", rows("north")))
        for member in members.values():
            member.close()
        for thread in threads:
            thread.join()
    assert caught.value.sender == "south"
    assert "(awaited: server 1, server 2, server 3; the relay has heard nothing of south" in str(
        caught.value
    )


def test_a_party_of_another_release_is_told_so_at_once(consortium, monkeypatch):
    sign = signed_requests.sign

    def older(*args):
        return {**sign(*args), "Securecomp-Version": "0"}

    monkeypatch.setattr(signed_requests, "sign", older)
    with (
        consortium.relay(),
        pytest.raises(
            RelayError, match=r"speaks version 1, and not '0'; install the same release on both"
        ),
    ):
        consortium.site("north")


def test_a_body_that_is_cut_or_stalls_is_not_stored_and_harms_nobody(consortium, monkeypatch):
    monkeypatch.setattr(relay_, "LONGEST_STALL", 0.5)
    study = study_file.read(consortium.path).id
    path = f"/v1/{study}/messages"
    body = bytes(10_000)

    def begun():  # signed anew, as a party does for each try
        headers = signed_requests.sign(consortium.key("south"), "south", "POST", path, "", body)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        length = f"Content-Length: {len(body)}"
        return f"POST {path} HTTP/1.1\r\nHost: relay\r\n{length}\r\n{head}\r\n".encode()

    with consortium.relay():
        place = ("127.0.0.1", consortium.port)
        with socket.create_connection(place) as cut:
            cut.sendall(begun() + body[:5000])
        with socket.create_connection(place) as stalled:
            stalled.sendall(begun() + body[:5000])
            answer = b""
            while not answer.endswith(b"did not come\n") and (more := stalled.recv(4000)):
                answer += more
        assert answer.startswith(b"HTTP/1.1 408")  # which a party tries again
        assert answer.endswith(b"the rest of the body did not come\n")
        assert consortium.store.counts() == (0, 0)
        whole = client(consortium, "south")
        whole.post([("north", "t", body)])
        assert consortium.store.counts() == (1, len(body))
        whole.close()


def test_a_site_that_comes_late_finds_what_waits_for_it(consortium):
    first = threading.Event()

    def site(name, frame, run):
        if name == "south":
            first.wait(30)
        return consortium.site(name, frame, run, watch=lambda *_: first.set())

    with consortium.relay():
        found = consortium.run(site=site)
    assert finished(consortium, found)


def test_a_relay_with_tls_restarts_in_the_middle(consortium):
    authority, certificate, key = certificates(consortium.folder)
    tls = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    consortium.url = consortium.url.replace("http:", "https:")
    connection = programs.Connection(consortium.url, authority=str(authority))
    passed = []

    def watch(step, awaited):
        passed.append(step)
        if len(passed) == 4:
            consortium.stop_relay()
            time.sleep(0.5)  # requests of all find nobody
            consortium.start_relay(**tls)

    def member(name, run="1", **facts):
        watched = {"watch": watch} if name == "south" else {}
        return programs.ConnectedParty(
            consortium.path, name, consortium.key(name), connection, **watched
        )

    consortium.member = member
    with consortium.relay(**tls):
        found = consortium.run()
    assert len(passed) > 4
    assert finished(consortium, found)


def test_a_long_poll_that_a_proxy_cuts_is_asked_again_without_a_word(consortium):
    told, found = [], []
    with consortium.relay(), Proxy(consortium.port).running() as proxy:
        through = client(consortium, url=f"http://127.0.0.1:{proxy.port}", note=told.append)
        thread = threading.Thread(target=lambda: found.extend(through.take(0, 20)))
        thread.start()
        time.sleep(0.7)
        proxy.cut()
        time.sleep(0.7)
        client(consortium, "south").post([("north", "t", b"body")])
        thread.join(10)
        through.close()
    assert [(sender, tag, body) for _, sender, tag, body in found] == [("south", "t", b"body")]
    assert told == []


def test_a_relay_that_does_not_answer_is_tried_again_aloud(consortium):
    told = []
    lone = client(consortium, note=told.append, stopped=lambda: len(told) > 1)
    with pytest.raises(RelayError, match=r"cannot be reached .*refused.*given up"):
        lone.take(0)
    assert len(told) == 2
    assert "next try in" in told[0]


def test_what_no_other_try_puts_right_ends_with_its_remedy(consortium):
    """A proxy that wants a password, and a certificate for another name."""
    authority, certificate, key = certificates(consortium.folder)
    listening = socket.create_server(("127.0.0.1", 0))

    def refuse():
        asked, _ = listening.accept()
        with asked:
            asked.recv(4000)
            asked.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    thread = threading.Thread(target=refuse)
    thread.start()
    secured = consortium.url.replace("http:", "https:")
    proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(RelayError, match=r"wants a password; .*--proxy"):
        client(consortium, url=secured, proxy=proxy).take(0)
    thread.join()
    listening.close()
    named = secured.replace("127.0.0.1", "localhost")
    with (
        consortium.relay(ssl_certfile=str(certificate), ssl_keyfile=str(key)),
        pytest.raises(RelayError, match=r"certificate is not accepted .*in the certificate"),
    ):
        client(consortium, url=named, authority=str(authority)).take(0)


def test_another_answer_than_the_relay_s_is_refused_and_not_read(consortium):
    """A reverse proxy that takes small bodies only says so in its own words."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(413, text="<h1>Too Large</h1>"))
    asking = client(consortium)
    asking._client = httpx2.Client(base_url=consortium.url, transport=transport)
    with pytest.raises(RelayError, match="relay: <h1>Too Large"):
        asking.post([("south", "t", b"body")])
