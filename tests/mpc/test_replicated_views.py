"""Three parties without a dealer: what each of them hears, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest
from cases import each_case
from scipy import stats

from securecomp.core import field, prg
from securecomp.errors import (
    AuthenticationError,
    ParameterError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.mpc.computation import Computation
from securecomp.mpc.replicated_engine import ReplicatedEngine
from securecomp.mpc.roles import Seed, ShareMessage, Speaker, vector_body
from securecomp.mpc.three_party import ThreeParties
from securecomp.protocol import wire
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.role import State

P = field.MODULUS
LIMIT = field.LIMIT
V = np.array([3, -9, 9, 9, 0, -9, 5])
NAMES = ("a", "b", "c")
PRODUCT_BOUND = (1 << 30) - 1  # whose square the field holds


@pytest.fixture
def carrier(replay):
    return LocalCarrier(replay("replicated"))


@pytest.fixture
def ring(carrier):
    return ThreeParties(NAMES, carrier)


@pytest.fixture
def heard(monkeypatch):
    """What each party hears: (party, sender, bits, vector), in order."""
    found = []
    hear = Speaker.hear

    def tapped(self, data, sender, step, kind):
        message, payload = hear(self, data, sender, step, kind)
        if kind is ShareMessage:
            bits, length = message.vector.bits, message.vector.length
            found.append(
                (self.name, sender, bits, wire.unpack(message.vector, payload, length, bits))
            )
        return message, payload

    monkeypatch.setattr(Speaker, "hear", tapped)
    return found


# What each party sees.


def test_a_key_is_known_to_the_two_that_hold_its_share(ring):
    keys = [party._keys for party in ring.parties]
    for i in range(3):
        assert keys[i][1] == keys[(i + 1) % 3][0]
    assert len({own for own, _ in keys}) == 3


def test_streams_are_of_one_session_purpose_and_step(carrier, ring):
    party = ring.parties[0]
    keys = {
        holder._stream(which, purpose, step)
        for holder in (party, ThreeParties(NAMES, carrier).parties[0])
        for which in (0, 1)
        for purpose in ("zero", "input", "circuit")
        for step in (1, 2)
    }
    assert len(keys) == 24


def test_a_seed_makes_other_keys_in_another_session_and_for_another_pair(carrier, ring):
    seed = bytes(prg.SEED_BYTES)
    holders = (ring.parties[0], ThreeParties(NAMES, carrier).parties[0])
    pairs = [("a", "c"), ("b", "a")]
    assert len({holder._derive(seed, *pair) for holder in holders for pair in pairs}) == 4


@pytest.mark.parametrize("viewer", range(3))
@pytest.mark.parametrize("operation", ["multiply", "square", "matmul"])
def test_what_a_party_hears_in_a_product_fits_any_data(
    ring, heard, monkeypatch, random_residues, viewer, operation
):
    """The exact argument: other data, and another stream that the party cannot know, same view.

    The two worlds have the viewer's own shares and streams in common. The share that it lacks is
    another one, and the stream that it has no key of moves by what that changes.
    """
    engine, n = ReplicatedEngine(ring), 16
    streams = list(random_residues("streams", 3, n))
    unknown = (viewer + 2) % 3

    def zero(self, step):
        own, following = streams[self.index], streams[(self.index + 1) % 3]
        return lambda block, index: field.subtract(own, following, out=block)

    def world(x, y):
        """Return the viewer's view, and the product."""
        pairs = [[np.stack([v[i], v[(i + 1) % 3]]) for i in range(3)] for v in (x, y)]
        heard.clear()
        if operation == "multiply":
            result = engine.multiply(*pairs)
        elif operation == "square":
            result = engine.square(pairs[0])
        else:
            result = engine.matmul(*pairs, (4, 4, 4))
        (got,) = [vector for name, _, _, vector in heard if name == NAMES[viewer]]
        view = [pairs[0][viewer], pairs[1][viewer], result[viewer], got]
        return view, engine.reveal(result, NAMES)

    monkeypatch.setattr(type(ring.parties[0]), "zero", zero)
    x, y = random_residues("x", 3, n), random_residues("y", 3, n)
    first, product = world(x, y)
    x2, y2 = x.copy(), y.copy()
    x2[unknown], y2[unknown] = random_residues("x2", n), random_residues("y2", n)
    probe, other = world(x2, y2)
    assert not np.any(product == other)
    assert not np.any(probe[3] == first[3])
    streams[unknown] = field.add(streams[unknown], field.subtract(probe[3], first[3]))
    second, same = world(x2, y2)
    np.testing.assert_array_equal(same, other)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


N = 1 << 14
VIEWS = {
    "input": lambda e, x: x,
    "multiply": lambda e, x: e.multiply(x, x),
    "square": lambda e, x: e.square(x),
    "matmul": lambda e, x: e.matmul(x, x, (128, 128, 128)),
    "negative": lambda e, x: e.negative(x),
    "zero": lambda e, x: e.zero(x),
    "shifted": lambda e, x: e.shifted(x, 13),
}


@each_case("operation", VIEWS.values())
@each_case("owner", NAMES)
def test_what_a_party_hears_is_uniform_and_says_nothing_of_the_data(
    ring, heard, replay, operation, owner
):
    """Against a bit of the data that decides between both ends of the range, element by element."""
    bit = np.frombuffer(replay("data")(N), np.uint8) & 1
    top = (1 << 59) - 1
    data = field.public(np.where(bit, top, 0))
    engine = ReplicatedEngine(ring)
    operation(engine, engine.input(owner, data))
    assert heard
    for name, sender, bits, vector in heard:
        low = (vector & np.uint64(7)).astype(int)
        assert stats.chisquare(np.bincount(low, minlength=8)).pvalue > 1e-5, (name, sender, bits)
        if bits == field.BITS:
            high = (vector >> np.uint64(58)).astype(int)
            for part in (low, high):
                # Of a truncation two bits an element go back to the field, one after the other.
                table = np.bincount(8 * np.resize(bit, part.size) + part, minlength=16)
                table = table.reshape(2, 8)
                assert stats.chi2_contingency(table).pvalue > 1e-5, (name, sender)


@each_case("values", [0, LIMIT, -LIMIT])
def test_shares_of_constant_data_are_uniform(ring, values):
    engine = ReplicatedEngine(ring)
    x = engine.input("b", field.public(np.full(N, values)))
    # What is 0 by construction is so for all data.
    constant = [not np.any(row) for pair in x for row in pair]
    assert constant == [True, False, False, False, False, True]
    for value in (engine.multiply(x, x), engine.negative(x)):
        for pair in value:
            for row in pair:
                low = np.bincount((row & np.uint64(7)).astype(int), minlength=8)
                assert stats.chisquare(low).pvalue > 1e-5


def test_a_computation_can_be_replayed(replay):
    def sent():
        data = []

        class Recording(LocalCarrier):
            def send(self, sender, recipient, message):
                data.append((sender, recipient, bytes(message)))
                return super().send(sender, recipient, message)

        computation = Computation(NAMES, Recording(replay("again")), dealer=False)
        x = computation.share("a", V, bound=9)
        (x * (x < 3)).reveal("b")
        return data

    assert sent() == sent()


# What is refused.


@each_case("names", [("a", "b"), ("a", "b", "c", "d"), ("a", "b", "a"), "abc", (), ("a",)])
def test_other_than_three_parties_are_refused(carrier, names):
    with pytest.raises(ParameterError, match=r"exactly 3 parties|several names"):
        Computation(names, carrier, dealer=False)


def test_a_name_that_is_none_is_refused(carrier):
    with pytest.raises(SecureCompError):
        Computation(("a", "", "c"), carrier, dealer=False)


def test_a_party_may_be_called_dealer_where_there_is_none(carrier):
    computation = Computation(("a", "b", "dealer"), carrier, dealer=False)
    assert (computation.share("dealer", [-1, 1], bound=1) < 0).reveal().tolist() == [1, 0]
    with pytest.raises(ParameterError, match="dealer"):
        Computation(("a", "b", "dealer"), carrier)


def said(party, step, size=4):
    """What a party says to the one before it."""
    body = vector_body(np.arange(size, dtype=np.uint64), field.BITS)
    return party.say([party.neighbour(-1)], step, body, ShareMessage.KIND)[0]


def test_a_message_of_another_session_is_refused(carrier, ring):
    other = ThreeParties(NAMES, carrier)
    with pytest.raises(RemoteProtocolError, match="another session"):
        ring.parties[0].said(said(other.parties[1], 5), "b", 5, 4)
    circuit = ring.pair.parties[1].say(
        ["a"], 5, vector_body(np.zeros(4, np.uint64), 61), ShareMessage.KIND
    )
    with pytest.raises(RemoteProtocolError, match="another session"):
        ring.parties[0].said(circuit[0], "b", 5, 4)


def test_a_message_of_another_step_is_refused(ring):
    with pytest.raises(RemoteProtocolError, match="is of round 4 and this is round 5"):
        ring.parties[0].said(said(ring.parties[1], 4), "b", 5, 4)


def test_a_message_for_or_from_another_is_refused(ring):
    with pytest.raises((RemoteProtocolError, AuthenticationError)):
        ring.parties[2].said(said(ring.parties[1], 5), "b", 5, 4)
    with pytest.raises(RemoteProtocolError, match="not awaited"):
        ring.parties[0].said(said(ring.parties[1], 5), "c", 5, 4)


def test_a_vector_of_another_length_is_refused(ring):
    with pytest.raises(RemoteProtocolError, match="3 "):
        ring.parties[0].said(said(ring.parties[1], 5, size=3), "b", 5, 4)


@each_case("operation", ["multiply", "negative", "reveal"])
def test_a_repeated_message_is_refused(replay, operation):
    class Repeating(LocalCarrier):
        first = None

        def send(self, sender, recipient, data):
            if (sender, recipient) == ("b", "a") and self.first is not None:
                data = self.first = self.first or bytes(data)
            return super().send(sender, recipient, data)

    carrier = Repeating(replay("repeated"))
    engine = ReplicatedEngine(ThreeParties(NAMES, carrier))
    x = engine.input("c", np.arange(5, dtype=np.uint64))
    x = engine.multiply(x, x)
    carrier.first = b""
    operands = {"multiply": (x, x), "negative": (x,), "reveal": (x, NAMES)}

    def twice():
        for _ in range(2):
            getattr(engine, operation)(*operands[operation])

    with pytest.raises(RemoteProtocolError, match="round"):
        twice()


def test_a_seed_of_another_length_is_refused(ring):
    b = ring.parties[1]
    (data,) = b.say(["a"], 1, wire.encode_body(Seed(bytes(31))), Seed.KIND)
    with pytest.raises(RemoteProtocolError, match="32 bytes"):
        ring.parties[0].hear_seed(data, "b", 1)
    (again,) = b.say(["a"], 0, wire.encode_body(Seed(bytes(32))), Seed.KIND)
    with pytest.raises(RemoteProtocolError, match="said twice"):
        ring.parties[0].accept(again)


def test_secrets_are_dropped_and_neither_copied_nor_shown(ring):
    party = ring.parties[0]
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="holds secrets and cannot be copied"):
            copied(party)
    assert repr(party) == "ReplicatedParty('a', ready)"
    party.abort()
    assert party.state is State.ABORTED
    with pytest.raises(ParameterError, match="seed is not here"):
        party.stream(0, "zero", 1, 1)
    with pytest.raises(SecureCompError, match="not allowed when aborted"):
        said(party, 1)


def test_each_party_marks_its_sessions(carrier):
    marks = {name: [] for name in NAMES}

    class Marks:
        def __init__(self, name):
            self.spend = marks[name].append

    Computation(NAMES, carrier, dealer=False, journal=Marks)
    # A session of the three, and one of the two in the circuits.
    assert [len(set(marks[name])) for name in NAMES] == [2, 2, 1]
    assert all(mark.endswith(f"as {name}") for name in NAMES for mark in marks[name])
