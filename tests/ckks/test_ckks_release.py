"""Results that may be shared, servers that come back, several messages in one file."""

import base64
import csv
import io
import json
import struct
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from cases import each_case
from ckks.parties import Parties, linear_model, stream, table
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks import (
    FileRequestLog,
    InferenceClient,
    InferenceServer,
    LogisticModel,
    inference_files,
    inference_server,
    planner,
)
from securecomp.ckks.inference_client import Predictions
from securecomp.ckks.native.encryption import RingPublicKey
from securecomp.ckks.native.layout import RowRun
from securecomp.ckks.native.logits import LogitClient, integers, pack
from securecomp.core import field_kernels
from securecomp.errors import BudgetError, DecodeError, KeyMismatchError, ParameterError
from securecomp.protocol import wire

SHARED = {
    "shareable": {"shareable_rows": 1000},
    "both": {"protect_model": True, "shareable_rows": 10},
}


@pytest.mark.parametrize("choice", SHARED.values(), ids=SHARED)
class TestSharedResults:
    @each_case("outputs", [1, 3])
    @each_case("precision", [0.1, 1e-4, 1e-7])
    def test_are_within_the_precision(self, choice, outputs, precision):
        parties = Parties(linear_model(6, outputs), precision=precision, **choice)
        rows = table(6, 6)
        got = parties.ask(rows).logits
        assert np.abs(got - parties.model.logits(rows)).max() <= precision

    def test_an_answer_gives_the_same_numbers_whenever_it_is_read(self, choice, monkeypatch):
        """Also from the key's file: noise that differed would average away."""
        parties = Parties(linear_model(6), **choice)
        raw = []
        real = LogitClient.decrypt

        def spy(*arguments):
            found = real(*arguments)
            raw.append(found.values)
            return found

        monkeypatch.setattr(LogitClient, "decrypt", spy)
        rows = table(2, 6)
        request = parties.ann.encrypt(rows)
        answer = parties.server.predict(request)
        for client in (parties.ann, InferenceClient.from_json(parties.ann.to_json())):
            for _ in range(2):
                client.decrypt(answer, request)
        assert all(np.array_equal(raw[0], other) for other in raw)
        # The same rows again: other digits below the precision, the same above.
        parties.ask(rows)
        again = raw[-1]
        assert (raw[0] != again).all()
        difference = np.abs(raw[0] - again).max()
        c = parties.plan.linear
        assert 2.0**-8 < difference / 2.0 ** (c.release_bits - c.scale_bits) <= 2
        assert difference < 2 * parties.plan.error

    def test_their_noise_is_secret(self, choice):
        """A server that could work it out from its own answer would take it off."""
        parties = Parties(linear_model(6), **choice)
        answer = parties.server.predict(parties.ann.encrypt(table(6, 6)))
        message, residues = parties.read(answer)
        payload = memoryview(pack_all(parties, residues))
        circuit = parties.ann._circuit
        one = circuit.decrypt(message, payload, 6).values
        circuit.secret = bytes(32)
        other = circuit.decrypt(message, payload, 6).values
        c = parties.plan.linear
        apart = np.abs(one - other) * 2.0 ** (c.scale_bits - c.release_bits)
        assert (apart > 2.0**-12).all()

    def test_are_told(self, choice):
        parties = Parties(linear_model(6), **choice)
        rows = parties.plan.shareable_rows
        assert f"anybody, of {rows:,} rows (2^-40, by the server's word)" in str(parties.plan)

    def test_a_plan_whose_noise_hides_less(self, choice):
        parties = Parties(linear_model(6), **choice)
        for fields in ("release_bits", "flood_bits"):
            if getattr(parties.plan.circuit, fields):
                bits = getattr(parties.plan.circuit, fields)
                circuit = msgspec.structs.replace(parties.plan.circuit, **{fields: bits - 2})
                plan = msgspec.structs.replace(parties.plan, circuit=circuit)
                with pytest.raises(ParameterError, match="hides less than the plan says"):
                    integers(parties.model, plan)
        plan = msgspec.structs.replace(
            parties.plan, shareable_rows=parties.plan.shareable_rows * 10
        )
        with pytest.raises(ParameterError, match="hides less than the plan says"):
            integers(parties.model, plan)


def test_the_noise_of_shared_results_is_uniform_and_wide():
    """The same logit, opened many times: even over the whole range, whatever the ciphertext's."""
    parties = Parties(linear_model(2), shareable_rows=1000, precision=1e-2)
    request = parties.ann.encrypt(np.full((2000, 2), 0.5))
    answer, residues = parties.read(parties.server.predict(request))
    payload = memoryview(pack_all(parties, residues))
    found = parties.ann._circuit.decrypt(answer, payload, 2000).values[:, 0]
    c = parties.plan.linear
    (weights,), (intercept,) = integers(parties.model, parties.plan)
    whole = (sum(weights) << (c.input_bits - 1 + c.lift_bits)) + intercept
    exact = float(Fraction(whole, 2**c.scale_bits))
    scaled = (found - exact) * 2.0 ** (c.scale_bits - c.release_bits)
    assert np.abs(scaled).max() < 1.001
    cells = np.histogram(scaled, 16, (-1, 1))[0]
    assert ((cells - 125) ** 2 / 125).sum() < 44.3  # 15 degrees of freedom, 1 in 10,000


def inside(rows):
    """No row outside of a domain."""
    return np.zeros(rows, bool)


def pack_all(parties, residues):
    words = np.zeros(wire.packed_size(residues.size, parties.ring.bits) // 8, "<u8")
    field_kernels.pack(residues, parties.ring.bits, words)
    return words.tobytes()


class TestRefusals:
    def test_shared_and_encrypted(self):
        with pytest.raises(ParameterError, match="for the client only"):
            planner.plan(linear_model(), shareable_rows=1, encrypted=True)

    @each_case("choice", [{"shareable_rows": -1}, {"max_rows": 0}, {"max_rows": -3}])
    def test_no_number_of_rows(self, choice):
        with pytest.raises(ParameterError, match="a number of rows must be positive"):
            planner.plan(linear_model(), **choice)


class TestAFalsePublicKey:
    def test_logits_of_one_ciphertext_are_few(self):
        """What a client could read of u is below a twentieth of what u holds."""
        for features, precision in ((6, 1e-4), (300, 1e-4), (60, 1e-8)):
            model = linear_model(features, scale=1 / features)
            plan = planner.plan(model, precision=precision, protect_model=True)
            for rows in {1, 2, features // 2, features}:
                found = plan.sections(rows)
                assert sum(s.rows for s in found) == rows
                for section in found:
                    assert not section.by_columns
                    most = max(section.count(g) for g in range(section.groups))
                    modulus = np.log2(np.array(plan.circuit.primes, float)).sum()
                    bits = most * (modulus - plan.circuit.flood_bits)
                    assert most == 1 or bits < 0.05 * np.log2(3) * plan.circuit.degree + 1

    @each_case("most", [1, 2, 5])
    def test_groups_of_so_many_rows(self, most):
        section = RowRun(64, 6, False, 0, 9, most)
        assert section.capacity == min(10, most)
        assert [section.count(g) for g in range(section.groups)] == {
            1: [1] * 9,
            2: [2, 2, 2, 2, 1],
            5: [5, 4],
        }[most]

    def test_a_client_with_one_reads_no_weight(self):
        """b = 0 instead of its key's: the server adds (e_0, a u + e_1), and c_1 stays hidden."""
        parties = Parties(linear_model(6), protect_model=True, clients=("ann", "bob"))
        bob = parties.client("bob", "false")
        public = bob._circuit._key.public(stream("p"))
        zero = np.zeros_like(public.b)
        good = bob.registration
        facts = (*(getattr(good, f) for f in ("client", "key", "offer", "secret_id", "seed")),)
        false = (*facts, pack(parties.ring, zero))
        signature = parties.identities["bob"].sign("ckks registration", *false)
        registration = type(good)(*false, signature)
        assert parties.server.register(registration.encode()) == "bob"
        seen = RingPublicKey(parties.ring, good.seed, zero).encrypt(
            np.zeros((parties.ring.levels, 1, parties.ring.degree), np.uint64), stream("s")(32)
        )
        masks = seen[1].reshape(parties.ring.levels, -1)
        for level, q in enumerate(parties.ring.primes):
            cells = np.bincount((masks[level].astype(object) * 16 // q).astype(int), minlength=16)
            share = masks.shape[1] / 16
            assert ((cells - share) ** 2 / share).sum() < 44.3


class TestServerFiles:
    @pytest.mark.parametrize(
        "choice", [{}, {"protect_model": True}, {"encrypted": True}], ids=["a", "b", "c"]
    )
    def test_there_and_back(self, choice, tmp_path):
        book = FileRequestLog(tmp_path)
        parties = Parties(linear_model(6), ledger=book, **choice)
        parties.ask(table(2, 6))
        text = parties.server.to_json()
        model = None if parties.encrypted else parties.model
        again = InferenceServer.from_json(text.encode(), model, ledger=FileRequestLog(tmp_path))
        assert again.to_json() == text
        assert again.offer == parties.offer
        parties.server = again
        parties.server.register(parties.ann.registration.encode())
        if parties.encrypted:
            again.load_model(parties.owner.encrypt(parties.ann.registration.encode()))
        rows = table(4, 6)
        assert np.abs(parties.ask(rows).logits - parties.model.logits(rows)).max() <= 1e-4
        if choice == {"protect_model": True}:
            with pytest.raises(BudgetError):
                parties.ask(table(1, 6))
        assert str(parties.model.weights[0][0]) not in text

    @each_case("text", ["", "{}", "[]", "\x00", b"\xff", "[" * 10**6])
    def test_no_server_file(self, text):
        with pytest.raises(DecodeError, match="not a server's key"):
            InferenceServer.from_json(text, linear_model())

    def test_an_unsound_one(self):
        parties = Parties()
        facts = json.loads(parties.server.to_json())
        for change in ({"format": "x"}, {"version": 1}, {"offer": {}}, {"more": 1}):
            with pytest.raises(DecodeError):
                InferenceServer.from_json(json.dumps(facts | change), parties.model)
        other = json.loads(Parties(seed="other").server.to_json())
        mixed = json.dumps(facts | {"identity": other["identity"]})
        with pytest.raises(KeyMismatchError):
            InferenceServer.from_json(mixed, parties.model)
        with pytest.raises(ParameterError, match="a plan for a plain model needs the model"):
            InferenceServer.from_json(json.dumps(facts), None)

    def test_the_published_model_and_no_other(self):
        """The fault: with all weights negated the file answered, and patients flipped."""
        parties = Parties(linear_model(6))
        text = parties.server.to_json()
        model = parties.model
        negated = tuple(tuple(-w for w in row) for row in model.weights)
        for change in (
            {"weights": negated},
            {"intercepts": tuple(np.nextafter(c, 9) for c in model.intercepts)},
            {"bounds": (0.5,) * 6},
            {"classes": model.classes[::-1]},
            {"features": model.features[::-1]},
        ):
            other = msgspec.structs.replace(model, **change)
            with pytest.raises(KeyMismatchError, match="made for another model"):
                InferenceServer.from_json(text, other)
            # Nor if somebody writes the other model's digest into the file.
            facts = json.loads(text) | {"model": base64.b64encode(other.digest).decode()}
            with pytest.raises(KeyMismatchError, match="this is not the model of the offer"):
                InferenceServer.from_json(json.dumps(facts), other)
            with pytest.raises(KeyMismatchError, match="this is not the model of the offer"):
                InferenceServer(
                    parties.offer, parties.identities["server"], other, parties.server.salt
                )
        read = LogisticModel.from_json(model.to_json())
        assert InferenceServer.from_json(text, read).to_json() == text

    def test_a_commitment_shows_nothing_without_its_salt(self):
        parties, again = Parties(seed="one"), Parties(seed="two")
        assert parties.model == again.model
        assert parties.offer.commitment != again.offer.commitment
        parties.offer.check_model(parties.model, parties.server.salt)
        for salt in (bytes(32), again.server.salt):
            with pytest.raises(KeyMismatchError):
                parties.offer.check_model(parties.model, salt)
        with pytest.raises(ParameterError, match="a commitment's salt has 32 bytes, not 0"):
            parties.offer.check_model(parties.model, b"")
        assert parties.server.salt.hex() not in repr(parties.server)
        public = parties.offer.to_json() + parties.ann.to_json()
        assert base64.b64encode(parties.server.salt).decode() not in public
        assert base64.b64encode(parties.model.digest).decode() not in public

    def test_an_owners_offer_commits_too(self):
        one, other = (Parties(linear_model(seed=s), encrypted=True) for s in (0, 1))
        assert one.offer.commitment != other.offer.commitment
        one.offer.check_model(one.model, one.owner.salt)
        with pytest.raises(KeyMismatchError):
            one.offer.check_model(other.model, one.owner.salt)
        assert json.loads(one.server.to_json())["salt"] == ""

    def test_a_key_of_another_length(self):
        parties = Parties()
        facts = json.loads(parties.server.to_json()) | {"identity": "AAAA"}
        with pytest.raises(DecodeError):
            InferenceServer.from_json(json.dumps(facts), parties.model)

    def test_no_secret_in_a_repr(self):
        parties = Parties()
        file = msgspec.json.decode(parties.server.to_json(), type=inference_server._ServerFile)
        assert repr(parties.identities["server"].export()) not in repr(file)

    def test_fingerprints_of_the_latest_key(self):
        parties = Parties(clients=("ann", "bob"))
        first = parties.ann.registration.fingerprint
        assert parties.server.fingerprint("ann") == first
        new = parties.join("ann", "new")
        assert parties.server.fingerprint("ann") == new.registration.fingerprint != first
        with pytest.raises(ParameterError, match="no client 'eve' is registered"):
            parties.server.fingerprint("eve")


class TestFiles:
    @given(st.lists(st.binary(max_size=50), min_size=1, max_size=6))
    def test_there_and_back(self, messages):
        assert [
            bytes(m) for m in inference_files.split(inference_files.join(messages), "f")
        ] == messages

    @given(st.lists(st.binary(max_size=20), min_size=1, max_size=3), st.data())
    def test_damage(self, messages, data):
        good = inference_files.join(messages)
        size = data.draw(st.integers(0, len(good) - 1))
        for bad in (good[:size], good + b"\x00", good + bytes(8), b"x" + good):
            with pytest.raises(DecodeError, match=r"^here: "):
                inference_files.split(bad, "here")

    def test_lies(self):
        head = b"SCCM" + struct.pack(">BI", 1, 1)
        for bad in (
            b"SCCM" + struct.pack(">BI", 1, 0),
            b"SCCM" + struct.pack(">BI", 2, 1) + struct.pack(">Q", 0),
            head + struct.pack(">Q", 2**63),
            b"SCCM" + struct.pack(">BI", 1, 2**32 - 1) + struct.pack(">Q", 0),
        ):
            with pytest.raises(DecodeError):
                inference_files.split(bad, "here")

    def test_labels_are_no_formulas(self):
        labels = ("=1+1", "+a", "-1", "@x", "\tb", "\rc", "\x00", "a=b", "", 3)
        values = np.eye(len(labels)) * 9
        parts = [Predictions(values, "logits", labels, "softmax", inside(len(values)))]
        header = ["=cmd()", "-x", "age"]
        rows = [["=own", -5, -2.5]] * len(labels)
        found = list(
            csv.reader(io.StringIO(inference_files.format_csv(header, rows, parts, 2), newline=""))
        )
        assert found[0][:4] == ["'=cmd()", "'-x", "age", "prediction"]
        assert found[0][4] == "probability =1+1"
        shown = ["'=1+1", "'+a", "'-1", "'@x", "'\tb", "'\rc", "'\x00", "a=b", "", "3"]
        assert [row[3] for row in found[1:]] == shown
        assert {tuple(row[:3]) for row in found[1:]} == {("=own", "-5", "-2.5")}

    def test_labels_that_are_numbers(self):
        parts = [Predictions(np.array([[-3.0], [3.0]]), "logits", (-1, 1), "sigmoid", inside(2))]
        found = list(csv.reader(io.StringIO(inference_files.format_csv([], (), parts, 2))))
        assert [row[0] for row in found] == ["prediction", "-1", "1"]

    def test_a_table(self):
        parts = [
            Predictions(
                np.array([[0.0], [3.0]]), "logits", ("no", "yes, much"), "sigmoid", inside(2)
            ),
            Predictions(np.array([[-3.0]]), "logits", ("no", "yes, much"), "sigmoid", inside(1)),
        ]
        text = inference_files.format_csv(["name"], [["Ann"], ["Bob"], ['"C"']], parts, 3)
        found = list(csv.reader(io.StringIO(text)))
        assert found == [
            ["name", "prediction", "probability no", "probability yes, much"],
            ["Ann", "no", "0.500", "0.500"],
            ["Bob", "yes, much", "0.047", "0.953"],
            ['"C"', "no", "0.953", "0.047"],
        ]
