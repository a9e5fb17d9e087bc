"""Public keys as text, and their fingerprints in words to read over the phone.

A fingerprint is 128 bits of the SHA-256 of a public key, as eight words of five letters that can
be pronounced: the proquints of D. S. Wilkerson, "A Proposal for Proquints", arXiv:0901.4016.
"""

import base64
import hashlib

from securecomp.errors import ParameterError
from securecomp.protocol import public_key

_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aiou"
_WORDS = 8


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
