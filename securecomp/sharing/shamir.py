"""Shamir sharing: a secret as the value at zero of a random polynomial.

Vectorised over secrets. Byte strings (seeds, keys) travel as residues of 7 bytes each.

Source: Shamir, How to share a secret, CACM 22 (1979).
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from securecomp.core import checks, field, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.errors import ParameterError

LIMB_BYTES = 7
MAX_POINT = 1 << 32


def limbs(size: int) -> int:
    """Return the residues that a string of `size` bytes takes."""
    return -(-size // LIMB_BYTES)


def from_bytes(secret: bytes) -> Residues:
    """Write a byte string as residues, 7 bytes each, little-endian; shape (limbs(size),)."""
    padded = secret.ljust(limbs(len(secret)) * LIMB_BYTES, b"\0")
    wide = np.zeros((limbs(len(secret)), 8), np.uint8)
    wide[:, :LIMB_BYTES] = np.frombuffer(padded, np.uint8).reshape(-1, LIMB_BYTES)
    return wide.view("<u8").reshape(-1)


def to_bytes(residues: Residues, size: int) -> bytes:
    """Read a byte string back.

    Raises:
        ParameterError: The residues are not those of a string of this size.
    """
    wide = np.ascontiguousarray(residues, "<u8").view(np.uint8).reshape(-1, 8)
    flat = wide[:, :LIMB_BYTES].tobytes()
    if wide[:, LIMB_BYTES:].any() or any(flat[size:]) or residues.size != limbs(size):
        raise ParameterError(f"the shares do not give a string of {size} bytes")
    return flat[:size]


def split(
    secrets: Residues,
    threshold: int,
    points: Sequence[int],
    *,
    entropy: Entropy = entropy_.system,
) -> Residues:
    """Share residues among parties.

    Args:
        secrets: Shape (m,).
        threshold: How many shares give the secrets back, from 1 to the number of points.
        points: One public number a party, distinct, from 1.
        entropy: Source of the coefficients.

    Returns:
        Shape (len(points), m): one row a party.

    Raises:
        ParameterError: The threshold or the points are impossible.

    Security: any threshold-1 shares are independent of the secrets (up to the generator that
    expands the coefficients). No integrity.
    """
    points = _check_points(points)
    checks.integer(threshold, "the threshold", 1, len(points))
    coefficients = np.empty((threshold, secrets.size), np.uint64)
    coefficients[0] = secrets
    key = prg.derive(entropy(prg.SEED_BYTES), "shamir coefficients")
    coefficients[1:] = prg.expand(key, (threshold - 1) * secrets.size).reshape(
        threshold - 1, secrets.size
    )
    return field.matmul(_powers(points, threshold), coefficients)


def reconstruct(points: Sequence[int], shares: Residues) -> Residues:
    """Return the secrets.

    Args:
        points: The parties' numbers, as many as the threshold.
        shares: Shape (len(points), m): their shares in the same order.

    Raises:
        ParameterError: Impossible points, or another number of shares.

    Fewer shares than the threshold, or wrong ones, give a wrong result without a sign of it.
    """
    points = _check_points(points)
    if shares.ndim != 2 or shares.shape[0] != len(points):
        raise ParameterError(f"{len(points)} points do not go with shares of {shares.shape}")
    secrets: Residues = field.matmul(_at_zero(points), shares)[0]
    return secrets


def _check_points(points: Sequence[int]) -> tuple[int, ...]:
    if not all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in points):
        raise ParameterError("points must be integers")
    numbers = tuple(map(int, points))
    if not numbers or len(set(numbers)) != len(numbers):
        raise ParameterError("points must be distinct, and at least one")
    wrong = next((x for x in numbers if not 1 <= x < MAX_POINT), None)
    if wrong is not None:
        raise ParameterError(f"points must be from 1 to 2^32 - 1, not {wrong}")
    return numbers


@lru_cache(maxsize=64)
def _powers(points: tuple[int, ...], count: int) -> Residues:
    """Return x^j, shape (len(points), count)."""
    x = np.array(points, np.uint64)
    powers = np.empty((count, len(points)), np.uint64)
    powers[0] = 1
    for j in range(1, count):
        field.multiply(powers[j - 1], x, out=powers[j])
    return np.ascontiguousarray(powers.T)


@lru_cache(maxsize=256)
def _at_zero(points: tuple[int, ...]) -> Residues:
    """Return Lagrange's coefficients for the value at zero, shape (1, len(points))."""
    x = np.array(points, np.uint64)
    differences = field.subtract(x[np.newaxis, :], x[:, np.newaxis])
    np.fill_diagonal(differences, 1)
    numerators = np.broadcast_to(x, differences.shape).copy()
    np.fill_diagonal(numerators, 1)
    below = field.product(differences, axis=1)
    return field.multiply(field.product(numerators, axis=1), field.inverse(below))[np.newaxis]
