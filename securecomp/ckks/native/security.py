"""How large a modulus may be for 128-bit security.

The stricter of two published tables, for a ternary secret and errors of standard deviation 3.2,
against classical attacks. (Against quantum ones the same rings give less: the second source
allows 80 bits at degree 4096 for 128 bits of security.)

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
"""What is flooded with noise is within 2^-40 (statistical distance) of something simulated."""


def check(degree: int, modulus: int) -> None:
    """Refuse a ring that does not reach 128-bit security.

    Raises:
        ParameterError: It does not, or its degree is in no table.
    """
    if degree not in LARGEST:
        raise ParameterError(f"no security estimate for ring degree {degree}")
    if modulus.bit_length() > LARGEST[degree]:
        raise ParameterError(
            f"a modulus of {modulus.bit_length()} bits is not 128-bit secure in degree {degree}; "
            f"at most {LARGEST[degree]} bits are"
        )
