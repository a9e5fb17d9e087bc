"""A server that changes, moves or keeps back boxes; see `lying`."""

import pytest
from cases import each_case
from secagg.cohort import BOX, Cohort, flipped
from secagg.lying import ALICE, SECURITY, again, finishes, refused

from securecomp.errors import AuthenticationError, RemoteProtocolError, ThresholdError
from securecomp.secagg.masking_messages import Boxes

# The boxes.


def place(boxes, sender):
    return boxes.senders.index(sender) * BOX


def put(boxes, at, box):
    return Boxes(boxes.senders, boxes.boxes[:at] + box + boxes.boxes[at + BOX :])


def only(boxes, *senders):
    parts = (boxes.boxes[place(boxes, s) : place(boxes, s) + BOX] for s in senders)
    return Boxes(list(senders), b"".join(parts))


NOT_NEAR = "server: its boxes are not from neighbours that advertised keys"
BOX_LIES = [
    ("disorder", lambda b: only(b, *b.senders[::-1])),
    ("one of them twice", lambda b: only(b, 0, 0, 2, 3, 4)),
    ("a stranger", lambda b: Boxes([*b.senders, 5], b.boxes + bytes(BOX))),
    ("a number below zero", lambda b: Boxes([-1, *b.senders], b.boxes + bytes(BOX))),
    ("its own", lambda b: Boxes([0, 1, 2, 3, 4], b.boxes + bytes(BOX))),
    ("a box too many", lambda b: Boxes(b.senders, b.boxes + bytes(BOX))),
    ("a box too few", lambda b: Boxes(b.senders, b.boxes[:-BOX])),
    ("a byte too few", lambda b: Boxes(b.senders, b.boxes[:-1])),
    ("a sender too few", lambda b: Boxes(b.senders[:-1], b.boxes)),
]


@pytest.mark.parametrize("lie", [pytest.param(lie, id=name) for name, lie in BOX_LIES])
def test_lies_about_boxes(lie):
    cohort = Cohort(5)
    cohort.reach("mask")
    data = cohort.say(lie(cohort.said(ALICE)), ALICE)
    refused(cohort, "mask", data, RemoteProtocolError, NOT_NEAR)
    finishes(cohort)


def test_a_box_of_a_client_that_had_not_advertised():
    cohort = Cohort(5)
    cohort.reach("mask", {"advertise": {"c4"}})
    boxes = cohort.said(ALICE)
    assert boxes.senders == [0, 2, 3]
    lie = cohort.say(Boxes([0, 2, 3, 4], boxes.boxes + bytes(BOX)), ALICE)
    refused(cohort, "mask", lie, RemoteProtocolError, NOT_NEAR)
    finishes(cohort)


def closed(name):
    return f"{name}: its box was changed on the way, or made for another list of keys"


@each_case("security", SECURITY)
def test_boxes_swapped_between_senders(security):
    cohort = Cohort(5, security=security)
    cohort.reach("mask")
    boxes = cohort.said(ALICE)
    zero, two = (only(boxes, s).boxes for s in (0, 2))
    lie = put(put(boxes, place(boxes, 0), two), place(boxes, 2), zero)
    refused(cohort, "mask", cohort.say(lie, ALICE), AuthenticationError, closed("c0"))
    lie = put(boxes, place(boxes, 2), zero)
    refused(cohort, "mask", cohort.say(lie, ALICE), AuthenticationError, closed("c2"))
    finishes(cohort)


def test_boxes_meant_for_another():
    cohort = Cohort(5)
    cohort.reach("mask")
    boxes = cohort.said(ALICE)
    for giver, owner in (("c2", 3), ("c3", 3), ("c2", 0)):
        box = cohort.said(giver)
        at = place(box, next(s for s in box.senders if s == owner or giver == f"c{owner}"))
        lie = put(boxes, place(boxes, owner), box.boxes[at : at + BOX])
        refused(cohort, "mask", cohort.say(lie, ALICE), AuthenticationError, closed(f"c{owner}"))
    # Its own box to c3, sent back to it as c3's to it: the two directions have different keys.
    back = only(cohort.said("c3"), 1).boxes
    lie = put(boxes, place(boxes, 3), back)
    refused(cohort, "mask", cohort.say(lie, ALICE), AuthenticationError, closed("c3"))
    finishes(cohort)


def test_every_changed_byte_of_a_box():
    cohort = Cohort(5)
    cohort.reach("mask")
    boxes = cohort.said(ALICE)
    for sender in boxes.senders:
        at = place(boxes, sender)
        for byte in range(BOX):
            lie = Boxes(boxes.senders, flipped(boxes.boxes, at + byte, 1 << byte % 8))
            refused(
                cohort, "mask", cohort.say(lie, ALICE), AuthenticationError, closed(f"c{sender}")
            )
    finishes(cohort)


def test_boxes_of_an_earlier_round_or_another_session():
    cohort, other = Cohort(5), Cohort(5, seed="other")
    other.reach("mask")
    cohort.reach("mask")
    old = cohort.said(ALICE)
    lie = put(old, 0, only(other.said(ALICE), 0).boxes)
    refused(cohort, "mask", cohort.say(lie, ALICE), AuthenticationError, closed("c0"))
    finishes(cohort)
    again(cohort)
    assert cohort.now.round == 1
    lie = put(cohort.said(ALICE), 0, only(old, 0).boxes)
    refused(cohort, "mask", cohort.say(lie, ALICE), AuthenticationError, closed("c0"))
    refused(cohort, "mask", cohort.say(old, ALICE), AuthenticationError, closed("c0"))
    finishes(cohort)


def test_too_few_boxes():
    cohort = Cohort(5)
    cohort.reach("mask")
    few = cohort.say(only(cohort.said(ALICE), 3), ALICE)
    with pytest.raises(ThresholdError, match="too few clients are left") as error:
        cohort.clients[ALICE].mask(few, cohort.values[ALICE])
    assert (error.value.needed, error.value.got) == (3, 2)
    finishes(cohort)


@each_case("security", SECURITY)
def test_a_dropped_box_shows_when_its_sender_survives(security):
    """c1 does not get c4's box and masks without c4; it does not help to reveal a sum with c4."""
    cohort = Cohort(5, security=security)
    cohort.reach("mask")
    cohort.inbox[ALICE] = cohort.say(only(cohort.said(ALICE), 0, 2, 3), ALICE)
    cohort.step("mask")
    step = "consent" if security == "active" else "unmask"
    refused(
        cohort,
        step,
        cohort.inbox[ALICE],
        RemoteProtocolError,
        "server: it brings back a client that had dropped out",
    )
    # Without c4 it would.
    cohort.inbox[ALICE] = cohort.survivors(["c0", "c1", "c2", "c3"], ALICE)
    cohort.do(step, ALICE)
