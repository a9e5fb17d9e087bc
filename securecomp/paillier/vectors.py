"""Encrypted vectors: encryption, sums, scaling, dot products, re-randomisation, decryption.

All of it works on packed plaintexts (`packing`), with the additions that are still allowed
carried along. Encryption is (1 + m n) h_s^r with r of half the modulus's length (Damgård, Jurik,
Nielsen 2010), or, with exponent="full", (1 + m n) r^n for who wants no assumption beyond
Paillier's own.
"""

import hashlib
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
from gmpy2 import invert, mpz, powmod

from securecomp.core import checks, field
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.fixedpoint import as_array
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RangeError,
)
from securecomp.paillier import fixed_base
from securecomp.paillier.keys import PrivateKey, PublicKey
from securecomp.paillier.packing import Packing
from securecomp.paillier.randomisers import Exponent, randomisers

Progress = Callable[[int, int], None]
"""Called with ciphertexts done, and ciphertexts in all."""

_CHUNK = 32  # ciphertexts a task: long enough to be worth sending, short enough for a progress bar


class EncryptedVector:
    """A vector under a public key.

    Attributes:
        key: The public key.
        packing: The slots' layout.
        length: Number of values.
        weight: Additions used up: 1 after encryption, added up by sums, multiplied by scaling.
        ciphertexts: Numbers in [1, n^2).
    """

    __slots__ = ("ciphertexts", "key", "length", "packing", "weight")
    __array_ufunc__ = None  # numpy arrays leave arithmetic to this class

    def __init__(
        self,
        key: PublicKey,
        packing: Packing,
        length: int,
        weight: int,
        ciphertexts: Sequence[Any],
    ) -> None:
        if length < 0 or len(ciphertexts) != packing.ciphertexts(length):
            raise ParameterError(f"{len(ciphertexts)} ciphertexts do not hold {length} values")
        if not 0 <= weight <= packing.additions:
            raise RangeError(
                f"{weight} additions where the slots have room for {packing.additions}; encrypt "
                "with more additions allowed"
            )
        self.key = key
        self.packing = packing
        self.length = length
        self.weight = weight
        self.ciphertexts = list(ciphertexts)

    @property
    def left(self) -> int:
        """Additions that are still allowed."""
        return self.packing.additions - self.weight

    def __add__(self, other: "EncryptedVector") -> "EncryptedVector":
        """Add two vectors.

        Raises:
            KeyMismatchError: Of another key.
            ParameterError: Not an encrypted vector, or of another layout or length.
            RangeError: The slots have no room for so many additions.
        """
        other = _encrypted(other)
        if other.key != self.key:
            raise KeyMismatchError(f"{other!r} is under another key than {self!r}")
        if (other.packing, other.length) != (self.packing, self.length):
            raise ParameterError(f"{other!r} has another layout or length than {self!r}")
        n2 = self.key.n2
        return EncryptedVector(
            self.key,
            self.packing,
            self.length,
            self.weight + other.weight,
            [a * b % n2 for a, b in zip(self.ciphertexts, other.ciphertexts, strict=True)],
        )

    def __radd__(self, start: int) -> "EncryptedVector":
        """Let sum() begin with its zero."""
        return self if isinstance(start, int) and start == 0 else self + _encrypted(start)

    def __neg__(self) -> "EncryptedVector":
        return self * -1

    def __sub__(self, other: "EncryptedVector") -> "EncryptedVector":
        return self + -_encrypted(other)

    def __rsub__(self, other: object) -> "EncryptedVector":
        return _encrypted(other) - self

    def __mul__(self, factor: int) -> "EncryptedVector":
        """Multiply every value by one public integer.

        Raises:
            ParameterError: Not an integer.
            RangeError: The slots have no room for it.
        """
        if isinstance(factor, bool) or not isinstance(factor, int | np.integer):
            raise ParameterError(f"a factor is an integer, not {type(factor).__name__}")
        factor, n2 = int(factor), self.key.n2
        # The room is checked before the work is done.
        scaled = EncryptedVector(
            self.key, self.packing, self.length, self.weight * abs(factor), self.ciphertexts
        )
        if factor < 0:
            scaled.ciphertexts = [_invert(c, n2) for c in self.ciphertexts]
        if abs(factor) != 1:
            scaled.ciphertexts = [powmod(c, abs(factor), n2) for c in scaled.ciphertexts]
        return scaled

    __rmul__ = __mul__

    def rerandomised(
        self, *, exponent: Exponent = "half", entropy: Entropy = entropy_.system
    ) -> "EncryptedVector":
        """Return the same values under fresh randomness, to be done before anything leaves."""
        masks = randomisers(self.key, len(self.ciphertexts), exponent=exponent, entropy=entropy)
        fresh = [c * m % self.key.n2 for c, m in zip(self.ciphertexts, masks, strict=True)]
        return EncryptedVector(self.key, self.packing, self.length, self.weight, fresh)

    def __repr__(self) -> str:
        return f"EncryptedVector({self.length} values, {self.left} more additions, {self.key!r})"


def _encrypted(other: object) -> EncryptedVector:
    """Return an encrypted vector; refuse anything else by its type.

    Raises:
        ParameterError: It is something else.
    """
    if not isinstance(other, EncryptedVector):
        raise ParameterError(
            f"an encrypted vector and {type(other).__name__} do not add up; encrypt the numbers "
            "under the same key and layout first"
        )
    return other


def dot(vectors: Sequence[EncryptedVector], weights: Sequence[int]) -> EncryptedVector:
    """Return the sum of weights[i] vectors[i], by multi-exponentiation.

    Args:
        vectors: At least one, all under one key and layout.
        weights: As many public integers; the sum of |weight| times additions must be allowed.

    Raises:
        ParameterError, KeyMismatchError, RangeError: As for sums and products.
    """
    if not vectors or len(vectors) != len(weights):
        raise ParameterError("as many weights as vectors are needed, and at least one")
    first = vectors[0]
    for vector in vectors:
        if vector.key != first.key:
            raise KeyMismatchError("the vectors are under different keys")
        if (vector.packing, vector.length) != (first.packing, first.length):
            raise ParameterError("the vectors have different layouts or lengths")
    if any(isinstance(w, bool) or not isinstance(w, int | np.integer) for w in weights):
        raise ParameterError("weights are integers")
    integers = [int(w) for w in weights]
    used = sum(v.weight * abs(w) for v, w in zip(vectors, integers, strict=True))
    result = EncryptedVector(first.key, first.packing, first.length, used, first.ciphertexts)
    columns = zip(*(v.ciphertexts for v in vectors), strict=True)
    try:
        result.ciphertexts = [
            fixed_base.multi_power(column, integers, first.key.n2) for column in columns
        ]
    except ZeroDivisionError:
        raise DecodeError("a ciphertext shares a factor with the modulus") from None
    return result


def _invert(ciphertext: Any, modulus: Any) -> Any:
    try:
        return invert(ciphertext, modulus)
    except ZeroDivisionError:
        raise DecodeError("a ciphertext shares a factor with the modulus") from None


def encrypt(
    key: PublicKey,
    values: npt.ArrayLike,
    *,
    bound: int,
    additions: int = 1024,
    exponent: Exponent = "half",
    owner: PrivateKey | None = None,
    memory: int = fixed_base.DEFAULT_MEMORY,
    executor: Executor | None = None,
    progress: Progress | None = None,
    entropy: Entropy = entropy_.system,
) -> EncryptedVector:
    """Encrypt a vector of signed integers.

    Args:
        key: The public key.
        values: Integers of any Python or numpy type, shape (d,).
        bound: Largest absolute value that the slots are for.
        additions: How many such vectors may be added up.
        exponent: See `randomisers`.
        owner: The private key, if this is the key holder.
        memory: Bytes of the tables of each process.
        executor: Where to spread the work; by default this process alone. Its workers draw their
            randomness from their own operating system.
        progress: Called as chunks are done.
        entropy: Source of randomness in this process.

    Raises:
        ParameterError: Not integers of one dimension.
        RangeError: A value is beyond the bound.
        LocalProtocolError: A worker died; there is no partial result.
    """
    checks.integer(memory, "memory")
    integers = check_integers(values)
    packing = Packing.plan(key, bound, additions)
    plaintexts = packing.pack(integers)
    ciphertexts: list[Any] = []
    chunks = [plaintexts[i : i + _CHUNK] for i in range(0, len(plaintexts), _CHUNK)]
    if executor is None:
        for chunk in chunks:
            masks = randomisers(
                key,
                len(chunk),
                exponent=exponent,
                owner=owner,
                memory=memory,
                expected=len(plaintexts),
                entropy=entropy,
            )
            n, n2 = key.n, key.n2
            ciphertexts += [(1 + m * n) * z % n2 for m, z in zip(chunk, masks, strict=True)]
            if progress:
                progress(len(ciphertexts), len(plaintexts))
    else:
        h_s = None if key.h_s is None else int(key.h_s)
        secret = None if owner is None else owner.to_json()
        if owner is not None and secret is not None:
            _living[hashlib.sha256(secret.encode()).digest()] = owner
        total = len(plaintexts)
        tasks = [(int(key.n), h_s, secret, chunk, exponent, memory, total) for chunk in chunks]
        try:
            for part in executor.map(_encrypt_chunk, tasks):
                ciphertexts += map(mpz, part)
                if progress:
                    progress(len(ciphertexts), len(plaintexts))
        except (RuntimeError, CancelledError) as error:  # BrokenExecutor is a RuntimeError
            raise LocalProtocolError(
                f"a worker process died while encrypting ({error}); nothing was returned"
            ) from error
    return EncryptedVector(key, packing, len(integers), 1, ciphertexts)


def _encrypt_chunk(
    task: tuple[int, int | None, str | None, list[int], Exponent, int, int],
) -> list[int]:
    n, h_s, secret, plaintexts, exponent, memory, expected = task
    # The keys were checked where they came from; a worker takes them as they are.
    owner = None if secret is None else _key_in_worker(secret)
    key = PublicKey(n, h_s, insecure_for_tests=True)
    masks = randomisers(
        key,
        len(plaintexts),
        exponent=exponent,
        owner=owner,
        memory=memory,
        expected=expected,
    )
    return [int((1 + m * key.n) * z % key.n2) for m, z in zip(plaintexts, masks, strict=True)]


_living: WeakValueDictionary[bytes, PrivateKey] = WeakValueDictionary()
_held: list[PrivateKey] = []


def _key_in_worker(secret: str) -> PrivateKey:
    """Return the key of a task, with the tables that earlier tasks made.

    In a thread it is the owner's own object, and is gone when the owner drops it. A worker process
    holds the last key until it ends.
    """
    name = hashlib.sha256(secret.encode()).digest()
    key = _living.get(name)
    if key is None:
        key = _living[name] = PrivateKey.from_json(secret, insecure_for_tests=True)
    if multiprocessing.parent_process() is not None:
        _held[:] = [key]
    return key


def decrypt(
    key: PrivateKey, vector: EncryptedVector, *, progress: Progress | None = None
) -> npt.NDArray[Any]:
    """Return the values, shape (d,): int64, or Python ints where slots are wider.

    Raises:
        KeyMismatchError: The vector is under another key.
        DecodeError: A ciphertext is not one.
        RangeError: A plaintext is not a sum of this layout, or beyond what the vectors that were
            added can give.
    """
    if vector.key != key.public:
        raise KeyMismatchError(f"{vector!r} is not under this private key")
    key.public.check_ciphertexts(vector.ciphertexts)
    plaintexts = []
    for ciphertext in vector.ciphertexts:
        plaintexts.append(centred(key.raw_decrypt(ciphertext), key.public.n))
        if progress:
            progress(len(plaintexts), len(vector.ciphertexts))
    return unpacked(vector, plaintexts)


def unpacked(vector: EncryptedVector, plaintexts: Sequence[int]) -> npt.NDArray[Any]:
    """Return the values of a vector's signed plaintexts, shape (d,).

    Raises:
        RangeError: A plaintext is not a sum of this layout, or beyond what the vectors that were
            added can give.
    """
    values = vector.packing.unpack(plaintexts, vector.length)
    largest = vector.packing.bound * vector.weight
    if len(values) and max(int(values.max()), -int(values.min())) > largest:
        raise RangeError(
            f"a value is beyond what {vector.weight} vectors up to {vector.packing.bound} add up "
            "to: somebody did not keep to the protocol"
        )
    return values


def centred(plaintext: Any, n: Any) -> int:
    """Return the signed integer that a plaintext in [0, n) stands for."""
    return int(plaintext - n if 2 * plaintext > n else plaintext)


def check_integers(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return a one-dimensional array of integers.

    Raises:
        ParameterError: Something else.
    """
    array = as_array(values, "values")
    if array.ndim != 1:
        raise ParameterError(f"expected a vector, got shape {array.shape}")
    if array.dtype.kind == "b" or array.size == 0:
        return array.astype(np.int64)
    if array.dtype == object and all(isinstance(v, int | np.integer | np.bool_) for v in array):
        return field.integers(array, "values")
    if array.dtype.kind in "iu":
        return array
    raise ParameterError(
        f"expected integers, got {np.asarray(values).dtype}; encode reals with core.fixedpoint"
    )
