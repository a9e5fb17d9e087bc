"""Messages that are wrong are refused, with errors that say whose they are; and what all costs."""

import numpy as np
import pytest
from cases import each_case
from mpc.computers import NAMES, Listener, P, carrier, computation, sent
from replaying import Replay

from securecomp.core import field
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    RangeError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.mpc.computation import Computation
from securecomp.mpc.dealer_parties import DEALER
from securecomp.mpc.roles import Seed, ShareMessage, vector_body
from securecomp.mpc.selection import where
from securecomp.protocol import identity, wire

STEPS = {
    "an input": lambda run, x, y: run.share("north", [1, 2], bound=3),
    "a correlation and an opening": lambda run, x, y: x * y,
    "a comparison": lambda run, x, y: x < y,
    "a truncation": lambda run, x, y: x.finer(4).truncate(2),
    "a result": lambda run, x, y: x.reveal(),
}


def prepared(parties=3, seed="computers"):
    run = computation(parties, seed)
    x, y = run.share("north", [1, 2], bound=3), run.share("south", [-3, 3], bound=3)
    return run, x, y


def refused(change, step, parties=3):
    """Change each message of a step in turn (of many, every so-manieth): all are refused."""
    run, x, y = prepared(parties)
    first = sent(run)
    STEPS[step](run, x, y)
    record = carrier(run).record
    errors = []
    for target in range(first, len(record), 1 + (len(record) - first) // 12):
        run, x, y = prepared(parties)
        route = record[target][:2]
        carrier(run).tamper = lambda n, data, t=target, run=run: (
            change(run, n, data) if n == t else data
        )
        with pytest.raises(SecureCompError) as error:
            STEPS[step](run, x, y)
        errors.append((error.value, *route))
    assert errors
    return errors


@each_case("step", STEPS)
@each_case("position", [-1, -17, -40])
def test_a_flipped_bit_of_the_body(step, position):
    def flip(run, number, data):
        changed = bytearray(data)
        changed[position] ^= 4
        return bytes(changed)

    for error, sender, _ in refused(flip, step):
        assert type(error) is AuthenticationError
        assert str(error).startswith(f"{sender}: the message was not made by this party or was ch")


@each_case("parties", [2, 3])
def test_any_flipped_bit_of_a_message(parties):
    """Header, names, salt, body, tag: refused with one of the documented errors."""
    run, x, _ = prepared(parties)
    start = sent(run)
    x.reveal(to="north")
    size = len(carrier(run).record[start][2])
    for position in range(size):
        run, x, _ = prepared(parties)

        def flip(number, data, position=position, start=start):
            if number != start:
                return data
            changed = bytearray(data)
            changed[position] ^= 1 << (position % 8)
            return bytes(changed)

        carrier(run).tamper = flip
        with pytest.raises((DecodeError, AuthenticationError, RemoteProtocolError)):
            x.reveal(to="north")


@each_case("step", STEPS)
@each_case("size", [0, 3, 60, -1])
def test_a_message_that_is_cut_off(step, size):
    for error, _, _ in refused(lambda run, n, data: data[:size], step):
        assert type(error) is DecodeError


@each_case("step", STEPS)
def test_a_message_with_a_byte_more(step):
    for error, _, _ in refused(lambda run, n, data: data + b"\0", step):
        assert type(error) is DecodeError


@each_case("step", STEPS)
def test_an_earlier_message_of_the_same_sender(step):
    def replay(run, number, data):
        record = carrier(run).record
        route, kind = record[number][:2], wire.split_header(data)[0].kind
        for s, r, old in reversed(record[:number]):
            header = wire.split_header(old)[0]
            if (s, r) == route and header.kind == kind and header.round != 0:
                return old
        return record[number - 1][2]  # then another's

    for error, _, _ in refused(replay, step, 2):
        assert type(error) is RemoteProtocolError
        reasons = ("message is of round", "message is for", "is not awaited here", "were agreed")
        assert any(reason in str(error) for reason in reasons)


def test_a_replayed_share_names_both_steps():
    run, x, _ = prepared(2)
    x.reveal(to="north")
    old = carrier(run).record[-1][2]
    carrier(run).tamper = lambda number, data: old
    with pytest.raises(
        RemoteProtocolError, match=r"south: the message is of round 3 and this is r"
    ):
        x.reveal(to="north")


@each_case("step", STEPS)
def test_a_message_of_another_session(step):
    """The same keys, the same step, sender and recipient."""
    listener = Listener(Replay("keys"))
    one, two = (Computation(NAMES[:3], listener) for _ in range(2))
    starts, operands = [], []
    for run in (one, two):
        x, y = run.share("north", [1, 2], bound=3), run.share("south", [-3, 3], bound=3)
        operands.append((run, x, y))
        starts.append(sent(run))
        if run is one:
            STEPS[step](one, x, y)
    old = listener.record[starts[0] :]
    listener.tamper = lambda number, data: old[number - starts[1]][2]
    with pytest.raises(RemoteProtocolError, match="the message belongs to another session"):
        STEPS[step](*operands[1])


def test_a_message_of_another_party():
    """East's share comes where south's is awaited: sealed by east, for north, of this step."""
    run, x, _ = prepared(3)
    start = sent(run)
    kept = {}

    def swap(number, data):
        kept[number] = data
        return kept[number]

    carrier(run).tamper = swap
    x.reveal(to="north")
    run, x, _ = prepared(3)
    carrier(run).tamper = lambda number, data: kept[start + 1] if number == start else data
    with pytest.raises(RemoteProtocolError, match="said something that is not awaited") as error:
        x.reveal(to="north")
    assert error.value.sender == "east"


def test_a_message_for_another_party():
    run, x, _ = prepared(3)
    start = sent(run)
    x.reveal()
    record = list(carrier(run).record)
    to_north = next(d for s, r, d in record[start:] if (s, r) == ("south", "north"))
    run, x, _ = prepared(3)
    target = next(i for i in range(start, len(record)) if record[i][:2] == ("south", "east"))
    carrier(run).tamper = lambda number, data: to_north if number == target else data
    with pytest.raises(RemoteProtocolError, match="the message is for 'north', not for 'east'"):
        x.reveal()


def forged(run, number, data, body, kind=None):
    """What the sender itself could have sealed in this place."""
    header, _, _ = wire.split_header(data)
    lockstep = run.engine.run
    speaker = next(s for s in (*lockstep.parties, lockstep.dealer) if s.name == header.sender)
    new = wire.Header(kind or header.kind, header.session, header.round, header.agreement,
                      header.sender, header.recipient)  # fmt: skip
    body = np.frombuffer(body, np.uint8) if isinstance(body, bytes) else body
    return bytes(identity.seal(speaker._identity, speaker._computing, new, body, Replay(number)))


def residues(*numbers):
    return np.array(numbers, np.uint64)


BAD_SHARES = {
    "an element less": vector_body(residues(1), 61),
    "an element more": vector_body(residues(1, 2, 3), 61),
    "the modulus": vector_body(residues(P, 1), 61),
    "words of 64 bits": vector_body(residues(1, 2), 64),
    "words of 60 bits": wire.encode_body(
        ShareMessage(wire.Vector(60, 2)), 2, lambda a, b: residues(1, 2)[a:b], 60
    ),
    "no payload": wire.encode_body(ShareMessage(wire.Vector(61, 2))),
    "a length that lies": wire.encode_body(
        ShareMessage(wire.Vector(61, 2)), 3, lambda a, b: residues(1, 2, 3)[a:b], 61
    ),
    "a vast length": wire.encode_body(ShareMessage(wire.Vector(61, 2**60))),
    "a negative length": wire.encode_body(ShareMessage(wire.Vector(61, -2))),
    "a seed": wire.encode_body(Seed(bytes(32))),
    "nothing": b"",
    "zeros": bytes(8),
}


@each_case("body", BAD_SHARES.values())
def test_a_party_that_says_another_vector(body):
    errors = refused(lambda run, n, data: forged(run, n, data, body), "a result")
    for error, sender, _ in errors:
        assert type(error) is RemoteProtocolError
        assert error.sender == sender


@each_case("body", BAD_SHARES.values())
def test_a_dealer_that_says_another_correction(body):
    def change(run, number, data):
        return forged(run, number, data, body)

    for error, sender, _ in refused(change, "a correlation and an opening")[:1]:
        assert sender == DEALER
        assert type(error) is RemoteProtocolError
        assert error.sender == DEALER


@each_case("size", [0, 1, 15, 16, 31, 33, 64])
def test_a_seed_of_another_length(size):
    body = wire.encode_body(Seed(bytes(size)))
    for error, sender, _ in refused(lambda r, n, d: forged(r, n, d, body), "an input"):
        assert type(error) is RemoteProtocolError
        assert error.sender == sender
        assert "seed has not 32 bytes" in str(error)


def test_a_seed_with_something_behind_it():
    body = wire.encode_body(Seed(bytes(32)), 2, lambda a, b: residues(1, 2)[a:b])
    for error, sender, _ in refused(lambda r, n, d: forged(r, n, d, body), "an input"):
        assert type(error) is RemoteProtocolError
        assert error.sender == sender


@each_case("step", STEPS)
def test_a_message_of_another_kind(step):
    def change(run, number, data):
        kind = wire.split_header(data)[0].kind
        body = wire.encode_body(Seed(bytes(32)))
        return forged(run, number, data, body, Seed.KIND + ShareMessage.KIND - kind)

    for error, sender, _ in refused(change, step):
        assert type(error) is RemoteProtocolError
        assert error.sender == sender
        assert "said something that is not awaited here" in str(error)


def test_the_dealers_first_message_is_opened_too():
    for target in range(3):
        listener = Listener(Replay(1))
        listener.tamper = lambda n, data, t=target: data[:-1] + b"\0" if n == t else data
        with pytest.raises(AuthenticationError, match="dealer: the message was not made by"):
            Computation(NAMES[:3], listener)


def test_a_result_beyond_its_bound_is_refused():
    """A party that shifts its share is noticed only there."""
    run, x, _ = prepared(2)
    share = x.value[1].copy()
    share[0] = (int(share[0]) + 1000) % P
    body = vector_body(share, field.BITS)
    start = sent(run)
    carrier(run).tamper = lambda n, data: forged(run, n, data, body) if n == start else data
    with pytest.raises(RangeError, match="a revealed value: a value is beyond the bound 3"):
        x.reveal(to="north")


# Costs


def rounds_of(run, operation):
    before, messages = run.engine.run.rounds, sent(run)
    operation()
    return run.engine.run.rounds - before, sent(run) - messages


@each_case("parties", [2, 3, 5])
def test_rounds_and_messages(parties):
    run, x, y = prepared(parties)
    everyone = parties * (parties - 1)
    condition = x < y
    cases = {
        0: [lambda: x + y, lambda: x * 3, lambda: x.sum(), lambda: -x, lambda: x @ [1, 2],
            lambda: x.mean(), lambda: x - 1, lambda: x[::-1]],
        1: [lambda: x * y, lambda: x @ y, x.square, lambda: where(condition, x, y),
            lambda: where(condition, 1, y)],
        7: [lambda: x < y, lambda: x >= y, lambda: x == y, lambda: x != 0, lambda: x <= 3],
    }  # fmt: skip
    for rounds, operations in cases.items():
        for operation in operations:
            # Besides, one correction of the dealer for each correlation.
            assert rounds_of(run, operation) == (rounds, rounds * everyone + rounds)
    assert rounds_of(run, x.reveal) == (1, everyone)
    assert rounds_of(run, lambda: x.reveal("south")) == (1, parties - 1)


@each_case("by", [1, 2, 3, 16, 29, 30, 32, 57, 58])
def test_rounds_of_truncation(by):
    """An opening, two trees side by side, a gate, and back to the field."""
    run, x, _ = prepared(2)
    levels = max((-(-width // 2) - 1).bit_length() for width in (by, 61 - by))
    assert rounds_of(run, lambda: x.finer(1 << by).within(9).truncate(by))[0] == 3 + levels


@each_case("parties", [2, 3, 5])
def test_bytes_of_a_product(parties):
    """Two elements of 61 bits from each party to each other; one from the dealer to the last."""
    run = computation(parties)
    n = 6400
    x, y = run.share("north", np.ones(n), bound=1), run.share("south", np.ones(n), bound=1)
    carrier(run).start()
    z = x * y
    transcript = carrier(run).transcript
    for name in NAMES[:parties]:
        pair = transcript.sent[name] / (parties - 1)
        assert 2 * n * 61 / 8 <= pair < 2 * n * 61 / 8 + 200
    assert n * 61 / 8 <= transcript.sent[DEALER] < n * 61 / 8 + 200
    carrier(run).start()
    x.square()
    assert carrier(run).transcript.sent["north"] / (parties - 1) < n * 61 / 8 + 200
    carrier(run).start()
    z.reveal(to="north")
    assert carrier(run).transcript.bytes_sent < (parties - 1) * (n * 61 / 8 + 200)


def test_vectors_that_are_worth_threads():
    run = computation(3)
    n = (1 << 16) + 3
    a, b = np.arange(n) - n // 2, np.arange(n)[::-1] % 1000
    x, y = run.share("north", a, bound=n), run.share("south", b, bound=1000)
    assert ((x * y).reveal() == a * b).all()
    assert ((x < y).reveal() == (a < b)).all()
    assert ((x * 4).within(4 * n).finer(8).truncate(3).reveal() == a * 4).all()


def test_vectors_too_long_for_a_message_are_refused_before_they_are_sent(monkeypatch):
    run = computation(2)
    x = run.share("north", np.ones(1001), bound=1)
    monkeypatch.setattr(wire, "MAX_ELEMENTS", 1000)
    before = sent(run)
    for operation in (x.reveal, x.square, lambda: x * x):
        with pytest.raises(RangeError, match="a message holds 1000; compute on parts of the array"):
            operation()
    assert sent(run) == before
    assert x[:1000].reveal().all()
    part = x[:501]
    with pytest.raises(RangeError, match="1002 elements are said in one step"):
        part * part
    assert (x[:500] * x[:500]).reveal().all()


def test_a_message_that_is_too_long_is_not_opened(monkeypatch):
    run = computation(2)
    x = run.share("north", np.ones(1000), bound=1)
    body = vector_body(np.zeros(2000, np.uint64), field.BITS)
    monkeypatch.setattr(wire, "MAX_ELEMENTS", 1000)
    carrier(run).tamper = lambda n, data: forged(run, n, data, body)
    with pytest.raises(DecodeError, match="is larger than any of this session"):
        x.reveal()
