"""What servers and receivers refuse, by name, and that it leaves them as they were.

Every refusal is followed by the honest run, whose total must come out exactly.
"""

import numpy as np
import pytest
from cases import each_case
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sharing import reference
from sharing.bodies import BAD_DEALS, BAD_PARTIALS, MALFORMED, SEED_BODY, SUM_BODY
from sharing.cast import Cast, flipped, stream, vector, vector_body

from securecomp.core import field
from securecomp.core.prg import BLOCK_WORDS as BLOCK
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    LocalProtocolError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout
from securecomp.sharing.private_sum import Deal, PartialSum

DEAL, PARTIAL = Deal.KIND, PartialSum.KIND


@pytest.fixture
def cast():
    return Cast()


def snapshot(role):
    held = {k: v for k, v in vars(role).items() if k not in ("_session", "_identity", "_entropy")}
    return {
        k: v.tolist() if isinstance(v, np.ndarray) else v.copy() if hasattr(v, "copy") else v
        for k, v in held.items()
    }


def twin(cast, **changes):
    """A session with the same id and round, and some facts changed."""
    return cast.agree(entropy=lambda size: cast.session.id, **changes)


def impersonated(cast, kind, name, recipient, body, identity):
    """A message in the name of a party, made with another key: all that a stranger can make."""
    session, salt = cast.session, cast.entropy(32)
    header = session.header(kind, name, recipient, session.agreement)
    head = header.encode(48 + len(body)) + salt
    secret = identity.shared(session.keys[recipient])
    context = (session.agreement, kind, name, recipient)
    key = reference.derive(secret, "sealed message", *context, salt=salt)
    return head + AESGCM(key).encrypt(bytes(12), bytes(body), head)


GENERAL = {
    "of another session": (
        lambda cast, kind, body, a, b: cast.seal(kind, a, b, body, cast.agree()),
        RemoteProtocolError,
        "the message belongs to another session",
    ),
    "of the next round": (
        lambda cast, kind, body, a, b: cast.seal(kind, a, b, body, cast.session.next(cast.layout)),
        RemoteProtocolError,
        "the message is of round 1 and this is round 0",
    ),
    "of another layout": (
        lambda cast, kind, body, a, b: cast.seal(
            kind, a, b, body, twin(cast, layout=Layout(4, 999))
        ),
        RemoteProtocolError,
        "the message was made for another layout or other parties",
    ),
    "of an agreement with one other key": (
        lambda cast, kind, body, a, b: cast.seal(
            kind,
            a,
            b,
            body,
            twin(cast, keys=cast.keys | {"east": Identity.generate(cast.entropy).public}),
        ),
        RemoteProtocolError,
        "the message was made for another layout or other parties",
    ),
    "of an agreement with one receiver less": (
        lambda cast, kind, body, a, b: (
            cast.seal(kind, a, b, body, twin(cast, receivers=(b,)))
            if b in cast.receivers
            else cast.seal(kind, a, b, body, twin(cast, receivers=("south",)))
        ),
        RemoteProtocolError,
        "the message was made for another layout or other parties",
    ),
    "made by a stranger in the sender's name": (
        lambda cast, kind, body, a, b: impersonated(
            cast, kind, a, b, body, Identity.generate(cast.entropy)
        ),
        AuthenticationError,
        "the message was not made by this party or was changed on the way",
    ),
    "made by another party in the sender's name": (
        lambda cast, kind, body, a, b: impersonated(
            cast, kind, a, b, body, cast.identities["east"]
        ),
        AuthenticationError,
        "the message was not made by this party or was changed on the way",
    ),
    "of no kind": (
        lambda cast, kind, body, a, b: cast.seal(99, a, b, body),
        RemoteProtocolError,
        "sent message kind 99, which is not its to send here",
    ),
    "of the other kind": (
        lambda cast, kind, body, a, b: cast.seal(3 - kind, a, b, body),
        RemoteProtocolError,
        "which is not its to send here",
    ),
    "changed in its last byte": (
        lambda cast, kind, body, a, b: flipped(cast.seal(kind, a, b, body), -1),
        AuthenticationError,
        "the message was not made by this party or was changed on the way",
    ),
}


def refuse(role, data, error, reason, sender):
    """The role must refuse the message in exactly this way, and not change."""
    before = snapshot(role)
    with pytest.raises(SecureCompError, match=reason) as raised:
        role.receive(data)
    assert raised.type is error
    if sender is not None:
        assert str(raised.value).startswith(f"{sender}: ")
    if error is RemoteProtocolError:
        assert raised.value.sender == sender
    assert snapshot(role) == before


def finish(cast, server, deals, values):
    """The honest run around a server that refused something."""
    for name in server.missing:
        server.receive(deals[name][server.name])
    partials = {}
    for name in cast.servers:
        if name == server.name:
            partials[name] = server.publish()
            continue
        other = cast.server(name)
        for messages in deals.values():
            other.receive(messages[name])
        partials[name] = other.publish()
    assert cast.received("south", partials).result().tolist() == cast.total(values)


@pytest.mark.parametrize("so_far", range(3))
@pytest.mark.parametrize("what", GENERAL)
def test_a_server_refuses_a_message(cast, what, so_far):
    make, error, reason = GENERAL[what]
    values = cast.values()
    deals = cast.deals(values)
    server = cast.server("one")
    for name in cast.contributors[:so_far]:
        server.receive(deals[name]["one"])
    data = make(cast, DEAL, SEED_BODY, "south", "one")
    refuse(server, data, error, reason, "south")
    finish(cast, server, deals, values)


@pytest.mark.parametrize("what", BAD_DEALS)
def test_a_server_refuses_a_share_that_its_own_contributor_made_wrong(cast, what):
    values = cast.values()
    deals = cast.deals(values)
    server = cast.server("one")
    server.receive(deals["south"]["one"])
    data = cast.seal(DEAL, "north", "one", BAD_DEALS[what])
    reason = "the seed of its share has a wrong length" if "seed" in what else "the vector"
    reason = "the mark of its dealing has a wrong length" if "mark" in what else reason
    refuse(server, data, RemoteProtocolError, reason, "north")
    assert server.missing == ["north", "east"]
    finish(cast, server, deals, values)


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_body_is_refused_and_changes_nothing(cast, what):
    values = cast.values()
    deals = cast.deals(values)
    server, receiver = cast.server("one"), cast.receiver("north")
    for role, data in (
        (server, cast.seal(DEAL, "north", "one", MALFORMED[what])),
        (receiver, cast.seal(PARTIAL, "one", "north", MALFORMED[what])),
    ):
        before = snapshot(role)
        with pytest.raises((DecodeError, RemoteProtocolError)):
            role.receive(data)
        assert snapshot(role) == before
    finish(cast, server, deals, values)


@pytest.mark.parametrize("what", MALFORMED)
def test_the_sender_of_a_malformed_body_is_named(cast, what):
    for role, data, sender in (
        (cast.server("one"), cast.seal(DEAL, "north", "one", MALFORMED[what]), "north"),
        (cast.receiver("north"), cast.seal(PARTIAL, "one", "north", MALFORMED[what]), "one"),
    ):
        with pytest.raises(SecureCompError) as raised:
            role.receive(data)
        assert raised.type is RemoteProtocolError
        assert raised.value.sender == sender


@each_case("where", [0, 63, BLOCK - 1, BLOCK, 2 * BLOCK + 5, 2 * BLOCK + 76])
@each_case("first", [True, False])
def test_a_long_vector_that_is_wrong_somewhere_changes_nothing(where, first):
    """Also when blocks before the wrong one are right, and could be added already."""
    length = 2 * BLOCK + 77
    cast = Cast(servers=("one", "two"), length=length)
    values = cast.values()
    deals = cast.deals(values)
    partials = cast.partials(deals)
    residues = np.arange(length, dtype=np.uint64)
    residues[where] = field.MODULUS
    server, receiver = cast.server("one"), cast.receiver("north")
    if not first:
        server.receive(deals["east"]["one"])  # a vector, as that of north
        receiver.receive(partials["two"]["north"])
    bad = cast.seal(DEAL, "north", "one", vector_body(Deal(bytes(16), vector(length)), residues))
    refuse(server, bad, RemoteProtocolError, "not below the modulus", "north")
    bad = cast.seal(
        PARTIAL, "one", "north", vector_body(PartialSum(bytes(32), vector(length)), residues)
    )
    refuse(receiver, bad, RemoteProtocolError, "not below the modulus", "one")
    finish(cast, server, deals, values)
    for name in cast.servers if first else ("one",):
        receiver.receive(partials[name]["north"])
    assert receiver.result().tolist() == cast.total(values)


def test_a_duplicate_and_a_second_share_are_refused(cast):
    values = cast.values()
    deals = cast.deals(values)
    other = cast.contributor("south").contribute([9, 9, 9, 9])
    for server_name in cast.servers:
        server = cast.server(server_name)
        server.receive(deals["south"][server_name])
        for data in (deals["south"][server_name], other[server_name]):
            refuse(server, data, RemoteProtocolError, "a duplicate or a replay", "south")
        finish(cast, server, deals, values)


def test_a_message_for_another_server_is_refused(cast):
    values = cast.values()
    deals = cast.deals(values)
    server = cast.server("one")
    for name in ("two", "three"):
        reason = f"the message is for '{name}', not for 'one'"
        refuse(server, deals["south"][name], RemoteProtocolError, reason, "south")
    finish(cast, server, deals, values)


def test_a_server_takes_shares_of_contributors_only(cast):
    values = cast.values()
    deals = cast.deals(values)
    server = cast.server("one")
    for data, kind in (
        (cast.seal(DEAL, "two", "one", SEED_BODY), 1),
        (cast.seal(PARTIAL, "two", "one", SUM_BODY), 2),
        (cast.seal(DEAL, "one", "one", SEED_BODY), 1),
    ):
        sender = wire.split_header(data)[0].sender
        refuse(
            server,
            data,
            RemoteProtocolError,
            f"sent message kind {kind}, which is not its to send here",
            sender,
        )
    finish(cast, server, deals, values)


def test_with_the_right_key_such_a_message_is_good(cast):
    # So it is the key alone for which the messages above are refused.
    values = cast.values()
    server = cast.server("one")
    data = impersonated(cast, DEAL, "south", "one", SEED_BODY, cast.identities["south"])
    server.receive(data)
    assert server.missing == ["north", "east"]
    finish(cast, cast.server("one"), cast.deals(values), values)


def test_a_stranger_is_refused(cast):
    values = cast.values()
    deals = cast.deals(values)
    server = cast.server("one")
    stranger = Identity.generate(cast.entropy)
    data = impersonated(cast, DEAL, "stranger", "one", SEED_BODY, stranger)
    refuse(server, data, RemoteProtocolError, "takes no part in this session", "stranger")
    for noise in (b"", b"SCMP", bytes(100), stream("noise")(300)):
        refuse(server, noise, DecodeError, "message", None)
    finish(cast, server, deals, values)


def test_every_changed_byte_of_a_share_is_refused(cast):
    """Of a seed and of a vector, at every position, eight single bits and all of them."""
    values = cast.values()
    deals = cast.deals(values)
    server = cast.server("one")
    for name in ("north", "south"):  # a vector, and a seed
        data = bytes(deals[name]["one"])
        before = snapshot(server)
        for position in range(len(data)):
            for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
                with pytest.raises((AuthenticationError, DecodeError, RemoteProtocolError)):
                    server.receive(flipped(data, position, mask))
        assert snapshot(server) == before
    finish(cast, server, deals, values)


def test_every_changed_byte_of_a_sum_is_refused(cast):
    values = cast.values()
    partials = cast.partials(cast.deals(values))
    receiver = cast.receiver("south")
    data = bytes(partials["one"]["south"])
    before = snapshot(receiver)
    for position in range(len(data)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            with pytest.raises((AuthenticationError, DecodeError, RemoteProtocolError)):
                receiver.receive(flipped(data, position, mask))
    assert snapshot(receiver) == before
    for messages in partials.values():
        receiver.receive(messages["south"])
    assert receiver.result().tolist() == cast.total(values)


def test_a_missing_share_is_named(cast):
    values = cast.values()
    deals = cast.deals(values)
    server = cast.server("two")
    assert server.missing == ["north", "south", "east"]
    with pytest.raises(LocalProtocolError, match="server 'two': no share of north, south, east; "):
        server.publish()
    server.receive(deals["south"]["two"])
    assert server.missing == ["north", "east"]
    with pytest.raises(LocalProtocolError, match="no share of north, east; wait for them, or "):
        server.publish()
    assert server.state is State.COLLECTING
    server.receive(deals["east"]["two"])
    server.receive(deals["north"]["two"])
    assert server.missing == []
    finish(cast, server, deals, values)


# What a receiver refuses.


@pytest.mark.parametrize("so_far", range(3))
@pytest.mark.parametrize("what", GENERAL)
def test_a_receiver_refuses_a_message(cast, what, so_far):
    make, error, reason = GENERAL[what]
    values = cast.values()
    partials = cast.partials(cast.deals(values))
    receiver = cast.receiver("north")
    for name in cast.servers[:so_far]:
        receiver.receive(partials[name]["north"])
    refuse(receiver, make(cast, PARTIAL, SUM_BODY, "two", "north"), error, reason, "two")
    for name in cast.servers[so_far:]:
        receiver.receive(partials[name]["north"])
    assert receiver.result().tolist() == cast.total(values)


@pytest.mark.parametrize("what", BAD_PARTIALS)
def test_a_receiver_refuses_a_sum_that_its_own_server_made_wrong(cast, what):
    values = cast.values()
    partials = cast.partials(cast.deals(values))
    receiver = cast.receiver("north")
    receiver.receive(partials["three"]["north"])
    data = cast.seal(PARTIAL, "one", "north", BAD_PARTIALS[what])
    refuse(receiver, data, RemoteProtocolError, "the vector", "one")
    for name in ("one", "two"):
        receiver.receive(partials[name]["north"])
    assert receiver.result().tolist() == cast.total(values)


def test_a_receiver_takes_each_servers_sum_once(cast):
    values = cast.values()
    deals = cast.deals(values)
    partials, again = cast.partials(deals), cast.partials(deals)
    receiver = cast.receiver("north")
    receiver.receive(partials["one"]["north"])
    for data in (partials["one"]["north"], again["one"]["north"]):
        refuse(receiver, data, RemoteProtocolError, "a duplicate or a replay", "one")
    reason = "the message is for 'south', not for 'north'"
    refuse(receiver, partials["two"]["south"], RemoteProtocolError, reason, "two")
    with pytest.raises(LocalProtocolError, match="receiver 'north': no sum of server two, three; "):
        receiver.result()
    assert receiver.state is State.COLLECTING
    for name in ("two", "three"):
        receiver.receive(partials[name]["north"])
    assert receiver.result().tolist() == cast.total(values)


def test_a_receiver_takes_sums_of_servers_only(cast):
    receiver = cast.receiver("north")
    data = cast.seal(PARTIAL, "south", "north", SUM_BODY)
    reason = "sent message kind 2, which is not its to send here"
    refuse(receiver, data, RemoteProtocolError, reason, "south")


# Where every hospital is all three, only the kind tells a message's meaning.


def test_roles_of_one_party_do_not_take_each_others_messages():
    cast = Cast(servers="all")
    values = cast.values()
    deals = cast.deals(values)
    partials = cast.partials(deals)
    server, receiver = cast.server("south"), cast.receiver("south")
    for name in cast.contributors:
        refuse(
            server,
            partials[name]["south"],
            RemoteProtocolError,
            "sent message kind 2, which is not its to send here",
            name,
        )
        refuse(
            receiver,
            deals[name]["south"],
            RemoteProtocolError,
            "sent message kind 1, which is not its to send here",
            name,
        )
        receiver.receive(partials[name]["south"])
    assert receiver.result().tolist() == cast.total(values)
    finish(cast, server, deals, values)


def test_a_message_does_not_come_back_to_its_sender():
    cast = Cast(servers="all")
    values = cast.values()
    deals = cast.deals(values)
    partials = cast.partials(deals)
    server, receiver = cast.server("north"), cast.receiver("north")
    for name in ("south", "east"):
        reason = f"the message is for '{name}', not for 'north'"
        refuse(server, deals["north"][name], RemoteProtocolError, reason, "north")
        refuse(receiver, partials["north"][name], RemoteProtocolError, reason, "north")
        # Nor with the two names in the header exchanged.
        session = cast.session
        head = session.header(DEAL, name, "north", session.agreement)
        data = bytes(deals["north"][name])
        size = len(session.header(DEAL, "north", name, session.agreement).encode(0))
        swapped = head.encode(len(data) - size) + data[size:]
        refuse(server, swapped, AuthenticationError, "was not made by this party", name)
    finish(cast, server, deals, values)
