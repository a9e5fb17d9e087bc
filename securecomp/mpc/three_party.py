"""Three parties in a ring, each with its own key and its next neighbour's: role and driver.

`replicated_engine` explains their shares, and why these hide.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from securecomp.core import buffers, field, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import ParameterError
from securecomp.mpc.dealer_parties import Lockstep
from securecomp.mpc.engine import Value
from securecomp.mpc.roles import (
    ComputingSession,
    Member,
    Seed,
    ShareMessage,
    Speaker,
    check_names,
    empty_body,
    input_share,
    vector_body,
)
from securecomp.protocol import wire
from securecomp.protocol.carrier import Carrier, T
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal
from securecomp.protocol.session import ID_BYTES

PROTOCOL = "sharing/replicated/1"
PARTIES = 3
PIECES = 4
"""Pieces of a party's vector, so that threads can share the work."""
Purpose = Literal["zero", "input", "circuit"]
Part = Callable[[int, int, Residues], object]
"""Adds a range of elements to an array, given the range's start and stop."""
Local = Callable[[int], Part]
"""Gives a party's local result, by its index."""


class ReplicatedParty(Member):
    """One of three parties, with its own key and its next neighbour's."""

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
        self._seed = entropy(prg.SEED_BYTES)
        self._keys: tuple[bytes, bytes] | None = None

    def neighbour(self, places: int) -> str:
        """Return the name of the party some places after this one."""
        return self._computing.names[(self.index + places) % PARTIES]

    def offer(self) -> bytes:
        """Return this party's seed, sealed for the one before."""
        body = wire.encode_body(Seed(self._seed))
        return self.say([self.neighbour(-1)], 0, body, Seed.KIND)[0]

    def accept(self, data: wire.Buffer) -> None:
        """Take the seed of the party after this one."""
        after = self.neighbour(1)
        seed = self.hear_seed(data, after, 0)
        self._keys = (
            self._derive(self._seed, self.name, self.neighbour(-1)),
            self._derive(seed, after, self.name),
        )

    def _derive(self, seed: bytes, owner: str, other: str) -> bytes:
        return prg.derive(seed, "sharing replicated", self._computing.id, owner, other)

    def _stream(self, which: int, purpose: Purpose, step: int) -> bytes:
        if self._keys is None:
            raise ParameterError(f"{self.name}: its neighbour's seed is not here")
        return prg.derive(self._keys[which], f"replicated {purpose}", step)

    def stream(self, which: int, purpose: Purpose, step: int, size: int) -> Residues:
        """Return the stream of this party's own key (0), or the next party's (1), in a step."""
        return prg.expand(self._stream(which, purpose, step), size)

    def zero(self, step: int) -> Callable[[Residues, int], None]:
        """Return a function that writes a block of this party's share of zero, by its number."""
        return prg.Difference(*(self._stream(which, "zero", step) for which in (0, 1))).fill

    def _drop(self) -> None:
        self._keys = None
        self._seed = b""


class ThreeParties:
    """Drives the three parties, one step after the other, and counts.

    Attributes:
        names: The parties, in order.
        pair: The first two in the circuits, with the third as their dealer.
    """

    def __init__(
        self,
        names: Sequence[str],
        carrier: Carrier,
        journal: Callable[[str], Journal] | None = None,
        clients: Sequence[str] = (),
    ) -> None:
        check_names(names, "", clients)
        if len(names) != PARTIES:
            raise ParameterError(f"without a dealer there are exactly {PARTIES} parties")
        self.names = tuple(names)
        self._carrier = carrier
        self._rounds = self._step = 0
        identities = {name: carrier.identity(name) for name in (*names, *clients)}
        keys = {name: identity.public for name, identity in identities.items()}
        self._session = carrier.entropy(ID_BYTES)
        computing = ComputingSession(names, keys, self._session, PROTOCOL, "", clients)
        self.parties = [
            ReplicatedParty(
                computing,
                name,
                identities[name],
                journal=journal(name) if journal else None,
                entropy=carrier.entropy,
            )
            for name in names
        ]
        for party in self.parties:
            before = self.parties[party.index - 1]
            before.accept(carrier.send(party.name, before.name, party.offer()))
        self.clients = {
            name: Speaker(
                computing,
                name,
                identities[name],
                journal=journal(name) if journal else None,
                entropy=carrier.entropy,
            )
            for name in clients
        }
        self.pair = Lockstep(self.names[:2], carrier, journal, self.names[2])

    @property
    def rounds(self) -> int:
        """Steps in which parties spoke to each other, beside inputs."""
        return self._rounds + self.pair.rounds

    def each(self, work: Callable[[int], T], elements: int) -> list[T]:
        """Let every party do local work, by its index, and return the results."""
        found = self._carrier.each(work, range(PARTIES), elements)
        return [found[index] for index in range(PARTIES)]

    def _next_round(self) -> None:
        self._step += 1
        self._rounds += 1
        self._carrier.next_round()

    def _tell(self, sender: Speaker, recipient: str, vector: Residues) -> wire.Buffer:
        return self._send(sender, recipient, vector_body(vector, field.BITS))

    def _send(self, sender: Speaker, recipient: str, body: wire.Bytes) -> wire.Buffer:
        (data,) = sender.say([recipient], self._step, body, ShareMessage.KIND)
        return self._carrier.send(sender.name, recipient, data)

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a party's vector: the party before it gets one vector, streams give the rest."""
        self._step += 1
        if owner in self.clients:
            return self._input_of_client(owner, residues)
        step, size = self._step, residues.size
        mine = self.parties[self.names.index(owner)]
        after = self.parties[(mine.index + 1) % PARTIES]
        before = self.parties[mine.index - 1]
        known = mine.stream(1, "input", step, size)
        rest = field.subtract(residues, known)
        heard = before.said(self._tell(mine, before.name, rest), owner, step, size)
        nothing = np.zeros(size, np.uint64)
        value: Value = [nothing] * PARTIES
        value[mine.index] = np.stack([rest, known])
        value[after.index] = np.stack([after.stream(0, "input", step, size), nothing])
        value[before.index] = np.stack([nothing, heard])
        return value

    def _input_of_client(self, owner: str, residues: Residues) -> Value:
        """Share a client's vector: seeds for x_0 and x_1, and x_2 itself, each to its two holders.

        Each party gets two of the three, and any two are uniform.
        """
        size, sender = residues.size, self.clients[owner]
        rest = residues.copy()
        value: Value = [np.empty((2, size), np.uint64) for _ in self.parties]

        def holders(which: int) -> list[tuple[ReplicatedParty, int]]:
            return [(self.parties[which], 0), (self.parties[which - 1], 1)]

        for which in range(PARTIES - 1):
            self._step += 1
            seed = self._carrier.entropy(prg.SEED_BYTES)
            body = wire.encode_body(Seed(seed))
            for party, row in holders(which):
                (sealed,) = sender.say([party.name], self._step, body, Seed.KIND)
                brought = self._carrier.send(owner, party.name, sealed)
                heard = party.hear_seed(brought, owner, self._step)
                value[party.index][row] = input_share(heard, self._session, size, self._step)
            field.subtract(rest, value[which][0], out=rest)
        self._step += 1
        for party, row in holders(PARTIES - 1):
            told = self._tell(sender, party.name, rest)
            value[party.index][row] = party.said(told, owner, self._step, size)
        return value

    def reshare(self, size: int, local: Local) -> Value:
        """Share the sum of the parties' local results: one round.

        Args:
            size: Elements of the result.
            local: Makes one party's result, a block at a time while it is in a cache.
        """
        self._next_round()
        step = self._step
        value: Value = [buffers.residues(2 * size).reshape(2, size) for _ in self.parties]
        post: dict[str, wire.Buffer] = {}
        parts = dict(zip(self.names, self.each(local, size), strict=True))
        bodies = {name: empty_body(size) for name in self.names}
        # Three parties share two cores better in pieces. An empty vector has no piece.
        piece = -(-size // (PIECES * wire.BLOCK)) * wire.BLOCK or 1

        def make(task: tuple[str, int]) -> None:
            name, begin = task
            party = self.parties[self.names.index(name)]
            mine, zero = value[party.index][0], party.zero(step)

            def made(start: int, stop: int) -> Residues:
                block: Residues = mine[start:stop]
                zero(block, start // wire.BLOCK)
                parts[name](start, stop, block)
                return block

            wire.pack(bodies[name][1], made, begin, min(begin + piece, size))

        def speak(name: str) -> None:
            party = self.parties[self.names.index(name)]
            before = party.neighbour(-1)
            post[before] = self._send(party, before, bodies.pop(name)[0])

        def listen(name: str) -> None:
            party = self.parties[self.names.index(name)]
            following = value[party.index][1]
            party.said(post.pop(name), party.neighbour(1), step, size, out=following)

        pieces = [(name, begin) for name in self.names for begin in range(0, size, piece)]
        self._carrier.each(make, pieces, size)
        self._carrier.each(speak, self.names, size)
        self._carrier.each(listen, self.names, size)
        return value

    def reveal(self, x: Value, recipients: Sequence[str]) -> Residues:
        """Open a value to some names: a party gets the share it lacks from the party after it."""
        self._next_round()
        step, size = self._step, x[0].shape[1]

        def hear(hearer: Speaker, sender: ReplicatedParty, said: Residues) -> Residues:
            data = self._tell(sender, hearer.name, said)
            return hearer.said(data, sender.name, step, size)

        def open_to(name: str) -> Residues:
            if name in self.clients:  # x_0 + x_1 from one party, x_2 from another
                first, second, _ = self.parties
                both = field.add(x[0][0], x[0][1])
                client = self.clients[name]
                total = hear(client, first, both)
                return field.add(total, hear(client, second, x[1][1]), out=total)
            party = self.parties[self.names.index(name)]
            after = self.parties[(party.index + 1) % PARTIES]
            mine = x[party.index]
            total = field.add(mine[0], mine[1])
            return field.add(total, hear(party, after, x[after.index][1]), out=total)

        heard = self._carrier.each(open_to, list(recipients), size)
        return next(iter(heard.values()))

    def in_circuit(
        self, x: Value, circuit: Callable[[Lockstep, list[Residues]], list[Residues]]
    ) -> Value:
        """Run a circuit between the first two parties, and share its result among all three."""
        found = circuit(self.pair, [field.add(x[0][0], x[0][1]), x[1][1]])
        self._next_round()
        step, size = self._step, found[0].size
        value: Value = [buffers.residues(2 * size).reshape(2, size) for _ in self.parties]
        pair = self.names[:2]
        post: dict[str, wire.Buffer] = {}

        def speak(name: str) -> None:
            party = self.parties[self.names.index(name)]
            rows = value[party.index]
            for row in (0, 1):
                # The row that both of the first two have is the one that they tell each other.
                if party.index + row != 1:
                    rows[row] = party.stream(row, "circuit", step, size)
            if party.index < 2:
                inner = 1 - party.index
                field.subtract(found[party.index], rows[1 - inner], out=rows[inner])
                other = pair[inner]
                post[other] = self._tell(party, other, rows[inner])

        def listen(name: str) -> None:
            party = self.parties[self.names.index(name)]
            inner = 1 - party.index
            total = value[party.index][inner]
            party.said(post[name], pair[inner], step, size, plus=total)

        self._carrier.each(speak, self.names, size)
        self._carrier.each(listen, pair, size)
        return value
