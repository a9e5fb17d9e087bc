"""Messages that are wrong at every step; see `lying`."""

import pytest
from cases import each_case
from secagg.cohort import Cohort, flipped
from secagg.lying import ALICE, SECURITY, finishes, refused

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    LocalProtocolError,
    RemoteProtocolError,
)
from securecomp.protocol.session import Layout
from securecomp.secagg.masking_messages import Boxes, Consents, Keys, Survivors

# Any step.

WAITING = [("semi-honest", s) for s in ("share", "mask", "unmask")] + [
    ("active", s) for s in ("share", "mask", "consent", "unmask")
]


@each_case("security, step", WAITING)
def test_messages_of_the_wrong_kind(security, step):
    cohort = Cohort(3, security=security)
    everything = {}
    for earlier in cohort.steps:
        cohort.reach(earlier) if earlier == "advertise" else None
        if earlier == step:
            break
        cohort.step(earlier)
        everything[earlier] = cohort.inbox[ALICE]
    honest = [Keys([], []), Boxes([], b""), Survivors([0, 1, 2]), Consents([], [])]
    right = type(cohort.said(ALICE))
    for message in honest:
        if type(message) is right:
            continue
        reason = f"server: sent message kind {message.KIND}, which is not its to send here"
        refused(cohort, step, cohort.say(message, ALICE), RemoteProtocolError, reason)
    # An earlier step's message, as it was.
    for old in list(everything.values())[:-1]:
        refused(cohort, step, old, RemoteProtocolError, "which is not its to send here")
    finishes(cohort)


@each_case("security, step", WAITING)
def test_messages_of_another_session_round_client_or_sender(security, step):
    cohort = Cohort(3, security=security, seed="one")
    other = Cohort(3, security=security, seed="two")
    for c in (cohort, other):
        c.reach(step)
    message = cohort.said(ALICE)
    later = cohort.session.next(cohort.session.layout)
    narrow = cohort.agree(Layout(4, 999))
    for data, reason in (
        (other.inbox[ALICE], "server: the message belongs to another session"),
        (cohort.say(message, ALICE, session=later), "of round 1 and this is round 0"),
        (cohort.say(message, ALICE, session=narrow), "for another layout or other parties"),
        (cohort.inbox["c2"], "server: the message is for 'c2', not for 'c1'"),
    ):
        refused(cohort, step, data, RemoteProtocolError, reason)
    # c2 cannot speak for the server.
    data = cohort.say(message, ALICE, sender="c2")
    reason = f"c2: sent message kind {message.KIND}, which is not its to send here"
    refused(cohort, step, data, RemoteProtocolError, reason, sender="c2")
    finishes(cohort)


@each_case("security, step", WAITING)
def test_messages_changed_on_the_way_or_malformed(security, step):
    cohort = Cohort(3, security=security)
    cohort.reach(step)
    data = bytes(cohort.inbox[ALICE])
    for position in (len(data) - 1, len(data) - 17, len(data) - 60):
        refused(cohort, step, flipped(data, position), AuthenticationError, "server: ")
    for broken in (data[:-1], data + b"\0", b"", b"garbage"):
        refused(cohort, step, broken, DecodeError, "message|body|bytes")

    class Other(type(cohort.said(ALICE)), frozen=True):
        """The right kind, with a field too many."""

        more: int = 0

    message = cohort.said(ALICE)
    fields = {f: getattr(message, f) for f in message.__struct_fields__}
    data = cohort.say(Other(**fields), ALICE)
    refused(
        cohort, step, data, RemoteProtocolError, f"server: {type(message).__name__}|server: Other"
    )
    finishes(cohort)


@each_case("security", SECURITY)
def test_a_step_is_done_once(security):
    cohort = Cohort(3, security=security)
    for step in cohort.steps:
        client = cohort.clients[ALICE]
        cohort.server.receive(cohort.do(step, ALICE))
        with pytest.raises(LocalProtocolError, match=rf"{step}\(\) is not allowed when"):
            cohort.do(step, ALICE)
        for name in ("c0", "c2"):
            cohort.take(cohort.do(step, name))
        cohort.inbox = cohort.server.close()
        assert client.state is cohort.clients["c0"].state
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)
