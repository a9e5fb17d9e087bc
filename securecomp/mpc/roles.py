"""How parties that compute on shares speak: what they say in a step, sealed for whom it is for.

Parties compute; a dealer, where there is one, gives them correlations; clients share inputs and
hear results, and take no part in the steps between.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import ClassVar

from securecomp.core import entropy as entropy_
from securecomp.core import field, prg
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import (
    DecodeError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
)
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal, MemoryJournal
from securecomp.protocol.role import Role, State
from securecomp.protocol.session import Conversation


class Seed(wire.Message, frozen=True):
    """Dealer to party, once: what its correlations are expanded from.
    Owner to party: what its share of an input is expanded from.
    """

    KIND: ClassVar[int] = 3
    seed: bytes


class ShareMessage(wire.Message, frozen=True):
    """One party's share of a masked or revealed value; or the dealer's correction."""

    KIND: ClassVar[int] = 4
    vector: wire.Vector


class ComputingSession(Conversation):
    """Who computes, for whom, under which keys. `round` is the step that messages belong to.

    The dealer is a party of its own or, where there are others who never see what these open, one
    of those (`replicated`); "" is none.
    """

    def __init__(
        self,
        names: Sequence[str],
        keys: Mapping[str, bytes],
        session: bytes,
        protocol: str,
        dealer: str,
        clients: Sequence[str] = (),
    ) -> None:
        self.id = session
        self.round = 0
        self.names = tuple(names)
        self.keys = dict(keys)
        self.dealer = dealer
        everyone = (*names, dealer) if dealer else names
        facts: list[str | bytes] = [protocol, session, *names, *(keys[n] for n in everyone)]
        if clients:  # one field more, which no list of names and keys has
            facts.append(prg.join("clients", *clients, *(keys[n] for n in clients)))
        self._agreement = hashlib.sha256(prg.join(*facts)).digest()

    @property
    def agreement(self) -> bytes:
        """SHA-256 of protocol, session, names and keys."""
        return self._agreement

    @property
    def largest_message(self) -> int:
        """Bytes that no message's body passes."""
        return wire.packed_size(wire.MAX_ELEMENTS, 64) + 4096


def input_share(seed: bytes, session: bytes, size: int, serial: int) -> Residues:
    """Return what a seed from an input's owner stands for."""
    return prg.expand(prg.derive(seed, "sharing input", session, serial), size)


class Speaker(Role):
    """Seals what it says in a step, and opens what others say in it."""

    TRANSITIONS: ClassVar = {
        (State.READY, "say"): State.READY,
        (State.READY, "hear"): State.READY,
    }

    def __init__(
        self,
        computing: ComputingSession,
        name: str,
        identity: Identity,
        *,
        journal: Journal | None = None,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Take a session up, which a party does once.

        Raises:
            LocalProtocolError: The journal knows that this party took it up before.
        """
        super().__init__(name, State.READY)
        # One-time randomness of a session is never used by two processes.
        (journal or MemoryJournal()).spend(f"computing {computing.id.hex()} as {name}")
        self._computing = computing
        self._identity = identity
        self._entropy = entropy
        self._heard: dict[tuple[str, int], int] = {}
        self._used: dict[str, int] = {}

    def _use_once(self, what: str, serial: int) -> None:
        """Refuse one-time randomness whose number does not grow.

        Raises:
            LocalProtocolError: It was used before.
        """
        if serial <= self._used.get(what, 0):
            raise LocalProtocolError(f"{self.name}: {what} {serial} was used before")
        self._used[what] = serial

    def say(self, recipients: Sequence[str], step: int, body: wire.Bytes, kind: int) -> list[bytes]:
        """Return a body sealed for each recipient."""
        self.state = self._next("say")
        return self._sealed(recipients, step, body, kind)

    def _sealed(
        self, recipients: Sequence[str], step: int, body: wire.Bytes, kind: int
    ) -> list[bytes]:
        c = self._computing
        sealed = []
        for name in recipients:
            header = wire.Header(kind, c.id, step, c.agreement, self.name, name)
            sealed.append(identity_.seal(self._identity, c, header, body, self._entropy))
        return sealed  # type: ignore[return-value]

    def hear(
        self, data: wire.Buffer, sender: str, step: int, kind: type[wire.M]
    ) -> tuple[wire.M, memoryview]:
        """Open what a party said in a step.

        Raises:
            DecodeError, AuthenticationError: Not a message, or not this sender's.
            RemoteProtocolError: Of another step or sender, malformed, or heard before.
        """
        self.state = self._next("hear")
        return self._opened_message(data, sender, step, kind)

    def _opened_message(
        self, data: wire.Buffer, sender: str, step: int, kind: type[wire.M]
    ) -> tuple[wire.M, memoryview]:
        c = self._computing
        c.round = step
        header, body = identity_.open_sealed(self._identity, c, c.agreement, data, self.name)
        if header.sender != sender or header.kind != kind.KIND:
            raise RemoteProtocolError(header.sender, "said something that is not awaited here")
        # Two messages alike could be put in each other's place: there is one a step.
        if self._heard.get((sender, kind.KIND), -1) >= step:
            raise RemoteProtocolError(sender, "said twice what is said once in a step")
        self._heard[sender, kind.KIND] = step
        try:
            return wire.decode_body(body, kind)
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None

    def said(
        self,
        data: wire.Buffer,
        sender: str,
        step: int,
        size: int,
        bits: int = field.BITS,
        plus: Residues | None = None,
        out: Residues | None = None,
    ) -> Residues:
        """Return the vector that a party said in a step.

        Args:
            data: The message.
            sender: Who should have said it.
            step: In which step.
            size: Number of elements.
            bits: 64 for words.
            plus: What to add it to, in place, or to exclusive-or with words.
            out: Where to put residues, if not in a new array.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: As `hear`; also another length,
                or residues that are not canonical.
        """
        message, payload = self.hear(data, sender, step, ShareMessage)
        try:
            if plus is None:
                return wire.unpack(message.vector, payload, size, bits, out)
            if bits == 64:
                plus ^= wire.unpack(message.vector, payload, size, bits)
            else:
                wire.add_packed(message.vector, payload, plus)
            return plus
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None

    def hear_seed(self, data: wire.Buffer, sender: str, step: int) -> bytes:
        """Return the seed that a party said in a step.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: As `hear`; also another length,
                or something behind it.
        """
        message, payload = self.hear(data, sender, step, Seed)
        if len(message.seed) != prg.SEED_BYTES or len(payload):
            raise RemoteProtocolError(sender, f"its seed has not {prg.SEED_BYTES} bytes")
        return message.seed


class Member(Speaker):
    """A speaker that computes.

    Attributes:
        index: Its place among the parties.
    """

    def __init__(
        self,
        computing: ComputingSession,
        name: str,
        identity: Identity,
        *,
        journal: Journal | None = None,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(computing, name, identity, journal=journal, entropy=entropy)
        self.index = computing.names.index(name)


def vector_body(vector: Residues, bits: int) -> wire.Bytes:
    """Return the body that says a vector.

    Raises:
        RangeError: Too long for a message.
    """
    body, words = empty_body(vector.size, bits)
    wire.pack(words, lambda start, stop: vector[start:stop], 0, vector.size, bits)
    return body


def empty_body(size: int, bits: int = field.BITS) -> tuple[wire.Bytes, wire.Words]:
    """Return the body that says a vector, and the words in it that `wire.pack` has yet to write.

    Raises:
        RangeError: Too long for a message.
    """
    if size > wire.MAX_ELEMENTS:
        raise RangeError(
            f"{size} elements are said in one step, and a message holds "
            f"{wire.MAX_ELEMENTS}; compute on parts of the array"
        )
    return wire.empty_body(ShareMessage(wire.Vector(bits, size)), size, bits)


def check_names(names: Sequence[str], dealer: str, clients: Sequence[str]) -> None:
    """Refuse names that two roles, or two parties, would share.

    Raises:
        ParameterError: It says which.
    """
    for several, what in ((names, "parties"), (clients, "clients")):
        if isinstance(several, str) or len(set(several)) != len(several):
            raise ParameterError(f"the {what} are several names, each once")
    for name in (*names, *clients):
        wire.check_name(name)
        if name == dealer:
            raise ParameterError(f"{dealer!r} is the dealer's name; rename the party")
    both = sorted(set(names) & set(clients))
    if both:
        raise ParameterError(f"{both[0]!r} computes, and is a client too; a party needs no client")
