"""A server that lies about who advertised which keys; see `lying`."""

import pytest
from cases import each_case
from secagg.cohort import BOX, Cohort, changed, flipped
from secagg.lying import ALICE, SECURITY, SMALL_ORDER, finishes, refused

from securecomp.errors import (
    AuthenticationError,
    KeyMismatchError,
    RemoteProtocolError,
    SecureCompError,
    ThresholdError,
)
from securecomp.protocol.role import State
from securecomp.secagg.masking_messages import Advertise, Boxes, Keys

# The list of keys.


def mine(keys, cohort, name=ALICE):
    """The place of a client in a list of keys."""
    return keys.clients.index(cohort.names.index(name))


def with_key(keys, place, **fields):
    """A list of keys with one entry changed."""
    entries = list(keys.keys)
    entries[place] = changed(entries[place], **fields)
    return Keys(keys.clients, entries)


def without(keys, *places):
    left = [i for i in range(len(keys.clients)) if i not in places]
    return Keys([keys.clients[i] for i in left], [keys.keys[i] for i in left])


NOT_MINE = "server: its list of keys does not have this client's own"
MALFORMED = "server: its list of keys is malformed"
TWICE = "server: two clients are said to have the same key"
KEY_LIES = [
    ("own cipher key changed", NOT_MINE, lambda k: with_key(k, 1, cipher_key=bytes(31) + b"\x09")),
    ("own mask key changed", NOT_MINE, lambda k: with_key(k, 1, mask_key=bytes(31) + b"\x09")),
    (
        "own keys swapped with a peer's",
        NOT_MINE,
        lambda k: Keys(k.clients, [k.keys[1], k.keys[0], *k.keys[2:]]),
    ),
    (
        "own keys exchanged for each other",
        NOT_MINE,
        lambda k: with_key(k, 1, cipher_key=k.keys[1].mask_key, mask_key=k.keys[1].cipher_key),
    ),
    ("left out", NOT_MINE, lambda k: without(k, 1)),
    ("nobody", NOT_MINE, lambda k: Keys([], [])),
    ("a client twice", MALFORMED, lambda k: Keys([0, 0, *k.clients[1:]], [k.keys[0], *k.keys])),
    ("out of order", MALFORMED, lambda k: Keys(k.clients[::-1], k.keys[::-1])),
    ("one key too many", MALFORMED, lambda k: Keys(k.clients, [*k.keys, k.keys[0]])),
    ("one key too few", MALFORMED, lambda k: Keys(k.clients, k.keys[:-1])),
    ("a stranger", MALFORMED, lambda k: Keys([*k.clients, 5], [*k.keys, k.keys[0]])),
    (
        "a stranger of a huge number",
        MALFORMED,
        lambda k: Keys([*k.clients, 2**64 - 1], [*k.keys, k.keys[0]]),
    ),
    ("a stranger below zero", MALFORMED, lambda k: Keys([-1, *k.clients], [k.keys[0], *k.keys])),
    (
        "two clients with the same cipher key",
        TWICE,
        lambda k: with_key(k, 0, cipher_key=k.keys[2].cipher_key),
    ),
    (
        "two clients with the same mask key",
        TWICE,
        lambda k: with_key(k, 0, mask_key=k.keys[2].mask_key),
    ),
    (
        "a peer with this client's mask key",
        TWICE,
        lambda k: with_key(k, 0, mask_key=k.keys[1].mask_key),
    ),
    (
        "a mask key that is another's cipher key",
        TWICE,
        lambda k: with_key(k, 0, mask_key=k.keys[2].cipher_key),
    ),
    (
        "a mask key that is the same client's cipher key",
        TWICE,
        lambda k: with_key(k, 0, mask_key=k.keys[0].cipher_key),
    ),
]


@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize(
    ("reason", "lie"), [pytest.param(r, lie, id=name) for name, r, lie in KEY_LIES]
)
def test_lies_about_keys(security, reason, lie):
    cohort = Cohort(5, security=security)
    cohort.reach("share")
    data = cohort.say(lie(cohort.said(ALICE)), ALICE)
    refused(cohort, "share", data, RemoteProtocolError, reason)
    finishes(cohort)


@each_case("security", SECURITY)
def test_too_few_keys(security):
    cohort = Cohort(5, security=security)
    cohort.reach("share")
    few = without(cohort.said(ALICE), 0, 4, *([3] if security == "semi-honest" else []))
    needed = cohort.parameters.threshold
    with pytest.raises(ThresholdError, match="too few clients are left") as error:
        cohort.clients[ALICE].share(cohort.say(few, ALICE))
    assert (error.value.needed, error.value.got) == (needed, needed - 1)
    finishes(cohort)


def test_the_agreed_minimum_holds_where_it_is_above_the_threshold():
    cohort = Cohort(5, minimum=5)
    assert cohort.parameters.threshold == 3
    cohort.reach("share")
    with pytest.raises(ThresholdError) as error:
        cohort.clients[ALICE].share(cohort.say(without(cohort.said(ALICE), 4), ALICE))
    assert (error.value.needed, error.value.got) == (5, 4)
    finishes(cohort)


def forge(cohort, **fields):
    """The keys of c2, with some of the server's own instead."""
    return cohort.say(with_key(cohort.said(ALICE), 2, **fields), ALICE)


def test_replaced_keys_are_not_signed():
    cohort = Cohort(5, security="active")
    cohort.reach("share")
    own = Cohort(5, security="active", seed="the server's own")
    own.reach("share")
    stolen = own.said(ALICE).keys[2]  # signed by c2, in another session
    reason = "c2: the signature for 'secagg keys' is not valid"
    for fields in (
        {"mask_key": stolen.mask_key},
        {"cipher_key": stolen.cipher_key},
        {"cipher_key": stolen.cipher_key, "mask_key": stolen.mask_key},
        {f: getattr(stolen, f) for f in Advertise.__struct_fields__},
        {"signature": b""},
        {"signature": bytes(64)},
        {"signature": stolen.signature},
        {"signature": cohort.said(ALICE).keys[3].signature},
        {"signature": cohort.said(ALICE).keys[2].signature + b"\0"},
        {"signature": flipped(cohort.said(ALICE).keys[2].signature, 40)},
    ):
        refused(cohort, "share", forge(cohort, **fields), AuthenticationError, reason)
    # Keys of one client under the name of another, who has to be left out for that.
    keys = cohort.said(ALICE)
    moved = Keys([0, 1, 3, 4], [keys.keys[0], keys.keys[1], keys.keys[2], keys.keys[4]])
    refused(
        cohort,
        "share",
        cohort.say(moved, ALICE),
        AuthenticationError,
        "c3: the signature for 'secagg keys' is not valid",
    )
    finishes(cohort)


@each_case("victim", range(5))
def test_every_signature_is_looked_at(victim):
    cohort = Cohort(5, security="active")
    cohort.reach("share")
    keys = cohort.said(ALICE)
    lie = with_key(keys, victim, signature=flipped(keys.keys[victim].signature, 0))
    reason = f"c{victim}: the signature for 'secagg keys' is not valid"
    refused(cohort, "share", cohort.say(lie, ALICE), AuthenticationError, reason)
    finishes(cohort)


def test_swapped_keys():
    cohort = Cohort(5, security="active")
    cohort.reach("share")
    keys = cohort.said(ALICE)
    a, b = keys.keys[2], keys.keys[3]
    swapped = Keys(keys.clients, [*keys.keys[:2], b, a, keys.keys[4]])
    reason = "c2: the signature for 'secagg keys' is not valid"
    refused(cohort, "share", cohort.say(swapped, ALICE), AuthenticationError, reason)
    finishes(cohort)


@each_case("field", ["cipher_key", "mask_key"])
@each_case("key", [*SMALL_ORDER, b"", b"\x09" * 31, b"\x09" * 33])
def test_keys_that_are_no_points_of_large_order(field, key):
    cohort = Cohort(5)
    cohort.reach("share")
    lie = with_key(cohort.said(ALICE), 3, **{field: key})
    with pytest.raises(SecureCompError, match="c3"):
        cohort.clients[ALICE].share(cohort.say(lie, ALICE))
    assert cohort.clients[ALICE].state is State.ADVERTISED
    finishes(cohort)


@each_case("field", ["cipher_key", "mask_key"])
def test_the_same_key_written_in_two_ways(field):
    """RFC 7748, section 5: the top bit is ignored, so that both give the same secrets."""
    cohort = Cohort(5)
    cohort.reach("share")
    keys = cohort.said(ALICE)
    twin = flipped(getattr(keys.keys[2], field), 31, 0x80)
    lie = cohort.say(with_key(keys, 3, **{field: twin}), ALICE)
    reason = "^c3: its key of this session is not a valid one$"
    refused(cohort, "share", lie, KeyMismatchError, reason)
    finishes(cohort)


def test_a_client_that_is_no_neighbour():
    cohort = Cohort(60, corrupt=0.05, dropout=0.05)
    assert not cohort.parameters.complete
    cohort.reach("share")
    keys = cohort.said(ALICE)
    far = next(i for i in range(60) if i not in keys.clients)
    entry = cohort.server._keys[far]
    both = sorted([*zip(keys.clients, keys.keys, strict=True), (far, entry)], key=lambda p: p[0])
    lie = Keys([i for i, _ in both], [k for _, k in both])
    reason = "server: it lists a client that is no neighbour in the agreed graph"
    refused(cohort, "share", cohort.say(lie, ALICE), RemoteProtocolError, reason)
    finishes(cohort)


@each_case("security", SECURITY)
def test_two_lists_of_keys(security):
    """c4 is in the list that c1 gets, and in nobody else's: the boxes do not open."""
    cohort = Cohort(5, security=security)
    cohort.reach("share")
    full = dict(cohort.inbox)
    for name in ("c0", "c2", "c3"):
        cohort.inbox[name] = cohort.say(without(cohort.said(name), 4), name)
    sent = {name: cohort.read(cohort.do("share", name))[1] for name in full}
    boxes = []
    for name in ("c0", "c2", "c3"):
        place = sent[name].recipients.index(1) * BOX
        boxes.append(sent[name].boxes[place : place + BOX])
    cohort.inbox = {ALICE: cohort.say(Boxes([0, 2, 3], b"".join(boxes)), ALICE)}
    reason = "c0: its box was changed on the way, or made for another list of keys"
    with pytest.raises(AuthenticationError, match=reason):
        cohort.do("mask", ALICE)
    assert cohort.clients[ALICE].state is State.SHARED


def test_a_changed_key_of_a_third_party_closes_the_boxes_too():
    """Semi-honest clients have no signatures; the boxes bind the whole list of keys anyway."""
    cohort = Cohort(5)
    other = Cohort(5, seed="other")
    other.reach("share")
    cohort.reach("share")
    lie = with_key(cohort.said(ALICE), 4, mask_key=other.said(ALICE).keys[4].mask_key)
    cohort.inbox[ALICE] = cohort.say(lie, ALICE)
    cohort.step("share")
    for name, blamed in (("c0", "c1"), (ALICE, "c0")):
        with pytest.raises(AuthenticationError, match=f"{blamed}: its box was changed"):
            cohort.do("mask", name)
