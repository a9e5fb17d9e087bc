"""Choice of ring, primes and scales for logits over SEAL, with a proven error bound.

With v_j = w_j bound_j, a = input bits, b = weight bits and S = 2^(a+b), a decrypted logit is off by
at most

- (d + 2) / 2 / 2^b for the weights' rounding (SEAL refuses to multiply by 0, so a model of zeros
  has one weight of 2^-b),
- sqrt(2 ln(2^65) (10.5 + 1/4) N / 2) |W|_2 / S for noise and the rounding of values,
- 1 / S for the rounding of the intercept, which has two coefficients,
- 3 (8 log2 N + 8) 2^-53 sqrt(N) of the largest logit for SEAL's transforms in floating point, and
  2^-51 of it for the weights' last digits.

The second holds except with probability 2^-64: a slot's real part is sum_k e_k cos(angle_k), where
sum_k cos^2 = N / 2. A coefficient's noise is a sum of 21 differences of random bits, and 10.5 is
its variance proxy (Hoeffding). SEAL rounds a value's coefficients. The client adds a uniform
dither of one unit first, so that the rounding is up or down with the coefficient as its mean, and
independent: a variance proxy of 1/4, in place of a worst case of N / pi.

Source of the third: N. Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2.
"""

import math

from securecomp.ckks.native import security
from securecomp.ckks.native.moduli import MOST_PRIME_BITS, shallow
from securecomp.ckks.scaled_model import Scaled, power_above
from securecomp.ckks.seal.slot_circuit import MOST_FEATURES, SlotCircuit, least_modulus

_PROXY = 10.5 + 0.25
_TAIL = 2 * math.log(2) * 65
_RINGS = tuple(sorted(ring for ring in security.LARGEST if ring >= 2048))
_MOST_LEVELS = 8
_ULP = 1 / (1 << 53)


def _fixed(scaled: Scaled, ring: int, weight_bits: int) -> float:
    """Return the errors that do not depend on the input bits."""
    features = scaled.weights.shape[1]
    floats = 3 * (8 * math.log2(ring) + 8) * math.sqrt(ring) * _ULP + 4 * _ULP
    return math.ldexp(features + 2, -1 - weight_bits) + float(scaled.logit) * floats


def _random(scaled: Scaled, ring: int, weight_bits: int) -> float:
    """Return the other errors, times 2^input_bits."""
    features = scaled.weights.shape[1]
    rounded = math.ldexp(math.sqrt(features) / 2 + 1, -weight_bits)
    deviation = math.sqrt(_TAIL * _PROXY * ring / 2)
    return deviation * (scaled.second + rounded) + math.ldexp(1.0, -weight_bits)


def error(scaled: Scaled, circuit: SlotCircuit) -> float:
    """Return the largest error of a logit before it is rounded."""
    ring, b = circuit.ring, circuit.weight_bits
    found = _fixed(scaled, ring, b) + _random(scaled, ring, b) / 2.0**circuit.input_bits
    return found * (1 + 1e-9)


def choose(scaled: Scaled, budget: float, logit_bits: int) -> SlotCircuit | None:
    """Return the circuit in the smallest ring, with the fewest primes; None if none fits.

    Args:
        scaled: The model.
        budget: Largest error of a logit before it is rounded.
        logit_bits: Binary logarithm of the plan's bound of a logit.
    """
    if scaled.weights.shape[1] > MOST_FEATURES:
        return None
    for ring in _RINGS:
        digits = _digits(scaled, budget, ring)
        if digits is None:
            continue
        least = least_modulus(2.0**logit_bits, sum(digits))
        for levels in range(1, _MOST_LEVELS + 1):
            for bits in range(-(-least.bit_length() // levels), MOST_PRIME_BITS + 1):
                chain = shallow(ring, bits, levels)
                if chain is None:
                    continue
                found = SlotCircuit(ring, chain.moduli, chain.special, *digits)
                if found.holds(2.0**logit_bits):
                    return found
    return None


def _digits(scaled: Scaled, budget: float, ring: int) -> tuple[int, int] | None:
    """Return input bits and weight bits with the least sum within the budget."""
    least = max(0, power_above((scaled.weights.shape[1] + 2) / 2 / budget))
    found = []
    for b in range(least, least + 6):
        rest = budget * (1 - 1e-8) - _fixed(scaled, ring, b)
        if rest > 0:
            found.append((max(1, power_above(_random(scaled, ring, b) / rest)), b))
    return min(found, key=sum, default=None)
