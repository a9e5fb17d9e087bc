"""Versioned, bounded, typed messages to bytes and back.

A message is a header and a body. The header says which protocol run the body belongs to and is
authenticated with it (`identity`). The body is one `msgspec.Struct` in MessagePack and, where the
message carries a vector, its residues, packed without gaps behind it. Decoding checks lengths
before anything is allocated, takes no trailing bytes and raises `DecodeError` and nothing else.

Header, big-endian: magic "SCMP", version (1), kind (1), session (16), round (4), agreement (32),
sender and recipient (length 1 + UTF-8), body length (8). Body, little-endian: length of the
MessagePack (4), MessagePack, zeros to the next multiple of 8, residues in whole 8-byte words.
"""

import struct
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from securecomp.core import buffers, field, field_kernels, prg
from securecomp.core.field import Residues
from securecomp.core.secret import Secret
from securecomp.errors import DecodeError, ParameterError

VERSION = 1
MAX_NAME_BYTES = 100
MAX_ELEMENTS = 1 << 27
"""The longest vector in one message (1 GiB of residues)."""

_MAGIC = b"SCMP"
_FIXED = struct.Struct(">4sBB16sI32s")
_LENGTH = struct.Struct(">Q")
_FACTS = struct.Struct("<I")
MAX_FACTS_BYTES = 1 << 28
"""The longest MessagePack part of a body."""

Buffer = bytes | bytearray | memoryview
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Lanes = npt.NDArray[Any]
Source = Callable[[int, int], Lanes]
BLOCK = prg.BLOCK_WORDS


class Message(Secret, msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """Base of all bodies. `KIND` is unique in the package. Many carry shares or keys."""

    KIND: ClassVar[int]


M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a message.

    Attributes:
        kind: Which message it is.
        session: 16 bytes.
        round: Counted from 0.
        agreement: SHA-256 of everything that the parties agreed on (`Session.agreement`).
        sender: Who sent it.
        recipient: Whom it is for.
    """

    kind: int
    session: bytes
    round: int
    agreement: bytes
    sender: str
    recipient: str

    def encode(self, body_length: int) -> bytes:
        """Return the header's bytes for a body of this length."""
        for part, fits in (
            ("session", len(self.session) == 16),
            ("agreement", len(self.agreement) == 32),
            ("kind", 0 <= self.kind < 1 << 8),
            ("round", 0 <= self.round < 1 << 32),
        ):
            if not fits:
                raise ParameterError(f"the header's {part} does not fit its place")
        fixed = _FIXED.pack(_MAGIC, VERSION, self.kind, self.session, self.round, self.agreement)
        names = b"".join(bytes([len(n)]) + n for n in (_name(self.sender), _name(self.recipient)))
        return fixed + names + _LENGTH.pack(body_length)


def _name(name: str) -> bytes:
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"the name {name!r} is not UTF-8; rename it") from None
    if not 1 <= len(encoded) <= MAX_NAME_BYTES:
        raise ParameterError(
            f"the name {name[:20]!r}... must have 1 to {MAX_NAME_BYTES} bytes; shorten it"
            if encoded
            else "a party's name is empty"
        )
    return encoded


def check_name(name: str) -> str:
    """Return a party's name if it can stand in a header and in a table.

    Raises:
        ParameterError: Empty, too long, not printable, or not in Unicode's form NFC.
    """
    if not isinstance(name, str):
        raise ParameterError(f"a party's name is text, not {name!r}")
    _name(name)
    if not _presentable(name):
        raise ParameterError(f"the name {name!r} must be printable, without spaces around it")
    if not _composed(name):
        raise ParameterError(
            f"the name {name!r} is not in Unicode's composed form (NFC), and another one could "
            "look the same; rename it"
        )
    return name


def _presentable(name: str) -> bool:
    return name.isprintable() and name == name.strip()


def _composed(name: str) -> bool:
    """Whether a name is in the one form that counts; in another it would be another party."""
    return unicodedata.is_normalized("NFC", name)


def split_header(data: Buffer) -> tuple[Header, memoryview, memoryview]:
    """Parse a header.

    Returns:
        The header, its bytes, and the body's bytes.

    Raises:
        DecodeError: Not a message of this version, truncated, or with trailing bytes.
    """
    view = memoryview(data)
    if len(view) < _FIXED.size:
        raise DecodeError(f"a message of {len(view)} bytes is too short to be one")
    magic, version, kind, session, round_, agreement = _FIXED.unpack_from(view)
    if magic != _MAGIC:
        raise DecodeError("not a securecomp message")
    if version != VERSION:
        raise DecodeError(f"message version {version}; this software reads version {VERSION}")
    position = _FIXED.size
    names = []
    for _ in range(2):
        end = position + 1 + (view[position] if position < len(view) else 0)
        if not position + 1 < end <= min(len(view), position + 1 + MAX_NAME_BYTES):
            raise DecodeError("a party's name is missing, too long or cut off")
        try:
            names.append(str(view[position + 1 : end], "utf-8"))
        except UnicodeDecodeError:
            raise DecodeError("a party's name is not UTF-8") from None
        if not (_presentable(names[-1]) and _composed(names[-1])):
            raise DecodeError("a party's name is not one that a party can have")
        position = end
    start = position + _LENGTH.size
    if len(view) < start:
        raise DecodeError("the header is cut off")
    (length,) = _LENGTH.unpack_from(view, position)
    if length != len(view) - start:
        raise DecodeError(f"the body has {len(view) - start} bytes and the header says {length}")
    header = Header(kind, session, round_, agreement, *names)
    return header, view[:start], view[start:]


class Vector(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A vector of residues in a message: their width and number. The residues are its payload."""

    bits: int
    length: int


_encoder = msgspec.msgpack.Encoder()
_decoders: dict[type[Message], msgspec.msgpack.Decoder[Any]] = {}


def packed_size(length: int, bits: int) -> int:
    """Return the bytes that `length` residues of `bits` bits take, in whole 8-byte words."""
    return -(-length * bits // 64) * 8


def encode_body(
    message: Message, length: int = 0, residues: Source | None = None, bits: int = field.BITS
) -> Bytes:
    """Return the bytes of a message, and of the vector that goes with it.

    Args:
        message: What the vector is must be said in it, by a `Vector`.
        length: Number of residues.
        residues: Gives residues [start, stop), each below 2^bits, as uint64 or (up to 32 bits)
            uint32. It is asked for one block after the other and may return the same buffer.
        bits: Element i takes bits [i bits, (i+1) bits) of a little-endian bit string.
    """
    out, words = empty_body(message, 0 if residues is None else length, bits)
    if residues is not None:
        pack(words, residues, 0, length, bits)
    return out


def empty_body(message: Message, length: int, bits: int = field.BITS) -> tuple[Bytes, Words]:
    """Return the bytes of a message, and the words in them that `pack` has yet to write."""
    facts = _encoder.encode(message)
    first = _payload_start(len(facts))
    out = buffers.take(first + packed_size(length, bits))
    out[:first] = 0
    out[: _FACTS.size + len(facts)] = np.frombuffer(_FACTS.pack(len(facts)) + facts, np.uint8)
    return out, out[first:].view("<u8")


def pack(words: Words, residues: Source, start: int, stop: int, bits: int = field.BITS) -> None:
    """Pack residues [start, stop) to their place; start is a multiple of BLOCK.

    A block is a multiple of 64 elements and so of whole words.
    """
    for first in range(start, stop, BLOCK):
        part = words[first * bits // 64 :]
        block = residues(first, min(first + BLOCK, stop))
        if bits == field.BITS:
            field_kernels.pack61(block, part)
        elif bits == 8 * block.itemsize:
            part.view(block.dtype)[: block.size] = block
            part.view(block.dtype)[block.size : -(-block.size // 2) * 2] = 0
        else:
            field_kernels.pack(block.astype(np.uint64, copy=False), bits, part)


def _payload_start(facts: int) -> int:
    return -(-(_FACTS.size + facts) // 8) * 8


def decode_body(data: Buffer, kind: type[M]) -> tuple[M, memoryview]:
    """Decode the body of a message of a known kind.

    Returns:
        The message and its payload, empty if it has no vector; `unpack` and `add_packed` read it.

    Raises:
        DecodeError: Malformed, of another shape, out of bounds, or with trailing bytes.
    """
    view = memoryview(data)
    size = _FACTS.unpack_from(view)[0] if len(view) >= _FACTS.size else 0
    start = _payload_start(size)
    end = _FACTS.size + size
    if not 0 < size <= MAX_FACTS_BYTES or start > len(view) or any(view[end:start]):
        raise DecodeError(f"{kind.__name__}: the body is cut off or malformed")
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    try:
        message: M = decoder.decode(view[_FACTS.size : end])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"{kind.__name__}: {error}") from None
    return message, view[start:]


def packed_words(vector: Vector, payload: memoryview, length: int, bits: int) -> Words:
    """Return a payload's words, whose residues are not unpacked.

    Raises:
        DecodeError: Another length or width than expected, or padding that is not zero.
    """
    if vector.length != length:
        raise DecodeError(f"the vector has {vector.length} elements and {length} were agreed")
    if vector.bits != bits or len(payload) != packed_size(length, bits):
        raise DecodeError(f"the vector is not packed in {bits} bits an element")
    words: Words = np.frombuffer(payload, "<u8")
    padding = words.size * 64 - length * bits
    if padding and int(words[-1]) >> (64 - padding):
        raise DecodeError("the vector's padding is not zero")
    return words


_NOT_CANONICAL = "the vector has a residue that is not below the modulus"


def unpack(
    vector: Vector,
    payload: memoryview,
    length: int,
    bits: int = field.BITS,
    out: Residues | None = None,
) -> Lanes:
    """Return the residues of a message's payload, shape (length,), each below 2^bits.

    With the field's 61 bits, each is below the modulus too. With 32 and 64 bits they are a view of
    the payload, uint32 and uint64; otherwise uint64, in `out` if it is given.

    Raises:
        DecodeError: Another length or width than expected, a residue that is not canonical, or
            padding that is not zero.
    """
    words = packed_words(vector, payload, length, bits)
    if bits == 32:
        return words.view("<u4")[:length]
    if bits == 64:
        return words
    if out is None:
        out = buffers.residues(length)
    if bits != field.BITS:
        field_kernels.unpack(words, bits, out)
    elif not field_kernels.unpack61(words, out):
        raise DecodeError(_NOT_CANONICAL)
    return out


def add_packed(vector: Vector, payload: memoryview, acc: Residues) -> None:
    """Add the field's residues in a message's payload to `acc`, shape (d,), in place.

    Raises:
        DecodeError: As `unpack`; `acc` is unchanged.
    """
    words = packed_words(vector, payload, acc.size, field.BITS)
    block = np.empty(min(BLOCK, acc.size), np.uint64)
    for start in range(0, acc.size, BLOCK):
        part = acc[start : start + BLOCK]
        added = block[: part.size]
        if not field_kernels.unpack61(words[start * field.BITS // 64 :], added):
            # Take back what was added so far: a refused message changes nothing.
            for earlier in range(0, start, BLOCK):
                part = acc[earlier : earlier + BLOCK]
                field_kernels.unpack61(words[earlier * field.BITS // 64 :], block)
                field_kernels.subtract(part, block, part)
            raise DecodeError(_NOT_CANONICAL)
        field_kernels.add(part, added, part)
