"""The private sum: contributors split, servers add, receivers put the sums together.

Two rounds. (1) Every contributor sends every server one sealed share of its vector: a 32-byte seed
to all servers but one. (2) Every server sends every receiver the sum of the shares it got.

What each party learns, against passive adversaries:
- a server: nothing but the sizes. Any k-1 of the k servers together: nothing (their shares of an
  honest contributor are independent of its vector, under the pseudo-randomness of AES-256-CTR);
  if they control receivers too, what the total and their own inputs imply.
- a receiver: the total, and k summands of it that are uniform given the total.
- who carries the messages: sizes and times.
All k servers together see every vector. There is no integrity against parties that break the
protocol: a contributor can put in any vector within the modulus, and a server can shift the
total unseen; whether receivers then refuse a total beyond the bounds tells such a server one bit
about it. Who publishes last can see the other sums first, if it receives them. Nobody can drop out:
without every contributor and server there is no result.

Sources: Ben-Or, Goldwasser, Wigderson 1988; Bogdanov, Laur, Willemson 2008 (input, computing and
result parties); Bonawitz et al. 2017 (seeds for shares).
"""

import hashlib
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.core import buffers, field, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import (
    DecodeError,
    LocalProtocolError,
    ParameterError,
    ProtocolError,
    RangeError,
    RemoteProtocolError,
)
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import SessionRole, State
from securecomp.protocol.session import Session
from securecomp.sharing.additive import seed_key

PROTOCOL = "sharing/sum/1"
ROUNDS = 2
DEALING_BYTES = 16


class Deal(wire.Message, frozen=True):
    """Contributor to server: one share, as a seed or as a vector.

    `dealing` is drawn once for all servers: shares of two dealings do not add up.
    """

    KIND: ClassVar[int] = 1
    dealing: bytes
    share: bytes | wire.Vector


class PartialSum(wire.Message, frozen=True):
    """Server to receiver: the sum of the shares that the server got, and a digest of whose."""

    KIND: ClassVar[int] = 2
    dealings: bytes
    total: wire.Vector


def explicit_server(session: Session, contributor: str) -> str:
    """Return the server that gets this contributor's share as a vector, not as a seed.

    A contributor that is a server keeps it, so that only seeds travel; the others spread the load.
    """
    if contributor in session.servers:
        return contributor
    return session.servers[session.contributors.index(contributor) % len(session.servers)]


class _SumRole(SessionRole):
    def _join(self, session: Session) -> None:
        layout, parties = session.layout, len(session.contributors)
        if session.protocol != PROTOCOL or len(session.servers) < 2:
            raise ParameterError(
                f"{session.protocol!r} with {len(session.servers)} servers is not a session of "
                f"{PROTOCOL!r}, which needs at least 2"
            )
        if session.limit > field.LIMIT or layout.bound * parties > session.limit:
            raise RangeError(f"{parties} vectors up to {layout.bound} could pass the field")
        super()._join(session)


class _Adder(_SumRole):
    """A role that adds vectors as they come in."""

    _total: Residues | None = None

    def _add(self, sender: str, vector: wire.Vector, payload: memoryview) -> None:
        length = self._session.layout.length
        try:
            if self._total is None:
                self._total = wire.unpack(vector, payload, length)
            else:
                wire.add_packed(vector, payload, self._total)
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None

    def _take_total(self) -> Residues:
        total, self._total = self._total, None
        return buffers.zeros(self._session.layout.length) if total is None else total

    def _drop(self) -> None:
        self._total = None


class Contributor(_SumRole):
    """Puts one vector in."""

    TRANSITIONS: ClassVar = {(State.READY, "contribute"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.contributors, State.READY, entropy)

    def contribute(self, values: npt.ArrayLike) -> dict[str, wire.Buffer]:
        """Split a vector among the servers.

        Args:
            values: Signed integers, shape (d,), each within the layout's bound.

        Returns:
            One sealed message a server.

        Raises:
            ParameterError: Not integers, or another length than agreed.
            RangeError: A value is beyond the bound. Nothing was sent.
            LocalProtocolError: Called twice.
        """
        following = self._next("contribute")
        layout = self._session.layout
        array = field.integers(values, self.name)
        if array.shape != (layout.length,):
            raise ParameterError(
                f"{self.name}: the vector has shape {array.shape} and ({layout.length},) was agreed"
            )
        explicit = explicit_server(self._session, self.name)
        seeds = {s: self._entropy(prg.SEED_BYTES) for s in self._session.servers if s != explicit}
        masks = prg.Masks(
            seed_key(seed, self._agreement, self.name, s) for s, seed in seeds.items()
        )
        dealing = self._entropy(DEALING_BYTES)
        block = np.empty(min(wire.BLOCK, layout.length), np.uint64)

        def share(start: int, stop: int) -> Residues:
            out = block[: stop - start]
            field.encode(array[start:stop], layout.bound, self.name, out)
            masks.subtract_from(out, start // wire.BLOCK)
            return out

        # All of the vector is encoded, and so checked, before any message exists.
        deal = Deal(dealing, wire.Vector(field.BITS, layout.length))
        body = wire.encode_body(deal, layout.length, share)
        messages = {
            s: self._seal(Deal.KIND, wire.encode_body(Deal(dealing, seed)), s)
            for s, seed in seeds.items()
        }
        messages[explicit] = self._seal(Deal.KIND, body, explicit)
        self.state = following
        return messages


class Server(_Adder):
    """Adds the shares that it gets."""

    TRANSITIONS: ClassVar = {
        (State.COLLECTING, "receive"): State.COLLECTING,
        (State.COLLECTING, "publish"): State.DONE,
    }

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.servers, State.COLLECTING, entropy)
        self._keys: dict[str, bytes] = {}
        self._dealings: dict[str, bytes] = {}

    @property
    def missing(self) -> list[str]:
        """The contributors whose shares are not here yet."""
        return [name for name in self._session.contributors if name not in self._keys]

    def receive(self, data: wire.Buffer) -> None:
        """Take one contributor's share.

        A refused message leaves the server as it was: who cannot seal cannot stop a session.

        Raises:
            DecodeError, AuthenticationError: Not a well-formed message of the party it names.
            RemoteProtocolError: Of another session, round or layout, a duplicate, or a share that
                is not what was agreed; `sender` says whose.
        """
        following = self._next("receive")
        sender, deal, payload = self._open(data, Deal, self._session.contributors, self._keys)
        if len(deal.dealing) != DEALING_BYTES:
            raise RemoteProtocolError(sender, "the mark of its dealing has a wrong length")
        key = b""
        if isinstance(deal.share, bytes):
            if len(deal.share) != prg.SEED_BYTES or payload:
                raise RemoteProtocolError(sender, "the seed of its share has a wrong length")
            key = seed_key(deal.share, self._agreement, sender, self.name)
        else:
            self._add(sender, deal.share, payload)
        self._keys[sender] = key
        self._dealings[sender] = deal.dealing
        self.state = following

    def publish(self) -> dict[str, wire.Buffer]:
        """Return the sum of the shares, sealed for each receiver.

        Raises:
            LocalProtocolError: A contributor's share is missing, or called twice.
        """
        following = self._next("publish")
        if self.missing:
            raise LocalProtocolError(
                f"server {self.name!r}: no share of {', '.join(self.missing)}; wait for them, or "
                "start a new session without them"
            )
        with self._all_or_nothing():
            masks = prg.Masks(key for key in self._keys.values() if key)
            explicit = self._take_total()

            def total(start: int, stop: int) -> Residues:
                block = explicit[start:stop]
                masks.add_to(block, start // wire.BLOCK)
                return block

            dealings = [self._dealings[name] for name in self._session.contributors]
            partial = PartialSum(
                hashlib.sha256(prg.join("dealings", *dealings)).digest(),
                wire.Vector(field.BITS, explicit.size),
            )
            body = wire.encode_body(partial, explicit.size, total)
            messages = {r: self._seal(PartialSum.KIND, body, r) for r in self._session.receivers}
        self._drop()
        self.state = following
        return messages

    def _drop(self) -> None:
        super()._drop()
        self._keys = dict.fromkeys(self._keys, b"")
        self._dealings = {}


class Receiver(_Adder):
    """Puts the servers' sums together."""

    TRANSITIONS: ClassVar = {
        (State.COLLECTING, "receive"): State.COLLECTING,
        (State.COLLECTING, "result"): State.DONE,
    }

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.receivers, State.COLLECTING, entropy)
        self._dealings: dict[str, bytes] = {}  # what each server says it added

    def receive(self, data: wire.Buffer) -> None:
        """Take one server's sum. Refuses as `Server.receive` does."""
        following = self._next("receive")
        sender, partial, payload = self._open(
            data, PartialSum, self._session.servers, self._dealings
        )
        if len(partial.dealings) != 32:
            raise RemoteProtocolError(sender, "the digest of its dealings has a wrong length")
        self._add(sender, partial.total, payload)
        self._dealings[sender] = partial.dealings
        self.state = following

    def result(self) -> npt.NDArray[np.int64]:
        """Return the total, shape (d,).

        Raises:
            LocalProtocolError: A server's sum is missing, or called twice.
            ProtocolError: The servers added different dealings of a contributor.
            RangeError: The total is not one that inputs within the bound can give: a party did
                not keep to the protocol.
        """
        following = self._next("result")
        missing = [name for name in self._session.servers if name not in self._dealings]
        if missing:
            raise LocalProtocolError(
                f"receiver {self.name!r}: no sum of server {', '.join(missing)}; all are needed"
            )
        with self._all_or_nothing():
            if len(set(self._dealings.values())) > 1:
                raise ProtocolError(
                    "the servers added shares of different dealings: a contributor dealt twice, "
                    "perhaps after a crash; start a new session"
                )
            residues = self._take_total()
            out = buffers.residues(residues.size).view(np.int64)
            largest = self._session.layout.bound * len(self._session.contributors)
            try:
                total = field.decode(residues, out, bound=largest)
            except RangeError:
                raise RangeError(
                    "the total is beyond what the agreed bounds allow: a party did not keep to "
                    "the protocol, and additive sharing cannot say which"
                ) from None
        self._drop()
        self.state = following
        return total

    def _drop(self) -> None:
        super()._drop()
        self._dealings = {}
