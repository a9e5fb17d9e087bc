"""The public plan of encrypted inference: a description of the model, and the circuit.

A plan tells the number of features and classes, bounds on the features' values, and a power of two
that bounds every logit. Beyond that magnitude it tells nothing of the weights.
"""

import hashlib
import math
from typing import Literal

import msgspec

from securecomp.ckks.native import security
from securecomp.ckks.native.encryption import public_noise
from securecomp.ckks.native.layout import RowRun, sections
from securecomp.ckks.native.ring_parameters import LinearParameters, Sigmoid
from securecomp.ckks.seal import sigmoid_plan
from securecomp.ckks.seal.slot_circuit import MOST_FEATURES, SlotCircuit
from securecomp.errors import ParameterError
from securecomp.models import Label, Link, check_classes, sums
from securecomp.protocol import wire

Backend = Literal["seal", "native"]
MAX_ROWS = 1 << 17
"""Most rows of one request; a longer table takes several."""
MAX_FEATURES = 1 << 16
_MAX_BATCHES = 16
_MAX_BYTES = 1 << 27
SCHEME = "CKKS (Cheon, Kim, Kim, Song 2017)"
REVIEWERS: dict[Backend, str] = {
    "seal": "Microsoft Research, and the users of a library that is open since 2018",
    "native": "nobody outside of this project; held against SEAL by its tests",
}
_BACKENDS: dict[Backend, str] = {
    "seal": "seal: Microsoft SEAL, through TenSEAL",
    "native": "native: this project's kernels, which are faster, send less, and can hide a model",
}
_SHOWN = 0.05 * math.log2(3)  # a twentieth of a ternary coefficient
_TINY = 1e-6  # relative difference between two ways to compute one error
_SLACK = 1 << 12  # bytes of a message beside its vector


class InferencePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The terms that client and server agree on. Public.

    Attributes:
        features: The features' names, in order.
        bounds: Largest absolute value of each, a power of 2.
        classes: The labels, in the order of the probabilities.
        link: How logits become probabilities.
        precision: Largest error of a decrypted logit (or probability) after rounding.
        error: Largest error before rounding.
        logit_bound: Largest absolute logit of values within the bounds.
        circuit: The server's computation, and its ring.
        model: Whether the server knows the model or has it encrypted.
        protect_model: Whether replies hide everything of the model but the logits.
        max_rows: Total number of rows that one client may ask for; 0 for no limit.
        shareable_rows: Number of rows whose results may be given to anybody, even to an honest
            server.
    """

    features: tuple[str, ...]
    bounds: tuple[float, ...]
    classes: tuple[Label, ...]
    link: Link
    precision: float
    error: float
    logit_bound: float
    circuit: LinearParameters | SlotCircuit | Sigmoid
    model: Literal["plain", "encrypted"] = "plain"
    protect_model: bool = False
    max_rows: int = 0
    shareable_rows: int = 0

    def __post_init__(self) -> None:
        d = len(self.features)
        if not 1 <= d <= MAX_FEATURES or len(set(self.features)) != d or len(self.bounds) != d:
            raise ParameterError("a plan has one bound for each feature, and no name twice")
        for bound in (*self.bounds, self.logit_bound):
            if not (2.0**-120 <= bound <= 2.0**220 and math.frexp(bound)[0] == 0.5):
                raise ParameterError("a plan's bounds are powers of 2")
        check_classes(self.classes)
        if not (0 < self.error < self.precision < 1):
            raise ParameterError("a plan's precision lies between its error and 1")
        if not sums(self.link, self.classes):
            raise ParameterError("the plan's classes do not match its link")
        if self.max_rows < 0 or self.shareable_rows < 0:
            raise ParameterError("a number of rows cannot be negative")
        if isinstance(self.circuit, LinearParameters):
            self._check_hiding(self.circuit)
            return
        if self.model == "encrypted" or self.protect_model or self.shareable_rows:
            raise ParameterError(
                "a server computes on SEAL only with a plain, unprotected model, and for the "
                "client alone"
            )
        if isinstance(self.circuit, Sigmoid):
            self._check_sigmoid(self.circuit)
        else:
            self._check_slots(self.circuit)

    def _check_slots(self, c: SlotCircuit) -> None:
        if len(self.features) > MOST_FEATURES:
            raise ParameterError("the plan has more features than its circuit takes")
        if not c.holds(self.logit_bound):
            raise ParameterError("the plan's modulus does not hold its largest logit")
        self._check_error((len(self.features) + 2) / 2 / 2.0**c.weight_bits)

    def _check_error(self, least: float) -> None:
        """Refuse an error below the least one with these digits, whatever the weights."""
        if self.error * (1 + _TINY) < least:
            raise ParameterError("the plan's error is less than its digits and noise allow")
        # Rounding takes the other half.
        if self.error > self.precision / 2 * (1 + _TINY):
            raise ParameterError("the plan's error is more than half of its precision")

    def _check_sigmoid(self, c: Sigmoid) -> None:
        if self.link not in ("sigmoid", "ovr"):
            raise ParameterError(
                "a server computes probabilities of two classes or one against the rest only"
            )
        if len(self.features) > sigmoid_plan.MOST_FEATURES:
            raise ParameterError("the plan has more features than its circuit takes")
        if self.error * (1 + _TINY) < c.numeric_error + c.polynomial_error:
            raise ParameterError("the plan's error is less than its circuit's")

    def _check_hiding(self, c: LinearParameters) -> None:
        if self.protect_model and not (c.flood_bits and 1 <= self.max_rows <= len(self.features)):
            raise ParameterError(
                "the plan of a protected model must have flood noise and a limit of rows"
            )
        if self.model == "encrypted" and (self.protect_model or self.shareable_rows):
            raise ParameterError(
                "the results of an encrypted model show it, and are for the client alone"
            )
        if bool(self.shareable_rows) != bool(c.release_bits):
            raise ParameterError(
                "a plan has noise for results if they may be shared, and only then"
            )
        largest = int((self.logit_bound + 1) * (1 << c.scale_bits)) + c.hiding
        if math.prod(c.primes) <= 2 * largest:
            raise ParameterError("the plan's modulus does not hold its largest logit")
        self._check_error(self.inputs / 2 / 2.0**c.weight_bits + c.hiding / 2.0**c.scale_bits)
        for bits, rows, noise in (
            (c.flood_bits, self.max_rows * self.protect_model, public_noise(c.degree)),
            (c.release_bits, self.shareable_rows, 1),
        ):
            if noise * rows * self.outputs << security.HIDING_BITS > 2 << bits:
                raise ParameterError("the plan's noise hides less than the plan says")

    @property
    def outputs(self) -> int:
        """Logits of one row."""
        return sums(self.link, self.classes)

    @property
    def backend(self) -> Backend:
        """The code that computes on ciphertexts."""
        return "native" if isinstance(self.circuit, LinearParameters) else "seal"

    @property
    def linear(self) -> LinearParameters:
        """The circuit, if it is the native one for logits.

        Raises:
            ParameterError: It is not.
        """
        if not isinstance(self.circuit, LinearParameters):
            raise ParameterError("this plan runs on SEAL, not on the native kernels")
        return self.circuit

    @property
    def slots(self) -> SlotCircuit:
        """The circuit, if it is the one for logits over SEAL.

        Raises:
            ParameterError: It is not.
        """
        if not isinstance(self.circuit, SlotCircuit):
            raise ParameterError("this plan is not for logits over SEAL")
        return self.circuit

    @property
    def sigmoid(self) -> Sigmoid:
        """The circuit, if it is the one for probabilities.

        Raises:
            ParameterError: It is not.
        """
        if not isinstance(self.circuit, Sigmoid):
            raise ParameterError("this plan has the server compute logits, not probabilities")
        return self.circuit

    @property
    def public_bytes(self) -> range:
        """Possible lengths of the public part of a client's key, in bytes."""
        c = self.circuit
        if isinstance(c, Sigmoid):
            levels = len(c.moduli) + 1
            return range(1, 2 * c.ring * 8 * levels * levels + _SLACK)
        if self.protect_model or self.model == "encrypted":
            linear = self.linear
            size = wire.packed_size(len(linear.primes) * linear.degree, linear.bits)
            return range(size, size + 1)
        return range(1)

    @property
    def inputs(self) -> int:
        """Encrypted numbers of one row: the features, and a constant for an encrypted intercept."""
        return len(self.features) + (self.model == "encrypted")

    @property
    def components(self) -> int:
        """Polynomials of a reply's ciphertext; a product of two ciphertexts has three."""
        return 3 if self.model == "encrypted" else 2

    @property
    def decimals(self) -> int:
        """Decimals to which results are rounded: as few as the precision allows."""
        return math.ceil(-math.log10(2 * (self.precision - self.error)) - 1e-9)

    def sections(self, rows: int) -> list[RowRun]:
        """Return the layout of a request's rows.

        A protected model answers few rows. They are laid out by rows, in groups so small that a
        false public key shows less than a twentieth of the randomness that hides the model
        (`linear.hide`).
        """
        c = self.linear
        if not self.protect_model:
            return sections(c.degree, self.inputs, self.outputs, rows)
        shown = math.prod(c.primes).bit_length() - c.flood_bits
        most = max(1, int(_SHOWN * c.degree / shown))
        return [RowRun(c.degree, self.inputs, False, 0, rows, most)]

    def sizes(self, rows: int) -> tuple[int, int]:
        """Return the residues of a request's and a reply's vectors for so many rows."""
        c = self.linear
        up = down = 0
        for section in self.sections(rows):
            up += section.polynomials * c.degree
            masks = (self.components - 1) * section.groups * c.degree
            down += self.outputs * (section.rows + masks)
        return len(c.primes) * up, len(c.primes) * down

    @property
    def weight_residues(self) -> int:
        """Residues of an encrypted model: two layouts of two parts each; 0 for a plain model."""
        if self.model == "plain":
            return 0
        c = self.linear
        terms = self.inputs - (-self.inputs // c.degree)
        return 2 * len(c.primes) * self.outputs * terms * c.degree

    @property
    def rows_per_request(self) -> int:
        """Most rows of one request; a longer table takes several."""
        c = self.circuit
        if isinstance(c, LinearParameters):
            # By rows, a row of more than N features takes whole polynomials of its own.
            width = self.inputs + (c.degree if self.inputs > c.degree else 0) + 3 * self.outputs
            room = wire.MAX_ELEMENTS // (len(c.primes) * width)
            return max(1, min(MAX_ROWS, self.max_rows or MAX_ROWS, room))
        batch = max(len(self.features) * c.column_bytes, self.outputs * c.result_bytes)
        batches = _MAX_BATCHES if isinstance(c, Sigmoid) else MAX_ROWS // c.rows
        most = c.rows * max(1, min(batches, _MAX_BYTES // batch))
        return min(most, self.max_rows or most)

    @property
    def largest_body(self) -> int:
        """Largest size of a message's body, in bytes."""
        if isinstance(self.circuit, LinearParameters):
            residues = max(*self._most_residues(), self.weight_residues)
            return wire.packed_size(residues, self.circuit.bits) + _SLACK
        # Compression may gain nothing: count whole words instead of bits.
        return 4 * int(sum(self.bytes_per_row(self.rows_per_request)) * self.rows_per_request) + (
            _SLACK
        )

    def _most_residues(self) -> tuple[int, int]:
        """Return the largest `sizes` of all requests that the plan allows."""
        c, most = self.linear, self.rows_per_request
        if self.protect_model:
            return self.sizes(most)
        # Rows that do not fill a column go by rows only if that takes fewer polynomials.
        terms = -(-self.inputs // c.degree)
        groups = max(1, (self.inputs + self.outputs - 1) // (terms + self.outputs))
        whole = (most - 1) // c.degree
        up = max(self.inputs, groups * terms) + whole * self.inputs
        down = most + (whole + groups) * (self.components - 1) * c.degree
        return len(c.primes) * up * c.degree, len(c.primes) * self.outputs * down

    def bytes_per_row(self, rows: int) -> tuple[float, float]:
        """Return the bytes of a request and of a reply for each row, without the envelopes."""
        if isinstance(self.circuit, LinearParameters):
            up, down = self.sizes(rows)
            return up * self.circuit.bits / 8 / rows, down * self.circuit.bits / 8 / rows
        batches = -(-rows // self.circuit.rows) / rows
        there = batches * len(self.features) * self.circuit.column_bytes
        return there, batches * self.outputs * self.circuit.result_bytes

    @property
    def digest(self) -> bytes:
        """SHA-256 of the whole plan."""
        return hashlib.sha256(msgspec.json.encode(self)).digest()

    def describe(self) -> list[tuple[str, str]]:
        """Return the facts that a person wants to know, as pairs of name and value."""
        c = self.circuit
        returns = "logits, one multiplication deep, no rotations or keys"
        if isinstance(c, LinearParameters):
            degree, primes, full = c.degree, c.primes, c.degree
        else:
            degree, primes, full = c.ring, c.chain.primes, c.rows
            if isinstance(c, Sigmoid):
                returns = f"probabilities, by a polynomial of degree {c.degree} for +-{c.domain:g}"
        full = min(full, self.max_rows or full)
        one, many = self.bytes_per_row(1), self.bytes_per_row(full)
        hidden = (
            f"all but the logits, for {self.max_rows:,} rows of an honest client"
            if self.protect_model
            else "no: a client that looks at replies learns the weights"
        )
        shared = (
            f"anybody, of {self.shareable_rows:,} rows (2^-40, by the server's word)"
            if self.shareable_rows
            else "the client, and who sees no ciphertexts"
        )
        bits = math.prod(primes).bit_length()
        facts = [
            ("scheme", SCHEME),
            ("backend", _BACKENDS[self.backend]),
            ("reviewed by", REVIEWERS[self.backend]),
            ("features, classes", f"{len(self.features):,}, {len(self.classes):,}"),
            ("the server returns", returns),
            ("ring degree", f"{degree:,}"),
            ("modulus", f"{bits} bits, {len(primes)} prime{'s' * (len(primes) > 1)}"),
            ("security", f"128 bits (up to {security.LARGEST[degree]} bits of modulus)"),
            ("largest logit", f"{self.logit_bound:g}"),
            ("error at most", f"{self.precision:.3g} ({self.error:.2g} unrounded)"),
        ]
        if isinstance(c, Sigmoid):
            facts.append(("  of the polynomial", f"{c.polynomial_error:.2g}"))
        facts += [
            ("bytes there, back, 1 row", f"{one[0]:,.0f}, {one[1]:,.0f}"),
            (f"a row of {full:,} rows", f"{many[0]:,.0f}, {many[1]:,.0f}"),
            ("hides the model", hidden),
            ("results are for", shared),
        ]
        if self.protect_model:
            shown = bits - self.linear.flood_bits
            facts.append(("a client that deviates", f"reads up to {shown} bits a row and logit"))
        if self.model == "encrypted":
            facts.append(("the model is", "encrypted: the server sees neither rows nor weights"))
        return facts

    def __str__(self) -> str:
        """Return the plan as lines for a terminal."""
        facts = self.describe()
        width = max(len(what) for what, _ in facts)
        return "\n".join(f"{what:<{width}}  {value}" for what, value in facts)
