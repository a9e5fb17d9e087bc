"""The encrypted aggregator: contributors encrypt, it adds, the key holder decrypts the total.

What each party learns, all following the protocol:
- the aggregator: sizes, and who contributed. It cannot decrypt.
- the key holder: the total (from an aggregate of at least the agreed number of contributors).
- a receiver: the total.
- the aggregator and the key holder together: every contributor's vector; with blind=True, only the
  total, because contributors hide their plaintexts under pairwise masks modulo n that cancel in the
  sum, unless all contributors but two collude too. Blind sums need every contributor.
The aggregator could hand the key holder another aggregate than the agreed one: the sum of fewer
vectors, say. Uploads are signed, so that a dispute can be settled from what was uploaded; nothing
stops it at the time.

Assumptions: decisional composite residuosity; for short exponents that h_s^r looks like a random
n-th residue (Damgård, Jurik, Nielsen 2010); X25519, HKDF and AES-256 for masks; Ed25519.
"""

import hashlib
from concurrent.futures import Executor
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from gmpy2 import mpz

from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier import vectors
from securecomp.paillier.encoding import join_ciphertexts, split_ciphertexts
from securecomp.paillier.keys import PrivateKey, PublicKey
from securecomp.paillier.packing import Packing
from securecomp.paillier.vectors import EncryptedVector, Exponent
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import SessionRole, State
from securecomp.protocol.session import Session


def protocol_name(key: PublicKey) -> str:
    """Return a session's protocol: the key is part of what is agreed."""
    return f"paillier/sum/1 key {key.id.hex()}"


def terms(contributors: int, *, minimum: int | None = None, blind: bool = False) -> dict[str, int]:
    """Return a session's parameters.

    Args:
        contributors: How many there are.
        minimum: Fewest whose total the key holder decrypts; by default all.
        blind: Whether contributors mask their plaintexts among themselves (needs all of them).

    Raises:
        ParameterError: A minimum below 2, above the contributors, or below them for a blind sum.
    """
    least = contributors if minimum is None else minimum
    if not 2 <= least <= contributors:
        raise ParameterError(f"the minimum must be from 2 to {contributors}, not {least}")
    if blind and least < contributors:
        raise ParameterError("a blind sum needs every contributor; leave out minimum")
    return {"minimum": least, "blind": int(blind)}


def check_session(session: Session, name: str) -> None:
    """Refuse a session that does not protect its contributors, whoever proposed it.

    Raises:
        ParameterError: Other parameters or servers than this protocol's.
    """
    if set(session.terms) != {"minimum", "blind"} or session.terms["blind"] not in (0, 1):
        raise ParameterError(f"{name}: the session's parameters are not this protocol's")
    if len(session.servers) != 2:
        raise ParameterError("the session needs an aggregator and one key holder")
    blind = bool(session.terms["blind"])
    terms(len(session.contributors), minimum=session.terms["minimum"], blind=blind)


class Upload(wire.Message, frozen=True):
    """Contributor to aggregator: its encrypted vector, signed."""

    KIND: ClassVar[int] = 32
    ciphertexts: bytes
    signature: bytes


class EncryptedTotal(wire.Message, frozen=True):
    """Aggregator to key holder: the encrypted total, and whose vectors are in it."""

    KIND: ClassVar[int] = 33
    contributors: list[int]
    ciphertexts: bytes


class DecryptedTotal(wire.Message, frozen=True):
    """Key holder to receiver: the total, 8 bytes a value."""

    KIND: ClassVar[int] = 34
    contributors: list[int]
    values: bytes


class _PaillierRole(SessionRole):
    def _layout(self, key: PublicKey) -> Packing:
        if self._session.protocol != protocol_name(key):
            raise KeyMismatchError(f"{self.name}: the session was agreed for another key")
        check_session(self._session, self.name)
        layout = self._session.layout
        return Packing.plan(key, layout.bound, len(self._session.contributors))

    _packing: Packing

    def _largest(self) -> int:
        # A ciphertext is twice as long as its plaintext, which its slots nearly fill.
        plaintext = self._packing.slot * (self._packing.slots + 1) // 8 + 64
        count = self._packing.ciphertexts(self._session.layout.length)
        return self._session.largest_message + 2 * plaintext * count

    def _send(self, message: wire.Message, recipient: str) -> wire.Buffer:
        return self._seal(message.KIND, wire.encode_body(message), recipient)


class Contributor(_PaillierRole):
    """Encrypts one vector."""

    TRANSITIONS: ClassVar = {(State.READY, "contribute"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        key: PublicKey,
        *,
        exponent: Exponent = "half",
        executor: Executor | None = None,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.contributors, State.READY, entropy)
        self._key = key
        self._packing = self._layout(key)
        self._exponent: Exponent = exponent
        self._executor = executor

    def contribute(self, values: npt.ArrayLike) -> wire.Buffer:
        """Encrypt, sign and seal a vector for the aggregator.

        Args:
            values: Signed integers, shape (d,), each within the layout's bound.

        Raises:
            ParameterError, RangeError: Not the agreed vector. Nothing was sent.
        """
        following = self._next("contribute")
        layout = self._session.layout
        array = vectors.check_integers(values)
        if array.shape != (layout.length,):
            raise ParameterError(
                f"{self.name}: the vector has shape {array.shape} and ({layout.length},) was agreed"
            )
        try:
            encrypted = vectors.encrypt(
                self._key,
                array,
                bound=layout.bound,
                additions=self._packing.additions,
                exponent=self._exponent,
                executor=self._executor,
                entropy=self._entropy,
            )
        except RangeError as error:
            raise RangeError(f"{self.name}: {error}") from None
        ciphertexts = encrypted.ciphertexts
        if self._session.terms["blind"]:
            n, n2 = self._key.n, self._key.n2
            masks = self._masks(len(ciphertexts))
            ciphertexts = [c * (1 + m * n) % n2 for c, m in zip(ciphertexts, masks, strict=True)]
        data = join_ciphertexts(self._key, ciphertexts)
        statement = (self._agreement, self.name, hashlib.sha256(data).digest())
        signature = self._identity.sign("paillier upload", *statement)
        self.state = following
        return self._send(Upload(data, signature), self._session.servers[0])

    def _masks(self, count: int) -> list[mpz]:
        """Return masks modulo n that add up to zero over all contributors."""
        n = self._key.n
        size = -(-n.bit_length() // 8) + 16  # 128 bits more, so that the residue is uniform
        me = self._session.contributors.index(self.name)
        masks = [mpz(0)] * count
        for other, name in enumerate(self._session.contributors):
            if other == me:
                continue
            secret = self._identity.shared(self._session.keys[name])
            low, high = min(me, other), max(me, other)
            key = prg.derive(secret, "paillier blind", self._agreement, low, high)
            stream = AESGCM(key).encrypt(bytes(12), bytes(size * count), None)
            sign = 1 if me < other else -1
            for i in range(count):
                mask = int.from_bytes(stream[i * size : (i + 1) * size], "big")
                masks[i] = (masks[i] + sign * mask) % n
        return masks


class Aggregator(_PaillierRole):
    """Adds ciphertexts that it cannot open."""

    TRANSITIONS: ClassVar = {
        (State.COLLECTING, "receive"): State.COLLECTING,
        (State.COLLECTING, "close"): State.DONE,
    }

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        key: PublicKey,
        *,
        key_holder: str,
        exponent: Exponent = "half",
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.servers[:1], State.COLLECTING, entropy)
        if key_holder not in session.servers[1:]:
            raise ParameterError(f"{key_holder!r} is not a key holder of this session")
        self._key = key
        self._packing = self._layout(key)
        self._key_holder = key_holder
        self._exponent: Exponent = exponent
        self._total: EncryptedVector | None = None
        self._there: list[str] = []

    @property
    def missing(self) -> list[str]:
        """The contributors whose uploads are not here yet."""
        return [name for name in self._session.contributors if name not in self._there]

    def receive(self, data: wire.Buffer) -> None:
        """Take one upload. A refused message changes nothing.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: Not this contributor's upload
                of this session; numbers that are no ciphertexts; a duplicate.
        """
        following = self._next("receive")
        sender, upload, _ = self._open(data, Upload, self._session.contributors, self._there)
        identity_.verify(
            self._session.keys[sender],
            upload.signature,
            sender,
            "paillier upload",
            self._agreement,
            sender,
            hashlib.sha256(upload.ciphertexts).digest(),
        )
        vector = self._vector(sender, upload.ciphertexts, 1)
        self._total = vector if self._total is None else self._total + vector
        self._there.append(sender)
        self.state = following

    def _vector(self, sender: str, data: bytes, weight: int) -> EncryptedVector:
        return read_vector(self._key, self._packing, self._session, sender, data, weight)

    def close(self) -> wire.Buffer:
        """Re-randomise the sum and seal it for the key holder.

        Raises:
            ThresholdError: Fewer contributors than the agreed minimum.
        """
        following = self._next("close")
        needed = self._session.terms["minimum"]
        if len(self._there) < needed or self._total is None:
            raise ThresholdError(
                needed, len(self._there), f"uploads of {', '.join(self.missing)} are missing"
            )
        fresh = self._total.rerandomised(exponent=self._exponent, entropy=self._entropy)
        names = self._session.contributors
        message = EncryptedTotal(
            sorted(names.index(name) for name in self._there),
            join_ciphertexts(self._key, fresh.ciphertexts),
        )
        self.state = following
        return self._send(message, self._key_holder)

    def _drop(self) -> None:
        self._total = None


def read_vector(
    key: PublicKey, packing: Packing, session: Session, sender: str, data: bytes, weight: int
) -> EncryptedVector:
    """Read the vector of a message.

    Raises:
        RemoteProtocolError: It is not one of the agreed length under the agreed key.
    """
    length = session.layout.length
    try:
        ciphertexts = split_ciphertexts(key, data, packing.ciphertexts(length))
    except DecodeError as error:
        raise RemoteProtocolError(sender, str(error)) from None
    return EncryptedVector(key, packing, length, weight, ciphertexts)


class KeyHolder(_PaillierRole):
    """Decrypts the total, once, and only of enough contributors."""

    TRANSITIONS: ClassVar = {(State.READY, "decrypt"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        key: PrivateKey,
        *,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.servers[1:], State.READY, entropy)
        self._private: PrivateKey | None = key
        self._packing = self._layout(key.public)

    def decrypt(self, data: wire.Buffer) -> dict[str, wire.Buffer]:
        """Open the aggregate and return the total for each receiver.

        Raises:
            ThresholdError: Fewer contributors than the agreed minimum.
            RemoteProtocolError: A malformed list of contributors, or no ciphertexts of this key.
            RangeError: The total is beyond the agreed bounds.
        """
        following = self._next("decrypt")
        sender, message, _ = self._open(data, EncryptedTotal, self._session.servers[:1])
        # Whether a total is in range is an answer too: one aggregate is opened, or none.
        with self._all_or_nothing():
            values = self._open_total(sender, message)
            total = DecryptedTotal(message.contributors, values.astype("<i8").tobytes())
            sealed = {name: self._send(total, name) for name in self._session.receivers}
        self._drop()
        self.state = following
        return sealed

    def _open_total(self, sender: str, message: EncryptedTotal) -> npt.NDArray[np.int64]:
        listed = message.contributors
        check_listed(sender, listed, self._session)
        if self._private is None:
            raise LocalProtocolError(f"{self.name}: the key was dropped")
        key = self._private
        vector = read_vector(
            key.public, self._packing, self._session, sender, message.ciphertexts, len(listed)
        )
        try:
            values = vectors.decrypt(key, vector)
        except RangeError:
            raise RangeError(_BEYOND) from None
        check_total(values, len(listed), self._session)
        return values

    def _drop(self) -> None:
        self._private = None


def check_listed(sender: str, listed: list[int], session: Session) -> None:
    """Refuse a malformed list of contributors, or one that is too short.

    Raises:
        RemoteProtocolError, ThresholdError: It is.
    """
    if sorted(set(listed)) != listed or not all(0 <= i < len(session.contributors) for i in listed):
        raise RemoteProtocolError(sender, "its list of contributors is malformed")
    needed = session.terms["minimum"]
    if len(listed) < needed:
        raise ThresholdError(needed, len(listed), "too few contributors to hide among")


def check_total(values: npt.NDArray[np.int64], contributors: int, session: Session) -> None:
    """Refuse a total that inputs within the bounds cannot give.

    Raises:
        RangeError: A party did not keep to the protocol.
    """
    largest = contributors * session.layout.bound
    if values.size and max(int(values.max()), -int(values.min())) > largest:
        raise RangeError(_BEYOND)


_BEYOND = "the total is beyond what the agreed bounds allow: a party did not keep to the protocol"


class Receiver(SessionRole):
    """Gets the total from the key holder."""

    TRANSITIONS: ClassVar = {(State.COLLECTING, "receive"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        *,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.receivers, State.COLLECTING, entropy)
        check_session(session, name)

    def receive(self, data: wire.Buffer) -> npt.NDArray[np.int64]:
        """Open the total, shape (d,).

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: Not the key holder's message.
            RangeError: The total is beyond the agreed bounds.
        """
        following = self._next("receive")
        sender, total, _ = self._open(data, DecryptedTotal, self._session.servers[1:])
        check_listed(sender, total.contributors, self._session)
        if len(total.values) != 8 * self._session.layout.length:
            raise RemoteProtocolError(sender, "its total has another length than agreed")
        values = np.frombuffer(total.values, "<i8").astype(np.int64)
        check_total(values, len(self._session.contributors), self._session)
        self.state = following
        return values
