"""The server: it forwards keys and shares, adds masked vectors, and takes the masks off the sum.

`receive` takes a client's message of the current step; `close` ends the step (a deadline, or all
are there) and returns the messages of the next one. What comes too late is refused: a vector
whose mask key was reconstructed would otherwise lie open.

Sources: Bonawitz et al., CCS 2017, figure 4; Bell et al., CCS 2020, algorithm 2.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import (
    DecodeError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.protocol import identity as identity_
from securecomp.protocol import public_key, wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import SessionRole, State
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import masking
from securecomp.secagg.keyring import BOX_BYTES, SHARE_LIMBS, public_of
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
    UnmaskedTotal,
)
from securecomp.secagg.parameters import Parameters
from securecomp.secagg.receiver import Aggregate, read_total
from securecomp.secagg.recovery import group_by_holders, leftover_masks, recover


class Server(SessionRole):
    """Learns who took part at which step, and the sum; see `client` for what it can do besides."""

    _STEPS: ClassVar = (
        State.COLLECTING_KEYS,
        State.COLLECTING_SHARES,
        State.COLLECTING_VECTORS,
        State.COLLECTING_CONSENTS,
        State.COLLECTING_UNMASKS,
    )
    TRANSITIONS: ClassVar = {
        (State.COLLECTING_KEYS, "receive"): State.COLLECTING_KEYS,
        (State.COLLECTING_KEYS, "close"): State.COLLECTING_SHARES,
        (State.COLLECTING_SHARES, "receive"): State.COLLECTING_SHARES,
        (State.COLLECTING_SHARES, "close"): State.COLLECTING_VECTORS,
        (State.COLLECTING_VECTORS, "receive"): State.COLLECTING_VECTORS,
        (State.COLLECTING_VECTORS, "close"): State.COLLECTING_UNMASKS,
        (State.COLLECTING_CONSENTS, "receive"): State.COLLECTING_CONSENTS,
        (State.COLLECTING_CONSENTS, "close"): State.COLLECTING_UNMASKS,
        (State.COLLECTING_UNMASKS, "receive"): State.COLLECTING_UNMASKS,
        (State.COLLECTING_UNMASKS, "close"): State.DONE,
        (State.DONE, "result"): State.DONE,
        (State.DONE, "next_round"): State.COLLECTING_SHARES,
    }

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        *,
        application: bytes = b"",
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Open a session.

        Args:
            session: As agreed.
            name: Which server of the session this is.
            identity: Its long-term keys.
            application: What the clients sign besides the survivors; to check their signatures.
            entropy: Source of all randomness.

        Raises:
            ParameterError, ThresholdError, RangeError: Its parameters are impossible.
        """
        super().__init__(session, name, identity, session.servers, State.COLLECTING_KEYS, entropy)
        self._application = application
        self._keys: dict[int, Advertise] = {}
        self._start_round()

    def _join(self, session: Session) -> None:
        self.parameters = Parameters.of(session)
        super()._join(session)
        self._graph = masking.graph_of(session, self.parameters)
        self._index = {name: i for i, name in enumerate(session.contributors)}

    def _start_round(self) -> None:
        self._shares: dict[int, Shares] = {}
        self._vectors: set[int] = set()
        self._consents: dict[int, bytes] = {}
        self._unmasks: dict[int, Residues] = {}
        self._owners: dict[int, list[int]] = {}
        self._survivors: list[int] = []
        self._aggregate: Aggregate | None = None
        p = self.parameters
        self._sum = masking.Accumulator(masking.vector_length(self._session.layout, p), p.bits)

    @property
    def missing(self) -> list[str]:
        """The clients of whom a message of this step is awaited."""
        awaited, there = self._step()
        return [self._session.contributors[i] for i in sorted(awaited - there)]

    def _step(self) -> tuple[set[int], set[int]]:
        """Return who takes part in this step, and who has sent its message."""
        signers = set(self._consents) if self.parameters.active else set(self._survivors)
        steps: dict[State, tuple[set[int], set[int]]] = {
            State.COLLECTING_KEYS: (set(self._index.values()), set(self._keys)),
            State.COLLECTING_SHARES: (set(self._keys), set(self._shares)),
            State.COLLECTING_VECTORS: (set(self._shares), self._vectors),
            State.COLLECTING_CONSENTS: (set(self._survivors), set(self._consents)),
            State.COLLECTING_UNMASKS: (signers, set(self._unmasks)),
        }
        return steps.get(self.state, (set(), set()))

    def receive(self, data: wire.Buffer) -> None:
        """Take a client's message of this step. A refused message changes nothing.

        Raises:
            DecodeError, AuthenticationError: Not a well-formed message of the party it names.
            RemoteProtocolError: Of another step (too early or too late), a duplicate, or not what
                this client has to send; `sender` says whose.
        """
        self._next("receive")
        take: dict[State, Callable[[wire.Buffer], None]] = {
            State.COLLECTING_KEYS: self._take_keys,
            State.COLLECTING_SHARES: self._take_shares,
            State.COLLECTING_VECTORS: self._take_vector,
            State.COLLECTING_CONSENTS: self._take_consent,
            State.COLLECTING_UNMASKS: self._take_unmask,
        }
        take[self.state](data)

    def _awaited(
        self, data: wire.Buffer, kind: type[wire.M]
    ) -> tuple[int, str, wire.M, memoryview]:
        awaited, there = (
            [self._session.contributors[i] for i in clients] for clients in self._step()
        )
        sender, message, payload = self._open(data, kind, awaited, there)
        return self._index[sender], sender, message, payload

    def _take_keys(self, data: wire.Buffer) -> None:
        index, sender, message, _ = self._awaited(data, Advertise)
        mine = (message.cipher_key, message.mask_key)
        if any(len(key) != 32 for key in mine):
            raise RemoteProtocolError(sender, "its public keys have a wrong length")
        if not all(map(public_key.is_point, mine)):
            raise RemoteProtocolError(sender, "its public keys are not valid ones")
        taken = {k for other in self._keys.values() for k in (other.cipher_key, other.mask_key)}
        if len(set(mine)) < 2 or taken & set(mine):
            raise RemoteProtocolError(sender, "its public keys are not its own, or one is twice")
        if self.parameters.active:
            identity_.verify(
                self._session.keys[sender],
                message.signature,
                sender,
                "secagg keys",
                self._agreement,
                sender,
                message.cipher_key,
                message.mask_key,
            )
        self._keys[index] = message

    def _take_shares(self, data: wire.Buffer) -> None:
        index, sender, message, _ = self._awaited(data, Shares)
        expected = [v for v in self._graph[index] if v in self._keys]
        if (
            message.recipients != expected
            or len(message.boxes) != BOX_BYTES * len(expected)
            or len(message.commitment) != 32
        ):
            raise RemoteProtocolError(sender, "its boxes are not for the neighbours it was given")
        self._shares[index] = message

    def _take_vector(self, data: wire.Buffer) -> None:
        index, sender, message, payload = self._awaited(data, Masked)
        try:
            self._sum.add(message.vector, payload)
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None
        self._vectors.add(index)

    def _take_consent(self, data: wire.Buffer) -> None:
        index, sender, message, _ = self._awaited(data, Consent)
        statement = masking.statement(self._agreement, self._survivors, self._application)
        identity_.verify(self._session.keys[sender], message.signature, sender, *statement)
        self._consents[index] = message.signature

    def _take_unmask(self, data: wire.Buffer) -> None:
        index, sender, message, payload = self._awaited(data, Unmask)
        owners = sorted(v for v in (*self._graph[index], index) if v in self._shares)
        if message.owners != owners:
            raise RemoteProtocolError(sender, "its shares are not of the clients it was given")
        try:
            shares = wire.unpack(message.shares, payload, SHARE_LIMBS * len(owners))
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None
        self._owners[index] = owners
        self._unmasks[index] = shares.reshape(-1, SHARE_LIMBS)

    def close(self) -> dict[str, wire.Buffer]:
        """End the current step and return the messages of the next one.

        Returns:
            One message a client that is still there; after the last step, one a receiver.

        Raises:
            ThresholdError: Too few clients are left. The session is over, and nothing was
                revealed.
        """
        following = self._next("close")
        end = {
            State.COLLECTING_KEYS: self._end_keys,
            State.COLLECTING_SHARES: self._end_shares,
            State.COLLECTING_VECTORS: self._end_vectors,
            State.COLLECTING_CONSENTS: self._end_consents,
            State.COLLECTING_UNMASKS: self._end_unmasks,
        }
        if self.state is State.COLLECTING_VECTORS and self.parameters.active:
            following = State.COLLECTING_CONSENTS
        try:
            messages = end[self.state]()
        except (ThresholdError, ParameterError, RangeError, RemoteProtocolError):
            self.abort()
            raise
        self.state = following
        return messages

    def _enough(self, there: int, what: str) -> None:
        if there < self.parameters.minimum:
            raise ThresholdError(
                self.parameters.minimum, there, f"too few clients {what}; nothing was revealed"
            )

    def _end_keys(self) -> dict[str, wire.Buffer]:
        self._enough(len(self._keys), "advertised keys")
        return self._to_clients(sorted(self._keys), lambda i: self._keys_for([*self._graph[i], i]))

    def _keys_for(self, clients: list[int]) -> Keys:
        there = sorted(i for i in clients if i in self._keys)
        return Keys(there, [self._keys[i] for i in there])

    def _end_shares(self) -> dict[str, wire.Buffer]:
        self._enough(len(self._shares), "shared keys")
        places = {
            sender: {recipient: place for place, recipient in enumerate(message.recipients)}
            for sender, message in self._shares.items()
        }

        def boxes(recipient: int) -> Boxes:
            senders = [v for v in self._graph[recipient] if v in self._shares]
            parts = []
            for sender in senders:
                start = places[sender][recipient] * BOX_BYTES
                parts.append(self._shares[sender].boxes[start : start + BOX_BYTES])
            return Boxes(senders, b"".join(parts))

        return self._to_clients(sorted(self._shares), boxes)

    def _end_vectors(self) -> dict[str, wire.Buffer]:
        self._enough(len(self._vectors), "sent a vector")
        if self._session.round and self._vectors != set(self._shares):
            raise ThresholdError(
                len(self._shares),
                len(self._vectors),
                "somebody dropped out after the first round; nothing was revealed; start a new "
                "session",
            )
        self._survivors = sorted(self._vectors)
        message = Survivors(self._survivors)
        return self._to_clients(self._survivors, lambda _: message)

    def _end_consents(self) -> dict[str, wire.Buffer]:
        signers = sorted(self._consents)
        if len(signers) < self.parameters.threshold:
            raise ThresholdError(
                self.parameters.threshold,
                len(signers),
                "too few survivors signed; nothing was revealed",
            )
        message = Consents(signers, [self._consents[i] for i in signers])
        return self._to_clients(signers, lambda _: message)

    def _end_unmasks(self) -> dict[str, wire.Buffer]:
        alive = set(self._survivors)
        # Only who masked with a survivor left something in the sum.
        dropped = [
            d for d in sorted(self._shares) if d not in alive and alive & set(self._graph[d])
        ]
        secrets = self._reconstruct([*self._survivors, *dropped])
        plus, minus = leftover_masks(secrets, alive, self._graph, self._mask_keys, self._agreement)
        self._sum.unmask(plus, minus)
        residues = self._sum.result()
        p = self.parameters
        self._aggregate = read_total(residues, self._survivors, self._session, p)
        total = UnmaskedTotal(self._survivors, wire.Vector(p.bits, residues.size))
        body = wire.encode_body(total, residues.size, lambda a, b: residues[a:b], p.bits)
        return {
            name: self._seal(UnmaskedTotal.KIND, body, name) for name in self._session.receivers
        }

    def _reconstruct(self, owners: list[int]) -> dict[int, bytes]:
        held = {
            index: dict(zip(of, rows, strict=True))
            for (index, rows), of in zip(self._unmasks.items(), self._owners.values(), strict=True)
        }
        names = self._session.contributors
        groups = group_by_holders(owners, self._graph, held, self.parameters.threshold, names)
        secrets: dict[int, bytes] = {}
        for group, owned in groups.items():
            rows = np.array([[held[h][o] for o in owned] for h in group], np.uint64)
            found = recover(group, owned, rows, self.parameters.threshold, self._fits)
            lost = next((owner for owner in owned if owner not in found), None)
            if lost is not None:
                raise RemoteProtocolError(
                    names[lost],
                    "its secret does not come out of the shares: it dealt wrong ones, or a client "
                    "that holds one changed it",
                )
            secrets |= found
        return secrets

    @property
    def _mask_keys(self) -> dict[int, bytes]:
        return {index: said.mask_key for index, said in self._keys.items()}

    def _fits(self, owner: int, secret: bytes) -> bool:
        """Check a secret against what its owner committed to, or advertised."""
        if owner in self._vectors:
            commitment = masking.commitment(secret, self._agreement, owner)
            return commitment == self._shares[owner].commitment
        return public_of(secret) == self._keys[owner].mask_key

    def result(self) -> Aggregate:
        """Return the sum over the survivors."""
        self._next("result")
        if self._aggregate is None:
            raise LocalProtocolError("there is no result")
        return self._aggregate

    def next_round(self, layout: Layout) -> Session:
        """Go on with the same keys; the clients' `next_round` messages are awaited then.

        Raises:
            LocalProtocolError: Somebody dropped out; start a new session.
        """
        following = self._next("next_round")
        if set(self._unmasks) != set(self._index.values()):
            raise LocalProtocolError("somebody dropped out; start a new session")
        self._join(self._session.next(layout))
        self._start_round()
        self.state = following
        return self._session

    def _to_clients(
        self, clients: list[int], make: Callable[[int], wire.Message]
    ) -> dict[str, wire.Buffer]:
        sealed = {}
        for index in clients:
            message = make(index)
            name = self._session.contributors[index]
            sealed[name] = self._seal(message.KIND, wire.encode_body(message), name)
        return sealed

    def _drop(self) -> None:
        self._unmasks = {}
        self._aggregate = None
