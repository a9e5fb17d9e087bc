"""Random numbers, orders and seeds for audits, from a source of randomness or from the data.

A draw that is derived from the data cannot be repeated until it pleases: the same data give the
same draw. It is as good as a fresh one as long as SHA-256 and AES-256 look random.
"""

import hashlib
import math

import numpy as np
import numpy.typing as npt

from securecomp.core import prg
from securecomp.core.entropy import Entropy

Floats = npt.NDArray[np.float64]
Order = npt.NDArray[np.intp]


class SeededRandom:
    """Random numbers, one draw after the other, from one seed."""

    __slots__ = ("_calls", "_purpose", "_seed")

    def __init__(self, seed: bytes, purpose: str) -> None:
        self._seed, self._purpose, self._calls = seed, purpose, 0

    @classmethod
    def fresh(cls, purpose: str, entropy: Entropy) -> "SeededRandom":
        """Take the seed from a source of randomness."""
        return cls(entropy(prg.SEED_BYTES), purpose)

    @classmethod
    def of(cls, purpose: str, *arrays: npt.NDArray[np.float64]) -> "SeededRandom":
        """Derive the seed from these numbers."""
        digest = hashlib.sha256(prg.join(purpose, *(len(array) for array in arrays)))
        for array in arrays:
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return cls(digest.digest(), purpose)

    def words(self, count: int) -> prg.Words:
        """Return random words, shape (count,)."""
        self._calls += 1
        key = prg.derive(self._seed, "audit lots", self._purpose, self._calls)
        return prg.expand_words(key, count)

    def order(self, count: int) -> Order:
        """Return the numbers from 0 to count - 1 in random order."""
        return np.argsort(self.words(count), kind="stable")

    def uniforms(self, shape: tuple[int, ...]) -> Floats:
        """Return numbers from 0 to below 1, multiples of 2^-53."""
        words = self.words(math.prod(shape)) >> np.uint64(11)
        return np.asarray(words * 2.0**-53, np.float64).reshape(shape)

    def below(self, limit: int, shape: tuple[int, ...]) -> Order:
        """Return integers from 0 to below `limit`, at most 2^32: equally likely to within 2^-32."""
        words = self.words(math.prod(shape)) % np.uint64(limit)
        return words.astype(np.intp).reshape(shape)

    def seed(self) -> int:
        """Return a number below 2^32, as scikit-learn's `random_state` takes it."""
        return int(self.words(1)[0] >> np.uint64(32))

    def ranks(self, scores: npt.NDArray[np.float64]) -> Order:
        """Return each score's place from the smallest, 0; equal ones in random order."""
        places = np.empty(len(scores), np.intp)
        places[np.lexsort((self.words(len(scores)), scores))] = np.arange(len(scores))
        return places

    def __repr__(self) -> str:
        return f"SeededRandom({self._purpose!r})"
