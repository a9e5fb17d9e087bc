"""Keys and keystreams written a second time, from the documented layout and the RFCs alone.

Python ints, `hmac` and AES-256-CTR; of the package it uses nothing. `python prg_reference.py` (in
this folder) writes `tests/vectors/prg.json` anew; a test holds the file and this page together.
"""

import hashlib
import hmac
import json
import platform
import struct
from importlib.metadata import version
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

P = 2**61 - 1
BLOCK = 32768
VECTORS = Path(__file__).parent.parent / "vectors" / "prg.json"


def info_string(*context):
    """Every part as length (4 bytes, big-endian), then a letter for its type, then its content."""
    info = b""
    for part in (b"securecomp/1", *context):
        if isinstance(part, int):
            body = b"i" + struct.pack(">Q", part)
        else:
            body = b"s" + part.encode() if isinstance(part, str) else b"b" + part
        info += struct.pack(">I", len(body)) + body
    return info


def hkdf(secret, salt, info, size=32):
    """RFC 5869 with SHA-256: extract, then expand."""
    key = hmac.digest(salt or bytes(32), secret, "sha256")
    block, out = b"", b""
    while len(out) < size:
        block = hmac.digest(key, block + info + bytes([len(out) // 32 + 1]), "sha256")
        out += block
    return out[:size]


def derive(secret, purpose, *context, salt=b""):
    return hkdf(secret, salt, info_string(purpose, *context))


def keystream(key, size, index, attempt=0):
    """The first `size` bytes of a block: nonce attempt (4) and index (8), counter from 2."""
    counter = struct.pack(">IQI", attempt, index, 2)
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(size))


def words(key, count, index, attempt=0, forced=()):
    """A block's words; `forced` replaces some: (attempt, index, position, word)."""
    drawn = list(struct.unpack(f"<{count}Q", keystream(key, 8 * count, index, attempt)))
    for at, block, position, word in forced:
        if (at, block) == (attempt, index) and position < count:
            drawn[position] = word
    return drawn


def residues(key, size, forced=()):
    """The residues that a key stands for: low 61 bits, drawn again while they are all ones."""
    out = []
    for index in range(-(-size // BLOCK)):
        count = min(BLOCK, size - index * BLOCK)
        block = [word & P for word in words(key, count, index, 0, forced)]
        attempt = 0
        while P in block:
            attempt += 1
            again = words(key, count, index, attempt, forced)
            block = [new & P if old == P else old for old, new in zip(block, again, strict=True)]
        out += block
    return out


def lanes(key, size, width, index=0):
    """A block's words of 32 or 64 bits, as they follow each other in the keystream."""
    letter = {32: "I", 64: "Q"}[width]
    return struct.unpack(f"<{size}{letter}", keystream(key, size * width // 8, index))


def _key(name):
    return hashlib.sha256(f"securecomp prg vectors: {name}".encode()).digest()


def _spelled(part):
    if isinstance(part, int):
        return {"integer": str(part)}
    return {"text": part} if isinstance(part, str) else {"bytes": part.hex()}


def _digest(values):
    return hashlib.sha256(b"".join(v.to_bytes(8, "little") for v in values)).hexdigest()


def vectors():
    """What stands in the file."""
    contexts = [
        ("purpose", ()),
        ("", ()),
        ("additive share", (_key("agreement"), "north", "server 1")),
        ("sealed message", (_key("agreement"), 1, "Zürich", "東京")),
        ("integers", (0, 1, 255, 2**32, 2**63, 2**64 - 1)),
        ("the same letters", ("1", b"1", 1, "", b"", b"i\x00")),
    ]
    derived = []
    for secret in (bytes(range(16)), _key("secret"), bytes(100)):
        for salt in (b"", _key("salt")):
            derived += [
                {
                    "secret": secret.hex(),
                    "salt": salt.hex(),
                    "purpose": purpose,
                    "context": [_spelled(part) for part in context],
                    "key": derive(secret, purpose, *context, salt=salt).hex(),
                }
                for purpose, context in contexts
            ]
    expanded = []
    for name in ("one", "two"):
        for size in (0, 1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3):
            values = residues(_key(name), size)
            shown = sorted({0, 1, BLOCK - 1, BLOCK, size - 1} & set(range(size)))
            expanded.append(
                {
                    "key": _key(name).hex(),
                    "size": size,
                    "residues": {str(i): f"{values[i]:016x}" for i in shown},
                    "sha256": _digest(values),
                }
            )
    ones = 2**64 - 1
    rejected = []
    for size, forced in (
        (1, [(0, 0, 0, P)]),
        (5, [(0, 0, 4, ones)]),
        (5, [(0, 0, 1, P), (0, 0, 2, ones), (1, 0, 2, P + 2**61)]),
        (9, [(0, 0, 8, P), (1, 0, 8, P), (2, 0, 8, ones), (3, 0, 8, P), (1, 0, 3, ones)]),
        (BLOCK, [(0, 0, BLOCK - 1, P)]),
        (BLOCK + 2, [(0, 0, BLOCK - 1, P), (0, 1, 0, P), (1, 1, 0, P), (0, 1, 1, ones)]),
    ):
        values = residues(_key("rejected"), size, forced)
        shown = sorted({block * BLOCK + position for _, block, position, _ in forced} | {0})
        rejected.append(
            {
                "key": _key("rejected").hex(),
                "size": size,
                "forced": [[a, b, position, f"{w:016x}"] for a, b, position, w in forced],
                "residues": {str(i): f"{values[i]:016x}" for i in shown},
                "sha256": _digest(values),
            }
        )
    return {"derive": derived, "expand": expanded, "reject": rejected}


def main():
    """Write the file."""
    note = (
        "Made by tests/core/prg_reference.py, which is written from the documentation of "
        "securecomp.core.prg, RFC 5869 and NIST SP 800-38A with hmac and AES-256-CTR alone and "
        f"uses nothing of the package; Python {platform.python_version()}, "
        f"cryptography {version('cryptography')}. Keys are SHA-256 of a text. Bytes and words in "
        "hexadecimal, words as numbers. 'residues' shows some, by position; 'sha256' is over all, "
        "little-endian, 8 bytes each. 'forced' replaces keystream words, "
        "[attempt, block, position in the block, word], as no key is known that meets a rejection."
    )
    text = json.dumps({"note": note, **vectors()}, indent=1, ensure_ascii=False)
    VECTORS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
