"""Randomness that can be replayed."""

import hashlib
import threading

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


class Replay:
    """An entropy source that gives the same bytes again for the same seed: AES-256-CTR."""

    def __init__(self, seed: int | str) -> None:
        key = hashlib.sha256(f"replay {seed!r}".encode()).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()  # roles may run in threads

    def __call__(self, size: int) -> bytes:
        with self._lock:
            return self._stream.update(bytes(size))
