"""What all tests share: one Hypothesis profile, and randomness that can be replayed."""

import hashlib
import math
import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import settings

settings.register_profile("securecomp", derandomize=True, deadline=None, database=None)
settings.load_profile("securecomp")


class Replay:
    """An entropy source that gives the same bytes again for the same seed: AES-256-CTR."""

    def __init__(self, seed: int | str) -> None:
        key = hashlib.sha256(f"replay {seed!r}".encode()).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()  # roles may run in threads

    def __call__(self, size: int) -> bytes:
        with self._lock:
            return self._stream.update(bytes(size))


@pytest.fixture(scope="session")
def replay() -> type[Replay]:
    """`replay(seed)` is an `Entropy` that starts anew each time."""
    return Replay


@pytest.fixture(scope="session")
def random_residues() -> Callable[..., npt.NDArray[np.uint64]]:
    """`random_residues(seed, *shape)` are residues modulo 2^61-1, the same for the same seed."""

    def draw(seed: int | str, *shape: int) -> npt.NDArray[np.uint64]:
        words = np.frombuffer(Replay(seed)(8 * math.prod(shape)), "<u8")
        return (words % np.uint64((1 << 61) - 1)).reshape(shape)

    return draw
