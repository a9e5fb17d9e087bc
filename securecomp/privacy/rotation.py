"""Vectors of reals as integers that a unit changes little: clip, rotate, scale, round.

A vector is clipped to a Euclidean norm, rotated by a public random rotation (signs, then a Hadamard
transform) that spreads it evenly over the coordinates, scaled to a grid, and each coordinate is
rounded up or down at random, right on average. Rounding lengthens a vector; it is done again until
the length is within an agreed bound, which is what noise is calibrated to, and which is checked on
the integers themselves: no rounding of floats can break it. Units are encoded one by one, so that
what a site sums is exact.

What it shows: nothing by itself. The seed of the rotation is public.

Source: Kairouz, Liu, Steinke, The distributed discrete Gaussian mechanism for federated learning
with secure aggregation, ICML 2021, algorithm 1 and proposition 22 (conditional rounding).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from securecomp.core import checks, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError, RangeError
from securecomp.privacy.noise_distributions import UnitChange

Floats = npt.NDArray[np.float64]
Relation = Literal["add/remove", "replace-one"]

_BETA = math.exp(-0.5)  # a rounding is kept with probability 1 - beta at least
_MOST_TRIES = 1000  # (0.61)^1000
_DIGITS = 2.0**-53
_MOST_SCALED = 1 << 52  # beyond, a double has no digits left to round
_CHUNK = 1 << 16  # numbers that are worked on together
_SAFE_SQUARES = 1 << 62
_MOST_ELEMENTS = 1 << 27  # of a message


@dataclass(frozen=True, slots=True)
class Encoding:
    """Public encoding of vectors as integers, the same for all parties.

    Attributes:
        length: Of a vector.
        clip: Largest Euclidean norm of one unit's vector; longer ones are shortened to it.
        scale: Integers per unit of length.
        seed: 32 bytes that the rotation is drawn from.
    """

    length: int
    clip: float
    scale: float
    seed: bytes

    def __post_init__(self) -> None:
        checks.integer(self.length, "the length of a vector", most=_MOST_ELEMENTS)
        if self.length < 1:
            raise ParameterError(f"a vector has at least one element, not {self.length}")
        for name, value in (("clip", self.clip), ("scale", self.scale)):
            if checks.real(value, name, "a positive finite number") <= 0:
                raise ParameterError(f"{name} is a positive finite number, not {value!r}")
        if self.clip * self.scale > _MOST_SCALED:
            raise ParameterError("clip times scale is beyond 2^52; choose a coarser scale")

    @property
    def padded(self) -> int:
        """Integers of an encoded vector: the power of two that holds it."""
        return 1 << (self.length - 1).bit_length()

    @property
    def square(self) -> int:
        """The largest squared norm of an encoded vector."""
        c, d = self.clip * self.scale, self.padded
        sure = (c + math.sqrt(d)) ** 2
        likely = c * c + d / 4 + math.sqrt(-2 * math.log(_BETA)) * (c + math.sqrt(d) / 2)
        return math.floor(min(sure, likely))

    def change(self, relation: Relation = "add/remove") -> UnitChange:
        """Return what one unit changes: adding or removing it, or putting another in its place."""
        if relation not in ("add/remove", "replace-one"):
            raise ParameterError(f'relation is "add/remove" or "replace-one", not {relation!r}')
        times = 1 if relation == "add/remove" else 2
        norm = math.sqrt(self.square)
        # Of integers no absolute value is above its square.
        l1 = min(math.floor(math.sqrt(self.padded) * norm), self.square)
        return UnitChange(self.padded, times * l1, times * norm, one=self.padded == 1)

    def bound(self, units: int) -> int:
        """Return the largest absolute integer of the sum of so many units."""
        return units * math.isqrt(self.square)

    def encode(self, vectors: npt.ArrayLike, entropy: Entropy = entropy_.system) -> list[int]:
        """Return the sum of encoded units.

        Args:
            vectors: One row a unit, shape (units, length).
            entropy: For rounding.

        Raises:
            ParameterError: Another shape.
            RangeError: A number is NaN or infinite.
        """
        rows = np.asarray(vectors, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.length:
            raise ParameterError(
                f"vectors have the shape (units, {self.length}), not {rows.shape}; one unit is a "
                "row too"
            )
        if not np.isfinite(rows).all():
            bad = int(np.argmax(~np.isfinite(rows).all(axis=1)))
            raise RangeError(f"vectors: row {bad + 1} has a NaN or infinite number; correct it")
        seed, total = entropy(prg.SEED_BYTES), np.zeros(self.padded, np.int64)
        many = max(1, _CHUNK // self.padded)
        for number, start in enumerate(range(0, len(rows), many)):
            clipped = self._clipped(rows[start : start + many])
            total += self._round(self._forward(clipped) * self.scale, seed, number).sum(axis=0)
        return [int(n) for n in total]

    def decode(self, total: npt.ArrayLike) -> Floats:
        """Return the sum of the units' vectors, from the summed integers, shape (length,)."""
        integers = np.asarray(total, np.float64)
        if integers.shape != (self.padded,):
            raise ParameterError(f"a total has {self.padded} integers, not {integers.shape}")
        signs, root = self._signs(), math.sqrt(self.padded)
        turned = _hadamard(integers[None] / self.scale)[0] * signs / root
        return np.asarray(turned, np.float64)[: self.length]

    def _clipped(self, rows: Floats) -> Floats:
        # By the largest element first: squares of large numbers are infinite.
        largest = np.abs(rows).max(axis=1, keepdims=True)
        unit = rows / np.where(largest > 0, largest, 1.0)
        norms = np.linalg.norm(unit, axis=1, keepdims=True)
        with np.errstate(over="ignore"):
            longer = largest * norms > self.clip
        return np.where(longer, unit * (self.clip / np.where(longer, norms, 1.0)), rows)

    def _forward(self, rows: Floats) -> Floats:
        wide = np.zeros((len(rows), self.padded))
        wide[:, : self.length] = rows
        return np.asarray(_hadamard(wide * self._signs()) / math.sqrt(self.padded), np.float64)

    def _signs(self) -> Floats:
        key = prg.derive(self.seed, "public rotation", self.padded)
        words = prg.expand_words(key, -(-self.padded // 64))
        bits = np.unpackbits(words.view(np.uint8), count=self.padded)
        return np.asarray(1 - 2.0 * bits, np.float64)

    def _round(self, rows: Floats, seed: bytes, number: int) -> npt.NDArray[np.int64]:
        """Round each row until its length is within the bound, independently of the others."""
        found = np.zeros(rows.shape, np.int64)
        left = np.arange(len(rows))
        for attempt in range(_MOST_TRIES):
            key = prg.derive(seed, "rounding of vectors", number, attempt)
            words = prg.expand_words(key, left.size * self.padded)
            uniform = (words >> np.uint64(11)).reshape(left.size, self.padded) * _DIGITS
            rounded = np.floor(rows[left] + uniform).astype(np.int64)
            kept = self._within(rounded)
            found[left[kept]] = rounded[kept]
            left = left[~kept]
            if not left.size:
                return found
        raise RangeError("a vector could not be rounded within its bound; choose a finer scale")

    def _within(self, rounded: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which rows of integers are short enough, exactly."""
        # An element is at most the longest norm and one more; else Python's integers square.
        longest = (math.isqrt(self.square) + 2) ** 2
        exact = rounded if longest * self.padded < _SAFE_SQUARES else rounded.astype(object)
        return np.asarray((exact**2).sum(axis=1) <= self.square, np.bool_)


def _hadamard(rows: Floats) -> Floats:
    """Return the Walsh-Hadamard transform of rows of 2^k elements, not normalised."""
    out: Floats = rows.copy()
    step = 1
    while step < rows.shape[1]:
        pairs = out.reshape(len(rows), -1, 2, step)
        halves = [pairs[:, :, :1] + pairs[:, :, 1:], pairs[:, :, :1] - pairs[:, :, 1:]]
        out = np.concatenate(halves, axis=2).reshape(rows.shape)
        step *= 2
    return out
