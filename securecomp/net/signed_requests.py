"""Signatures of HTTP requests, so that a relay knows who asks, whatever proxies are between.

A request carries a digest of its body, and a signature over method, path, query and digest, with
the time and a nonce. It is valid at the relay for five minutes before and after its time, once.
The relay checks the signature first, from the headers alone: it reads no body of a stranger.

Sources: RFC 9421 (HTTP Message Signatures), with algorithm ed25519; RFC 9530 (Content-Digest).
"""

import base64
import hashlib
import re
import time
import urllib.parse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from securecomp.core import entropy
from securecomp.errors import AuthenticationError
from securecomp.protocol import public_key

if TYPE_CHECKING:  # a relay has no use for what an identity computes with
    from securecomp.protocol.identity import Identity

VERSION = "1"
"""Of the protocol between parties and relay; the header Securecomp-Version has it."""
WINDOW = 300
"""Seconds that two clocks may differ."""

_COVERED = '("@method" "@path" "@query" "content-digest")'
_INPUT = re.compile(
    r'sig=(\("@method" "@path" "@query" "content-digest"\);created=(\d{1,12});'
    r'nonce="([0-9a-f]{32})";keyid="([^"\\]{1,400})";alg="ed25519")'
)
_SIGNATURE = re.compile(r"sig=:([A-Za-z0-9+/]{86}==):")


def digest(body: bytes) -> str:
    """Return the value of the header Content-Digest."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def sign(
    identity: "Identity", name: str, method: str, path: str, query: str, body: bytes
) -> dict[str, str]:
    """Return the headers that sign a request.

    Args:
        identity: The sender's keys.
        name: The sender, percent-encoded.
        method: Such as "POST".
        path: With the leading slash.
        query: Without the question mark.
        body: As it is sent.
    """
    nonce = entropy.system(16).hex()
    parameters = (
        f'{_COVERED};created={int(time.time())};nonce="{nonce}";keyid="{name}";alg="ed25519"'
    )
    content = digest(body)
    base = _base(method, path, query, content, parameters)
    signature = base64.b64encode(identity.sign_request(base)).decode()
    return {
        "Content-Digest": content,
        "Signature-Input": f"sig={parameters}",
        "Signature": f"sig=:{signature}:",
        "Securecomp-Version": VERSION,
    }


def signing_keys(keys: Mapping[str, bytes]) -> dict[str, Ed25519PublicKey]:
    """Return the keys that requests are verified with, by percent-encoded name.

    Args:
        keys: Each party's public key, by name.
    """
    return {
        urllib.parse.quote(name, safe=""): Ed25519PublicKey.from_public_bytes(
            public_key.halves(key)[1]
        )
        for name, key in keys.items()
    }


def verify(
    headers: Mapping[str, str],
    keys: Mapping[str, Ed25519PublicKey],
    method: str,
    path: str,
    query: str,
    now: float,
) -> tuple[str, str, str]:
    """Check a request's signature, before its body is read.

    Args:
        headers: Of the request, in lower case.
        keys: As `signing_keys` makes them.
        method: Of the request.
        path: Of the request.
        query: Of the request.
        now: Seconds since 1970.

    Returns:
        The sender's percent-encoded name; the nonce, which must not have been there before; and
        what `digest` must make of the body.

    Raises:
        AuthenticationError: It says what is wrong.
    """
    given = _INPUT.fullmatch(headers.get("signature-input", ""))
    signature = _SIGNATURE.fullmatch(headers.get("signature", ""))
    if given is None or signature is None:
        raise AuthenticationError("the request is not signed as this relay wants it")
    parameters, created, nonce, name = given.groups()
    if name not in keys:
        raise AuthenticationError("the request is signed by nobody of this study")
    content = headers.get("content-digest", "")
    base = _base(method, path, query, content, parameters)
    try:
        keys[name].verify(base64.b64decode(signature[1]), base)
    except InvalidSignature:
        raise AuthenticationError("the signature is not valid") from None
    if abs(int(created) - now) > WINDOW:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
        raise AuthenticationError(
            f"the clocks differ by {abs(int(created) - now):.0f} seconds: here it is {at} UTC; "
            "set the clock"
        )
    return name, nonce, content


def _base(method: str, path: str, query: str, content: str, parameters: str) -> bytes:
    """Return the signature base, RFC 9421, 2.5."""
    return (
        f'"@method": {method}\n"@path": {path}\n"@query": ?{query}\n'
        f'"content-digest": {content}\n"@signature-params": {parameters}'
    ).encode()
