"""The error of a circuit's result by noise and rounding, worked out while planning.

The plan runs the circuit over `Tracer` in place of ciphertexts. For a grid of arguments it follows
each value, together with the effect of every error so far.

Source: the heuristic of independent coefficients as in Costache, Curtis, Hales, Murphy, Ogilvie,
Player, "On the precision loss in approximate homomorphic encryption", IACR ePrint 2022/162. The
distribution of a rounding error in a slot, and the factor that follows from it, are our own.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from securecomp.ckks.native.moduli import Chain
from securecomp.ckks.seal.chebyshev import Value

Reals = npt.NDArray[np.float64]

_ERROR_STD = 3.24  # SEAL's centred binomial
_SECRET_VARIANCE = 2 / 3  # uniform on {-1, 0, 1}
_FAILURE_BITS = 30
ALLOWANCE = 1.05  # for products of two errors, and for what lies between points of the grid


def factor(slots: int) -> float:
    """Return a bound of the errors of all slots, in standard deviations.

    One batch in 2^30 exceeds it. It is a heuristic: errors of different sources are taken as
    independent, and a rounding error in a slot as tau times the secret's value there, two
    independent complex Gaussians. Its real part is a Laplace variable,
    P(|e| > k sigma) = exp(-sqrt(2) k), with a far heavier tail than a Gaussian.
    """
    return (math.log(slots) + _FAILURE_BITS * math.log(2)) / math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Trace:
    """A value and its errors, in place of a ciphertext while planning.

    Attributes:
        value: Its value for each t of the grid.
        errors: For each source of error, its effect on the value, for each t of the grid.
    """

    value: Reals
    errors: dict[int, Reals]


class Tracer:
    """Follows each error to first order. Each has its own entry, so correlations are exact.

    A random error (fresh noise, rounding at a rescaling, key switching) is kept as the standard
    deviation of a slot's real part. A polynomial with independent coefficients of variance v has
    variance N v / 2 there. A deterministic error (a rounded constant) is kept as a bound.

    Args:
        chain: The ring and its moduli.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._random: list[bool] = []
        n = chain.ring
        self.grid: Reals = np.cos(np.linspace(0, np.pi, 513))
        self._rounding = math.sqrt(n / 2 * (1 + n * _SECRET_VARIANCE) / 12)

    def fresh(self) -> float:
        """Return the error of a fresh ciphertext with a rounded plaintext, at scale 1."""
        return math.sqrt(self.chain.ring / 2 * (_ERROR_STD**2 + 1 / 12))

    def rounding(self) -> float:
        """Return the error of a rescaling at scale 1: tau_0 + tau_1 s, tau uniform on +-1/2."""
        return self._rounding

    def source(self, size: float | Reals, random: bool) -> dict[int, Reals]:
        """Return a new error: a standard deviation, or a bound if it is not random."""
        self._random.append(random)
        return {len(self._random) - 1: np.broadcast_to(np.asarray(size, float), self.grid.shape)}

    def bound(self, a: Value[Trace]) -> float:
        """Return a bound of the errors of all slots; one batch in 2^30 exceeds it (`factor`)."""
        variance, fixed = np.zeros_like(self.grid), np.zeros_like(self.grid)
        for source, effect in a.payload.errors.items():
            if self._random[source]:
                variance += effect**2
            else:
                fixed += np.abs(effect)
        return float(np.max(factor(self.chain.slots) * np.sqrt(variance) + fixed)) * ALLOWANCE

    def _switching(self, level: int) -> float:
        """Return the error of key switching at scale 1: sum of digit_i e_i / P, and one rounding.

        A digit is in [0, q_i), not centred. Because of its mean the slots next to 1 are worst.
        """
        n, p = self.chain.ring, self.chain.special
        digits = sum((q / p) ** 2 for q in self.chain.moduli[:level])
        each = n / 12 + (n / math.pi) ** 2
        return math.sqrt(digits * each * n / 2 * _ERROR_STD**2 + self._rounding**2)

    def multiply(
        self, a: Value[Trace], b: Value[Trace], level: int, scale: float, twice: bool
    ) -> Value[Trace]:
        """a b, or 2 a b."""
        x, y, factor = a.payload, b.payload, 2.0 if twice else 1.0
        errors = {s: factor * e * y.value for s, e in x.errors.items()}
        for s, e in y.errors.items():
            errors[s] = errors.get(s, 0.0) + factor * e * x.value
        errors |= self.source(factor * self._switching(level + 1) / (a.scale * b.scale), True)
        errors |= self.source(self._rounding / scale, True)
        return Value(Trace(factor * x.value * y.value, errors), level, scale)

    def multiply_plain(
        self, a: Value[Trace], constant: float, precision: float, level: int, scale: float
    ) -> Value[Trace]:
        """`constant` a."""
        errors = {s: constant * e for s, e in a.payload.errors.items()}
        errors |= self.source(np.abs(a.payload.value) / 2 / precision, False)
        errors |= self.source(self._rounding / scale, True)
        return Value(Trace(constant * a.payload.value, errors), level, scale)

    def add(self, a: Value[Trace], b: Value[Trace]) -> Value[Trace]:
        """a + b."""
        errors = dict(a.payload.errors)
        for s, e in b.payload.errors.items():
            errors[s] = errors.get(s, 0.0) + e
        return Value(Trace(a.payload.value + b.payload.value, errors), a.level, a.scale)

    def add_plain(self, a: Value[Trace], constant: float) -> Value[Trace]:
        """a + `constant`."""
        errors = a.payload.errors | self.source(0.5 / a.scale, False)
        return Value(Trace(a.payload.value + constant, errors), a.level, a.scale)
