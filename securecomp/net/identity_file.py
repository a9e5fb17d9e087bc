"""Files of long-term keys, and fingerprints to read over the phone.

A fingerprint is 128 bits of the SHA-256 of a public key, as eight words of five letters that can
be pronounced: the proquints of D. S. Wilkerson, "A Proposal for Proquints", arXiv:0901.4016.
"""

import base64
import hashlib
import stat
from pathlib import Path

from securecomp.errors import ParameterError
from securecomp.protocol import public_key, storage
from securecomp.protocol.identity import SECRET_BYTES, Identity

_MAGIC = "securecomp-identity-1"
_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aiou"
_WORDS = 8


def create(path: Path) -> Identity:
    """Draw an identity and write it to a new file that only this user can read.

    Raises:
        ParameterError: The file exists, or cannot be written.
    """
    identity = Identity.generate()
    secret = base64.b64encode(identity.export()).decode()
    storage.write_new(path, f"{_MAGIC}\n{secret}", 0o600)
    return identity


def read(path: Path) -> Identity:
    """Read an identity.

    Raises:
        ParameterError: Not such a file, or others can read it.
    """
    text = storage.read_text(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ParameterError(f"{path}: other users can read this key; run: chmod 600 {path}")
    magic, _, secret = text.strip().partition("\n")
    try:
        raw = base64.b64decode(secret, validate=True)
    except ValueError:
        raw = b""
    if magic != _MAGIC or len(raw) != SECRET_BYTES:
        raise ParameterError(f"{path}: not an identity; securecomp identity new writes one")
    return Identity(raw)


def to_text(public: bytes) -> str:
    """Return a public key as text."""
    return base64.b64encode(public).decode()


def from_text(text: str, name: str) -> bytes:
    """Return the public key that a text stands for.

    Raises:
        ParameterError: It is not one; the party is named.
    """
    try:
        key = base64.b64decode(text, validate=True)
        public_key.check(key, name)
    except ValueError:
        raise ParameterError(
            f"{name}: not a public key; copy the line that securecomp identity show prints"
        ) from None
    return key


def fingerprint(public: bytes) -> str:
    """Return eight words for a public key."""
    digest = hashlib.sha256(b"securecomp fingerprint" + public).digest()
    numbers = [int.from_bytes(digest[2 * i : 2 * i + 2], "big") for i in range(_WORDS)]
    return " ".join(map(_word, numbers))


def _word(number: int) -> str:
    return "".join(
        (
            _CONSONANTS[number >> 12],
            _VOWELS[number >> 10 & 3],
            _CONSONANTS[number >> 6 & 15],
            _VOWELS[number >> 4 & 3],
            _CONSONANTS[number & 15],
        )
    )
