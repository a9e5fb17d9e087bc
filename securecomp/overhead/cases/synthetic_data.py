"""Numbers to compute on: the same on every machine and in every run. Never use them as secrets."""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from securecomp.audit.seeded_random import SeededRandom
from securecomp.core import prg


def integers(shape: tuple[int, ...], bound: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Return integers from -bound to bound, near enough to uniform for a measurement."""
    words = prg.expand_words(seed.to_bytes(prg.SEED_BYTES, "big"), int(np.prod(shape)))
    drawn = (words % np.uint64(2 * bound + 1)).astype(np.int64) - bound
    return drawn.reshape(shape)


def reals(shape: tuple[int, ...], bound: float, seed: int = 0) -> npt.NDArray[np.float64]:
    """Return reals from -bound to bound."""
    return np.multiply(integers(shape, 1 << 52, seed), bound / (1 << 52), dtype=np.float64)


class Synthetic:
    """Draws one after the other from a seed, in numpy's manner."""

    def __init__(self, seed: int) -> None:
        self._draws = SeededRandom(seed.to_bytes(prg.SEED_BYTES, "big"), "synthetic data")

    def random(self, shape: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return numbers from 0 to below 1."""
        return self._draws.uniforms((shape,) if isinstance(shape, int) else shape)

    def normal(
        self, middle: float = 0, deviation: float = 1, size: int | tuple[int, ...] = 1
    ) -> npt.NDArray[np.float64]:
        """Return normal numbers, by the inverse of their distribution."""
        uniform = np.maximum(self.random(size), 2.0**-54)
        return np.asarray(middle + deviation * ndtri(uniform), np.float64)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Return integers from `low` to below `high`."""
        shape = (size,) if isinstance(size, int) else size
        words = self._draws.words(math.prod(shape)) % np.uint64(high - low)
        return words.astype(np.int64).reshape(shape) + low

    def bytes(self, size: int) -> bytes:
        """Return bytes."""
        return self._draws.words(-(-size // 8)).tobytes()[:size]

    def zipf(self, exponent: float, size: int) -> npt.NDArray[np.int64]:
        """Return integers from 1 whose tail falls as Zipf's law does."""
        uniform = np.maximum(self.random(size), 2.0**-40)
        return np.minimum(uniform ** (-1 / (exponent - 1)), 2.0**62).astype(np.int64)
