"""Wide integers in narrow sums.

`Limbs` proves, before anything is sent, that so many terms of such a size add up without wrapping,
and cuts wider integers into limbs that are summed apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from securecomp.core import checks
from securecomp.core.entropy import Entropy
from securecomp.core.fixedpoint import Integers
from securecomp.errors import ParameterError, RangeError

HIDING_BITS = 40
"""Each limb's carry is hidden under a uniform number of this many bits."""
_MIN_WIDTH = 4
_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Limbs:
    """Layout of integers of one size in a sum whose totals have a limit.

    The proof of headroom: terms x (largest limb) <= limit, whatever the inputs.

    A total that fits is one limb. A wider one is cut in base 2^width, low limb first, and every
    party adds r 2^width to a limb and takes r from the next, r uniform with HIDING_BITS bits, so
    that the sums of the limbs show the total and hide how it was carried: the view of the sums is
    within terms x count x 2^-40 of one that depends on the total alone.

    Attributes:
        bound: Largest absolute integer of one party.
        terms: How many parties add.
        limit: Largest absolute total that the protocol returns exactly.
        count: Limbs per integer.
        width: Bits per limb, 0 if there is one.
    """

    bound: int
    terms: int
    limit: int
    count: int
    width: int

    @classmethod
    def plan(cls, bound: int, terms: int, limit: int) -> "Limbs":
        """Choose the limbs.

        Raises:
            RangeError: The protocol's limit leaves no room for this many terms.
        """
        checks.integer(bound, "bound", 0)
        checks.integer(terms, "terms", 1)
        checks.integer(limit, "limit", 0)
        if bound * terms <= limit:
            return cls(bound, terms, limit, 1, 0)
        # Largest limb: 2^(width + hiding) + 2^hiding + 2^width <= 2^(width + hiding + 1).
        width = (limit // terms).bit_length() - 2 - HIDING_BITS
        if width < _MIN_WIDTH:
            raise RangeError(
                f"{terms} parties with values up to {bound} do not fit a total of {limit}, not "
                "even in limbs; use a smaller bound or fewer parties"
            )
        return cls(bound, terms, limit, -(-(bound.bit_length() + 1) // width), width)

    @property
    def largest(self) -> int:
        """The largest absolute limb."""
        return self.bound if self.count == 1 else 1 << (self.width + HIDING_BITS + 1)

    def split(self, values: Iterable[int], entropy: Entropy) -> list[int]:
        """Cut integers into limbs, `count` of each, low limb first.

        Raises:
            RangeError: A value is beyond `bound`.
        """
        limbs: list[int] = []
        for value in map(int, values):
            if abs(value) > self.bound:
                raise RangeError(f"a value is beyond the bound {self.bound} that was agreed")
            carry = 0
            for _ in range(self.count - 1):
                random = int.from_bytes(entropy(HIDING_BITS // 8), "little")
                limbs.append(value % (1 << self.width) + (random << self.width) - carry)
                value >>= self.width
                carry = random
            limbs.append(value - carry)
        return limbs

    def cut(self, values: Integers, entropy: Entropy) -> npt.NDArray[np.int64]:
        """Do what `split` does for many integers at once; the draws are one.

        Args:
            values: int64, or objects that are Python ints, shape (d,).
            entropy: Source of the carries.

        Returns:
            The limbs that `split` gives where the entropy is one stream, shape (d count,).

        Raises:
            RangeError: A value is beyond `bound`, or a limb beyond int64.
        """
        if self.largest > _INT64:
            raise RangeError(f"limbs of up to {self.largest} do not fit 64 bits")
        if values.dtype == object or self.bound <= _INT64:
            beyond = values.size and max(int(values.max()), -int(values.min())) > self.bound
            if beyond:
                raise RangeError(f"a value is beyond the bound {self.bound} that was agreed")
        if self.count == 1:
            return values.astype(np.int64)
        limbs = self._digits(values)
        size = HIDING_BITS // 8
        drawn = np.zeros((len(values), self.count - 1, 8), np.uint8)
        random = entropy(size * drawn.shape[0] * drawn.shape[1])
        drawn[:, :, :size] = np.frombuffer(random, np.uint8).reshape(*drawn.shape[:2], size)
        carries = drawn.view("<i8")[:, :, 0]
        limbs[:, :-1] += carries << self.width
        limbs[:, 1:] -= carries
        return limbs.reshape(-1)

    def _digits(self, values: Integers) -> npt.NDArray[np.int64]:
        """Cut integers in base 2^width, the last digit signed, shape (d, count)."""
        places = [(i * self.width) for i in range(self.count)]
        mask = (1 << self.width) - 1
        digits = np.empty((len(values), self.count), np.int64)
        if values.dtype != object:
            for i, place in enumerate(places):
                digits[:, i] = values >> min(place, 63)
        else:
            # The integers' own bytes: each digit lies within a window of eight of them.
            size = places[-1] // 8 + 8
            raw = b"".join(value.to_bytes(size, "little", signed=True) for value in values.tolist())
            table = np.frombuffer(raw, np.uint8).reshape(len(values), size)
            for i, place in enumerate(places):
                window = np.ascontiguousarray(table[:, place // 8 : place // 8 + 8])
                digits[:, i] = window.view("<i8")[:, 0] >> (place % 8)
        digits[:, :-1] &= mask
        return digits

    def put_together(self, totals: npt.NDArray[np.int64]) -> Integers:
        """Do what `join` does for many integers at once: int64 where all fit, else Python ints.

        Raises:
            ParameterError: Not whole integers' limbs.
        """
        if len(totals) % self.count:
            raise ParameterError(f"{len(totals)} limbs, where {self.count} make an integer")
        limbs = totals.reshape(-1, self.count)
        if self.count == 1:
            return limbs[:, 0]
        fits = self.bound * self.terms <= _INT64
        joined = np.zeros(len(limbs), np.int64 if fits else object)
        for limb in limbs.T[::-1]:
            # Where the total fits int64 it is right modulo 2^64, whatever wraps on the way.
            joined = (joined << self.width) + (limb if fits else limb.astype(object))
        return joined

    def join(self, totals: Sequence[int]) -> list[int]:
        """Put summed limbs together.

        Raises:
            ParameterError: Not whole integers' limbs.
        """
        if len(totals) % self.count:
            raise ParameterError(f"{len(totals)} limbs, where {self.count} make an integer")
        joined = []
        for start in range(0, len(totals), self.count):
            value = 0
            for limb in reversed(totals[start : start + self.count]):
                value = (value << self.width) + int(limb)
            joined.append(value)
        return joined
