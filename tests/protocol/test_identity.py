"""Long-term keys and sealed messages: only the two parties named can make or open one."""

import pickle

import numpy as np
import pytest
from cases import each_case
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sharing import reference
from sharing.cast import HOSPITALS, Cast, flipped, stream

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    RemoteProtocolError,
)
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.identity import (
    PUBLIC_BYTES,
    SECRET_BYTES,
    SIGNATURE_BYTES,
    Identity,
    exchange,
    open_sealed,
    seal,
    verify,
)

KIND = 7
BODY = bytes(range(40))

# RFC 7748, section 6.1.
ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
ALICE_PUBLIC = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
BOB_PUBLIC = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
SHARED = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"

# Points of small order, whose shared secret is zero for everybody.
SMALL_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


@pytest.fixture
def cast():
    return Cast()


def opened(cast, data, recipient="south", session=None):
    session = session or cast.session
    header, body = open_sealed(
        cast.identities[recipient], session, session.agreement, data, recipient
    )
    return header, bytes(body)


def message(cast, body=BODY, sender="north", recipient="south", kind=KIND, session=None):
    return bytes(cast.seal(kind, sender, recipient, body, session))


def test_secrets_are_those_of_rfc_7748():
    alice, bob = (X25519PrivateKey.from_private_bytes(secret) for secret in (ALICE, BOB))
    assert exchange(alice, bytes.fromhex(BOB_PUBLIC)).hex() == SHARED
    assert exchange(bob, bytes.fromhex(ALICE_PUBLIC)).hex() == SHARED


@each_case("peer", SMALL_ORDER)
def test_points_of_small_order_are_refused(peer):
    key, point = X25519PrivateKey.from_private_bytes(ALICE), bytes.fromhex(peer)
    with pytest.raises(KeyMismatchError, match="not a valid"):
        exchange(key, point)
    alice = Identity(ALICE)
    with pytest.raises(KeyMismatchError, match="not a valid"):
        alice.shared(point + alice.public[32:])


@each_case("size", [0, 31, 33, 64])
def test_points_of_another_length_are_refused(size):
    with pytest.raises(KeyMismatchError, match="not a valid"):
        exchange(X25519PrivateKey.from_private_bytes(ALICE), b"\x09" * size)


@each_case("size", [0, 32, 63, 65])
def test_public_keys_of_another_length_are_refused(size):
    with pytest.raises(KeyMismatchError, match=f"a public key has 64 bytes, not {size}"):
        Identity(ALICE).shared(b"\x09" * size)


def test_a_secret_stands_for_two_keys():
    for secret in (ALICE, BOB, bytes(32)):
        seals, public = reference.pair(secret)
        identity = Identity(secret)
        assert identity.public == public
        peer = Identity(ALICE[::-1])
        point = peer.public[:32]
        assert identity.shared(peer.public) == exchange(seals, point)
    assert (SECRET_BYTES, PUBLIC_BYTES, SIGNATURE_BYTES) == (32, 64, 64)


def test_a_shared_secret_is_the_same_on_both_sides():
    alice, bob, carol = (Identity.generate(stream(i)) for i in range(3))
    secrets = {
        frozenset({one.shared(other.public), other.shared(one.public), one.shared(other.public)})
        for one, other in ((alice, bob), (alice, carol), (bob, carol))
    }
    assert {len(pair) for pair in secrets} == {1}
    assert len(secrets) == 3


def test_a_new_identity_takes_32_bytes_of_the_entropy():
    asked = []

    def entropy(size):
        asked.append(size)
        return ALICE

    assert Identity.generate(entropy).public == Identity(ALICE).public
    assert asked == [32]
    assert Identity.generate().public != Identity.generate().public


@each_case("size", [0, 31, 33, 64])
def test_a_secret_of_another_length(size):
    with pytest.raises(KeyMismatchError, match=f"a secret key has 32 bytes, not {size}"):
        Identity(bytes(size))


def test_an_identity_shows_no_secret():
    alice = Identity(ALICE)
    secrets = [
        ALICE,
        alice.shared(Identity(BOB).public),
        reference.derive(ALICE, "identity x25519"),
        reference.derive(ALICE, "identity ed25519"),
    ]
    for text in (repr(alice), str(alice), f"{alice}", repr([alice])):
        assert f"Identity(public={alice.public.hex()[:16]}...)" in text
        for secret in secrets:
            number, turned = int.from_bytes(secret), int.from_bytes(secret, "little")
            for form in (secret.hex()[:8], repr(secret)[2:12], str(number), str(turned)):
                assert form not in text


STATEMENT = ("survivors", b"\x00\x01", "north", 7)


def test_a_signature_is_ed25519_over_the_joined_statement():
    secret = reference.derive(ALICE, "identity ed25519")
    want = Ed25519PrivateKey.from_private_bytes(secret).sign(
        reference.join("signature", *STATEMENT)
    )
    assert Identity(ALICE).sign(*STATEMENT) == want
    assert len(want) == SIGNATURE_BYTES
    assert verify(Identity(ALICE).public, want, "north", *STATEMENT) is None


def refused(public, signature, *statement):
    reason = f"north: the signature for '{statement[0]}' is not valid|north: (a|its) public key"
    with pytest.raises((AuthenticationError, KeyMismatchError), match=reason):
        verify(public, signature, "north", *statement)


@each_case(
    "statement",
    [
        ("survivors", b"\x00\x01", "north", 8),
        ("survivors", b"\x00\x02", "north", 7),
        ("survivors", b"\x00\x01", "nort", 7),
        ("survivors", b"\x00\x01", b"north", 7),
        ("survivors", b"\x00\x01", "north", b"7"),
        ("survivors", b"\x00\x01n", "orth", 7),
        ("survivors", "north", b"\x00\x01", 7),
        ("survivors", b"\x00\x01", "north"),
        ("survivors", b"\x00\x01", "north", 7, 0),
        ("survivor", b"s\x00\x01", "north", 7),
        ("keys", b"\x00\x01", "north", 7),
    ],
)
def test_a_signature_is_for_one_statement(statement):
    alice = Identity(ALICE)
    refused(alice.public, alice.sign(*STATEMENT), *statement)


def test_a_signature_is_of_one_party():
    alice, bob = Identity(ALICE), Identity(BOB)
    refused(bob.public, alice.sign(*STATEMENT), *STATEMENT)
    refused(bob.public[:32] + bytes(32), alice.sign(*STATEMENT), *STATEMENT)
    refused(alice.public[32:] + alice.public[:32], alice.sign(*STATEMENT), *STATEMENT)
    mixed = bob.public[:32] + alice.public[32:]
    assert verify(mixed, alice.sign(*STATEMENT), "north", *STATEMENT) is None


def test_every_changed_bit_of_a_signature_is_refused():
    alice = Identity(ALICE)
    signature = alice.sign(*STATEMENT)
    for position in range(SIGNATURE_BYTES):
        for bit in range(8):
            refused(alice.public, flipped(signature, position, 1 << bit), *STATEMENT)


@each_case("size", [0, 1, 63, 65, 128])
def test_a_signature_of_another_length_is_refused(size):
    alice = Identity(ALICE)
    refused(alice.public, (alice.sign(*STATEMENT) * 2)[:size], *STATEMENT)


def test_a_signature_is_not_taken_with_the_group_order_added():
    # S and S + L solve the same equation; RFC 8032, 5.1.7, takes the smaller one only.
    alice = Identity(ALICE)
    signature = alice.sign(*STATEMENT)
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little") + order
    refused(alice.public, signature[:32] + s.to_bytes(32, "little"), *STATEMENT)


@each_case(
    "point",
    [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000080",
    ],
)
def test_a_signing_key_of_small_order_verifies_nothing(point):
    public = Identity(ALICE).public[:32] + bytes.fromhex(point)
    with pytest.raises((AuthenticationError, KeyMismatchError)):
        verify(public, b"\x01" + bytes(63), "north", *STATEMENT)


@each_case("size", [0, 32, 63, 65])
def test_a_public_key_of_another_length_verifies_nothing(size):
    alice = Identity(ALICE)
    refused((alice.public * 2)[:size], alice.sign(*STATEMENT), *STATEMENT)


def test_an_identity_cannot_be_pickled():
    with pytest.raises(TypeError):
        pickle.dumps(Identity(ALICE))


@pytest.mark.parametrize("body", [b"", b"x", BODY, bytes(1000)], ids=len)
def test_a_sealed_message_opens(cast, body):
    data = message(cast, body)
    header, plain = opened(cast, data)
    session = cast.session
    assert plain == body
    assert header == wire.Header(KIND, session.id, 0, session.agreement, "north", "south")
    assert len(data) == len(header.encode(0)) + 32 + len(body) + 16


def test_a_message_to_oneself_opens(cast):
    assert opened(cast, message(cast, recipient="north"), "north")[1] == BODY


def test_any_buffer_is_taken(cast):
    data = message(cast)
    for buffer in (data, bytearray(data), memoryview(data), memoryview(np.frombuffer(data, "u1"))):
        assert opened(cast, buffer)[1] == BODY


def test_a_large_message_opens():
    cast = Cast(length=1 << 17)
    body = stream("large")(1 << 20)
    assert opened(cast, message(cast, body))[1] == body


def test_the_body_is_hidden_and_every_message_has_another_key(cast):
    asked = []
    entropy = cast.entropy

    def counted(size):
        asked.append(size)
        return entropy(size)

    cast.entropy = counted
    zeros = [message(cast, bytes(64)) for _ in range(3)]
    assert asked == [32] * 3
    bodies = [data[-80:] for data in zeros]
    salts = [data[-112:-80] for data in zeros]
    assert len(set(bodies)) == len(set(salts)) == 3
    # With one key and one nonce the bodies would be equal where the salts are not looked at.
    for one in range(3):
        for other in range(one):
            equal = sum(a == b for a, b in zip(bodies[one], bodies[other], strict=True))
            assert equal < 8
    assert bytes(8) not in b"".join(bodies)
    assert BODY[:8] not in message(cast)


@pytest.mark.parametrize(
    ("change", "header"),
    [
        ("kind", {"kind": KIND + 1}),
        ("sender", {"sender": "east"}),
        ("recipient", {"sender": "north", "recipient": "east"}),
    ],
)
def test_the_key_is_bound_to_kind_sender_and_recipient(cast, change, header):
    session = cast.session
    facts = {"kind": KIND, "sender": "north", "recipient": "south"} | header
    honest = session.header(KIND, "north", "south", session.agreement)
    other = session.header(agreement=session.agreement, **facts)
    salt = bytes(32)
    north = cast.identities["north"]
    a = identities._key(north, session, honest, salt)
    b = identities._key(
        cast.identities["east"] if change == "sender" else north, session, other, salt
    )
    assert a.encrypt(bytes(12), b"", None) != b.encrypt(bytes(12), b"", None)


def test_the_two_directions_have_different_keys(cast):
    session, salt = cast.session, bytes(32)
    there = session.header(KIND, "north", "south", session.agreement)
    back = session.header(KIND, "south", "north", session.agreement)
    north = cast.identities["north"]
    tags = [
        identities._key(north, session, h, salt).encrypt(bytes(12), b"", None)
        for h in (there, back)
    ]
    assert tags[0] != tags[1]


def test_only_its_owner_seals_with_a_name(cast):
    session = cast.session
    header = session.header(KIND, "north", "south", session.agreement)
    body = np.frombuffer(BODY, np.uint8)
    for name in ("south", "east", "one"):
        with pytest.raises(KeyMismatchError, match="this identity is not 'north' of the session"):
            seal(cast.identities[name], session, header, body, cast.entropy)
    stranger = session.header(KIND, "stranger", "south", session.agreement)
    with pytest.raises(KeyMismatchError, match="this identity is not 'stranger' of the session"):
        seal(cast.identities["north"], session, stranger, body, cast.entropy)


def test_every_change_of_one_byte_is_refused(cast):
    data = message(cast, b"one small body")
    session = cast.session
    names = 58 + 12  # the fixed part, then two names of five bytes after their lengths
    assert data[58:70] == b"\x05north\x05south"
    for position in range(len(data)):
        for mask in (*(1 << bit for bit in range(8)), 0xFF, 0x20 | 0x01):
            with pytest.raises((AuthenticationError, DecodeError, RemoteProtocolError)) as error:
                opened(cast, flipped(data, position, mask))
            if position < 5:  # magic and version
                assert error.type is DecodeError
            elif position == 5:  # kind
                assert error.type is AuthenticationError
            elif position < 58:  # session, round, agreement
                assert error.type is RemoteProtocolError
                assert error.value.sender == "north"
            elif names <= position < names + 8:  # length
                assert error.type is DecodeError
            elif position >= names + 8:  # salt, body, tag
                assert error.type is AuthenticationError
                assert "north: the message was not made by this party" in str(error.value)
    assert opened(cast, data)[1] == b"one small body"
    assert cast.session == session


@pytest.mark.slow
def test_every_other_value_of_every_byte_is_refused(cast):
    data = message(cast, b"one small body")
    for position in range(len(data)):
        for mask in range(1, 256):
            with pytest.raises((AuthenticationError, DecodeError, RemoteProtocolError)):
                opened(cast, flipped(data, position, mask))


def test_every_cut_and_every_extension_is_refused(cast):
    data = message(cast)
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            opened(cast, data[:size])
    for extra in (b"\x00", b"SCMP", data):
        with pytest.raises(DecodeError, match="the header says"):
            opened(cast, data + extra)


@pytest.mark.parametrize("size", range(48))
def test_a_body_without_room_for_salt_and_tag(cast, size):
    session = cast.session
    header = session.header(KIND, "north", "south", session.agreement)
    with pytest.raises(DecodeError, match="the sealed body is cut off"):
        opened(cast, header.encode(size) + bytes(size))


def test_pieces_of_two_messages_do_not_fit_together(cast):
    one, two = message(cast), message(cast)
    salt = len(one) - 16 - len(BODY) - 32
    for start, stop in ((salt, salt + 32), (salt + 32, len(one) - 16), (len(one) - 16, len(one))):
        spliced = one[:start] + two[start:stop] + one[stop:]
        with pytest.raises(AuthenticationError, match="north"):
            opened(cast, spliced)
    other = message(cast, sender="east")
    with pytest.raises(AuthenticationError, match="north"):
        opened(cast, one[:salt] + other[-(len(one) - salt) :])


def test_a_name_on_a_message_of_another_party(cast):
    # east seals to south, and writes north's name over its own in the header.
    session = cast.session
    data = message(cast, sender="east")
    head = session.header(KIND, "east", "south", session.agreement).encode(88)
    false = session.header(KIND, "north", "south", session.agreement).encode(88)
    assert data.startswith(head)
    with pytest.raises(AuthenticationError, match=r"^north: .* not made by this party"):
        opened(cast, false + data[len(head) :])


def test_a_message_for_another_recipient(cast):
    data = message(cast)
    for name in ("north", "east", "one"):
        with pytest.raises(RemoteProtocolError, match=f"for 'south', not for '{name}'") as error:
            opened(cast, data, name)
        assert error.value.sender == "north"


def test_a_message_sent_on_under_another_address(cast):
    session = cast.session
    data = message(cast)
    head = session.header(KIND, "north", "south", session.agreement).encode(88)
    other = session.header(KIND, "north", "east", session.agreement).encode(88)
    with pytest.raises(AuthenticationError, match="north"):
        opened(cast, other + data[len(head) :], "east")


def test_nobody_else_opens_it(cast):
    session = cast.session
    data = message(cast)
    for thief in ("east", "one"):
        with pytest.raises(AuthenticationError):
            open_sealed(cast.identities[thief], session, session.agreement, data, "south")


def test_a_message_of_another_session_round_or_agreement(cast):
    other = cast.agree()
    with pytest.raises(RemoteProtocolError, match="north: the message belongs to another session"):
        opened(cast, message(cast, session=other))
    later = cast.session.next(cast.layout)
    with pytest.raises(RemoteProtocolError, match="is of round 1 and this is round 0"):
        opened(cast, message(cast, session=later))
    with pytest.raises(RemoteProtocolError, match="is of round 0 and this is round 1"):
        opened(cast, message(cast), session=later)


def test_the_agreement_in_the_header_cannot_be_put_right_by_the_carrier(cast):
    # Same id and round; one server's key differs. Even with the digest rewritten it does not open.
    keys = cast.keys | {"one": Identity.generate(cast.entropy).public}
    other = cast.agree(keys=keys, entropy=lambda size: cast.session.id)
    assert other.id == cast.session.id
    data = message(cast, session=other)
    with pytest.raises(RemoteProtocolError, match="for another layout or other parties"):
        opened(cast, data)
    with pytest.raises(AuthenticationError, match="north"):
        opened(cast, data.replace(other.agreement, cast.session.agreement))


def test_a_sender_who_takes_no_part(cast):
    session = cast.session
    header = session.header(KIND, "stranger", "south", session.agreement)
    with pytest.raises(RemoteProtocolError, match="takes no part in this session") as error:
        opened(cast, header.encode(48) + bytes(48))
    assert error.value.sender == "stranger"


@pytest.mark.parametrize("name", ["\x1b[2J\x1b[31mnorth", "north\nall is well", "\u202enorth"])
def test_a_strangers_name_cannot_write_to_the_terminal(cast, name):
    session = cast.session
    header = session.header(KIND, name, "south", session.agreement)
    with pytest.raises((DecodeError, RemoteProtocolError)) as error:
        opened(cast, header.encode(48) + bytes(48))
    assert str(error.value).isprintable()


def test_a_message_much_longer_than_any_of_the_session_is_not_decrypted(cast, monkeypatch):
    # The agreed vectors have 4 elements; who sends a megabyte has no honest reason to.
    asked = []
    take = identities.buffers.take
    monkeypatch.setattr(identities.buffers, "take", lambda size: asked.append(size) or take(size))
    session = cast.session
    header = session.header(KIND, "north", "south", session.agreement)
    with pytest.raises((DecodeError, RemoteProtocolError, AuthenticationError)):
        opened(cast, header.encode(1 << 20) + bytes(1 << 20))
    assert sum(asked) < 1 << 16


def test_names_of_any_language(cast):
    names = ("Zürich", "日本", "клиника")
    cast = Cast(names)
    data = message(cast, sender=names[1], recipient=names[2])
    header, plain = opened(cast, data, names[2])
    assert (header.sender, header.recipient, plain) == (names[1], names[2], BODY)


def test_the_cast_is_what_the_tests_above_think(cast):
    assert cast.session.contributors == HOSPITALS
    assert len({*cast.keys.values()}) == 6
