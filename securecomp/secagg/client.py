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

from typing import ClassVar

import msgspec
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core import field
from securecomp.core.entropy import Entropy
from securecomp.errors import LocalProtocolError, ParameterError
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal, MemoryJournal
from securecomp.protocol.role import State, step
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import masking
from securecomp.secagg.client_checks import CautiousClient
from securecomp.secagg.keyring import SECRET_BYTES, KeyRing
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


class Client(CautiousClient):
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
        super().__init__(session, name, identity, application, entropy)
        self._journal = MemoryJournal() if journal is None else journal

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

    def _send(self, message: wire.Message) -> wire.Buffer:
        return self._seal(message.KIND, wire.encode_body(message), self._server)

    def _spend(self, step: str) -> None:
        self._journal.spend(f"secagg {self._agreement.hex()} {self.name} {step}")

    def _drop(self) -> None:
        self._ring = KeyRing()
