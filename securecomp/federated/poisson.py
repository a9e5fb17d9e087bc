"""Random draws of each step of private training: its batch and its noise.

A batch is a Poisson sample: every unit is in it by itself, with the same probability, so that it
may be empty, and its size is not fixed. Shuffled batches are something else: there one unit's place
depends on all others', and the amplification that is accounted for Poisson samples is not proved
for them (Chua et al., How private are DP-SGD implementations?, ICML 2024, show it to fail). Batches
stay secret: who knows who is in one gets no amplification.

Both come from AES-256 in counter mode under seeds of their own, in blocks of several steps; each
number is used for one step.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.privacy.samplers import discrete_gaussian

_WORD = 64
_BLOCK = 1 << 17  # words of a block, or one step's


def threshold(rate: float) -> int:
    """Return below which words of 64 bits a unit is in a batch.

    It is floor(2^64 rate): the rate that is sampled is at most the one that is accounted, and less
    by no more than 2^-64. A smaller rate promises at least as much (it mixes the larger rate's
    output with that of the data set without the unit, and the divergence is convex).
    """
    return math.floor(Fraction(rate) * (1 << _WORD))


def check_rate(rate: float, units: int) -> float:
    """Return a sampling rate.

    Raises:
        ParameterError: It is no probability above 0, or leaves batches empty as a rule.
    """
    if not 0 < rate <= 1:
        raise ParameterError(f"the sampling rate is above 0 and at most 1, not {rate}")
    if rate * units < 1:
        raise ParameterError(
            f"at a rate of {rate:g} of {units:,} units a batch has {rate * units:.2g} on average, "
            f"and would come out empty as a rule; take a rate of {1 / max(units, 1):.2g} or more"
        )
    return rate


def batches(
    units: int, rate: float, steps: int, entropy: Entropy
) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the units of each step's batch, in ascending order; none of them is an answer too."""
    seed = entropy(prg.SEED_BYTES)
    below = threshold(rate)
    together = max(1, _BLOCK // units)
    for first in range(0, steps, together):
        count = min(together, steps - first)
        if below >= 1 << _WORD:
            yield from (np.arange(units) for _ in range(count))
            continue
        key = prg.derive(seed, "poisson batches", first)
        words = prg.expand_words(key, count * units).reshape(count, units)
        yield from map(np.flatnonzero, words < np.uint64(below))


def noises(
    variance: Fraction, size: int, steps: int, entropy: Entropy
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield each step's noise, discrete Gaussian of this variance, shape (size,); 0 gives none."""
    if variance == 0:
        yield from (np.zeros(size, np.int64) for _ in range(steps))
        return
    together = max(1, _BLOCK // size)
    for first in range(0, steps, together):
        count = min(together, steps - first)
        drawn = discrete_gaussian(variance, count * size, entropy)
        yield from np.asarray(drawn, np.int64).reshape(count, size)
