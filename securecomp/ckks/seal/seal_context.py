"""A thin and strict layer over Microsoft SEAL, through TenSEAL's low-level bindings.

Bytes from another party are inflated here, into a buffer of the only length that they can have.
Everything in them but residues and seeds (parameters, level, scale, sizes) is compared with the
expected value before SEAL reads them. Any difference raises `DecodeError`. This is a second line
of defence: callers verify who sent the bytes (a MAC or a signature) BEFORE they come here. A C++
parser must not read a stranger's bytes.

Keys and noise come from SEAL's own generator (BLAKE2x, seeded by the operating system) and cannot
be replayed. SEAL works in the caller's thread; nothing here starts one.

The byte format is that of SEAL 4: header and members as `Ciphertext::save` writes them.
"""

import importlib.util
import os
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NoReturn

import pyarrow as pa

from securecomp.ckks.native.moduli import Chain
from securecomp.core.secret import Secret
from securecomp.errors import BackendUnavailableError, DecodeError, ParameterError, SecureCompError

_MAGIC = 0xA15E
_HEADER = struct.Struct("<HBBBBHQ")  # magic, its own size, major, minor, compression, 0, size
_MEMBERS = struct.Struct("<32sBQQQdQ")  # parms_id, ntt, polynomials, N, primes, scale, correction
_COUNT = struct.Struct("<Q")
_SEED_BYTES = 64
_SEED_TYPE = 1  # BLAKE2xb
_STORED, _ZSTD = 0, 2
_FAILURES = (RuntimeError, ValueError, OverflowError, MemoryError, IndexError)


def installed() -> bool:
    """Return whether TenSEAL is installed, without loading it."""
    return importlib.util.find_spec("tenseal") is not None


@cache
def backend() -> Any:
    """Return TenSEAL's bindings of SEAL.

    Raises:
        BackendUnavailableError: TenSEAL is not installed, or its SEAL is not version 4.
    """
    try:
        import tenseal.sealapi as sealapi
    except ImportError as error:
        raise BackendUnavailableError(
            "this needs TenSEAL: pip install 'securecomp[ckks]'"
        ) from error
    if _written_by(sealapi)[0] != 4:
        raise BackendUnavailableError(
            "the installed TenSEAL does not contain SEAL 4: pip install -U 'securecomp[ckks]'"
        )
    return sealapi


@cache
def _written_by(sealapi: Any) -> tuple[int, int]:
    """Return SEAL's major and minor version, from the header of an object that it saves."""
    header = _HEADER.unpack(_saved(sealapi.Plaintext())[: _HEADER.size])
    return header[2], header[3]


class Context:
    """SEAL's tables for a chain. It holds no secret; each side makes its own.

    Args:
        chain: The ring and its moduli.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        ParameterError: SEAL refuses the parameters.
    """

    def __init__(self, chain: Chain) -> None:
        seal = backend()
        self.chain = chain
        parameters = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
        parameters.set_poly_modulus_degree(chain.ring)
        parameters.set_coeff_modulus([seal.Modulus(q) for q in chain.primes])
        self.native = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.TC128)
        usable = self.native.using_keyswitching() or not chain.special
        if not self.native.parameters_set() or not usable:
            raise ParameterError(
                f"SEAL refuses these moduli: {self.native.parameters_error_message()}"
            )
        self.evaluator = seal.Evaluator(self.native)
        self._encoder = seal.CKKSEncoder(self.native)
        self._ids = self._levels()

    def __repr__(self) -> str:
        return f"<Context ring={self.chain.ring} levels={self.chain.levels}>"

    def _levels(self) -> dict[int, list[int]]:
        """Return SEAL's identifier of each level."""
        ids = {}
        data = self.native.first_context_data()
        for level in range(self.chain.levels, 0, -1):
            ids[level] = list(data.parms_id())
            data = data.next_context_data()
        return ids

    def parms_id(self, level: int) -> list[int]:
        """Return SEAL's identifier of a level, 1 (one prime left) to `chain.levels`."""
        return self._ids[level]

    def encode(
        self, values: complex | list[float] | list[complex], level: int, scale: float
    ) -> Any:
        """Return a plaintext with these values in its first slots and 0 in the rest.

        Args:
            values: One number for all slots, or at most `chain.slots` of them, real or complex.
            level: The level at which it will be used.
            scale: The number that stands for 1.

        Raises:
            ParameterError: Too many values, or too large ones for the level's modulus.
        """
        plaintext = backend().Plaintext()
        try:
            self._encoder.encode(values, self._ids[level], scale, plaintext)
        except _FAILURES as error:
            raise ParameterError(f"SEAL cannot encode these values: {error}") from error
        return plaintext

    def decode(self, plaintext: Any) -> list[float]:
        """Return the real parts of all slots."""
        return list(self._encoder.decode_double(plaintext))

    def decode_complex(self, plaintext: Any) -> list[complex]:
        """Return all slots."""
        return list(self._encoder.decode_complex(plaintext))

    def empty(self) -> Any:
        """Return a new ciphertext, to hold a result."""
        return backend().Ciphertext()

    def save(self, ciphertext: Any) -> bytes:
        """Return the bytes of a ciphertext."""
        return _saved(ciphertext)

    def load(self, data: bytes, level: int, scale: float, *, seeded: bool) -> Any:
        """Read a ciphertext from bytes whose sender has been verified.

        Args:
            data: Result of `save` or `SealSecretKey.encrypt`.
            level: The level that it must have.
            scale: The scale that it must have, exactly.
            seeded: Whether it must be a fresh one, half of which is a seed.

        Raises:
            DecodeError: Not a ciphertext of this kind under these parameters.
        """
        raw = _inflated(data, self._ciphertext_bytes(level, seeded), "a ciphertext")
        self._check_ciphertext(raw, 0, _id_bytes(self._ids[level]), level, scale, seeded)
        ciphertext = self._loaded(backend().Ciphertext(), raw, "a ciphertext")
        # SEAL has expanded the seed, and compared every residue with its modulus.
        if (
            ciphertext.size() != 2
            or not ciphertext.is_ntt_form()
            or ciphertext.scale != scale
            or list(ciphertext.parms_id()) != self._ids[level]
        ):
            _refuse("a ciphertext", "it differs from its header")
        return ciphertext

    def load_relinearisation_keys(self, data: bytes) -> Any:
        """Read relinearisation keys from bytes whose sender has been verified.

        Raises:
            DecodeError: Not a result of `SealSecretKey.relinearisation_keys` under these
                parameters.
        """
        seal, what = backend(), "relinearisation keys"
        digits, full = self.chain.levels, self.chain.levels + 1
        each = _HEADER.size + self._ciphertext_bytes(full, True)
        identity = _id_bytes(self.native.key_parms_id())
        start = struct.pack("<32sQQ", identity, 1, digits)
        raw = _inflated(data, len(start) + digits * each, what)
        if raw[: len(start)] != start:
            _refuse(what, "they are for other parameters")
        for digit in range(digits):
            at = len(start) + digit * each
            if raw[at : at + _HEADER.size] != _header(each - _HEADER.size):
                _refuse(what, f"digit {digit} has another form")
            self._check_ciphertext(raw, at + _HEADER.size, identity, full, 1.0, True)
        keys = self._loaded(seal.RelinKeys(), raw, what)
        if keys.size() != 1 or not keys.has_key(2) or not seal.is_valid_for(keys, self.native):
            _refuse(what, "they are not keys for a product of two ciphertexts")
        return keys

    def load_secret_key(self, data: bytes) -> Any:
        """Read SEAL's secret key from the result of `SealSecretKey.to_bytes`.

        Raises:
            DecodeError: Not a secret key of these parameters.
        """
        words = self.chain.ring * len(self.chain.primes)
        payload = _COUNT.size + 8 * words
        start = struct.pack("<32sQd", _id_bytes(self.native.key_parms_id()), words, 1.0)
        start += _header(payload) + _COUNT.pack(words)
        raw = _inflated(data, len(start) + 8 * words, "a secret key")
        if raw[: len(start)] != start:
            _refuse("a secret key", "it is for other parameters")
        return self._loaded(backend().SecretKey(), raw, "a secret key")

    def _ciphertext_bytes(self, level: int, seeded: bool) -> int:
        """Return the length of a ciphertext's members, not compressed."""
        data = 8 * self.chain.ring * level * (1 if seeded else 2)
        seed = _HEADER.size + 1 + _SEED_BYTES if seeded else 0
        return _MEMBERS.size + _HEADER.size + _COUNT.size + data + seed

    def _check_ciphertext(
        self, raw: bytes, at: int, identity: bytes, level: int, scale: float, seeded: bool
    ) -> None:
        """Compare all bytes but residues and seed with the only value that they can have."""
        words = self.chain.ring * level * (1 if seeded else 2)
        expected = _MEMBERS.pack(identity, 1, 2, self.chain.ring, level, scale, 1)
        if raw[at : at + len(expected)] != expected:
            _refuse("a ciphertext", "it has other parameters, another level or another scale")
        at += len(expected)
        expected = _header(_COUNT.size + 8 * words) + _COUNT.pack(words)
        if raw[at : at + len(expected)] != expected:
            _refuse("a ciphertext", "its data has another form")
        if seeded:
            at += len(expected) + 8 * words
            expected = _header(1 + _SEED_BYTES) + bytes([_SEED_TYPE])
            if raw[at : at + len(expected)] != expected:
                _refuse("a ciphertext", "its seed has another form")

    def _loaded(self, target: Any, raw: bytes, what: str) -> Any:
        with refusing(what), _file(_header(len(raw)) + raw) as path:
            target.load(self.native, path)
        return target


class SealSecretKey(Secret):
    """The key that decrypts. It is never sent, and its `repr` shows nothing of it.

    Encryption is symmetric: half of a fresh ciphertext is a seed.

    Args:
        context: The parameters.
        native: SEAL's key; None generates one.
    """

    def __init__(self, context: Context, native: Any = None) -> None:
        seal = backend()
        self.context = context
        known = () if native is None else (native,)
        self._generator = seal.KeyGenerator(context.native, *known)
        self._key = self._generator.secret_key()
        self._encryptor = seal.Encryptor(context.native, self._key)
        self._decryptor = seal.Decryptor(context.native, self._key)

    def __repr__(self) -> str:
        return f"SealSecretKey(ring={self.context.chain.ring})"

    @classmethod
    def from_bytes(cls, context: Context, data: bytes) -> "SealSecretKey":
        """Read a saved key.

        Raises:
            DecodeError: Not a secret key of these parameters.
        """
        return cls(context, context.load_secret_key(data))

    def to_bytes(self) -> bytes:
        """Return the secret itself, not encrypted. Anybody who reads it can decrypt everything."""
        return _saved(self._key)

    def relinearisation_keys(self) -> bytes:
        """Return the public keys that the server needs for products, half of them as seeds."""
        return _saved(self._generator.create_relin_keys())

    def encrypt(self, values: list[float] | list[complex], scale: float) -> bytes:
        """Return a fresh ciphertext at the top level, half of it as a seed.

        Args:
            values: At most `chain.slots` numbers, real or complex.
            scale: The number that stands for 1.

        Raises:
            ParameterError: Too many values, or too large ones.
        """
        plaintext = self.context.encode(values, self.context.chain.levels, scale)
        return _saved(self._encryptor.encrypt_symmetric(plaintext))

    def decrypt(self, ciphertext: Any) -> list[float]:
        """Return all slots. Show them to nobody else: they carry traces of the noise."""
        return self.context.decode(self._opened(ciphertext))

    def decrypt_complex(self, ciphertext: Any) -> list[complex]:
        """Return all slots with their imaginary parts. They carry traces of the noise too."""
        return self.context.decode_complex(self._opened(ciphertext))

    def _opened(self, ciphertext: Any) -> Any:
        plaintext = backend().Plaintext()
        self._decryptor.decrypt(ciphertext, plaintext)
        return plaintext


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn any error of SEAL into a `DecodeError` that says "not `what`"."""
    try:
        yield
    except SecureCompError:
        raise
    except _FAILURES as error:
        raise DecodeError(f"not {what}: SEAL says: {error}") from error


def _refuse(what: str, why: str) -> NoReturn:
    raise DecodeError(f"not {what} of this context: {why}")


def _id_bytes(parms_id: Sequence[int]) -> bytes:
    return struct.pack("<4Q", *parms_id)


def _header(size: int, compression: int = _STORED) -> bytes:
    """Return SEAL's header for this many bytes."""
    version = _written_by(backend())
    return _HEADER.pack(_MAGIC, _HEADER.size, *version, compression, 0, _HEADER.size + size)


def _inflated(data: bytes, size: int, what: str) -> bytes:
    """Return the bytes after SEAL's header, inflated to exactly `size` bytes.

    The size is fixed beforehand, so that a small message cannot ask for much memory.
    """
    # Compression makes incompressible bytes a little longer.
    if not _HEADER.size < len(data) <= _HEADER.size + size + size // 128 + 1024:
        raise DecodeError(f"not {what}: {len(data)} bytes, and at most about {size} are expected")
    compression = data[5]
    if compression not in (_STORED, _ZSTD):
        raise DecodeError(f"not {what}: compressed by a method other than zstd")
    if data[: _HEADER.size] != _header(len(data) - _HEADER.size, compression):
        major, minor = _written_by(backend())
        raise DecodeError(f"not {what} of SEAL {major}.{minor} and of this length")
    body = data[_HEADER.size :]
    if compression == _ZSTD:
        try:
            body = pa.Codec("zstd").decompress(body, decompressed_size=size, asbytes=True)
        except (OSError, ValueError, MemoryError) as error:
            raise DecodeError(f"not {what}: it does not inflate to {size} bytes") from error
    if len(body) != size:
        raise DecodeError(f"not {what}: {len(body)} bytes in place of {size}")
    return bytes(body)


def _saved(thing: Any) -> bytes:
    with _file(b"") as path:
        thing.save(path)
        with open(path, "rb") as stream:
            return stream.read()


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Yield the path of a file in memory, because SEAL's bindings want a path.

    Where the system has no such files, it is a temporary file that only this user may read.
    """
    memory = getattr(os, "memfd_create", None)
    if memory is not None and os.path.isdir("/proc/self/fd"):
        descriptor = memory("securecomp", os.MFD_CLOEXEC)
        try:
            _write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    descriptor, path = tempfile.mkstemp(prefix="securecomp-")
    try:
        try:
            _write(descriptor, content)
        finally:
            os.close(descriptor)
        yield path
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
