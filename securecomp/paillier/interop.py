"""One value a ciphertext, as python-paillier (phe) has it, in both directions.

phe writes a number as an integer times 16^exponent. Its numbers come in as a vector of one-slot
ciphertexts with one common exponent, the smallest; ours go out with the exponent that the caller
says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gmpy2 import mpz, powmod

from securecomp.errors import (
    BackendUnavailableError,
    KeyMismatchError,
    ParameterError,
    RangeError,
)
from securecomp.paillier.keys import PrivateKey, PublicKey
from securecomp.paillier.packing import Packing
from securecomp.paillier.vectors import EncryptedVector, decrypt

_MOST_EXPONENT = 1024
_BASE = 16  # phe.EncodedNumber.BASE


@dataclass(frozen=True, slots=True)
class PheNumbers:
    """Numbers of phe as an encrypted vector.

    Attributes:
        vector: One slot a ciphertext; it adds and scales as any other.
        exponent: Every value is an integer times 16^exponent.
    """

    vector: EncryptedVector
    exponent: int

    def decrypt(self, key: PrivateKey) -> list[float | int]:
        """Return the numbers: ints where the exponent is not negative, else floats.

        Raises:
            RangeError: No float is as large.
        """
        scale = Fraction(_BASE) ** self.exponent
        exact = [int(v) * scale for v in decrypt(key, self.vector)]
        try:
            return [int(v) if self.exponent >= 0 else float(v) for v in exact]
        except OverflowError:
            raise RangeError("a number is larger than any float") from None


def one_slot(key: PublicKey, additions: int = 1024) -> Packing:
    """Return the layout of one value a ciphertext, as wide as the key affords."""
    slot = key.bits - 2
    if not 1 <= additions < 1 << min(64, slot // 2):
        raise ParameterError(f"additions are from 1 to 2^{min(64, slot // 2)}, not {additions}")
    bits = slot - 2 - (additions - 1).bit_length()
    return Packing((1 << bits) - 1, additions, slot, 1)


def from_phe(numbers: Sequence[Any], key: PublicKey, *, additions: int = 1024) -> PheNumbers:
    """Take `phe.EncryptedNumber`s, bringing them to one exponent.

    Raises:
        ParameterError: None at all, or exponents too far apart.
        KeyMismatchError: Under another key.
        DecodeError: A ciphertext is not one.
    """
    if not numbers:
        raise ParameterError("there are no numbers")
    if any(abs(number.exponent) > _MOST_EXPONENT for number in numbers):
        raise ParameterError(
            "the numbers' exponents are too far apart, or beyond what floats can have"
        )
    exponent = min(number.exponent for number in numbers)
    packing = one_slot(key, additions)
    ciphertexts = []
    for number in numbers:
        if number.public_key.n != key.n:
            raise KeyMismatchError("a number is under another key")
        shift = number.exponent - exponent
        if shift * 4 > packing.slot // 2:
            raise ParameterError("the numbers' exponents are too far apart to add them")
        ciphertexts.append(mpz(number.ciphertext()))
    key.check_ciphertexts(ciphertexts, "phe's numbers")
    aligned = [
        powmod(c, _BASE ** (number.exponent - exponent), key.n2)
        for c, number in zip(ciphertexts, numbers, strict=True)
    ]
    return PheNumbers(EncryptedVector(key, packing, len(aligned), 1, aligned), exponent)


def to_phe(vector: EncryptedVector, exponent: int = 0) -> list[Any]:
    """Return `phe.EncryptedNumber`s; re-randomise the vector before they leave.

    Raises:
        ParameterError: The vector has more than one slot a ciphertext.
        BackendUnavailableError: phe is not installed.
    """
    try:
        from phe import EncryptedNumber
    except ImportError:
        raise BackendUnavailableError("phe is not installed; pip install phe") from None
    if vector.packing.slots != 1:
        raise ParameterError("phe has one value a ciphertext; encrypt with the layout one_slot()")
    public = vector.key.to_phe()
    return [EncryptedNumber(public, int(c), exponent) for c in vector.ciphertexts]
