"""The circuit for logits over SEAL, as a plan states it."""

import math

import msgspec

from securecomp.ckks.native import security
from securecomp.ckks.native.moduli import Chain, stored_bytes
from securecomp.errors import ParameterError

MOST_FEATURES = 1 << 12


class SlotCircuit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="slots"):
    """A circuit for logits over SEAL: one multiplication by integers, and nothing else.

    A ciphertext has one feature of N rows: a slot holds the value of one row as its real part, and
    that of another as its imaginary part. The server needs no keys, no rotation and no rescaling.

    Attributes:
        ring: N.
        moduli: Moduli of the ciphertexts.
        special: The prime that SEAL wants beside several moduli; 0 beside one.
        input_bits: log2 of the number that stands for 1 in a value over its bound.
        weight_bits: Binary digits of a weight.
    """

    ring: int
    moduli: tuple[int, ...]
    special: int
    input_bits: int
    weight_bits: int

    def __post_init__(self) -> None:
        Chain(self.ring, self.moduli, self.special)  # refuses insecure and unusable moduli
        if not (1 <= self.input_bits <= 100 and 0 <= self.weight_bits <= 200):
            raise ParameterError("the plan's circuit has numbers out of range")
        if self.ring not in security.LARGEST or len(self.moduli) > 8:
            raise ParameterError("the plan's circuit has a ring or moduli that SEAL does not take")

    @property
    def chain(self) -> Chain:
        """The ring and its moduli, as SEAL takes them."""
        return Chain(self.ring, self.moduli, self.special)

    @property
    def scale_bits(self) -> int:
        """Binary logarithm of a logit's scale."""
        return self.input_bits + self.weight_bits

    @property
    def rows(self) -> int:
        """Rows in one batch."""
        return self.ring

    @property
    def column_bytes(self) -> int:
        """Approximate bytes of one feature of a batch: half of the ciphertext is a seed."""
        return stored_bytes(self.ring, self.moduli)

    @property
    def result_bytes(self) -> int:
        """Approximate bytes of one logit of a batch."""
        return 2 * stored_bytes(self.ring, self.moduli)

    def holds(self, largest: float) -> bool:
        """Return whether logits up to `largest`, with errors up to 1, stay within the moduli."""
        return math.prod(self.moduli) > least_modulus(largest, self.scale_bits)


def least_modulus(largest: float, scale_bits: int) -> int:
    """Return a modulus that holds logits up to `largest` with errors up to 1.

    A coefficient is at most the largest absolute slot, which is a complex number of two logits.
    """
    return math.ceil(2 * math.sqrt(2) * (largest + 1)) << scale_bits
