"""Random encryptions of zero: the part of an encryption that does not depend on the value.

Source: Damgård, Jurik, Nielsen, Int. J. Inf. Secur. 9 (2010), section 4.2 (short exponents).
"""

from collections.abc import Iterator
from typing import Any, Literal

from gmpy2 import powmod

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.paillier import fixed_base
from securecomp.paillier.keys import PrivateKey, PublicKey, random_below

Exponent = Literal["half", "full"]


def randomisers(
    key: PublicKey,
    count: int,
    *,
    exponent: Exponent = "half",
    owner: PrivateKey | None = None,
    memory: int = fixed_base.DEFAULT_MEMORY,
    expected: int = 0,
    entropy: Entropy = entropy_.system,
) -> Iterator[Any]:
    """Yield random encryptions of zero.

    Args:
        key: The public key.
        count: How many.
        exponent: "half": h_s^r with r of half the modulus's length, from a table. "full": r^n.
        owner: The private key, if this is the key holder: several times faster.
        memory: Bytes of the tables.
        expected: How many there will be in all, if more than `count`: worth a larger table.
        entropy: Source of r.

    Raises:
        ParameterError: "half" with a key that has no h_s.
    """
    if exponent not in ("half", "full"):
        raise ParameterError(f'exponent is "half" or "full", not {exponent!r}')
    if exponent == "full":
        for _ in range(count):
            r = random_below(key.n - 1, entropy) + 1
            yield owner.power_n(r) if owner else powmod(r, key.n, key.n2)
        return
    if key.h_s is None:
        raise ParameterError(
            "this key has no h_s; ask the key holder for one, or take the full exponent "
            '(exponent="full", --exponent full)'
        )
    bits = key.bits // 2
    size = -(-bits // 8)
    wanted = max(count, expected)

    def draw() -> int:
        return int.from_bytes(entropy(size), "big") & ((1 << bits) - 1)

    if owner is None:
        table = fixed_base.public_tables.get(int(key.h_s), int(key.n2), bits, wanted, memory)
        for _ in range(count):
            yield table.power(draw())
        return
    p2, q2, inverse = owner.squares()
    base = int(key.h_s)
    at_p = owner.tables.get(base % int(p2), int(p2), bits, wanted, memory // 2)
    at_q = owner.tables.get(base % int(q2), int(q2), bits, wanted, memory // 2)
    for _ in range(count):
        r = draw()
        a, b = at_p.power(r), at_q.power(r)
        yield b + q2 * ((a - b) * inverse % p2)
