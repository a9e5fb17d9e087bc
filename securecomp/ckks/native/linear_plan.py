"""Choice of digits and primes for the native circuit, with a proven error bound.

With v_j = w_j bound_j, a = input bits, k = lift bits, b = weight bits and S = 2^(a+k+b), a
decrypted logit is off by at most

- sum |v_j| / 2 / 2^a for the values' rounding,
- d / 2 / 2^b for the weights' rounding (a value over its bound is at most 1),
- min(21 |W|_1, 30.8 |W|_2) / S for the noise of the ciphertexts,
- 1/2 / S for the intercept's rounding,
- 2^-51 of the largest logit for the final rounding to float64.

An encrypted model adds the product of its noise (21 (2N + 1), with public-key encryption) and every
coefficient of a value's polynomial. A protected model, and results that may be shared, add the
noise that hides the rest of them.

All of these are worst cases except |W|_2: the noise e_j = sum of 21 differences of random bits has
P(|sum W_j e_j| > t) <= 2 exp(-t^2 / (21 |W|_2^2)) (Hoeffding), which is below 2^-64 at 30.8 |W|_2.
No logit can leave the modulus, which has room for |e| = 21 in every place.
"""

import contextlib
import math
from fractions import Fraction
from typing import NamedTuple

from securecomp.ckks.native import ring as rings
from securecomp.ckks.native import ring_kernels, security
from securecomp.ckks.native.encryption import public_noise
from securecomp.ckks.native.ring_parameters import LinearParameters
from securecomp.ckks.scaled_model import Scaled, power_above, product_noise, weighted_noise
from securecomp.errors import ParameterError

_MOST_INPUT_BITS = 50


def choose(
    scaled: Scaled,
    degree: int,
    budget: float,
    logit_bits: int,
    hidden: tuple[int, int],
    encrypted: bool,
) -> LinearParameters | None:
    """Return the circuit with the smallest modulus in a ring of this degree; None if none fits."""
    best: _Digits | None = None
    least_b = max(0, power_above(scaled.weights.shape[1] / 2 / budget))
    if encrypted:
        least_b += power_above(2 * degree * public_noise(degree))
    for b in range(least_b, least_b + 4):
        for a in range(1, _MOST_INPUT_BITS + 1):
            found = _digits(scaled, degree, budget, hidden, encrypted, a, b)
            if found is not None and (best is None or found.scale < best.scale):
                best = found
    if best is None:
        return None
    # Room for both signs, and for every error in the worst case.
    largest = (1 << best.scale) * (Fraction(2) ** logit_bits + 1)
    least = math.ceil(2 * (largest + Fraction(best.worst)))
    levels = -(-least.bit_length() // ring_kernels.MAX_BITS)
    bits = max(-(-least.bit_length() // levels), best.a + 2, 25)
    while levels * bits <= security.LARGEST[degree] and bits <= ring_kernels.MAX_BITS:
        with contextlib.suppress(ParameterError):  # too few primes of this length
            primes = rings.primes(degree, bits, levels)
            if math.prod(primes) > least:
                return LinearParameters(
                    degree, primes, best.a, best.lift, best.b, best.flood, best.release
                )
        bits += 1
    return None


class _Digits(NamedTuple):
    """Numbers of binary digits within the error budget, and the worst noise of a logit."""

    a: int
    lift: int
    b: int
    flood: int
    release: int
    worst: float

    @property
    def scale(self) -> int:
        return self.a + self.lift + self.b


def _digits(
    scaled: Scaled,
    degree: int,
    budget: float,
    hidden: tuple[int, int],
    encrypted: bool,
    a: int,
    b: int,
) -> _Digits | None:
    """Return digits with this a and b within the error budget, or None.

    Computed in floating point, with bounds on the integer weights. `Scaled.error` is exact.
    """
    inputs = scaled.weights.shape[1] + encrypted
    total, second = scaled.first, scaled.second
    rest = budget * (1 - 1e-9) - total / 2 / 2.0**a - inputs / 2 / 2.0**b
    rest -= float(scaled.logit) / 2.0**51
    if rest <= 0:
        return None
    if encrypted:  # the intercept is a weight too
        largest = max(abs(float(c)) for c in scaled.intercepts)
        total, second = total + largest, math.hypot(second, largest)
    # |W|_1 and |W|_2, if every weight is rounded up by 1/2
    first = total * 2.0**b + inputs / 2
    noise = weighted_noise(first, second * 2.0**b + math.sqrt(inputs) / 2)
    worst = ring_kernels.NOISE_BOUND * first
    if encrypted:
        product = inputs * product_noise(degree, a)
        noise, worst = noise + product, worst + product
    if hidden[0]:
        noise, worst = noise + public_noise(degree), worst + public_noise(degree)
    flood, release = (
        security.HIDING_BITS + power_above(noise * rows * len(scaled.weights)) if rows else 0
        for rows in hidden
    )
    hiding = sum(2.0**bits for bits in (flood, release) if bits)
    lift = max(0, power_above((noise + hiding + 0.5) / rest) - a - b)
    if lift and not any(hidden):
        return None
    return _Digits(a, lift, b, flood, release, worst + hiding)
