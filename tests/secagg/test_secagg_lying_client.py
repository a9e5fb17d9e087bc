"""Clients that do not keep to the protocol, and a server that says whose fault it is."""

from contextlib import contextmanager, suppress

import numpy as np
import pytest
from cases import each_case
from secagg.cohort import BOX, LIMBS, SERVER, Cohort, changed, flipped
from secagg.lying import SMALL_ORDER, finishes

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    RangeError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.role import State
from securecomp.protocol.wire import Vector
from securecomp.secagg import keyring, recovery
from securecomp.secagg.masking_messages import Consent, Masked, Shares, Unmask

MALLORY = "c2"
P = (1 << 61) - 1


def server_state(cohort):
    server = cohort.server
    return (
        server.state,
        list(server.missing),
        server._sum.count,
        server._sum._lanes.tolist(),
        sorted(server._unmasks),
    )


def refused(cohort, data, error, reason, sender=MALLORY):
    """The server refuses, names the client, and is as it was."""
    before = server_state(cohort)
    with pytest.raises(error, match=reason) as caught:
        cohort.server.receive(data)
    if error is RemoteProtocolError:
        assert caught.value.sender == sender
    assert server_state(cohort) == before


def own(cohort, step):
    """Mallory's honest message of this step: (sealed, what it says, payload)."""
    data = cohort.do(step, MALLORY)
    return data, *cohort.read(data)[1:]


def send(cohort, message, **payload):
    return cohort.say(message, SERVER, sender=MALLORY, **payload)


def with_mallory(cohort, step, data):
    """The others do the step honestly; Mallory's message is the given one."""
    cohort.server.receive(data)
    cohort.step(step, {MALLORY})


# One message for another.


@each_case("security", ["semi-honest", "active"])
def test_duplicates_early_and_late_messages(security):
    cohort = Cohort(4, security=security)
    said = {}
    for step in cohort.steps:
        said[step] = [cohort.do(step, name) for name in cohort.names]
        for earlier in said.values():
            if earlier is not said[step]:
                refused(cohort, earlier[2], RemoteProtocolError, "c2: .*not its to send here")
        for name, data in zip(cohort, said[step], strict=True):
            assert name in cohort.server.missing
            cohort.server.receive(data)
            assert name not in cohort.server.missing
            refused(cohort, data, RemoteProtocolError, f"{name}: ", sender=name)
        cohort.inbox = cohort.server.close()
    assert cohort.server.missing == []
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)


def test_a_duplicate_is_called_one():
    cohort = Cohort(3)
    data = cohort.do("advertise", MALLORY)
    cohort.server.receive(data)
    refused(cohort, data, RemoteProtocolError, "c2: .*(duplicate|before|twice)")


@each_case("step", ["share", "mask", "unmask"])
def test_who_dropped_out_does_not_come_back(step):
    """In particular a vector that is late: its mask key may have been put together."""
    cohort = Cohort(5)
    cohort.reach(step)
    late = cohort.do(step, MALLORY)
    cohort.step(step, {MALLORY})
    refused(cohort, late, SecureCompError, "c2|not allowed when done")
    if step != "unmask":
        assert MALLORY not in cohort.server.missing
        result = finishes(cohort)
        assert MALLORY not in result.survivors


def test_a_late_vector_is_not_added_while_shares_come_in():
    cohort = Cohort(5)
    cohort.reach("mask")
    late = cohort.do("mask", MALLORY)
    cohort.step("mask", {MALLORY})
    for name in ("c0", "c1", "c3"):
        refused(cohort, late, RemoteProtocolError, "c2: sent message kind 20, which is not its")
        cohort.take(cohort.do("unmask", name))
    cohort.take(cohort.do("unmask", "c4"))
    cohort.server.close()
    result = cohort.server.result()
    assert result.survivors == ("c0", "c1", "c3", "c4")
    assert result.values.tolist() == cohort.total(result.survivors)


def test_one_client_cannot_speak_for_another():
    cohort = Cohort(4)
    for step in cohort.steps:
        cohort.reach(step) if step == "advertise" else None
        sealed = cohort.do(step, MALLORY)
        _, body = identities.open_sealed(
            cohort.identities[SERVER], cohort.session, cohort.session.agreement, sealed, SERVER
        )
        kind = wire.split_header(sealed)[0].kind
        # Its own key under another's name: cannot be sealed, and if it were, does not open.
        header = cohort.session.header(kind, "c1", SERVER, cohort.session.agreement)
        array = np.frombuffer(body, np.uint8)
        with pytest.raises(KeyMismatchError, match="this identity is not 'c1'"):
            identities.seal(cohort.identities[MALLORY], cohort.session, header, array)
        honest = cohort.session.header(kind, MALLORY, SERVER, cohort.session.agreement)
        size = len(sealed) - len(honest.encode(0))
        forged = header.encode(size) + bytes(sealed[-size:])
        refused(cohort, forged, AuthenticationError, "c1: the message was not made by this party")
        cohort.server.receive(sealed)
        cohort.step(step, {MALLORY})


@each_case("security", ["semi-honest", "active"])
def test_messages_of_another_session_or_changed_on_the_way(security):
    cohort, other = Cohort(4, security=security), Cohort(4, security=security, seed="other")
    for step in cohort.steps:
        data, foreign = cohort.do(step, MALLORY), other.do(step, MALLORY)
        refused(cohort, foreign, RemoteProtocolError, "c2: the message belongs to another session")
        for position in (-1, -20, -60):
            broken = flipped(data, len(data) + position)
            refused(cohort, broken, AuthenticationError, "c2: the message was not made by")
        refused(cohort, data[:-1], DecodeError, "the body has")
        refused(cohort, b"", DecodeError, "too short")
        for c, message in ((cohort, data), (other, foreign)):
            c.server.receive(message)
            c.step(step, {MALLORY})


# Keys.


@each_case("field", ["cipher_key", "mask_key"])
@each_case("size", [0, 31, 33, 64])
def test_keys_of_a_wrong_length(field, size):
    cohort = Cohort(4)
    data, message, _ = own(cohort, "advertise")
    wrong = send(cohort, changed(message, **{field: bytes(range(size))}))
    refused(cohort, wrong, RemoteProtocolError, "c2: its public keys have a wrong length")
    cohort.server.receive(data)
    cohort.step("advertise", {MALLORY})
    finishes(cohort)


def test_keys_that_are_not_signed():
    cohort = Cohort(4, security="active")
    data, message, _ = own(cohort, "advertise")
    other = Cohort(4, security="active", seed="other")
    elsewhere = own(other, "advertise")[1]
    reason = "c2: the signature for 'secagg keys' is not valid"
    for wrong in (
        changed(message, signature=b""),
        changed(message, signature=bytes(64)),
        changed(message, signature=flipped(message.signature, 9)),
        changed(message, cipher_key=message.mask_key, mask_key=message.cipher_key),
        changed(message, mask_key=elsewhere.mask_key),
        elsewhere,
    ):
        refused(cohort, send(cohort, wrong), AuthenticationError, reason)
    cohort.server.receive(data)
    cohort.step("advertise", {MALLORY})
    finishes(cohort)


STOPS = "a client's keys that nobody can go on with are taken"


@each_case("field", ["cipher_key", "mask_key"])
@each_case("key", [*SMALL_ORDER, flipped(SMALL_ORDER[1], 31, 0x80)])
def test_keys_of_small_order_are_refused_before_they_stop_everyone(field, key):
    cohort = Cohort(4)
    data, message, _ = own(cohort, "advertise")
    refused(cohort, send(cohort, changed(message, **{field: key})), RemoteProtocolError, "c2: ")
    cohort.server.receive(data)
    cohort.step("advertise", {MALLORY})
    finishes(cohort)


def test_two_equal_keys_are_refused_before_they_stop_everyone():
    """Every honest client would refuse the list, and blame the server."""
    cohort = Cohort(4)
    message = own(cohort, "advertise")[1]
    for twin in (message.mask_key, flipped(message.mask_key, 31, 0x80)):
        wrong = send(cohort, changed(message, cipher_key=twin))
        refused(cohort, wrong, RemoteProtocolError, "c2: ")


@each_case("field", ["cipher_key", "mask_key"])
def test_another_clients_key_is_refused_before_it_stops_everyone(field):
    cohort = Cohort(4)
    first = cohort.do("advertise", "c1")
    cohort.server.receive(first)
    theirs, mine = cohort.read(first)[1], own(cohort, "advertise")[1]
    wrong = send(cohort, changed(mine, **{field: theirs.mask_key}))
    refused(cohort, wrong, RemoteProtocolError, "c2: ")


# Shares.


def test_boxes_for_others_than_the_neighbours():
    cohort = Cohort(5)
    cohort.reach("share", {"advertise": {"c4"}})
    data, message, _ = own(cohort, "share")
    assert message.recipients == [0, 1, 3]
    reason = "c2: its boxes are not for the neighbours it was given"
    for fields in (
        {"recipients": [0, 1]},
        {"recipients": [0, 1, 3, 4], "boxes": message.boxes + bytes(BOX)},
        {"recipients": [0, 1, 2, 3], "boxes": message.boxes + bytes(BOX)},
        {"recipients": [0, 1, 4]},
        {"recipients": [3, 1, 0]},
        {"recipients": [0, 1, 1]},
        {"recipients": []},
        {"recipients": [0, 1], "boxes": message.boxes[: 2 * BOX]},
        {"boxes": message.boxes[:-1]},
        {"boxes": message.boxes + b"\0"},
        {"boxes": b""},
        {"commitment": b""},
        {"commitment": message.commitment[:-1]},
        {"commitment": message.commitment * 2},
    ):
        refused(cohort, send(cohort, changed(message, **fields)), RemoteProtocolError, reason)
    with_mallory(cohort, "share", data)
    finishes(cohort)


def test_a_broken_box_is_blamed_on_its_sender_and_can_be_left_out():
    """Who deals boxes that do not open is out; the others go on without it."""
    cohort = Cohort(5)
    cohort.reach("share")
    _, message, _ = own(cohort, "share")
    broken = changed(message, boxes=bytes(len(message.boxes)))
    with_mallory(cohort, "share", send(cohort, broken))
    for name in ("c0", "c1", "c3", "c4"):
        with pytest.raises(AuthenticationError, match="c2: its box was changed on the way"):
            cohort.do("mask", name)
        boxes = cohort.said(name)
        left = [i for i in boxes.senders if i != 2]
        at = boxes.senders.index(2) * BOX
        rest = boxes.boxes[:at] + boxes.boxes[at + BOX :]
        cohort.inbox[name] = cohort.say(changed(boxes, senders=left, boxes=rest), name)
        cohort.server.receive(cohort.do("mask", name))


@contextmanager
def dealing(monkeypatch, wrong):
    """While this lasts, whoever splits secrets gets other rows than it should."""
    split = keyring.shamir.split

    def dealt(secrets, threshold, points, **kwargs):
        return wrong(secrets, split(secrets, threshold, points, **kwargs))

    with monkeypatch.context() as patch:
        patch.setattr(keyring.shamir, "split", dealt)
        yield


def add(rows, columns, amount=1):
    changed_ = rows.copy()
    changed_[:, columns] = (changed_[:, columns] + np.uint64(amount)) % np.uint64(P)
    return changed_


SEED, KEY = slice(0, LIMBS), slice(LIMBS, 2 * LIMBS)
NOT_OUT = "its secret does not come out of the shares"


@pytest.mark.parametrize(
    ("columns", "amount"),
    [(SEED, 1), (slice(0, 1), 1), (SEED, 1 << 57), (slice(4, 5), 1 << 40)],
    ids=["all", "a limb", "more than 7 bytes", "more than 32 bytes"],
)
def test_wrong_shares_of_a_seed(monkeypatch, columns, amount):
    cohort = Cohort(5)
    cohort.reach("share")
    with dealing(monkeypatch, lambda _, rows: add(rows, columns, amount)):
        data = cohort.do("share", MALLORY)
    with_mallory(cohort, "share", data)
    cohort.step("mask")
    with pytest.raises(RemoteProtocolError, match=f"c2: {NOT_OUT}") as error:
        cohort.step("unmask")
    assert error.value.sender == MALLORY
    assert cohort.server.state is State.ABORTED
    assert cohort.server._aggregate is None


def test_wrong_shares_of_a_seed_do_no_harm_when_it_is_not_needed(monkeypatch):
    cohort = Cohort(5)
    cohort.reach("share")
    with dealing(monkeypatch, lambda _, rows: add(rows, SEED)):
        data = cohort.do("share", MALLORY)
    with_mallory(cohort, "share", data)
    assert MALLORY not in finishes(cohort, {"mask": {MALLORY}}).survivors


@pytest.mark.parametrize(
    ("columns", "amount"), [(KEY, 1), (slice(5, 6), 8), (KEY, 1 << 57), (slice(9, 10), 1 << 40)]
)
def test_wrong_shares_of_a_mask_key(monkeypatch, columns, amount):
    cohort = Cohort(5)
    cohort.reach("share")
    with dealing(monkeypatch, lambda _, rows: add(rows, columns, amount)):
        data = cohort.do("share", MALLORY)
    with_mallory(cohort, "share", data)
    cohort.step("mask", {MALLORY})
    with pytest.raises(RemoteProtocolError, match=f"c2: {NOT_OUT}") as error:
        cohort.step("unmask")
    assert error.value.sender == MALLORY
    assert cohort.server.state is State.ABORTED


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_wrong_shares_for_one_holder(monkeypatch, victim):
    """It holds one of the first shares, as many as the threshold: others stand in for it."""
    cohort = Cohort(5)
    cohort.reach("share")

    def spoil(_, rows):
        rows = rows.copy()
        rows[victim] = add(rows, SEED)[victim]
        return rows

    with dealing(monkeypatch, spoil):
        data = cohort.do("share", MALLORY)
    with_mallory(cohort, "share", data)
    cohort.step("mask")
    cohort.step("unmask")
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)


def test_a_share_that_is_not_below_the_modulus(monkeypatch):
    cohort = Cohort(5)
    cohort.reach("share")

    def too_large(_, rows):
        rows = rows.copy()
        rows[1, 3] = P
        return rows

    with dealing(monkeypatch, too_large):
        data = cohort.do("share", MALLORY)
    with_mallory(cohort, "share", data)
    with pytest.raises(RemoteProtocolError, match="c2: its share is not below the modulus"):
        cohort.do("mask", "c1")
    assert cohort.clients["c1"].state is State.SHARED


def test_a_wrong_commitment():
    cohort = Cohort(5)
    cohort.reach("share")
    _, message, _ = own(cohort, "share")
    wrong = flipped(message.commitment, 0)
    with_mallory(cohort, "share", send(cohort, changed(message, commitment=wrong)))
    cohort.step("mask")
    with pytest.raises(RemoteProtocolError, match=f"c2: {NOT_OUT}") as error:
        cohort.step("unmask")
    assert error.value.sender == MALLORY
    assert cohort.server.state is State.ABORTED


# Vectors.


def test_vectors_of_a_wrong_size_or_width():
    cohort = Cohort(4, length=10)
    cohort.reach("mask")
    bits = cohort.parameters.bits
    data, message, _ = own(cohort, "mask")
    assert message == Masked(Vector(bits, 10))
    zeros = np.zeros(11, np.uint64)
    for vector, size, width, reason in (
        (Vector(bits, 9), 9, bits, "c2: the vector has 9 elements and 10 were agreed"),
        (Vector(bits, 11), 11, bits, "c2: the vector has 11 elements and 10 were agreed"),
        (Vector(bits, 0), 0, bits, "c2: the vector has 0 elements"),
        (Vector(bits, -1), 0, bits, "c2: the vector has -1 elements"),
        (Vector(bits + 1, 10), 10, bits + 1, f"c2: the vector is not packed in {bits} bits"),
        (Vector(61, 10), 10, 61, f"c2: the vector is not packed in {bits} bits"),
        (Vector(bits, 10), 11, 63, f"c2: the vector is not packed in {bits} bits"),
        (Vector(bits, 10), 0, bits, f"c2: the vector is not packed in {bits} bits"),
    ):
        wrong = send(cohort, Masked(vector), residues=zeros[:size], bits=width)
        refused(cohort, wrong, RemoteProtocolError, reason)
    # Ten elements of 13 bits take 130 of 192 bits, and the rest is zero.
    assert bits == 13
    padded = send(cohort, Masked(Vector(bits, 10)), residues=[0] * 9 + [1, 0, 0, 0, 1], bits=bits)
    refused(cohort, padded, RemoteProtocolError, "c2: the vector's padding is not zero")
    with_mallory(cohort, "mask", data)
    finishes(cohort)


@each_case("weights", [0, 9])
@each_case("shift", [3500, -3500])
def test_a_vector_beyond_the_bound_is_seen_in_the_sum(weights, shift):
    """Masks hide whose it is; that the total cannot be right is seen."""
    cohort = Cohort(3, bound=1000, max_weight=weights)
    cohort.values = {name: np.full(4, 1000 if shift > 0 else -1000) for name in cohort}
    if weights:
        cohort.weights = dict.fromkeys(cohort, 9)
    cohort.reach("mask")
    bits = cohort.parameters.bits
    _, message, payload = own(cohort, "mask")
    residues = wire.unpack(message.vector, payload, message.vector.length, bits)
    residues = residues.astype(np.uint64)
    residues[2] = (int(residues[2]) + (1 if shift > 0 else -1)) % (1 << bits)
    with_mallory(cohort, "mask", send(cohort, message, residues=residues, bits=bits))
    with pytest.raises(RangeError, match="the total is beyond what the agreed bounds allow"):
        cohort.step("unmask")
    assert cohort.server.state is State.ABORTED


@each_case("by", [1, -28])
def test_a_weight_beyond_the_agreed_one_is_seen_in_the_sum(by):
    cohort = Cohort(3, bound=1000, max_weight=9)
    cohort.weights = dict.fromkeys(cohort, 9)
    cohort.reach("mask")
    bits = cohort.parameters.bits
    _, message, payload = own(cohort, "mask")
    residues = wire.unpack(message.vector, payload, message.vector.length, bits)
    residues = residues.astype(np.uint64)
    residues[-1] = (int(residues[-1]) + by) % (1 << bits)
    with_mallory(cohort, "mask", send(cohort, message, residues=residues, bits=bits))
    with pytest.raises(RangeError, match="the total weight is beyond what the agreed bounds allow"):
        cohort.step("unmask")


# Consents.


@each_case("size", [0, 63, 65])
def test_a_consent_of_a_wrong_length(size):
    cohort = Cohort(4, security="active")
    cohort.reach("consent")
    data = cohort.do("consent", MALLORY)
    wrong = send(cohort, Consent(bytes(size)))
    refused(cohort, wrong, AuthenticationError, "c2: the signature for .* is not valid")
    with_mallory(cohort, "consent", data)
    finishes(cohort)


def test_a_bad_consent_does_not_stop_the_others():
    cohort = Cohort(5, security="active")
    cohort.reach("consent")
    cohort.do("consent", MALLORY)
    with suppress(AuthenticationError, RemoteProtocolError):
        cohort.server.receive(send(cohort, Consent(bytes(64))))
    cohort.step("consent", {MALLORY})
    cohort.step("unmask", {MALLORY})
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)


@each_case("step", ["mask", "share", "advertise"])
def test_who_did_not_survive_has_no_say_at_the_end(step):
    cohort = Cohort(7, security="active")
    cohort.reach("consent", {step: {MALLORY}})
    others = [n for n in cohort if n != MALLORY]
    assert cohort.server.missing == others
    wrong = send(cohort, Consent(bytes(64)))
    refused(cohort, wrong, RemoteProtocolError, "c2: sent message kind 22, which is not its")
    cohort.step("consent")
    assert cohort.server.missing == others
    wrong = send(cohort, Unmask([2], Vector(61, 5)), residues=[0] * 5)
    refused(cohort, wrong, RemoteProtocolError, "c2: sent message kind 24, which is not its")
    finishes(cohort)


# Unmasking.


def test_shares_of_other_owners():
    cohort = Cohort(6)
    cohort.reach("unmask", {"advertise": {"c5"}, "mask": {"c4"}})
    data, message, payload = own(cohort, "unmask")
    assert message.owners == [0, 1, 2, 3, 4]
    rows = np.array(cohort.shares(message, payload), np.uint64)
    owners = "c2: its shares are not of the clients it was given"
    for listed, kept, reason in (
        ([0, 1, 2, 3], 4, owners),
        ([0, 1, 2, 3, 5], 5, owners),
        ([4, 3, 2, 1, 0], 5, owners),
        ([0, 1, 2, 3, 4, 4], 5, owners),
        ([0, 1, 2, 3, 4, 5], 5, owners),
        ([], 0, owners),
        ([0, 1, 2, 3, 4], 4, "c2: the vector has 20 elements and 25 were agreed"),
        ([0, 1, 2, 3, 4], 0, "c2: the vector has 0 elements and 25 were agreed"),
    ):
        flat = rows[:kept].reshape(-1)
        wrong = send(cohort, Unmask(listed, Vector(61, flat.size)), residues=flat)
        refused(cohort, wrong, RemoteProtocolError, reason)
    beyond = rows.reshape(-1).copy()
    beyond[7] = P
    wrong = send(cohort, Unmask(message.owners, Vector(61, 25)), residues=beyond)
    refused(cohort, wrong, RemoteProtocolError, "c2: the vector has a residue that is not below")
    narrow = send(cohort, Unmask(message.owners, Vector(60, 25)), residues=rows[0], bits=60)
    refused(cohort, narrow, RemoteProtocolError, "c2: the vector is not packed in 61 bits")
    with_mallory(cohort, "unmask", data)
    assert cohort.server.result().values.tolist() == cohort.total(["c0", "c1", "c2", "c3"])


@each_case("owner", ["c0", "c2", "c4"])
@each_case("others", [2, 3])
def test_a_changed_share_at_the_end_is_seen(owner, others):
    """Of a survivor's seed (c0), its own (c2), or a dropped client's mask key (c4).

    With three right shares of three that are needed, the sum comes out all the same.
    """
    cohort = Cohort(5)
    cohort.reach("unmask", {"mask": {"c4"}})
    _, message, payload = own(cohort, "unmask")
    rows = np.array(cohort.shares(message, payload), np.uint64)
    place = cohort.names.index(owner)
    rows[place, 0] = (int(rows[place, 0]) + 8) % P  # X25519 ignores the lowest three bits
    cohort.server.receive(send(cohort, message, residues=rows.reshape(-1)))
    if others == 3:
        cohort.step("unmask", {MALLORY})
        assert cohort.server.result().values.tolist() == cohort.total(["c0", "c1", "c2", "c3"])
        return
    with pytest.raises(RemoteProtocolError, match=f"{owner}: {NOT_OUT}"):
        cohort.step("unmask", {MALLORY, "c3"})
    assert cohort.server.state is State.ABORTED


def test_a_changed_share_does_not_stop_the_others():
    """The commitment, or the public mask key, tells which of the shares go together."""
    cohort = Cohort(5)
    cohort.reach("unmask")
    _, message, payload = own(cohort, "unmask")
    rows = np.array(cohort.shares(message, payload), np.uint64)
    rows[0, 0] = (int(rows[0, 0]) + 1) % P
    with_mallory(cohort, "unmask", send(cohort, message, residues=rows.reshape(-1)))
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)


def lie_about(cohort, liars, owners=slice(None)):
    """Let clients send wrong shares of these owners' secrets."""
    for name in liars:
        _, message, payload = cohort.read(cohort.do("unmask", name))
        rows = np.array(cohort.shares(message, payload), np.uint64)
        rows[owners, 0] = (rows[owners, 0] + np.uint64(8)) % np.uint64(P)
        cohort.server.receive(cohort.say(message, SERVER, sender=name, residues=rows.reshape(-1)))


@pytest.fixture
def joins(monkeypatch):
    """A list that grows by one whenever shares are put together."""
    calls = []
    join = recovery.shamir.reconstruct
    monkeypatch.setattr(recovery.shamir, "reconstruct", lambda *a: calls.append(1) or join(*a))
    return calls


@pytest.mark.parametrize("liar", ["c0", "c9", "c10", "c19"])
def test_one_liar_does_not_keep_the_server_busy(joins, liar):
    """Whose shares do not go together is found once, and not for each of the secrets.

    Otherwise the work grows with the cube of the clients: from milliseconds to half a minute for
    400 of them.
    """
    cohort = Cohort(20)
    cohort.reach("unmask")
    lie_about(cohort, [liar])
    cohort.step("unmask", {liar})
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)
    assert len(joins) <= 3  # 11 of 20 shares are needed: three runs of 9 hold all clients


@pytest.mark.parametrize("lies", [1, 4, 7])
def test_several_liars_about_different_secrets(joins, lies):
    """No run of 11 clients is free of them, yet each secret has one that is right about it."""
    cohort = Cohort(20)
    cohort.reach("unmask", {"mask": {"c2"}})
    liars = ["c0", "c5", "c11", "c16"]
    for place, liar in enumerate(liars):
        lie_about(cohort, [liar], slice(place, None, len(liars) * lies))
    cohort.step("unmask", set(liars))
    assert cohort.server.result().values.tolist() == cohort.total(
        [name for name in cohort.names if name != "c2"]
    )
    assert len(joins) <= 20


def test_liars_side_by_side_about_everything(joins):
    cohort = Cohort(20)
    cohort.reach("unmask")
    liars = [f"c{i}" for i in range(6, 15)]
    lie_about(cohort, liars)
    cohort.step("unmask", set(liars))
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)
    assert len(joins) <= 20


def test_no_choice_of_holders_is_tried_twice(joins):
    """With a share fewer than needed to leave the liar out, there is one choice."""
    cohort = Cohort(5)
    cohort.reach("unmask")
    lie_about(cohort, ["c1"])
    with pytest.raises(RemoteProtocolError, match=f"c0: {NOT_OUT}"):
        cohort.step("unmask", {"c1", "c3", "c4"})
    assert len(joins) == 1


def test_shares_has_the_size_that_the_tests_think():
    assert keyring.BOX_BYTES == BOX
    assert keyring.SHARE_LIMBS == LIMBS
    assert Shares.__struct_fields__ == ("commitment", "recipients", "boxes")
