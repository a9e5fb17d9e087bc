"""Who is registered with which key: changes, exchanges and damage are refused."""

import base64
import json
import tracemalloc
from functools import cache

import msgspec
import numpy as np
import pytest
from cases import each_case, examples
from ckks.parties import Parties, linear_model, stream, table
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks import InferenceClient, Offer, Registration
from securecomp.ckks.native.logits import pack
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol.identity import Identity

CHOICES = {"plain": {}, "protected": {"protect_model": True}, "encrypted": {"encrypted": True}}


@cache
def made(name):
    return Parties(clients=("ann", "bob"), **CHOICES[name])


@pytest.fixture(scope="module")
def here():
    return Parties(clients=("ann", "bob"))


def refuse(parties, data, errors, reason=None):
    count = len(parties.server._clients)
    for take in (parties.server.register, lambda d: Registration.decode(d, parties.offer)):
        with pytest.raises(errors, match=reason):
            take(data)
    assert len(parties.server._clients) == count


def signed(parties, *, name="ann", by="ann", **changes):
    """A registration of one's choice, signed by whoever it says."""
    good = parties.ann.registration
    facts = {
        "client": name,
        "key": parties.identities[by].public,
        "offer": good.offer,
        "secret_id": good.secret_id,
        "seed": good.seed,
        "public": good.public,
    } | changes
    values = tuple(facts.values())
    signature = parties.identities[by].sign("ckks registration", *values)
    return Registration(*values, signature).encode()


class TestDamage:
    @each_case("parties", CHOICES, made)
    @given(data=st.data())
    @examples(80)
    def test_a_flipped_bit(self, parties, data):
        good = parties.ann.registration.encode()
        at = data.draw(st.integers(0, min(300, len(good) - 1)) | st.integers(0, len(good) - 1))
        bad = bytearray(good)
        bad[at] ^= 1 << data.draw(st.integers(0, 7))
        refuse(parties, bytes(bad), (DecodeError, AuthenticationError, KeyMismatchError))

    @each_case("parties", CHOICES, made)
    @given(data=st.data())
    @examples(40)
    def test_cut(self, parties, data):
        good = parties.ann.registration.encode()
        size = data.draw(st.integers(0, 300) | st.integers(0, len(good) - 1))
        refuse(parties, good[: min(size, len(good) - 1)], DecodeError)

    @each_case("parties", CHOICES, made)
    def test_trailing_bytes(self, parties):
        good = parties.ann.registration.encode()
        for extra in (b"\x00", b"\xc0", b"x" * 100, b"x" * 10**5):
            refuse(parties, good + extra, DecodeError)

    @each_case("parties", CHOICES, made)
    @each_case("version", [0, 2, 255])
    def test_another_version(self, parties, version):
        good = bytearray(parties.ann.registration.encode())
        good[4] = version
        refuse(parties, bytes(good), DecodeError, f"version {version}; this software reads 1")

    @each_case("parties", CHOICES, made)
    @given(st.binary(max_size=200), st.booleans())
    def test_anything(self, parties, data, with_head):
        refuse(parties, (b"SCCK\x01" if with_head else b"") + data, DecodeError)

    @each_case("parties", CHOICES, made)
    def test_claims_of_what_is_not_there(self, parties):
        """MessagePack that announces 4 GB of bytes, elements or depth."""
        for claim in (b"\xc6\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\x91" * 5000):
            tracemalloc.start()
            try:
                refuse(parties, b"SCCK\x01" + claim, DecodeError)
                assert tracemalloc.get_traced_memory()[1] < 1 << 20
            finally:
                tracemalloc.stop()


class TestLies:
    @each_case("parties", CHOICES, made)
    def test_the_honest_one_passes(self, parties):
        assert signed(parties) == parties.ann.registration.encode()
        assert parties.server.register(signed(parties)) == "ann"

    @each_case("parties", CHOICES, made)
    @each_case("size", [0, 15, 17])
    def test_a_key_id_of_another_length(self, parties, size):
        refuse(
            parties,
            signed(parties, secret_id=b"i" * size),
            DecodeError,
            "key id in the registration is not 16",
        )

    @each_case("parties", CHOICES, made)
    @each_case("field", ["seed", "public"])
    @each_case("change", [lambda b: b + b"x", lambda b: b[:-1] if b else b"x" * 32])
    def test_a_public_key_of_another_length(self, parties, field, change):
        value = change(getattr(parties.ann.registration, field))
        refuse(parties, signed(parties, **{field: value}), DecodeError, "no public key for this pl")

    @each_case("parties", CHOICES, made)
    def test_of_another_offer(self, parties):
        refuse(parties, signed(parties, offer=b"o" * 32), KeyMismatchError, "for another offer")
        other = Parties(linear_model(4), clients=("ann", "bob"))
        refuse(
            parties,
            other.ann.registration.encode(),
            (KeyMismatchError, AuthenticationError, DecodeError),
        )

    @each_case("parties", CHOICES, made)
    @each_case("name", ["server", "owner"])
    def test_under_the_name_of_another_role(self, parties, name):
        if name == "owner" and not parties.encrypted:
            pytest.skip("this offer has no owner")
        refuse(parties, signed(parties, name=name), AuthenticationError, "name or key of another")
        with pytest.raises(ParameterError, match="is the name of the server or the model's owner"):
            InferenceClient.create(parties.offer, name)

    @each_case("parties", CHOICES, made)
    @each_case("by", ["server", "owner"])
    def test_with_the_key_of_another_role(self, parties, by):
        if by == "owner" and not parties.encrypted:
            pytest.skip("this offer has no owner")
        refuse(parties, signed(parties, name="new", by=by), AuthenticationError, "name or key of")

    @each_case("parties", CHOICES, made)
    @each_case("name", ["", " ann", "a\nb", "x" * 101, "e\u0301"])
    def test_a_name_that_is_none(self, parties, name):
        refuse(parties, signed(parties, name=name), DecodeError, "malformed")

    @each_case("parties", CHOICES, made)
    def test_the_name_of_another_client(self, parties):
        data = signed(parties, name="bob", by="ann", secret_id=b"i" * 16)
        with pytest.raises(
            ParameterError,
            match="bob: this name is registered with another key, or this key with anot",
        ):
            parties.server.register(data)
        data = signed(parties, name="carl", by="ann", secret_id=b"i" * 16)
        with pytest.raises(
            ParameterError, match="carl: this name is registered with another key, or this key"
        ):
            parties.server.register(data)
        eve = Identity(stream("eve")(32))
        data = InferenceClient.create(parties.offer, "ann", identity=eve).registration.encode()
        with pytest.raises(
            ParameterError, match="ann: this name is registered with another key, or this key"
        ):
            parties.server.register(data)

    @each_case("parties", CHOICES, made)
    def test_a_signature_of_somebody_else(self, parties):
        good = parties.ann.registration
        other = parties.clients["bob"].registration
        for change in (
            {"signature": other.signature},
            {"signature": b""},
            {"signature": bytes(64)},
            {"key": other.key},
            {"client": "eve"},
            {"secret_id": other.secret_id},
        ):
            data = msgspec.structs.replace(good, **change).encode()
            refuse(parties, data, AuthenticationError, "signature for 'ckks registration' is not")

    @each_case("parties", CHOICES, made)
    @each_case("key", [b"", b"k" * 63, bytes(64)])
    def test_a_key_that_is_none(self, parties, key):
        data = msgspec.structs.replace(parties.ann.registration, key=key).encode()
        refuse(parties, data, KeyMismatchError)


def test_a_public_key_with_a_residue_that_is_none():
    for choice in ({"protect_model": True}, {"encrypted": True}):
        parties = Parties(**choice)
        b = parties.ann._circuit._key.public(stream("x")).b.copy()
        b[-1, -1] = parties.ring.primes[-1]
        bad = signed(parties, public=pack(parties.ring, b))
        with pytest.raises(DecodeError, match="not below its prime"):
            parties.server.register(bad)
        if parties.encrypted:
            with pytest.raises(DecodeError, match="not below its prime"):
                parties.owner.encrypt(bad)


class TestKeys:
    @each_case("parties", CHOICES, made)
    def test_a_new_key_of_the_same_client(self, parties):
        if parties.plan.protect_model:
            pytest.skip("its rows are few")
        old = parties.ann
        new = parties.join("ann", "a new key")
        assert new.registration.secret_id != old.registration.secret_id
        assert new.registration.key == old.registration.key
        for client in (new, old):
            answer = parties.server.predict(client.encrypt(table(2)))
            got = client.decrypt(answer).logits
            assert np.abs(got - parties.model.logits(table(2))).max() < 1e-4

    def test_an_answer_under_the_old_key_is_not_for_the_new_one(self):
        parties = Parties()
        answer = parties.server.predict(parties.ann.encrypt(table(1)))
        new = parties.join("ann", "a new key")
        with pytest.raises(RemoteProtocolError, match="another session"):
            new.decrypt(answer)

    @each_case("parties", CHOICES, made)
    def test_registering_again_changes_nothing(self, parties):
        count = len(parties.server._clients)
        assert parties.server.register(parties.ann.registration.encode()) == "ann"
        assert len(parties.server._clients) == count

    @each_case("parties", CHOICES, made)
    def test_the_key_id_says_nothing_of_the_key(self, parties):
        secret = parties.ann._circuit.secret
        shown = parties.ann.registration.encode()
        assert len(parties.ann.registration.secret_id) == 16
        for start in range(0, 32, 8):
            assert secret[start : start + 8] not in shown

    @each_case("parties", CHOICES, made)
    def test_fingerprints(self, parties):
        one, two = parties.ann.registration, parties.clients["bob"].registration
        assert one.fingerprint != two.fingerprint
        for text, digest in (
            (one.fingerprint, one.digest),
            (parties.offer.fingerprint, parties.offer.digest),
        ):
            assert text.replace(" ", "") == digest.hex()[:24]
            assert [len(group) for group in text.split(" ")] == [4] * 6
        assert repr(one) == f"Registration('ann', {one.fingerprint})"


class TestKeyFiles:
    def changed(self, here, **changes):
        return json.dumps(json.loads(here.ann.to_json()) | changes)

    @each_case("text", ["", "{}", "[]", "\x00", b"\xff", "[" * 10**6, '{"a":1}'])
    def test_no_key_file(self, text):
        with pytest.raises(DecodeError, match="not a client's key"):
            InferenceClient.from_json(text)

    @each_case(
        "change",
        [
            {"format": "another"},
            {"version": 1},
            {"version": 0},
            {"secret": ""},
            {"secret": "AAAA"},
            {"secret": "?"},
            {"registration": ""},
            {"registration": "AAAA"},
            {"name": 3},
            {"offer": {}},
            {"more": 1},
        ],
    )
    def test_an_unsound_one(self, here, change):
        with pytest.raises(DecodeError):
            InferenceClient.from_json(self.changed(here, **change))

    def test_of_another_client(self, here):
        theirs = json.loads(here.clients["bob"].to_json())
        for change in (
            {"name": "bob"},
            {"identity": theirs["identity"]},
            {"registration": theirs["registration"]},
        ):
            with pytest.raises((KeyMismatchError, DecodeError)):
                InferenceClient.from_json(self.changed(here, **change))

    @each_case("field", ["identity", "registration"])
    def test_only_documented_errors(self, here, field):
        value = base64.b64decode(json.loads(here.ann.to_json())[field])
        value = value[:-1] if field == "identity" else value[:-1] + bytes([value[-1] ^ 1])
        change = {field: base64.b64encode(value).decode()}
        with pytest.raises((AuthenticationError, DecodeError, KeyMismatchError)):
            InferenceClient.from_json(self.changed(here, **change))

    def test_of_another_secret(self, here):
        secret = json.loads(here.clients["bob"].to_json())["secret"]
        with pytest.raises((KeyMismatchError, DecodeError)):
            InferenceClient.from_json(self.changed(here, secret=secret))


def test_offers_are_what_clients_are_bound_to():
    """A server with another plan under the same keys is another partner."""
    parties = Parties()
    plan = msgspec.structs.replace(parties.plan, max_rows=10)
    other = Offer("server", parties.offer.key, plan, parties.offer.commitment)
    client = InferenceClient.create(other, "ann", identity=parties.identities["ann"])
    with pytest.raises(KeyMismatchError, match="ann: registered for another offer"):
        parties.server.register(client.registration.encode())
    with pytest.raises(RemoteProtocolError, match="is not registered"):
        parties.server.predict(client.encrypt(table(1)))
