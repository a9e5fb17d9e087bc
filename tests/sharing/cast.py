"""A small cast for the tests of the private sum: hospitals, servers, and one who cheats."""

import hashlib
import itertools

import numpy as np
import pytest

from securecomp.core import field
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Layout, Session
from securecomp.sharing import Contributor, Receiver, Server

HOSPITALS = ("north", "south", "east")
SERVERS = ("one", "two", "three")
CASTS = {
    "three servers": {},
    "two servers": {"servers": ("one", "two")},
    "more servers than hospitals": {"servers": ("one", "two", "three", "four", "five")},
    "every hospital is a server": {"servers": "all"},
    "some hospitals are servers": {"servers": ("south", "one", "north")},
    "another receiver": {"receivers": ("registry",)},
    "a server that receives": {"receivers": ("one", "north")},
    "one vector of nothing": {"length": 0},
    "one number": {"length": 1},
    "two hospitals": {"contributors": ("north", "south"), "servers": "all"},
}


def bug(reason):
    """What is wrong now. A test that passes then must lose this mark."""
    return pytest.mark.xfail(strict=True, reason=reason)


def stream(seed):
    """Entropy that is the same in every run: call i gives SHAKE-256 of "seed/i"."""
    calls = itertools.count()

    def draw(size):
        return hashlib.shake_256(f"{seed}/{next(calls)}".encode()).digest(size)

    return draw


class Cast:
    """Parties with keys, and sessions among them."""

    def __init__(
        self,
        contributors=HOSPITALS,
        servers=SERVERS,
        receivers=None,
        *,
        length=4,
        bound=1000,
        seed="cast",
    ):
        self.contributors = tuple(contributors)
        self.servers = self.contributors if servers == "all" else tuple(servers)
        self.receivers = self.contributors if receivers is None else tuple(receivers)
        self.entropy = stream(seed)
        names = dict.fromkeys((*self.contributors, *self.servers, *self.receivers))
        self.identities = {name: Identity.generate(self.entropy) for name in names}
        self.layout = Layout(length, bound)
        self.session = self.agree()

    @property
    def keys(self):
        return {name: identity.public for name, identity in self.identities.items()}

    def agree(self, **changes):
        """Return a session among the cast, with a new id."""
        facts = {
            "contributors": self.contributors,
            "servers": self.servers,
            "receivers": self.receivers,
            "keys": self.keys,
            "layout": self.layout,
            "limit": field.LIMIT,
            "minimum_servers": 2,
            "entropy": self.entropy,
        }
        return Session.create("sharing/sum/1", **(facts | changes))

    def role(self, kind, name, session=None):
        return kind(session or self.session, name, self.identities[name], self.entropy)

    def contributor(self, name, session=None):
        return self.role(Contributor, name, session)

    def server(self, name, session=None):
        return self.role(Server, name, session)

    def receiver(self, name, session=None):
        return self.role(Receiver, name, session)

    def values(self, session=None):
        """One vector a contributor: multiples of its place, so that every share of them counts."""
        length = (session or self.session).layout.length
        start = np.arange(length, dtype=np.int64) % 50 - 25
        return {name: start * (i + 1) for i, name in enumerate(self.contributors)}

    def total(self, values):
        """The total in Python ints."""
        return [sum(column) for column in zip(*(v.tolist() for v in values.values()), strict=True)]

    def deals(self, values=None, session=None):
        """Every contributor's messages: sender -> server -> bytes."""
        values = self.values(session) if values is None else values
        return {n: self.contributor(n, session).contribute(values[n]) for n in self.contributors}

    def partials(self, deals, session=None):
        """Every server's messages: server -> receiver -> bytes."""
        published = {}
        for name in self.servers:
            server = self.server(name, session)
            for messages in deals.values():
                server.receive(messages[name])
            published[name] = server.publish()
        return published

    def received(self, name, partials):
        """A receiver that got every server's sum."""
        receiver = self.receiver(name)
        for messages in partials.values():
            receiver.receive(messages[name])
        return receiver

    def seal(self, kind, sender, recipient, body, session=None):
        """What a party with a good key can send: a body of its choice."""
        session = session or self.session
        header = session.header(kind, sender, recipient, session.agreement)
        body = np.frombuffer(body, np.uint8) if isinstance(body, bytes) else body
        return identities.seal(self.identities[sender], session, header, body, self.entropy)

    def open(self, data, recipient, kind, session=None):
        """What a recipient finds in a message: (message, payload)."""
        session = session or self.session
        _, body = identities.open_sealed(
            self.identities[recipient], session, session.agreement, data, recipient
        )
        return wire.decode_body(body, kind)


def vector(length=4):
    """What a message says of its vector."""
    return wire.Vector(field.BITS, length)


def vector_body(message, residues):
    """The body of a message that carries these residues, canonical or not."""
    array = np.array(residues, np.uint64)
    return wire.encode_body(message, array.size, lambda start, stop: array[start:stop])


def flipped(data, position, mask=0x01):
    """The message with some bits of one byte changed."""
    changed = bytearray(data)
    changed[position] ^= mask
    return bytes(changed)
