"""Contributors, an aggregator, a key holder and receivers, each of whom may lie."""

import hashlib
from functools import cache

from sharing.cast import flipped, stream

from securecomp.paillier import Aggregator, Contributor, KeyHolder, Receiver, encrypt, sum_session
from securecomp.paillier.encoding import join_ciphertexts
from securecomp.paillier.sum_session import DecryptedTotal, EncryptedTotal, Upload
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import MemoryJournal
from securecomp.protocol.session import Layout, Session

__all__ = ["Meeting", "flipped", "stream"]

ADDER, HOLDER = "adder", "holder"
NAMES = ("north", "south", "east", "west")
LIMIT = (1 << 62) - 1
KINDS = {kind.KIND: kind for kind in (Upload, EncryptedTotal, DecryptedTotal)}


@cache
def identity(name):
    """A party's long-term key; the same in all sessions, which saves its exchanges."""
    return Identity(stream(f"identity of {name}")(32))


class Meeting:
    """A session with everyone in it. Everybody's identity is known, so that anybody can lie."""

    def __init__(
        self,
        private,
        names=NAMES,
        *,
        length=30,
        bound=1000,
        minimum=None,
        blind=False,
        receivers=("north", "registry"),
        seed="meeting",
    ):
        self.private, self.public = private, private.public
        self.names = tuple(names)
        self.receivers = tuple(receivers)
        self.entropy = stream(seed)
        self.layout = Layout(length, bound)
        self.terms = sum_session.terms(len(self.names), minimum=minimum, blind=blind)
        self.session = self.agree()
        self.values = {
            name: [(-1) ** (i + k) * (bound - i % (bound + 1)) for i in range(length)]
            for k, name in enumerate(self.names)
        }

    def agree(self, **changes):
        """A session with a new id, or with whatever is different."""
        parties = dict.fromkeys((*self.names, ADDER, HOLDER, *self.receivers))
        facts = {
            "contributors": self.names,
            "servers": (ADDER, HOLDER),
            "receivers": self.receivers,
            "keys": {name: identity(name).public for name in parties},
            "layout": self.layout,
            "limit": LIMIT,
            "minimum_servers": 2,
            "terms": self.terms,
            "entropy": self.entropy,
            "protocol": sum_session.protocol_name(self.public),
        }
        facts |= changes
        return Session.create(facts.pop("protocol"), **facts)

    def contributor(self, name, session=None, key=None, **options):
        key = key or self.public
        options = {"entropy": self.entropy, "journal": MemoryJournal()} | options
        return Contributor(session or self.session, name, identity(name), key, **options)

    def aggregator(self, session=None, key=None, name=ADDER, key_holder=HOLDER, **options):
        key = key or self.public
        options = {"entropy": self.entropy} | options
        session = session or self.session
        return Aggregator(session, name, identity(name), key, key_holder=key_holder, **options)

    def holder(self, session=None, key=None, name=HOLDER, journal=None):
        key = key or self.private
        return KeyHolder(
            session or self.session,
            name,
            identity(name),
            key,
            journal=journal,
            entropy=self.entropy,
        )

    def receiver(self, name="registry", session=None):
        return Receiver(session or self.session, name, identity(name), entropy=self.entropy)

    def uploads(self, names=None, session=None):
        names = self.names if names is None else names
        return {n: self.contributor(n, session).contribute(self.values[n]) for n in names}

    def aggregate(self, names=None):
        """What an honest aggregator sends of some contributors."""
        aggregator = self.aggregator()
        for data in self.uploads(names).values():
            aggregator.receive(data)
        return aggregator.close()

    def total(self, names=None):
        """The sum in Python ints."""
        names = self.names if names is None else names
        return [sum(column) for column in zip(*(self.values[n] for n in names), strict=True)]

    def read(self, data, session=None):
        """What a message says, with the recipient's key."""
        session = session or self.session
        recipient = wire.split_header(data)[0].recipient
        header, body = identities.open_sealed(
            identity(recipient), session, session.agreement, data, recipient
        )
        return wire.decode_body(body, KINDS[header.kind])[0]

    def say(self, message, sender, recipient, session=None):
        """A properly sealed message of one's choice."""
        session = session or self.session
        header = session.header(message.KIND, sender, recipient, session.agreement)
        body = wire.encode_body(message)
        return identities.seal(identity(sender), session, header, body, self.entropy)

    def forge(self, ciphertexts, sender="south", signer=None, session=None, signs=None):
        """An upload of these ciphertexts, properly signed or not."""
        data = ciphertexts if isinstance(ciphertexts, bytes) else self.join(ciphertexts)
        agreement = (session or self.session).agreement
        statement = signs or (agreement, sender, hashlib.sha256(data).digest())
        signature = identity(signer or sender).sign("paillier upload", *statement)
        return self.say(Upload(data, signature), sender, ADDER, session)

    def join(self, ciphertexts):
        return join_ciphertexts(self.public, ciphertexts)

    def ciphertexts(self, data):
        """The ciphertexts of an upload or an aggregate."""
        blob, size = self.read(data).ciphertexts, self.public.ciphertext_bytes
        return [int.from_bytes(blob[i : i + size]) for i in range(0, len(blob), size)]

    def opened(self, data):
        """What the key holder finds in an upload or an aggregate, modulo n."""
        return [int(self.private.raw_decrypt(c)) for c in self.ciphertexts(data)]

    def encrypted(self, values):
        """Ciphertexts of a vector in the session's layout."""
        return encrypt(
            self.public, values, bound=self.layout.bound, additions=len(self.names)
        ).ciphertexts
