"""Uniform numbers with as many binary digits as a comparison needs.

A sampler is exact if every choice that it makes has exactly the probability that it should have.
Its choices here are all of one form: is a uniform number of [0, 1) below p, where log p is known as
a formula? The first 64 digits of the number are compared with a double that is p up to 2^-44, and
where the two are closer than 2^-40, interval arithmetic of growing precision and further digits
decide. Doubles only make it fast: whatever they say, the answer is the one that real numbers would
give.

What this rests on: that numpy's `exp` and `log` and the formulas that callers give are right to
2^-44 (they are to about 2^-49), and that AES-256 in counter mode looks random. The time that a draw
takes depends on what is drawn.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt

from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import ParameterError

_DOUBT = 2.0**-40
_WORD = 64
_GEOMETRIC_TERMS = 45  # exp(-45) is below 2^-64

Interval = tuple[gmpy2.mpfr, gmpy2.mpfr]
Exact = Callable[[int, int], Interval]
"""Takes a position and a precision in bits; returns bounds of log p there."""
Integers = npt.NDArray[np.int64] | npt.NDArray[np.object_]
"""int64, or Python ints of any size."""


def _context(precision: int, upwards: bool) -> "gmpy2.context":
    way = gmpy2.RoundUp if upwards else gmpy2.RoundDown
    return gmpy2.context(precision=precision, round=way, emin=-(1 << 40), emax=1 << 40)


def enclose(value: "gmpy2.mpq", precision: int) -> Interval:
    """Return bounds of a fraction."""
    with _context(precision, False):
        low = gmpy2.mpfr(value)
    with _context(precision, True):
        high = gmpy2.mpfr(value)
    return low, high


@cache
def _thresholds() -> npt.NDArray[np.uint64]:
    """Return floor(2^64 exp(-k)), ascending."""
    with _context(256, False):
        terms = range(_GEOMETRIC_TERMS, 0, -1)
        return np.array([int(gmpy2.exp(-k) * (1 << _WORD)) for k in terms], np.uint64)


class Uniforms(Secret):
    """The random numbers of one draw, from one seed: the same seed gives the same numbers."""

    __slots__ = ("_calls", "_seed", "_table")

    def __init__(self, entropy: Entropy) -> None:
        self._seed = entropy(prg.SEED_BYTES)
        self._calls = 0
        self._table = _thresholds()

    def words(self, count: int) -> prg.Words:
        """Return fresh random words, shape (count,)."""
        self._calls += 1
        return prg.expand_words(prg.derive(self._seed, "exact noise", self._calls), count)

    def bits(self, count: int) -> npt.NDArray[np.bool_]:
        """Return fair coins, shape (count,)."""
        packed = self.words(-(-count // _WORD)).view(np.uint8)
        return np.unpackbits(packed, count=count).view(np.bool_)

    def integers(self, bound: int, count: int) -> Integers:
        """Return uniform integers from 0 to bound - 1, shape (count,); Python ints if wide.

        What is not below the bound is drawn again, so that none is more likely.
        """
        if bound < 1:
            raise ParameterError(f"integers are drawn below a bound of at least 1, not {bound}")
        width = (bound - 1).bit_length()
        if width == 0:
            return np.zeros(count, np.int64)
        limbs = -(-width // _WORD)
        wide = width > 62
        parts: list[npt.NDArray[Any]] = []
        have = 0
        while have < count:
            tries = 2 * (count - have) + 8
            words = self.words(tries * limbs).reshape(tries, limbs)
            if wide:
                found: npt.NDArray[Any] = np.zeros(tries, object)
                for limb in range(limbs):
                    found = found + (words[:, limb].astype(object) << (_WORD * limb))
                found = found & ((1 << width) - 1)
            else:
                found = (words[:, 0] & np.uint64((1 << width) - 1)).astype(np.int64)
            kept = found[found < bound]
            parts.append(kept)
            have += len(kept)
        return np.concatenate(parts)[:count]

    def geometric(self, count: int) -> npt.NDArray[np.int64]:
        """Return integers of at least k with probability exp(-k), shape (count,)."""
        words = self.words(count)
        call = self._calls
        place = np.searchsorted(self._table, words, "left")
        found = len(self._table) - np.searchsorted(self._table, words, "right")
        doubt = self._table[np.minimum(place, len(self._table) - 1)] == words
        for i in np.flatnonzero(doubt).tolist():
            number = int(found[i])
            while self._decide(call, i, int(words[i]), _minus(number + 1)):
                number += 1
            found[i] = number
        return found.astype(np.int64)

    def below(self, log_p: npt.NDArray[np.float64], exact: Exact) -> npt.NDArray[np.bool_]:
        """Return whether a fresh uniform number is below p, for each p.

        Args:
            log_p: Logarithms, shape (n,), at most 0; exp of them is p up to 2^-44.
            exact: Bounds of the same logarithms.
        """
        words = self.words(len(log_p))
        call = self._calls
        first = words.astype(np.float64) * 2.0**-_WORD
        with np.errstate(under="ignore"):
            p = np.exp(log_p)
        hit = first < p
        for i in np.flatnonzero(np.abs(first - p) <= _DOUBT).tolist():
            hit[i] = self._decide(call, i, int(words[i]), partial(exact, i))
        return hit

    def _decide(self, call: int, index: int, word: int, log_p: Callable[[int], Interval]) -> bool:
        """Compare a number that begins with a word with p; draw digits until it is clear."""
        digits, number, more = _WORD, word, 0
        while True:
            precision = digits + _WORD
            low, high = log_p(precision)
            with _context(precision, False):
                least = gmpy2.exp(low)
            with _context(precision, True):
                most = gmpy2.exp(high)
            with gmpy2.context(precision=digits + 2, emin=-(1 << 40), emax=1 << 40):
                if gmpy2.mpq(number + 1, 1 << digits) <= least:
                    return True
                if gmpy2.mpq(number, 1 << digits) >= most:
                    return False
            more += 1
            key = prg.derive(self._seed, "exact noise, further digits", call, index, more)
            number = number << _WORD | int.from_bytes(key[:8], "big")
            digits += _WORD


def _minus(number: int) -> Callable[[int], Interval]:
    return lambda precision: enclose(gmpy2.mpq(-number), precision)
