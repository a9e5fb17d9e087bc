"""A server's offer and a client's registration: the two parties of a conversation, and its model.

Both documents are public and are exchanged once, over a channel that both sides trust (compare the
fingerprints by phone). Every message is sealed between the two parties and bound to both documents.
"""

import hashlib
import hmac
import struct
from typing import Literal, Protocol, TypeVar

import msgspec

from securecomp.ckks.native.encryption import SEED_BYTES
from securecomp.ckks.native.ring_parameters import LinearParameters
from securecomp.ckks.plan import InferencePlan
from securecomp.core import prg
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    ParameterError,
)
from securecomp.models import LogisticModel
from securecomp.protocol import identity as identity_
from securecomp.protocol import public_key, wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Conversation

_HEAD = struct.Struct(">4sB")
_MAGIC = b"SCCK"
_VERSION = 1
_PURPOSE = "ckks registration"
Kind = Literal["logits", "sigmoids"]
_SLACK = 1 << 12  # bytes of a message beside its residues


SALT_BYTES = 32
_DIGEST_BYTES = 32


def commit(model: LogisticModel, salt: bytes) -> bytes:
    """Return a commitment to a model. It shows nothing of the model and fits no other one.

    It hides the model from everybody without the salt, which is 32 random bytes. It binds as long
    as nobody finds two inputs with one SHA-256 digest.

    Raises:
        ParameterError: The salt has another length.
    """
    if len(salt) != SALT_BYTES:
        raise ParameterError(f"a commitment's salt has {SALT_BYTES} bytes, not {len(salt)}")
    return hashlib.sha256(prg.join("ckks model", salt, model.digest)).digest()


class Offer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server's public offer: who it is, the plan, and a commitment to the model.

    Attributes:
        server: Its name.
        key: Its public key.
        plan: The circuit that it computes, and the values that it takes.
        commitment: Binds the server, or the model's owner, to one model (`commit`).
        owner: Name of the party that encrypts the model, if the model is encrypted.
        owner_key: The owner's public key.
    """

    server: str
    key: bytes
    plan: InferencePlan
    commitment: bytes
    owner: str = ""
    owner_key: bytes = b""

    def __post_init__(self) -> None:
        wire.check_name(self.server)
        public_key.check(self.key, self.server)
        if len(self.commitment) != _DIGEST_BYTES:
            raise ParameterError("an offer commits to its model: SHA-256 of a salt and the model")
        if (self.plan.model == "encrypted") != bool(self.owner):
            raise ParameterError("an offer names the model's owner if the model is encrypted")
        if self.owner:
            wire.check_name(self.owner)
            public_key.check(self.owner_key, self.owner)
            if self.owner == self.server or self.owner_key == self.key:
                raise ParameterError(
                    "the model's owner and the server must be two parties, with two "
                    "names and two keys"
                )

    def check_model(self, model: LogisticModel, salt: bytes) -> None:
        """Refuse a model that is not the one of this offer.

        A server checks its own model like this. Others can, if it shows them model and salt.

        Raises:
            KeyMismatchError: Another model, or another salt.
            ParameterError: The salt has another length.
        """
        if not hmac.compare_digest(commit(model, salt), self.commitment):
            raise KeyMismatchError(
                f"{self.server}: this is not the model of the offer; give the one that was "
                "published, or publish this one in a new offer"
            )

    @property
    def digest(self) -> bytes:
        """SHA-256 of the offer."""
        return hashlib.sha256(msgspec.json.encode(self)).digest()

    @property
    def fingerprint(self) -> str:
        """The start of the digest, to compare by phone."""
        return fingerprint(self.digest)

    def to_json(self) -> str:
        """Return the offer as JSON."""
        return msgspec.json.format(msgspec.json.encode(self)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Offer":
        """Read what `to_json` wrote.

        Raises:
            DecodeError: Not an offer, or one whose plan is not secure.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except (
            msgspec.DecodeError,
            UnicodeError,
            RecursionError,
            ParameterError,
            KeyMismatchError,
        ) as error:
            raise DecodeError(f"not an offer: {error}") from None


class Registration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A client's public document: its name and keys.

    Attributes:
        client: Its name.
        key: Its public key as a party.
        offer: Digest of the offer.
        secret_id: Tells the client's secret keys apart, and says nothing about them.
        seed: Expands to the part a of the ciphertexts' public key; empty if none is needed.
        public: The rest of that key, packed. Evaluation keys if the server computes probabilities.
        signature: The client's signature on all of it.
    """

    client: str
    key: bytes
    offer: bytes
    secret_id: bytes
    seed: bytes = b""
    public: bytes = b""
    signature: bytes = b""

    @classmethod
    def create(
        cls,
        offer: Offer,
        client: str,
        identity: Identity,
        secret_id: bytes,
        seed: bytes,
        public: bytes,
    ) -> "Registration":
        """Sign a registration.

        Raises:
            ParameterError: The server or the owner has the client's name.
        """
        wire.check_name(client)
        if client in (offer.server, offer.owner):
            raise ParameterError(
                f"{client!r} is the name of the server or the model's owner; take another"
            )
        facts = (client, identity.public, offer.digest, secret_id, seed, public)
        return cls(*facts, identity.sign(_PURPOSE, *facts))

    def encode(self) -> bytes:
        """Return the registration's bytes."""
        return _HEAD.pack(_MAGIC, _VERSION) + msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes, offer: Offer) -> "Registration":
        """Read and verify a registration for an offer.

        Raises:
            DecodeError: Not a registration, truncated, or from a newer version.
            KeyMismatchError: For another offer, or with an invalid key.
            AuthenticationError: Changed after it was signed.
        """
        if len(data) < _HEAD.size or _HEAD.unpack_from(data)[0] != _MAGIC:
            raise DecodeError("not a client's registration")
        if data[4] != _VERSION:
            raise DecodeError(f"registration version {data[4]}; this software reads {_VERSION}")
        sizes = offer.plan.public_bytes
        if len(data) > sizes.stop + _SLACK:
            raise DecodeError(f"a registration of {len(data)} bytes is larger than any may be")
        try:
            found = msgspec.msgpack.decode(memoryview(data)[_HEAD.size :], type=cls)
            wire.check_name(found.client)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ParameterError) as error:
            raise DecodeError(f"the registration is malformed: {error}") from None
        facts = (found.client, found.key, found.offer, found.secret_id, found.seed, found.public)
        identity_.verify(found.key, found.signature, found.client, _PURPOSE, *facts)
        if found.offer != offer.digest:
            raise KeyMismatchError(f"{found.client}: registered for another offer, not this one")
        if found.client in (offer.server, offer.owner) or found.key in (offer.key, offer.owner_key):
            raise AuthenticationError(f"{found.client}: has the name or key of another party")
        if len(found.secret_id) != 16:
            raise DecodeError(
                f"{found.client}: the key id in the registration is not 16 bytes long"
            )
        keyed = isinstance(offer.plan.circuit, LinearParameters) and sizes.start > 0
        if len(found.seed) != keyed * SEED_BYTES or len(found.public) not in sizes:
            raise DecodeError(f"{found.client}: the registration has no public key for this plan")
        return found

    @property
    def digest(self) -> bytes:
        """SHA-256 of the registration."""
        return hashlib.sha256(self.encode()).digest()

    @property
    def fingerprint(self) -> str:
        """The start of the digest, to compare by phone."""
        return fingerprint(self.digest)

    def __repr__(self) -> str:
        return f"Registration({self.client!r}, {self.fingerprint})"


class ClientSession(Conversation):
    """One client, one server and one offer; every message between them is bound to this."""

    __slots__ = ("_agreement", "_largest", "id", "keys", "offer", "registration", "round")

    def __init__(self, offer: Offer, registration: Registration) -> None:
        self.offer = offer
        self.registration = registration
        self.round = 0
        self.keys = {offer.server: offer.key, registration.client: registration.key}
        if offer.owner:
            self.keys[offer.owner] = offer.owner_key
        both = prg.join("ckks engagement", offer.digest, registration.digest)
        self._agreement = hashlib.sha256(both).digest()
        self.id = self._agreement[:16]
        self._largest = offer.plan.largest_body

    @property
    def agreement(self) -> bytes:
        """SHA-256 of offer and registration."""
        return self._agreement

    @property
    def largest_message(self) -> int:
        """Largest size of a message's body, in bytes."""
        return self._largest


def fingerprint(digest: bytes) -> str:
    """Return the first 96 bits of a digest, in groups that can be read aloud."""
    text = digest.hex()[:24]
    return " ".join(text[i : i + 4] for i in range(0, 24, 4))


KEY_FILE_VERSION = 2


class _KeyFile(Protocol):
    @property
    def format(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def identity(self) -> bytes: ...


F = TypeVar("F", bound=_KeyFile)


def read_key_file(text: str | bytes, kind: type[F], name: str, owner: str) -> tuple[F, Identity]:
    """Read a key file and the identity in it.

    Args:
        text: The file, JSON.
        kind: Type to decode it to.
        name: The format that the file must name.
        owner: Role of the key's owner, for error messages.

    Raises:
        DecodeError: Not such a file.
    """
    try:
        facts = msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise DecodeError(f"not a {owner}'s key: {error}") from None
    if facts.format != name:
        raise DecodeError(f"not a {name}")
    if facts.version != KEY_FILE_VERSION:
        raise DecodeError(
            f"a {name} of version {facts.version}; this software reads {KEY_FILE_VERSION}"
        )
    try:
        return facts, Identity(facts.identity)
    except KeyMismatchError as error:
        raise DecodeError(f"not a {owner}'s key: {error}") from None
