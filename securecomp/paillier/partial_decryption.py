"""Partial decryptions under a threshold key, with proofs, and their combination.

A holder raises each ciphertext to its share of the exponent and proves that it did, so that a wrong
part is traced to its holder. Any t parts give the plaintexts.

Sources: Damgård, Jurik, PKC 2001, section 4 (s = 1); Shoup, EUROCRYPT 2000; Fiat, Shamir, CRYPTO
1986 (challenges; here SHA-256 over everything that is proved).
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import gmpy2
import msgspec
import numpy.typing as npt
from gmpy2 import invert, mpz, powmod, powmod_sec

from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    ParameterError,
    ThresholdError,
)
from securecomp.paillier import vectors
from securecomp.paillier.keys import random_below
from securecomp.paillier.threshold_key import KeyShare, ThresholdKey
from securecomp.paillier.vectors import EncryptedVector, centred

_CHALLENGE_BITS = 256
_HIDING_BITS = 128


class PartialDecryption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One holder's partial decryption of a vector, with proofs.

    Attributes:
        index: The holder.
        values: c^(2 delta s_i) for each ciphertext c.
        challenges: One a ciphertext.
        responses: One a ciphertext.
    """

    index: int
    values: list[bytes]
    challenges: list[bytes]
    responses: list[bytes]

    def encode(self) -> bytes:
        """Return the bytes to send to who combines."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "PartialDecryption":
        """Read them.

        Raises:
            DecodeError: Not a partial decryption.
        """
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise DecodeError(f"not a partial decryption: {error}") from None


def partial_decrypt(
    share: KeyShare, vector: EncryptedVector, *, entropy: Entropy = entropy_.system
) -> PartialDecryption:
    """Decrypt a holder's part of a vector, and prove it.

    Raises:
        KeyMismatchError: The vector is under another key.
        DecodeError: A number is no ciphertext.
    """
    key = share.key
    if vector.key != key.public:
        raise KeyMismatchError(f"{vector!r} is not under this key")
    key.public.check_ciphertexts(vector.ciphertexts)
    n2 = key.public.n2
    size = key.public.ciphertext_bytes
    exponent = 2 * key.delta * share._secret
    # The nonce hides delta s_i, which is below n^2 delta, under 128 bits and the challenge.
    room = 2 * key.public.bits + key.delta.bit_length() + _CHALLENGE_BITS + _HIDING_BITS
    values, challenges, responses = [], [], []
    for ciphertext in vector.ciphertexts:
        value = powmod_sec(ciphertext, exponent, n2)
        nonce = random_below(mpz(1) << room, entropy)
        square = ciphertext * ciphertext % n2
        a = powmod_sec(square * square % n2, nonce, n2)
        b = powmod_sec(key.base, nonce, n2)
        challenge = _challenge(key, share.index, ciphertext, value, a, b)
        response = nonce + challenge * key.delta * share._secret
        values.append(int(value).to_bytes(size, "big"))
        challenges.append(challenge.to_bytes(_CHALLENGE_BITS // 8, "big"))
        responses.append(int(response).to_bytes((response.bit_length() + 7) // 8, "big"))
    return PartialDecryption(share.index, values, challenges, responses)


def _challenge(key: ThresholdKey, index: int, c: Any, value: Any, a: Any, b: Any) -> int:
    size = key.public.ciphertext_bytes
    numbers = (key.base, key.verification[index - 1], c, value, a, b)
    parts = [int(number).to_bytes(size, "big") for number in numbers]
    data = prg.join("paillier partial decryption", key.public.id, index, *parts)
    return int.from_bytes(hashlib.sha256(data).digest(), "big")


def verify_partial(
    key: ThresholdKey, vector: EncryptedVector, partial: PartialDecryption
) -> list[Any]:
    """Check a holder's proofs and return its values.

    Raises:
        AuthenticationError: A value does not come from this holder's share; it names the holder.
        DecodeError: Malformed.
    """
    if not 1 <= partial.index <= key.holders:
        raise DecodeError(f"there is no holder {partial.index}")
    count = len(vector.ciphertexts)
    if not len(partial.values) == len(partial.challenges) == len(partial.responses) == count:
        raise DecodeError(f"holder {partial.index}: not {count} values with their proofs")
    n2 = key.public.n2
    room = 2 * key.public.bits + key.delta.bit_length() + _CHALLENGE_BITS + _HIDING_BITS + 8
    v_i = key.verification[partial.index - 1]
    values = []
    for ciphertext, raw, challenge_, response_ in zip(
        vector.ciphertexts, partial.values, partial.challenges, partial.responses, strict=True
    ):
        value, z = (mpz(int.from_bytes(x, "big")) for x in (raw, response_))
        challenge = int.from_bytes(challenge_, "big")
        if not 0 < value < n2 or z.bit_length() > room or len(challenge_) != 32:
            raise DecodeError(f"holder {partial.index}: a number is out of range")
        if gmpy2.gcd(value, key.public.n) != 1:
            raise DecodeError(f"holder {partial.index}: a value shares a factor with the modulus")
        square = ciphertext * ciphertext % n2
        # log of value^2 to base c^4 = log of v_i to base v = delta s_i
        a = powmod(square * square % n2, z, n2) * invert(powmod(value, 2 * challenge, n2), n2)
        b = powmod(key.base, z, n2) * invert(powmod(v_i, challenge, n2), n2)
        if _challenge(key, partial.index, ciphertext, value, a % n2, b % n2) != challenge:
            raise AuthenticationError(
                f"holder {partial.index}: its partial decryption does not come from its share"
            )
        values.append(value)
    return values


def combine(
    key: ThresholdKey, vector: EncryptedVector, partials: Sequence[PartialDecryption]
) -> npt.NDArray[Any]:
    """Verify partial decryptions and return the values, shape (d,).

    Raises:
        ThresholdError: Fewer than the threshold.
        AuthenticationError, DecodeError: One is wrong; the message names the holder.
        ParameterError: One holder's twice.
        RangeError: A plaintext is not a sum of the vector's layout, or beyond what the vectors that
            were added can give.
    """
    if vector.key != key.public:
        raise KeyMismatchError(f"{vector!r} is not under this key")
    indices = [partial.index for partial in partials]
    if len(set(indices)) != len(indices):
        raise ParameterError("a holder's partial decryption is there twice")
    if len(partials) < key.threshold:
        raise ThresholdError(key.threshold, len(partials), "too few holders to decrypt")
    key.public.check_ciphertexts(vector.ciphertexts)
    verified = {partial.index: verify_partial(key, vector, partial) for partial in partials}
    return interpolate(key, vector, verified)


def interpolate(
    key: ThresholdKey, vector: EncryptedVector, verified: Mapping[int, Sequence[Any]]
) -> npt.NDArray[Any]:
    """Return the values, shape (d,), from what `verify_partial` returned for enough holders.

    Raises:
        AuthenticationError: They do not give plaintexts: the dealer's shares do not fit together.
        RangeError: As `combine`.
    """
    used = list(verified)[: key.threshold]
    n, n2 = key.public.n, key.public.n2
    factor = invert(4 * mpz(key.delta) ** 2, n)
    lambdas = {index: _lagrange(key.delta, index, used) for index in used}
    plaintexts = []
    for position in range(len(vector.ciphertexts)):
        product = mpz(1)
        for index, coefficient in lambdas.items():
            power = powmod(verified[index][position], abs(2 * coefficient), n2)
            product = product * (power if coefficient > 0 else invert(power, n2)) % n2
        if (product - 1) % n:
            raise AuthenticationError("the partial decryptions do not fit together")
        plaintexts.append(centred((product - 1) // n * factor % n, n))
    return vectors.unpacked(vector, plaintexts)


def _lagrange(delta: int, index: int, indices: Sequence[int]) -> int:
    """Return delta times Lagrange's coefficient at zero: an integer."""
    numerator, denominator = delta, 1
    for other in indices:
        if other != index:
            numerator *= -other
            denominator *= index - other
    return numerator // denominator
