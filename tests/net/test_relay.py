"""The relay: what it stores, and what it refuses by a named cause."""

import asyncio
import sqlite3
import urllib.parse

import httpx2
import msgspec
import pytest
from cases import each_case
from consortium import Consortium
from test_over_a_network import ONE

from securecomp.errors import RemoteProtocolError
from securecomp.net import relay as relay_
from securecomp.net import signed_requests, study_file
from securecomp.net.relay_client import RelayClient
from securecomp.protocol.identity import Identity


@pytest.fixture
def consortium(tmp_path):
    made = Consortium(tmp_path, ONE)
    with made.relay():
        yield made


@pytest.fixture
def connect(consortium):
    made = []

    def client(name, identity=None):
        study = study_file.read(consortium.path)
        key = identity or consortium.key(name)
        made.append(RelayClient(consortium.url, study.id, name, key, stopped=lambda: True))
        return made[-1]

    yield client
    for one in made:
        one.close()


def ask(consortium, method, what, query="", body=b"", name="north", **headers):
    """A request as a party makes it, with other headers where they are given."""
    path = f"/v1/{study_file.read(consortium.path).id}/{what}"
    quoted = urllib.parse.quote(name, safe="")
    signed = signed_requests.sign(consortium.key(name), quoted, method, path, query, body)
    signed["Securecomp-Version"] = "1"
    url = f"{consortium.url}{path}?{query}" if query else f"{consortium.url}{path}"
    return httpx2.request(method, url, content=body, headers={**signed, **headers})


def test_messages_wait_in_order_until_they_were_taken(connect):
    north, server = connect("north"), connect("server 1")
    north.post([("server 1", "b", b"two"), ("server 1", "a", b"one"), ("south", "a", b"x")])
    found = server.take(0, 0)
    assert [(sender, tag, body) for _, sender, tag, body in found] == [
        ("north", "b", b"two"),
        ("north", "a", b"one"),
    ]
    assert server.take(0, 0) == found  # until the recipient says that it has them
    assert server.take(found[0][0], 0) == found[1:]
    assert server.take(found[1][0], 0) == []


def test_a_double_upload_is_one_message_and_other_bytes_are_refused(connect):
    north, south = connect("north"), connect("south")
    north.post([("south", "t", b"one")])
    north.post([("south", "t", b"one")])
    (found,) = south.take(0, 0)
    assert south.take(found[0], 0) == []
    north.post([("south", "t", b"one")])  # not again, though it was taken
    assert south.take(found[0], 0) == []
    with pytest.raises(RemoteProtocolError, match="north: another message 't' was sent before"):
        north.post([("south", "t", b"two"), ("south", "u", b"three")])
    assert south.take(found[0], 0) == []  # none of the batch


def test_strangers_are_refused(connect):
    with pytest.raises(RemoteProtocolError, match="the signature is not valid"):
        connect("north", Identity.generate()).take(0, 0)
    with pytest.raises(RemoteProtocolError, match="signed by nobody of this study"):
        connect("east", Identity.generate()).take(0, 0)


def test_a_replayed_request_is_refused(consortium):
    path = f"/v1/{study_file.read(consortium.path).id}/status"
    headers = signed_requests.sign(consortium.key("north"), "north", "GET", path, "", b"")
    headers["Securecomp-Version"] = "1"
    assert httpx2.get(f"{consortium.url}{path}", headers=headers).status_code == 200
    again = httpx2.get(f"{consortium.url}{path}", headers=headers)
    assert (again.status_code, again.text) == (401, "the request was sent before; a replay\n")


@each_case(
    "what, status, words",
    [
        ({"body": b"garbage"}, 400, "not a batch of messages"),
        ({"body": msgspec.msgpack.encode([("east", "t", b"")])}, 400, "has no party 'east'"),
        ({"body": msgspec.msgpack.encode([("south", "", b"")])}, 400, "a tag has 1 to 200"),
        ({"Securecomp-Version": "2"}, 426, "this relay speaks version 1"),
        ({"Signature": "sig=:AAAA:"}, 401, "not signed as this relay wants it"),
        ({"method": "GET", "query": "after=x"}, 400, "after and wait are numbers"),
    ],
)
def test_what_is_refused(consortium, what, status, words):
    answer = ask(consortium, what.pop("method", "POST"), "messages", **what)
    assert answer.status_code == status
    assert words in answer.text


def test_a_body_that_is_too_large(consortium, monkeypatch):
    monkeypatch.setattr(relay_, "LARGEST_BODY", 1000)
    answer = ask(consortium, "POST", "messages", body=bytes(2000))
    assert answer.status_code == 413


def test_another_study_is_unknown(consortium):
    answer = httpx2.get(f"{consortium.url}/v1/{'0' * 32}/messages")
    assert answer.status_code == 404
    assert "start it with this study file" in answer.text


def test_health_metrics_and_status(consortium, connect):
    connect("north").post([("south", "t", b"12345")])
    assert httpx2.get(f"{consortium.url}/health").text == "ok\n"
    assert "securecomp_relay_bytes_waiting 5" in httpx2.get(f"{consortium.url}/metrics").text
    status = connect("server 1").status()
    assert set(status) == set(study_file.read(consortium.path).keys)
    assert status["south"] == {"seen": 0.0, "waiting": 5}
    assert status["north"]["seen"] > 0


def test_a_relay_that_stops_closes_its_file(tmp_path):
    relay = relay_.Relay([], tmp_path / "relay.db")
    app = relay.app()

    async def serve():
        async with app.router.lifespan_context(app):
            assert relay._store.counts() == (0, 0)

    asyncio.run(serve())
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        relay._store.counts()
