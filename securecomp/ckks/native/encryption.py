"""Ring-LWE encryption of integer polynomials: keys, encryption, and decryption up to its noise.

A ciphertext of m is (c_0, c_1) with c_0 + c_1 s = m + e mod Q, for a ternary secret s and noise
|e| <= 21 of standard deviation 3.24. All polynomials are kept as values (`ring`).

- With the secret key, c_1 is uniform and c_0 = m + e - c_1 s. c_1 is expanded from a seed, which is
  sent in its place.
- With the public key (b, a) = (e - a s, a), a ciphertext is (b u + e_0 + m, a u + e_1), u ternary.
  a comes from a seed too, so that nobody who makes a key can choose it (AES as a random function).

The decrypted integers are m + e, which CKKS takes for m with an error. Published together with
their ciphertexts they give away s, so `inference_client` rounds them.

Assumption: ring-LWE with these distributions. Encryption is secure against chosen plaintexts.
Anybody who carries ciphertexts could change them, so they travel in sealed messages.

Sources: J. H. Cheon, A. Kim, M. Kim, Y. Song, Homomorphic encryption for arithmetic of approximate
numbers, ASIACRYPT 2017; noise as in Microsoft SEAL and NewHope (centred binomial).
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from securecomp.ckks.native import ring_kernels
from securecomp.ckks.native.ring import Fixed, Polynomials, Ring
from securecomp.core import buffers, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret

SEED_BYTES = prg.SEED_BYTES
_PUBLIC = "ckks public key"
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


def public_noise(degree: int) -> int:
    """Return a bound of the noise of a public-key encryption: |e u + e_1 s + e_0|."""
    return ring_kernels.NOISE_BOUND * (2 * degree + 1)


def polynomials(ring: Ring, count: int) -> Polynomials:
    """Return room for polynomials, shape (L, count, N), with arbitrary contents."""
    return buffers.residues(ring.levels * count * ring.degree).reshape(
        ring.levels, count, ring.degree
    )


class _Randomness(Secret):
    """Noise and ternary polynomials from one fresh seed. Each part of its stream is used once."""

    def __init__(self, ring: Ring, seed: bytes) -> None:
        self._ring = ring
        self._words = prg.Uniform(prg.derive(seed, "ckks noise"))
        self._index = 0
        self._one = ring.number(1)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return random words, at most a block; good until the next call."""
        self._index += 1
        return self._words.words(count, self._index - 1)

    def noise(self, count: int = 1) -> Polynomials:
        """Return noise polynomials as values, shape (L, count, N), at most `ring.step`."""
        out = polynomials(self._ring, count)
        zeros = np.zeros((count, self._ring.degree), np.int64)
        add_noise(self._ring, zeros, self.words(zeros.size), self._one, out)
        return out

    def ternary(self) -> Polynomials:
        """Return a polynomial of 0, 1 and -1 as values, shape (L, N)."""
        ring = self._ring
        signs = np.empty(ring.degree, np.uint64)
        ring_kernels.ternary(self.words(ring.degree), signs)
        out = np.stack([np.minimum(signs, signs + q) for q in ring.moduli])
        ring.to_values(out)
        return out


def add_noise(
    ring: Ring,
    messages: Integers,
    words: Words,
    lift: Fixed,
    out: Polynomials,
) -> None:
    """Write m lift + e as values, for integer polynomials of shape (count, N)."""
    for level, q in enumerate(ring.moduli):
        factor = lift.residues[level, 0], lift.quotients[level, 0]
        ring_kernels.noisy(messages, words, *factor, q, out[level])
    ring.to_values(out)


class RingSecretKey(Secret):
    """A ternary secret key. Its `repr` shows nothing of it.

    Args:
        ring: Ring of its ciphertexts.
        seed: 32 secret bytes, from which the key is expanded.
    """

    def __init__(self, ring: Ring, seed: bytes) -> None:
        self.ring = ring
        self._s = Fixed(
            ring,
            _Randomness(ring, prg.derive(seed, "ckks secret key")).ternary(),
        )

    def encrypt(
        self,
        messages: Integers,
        lift: Fixed,
        masks: Iterable[Polynomials],
        words: Words,
        out: Polynomials,
    ) -> None:
        """Write the c_0 of integer polynomials.

        Args:
            messages: Shape (count, N), each below the primes.
            lift: A factor of the messages, shape (L, 1).
            masks: Yields the c_1 modulo each prime, shape (count, N). Each array is overwritten by
                the next.
            words: A secret random word for each coefficient, used once.
            out: Shape (L, count, N).
        """
        roots, s = self.ring.roots, self._s
        for level, (q, a) in enumerate(zip(self.ring.moduli, masks, strict=True)):
            ring_kernels.encrypt(
                messages,
                words,
                lift.residues[level, 0],
                lift.quotients[level, 0],
                roots.residues[level],
                roots.quotients[level],
                a,
                s.residues[level],
                s.quotients[level],
                q,
                out[level],
            )

    def phase(self, parts: Polynomials) -> Polynomials:
        """Return c_1 s, or c_1 s + c_2 s^2, as coefficients. Added to c_0 it gives m + e.

        Args:
            parts: Shape (L, 1 or 2, N), values.
        """
        total = np.zeros((self.ring.levels, self.ring.degree), np.uint64)
        for part in range(parts.shape[1] - 1, -1, -1):
            # Horner: (c_2 s + c_1) s
            summed = parts[:, part].copy()
            for level, q in enumerate(self.ring.moduli):
                ring_kernels.add(summed[level], total[level], q)
            total = np.zeros_like(total)
            self.ring.add_product(total, summed, self._s)
        self.ring.to_coefficients(total)
        return total

    def public(self, entropy: Entropy = entropy_.system) -> "RingPublicKey":
        """Return a new public key."""
        seed = entropy(SEED_BYTES)
        b = _Randomness(self.ring, entropy(SEED_BYTES)).noise()
        a = self.ring.uniform(seed, 1, _PUBLIC)
        for level, q in enumerate(self.ring.moduli):
            s = self._s
            ring_kernels.subtract_products(
                b[level], a[level], s.residues[level], s.quotients[level], q
            )
        return RingPublicKey(self.ring, seed, b[:, 0])

    def __repr__(self) -> str:
        return f"RingSecretKey({self.ring!r})"


class RingPublicKey:
    """A public key, with which anybody can encrypt.

    Args:
        ring: Ring of its ciphertexts.
        seed: Expands to a.
        b: Values, shape (L, N).
    """

    def __init__(self, ring: Ring, seed: bytes, b: Polynomials) -> None:
        self.ring = ring
        self.seed = seed
        self._a = Fixed(ring, ring.uniform(seed, 1, _PUBLIC)[:, 0])
        self._b = Fixed(ring, b)

    @property
    def b(self) -> Polynomials:
        """Values, shape (L, N)."""
        return self._b.residues

    def encrypt(self, messages: Polynomials, seed: bytes) -> Polynomials:
        """Encrypt polynomials.

        Args:
            messages: Values, shape (L, count, N).
            seed: 32 secret random bytes, used for nothing else.

        Returns:
            (c_0, c_1) of each, shape (2, L, count, N).
        """
        randomness = _Randomness(self.ring, seed)
        out = np.empty((2, *messages.shape), np.uint64)
        for i in range(messages.shape[1]):
            u = randomness.ternary()
            # One at a time: in the largest ring a block of words holds one polynomial.
            noise = [np.ascontiguousarray(randomness.noise()[:, 0]) for _ in range(2)]
            for level, q in enumerate(self.ring.moduli):
                ring_kernels.add(noise[0][level], np.ascontiguousarray(messages[level, i]), q)
            for part, (summed, factor) in enumerate(zip(noise, (self._b, self._a), strict=True)):
                self.ring.add_product(summed, u, factor)
                out[part, :, i] = summed
        return out

    def zero(self, seed: bytes) -> Polynomials:
        """Return a fresh encryption of zero, shape (2, L, N)."""
        return self.encrypt(np.zeros((self.ring.levels, 1, self.ring.degree), np.uint64), seed)[
            :, :, 0
        ]
