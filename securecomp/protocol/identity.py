"""Long-term keys: sealed messages between two parties, and signatures that prove the sender.

A party has one secret of 32 bytes, of which two keys are derived: X25519 for sealed messages and
Ed25519 for signatures. Its public key is the two public keys one after the other, 64 bytes. Who
belongs to which public key is agreed outside of the protocols, and pinned in the session.

A sealed message is confidential between sender and recipient and authentic between them: the key
comes from the X25519 secret that the two static keys share, bound by HKDF to the agreement, the
kind of message, the ordered pair of parties and a fresh 32-byte salt, and is used for this one
message. Whoever carries the messages learns who speaks to whom, when and how much.

What sealing does not give: forward secrecy (who steals a static key can open recorded messages of
that party), and proof to third parties (either of the two could have made the message).

Sources: RFC 7748 (X25519); RFC 8032 (Ed25519); RFC 5869 (HKDF); NIST SP 800-38D (AES-GCM).
"""

import struct

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from securecomp.core import buffers, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    ParameterError,
)
from securecomp.protocol import public_key, wire
from securecomp.protocol.session import Conversation

SECRET_BYTES = 32
PUBLIC_BYTES = public_key.BYTES
SIGNATURE_BYTES = 64
_SALT_BYTES = 32
_TAG_BYTES = 16
_NONCE = bytes(12)  # the key is used once: a fresh salt makes a fresh key
_PAIR = struct.Struct(">I")


class Identity(Secret):
    """A party's long-term secret key."""

    def __init__(self, secret: bytes) -> None:
        """Take 32 secret bytes, as `export` of another instance returned them."""
        if len(secret) != SECRET_BYTES:
            raise KeyMismatchError(f"a secret key has {SECRET_BYTES} bytes, not {len(secret)}")
        self._secret = bytes(secret)
        self._key = X25519PrivateKey.from_private_bytes(prg.derive(secret, "identity x25519"))
        self._signing = Ed25519PrivateKey.from_private_bytes(prg.derive(secret, "identity ed25519"))
        self._shared: dict[bytes, bytes] = {}
        self.public = (
            self._key.public_key().public_bytes_raw()
            + self._signing.public_key().public_bytes_raw()
        )

    @classmethod
    def generate(cls, entropy: Entropy = entropy_.system) -> "Identity":
        """Draw a new identity."""
        return cls(entropy(SECRET_BYTES))

    def export(self) -> bytes:
        """Return the 32 secret bytes, to be kept where nobody else reads."""
        return self._secret

    def shared(self, peer: bytes) -> bytes:
        """Return the Diffie-Hellman secret with a peer's public key, computed once a peer.

        Raises:
            KeyMismatchError: The peer's key is not a valid one.
        """
        secret = self._shared.get(peer)
        if secret is None:
            public_key.check(peer, "a peer")
            secret = self._shared[peer] = exchange(self._key, public_key.halves(peer)[0])
        return secret

    def sign(self, purpose: str, *context: bytes | str | int) -> bytes:
        """Sign a statement: a purpose, and everything that it is about. `verify` checks it."""
        return self._signing.sign(prg.join("signature", purpose, *context))

    def sign_request(self, base: bytes) -> bytes:
        """Sign the base of an HTTP request (RFC 9421), which no statement of `sign` can equal.

        Raises:
            ParameterError: It is not such a base.
        """
        if not base.startswith(b'"@method": '):
            raise ParameterError("not the signature base of a request")
        return self._signing.sign(base)

    def __repr__(self) -> str:
        return f"Identity(public={self.public.hex()[:16]}...)"


def exchange(key: X25519PrivateKey, peer: bytes) -> bytes:
    """Return the Diffie-Hellman secret with a peer's X25519 key of 32 bytes.

    Raises:
        KeyMismatchError: Not a valid key: a wrong length, or a point of small order.
    """
    try:
        return key.exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError:
        raise KeyMismatchError("a peer's public key is not a valid X25519 key") from None


def verify(
    public: bytes, signature: bytes, signer: str, purpose: str, *context: bytes | str | int
) -> None:
    """Check a signature that `Identity.sign` made.

    Args:
        public: The signer's pinned public key.
        signature: 64 bytes.
        signer: Who should have signed, for the error.
        purpose: As it was signed.
        context: As it was signed.

    Raises:
        AuthenticationError: It is not this party's signature on this statement.
        KeyMismatchError: The public key is not a point of the curve.
    """
    public_key.check(public, signer)
    try:
        Ed25519PublicKey.from_public_bytes(public_key.halves(public)[1]).verify(
            signature, prg.join("signature", purpose, *context)
        )
    except (InvalidSignature, ValueError):
        raise AuthenticationError(f"{signer}: the signature for {purpose!r} is not valid") from None


def _key(identity: Identity, session: Conversation, header: wire.Header, salt: bytes) -> AESGCM:
    other = header.recipient if session.keys[header.sender] == identity.public else header.sender
    return AESGCM(
        prg.derive(
            identity.shared(session.keys[other]),
            "sealed message",
            header.agreement,
            header.kind,
            header.sender,
            header.recipient,
            salt=salt,
        )
    )


def seal(
    identity: Identity,
    session: Conversation,
    header: wire.Header,
    body: wire.Bytes,
    entropy: Entropy = entropy_.system,
) -> memoryview:
    """Encrypt and authenticate a message's body (`wire.encode_body`) for one recipient.

    Raises:
        KeyMismatchError: `identity` is not the sender that the session names.
    """
    if session.keys.get(header.sender) != identity.public:
        raise KeyMismatchError(f"this identity is not {header.sender!r} of the session")
    salt = entropy(_SALT_BYTES)
    head = header.encode(_SALT_BYTES + len(body) + _TAG_BYTES) + salt
    out = buffers.take(len(head) + len(body) + _TAG_BYTES).data
    out[: len(head)] = head
    _key(identity, session, header, salt).encrypt_into(_NONCE, body.data, head, out[len(head) :])
    return out


def open_sealed(
    identity: Identity,
    session: Conversation,
    agreement: bytes,
    data: wire.Buffer,
    recipient: str,
    largest: int | None = None,
) -> tuple[wire.Header, memoryview]:
    """Verify a sealed message and return its header and body. Nothing is parsed before.

    Args:
        identity: The recipient's keys.
        session: Of which round the message must be.
        agreement: `session.agreement`, computed once.
        data: The message.
        recipient: Who opens it.
        largest: Bytes of the largest body; by default `session.largest_message`.

    Raises:
        DecodeError: Not a message, or larger than any of the session.
        RemoteProtocolError: Of another session, round or agreement, or not for us.
        AuthenticationError: Not made by the party that it names, or changed on the way.
    """
    header, head, body = wire.split_header(data)
    session.check(header, agreement, recipient)
    size = len(body) - _SALT_BYTES - _TAG_BYTES
    if size < 0:
        raise DecodeError("the sealed body is cut off")
    if size > (session.largest_message if largest is None else largest):
        raise DecodeError(f"a message of {len(body)} bytes is larger than any of this session")
    salt = body[:_SALT_BYTES]
    plain = buffers.take(size).data
    try:
        _key(identity, session, header, bytes(salt)).decrypt_into(
            _NONCE, body[_SALT_BYTES:], bytes(head) + bytes(salt), plain
        )
    except InvalidTag:
        raise AuthenticationError(
            f"{header.sender}: the message was not made by this party or was changed on the way"
        ) from None
    return header, plain
