"""The client: it masks its vector, and decides by itself what it helps to reveal.

Steps: `advertise` keys; `share` the secrets behind the masks among the neighbours; `mask` the
vector; under active security `consent` to the survivors; `unmask`: for each neighbour one share,
of its self-mask's seed if it survived, of its mask key if it dropped out, never both.

What a coalition of the server and c clients learns: the sum over the survivors that are not in it,
and nothing else, as long as c is below the threshold t (complete graph, semi-honest: t is more than
n/2; active: more than 2n/3, and c is below 2t - n) or within the corruption rate (sparse graph).
Assumptions: X25519 (gap Diffie-Hellman), AES-256 as a pseudo-random function, AES-256-GCM,
HKDF-SHA256, and for active security Ed25519 with pinned keys.

Sources: Bonawitz et al., Practical secure aggregation for privacy-preserving machine learning, CCS
2017, figures 1 and 4; Bell et al., CCS 2020, algorithm 2.
"""

from collections.abc import Collection
from itertools import pairwise
from typing import ClassVar

import msgspec
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core import field
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    AuthenticationError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.protocol import identity as identity_
from securecomp.protocol import public_key, wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal, MemoryJournal
from securecomp.protocol.role import SessionRole, State, step
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import masking
from securecomp.secagg.keyring import BOX_BYTES, SECRET_BYTES, KeyRing
from securecomp.secagg.masking_messages import (
    Advertise,
    Boxes,
    Consent,
    Consents,
    Keys,
    Masked,
    Shares,
    Survivors,
    Unmask,
)
from securecomp.secagg.parameters import Parameters


class Client(SessionRole):
    """One client of a secure aggregation."""

    TRANSITIONS: ClassVar = {
        (State.READY, "advertise"): State.ADVERTISED,
        (State.ADVERTISED, "share"): State.SHARED,
        (State.SHARED, "mask"): State.MASKED,
        (State.MASKED, "consent"): State.CONSENTED,
        (State.MASKED, "unmask"): State.DONE,
        (State.CONSENTED, "unmask"): State.DONE,
        (State.DONE, "next_round"): State.SHARED,
    }

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        *,
        journal: Journal | None = None,
        application: bytes = b"",
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Join a session.

        Args:
            session: As agreed; its parameters are checked here, whoever proposed them.
            name: Which contributor of the session this is.
            identity: Its long-term keys.
            journal: Where what was spent is marked; one on disk if the client is to survive a
                crash.
            application: What the clients must agree on besides, say a hash of the model; signed
                under active security.
            entropy: Source of all randomness.

        Raises:
            ParameterError, ThresholdError, RangeError: The session does not protect its clients.
        """
        super().__init__(session, name, identity, session.contributors, State.READY, entropy)
        self._index = session.contributors.index(name)
        self._server = session.servers[0]
        self._journal = MemoryJournal() if journal is None else journal
        self._application = application
        self._ring = KeyRing()

    def _join(self, session: Session) -> None:
        self.parameters = Parameters.of(session)
        super()._join(session)
        p = self.parameters
        self._neighbours = masking.graph_of(session, p)[session.contributors.index(self.name)]

    def advertise(self) -> wire.Buffer:
        """Draw this session's keys and return the message that shows the public ones."""
        following = self._next("advertise")
        self._spend("advertise")
        ring = self._ring
        ring.cipher_key, ring.mask_key = self._entropy(SECRET_BYTES), self._entropy(SECRET_BYTES)
        public = ring.public()
        signature = b""
        if self.parameters.active:
            signature = self._identity.sign("secagg keys", self._agreement, self.name, *public)
        self.state = following
        return self._send(Advertise(public[0], public[1], signature))

    def share(self, data: wire.Buffer) -> wire.Buffer:
        """Take the others' keys and share the secrets behind the masks among the neighbours.

        Args:
            data: The server's `Keys`.

        Raises:
            RemoteProtocolError: The server's list leaves this client out or changes its keys, or
                names clients twice or in disorder.
            AuthenticationError: A signature is not the named client's (active security).
            KeyMismatchError: A key is no point, or one of small order; it names the client.
            ThresholdError: Too few clients advertised keys.
        """
        following = self._next("share")
        message = self._from_server(data, Keys)[0]
        keys = self._check_keys(message)
        self._spend("share")
        self._ring.peers = keys
        self._ring.roster = masking.roster(message) if self.parameters.complete else b""
        boxes = self._make_boxes()
        self.state = following
        return boxes

    def _check_keys(self, message: Keys) -> dict[int, tuple[bytes, bytes]]:
        keys = {
            i: (k.cipher_key, k.mask_key)
            for i, k in zip(message.clients, message.keys, strict=False)
        }
        if len(message.clients) != len(message.keys) or not self._ascending(message.clients):
            raise self._refused("its list of keys is malformed")
        if keys.get(self._index) != self._ring.public():
            raise self._refused("its list of keys does not have this client's own")
        if len({key for pair in keys.values() for key in pair}) != 2 * len(keys):
            raise self._refused("two clients are said to have the same key")
        strangers = set(keys) - {self._index, *self._neighbours}
        if strangers:
            raise self._refused("it lists a client that is no neighbour in the agreed graph")
        for i, pair in keys.items():
            if not all(map(public_key.is_point, pair)):
                name = self._session.contributors[i]
                raise KeyMismatchError(f"{name}: its key of this session is not a valid one")
        self._enough(keys)
        if self.parameters.active:
            for i, key in zip(message.clients, message.keys, strict=True):
                name = self._session.contributors[i]
                identity_.verify(
                    self._session.keys[name],
                    key.signature,
                    name,
                    "secagg keys",
                    self._agreement,
                    name,
                    key.cipher_key,
                    key.mask_key,
                )
        return keys

    def _make_boxes(self) -> wire.Buffer:
        peers, boxes = self._ring.deal(
            self._index, self.parameters.threshold, self._agreement, self._entropy
        )
        commitment = masking.commitment(self._ring.seed, self._agreement, self._index)
        return self._send(Shares(commitment, peers, boxes))

    def mask(
        self, data: wire.Buffer, values: npt.ArrayLike, weight: int | None = None
    ) -> wire.Buffer:
        """Take the neighbours' shares and send the vector under masks.

        Args:
            data: The server's `Boxes`.
            values: Signed integers, shape (d,), each within the layout's bound.
            weight: Integer weight from 0 to the agreed largest; it multiplies the values and is
                summed under the same masks. None for a session without weights.

        Raises:
            ParameterError, RangeError: The vector or the weight is not what was agreed. The
                message can be given again with the right ones.
            RemoteProtocolError, AuthenticationError: A box is not its sender's.
            ThresholdError: Too few neighbours shared.
        """
        following = self._next("mask")
        vector = masking.encode(values, weight, self._session.layout, self.parameters, self.name)
        message = self._from_server(data, Boxes)[0]
        held = self._open_boxes(message)
        self._spend("mask")
        plus, minus = self._ring.mask_keys(self._index, sorted(held), self._agreement)
        self._ring.held.update(held)
        body = masking.masked_body(vector, plus, minus, self.parameters.bits)
        self.state = following
        return self._seal(Masked.KIND, body, self._server)

    def _open_boxes(self, message: Boxes) -> dict[int, bytes]:
        senders = message.senders
        if (
            not self._ascending(senders)
            or not set(senders) <= set(self._ring.peers) - {self._index}
            or len(message.boxes) != len(senders) * BOX_BYTES
        ):
            raise self._refused("its boxes are not from neighbours that advertised keys")
        self._enough([*senders, self._index])
        held = {}
        for place, sender in enumerate(senders):
            sealed = message.boxes[place * BOX_BYTES : (place + 1) * BOX_BYTES]
            try:
                held[sender] = self._ring.open(self._index, sender, sealed, self._agreement)
            except ParameterError as error:
                name = self._session.contributors[sender]
                raise AuthenticationError(f"{name}: {error}") from None
            except RangeError as error:
                raise RemoteProtocolError(self._session.contributors[sender], str(error)) from None
        return held

    def consent(self, data: wire.Buffer) -> wire.Buffer:
        """Check the survivors and sign them (active security).

        Args:
            data: The server's `Survivors`.

        Raises:
            RemoteProtocolError, ThresholdError: As `unmask`.
        """
        following = self._next("consent")
        if not self.parameters.active:
            raise LocalProtocolError("consent() is for active security; call unmask()")
        survivors = self._check_survivors(self._from_server(data, Survivors)[0])
        self._spend("consent")
        self._ring.survivors = survivors
        self.state = following
        return self._send(Consent(self._identity.sign(*self._statement(survivors))))

    def _statement(self, survivors: list[int]) -> tuple[str, bytes, bytes, bytes]:
        return masking.statement(self._agreement, survivors, self._application)

    def unmask(self, data: wire.Buffer) -> wire.Buffer:
        """Reveal, once, one share for each neighbour: of its seed or of its mask key.

        Args:
            data: The server's `Survivors`, or under active security its `Consents`.

        Raises:
            RemoteProtocolError: The survivors leave this client out, bring back one that it saw
                dropped, or are malformed.
            ThresholdError: Too few survivors, or (active security) too few valid signatures.
            AuthenticationError: A signature is not the named survivor's.
        """
        following = self._next("unmask")
        if not self.parameters.active:
            survivors = self._check_survivors(self._from_server(data, Survivors)[0])
        elif self.state is State.MASKED:
            raise LocalProtocolError("active security: call consent() before unmask()")
        else:
            survivors = self._ring.survivors
            self._check_consents(self._from_server(data, Consents)[0], survivors)
        alive = set(survivors)
        # The mark is on disk before the answer exists outside of this process.
        self._spend("unmask")
        owners, shares = self._ring.answer(alive)
        if not alive >= set(self._ring.peers):
            self._drop()  # somebody's mask key is revealed: these keys are not used again
        self.state = following
        flat = shares.reshape(-1)
        message = Unmask(owners, wire.Vector(field.BITS, flat.size))
        body = wire.encode_body(message, flat.size, lambda start, stop: flat[start:stop])
        return self._seal(Unmask.KIND, body, self._server)

    def _check_survivors(self, message: Survivors) -> list[int]:
        survivors = message.clients
        if not self._ascending(survivors) or self._index not in survivors:
            raise self._refused("its list of survivors is malformed or leaves this client out")
        near = {self._index, *self._neighbours} & set(survivors)
        if near - set(self._ring.held):
            raise self._refused("it brings back a client that had dropped out")
        dropped = set(self._ring.held) - set(survivors)
        if dropped and self._session.round:
            # The same mask key hid this client's vector in earlier rounds, whose seeds are known.
            raise ThresholdError(
                len(self._ring.held),
                len(self._ring.held) - len(dropped),
                "somebody dropped out after the first round; start a new session",
            )
        if len(survivors) < self.parameters.minimum:
            raise ThresholdError(
                self.parameters.minimum, len(survivors), "too few survivors to hide among"
            )
        self._enough(near)
        return survivors

    def _check_consents(self, message: Consents, survivors: list[int]) -> None:
        signers = message.clients
        if (
            not self._ascending(signers)
            or not set(signers) <= set(survivors)
            or len(signers) != len(message.signatures)
        ):
            raise self._refused("its list of signers is malformed or has a client that dropped")
        if len(signers) < self.parameters.threshold:
            raise ThresholdError(
                self.parameters.threshold, len(signers), "too few survivors signed the list"
            )
        statement = self._statement(survivors)
        for signer, signature in zip(signers, message.signatures, strict=True):
            name = self._session.contributors[signer]
            identity_.verify(self._session.keys[name], signature, name, *statement)

    def next_round(self, layout: Layout) -> tuple[Session, wire.Buffer]:
        """Go on with the same keys, as long as nobody dropped out, in this round or a later one.

        Args:
            layout: What is summed next.

        Returns:
            The next round's session, and its `Shares` message.

        Raises:
            LocalProtocolError: Somebody dropped out: a mask key was revealed. Start a new session.
        """
        following = self._next("next_round")
        if not self._ring.peers:
            raise LocalProtocolError(
                "somebody dropped out, and mask keys were revealed; start a new session"
            )
        self._join(self._session.next(layout))
        self._spend("share")
        message = self._make_boxes()
        self.state = following
        return self._session, message

    @step
    def save(self) -> bytes:
        """Give the client's state away for safe keeping, and stop. The bytes are secret.

        Raises:
            LocalProtocolError: The journal does not outlive this process, so that a restored
                client could answer twice.
        """
        if isinstance(self._journal, MemoryJournal):
            raise LocalProtocolError("save() needs a journal on disk; give the client one")
        saved = msgspec.msgpack.encode((self._agreement, self.name, self.state.value, self._ring))
        self.abort()
        return saved

    @step
    def restore(self, saved: bytes) -> None:
        """Take up a state that `save` returned. Call it on a new client of the same session.

        Raises:
            LocalProtocolError: This client has begun already, or has no journal on disk.
            ParameterError: The bytes are not a state of this session.
        """
        if self.state is not State.READY:
            raise LocalProtocolError("restore() is for a client that has not begun")
        if isinstance(self._journal, MemoryJournal):
            raise LocalProtocolError("restore() needs the journal on disk that the client had")
        try:
            agreement, name, state, ring = msgspec.msgpack.decode(
                saved, type=tuple[bytes, str, str, KeyRing]
            )
            self.state = State(state)
        except (msgspec.DecodeError, ValueError):
            raise ParameterError("these bytes are not a client's saved state") from None
        if (agreement, name) != (self._agreement, self.name):
            self.state = State.READY
            raise ParameterError(
                "the saved state is of another session, round or layout, or of another client"
            )
        self._ring = ring

    def _from_server(self, data: wire.Buffer, kind: type[wire.M]) -> tuple[wire.M, memoryview]:
        _, message, payload = self._open(data, kind, (self._server,))
        return message, payload

    def _send(self, message: wire.Message) -> wire.Buffer:
        return self._seal(message.KIND, wire.encode_body(message), self._server)

    def _spend(self, step: str) -> None:
        self._journal.spend(f"secagg {self._agreement.hex()} {self.name} {step}")

    def _enough(self, group: Collection[int]) -> None:
        """Refuse when those of the neighbours and this client that remain are too few."""
        needed = self.parameters.threshold
        if self.parameters.complete:
            needed = max(needed, self.parameters.minimum)
        if len(group) < needed:
            raise ThresholdError(needed, len(group), "too few clients are left")

    def _ascending(self, clients: list[int]) -> bool:
        inside = not clients or (clients[0] >= 0 and clients[-1] < self.parameters.clients)
        return inside and all(a < b for a, b in pairwise(clients))

    def _refused(self, reason: str) -> RemoteProtocolError:
        return RemoteProtocolError(self._server, reason)

    def _drop(self) -> None:
        self._ring = KeyRing()
