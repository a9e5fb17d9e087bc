"""A party, or a stranger, that floods a relay is put off; others are served as before."""

import logging
import re
import socket
import threading
import time
import urllib.parse

import httpx2
import pytest
from consortium import SITES, Consortium
from test_over_a_network import ONE, documents, in_one_process
from test_relay import ask

from securecomp.errors import ParameterError, RemoteProtocolError
from securecomp.net import relay as relay_
from securecomp.net import relay_store, request_limits, signed_requests, study_file
from securecomp.net.relay_client import RelayClient
from securecomp.net.relay_store import RelayStore
from securecomp.net.request_limits import RequestLimits

ALICE, NORTH = ("study", "alice"), ("study", "north")


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def limits(clock):
    return RequestLimits(lambda: clock[0])


def test_requests_beyond_the_burst_are_put_off_until_there_is_room(limits, clock, monkeypatch):
    monkeypatch.setattr(request_limits, "REQUESTS", 2.0)
    monkeypatch.setattr(request_limits, "BURST", 5.0)
    assert [limits.request(ALICE) for _ in range(11)] == [0.0] * 10 + [0.5]
    assert limits.request(NORTH) == 0.0
    clock[0] += 0.5
    assert [limits.request(ALICE) for _ in range(2)] == [0.0, 0.5]
    clock[0] += 1000  # no more than the burst
    assert [limits.request(ALICE) for _ in range(11)] == [0.0] * 10 + [0.5]
    assert limits.refused() == 3


def test_bytes_beyond_the_burst_are_paid_back_first(limits, clock):
    most = request_limits.BYTES * request_limits.BURST
    limits.read(ALICE, int(most + 3 * request_limits.BYTES))
    assert 3 <= limits.request(ALICE) < 3.1
    clock[0] += 3.1
    assert limits.request(ALICE) == 0.0


def test_few_large_bodies_and_waiting_requests_at_a_time(limits):
    for body, most in ((True, request_limits.MOST_BODIES), (False, request_limits.MOST_AT_ONCE)):
        assert [limits.begin(ALICE, body=body) for _ in range(most + 1)] == [0.0] * most + [1.0]
        assert limits.begin(NORTH, body=body) == 0.0
        limits.end(ALICE, body=body)
        assert limits.begin(ALICE, body=body) == 0.0


def test_a_party_that_floods_is_named_once_a_minute(limits, clock, caplog, monkeypatch):
    monkeypatch.setattr(request_limits, "BURST", 0.1)
    with caplog.at_level(logging.WARNING, "securecomp.relay"):
        for _ in range(100):
            limits.request(ALICE)
        clock[0] += 61
        for _ in range(100):
            limits.request(ALICE)
    assert len(caplog.messages) == 2
    assert all(m.startswith("party 'alice' of the study study asks too") for m in caplog.messages)


def test_a_flood_of_one_party_slows_that_party_alone(tmp_path, monkeypatch):
    """The others' run ends with the same result, and the relay counts what it put off."""
    monkeypatch.setattr(request_limits, "REQUESTS", 20.0)
    monkeypatch.setattr(request_limits, "BURST", 2.0)
    consortium = Consortium(tmp_path, ONE, analysts=("alice",))
    with consortium.relay():
        over, said = threading.Event(), []

        def flood():
            path = f"/v1/{study_file.read(consortium.path).id}/status"
            name = "alice"
            with httpx2.Client() as client:
                while not over.is_set():
                    headers = signed_requests.sign(
                        consortium.key("alice"), name, "GET", path, "run=other", b""
                    )
                    answer = client.get(f"{consortium.url}{path}?run=other", headers=headers)
                    said.append((answer.status_code, answer.headers.get("retry-after")))

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            end = time.monotonic() + 20
            while (429, "1") not in said[-1:] and time.monotonic() < end:
                time.sleep(0.01)
            found = consortium.run()
        finally:
            over.set()
            thread.join()
        metrics = httpx2.get(f"{consortium.url}/metrics").text
    want = documents(in_one_process(consortium.path, SITES))
    assert {site: documents(found[site]) for site in SITES} == dict.fromkeys(SITES, want)
    put_off = int(re.search(r"put_off (\d+)", metrics)[1])
    assert set(said) == {(200, None), (429, "1")}
    assert put_off >= sum(status == 429 for status, _ in said) > 0


@pytest.fixture
def consortium(tmp_path):
    made = Consortium(tmp_path, ONE)
    with made.relay():
        yield made


def test_no_body_of_a_stranger_is_read(consortium):
    """The answer comes while the body is still to be sent."""
    where = urllib.parse.urlsplit(consortium.url)
    study = study_file.read(consortium.path).id
    with socket.create_connection((where.hostname, where.port), 10) as connection:
        connection.sendall(
            f"POST /v1/{study}/messages HTTP/1.1\r\nHost: relay\r\nSecurecomp-Version: 1\r\n"
            f"Content-Length: {relay_.LARGEST_BODY}\r\n\r\n".encode()
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 401 ")


def test_a_body_that_was_not_signed_is_refused(consortium):
    other = {"Content-Digest": signed_requests.digest(b"other")}
    answer = ask(consortium, "POST", "messages", body=b"this", **other)
    assert (answer.status_code, answer.text) == (401, "the signature is not valid\n")
    path = f"/v1/{study_file.read(consortium.path).id}/messages"
    headers = signed_requests.sign(consortium.key("north"), "north", "POST", path, "", b"other")
    answer = httpx2.post(f"{consortium.url}{path}", content=b"this", headers=headers)
    assert (answer.status_code, answer.text) == (401, "the body is not the one that was signed\n")


def test_the_name_of_a_run_is_bounded(consortium):
    answer = ask(consortium, "GET", "messages", f"run={'x' * 201}")
    assert (answer.status_code, answer.text) == (400, "a run's name has at most 200 characters\n")


def test_a_party_waits_as_long_as_the_relay_says(consortium, monkeypatch):
    study = study_file.read(consortium.path)
    client = RelayClient(consortium.url, study.id, "north", consortium.key("north"))
    paused = []
    monkeypatch.setattr(time, "sleep", paused.append)
    answers = [(429, {"Retry-After": "7"}), (503, {}), (429, {"Retry-After": "soon"}), (204, {})]
    monkeypatch.setattr(
        client._client,
        "request",
        lambda *_, **__: httpx2.Response(answers[0][0], headers=answers.pop(0)[1]),
    )
    client.post([])
    assert paused == [7.0, 14.0, 28.0]


@pytest.fixture
def store(tmp_path):
    made = RelayStore(tmp_path / "relay.db")
    yield made
    made.close()


def test_what_one_sender_leaves_is_bounded_over_all_runs(store, tmp_path, monkeypatch):
    monkeypatch.setattr(relay_store, "MOST_WAITING", 100)
    store.put("study/1", "north", [("south", "a", bytes(60))])
    with pytest.raises(ParameterError, match="'north' has left as much here as a party may"):
        store.put("study/2", "north", [("west", "a", bytes(20)), ("west", "b", bytes(21))])
    assert store.take("study/2", "west", 0, 1000) == []  # none of the batch
    store.put("study/2", "west", [("north", "a", bytes(100))])
    store.put("other/1", "north", [("south", "a", bytes(100))])
    ((number, *_),) = store.take("study/1", "south", 0, 1000)
    store.take("study/1", "south", number, 1000)
    store.put("study/1", "north", [("south", "b", bytes(100))])
    again = RelayStore(tmp_path / "relay.db")
    with pytest.raises(ParameterError, match="'north' has left"):
        again.put("study/3", "north", [("south", "a", b"x")])
    again.close()


def test_rows_that_stay_are_bounded_and_a_repeated_message_is_none(store, monkeypatch):
    monkeypatch.setattr(relay_store, "MOST_ROWS", 2)
    batch = [("south", "a", b"1"), ("south", "b", b"2")]
    store.put("study/1", "north", batch)
    store.put("study/1", "north", batch)
    found = store.take("study/1", "south", 0, 1000)
    store.take("study/1", "south", found[-1][0], 1000)
    with pytest.raises(ParameterError, match="'north' has left"):
        store.put("study/1", "north", [("south", "c", b"3")])
    with pytest.raises(RemoteProtocolError, match="another message 'a' was sent before"):
        store.put("study/1", "north", [("south", "a", b"3")])
