"""Both sides of the circuit for logits over SEAL, on message bodies."""

from functools import cache

import numpy as np
import numpy.typing as npt

from securecomp.ckks.decrypted import Decrypted
from securecomp.ckks.enrolment import Kind, Registration
from securecomp.ckks.inference_messages import Columns, EncryptedSlots
from securecomp.ckks.model_check import check_logits, check_model
from securecomp.ckks.plan import InferencePlan
from securecomp.ckks.scaled_model import Scaled
from securecomp.ckks.seal import slot_plan
from securecomp.ckks.seal.seal_context import Context, SealSecretKey, refusing
from securecomp.ckks.seal.weighted_columns import weighted_sums
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import DecodeError, ParameterError
from securecomp.models import LogisticModel
from securecomp.protocol import wire

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]


class SlotClient(Secret):
    """Encrypts rows and decrypts logits. SEAL draws the randomness of key and ciphertexts.

    Args:
        plan: With a circuit for logits over SEAL.
        secret: The key's bytes. None draws a new key.
        entropy: Source of the dither.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        DecodeError: `secret` is not a key of this plan.
    """

    QUERY = Columns
    ANSWER = EncryptedSlots
    kind: Kind = "logits"

    def __init__(self, plan: InferencePlan, secret: bytes | None, entropy: Entropy) -> None:
        self._plan = plan
        self._circuit = plan.slots
        self._entropy = entropy
        self._context = Context(self._circuit.chain)
        self._key = (
            SealSecretKey(self._context)
            if secret is None
            else SealSecretKey.from_bytes(self._context, secret)
        )
        self.secret = self._key.to_bytes()

    def public(self) -> tuple[bytes, bytes]:
        """Return the public part of the key: none is needed."""
        return b"", b""

    def encrypt(self, array: Floats, request: bytes) -> wire.Bytes:
        """Return the body of a request for rows that were checked, shape (n, d)."""
        scaled = array / np.array(self._plan.bounds)
        size = self._circuit.rows
        batches = [self._batch(scaled[i : i + size]) for i in range(0, len(scaled), size)]
        return wire.encode_body(Columns(request, len(array), batches))

    def _batch(self, rows: Floats) -> list[bytes]:
        slots, scale = self._circuit.rows // 2, 2.0**self._circuit.input_bits
        pairs = np.zeros((rows.shape[1], slots), np.complex128)
        pairs.real[:, : len(rows)] = rows[:slots].T
        pairs.imag[:, : max(0, len(rows) - slots)] = rows[slots:].T
        words = prg.expand_words(self._entropy(prg.SEED_BYTES), pairs.size).view(np.uint32)
        for column, part in zip(pairs, words.reshape(len(pairs), -1), strict=True):
            column += dither(part) / scale
        return [self._key.encrypt(column, scale) for column in pairs.tolist()]

    def decrypt(
        self, answer: EncryptedSlots, payload: memoryview, rows: int, first: int = 1
    ) -> Decrypted:
        """Return logits, shape (n, K), not rounded.

        Raises:
            DecodeError: Another number of batches than asked for, not results of this plan, or a
                logit beyond the plan's bound.
        """
        size, outputs = self._circuit.rows, self._plan.outputs
        count = -(-rows // size)
        if len(payload) or [len(batch) for batch in answer.batches] != [outputs] * count:
            raise DecodeError("the answer has another number of batches or results than asked for")
        found = np.empty((rows, outputs))
        for start, batch in zip(range(0, rows, size), answer.batches, strict=True):
            place = slice(start, min(start + size, rows))
            for output, data in enumerate(batch):
                found[place, output] = self._slots(data)[: place.stop - start]
        check_logits(found, self._plan, first)
        return Decrypted.inside(found)

    def _slots(self, data: bytes) -> Floats:
        scale = 2.0**self._circuit.scale_bits
        ciphertext = self._context.load(data, self._circuit.chain.levels, scale, seeded=False)
        pairs = np.array(self._key.decrypt_complex(ciphertext))
        return np.concatenate([pairs.real, pairs.imag])

    def __repr__(self) -> str:
        return f"SlotClient(ring={self._circuit.ring})"


@cache
def _twist(ring: int) -> tuple[Complexes, npt.NDArray[np.intp]]:
    """Return the powers of a 2N-th root of unity, and the transform's place of each slot."""
    powers = np.exp(1j * np.pi * np.arange(ring) / ring)
    exponents = [pow(3, slot, 2 * ring) for slot in range(ring // 2)]
    return powers, (np.array(exponents) - 1) // 2


def dither(words: npt.NDArray[np.uint32]) -> Complexes:
    """Return the slots, shape (N/2,), of a polynomial with coefficients uniform in +-1/2.

    Args:
        words: A random word for each coefficient, shape (N,).
    """
    powers, places = _twist(len(words))
    coefficients = (words + 0.5) / 2.0**32 - 0.5
    values: Complexes = (np.fft.ifft(coefficients * powers) * len(words))[places]
    return values


class SlotServer:
    """Computes logits with a model that it knows.

    Args:
        plan: With a circuit for logits over SEAL.
        model: The model.

    Raises:
        ParameterError: The plan was not made for this model.
        BackendUnavailableError: TenSEAL is not installed.
    """

    QUERY = Columns
    ANSWER = EncryptedSlots

    def __init__(self, plan: InferencePlan, model: LogisticModel | None) -> None:
        if model is None:
            raise ParameterError("the server needs the model to compute logits on SEAL")
        check_model(model, plan)
        circuit, scaled = plan.slots, Scaled(model, plan.bounds)
        if scaled.logit > plan.logit_bound or slot_plan.error(scaled, circuit) > plan.error:
            raise ParameterError(
                "the plan is for other weights: this model's logits or error are larger; plan "
                "again for this model"
            )
        self._plan, self._circuit = plan, circuit
        self._context = Context(circuit.chain)
        self._weights = np.rint(np.ldexp(scaled.weights, circuit.weight_bits))
        scale, level = 2.0**circuit.scale_bits, circuit.chain.levels
        self._intercepts = [
            self._context.encode(complex(c, c), level, scale) if c else None
            for c in model.intercepts
        ]

    def admit(self, _: Registration) -> "SlotServer":
        """Return a client's account: the same for all, as no keys are needed."""
        return self

    @property
    def ready(self) -> bool:
        """The model is there from the beginning."""
        return True

    def answer(self, query: Columns, payload: memoryview) -> wire.Bytes:
        """Return the body of an answer.

        Raises:
            DecodeError: Another number of batches or columns, or not ciphertexts of this plan.
        """
        if len(payload) or len(query.batches) != -(-query.rows // self._circuit.rows):
            raise DecodeError("the request has another number of batches than its rows need")
        batches = [self._logits(columns) for columns in query.batches]
        return wire.encode_body(EncryptedSlots(query.request, query.rows, batches))

    def _logits(self, columns: list[bytes]) -> list[bytes]:
        if len(columns) != len(self._plan.features):
            raise DecodeError(
                f"the request has {len(columns)} columns, not {len(self._plan.features)} as planned"
            )
        context = self._context
        with refusing("ciphertexts of this plan"):
            sums = weighted_sums(context, columns, 2.0**self._circuit.input_bits, self._weights)
            for total, intercept in zip(sums, self._intercepts, strict=True):
                total.scale = 2.0**self._circuit.scale_bits
                if intercept is not None:
                    context.evaluator.add_plain_inplace(total, intercept)
            return [context.save(total) for total in sums]

    def __repr__(self) -> str:
        return f"<SlotServer ring={self._circuit.ring}>"
