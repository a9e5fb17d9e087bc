"""Encrypted vectors as bytes, for messages and for files that are mailed around.

Format, big-endian: magic "SCPV", version (1), key id (32), bound length (2) and bound, additions
(8), slot bits (4), slots (4), length (8), weight (8), scale length (2) and scale, then the
ciphertexts, each of the key's fixed size. Decoding checks every length before it allocates, and
every ciphertext.
"""

import struct
from collections.abc import Sequence
from typing import Any

from gmpy2 import mpz

from securecomp.errors import DecodeError, KeyMismatchError, ParameterError, SecureCompError
from securecomp.paillier.keys import PublicKey
from securecomp.paillier.packing import Packing
from securecomp.paillier.vectors import EncryptedVector

MAGIC = b"SCPV"
VERSION = 1
_HEAD = struct.Struct(">4sB32s")
_SIZES = struct.Struct(">QIIQQ")
_LENGTH = struct.Struct(">H")
MAX_LENGTH = 1 << 32


def join_ciphertexts(key: PublicKey, ciphertexts: Sequence[Any]) -> bytes:
    """Return ciphertexts one after the other, each of the key's size."""
    size = key.ciphertext_bytes
    return b"".join(int(c).to_bytes(size, "big") for c in ciphertexts)


def split_ciphertexts(key: PublicKey, data: bytes | memoryview, count: int) -> list[Any]:
    """Read and check so many ciphertexts.

    Raises:
        DecodeError: Another length, or not ciphertexts of this key.
    """
    size = key.ciphertext_bytes
    if len(data) != count * size:
        raise DecodeError(f"{count} ciphertexts take {count * size} bytes, not {len(data)}")
    ciphertexts = [
        mpz(int.from_bytes(data[i : i + size], "big")) for i in range(0, len(data), size)
    ]
    key.check_ciphertexts(ciphertexts)
    return ciphertexts


def encode_vector(vector: EncryptedVector, scale: int = 1) -> bytes:
    """Return a vector's bytes; `scale` says how its integers stand for reals.

    Raises:
        ParameterError: More additions than the format has room for.
    """
    p = vector.packing
    if p.additions >= 1 << 64:
        raise ParameterError(f"the format has no room for {p.additions} additions; allow fewer")
    return b"".join(
        (
            _HEAD.pack(MAGIC, VERSION, vector.key.id),
            _number(p.bound),
            _SIZES.pack(p.additions, p.slot, p.slots, vector.length, vector.weight),
            _number(scale),
            join_ciphertexts(vector.key, vector.ciphertexts),
        )
    )


def _number(value: int) -> bytes:
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return _LENGTH.pack(len(data)) + data


def decode_vector(data: bytes, key: PublicKey) -> tuple[EncryptedVector, int]:
    """Read a vector and its scale.

    Raises:
        DecodeError: Not a vector of this version, truncated, with trailing bytes, inconsistent, or
            with numbers that are no ciphertexts.
        KeyMismatchError: Under another key.
    """
    reader = _Reader(memoryview(data))
    magic, version, key_id = reader.take(_HEAD)
    if magic != MAGIC:
        raise DecodeError("not a file of encrypted values")
    if version != VERSION:
        raise DecodeError(f"version {version}; this software reads version {VERSION}")
    if key_id != key.id:
        raise KeyMismatchError(
            f"encrypted under key {key_id.hex()[:16]}, and this is key {key.id.hex()[:16]}"
        )
    bound = reader.number()
    additions, slot, slots, length, weight = reader.take(_SIZES)
    scale = reader.number()
    if length > MAX_LENGTH or scale < 1 or weight > additions:
        raise DecodeError("the file's numbers are out of range")
    try:
        packing = Packing.plan(key, bound, additions)
    except SecureCompError as error:
        raise DecodeError(f"an impossible layout: {error}") from None
    if slots == 1 and packing.slot <= slot <= key.bits - 2:
        packing = Packing(bound, additions, slot, 1)
    if (packing.slot, packing.slots) != (slot, slots):
        raise DecodeError("the file's layout is not the one that its bound and additions give")
    ciphertexts = split_ciphertexts(key, reader.rest(), packing.ciphertexts(length))
    return EncryptedVector(key, packing, length, weight, ciphertexts), scale


class _Reader:
    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self.bytes(layout.size))

    def number(self) -> int:
        (size,) = self.take(_LENGTH)
        data = self.bytes(size)
        if data[:1] == b"\0":
            raise DecodeError("a number has leading zeros")
        return int.from_bytes(data, "big")

    def bytes(self, size: int) -> bytes:
        part = self._view[self._at : self._at + size]
        if len(part) < size:
            raise DecodeError("the file is cut off")
        self._at += size
        return bytes(part)

    def rest(self) -> memoryview:
        return self._view[self._at :]
