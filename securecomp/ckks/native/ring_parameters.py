"""The circuits in a plan: ring, moduli, and the scales of numbers in them."""

import math

import msgspec

from securecomp.ckks.native import ring_kernels, security
from securecomp.ckks.native.moduli import Chain, stored_bytes
from securecomp.ckks.native.ring import Ring, ring
from securecomp.ckks.seal import chebyshev, sigmoid_plan
from securecomp.core import minimax
from securecomp.errors import ParameterError

_MAX_INPUT_BITS = 50


class LinearParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="linear"):
    """A circuit for logits: one multiplication deep, without rotations or evaluation keys.

    A value x becomes the integer X = x / bound 2^input_bits, and is encrypted as X 2^lift_bits; a
    weight becomes an integer at 2^weight_bits. A logit is an integer at the product of the three.

    Attributes:
        degree: N.
        primes: Their product is the modulus.
        input_bits: Binary digits of a value.
        lift_bits: Further digits, which hold the logit above the flood noise.
        weight_bits: Binary digits of a weight.
        flood_bits: The noise that hides the model is below 2^flood_bits; 0 means no such noise.
        release_bits: The same for the noise that the client adds before results are shared.
    """

    degree: int
    primes: tuple[int, ...]
    input_bits: int
    lift_bits: int
    weight_bits: int
    flood_bits: int = 0
    release_bits: int = 0

    def __post_init__(self) -> None:
        sound = (
            1 <= self.input_bits <= _MAX_INPUT_BITS
            and 0 <= self.lift_bits <= 200
            and 0 <= self.weight_bits <= 200
            and 0 <= self.flood_bits <= 400
            and 0 <= self.release_bits <= 400
            and 1 <= len(self.primes) <= 8
            and all(1 << 20 < q < 1 << ring_kernels.MAX_BITS for q in self.primes)
        )
        if not sound:
            raise ParameterError("the plan's circuit has numbers out of range")
        modulus = math.prod(self.primes)
        security.check(self.degree, modulus)
        if len({q.bit_length() for q in self.primes}) > 1:
            raise ParameterError("the plan's primes differ in length")
        if self.input_bits + 1 >= self.bits:
            raise ParameterError("the plan's inputs are longer than its primes")
        ring(self.degree, self.primes)  # refuses unusable primes

    @property
    def ring(self) -> Ring:
        """The ring of the ciphertexts."""
        return ring(self.degree, self.primes)

    @property
    def bits(self) -> int:
        """Bits of a residue."""
        return self.ring.bits

    @property
    def scale_bits(self) -> int:
        """Binary logarithm of a logit's scale."""
        return self.input_bits + self.lift_bits + self.weight_bits

    @property
    def hiding(self) -> int:
        """Bound of the noise that hides model and key, at a logit's scale."""
        return sum(1 << bits for bits in (self.flood_bits, self.release_bits) if bits)


class Sigmoid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="sigmoid"):
    """A circuit for probabilities: a polynomial for the logistic function, over SEAL.

    Attributes:
        ring: N; a batch has N/2 rows.
        moduli: Moduli of the ciphertexts.
        special: Modulus of the relinearisation keys alone.
        scale_bits: log2 of the number that stands for 1.
        degree: Degree of the polynomial.
        domain: Largest absolute logit for which it is made.
        weight_bound: Largest sum of one model's absolute weights over the bounds, a power of 2.
        numeric_error: Largest error of a result against the polynomial's value (a heuristic).
        polynomial_error: Largest error of the polynomial against the logistic function (proven).
    """

    ring: int
    moduli: tuple[int, ...]
    special: int
    scale_bits: int
    degree: int
    domain: float
    weight_bound: float
    numeric_error: float
    polynomial_error: float

    def __post_init__(self) -> None:
        Chain(self.ring, self.moduli, self.special)  # refuses insecure and unusable moduli
        sound = (
            1 <= self.scale_bits <= 60
            and self.degree % 2 == 1
            and 1 <= self.degree <= minimax.MOST_DEGREE
            and minimax.LEAST_DOMAIN <= self.domain <= sigmoid_plan.MOST_DOMAIN
            and 0 < self.weight_bound <= 2.0**100
            and 0 < self.numeric_error < 1
            and 0 < self.polynomial_error < 1
        )
        if not sound:
            raise ParameterError("the plan's circuit has numbers out of range")
        # One for the result, one for the logit's rescaling, the rest for the polynomial.
        if len(self.moduli) != 2 + chebyshev.depth(self.degree):
            raise ParameterError("the plan has another number of moduli than its polynomial needs")

    def of(self, features: int) -> sigmoid_plan.SigmoidPlan:
        """Return the circuit for a number of features, each over its bound."""
        return sigmoid_plan.SigmoidPlan(
            features=features,
            domain=self.domain,
            degree=self.degree,
            feature_bound=1.0,
            weight_bound=self.weight_bound,
            chain=self.chain,
            scale_bits=self.scale_bits,
            numeric_error=self.numeric_error,
            polynomial_error=self.polynomial_error,
        )

    @property
    def chain(self) -> Chain:
        """The ring and its moduli, as SEAL takes them."""
        return Chain(self.ring, self.moduli, self.special)

    @property
    def rows(self) -> int:
        """Rows in one batch."""
        return self.ring // 2

    @property
    def column_bytes(self) -> int:
        """Approximate bytes of one feature of a batch."""
        return stored_bytes(self.ring, self.moduli)

    @property
    def result_bytes(self) -> int:
        """Approximate bytes of one result of a batch: a probability, and its logit."""
        return 4 * stored_bytes(self.ring, self.moduli[:1])
