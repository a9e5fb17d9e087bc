"""Clients and a server of a secure aggregation, step by step, and a server that lies."""

from functools import cache

import numpy as np
from sharing.cast import bug, flipped, stream

from securecomp import secagg
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import Client, Parameters, Receiver, Server
from securecomp.secagg.masking_messages import (
    Advertise,
    Boxes,
    Consent,
    Consents,
    Keys,
    Masked,
    Shares,
    Survivors,
    Unmask,
    UnmaskedTotal,
)

__all__ = ["Cohort", "bug", "flipped", "stream"]

LIMIT = (1 << 62) - 1
LIMBS = 5  # residues of 7 bytes for a secret of 32
BOX = 96  # two shares of five residues, and a tag of 16 bytes
SERVER = "server"
STEPS = ("advertise", "share", "mask", "consent", "unmask")
ANSWERS = {
    "advertise": Advertise,
    "share": Shares,
    "mask": Masked,
    "consent": Consent,
    "unmask": Unmask,
}
KINDS = {
    kind.KIND: kind for kind in (*ANSWERS.values(), Keys, Boxes, Survivors, Consents, UnmaskedTotal)
}


@cache
def identity(name):
    """A party's long-term key; it may be the same in all sessions, which saves its exchanges."""
    return Identity(stream(f"identity of {name}")(32))


def needed(clients, active):
    """The threshold of the complete graph, as the paper asks for it."""
    return 2 * clients // 3 + 1 if active else clients // 2 + 1


class Cohort:
    """A session with everyone in it, and the messages that wait for the clients.

    `identity` of the server is known, so that a test can read what the server reads (`read`) and
    say what it likes in the server's name (`say`).
    """

    def __init__(
        self,
        clients=4,
        *,
        length=4,
        bound=1000,
        seed="cohort",
        receivers=(SERVER,),
        parameters=None,
        journals=None,
        application=None,
        names=None,
        **choices,
    ):
        self.names = list(names or (f"c{i}" for i in range(clients)))
        self.seed = seed
        parties = dict.fromkeys([*self.names, SERVER, *receivers])
        self.identities = {name: identity(name) for name in parties}
        self.parameters = parameters or Parameters.choose(len(self.names), bound, **choices)
        self.session = self.agree(Layout(length, bound), receivers)
        application = application or {}
        self.clients = {
            name: Client(
                self.session,
                name,
                self.identities[name],
                journal=(journals or {}).get(name),
                application=application.get(name, b""),
                entropy=stream(f"{seed}/{name}"),
            )
            for name in self.names
        }
        self.server = Server(
            self.session, SERVER, self.identities[SERVER], entropy=stream(f"{seed}/server")
        )
        self.entropy = stream(f"{seed}/liar")
        self.inbox = {}
        self.values = self.draw()
        self.weights = None
        if self.parameters.max_weight:
            self.weights = {n: i % (self.parameters.max_weight + 1) for i, n in enumerate(self)}
        self.revealed = {}

    def __iter__(self):
        return iter(self.names)

    def agree(self, layout, receivers=(SERVER,), **changes):
        """Return a session of the cohort with a new id, or with whatever is different."""
        facts = {
            "contributors": self.names,
            "servers": (SERVER,),
            "receivers": receivers,
            "keys": {name: identity.public for name, identity in self.identities.items()},
            "layout": layout,
            "limit": LIMIT,
            "terms": self.parameters.terms(),
            "entropy": stream(f"{self.seed}/session"),
        }
        return Session.create(secagg.PROTOCOL, **(facts | changes))

    def draw(self, seed=0):
        """Vectors all over the bounds, both ends included."""
        bound, length = self.session.layout.bound, self.session.layout.length
        source = stream(f"{self.seed}/values {seed}")
        drawn = {}
        for name in self.names:
            vector = [int.from_bytes(source(9)) % (2 * bound + 1) - bound for _ in range(length)]
            vector[:1] = [bound] * min(1, length)
            vector[1:2] = [-bound] * min(1, length - 1) if length > 1 else []
            drawn[name] = np.array(vector, np.int64)
        return drawn

    def total(self, names):
        """The plaintext sum in Python ints, weighted where the session is."""
        weight = self.weights or dict.fromkeys(self.names, 1)
        rows = [[weight[n] * v for v in self.values[n].tolist()] for n in names]
        return [sum(column) for column in zip(*rows, strict=True)]

    # The honest way.

    def do(self, step, name):
        """Let a client do a step on the message that waits for it; return what it sends."""
        client = self.clients[name]
        if step == "advertise":
            return client.advertise()
        if step == "mask":
            weight = self.weights[name] if self.weights else None
            return client.mask(self.inbox[name], self.values[name], weight)
        return getattr(client, step)(self.inbox[name])

    def step(self, step, absent=()):
        """Let everyone who is there do a step, and close it. Returns the next messages."""
        for name in self.names if step == "advertise" else list(self.inbox):
            if name not in absent:
                self.take(self.do(step, name))
        self.inbox = self.server.close()
        return self.inbox

    def take(self, data):
        """Bring a message to the server, and note whose shares it now has."""
        self.server.receive(data)
        self.note(data)

    def note(self, data):
        """Write down the shares that a message to the server reveals."""
        sender, message, payload = self.read(data)
        if isinstance(message, Unmask):
            for owner, row in zip(message.owners, self.shares(message, payload), strict=True):
                self.revealed.setdefault((sender, self.names[owner]), []).append(row)

    @property
    def steps(self):
        return [s for s in STEPS if s != "consent" or self.parameters.active]

    def reach(self, step, drops=None):
        """Do everything before a step. `drops`: step to the clients absent from it on."""
        for earlier in self.steps[: self.steps.index(step)]:
            self.step(earlier, (drops or {}).get(earlier, ()))
        return self.inbox

    def finish(self, drops=None):
        """Do all that is left of the round, and return the server's result."""
        state = self.server.state.value
        done = {
            "collecting keys": 0,
            "collecting key shares": 1,
            "collecting masked vectors": 2,
            "collecting consents": 3,
            "collecting unmasking shares": len(self.steps) - 1,
        }[state]
        for step in self.steps[done:]:
            self.step(step, (drops or {}).get(step, ()))
        return self.server.result()

    def receiver(self, name=SERVER):
        return Receiver(self.server._session, name, self.identities[name])

    # What the server can do with its key.

    @property
    def now(self):
        """The session as of the server's round."""
        return self.server._session

    def read(self, data, session=None):
        """Open any message from or to the server: (other party, message, payload)."""
        session = session or self.now
        header = wire.split_header(data)[0]
        _, body = identities.open_sealed(
            self.identities[SERVER], session, session.agreement, data, header.recipient
        )
        other = header.sender if header.recipient == SERVER else header.recipient
        return other, *wire.decode_body(body, KINDS[header.kind])

    def said(self, name):
        """What the message says that waits for a client."""
        return self.read(self.inbox[name])[1]

    def say(self, message, recipient, sender=SERVER, session=None, residues=(), bits=61):
        """Seal a message of one's choice with a party's own key."""
        session = session or self.now
        array = np.array(residues, np.uint64)
        source = (lambda a, b: array[a:b]) if array.size else None
        body = wire.encode_body(message, array.size, source, bits)
        header = session.header(message.KIND, sender, recipient, session.agreement)
        return identities.seal(self.identities[sender], session, header, body, self.entropy)

    def survivors(self, names, recipient):
        """Tell a client who is said to have survived."""
        indices = sorted(self.names.index(n) for n in names)
        return self.say(Survivors(indices), recipient)

    @staticmethod
    def shares(message, payload):
        """The rows of an `Unmask` message: one share of five residues for each owner."""
        flat = wire.unpack(message.shares, payload, LIMBS * len(message.owners))
        return flat.reshape(-1, LIMBS).tolist()


def changed(message, **fields):
    """A copy of a message with some fields replaced."""
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    return type(message)(**(values | fields))
