"""Both sides of the linear circuit, on message bodies: rows to ciphertexts to logits."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from securecomp.ckks import inputs
from securecomp.ckks.decrypted import Decrypted
from securecomp.ckks.enrolment import Kind, Registration
from securecomp.ckks.inference_messages import EncryptedLogits, EncryptedWeights, Query
from securecomp.ckks.model_check import check_logits, check_model
from securecomp.ckks.native import layout, linear, ring_kernels
from securecomp.ckks.native.encryption import SEED_BYTES, RingPublicKey, RingSecretKey, polynomials
from securecomp.ckks.native.ring import Polynomials, Ring
from securecomp.ckks.plan import InferencePlan
from securecomp.ckks.scaled_model import Scaled
from securecomp.core import buffers, prg
from securecomp.core import field_kernels as packing
from securecomp.core.entropy import Entropy
from securecomp.core.parallel import run_parts
from securecomp.core.secret import Secret
from securecomp.errors import DecodeError, ParameterError
from securecomp.models import LogisticModel
from securecomp.protocol import wire

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]


class LogitClient(Secret):
    """Encrypts rows and decrypts logits.

    Args:
        plan: With a linear circuit.
        secret: 32 secret bytes. None draws new ones.
        entropy: Source of keys, masks and noise.
        workers: Threads.
    """

    QUERY = Query
    ANSWER = EncryptedLogits
    kind: Kind = "logits"

    def __init__(
        self, plan: InferencePlan, secret: bytes | None, entropy: Entropy, workers: int
    ) -> None:
        self._plan = plan
        self._ring = plan.linear.ring
        self._entropy = entropy
        self._workers = workers
        self.secret = entropy(SEED_BYTES) if secret is None else secret
        if len(self.secret) != SEED_BYTES:
            raise DecodeError(f"the key's secret has {len(self.secret)} bytes, not {SEED_BYTES}")
        # Another key for another plan, even if somebody brings the same secret.
        self._key = RingSecretKey(self._ring, prg.derive(self.secret, "ckks key", plan.digest))

    def public(self) -> tuple[bytes, bytes]:
        """Return the public part of the key: a seed and b, or nothing if none is needed."""
        if not (self._plan.protect_model or self._plan.model == "encrypted"):
            return b"", b""
        key = self._key.public(self._entropy)
        return key.seed, pack(self._ring, key.b)

    def encrypt(self, array: Floats, request: bytes) -> wire.Bytes:
        """Return the body of a request for rows that were checked, shape (n, d)."""
        ring, key = self._ring, self._key
        lift = ring.number(1 << self._plan.linear.lift_bits)
        numbers = inputs.integers(array, self._plan)
        seed = self._entropy(SEED_BYTES)
        noise_key = prg.derive(self._entropy(SEED_BYTES), "ckks noise")
        found = self._plan.sections(len(array))
        out = polynomials(ring, sum(section.polynomials for section in found))

        def work(blocks: Sequence[layout.Batch]) -> None:
            noise = prg.Uniform(noise_key)
            masks = [ring.stream(seed, level) for level in range(ring.levels)]
            room = ring.step * ring.degree
            coefficients = buffers.residues(room).view(np.int64).reshape(ring.step, ring.degree)
            drawn = buffers.residues(room).reshape(ring.step, ring.degree)
            for block in blocks:
                count = block.terms.stop - block.terms.start
                messages, a = coefficients[:count], drawn[:count]
                block.section.pack(numbers, block.group, block.terms, messages)
                key.encrypt(
                    messages,
                    lift,
                    (ring.fill(s, level, block.index, a) for level, s in enumerate(masks)),
                    noise.words(messages.size, block.index),
                    out[:, block.first : block.first + count],
                )

        run_parts(work, layout.blocks(found, ring.step), self._workers)
        return body(
            Query(request, len(array), seed, wire.Vector(ring.bits, out.size)), out, ring.bits
        )

    def decrypt(
        self, answer: EncryptedLogits, payload: memoryview, rows: int, first: int = 1
    ) -> Decrypted:
        """Return logits, shape (n, K), not rounded.

        Raises:
            DecodeError: Not the answer's residues, or a logit beyond the plan's bound.
        """
        ring, plan = self._ring, self._plan
        outputs = plan.outputs
        residues = _residues(ring, answer.residues, payload, plan.sizes(rows)[1])
        bodies = residues[:, : outputs * rows].reshape(ring.levels, outputs, rows).copy()
        masks = residues[:, outputs * rows :].reshape(
            ring.levels, -1, plan.components - 1, ring.degree
        )
        position = 0
        for section in plan.sections(rows):
            for group in range(section.groups):
                where, place = section.positions(group), section.place(group)
                for output in range(outputs):
                    phase = self._key.phase(masks[:, position])
                    for level, q in enumerate(ring.moduli):
                        ring_kernels.add(bodies[level, output, place], phase[level][where], q)
                    position += 1
        if plan.linear.release_bits:
            # Derived from the answer, so that reading it twice tells no more than reading it once.
            seed = prg.derive(self.secret, "ckks release", hashlib.sha256(payload).digest())
            _add(ring, bodies, linear.flood(ring, plan.linear.release_bits, outputs * rows, seed))
        logits = ring.scaled(bodies, plan.linear.scale_bits).T
        check_logits(logits, plan, first)
        return Decrypted.inside(logits)

    def __repr__(self) -> str:
        return f"LogitClient({self._ring!r})"


class LogitServer:
    """Computes logits, with a model that it knows or has encrypted for each client.

    Args:
        plan: With a linear circuit.
        model: The model. None if it comes encrypted.
        entropy: Source of the randomness that hides the model.
        workers: Threads.

    Raises:
        ParameterError: The plan was not made for this model.
    """

    QUERY = Query
    ANSWER = EncryptedLogits

    def __init__(
        self, plan: InferencePlan, model: LogisticModel | None, entropy: Entropy, workers: int
    ) -> None:
        self._plan = plan
        self._ring = plan.linear.ring
        self._entropy = entropy
        self._workers = workers
        self._weights = None
        if model is not None:
            self._weights = linear.PlainWeights(plan, *integers(model, plan))

    def admit(self, registration: Registration) -> "LogitAccount":
        """Return a client's account.

        Raises:
            DecodeError: The client's public key is malformed.
        """
        public = public_key(self._ring, registration) if registration.seed else None
        return LogitAccount(self, public, self._weights)

    def load(self, message: EncryptedWeights, payload: memoryview) -> linear.WeightCiphertexts:
        """Read an encrypted model.

        Raises:
            DecodeError: Another size than the plan's, or residues that are not canonical.
        """
        plan, ring = self._plan, self._ring
        residues = _residues(ring, message.residues, payload, plan.weight_residues)
        shape = (ring.levels, 2, plan.outputs, -1, ring.degree)
        columns = 2 * plan.outputs * plan.inputs * ring.degree
        return linear.WeightCiphertexts(
            plan, residues[:, :columns].reshape(shape), residues[:, columns:].reshape(shape)
        )

    def answer(
        self,
        weights: linear.Weights,
        public: RingPublicKey | None,
        query: Query,
        payload: memoryview,
    ) -> wire.Bytes:
        """Return the body of an answer.

        Raises:
            DecodeError: The request has another size, or residues that are not canonical.
        """
        plan, ring = self._plan, self._ring
        if len(query.seed) != SEED_BYTES:
            raise DecodeError(f"the request's seed has {len(query.seed)} bytes, not {SEED_BYTES}")
        size = plan.sizes(query.rows)[0]
        words = wire.packed_words(query.residues, payload, size, ring.bits)
        count = size // (ring.levels * ring.degree)

        def source(level: int, position: int) -> Words:
            return words[(level * count + position) * ring.degree * ring.bits // 64 :]

        total = linear.evaluate(weights, query.rows, query.seed, source, self._workers)
        if plan.protect_model:
            if public is None:
                raise ParameterError("a protected model needs the client's public key")
            linear.hide(plan, total, public, self._entropy)
        residues = self._logits(weights, total, query.rows)
        vector = wire.Vector(ring.bits, residues.size)
        return body(EncryptedLogits(query.request, query.rows, vector), residues, ring.bits)

    def _logits(self, weights: linear.Weights, total: Polynomials, rows: int) -> Words:
        """Return the residues of an answer, shape (L, n): of logits and of no other coefficient."""
        plan, ring = self._plan, self._ring
        bodies = np.ascontiguousarray(total[:, :, :, 0])
        ring.to_coefficients(bodies)
        logits = np.empty((ring.levels, plan.outputs, rows), np.uint64)
        position = 0
        for section in plan.sections(rows):
            for group in range(section.groups):
                where = section.positions(group)
                logits[:, :, section.place(group)] = bodies[:, position][..., where]
                position += 1
        for level, q in enumerate(ring.moduli):
            for output in range(plan.outputs):
                intercept = np.full(rows, weights.intercepts[level, output])
                ring_kernels.add(logits[level, output], intercept, q)
        if plan.protect_model:
            seed = self._entropy(SEED_BYTES)
            _add(ring, logits, linear.flood(ring, plan.linear.flood_bits, logits[0].size, seed))
        masks = total[:, :, :, 1:].reshape(ring.levels, -1)
        return np.concatenate([logits.reshape(ring.levels, -1), masks], axis=1)


class LogitAccount:
    """One client's public key and its weights, with which requests are answered."""

    def __init__(
        self, server: LogitServer, public: RingPublicKey | None, weights: linear.Weights | None
    ) -> None:
        self._server = server
        self._public = public
        self._weights = weights

    @property
    def ready(self) -> bool:
        """Whether a model is loaded."""
        return self._weights is not None

    def load(self, message: EncryptedWeights, payload: memoryview) -> None:
        """Load a model under the client's key. Raises the errors of `LogitServer.load`."""
        self._weights = self._server.load(message, payload)

    def answer(self, query: Query, payload: memoryview) -> wire.Bytes:
        """Return the body of an answer. Raises the errors of `LogitServer.answer`."""
        if self._weights is None:
            raise ParameterError("no model is loaded for this client's key")
        return self._server.answer(self._weights, self._public, query, payload)


def integers(model: LogisticModel, plan: InferencePlan) -> tuple[list[list[int]], list[int]]:
    """Return a model's weights and intercepts at a plan's scales.

    Raises:
        ParameterError: The plan was not made for this model.
    """
    check_model(model, plan)
    circuit, encrypted = plan.linear, plan.model == "encrypted"
    scaled = Scaled(model, plan.bounds)
    scaled.check_hidden(plan)
    if scaled.logit > plan.logit_bound or scaled.error(circuit, encrypted) > plan.error:
        raise ParameterError(
            "the plan is for other weights: this model's logits or error are larger; plan again "
            "for this model"
        )
    return scaled.integers(circuit, encrypted)


def _add(ring: Ring, acc: Polynomials, numbers: Polynomials) -> None:
    """Add residues, shape (L, n), in place."""
    for level, q in enumerate(ring.moduli):
        ring_kernels.add(acc[level].reshape(-1), numbers[level], q)


def body(message: wire.Message, residues: Words, bits: int) -> wire.Bytes:
    """Return the body of a message and its residues, of any shape."""
    flat = residues.reshape(-1)
    return wire.encode_body(message, flat.size, lambda a, b: flat[a:b], bits)


def _residues(ring: Ring, vector: wire.Vector, payload: memoryview, size: int) -> Words:
    """Return a payload's residues, shape (L, size / L)."""
    # Residues of 32 bits come in another integer type.
    flat = wire.unpack(vector, payload, size, ring.bits).astype(np.uint64, copy=False)
    residues = flat.reshape(ring.levels, -1)
    if not all(ring_kernels.canonical(residues[i], q) for i, q in enumerate(ring.moduli)):
        raise DecodeError("a residue is not below its prime")
    return residues


def packed_bytes(ring: Ring) -> int:
    """Return the bytes of one packed polynomial."""
    return wire.packed_size(ring.levels * ring.degree, ring.bits)


def pack(ring: Ring, values: Polynomials) -> bytes:
    """Return a polynomial's bytes."""
    words = np.zeros(packed_bytes(ring) // 8, "<u8")
    packing.pack(np.ascontiguousarray(values).reshape(-1), ring.bits, words)
    return words.tobytes()


def public_key(ring: Ring, registration: Registration) -> RingPublicKey:
    """Return the public key of a client's ciphertexts.

    Raises:
        DecodeError: It has residues that are not canonical.
    """
    vector = wire.Vector(ring.bits, ring.levels * ring.degree)
    b = _residues(ring, vector, memoryview(registration.public), vector.length)
    return RingPublicKey(ring, registration.seed, b)
