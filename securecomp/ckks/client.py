"""The client: has the keys, encrypts rows, reads results. Nobody else does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from securecomp import identity as identity_
from securecomp import wire
from securecomp.ckks import inputs, kernels, layout, model
from securecomp.ckks.agreement import Engagement, Offer, Registration
from securecomp.ckks.encryption import SEED_BYTES, SecretKey, polynomials
from securecomp.ckks.messages import REQUEST_BYTES, Answer, Query
from securecomp.ckks.parallel import run
from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    RemoteProtocolError,
)
from securecomp.identity import Identity
from securecomp.roles import Role, State

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Predictions:
    """What the client reads: logits within the plan's precision, rounded to it.

    Attributes:
        logits: Shape (n, K).
        classes: The labels, in the order of the probabilities.
        link: How logits become probabilities.
    """

    logits: Floats
    classes: tuple[model.Label, ...]
    link: model.Link

    @property
    def probabilities(self) -> Floats:
        """Shape (n, classes)."""
        return model.probabilities(self.logits, self.link)

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The most likely class of each row."""
        return np.array(self.classes)[model.winners(self.logits, self.link)]


class KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client's secrets, as they are kept."""

    format: str
    version: int
    name: str
    identity: bytes
    secret: bytes
    registration: bytes
    offer: Offer

    def __repr__(self) -> str:
        return f"KeyFile({self.name!r})"


_FORMAT = "securecomp ckks client key"


class InferenceClient(Role):
    """Encrypts rows for one server and reads its answers.

    What it shows others: the server learns how many rows it has, nothing of their values (ring-LWE,
    whatever the server does). Results are rounded to the plan's precision: the digits below it
    depend on the secret key, and whoever collects unrounded results of known rows gets the key
    (B. Li, D. Micciancio, On the security of homomorphic encryption on approximate numbers,
    EUROCRYPT 2021). Labels and rounded probabilities may be passed on; the answer's bytes together
    with anything finer than what `decrypt` returns may not.

    A server that answers wrongly is not noticed: only that the answer is the server's is.
    """

    TRANSITIONS: ClassVar = {
        (State.READY, "encrypt"): State.READY,
        (State.READY, "decrypt"): State.READY,
    }

    def __init__(
        self,
        offer: Offer,
        name: str,
        identity: Identity,
        secret: bytes,
        registration: bytes | None = None,
        *,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Take the keys; `create` draws them.

        Args:
            offer: The server's, read over a way that is trusted.
            name: The client's name, which the server knows it by.
            identity: The client's long-term key.
            secret: 32 secret bytes that the ciphertexts' key is expanded from.
            registration: As it was made from these keys; by default it is made.
            workers: Threads.
            entropy: Source of masks and noise.
        """
        super().__init__(name, State.READY)
        self.offer = offer
        self._plan = offer.plan
        self._identity = identity
        self._secret = secret
        self._entropy = entropy
        self._workers = workers
        self._ring = self._plan.circuit.ring
        self._key: SecretKey | None = SecretKey(self._ring, secret)
        if registration is None:
            self._registration = self._register()
        else:
            self._registration = Registration.decode(registration, offer)
            if self._registration.key != identity.public or self._registration.client != name:
                raise KeyMismatchError(f"{name}: the registration is another client's")
        self._engagement = Engagement(offer, self._registration)
        self._pending: dict[bytes, int] = {}

    @classmethod
    def create(
        cls,
        offer: Offer,
        name: str = "client",
        *,
        identity: Identity | None = None,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> "InferenceClient":
        """Draw keys. A client that already has an identity rotates only the ciphertexts' key."""
        identity = identity or Identity.generate(entropy)
        return cls(offer, name, identity, entropy(SEED_BYTES), workers=workers, entropy=entropy)

    def _register(self) -> Registration:
        plan = self._plan
        needed = plan.protect_model or plan.model == "encrypted"
        public = self._open_key().public(self._entropy) if needed else None
        # Of another derivation than the key itself: it identifies, and tells nothing.
        secret_id = prg.derive(self._secret, "ckks key id")[:16]
        return Registration.create(self.offer, self.name, self._identity, secret_id, public)

    def _open_key(self) -> SecretKey:
        if self._key is None:
            raise LocalProtocolError(f"{self.name}: the key was dropped")
        return self._key

    @property
    def registration(self) -> Registration:
        """What the server needs once, before the first request."""
        return self._registration

    def encrypt(self, table: Any) -> wire.Buffer:
        """Encrypt rows for the server.

        Args:
            table: Rows with the plan's features: a table with these columns, or an array (n, d).

        Returns:
            The sealed request.

        Raises:
            ParameterError, RangeError: What `inputs.rows` refuses. Nothing was encrypted.
        """
        self.state = self._next("encrypt")
        array = inputs.rows(table, self._plan)
        numbers = inputs.integers(array, self._plan)
        seed, request = self._entropy(SEED_BYTES), self._entropy(REQUEST_BYTES)
        residues = self._encrypt(numbers, seed).reshape(-1)
        bits = self._ring.bits
        message = Query(request, len(array), seed, wire.Vector(bits, residues.size))
        body = wire.encode_body(message, residues.size, lambda a, b: residues[a:b], bits)
        header = self._engagement.header(
            Query.KIND, self.name, self.offer.server, self._engagement.agreement
        )
        sealed = identity_.seal(self._identity, self._engagement, header, body, self._entropy)
        self._pending[request] = len(array)
        return sealed

    def _encrypt(self, numbers: npt.NDArray[np.int64], seed: bytes) -> npt.NDArray[np.uint64]:
        ring, key = self._ring, self._open_key()
        lift = ring.number(1 << self._plan.circuit.lift_bits)
        found = layout.sections(ring.degree, self._plan.inputs, self._plan.outputs, len(numbers))
        out = polynomials(ring, sum(section.polynomials for section in found))
        noise_key = prg.derive(self._entropy(SEED_BYTES), "ckks noise")

        def work(blocks: Sequence[layout.Block]) -> None:
            noise = prg.Uniform(noise_key)
            masks = [ring.stream(seed, level) for level in range(ring.levels)]
            coefficients = np.empty((ring.step, ring.degree), np.int64)
            drawn = np.empty((ring.step, ring.degree), np.uint64)
            for block in blocks:
                count = block.terms.stop - block.terms.start
                messages, a = coefficients[:count], drawn[:count]
                block.section.pack(numbers, block.group, block.terms, messages)
                place = slice(block.first, block.first + count)
                key.encrypt(
                    messages,
                    lift,
                    (ring.fill(s, level, block.index, a) for level, s in enumerate(masks)),
                    noise.words(messages.size, block.index),
                    out[:, place],
                )

        run(work, layout.blocks(found, ring.step), self._workers)
        return out

    def decrypt(self, data: wire.Buffer, request: wire.Buffer | None = None) -> Predictions:
        """Read an answer, once.

        Args:
            data: The server's answer.
            request: The request that it must belong to, if another process made it.

        Raises:
            DecodeError: Not a message.
            AuthenticationError: Not the server's, or changed on the way.
            RemoteProtocolError: Of another session or request, or malformed.
        """
        self.state = self._next("decrypt")
        if request is not None:
            query, _ = self._read(request, Query, self.name, self.offer.server)
            self._pending[query.request] = query.rows
        answer, payload = self._read(data, Answer, self.offer.server, self.name)
        rows = self._pending.get(answer.request)
        if rows is None:
            raise RemoteProtocolError(
                self.offer.server,
                "answers a request that this client did not make, or that was answered; give the "
                "request if another process made it",
            )
        try:
            residues = self._residues(answer, payload, rows)
        except DecodeError as error:
            raise RemoteProtocolError(self.offer.server, str(error)) from None
        logits = self._logits(residues, rows)
        del self._pending[answer.request]
        return Predictions(logits, self._plan.classes, self._plan.link)

    def _read(
        self, data: wire.Buffer, kind: type[wire.M], sender: str, recipient: str
    ) -> tuple[wire.M, memoryview]:
        header, body = identity_.open_sealed(
            self._identity, self._engagement, self._engagement.agreement, data, recipient
        )
        if header.kind != kind.KIND or header.sender != sender:
            raise RemoteProtocolError(
                header.sender, f"sent message kind {header.kind}, which is not awaited here"
            )
        return wire.decode_body(body, kind)

    def _residues(self, answer: Answer, payload: memoryview, rows: int) -> npt.NDArray[np.uint64]:
        if answer.rows != rows:
            raise DecodeError(f"answers {answer.rows} rows and {rows} were asked")
        size = self._plan.sizes(rows)[1]
        flat = wire.unpack(answer.residues, payload, size, self._ring.bits)
        residues = flat.reshape(self._ring.levels, -1)
        if not all(kernels.canonical(residues[i], q) for i, q in enumerate(self._ring.moduli)):
            raise DecodeError("the answer has a residue that is not below its prime")
        return residues

    def _logits(self, residues: npt.NDArray[np.uint64], rows: int) -> Floats:
        ring, plan, key = self._ring, self._plan, self._open_key()
        outputs = plan.outputs
        bodies = residues[:, : outputs * rows].reshape(ring.levels, outputs, rows).copy()
        masks = residues[:, outputs * rows :].reshape(
            ring.levels, -1, plan.components - 1, ring.degree
        )
        position = 0
        for section in layout.sections(ring.degree, plan.inputs, outputs, rows):
            for group in range(section.groups):
                start = section.start + group * section.capacity
                place = slice(start, start + section.count(group))
                where = section.positions(group)
                for output in range(outputs):
                    phase = key.phase(masks[:, position])
                    for level, q in enumerate(ring.moduli):
                        kernels.add(bodies[level, output, place], phase[level][where], q)
                    position += 1
        logits = ring.scaled(bodies, plan.circuit.scale_bits).T
        if np.abs(logits).max() > plan.logit_bound + 1:
            raise RemoteProtocolError(
                self.offer.server, "a logit is beyond the plan's bound: it did not keep to the plan"
            )
        return np.round(logits, plan.decimals) + 0.0  # no negative zero

    def to_json(self) -> str:
        """Return the secrets as JSON, to be kept where nobody else reads."""
        facts = KeyFile(
            _FORMAT,
            1,
            self.name,
            self._identity.export(),
            self._secret,
            self._registration.encode(),
            self.offer,
        )
        return msgspec.json.encode(facts).decode()

    @classmethod
    def from_json(cls, text: str | bytes, *, workers: int = 1) -> "InferenceClient":
        """Read what `to_json` wrote.

        Raises:
            DecodeError: It is not a client's key.
        """
        try:
            facts = msgspec.json.decode(text, type=KeyFile)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
            raise DecodeError(f"not a client's key: {error}") from None
        if facts.format != _FORMAT or facts.version != 1:
            raise DecodeError(f"not a {_FORMAT} of version 1")
        if len(facts.secret) != SEED_BYTES:
            raise DecodeError("not a client's key: its secret has another length")
        return cls(
            facts.offer,
            facts.name,
            Identity(facts.identity),
            facts.secret,
            facts.registration,
            workers=workers,
        )

    def _drop(self) -> None:
        self._key = None
        self._secret = b""
        self._pending.clear()
