"""Three parties without a dealer: replicated shares, for an honest majority.

x = x_0 + x_1 + x_2 over the field, and party i holds (x_i, x_(i+1)), indices modulo 3. Sums are
local. Of a product party i can compute

    z_i = x_i (y_i + y_(i+1)) + x_(i+1) y_i,

and z_0 + z_1 + z_2 = x y. To have two shares of it again, each party hides its z_i under a share of
zero and says it to the one neighbour that lacks it, party i-1: one round, one element a party and
product, of a matrix product one for each element of the result.

Keys: party i draws a seed and seals it for party i-1, so that the stream F_j is known to the
parties j and j-1, those who hold x_j. F_i - F_(i+1) is party i's share of zero. An input of party i
is (x - F_(i+1)) + F_(i+1) + 0, of which one element travels, to party i-1.

Comparisons and truncation: party 0 adds up x_0 + x_1 and party 1 takes x_2, which are shares of x
for two. These two run the circuits of `comparing`, with party 2 as their dealer. What they get,
u_0 + u_1, becomes F_0 + (u_0 - F_0 + u_1 - F_2) + F_2: they tell each other the two differences.

Security: against any single party that follows the protocol. Two together learn everything, and
there is no integrity: a party that does not follow the protocol can change results unseen. A
party's view is simulated from its input, the shapes, and what is revealed to it:

- Keys, and shares from streams, are random, and independent of all data.
- In a product party i-1 gets z_i + F_i - F_(i+1). It does not have the key of F_(i+1), whose
  elements are used once: what it gets is uniform, whatever the shares are. So is an input less
  F_(i+1), which goes to party i-1.
- When x is revealed to a party, the share it lacks is x less its own two. A client gets x_0 + x_1
  and x_2, of which one is uniform and the other x less it.
- Of a client's input a party gets two of three summands, any two of which are uniform.
- In the circuits party 2 hears nothing, neither what is opened nor what the two tell each other
  afterwards: knowing all masks as their dealer, it has nothing that they hide. Parties 0 and 1 see
  what they see beside a dealer that colludes with neither (`computing`): openings that are uniform
  given the party's own shares, as the masks are random to each of the two. Afterwards
  party 0 gets u_1 - F_2 and has no key of F_2, party 1 gets u_0 - F_0 and has none of F_0.

Source: Araki, Furukawa, Lindell, Nof, Ohara, CCS 2016 (products, shares of zero from keys).
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from securecomp import wire
from securecomp.carrier import Carrier, T
from securecomp.core import buffers, field, kernels, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import ParameterError
from securecomp.identity import Identity
from securecomp.journal import Journal, MemoryJournal
from securecomp.session import ID_BYTES
from securecomp.sharing import comparing
from securecomp.sharing.computing import Lockstep
from securecomp.sharing.engine import LinearEngine, Move, Value, column_sums
from securecomp.sharing.speaking import (
    Computing,
    Said,
    Seed,
    Speaker,
    check_names,
    empty_body,
    input_share,
    vector_body,
)

PROTOCOL = "sharing/replicated/1"
PARTIES = 3
PIECES = 4
"""Of a party's vector, for threads to take one after the other."""
Purpose = Literal["zero", "input", "circuit"]
Part = Callable[[int, int, Residues], object]
"""Adds the elements from one to below another to an array."""
Local = Callable[[int], Part]
"""Gives what a party, by its index, makes of its own shares."""


class Holder(Speaker):
    """One of three parties, with its own key and its next neighbour's."""

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
        # Streams of a session are never used by two processes, also after a crash.
        (journal or MemoryJournal()).spend(f"computing {computing.id.hex()} as {name}")
        self.index = computing.names.index(name)
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
        """Return what this party's own key (0) or the next one's (1) stands for in a step."""
        return prg.expand(self._stream(which, purpose, step), size)

    def zero(self, step: int) -> Callable[[Residues, int], None]:
        """Return what writes a block of this party's share of zero, given the block's number."""
        return prg.Difference(*(self._stream(which, "zero", step) for which in (0, 1))).fill

    def _drop(self) -> None:
        self._keys = None
        self._seed = b""


class Ring:
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
        computing = Computing(names, keys, self._session, PROTOCOL, "", clients)
        self.parties = [
            Holder(
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
            name: Speaker(computing, name, identities[name], carrier.entropy) for name in clients
        }
        self.pair = Lockstep(self.names[:2], carrier, journal, self.names[2])

    @property
    def rounds(self) -> int:
        """Steps in which parties spoke to each other, beside inputs."""
        return self._rounds + self.pair.rounds

    def each(self, work: Callable[[int], T], elements: int) -> list[T]:
        """Let every party, by its index, work for itself; return what each made."""
        found = self._carrier.each(work, range(PARTIES), elements)
        return [found[index] for index in range(PARTIES)]

    def _next_round(self) -> None:
        self._step += 1
        self._rounds += 1
        self._carrier.next_round()

    def _tell(self, sender: Speaker, recipient: str, vector: Residues) -> wire.Buffer:
        return self._send(sender, recipient, vector_body(vector, field.BITS))

    def _send(self, sender: Speaker, recipient: str, body: wire.Bytes) -> wire.Buffer:
        (data,) = sender.say([recipient], self._step, body, Said.KIND)
        return self._carrier.send(sender.name, recipient, data)

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a vector that a party has: the one before it gets a vector, the rest is there."""
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
        """Share a client's vector: seeds of x_0 and x_1, and x_2 itself, each to its two holders.

        Each party gets two of the three, which are uniform.
        """
        size, sender = residues.size, self.clients[owner]
        rest = residues.copy()
        value: Value = [np.empty((2, size), np.uint64) for _ in self.parties]

        def holders(which: int) -> list[tuple[Holder, int]]:
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
        # Three parties share two cores better in pieces; one of an empty vector is none.
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
        """Tell some parties a value: each hears the share it lacks from the party after it."""
        self._next_round()
        step, size = self._step, x[0].shape[1]

        def hear(hearer: Speaker, sender: Holder, said: Residues) -> Residues:
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
        """Run a circuit between the first two parties: its own rounds, and one to share again."""
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
                # Of the first two, the row that both have is what they tell each other.
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


class Replicated(LinearEngine[Ring]):
    """Replicated shares: three parties, no dealer, any one of them passive.

    Each party's array of a value has two rows: its own share, and the next party's.
    """

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a vector that a party has, one vector to one party; or a client, to two."""
        return self.run.input(owner, residues)

    def add_public(self, x: Value, constant: Residues) -> Value:
        """x + constant: the two parties that hold x_0 add it."""
        first = field.add(x[0][0], constant)
        last = field.add(x[2][1], constant)
        return [np.stack([first, x[0][1]]), x[1], np.stack([x[2][0], last])]

    def move(self, x: Value, change: Move) -> Value:
        """The elements in other places."""
        return [np.stack([change(row).reshape(-1) for row in pair]) for pair in x]

    def total(self, x: Value, rows: int, width: int) -> Value:
        """The sums of equal parts."""
        return [np.stack([column_sums(row.reshape(rows, width)) for row in pair]) for pair in x]

    def matmul_public(self, x: Value, shape: tuple[int, int], table: Residues, left: bool) -> Value:
        """A product with a public matrix: both shares in one product."""
        m, k = shape
        if left:
            beside = [pair.reshape(2, m, k).transpose(1, 0, 2).reshape(m, 2 * k) for pair in x]
            made = [field.matmul(table, b).reshape(-1, 2, k).transpose(1, 0, 2) for b in beside]
        else:
            made = [field.matmul(pair.reshape(2 * m, k), table) for pair in x]
        return [np.ascontiguousarray(product).reshape(2, -1) for product in made]

    def multiply(self, x: Value, y: Value) -> Value:
        """x y: one round, each party says one element a product."""

        def local(party: int) -> Part:
            shares = (*x[party], *y[party])
            return lambda a, b, out: kernels.add_cross(*(share[a:b] for share in shares), out)

        return self.run.reshare(x[0].shape[1], local)

    def square(self, x: Value) -> Value:
        """x^2, of which a party has x_i (x_i + 2 x_(i+1))."""
        return self.multiply(x, x)

    def matmul(self, x: Value, y: Value, shape: tuple[int, int, int]) -> Value:
        """A matrix product: one round, each party says m n elements."""
        m, k, n = shape

        def local(party: int) -> Part:
            mine, following = x[party].reshape(2, m, k)
            both = field.add(y[party][0], y[party][1]).reshape(k, n)
            product = field.matmul(mine, both)
            product = field.matmul(following, y[party][0].reshape(k, n), plus=product).reshape(-1)
            return lambda a, b, out: field.add(out, product[a:b], out=out)

        return self.run.reshare(m * n, local)

    def negative(self, x: Value) -> Value:
        """1 where x < 0: eight rounds."""
        return self.run.in_circuit(x, comparing.negative)

    def zero(self, x: Value) -> Value:
        """1 where x = 0: eight rounds."""
        return self.run.in_circuit(x, comparing.zero)

    def shifted(self, x: Value, by: int) -> Value:
        """floor(x / 2^by)."""
        return self.run.in_circuit(x, lambda run, shares: comparing.shifted(run, shares, by))

    def reveal(self, x: Value, recipients: Sequence[str]) -> Residues:
        """Open x to some parties: one round, one share to each."""
        return self.run.reveal(x, recipients)
