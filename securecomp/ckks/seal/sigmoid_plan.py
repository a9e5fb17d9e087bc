"""Choice of ring, moduli and scale for the probability circuit, with bounds on its errors."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from securecomp.ckks.native import security
from securecomp.ckks.native.ciphertext_noise import Trace, Tracer
from securecomp.ckks.native.moduli import LEAST_PRIME_BITS, MOST_PRIME_BITS, Chain, choose
from securecomp.ckks.seal import chebyshev
from securecomp.ckks.seal.chebyshev import CiphertextArithmetic, Series, Value
from securecomp.core import minimax
from securecomp.errors import ParameterError

Reals = npt.NDArray[np.float64]
P = TypeVar("P")

MOST_FEATURES = 1 << 14
_ROOM = 1 + 1 / 64
MOST_DOMAIN = 126.0
USUAL_DOMAIN = 8.0
"""A probability beyond it is within 3.4e-4 of 0 or 1."""
_RINGS = tuple(sorted(ring for ring in security.LARGEST if ring >= 4096))


@dataclass(frozen=True)
class SigmoidPlan:
    """The terms that both sides agree on before any key is made. Public.

    It is not sent. Each side makes it by `plan` from the same arguments.

    Attributes:
        features: d.
        domain: Largest absolute logit, B.
        degree: Degree of the polynomial.
        feature_bound: Largest absolute feature.
        weight_bound: Largest sum of the absolute weights of one model.
        chain: The ring and its moduli.
        scale_bits: log2 of the number that stands for 1 in a fresh ciphertext and in a result.
        numeric_error: Largest error of a result against the polynomial's value, by noise and
            rounding (`Tracer.bound`, a heuristic that one batch in 2^30 exceeds).
        polynomial_error: Largest error of the polynomial against the logistic function; proven.
    """

    features: int
    domain: float
    degree: int
    feature_bound: float
    weight_bound: float
    chain: Chain
    scale_bits: int
    numeric_error: float
    polynomial_error: float

    @property
    def scale(self) -> float:
        """The number that stands for 1."""
        return 2.0**self.scale_bits

    @property
    def slots(self) -> int:
        """Rows in one batch."""
        return self.chain.slots

    @property
    def depth(self) -> int:
        """Rescalings: one for the logit, the rest for the polynomial."""
        return 1 + chebyshev.depth(self.degree)

    @property
    def error(self) -> float:
        """Largest error of a probability against the logistic function of its logit."""
        return self.numeric_error + self.polynomial_error

    @property
    def span(self) -> float:
        """The polynomial's interval: the domain, and a margin to tell what is outside of it."""
        return self.domain * _ROOM

    @property
    def reach(self) -> float:
        """Bound of every logit, with any intercept that the server accepts."""
        return self.span + 2 * self.weight_bound * self.feature_bound

    @property
    def polynomial(self) -> minimax.SigmoidPolynomial:
        """The polynomial that the server evaluates."""
        return minimax.sigmoid(self.span, self.degree)


@lru_cache(maxsize=64)
def plan(
    features: int,
    domain: float = 8.0,
    degree: int = 7,
    *,
    feature_bound: float = 8.0,
    weight_bound: float | None = None,
    precision: float = 1e-4,
) -> SigmoidPlan:
    """Choose the smallest ring, then the smallest scale, with noise below `precision`.

    Args:
        features: d, in [1, 16384].
        domain: Largest absolute logit, in [0.5, 126]. Rows beyond it get meaningless results.
        degree: Degree of the polynomial; odd, in [1, 63].
        feature_bound: Largest absolute feature. Larger ones are refused.
        weight_bound: Largest sum of one model's absolute weights. Larger ones are refused. By
            default domain / feature_bound, so that no row can leave the domain (intercept aside).
            The usual case is a larger bound, with standardised features.
        precision: Largest `numeric_error`. The error of the polynomial comes on top, and is
            usually larger.

    Raises:
        ParameterError: An argument out of range, or nothing fits at 128-bit security.
    """
    if not isinstance(features, int) or not 1 <= features <= MOST_FEATURES:
        raise ParameterError(f"a plan has 1 to {MOST_FEATURES} features, not {features}")
    if not minimax.LEAST_DOMAIN <= domain <= MOST_DOMAIN:
        raise ParameterError(f"a domain is {minimax.LEAST_DOMAIN} to {MOST_DOMAIN}, not {domain}")
    polynomial = minimax.sigmoid(domain * _ROOM, degree)
    _check_positive("feature_bound", feature_bound)
    _check_positive("precision", precision)
    if weight_bound is None:
        weight_bound = domain / feature_bound
    _check_positive("weight_bound", weight_bound)
    rescalings = 1 + chebyshev.depth(degree)
    best = math.inf
    for ring in _RINGS:
        for bits in range(LEAST_PRIME_BITS, MOST_PRIME_BITS):
            chain = choose(ring, bits, rescalings)
            # The sum of a logit, at the square of the scale, must fit the top modulus.
            if chain is None or not _holds(chain, bits, weight_bound * feature_bound / domain):
                continue
            error = _numeric_error(
                chain, 2.0**bits, polynomial, features, feature_bound, weight_bound
            )
            found = SigmoidPlan(
                features,
                float(domain),
                degree,
                float(feature_bound),
                float(weight_bound),
                chain,
                bits,
                error,
                polynomial.error,
            )
            # A logit in the domain must not look as if it were beyond the span, nor vice versa. And
            # the client's own logistic function, of slope 1/4 at most, must be as good.
            most = min((found.span - found.domain) / 2, 4 * found.error)
            if error <= precision and logit_error(found) <= most:
                return found
            best = min(best, error)
    raise ParameterError(
        f"no ring at 128-bit security reaches a precision of {precision:g} with {features} "
        f"features and degree {degree}; ask for {best:.1g}, or for a lower degree"
    )


def least_degree(domain: float, error: float) -> int:
    """Return the smallest degree whose polynomial is within an error of the logistic function.

    Args:
        domain: Largest absolute logit, in [0.5, 126].
        error: Largest error.

    Raises:
        ParameterError: No degree is large enough.
    """
    for degree in range(3, minimax.MOST_DEGREE + 1, 2):
        if minimax.sigmoid(domain * _ROOM, degree).error <= error:
            return degree
    raise ParameterError(
        f"no polynomial up to degree {minimax.MOST_DEGREE} is within {error:.2g} of the logistic "
        f"function for logits up to {domain:g}; plan a smaller domain, whose rows outside the "
        "client finishes, or less precision"
    )


def _check_positive(name: str, number: float) -> None:
    if not 0 < number <= 1e9:  # also false for nan
        raise ParameterError(f"{name} must be above 0 and at most 1e9, not {number}")


def _holds(chain: Chain, bits: int, largest: float) -> bool:
    """Return whether the sum of a logit, before its rescaling, fits half of the top modulus."""
    top = sum(math.log2(q) for q in chain.moduli)
    return 2 * bits + math.log2(max(largest, 1.0) + 1) + 2 < top


def _argument(
    tracer: Tracer,
    scale: float,
    domain: float,
    features: int,
    feature_bound: float,
    weight_bound: float,
) -> Value[Trace]:
    """Trace the logit over the domain, as it is after its rescaling."""
    chain = tracer.chain
    top = chain.moduli[-1]
    # Columns have independent noise; the 2-norm of the weights is at most their 1-norm.
    errors = tracer.source(tracer.fresh() / scale * weight_bound / domain, True)
    errors |= tracer.source(tracer.rounding() / scale, True)
    # Weights are rounded to multiples of 1/top. A model of zeros has one weight of 1/top.
    errors |= tracer.source((features + 2) / 2 * feature_bound / top, False)
    t = Value(Trace(tracer.grid, errors), chain.levels - 1, scale)
    return tracer.add_plain(t, 0.0)  # the intercept


def _numeric_error(
    chain: Chain,
    scale: float,
    polynomial: minimax.SigmoidPolynomial,
    features: int,
    feature_bound: float,
    weight_bound: float,
) -> float:
    """Return the largest error of a result against the polynomial's exact value."""
    tracer = Tracer(chain)
    t = _argument(tracer, scale, polynomial.domain, features, feature_bound, weight_bound)
    return tracer.bound(Series(chain.moduli, tracer, t)(polynomial.coefficients, scale))


def reduced(arithmetic: CiphertextArithmetic[P], plan: SigmoidPlan, t: Value[P]) -> Value[P]:
    """Return the logit over its bound `reach`, two levels down."""
    level = plan.chain.levels - 2
    precision = plan.scale * plan.chain.moduli[level] / t.scale
    return arithmetic.multiply_plain(t, plan.span / plan.reach, precision, level, plan.scale)


@lru_cache(maxsize=64)
def logit_error(plan: SigmoidPlan) -> float:
    """Return the largest error of the returned logits, a heuristic as `numeric_error` is."""
    tracer = Tracer(plan.chain)
    t = _argument(
        tracer, plan.scale, plan.span, plan.features, plan.feature_bound, plan.weight_bound
    )
    return tracer.bound(reduced(tracer, plan, t)) * plan.reach
