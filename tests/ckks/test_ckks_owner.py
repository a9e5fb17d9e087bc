"""A model that the server does not know either: its owner's message, and nobody else's."""

import numpy as np
import pytest
from cases import each_case
from ckks.parties import Parties, changed, linear_model, table

from securecomp.ckks import InferenceServer
from securecomp.ckks.inference_messages import EncryptedWeights, Query
from securecomp.ckks.native.logits import integers
from securecomp.ckks.native.ring import Fixed
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    RemoteProtocolError,
)
from securecomp.protocol.wire import Vector


@pytest.fixture
def parties():
    return Parties(encrypted=True, clients=("ann", "bob"))


@pytest.fixture
def unloaded():
    """A server that ann and bob are registered with, without a model."""
    parties = Parties(encrypted=True, clients=("ann", "bob"))
    parties.server = InferenceServer(parties.offer, parties.identities["server"], None)
    for client in parties.clients.values():
        parties.server.register(client.registration.encode())
    return parties


def model_for(parties, name="ann"):
    return bytes(parties.owner.encrypt(parties.clients[name].registration.encode()))


def close(parties, rows, name="ann"):
    got = parties.ask(rows, name).logits
    return np.abs(got - parties.model.logits(rows)).max() <= parties.plan.precision


class TestLoading:
    def test_no_answer_without_a_model(self, unloaded):
        with pytest.raises(LocalProtocolError, match="ann: no model is loaded for this client's"):
            unloaded.ask(table(1))
        assert unloaded.server.load_model(model_for(unloaded)) == "ann"
        assert close(unloaded, table(2))
        with pytest.raises(LocalProtocolError, match="bob: no model is loaded"):
            unloaded.ask(table(1), "bob")

    def test_each_client_has_its_own(self, unloaded):
        for name in ("bob", "ann"):
            assert unloaded.server.load_model(model_for(unloaded, name)) == name
        for name in ("ann", "bob"):
            assert close(unloaded, table(3), name)

    def test_again_is_another_encryption_of_it(self, parties):
        one, two = model_for(parties), model_for(parties)
        a, b = parties.read(one)[1], parties.read(two)[1]
        assert (a == b).mean() < 1e-3
        for data in (one, two, one):
            parties.server.load_model(data)
            assert close(parties, table(1))

    def test_a_new_key_needs_a_new_one(self, parties):
        client = parties.client("ann", "a new key")
        parties.server.register(client.registration.encode())
        with pytest.raises(LocalProtocolError, match="no model is loaded for this client's key"):
            parties.server.predict(client.encrypt(table(1)))
        registration = client.registration.encode()
        parties.server.load_model(parties.owner.encrypt(registration))
        client.decrypt(parties.server.predict(client.encrypt(table(1))))

    def test_the_server_has_no_weights(self, parties):
        assert parties.server._circuit._weights is None
        assert "weights" not in repr(vars(parties.server))
        assert parties.offer.plan.model == "encrypted"


class TestRefusals:
    def refuse(self, parties, data, errors, reason=None):
        with pytest.raises(errors, match=reason):
            parties.server.load_model(data)
        with pytest.raises(LocalProtocolError, match="no model is loaded"):
            parties.ask(table(1))

    def test_not_the_owners(self, unloaded):
        """A client that would like to be asked for its own model."""
        message, residues = unloaded.read(model_for(unloaded))
        forged = unloaded.say(message, residues, "ann")
        self.refuse(
            unloaded, forged, RemoteProtocolError, "ann: sent message kind 50, which it may not"
        )

    def test_under_the_owners_name(self, unloaded):
        message, residues = unloaded.read(model_for(unloaded))
        keys = unloaded.ann._engagement.keys
        mine, owners = unloaded.identities["ann"], keys["owner"]
        keys["owner"] = mine.public
        unloaded.identities["owner"] = mine
        try:
            forged = unloaded.say(message, residues, "owner")
        finally:
            keys["owner"] = owners
        self.refuse(unloaded, forged, AuthenticationError, "owner: the message was not made by")

    def test_of_another_session(self, unloaded):
        other = Parties(encrypted=True, seed="elsewhere")
        self.refuse(unloaded, model_for(other), RemoteProtocolError, "not registered with this key")

    def test_for_a_key_that_is_not_registered(self, unloaded):
        client = unloaded.client("ann", "a new key")
        data = unloaded.owner.encrypt(client.registration.encode())
        self.refuse(unloaded, data, RemoteProtocolError, "not registered with this key")

    def test_the_model_of_another_client(self, unloaded):
        """Bob's is loaded for bob, whoever brings it."""
        assert unloaded.server.load_model(model_for(unloaded, "bob")) == "bob"
        with pytest.raises(LocalProtocolError, match="ann: no model is loaded"):
            unloaded.ask(table(1))
        assert close(unloaded, table(1), "bob")

    def test_a_request_in_its_place(self, unloaded):
        request = unloaded.ann.encrypt(table(1))
        self.refuse(unloaded, request, RemoteProtocolError, "ann: sent message kind 48")
        message, residues = unloaded.read(request)
        forged = unloaded.say(message, residues, "owner")
        self.refuse(unloaded, forged, RemoteProtocolError, "owner: sent message kind 48")

    def test_in_the_place_of_a_request(self, parties):
        with pytest.raises(RemoteProtocolError, match="owner: sent message kind 50"):
            parties.server.predict(model_for(parties))
        query = Query(b"r" * 16, 1, b"s" * 32, Vector(1, 1))
        with pytest.raises(RemoteProtocolError, match="owner: sent message kind 48"):
            parties.server.predict(parties.say(query, [1], "owner"))

    @each_case("change", [-1, 1, -2048, 2048])
    def test_another_size(self, unloaded, change):
        message, residues = unloaded.read(model_for(unloaded))
        size = residues.size + change
        forged = unloaded.say(
            changed(message, residues=Vector(unloaded.ring.bits, size)),
            np.resize(residues, size),
            "owner",
        )
        self.refuse(unloaded, forged, RemoteProtocolError, f"owner: .*has {size} elements")

    @each_case("place", [0, -1, 5000])
    def test_a_residue_that_is_none(self, unloaded, place):
        message, residues = unloaded.read(model_for(unloaded))
        residues[place] = unloaded.ring.primes[-1 if place == -1 else 0]
        forged = unloaded.say(message, residues, "owner")
        self.refuse(unloaded, forged, RemoteProtocolError, "owner: a residue is not below its pri")

    def test_a_body_that_is_none(self, unloaded):
        forged = unloaded.say(EncryptedWeights("text"), [1], "owner")
        self.refuse(unloaded, forged, RemoteProtocolError, "owner: EncryptedWeights: ")

    def test_a_replaced_model_stays_if_the_next_is_refused(self, parties):
        bad = bytearray(model_for(parties))
        bad[-1] ^= 1
        with pytest.raises(AuthenticationError):
            parties.server.load_model(bytes(bad))
        assert close(parties, table(2))


class TestOwner:
    def test_refuses_registrations_for_another_offer(self, parties):
        other = Parties(encrypted=True, seed="elsewhere")
        with pytest.raises((KeyMismatchError, AuthenticationError)):
            parties.owner.encrypt(other.ann.registration.encode())
        with pytest.raises(DecodeError):
            parties.owner.encrypt(b"")
        plain = Parties()
        with pytest.raises((KeyMismatchError, DecodeError)):
            parties.owner.encrypt(plain.ann.registration.encode())

    def test_what_it_encrypts_is_the_model(self, parties):
        """The client's key opens it: the server and the client together learn the model."""
        ring, key = parties.ring, parties.ann._circuit._key
        _, residues = parties.read(model_for(parties))
        flat = residues.reshape(ring.levels, -1, ring.degree)
        inputs = parties.plan.inputs
        columns = flat[:, : 2 * inputs].reshape(ring.levels, 2, inputs, ring.degree)
        weights, _ = integers(parties.model, parties.plan)
        for j, weight in enumerate(weights[0]):
            c0 = np.ascontiguousarray(columns[:, 0, j]).copy()
            ring.to_coefficients(c0)
            phase = key.phase(np.ascontiguousarray(columns[:, 1, j : j + 1]))
            whole = ring.signed(ring.residues(ring.signed(c0) + ring.signed(phase)))
            whole[0] -= weight
            assert max(map(abs, whole)) <= 21 * (2 * ring.degree + 1)
            assert len(set(whole.tolist())) > 100

    def test_without_the_key_it_is_noise(self, parties):
        ring = parties.ring
        _, residues = parties.read(model_for(parties))
        shares = np.bincount(
            (residues.astype(object) * 64 // ring.primes[0]).astype(int).clip(0, 63), minlength=64
        )
        expected = residues.size / 64
        assert ((shares - expected) ** 2 / expected).sum() < 112.5

    def test_another_key_opens_nothing(self, parties):
        ring, key = parties.ring, parties.clients["bob"]._circuit._key
        _, residues = parties.read(model_for(parties))
        flat = residues.reshape(ring.levels, -1, ring.degree)
        c0 = np.ascontiguousarray(flat[:, 0]).copy()
        ring.to_coefficients(c0)
        phase = key.phase(np.ascontiguousarray(flat[:, parties.plan.inputs])[:, None])
        whole = ring.signed(ring.residues(ring.signed(c0) + ring.signed(phase)))
        assert max(map(abs, whole)) > ring.modulus >> 4

    @each_case("precision", [0.1, 1e-4, 1e-8])
    @each_case("outputs", [1, 3])
    def test_answers_are_within_the_precision(self, precision, outputs):
        parties = Parties(
            linear_model(4, outputs, intercept=0.25, bound=3.0),
            encrypted=True,
            precision=precision,
        )
        for rows in (1, 3, parties.ring.degree + 1):
            x = table(rows, 4, 3.0, seed=rows)
            got = parties.ask(x).logits
            assert np.abs(got - parties.model.logits(x)).max() <= precision

    def test_answers_have_three_parts(self, parties):
        rows = table(1)
        query, sent = parties.read(parties.ann.encrypt(rows))
        answer, got = parties.read(parties.server.predict(parties.say(query, sent)))
        ring = parties.ring
        assert got.size == ring.levels * (1 + 2 * ring.degree)
        # the last part is the product of the two masks: c_1 of the row and of the weights
        assert answer.rows == 1
        c2 = got.reshape(ring.levels, -1)[:, 1 + ring.degree :]
        mine = ring.uniform(query.seed, 1)[:, 0]
        account = next(iter(parties.server._clients.values())).account
        product = np.zeros_like(c2)
        ring.add_product(
            product,
            np.ascontiguousarray(mine),
            Fixed(ring, account._weights._rows.residues[:, 1, 0, 0]),
        )
        assert np.array_equal(product, c2)
