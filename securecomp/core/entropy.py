"""The only place that asks the operating system for randomness.

Below the top level randomness is a parameter of type `Entropy`, so that a test can replay a
whole protocol; everything that users call defaults to `system`.
"""

import secrets
from collections.abc import Callable

Entropy = Callable[[int], bytes]
"""A source of `size` unpredictable bytes."""


def system(size: int) -> bytes:
    """Return `size` bytes from the operating system's generator."""
    return secrets.token_bytes(size)
