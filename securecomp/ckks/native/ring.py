"""Polynomials modulo X^N + 1 and a product of primes, as arrays.

A polynomial is an array of shape (L, ..., N): one residue for each prime and coefficient. It is
kept as *values*: at the odd powers of a primitive 2N-th root of unity modulo each prime, in
bit-reversed order, as in SEAL. In this form products are taken place by place. `to_coefficients`
and `to_values` change the form in place.
"""

from functools import lru_cache

import gmpy2
import numpy as np
import numpy.typing as npt

from securecomp.ckks.native import ring_kernels
from securecomp.core import prg
from securecomp.core.secret import Secret
from securecomp.errors import ParameterError

Polynomials = npt.NDArray[np.uint64]


def primes(degree: int, bits: int, count: int) -> tuple[int, ...]:
    """Return the largest primes of this many bits that are 1 modulo 2N.

    Raises:
        ParameterError: There are not enough of them.
    """
    found: list[int] = []
    candidate = (1 << bits) - 2 * degree + 1
    while len(found) < count:
        if candidate < 1 << (bits - 1):
            raise ParameterError(f"there are not {count} primes of {bits} bits for degree {degree}")
        if gmpy2.is_prime(candidate):
            found.append(candidate)
        candidate -= 2 * degree
    return tuple(found)


class Fixed(Secret):
    """Residues that are used as factors often, shape (L, ..., N), with their quotients.

    They may be secret. The `repr` shows none of them.
    """

    __slots__ = ("quotients", "residues")

    def __init__(self, ring: "Ring", residues: Polynomials) -> None:
        self.residues = np.ascontiguousarray(residues)
        self.quotients = np.empty_like(self.residues)
        for level, q in enumerate(ring.moduli):
            ring_kernels.precompute(
                self.residues[level].reshape(-1), q, self.quotients[level].reshape(-1)
            )

    def __repr__(self) -> str:
        return f"Fixed(shape={self.residues.shape})"


class Ring:
    """Z[X] / (X^N + 1, q_1 ... q_L).

    Attributes:
        degree: N, a power of 2.
        primes: q_1 to q_L, each 1 modulo 2N.
        modulus: Their product.
        moduli: The primes as the kernels take them.
        roots: Powers of the roots of unity, as the transforms take them.
    """

    def __init__(self, degree: int, primes: tuple[int, ...]) -> None:
        if not 64 <= degree <= prg.BLOCK_WORDS or degree & (degree - 1):
            raise ParameterError(
                f"a ring's degree is a power of 2 from 64 to {prg.BLOCK_WORDS}, not {degree}"
            )
        for q in primes:
            if (
                q % (2 * degree) != 1
                or q.bit_length() > ring_kernels.MAX_BITS
                or not gmpy2.is_prime(q)
            ):
                raise ParameterError(f"{q} is not a prime below 2^61 that is 1 modulo {2 * degree}")
        if len(set(primes)) != len(primes) or not primes:
            raise ParameterError("a ring has at least one prime, and no prime twice")
        self.degree = degree
        self.primes = primes
        self.levels = len(primes)
        self.moduli = [np.uint64(q) for q in primes]
        self.modulus = 1
        for q in primes:
            self.modulus *= q
        roots, inverses, scales = [], [], []
        for q in primes:
            root = _smallest_root(degree, q)
            roots.append(_powers(root, degree, q))
            inverses.append(_powers(pow(root, -1, q), degree, q))
            scales.append([pow(degree, -1, q)])
        self.roots = Fixed(self, np.array(roots, np.uint64))
        self._inverses = Fixed(self, np.array(inverses, np.uint64))
        self._scale = Fixed(self, np.array(scales, np.uint64))
        # The cofactor of q_i times its inverse: the weight of a residue in the whole number.
        self._parts = [self.modulus // q * pow(self.modulus // q, -1, q) for q in primes]

    def residues(self, numbers: npt.ArrayLike) -> Polynomials:
        """Return integers of any size modulo each prime, shape (L, *shape)."""
        array = np.asarray(numbers, object)
        return np.stack([(array % q).astype(np.uint64) for q in self.primes])

    def number(self, number: int) -> Fixed:
        """Return a number as a factor, shape (L, 1)."""
        return Fixed(self, self.residues([number]))

    def signed(self, residues: Polynomials) -> npt.NDArray[np.object_]:
        """Return the integers nearest to 0 with these residues, shape (L, ...)."""
        whole = sum(r.astype(object) * part for r, part in zip(residues, self._parts, strict=True))
        whole = np.asarray(whole, object) % self.modulus
        result: npt.NDArray[np.object_] = (
            whole - (whole > self.modulus // 2).astype(object) * self.modulus
        )
        return result

    def scaled(self, residues: Polynomials, bits: int) -> npt.NDArray[np.float64]:
        """Return the integers with these residues, shape (L, ...), divided by 2^bits."""
        if self.levels == 1:
            numbers = residues[0].astype(np.int64)
            signed = numbers - np.where(numbers > self.primes[0] // 2, self.primes[0], 0)
        else:
            signed = self.signed(residues)
        scaled: npt.NDArray[np.float64] = np.ldexp(signed.astype(np.float64), -bits)
        return scaled

    def to_values(self, polynomials: Polynomials) -> None:
        """Transform coefficients, shape (L, ..., N), in place."""
        for level, q in enumerate(self.moduli):
            ring_kernels.forward(
                polynomials[level].reshape(-1, self.degree),
                self.roots.residues[level],
                self.roots.quotients[level],
                q,
            )

    def to_coefficients(self, polynomials: Polynomials) -> None:
        """Transform values, shape (L, ..., N), in place."""
        for level, q in enumerate(self.moduli):
            ring_kernels.inverse(
                polynomials[level].reshape(-1, self.degree),
                self._inverses.residues[level],
                self._inverses.quotients[level],
                self._scale.residues[level, 0],
                self._scale.quotients[level, 0],
                q,
            )

    def add_product(self, acc: Polynomials, values: Polynomials, factor: Fixed) -> None:
        """Add the product of one polynomial, shape (L, N), and a fixed one to `acc`, in place."""
        for level, q in enumerate(self.moduli):
            ring_kernels.add_product(
                acc[level], values[level], factor.residues[level], factor.quotients[level], q
            )

    @property
    def bits(self) -> int:
        """Bits that hold every residue."""
        return max(q.bit_length() for q in self.primes)

    @property
    def step(self) -> int:
        """Number of polynomials that are worked on at a time, so that they stay in cache."""
        return prg.BLOCK_WORDS // self.degree

    def stream(self, key: bytes, level: int, purpose: str = "ckks masks") -> prg.Uniform:
        """Return the stream of uniform polynomials modulo one prime that a key expands to.

        A block of it has at most `step` polynomials.
        """
        return prg.Uniform(prg.derive(key, purpose, self.degree, self.primes[level]))

    def fill(
        self, stream: prg.Uniform, level: int, index: int, out: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint64]:
        """Write a block of a stream's polynomials, shape (count, N), and return it."""
        stream.fill(out.reshape(-1), index, self.primes[level])
        return out

    def uniform(self, key: bytes, polynomials: int, purpose: str = "ckks masks") -> Polynomials:
        """Return the first uniform polynomials that a key expands to, shape (L, polynomials, N)."""
        out = np.empty((self.levels, polynomials, self.degree), np.uint64)
        for level in range(self.levels):
            stream = self.stream(key, level, purpose)
            for index, start in enumerate(range(0, polynomials, self.step)):
                self.fill(stream, level, index, out[level, start : start + self.step])
        return out

    def __repr__(self) -> str:
        bits = self.modulus.bit_length()
        return f"Ring(degree {self.degree}, {self.levels} primes, {bits} bits)"


@lru_cache(maxsize=16)
def ring(degree: int, primes: tuple[int, ...]) -> Ring:
    """Return a ring from a cache, since its tables are costly."""
    return Ring(degree, primes)


def _smallest_root(degree: int, q: int) -> int:
    """Return the smallest primitive 2N-th root of unity, as SEAL does."""
    base = 2
    while True:
        root = pow(base, (q - 1) // (2 * degree), q)
        if pow(root, degree, q) == q - 1:
            break
        base += 1
    square = root * root % q
    smallest = current = root
    for _ in range(degree - 1):
        current = current * square % q
        smallest = min(smallest, current)
    return smallest


def _powers(root: int, degree: int, q: int) -> list[int]:
    """Return the powers of a root, with exponents in bit-reversed order."""
    bits = degree.bit_length() - 1
    powers = [1] * degree
    current = 1
    for i in range(degree):
        powers[int(f"{i:0{bits}b}"[::-1], 2)] = current
        current = current * root % q
    return powers
