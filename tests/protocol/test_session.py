"""What the parties agree on: what cannot be agreed, and what the agreement's digest covers."""

import copy
import operator
import pickle

import msgspec
import numpy as np
import pytest
from cases import each_case
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from sharing.cast import HOSPITALS, SERVERS, Cast, stream

from securecomp.core import field
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import ID_BYTES, Layout, Session
from securecomp.sharing import Contributor, Receiver, Server

ROLES = ("contributor", "server", "receiver")
OTHER = Identity.generate(stream("somebody else")).public


@pytest.fixture
def cast():
    return Cast()


def test_a_layout_is_what_was_given():
    layout = Layout(2, 10, ("deaths", "stays"))
    assert (layout.length, layout.bound, layout.labels) == (2, 10, ("deaths", "stays"))
    assert Layout(0, 0).labels == ()
    assert Layout(wire.MAX_ELEMENTS, 2**100).length == wire.MAX_ELEMENTS


@each_case("length", [-1, wire.MAX_ELEMENTS + 1])
def test_a_length_that_cannot_be(length):
    reason = f"a layout's length must be from 0 to {wire.MAX_ELEMENTS}, not {length}"
    with pytest.raises(ParameterError, match=reason):
        Layout(length, 1)


def test_a_negative_bound():
    with pytest.raises(ParameterError, match="a layout's bound must be at least 0, not -1"):
        Layout(1, -1)


@each_case("labels", [("a",), ("a", "b", "c")])
def test_labels_for_other_elements(labels):
    with pytest.raises(ParameterError, match=f"{len(labels)} labels for 2 elements"):
        Layout(2, 1, labels)


@each_case(
    "facts",
    [
        (1, np.int64(field.LIMIT)),
        (1, 10.5),
        (1, True),
        (np.int64(3), 1),
        (2.5, 1),
        (True, 1),
        ("1", 1),
    ],
)
def test_lengths_and_bounds_are_python_integers(facts):
    # Sixteen hospitals with np.int64(2^60 - 1) each: the product wraps to -16 and seems to fit.
    try:
        layout = Layout(*facts)
    except ParameterError:
        return
    assert type(layout.length) is int
    assert type(layout.bound) is int
    assert (layout.length, layout.bound) == facts


def test_a_new_session_holds_what_was_agreed(cast):
    drawn = []

    def entropy(size):
        drawn.append(size)
        return b"i" * size

    session = cast.agree(entropy=entropy, receivers=("south",))
    assert drawn == [ID_BYTES] == [16]
    assert session.id == b"i" * 16
    assert session.round == 0
    assert session.protocol == "sharing/sum/1"
    assert (session.contributors, session.servers) == (HOSPITALS, SERVERS)
    assert session.receivers == ("south",)
    assert session.keys == cast.keys
    assert session.layout is cast.layout
    assert session.limit == field.LIMIT
    assert cast.agree().id != cast.agree().id


def test_keys_of_others_are_left_out(cast):
    keys = cast.keys | {"stranger": OTHER}
    assert "stranger" not in cast.agree(keys=keys).keys


def test_the_lists_are_taken_as_they_are_now(cast):
    people, keys = list(HOSPITALS), dict(cast.keys)
    session = cast.agree(contributors=people, keys=keys)
    agreement = session.agreement
    people.append("one")
    keys["north"] = bytes(32)
    assert session.contributors == HOSPITALS
    assert session.agreement == agreement


def test_too_few_parties(cast):
    for contributors in ((), ("north",)):
        with pytest.raises(ThresholdError, match="a sum over one party is that part") as error:
            cast.agree(contributors=contributors)
        assert (error.value.needed, error.value.got) == (2, len(contributors))
    with pytest.raises(ThresholdError, match="one server alone would see every value") as error:
        cast.agree(servers=("one",))
    assert (error.value.needed, error.value.got) == (2, 1)
    with pytest.raises(ThresholdError, match="one server alone would see every value") as error:
        cast.agree(servers=("one", "two"), minimum_servers=3)
    assert (error.value.needed, error.value.got) == (3, 2)
    with pytest.raises(ThresholdError, match="nobody receives the result") as error:
        cast.agree(receivers=())
    assert (error.value.needed, error.value.got) == (1, 0)
    assert cast.agree(servers=("one",), minimum_servers=1).servers == ("one",)


@each_case("role", ROLES)
def test_a_party_named_twice(cast, role):
    names = getattr(cast, role + "s")
    twice = (*names, names[0])
    with pytest.raises(ParameterError, match=f"'{names[0]}' is named twice as {role}; names are"):
        cast.agree(**{role + "s": twice})


@each_case("role", ROLES)
def test_a_party_without_a_key(cast, role):
    names = (*getattr(cast, role + "s"), "stranger")
    with pytest.raises(ParameterError, match=f"{role} 'stranger' has no public key"):
        cast.agree(**{role + "s": names})


@each_case("role", ROLES)
@each_case(
    "name, reason",
    [
        ("", "a party's name is empty"),
        ("x" * 101, "must have 1 to 100 bytes"),
        ("é" * 51, "must have 1 to 100 bytes"),
        (" north", "must be printable, without spaces around it"),
        ("north ", "must be printable, without spaces around it"),
        ("no\nrth", "must be printable"),
        ("no\x00rth", "must be printable"),
        ("\x1b[31mnorth", "must be printable"),
        ("no\u200brth", "must be printable"),
        ("\u202enorth", "must be printable"),
        ("e\u0301st", "is not in Unicode's composed form"),
    ],
)
def test_names_that_cannot_stand_in_a_table(cast, role, name, reason):
    names = (*getattr(cast, role + "s"), name)
    with pytest.raises(ParameterError, match=reason):
        cast.agree(**{role + "s": names}, keys=cast.keys | {name: OTHER})


@each_case("name", ["\ud800", 7, None, b"north"])
def test_names_that_are_not_text(cast, name):
    with pytest.raises(ParameterError, match="name"):
        cast.agree(contributors=(*HOSPITALS, name), keys=cast.keys | {name: OTHER})


@each_case("name", ["Hôpital St. Jean", "病院 3", "x" * 100, "é" * 50])
def test_names_that_can(cast, name):
    session = cast.agree(contributors=(*HOSPITALS, name), keys=cast.keys | {name: OTHER})
    assert session.contributors[-1] == name


@each_case("names", [("one", "two"), ("north", "one"), ("north", "south")])
def test_two_names_with_one_key(cast, names):
    keys = cast.keys | {names[1]: cast.keys[names[0]]}
    with pytest.raises((ParameterError, KeyMismatchError), match=names[1]):
        cast.agree(keys=keys)


@each_case("half", [slice(0, 32), slice(32, 64)])
def test_two_names_with_half_a_key(cast, half):
    mixed = bytearray(cast.keys["two"])
    mixed[half] = cast.keys["one"][half]
    with pytest.raises((ParameterError, KeyMismatchError), match="two"):
        cast.agree(keys=cast.keys | {"two": bytes(mixed)})


@each_case("key", [b"", OTHER[:-1], OTHER + b"x", bytes(64), "x" * 64, None])
def test_a_key_that_is_none_is_named(cast, key):
    with pytest.raises((ParameterError, KeyMismatchError), match="two"):
        cast.agree(keys=cast.keys | {"two": key})


def test_a_sum_that_could_pass_the_limit(cast):
    bound = field.LIMIT // 3
    assert cast.agree(layout=Layout(1, bound)).layout.bound == bound
    with pytest.raises(RangeError, match=f"3 contributors with values up to {bound + 1} could"):
        cast.agree(layout=Layout(1, bound + 1))
    assert cast.agree(layout=Layout(1, 0), limit=0).limit == 0
    with pytest.raises(RangeError, match="the largest exact total 2; use a smaller bound"):
        cast.agree(layout=Layout(1, 1), limit=2)
    assert cast.agree(layout=Layout(1, 1), limit=3).limit == 3


UNSOUND = [
    ("servers", (), ThresholdError),
    ("contributors", ("north",), ThresholdError),
    ("receivers", (), ThresholdError),
    ("receivers", ("stranger",), ParameterError),
    ("contributors", ("north", "north"), ParameterError),
    ("contributors", ["north", "south"], ParameterError),
    ("servers", "one", ParameterError),
    ("limit", 10, RangeError),
    ("limit", float("nan"), ParameterError),
    ("limit", float("inf"), ParameterError),
    ("limit", np.int64(field.LIMIT), ParameterError),
    ("limit", True, ParameterError),
    ("limit", "ten", ParameterError),
    ("limit", None, ParameterError),
    ("id", b"short", ParameterError),
    ("id", "x" * 16, ParameterError),
    ("round", -1, ParameterError),
    ("round", 0.0, ParameterError),
    ("round", True, ParameterError),
    ("round", 1 << 32, ParameterError),
    ("protocol", None, ParameterError),
    ("layout", (4, 1000), ParameterError),
    ("keys", None, ParameterError),
    ("keys", {}, ParameterError),
    ("terms", {"minimum": float("nan")}, ParameterError),
    ("terms", {"threshold": 3.5}, ParameterError),
    ("terms", {"max_weight": True}, ParameterError),
    ("terms", {"minimum": "ten"}, ParameterError),
    ("terms", {"minimum": None}, ParameterError),
    ("terms", {"minimum": 1 << 63}, ParameterError),
    ("terms", {7: 1}, ParameterError),
    ("terms", [("minimum", 3)], ParameterError),
]


def unchecked(session, field, value):
    """A session that no constructor has seen, as some versions of msgspec's `replace` give it."""
    other = copy.copy(session)
    msgspec.structs.force_setattr(other, field, value)
    return other


@each_case("field, value, error", UNSOUND)
def test_a_constructor_and_a_role_refuse_what_cannot_be_agreed_on(cast, field, value, error):
    facts = {name: getattr(cast.session, name) for name in Session.__struct_fields__}
    with pytest.raises(error):
        Session(**facts | {field: value})
    other = unchecked(cast.session, field, value)
    with pytest.raises(error):
        other.checked()
    for role, name in ((Contributor, "north"), (Server, "one"), (Receiver, "north")):
        with pytest.raises(error):
            cast.role(role, name, other)
    assert cast.session.checked() is cast.session


def test_a_role_keeps_a_session_that_cannot_change_any_more(cast):
    keys = dict(cast.keys)
    taken = unchecked(cast.session, "keys", keys).checked()
    keys["north"] = OTHER
    assert taken == cast.session
    assert taken.agreement == cast.session.agreement


def test_a_layout_that_no_constructor_has_seen_is_refused_with_its_session(cast):
    layout = copy.copy(cast.layout)
    msgspec.structs.force_setattr(layout, "bound", float("nan"))
    with pytest.raises(ParameterError, match="a layout's bound is a plain integer, not nan"):
        cast.agree(layout=layout)


# All points of small order in their canonical encoding: orders 4, 1, 2, and twice 8.
SMALL = (
    bytes(32),
    (1).to_bytes(32, "little"),
    (2**255 - 20).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
)


def test_an_attacker_cannot_bring_a_key_whose_shared_secrets_are_zero(cast):
    """With a point of small order, whoever carries the messages reads and writes them.

    The attack: every shared secret with that key is zero, so the key of a sealed message follows
    from what is public.
    """
    mine = X25519PrivateKey.from_private_bytes(b"k" * 32)
    for point in SMALL:
        with pytest.raises(ValueError, match="computing shared key"):  # the library sees the zero
            mine.exchange(X25519PublicKey.from_public_bytes(point))
        key = point + OTHER[32:]
        keys = cast.keys | {"one": key}
        with pytest.raises(KeyMismatchError, match=r"^one: its public key is not a valid one$"):
            cast.agree(keys=keys)
        with pytest.raises(KeyMismatchError, match=r"^one: its public key is not a valid one$"):
            cast.contributor("north", unchecked(cast.session, "keys", keys))
        with pytest.raises(KeyMismatchError, match="not a valid one"):
            cast.identities["north"].shared(key)


def test_an_attacker_cannot_bring_one_key_under_two_names(cast):
    """X25519 ignores the top bit and reduces modulo p: other bytes are the same key."""
    key = cast.keys["one"]
    twin = key[:31] + bytes([key[31] | 0x80]) + OTHER[32:]
    mine = X25519PrivateKey.from_private_bytes(b"k" * 32)
    one, two = (mine.exchange(X25519PublicKey.from_public_bytes(k[:32])) for k in (key, twin))
    assert one == two
    large = (2**255 - 19 + 9).to_bytes(32, "little")  # the base point, written with p added
    small = (9).to_bytes(32, "little")
    one, two = (mine.exchange(X25519PublicKey.from_public_bytes(k)) for k in (large, small))
    assert one == two
    for other in (twin, large + OTHER[32:]):
        with pytest.raises(KeyMismatchError, match=r"^two: its public key is not a valid one$"):
            cast.agree(keys=cast.keys | {"two": other})


def test_a_session_is_written_and_read(cast):
    for session in (
        cast.session,
        cast.agree(terms={"minimum": 2, "active": -1}).next(Layout(2, 10, ("deaths", "é"))),
        cast.agree(layout=Layout(0, 2**200), limit=2**210),
    ):
        data = session.to_bytes()
        taken = Session.from_bytes(data)
        assert taken == session
        assert taken.agreement == session.agreement
        assert taken.checked() is taken
        assert Session.from_bytes(memoryview(bytearray(data))) == session
        assert taken.to_bytes() == data


def test_bytes_that_are_no_session_are_refused_with_one_error(cast):
    data = cast.agree(terms={"minimum": 2}).to_bytes()
    magic = data.index(b"\n") + 1
    facts = msgspec.msgpack.decode(data[magic:])
    written = [data[:magic] + msgspec.msgpack.encode(facts[:-1])]
    for place, value in (
        (0, 7),
        (1, b"short"),
        (2, 1 << 40),
        (3, ["north"]),
        (6, []),
        (6, facts[6][::-1]),
        (6, [*facts[6], facts[6][0]]),
        (6, [[name, bytes(64)] for name, _ in facts[6]]),
        (7, -1),
        (8, "-1"),
        (8, "1e3"),
        (8, "01000"),
        (8, " 1000"),
        (8, "1" * 5000),
        (10, "nan"),
        (10, "10"),
        (11, [["minimum", 2.0]]),
        (11, [["minimum", 2], ["minimum", 2]]),
        (11, [["minimum", True]]),
    ):
        changed = [*facts]
        changed[place] = value
        written.append(data[:magic] + msgspec.msgpack.encode(changed))
    written += [data[:end] for end in range(len(data))]
    written += [data + b"x", b"securecomp session 2" + data[magic - 1 :], data[magic:]]
    for wrong in written:
        with pytest.raises(DecodeError):
            Session.from_bytes(wrong)


def test_one_changed_bit_is_another_session_or_none(cast):
    data = cast.session.to_bytes()
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1
        try:
            assert Session.from_bytes(wrong).agreement != cast.session.agreement
        except DecodeError:
            continue


def test_the_next_round(cast):
    layout = Layout(9, 5)
    later = cast.session.next(layout)
    assert (later.round, later.layout) == (1, layout)
    assert later.next(layout).round == 2
    assert later.id == cast.session.id
    assert later.keys == cast.session.keys
    assert (later.contributors, later.servers) == (HOSPITALS, SERVERS)
    assert later.agreement != cast.session.agreement
    assert cast.session.round == 0


def test_the_next_round_must_fit_too(cast):
    bound = field.LIMIT // 3
    assert cast.session.next(Layout(1, bound)).layout.bound == bound
    with pytest.raises(
        RangeError, match=f"could pass the largest exact total {field.LIMIT}; use a smaller"
    ):
        cast.session.next(Layout(1, bound + 1))


def test_the_agreement_is_a_digest_of_32_bytes_and_depends_on_nothing_else(cast):
    session = cast.session
    same = Session(**{name: getattr(session, name) for name in session.__struct_fields__})
    facts = {name: getattr(session, name) for name in session.__struct_fields__}
    backwards = Session(**facts | {"keys": dict(reversed(session.keys.items()))})
    assert len(session.agreement) == 32
    terms = {"threshold": 2, "dropouts": 3}
    one, two = (
        cast.agree(terms=dict(order), entropy=bytes)
        for order in (terms.items(), reversed(terms.items()))
    )
    assert one.terms == terms
    assert one.agreement == two.agreement
    assert same.agreement == backwards.agreement == session.agreement


def test_what_was_agreed_does_not_change(cast):
    keys, terms = dict(cast.keys), {"minimum": 2}
    session = cast.agree(keys=keys, terms=terms)
    made = msgspec.structs.replace(session, keys=keys, terms=terms).checked()
    agreement = session.agreement
    keys["north"], terms["minimum"] = OTHER, 1
    for same in (session, made, session.next(session.layout)):
        for facts, name in ((same.keys, "north"), (same.terms, "minimum")):
            for change in (
                lambda d, k: operator.setitem(d, k, d[k]),
                operator.delitem,
                lambda d, k: operator.ior(d, {k: d[k]}),
                lambda d, _: d.clear(),
                lambda d, k: d.pop(k),
                lambda d, _: d.popitem(),
                lambda d, k: d.setdefault(k + "!", d[k]),
                lambda d, k: d.update({k: d[k]}),
            ):
                with pytest.raises(TypeError, match="what was agreed on does not change"):
                    change(facts, name)
        assert same.keys["north"] == cast.keys["north"]
        assert same.terms == {"minimum": 2}
    assert session.agreement == made.agreement == agreement


@each_case(
    "take",
    [
        copy.copy,
        copy.deepcopy,
        *(
            lambda x, p=p: pickle.loads(pickle.dumps(x, p))  # noqa: S301 - our own
            for p in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
        lambda x: msgspec.msgpack.decode(msgspec.msgpack.encode(x), type=Session),
    ],
)
def test_a_copy_of_a_session_is_equal_and_does_not_change_either(cast, take):
    session = cast.agree(terms={"minimum": 2})
    taken = take(session)
    assert taken == session
    assert taken.agreement == session.agreement
    assert type(taken.keys) is type(taken.terms) is type(session.keys)
    assert taken != msgspec.structs.replace(session, terms={"minimum": 3})


def changed_sessions(cast):
    session = cast.session
    other = Identity.generate(cast.entropy).public
    swapped = session.keys | {"one": session.keys["two"], "two": session.keys["one"]}
    replace = msgspec.structs.replace
    yield "protocol", replace(session, protocol="sharing/sum/2")
    yield "id", replace(session, id=bytes(16))
    yield "round", replace(session, round=1)
    yield "a contributor less", replace(session, contributors=HOSPITALS[:2])
    yield "contributors in another order", replace(session, contributors=HOSPITALS[::-1])
    yield "servers in another order", replace(session, servers=SERVERS[::-1])
    yield "a server less", replace(session, servers=SERVERS[:2])
    yield "receivers", replace(session, receivers=("north",))
    for name in session.keys:
        yield f"the key of {name}", replace(session, keys=session.keys | {name: other})
    yield "two keys swapped", replace(session, keys=swapped)
    yield "length", replace(session, layout=Layout(5, 1000))
    yield "bound", replace(session, layout=Layout(4, 1001))
    yield "labels", replace(session, layout=Layout(4, 1000, ("a", "b", "c", "d")))
    yield "labels in another order", replace(session, layout=Layout(4, 1000, ("b", "a", "c", "d")))
    yield "limit", replace(session, limit=field.LIMIT - 1)
    yield "a term", replace(session, terms={"threshold": 2})
    yield "another term", replace(session, terms={"dropouts": 2})
    yield "a term's value", replace(session, terms={"threshold": 3})
    yield "two terms", replace(session, terms={"threshold": 2, "dropouts": 2})


def test_every_fact_is_in_the_agreement(cast):
    agreements = {"": cast.session.agreement}
    agreements |= {what: session.agreement for what, session in changed_sessions(cast)}
    assert len(agreements) == 25
    assert len(set(agreements.values())) == 25


def test_no_field_of_a_session_is_forgotten():
    # A new field must go into the digest; then this list and the test above grow with it.
    assert Session.__struct_fields__ == (
        "protocol",
        "id",
        "round",
        "contributors",
        "servers",
        "receivers",
        "keys",
        "layout",
        "limit",
        "terms",
    )
    assert Layout.__struct_fields__ == ("length", "bound", "labels")


def test_a_header_of_the_session(cast):
    session = cast.session
    header = session.header(3, "north", "one", session.agreement)
    assert header == wire.Header(3, session.id, 0, session.agreement, "north", "one")
    later = session.next(cast.layout)
    assert later.header(3, "north", "one", bytes(32)).round == 1


REFUSED = {
    "session": ({"session": bytes(16)}, "the message belongs to another session"),
    "round": ({"round": 7}, "the message is of round 7 and this is round 0"),
    "agreement": ({"agreement": bytes(32)}, "was made for another layout or other parties"),
    "recipient": ({"recipient": "two"}, "the message is for 'two', not for 'one'"),
    "sender": ({"sender": "stranger"}, "takes no part in this session"),
}


@each_case("what", REFUSED)
def test_a_header_of_something_else(cast, what):
    session = cast.session
    facts = {
        "kind": 1,
        "session": session.id,
        "round": 0,
        "agreement": session.agreement,
        "sender": "north",
        "recipient": "one",
    }
    session.check(wire.Header(**facts), session.agreement, "one")
    change, reason = REFUSED[what]
    with pytest.raises(RemoteProtocolError, match=reason) as error:
        session.check(wire.Header(**(facts | change)), session.agreement, "one")
    assert error.value.sender == (facts | change)["sender"]
    assert str(error.value).startswith(f"{error.value.sender}: ")


def test_a_session_shows_public_things_only(cast):
    text = repr(cast.session)
    for identity in cast.identities.values():
        secret = identity._key.private_bytes_raw()
        assert secret.hex() not in text
        assert repr(secret)[2:-1] not in text
