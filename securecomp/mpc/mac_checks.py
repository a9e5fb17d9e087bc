"""Parties that check each other: what each heard, and the MACs of all that was opened.

Opened values are remembered, with each party's share of their MAC. A check goes in four steps, each
a message from everybody to everybody:

1. a commitment to a random seed, drawn now: after all the openings that are checked;
2. the seed, and a hash of all that this party heard so far, the commitments included. Hashes that
   differ mean that somebody told two parties different things. The hash of all seeds gives random
   coefficients rho, one for each opened value;
3. a commitment to sigma_i = sum rho_j (mac_ij - alpha_i opened_j);
4. sigma_i. They sum up to zero, or a value was not opened as it was.

If an opened value is wrong, a check passes with probability at most 2/p, about 2^-60: the errors
cancel in the random combination (1/p), or their sum times alpha was guessed (1/p). SHA-256 is taken
for a random oracle. After a failure everybody drops alpha and all material: a failed check's sigma
may tell alpha, which nothing is checked with any more.

Source: Damgård, Keller, Larraia, Pastro, Scholl, Smart, ESORICS 2013, section 4 (MACCheck).
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from securecomp.core import field, prg
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from securecomp.mpc import correlated_randomness, mac_dealer
from securecomp.mpc.correlated_randomness import Correlations, Shape
from securecomp.mpc.dealer_parties import Dealer, Party
from securecomp.mpc.mac_dealer import Kind
from securecomp.mpc.roles import ComputingSession, Speaker
from securecomp.protocol import wire
from securecomp.protocol.carrier import T
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal
from securecomp.protocol.role import State

SECRET_BYTES = 32


class Commitment(wire.Message, frozen=True):
    """SHA-256 of what a party will say in the next step, and of a nonce."""

    KIND: ClassVar[int] = 5
    digest: bytes


class Opening(wire.Message, frozen=True):
    """What was committed to; and the hash of everything that its sender heard."""

    KIND: ClassVar[int] = 6
    secret: bytes
    nonce: bytes
    heard: bytes


class MacParty(Party):
    """A computing party with a share of the key, which remembers what was opened.

    Attributes:
        unchecked: Number of values opened since the last check.
    """

    TRANSITIONS: ClassVar = {
        (State.READY, "say"): State.READY,
        (State.READY, "hear"): State.READY,
        (State.READY, "remember"): State.READY,
        (State.READY, "commit"): State.READY,
        (State.READY, "opening"): State.READY,
        (State.READY, "settle"): State.READY,
    }

    def __init__(
        self,
        computing: ComputingSession,
        name: str,
        identity: Identity,
        *,
        journal: Journal | None = None,
        entropy: Entropy,
    ) -> None:
        super().__init__(computing, name, identity, journal=journal, entropy=entropy)
        self.unchecked = 0
        self._key: Residues | None = None
        self._opened: list[tuple[Residues, Residues]] = []
        self._transcript = hashlib.sha256()
        self._committed: tuple[bytes, bytes] | None = None
        self._commitments: dict[str, bytes] = {}
        self._coins = b""

    def seeded(self, seed: bytes) -> None:
        """Take the dealer's seed, and the share of the key that it stands for."""
        super().seeded(seed)
        self._key = mac_dealer.key_share(self._held(self._part))

    @property
    def key(self) -> Residues:
        """This party's share of alpha, shape ().

        Raises:
            LocalProtocolError: There is none any more.
        """
        return self._held(self._key)

    def _held(self, secret: T | None) -> T:
        if secret is None:
            raise LocalProtocolError(f"{self.name}: the computation was aborted; begin another")
        return secret

    def vectors(
        self, serial: int, kind: Kind, shape: Shape, corrections: Sequence[Residues]
    ) -> list[Residues]:
        """Return this party's vectors of a correlation, each of shape (2, n)."""
        mine = corrections if self.is_last else None
        return mac_dealer.expand(self._held(self._part), serial, kind, shape, mine)

    def own(self, serial: int, size: int) -> Residues:
        """Return the mask that this party knows, if the correlation is one of its own."""
        return mac_dealer.known(self._held(self._part), serial, size)

    def remember(self, opened: Residues, macs: Residues | None) -> None:
        """Keep what was opened, and shares of its MACs, until it is checked.

        A value without MACs, which its owner said, is only compared with what the others heard.
        """
        self.state = self._next("remember")
        self._transcript.update(np.ascontiguousarray(opened, "<u8").data)
        if macs is not None:
            self._opened.append((opened, macs))
            self.unchecked += opened.size

    def commit(self, secret: bytes) -> Commitment:
        """Commit to what this party will say in the next step."""
        self.state = self._next("commit")
        nonce = self._entropy(SECRET_BYTES)
        self._committed = secret, nonce
        self._commitments = {self.name: self._digest(self.name, secret, nonce)}
        return Commitment(self._commitments[self.name])

    def opening(self, commitments: Mapping[str, Commitment]) -> Opening:
        """Take the others' commitments, and say what this party committed to."""
        self.state = self._next("opening")
        if self._committed is None:
            raise LocalProtocolError(f"{self.name}: there is no commitment to open")
        secret, nonce = self._committed
        self._committed = None
        self._commitments |= {name: said.digest for name, said in commitments.items()}
        for name in self._computing.names:
            self._transcript.update(prg.join("commitment", name, self._commitments[name]))
        return Opening(secret, nonce, self._transcript.digest())

    def _settle(self, openings: Mapping[str, Opening]) -> None:
        """Hold what the others say against their commitments, and what they heard against this."""
        self.state = self._next("settle")
        heard = self._transcript.digest()
        for name, said in openings.items():
            digest = self._digest(name, said.secret, said.nonce)
            if not hmac.compare_digest(digest, self._commitments[name]):
                raise RemoteProtocolError(name, "does not open what it committed to")
        for name, said in openings.items():
            if not hmac.compare_digest(said.heard, heard):
                # Either of the two, or who spoke to them: nobody can be blamed.
                raise ProtocolError(
                    f"{self.name} and {name} did not hear the same; the computation is aborted"
                )

    def seeds(self, openings: Mapping[str, Opening], mine: bytes) -> None:
        """Take all seeds of the random coefficients."""
        self._settle(openings)
        said = {name: opening.secret for name, opening in openings.items()} | {self.name: mine}
        seeds = [said[name] for name in self._computing.names]
        facts = prg.join("checking coins", self._transcript.digest(), *seeds)
        self._coins = hashlib.sha256(facts).digest()

    def sigma(self) -> Residues:
        """Return the random combination of this party's shares of what must be zero, shape ()."""
        rho = prg.expand(prg.derive(self._coins, "checking"), self.unchecked)
        total = np.zeros((), np.uint64)
        start = 0
        for opened, macs in self._opened:
            part = rho[start : start + opened.size]
            start += opened.size
            total = field.add(total, inner(part, macs))
            total = field.subtract(total, field.multiply(inner(part, opened), self.key))
        return total

    def verdict(self, openings: Mapping[str, Opening], mine: bytes) -> None:
        """Hold the sum of all sigmas against zero, and forget what was checked.

        Raises:
            ProtocolError: A value was not opened as it was.
            RemoteProtocolError: A sigma that is none, or not the one committed to.
        """
        self._settle(openings)
        total = int.from_bytes(mine, "big")
        for name, said in openings.items():
            if len(said.secret) != len(mine):
                raise RemoteProtocolError(name, "its part of the check is no residue")
            total += int.from_bytes(said.secret, "big")
        if total % field.MODULUS:
            raise ProtocolError(
                "the MACs do not fit what was opened: a party deviated; the computation is aborted"
            )
        self._opened = []
        self.unchecked = 0

    def _digest(self, name: str, secret: bytes, nonce: bytes) -> bytes:
        if len(nonce) != SECRET_BYTES:  # a length of its own choice would be room for a collision
            return b""
        facts = prg.join("checking commitment", self._computing.agreement, name, secret, nonce)
        return hashlib.sha256(facts).digest()

    def _drop(self) -> None:
        super()._drop()
        self._key = None
        self._opened = []
        self._committed = None
        self.unchecked = 0


class MacClient(Speaker):
    """Shares inputs and hears results without computing; knows masks of its own, by the dealer."""

    _part: Correlations | None = None

    def seeded(self, seed: bytes) -> None:
        """Take the dealer's seed."""
        self._part = Correlations(correlated_randomness.seed_keys(seed, self._computing.id))

    def own(self, serial: int, size: int) -> Residues:
        """Return the mask that this client knows, if the correlation is one of its own."""
        if self._part is None:
            raise LocalProtocolError(f"{self.name}: the computation was aborted; begin another")
        return mac_dealer.known(self._part, serial, size)

    def _drop(self) -> None:
        self._part = None


class MacDealer(Dealer):
    """Draws the seeds and makes the corrections, with MACs. Sees no data."""

    _clients: tuple[Correlations, ...] = ()

    def seed_clients(self, count: int) -> list[bytes]:
        """Return a seed for each client."""
        seeds = [self._entropy(correlated_randomness.SEED_BYTES) for _ in range(count)]
        self._clients = tuple(
            Correlations(correlated_randomness.seed_keys(s, self._computing.id)) for s in seeds
        )
        return seeds

    def corrections(self, serial: int, kind: Kind, shape: Shape) -> list[Residues]:
        """Return the last party's corrections."""
        return mac_dealer.corrections(self._held(), serial, kind, shape, self._clients)

    def _drop(self) -> None:
        super()._drop()
        self._clients = ()


def inner(a: Residues, b: Residues) -> Residues:
    """Return the inner product of two vectors modulo p, shape (); of at most 2^32 elements."""
    products = field.multiply(a, b)
    low, high = products & np.uint64(0xFFFFFFFF), products >> np.uint64(32)
    return np.array((int(low.sum()) + (int(high.sum()) << 32)) % field.MODULUS, np.uint64)
