"""The encrypted sum with a group of key holders, of whom more than half decrypt together.

Contributors encrypt as in `sum_roles`. The aggregator signs one request: the encrypted total and
its contributors. Every key holder checks the request, decrypts its part of it, once, and seals the
part for each receiver. A receiver verifies the parts and combines enough of them.

What each party learns, at most threshold - 1 key holders colluding with anybody:
- the aggregator and the key holders: sizes, and who contributed.
- a receiver: the total.

A holder decrypts one request in a session, also after a restart, if its journal is on disk. As more
than half must decrypt together, and each does so once, no two totals of a session come out, unless
holders deviate. The request's signature shows anybody later what the aggregator asked for.

Assumptions: those of `sum_roles` and `threshold_key`.
"""

import hashlib
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    DecodeError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier.partial_decryption import (
    PartialDecryption,
    interpolate,
    partial_decrypt,
    verify_partial,
)
from securecomp.paillier.sum_roles import Collector
from securecomp.paillier.sum_session import (
    BEYOND,
    DecryptionRequest,
    DecryptionShare,
    SumRole,
    check_listed,
    check_total,
    read_vector,
)
from securecomp.paillier.threshold_key import KeyShare, ThresholdKey
from securecomp.paillier.vectors import EncryptedVector
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal
from securecomp.protocol.role import State
from securecomp.protocol.session import Session

_PURPOSE = "paillier decryption request"


def _facts(agreement: bytes, contributors: list[int], ciphertexts: bytes) -> tuple[Any, ...]:
    """Return the statement that an aggregator signs."""
    return (
        agreement,
        prg.join("contributors", *contributors),
        hashlib.sha256(ciphertexts).digest(),
    )


class Aggregator(Collector):
    """Adds ciphertexts that it cannot open, and asks the key holders to decrypt the sum."""

    TRANSITIONS: ClassVar = Collector.TRANSITIONS

    def close(self) -> dict[str, wire.Buffer]:
        """Re-randomise the sum, sign it, and seal it for every key holder and every receiver.

        Raises:
            ThresholdError: Fewer contributors than the agreed minimum.
        """
        following = self._next("close")
        contributors, ciphertexts = self._closed()
        facts = _facts(self._agreement, contributors, ciphertexts)
        request = DecryptionRequest(
            contributors, ciphertexts, self._identity.sign(_PURPOSE, *facts)
        )
        self.state = following
        names = dict.fromkeys((*self._session.servers[1:], *self._session.receivers))
        return {name: self._send(request, name) for name in names}


class _RequestReader(SumRole):
    """A role that takes the aggregator's signed request."""

    def _open_request(
        self, data: wire.Buffer, key: ThresholdKey
    ) -> tuple[DecryptionRequest, EncryptedVector, bytes]:
        sender, request, _ = self._open(data, DecryptionRequest, self._session.servers[:1])
        check_listed(sender, request.contributors, self._session)
        facts = _facts(self._agreement, request.contributors, request.ciphertexts)
        public = self._session.keys[sender]
        identity_.verify(public, request.signature, sender, _PURPOSE, *facts)
        vector = read_vector(
            key.public,
            self._packing,
            self._session,
            sender,
            request.ciphertexts,
            len(request.contributors),
        )
        return request, vector, hashlib.sha256(prg.join(_PURPOSE, *facts)).digest()


class ShareHolder(_RequestReader):
    """Decrypts its part of one total, and only of enough contributors."""

    TRANSITIONS: ClassVar = {(State.READY, "decrypt"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        share: KeyShare,
        *,
        journal: Journal,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Take a share of the key.

        Args:
            session: The session. Its servers are the aggregator and the holders of shares 1, 2, ...
            name: This holder.
            identity: Its long-term key.
            share: Its share of the decryption key.
            journal: Where the one decryption is marked; on disk if the holder may restart.
            entropy: Source of randomness.

        Raises:
            ParameterError: The session's server in the share's place is another, or the session
                does not protect its contributors.
            KeyMismatchError: The session is for another key.
        """
        super().__init__(session, name, identity, session.servers[1:], State.READY, entropy)
        self._packing = self._layout(share.key)
        if session.servers[share.index] != name:
            raise ParameterError(f"{name}: share {share.index} is not for this holder's place")
        self._share: KeyShare | None = share
        self._journal = journal

    def decrypt(self, data: wire.Buffer) -> dict[str, wire.Buffer]:
        """Check the aggregator's request; return this holder's part for each receiver.

        Raises:
            DecodeError, AuthenticationError: Not the aggregator's message, or not signed by it.
            ThresholdError: Fewer contributors than the agreed minimum.
            RemoteProtocolError: A malformed list of contributors, or no ciphertexts of this key.
            LocalProtocolError: A total of this session was decrypted before.
        """
        following = self._next("decrypt")
        if self._share is None:
            raise LocalProtocolError(f"{self.name}: the key share was dropped")
        share = self._share
        _, vector, digest = self._open_request(data, share.key)
        self._journal.spend(f"paillier decryption {self._agreement.hex()} as {self.name}")
        self.state = following
        with self._all_or_nothing():
            partial = partial_decrypt(share, vector, entropy=self._entropy)
            message = DecryptionShare(digest, partial.encode())
            sealed = {name: self._send(message, name) for name in self._session.receivers}
        self._drop()
        return sealed

    def _drop(self) -> None:
        self._share = None


class Receiver(_RequestReader):
    """Verifies the holders' parts and combines them to the total."""

    TRANSITIONS: ClassVar = {
        (State.COLLECTING, "receive_request"): State.COLLECTING_SHARES,
        (State.COLLECTING_SHARES, "receive"): State.COLLECTING_SHARES,
        (State.COLLECTING_SHARES, "total"): State.DONE,
    }

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        key: ThresholdKey,
        *,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.receivers, State.COLLECTING, entropy)
        self._key = key
        self._packing = self._layout(key)
        self._vector: EncryptedVector | None = None
        self._request = b""
        self._contributors = 0
        self._parts: dict[str, list[Any]] = {}

    @property
    def missing(self) -> list[str]:
        """The key holders whose parts are not here yet."""
        return [name for name in self._session.servers[1:] if name not in self._parts]

    def _largest(self) -> int:
        # Of each ciphertext a part has the power, a challenge, and a response that is longer than
        # the key's delta n^2.
        count = self._packing.ciphertexts(self._session.layout.length)
        each = 2 * self._key.public.ciphertext_bytes + self._key.delta.bit_length() // 8 + 256
        return super()._largest() + count * each

    def receive_request(self, data: wire.Buffer) -> None:
        """Take the aggregator's signed request: what the holders were asked to decrypt.

        Raises:
            DecodeError, AuthenticationError: Not the aggregator's message, or not signed by it.
            ThresholdError, RemoteProtocolError: As for a key holder.
        """
        following = self._next("receive_request")
        request, self._vector, self._request = self._open_request(data, self._key)
        self._contributors = len(request.contributors)
        self.state = following

    def receive(self, data: wire.Buffer) -> None:
        """Verify one holder's part. A refused message changes nothing.

        Raises:
            DecodeError, AuthenticationError: Not a holder's message, or a wrong proof.
            RemoteProtocolError: Of another request or holder, malformed, or a duplicate.
        """
        following = self._next("receive")
        holders = self._session.servers[1:]
        sender, message, _ = self._open(data, DecryptionShare, holders, self._parts)
        if message.request != self._request:
            raise RemoteProtocolError(sender, "decrypted another request than this receiver got")
        try:
            partial = PartialDecryption.decode(message.partial)
            if partial.index != holders.index(sender) + 1:
                raise RemoteProtocolError(sender, "sent another holder's part")
            self._parts[sender] = verify_partial(self._key, self._held(), partial)
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None
        self.state = following

    def _held(self) -> EncryptedVector:
        if self._vector is None:
            raise LocalProtocolError(f"{self.name}: the request was dropped")
        return self._vector

    def total(self) -> npt.NDArray[np.int64]:
        """Combine the parts and return the total, shape (d,).

        Raises:
            ThresholdError: Too few parts yet; more can be received.
            RangeError: The total is beyond the agreed bounds.
        """
        following = self._next("total")
        vector, needed = self._held(), self._key.threshold
        if len(self._parts) < needed:
            raise ThresholdError(
                needed, len(self._parts), f"parts of {', '.join(self.missing)} are missing"
            )
        holders = self._session.servers[1:]
        parts = {holders.index(name) + 1: values for name, values in self._parts.items()}
        with self._all_or_nothing():
            try:
                values = interpolate(self._key, vector, parts)
            except RangeError:
                raise RangeError(BEYOND) from None
            check_total(values, self._contributors, self._session)
        self._drop()
        self.state = following
        return values

    def _drop(self) -> None:
        self._vector = None
        self._parts = {}
