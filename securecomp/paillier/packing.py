"""Many values in one plaintext: slots that cannot run into each other.

A slot has room for the value, its sign, and ceil(log2(additions)) bits for the sum of so many, plus
a guard bit. A plaintext is the sum of v_i 2^(slot i) with signed v_i; as every sum stays below half
of a slot, the balanced digits of the plaintext are the values' sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core import field, field_kernels
from securecomp.errors import ParameterError, RangeError
from securecomp.paillier.keys import PublicKey

_GUARD = 1
_WORD = 63  # wider slots do not go through 64-bit words
_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Packing:
    """The layout of slots under a key.

    Attributes:
        bound: Largest absolute value of one slot before anything is added.
        additions: How many vectors may be added up (scaling by k counts as |k|).
        slot: Bits of a slot.
        slots: Slots in a plaintext.
    """

    bound: int
    additions: int
    slot: int
    slots: int

    @classmethod
    def plan(cls, key: PublicKey, bound: int, additions: int) -> "Packing":
        """Lay slots out.

        Raises:
            ParameterError: A negative bound, or no addition allowed.
            RangeError: A single slot does not fit the key.
        """
        for what, value in (("bound", bound), ("additions", additions)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ParameterError(f"{what} must be an integer, not {value!r}")
        bound, additions = int(bound), int(additions)
        if bound < 0 or additions < 1:
            raise ParameterError("a bound is at least 0, and at least 1 addition is allowed")
        slot = max(1, bound.bit_length()) + 1 + (additions - 1).bit_length() + _GUARD
        slots = (key.bits - 2) // slot  # two bits below n: the sign, and n is not a power of two
        if slots < 1:
            raise RangeError(
                f"a slot of {slot} bits does not fit a key of {key.bits} bits; use a smaller "
                "bound, fewer additions, or a longer key"
            )
        return cls(bound, additions, slot, slots)

    def ciphertexts(self, length: int) -> int:
        """Return how many ciphertexts a vector takes."""
        return -(-length // self.slots)

    def pack(self, values: Sequence[int] | npt.NDArray[Any]) -> list[int]:
        """Return signed plaintexts.

        Raises:
            RangeError: A value is beyond the bound.
            ParameterError: Not integers.
        """
        if not len(values):
            return []
        array = field.integers(values, "values")
        if array.dtype.kind not in "iubO":
            raise ParameterError(f"expected integers, got {array.dtype}")
        if array.dtype.kind in "iu" and self.slot <= _WORD:
            if max(int(array.max()), -int(array.min())) > self.bound:
                raise self._beyond()
            return self._pack_words(array.astype(np.int64))
        integers = [int(v) for v in array.tolist()]
        if any(abs(v) > self.bound for v in integers):
            raise self._beyond()
        return [
            sum(v << (self.slot * i) for i, v in enumerate(integers[start : start + self.slots]))
            for start in range(0, len(integers), self.slots)
        ]

    def _beyond(self) -> RangeError:
        return RangeError(f"a value is beyond the bound {self.bound} of a slot")

    def _offset(self, count: int, digit: int) -> int:
        """Return `digit` in each of `count` slots."""
        return digit * (((1 << (self.slot * count)) - 1) // ((1 << self.slot) - 1))

    def _pack_words(self, array: npt.NDArray[np.int64]) -> list[int]:
        # Shifted to be non-negative, packed without gaps, and shifted back as one big integer.
        shift = 1 << self.bound.bit_length()
        plaintexts = []
        for start in range(0, array.size, self.slots):
            part = (array[start : start + self.slots] + shift).astype(np.uint64)
            words = np.zeros(-(-part.size * self.slot // 64), "<u8")
            field_kernels.pack(part, self.slot, words)
            packed = int.from_bytes(words.tobytes(), "little")
            plaintexts.append(packed - self._offset(part.size, shift))
        return plaintexts

    def unpack(self, plaintexts: Sequence[int], length: int) -> npt.NDArray[Any]:
        """Return the values' sums, shape (length,): int64, or Python ints where slots are wider.

        Raises:
            RangeError: A plaintext is not one of this layout: another key, or forged.
        """
        if len(plaintexts) != self.ciphertexts(length):
            raise RangeError(f"{len(plaintexts)} plaintexts do not hold {length} values")
        half = 1 << (self.slot - 1)
        wide = self.slot > _WORD
        out = np.empty(length, object if wide else np.int64)
        for index, plaintext in enumerate(plaintexts):
            part = out[index * self.slots : (index + 1) * self.slots]
            shifted = int(plaintext) + self._offset(part.size, half)
            if not 0 <= shifted < 1 << (self.slot * part.size):
                raise RangeError("a plaintext does not fit its slots: not a sum of this layout")
            if wide:
                mask = (1 << self.slot) - 1
                part[:] = [(shifted >> (self.slot * i) & mask) - half for i in range(part.size)]
            else:
                size = -(-part.size * self.slot // 64)
                words = np.frombuffer(shifted.to_bytes(8 * size, "little"), "<u8")
                digits = np.empty(part.size, np.uint64)
                field_kernels.unpack(words, self.slot, digits)
                part[:] = digits.view(np.int64) - half
        return out
