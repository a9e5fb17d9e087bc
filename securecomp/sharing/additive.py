"""Additive sharing: a vector as a sum of random-looking ones.

All shares but the last are 32-byte seeds; the last is the vector minus what the seeds expand to.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from securecomp.core import checks, field, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.core.secret import Secret
from securecomp.errors import ParameterError

MAX_PARTIES = 1 << 16


def seed_key(seed: bytes, *context: bytes | str | int) -> bytes:
    """Return the key that a share's seed expands under."""
    return prg.derive(seed, "additive share", *context)


class Share(Secret):
    """One party's share of an array: the linear algebra that needs no messages.

    Shares of the same party add and subtract, and any share can be multiplied by public integers.
    Adding a public constant changes one share only, the first party's. Operands broadcast as in
    numpy. A share alone says nothing about the array but its shape.

    Attributes:
        party: Whose share, from 0.
        parties: How many there are.
        shape: The array's shape.
    """

    __slots__ = ("_key", "_residues", "parties", "party", "shape")
    __array_ufunc__ = None  # numpy arrays leave arithmetic with a share to the share

    def __init__(
        self,
        party: int,
        parties: int,
        shape: tuple[int, ...],
        *,
        residues: Residues | None = None,
        key: bytes | None = None,
    ) -> None:
        if (residues is None) == (key is None):
            raise ParameterError("a share has either residues or a key")
        self.party = party
        self.parties = parties
        self.shape = shape
        self._residues = residues
        self._key = key

    @property
    def residues(self) -> Residues:
        """The share as residues of the array's shape; a seed is expanded at the first use."""
        if self._residues is None:
            flat = prg.expand(self._key or b"", math.prod(self.shape))
            self._residues = flat.reshape(self.shape)
        return self._residues

    def __add__(self, other: "Share | npt.ArrayLike") -> "Share":
        if isinstance(other, Share):
            return self._with(field.add(self.residues, self._same(other).residues))
        return self._shift(other, field.add)

    __radd__ = __add__

    def __sub__(self, other: "Share | npt.ArrayLike") -> "Share":
        if isinstance(other, Share):
            return self._with(field.subtract(self.residues, self._same(other).residues))
        return self._shift(other, field.subtract)

    def __rsub__(self, other: npt.ArrayLike) -> "Share":
        return -self + other

    def __neg__(self) -> "Share":
        return self._with(field.negative(self.residues))

    def __mul__(self, constant: npt.ArrayLike) -> "Share":
        if isinstance(constant, Share):
            raise ParameterError("a product of two shares needs messages; see SharedArray")
        return self._with(field.multiply(self.residues, field.public(constant)))

    __rmul__ = __mul__

    def _shift(
        self, constant: npt.ArrayLike, operation: Callable[[Residues, Residues], Residues]
    ) -> "Share":
        shift = field.public(constant)
        if self.party == 0:
            return self._with(operation(self.residues, shift))
        return self._with(operation(self.residues, np.zeros(shift.shape, np.uint64)))

    def _same(self, other: "Share") -> "Share":
        if (self.party, self.parties) != (other.party, other.parties):
            raise ParameterError(
                f"share {self.party} of {self.parties} and share {other.party} of "
                f"{other.parties} do not combine; each party works on its own shares"
            )
        return other

    def _with(self, residues: Residues) -> "Share":
        return Share(self.party, self.parties, residues.shape, residues=residues)

    def __repr__(self) -> str:
        return f"Share({self.party} of {self.parties}, shape={self.shape})"


def split(
    values: npt.ArrayLike, parties: int, *, entropy: Entropy = entropy_.system
) -> list[Share]:
    """Split an array into additive shares.

    Args:
        values: Residues of any integer type and shape, each below the modulus; `field.encode`
            makes them of signed integers, `core.fixedpoint` of reals.
        parties: Number of shares, at least 2.
        entropy: Source of the seeds.

    Returns:
        One share a party; they add up to `values` modulo p. All but the last are 32-byte seeds.

    Raises:
        ParameterError: Fewer than 2 parties, or not integers.
        RangeError: A value is not a canonical residue.

    Security: any parties-1 shares are independent of `values`, as far as AES-256 in counter mode
    is a pseudo-random generator. No integrity: a changed share changes the result unseen.

    Source: Ito, Saito, Nishizeki 1987 (the sum sharing); Bonawitz et al. 2017, 3 (seeds).
    """
    if isinstance(parties, np.integer):
        parties = int(parties)
    checks.integer(parties, "parties", 2, MAX_PARTIES)
    residues = field.check(values)
    last = np.array(residues, order="C")
    keys = [seed_key(entropy(prg.SEED_BYTES)) for _ in range(parties - 1)]
    prg.accumulate(last.reshape(-1), keys, -1)
    shares = [Share(i, parties, residues.shape, key=key) for i, key in enumerate(keys)]
    return [*shares, Share(parties - 1, parties, residues.shape, residues=last)]


def reconstruct(shares: Sequence[Share]) -> Residues:
    """Add up all shares of an array.

    Args:
        shares: One of each party, in any order.

    Returns:
        The residues; `field.decode` makes signed integers of them.

    Raises:
        ParameterError: A share is missing, there twice, or of another shape or number of parties.
            Shares of two sharings of one shape give a random result without a sign of it.
    """
    if not shares:
        raise ParameterError("reconstruct: no shares")
    first = shares[0]
    for share in shares:
        if share.parties != first.parties or share.shape != first.shape:
            raise ParameterError(f"reconstruct: {share!r} and {first!r} are not of one sharing")
    missing = set(range(first.parties)) - {share.party for share in shares}
    if missing:
        raise ParameterError(
            f"reconstruct: no share of party {', '.join(map(str, sorted(missing)))}; all are needed"
        )
    if len(shares) > first.parties:
        raise ParameterError("reconstruct: a party's share is there twice")
    total = np.array(first.residues, order="C")
    for share in shares[1:]:
        field.add(total, share.residues, out=total)
    return total
