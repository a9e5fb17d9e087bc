"""The AES floor: the time to write a keystream to memory, and nothing else.

CTR is the yardstick. The library uses the keystream of GCM, which is the faster code in OpenSSL.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from securecomp.core import entropy

CTR = "AES-256-CTR"
GCM = "AES-256-GCM"
_PIECE = 1 << 18
"""Bytes at once, faster than one long pass."""
_TAG = 16


def floors(vectors: int, size: int, threads: int = 1) -> dict[str, Callable[[], None]]:
    """Return functions that write the keystream of some vectors.

    Args:
        vectors: The number of vectors, each under its own key.
        size: Bytes of each.
        threads: Threads that share the vectors; `cryptography` releases the GIL.
    """
    return {
        CTR: _divided(_ctr, vectors, size, threads),
        GCM: _divided(_gcm, vectors, size, threads),
    }


def _divided(
    stream: Callable[[int, int], Callable[[], None]], vectors: int, size: int, threads: int
) -> Callable[[], None]:
    shares = [vectors // threads + (i < vectors % threads) for i in range(threads)]
    work = [stream(share, size) for share in shares if share]
    if len(work) == 1:
        return work[0]

    def run() -> None:
        # Fresh threads, as the library starts them. The system spreads new threads over the cores,
        # but may leave old threads that slept together on one core.
        with ThreadPoolExecutor(len(work)) as pool:
            for future in [pool.submit(function) for function in work]:
                future.result()

    return run


def _pieces(size: int) -> list[tuple[int, int]]:
    return [(start, min(start + _PIECE, size)) for start in range(0, size, _PIECE)]


def _memory(size: int) -> tuple[Any, Any]:
    """Return a piece of zeros, and room for a keystream and a tag."""
    return np.zeros(_PIECE, np.uint8), np.empty(size + _TAG, np.uint8)


def _ctr(vectors: int, size: int) -> Callable[[], None]:
    zeros, out = _memory(size)
    keys, pieces = [entropy.system(32) for _ in range(vectors)], _pieces(size)

    def run() -> None:
        for key in keys:
            encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
            for start, stop in pieces:
                encryptor.update_into(zeros[: stop - start], out[start : stop + _TAG])

    return run


def _gcm(vectors: int, size: int) -> Callable[[], None]:
    zeros, out = _memory(size)
    keys, pieces = [entropy.system(32) for _ in range(vectors)], _pieces(size)

    def run() -> None:
        for key in keys:
            cipher = AESGCM(key)
            for index, (start, stop) in enumerate(pieces):
                nonce = index.to_bytes(12, "big")
                cipher.encrypt_into(nonce, zeros[: stop - start], None, out[start : stop + _TAG])

    return run
