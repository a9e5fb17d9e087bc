"""Seeds to keys and to vectors: HKDF-SHA256 and AES-256 in counter mode.

A *seed* is 32 random bytes. `derive` turns it into a key that is bound to what it is for, and
that key stands for a stream of words. Word i of attempt t is word i mod B of the AES-256-CTR
keystream whose 96-bit nonce is t (4 bytes) and i div B (8 bytes), big-endian, with the block
counter starting at 2, B = 32768 words, little-endian. Counter 2 is where GCM begins to encrypt
(NIST SP 800-38D, 7.1), so the keystream is what AES-256-GCM makes of zeros: OpenSSL's GCM code is
vectorised further than its CTR code and about twice as fast on current processors.

A residue at position i is the low 61 bits of word i of attempt 0; if these are all ones (the
value p, probability 2^-61), it is the low 61 bits of word i of attempt 1, and so on. Both sides
draw the same, however they split the vector.

Sources: RFC 5869 (HKDF); NIST SP 800-38A, 6.5 (CTR); NIST SP 800-38D (GCM).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securecomp.core import buffers, field_kernels
from securecomp.core.field import MODULUS, Residues
from securecomp.core.secret import Secret
from securecomp.errors import ParameterError

SEED_BYTES = 32
BLOCK_WORDS = 32768
"""256 KiB: keystream, zeros and the vector's block stay in a second-level cache together."""

_TAG_BYTES = 16
_ZEROS = memoryview(bytes(BLOCK_WORDS * 8))
_VERSION = b"securecomp/1"

Words = npt.NDArray[np.uint64]
Lanes = npt.NDArray[Any]
"""uint32 or uint64."""
Kernel = Callable[[Residues, Words], bool]
_MASK = np.uint64(MODULUS)


def derive(secret: bytes, purpose: str, *context: bytes | str | int, salt: bytes = b"") -> bytes:
    """Derive a 32-byte key that is bound to its purpose and context.

    Args:
        secret: At least 16 secret bytes.
        purpose: What the key is for; one literal for each use in the package.
        context: What else it is bound to: session, round, parties, in order.
        salt: Public randomness, if there is any.

    Raises:
        ParameterError: `secret` is too short.
    """
    if len(secret) < 16:
        raise ParameterError("derive: the secret must have at least 16 bytes")
    return HKDF(hashes.SHA256(), 32, salt or None, join(purpose, *context)).derive(secret)


def join(*context: bytes | str | int) -> bytes:
    """Encode a context, after the package's version, so that no two give the same bytes."""
    return b"".join(map(_field, (_VERSION, *context)))


def _field(part: bytes | str | int) -> bytes:
    # Type and length before content.
    if isinstance(part, int):
        if not 0 <= part < 1 << 64:
            raise ParameterError(f"derive: the number {part} does not fit 8 bytes")
        part = b"i" + part.to_bytes(8, "big")
    elif isinstance(part, str):
        part = b"s" + part.encode()
    else:
        part = b"b" + part
    return len(part).to_bytes(4, "big") + part


def _cipher(key: bytes) -> AESGCM:
    if len(key) != 32:  # AESGCM would take a shorter one, and be another cipher
        raise ParameterError(f"a derived key has 32 bytes, not {len(key)}")
    return AESGCM(key)


def _nonce(index: int, attempt: int = 0) -> bytes:
    return attempt.to_bytes(4, "big") + index.to_bytes(8, "big")


class _Keystreams(Secret):
    """The keystreams of several keys, drawn a block at a time into one buffer.

    A block fits a second-level cache together with what is done to it. Not for use by two threads
    at once.
    """

    __slots__ = ("_ciphers", "_scratch", "_words")

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._ciphers = [_cipher(key) for key in keys]
        scratch = buffers.take(BLOCK_WORDS * 8 + _TAG_BYTES)
        self._scratch = scratch.data
        self._words: Words = scratch[:-_TAG_BYTES].view("<u8")

    def _draw(self, cipher: AESGCM, size: int, index: int, attempt: int = 0) -> Words:
        """Return the words of `size` bytes, a multiple of 8; good until the next call."""
        if size > len(_ZEROS):  # what is behind the keystream is no randomness
            raise ParameterError(f"a block has at most {BLOCK_WORDS} words")
        nonce = _nonce(index, attempt)
        if size == len(_ZEROS):
            cipher.encrypt_into(nonce, _ZEROS, None, self._scratch)
            return self._words
        cipher.encrypt_into(nonce, _ZEROS[:size], None, self._scratch[: size + _TAG_BYTES])
        return self._words[: size // 8]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._ciphers)} secret keys)"


class Masks(_Keystreams):
    """The residue vectors that several derived keys expand to, a block at a time."""

    __slots__ = ()

    def add_to(self, block: Residues, index: int) -> None:
        """Add block `index` of every vector to `block`, at most BLOCK_WORDS long, in place."""
        for cipher in self._ciphers:
            self._apply(field_kernels.mask_add, cipher, block, index)

    def subtract_from(self, block: Residues, index: int) -> None:
        """Subtract block `index` of every vector from `block`, in place."""
        for cipher in self._ciphers:
            self._apply(field_kernels.mask_subtract, cipher, block, index)

    def _apply(self, kernel: Kernel, cipher: AESGCM, block: Residues, index: int) -> None:
        if block.size > BLOCK_WORDS:
            raise ParameterError(f"a block has at most {BLOCK_WORDS} elements")
        words = self._draw(cipher, 8 * block.size, index)
        if not kernel(block, words):
            return
        # A rejected word counted as zero so far: only those positions draw again.
        where = np.flatnonzero((words & _MASK) == _MASK)
        attempt = 0
        while where.size:
            attempt += 1
            words = self._draw(cipher, 8 * block.size, index, attempt)[where]
            part = block[where]
            kernel(part, words)
            block[where] = part
            where = where[(words & _MASK) == _MASK]


class RingMasks(_Keystreams):
    """Vectors of 32- or 64-bit words that several keys expand to, some added, some subtracted.

    Element i is word i of the keystream, little-endian. Sums wrap at the word's width, and so are
    right modulo every smaller power of two.
    """

    __slots__ = ("_plus",)

    def __init__(self, plus: Sequence[bytes], minus: Sequence[bytes]) -> None:
        """Take the keys whose vectors are added, and those whose are subtracted."""
        super().__init__([*plus, *minus])
        self._plus = len(plus)

    def apply(self, block: Lanes, index: int) -> None:
        """Add and subtract block `index` of the vectors, at most BLOCK_WORDS long, in place."""
        if block.size > BLOCK_WORDS:
            raise ParameterError(f"a block has at most {BLOCK_WORDS} elements")
        size = -(-block.nbytes // 8) * 8
        for position, cipher in enumerate(self._ciphers):
            words = self._draw(cipher, size, index).view(block.dtype)[: block.size]
            operation = np.add if position < self._plus else np.subtract
            operation(block, words, out=block)


class Uniform(_Keystreams):
    """The uniform residues below any modulus, or the random words, that one key expands to.

    A residue is the low bits of its word, as many as the modulus has; one that is not below the
    modulus is drawn again, as for `Masks`.
    """

    __slots__ = ()

    def __init__(self, key: bytes) -> None:
        super().__init__([key])

    def words(self, size: int, index: int) -> Words:
        """Return block `index`, at most BLOCK_WORDS words; good until the next call."""
        return self._draw(self._ciphers[0], 8 * size, index)

    def fill(self, block: Residues, index: int, modulus: int) -> None:
        """Write block `index`, at most BLOCK_WORDS residues below `modulus`."""
        mask, bound = np.uint64((1 << modulus.bit_length()) - 1), np.uint64(modulus)
        words = self.words(block.size, index)
        if not field_kernels.keep_below(words, mask, bound, block):
            return
        where = np.flatnonzero(block >= bound)
        attempt = 0
        while where.size:
            attempt += 1
            words = self._draw(self._ciphers[0], 8 * block.size, index, attempt)
            block[where] = words[where] & mask
            where = where[block[where] >= bound]


class Difference(Secret):
    """The residue vector of one key less that of another, a block at a time."""

    __slots__ = ("_minus", "_plus")

    def __init__(self, plus: bytes, minus: bytes) -> None:
        self._plus, self._minus = Uniform(plus), Uniform(minus)

    def fill(self, block: Residues, index: int) -> None:
        """Write block `index`, at most BLOCK_WORDS residues."""
        plus = self._plus.words(block.size, index)
        minus = self._minus.words(block.size, index)
        if field_kernels.mask_difference(plus, minus, block):  # a word is drawn again
            taken = np.empty_like(block)
            self._plus.fill(block, index, MODULUS)
            self._minus.fill(taken, index, MODULUS)
            field_kernels.subtract(block, taken, block)


def expand(key: bytes, size: int) -> Residues:
    """Return the residue vector, shape (size,), that `key` stands for."""
    out = buffers.residues(size)
    stream = Uniform(key)
    for index, start in enumerate(range(0, size, BLOCK_WORDS)):
        stream.fill(out[start : start + BLOCK_WORDS], index, MODULUS)
    return out


def expand_words(key: bytes, size: int) -> Words:
    """Return the random words, shape (size,), that `key` stands for."""
    cipher, length = _cipher(key), 8 * size
    out = buffers.take(length + _TAG_BYTES)
    for index, start in enumerate(range(0, length, len(_ZEROS))):
        stop = min(start + len(_ZEROS), length)
        # A tag lies where the next block goes, or behind the last.
        place = out[start : stop + _TAG_BYTES].data
        cipher.encrypt_into(_nonce(index), _ZEROS[: stop - start], None, place)
    return out[:length].view("<u8")


def accumulate(acc: Residues, keys: Iterable[bytes], sign: int = 1) -> None:
    """Add (sign 1) or subtract (sign -1) the residue vectors of several keys, in place.

    Args:
        acc: Residues, shape (d,), contiguous; read and written once, however many keys there are.
        keys: Derived keys, 32 bytes each.
        sign: 1 or -1.
    """
    masks = Masks(keys)
    apply = masks.add_to if sign > 0 else masks.subtract_from
    for index, start in enumerate(range(0, acc.size, BLOCK_WORDS)):
        apply(acc[start : start + BLOCK_WORDS], index)
