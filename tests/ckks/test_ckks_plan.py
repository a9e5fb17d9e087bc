"""What a plan says is what is sent, and a plan that is not sound is refused when it is read."""

import json
import math

import msgspec
import numpy as np
import pytest
from cases import each_case, examples
from ckks.parties import Parties, linear_model, table
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks import InferencePlan, Offer, planner
from securecomp.ckks.enrolment import ClientSession
from securecomp.ckks.native.ring import primes
from securecomp.ckks.native.ring_parameters import LinearParameters
from securecomp.ckks.plan import MAX_ROWS
from securecomp.errors import DecodeError, KeyMismatchError, ParameterError
from securecomp.protocol import wire

CHOICES = {"plain": {}, "protected": {"protect_model": True}, "encrypted": {"encrypted": True}}


@pytest.fixture(scope="module")
def parties():
    return {kind: Parties(linear_model(5), **choice) for kind, choice in CHOICES.items()}


def facts(plan):
    return json.loads(msgspec.json.encode(plan))


def read(found):
    return msgspec.json.decode(json.dumps(found), type=InferencePlan)


def with_circuit(plan, **changes):
    found = facts(plan)
    found["circuit"] |= changes
    return found


@pytest.mark.parametrize("kind", CHOICES)
class TestRoundTrip:
    def test_a_plan(self, kind, parties):
        plan = parties[kind].plan
        again = read(facts(plan))
        assert again == plan
        assert again.digest == plan.digest
        assert len(plan.digest) == 32

    def test_an_offer(self, kind, parties):
        offer = parties[kind].offer
        again = Offer.from_json(offer.to_json())
        assert again == offer
        assert (again.digest, again.fingerprint) == (offer.digest, offer.fingerprint)
        assert Offer.from_json(offer.to_json().encode()) == offer

    def test_everything_is_in_the_digest(self, kind, parties):
        offer = parties[kind].offer
        plan = offer.plan
        other = [
            msgspec.structs.replace(plan, bounds=(2.0, *plan.bounds[1:])),
            msgspec.structs.replace(plan, classes=("x", "y")),
            msgspec.structs.replace(plan, precision=plan.precision * 1.01),
            msgspec.structs.replace(plan, logit_bound=plan.logit_bound / 2),
            msgspec.structs.replace(plan, max_rows=2),
            msgspec.structs.replace(plan, features=tuple("abcde")),
        ]
        digests = {p.digest for p in (plan, *other)}
        assert len(digests) == 7
        assert len({msgspec.structs.replace(offer, plan=p).digest for p in (plan, *other)}) == 7


@each_case("kind", CHOICES)
@each_case("rows", [1, 2, 3, 5])
def test_the_sizes_are_what_is_sent(kind, rows, parties):
    here = parties[kind]
    # a protected model's rows are few, so each test takes a new client of that name
    here = here if kind != "protected" else Parties(linear_model(5), protect_model=True)
    request = here.ann.encrypt(table(rows, 5))
    answer = here.server.predict(request)
    up, down = here.plan.sizes(rows)
    for data, size in ((request, up), (answer, down)):
        message, residues = here.read(data)
        assert message.rows == rows
        assert residues.size == message.residues.length == size
        assert message.residues.bits == here.ring.bits
        envelope = len(data) - wire.packed_size(size, here.ring.bits)
        assert 100 < envelope < 300
    there, back = here.plan.bytes_per_row(rows)
    assert there * rows == pytest.approx(up * here.ring.bits / 8)
    assert back * rows == pytest.approx(down * here.ring.bits / 8)


@each_case("rows", [2047, 2048, 2049, 5000])
@each_case("outputs", [1, 3])
def test_the_sizes_of_many_rows(rows, outputs):
    here = Parties(linear_model(3, outputs))
    request = here.ann.encrypt(table(rows))
    assert here.read(request)[1].size == here.plan.sizes(rows)[0]
    assert here.read(here.server.predict(request))[1].size == here.plan.sizes(rows)[1]


def test_the_size_of_an_encrypted_model(parties):
    here = parties["encrypted"]
    data = here.owner.encrypt(here.ann.registration.encode())
    assert here.read(data)[1].size == here.plan.weight_residues
    assert parties["plain"].plan.weight_residues == 0


class TestTheLargestMessage:
    @staticmethod
    def largest(features, outputs, **choices):
        """(bytes of the largest vector of any number of rows, what the session lets through)."""
        here = Parties(linear_model(features, outputs), **choices)
        n = here.ring.degree
        # whole columns only add up, so that the last N numbers of rows have the largest
        sizes = [max(here.plan.sizes(rows)) for rows in range(MAX_ROWS - n, MAX_ROWS + 1)]
        session = ClientSession(here.offer, here.ann.registration)
        residues = max(*sizes, here.plan.weight_residues)
        return wire.packed_size(residues, here.ring.bits), session.largest_message

    @each_case("features, outputs", [(1, 1), (3, 1), (40, 1), (40, 3)])
    def test_no_request_or_answer_passes_it(self, features, outputs):
        needed, most = self.largest(features, outputs)
        assert needed + 1000 < most < needed * 1.01 + 5000

    def test_an_answer_to_nearly_the_most_rows(self):
        """The largest one is not that to the most rows; the client takes it."""
        here = Parties(linear_model(8, 5))
        n = here.ring.degree
        rows = max(range(MAX_ROWS - n, MAX_ROWS + 1), key=lambda rows: here.plan.sizes(rows)[1])
        x = table(rows, 8)
        got = here.ask(x).logits
        assert np.abs(got - here.model.logits(x)).max() <= 1e-4

    @each_case("features, outputs", [(15, 10), (8, 5)])
    def test_with_many_classes_neither(self, features, outputs):
        needed, most = self.largest(features, outputs)
        assert needed + 1000 < most


class TestUnsound:
    def refused(self, found, reason):
        with pytest.raises(msgspec.ValidationError, match=reason):
            read(found)

    @each_case("kind", CHOICES)
    @each_case(
        "changes",
        [
            {"input_bits": 0},
            {"input_bits": 51},
            {"input_bits": -1},
            {"lift_bits": -1},
            {"lift_bits": 201},
            {"weight_bits": -1},
            {"weight_bits": 201},
            {"flood_bits": -1},
            {"flood_bits": 401},
            {"release_bits": -1},
            {"release_bits": 401},
            {"primes": []},
            {"primes": [3]},
            {"primes": [2**61 + 1]},
            {"primes": [10**30]},
            {"primes": [*primes(8192, 24, 8), *primes(8192, 23, 1)]},
        ],
    )
    def test_numbers_out_of_range(self, kind, changes, parties):
        self.refused(with_circuit(parties[kind].plan, **changes), "numbers out of range")

    def test_insecure(self, parties):
        plan = parties["plain"].plan
        for changes in (
            {"degree": 1024, "primes": primes(1024, 27, 1)},
            {"degree": 2048, "primes": primes(2048, 27, 2)},
            {"degree": 4096, "primes": primes(4096, 54, 2)},
        ):
            self.refused(with_circuit(plan, **changes), "not 128-bit secure")
        for degree in (64, 512, 0, -2048, 2047, 65536, 10**30):
            self.refused(with_circuit(plan, degree=degree), "no security estimate|out of range|int")

    def test_no_such_primes(self, parties):
        plan = parties["plain"].plan
        (q,) = plan.circuit.primes
        for wrong in ([q + 2], [q + 2 * plan.circuit.degree], [q - 1]):
            self.refused(with_circuit(plan, primes=wrong), "is not a prime below")
        p = primes(4096, 40, 1)
        self.refused(with_circuit(plan, degree=4096, primes=[*p, *p]), "no prime twice")
        mixed = [*p, *primes(4096, 41, 1)]
        self.refused(with_circuit(plan, degree=4096, primes=mixed), "differ in length")

    def test_inputs_that_do_not_fit_a_prime(self, parties):
        plan = parties["plain"].plan
        p = primes(2048, 30, 1)
        self.refused(with_circuit(plan, primes=p, input_bits=29), "longer than its primes")
        self.refused(with_circuit(plan, primes=p, input_bits=28), "does not hold its largest logit")

    @each_case(
        "change, reason",
        [
            ({"features": []}, "one bound for each feature"),
            ({"features": ["a", "a", "b", "c", "d"]}, "no name twice"),
            ({"bounds": [1.0]}, "one bound for each feature"),
            ({"bounds": [1.0, 1.0, 1.0, 1.0, 3.0]}, "powers of 2"),
            ({"bounds": [1.0, 1.0, 1.0, 1.0, 0.0]}, "powers of 2"),
            ({"bounds": [1.0, 1.0, 1.0, 1.0, -2.0]}, "powers of 2"),
            ({"logit_bound": 3.0}, "powers of 2"),
            ({"logit_bound": 0.0}, "powers of 2"),
            ({"precision": 1.0}, "precision lies between"),
            ({"precision": 1e-9}, "precision lies between"),
            ({"error": 0.0}, "precision lies between"),
            ({"error": -1e-9}, "precision lies between"),
            ({"classes": ["a"]}, "do not match its link"),
            ({"classes": ["a", "b", "c"]}, "do not match its link"),
            ({"link": "softmax"}, "do not match its link"),
            ({"link": "probit"}, "Invalid enum value"),
            ({"max_rows": -1}, "cannot be negative"),
            ({"model": "secret"}, "Invalid enum value"),
            ({"protect_model": True}, "must have flood noise and a limit of rows"),
            ({"shareable_rows": 5}, "noise for results if they may be shared"),
            ({"shareable_rows": -1}, "cannot be negative"),
            ({"classes": [1, True]}, "named twice"),
            ({"surprise": 1}, "unknown field"),
        ],
    )
    def test_a_description_that_is_none(self, change, reason, parties):
        self.refused(facts(parties["plain"].plan) | change, reason)

    @each_case("change", [{"weight_bits": 60}, {"lift_bits": 30}])
    def test_a_scale_beyond_the_modulus(self, change, parties):
        self.refused(
            with_circuit(parties["plain"].plan, **change), "does not hold its largest logit"
        )

    @each_case("bits", [1, 3, 60])
    def test_a_logit_bound_beyond_the_modulus(self, bits, parties):
        plan = parties["plain"].plan
        modulus, scale = math.prod(plan.circuit.primes), 2**plan.circuit.scale_bits
        room = modulus / 2 / scale
        bound = 2.0 ** (math.frexp(room)[1] - 1 + bits)  # above `room`
        assert plan.logit_bound / 2 <= room < bound
        with pytest.raises(msgspec.ValidationError):
            read(facts(plan) | {"logit_bound": bound})

    def test_a_precision_that_the_circuit_cannot_have(self, parties):
        plan = parties["plain"].plan
        least = len(plan.features) / 2 / 2.0**plan.circuit.weight_bits  # rounding of the weights
        assert plan.error > least
        with pytest.raises(msgspec.ValidationError):
            read(facts(plan) | {"precision": 1e-300, "error": 1e-301})

    @each_case("rows", [0, 6, 10**6])
    def test_more_rows_than_protect(self, rows, parties):
        found = facts(parties["protected"].plan) | {"max_rows": rows}
        self.refused(found, "must have flood noise and a limit of rows")

    def test_a_flood_that_is_too_small(self, parties):
        with pytest.raises(msgspec.ValidationError):
            read(with_circuit(parties["protected"].plan, flood_bits=1))

    def test_protected_and_encrypted(self, parties):
        with pytest.raises(msgspec.ValidationError):
            read(facts(parties["protected"].plan) | {"model": "encrypted"})

    @each_case("bound", [5e-324, 2.0**-121, 2.0**221, 2.0**1023])
    def test_a_bound_beyond_floats(self, bound, parties):
        self.refused(facts(parties["plain"].plan) | {"bounds": [bound] * 5}, "powers of 2")


class TestOffers:
    @each_case(
        "text",
        ["", "{}", "[]", "null", "{", "\x00", b"\xff\xfe", '{"server": 1}', "[" * 10**6],
    )
    def test_no_offer(self, text):
        with pytest.raises(DecodeError, match="not an offer"):
            Offer.from_json(text)

    @each_case(
        "change",
        [
            {"server": ""},
            {"server": "a\nb"},
            {"server": "x" * 101},
            {"key": ""},
            {"key": "AAAA"},
            {"key": "A" * 86 + "=="},
            {"plan": {}},
            {"owner": "owner"},
            {"surprise": 1},
        ],
    )
    def test_an_unsound_one(self, change, parties):
        found = json.loads(parties["plain"].offer.to_json()) | change
        with pytest.raises(DecodeError, match="not an offer"):
            Offer.from_json(json.dumps(found))

    def test_an_insecure_plan(self, parties):
        found = json.loads(parties["plain"].offer.to_json())
        found["plan"]["circuit"] |= {"degree": 4096, "primes": list(primes(4096, 54, 2))}
        with pytest.raises(DecodeError, match="not 128-bit secure"):
            Offer.from_json(json.dumps(found))

    @given(data=st.data())
    @examples(150)
    def test_any_damage(self, data, parties):
        text = parties["encrypted"].offer.to_json()
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(st.text(max_size=2))
        damaged = text[:at] + new + text[at + data.draw(st.integers(0, 4)) :]
        try:
            found = Offer.from_json(damaged)
        except DecodeError:
            return
        assert Offer.from_json(found.to_json()) == found

    def test_the_owner_and_the_server_are_two(self, parties):
        plain, encrypted = parties["plain"], parties["encrypted"]
        key = plain.identities["server"].public
        other = encrypted.identities["owner"].public
        for arguments in (
            ("server", key, encrypted.plan, bytes(32), "server", other),
            ("server", key, encrypted.plan, bytes(32), "owner", key),
        ):
            with pytest.raises(ParameterError, match="two parties"):
                Offer(*arguments)
        with pytest.raises(ParameterError, match="names the model's owner"):
            Offer("server", key, encrypted.plan, bytes(32))
        with pytest.raises(ParameterError, match="names the model's owner"):
            Offer("server", key, plain.plan, bytes(32), "owner", other)
        with pytest.raises(KeyMismatchError):
            Offer("server", key, encrypted.plan, bytes(32), "owner", b"")
        with pytest.raises(ParameterError, match="an offer commits to its model"):
            Offer("server", key, plain.plan, bytes(31))


def test_what_a_person_reads(parties):
    text = str(parties["plain"].plan)
    assert "features, classes         5, 2" in text
    assert "no: a client that looks at replies learns the weights" in text
    assert f"128 bits (up to {53} bits of modulus)" in text
    assert "all but the logits, for 5 rows of an honest client" in str(parties["protected"].plan)
    assert "neither rows nor weights" in str(parties["encrypted"].plan)
    widths = {line.index("  ") for line in text.splitlines()}
    assert len(text.splitlines()) == len(parties["plain"].plan.describe()) >= 10
    assert max(widths) < 30


@given(precision=st.floats(1e-9, 0.9), features=st.integers(1, 40))
def test_decimals_keep_within_the_precision(precision, features):
    plan = planner.plan(linear_model(features), precision=precision)
    half = 0.5 * 10.0**-plan.decimals
    assert half <= (plan.precision - plan.error) * (1 + 1e-8)
    x = np.linspace(-1, 1, 101) / 3
    assert np.abs(np.round(x, plan.decimals) - x).max() <= half * (1 + 1e-6) + 1e-16


def test_numbers_of_a_circuit():
    circuit = LinearParameters(4096, primes(4096, 50, 2), 20, 30, 17, 60)
    assert circuit.scale_bits == 67
    assert circuit.bits == 50
    assert circuit.ring.modulus == math.prod(circuit.primes)
