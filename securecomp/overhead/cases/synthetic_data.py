"""Numbers to compute on: the same on every machine and in every run. Never use them as secrets."""

import numpy as np
import numpy.typing as npt

from securecomp.core import prg


def integers(shape: tuple[int, ...], bound: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Return integers from -bound to bound, near enough to uniform for a measurement."""
    words = prg.expand_words(seed.to_bytes(prg.SEED_BYTES, "big"), int(np.prod(shape)))
    drawn = (words % np.uint64(2 * bound + 1)).astype(np.int64) - bound
    return drawn.reshape(shape)


def reals(shape: tuple[int, ...], bound: float, seed: int = 0) -> npt.NDArray[np.float64]:
    """Return reals from -bound to bound."""
    return np.multiply(integers(shape, 1 << 52, seed), bound / (1 << 52), dtype=np.float64)
