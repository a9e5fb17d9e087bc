"""Parties that compute on additive shares with a dealer: their roles, and their driver.

All parties do the same steps in the same order. In a step each sends its share of a masked value to
the others and hears theirs. Everything between steps is local. `Computation` drives the parties
that run here, over a carrier that brings their sealed messages.

Security: against parties that follow the protocol, any number of them but all, with a dealer that
colludes with nobody (`correlated_randomness`). Opened values are uniform and independent of the
data. So a party's view can be simulated from its own inputs, the shapes, and the values revealed to
it. A party that deviates can change results unseen; `mac_engine` is against such parties.

Sources: Beaver, CRYPTO 1991; Damgård, Fitzi, Kiltz, Nielsen, Toft, TCC 2006 (comparison by a masked
opening); Catrina, de Hoogh, SCN 2010.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from securecomp.core import entropy as entropy_
from securecomp.core import field
from securecomp.core.bits import Words
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import LocalProtocolError, ParameterError, ThresholdError
from securecomp.mpc import correlated_randomness
from securecomp.mpc.correlated_randomness import Correlations, Kind, Shape
from securecomp.mpc.roles import (
    ComputingSession,
    Member,
    Seed,
    ShareMessage,
    Speaker,
    check_names,
    input_share,
    vector_body,
)
from securecomp.protocol import wire
from securecomp.protocol.carrier import Carrier, T
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal
from securecomp.protocol.session import ID_BYTES

PROTOCOL = "sharing/computing/1"
DEALER = "dealer"


class Party(Member):
    """One computing party: its identity and its part of the correlations."""

    _part: Correlations | None = None

    @property
    def is_last(self) -> bool:
        """Whether this party gets the corrections."""
        return self.index == len(self._computing.names) - 1

    def seeded(self, seed: bytes) -> None:
        """Take the dealer's seed."""
        self._part = Correlations(correlated_randomness.seed_keys(seed, self._computing.id))

    def correlation(self, serial: int, kind: Kind, shape: Shape) -> list[Residues]:
        """Return this party's vectors of a correlation; the last party's await corrections.

        Raises:
            LocalProtocolError: The correlation was used before.
        """
        if self._part is None:
            raise ParameterError(f"{self.name}: the dealer's seed is not here")
        self._use_once("correlation", serial)
        waiting = correlated_randomness.CORRECTED[kind] if self.is_last else ()
        return correlated_randomness.expand(self._part, serial, kind, shape, waiting)

    def input_share(self, seed: bytes, size: int, serial: int) -> Residues:
        """Return the share to which a seed from an input's owner expands."""
        return input_share(seed, self._computing.id, size, serial)

    def _drop(self) -> None:
        self._part = None


class Dealer(Speaker):
    """Draws the parties' seeds and makes the corrections. Sees no data."""

    def __init__(
        self, computing: ComputingSession, identity: Identity, entropy: Entropy = entropy_.system
    ) -> None:
        super().__init__(computing, computing.dealer, identity, entropy=entropy)
        self.seeds = [entropy(correlated_randomness.SEED_BYTES) for _ in computing.names]
        self._parts = [
            Correlations(correlated_randomness.seed_keys(seed, computing.id)) for seed in self.seeds
        ]

    def supply(self, serial: int, kind: Kind, shape: Shape) -> list[Residues]:
        """Return the last party's corrections.

        Raises:
            LocalProtocolError: The correlation was dealt before.
        """
        self._use_once("correlation", serial)
        return correlated_randomness.corrections(self._held(), serial, kind, shape)

    def _held(self) -> list[Correlations]:
        """Return the parties' parts.

        Raises:
            LocalProtocolError: They were dropped.
        """
        if not self._parts:
            raise LocalProtocolError(f"{self.name}: the computation was aborted; begin another")
        return self._parts

    def _drop(self) -> None:
        self._parts = []
        self.seeds = []


class Lockstep:
    """Drives the parties that run here, one step after the other, and counts.

    Attributes:
        names: The computing parties.
        clients: Roles that share inputs and hear results without computing.
        rounds: Steps in which parties spoke to each other.
        dealer_seconds: Time that the dealer took.
    """

    protocol: ClassVar[str] = PROTOCOL
    party_role: ClassVar[type[Party]] = Party
    dealer_role: ClassVar[type[Dealer]] = Dealer
    client_role: ClassVar[type[Speaker]] = Speaker

    def __init__(
        self,
        names: Sequence[str],
        carrier: Carrier,
        journal: Callable[[str], Journal] | None,
        dealer: str = DEALER,
        clients: Sequence[str] = (),
    ) -> None:
        check_names(names, dealer, clients)
        if len(names) < 2:
            raise ThresholdError(2, len(names), "one party alone would see every value")
        self.names = tuple(names)
        self.rounds = 0
        self.dealer_seconds = 0.0
        self._carrier = carrier
        self._serial = self._step = 0
        entropy = carrier.entropy
        identities = {name: carrier.identity(name) for name in (*names, dealer, *clients)}
        keys = {name: identity.public for name, identity in identities.items()}
        computing = ComputingSession(names, keys, entropy(ID_BYTES), self.protocol, dealer, clients)
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
        self.clients = {
            name: self.client_role(
                computing,
                name,
                identities[name],
                journal=journal(name) if journal else None,
                entropy=entropy,
            )
            for name in clients
        }
        self.dealer = self.dealer_role(computing, identities[dealer], entropy)
        for party, seed in zip(self.parties, self.dealer.seeds, strict=True):
            data = self._tell(self.dealer, party, wire.encode_body(Seed(seed)), Seed.KIND)
            party.seeded(party.hear_seed(data, self.dealer.name, self._step))

    def _tell(
        self, sender: Speaker, recipient: Speaker, body: wire.Bytes, kind: int
    ) -> wire.Buffer:
        (data,) = sender.say([recipient.name], self._step, body, kind)
        return self._carrier.send(sender.name, recipient.name, data)

    def _party(self, name: str) -> Party:
        return self.parties[self.names.index(name)]

    def _speaker(self, name: str) -> Speaker:
        return self.clients.get(name) or self._party(name)

    def input(self, owner: str, residues: Residues) -> list[Residues]:
        """Share a vector that a party or a client has.

        The owner sends seeds to the other parties. The rest stays with a party that is the owner,
        and goes to the last party from a client.
        """
        self._step += 1
        sender, step = self._speaker(owner), self._step
        keeper = len(self.names) - 1 if owner in self.clients else self.names.index(owner)
        rest = residues.copy()
        shares: list[Residues] = []
        for party in self.parties:
            if party.index == keeper:
                shares.append(rest)
                continue
            seed = self._carrier.entropy(correlated_randomness.SEED_BYTES)
            data = self._tell(sender, party, wire.encode_body(Seed(seed)), Seed.KIND)
            share = party.input_share(party.hear_seed(data, owner, step), rest.size, step)
            field.subtract(rest, share, out=rest)
            shares.append(share)
        if owner in self.clients:
            last = self.parties[keeper]
            data = self._tell(sender, last, vector_body(rest, field.BITS), ShareMessage.KIND)
            shares[keeper] = last.said(data, owner, step, rest.size)
        return shares

    def correlation(self, kind: Kind, shape: Shape) -> list[list[Residues]]:
        """Return every party's vectors of a fresh correlation.

        The parties expand their seeds while the dealer works. Its message comes later.
        """
        self._serial += 1
        last = self.parties[-1]
        corrected = correlated_randomness.CORRECTED[kind]
        sizes = [size for vectors in correlated_randomness.sizes(kind, shape) for size in vectors]

        def deal() -> list[Residues]:
            start = time.perf_counter()
            heard = []
            made = self.dealer.supply(self._serial, kind, shape)
            for vector, correction in zip(corrected, made, strict=True):
                self._step += 1  # one a step, so that none can be put in another's place
                bits = 64 if correlated_randomness.is_words(kind, vector) else field.BITS
                data = self._tell(
                    self.dealer, last, vector_body(correction, bits), ShareMessage.KIND
                )
                heard.append(last.said(data, self.dealer.name, self._step, sizes[vector], bits))
            self.dealer_seconds += time.perf_counter() - start
            return heard

        def work(name: str) -> list[Residues]:
            if name == self.dealer.name:
                return deal()
            return self._party(name).correlation(self._serial, kind, shape)

        found = self._carrier.each(work, (self.dealer.name, *self.names), max(sizes))
        for vector, heard in zip(corrected, found[self.dealer.name], strict=True):
            found[last.name][vector] = heard
        return [found[name] for name in self.names]

    def each(self, work: Callable[[int], T], elements: int) -> list[T]:
        """Let every party do local work, by its index, and return the results."""
        found = self._carrier.each(work, range(len(self.names)), elements)
        return [found[index] for index in range(len(self.names))]

    def open(
        self,
        size: int,
        share: Callable[[int], Words],
        then: Callable[[int, Words], T],
        bits: int = field.BITS,
    ) -> list[T]:
        """Open a masked value to all parties: each sends its share to all others.

        Args:
            size: Number of elements.
            share: Makes a party's share, by the party's index. The array is overwritten.
            then: A party's local step, by its index, with the value as it heard it.
            bits: 64 for shared bit slices.

        Returns:
            Each party's result of the local step.
        """
        found = self._exchange(size, share, then, bits, self.names)
        return [found[name] for name in self.names]

    def reveal(self, shares: Sequence[Residues], recipients: Sequence[str]) -> Residues:
        """Open a value to some parties or clients."""
        size = shares[0].size
        heard = self._exchange(size, lambda i: shares[i].copy(), as_heard, field.BITS, recipients)
        return first(heard)

    def _next_round(self) -> None:
        self._step += 1
        self.rounds += 1
        self._carrier.next_round()

    def _exchange(
        self,
        size: int,
        share: Callable[[int], Words],
        then: Callable[[int, Words], T],
        bits: int,
        to: Sequence[str],
    ) -> dict[str, T]:
        """Open a value to some names; return each one's result of the local step."""
        self._next_round()
        post: dict[tuple[str, str], wire.Buffer] = {}
        shares: dict[str, Words] = {}

        def speak(name: str) -> None:
            party = self._party(name)
            shares[name] = share(party.index)
            others = [n for n in to if n != name]
            if others:
                body = vector_body(shares[name], bits)
                sealed = party.say(others, self._step, body, ShareMessage.KIND)
                for recipient, data in zip(others, sealed, strict=True):
                    post[name, recipient] = self._carrier.send(name, recipient, data)

        def listen(name: str) -> T:
            hearer = self._speaker(name)
            total = np.zeros(size, np.uint64) if name in self.clients else shares[name]
            for sender in self.names:
                if sender != name:
                    hearer.said(post[sender, name], sender, self._step, size, bits, total)
            return then(-1 if name in self.clients else self.names.index(name), total)

        self._carrier.each(speak, self.names, size)
        return self._carrier.each(listen, list(to), size)


def as_heard(_: int, value: Residues) -> Residues:
    """Return a value as it was heard."""
    return value


def first(heard: Mapping[str, Residues]) -> Residues:
    """Return the value that all heard, if all follow the protocol."""
    return next(iter(heard.values()))
