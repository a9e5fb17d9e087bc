"""States, transitions, and secrets that exist once: what every role has, and the sum's three."""

import copy
import pickle
from typing import ClassVar

import pytest
from cases import each_case
from sharing.cast import Cast

from securecomp.errors import KeyMismatchError, LocalProtocolError, ParameterError
from securecomp.protocol.role import Role, State
from securecomp.sharing import Contributor, Receiver, Server

TABLES = {
    Contributor: {(State.READY, "contribute"): State.DONE},
    Server: {
        (State.COLLECTING, "receive"): State.COLLECTING,
        (State.COLLECTING, "publish"): State.DONE,
    },
    Receiver: {
        (State.COLLECTING, "receive"): State.COLLECTING,
        (State.COLLECTING, "result"): State.DONE,
    },
}
START = {Contributor: State.READY, Server: State.COLLECTING, Receiver: State.COLLECTING}
EVENTS = {
    Contributor: ("contribute",),
    Server: ("publish", "receive"),
    Receiver: ("receive", "result"),
}
CELLS = [
    pytest.param(kind, state, event, id=f"{kind.__name__}-{state.name}-{event}")
    for kind in TABLES
    for state in State
    for event in EVENTS[kind]
]


@pytest.fixture
def cast():
    return Cast()


def fresh(cast, kind):
    return cast.role(kind, {Contributor: "north", Server: "one", Receiver: "south"}[kind])


def prepared(cast, kind, event):
    """A role to which `event` can happen, and the call that makes it happen."""
    role = fresh(cast, kind)
    if kind is Contributor:
        return role, lambda: role.contribute(cast.values()["north"])
    if kind is Server:
        messages = [deal["one"] for deal in cast.deals().values()]
    else:
        messages = [partial["south"] for partial in cast.partials(cast.deals()).values()]
    if event == "receive":
        return role, lambda: role.receive(messages[0])
    for message in messages:
        role.receive(message)
    return role, getattr(role, event)


class Toy(Role):
    """Two steps, and a secret."""

    TRANSITIONS: ClassVar = {
        (State.READY, "go"): State.COLLECTING,
        (State.COLLECTING, "stop"): State.DONE,
    }

    def __init__(self):
        super().__init__("toy", State.READY)
        self.secret = "a secret"  # noqa: S105

    def go(self):
        self.state = self._next("go")

    def stop(self):
        self.state = self._next("stop")

    def _drop(self):
        self.secret = None


def test_a_role_follows_its_table():
    toy = Toy()
    assert (toy.name, toy.state) == ("toy", State.READY)
    with pytest.raises(
        LocalProtocolError, match=r"^Toy 'toy': stop\(\) is not allowed when ready$"
    ):
        toy.stop()
    assert toy.state is State.READY
    toy.go()
    with pytest.raises(LocalProtocolError, match=r"go\(\) is not allowed when collecting"):
        toy.go()
    toy.stop()
    assert toy.state is State.DONE
    for event in (toy.go, toy.stop):
        with pytest.raises(LocalProtocolError, match="is not allowed when done"):
            event()


@each_case("state", State)
def test_abort_drops_the_secrets_in_every_state(state):
    toy = Toy()
    toy.state = state
    toy.abort()
    assert toy.state is State.ABORTED
    assert toy.secret is None
    for event in (toy.go, toy.stop):
        with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
            event()


def test_a_role_without_secrets_can_abort():
    class Plain(Role):
        TRANSITIONS: ClassVar = {}

    plain = Plain("plain", State.READY)
    plain.abort()
    assert plain.state is State.ABORTED


def test_states_have_different_names():
    # They are written in errors; two with one name would be one member.
    assert len({state.value for state in State}) == len(State.__members__)


@each_case("kind", TABLES)
def test_the_table_is_the_one_that_is_documented(kind):
    assert TABLES[kind] == kind.TRANSITIONS


@each_case("kind", TABLES)
def test_no_public_method_is_outside_of_the_table(kind):
    methods = [n for n in dir(kind) if not n.startswith("_") and callable(getattr(kind, n))]
    assert methods == sorted([*EVENTS[kind], "abort"])


@pytest.mark.parametrize("kind", TABLES)
def test_where_a_role_starts(cast, kind):
    assert fresh(cast, kind).state is START[kind]


@pytest.mark.parametrize(("kind", "state", "event"), CELLS)
def test_every_cell(cast, kind, state, event):
    role, call = prepared(cast, kind, event)
    role.state = state
    following = TABLES[kind].get((state, event))
    if following is None:
        message = rf"^{kind.__name__} '{role.name}': {event}\(\) is not allowed when {state.value}$"
        with pytest.raises(LocalProtocolError, match=message):
            call()
        assert role.state is state
        # Nothing happened to it: in the right state the call still does what it should.
        role.state = next(s for s, name in TABLES[kind] if name == event)
        call()
    else:
        call()
        assert role.state is following


@pytest.mark.parametrize("kind", TABLES)
def test_a_role_that_aborted_does_nothing(cast, kind):
    for event in EVENTS[kind]:
        role, call = prepared(cast, kind, event)
        role.abort()
        assert role.state is State.ABORTED
        with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
            call()
        role.abort()
        assert role.state is State.ABORTED


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, pickle.dumps, lambda role: role.__reduce__()],
    ids=["copy", "deepcopy", "pickle", "reduce"],
)
def test_a_role_exists_once(cast, kind, duplicate):
    role = fresh(cast, kind)
    reason = f"a {kind.__name__} holds secrets and cannot be copied or pickled"
    with pytest.raises(TypeError, match=reason):
        duplicate(role)


@each_case("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle_protocol_takes_a_role(protocol):
    with pytest.raises(TypeError, match="a Toy holds secrets and cannot be copied or pickled"):
        pickle.dumps(Toy(), protocol)


def test_a_role_inside_something_else_is_not_copied_either(cast):
    roles = {"server": fresh(cast, Server)}
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(roles)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", ["stranger", "", "One"])
def test_a_role_for_somebody_else(cast, kind, name):
    message = f"'{name}' is not a {kind.__name__} of this session"
    with pytest.raises(ParameterError, match=message):
        kind(cast.session, name, cast.identities["north"])


def test_a_part_in_the_session_is_not_every_part(cast):
    with pytest.raises(ParameterError, match="'one' is not a Contributor of this session"):
        cast.contributor("one")
    with pytest.raises(ParameterError, match="'one' is not a Receiver of this session"):
        cast.receiver("one")
    with pytest.raises(ParameterError, match="'north' is not a Server of this session"):
        cast.server("north")


@pytest.mark.parametrize("kind", TABLES)
def test_a_role_with_the_key_of_somebody_else(cast, kind):
    name = fresh(cast, kind).name
    with pytest.raises(KeyMismatchError, match=f"'{name}'"):
        kind(cast.session, name, cast.identities["east"], cast.entropy)


@pytest.mark.parametrize("kind", TABLES)
def test_a_role_shows_its_name_and_its_state(cast, kind):
    role, call = prepared(cast, kind, EVENTS[kind][0])
    name = f"{kind.__name__}({role.name!r}, "
    assert repr(role) == f"{name}{START[kind].value})"
    call()
    assert repr(role) == f"{name}{role.state.value})"
    role.abort()
    assert repr(role) == str(role) == f"{name}aborted)"
