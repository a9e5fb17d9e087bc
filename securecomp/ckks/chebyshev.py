"""An odd Chebyshev series as a circuit of least depth, and what its noise does to the result.

The circuit is written once, over an `Arithmetic`: the server runs it over ciphertexts, the plan
over `Tracer`, which follows every source of error through the same operations.

A series of degree below 2m with m = 2^i is cut by T_{m+j} = 2 T_m T_j - T_{m-j} into
high * T_m + low, both odd and of degree below m; T_{2m} = 2 T_m^2 - 1. That takes
ceil(log2(degree + 1)) levels. Scales are settled from the top: each part is asked for at the level
and the scale at which it is needed, and a constant's own scale makes up the difference, so that
two terms that are added have one scale, exactly.

Source: the baby-step giant-step evaluation of Chebyshev series in Han, Ki, CT-RSA 2020; exact
scales as in Bossuat et al., EUROCRYPT 2021, section 4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from securecomp.ckks.chain import Chain
from securecomp.errors import ParameterError

Reals = npt.NDArray[np.float64]
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Value(Generic[P]):
    """A number under encryption, or what stands for one.

    Attributes:
        payload: The ciphertext.
        level: Primes left.
        scale: What stands for 1.
    """

    payload: P
    level: int
    scale: float


class Arithmetic(Protocol[P]):
    """What a circuit needs. Operands of a higher level are brought down first."""

    def multiply(self, a: Value[P], b: Value[P], level: int, scale: float, twice: bool) -> Value[P]:
        """a b, or 2 a b; relinearised, and rescaled from `level` + 1 to `level` and `scale`."""

    def multiply_plain(
        self, a: Value[P], constant: float, precision: float, level: int, scale: float
    ) -> Value[P]:
        """`constant` a, rescaled likewise; the constant is rounded to a multiple of 1/precision."""

    def add(self, a: Value[P], b: Value[P]) -> Value[P]:
        """a + b, which have one level and one scale."""

    def add_plain(self, a: Value[P], constant: float) -> Value[P]:
        """a + `constant`."""


def depth(degree: int) -> int:
    """Levels that a series of this degree takes."""
    return max(1, degree.bit_length())


class Series(Generic[P]):
    """One evaluation of an odd series at one `t`.

    Args:
        moduli: The chain's moduli.
        arithmetic: What the payloads are.
        t: The argument, in [-1, 1], at level `depth(degree)` + 1 or above.
    """

    def __init__(self, moduli: Sequence[int], arithmetic: Arithmetic[P], t: Value[P]) -> None:
        self._moduli = moduli
        self._do = arithmetic
        self._powers = {1: t}

    def __call__(self, coefficients: Sequence[float], scale: float) -> Value[P]:
        """sum of c_k T_k(t) at level 1 and this scale.

        Args:
            coefficients: c_0, c_1, ...; the even ones but c_0 are taken as 0. c_1 is not 0.
            scale: The result's.

        Raises:
            ParameterError: All odd coefficients vanish at this precision.
        """
        odd = [0.0 if k % 2 == 0 else c for k, c in enumerate(coefficients)]
        result = self._part(odd, 1, scale)
        if result is None:
            raise ParameterError("all coefficients are zero at this scale")
        return self._do.add_plain(result, coefficients[0])

    def _power(self, order: int) -> Value[P]:
        """T_order(t) for a power of two, made once."""
        if order not in self._powers:
            half = self._power(order // 2)
            scale = half.scale * half.scale / self._moduli[half.level - 1]
            square = self._do.multiply(half, half, half.level - 1, scale, True)
            self._powers[order] = self._do.add_plain(square, -1.0)
        return self._powers[order]

    def _part(self, odd: list[float], level: int, scale: float) -> Value[P] | None:
        """The series at exactly this level and scale; None stands for zero."""
        prime = self._moduli[level]  # the one that the last rescaling divides by
        degree = max((k for k, c in enumerate(odd) if c != 0), default=0)
        if degree == 0:
            return None
        if degree == 1:
            t = self._powers[1]
            precision = scale * prime / t.scale
            # SEAL refuses a product with 0.
            if round(odd[1] * precision) == 0:
                return None
            return self._do.multiply_plain(t, odd[1], precision, level, scale)
        middle = 1 << (degree.bit_length() - 1)
        high, low = [0.0] * middle, odd[:middle]
        for k in range(middle + 1, degree + 1):
            high[k - middle] = 2 * odd[k]
            low[2 * middle - k] -= odd[k]
        rest = self._part(low, level, scale)
        power = self._power(middle)
        factor = self._part(high, level + 1, scale * prime / power.scale)
        if factor is None:
            return rest
        product = self._do.multiply(factor, power, level, scale, False)
        return product if rest is None else self._do.add(product, rest)


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of a ciphertext while planning.

    Attributes:
        value: Its value for each t of the grid.
        errors: For each source of error, its effect on the value, for each t of the grid.
    """

    value: Reals
    errors: dict[int, Reals]


_ERROR_STD = 3.24  # SEAL's centred binomial
_SECRET_VARIANCE = 2 / 3  # uniform on {-1, 0, 1}
_FAILURE_BITS = 30
_ALLOWANCE = 1.05  # for products of two errors, and for what lies between points of the grid


class Tracer:
    """Follows each error to first order; correlations are exact, since each has its own entry.

    Random errors (fresh noise, rounding at a rescaling, key switching) are kept as the standard
    deviation in a slot's real part. A polynomial with independent coefficients of variance v has
    variance N v / 2 there. Deterministic ones (rounded constants) are kept as bounds.

    Args:
        chain: The ring and its moduli.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._random: list[bool] = []
        n = chain.ring
        self.grid: Reals = np.cos(np.linspace(0, np.pi, 513))
        self._rounding = math.sqrt(n / 2 * (1 + n * _SECRET_VARIANCE) / 12)

    def fresh(self) -> float:
        """The error of a fresh ciphertext with a rounded plaintext, at scale 1."""
        return math.sqrt(self._chain.ring / 2 * (_ERROR_STD**2 + 1 / 12))

    def rounding(self) -> float:
        """The error of a rescaling, at scale 1: tau_0 + tau_1 s with tau uniform on +-1/2."""
        return self._rounding

    def source(self, size: float | Reals, random: bool) -> dict[int, Reals]:
        """A new error: a standard deviation, or a bound if it is not random."""
        self._random.append(random)
        return {len(self._random) - 1: np.broadcast_to(np.asarray(size, float), self.grid.shape)}

    def bound(self, a: Value[Trace]) -> float:
        """What the error of all slots stays below, but for one batch in 2^30.

        A heuristic: errors of different sources are taken as independent, and a rounding error in
        a slot as tau times s(slot), two independent complex Gaussians. That is a Laplace variable,
        P(|e| > k sigma) = exp(-sqrt(2) k), far heavier than one Gaussian; k is such that the
        N/2 slots together exceed it with probability 2^-30.
        """
        k = (math.log(self._chain.slots) + _FAILURE_BITS * math.log(2)) / math.sqrt(2)
        variance, fixed = np.zeros_like(self.grid), np.zeros_like(self.grid)
        for source, effect in a.payload.errors.items():
            if self._random[source]:
                variance += effect**2
            else:
                fixed += np.abs(effect)
        return float(np.max(k * np.sqrt(variance) + fixed)) * _ALLOWANCE

    def _switching(self, level: int) -> float:
        """Key switching's error at scale 1: sum of digit_i e_i / P, and one rounding.

        A digit is in [0, q_i), not centred: its mean makes the slots next to 1 the worst.
        """
        n, p = self._chain.ring, self._chain.special
        digits = sum((q / p) ** 2 for q in self._chain.moduli[:level])
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
