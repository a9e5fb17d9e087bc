"""Largest moduli for 128-bit security.

The values are the stricter ones of two published tables, for a ternary secret and errors of
standard deviation 3.2, against classical attacks. (The same rings give less against quantum
attacks: the second source allows 80 bits at degree 4096 for 128 bits of security.)

Sources: M. Albrecht et al., Homomorphic Encryption Security Standard, HomomorphicEncryption.org
(2018), table 1; J.-P. Bossuat et al., Security Guidelines for Implementing Homomorphic Encryption,
IACR Communications in Cryptology 1(4) (2024), ePrint 2024/463 (ternary, classical).
"""

from securecomp.errors import ParameterError

_STANDARD_2018 = {1024: 27, 2048: 54, 4096: 109, 8192: 218, 16384: 438, 32768: 881}
_GUIDELINES_2024 = {1024: 26, 2048: 53, 4096: 106, 8192: 214, 16384: 430, 32768: 868}
LARGEST = {n: min(bits, _GUIDELINES_2024[n]) for n, bits in _STANDARD_2018.items()}
"""Largest bit length of the modulus (with any prime that only keys use), by ring degree."""

HIDING_BITS = 40
"""Flood noise hides values up to a statistical distance of 2^-40."""


def check(degree: int, modulus: int) -> None:
    """Refuse a ring that does not reach 128-bit security.

    Raises:
        ParameterError: The modulus is too large, or the degree is not in the tables.
    """
    if degree not in LARGEST:
        raise ParameterError(f"no security estimate for ring degree {degree}")
    if modulus.bit_length() > LARGEST[degree]:
        raise ParameterError(
            f"a modulus of {modulus.bit_length()} bits is not 128-bit secure in degree {degree}; "
            f"at most {LARGEST[degree]} bits are"
        )
