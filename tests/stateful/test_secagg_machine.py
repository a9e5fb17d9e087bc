"""A hostile network and a lying server, and models of what must happen.

The first machine delivers, drops, duplicates, reorders, replays between sessions, corrupts, and
stops clients; the server is honest. A role takes a message exactly when the model says so, a total
that comes out is the exact sum of the survivors, and what was not stopped is finished honestly.

In the second the server has its key and tells every client what it likes. No client answers twice,
and of nobody come back both the seed and the mask key.
"""

from contextlib import suppress

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
from secagg.cohort import BOX, SERVER, Cohort, changed

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    LocalProtocolError,
    RemoteProtocolError,
    SecureCompError,
    ThresholdError,
)
from securecomp.protocol.role import State
from securecomp.secagg.masking_messages import Boxes, Consents, Keys, Survivors

NAMES = ("c0", "c1", "c2", "c3")
REMOTE = (AuthenticationError, DecodeError, RemoteProtocolError)
PLACES = st.sampled_from(["first", "second"])
AWAITS = {
    State.COLLECTING_KEYS: "advertise",
    State.COLLECTING_SHARES: "share",
    State.COLLECTING_VECTORS: "mask",
    State.COLLECTING_CONSENTS: "consent",
    State.COLLECTING_UNMASKS: "unmask",
}
BEFORE = {
    "advertise": State.READY,
    "share": State.ADVERTISED,
    "mask": State.SHARED,
    "consent": State.MASKED,
    "unmask": State.MASKED,
}


class Sent:
    """A message as it was made: in which session, for which step, between whom."""

    def __init__(self, place, step, sender, recipient, data):
        self.place, self.step, self.sender = place, step, sender
        self.recipient, self.data = recipient, bytes(data)

    def __repr__(self):
        return f"{self.sender} to {self.recipient} for {self.step} in the {self.place}"


class Network(RuleBasedStateMachine):
    sent = Bundle("sent")

    @initialize(security=st.sampled_from(["semi-honest", "active"]), weight=st.sampled_from([0, 3]))
    def begin(self, security, weight):
        self.places = {
            place: Cohort(4, security=security, max_weight=weight, length=3, seed=place)
            for place in ("first", "second")
        }
        self.active = security == "active"
        self.client_states = {(p, n): State.READY for p in self.places for n in NAMES}
        self.server_states = dict.fromkeys(self.places, State.COLLECTING_KEYS)
        self.waiting = {place: set(NAMES) for place in self.places}
        self.taken = {place: set() for place in self.places}
        self.survivors = {}
        self.made = []
        self.lost = {place: set() for place in self.places}

    def state_before(self, step):
        return State.CONSENTED if step == "unmask" and self.active else BEFORE[step]

    def keep(self, *messages):
        self.made += messages
        return multiple(*messages)

    # What the parties do.

    def act(self, place, name, step, data=None):
        """A client does a step on a genuine message; the model knows what becomes of it."""
        cohort = self.places[place]
        if data is not None:
            cohort.inbox = {**cohort.inbox, name: data}
        answer = cohort.do(step, name)
        self.client_states[place, name] = cohort.clients[name].state
        return self.keep(Sent(place, step, name, SERVER, answer))

    @rule(target=sent, place=PLACES, name=st.sampled_from(NAMES))
    def advertise(self, place, name):
        if self.client_states[place, name] is not State.READY:
            with pytest.raises(LocalProtocolError, match=r"advertise\(\) is not allowed when"):
                self.places[place].clients[name].advertise()
            return multiple()
        return self.act(place, name, "advertise")

    @rule(target=sent, place=PLACES, early=st.sampled_from([*[False] * 20, True]))
    def end(self, place, early):
        """A deadline; seldom with too few, or nothing would ever be finished."""
        if early or len(self.taken[place]) > 2 or self.server_states[place] not in AWAITS:
            return self.close(place)
        return multiple()

    def close(self, place):
        cohort, state = self.places[place], self.server_states[place]
        if state not in AWAITS:
            with pytest.raises(LocalProtocolError, match=r"close\(\) is not allowed when"):
                cohort.server.close()
            return multiple()
        step, there = AWAITS[state], self.taken[place]
        if len(there) < 3:  # the threshold and the smallest cohort of four clients
            with pytest.raises(ThresholdError) as error:
                cohort.server.close()
            assert (error.value.needed, error.value.got) == (3, len(there))
            self.server_states[place] = State.ABORTED
            self.waiting[place] = set()
            return multiple()
        messages = cohort.server.close()
        self.server_states[place] = cohort.server.state
        if step == "mask":
            self.survivors[place] = sorted(there)
        if step == "unmask":
            self.check_total(place, messages)
            self.waiting[place] = set()
            return multiple()
        assert set(messages) == there
        self.waiting[place], self.taken[place] = set(there), set()
        following = cohort.steps[cohort.steps.index(step) + 1]
        return self.keep(*(Sent(place, following, SERVER, n, d) for n, d in messages.items()))

    def check_total(self, place, messages):
        cohort, survivors = self.places[place], self.survivors[place]
        result = cohort.server.result()
        assert list(result.survivors) == survivors
        assert result.values.tolist() == cohort.total(survivors)
        if cohort.weights:
            assert result.weight == sum(cohort.weights[n] for n in survivors)
        got = cohort.receiver().receive(messages[SERVER])
        assert got.values.tolist() == result.values.tolist()

    @rule(place=PLACES, name=st.sampled_from(NAMES), now=st.sampled_from([*[False] * 25, True]))
    def stop(self, place, name, now):
        if now:
            self.places[place].clients[name].abort()
            self.client_states[place, name] = State.ABORTED

    # What the network does.

    @rule(message=sent)
    def lose(self, message):
        """One that nobody brings again: its sender, or its recipient, has dropped out."""
        late = message.step in ("mask", "consent", "unmask")
        if late and len(self.lost[message.place] - {message.sender, message.recipient}) == 0:
            self.lost[message.place] |= {message.sender, message.recipient} - {SERVER}
            self.made = [m for m in self.made if m is not message]

    @rule(target=sent, message=sent)
    def deliver(self, message):
        """To whom it is for; taken once, at its step."""
        return self.bring(message, message.place, message.recipient)

    @rule(target=sent, place=PLACES)
    def progress(self, place):
        return self.honest(place)

    @rule(target=sent)
    def progress_everywhere(self):
        return multiple(*(m for place in self.places for m in self.honest(place).values))

    def honest(self, place):
        """One honest step of a whole session, or the machine would seldom come to the end."""
        made = []
        if self.server_states[place] not in AWAITS:
            return multiple()
        step = AWAITS[self.server_states[place]]
        for name in NAMES:
            if self.client_states[place, name] is not self.state_before(step):
                continue
            if step == "advertise":
                made += self.advertise(place, name).values
            for message in list(self.made):
                if (message.place, message.step, message.recipient) == (place, step, name):
                    made += self.bring(message, place, name).values
        for message in list(self.made):
            here = (message.place, message.step, message.recipient) == (place, step, SERVER)
            if here and message.sender in self.waiting[place] - self.taken[place]:
                self.bring(message, place, SERVER)
        return multiple(*made, *self.close(place).values)

    @rule(target=sent, message=sent, place=PLACES, to=st.sampled_from([*NAMES, SERVER]))
    def redirect(self, message, place, to):
        """To any role of any session."""
        return self.bring(message, place, to)

    def bring(self, message, place, to):
        right = (message.place, message.recipient) == (place, to)
        if to == SERVER:
            state = self.server_states[place]
            if state not in AWAITS:
                self.refused_by_server(place, message.data, LocalProtocolError)
            elif (
                right
                and AWAITS[state] == message.step
                and message.sender in self.waiting[place] - self.taken[place]
            ):
                self.places[place].take(message.data)
                self.taken[place].add(message.sender)
            else:
                error = self.refused_by_server(place, message.data, RemoteProtocolError)
                assert error.sender == message.sender
            return multiple()
        step = message.step if message.sender == SERVER else "share"
        if self.client_states[place, to] is not self.state_before(step):
            self.refused_by_client(place, to, step, message.data, LocalProtocolError)
        elif right and message.sender == SERVER:
            return self.act(place, to, step, message.data)
        else:
            error = self.refused_by_client(place, to, step, message.data, RemoteProtocolError)
            assert error.sender == message.sender
        return multiple()

    @rule(message=sent, data=st.data())
    def corrupt(self, message, data):
        changed_ = bytearray(message.data)
        for _ in range(data.draw(st.integers(1, 3))):
            changed_[data.draw(st.integers(0, len(changed_) - 1))] ^= data.draw(st.integers(1, 255))
        if bytes(changed_) != message.data:
            self.garbage(message, bytes(changed_))

    @rule(message=sent, data=st.data())
    def cut(self, message, data):
        size = data.draw(st.integers(0, len(message.data) - 1))
        self.garbage(message, message.data[:size] + data.draw(st.sampled_from([b"", b"\0"])))

    @rule(one=sent, other=sent, data=st.data())
    def splice(self, one, other, data):
        """The head of one message before the tail of another."""
        at = data.draw(st.integers(1, min(len(one.data), len(other.data)) - 1))
        mixed = one.data[:at] + other.data[at:]
        if mixed not in (one.data, other.data):
            self.garbage(one, mixed)

    def garbage(self, message, data):
        if message.recipient == SERVER:
            awaits = self.server_states[message.place] in AWAITS
            self.refused_by_server(message.place, data, REMOTE if awaits else LocalProtocolError)
        else:
            ready = self.client_states[message.place, message.recipient] is self.state_before(
                message.step
            )
            errors = REMOTE if ready else LocalProtocolError
            self.refused_by_client(message.place, message.recipient, message.step, data, errors)

    def refused_by_server(self, place, data, errors):
        server = self.places[place].server
        before = server._sum.count, server._sum._lanes.tolist(), server.missing
        with pytest.raises(errors) as caught:
            server.receive(data)
        assert (server._sum.count, server._sum._lanes.tolist(), server.missing) == before
        return caught.value

    def refused_by_client(self, place, name, step, data, errors):
        cohort = self.places[place]
        cohort.inbox, honest = {**cohort.inbox, name: data}, cohort.inbox
        with pytest.raises(errors) as caught:
            cohort.do(step, name)
        cohort.inbox = honest
        return caught.value

    @invariant()
    def states_are_the_models(self):
        for (place, name), state in getattr(self, "client_states", {}).items():
            assert self.places[place].clients[name].state is state
        for place, state in getattr(self, "server_states", {}).items():
            server = self.places[place].server
            assert server.state is state
            left = self.waiting[place] - self.taken[place] if state in AWAITS else set()
            # After the consents, who did not sign is still called missing.
            late = self.active and state is State.COLLECTING_UNMASKS
            assert left <= set(server.missing) if late else left == set(server.missing)

    @invariant()
    def nobody_answers_twice(self):
        for cohort in getattr(self, "places", {}).values():
            assert all(len(rows) == 1 for rows in cohort.revealed.values())

    def teardown(self):
        for place in getattr(self, "places", {}):
            while self.server_states[place] in AWAITS:
                self.honest(place)
            if self.server_states[place] is State.DONE:
                assert self.places[place].server.result().values.tolist() == self.places[
                    place
                ].total(self.survivors[place])


class Liar(RuleBasedStateMachine):
    """The server gives every client parts of what honest clients sent, each another part."""

    @initialize(security=st.sampled_from(["semi-honest", "active"]), clients=st.integers(3, 5))
    def begin(self, security, clients):
        self.cohort = cohort = Cohort(clients, security=security, length=2)
        self.active = security == "active"
        self.threshold, self.minimum = cohort.parameters.threshold, cohort.parameters.minimum
        self.keys, self.boxes, self.signatures = {}, {}, {}
        self.told, self.given, self.answers = {}, {}, {}
        for name in cohort:
            data = cohort.do("advertise", name)
            self.keys[name] = cohort.read(data)[1]
        self.state = dict.fromkeys(cohort, "share")

    def ready(self, *steps):
        return [n for n, at in getattr(self, "state", {}).items() if at in steps]

    def index(self, names):
        return sorted(self.cohort.names.index(n) for n in names)

    def attempt(self, step, name, message):
        """Ask a client; it may refuse. Returns what it answered."""
        cohort = self.cohort
        cohort.inbox = {**cohort.inbox, name: cohort.say(message, name)}
        with suppress(SecureCompError):
            data = cohort.do(step, name)
            following = cohort.steps.index(step) + 1
            self.state[name] = cohort.steps[following] if following < len(cohort.steps) else "over"
            return data
        return None

    @precondition(lambda self: self.ready("mask", "consent", "unmask"))
    @rule(data=st.data())
    def tell_one(self, data):
        """One client hears of any part of the others."""
        name = data.draw(st.sampled_from(self.ready("mask", "consent", "unmask")))
        part = data.draw(st.sets(st.sampled_from(self.cohort.names)))
        getattr(self, self.state[name])(name, part)

    @precondition(lambda self: self.ready("share", "mask", "consent", "unmask"))
    @rule(data=st.data(), tricks=st.booleans())
    def tell_all(self, data, tricks):
        """Everyone at the earliest step hears of one of two parts, nearly all of the others."""
        step = next(s for s in self.cohort.steps if self.ready(s))
        everyone = set(self.cohort.names)
        absent = st.sets(st.sampled_from(self.cohort.names), max_size=1) if tricks else st.just(())
        parts = [everyone.difference(data.draw(absent)) for _ in range(2)]
        for name in self.ready(step):
            part = data.draw(st.sampled_from(parts)) if tricks else everyone
            getattr(self, step)(name, part | {name})

    def share(self, name, part):
        there = sorted(part)
        entries = Keys(self.index(there), [self.keys[n] for n in there])
        answer = self.attempt("share", name, entries)
        if answer is not None:
            assert name in part
            assert len(part) >= max(self.threshold, self.minimum)
            message = self.cohort.read(answer)[1]
            for place, other in enumerate(message.recipients):
                box = message.boxes[place * BOX : (place + 1) * BOX]
                self.boxes[name, self.cohort.names[other]] = box

    def mask(self, name, part):
        senders = sorted(n for n in part if (n, name) in self.boxes)
        boxes = b"".join(self.boxes[n, name] for n in senders)
        if self.attempt("mask", name, Boxes(self.index(senders), boxes)) is not None:
            self.given[name] = {*senders, name}
            assert len(self.given[name]) >= max(self.threshold, self.minimum)

    def hear_of_survivors(self, step, name, part):
        answer = self.attempt(step, name, Survivors(self.index(part)))
        if answer is not None:
            assert name in part
            assert len(part) >= max(3, self.minimum, self.threshold)
            assert part <= self.given[name]
            self.told[name] = frozenset(part)
        return answer

    def consent(self, name, part):
        answer = self.hear_of_survivors("consent", name, part)
        if answer is not None:
            self.signatures[name] = self.cohort.read(answer)[1].signature

    def unmask(self, name, part):
        if self.active:
            signers = sorted(part & set(self.signatures))
            message = Consents(self.index(signers), [self.signatures[n] for n in signers])
            answer = self.attempt("unmask", name, message)
            if answer is not None:
                assert len(signers) >= self.threshold
                assert {self.told[n] for n in signers} == {self.told[name]}
        else:
            answer = self.hear_of_survivors("unmask", name, part)
        if answer is not None:
            message = self.cohort.read(answer)[1]
            assert {self.cohort.names[i] for i in message.owners} == self.given[name]
            self.answers[name] = self.told[name], self.given[name]
            self.cohort.note(answer)

    @precondition(lambda self: self.active and self.ready("unmask"))
    @rule(data=st.data())
    def show_few_consents(self, data):
        """Each of them is good; there are too few."""
        name = data.draw(st.sampled_from(self.ready("unmask")))
        agreeing = {n for n in self.signatures if self.told[n] == self.told[name]}
        few = set(sorted(agreeing)[: self.threshold - 1])
        self.unmask(name, few)
        assert name not in self.answers

    @precondition(lambda self: self.ready("share"))
    @rule(data=st.data())
    def replace_a_key(self, data):
        """With a key of the server's own, or with another client's."""
        name = data.draw(st.sampled_from(self.ready("share")))
        victim = data.draw(st.sampled_from(self.cohort.names if self.active else [name]))
        other = data.draw(st.sampled_from([n for n in self.cohort if n != victim]))
        own = changed(self.keys[victim], mask_key=bytes(31) + b"\x09")
        entries = dict(self.keys)
        entries[victim] = data.draw(st.sampled_from([own, self.keys[other]]))
        message = Keys(self.index(entries), [entries[n] for n in sorted(entries)])
        assert self.attempt("share", name, message) is None

    @precondition(lambda self: self.ready("over"))
    @rule(data=st.data())
    def ask_again(self, data):
        name = data.draw(st.sampled_from(self.ready("over")))
        part = data.draw(st.sets(st.sampled_from(self.cohort.names))) | {name}
        message = Survivors(self.index(part))
        if self.active:
            signers = sorted(self.signatures)
            message = Consents(self.index(signers), [self.signatures[n] for n in signers])
        assert self.attempt("unmask", name, message) is None

    @invariant()
    def both_secrets_of_nobody(self):
        cohort = getattr(self, "cohort", None)
        if cohort is None:
            return
        assert all(len(rows) == 1 for rows in cohort.revealed.values())
        for owner in cohort:
            seeds = [n for n, (told, given) in self.answers.items() if owner in given & told]
            keys = [n for n, (told, given) in self.answers.items() if owner in given - told]
            assert not (len(seeds) >= self.threshold and len(keys) >= self.threshold)
        if self.active:
            assert len({told for told, _ in self.answers.values()}) <= 1


TestNetwork = Network.TestCase
TestNetwork.settings = examples(150, stateful_step_count=40)
TestLiar = Liar.TestCase
TestLiar.settings = examples(150, stateful_step_count=40)


@pytest.mark.slow
class TestNetworkForLonger(Network.TestCase):
    settings = settings(max_examples=1000, stateful_step_count=80)


@pytest.mark.slow
class TestLiarForLonger(Liar.TestCase):
    settings = settings(max_examples=1500, stateful_step_count=60)
