"""A hostile network between the roles of two sessions, and a model of what must happen.

The machine delivers, drops, duplicates, reorders, redirects, replays between sessions and rounds,
corrupts and splices messages, and stops roles. Whatever it does: a role takes a message exactly
when the model says so, a refused message changes nothing, a total that comes out is the exact one,
and what was not stopped can still be finished honestly.
"""

import numpy as np
import pytest
from cases import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from sharing.cast import Cast

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    LocalProtocolError,
    RemoteProtocolError,
)
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout
from securecomp.sharing import Contributor, Receiver, Server
from securecomp.sharing.private_sum import Deal, PartialSum

HOSPITALS = ("north", "south", "east")
REMOTE = (AuthenticationError, DecodeError, RemoteProtocolError)
KIND = {Server: Deal, Receiver: PartialSum}
OUTPUT = {Server: "publish", Receiver: "result"}


class Sent:
    """A message as it was made: for which role, by whom."""

    def __init__(self, place, kind, sender, recipient, data):
        self.place, self.kind, self.sender = place, kind, sender
        self.recipient, self.data = recipient, bytes(data)

    def __repr__(self):
        return f"{self.kind.__name__} of {self.sender} to {self.recipient} in {self.place}"


class Network(RuleBasedStateMachine):
    sent = Bundle("sent")

    @initialize(
        servers=st.sampled_from([("one", "two"), "all", ("south", "one")]),
        receivers=st.sampled_from([("registry",), ("north", "south", "east"), ("one", "east")]),
        twin=st.sampled_from(["session", "round", "layout"]),
    )
    def begin(self, servers, receivers, twin):
        if servers != ("one", "two"):
            receivers = tuple(r for r in receivers if r != "one") or ("east",)
        self.cast = cast = Cast(HOSPITALS, servers, receivers, length=3, bound=50)
        same_id = cast.agree(layout=Layout(3, 51), entropy=lambda size: cast.session.id)
        self.sessions = {
            "first": cast.session,
            "second": {
                "session": cast.agree,
                "round": lambda: cast.session.next(cast.layout),
                "layout": lambda: same_id,
            }[twin](),
        }
        self.values, self.roles, self.seen = {}, {}, {}
        self.honest = []  # every message that was made, for the honest end
        for number, (place, session) in enumerate(self.sessions.items()):
            for kind, names in (
                (Contributor, cast.contributors),
                (Server, cast.servers),
                (Receiver, cast.receivers),
            ):
                for name in names:
                    self.roles[place, kind, name] = cast.role(kind, name, session)
                    self.seen[place, kind, name] = set()
            for i, name in enumerate(cast.contributors):
                self.values[place, name] = np.array([7 * i - 50, i, 50 - number - i], np.int64)
        self.states = {key: role.state for key, role in self.roles.items()}

    def total(self, place):
        columns = zip(*(self.values[place, name].tolist() for name in HOSPITALS), strict=True)
        return [sum(column) for column in columns]

    def waited_for(self, kind):
        return set(self.cast.contributors if kind is Server else self.cast.servers)

    def listeners(self):
        return sorted(
            (key for key in self.roles if key[1] is not Contributor),
            key=lambda key: (key[0], key[1].__name__, key[2]),
        )

    def keep(self, place, kind, sender, messages):
        made = [Sent(place, kind, sender, to, data) for to, data in messages.items()]
        self.honest += made
        return multiple(*made)

    def refuses(self, key, data, errors):
        """The role must refuse this, and whatever it holds must stay the same."""
        role = self.roles[key]
        before = None if role._total is None else role._total.tolist()
        with pytest.raises(errors) as caught:
            role.receive(data)
        assert role.state is self.states[key]
        assert (None if role._total is None else role._total.tolist()) == before
        return caught.value

    # What the parties do.

    @rule(target=sent, place=st.sampled_from(["first", "second"]), name=st.sampled_from(HOSPITALS))
    def contribute(self, place, name):
        key = place, Contributor, name
        if self.states[key] is not State.READY:
            with pytest.raises(LocalProtocolError, match="is not allowed when done"):
                self.roles[key].contribute(self.values[place, name])
            return multiple()
        messages = self.roles[key].contribute(self.values[place, name])
        self.states[key] = State.DONE
        assert set(messages) == set(self.cast.servers)
        return self.keep(place, Deal, name, messages)

    @rule(target=sent, data=st.data())
    def output(self, data):
        return self.finish(data.draw(st.sampled_from(self.listeners())))

    def finish(self, key):
        place, kind, name = key
        role = self.roles[key]
        ready = self.states[key] is State.COLLECTING and self.seen[key] == self.waited_for(kind)
        if not ready:
            with pytest.raises(LocalProtocolError) as error:
                getattr(role, OUTPUT[kind])()
            if self.states[key] is State.COLLECTING:
                missing = self.waited_for(kind) - self.seen[key]
                assert all(absent in str(error.value) for absent in missing)
            return multiple()
        result = getattr(role, OUTPUT[kind])()
        self.states[key] = State.DONE
        if kind is Receiver:
            assert result.tolist() == self.total(place)
            return multiple()
        assert set(result) == set(self.cast.receivers)
        return self.keep(place, PartialSum, name, result)

    @rule(data=st.data(), now=st.sampled_from([*[False] * 30, True]))
    def abort(self, data, now):
        if now:  # seldom, or nothing would ever be finished
            key = data.draw(st.sampled_from(self.listeners()))
            self.roles[key].abort()
            self.states[key] = State.ABORTED

    # What the network does.

    @rule(message=sent)
    def deliver(self, message):
        """To whom it is for: taken once."""
        self.bring(message, message.place, message.recipient)

    @rule(target=sent, place=st.sampled_from(["first", "second"]))
    def progress(self, place):
        """One honest step of a whole session, or the machine would seldom see the second round."""
        made = []
        for name in HOSPITALS:
            if self.states[place, Contributor, name] is State.READY:
                made += self.contribute(place, name).values
        if made:
            return multiple(*made)
        for kind in (Server, Receiver):
            roles = [key for key in self.listeners() if key[:2] == (place, kind)]
            if all(self.states[key] is not State.COLLECTING for key in roles):
                continue
            for message in [m for m in self.honest if (m.place, m.kind) == (place, KIND[kind])]:
                self.bring(message, place, message.recipient)
            return multiple(*(m for key in roles for m in self.finish(key).values))
        return multiple()

    @rule(message=sent, data=st.data())
    def redirect(self, message, data):
        """To any role of any session."""
        key = data.draw(st.sampled_from(self.listeners()))
        self.bring(message, key[0], key[2], key[1])

    def bring(self, message, place, name, kind=None):
        kind = kind or {Deal: Server, PartialSum: Receiver}[message.kind]
        key = place, kind, name
        right = (message.place, message.kind, message.recipient) == (place, KIND[kind], name)
        if self.states[key] is not State.COLLECTING:
            self.refuses(key, message.data, LocalProtocolError)
        elif right and message.sender not in self.seen[key]:
            self.roles[key].receive(message.data)
            self.seen[key].add(message.sender)
        else:
            error = self.refuses(key, message.data, RemoteProtocolError)
            assert error.sender == message.sender

    @rule(message=sent, data=st.data())
    def corrupt(self, message, data):
        """Some bytes changed, to the right role, before it has the message or after."""
        changed = bytearray(message.data)
        for _ in range(data.draw(st.integers(1, 3))):
            changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
        if bytes(changed) != message.data:
            self.bring_garbage(message, bytes(changed))

    @rule(message=sent, data=st.data())
    def cut(self, message, data):
        size = data.draw(st.integers(0, len(message.data) - 1))
        self.bring_garbage(message, message.data[:size])

    @rule(message=sent, tail=st.binary(min_size=1, max_size=20))
    def extend(self, message, tail):
        self.bring_garbage(message, message.data + tail)

    @rule(one=sent, other=sent, data=st.data())
    def splice(self, one, other, data):
        """The beginning of one message, and the end of another."""
        at = data.draw(st.integers(1, min(len(one.data), len(other.data)) - 1))
        spliced = one.data[:at] + other.data[at:]
        if spliced not in (one.data, other.data):
            self.bring_garbage(one, spliced)

    @rule(message=sent, noise=st.binary(max_size=300))
    def invent(self, message, noise):
        self.bring_garbage(message, noise)

    def bring_garbage(self, message, garbage):
        kind = {Deal: Server, PartialSum: Receiver}[message.kind]
        key = message.place, kind, message.recipient
        collecting = self.states[key] is State.COLLECTING
        self.refuses(key, garbage, REMOTE if collecting else LocalProtocolError)

    # What must always hold.

    @invariant()
    @precondition(lambda self: hasattr(self, "roles"))
    def roles_are_where_the_model_says(self):
        for key, role in self.roles.items():
            assert role.state is self.states[key]
            if key[1] is Server and role.state is State.COLLECTING:
                assert set(role.missing) == self.waited_for(Server) - self.seen[key]

    def teardown(self):
        """The network turns honest: whatever was not stopped comes to its exact end."""
        if not hasattr(self, "roles"):
            return
        for place in self.sessions:
            for name in HOSPITALS:
                if self.states[place, Contributor, name] is State.READY:
                    self.contribute(place, name)
        for kind in (Server, Receiver):
            for message in [m for m in self.honest if m.kind is KIND[kind]]:
                key = message.place, kind, message.recipient
                if self.states[key] is State.COLLECTING and message.sender not in self.seen[key]:
                    self.bring(message, message.place, message.recipient)
            for key in [k for k in self.listeners() if k[1] is kind]:
                self.finish(key)
                if self.states[key] is State.COLLECTING:
                    # Only the sum of a server that was stopped can be missing now.
                    assert kind is Receiver
                    for name in self.waited_for(kind) - self.seen[key]:
                        assert self.states[key[0], Server, name] is State.ABORTED


class LongNetwork(Network):
    pass


Network.TestCase.settings = examples(120, stateful_step_count=60)
LongNetwork.TestCase.settings = settings(max_examples=1000, stateful_step_count=100)
TestNetwork = Network.TestCase
TestLongNetwork = pytest.mark.slow(LongNetwork.TestCase)
