"""The encrypted aggregator: contributors encrypt, it adds, the key holder decrypts the total.

What each party learns, if all follow the protocol:
- the aggregator: sizes, and who contributed. It cannot decrypt.
- the key holder: the total (from an aggregate of at least the agreed number of contributors).
- a receiver: the total.
- the aggregator and the key holder together: every contributor's vector. With blind=True they learn
  only the total, unless all contributors but two collude too: contributors hide their plaintexts
  under pairwise masks modulo n that cancel in the sum. Blind sums need every contributor.

The masks follow from long-term keys and the session alone. A second contribution under the same
masks would show the difference of the two. A contributor to a blind sum therefore marks its
journal before a masked vector leaves; on disk, the mark also stops a restarted contributor.

The aggregator could hand the key holder another aggregate than the agreed one, for example the sum
of fewer vectors. Uploads are signed, so that a dispute can be settled from what was uploaded;
nothing stops it at the time.

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
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier import vectors
from securecomp.paillier.encoding import join_ciphertexts
from securecomp.paillier.keys import PrivateKey, PublicKey
from securecomp.paillier.randomisers import Exponent
from securecomp.paillier.sum_session import (
    BEYOND,
    DecryptedTotal,
    EncryptedTotal,
    SumRole,
    Upload,
    check_listed,
    check_session,
    check_total,
    read_vector,
)
from securecomp.paillier.threshold_key import ThresholdKey
from securecomp.paillier.vectors import EncryptedVector
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.journal import Journal, MemoryJournal
from securecomp.protocol.role import SessionRole, State
from securecomp.protocol.session import Session


class Contributor(SumRole):
    """Encrypts one vector."""

    TRANSITIONS: ClassVar = {(State.READY, "contribute"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        key: PublicKey | ThresholdKey,
        *,
        exponent: Exponent = "half",
        executor: Executor | None = None,
        journal: Journal | None = None,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Join a session.

        Args:
            session: The session.
            name: This contributor.
            identity: Its long-term key.
            key: The key that the session was agreed for.
            exponent: See `randomisers.randomisers`.
            executor: Where to spread the encryption.
            journal: For a blind sum: where the one contribution is marked. It is on disk if the
                contributor may restart, and shared by all threads that could contribute.
            entropy: Source of randomness.

        Raises:
            ParameterError: The session does not protect its contributors, or is blind and there is
                no journal.
            KeyMismatchError: The session is for another key.
        """
        super().__init__(session, name, identity, session.contributors, State.READY, entropy)
        self._key = key.public
        self._packing = self._layout(key)
        self._exponent: Exponent = exponent
        self._executor = executor
        self._blind = bool(session.terms["blind"])
        if self._blind and journal is None:
            raise ParameterError(
                f"{name}: a blind sum's masks are used once; give journal=, a FileJournal if this "
                "party may restart"
            )
        self._journal = journal or MemoryJournal()

    def contribute(self, values: npt.ArrayLike) -> wire.Buffer:
        """Encrypt, sign and seal a vector for the aggregator.

        Args:
            values: Signed integers, shape (d,), each within the layout's bound.

        Raises:
            ParameterError, RangeError: Not the agreed vector. Nothing was sent.
            LocalProtocolError: A vector was sent before, by this object or, in a blind sum, by
                another one with this journal.
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
        if self._blind:
            self._journal.spend(f"paillier blind vector {self._agreement.hex()} as {self.name}")
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


class Collector(SumRole):
    """Adds contributors' ciphertexts, which it cannot open."""

    TRANSITIONS: ClassVar = {
        (State.COLLECTING, "receive"): State.COLLECTING,
        (State.COLLECTING, "close"): State.DONE,
    }

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        key: PublicKey | ThresholdKey,
        *,
        exponent: Exponent = "half",
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.servers[:1], State.COLLECTING, entropy)
        self._key = key.public
        self._packing = self._layout(key)
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
        vector = read_vector(self._key, self._packing, self._session, sender, upload.ciphertexts, 1)
        self._total = vector if self._total is None else self._total + vector
        self._there.append(sender)
        self.state = following

    def _closed(self) -> tuple[list[int], bytes]:
        """Return who is in the sum, and its ciphertexts under fresh randomness."""
        needed = self._session.terms["minimum"]
        if len(self._there) < needed or self._total is None:
            raise ThresholdError(
                needed, len(self._there), f"uploads of {', '.join(self.missing)} are missing"
            )
        fresh = self._total.rerandomised(exponent=self._exponent, entropy=self._entropy)
        names = self._session.contributors
        contributors = sorted(names.index(name) for name in self._there)
        return contributors, join_ciphertexts(self._key, fresh.ciphertexts)

    def _drop(self) -> None:
        self._total = None


class Aggregator(Collector):
    """Adds ciphertexts that it cannot open, and hands their sum to the key holder."""

    TRANSITIONS: ClassVar = Collector.TRANSITIONS

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
        super().__init__(session, name, identity, key, exponent=exponent, entropy=entropy)
        if key_holder not in session.servers[1:]:
            raise ParameterError(f"{key_holder!r} is not a key holder of this session")
        self._key_holder = key_holder

    def close(self) -> wire.Buffer:
        """Re-randomise the sum and seal it for the key holder.

        Raises:
            ThresholdError: Fewer contributors than the agreed minimum.
        """
        following = self._next("close")
        message = EncryptedTotal(*self._closed())
        self.state = following
        return self._send(message, self._key_holder)


class KeyHolder(SumRole):
    """Decrypts the total, once, and only of enough contributors."""

    TRANSITIONS: ClassVar = {(State.READY, "decrypt"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        key: PrivateKey,
        *,
        journal: Journal | None = None,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Join a session.

        Args:
            session: The session.
            name: This key holder.
            identity: Its long-term key.
            key: The private key of the session's public key.
            journal: Where the one decryption is marked; on disk if the key holder may restart.
            entropy: Source of randomness.
        """
        super().__init__(session, name, identity, session.servers[1:], State.READY, entropy)
        self._private: PrivateKey | None = key
        self._packing = self._layout(key.public)
        self._journal = journal or MemoryJournal()

    def decrypt(self, data: wire.Buffer) -> dict[str, wire.Buffer]:
        """Open the aggregate and return the total for each receiver.

        Raises:
            ThresholdError: Fewer contributors than the agreed minimum.
            RemoteProtocolError: A malformed list of contributors, or no ciphertexts of this key.
            RangeError: The total is beyond the agreed bounds.
            LocalProtocolError: A total of this session was decrypted before.
        """
        following = self._next("decrypt")
        sender, message, _ = self._open(data, EncryptedTotal, self._session.servers[:1])
        self._journal.spend(f"paillier decryption {self._agreement.hex()} as {self.name}")
        # Whether a total is in range is an answer too. So one aggregate is opened, or nothing.
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
            raise RangeError(BEYOND) from None
        check_total(values, len(listed), self._session)
        return values

    def _drop(self) -> None:
        self._private = None


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
