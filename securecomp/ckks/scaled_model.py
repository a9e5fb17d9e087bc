"""A model's weights over the bounds of its features: exact numbers, from which plans follow."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from securecomp.ckks.native import ring_kernels, security
from securecomp.ckks.native.encryption import public_noise
from securecomp.ckks.native.ring_parameters import LinearParameters
from securecomp.ckks.plan import InferencePlan
from securecomp.errors import ParameterError
from securecomp.models import LogisticModel

_TAIL = 947  # 21 ln(2^65), rounded up: 30.8 squared
_MOST_LOGIT = Fraction(2) ** 200


def power_above(x: float | Fraction) -> int:
    """Return the exponent of the least power of 2 that is at least x > 0."""
    fraction = Fraction(x)
    exponent = fraction.numerator.bit_length() - fraction.denominator.bit_length()
    while Fraction(2) ** exponent < fraction:
        exponent += 1
    while Fraction(2) ** (exponent - 1) >= fraction:
        exponent -= 1
    return exponent


class Scaled:
    """A model's weights over the features' bounds, exactly, and as integers.

    Attributes:
        weights: v_j = w_j bound_j, shape (K, d). Exact, since bounds are powers of 2.
        intercepts: One for each logit.
        totals: Sum of the absolute weights of each logit.
        logit: Largest absolute logit of values within the bounds.
        first: The largest 1-norm of a logit's weights, rounded up.
        second: The largest 2-norm of a logit's weights, rounded up.

    Raises:
        ParameterError: A logit could be beyond 2^200.
    """

    def __init__(self, model: LogisticModel, bounds: tuple[float, ...]) -> None:
        with np.errstate(over="ignore"):
            self.weights = np.array(model.weights, np.float64) * np.array(bounds)
        self.intercepts = [Fraction(c) for c in model.intercepts]
        beyond = ParameterError("a logit could be beyond 2^200; give smaller bounds")
        if not np.isfinite(self.weights).all():
            raise beyond
        self.totals = [_exact_sum(row) for row in np.abs(self.weights).tolist()]
        self.logit = max(t + abs(c) for t, c in zip(self.totals, self.intercepts, strict=True))
        if self.logit > _MOST_LOGIT:
            raise beyond
        self.first = math.nextafter(float(max(self.totals)), math.inf)
        squares = np.square(self.weights).sum(axis=1).max()
        self.second = math.sqrt(squares * (1 + 1e-11))

    def integers(
        self, circuit: LinearParameters, encrypted: bool
    ) -> tuple[list[list[int]], list[int]]:
        """Return weights and intercepts as integers at the circuit's scales.

        The intercept of an encrypted model is the weight of a constant instead.
        """
        rounded = np.rint(np.ldexp(self.weights, circuit.weight_bits))
        if np.abs(rounded).max(initial=0) < 2.0**62:
            weights = rounded.astype(np.int64).tolist()
        else:
            weights = [[int(w) for w in row] for row in rounded.tolist()]
        if encrypted:
            rows = zip(weights, self.intercepts, strict=True)
            scale = 1 << circuit.weight_bits
            return [[*row, round(c * scale)] for row, c in rows], [0] * len(weights)
        whole = 1 << circuit.scale_bits
        return weights, [round(c * whole) for c in self.intercepts]

    def error(self, circuit: LinearParameters, encrypted: bool) -> Fraction:
        """Return the largest error of a logit before it is rounded."""
        weights, _ = self.integers(circuit, encrypted)
        scale = Fraction(1 << circuit.scale_bits)
        rounding = self.logit / (1 << 51) + max(self.totals) / 2 / (1 << circuit.input_bits)
        rounding += Fraction(len(weights[0]), 2) / (1 << circuit.weight_bits)
        noise = max(_noise(circuit, row, encrypted) for row in weights)
        return rounding + (noise + circuit.hiding + Fraction(1, 2)) / scale

    def check_domain(self, domain: float) -> None:
        """Refuse a domain that no row within the bounds can reach: every answer would fail.

        Raises:
            ParameterError: An intercept is too far outside of the domain.
        """
        for total, intercept in zip(self.totals, self.intercepts, strict=True):
            if abs(intercept) - total > domain:
                raise ParameterError(
                    f"an intercept of {float(intercept):.4g} and weights that move a logit by up "
                    f"to {float(total):.4g} leave no row in a domain of {domain:g}; plan a larger "
                    "domain"
                )

    def check_hidden(self, plan: InferencePlan) -> None:
        """Refuse a plan whose noise hides less than it says.

        Raises:
            ParameterError: The plan was not made for this model.
        """
        c = plan.linear
        weights, _ = self.integers(c, plan.model == "encrypted")
        noise = max(_noise(c, row, plan.model == "encrypted") for row in weights)
        for bits, rows in ((c.flood_bits, plan.max_rows), (c.release_bits, plan.shareable_rows)):
            if bits and noise * rows * plan.outputs << security.HIDING_BITS > 2 << bits:
                raise ParameterError(
                    "the plan's noise hides less than the plan says; plan again for this model"
                )


def _exact_sum(numbers: Iterable[float]) -> Fraction:
    """Return a sum without rounding."""
    ratios = [x.as_integer_ratio() for x in numbers]
    common = max((below for _, below in ratios), default=1)  # all are powers of 2
    return Fraction(sum(above * (common // below) for above, below in ratios), common)


def weighted_noise(total: float, second: float) -> float:
    """Return a bound of |sum W_j e_j|, given |W|_1 and |W|_2."""
    return min(ring_kernels.NOISE_BOUND * total, math.sqrt(_TAIL) * second + 1)


def _noise(circuit: LinearParameters, weights: list[int], encrypted: bool) -> int:
    """Return the noise of a reply without flood noise, at a logit's scale."""
    squares = sum(w * w for w in weights)
    noise = min(ring_kernels.NOISE_BOUND * sum(map(abs, weights)), math.isqrt(_TAIL * squares) + 1)
    if encrypted:
        noise += len(weights) * product_noise(circuit.degree, circuit.input_bits)
    if circuit.flood_bits:
        noise += public_noise(circuit.degree)
    return noise


def product_noise(degree: int, input_bits: int) -> int:
    """Return the noise of a product with an encrypted weight, beyond the value's own noise."""
    return degree * public_noise(degree) * ((1 << input_bits) + ring_kernels.NOISE_BOUND)
