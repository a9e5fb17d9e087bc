"""A ring and its chain of prime moduli, checked for security before anything uses it.

A ciphertext modulo q_0 ... q_{k-1} is at level k. Each rescaling divides by the last prime that is
left, and goes down one level. The result is at level 1. The special prime belongs to the
relinearisation keys only, but an attacker sees those as well, so it counts for security. SEAL wants
one wherever there are several moduli, with such keys or without.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import gmpy2
import numpy as np
import pyarrow as pa

from securecomp.ckks.native import security
from securecomp.core import prg
from securecomp.errors import ParameterError

LEAST_PRIME_BITS = 18
MOST_PRIME_BITS = 60
_SAMPLE = 4096  # words
_LEVEL = 3  # of zstd, in SEAL
HEADROOM_BITS = 3
"""Bits of the first prime above the scale. A result is little more than 1; +-4 fit."""


@dataclass(frozen=True)
class Chain:
    """A ring Z[X] / (X^N + 1) and its moduli. Public.

    Attributes:
        ring: N, a power of two.
        moduli: q_0 ... q_{k-1} of the ciphertexts; the last one is dropped first.
        special: The prime of the relinearisation keys alone; 0 for none, beside one modulus.
    """

    ring: int
    moduli: tuple[int, ...]
    special: int

    def __post_init__(self) -> None:
        """Refuse insecure moduli, and moduli that the ring cannot use.

        Raises:
            ParameterError: An unknown ring size, a modulus that is not a usable prime or occurs
                twice, or more bits than 128-bit security allows.
        """
        if self.ring not in security.LARGEST:
            raise ParameterError(f"a ring of size {self.ring}; known are {list(security.LARGEST)}")
        primes = self.primes
        if not self.moduli or len(set(primes)) != len(primes):
            raise ParameterError("a chain has at least one modulus, and no modulus twice")
        if len(self.moduli) > 1 and not self.special:
            raise ParameterError("a chain of several moduli has a special prime")
        # Checked first: it bounds the work that follows.
        if not all(LEAST_PRIME_BITS <= q.bit_length() <= MOST_PRIME_BITS for q in primes):
            raise ParameterError(
                f"each modulus must have {LEAST_PRIME_BITS} to {MOST_PRIME_BITS} bits"
            )
        if self.bits > security.LARGEST[self.ring]:
            raise ParameterError(
                f"{self.bits:.1f} bits of moduli are insecure in a ring of size {self.ring}; "
                f"at most {security.LARGEST[self.ring]} give 128-bit security"
            )
        for q in primes:
            if q % (2 * self.ring) != 1 or not gmpy2.is_prime(q, 40):
                raise ParameterError(f"{q} is not a prime that is 1 modulo {2 * self.ring}")

    @property
    def primes(self) -> tuple[int, ...]:
        """All primes as SEAL takes them: the moduli, and the special one if there is one."""
        return (*self.moduli, self.special) if self.special else self.moduli

    @cached_property
    def bits(self) -> float:
        """log2 of the product of all primes, on which security depends."""
        return math.log2(math.prod(self.primes))

    @property
    def levels(self) -> int:
        """The level of a fresh ciphertext."""
        return len(self.moduli)

    @property
    def slots(self) -> int:
        """Numbers in one ciphertext."""
        return self.ring // 2


def choose(ring: int, scale_bits: int, rescalings: int) -> Chain | None:
    """Choose the chain for a scale of 2^scale_bits and a number of rescalings.

    The first prime has `HEADROOM_BITS` more. The special prime is no longer than the scale: its
    noise enters at the square of the scale, so more bits would gain nothing.

    Returns:
        The chain. None if it is not 128-bit secure in this ring, or there are too few primes.
    """
    # Primes that stay longest are nearest to the power of two; the special prime is the largest.
    scale = _primes(ring, scale_bits, rescalings + 1)
    first = _primes(ring, scale_bits + HEADROOM_BITS, 1)
    if len(scale) <= rescalings or not first or scale_bits + HEADROOM_BITS > MOST_PRIME_BITS:
        return None
    if math.log2(math.prod((*first, *scale))) > security.LARGEST[ring]:
        return None
    return Chain(ring, (*first, *scale[1:]), scale[0])


def shallow(ring: int, bits: int, count: int) -> Chain | None:
    """Choose the chain of a circuit without rescalings, products or keys for them.

    Args:
        ring: N.
        bits: Length of each modulus.
        count: Number of moduli.

    Returns:
        The chain. None if it is not 128-bit secure in this ring, or there are too few primes.
    """
    if not LEAST_PRIME_BITS <= bits <= MOST_PRIME_BITS:
        return None
    found = _primes(ring, bits, count)
    special: tuple[int, ...] = ()
    if count > 1:
        # It encrypts nothing, so the shortest will do.
        lengths = (n for n in range(LEAST_PRIME_BITS, MOST_PRIME_BITS) if n != bits)
        special = next(filter(None, (_primes(ring, n, 1) for n in lengths)))
    product = math.prod((*found, *special))
    if len(found) < count or product.bit_length() > security.LARGEST[ring]:
        return None
    return Chain(ring, found, *special) if special else Chain(ring, found, 0)


def stored_bytes(ring: int, moduli: Sequence[int]) -> int:
    """Return the approximate bytes of one polynomial as SEAL stores it.

    SEAL writes words of 64 bits and compresses them with zstd, which takes out some of the zeros.
    """
    return round(sum(ring * _bytes_per_word(q.bit_length()) for q in moduli))


@cache
def _bytes_per_word(bits: int) -> float:
    """Return the compressed bytes of a random word of so many bits, as a sample has it."""
    sample = prg.expand_words(bytes(prg.SEED_BYTES), _SAMPLE) >> np.uint64(64 - bits)
    compressed = pa.Codec("zstd", compression_level=_LEVEL).compress(sample.tobytes(), asbytes=True)
    return len(compressed) / _SAMPLE


@cache
def _primes(ring: int, bits: int, count: int) -> tuple[int, ...]:
    """Return the largest primes of exactly this many bits that are 1 modulo 2N, largest first."""
    step = 2 * ring
    found: list[int] = []
    candidate = (((1 << bits) - 2) // step) * step + 1
    while len(found) < count and candidate.bit_length() == bits:
        if gmpy2.is_prime(candidate, 40):
            found.append(candidate)
        candidate -= step
    return tuple(found)
