"""The roles: what each takes and refuses, in which order, and what it can learn."""

import copy
import hashlib
import math
import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from cases import each_case
from paillier import textbook
from paillier.meeting import ADDER, HOLDER, NAMES, Meeting, flipped, identity, stream

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier import (
    Aggregator,
    Contributor,
    KeyHolder,
    Packing,
    PrivateKey,
    PublicKey,
    Receiver,
    sum_session,
    vectors,
)
from securecomp.paillier.sum_session import DecryptedTotal, EncryptedTotal, Upload
from securecomp.protocol.journal import FileJournal, MemoryJournal
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout


@pytest.fixture
def meeting(private):
    return Meeting(private)


@pytest.fixture
def few(private):
    """A session in which two contributors are enough."""
    return Meeting(private, minimum=2)


def finish(meeting, names=None):
    """The honest way from the uploads on: every receiver's total."""
    totals = meeting.holder().decrypt(meeting.aggregate(names))
    return {name: meeting.receiver(name).receive(data) for name, data in totals.items()}


class TestTotals:
    @each_case("count", [2, 3, 4])
    @each_case("length", [0, 1, 36, 37, 100])
    @each_case("blind", [False, True])
    def test_the_total_is_exact(self, private, count, length, blind):
        meeting = Meeting(private, NAMES[:count], length=length, blind=blind)
        got = finish(meeting)
        assert set(got) == {"north", "registry"}
        for total in got.values():
            assert total.dtype == np.int64
            assert total.tolist() == meeting.total()

    @each_case("bound", [0, 1, 2**31, (2**62 - 1) // 4])
    @each_case("blind", [False, True])
    def test_all_values_at_the_bound(self, private, bound, blind):
        for sign in (1, -1):
            meeting = Meeting(private, bound=bound, blind=blind)
            meeting.values = dict.fromkeys(NAMES, [sign * bound] * 30)
            assert finish(meeting)["registry"].tolist() == [4 * sign * bound] * 30

    @each_case("there", [NAMES, NAMES[:3], NAMES[1:3], NAMES[::-1]])
    def test_a_minimum_of_contributors(self, few, there):
        data = few.aggregate(there)
        assert few.read(data).contributors == sorted(NAMES.index(n) for n in there)
        total = few.holder().decrypt(data)
        assert few.read(total["registry"]).contributors == sorted(NAMES.index(n) for n in there)
        assert few.receiver().receive(total["registry"]).tolist() == few.total(there)

    def test_by_the_full_exponent(self, private):
        bare = PrivateKey(*textbook.factors(private), insecure_for_tests=True)
        meeting = Meeting(bare)
        aggregator = meeting.aggregator(exponent="full")
        for name in NAMES:
            role = meeting.contributor(name, exponent="full")
            aggregator.receive(role.contribute(meeting.values[name]))
        total = meeting.holder().decrypt(aggregator.close())["registry"]
        assert meeting.receiver().receive(total).tolist() == meeting.total()
        with pytest.raises(ParameterError, match="this key has no h_s"):
            meeting.contributor("north").contribute(meeting.values["north"])

    def test_in_other_processes(self, meeting):
        from paillier.workers import Here

        here = Here()
        data = meeting.contributor("north", executor=here).contribute(meeting.values["north"])
        assert len(here.tasks) == 1
        aggregator = meeting.aggregator()
        aggregator.receive(data)
        assert aggregator.missing == list(NAMES[1:])

    def test_an_upload_holds_a_packed_vector_and_a_signature(self, meeting):
        data = meeting.contributor("south").contribute(meeting.values["south"])
        upload = meeting.read(data)
        plan = Packing.plan(meeting.public, 1000, 4)
        want = textbook.pack(meeting.values["south"], plan.slot, plan.slots)
        n = int(meeting.public.n)
        assert meeting.opened(data) == [m % n for m in want]
        identity_ = identity("south")
        signed = ("paillier upload", meeting.session.agreement, "south")
        digest = hashlib.sha256(upload.ciphertexts).digest()
        assert upload.signature == identity_.sign(*signed, digest)

    def test_what_leaves_the_aggregator_is_no_product_of_uploads(self, meeting):
        """Who saw the uploads cannot tell that they are in it."""
        uploads = meeting.uploads()
        aggregator = meeting.aggregator()
        for data in uploads.values():
            aggregator.receive(data)
        closed = meeting.ciphertexts(aggregator.close())
        n2 = int(meeting.public.n2)
        columns = zip(*(meeting.ciphertexts(d) for d in uploads.values()), strict=True)
        assert all(math.prod(c) % n2 != t for c, t in zip(columns, closed, strict=True))

    def test_every_upload_is_under_fresh_randomness(self, meeting):
        sent = [
            meeting.ciphertexts(meeting.contributor("north").contribute([5] * 30))[0]
            for _ in range(5)
        ]
        assert len(set(sent)) == 5


class TestAgreement:
    @each_case(
        "count, options, want",
        [
            (5, {}, {"minimum": 5, "blind": 0}),
            (5, {"minimum": 2}, {"minimum": 2, "blind": 0}),
            (5, {"minimum": 5}, {"minimum": 5, "blind": 0}),
            (5, {"blind": True}, {"minimum": 5, "blind": 1}),
            (5, {"blind": True, "minimum": 5}, {"minimum": 5, "blind": 1}),
        ],
    )
    def test_terms(self, count, options, want):
        assert sum_session.terms(count, **options) == want

    @each_case("count, minimum", [(5, 1), (5, 0), (5, 6), (1, None), (5, -1)])
    def test_terms_that_cannot_be(self, count, minimum):
        shown = count if minimum is None else minimum
        with pytest.raises(
            ParameterError, match=f"^the minimum must be from 2 to {count}, not {shown}$"
        ):
            sum_session.terms(count, minimum=minimum)

    def test_blind_sums_need_everybody(self):
        reason = r"^a blind sum needs every contributor; leave out minimum$"
        with pytest.raises(ParameterError, match=reason):
            sum_session.terms(5, minimum=4, blind=True)

    def everybody(self, meeting, session, key=None):
        """Make each role in a session."""
        private = key or meeting.private
        return {
            "north": lambda: meeting.contributor("north", session, private.public),
            ADDER: lambda: meeting.aggregator(session, private.public),
            HOLDER: lambda: meeting.holder(session, private),
        }

    def test_another_key(self, meeting, stranger):
        n, h_s = int(meeting.public.n), int(meeting.public.h_s)
        p, q = textbook.factors(meeting.private)
        # The same modulus with another h_s: what it encrypts could be traced.
        traced = PrivateKey(p, q, pow(h_s, 3, n * n), insecure_for_tests=True)
        bare = PrivateKey(p, q, insecure_for_tests=True)
        for key in (stranger, traced, bare):
            for name, make in self.everybody(meeting, None, key).items():
                reason = f"^{name}: the session was agreed for another key$"
                with pytest.raises(KeyMismatchError, match=reason):
                    make()

    @each_case("protocol", ["sharing/sum/1", "paillier/sum/1 key", "paillier/sum/2"])
    def test_another_protocol(self, meeting, protocol):
        session = meeting.agree(protocol=protocol)
        for make in self.everybody(meeting, session).values():
            with pytest.raises(KeyMismatchError, match=r"the session was agreed for another key$"):
                make()

    @each_case("terms", [{}, {"minimum": 4}, {"minimum": 4, "blind": 0, "more": 1}])
    def test_other_terms(self, meeting, terms):
        session = meeting.agree(terms=terms)
        for name, make in self.everybody(meeting, session).items():
            reason = f"^{name}: the session's parameters are not this protocol's$"
            with pytest.raises(ParameterError, match=reason):
                make()

    @each_case(
        "terms",
        [
            {"minimum": 1, "blind": 0},
            {"minimum": 0, "blind": 0},
            {"minimum": -1, "blind": 0},
            {"minimum": 5, "blind": 0},
            {"minimum": 2, "blind": 1},
            {"minimum": 4, "blind": 2},
        ],
    )
    def test_terms_that_no_party_should_accept(self, meeting, terms):
        session = meeting.agree(terms=terms)
        for make in self.everybody(meeting, session).values():
            with pytest.raises(ParameterError):
                make()

    def test_more_key_holders_than_one(self, few):
        """They have the same key. The adder sends one the total of three, the other that of two,
        and the receivers subtract."""
        session = few.agree(
            servers=(ADDER, HOLDER, "deputy"),
            keys=few.session.keys | {"deputy": identity("deputy").public},
        )
        for make in self.everybody(few, session).values():
            with pytest.raises(ParameterError):
                make()

    def test_a_bound_that_does_not_fit_the_key(self, replay):
        private = PrivateKey.generate(64, insecure_for_tests=True, entropy=replay("64"))
        meeting = Meeting(private, bound=2**60 - 1)
        for make in self.everybody(meeting, None).values():
            with pytest.raises(RangeError, match=r"^a slot of 64 bits does not fit a key of 64"):
                make()

    @each_case("name", [ADDER, HOLDER, "registry", "nobody"])
    def test_who_is_no_contributor(self, meeting, name):
        with pytest.raises(
            ParameterError, match=f"^'{name}' is not a Contributor of this session$"
        ):
            meeting.contributor(name)

    @each_case(
        "kind, names",
        [
            ("aggregator", ["north", HOLDER, "registry"]),
            ("holder", ["north", ADDER, "registry"]),
            ("receiver", ["south", ADDER, HOLDER]),
        ],
    )
    def test_who_has_another_role(self, meeting, kind, names):
        for name in names:
            with pytest.raises(ParameterError, match=f"^'{name}' is not a .* of this session$"):
                getattr(meeting, kind)(name=name)

    @each_case("name", [ADDER, "north", "nobody"])
    def test_an_aggregate_for_who_holds_no_key(self, meeting, name):
        reason = f"^'{name}' is not a key holder of this session$"
        with pytest.raises(ParameterError, match=reason):
            meeting.aggregator(key_holder=name)

    def test_another_identity(self, meeting):
        for make in (
            lambda: Contributor(meeting.session, "north", identity("south"), meeting.public),
            lambda: KeyHolder(meeting.session, HOLDER, identity(ADDER), meeting.private),
            lambda: Receiver(meeting.session, "registry", identity("north")),
        ):
            with pytest.raises(KeyMismatchError, match="identity"):
                make()


EVENTS = {
    Contributor: {"contribute": 1},
    Aggregator: {"receive": 1, "close": 0},
    KeyHolder: {"decrypt": 1},
    Receiver: {"receive": 1},
}


def make(meeting, kind):
    return {
        Contributor: lambda: meeting.contributor("north"),
        Aggregator: meeting.aggregator,
        KeyHolder: meeting.holder,
        Receiver: meeting.receiver,
    }[kind]()


class TestStates:
    @each_case("kind", EVENTS)
    def test_every_cell(self, meeting, kind):
        """What the table does not name is refused; what it names gets further."""
        for state in State:
            for event, arguments in EVENTS[kind].items():
                role = make(meeting, kind)
                role.state = state
                call = lambda: getattr(role, event)(*[b""] * arguments)  # noqa: B023, E731
                if (state, event) in kind.TRANSITIONS:
                    with pytest.raises((DecodeError, ParameterError, ThresholdError)):
                        call()
                else:
                    reason = (
                        rf"^{kind.__name__} '{role.name}': {event}\(\) is not allowed when "
                        f"{state.value}$"
                    )
                    with pytest.raises(LocalProtocolError, match=reason):
                        call()
                assert role.state is state

    def test_where_they_begin_and_end(self, meeting):
        contributor, aggregator = meeting.contributor("north"), meeting.aggregator()
        holder, receiver = meeting.holder(), meeting.receiver()
        assert [r.state for r in (contributor, aggregator, holder, receiver)] == [
            State.READY,
            State.COLLECTING,
            State.READY,
            State.COLLECTING,
        ]
        aggregator.receive(contributor.contribute(meeting.values["north"]))
        assert contributor.state is State.DONE
        assert aggregator.state is State.COLLECTING
        for data in meeting.uploads(NAMES[1:]).values():
            aggregator.receive(data)
        data = aggregator.close()
        assert aggregator.state is State.DONE
        totals = holder.decrypt(data)
        assert holder.state is State.DONE
        receiver.receive(totals["registry"])
        assert receiver.state is State.DONE

    def test_each_acts_once(self, meeting):
        contributor = meeting.contributor("north")
        contributor.contribute(meeting.values["north"])
        with pytest.raises(LocalProtocolError, match=r"is not allowed when done$"):
            contributor.contribute(meeting.values["north"])
        aggregator = meeting.aggregator()
        for data in meeting.uploads().values():
            aggregator.receive(data)
        aggregate = aggregator.close()
        for again in (aggregator.close, lambda: aggregator.receive(aggregate)):
            with pytest.raises(LocalProtocolError, match=r"is not allowed when done$"):
                again()
        holder, receiver = meeting.holder(), meeting.receiver()
        total = holder.decrypt(aggregate)["registry"]
        with pytest.raises(LocalProtocolError, match=r"is not allowed when done$"):
            holder.decrypt(aggregate)
        receiver.receive(total)
        with pytest.raises(LocalProtocolError, match=r"is not allowed when done$"):
            receiver.receive(total)

    @each_case("kind", EVENTS)
    def test_abort(self, meeting, kind):
        role = make(meeting, kind)
        role.abort()
        assert role.state is State.ABORTED
        for event, arguments in EVENTS[kind].items():
            with pytest.raises(LocalProtocolError, match=r"is not allowed when aborted$"):
                getattr(role, event)(*[b""] * arguments)

    def test_an_aggregator_forgets_what_it_has(self, meeting):
        aggregator = meeting.aggregator()
        aggregator.receive(meeting.uploads(["north"])["north"])
        aggregator.abort()
        assert aggregator._total is None

    def test_an_aborted_key_holder_forgets_the_key(self, meeting):
        holder = meeting.holder()
        holder.abort()
        assert not any(isinstance(part, PrivateKey) for part in vars(holder).values())

    @each_case("kind", EVENTS)
    def test_no_copies(self, meeting, kind):
        role = make(meeting, kind)
        reason = f"^a {kind.__name__} holds secrets and cannot be copied or pickled$"
        for take in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=reason):
                take(role)

    @each_case("kind", EVENTS)
    def test_what_they_show(self, meeting, kind):
        role = make(meeting, kind)
        assert repr(role) == f"{kind.__name__}('{role.name}', {role.state.value})"


class TestContributor:
    @each_case(
        "values, error, reason",
        [
            ([1] * 29, ParameterError, r"^north: the vector has shape \(29,\) and \(30,\) was agr"),
            ([1] * 31, ParameterError, r"^north: the vector has shape \(31,\) and \(30,\) was agr"),
            ([], ParameterError, r"^north: the vector has shape \(0,\) and \(30,\) was agreed$"),
            (5, ParameterError, r"^expected a vector, got shape \(\)"),
            ([[1] * 30], ParameterError, r"^expected a vector, got shape \(1, 30\)"),
            ([1.0] * 30, ParameterError, "^expected integers, got float64; encode reals with core"),
            ([1001] + [0] * 29, RangeError, "^north: a value is beyond the bound 1000 of a slot$"),
            ([0] * 29 + [-1001], RangeError, "^north: a value is beyond the bound 1000 of a slot$"),
        ],
    )
    def test_another_vector(self, meeting, values, error, reason):
        """Nothing was sent, and the right vector is taken after."""
        role = meeting.contributor("north")
        with pytest.raises(error, match=reason):
            role.contribute(values)
        assert role.state is State.READY
        assert meeting.read(role.contribute(meeting.values["north"]))

    def test_a_pool_that_breaks(self, meeting):
        from concurrent.futures import BrokenExecutor

        from paillier.workers import Here

        role = meeting.contributor("north", executor=Here(BrokenExecutor("gone")))
        with pytest.raises(LocalProtocolError, match=r"^a worker process died while encrypting"):
            role.contribute(meeting.values["north"])
        assert role.state is State.READY


class TestAggregator:
    def refused(self, meeting, aggregator, data, error, reason, sender=None):
        """A refused message changes nothing: the rest comes in, and the total is exact."""
        there = list(aggregator._there)
        with pytest.raises(error, match=reason) as caught:
            aggregator.receive(data)
        if sender:
            assert caught.value.sender == sender
        assert aggregator._there == there
        assert aggregator.state is State.COLLECTING

    def completes(self, meeting, aggregator):
        for name in aggregator.missing:
            aggregator.receive(meeting.uploads([name])[name])
        total = meeting.holder().decrypt(aggregator.close())["registry"]
        assert meeting.receiver().receive(total).tolist() == meeting.total()

    def test_of_another_session_round_layout_or_party(self, meeting):
        aggregator = meeting.aggregator()
        other = meeting.agree()
        later = meeting.session.next(meeting.layout)
        layout = msgspec.structs.replace(meeting.session, layout=Layout(30, 999))
        labels = msgspec.structs.replace(
            meeting.session, layout=Layout(30, 1000, tuple(map(str, range(30))))
        )
        terms = msgspec.structs.replace(meeting.session, terms={"minimum": 3, "blind": 0})
        for session, reason in (
            (other, "the message belongs to another session"),
            (later, "the message is of round 1 and this is round 0"),
            (layout, "the message was made for another layout or other parties"),
            (labels, "the message was made for another layout or other parties"),
            (terms, "the message was made for another layout or other parties"),
        ):
            data = meeting.contributor("south", session).contribute([0] * 30)
            reason = f"^south: {reason}$"
            self.refused(meeting, aggregator, data, RemoteProtocolError, reason, "south")
        self.completes(meeting, aggregator)

    def test_twice(self, meeting):
        aggregator = meeting.aggregator()
        data = meeting.uploads(["south"])["south"]
        aggregator.receive(data)
        reason = "^south: this message was received before; a duplicate or a replay$"
        for again in (data, meeting.uploads(["south"])["south"]):
            self.refused(meeting, aggregator, again, RemoteProtocolError, reason, "south")
        self.completes(meeting, aggregator)

    def test_of_who_is_no_contributor(self, meeting):
        aggregator = meeting.aggregator()
        for sender in (HOLDER, "registry"):
            data = meeting.forge(meeting.encrypted([0] * 30), sender)
            reason = f"^{sender}: sent message kind 32, which is not its to send here$"
            self.refused(meeting, aggregator, data, RemoteProtocolError, reason, sender)
        # Nobody that the session knows.
        stranger = Meeting(meeting.private, (*NAMES[:3], "stranger"))
        session = msgspec.structs.replace(stranger.session, id=meeting.session.id)
        data = stranger.contributor("stranger", session).contribute([0] * 30)
        reason = "^stranger: the message was made for another layout or other parties$"
        self.refused(meeting, aggregator, data, RemoteProtocolError, reason, "stranger")
        self.completes(meeting, aggregator)

    def test_another_kind_of_message(self, meeting):
        aggregator = meeting.aggregator()
        for message in (EncryptedTotal([0, 1], b""), DecryptedTotal([0, 1], b"")):
            data = meeting.say(message, "south", ADDER)
            reason = f"^south: sent message kind {message.KIND}, which is not its to send here$"
            self.refused(meeting, aggregator, data, RemoteProtocolError, reason, "south")
        self.completes(meeting, aggregator)

    def test_a_message_for_somebody_else(self, meeting):
        aggregator = meeting.aggregator()
        upload = meeting.read(meeting.uploads(["south"])["south"])
        data = meeting.say(upload, "south", HOLDER)
        reason = "^south: the message is for 'holder', not for 'adder'$"
        self.refused(meeting, aggregator, data, RemoteProtocolError, reason, "south")
        self.completes(meeting, aggregator)

    def test_signatures(self, meeting):
        aggregator = meeting.aggregator()
        ciphertexts = meeting.encrypted([0] * 30)
        good = meeting.session.agreement
        digest = hashlib.sha256(meeting.join(ciphertexts)).digest()
        reason = "^south: the signature for 'paillier upload' is not valid$"
        for forged in (
            meeting.forge(ciphertexts, signer="east"),
            meeting.forge(ciphertexts, signs=(bytes(32), "south", digest)),
            meeting.forge(ciphertexts, signs=(good, "east", digest)),
            meeting.forge(ciphertexts, signs=(good, "south", bytes(32))),
            meeting.say(Upload(meeting.join(ciphertexts), b""), "south", ADDER),
            meeting.say(Upload(meeting.join(ciphertexts), bytes(64)), "south", ADDER),
        ):
            self.refused(meeting, aggregator, forged, AuthenticationError, reason)
        # East's upload with east's signature, sent by south.
        east = meeting.read(meeting.uploads(["east"])["east"])
        data = meeting.say(east, "south", ADDER)
        self.refused(meeting, aggregator, data, AuthenticationError, reason)
        aggregator.receive(meeting.forge(ciphertexts))
        assert aggregator.missing == ["north", "east", "west"]

    @each_case("case", ["zero", "n", "p", "n^2", "above"])
    @each_case("position", [0, 1])
    def test_what_is_no_ciphertext(self, private, case, position):
        meeting = Meeting(private, length=40)
        p, q = textbook.factors(private)
        n = p * q
        bad = {"zero": 0, "n": n, "p": 3 * p, "n^2": n * n, "above": 2**1024 - 1}[case]
        ciphertexts = meeting.encrypted([0] * 40)
        assert len(ciphertexts) == 2
        ciphertexts[position] = bad
        aggregator = meeting.aggregator()
        reason = (
            rf"^south: ciphertexts: number {position + 1} (is not in \[1, n\^2\)|shares a factor)"
        )
        data = meeting.forge(ciphertexts)
        self.refused(meeting, aggregator, data, RemoteProtocolError, reason, "south")
        self.completes(meeting, aggregator)

    @each_case("size", [0, 1, 127, 129, 256])
    def test_another_length(self, meeting, size):
        aggregator = meeting.aggregator()
        reason = f"^south: 1 ciphertexts take 128 bytes, not {size}$"
        data = meeting.forge(b"\x01" * size)
        self.refused(meeting, aggregator, data, RemoteProtocolError, reason, "south")
        self.completes(meeting, aggregator)

    def test_bytes_that_were_changed(self, meeting):
        aggregator = meeting.aggregator()
        data = bytes(meeting.uploads(["south"])["south"])
        for at in range(0, len(data), 7):
            error = (DecodeError, RemoteProtocolError, AuthenticationError)
            self.refused(meeting, aggregator, flipped(data, at), error, ".")
        for size in (0, 10, len(data) - 1):
            self.refused(meeting, aggregator, data[:size], DecodeError, ".")
        self.refused(meeting, aggregator, data + b"\0", DecodeError, ".")
        aggregator.receive(data)
        self.completes(meeting, aggregator)

    def test_too_few(self, private, few, meeting):
        for one, least in ((few, 2), (meeting, 4)):
            aggregator = one.aggregator()
            for count, name in enumerate(NAMES[:least]):
                missing = ", ".join(NAMES[count:])
                reason = rf"^uploads of {missing} are missing \({count} of at least {least}\)$"
                with pytest.raises(ThresholdError, match=reason) as caught:
                    aggregator.close()
                assert (caught.value.needed, caught.value.got) == (least, count)
                assert aggregator.state is State.COLLECTING
                assert aggregator.missing == list(NAMES[count:])
                aggregator.receive(one.uploads([name])[name])
            assert one.read(aggregator.close()).contributors == list(range(least))


class TestKeyHolder:
    def refused(self, meeting, message, error, reason, sender=ADDER):
        holder = meeting.holder()
        data = message if isinstance(message, bytes) else meeting.say(message, sender, HOLDER)
        with pytest.raises(error, match=reason) as caught:
            holder.decrypt(data)
        if error is RemoteProtocolError:
            assert caught.value.sender == sender
        return caught.value

    def blob(self, meeting, values=None):
        return meeting.join(meeting.encrypted(values or [0] * 30))

    @each_case(
        "listed",
        [
            [1, 0, 2, 3],
            [0, 0, 1, 2],
            [0, 1, 2, 2],
            [-1, 0, 1, 2],
            [0, 1, 2, 4],
            [0, 1, 2, 3, 4],
            [3, 2, 1, 0],
            [0, 1, 2, 2**63],
        ],
    )
    def test_a_malformed_list(self, meeting, few, listed):
        for one in (meeting, few):
            message = EncryptedTotal(listed, self.blob(one))
            reason = "^adder: its list of contributors is malformed$"
            self.refused(one, message, RemoteProtocolError, reason)

    @each_case("listed", [[], [2], [0, 1, 2], [1, 3]])
    def test_a_list_that_is_too_short(self, meeting, few, listed):
        for one, least in ((meeting, 4), (few, 2)):
            if len(listed) < least:
                reason = rf"^too few contributors to hide among \({len(listed)} of at least {least}"
                error = self.refused(
                    one, EncryptedTotal(listed, self.blob(one)), ThresholdError, reason
                )
                assert (error.needed, error.got) == (least, len(listed))

    @each_case("size", [0, 127, 129, 256])
    def test_another_length(self, meeting, size):
        message = EncryptedTotal([0, 1, 2, 3], b"\x01" * size)
        reason = f"^adder: 1 ciphertexts take 128 bytes, not {size}$"
        self.refused(meeting, message, RemoteProtocolError, reason)

    @each_case("case", ["zero", "n", "p", "n^2"])
    def test_what_is_no_ciphertext(self, meeting, case):
        p, q = textbook.factors(meeting.private)
        n = p * q
        bad = {"zero": 0, "n": n, "p": 3 * p, "n^2": n * n}[case]
        message = EncryptedTotal([0, 1, 2, 3], bad.to_bytes(128))
        reason = r"^adder: ciphertexts: number 1 (is not in \[1, n\^2\)|shares a factor)"
        self.refused(meeting, message, RemoteProtocolError, reason)

    def test_who_may_send_it(self, meeting):
        message = EncryptedTotal([0, 1, 2, 3], self.blob(meeting))
        for sender in ("north", "registry", HOLDER):
            reason = f"^{sender}: sent message kind 33, which is not its to send here$"
            self.refused(meeting, message, RemoteProtocolError, reason, sender)
        upload = meeting.read(meeting.uploads(["north"])["north"])
        reason = "^adder: sent message kind 32, which is not its to send here$"
        self.refused(meeting, upload, RemoteProtocolError, reason)

    def test_of_another_session(self, meeting):
        other = Meeting(meeting.private, seed="another")
        data = bytes(other.aggregate())
        reason = "^adder: the message belongs to another session$"
        self.refused(meeting, data, RemoteProtocolError, reason)
        later = meeting.session.next(meeting.layout)
        data = bytes(
            meeting.say(EncryptedTotal([0, 1, 2, 3], self.blob(meeting)), ADDER, HOLDER, later)
        )
        self.refused(meeting, data, RemoteProtocolError, "^adder: the message is of round 1")

    def test_a_total_that_the_bounds_cannot_give(self, few):
        """Four contributors' room, and a list of fewer: the list counts."""
        for count in (2, 3, 4):
            listed, largest = list(range(count)), 1000 * count
            for value, fine in (
                (largest, True),
                (-largest, True),
                (largest + 1, False),
                (-largest - 1, False),
            ):
                values = [0] * 29 + [value]
                plan = Packing.plan(few.public, 1000, 4)
                (plaintext,) = textbook.pack(values, plan.slot, plan.slots)
                c = textbook.encrypt(int(few.public.n), plaintext, 5)
                message = EncryptedTotal(listed, c.to_bytes(128))
                if fine:
                    data = few.holder().decrypt(few.say(message, ADDER, HOLDER))
                    assert few.receiver().receive(data["registry"]).tolist() == values
                else:
                    reason = "^the total is beyond what the agreed bounds allow: a party did not"
                    self.refused(few, message, RangeError, reason)

    def test_a_plaintext_that_is_no_sum(self, meeting):
        n = int(meeting.public.n)
        c = textbook.encrypt(n, n // 2, 5)
        message = EncryptedTotal([0, 1, 2, 3], c.to_bytes(128))
        self.refused(
            meeting, message, RangeError, "^(a plaintext does not fit its|the total is bey)"
        )

    def test_it_opens_one_aggregate_and_no_more(self, meeting):
        """Whether a total is in range is an answer too. A lying aggregator that adds a guess to
        one contributor's vector, scaled so that a wrong guess is out of range, could go on until
        it guessed right."""
        holder = meeting.holder()
        n = int(meeting.public.n)
        beyond = textbook.encrypt(n, n // 2, 5).to_bytes(128)
        with pytest.raises(RangeError):
            holder.decrypt(meeting.say(EncryptedTotal([0, 1, 2, 3], beyond), ADDER, HOLDER))
        assert holder.state is State.ABORTED
        with pytest.raises(LocalProtocolError):
            holder.decrypt(meeting.aggregate())

    def test_a_message_that_cannot_be_opened_is_no_answer(self, meeting):
        """Who carries messages must not be able to end a session."""
        holder = meeting.holder()
        data = bytes(meeting.aggregate())
        for bad in (b"", data[:-1], flipped(data, len(data) - 1)):
            with pytest.raises((DecodeError, AuthenticationError)):
                holder.decrypt(bad)
            assert holder.state is State.READY
        assert set(holder.decrypt(data)) == {"north", "registry"}


class TestReceiver:
    def refused(self, meeting, message, error, reason, sender=HOLDER):
        receiver = meeting.receiver()
        with pytest.raises(error, match=reason):
            receiver.receive(meeting.say(message, sender, "registry"))
        assert receiver.state is State.COLLECTING
        total = meeting.holder().decrypt(meeting.aggregate())["registry"]
        assert receiver.receive(total).tolist() == meeting.total()

    def test_what_it_gets(self, meeting):
        total = meeting.read(meeting.holder().decrypt(meeting.aggregate())["registry"])
        assert total.contributors == [0, 1, 2, 3]
        assert np.frombuffer(total.values, "<i8").tolist() == meeting.total()

    @each_case("size", [0, 1, 232, 239, 241, 248])
    def test_another_length(self, meeting, size):
        message = DecryptedTotal([0, 1, 2, 3], bytes(size))
        reason = r"^holder: its total has another length than agreed$"
        self.refused(meeting, message, RemoteProtocolError, reason)

    def test_beyond_the_bounds(self, meeting):
        for value in (4001, -4001, 2**63 - 1, -(2**63)):
            values = np.array([0] * 29 + [value], "<i8").tobytes()
            reason = r"^the total is beyond what the agreed bounds allow"
            self.refused(meeting, DecryptedTotal([0, 1, 2, 3], values), RangeError, reason)

    def test_who_may_send_it(self, meeting):
        message = DecryptedTotal([0, 1, 2, 3], bytes(240))
        for sender in (ADDER, "north"):
            reason = f"^{sender}: sent message kind 34, which is not its to send here$"
            self.refused(meeting, message, RemoteProtocolError, reason, sender)
        reason = "^holder: sent message kind 33, which is not its to send here$"
        self.refused(meeting, EncryptedTotal([0, 1], b""), RemoteProtocolError, reason)

    @each_case("listed", [[], [0], [0, 1], [0, 0, 0, 0], [9, 8, 7, 6]])
    def test_fewer_contributors_than_agreed(self, meeting, listed):
        """The total of two of four is another result than that of all."""
        message = DecryptedTotal(listed, bytes(240))
        with pytest.raises((RemoteProtocolError, ThresholdError)):
            meeting.receiver().receive(meeting.say(message, HOLDER, "registry"))

    def test_of_another_session(self, meeting):
        other = meeting.agree()
        receiver = meeting.receiver()
        data = meeting.say(DecryptedTotal([0, 1, 2, 3], bytes(240)), HOLDER, "registry", other)
        with pytest.raises(RemoteProtocolError, match=r"^holder: the message belongs to another"):
            receiver.receive(data)


def masks(meeting, name, count):
    """A contributor's masks by the definition: pairwise, modulo n, cancelling in the sum."""
    n = int(meeting.public.n)
    me = meeting.names.index(name)
    total = [0] * count
    for other, peer in enumerate(meeting.names):
        if peer == name:
            continue
        secret = identity(name).shared(identity(peer).public)
        pair = (min(me, other), max(me, other))
        shared = textbook.pairwise(secret, meeting.session.agreement, *pair, n, count)
        sign = 1 if me < other else -1
        total = [t + sign * mask for t, mask in zip(total, shared, strict=True)]
    return [t % n for t in total]


class TestBlind:
    """What an aggregator and a key holder see together: every upload, decrypted."""

    @pytest.fixture
    def blind(self, private):
        return Meeting(private, length=40, blind=True)

    def test_an_upload_is_the_vector_plus_masks(self, blind):
        n = int(blind.public.n)
        plan = Packing.plan(blind.public, 1000, 4)
        sums = [0, 0]
        for name in NAMES:
            seen = blind.opened(blind.uploads([name])[name])
            packed = textbook.pack(blind.values[name], plan.slot, plan.slots)
            own = masks(blind, name, 2)
            assert seen == [(m + r) % n for m, r in zip(packed, own, strict=True)]
            assert len(set(own)) == 2
            sums = [(s + r) % n for s, r in zip(sums, own, strict=True)]
        assert sums == [0, 0]

    def test_masks_of_another_session_or_round(self, blind):
        first = masks(blind, "north", 2)
        for session in (blind.agree(), blind.session.next(blind.layout)):
            other = Meeting(blind.private, length=40, blind=True)
            other.session = session
            assert not set(masks(other, "north", 2)) & set(first)
            data = other.contributor("north").contribute([0] * 40)
            header_session = session
            opened = other.read(data, header_session).ciphertexts
            c = int.from_bytes(opened[:128])
            assert blind.private.raw_decrypt(c) == masks(other, "north", 2)[0]

    def test_one_missing_is_refused(self, blind):
        aggregator = blind.aggregator()
        for data in blind.uploads(NAMES[:3]).values():
            aggregator.receive(data)
        reason = r"^uploads of west are missing \(3 of at least 4\)$"
        with pytest.raises(ThresholdError, match=reason):
            aggregator.close()

    @each_case("left_out", NAMES)
    def test_and_gives_nothing_to_who_lies_about_it(self, blind, left_out):
        """The sum of three of four is uniform; the key holder refuses what it finds."""
        n2 = int(blind.public.n2)
        there = [n for n in NAMES if n != left_out]
        columns = zip(*(blind.ciphertexts(d) for d in blind.uploads(there).values()), strict=True)
        forged = blind.join([math.prod(column) % n2 for column in columns])
        message = blind.say(EncryptedTotal([0, 1, 2, 3], forged), ADDER, HOLDER)
        with pytest.raises(RangeError):
            blind.holder().decrypt(message)

    def test_what_two_who_collude_with_the_servers_leave(self, blind):
        """With three contributors' masks known the fourth's is known too: nothing hides one."""
        n = int(blind.public.n)
        known = [
            sum(column) % n for column in zip(*(masks(blind, x, 2) for x in NAMES[:3]), strict=True)
        ]
        seen = blind.opened(blind.uploads(["west"])["west"])
        plan = Packing.plan(blind.public, 1000, 4)
        want = textbook.pack(blind.values["west"], plan.slot, plan.slots)
        assert [(s + k) % n for s, k in zip(seen, known, strict=True)] == [m % n for m in want]

    @each_case("values", [[0], [1000], [-1000]])
    def test_a_decrypted_upload_is_uniform_whatever_is_in_it(self, replay, values):
        """16 equal parts of [0, n), 600 sessions: chi-square with 15 degrees of freedom."""
        private = PrivateKey.generate(128, insecure_for_tests=True, entropy=replay("chi"))
        n = int(private.public.n)
        meeting = Meeting(private, NAMES[:2], length=1, blind=True, seed=f"chi {values}")
        seen = {"north": Counter(), "south": Counter()}
        for _ in range(300):
            meeting.session = meeting.agree()
            for name, counter in seen.items():
                data = meeting.contributor(name).contribute(values)
                counter[16 * meeting.opened(data)[0] // n] += 1
        for counter in seen.values():
            expected = 300 / 16
            chi = sum((counter[i] - expected) ** 2 / expected for i in range(16))
            assert chi < 44.3  # one in ten thousand

    def test_without_blinding_they_see_everything(self, meeting):
        """What blind=True is for."""
        plan = Packing.plan(meeting.public, 1000, 4)
        seen = meeting.opened(meeting.uploads(["east"])["east"])
        n = int(meeting.public.n)
        centred = [v - n if 2 * v > n else v for v in seen]
        assert textbook.unpack(centred, plan.slot, plan.slots, 30) == meeting.values["east"]

    def test_a_contributor_does_not_start_again_in_a_session(self, blind, tmp_path):
        """Masks come from keys and agreement alone: two uploads of one session would show their
        difference to an aggregator and key holder who collude."""
        for journal in (MemoryJournal(), FileJournal(tmp_path)):
            first = blind.contributor("north", journal=journal).contribute([5] + [0] * 39)
            for values in ([5] + [0] * 39, [12] + [0] * 39):
                again = blind.contributor("north", journal=journal)
                with pytest.raises(LocalProtocolError, match="was done before"):
                    again.contribute(values)
            # Another party may share the journal, and another session has other masks.
            blind.contributor("south", journal=journal).contribute([1] * 40)
            blind.contributor("north", blind.agree(), journal=journal).contribute([5] * 40)
            # Such is what it would show: without the mark the masks are the same.
            second = blind.contributor("north").contribute([12] + [0] * 39)
            n = int(blind.public.n)
            pairs = zip(blind.opened(first), blind.opened(second), strict=True)
            assert [(b - a) % n for a, b in pairs] == [7, 0]

    def test_one_contribution_of_two_threads(self, blind):
        """Two roles of one party begin at once, with one journal: one of them is refused."""
        journal, start = MemoryJournal(), threading.Barrier(2)

        def contribute(value):
            role = blind.contributor("north", journal=journal)
            start.wait()
            try:
                return role.contribute([value] * 40)
            except LocalProtocolError:
                return None

        with ThreadPoolExecutor(2) as pool:
            sent = list(pool.map(contribute, (1, 2)))
        assert sum(data is not None for data in sent) == 1

    def test_a_journal_is_needed(self, blind):
        with pytest.raises(ParameterError, match="give journal="):
            blind.contributor("north", journal=None)

    def test_a_vector_that_is_refused_uses_nothing_up(self, blind):
        journal = MemoryJournal()
        for bad, error in (([1001] * 40, RangeError), ([1] * 39, ParameterError)):
            with pytest.raises(error):
                blind.contributor("north", journal=journal).contribute(bad)
        blind.contributor("north", journal=journal).contribute([1] * 40)


def test_a_key_holder_decrypts_one_total_also_after_a_restart(few, tmp_path):
    first, second = few.aggregate(NAMES), few.aggregate(NAMES[1:])
    for journal in (MemoryJournal(), FileJournal(tmp_path)):
        few.holder(journal=journal).decrypt(first)
        for data in (first, second):
            with pytest.raises(LocalProtocolError, match="was done before"):
                few.holder(journal=journal).decrypt(data)


def test_a_key_holder_that_is_started_again_answers_no_second_guess(few):
    """Whether a total is in range tells of it, so a refusal uses the one decryption up, too.

    The attack: an aggregator adds its own number to a sum, sees whether the total is out of range,
    has the key holder started again and halves the room.
    """
    journal = MemoryJournal()
    for guess, error, reason in (
        (int(few.public.n) // 2, RangeError, "bounds allow"),
        (0, LocalProtocolError, "was done before"),
    ):
        total = few.encrypted([0] * 30)
        total[0] = total[0] * (1 + guess * few.public.n) % few.public.n2
        data = few.say(EncryptedTotal([0, 1, 2, 3], few.join(total)), ADDER, HOLDER)
        with pytest.raises(error, match=reason):
            few.holder(journal=journal).decrypt(data)


def test_a_key_holder_that_is_killed_at_work_does_not_work_again(few, monkeypatch):
    """The decryption is marked before the first number is opened, whatever happens then."""
    journal, data = MemoryJournal(), few.aggregate(NAMES)

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(vectors, "decrypt", kill)
        with pytest.raises(KeyboardInterrupt):
            few.holder(journal=journal).decrypt(data)
    with pytest.raises(LocalProtocolError, match="was done before"):
        few.holder(journal=journal).decrypt(data)


def test_receivers_and_servers_learn_no_more(meeting):
    """No message to the aggregator or the receivers depends on an input but through the total."""
    message = meeting.read(meeting.aggregate())
    assert message.__struct_fields__ == ("contributors", "ciphertexts")
    assert meeting.read(meeting.uploads(["north"])["north"]).__struct_fields__ == (
        *("ciphertexts", "signature"),
    )
    sizes = {
        len(meeting.contributor("north").contribute([value] * 30)) for value in (0, 1, -1000, 1000)
    }
    assert len(sizes) == 1


def test_the_name_of_the_protocol_is_the_keys(meeting, stranger):
    name = sum_session.protocol_name(meeting.public)
    assert name == f"paillier/sum/1 key {meeting.public.id.hex()}"
    assert sum_session.protocol_name(stranger.public) != name
    bare = PublicKey(meeting.public.n, insecure_for_tests=True)
    assert sum_session.protocol_name(bare) != name


def test_replayed_randomness_replays_everything(private):
    first, again = (Meeting(private, seed="replay") for _ in "ab")
    assert bytes(first.aggregate()) == bytes(again.aggregate())
    assert stream("x")(5) == stream("x")(5)
