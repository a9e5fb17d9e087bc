"""Choice of circuit and ring for a model and a precision, with a proven error bound.

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
from typing import Literal, NamedTuple

from securecomp.ckks.native import ring as rings
from securecomp.ckks.native import ring_kernels, security
from securecomp.ckks.native.encryption import public_noise
from securecomp.ckks.native.ring_parameters import LinearParameters, Sigmoid
from securecomp.ckks.plan import MAX_FEATURES, InferencePlan
from securecomp.ckks.seal import sigmoid_plan
from securecomp.core import minimax
from securecomp.errors import ParameterError
from securecomp.models import LogisticModel

Activation = Literal["client", "server"]
_DEGREES = (2048, 4096, 8192, 16384, 32768)
_NOISE = ring_kernels.NOISE_BOUND
_TAIL = 947  # 21 ln(2^65), rounded up: 30.8 squared
_MOST_INPUT_BITS = 50


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
        weights: v_j = w_j bound_j, shape (K, d).
        intercepts: One for each logit.
        logit: Largest absolute logit of values within the bounds.
    """

    def __init__(self, model: LogisticModel, bounds: tuple[float, ...]) -> None:
        self.weights = [
            [Fraction(w) * Fraction(b) for w, b in zip(row, bounds, strict=True)]
            for row in model.weights
        ]
        self.intercepts = [Fraction(c) for c in model.intercepts]
        self.totals = [sum(map(abs, row), Fraction(0)) for row in self.weights]
        self.logit = max(t + abs(c) for t, c in zip(self.totals, self.intercepts, strict=True))

    def integers(
        self, circuit: LinearParameters, encrypted: bool
    ) -> tuple[list[list[int]], list[int]]:
        """Return weights and intercepts as integers at the circuit's scales.

        The intercept of an encrypted model is the weight of a constant instead.
        """
        scale = 1 << circuit.weight_bits
        weights = [[round(v * scale) for v in row] for row in self.weights]
        if encrypted:
            rows = zip(weights, self.intercepts, strict=True)
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


def _weighted_noise(total: int, squares: int) -> int:
    """Return a bound of |sum W_j e_j|, given |W|_1 and |W|_2^2."""
    return min(_NOISE * total, math.isqrt(_TAIL * squares) + 1)


def _noise(circuit: LinearParameters, weights: list[int], encrypted: bool) -> int:
    """Return the noise of a reply without flood noise, at a logit's scale."""
    noise = _weighted_noise(sum(map(abs, weights)), sum(w * w for w in weights))
    if encrypted:
        noise += len(weights) * _product_noise(circuit.degree, circuit.input_bits)
    if circuit.flood_bits:
        noise += public_noise(circuit.degree)
    return noise


def _product_noise(degree: int, input_bits: int) -> int:
    """Return the noise of a product with an encrypted weight, beyond the value's own noise."""
    return degree * public_noise(degree) * ((1 << input_bits) + _NOISE)


def plan(
    model: LogisticModel,
    *,
    precision: float = 1e-4,
    protect_model: bool = False,
    encrypted: bool = False,
    max_rows: int | None = None,
    shareable_rows: int = 0,
    activation: Activation = "client",
    degree: int = 7,
    domain: float | None = None,
) -> InferencePlan:
    """Choose a circuit whose error is at most `precision`, and the smallest ring for it.

    If the server computes probabilities, the precision is that of its arithmetic. The error of the
    polynomial comes on top, and the plan's precision includes both.

    Args:
        model: The model. Its bounds are rounded up to powers of 2.
        precision: Largest error of a logit after rounding. Rounding takes half of it.
        protect_model: Hide everything of the model but the logits from the client, and answer
            fewer rows than determine the model.
        encrypted: Whether the model is encrypted for the server.
        max_rows: Total number of rows that one client may ask for. By default there is no limit;
            with `protect_model` it is the number of features, which is also the largest limit.
        shareable_rows: Number of rows whose results may be given to anybody (`InferenceClient`).
        activation: The side that computes probabilities from logits.
        degree: Degree of the server's polynomial, odd.
        domain: Largest absolute logit for which the polynomial is made. By default the largest
            that the bounds allow. A smaller one is more precise, and batches with a logit beyond
            it are refused.

    Raises:
        ParameterError: No 128-bit secure ring reaches this precision; more rows than keep a
            protected model hidden; a model that is both encrypted and protected.
    """
    features = len(model.features)
    _check_wishes(features, precision, protect_model, encrypted, max_rows, shareable_rows)
    limit = max_rows or (features if protect_model else 0)
    bounds = tuple(2.0 ** power_above(bound) for bound in model.bounds)
    scaled = Scaled(model, bounds)
    if scaled.logit > Fraction(2) ** 200:
        raise ParameterError("a logit could be beyond 2^200; give smaller bounds")
    logit_bits = power_above(max(scaled.logit, Fraction(1, 1 << 10)))
    if activation == "server":
        if protect_model or encrypted or shareable_rows or model.link == "softmax":
            raise ParameterError(
                "a server computes probabilities only with a plain, unprotected model of two "
                "classes or one against the rest, and for the client alone; otherwise use "
                'activation="client"'
            )
        return _sigmoid_plan(model, bounds, scaled, precision, degree, domain, limit)
    hidden = (limit if protect_model else 0, shareable_rows)
    for ring_degree in _DEGREES:
        # Rounding the result takes the other half.
        circuit = _circuit(scaled, ring_degree, precision / 2, logit_bits, hidden, encrypted)
        if circuit is None:
            continue
        return InferencePlan(
            features=model.features,
            bounds=bounds,
            classes=model.classes,
            link=model.link,
            precision=precision,
            error=float(scaled.error(circuit, encrypted)) * (1 + 1e-9),
            logit_bound=2.0**logit_bits,
            circuit=circuit,
            model="encrypted" if encrypted else "plain",
            protect_model=protect_model,
            max_rows=limit,
            shareable_rows=shareable_rows,
        )
    raise ParameterError(
        f"no ring up to degree {_DEGREES[-1]:,} gives logits up to {2.0**logit_bits:g} to "
        f"{precision:g}; ask for less precision, or give smaller bounds"
    )


def _check_wishes(
    features: int,
    precision: float,
    protect_model: bool,
    encrypted: bool,
    max_rows: int | None,
    shareable_rows: int,
) -> None:
    if not 1e-12 <= precision < 1:
        raise ParameterError(f"the precision must be at least 1e-12 and below 1, not {precision}")
    if features > MAX_FEATURES:
        raise ParameterError(
            f"the model has {features:,} features, and at most {MAX_FEATURES:,} are supported"
        )
    if shareable_rows and encrypted:
        raise ParameterError(
            "the results of an encrypted model are for the client only; leave out shareable_rows"
        )
    if protect_model and encrypted:
        raise ParameterError(
            "protect_model needs a model that the server knows; the replies of an encrypted model "
            "have a third part, which no flood noise hides"
        )
    if protect_model and max_rows is not None and not 1 <= max_rows <= features:
        raise ParameterError(
            f"{features + 1} rows determine a model of {features} features; with protect_model a "
            f"client gets 1 to {features}"
        )
    if shareable_rows < 0 or (max_rows is not None and max_rows < 1):
        raise ParameterError("a number of rows must be positive")


def _sigmoid_plan(
    model: LogisticModel,
    bounds: tuple[float, ...],
    scaled: Scaled,
    precision: float,
    degree: int,
    domain: float | None,
    limit: int,
) -> InferencePlan:
    logit_bound = 2.0 ** power_above(max(scaled.logit, Fraction(1, 1 << 10)))
    if domain is None:
        domain = max(minimax.LEAST_DOMAIN, float(scaled.logit) * (1 + 1e-9))
        if domain > sigmoid_plan.MOST_DOMAIN:
            raise ParameterError(
                f"within the bounds a logit can reach {domain:.4g}, and polynomials are made for "
                f"up to {sigmoid_plan.MOST_DOMAIN:g}; give smaller bounds, or a domain that the "
                "logits of real rows keep to"
            )
    weight_bound = 2.0 ** power_above(max(*scaled.totals, Fraction(1, 1 << 10)))
    found = sigmoid_plan.plan(
        len(bounds),
        domain,
        degree,
        feature_bound=1.0,
        weight_bound=weight_bound,
        precision=precision / 2,
    )
    scaled.check_domain(domain)
    return InferencePlan(
        features=model.features,
        bounds=bounds,
        classes=model.classes,
        link=model.link,
        precision=found.error + precision / 2,
        error=found.error,
        logit_bound=logit_bound,
        circuit=Sigmoid(
            ring=found.chain.ring,
            moduli=found.chain.moduli,
            special=found.chain.special,
            scale_bits=found.scale_bits,
            degree=degree,
            domain=found.domain,
            weight_bound=weight_bound,
            numeric_error=found.numeric_error,
            polynomial_error=found.polynomial_error,
        ),
        max_rows=limit,
    )


def _circuit(
    scaled: Scaled,
    degree: int,
    budget: float,
    logit_bits: int,
    hidden: tuple[int, int],
    encrypted: bool,
) -> LinearParameters | None:
    """Return the circuit with the smallest modulus in a ring of this degree; None if none fits."""
    best: _Digits | None = None
    least_b = max(0, power_above(len(scaled.weights[0]) / 2 / budget))
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
    inputs = len(scaled.weights[0]) + encrypted
    total = max(map(float, scaled.totals))
    squares = max(float(sum(v * v for v in row)) for row in scaled.weights)
    rest = budget * (1 - 1e-9) - total / 2 / 2.0**a - inputs / 2 / 2.0**b
    rest -= float(scaled.logit) / 2.0**51
    if rest <= 0:
        return None
    if encrypted:  # the intercept is a weight too
        largest = max(abs(float(c)) for c in scaled.intercepts)
        total, squares = total + largest, squares + largest**2
    # |W|_1 and |W|_2, if every weight is rounded up by 1/2
    first = total * 2.0**b + inputs / 2
    second = math.sqrt(squares) * 2.0**b + math.sqrt(inputs) / 2
    noise = min(_NOISE * first, math.sqrt(_TAIL) * second + 1)
    worst = _NOISE * first
    if encrypted:
        product = inputs * _product_noise(degree, a)
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
