"""Base roles for computing on shares; messages are numbered by step and sealed per recipient.

Parties compute. A dealer, if there is one, gives them correlations. Clients share inputs and hear
results, and take no part in the steps between.
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
    """Dealer to party, once: the seed of its correlations. Owner to party: the seed of a share."""

    KIND: ClassVar[int] = 3
    seed: bytes


class ShareMessage(wire.Message, frozen=True):
    """One party's share of a masked or revealed value, or a correction from the dealer."""

    KIND: ClassVar[int] = 4
    vector: wire.Vector


class ComputingSession(Conversation):
    """The agreement of a computation: its parties, dealer and clients, and their keys.

    `round` is the step to which messages belong. The dealer is a party of its own, or the third
    party of `replicated_engine`; "" stands for no dealer.
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
        if clients:  # one field more than any list of names and keys has
            facts.append(prg.join("clients", *clients, *(keys[n] for n in clients)))
        self._agreement = hashlib.sha256(prg.join(*facts)).digest()

    @property
    def agreement(self) -> bytes:
        """SHA-256 of protocol, session, names and keys."""
        return self._agreement

    @property
    def largest_message(self) -> int:
        """The largest size of a message's body, in bytes."""
        return wire.packed_size(wire.MAX_ELEMENTS, 64) + 4096


def input_share(seed: bytes, session: bytes, size: int, serial: int) -> Residues:
    """Return the share to which a seed from an input's owner expands."""
    return prg.expand(prg.derive(seed, "sharing input", session, serial), size)


class Speaker(Role):
    """A role that seals its messages of a step, and opens those of others."""

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
        """Take up a session. A party does so once.

        Raises:
            LocalProtocolError: The journal knows that this party took it up before.
        """
        super().__init__(name, State.READY)
        # A session's one-time randomness must not be used by two processes.
        (journal or MemoryJournal()).spend(f"computing {computing.id.hex()} as {name}")
        self._computing = computing
        self._identity = identity
        self._entropy = entropy
        self._heard: dict[tuple[str, int], int] = {}
        self._used: dict[str, int] = {}

    def _use_once(self, what: str, serial: int) -> None:
        """Refuse one-time randomness unless its number is a new one.

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
        """Open a party's message of a step.

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
        # Of two messages of one kind each could take the other's place, so there is one a step.
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
        """Return the vector that a party sent in a step.

        Args:
            data: The message.
            sender: The party that should have sent it.
            step: The step.
            size: Number of elements.
            bits: 64 for words.
            plus: An array to which residues are added, and with which words are exclusive-ored, in
                place.
            out: An array for the residues, instead of a new one.

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
        """Return the seed that a party sent in a step.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: As `hear`; also another length,
                or trailing bytes.
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
    """Return the body of a message with a vector.

    Raises:
        RangeError: Too long for a message.
    """
    body, words = empty_body(vector.size, bits)
    wire.pack(words, lambda start, stop: vector[start:stop], 0, vector.size, bits)
    return body


def empty_body(size: int, bits: int = field.BITS) -> tuple[wire.Bytes, wire.Words]:
    """Return the body of a message with a vector, and the words of it that `wire.pack` will fill.

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
    """Refuse a name that two roles or two parties have.

    Raises:
        ParameterError: The message names it.
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
