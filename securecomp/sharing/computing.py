"""The parties that compute on shares: roles without I/O, and what drives them in lockstep.

All parties do the same steps in the same order. In a step each says something to others (its share
of a masked value) and hears what they say; everything between is local. `Computation` drives the
parties that run here over a carrier that brings their sealed messages.

Security: against parties that follow the protocol, any number of them but all, with a dealer that
colludes with none (`dealing`). Values that are opened are uniform and independent of the data, so
that a party's view is simulated from its own inputs, the shapes, and what is revealed to it. A
party that does not follow the protocol can change results unseen; `authenticated` is for those.

Sources: Beaver, CRYPTO 1991; Damgård, Fitzi, Kiltz, Nielsen, Toft, TCC 2006 (comparison by a masked
opening); Catrina, de Hoogh, SCN 2010.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from securecomp import identity as identity_
from securecomp import wire
from securecomp.carrier import Carrier
from securecomp.core import entropy as entropy_
from securecomp.core import field, prg
from securecomp.core.bits import Words
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import (
    DecodeError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.identity import Identity
from securecomp.journal import Journal, MemoryJournal
from securecomp.roles import Role, State
from securecomp.session import ID_BYTES, Conversation
from securecomp.sharing import dealing
from securecomp.sharing.dealing import Kind, Part, Shape

PROTOCOL = "sharing/computing/1"
DEALER = "dealer"


class Seed(wire.Message, frozen=True):
    """Dealer to party, once: what its correlations are expanded from.
    Owner to party: what its share of an input is expanded from.
    """

    KIND: ClassVar[int] = 3
    seed: bytes


class Said(wire.Message, frozen=True):
    """One party's share of a masked or revealed value; or the dealer's correction."""

    KIND: ClassVar[int] = 4
    vector: wire.Vector


class Computing(Conversation):
    """Who computes, under which keys. `round` is the step that messages belong to.

    The dealer is a party of its own or, where there are others who never see what these open, one
    of those (`replicated`); "" is none.
    """

    def __init__(
        self,
        names: Sequence[str],
        keys: Mapping[str, bytes],
        session: bytes,
        protocol: str = PROTOCOL,
        dealer: str = DEALER,
    ) -> None:
        self.id = session
        self.round = 0
        self.names = tuple(names)
        self.keys = dict(keys)
        self.dealer = dealer
        everyone = (*names, dealer) if dealer else names
        facts = prg.join(protocol, session, *names, *(keys[n] for n in everyone))
        self._agreement = hashlib.sha256(facts).digest()

    @property
    def agreement(self) -> bytes:
        """SHA-256 of protocol, session, names and keys."""
        return self._agreement

    @property
    def largest_message(self) -> int:
        """Bytes that no message's body passes."""
        return wire.packed_size(wire.MAX_ELEMENTS, 64) + 4096


class Speaker(Role):
    """Seals what it says in a step, and opens what others say in it."""

    TRANSITIONS: ClassVar = {
        (State.READY, "say"): State.READY,
        (State.READY, "hear"): State.READY,
    }

    def __init__(
        self, computing: Computing, name: str, identity: Identity, entropy: Entropy
    ) -> None:
        super().__init__(name, State.READY)
        self._computing = computing
        self._identity = identity
        self._entropy = entropy

    def say(self, recipients: Sequence[str], step: int, body: wire.Bytes, kind: int) -> list[bytes]:
        """Return a body sealed for each recipient."""
        self.state = self._next("say")
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
            RemoteProtocolError: Of another step or sender, or malformed.
        """
        self.state = self._next("hear")
        c = self._computing
        c.round = step
        header, body = identity_.open_sealed(self._identity, c, c.agreement, data, self.name)
        if header.sender != sender or header.kind != kind.KIND:
            raise RemoteProtocolError(header.sender, "said something that is not awaited here")
        try:
            return wire.decode_body(body, kind)
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None

    def hear_seed(self, data: wire.Buffer, sender: str, step: int) -> bytes:
        """Return the seed that a party said in a step.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: As `hear`; also another length,
                or something behind it.
        """
        message, payload = self.hear(data, sender, step, Seed)
        if len(message.seed) != dealing.SEED_BYTES or len(payload):
            raise RemoteProtocolError(sender, f"its seed has not {dealing.SEED_BYTES} bytes")
        return message.seed


class Party(Speaker):
    """One computing party: its identity and its part of the correlations."""

    def __init__(
        self,
        computing: Computing,
        name: str,
        identity: Identity,
        *,
        journal: Journal | None = None,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(computing, name, identity, entropy)
        # Correlations of a session are never used by two processes, also after a crash.
        (journal or MemoryJournal()).spend(f"computing {computing.id.hex()} as {name}")
        self.index = computing.names.index(name)
        self.is_last = self.index == len(computing.names) - 1
        self._part: Part | None = None

    def seeded(self, seed: bytes) -> None:
        """Take the dealer's seed."""
        self._part = Part(dealing.seed_keys(seed, self._computing.id))

    def correlation(
        self, serial: int, kind: Kind, shape: Shape, corrections: Sequence[Residues]
    ) -> list[Residues]:
        """Return this party's vectors of a correlation; the last one's are corrected."""
        if self._part is None:
            raise ParameterError(f"{self.name}: the dealer's seed is not here")
        mine = dict(zip(dealing.CORRECTED[kind], corrections, strict=True)) if self.is_last else {}
        return dealing.expand(self._part, serial, kind, shape, mine)

    def input_share(self, seed: bytes, size: int, serial: int) -> Residues:
        """Return what a seed from an input's owner stands for."""
        return prg.expand(prg.derive(seed, "sharing input", self._computing.id, serial), size)

    def _drop(self) -> None:
        self._part = None


class Dealer(Speaker):
    """Draws the seeds and makes the corrections. Sees no data."""

    def __init__(
        self, computing: Computing, identity: Identity, entropy: Entropy = entropy_.system
    ) -> None:
        super().__init__(computing, computing.dealer, identity, entropy)
        self.seeds = [entropy(dealing.SEED_BYTES) for _ in computing.names]
        self._parts = [Part(dealing.seed_keys(seed, computing.id)) for seed in self.seeds]

    def supply(self, serial: int, kind: Kind, shape: Shape) -> list[Residues]:
        """Return the last party's corrections."""
        return dealing.corrections(self._parts, serial, kind, shape)

    def _drop(self) -> None:
        self._parts = []
        self.seeds = []


def vector_body(vector: Residues, bits: int) -> wire.Bytes:
    """Return the body that says a vector.

    Raises:
        RangeError: Too long for a message.
    """
    if vector.size > wire.MAX_ELEMENTS:
        raise RangeError(
            f"{vector.size} elements are said in one step, and a message holds "
            f"{wire.MAX_ELEMENTS}; compute on parts of the array"
        )
    return wire.encode_body(
        Said(wire.Vector(bits, vector.size)), vector.size, lambda a, b: vector[a:b], bits
    )


class Lockstep:
    """Drives the parties that run here, one step after the other, and counts.

    Attributes:
        names: The computing parties.
        rounds: Steps in which parties spoke to each other.
        dealer_seconds: What the dealer took.
    """

    protocol: ClassVar[str] = PROTOCOL
    party_role: ClassVar[type[Party]] = Party
    dealer_role: ClassVar[type[Dealer]] = Dealer

    def __init__(
        self,
        names: Sequence[str],
        carrier: Carrier,
        journal: Callable[[str], Journal] | None,
        dealer: str = DEALER,
    ) -> None:
        if isinstance(names, str) or len(set(names)) != len(names):
            raise ParameterError("the parties are several names, each once")
        if len(names) < 2:
            raise ThresholdError(2, len(names), "one party alone would see every value")
        for name in names:
            wire.check_name(name)
            if name == dealer:
                raise ParameterError(f"{dealer!r} is the dealer's name; rename the party")
        self.names = tuple(names)
        self.rounds = 0
        self.dealer_seconds = 0.0
        self._carrier = carrier
        self._serial = self._step = 0
        entropy = carrier.entropy
        identities = {name: carrier.identity(name) for name in (*names, dealer)}
        keys = {name: identity.public for name, identity in identities.items()}
        computing = Computing(names, keys, entropy(ID_BYTES), self.protocol, dealer)
        self.parties = [
            self.party_role(
                computing,
                name,
                identities[name],
                journal=journal(name) if journal else None,
                entropy=entropy,
            )
            for name in names
        ]
        self.dealer = self.dealer_role(computing, identities[dealer], entropy)
        for party, seed in zip(self.parties, self.dealer.seeds, strict=True):
            data = self._tell(self.dealer, party, wire.encode_body(Seed(seed)), Seed.KIND)
            party.seeded(party.hear_seed(data, self.dealer.name, self._step))

    def _tell(
        self, sender: Speaker, recipient: Speaker, body: wire.Bytes, kind: int
    ) -> wire.Buffer:
        (data,) = sender.say([recipient.name], self._step, body, kind)
        return self._carrier.send(sender.name, recipient.name, data)

    def input(self, owner: str, residues: Residues) -> list[Residues]:
        """Share a vector that one party has: seeds to the others, the rest stays."""
        self._step += 1
        mine = self.names.index(owner)
        rest = residues.copy()
        shares: list[Residues] = []
        for party in self.parties:
            if party.index == mine:
                shares.append(rest)
                continue
            seed = self._carrier.entropy(dealing.SEED_BYTES)
            body = wire.encode_body(Seed(seed))
            data = self._tell(self.parties[mine], party, body, Seed.KIND)
            heard = party.hear_seed(data, owner, self._step)
            share = party.input_share(heard, rest.size, self._step)
            field.subtract(rest, share, out=rest)
            shares.append(share)
        return shares

    def correlation(self, kind: Kind, shape: Shape) -> list[list[Residues]]:
        """Return every party's vectors of a fresh correlation."""
        start = time.perf_counter()
        self._serial += 1
        self._step += 1
        last = self.parties[-1]
        heard = []
        made = self.dealer.supply(self._serial, kind, shape)
        for vector, correction in zip(dealing.CORRECTED[kind], made, strict=True):
            bits = 64 if dealing.is_words(kind, vector) else field.BITS
            data = self._tell(self.dealer, last, vector_body(correction, bits), Said.KIND)
            message, payload = last.hear(data, self.dealer.name, self._step, Said)
            try:
                heard.append(wire.unpack(message.vector, payload, correction.size, bits))
            except DecodeError as error:
                raise RemoteProtocolError(self.dealer.name, str(error)) from None
        self.dealer_seconds += time.perf_counter() - start
        found: list[list[Residues]] = [[] for _ in self.parties]

        def expand(name: str) -> None:
            party = self.parties[self.names.index(name)]
            found[party.index] = party.correlation(self._serial, kind, shape, heard)

        self._carrier.each(expand, self.names, max(made[0].size, 1))
        return found

    def open(self, shares: Sequence[Residues]) -> Residues:
        """Tell all parties a value that hides nothing: each says its share to all others."""
        return first(self._exchange(shares, field.BITS, self.names))

    def open_words(self, shares: Sequence[Words]) -> Words:
        """The same for shared bit slices."""
        return first(self._exchange(shares, 64, self.names))

    def reveal(self, shares: Sequence[Residues], recipients: Sequence[str]) -> Residues:
        """Tell some parties a value."""
        return first(self._exchange(shares, field.BITS, recipients))

    def _exchange(
        self, shares: Sequence[Residues], bits: int, to: Sequence[str]
    ) -> dict[str, Residues]:
        """Return the value as each of its recipients heard it."""
        self._step += 1
        self.rounds += 1
        size = shares[0].size
        post: dict[tuple[str, str], wire.Buffer] = {}

        def speak(name: str) -> None:
            party = self.parties[self.names.index(name)]
            others = [n for n in to if n != name]
            if others:
                body = vector_body(shares[party.index], bits)
                sealed = party.say(others, self._step, body, Said.KIND)
                for recipient, data in zip(others, sealed, strict=True):
                    post[name, recipient] = self._carrier.send(name, recipient, data)

        def listen(name: str) -> Residues:
            party = self.parties[self.names.index(name)]
            total = shares[party.index].copy()
            for sender in self.names:
                if sender == name:
                    continue
                message, payload = party.hear(post[sender, name], sender, self._step, Said)
                try:
                    if bits == 64:
                        total ^= wire.unpack(message.vector, payload, size, 64)
                    else:
                        wire.add_packed(message.vector, payload, total)
                except DecodeError as error:
                    raise RemoteProtocolError(sender, str(error)) from None
            return total

        self._carrier.each(speak, self.names, size)
        return self._carrier.each(listen, list(to), size)


def first(heard: Mapping[str, Residues]) -> Residues:
    """Return what all heard, where all are taken to follow the protocol."""
    return next(iter(heard.values()))
