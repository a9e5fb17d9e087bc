"""A sum that a group of key holders decrypts: the roles, and who is caught at what."""

import itertools

import numpy as np
import pytest
from paillier.meeting import identity, stream

from securecomp.errors import (
    AuthenticationError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier import sum_session, threshold_key, threshold_roles
from securecomp.paillier.encoding import join_ciphertexts
from securecomp.paillier.partial_decryption import PartialDecryption
from securecomp.paillier.sum_roles import Contributor
from securecomp.paillier.sum_session import DecryptionRequest, DecryptionShare
from securecomp.paillier.vectors import encrypt
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.journal import FileJournal, MemoryJournal
from securecomp.protocol.session import Layout, Session

NAMES = ("north", "south", "east")
ADDER = "adder"
HOLDERS = tuple(f"holder {i}" for i in range(1, 6))
RECEIVERS = ("north", "registry")


class Group:
    """A session under a threshold key with everyone in it; anybody can lie."""

    def __init__(self, dealt, *, minimum=2, blind=False, bound=1000, length=12, **changes):
        self.key, self.shares = dealt
        self.entropy = stream("group")
        parties = dict.fromkeys((*NAMES, ADDER, *HOLDERS, *RECEIVERS))
        terms = sum_session.terms(
            3, minimum=None if blind else minimum, blind=blind, threshold=self.key.threshold
        )
        facts = {
            "contributors": NAMES,
            "servers": (ADDER, *HOLDERS),
            "receivers": RECEIVERS,
            "keys": {name: identity(name).public for name in parties},
            "layout": Layout(length, bound),
            "limit": (1 << 62) - 1,
            "terms": terms,
            "entropy": self.entropy,
            "protocol": sum_session.protocol_name(self.key),
        } | changes
        self.session = Session.create(facts.pop("protocol"), **facts)
        self.values = {
            name: [(-1) ** (i + k) * (bound - i) for i in range(length)]
            for k, name in enumerate(NAMES)
        }

    def aggregator(self):
        return threshold_roles.Aggregator(
            self.session, ADDER, identity(ADDER), self.key, entropy=self.entropy
        )

    def holder(self, index, journal=None, name=None):
        name = name or HOLDERS[index - 1]
        return threshold_roles.ShareHolder(
            self.session,
            name,
            identity(name),
            self.shares[index - 1],
            journal=journal or MemoryJournal(),
            entropy=self.entropy,
        )

    def receiver(self, name="registry"):
        return threshold_roles.Receiver(
            self.session, name, identity(name), self.key, entropy=self.entropy
        )

    def request(self, names=NAMES):
        """What an honest aggregator sends to each name."""
        aggregator = self.aggregator()
        for name in names:
            role = Contributor(
                self.session,
                name,
                identity(name),
                self.key,
                journal=MemoryJournal(),
                entropy=self.entropy,
            )
            aggregator.receive(role.contribute(self.values[name]))
        return aggregator.close()

    def parts(self, request, holders=(1, 2, 3), receiver="registry"):
        return {i: self.holder(i).decrypt(request[HOLDERS[i - 1]])[receiver] for i in holders}

    def total(self, names=NAMES):
        return [sum(column) for column in zip(*(self.values[n] for n in names), strict=True)]

    def read(self, data, kind):
        recipient = wire.split_header(data)[0].recipient
        _, body = identities.open_sealed(
            identity(recipient), self.session, self.session.agreement, data, recipient, 1 << 20
        )
        return wire.decode_body(body, kind)[0]

    def say(self, message, sender, recipient):
        header = self.session.header(message.KIND, sender, recipient, self.session.agreement)
        body = wire.encode_body(message)
        return identities.seal(identity(sender), self.session, header, body, self.entropy)

    def forge(self, values, *, contributors=(0, 1, 2), signer=ADDER):
        """One request for any values in the aggregator's name, sealed for everybody."""
        layout, key = self.session.layout, self.key.public
        vector = encrypt(
            key, [0] * layout.length, bound=layout.bound, additions=3, entropy=self.entropy
        )
        plain = sum(v << (vector.packing.slot * i) for i, v in enumerate(values))
        vector.ciphertexts[0] = vector.ciphertexts[0] * (1 + plain * key.n) % key.n2
        data, listed = join_ciphertexts(key, vector.ciphertexts), list(contributors)
        signed = [max(0, index) for index in listed]  # a negative one cannot be signed
        facts = threshold_roles._facts(self.session.agreement, signed, data)
        signature = identity(signer).sign("paillier decryption request", *facts)
        request = DecryptionRequest(listed, data, signature)
        return {name: self.say(request, ADDER, name) for name in (*HOLDERS, *RECEIVERS)}


@pytest.fixture
def group(dealt):
    return Group(dealt)


def test_any_three_of_five_give_every_receiver_the_total(dealt):
    for blind, there in ((False, NAMES), (True, NAMES), (False, NAMES[1:])):
        group = Group(dealt, blind=blind)
        request = group.request(there)
        assert set(request) == {*HOLDERS, *RECEIVERS}
        sealed = {i: group.holder(i).decrypt(request[HOLDERS[i - 1]]) for i in range(1, 6)}
        for name, used in itertools.product(RECEIVERS, ((1, 2, 3), (5, 3, 1), (5, 4, 3, 2, 1))):
            receiver = group.receiver(name)
            receiver.receive_request(request[name])
            for i in used:
                receiver.receive(sealed[i][name])
            assert receiver.missing == [h for i, h in enumerate(HOLDERS, 1) if i not in used]
            got = receiver.total()
            assert got.dtype == np.int64, (blind, there, name, used)
            assert got.tolist() == group.total(there), (blind, there, name, used)


def test_too_few_parts(group):
    request = group.request()
    receiver = group.receiver()
    receiver.receive_request(request["registry"])
    for i, part in group.parts(request, (2, 4)).items():
        receiver.receive(part)
        with pytest.raises(ThresholdError, match=r"parts of holder 1, .*holder 5 are missing"):
            receiver.total()
        assert i in (2, 4)
    receiver.receive(group.parts(request, (5,))[5])
    assert receiver.total().tolist() == group.total()


def test_a_holder_decrypts_one_total_also_after_a_restart(group, tmp_path):
    first, second = group.request(NAMES), group.request(NAMES[1:])
    for journal in (MemoryJournal(), FileJournal(tmp_path)):
        group.holder(1, journal).decrypt(first[HOLDERS[0]])
        for request in (first, second):
            with pytest.raises(LocalProtocolError, match="was done before"):
                group.holder(1, journal).decrypt(request[HOLDERS[0]])
    holder = group.holder(2)
    holder.decrypt(first[HOLDERS[1]])
    with pytest.raises(LocalProtocolError, match="not allowed when done"):
        holder.decrypt(second[HOLDERS[1]])


def test_a_holder_that_is_killed_at_work_does_not_work_again(group, monkeypatch):
    """Its part is marked before the first number is raised to the share, whatever happens then."""
    journal, request = MemoryJournal(), group.request()

    def kill(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(threshold_roles, "partial_decrypt", kill)
        with pytest.raises(KeyboardInterrupt):
            group.holder(1, journal).decrypt(request[HOLDERS[0]])
    with pytest.raises(LocalProtocolError, match="was done before"):
        group.holder(1, journal).decrypt(request[HOLDERS[0]])


def test_a_refused_request_does_not_use_the_holder_up(group):
    holder = group.holder(1)
    for contributors, error, match in (
        ([0], ThresholdError, "too few contributors"),
        ([], ThresholdError, "too few contributors"),
        ([0, 0], RemoteProtocolError, "list of contributors is malformed"),
        ([1, 0], RemoteProtocolError, "list of contributors is malformed"),
        ([0, 3], RemoteProtocolError, "list of contributors is malformed"),
        ([-1, 0], RemoteProtocolError, "list of contributors is malformed"),
    ):
        with pytest.raises(error, match=match):
            holder.decrypt(group.forge([1] * 3, contributors=contributors)[HOLDERS[0]])
    for signer in ("north", HOLDERS[0]):
        with pytest.raises(AuthenticationError, match="adder: the signature"):
            holder.decrypt(group.forge([1] * 3, signer=signer)[HOLDERS[0]])
    stray = group.say(DecryptionRequest([0, 1], b"", b""), "north", HOLDERS[0])
    with pytest.raises(RemoteProtocolError, match="not its to send here"):
        holder.decrypt(stray)
    assert set(holder.decrypt(group.request()[HOLDERS[0]])) == set(RECEIVERS)


def test_a_receiver_refuses_the_same_requests(group):
    receiver = group.receiver()
    with pytest.raises(ThresholdError, match="too few contributors"):
        receiver.receive_request(group.forge([1] * 3, contributors=[0])["registry"])
    with pytest.raises(AuthenticationError, match="adder: the signature"):
        receiver.receive_request(group.forge([1] * 3, signer="south")["registry"])
    receiver.receive_request(group.request()["registry"])


def test_two_requests_of_one_aggregator_do_not_mix(group):
    """It asks one holder for another total: nobody combines the two."""
    first, second = group.request(NAMES), group.request(NAMES[1:])
    receiver = group.receiver()
    receiver.receive_request(first["registry"])
    with pytest.raises(RemoteProtocolError, match=r"holder 1.*decrypted another request"):
        receiver.receive(group.parts(second, (1,))[1])
    for part in group.parts(first, (2, 3, 4)).values():
        receiver.receive(part)
    assert receiver.total().tolist() == group.total()


def test_a_wrong_part_is_traced_to_its_holder(group):
    request = group.request()
    receiver = group.receiver()
    receiver.receive_request(request["registry"])
    parts = group.parts(request, (1, 2, 3, 4))
    said = group.read(parts[1], DecryptionShare)
    partial = PartialDecryption.decode(said.partial)
    n2 = int(group.key.public.n2)

    def changed(index=1, value=None):
        values = partial.values if value is None else [value, *partial.values[1:]]
        return PartialDecryption(index, values, partial.challenges, partial.responses).encode()

    squared = (int.from_bytes(partial.values[0], "big") ** 2 % n2).to_bytes(
        len(partial.values[0]), "big"
    )
    for sender, body, error, match in (
        (HOLDERS[0], changed(value=squared), AuthenticationError, "holder 1: its partial"),
        (HOLDERS[1], changed(), RemoteProtocolError, "holder 2.*another holder's part"),
        (HOLDERS[1], changed(index=2), AuthenticationError, "holder 2: its partial"),
        (HOLDERS[0], b"\xc1", RemoteProtocolError, "holder 1.*not a partial decryption"),
        (HOLDERS[0], changed(value=bytes(64)), RemoteProtocolError, "holder 1.*out of range"),
    ):
        forged = group.say(DecryptionShare(said.request, body), sender, "registry")
        with pytest.raises(error, match=match):
            receiver.receive(forged)
    for part in (parts[1], parts[2], parts[3]):
        receiver.receive(part)
    with pytest.raises(RemoteProtocolError, match="duplicate"):
        receiver.receive(parts[3])
    assert receiver.total().tolist() == group.total()


def test_a_total_beyond_the_bounds_is_refused(group):
    """Three contributors up to 1000 give up to 3000, and the slots have room for 4095."""
    for largest, fits in ((3000, True), (-3000, True), (3001, False), (-3001, False)):
        request = group.forge([largest, 1])
        receiver = group.receiver()
        receiver.receive_request(request["registry"])
        for part in group.parts(request).values():
            receiver.receive(part)
        if fits:
            assert receiver.total()[0] == largest
        else:
            with pytest.raises(RangeError, match="beyond what the agreed bounds allow"):
                receiver.total()
            with pytest.raises(LocalProtocolError, match="aborted"):
                receiver.total()


def test_fewer_contributors_give_less(group):
    """The list is part of what is asked: two of up to 1000 cannot give 2001."""
    request = group.forge([2001], contributors=[0, 2])
    receiver = group.receiver()
    receiver.receive_request(request["registry"])
    for part in group.parts(request).values():
        receiver.receive(part)
    with pytest.raises(RangeError, match="beyond"):
        receiver.total()


def test_sessions_that_are_refused(dealt, replay):
    key, _ = dealt
    good = Group(dealt).session.terms
    for changes, error, match in (
        ({"terms": {**good, "threshold": 2}}, ParameterError, "threshold is not the key's 3"),
        ({"terms": {**good, "minimum": 1}}, ParameterError, "minimum must be from 2"),
        ({"terms": {k: good[k] for k in ("minimum", "blind")}}, ParameterError, "parameters"),
        ({"terms": {**good, "blind": 2}}, ParameterError, "parameters"),
        ({"servers": (ADDER, *HOLDERS[:4])}, ParameterError, "aggregator and 5 key holders"),
        ({"protocol": sum_session.protocol_name(key.public)}, KeyMismatchError, "another key"),
    ):
        group = Group(dealt, **changes)
        for role in (group.aggregator, lambda group=group: group.holder(1), group.receiver):
            with pytest.raises(error, match=match):
                role()
    group = Group(dealt)
    with pytest.raises(ParameterError, match="share 1 is not for this holder's place"):
        group.holder(1, name=HOLDERS[1])
    for least, refused in ((2, True), (3, False)):
        small = threshold_key.deal(
            4 if refused else 5, least, 128, insecure_for_tests=True, entropy=replay("small")
        )
        servers = (ADDER, *HOLDERS[: small[0].holders])
        group = Group(small, servers=servers, length=1, bound=1)
        if refused:
            with pytest.raises(ParameterError, match="2 of 4 key holders are too few"):
                group.receiver()
        else:
            group.receiver()


def test_a_receiver_waits_for_the_request_first(group):
    request = group.request()
    receiver = group.receiver()
    for early in (lambda: receiver.receive(group.parts(request, (1,))[1]), receiver.total):
        with pytest.raises(LocalProtocolError, match="not allowed when collecting"):
            early()
    receiver.receive_request(request["registry"])
    with pytest.raises(LocalProtocolError, match=r"receive_request\(\) is not allowed"):
        receiver.receive_request(request["registry"])


def test_the_key_s_id_binds_everything_public(dealt):
    key, _ = dealt
    changes = {
        "threshold": 4,
        "base": key.base * key.base % key.public.n2,
        "verification": key.verification[::-1],
    }
    ids = {key.id}
    for name, value in changes.items():
        fields = {n: getattr(key, n) for n in ("public", "threshold", "base", "verification")}
        ids.add(threshold_key.ThresholdKey(**fields | {name: value}).id)
    assert len(ids) == 4
