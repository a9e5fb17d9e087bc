"""The MAC check: roles of parties that check all opened values, and whether all heard the same.

A party remembers the opened values, and its share of each value's MAC. A check takes four messages
from everybody to everybody:

1. a commitment to a random seed, which is drawn now, after the openings that are checked;
2. the seed, and a hash of all that this party heard so far, the commitments included. If two hashes
   differ, somebody told two parties different things. The hash of this transcript and of all seeds
   gives random coefficients rho, one for each opened value;
3. a commitment to sigma_i = sum rho_j (mac_ij - alpha_i opened_j);
4. sigma_i. Unless the sigmas sum up to zero, a value was not opened as it was.

If an opened value is wrong, a check passes with probability at most 2/p, about 2^-60: the errors
cancel in the random combination (1/p), or their sum times alpha was guessed (1/p). SHA-256 is
modelled as a random oracle. After a failure everybody drops alpha and all material: a failed
check's sigma may tell alpha, and nothing is checked with it any more.

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
from securecomp.mpc.roles import ComputingSession, ShareMessage, Speaker, vector_body
from securecomp.protocol import wire
from securecomp.protocol.carrier import T
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal
from securecomp.protocol.role import State

SECRET_BYTES = 32
_SIGMA_BYTES = 8


class Commitment(wire.Message, frozen=True):
    """A party to the others: SHA-256 of its next secret and a nonce."""

    KIND: ClassVar[int] = 5
    digest: bytes


class Opening(wire.Message, frozen=True):
    """A party to the others: the secret behind its commitment, and a hash of all that it heard."""

    KIND: ClassVar[int] = 6
    secret: bytes
    nonce: bytes
    heard: bytes


class MacParty(Party):
    """A computing party with a share of the key. It remembers what was opened, and checks it.

    The party draws its own seed, makes its own sigma, and opens and counts the others' messages. So
    its driver cannot leave out a step or a message. If a check fails, the party drops its secrets.

    Attributes:
        unchecked: Number of values opened since the last check.
        fresh: Whether anything was heard since the last check.
    """

    TRANSITIONS: ClassVar = {
        (State.READY, "say"): State.READY,
        (State.READY, "hear"): State.READY,
        (State.READY, "remember"): State.READY,
        (State.READY, "report"): State.READY,
        (State.READY, "commit_seed"): State.SEED_COMMITTED,
        (State.SEED_COMMITTED, "open_seed"): State.SEED_OPENED,
        (State.SEED_OPENED, "commit_sigma"): State.SIGMA_COMMITTED,
        (State.SIGMA_COMMITTED, "open_sigma"): State.SIGMA_OPENED,
        (State.SIGMA_OPENED, "verdict"): State.READY,
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
        self.fresh = False
        self._others = [other for other in computing.names if other != name]
        self._key: Residues | None = None
        self._opened: list[tuple[Residues, Residues]] = []
        self._transcript = hashlib.sha256()
        self._step = 0
        self._secret = self._nonce = self._coins = b""
        self._commitments: dict[str, bytes] = {}

    def seeded(self, seed: bytes) -> None:
        """Take the dealer's seed, and expand this party's share of the key from it."""
        super().seeded(seed)
        self._key = mac_dealer.key_share(self._held(self._part))

    @property
    def key(self) -> Residues:
        """This party's share of alpha, shape ().

        Raises:
            LocalProtocolError: It was dropped.
        """
        return self._held(self._key)

    def _held(self, secret: T | None) -> T:
        if secret is None:
            raise LocalProtocolError(f"{self.name}: the computation was aborted; begin another")
        return secret

    def vectors(
        self, serial: int, kind: Kind, shape: Shape, corrections: Sequence[Residues]
    ) -> list[Residues]:
        """Return this party's vectors of a correlation, each of shape (2, n).

        Raises:
            LocalProtocolError: The correlation was used before.
        """
        part = self._held(self._part)
        self._use_once("correlation", serial)
        return mac_dealer.expand(part, serial, kind, shape, corrections if self.is_last else None)

    def own(self, serial: int, size: int) -> Residues:
        """Return the mask that this party knows, if the correlation is one of its own.

        Raises:
            LocalProtocolError: The mask was used before.
        """
        part = self._held(self._part)
        self._use_once("mask", serial)
        return mac_dealer.known(part, serial, size)

    def remember(self, opened: Residues, macs: Residues | None) -> None:
        """Keep an opened value, and this party's shares of its MACs, until the next check.

        A value that its owner announced has no MACs. The check then compares only what each party
        heard.
        """
        self.state = self._next("remember")
        self.fresh = True
        self._transcript.update(np.ascontiguousarray(opened, "<u8").data)
        if macs is not None:
            self._opened.append((opened, macs))
            self.unchecked += opened.size

    def report(self, client: str, step: int, values: Residues) -> bytes:
        """Tell a client a result, once everything that was opened is checked.

        Raises:
            LocalProtocolError: Something is not checked yet.
        """
        self.state = self._next("report")
        if self.fresh:
            raise LocalProtocolError(f"{self.name}: what was opened is not checked yet")
        return self._sealed([client], step, vector_body(values, field.BITS), ShareMessage.KIND)[0]

    # The check: five calls. Each of the first four returns a message for each other party.

    def commit_seed(self, step: int) -> dict[str, bytes]:
        """Draw a seed and commit to it. The check's four messages begin with this step.

        Returns:
            Each other party's message.
        """
        following = self._next("commit_seed")
        self._step = step
        message = self._commit(self._entropy(SECRET_BYTES))
        return self._tell_others(message, following)

    def open_seed(self, received: Mapping[str, wire.Buffer]) -> dict[str, bytes]:
        """Take every other party's commitment, and open this party's seed."""
        return self._open("open_seed", received)

    def commit_sigma(self, received: Mapping[str, wire.Buffer]) -> dict[str, bytes]:
        """Take every other party's seed; make sigma from all of them, and commit to it.

        Raises:
            RemoteProtocolError: A seed is not the one that was committed to.
            ProtocolError: Two parties heard different things.
        """
        following = self._next("commit_sigma")
        with self._all_or_nothing():
            said = self._settled(received)
            seeds = [said[name] for name in self._computing.names]
            facts = prg.join("checking coins", self._transcript.digest(), *seeds)
            self._coins = hashlib.sha256(facts).digest()
            message = self._commit(int(self.sigma()).to_bytes(_SIGMA_BYTES, "big"))
            return self._tell_others(message, following)

    def open_sigma(self, received: Mapping[str, wire.Buffer]) -> dict[str, bytes]:
        """Take every other party's commitment, and open this party's sigma."""
        return self._open("open_sigma", received)

    def verdict(self, received: Mapping[str, wire.Buffer]) -> None:
        """Take every other party's sigma, check that all sum up to zero, and forget the values.

        Raises:
            ProtocolError: A value was not opened as it was.
            RemoteProtocolError: A sigma is not a residue, or not the one that was committed to.
        """
        following = self._next("verdict")
        with self._all_or_nothing():
            total = 0
            for name, sigma in self._settled(received).items():
                value = int.from_bytes(sigma, "big")
                if len(sigma) != _SIGMA_BYTES or value >= field.MODULUS:
                    raise RemoteProtocolError(name, "its part of the check is not a residue")
                total += value
            if total % field.MODULUS:
                raise ProtocolError(
                    "the MACs do not fit what was opened: a party deviated; the computation is "
                    "aborted"
                )
        self._opened = []
        self.unchecked = 0
        self.fresh = False
        self._secret = self._nonce = self._coins = b""
        self.state = following

    def coefficients(self) -> Residues:
        """Return the random coefficient of each unchecked value, once all seeds are known.

        Raises:
            LocalProtocolError: A seed is missing.
        """
        if not self._coins:
            raise LocalProtocolError(f"{self.name}: the seeds of the check are not here yet")
        return prg.expand(prg.derive(self._coins, "checking"), self.unchecked)

    def sigma(self) -> Residues:
        """Return this party's share of the combination that must be zero, shape ()."""
        rho = self.coefficients()
        total = np.zeros((), np.uint64)
        start = 0
        for opened, macs in self._opened:
            part = rho[start : start + opened.size]
            start += opened.size
            total = field.add(total, inner(part, macs))
            total = field.subtract(total, field.multiply(inner(part, opened), self.key))
        return total

    def _commit(self, secret: bytes) -> Commitment:
        self._secret, self._nonce = secret, self._entropy(SECRET_BYTES)
        self._commitments = {self.name: self._digest(self.name, secret, self._nonce)}
        return Commitment(self._commitments[self.name])

    def _open(self, event: str, received: Mapping[str, wire.Buffer]) -> dict[str, bytes]:
        following = self._next(event)
        with self._all_or_nothing():
            heard = self._hear_others(received, Commitment)
            self._commitments |= {name: said.digest for name, said in heard.items()}
            for name in self._computing.names:
                self._transcript.update(prg.join("commitment", name, self._commitments[name]))
            message = Opening(self._secret, self._nonce, self._transcript.digest())
            return self._tell_others(message, following)

    def _settled(self, received: Mapping[str, wire.Buffer]) -> dict[str, bytes]:
        """Check everybody's commitment and transcript, and return the secrets."""
        openings = self._hear_others(received, Opening)
        heard = self._transcript.digest()
        for name, said in openings.items():
            digest = self._digest(name, said.secret, said.nonce)
            if not hmac.compare_digest(digest, self._commitments[name]):
                raise RemoteProtocolError(name, "does not open what it committed to")
        for name, said in openings.items():
            if not hmac.compare_digest(said.heard, heard):
                # It may be either of the two, or whoever spoke to them.
                raise ProtocolError(
                    f"{self.name} and {name} did not hear the same; the computation is aborted"
                )
        return {name: said.secret for name, said in openings.items()} | {self.name: self._secret}

    def _tell_others(self, message: wire.Message, following: State) -> dict[str, bytes]:
        """Return a message of this step, sealed for each other party."""
        body = wire.encode_body(message)
        sealed = self._sealed(self._others, self._step, body, message.KIND)
        self.state = following
        return dict(zip(self._others, sealed, strict=True))

    def _hear_others(
        self, received: Mapping[str, wire.Buffer], kind: type[wire.M]
    ) -> dict[str, wire.M]:
        """Open every other party's message of this step, and go to the next step."""
        missing = sorted(set(self._others) - set(received))
        if missing or len(received) != len(self._others):
            raise LocalProtocolError(
                f"{self.name}: the check needs one message of each other party; missing: "
                f"{', '.join(missing) or 'nobody, but there are more'}"
            )
        heard = {}
        for name in self._others:
            heard[name], payload = self._opened_message(received[name], name, self._step, kind)
            if len(payload):
                raise RemoteProtocolError(name, "its message has something behind it")
        self._step += 1
        return heard

    def _digest(self, name: str, secret: bytes, nonce: bytes) -> bytes:
        if len(nonce) != SECRET_BYTES:  # a free length would leave room for a collision
            return b""
        facts = prg.join("checking commitment", self._computing.agreement, name, secret, nonce)
        return hashlib.sha256(facts).digest()

    def _drop(self) -> None:
        super()._drop()
        self._key = None
        self._opened = []
        self._secret = self._nonce = self._coins = b""
        self.unchecked = 0
        self.fresh = False


class MacClient(Speaker):
    """Shares inputs and hears results without computing. The dealer's seed gives it its masks."""

    _part: Correlations | None = None

    def seeded(self, seed: bytes) -> None:
        """Take the dealer's seed."""
        self._part = Correlations(correlated_randomness.seed_keys(seed, self._computing.id))

    def own(self, serial: int, size: int) -> Residues:
        """Return the mask that this client knows, if the correlation is one of its own.

        Raises:
            LocalProtocolError: The mask was used before.
        """
        if self._part is None:
            raise LocalProtocolError(f"{self.name}: the computation was aborted; begin another")
        self._use_once("mask", serial)
        return mac_dealer.known(self._part, serial, size)

    def _drop(self) -> None:
        self._part = None


class MacDealer(Dealer):
    """Draws all seeds and makes the corrections, with MACs. Sees no data."""

    _clients: tuple[Correlations, ...] = ()

    def seed_clients(self, count: int) -> list[bytes]:
        """Return a seed for each client."""
        seeds = [self._entropy(correlated_randomness.SEED_BYTES) for _ in range(count)]
        self._clients = tuple(
            Correlations(correlated_randomness.seed_keys(s, self._computing.id)) for s in seeds
        )
        return seeds

    def corrections(self, serial: int, kind: Kind, shape: Shape) -> list[Residues]:
        """Return the last party's corrections.

        Raises:
            LocalProtocolError: The correlation was dealt before.
        """
        self._use_once("correlation", serial)
        return mac_dealer.corrections(self._held(), serial, kind, shape, self._clients)

    def _drop(self) -> None:
        super()._drop()
        self._clients = ()


def inner(a: Residues, b: Residues) -> Residues:
    """Return the inner product modulo p of two vectors of at most 2^32 elements, shape ()."""
    products = field.multiply(a, b)
    low, high = products & np.uint64(0xFFFFFFFF), products >> np.uint64(32)
    return np.array((int(low.sum()) + (int(high.sum()) << 32)) % field.MODULUS, np.uint64)
