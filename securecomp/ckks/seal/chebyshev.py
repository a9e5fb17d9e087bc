"""An odd Chebyshev series as a circuit of least depth.

The circuit is written once, over a `CiphertextArithmetic`. The server runs it over ciphertexts with
`Encrypted`. The plan runs it over `ciphertext_noise.Tracer`, which follows every error.

A series of degree below 2m with m = 2^i is cut by T_{m+j} = 2 T_m T_j - T_{m-j} into
high * T_m + low, both odd and of degree below m; T_{2m} = 2 T_m^2 - 1. That takes
ceil(log2(degree + 1)) levels. Scales are settled from the top: each part is asked for at the level
and scale at which it is needed, and the scale of a constant makes up the difference. So two terms
that are added have exactly the same scale.

Source: Chebyshev series by baby steps and giant steps in Han, Ki, CT-RSA 2020; exact scales from
the top as in Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux, EUROCRYPT 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from securecomp.ckks.seal.seal_context import Context
from securecomp.errors import ParameterError

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Value(Generic[P]):
    """A number under encryption, or a trace in its place.

    Attributes:
        payload: The ciphertext.
        level: Number of primes left.
        scale: The number that stands for 1.
    """

    payload: P
    level: int
    scale: float


class CiphertextArithmetic(Protocol[P]):
    """Operations of a circuit. Operands of a higher level are brought down first."""

    def multiply(self, a: Value[P], b: Value[P], level: int, scale: float, twice: bool) -> Value[P]:
        """Return a b, or 2 a b, relinearised; rescaled from `level` + 1 to `level` and `scale`."""

    def multiply_plain(
        self, a: Value[P], constant: float, precision: float, level: int, scale: float
    ) -> Value[P]:
        """Return `constant` a, rescaled; the constant is rounded to a multiple of 1/precision."""

    def add(self, a: Value[P], b: Value[P]) -> Value[P]:
        """Return a + b, which have one level and one scale."""

    def add_plain(self, a: Value[P], constant: float) -> Value[P]:
        """a + `constant`."""


def depth(degree: int) -> int:
    """Return the number of levels that a series of this degree takes."""
    return max(1, degree.bit_length())


class Series(Generic[P]):
    """One evaluation of odd series at one `t`.

    Args:
        moduli: The chain's moduli.
        arithmetic: Operations on the payloads.
        t: The argument, in [-1, 1], at level `depth(degree)` + 1 or above.
    """

    def __init__(
        self, moduli: Sequence[int], arithmetic: CiphertextArithmetic[P], t: Value[P]
    ) -> None:
        self._moduli = moduli
        self._do = arithmetic
        self._powers = {1: t}

    def __call__(self, coefficients: Sequence[float], scale: float) -> Value[P]:
        """Return the sum of c_k T_k(t) at level 1 and this scale.

        Args:
            coefficients: c_0, c_1, ...; even ones except c_0 are taken as 0. c_1 is not 0.
            scale: Scale of the result.

        Raises:
            ParameterError: All odd coefficients vanish at this precision.
        """
        odd = [0.0 if k % 2 == 0 else c for k, c in enumerate(coefficients)]
        result = self._part(odd, 1, scale)
        if result is None:
            raise ParameterError("all coefficients are zero at this scale")
        return self._do.add_plain(result, coefficients[0])

    def _power(self, order: int) -> Value[P]:
        """Return T_order(t) for a power of two, from a cache."""
        if order not in self._powers:
            half = self._power(order // 2)
            scale = half.scale * half.scale / self._moduli[half.level - 1]
            square = self._do.multiply(half, half, half.level - 1, scale, True)
            self._powers[order] = self._do.add_plain(square, -1.0)
        return self._powers[order]

    def _part(self, odd: list[float], level: int, scale: float) -> Value[P] | None:
        """Return the series at exactly this level and scale; None stands for zero."""
        prime = self._moduli[level]  # the one that the last rescaling divides by
        degree = max((k for k, c in enumerate(odd) if c != 0), default=0)
        if degree == 0:
            return None
        if degree == 1:
            t = self._powers[1]
            precision = scale * prime / t.scale
            # SEAL refuses a product with 0. The omitted term is below the constant's rounding.
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


class Encrypted:
    """The circuit's arithmetic over SEAL's ciphertexts. It does not change its operands."""

    def __init__(self, context: Context, keys: Any) -> None:
        self._context = context
        self._do = context.evaluator
        self._keys = keys

    def _at(self, a: Value[Any], level: int) -> Any:
        if a.level == level:
            return a.payload
        lowered = self._context.empty()
        self._do.mod_switch_to(a.payload, self._context.parms_id(level), lowered)
        return lowered

    def _rescaled(self, ciphertext: Any, level: int, scale: float) -> Value[Any]:
        self._do.rescale_to_next_inplace(ciphertext)
        # Equal up to float64's rounding of a quotient, which SEAL's comparison may refuse.
        ciphertext.scale = scale
        return Value(ciphertext, level, scale)

    def lower(self, a: Value[Any], level: int) -> Value[Any]:
        """Return the same number at a lower level."""
        return Value(self._at(a, level), level, a.scale)

    def multiply(
        self, a: Value[Any], b: Value[Any], level: int, scale: float, twice: bool
    ) -> Value[Any]:
        """a b, or 2 a b."""
        product = self._context.empty()
        if a is b:
            self._do.square(self._at(a, level + 1), product)
        else:
            self._do.multiply(self._at(a, level + 1), self._at(b, level + 1), product)
        self._do.relinearize_inplace(product, self._keys)
        if twice:
            self._do.add_inplace(product, product)
        return self._rescaled(product, level, scale)

    def multiply_plain(
        self, a: Value[Any], constant: float, precision: float, level: int, scale: float
    ) -> Value[Any]:
        """`constant` a."""
        product = self._context.empty()
        plaintext = self._context.encode(constant, level + 1, precision)
        self._do.multiply_plain(self._at(a, level + 1), plaintext, product)
        return self._rescaled(product, level, scale)

    def add(self, a: Value[Any], b: Value[Any]) -> Value[Any]:
        """a + b."""
        total = self._context.empty()
        self._do.add(a.payload, b.payload, total)
        return Value(total, a.level, a.scale)

    def add_plain(self, a: Value[Any], constant: float) -> Value[Any]:
        """a + `constant`."""
        total = self._context.empty()
        plaintext = self._context.encode(constant, a.level, a.scale)
        self._do.add_plain(a.payload, plaintext, total)
        return Value(total, a.level, a.scale)
