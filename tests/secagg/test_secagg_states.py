"""Every cell of the tables of states, and what may not be copied."""

import copy
import pickle

import pytest
from cases import each_case
from secagg.cohort import SERVER, Cohort

from securecomp.errors import LocalProtocolError
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout
from securecomp.secagg import Client, Receiver, Server

S = State
TABLES = {
    Client: {
        (S.READY, "advertise"): S.ADVERTISED,
        (S.ADVERTISED, "share"): S.SHARED,
        (S.SHARED, "mask"): S.MASKED,
        (S.MASKED, "consent"): S.CONSENTED,
        (S.MASKED, "unmask"): S.DONE,
        (S.CONSENTED, "unmask"): S.DONE,
        (S.DONE, "next_round"): S.SHARED,
    },
    Server: {
        (S.COLLECTING_KEYS, "receive"): S.COLLECTING_KEYS,
        (S.COLLECTING_KEYS, "close"): S.COLLECTING_SHARES,
        (S.COLLECTING_SHARES, "receive"): S.COLLECTING_SHARES,
        (S.COLLECTING_SHARES, "close"): S.COLLECTING_VECTORS,
        (S.COLLECTING_VECTORS, "receive"): S.COLLECTING_VECTORS,
        (S.COLLECTING_VECTORS, "close"): S.COLLECTING_UNMASKS,
        (S.COLLECTING_CONSENTS, "receive"): S.COLLECTING_CONSENTS,
        (S.COLLECTING_CONSENTS, "close"): S.COLLECTING_UNMASKS,
        (S.COLLECTING_UNMASKS, "receive"): S.COLLECTING_UNMASKS,
        (S.COLLECTING_UNMASKS, "close"): S.DONE,
        (S.DONE, "result"): S.DONE,
        (S.DONE, "next_round"): S.COLLECTING_SHARES,
    },
    Receiver: {(S.COLLECTING, "receive"): S.DONE},
}
LAYOUT = Layout(4, 1000)
CALLS = {
    (Client, "advertise"): (),
    (Client, "share"): (b"",),
    (Client, "mask"): (b"", [0] * 4),
    (Client, "consent"): (b"",),
    (Client, "unmask"): (b"",),
    (Client, "next_round"): (LAYOUT,),
    (Server, "receive"): (b"",),
    (Server, "close"): (),
    (Server, "result"): (),
    (Server, "next_round"): (LAYOUT,),
    (Receiver, "receive"): (b"",),
}
CELLS = [
    pytest.param(kind, state, event, id=f"{kind.__name__}-{state.name}-{event}")
    for kind, event in CALLS
    for state in State
    if (state, event) not in TABLES[kind]
]


def role(cohort, kind):
    return {
        Client: cohort.clients["c1"],
        Server: cohort.server,
        Receiver: cohort.receiver(),
    }[kind]


def test_the_tables():
    for kind, table in TABLES.items():
        assert table == kind.TRANSITIONS
        events = {event for _, event in table}
        assert events == {event for k, event in CALLS if k is kind}


@each_case("kind, state, event", CELLS)
def test_what_the_table_does_not_have_is_refused(kind, state, event):
    it = role(Cohort(3), kind)
    it.state = state
    reason = rf"^{kind.__name__} '.*': {event}\(\) is not allowed when {state.value}$"
    with pytest.raises(LocalProtocolError, match=reason):
        getattr(it, event)(*CALLS[kind, event])
    assert it.state is state


@each_case("security", ["semi-honest", "active"])
def test_what_the_table_has_happens(security):
    cohort = Cohort(3, security=security)
    client, server = cohort.clients["c1"], cohort.server
    walked = [(client.state, server.state)]
    for round_ in range(2):
        for step in cohort.steps[2 * round_ :]:
            cohort.step(step)
            walked.append((client.state, server.state))
        if round_ == 0:
            server.next_round(LAYOUT)
            messages = [c.next_round(LAYOUT)[1] for c in cohort.clients.values()]
            walked.append((client.state, server.state))
            for data in messages:
                server.receive(data)
            cohort.inbox = server.close()
            walked.append((client.state, server.state))
    consent = [(S.CONSENTED, S.COLLECTING_UNMASKS)] if security == "active" else []
    masked = S.COLLECTING_CONSENTS if security == "active" else S.COLLECTING_UNMASKS
    one = [
        (S.SHARED, S.COLLECTING_VECTORS),
        (S.MASKED, masked),
        *consent,
        (S.DONE, S.DONE),
    ]
    assert walked == [
        (S.READY, S.COLLECTING_KEYS),
        (S.ADVERTISED, S.COLLECTING_SHARES),
        *one,
        (S.SHARED, S.COLLECTING_SHARES),
        *one,
    ]
    receiver = cohort.receiver()
    receiver.receive(cohort.inbox[SERVER])
    assert receiver.state is S.DONE


@each_case("kind", TABLES)
@each_case("state", State)
def test_abort_is_allowed_in_every_state_and_final(kind, state):
    it = role(Cohort(3), kind)
    it.state = state
    it.abort()
    assert it.state is S.ABORTED
    for k, event in CALLS:
        if k is kind:
            with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
                getattr(it, event)(*CALLS[k, event])


@each_case("kind", TABLES)
def test_roles_are_not_copied(kind):
    it = role(Cohort(3), kind)
    for clone in (
        copy.copy,
        copy.deepcopy,
        *(lambda x, p=p: pickle.dumps(x, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
    ):
        reason = f"a {kind.__name__} holds secrets and cannot be copied or pickled"
        with pytest.raises(TypeError, match=reason):
            clone(it)


@each_case("kind", TABLES)
def test_roles_show_their_name_and_state(kind):
    it = role(Cohort(3), kind)
    assert repr(it) == f"{kind.__name__}({it.name!r}, {it.state.value})"


def test_a_result_before_there_is_one():
    cohort = Cohort(3)
    cohort.server.state = S.DONE
    with pytest.raises(LocalProtocolError, match="there is no result"):
        cohort.server.result()


def test_the_server_forgets_what_it_has_when_it_stops():
    cohort = Cohort(4)
    cohort.reach("unmask")
    for name in ("c0", "c1"):
        cohort.take(cohort.do("unmask", name))
    cohort.server.abort()
    assert cohort.server._unmasks == {}
    cohort = Cohort(4)
    cohort.finish()
    cohort.server.abort()
    assert cohort.server._aggregate is None
