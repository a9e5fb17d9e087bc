"""Clients share inputs and hear results, and take no part in the steps between."""

from itertools import pairwise

import numpy as np
import pytest
from cases import each_case, some_or_all
from mpc.computers import Listener, P
from replaying import Replay

from securecomp.core import field
from securecomp.errors import LocalProtocolError, ParameterError, ProtocolError, SecureCompError
from securecomp.mpc import Computation, median, where
from securecomp.mpc.roles import Seed, ShareMessage, vector_body
from securecomp.protocol import wire

PARTIES = ("a", "b", "c")
SITES = ("north", "south", "west")
ENGINES = {
    "dealer": {},
    "replicated": {"dealer": False},
    "mac": {"integrity": "mac"},
}


def started(facts, seed="clients", parties=PARTIES, clients=SITES):
    carrier = Listener(Replay(seed))
    return Computation(parties, carrier, clients=clients, **facts), carrier


@each_case("facts", ENGINES.values())
def test_clients_inputs_are_what_they_shared(facts):
    run, _ = started(facts)
    x = run.share("north", [[-9, 4], [0, 7]], bound=9)
    y = run.share("west", [[3, -9], [9, 1]], bound=9)
    z = run.share("b", [[1, 1], [2, 2]], bound=2)
    for to in ("south", ["north", "west"], ["south", "a"], "c", None):
        assert (x * y - z).reveal(to=to).tolist() == [[-28, -37], [-2, 5]]
        assert (x < y).reveal(to=to).tolist() == [[1, 0], [1, 0]]
    assert median(where(x > 0, x, y).reshape(-1)).reveal(to="north") == 5.5


@each_case("facts", ENGINES.values())
@each_case("edge", [[], [field.LIMIT, -field.LIMIT, 0]])
def test_edges(facts, edge):
    run, _ = started(facts)
    x = run.share("south", edge, bound=field.LIMIT)
    assert x.reveal(to="south").tolist() == edge
    assert x.reveal().tolist() == edge


@each_case("parties", [2, 5])
@each_case("facts", [{}, {"integrity": "mac"}])
def test_any_number_of_parties(facts, parties):
    run, _ = started(facts, parties=tuple("abcde"[:parties]), clients=SITES[:2])
    x = run.share("north", [1.5, -2.25], bound=4, bits=8)
    y = run.share("south", [-1.0, 3.0], bound=4, bits=8)
    assert (x * y).truncate(8).reveal(to="south").tolist() == [-1.5, -6.75]


@each_case("facts", [{}, {"dealer": False}])
def test_any_shares_but_one_are_uniform(facts):
    """What a party holds of a client's input is spread over the field, and differs each time."""
    run, _ = started(facts)
    n = 4000
    once = run.share("north", np.full(n, 7), bound=9).value
    again = run.share("north", np.full(n, 7), bound=9).value
    for party in range(3):
        for row, other in zip(np.atleast_2d(once[party]), np.atleast_2d(again[party]), strict=True):
            high = np.bincount((row >> np.uint64(58)).astype(int), minlength=8)
            assert abs(high - n / 8).max() < 6 * (n / 8) ** 0.5
            assert not np.array_equal(row, other)


def test_a_party_has_two_of_three_summands_and_they_differ():
    run, _ = started({"dealer": False})
    value = run.share("north", np.full(100, 7), bound=9).value
    for i in range(3):
        assert np.array_equal(value[i][1], value[(i + 1) % 3][0])
        two = (value[i][0].astype(object) + value[i][1].astype(object)) % P
        assert len(set(two.tolist())) == 100  # not 7 less something constant


@each_case("facts", ENGINES.values())
def test_what_is_revealed_to_a_client_reaches_no_party(facts):
    """Replayed with another input of the same client, all that parties hear is as random as before;
    with the same input and coins it is the same: there is no further source of what they hear.
    """

    def heard(values):
        run, carrier = started(facts, "reveal")
        x = run.share("north", values, bound=9)
        first = len(carrier.record)
        x.reveal(to="north")
        return [(s, r, len(d)) for s, r, d in carrier.record[first:]]

    routes = heard([1, 2, 3])
    assert routes == heard([-9, 0, 9])
    if "integrity" not in facts:
        assert {recipient for _, recipient, _ in routes} == {"north"}


@each_case("facts", ENGINES.values())
@each_case("position", [-1, -17, -40])
def test_changed_messages_of_and_to_clients_are_refused(facts, position):
    def go(run):
        x = run.share("north", [1, 2, 3], bound=3)
        return (x + 1).reveal(to="south").tolist()

    run, carrier = started(facts, "flip")
    start = len(carrier.record)
    assert go(run) == [2, 3, 4]
    routes = [(n, r[:2]) for n, r in enumerate(carrier.record) if n >= start]
    mine = [(n, r) for n, r in routes if set(r) & set(SITES)]
    assert mine
    for target, (sender, _) in mine:
        run, carrier = started(facts, "flip")

        def flip(number, data, target=target):
            if number != target:
                return data
            changed = bytearray(data)
            changed[position] ^= 1
            return bytes(changed)

        carrier.tamper = flip
        with pytest.raises(SecureCompError, match=f"^{sender}: "):
            go(run)


def test_a_client_that_tells_parties_different_things_is_found_out():
    run, _ = started({"integrity": "mac"}, "two tongues")
    client = run.engine.run.clients["north"]
    say = client._sealed

    def lie(recipients, step, body, kind):
        if kind != ShareMessage.KIND or len(recipients) < 2:
            return say(recipients, step, body, kind)
        other = vector_body(field.encode(np.array([1, 2, 4])), field.BITS)
        return say(recipients[:1], step, body, kind) + say(recipients[1:], step, other, kind)

    client._sealed = lie
    x = run.share("north", [1, 2, 3], bound=9)
    with pytest.raises(ProtocolError, match="did not hear the same"):
        x.reveal(to="south")
    with pytest.raises(LocalProtocolError, match="abort"):
        run.share("south", [1], bound=1)
    with pytest.raises(LocalProtocolError, match="south: the computation was aborted"):
        run.engine.run.clients["south"].own(1, 1)


def test_a_party_that_tells_a_client_another_result_is_found_out():
    run, _ = started({"integrity": "mac"}, "false result")
    x = run.share("north", [1, 2, 3], bound=9)
    liar = run.engine.run.members[1]
    say = liar._sealed

    def lie(recipients, step, body, kind):
        if recipients == ["south"]:
            body = vector_body(field.encode(np.array([0, 0, 1])), field.BITS)
        return say(recipients, step, body, kind)

    liar._sealed = lie
    with pytest.raises(ProtocolError, match="south: the parties do not say the same result"):
        x.reveal(to="south")


def test_a_seed_of_another_length_is_refused():
    run, _ = started({})
    client = run.engine.run.clients["north"]
    say = client._sealed

    def short(recipients, step, body, kind):
        if kind == Seed.KIND:
            body = wire.encode_body(Seed(bytes(31)))
        return say(recipients, step, body, kind)

    client._sealed = short
    with pytest.raises(ProtocolError, match="north: its seed has not 32 bytes"):
        run.share("north", [1], bound=1)


@each_case("facts", ENGINES.values())
def test_who_the_clients_are_is_part_of_the_agreement(facts):
    """A client of one computation speaks in no other, though the parties are the same."""
    agreements = set()
    for clients in ((), ("north",), ("north", "south"), ("south", "north")):
        run, _ = started(facts, "same", clients=clients)
        agreements.add(run.engine.run.parties[0]._computing.agreement)
    assert len(agreements) == 4


@each_case("facts", ENGINES.values())
@each_case(
    "clients, words",
    [
        (("a", "north"), "'a' computes, and is a client too"),
        (("north", "north"), "the clients are several names, each once"),
        ("north", "the clients are several names, each once"),
        (("",), "name"),
    ],
)
def test_clients_that_are_none(facts, clients, words):
    with pytest.raises(ParameterError, match=words):
        started(facts, clients=clients)


def test_the_dealer_is_no_client():
    with pytest.raises(ParameterError, match="dealer"):
        started({}, clients=("dealer",))


@each_case("facts", ENGINES.values())
def test_others_neither_share_nor_hear(facts):
    run, carrier = started(facts, clients=("north",))
    x = run.share("north", [1], bound=1)
    before = len(carrier.record)
    with pytest.raises(ParameterError, match="'south' is no party or client; those are a, b"):
        run.share("south", [1], bound=1)
    with pytest.raises(ParameterError, match="reveal to parties or clients: a, b, c, north"):
        x.reveal(to=["north", "south"])
    assert len(carrier.record) == before


def test_rounds_are_counted_in_the_transcript():
    run, carrier = started({}, clients=("north", "south"))
    carrier.start()
    x = run.share("north", [1, 2], bound=2)
    y = run.share("south", [1, 2], bound=2)
    assert carrier.transcript.rounds == 1  # inputs do not wait for each other
    before = run.engine.run.rounds
    (x * y).reveal(to="north")
    assert carrier.transcript.rounds == 3
    assert run.engine.run.rounds - before == 2


@some_or_all("most", 12, 200)
@each_case("facts", ENGINES.values())
def test_messages_in_each_others_place_are_refused(facts, most):
    """Who carries messages swaps any two of one route, or brings the first twice."""

    def go(run):
        x = run.share("north", [1, 2, 3], bound=3)
        y = run.share("south", [3, 2, 1], bound=3)
        return ((x * y).sum() < 9, x < y)[1].reveal(to="south").tolist()

    run, carrier = started(facts, "swap")
    start = len(carrier.record)
    right = go(run)
    routes = {}
    for number, (sender, recipient, _) in enumerate(carrier.record):
        if number >= start:
            routes.setdefault((sender, recipient), []).append(number)
    pairs = [p for numbers in routes.values() for p in pairwise(numbers)]
    assert pairs
    for first, second in pairs[:: 1 + len(pairs) // most]:
        run, carrier = started(facts, "swap")
        carrier.tamper = lambda n, data, f=first, s=second, c=carrier: (
            c.record[f][2] if n == s else data
        )
        with pytest.raises(SecureCompError):
            go(run)
    assert right == [1, 0, 0]
