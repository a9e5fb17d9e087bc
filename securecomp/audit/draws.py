"""Random numbers that attacks begin with, replayable: AES keystreams under a key that is drawn."""

import numpy as np
import numpy.typing as npt

from securecomp.core import prg
from securecomp.core.entropy import Entropy

Floats = npt.NDArray[np.float64]


def uniforms(shape: tuple[int, ...], entropy: Entropy) -> Floats:
    """Return numbers from 0 to below 1, multiples of 2^-53."""
    words = prg.expand_words(entropy(prg.SEED_BYTES), int(np.prod(shape)))
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, np.float64).reshape(shape)


def below(limit: int, shape: tuple[int, ...], entropy: Entropy) -> npt.NDArray[np.int64]:
    """Return integers from 0 to below `limit`, at most 2^32, all equally likely to within 2^-32."""
    words = prg.expand_words(entropy(prg.SEED_BYTES), int(np.prod(shape)))
    return (words % np.uint64(limit)).astype(np.int64).reshape(shape)
