"""The checks by which a client protects itself: it believes nothing that the server says.

The server brings the others' keys, boxes, survivors and signatures. Each list is checked against
the agreed graph and thresholds, and against what the client said and saw itself.
"""

from collections.abc import Collection
from itertools import pairwise

from securecomp.core.entropy import Entropy
from securecomp.errors import (
    AuthenticationError,
    KeyMismatchError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.protocol import identity as identity_
from securecomp.protocol import public_key, wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import SessionRole, State
from securecomp.protocol.session import Session
from securecomp.secagg import masking
from securecomp.secagg.keyring import BOX_BYTES, KeyRing
from securecomp.secagg.masking_messages import Boxes, Consents, Keys, Survivors
from securecomp.secagg.parameters import Parameters


class CautiousClient(SessionRole):
    """A client's knowledge of its session, and its checks of the server's messages."""

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        application: bytes,
        entropy: Entropy,
    ) -> None:
        super().__init__(session, name, identity, session.contributors, State.READY, entropy)
        self._index = session.contributors.index(name)
        self._server = session.servers[0]
        self._application = application
        self._ring = KeyRing()

    def _join(self, session: Session) -> None:
        self.parameters = Parameters.of(session)
        super()._join(session)
        p = self.parameters
        self._neighbours = masking.graph_of(session, p)[session.contributors.index(self.name)]

    def _from_server(self, data: wire.Buffer, kind: type[wire.M]) -> tuple[wire.M, memoryview]:
        _, message, payload = self._open(data, kind, (self._server,))
        return message, payload

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

    def _statement(self, survivors: list[int]) -> tuple[str, bytes, bytes, bytes]:
        return masking.statement(self._agreement, survivors, self._application)

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
