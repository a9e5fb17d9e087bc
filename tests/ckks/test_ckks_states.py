"""Every cell of the roles' tables, what stopping drops, and what may not be copied."""

import copy
import pickle

import pytest
from cases import each_case
from ckks.parties import Parties, table

from securecomp.ckks import InferenceClient, InferenceServer, ModelOwner
from securecomp.errors import LocalProtocolError, SecureCompError
from securecomp.protocol.role import State

S = State
TABLES = {
    InferenceClient: {(S.READY, "encrypt"): S.READY, (S.READY, "decrypt"): S.READY},
    InferenceServer: {
        (S.READY, "register"): S.READY,
        (S.READY, "load_model"): S.READY,
        (S.READY, "check"): S.READY,
        (S.READY, "predict"): S.READY,
    },
}
CALLS = {
    (InferenceClient, "encrypt"): ([[0.0, 0.0, 0.0]],),
    (InferenceClient, "decrypt"): (b"",),
    (InferenceServer, "register"): (b"",),
    (InferenceServer, "load_model"): (b"",),
    (InferenceServer, "check"): ([b""],),
    (InferenceServer, "predict"): (b"",),
}
CELLS = [
    (kind, state, event)
    for kind, event in CALLS
    for state in State
    if (state, event) not in TABLES[kind]
]
CHOICES = {
    "plain": {},
    "seal": {"backend": "seal"},
    "protected": {"protect_model": True},
    "encrypted": {"encrypted": True},
}


def role(parties, kind):
    return parties.ann if kind is InferenceClient else parties.server


@pytest.fixture(scope="module")
def shared():
    return Parties()


def test_the_tables():
    for kind, cells in TABLES.items():
        assert cells == kind.TRANSITIONS
        assert {event for _, event in cells} == {event for k, event in CALLS if k is kind}


@each_case("kind, state, event", CELLS)
def test_what_the_table_does_not_have_is_refused(kind, state, event, shared):
    it = role(shared, kind)
    it.state = state
    try:
        reason = rf"^{kind.__name__} '.*': {event}\(\) is not allowed when {state.value}$"
        with pytest.raises(LocalProtocolError, match=reason):
            getattr(it, event)(*CALLS[kind, event])
        assert it.state is state
    finally:
        it.state = S.READY


@each_case("choice", CHOICES.values())
def test_what_the_table_has_happens(choice):
    parties = Parties(**choice)  # registers, and loads an encrypted model
    assert parties.server.state is parties.ann.state is S.READY
    request = parties.ann.encrypt(table(1))
    assert parties.ann.state is S.READY
    answer = parties.server.predict(request)
    assert parties.server.state is S.READY
    parties.ann.decrypt(answer)
    assert parties.ann.state is S.READY


@each_case("kind, event", CALLS)
def test_a_refused_call_leaves_the_state(kind, event, shared):
    it = role(shared, kind)
    garbage = {"encrypt": [["x"]], "check": [b"garbage"]}
    arguments = (garbage.get(event, b"garbage"),)
    with pytest.raises(SecureCompError):
        getattr(it, event)(*arguments)
    assert it.state is S.READY


@each_case("kind", TABLES)
@each_case("state", State)
def test_abort_is_allowed_in_every_state_and_final(kind, state):
    it = role(Parties(), kind)
    it.state = state
    it.abort()
    assert it.state is S.ABORTED
    for k, event in CALLS:
        if k is kind:
            with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
                getattr(it, event)(*CALLS[k, event])


@each_case("kind", TABLES)
def test_abort_when_aborted(kind):
    it = role(Parties(), kind)
    it.abort()
    it.abort()
    assert it.state is S.ABORTED


class Reached:
    """Everything that can be reached from an object, but for what classes and modules hold."""

    def __init__(self, start):
        self.seen = {}
        self.walk(start)

    def walk(self, thing):
        if id(thing) in self.seen or isinstance(thing, type | str | int | float):
            return
        self.seen[id(thing)] = thing
        if isinstance(thing, dict):
            inner = [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set):
            inner = list(thing)
        else:
            slots = [s for c in type(thing).__mro__ for s in getattr(c, "__slots__", ())]
            slots += getattr(thing, "__struct_fields__", ())
            inner = [getattr(thing, s) for s in slots if hasattr(thing, s)]
            inner += [*getattr(thing, "__dict__", {}).values()]
        for part in inner:
            self.walk(part)

    def __contains__(self, thing):
        return id(thing) in self.seen


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
class TestWhatStoppingDrops:
    def test_the_clients_key(self, choice):
        parties = Parties(**choice)
        client = parties.ann
        client.encrypt(table(1))
        key, secret = client._circuit._key, client._circuit.secret
        assert key in Reached(client)
        assert secret in Reached(client)
        client.abort()
        left = Reached(client)
        assert key not in left
        assert secret not in left
        assert client._pending == {}

    def test_the_servers_model(self, choice):
        parties = Parties(**choice)
        server = parties.server
        request = parties.ann.encrypt(table(1))
        server.predict(request)
        account = next(iter(server._clients.values())).account
        weights = account._weights
        assert weights in Reached(server)
        server.abort()
        left = Reached(server)
        assert account not in left
        assert weights not in left


def test_no_key_file_of_a_dropped_key():
    client = Parties().ann
    client.abort()
    with pytest.raises(LocalProtocolError):
        client.to_json()


@each_case("kind", TABLES)
def test_roles_are_not_copied(kind, shared):
    it = role(shared, kind)
    for clone in (
        copy.copy,
        copy.deepcopy,
        *(lambda x, p=p: pickle.dumps(x, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
    ):
        reason = f"a {kind.__name__} holds secrets and cannot be copied or pickled"
        with pytest.raises(TypeError, match=reason):
            clone(it)


@each_case("kind", TABLES)
def test_roles_show_their_name_and_state(kind, shared):
    it = role(shared, kind)
    assert repr(it) == f"{kind.__name__}({it.name!r}, ready)"


def test_an_owner_shows_its_name():
    owner = Parties(encrypted=True).owner
    assert isinstance(owner, ModelOwner)
    assert repr(owner) == "ModelOwner('owner')"
