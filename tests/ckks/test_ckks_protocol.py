"""Clients and a server: who gets which answer, what is refused, and what a refusal costs."""

import json

import msgspec
import numpy as np
import pytest
from cases import each_case
from ckks.parties import Parties, changed, linear_model, stream, table

from securecomp.ckks import InferenceClient, InferenceServer, LogisticModel
from securecomp.ckks.enrolment import commit
from securecomp.ckks.inference_messages import EncryptedLogits, Query
from securecomp.errors import (
    AuthenticationError,
    BudgetError,
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol.identity import Identity
from securecomp.protocol.wire import Vector

CHOICES = {"plain": {}, "protected": {"protect_model": True}, "encrypted": {"encrypted": True}}


def close(parties, got, rows):
    assert np.abs(got.logits - parties.model.logits(rows)).max() <= parties.plan.precision
    return True


@pytest.fixture
def parties():
    return Parties(clients=("ann", "bob"))


class TestEndToEnd:
    @each_case("choice", [*CHOICES.values(), {"backend": "seal"}])
    @each_case("outputs", [1, 4])
    @each_case("rows", [1, 2, 5])
    def test_few_rows(self, choice, outputs, rows):
        parties = Parties(linear_model(5, outputs), **choice)
        x = table(rows, 5)
        got = parties.ask(x)
        assert close(parties, got, x)
        assert got.logits.shape == (rows, outputs)
        assert got.probabilities.shape == (rows, max(2, outputs))
        assert got.labels.shape == (rows,)
        assert got.kind == "logits"
        assert (got.logits == np.round(got.logits, parties.plan.decimals)).all()

    @each_case("choice", [{}, {"encrypted": True}, {"backend": "seal"}])
    @each_case("rows", [2047, 2048, 2049, 4097, 9000])
    def test_many_rows(self, choice, rows):
        parties = Parties(linear_model(3, 2 + 1), **choice)
        x = table(rows)
        assert close(parties, parties.ask(x), x)

    @pytest.mark.parametrize(
        "choice",
        [
            pytest.param({}, marks=pytest.mark.slow),
            pytest.param({"protect_model": True}, marks=pytest.mark.slow),
            pytest.param({"encrypted": True}, marks=pytest.mark.slow),
        ],
        ids=CHOICES,
    )
    def test_more_features_than_a_polynomial_holds(self, choice):
        features = 4100
        parties = Parties(linear_model(features, scale=0.01), precision=1e-2, **choice)
        assert parties.ring.degree < features
        x = table(3, features)
        assert close(parties, parties.ask(x), x)

    def test_zeros_are_not_negative(self, parties):
        model = linear_model(3, intercept=-1e-9, scale=1e-9)
        got = Parties(model).ask(np.zeros((2, 3)))
        assert not np.signbit(got.logits).any()
        assert got.labels.tolist() == ["no", "no"]

    def test_answers_in_any_order(self, parties):
        tables = [table(n, seed=n) for n in (1, 2, 3)]
        requests = [parties.ann.encrypt(x) for x in tables]
        answers = [parties.server.predict(r) for r in reversed(requests)]
        for x, answer in zip(reversed(tables), answers, strict=True):
            assert close(parties, parties.ann.decrypt(answer), x)

    def test_clients_do_not_disturb_each_other(self, parties):
        for name, rows in (("ann", 1), ("bob", 4), ("ann", 3)):
            x = table(rows, seed=rows)
            assert close(parties, parties.ask(x, name), x)

    def test_buffers_of_any_kind(self, parties):
        x = table(2)
        for kind in (bytes, bytearray, memoryview):
            answer = parties.server.predict(kind(parties.ann.encrypt(x)))
            assert close(parties, parties.ann.decrypt(kind(answer)), x)


class TestRequests:
    def refused(self, parties, request, error, reason, name="ann"):
        """The server refuses, counts nothing, and goes on."""
        ledger = parties.server._ledger
        before = set(ledger._seen), dict(ledger._spent)
        with pytest.raises(error, match=reason):
            parties.server.predict(request)
        assert (ledger._seen, ledger._spent) == before
        assert close(parties, parties.ask(table(2), name), table(2))

    def test_a_replay(self, parties):
        request = bytes(parties.ann.encrypt(table(2)))
        parties.server.predict(request)
        with pytest.raises(RemoteProtocolError, match="ann: this request was answered before"):
            parties.server.predict(request)
        assert parties.server._ledger._spent == {"ann": 2}

    def test_a_replay_in_a_new_envelope(self, parties):
        request = parties.ann.encrypt(table(2))
        parties.server.predict(request)
        query, residues = parties.read(request)
        again = parties.say(query, residues)
        with pytest.raises(RemoteProtocolError, match="answered before"):
            parties.server.predict(again)

    def test_the_same_id_of_another_client_is_another_request(self, parties):
        query, _ = parties.read(parties.ann.encrypt(table(2)))
        bob = parties.clients["bob"]
        theirs, residues = parties.read(bob.encrypt(table(2)), bob)
        theirs = changed(theirs, request=query.request)
        parties.server.predict(parties.say(theirs, residues, "bob", client=bob))

    def test_of_somebody_unknown(self, parties):
        stranger = InferenceClient.create(
            parties.offer, "eve", identity=Identity(stream("eve")(32)), entropy=stream("eve")
        )
        self.refused(
            parties, stranger.encrypt(table(2)), RemoteProtocolError, "eve: is not registered"
        )

    def test_of_a_key_that_is_not_registered(self, parties):
        other = parties.client("ann", "another key")
        with pytest.raises(RemoteProtocolError, match="not registered with this key") as caught:
            parties.server.predict(other.encrypt(table(2)))
        assert not caught.value.authenticated

    def test_for_another_server(self, parties):
        elsewhere = Parties(seed="elsewhere")
        request = elsewhere.ann.encrypt(table(2))
        self.refused(parties, request, RemoteProtocolError, "is not registered")

    def test_under_anothers_name(self, parties):
        """Bob cannot make what Ann's session takes."""
        bob = parties.clients["bob"]
        query, residues = parties.read(bob.encrypt(table(2)), bob)
        engagement = parties.ann._engagement
        engagement.keys["bob"] = bob._identity.public
        try:
            forged = parties.say(query, residues, "bob")
        finally:
            del engagement.keys["bob"]
        self.refused(parties, forged, RemoteProtocolError, "bob: takes no part")

    def test_of_the_server_itself(self, parties):
        """An answer that is sent back."""
        answer = parties.server.predict(parties.ann.encrypt(table(2)))
        with pytest.raises(RemoteProtocolError, match="is for 'ann', not for 'server'"):
            parties.server.predict(answer)

    def test_an_answer_sealed_for_the_server(self, parties):
        message = EncryptedLogits(b"r" * 16, 1, Vector(parties.ring.bits, 1))
        forged = parties.say(message, [0])
        self.refused(
            parties, forged, RemoteProtocolError, "sent message kind 49, which it may not send"
        )

    @each_case("kind", [0, 50, 51, 255])
    def test_of_another_kind(self, parties, kind):
        query, residues = parties.read(parties.ann.encrypt(table(2)))
        forged = parties.say(query, residues, kind=kind)
        self.refused(parties, forged, RemoteProtocolError, f"sent message kind {kind}")

    def test_of_another_agreement(self, parties):
        query, residues = parties.read(parties.ann.encrypt(table(2)))
        forged = parties.say(query, residues, agreement=b"a" * 32)
        self.refused(parties, forged, RemoteProtocolError, "another layout or other parties")

    @each_case(
        "fields, reason",
        [
            ({"request": b""}, "id has 16 bytes"),
            ({"request": b"r" * 15}, "id has 16 bytes"),
            ({"request": b"r" * 17}, "id has 16 bytes"),
            ({"seed": b""}, "seed has 0 bytes, not 32"),
            ({"seed": b"s" * 16}, "seed has 16 bytes, not 32"),
            ({"seed": b"s" * 33}, "seed has 33 bytes, not 32"),
            ({"rows": 0}, "has 1 to 131,072 rows, not 0"),
            ({"rows": -1}, "has 1 to 131,072 rows, not -1"),
            ({"rows": 131_073}, "has 1 to 131,072 rows, not 131073"),
            ({"rows": 2**62}, "has 1 to 131,072 rows"),
            ({"rows": 4000}, "the vector has 2048 elements and 12288 were agreed"),
            ({"residues": Vector(61, 2048)}, "not packed in"),
            ({"residues": Vector(-1, 2048)}, "not packed in"),
            ({"residues": Vector(40, 2**62)}, "were agreed"),
            ({"residues": Vector(40, -1)}, "were agreed"),
        ],
    )
    def test_that_lies(self, parties, fields, reason):
        query, residues = parties.read(parties.ann.encrypt(table(2)))
        forged = parties.say(changed(query, **fields), residues)
        self.refused(parties, forged, RemoteProtocolError, f"ann: .*{reason}")

    @each_case("rows", [1, 3])
    @each_case("size", [2047, 2049, 4096, 0])
    def test_of_another_size(self, parties, rows, size):
        query, residues = parties.read(parties.ann.encrypt(table(2)))
        residues = np.resize(residues, size)
        forged = parties.say(changed(query, rows=rows, residues=Vector(40, size)), residues)
        self.refused(parties, forged, RemoteProtocolError, f"has {size} elements and 2048 were")

    @each_case("place", [0, 1, 1000, 2047])
    def test_with_a_residue_that_is_none(self, parties, place):
        query, residues = parties.read(parties.ann.encrypt(table(2)))
        for wrong in (parties.ring.primes[0], 2**parties.ring.bits - 1):
            residues[place] = wrong
            forged = parties.say(query, residues)
            with pytest.raises(RemoteProtocolError, match="a residue that is not below its prime"):
                parties.server.predict(forged)
        residues[place] = parties.ring.primes[0] - 1
        parties.server.predict(parties.say(query, residues))

    def test_a_body_that_is_none(self, parties):
        for message in (changed(Query(b"", 1, b"", Vector(40, 1)), rows="many"),):
            forged = parties.say(message, [1])
            self.refused(parties, forged, RemoteProtocolError, "Expected `int`, got `str`")

    def test_a_limit_without_protection(self):
        parties = Parties(max_rows=3)
        parties.ask(table(2))
        with pytest.raises(BudgetError, match="ann: 2 more rows after 2 would pass the 3"):
            parties.ask(table(2))
        assert close(parties, parties.ask(table(1)), table(1))


class TestAnswers:
    def test_are_read_once(self, parties):
        answer = parties.server.predict(parties.ann.encrypt(table(2)))
        parties.ann.decrypt(answer)
        with pytest.raises(RemoteProtocolError, match="or that was answered"):
            parties.ann.decrypt(answer)

    def test_of_another_client(self, parties):
        bob = parties.clients["bob"]
        answer = parties.server.predict(bob.encrypt(table(2)))
        with pytest.raises(RemoteProtocolError, match="another session"):
            parties.ann.decrypt(answer)
        assert close(parties, bob.decrypt(answer), table(2))

    def test_of_nobodys_request(self, parties):
        answer, residues = parties.read(parties.server.predict(parties.ann.encrypt(table(2))))
        forged = parties.say(changed(answer, request=b"n" * 16), residues, "server", "ann")
        with pytest.raises(RemoteProtocolError, match="a request that this client did not make"):
            parties.ann.decrypt(forged)

    @each_case(
        "change, reason",
        [
            ({"rows": 1}, "answers 1 rows, and 2 were asked"),
            ({"rows": 3}, "answers 3 rows, and 2 were asked"),
            ({"rows": 0}, "answers 0 rows, and 2 were asked"),
            ({"residues": Vector(40, 2049)}, "has 2049 elements and 2050 were agreed"),
            ({"residues": Vector(39, 2050)}, "not packed in 41 bits"),
        ],
    )
    def test_that_lie(self, parties, change, reason):
        request = parties.ann.encrypt(table(2))
        answer, residues = parties.read(parties.server.predict(request))
        forged = parties.say(changed(answer, **change), residues, "server", "ann")
        with pytest.raises(RemoteProtocolError, match=f"server: .*{reason}"):
            parties.ann.decrypt(forged)
        good = parties.say(answer, residues, "server", "ann")
        # Whether an answer is refused depends on the key: the next one is not read unasked.
        with pytest.raises(RemoteProtocolError, match="or that was answered"):
            parties.ann.decrypt(good)
        assert close(parties, parties.ann.decrypt(good, request), table(2))

    @each_case("place", [0, 1, 2, 2049])
    def test_with_a_residue_that_is_none(self, parties, place):
        answer, residues = parties.read(parties.server.predict(parties.ann.encrypt(table(2))))
        residues[place] = parties.ring.primes[0]
        with pytest.raises(RemoteProtocolError, match="a residue is not below its prime"):
            parties.ann.decrypt(parties.say(answer, residues, "server", "ann"))

    def test_of_a_logit_beyond_the_bound(self):
        """Where the modulus has room for one."""
        model = LogisticModel(((0.5, 0.25),), (0.25,), (0, 1), ("a", "b"), (1.0, 1.0), "sigmoid")
        parties = Parties(model)
        (q,) = parties.ring.primes
        most = int((parties.plan.logit_bound + 1) * 2**parties.plan.linear.scale_bits)
        assert most < q // 2
        answer, residues = parties.read(parties.server.predict(parties.ann.encrypt([[0.0, 0.0]])))
        residues[0] = (int(residues[0]) + most) % q  # from 0.25
        with pytest.raises(
            RemoteProtocolError, match="server: a logit of row 1 is beyond the plan's bound"
        ):
            parties.ann.decrypt(parties.say(answer, residues, "server", "ann"))
        assert parties.ann._pending == {}

    def test_a_request_is_no_answer(self, parties):
        request = parties.ann.encrypt(table(2))
        with pytest.raises(RemoteProtocolError, match="is for 'server', not for 'ann'"):
            parties.ann.decrypt(request)
        query, residues = parties.read(request)
        forged = parties.say(query, residues, "server", "ann")
        with pytest.raises(RemoteProtocolError, match="sent message kind 48"):
            parties.ann.decrypt(forged)


class TestAnotherProcess:
    def test_reads_what_the_first_one_asked(self, parties):
        request = bytes(parties.ann.encrypt(table(2)))
        answer = bytes(parties.server.predict(request))
        other = InferenceClient.from_json(parties.ann.to_json())
        with pytest.raises(RemoteProtocolError, match="give the request"):
            other.decrypt(answer)
        assert close(parties, other.decrypt(answer, request), table(2))

    def test_asks_with_the_same_key(self, parties):
        other = InferenceClient.from_json(parties.ann.to_json())
        assert other.registration == parties.ann.registration
        answer = parties.server.predict(other.encrypt(table(2)))
        assert close(parties, other.decrypt(answer), table(2))

    @each_case("choice", CHOICES.values())
    def test_a_key_file_is_all_that_is_needed(self, choice):
        parties = Parties(**choice)
        client = InferenceClient.from_json(parties.ann.to_json().encode(), workers=2)
        assert repr(client) == repr(parties.ann)
        assert client.to_json() == parties.ann.to_json()
        answer = parties.server.predict(client.encrypt(table(2)))
        assert close(parties, client.decrypt(answer), table(2))

    def test_a_request_that_is_none(self, parties):
        request = parties.ann.encrypt(table(2))
        answer = parties.server.predict(request)
        other = InferenceClient.from_json(parties.ann.to_json())
        bob = parties.clients["bob"]
        for wrong, error in (
            (b"", DecodeError),
            (answer, RemoteProtocolError),
            (bob.encrypt(table(2)), RemoteProtocolError),
            (bytes(request)[:-1] + b"\x00", AuthenticationError),
        ):
            with pytest.raises(error):
                other.decrypt(answer, wrong)
        assert close(parties, other.decrypt(answer, request), table(2))

    def test_an_answer_to_another_request(self, parties):
        first, second = parties.ann.encrypt(table(2)), parties.ann.encrypt(table(2, seed=9))
        answer = parties.server.predict(second)
        with pytest.raises(RemoteProtocolError):
            parties.ann.decrypt(answer, first)

    def test_again_only_with_the_request(self, parties):
        request = parties.ann.encrypt(table(2))
        answer = parties.server.predict(request)
        one = parties.ann.decrypt(answer, request)
        assert np.array_equal(parties.ann.decrypt(answer, request).logits, one.logits)
        with pytest.raises(RemoteProtocolError, match="or that was answered"):
            parties.ann.decrypt(answer)


def test_roles_that_do_not_fit():
    parties = Parties()
    model, identity = parties.model, parties.identities["server"]
    with pytest.raises(KeyMismatchError, match="not that of 'server' in the offer"):
        InferenceServer(parties.offer, parties.identities["ann"], model)
    with pytest.raises(ParameterError, match="a plan for a plain model needs the model"):
        InferenceServer(parties.offer, identity, None)
    for other, reason in (
        (linear_model(4), "for other features or classes"),
        (linear_model(scale=100.0), "for other weights"),
    ):
        offer = msgspec.structs.replace(parties.offer, commitment=commit(other, bytes(32)))
        with pytest.raises(ParameterError, match=reason):
            InferenceServer(offer, identity, other, bytes(32))
    encrypted = Parties(encrypted=True)
    with pytest.raises(ParameterError, match="one for an encrypted model takes none"):
        InferenceServer(encrypted.offer, encrypted.identities["server"], encrypted.model)
    with pytest.raises(LocalProtocolError, match="a model that is not encrypted"):
        parties.server.load_model(b"")
    facts = json.loads(parties.ann.to_json())
    assert facts["format"] == "securecomp ckks client key"
