"""Public keys: 64 bytes, X25519 then Ed25519, and the checks that reject invalid ones.

Points of small order are refused: with one, a shared secret is zero, or a signature that anybody
can make verifies. So is every encoding but the one that key generation gives. X25519 ignores the
top bit and reduces modulo p, so another encoding of a key would pass as another party's key.

Sources: RFC 7748, sections 5 and 6.1; RFC 8032, section 5.1 (edwards25519).
"""

from functools import lru_cache

from securecomp.errors import KeyMismatchError

BYTES = 64
POINT_BYTES = 32
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


def halves(key: bytes) -> tuple[bytes, bytes]:
    """Return the X25519 and the Ed25519 key."""
    return key[:POINT_BYTES], key[POINT_BYTES:]


def check(key: object, name: str) -> None:
    """Refuse what is no public key.

    Raises:
        KeyMismatchError: It names the party.
    """
    if not isinstance(key, bytes):
        raise KeyMismatchError(f"{name}: a public key is bytes, not {type(key).__name__}")
    if len(key) != BYTES:
        raise KeyMismatchError(f"{name}: a public key has {BYTES} bytes, not {len(key)}")
    if not _sound(key):
        raise KeyMismatchError(f"{name}: its public key is not a valid one")


def is_point(point: bytes) -> bool:
    """Return whether this can be a party's X25519 key.

    Not so: another length, an encoding that is not the canonical one, and a point of small order,
    with which every shared secret would be zero.

    Source of the points: D. J. Bernstein, Curve25519, "how do I validate public keys".
    """
    u = int.from_bytes(point, "little")
    return len(point) == POINT_BYTES and u < _P and u not in _SMALL_U


_SMALL_U = {
    0,
    1,
    _P - 1,
    int.from_bytes(
        bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"), "little"
    ),
    int.from_bytes(
        bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"), "little"
    ),
}


@lru_cache(maxsize=4096)
def _sound(key: bytes) -> bool:
    point, signing = halves(key)
    y = int.from_bytes(signing, "little") % 2**255  # the top bit is the sign of x
    return is_point(point) and y < _P and y not in _small_order()


@lru_cache(maxsize=1)
def _small_order() -> frozenset[int]:
    """Return the y coordinates of the points whose order divides 8.

    Orders 1, 2 and 4 have y = 1, -1, 0; order 8 doubles to y = 0, so that d y^4 + 2 y^2 = 1.
    """
    found = {0, 1, _P - 1}
    root = _square_root((1 + _D) % _P)
    for sign in (1, -1):
        y = _square_root((sign * (root or 0) - 1) * pow(_D, -1, _P) % _P)
        if y is not None:
            found |= {y, _P - y}
    return frozenset(found)


def _square_root(a: int) -> int | None:
    """Return a square root modulo 2^255 - 19, None for a number without one."""
    root = pow(a, (_P + 3) // 8, _P)
    for candidate in (root, root * pow(2, (_P - 1) // 4, _P) % _P):
        if candidate * candidate % _P == a:
            return candidate
    return None
