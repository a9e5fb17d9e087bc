"""The server: has the model, computes on rows that it cannot read."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from securecomp import identity as identity_
from securecomp import wire
from securecomp.ckks import kernels, layout, linear, planner
from securecomp.ckks.agreement import Engagement, Offer, Registration
from securecomp.ckks.encryption import SEED_BYTES, PublicKey
from securecomp.ckks.ledger import Ledger, MemoryLedger
from securecomp.ckks.messages import REQUEST_BYTES, Answer, EncryptedWeights, Query
from securecomp.ckks.model import LogisticModel
from securecomp.ckks.plan import MAX_ROWS, Plan
from securecomp.ckks.ring import Polynomials
from securecomp.core import entropy as entropy_
from securecomp.core import kernels as packing
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.identity import Identity
from securecomp.roles import Role, State

_Words = npt.NDArray[np.uint64]


class _Client:
    """A registered client: its key, and the weights that answer it."""

    def __init__(self, engagement: Engagement, public: PublicKey | None) -> None:
        self.engagement = engagement
        self.public = public
        self.weights: linear.Weights | None = None


class InferenceServer(Role):
    """Answers registered clients' requests. Holds no key that opens them.

    What it learns: who asks when, for how many rows; nothing of the rows, under ring-LWE, whatever
    it does. What clients learn of the model: by default everything. An answer's ciphertext carries
    the weights besides the logits, and d + 1 logits of independent rows determine d weights and an
    intercept. With `protect_model` a client that encrypts honestly learns its logits and nothing
    else (2^-40 away, ring-LWE), for at most d rows. One that encrypts numbers beyond the plan's
    bounds still gets no more than each answer's digits above the noise hold: up to
    log2(modulus / 2^flood_bits) bits a row.
    """

    TRANSITIONS: ClassVar = {
        (State.READY, "register"): State.READY,
        (State.READY, "load_model"): State.READY,
        (State.READY, "predict"): State.READY,
    }

    def __init__(
        self,
        offer: Offer,
        identity: Identity,
        model: LogisticModel | None,
        *,
        ledger: Ledger | None = None,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Take an offer and the model that it was made for; `create` makes an offer.

        Args:
            offer: The server's own.
            identity: The key that it names.
            model: None if it comes encrypted from its owner.
            ledger: Where answered requests are kept; a file's outlives the process.
            workers: Threads.
            entropy: Source of what hides the model.

        Raises:
            KeyMismatchError: The offer is another server's.
            ParameterError: The offer's plan does not fit the model.
        """
        super().__init__(offer.server, State.READY)
        if identity.public != offer.key:
            raise KeyMismatchError(f"this identity is not {offer.server!r} of the offer")
        self.offer = offer
        self._plan = offer.plan
        self._identity = identity
        self._ledger = ledger or MemoryLedger()
        self._workers = workers
        self._entropy = entropy
        self._clients: dict[bytes, _Client] = {}
        self._weights: linear.PlainWeights | None = None
        if (model is None) != (self._plan.model == "encrypted"):
            raise ParameterError("a plain plan needs the model, an encrypted one comes without")
        if model is not None:
            self._weights = linear.PlainWeights(self._plan, *integers(model, self._plan))

    @classmethod
    def create(
        cls,
        model: LogisticModel,
        name: str = "server",
        *,
        precision: float = 1e-4,
        protect_model: bool = False,
        max_rows: int | None = None,
        identity: Identity | None = None,
        ledger: Ledger | None = None,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> "InferenceServer":
        """Plan, and draw an identity if there is none. Arguments as `planner.plan` takes them."""
        plan = planner.plan(
            model, precision=precision, protect_model=protect_model, max_rows=max_rows
        )
        identity = identity or Identity.generate(entropy)
        offer = Offer(name, identity.public, plan)
        return cls(offer, identity, model, ledger=ledger, workers=workers, entropy=entropy)

    def register(self, registration: bytes) -> str:
        """Take a client, or a client's new key; return its name.

        A client is who the operator says it is: compare the fingerprints.

        Raises:
            DecodeError, AuthenticationError, KeyMismatchError: No registration for this offer.
            ParameterError: Another client has this name.
        """
        self.state = self._next("register")
        found = Registration.decode(registration, self.offer)
        for other in self._clients.values():
            known = other.engagement.registration
            if (known.client == found.client) != (known.key == found.key):
                raise ParameterError(
                    f"{found.client}: this name or key is registered with another; a client "
                    "that rotates its ciphertexts' key keeps both"
                )
        engagement = Engagement(self.offer, found)
        public = found.public(self._plan.circuit.ring) if found.seed else None
        if engagement.id not in self._clients:
            self._clients[engagement.id] = _Client(engagement, public)
        return found.client

    def load_model(self, data: wire.Buffer) -> str:
        """Take the model that its owner encrypted for one client; return the client's name.

        Raises:
            LocalProtocolError: The plan is for a model that the server knows.
            DecodeError, AuthenticationError, RemoteProtocolError: Not the owner's message, or
                malformed.
        """
        self.state = self._next("load_model")
        if self._plan.model == "plain":
            raise LocalProtocolError(f"{self.name}: the plan is for a model that is not encrypted")
        client, message, payload = self._open(data, EncryptedWeights, self.offer.owner)
        plan = self._plan
        ring = plan.circuit.ring
        try:
            flat = wire.unpack(message.residues, payload, plan.weight_residues, ring.bits)
            residues = flat.reshape(ring.levels, -1)
            if not all(kernels.canonical(residues[i], q) for i, q in enumerate(ring.moduli)):
                raise DecodeError("the model has a residue that is not below its prime")
        except DecodeError as error:
            raise RemoteProtocolError(self.offer.owner, str(error)) from None
        shape = (ring.levels, 2, plan.outputs, -1, ring.degree)
        columns = 2 * plan.outputs * plan.inputs * ring.degree
        client.weights = linear.EncryptedWeights(
            plan, residues[:, :columns].reshape(shape), residues[:, columns:].reshape(shape)
        )
        return client.engagement.registration.client

    def predict(self, data: wire.Buffer) -> wire.Buffer:
        """Answer one request. One that is refused leaves the server as it was.

        Raises:
            DecodeError: Not a message, or larger than any.
            AuthenticationError: Not the client's that it names, or changed on the way.
            RemoteProtocolError: Of no registered client, answered before, or malformed.
            BudgetError: The client would get more rows than the plan allows.
        """
        self.state = self._next("predict")
        client, query, payload = self._open(data, Query)
        name = client.engagement.registration.client
        if client.weights is None:
            client.weights = self._weights
        if client.weights is None:
            raise LocalProtocolError(f"{name}: no model is loaded for this client's key")
        account = (name, query.request, query.rows, self._plan.max_rows)
        self._ledger.check(*account)
        try:
            words = self._words(query, payload)
            total = self._evaluate(client.weights, query, words)
        except DecodeError as error:
            raise RemoteProtocolError(name, str(error)) from None
        answer = self._answer(client, client.weights, query, total)
        # What was refused costs nothing; what leaves was counted before.
        self._ledger.spend(*account)
        return answer

    def _open(
        self, data: wire.Buffer, kind: type[wire.M], sender: str | None = None
    ) -> tuple[_Client, wire.M, memoryview]:
        header, _, _ = wire.split_header(data)
        client = self._clients.get(header.session)
        if client is None:
            raise RemoteProtocolError(
                header.sender, "is not registered with this key; register it", authenticated=False
            )
        engagement = client.engagement
        header, body = identity_.open_sealed(
            self._identity, engagement, engagement.agreement, data, self.name
        )
        expected = sender or engagement.registration.client
        if header.kind != kind.KIND or header.sender != expected:
            raise RemoteProtocolError(
                header.sender, f"sent message kind {header.kind}, which is not its to send here"
            )
        try:
            return client, *wire.decode_body(body, kind)
        except DecodeError as error:
            raise RemoteProtocolError(header.sender, str(error)) from None

    def _words(self, query: Query, payload: memoryview) -> _Words:
        if len(query.request) != REQUEST_BYTES or len(query.seed) != SEED_BYTES:
            raise DecodeError("the request's id or seed has another length")
        if not 1 <= query.rows <= MAX_ROWS:
            raise DecodeError(f"a request has 1 to {MAX_ROWS:,} rows, not {query.rows}")
        size = self._plan.sizes(query.rows)[0]
        return wire.packed_words(query.residues, payload, size, self._plan.circuit.ring.bits)

    def _evaluate(self, weights: linear.Weights, query: Query, words: _Words) -> Polynomials:
        ring = self._plan.circuit.ring
        polynomials = self._plan.sizes(query.rows)[0] // (ring.levels * ring.degree)

        def unpack(level: int, position: int, count: int, out: _Words) -> None:
            start = (level * polynomials + position) * ring.degree * ring.bits // 64
            flat = out[:count].reshape(-1)
            packing.unpack(words[start:], ring.bits, flat)
            if not kernels.canonical(flat, ring.moduli[level]):
                raise DecodeError("the request has a residue that is not below its prime")

        return linear.evaluate(weights, query.rows, query.seed, unpack, self._workers)

    def _answer(
        self, client: _Client, weights: linear.Weights, query: Query, total: Polynomials
    ) -> wire.Buffer:
        plan = self._plan
        ring = plan.circuit.ring
        if plan.protect_model and client.public is not None:
            linear.hide(plan, total, client.public, self._entropy)
        residues = self._residues(weights, total, query.rows).reshape(-1)
        message = Answer(query.request, query.rows, wire.Vector(ring.bits, residues.size))
        body = wire.encode_body(message, residues.size, lambda a, b: residues[a:b], ring.bits)
        engagement = client.engagement
        header = engagement.header(
            Answer.KIND, self.name, engagement.registration.client, engagement.agreement
        )
        return identity_.seal(self._identity, engagement, header, body, self._entropy)

    def _residues(self, weights: linear.Weights, total: _Words, rows: int) -> _Words:
        """Return what the client needs, shape (L, n): no coefficient that is not a logit's."""
        plan = self._plan
        ring = plan.circuit.ring
        bodies = np.ascontiguousarray(total[:, :, :, 0])
        ring.to_coefficients(bodies)
        logits = np.empty((ring.levels, plan.outputs, rows), np.uint64)
        position = 0
        for section in layout.sections(ring.degree, plan.inputs, plan.outputs, rows):
            for group in range(section.groups):
                start = section.start + group * section.capacity
                place = slice(start, start + section.count(group))
                logits[:, :, place] = bodies[:, position][..., section.positions(group)]
                position += 1
        for level, q in enumerate(ring.moduli):
            for output in range(plan.outputs):
                number = np.full(rows, weights.intercepts[level, output])
                kernels.add(logits[level, output], number, q)
        if plan.protect_model:
            noise = linear.flood(plan, plan.outputs * rows, self._entropy(SEED_BYTES))
            for level, q in enumerate(ring.moduli):
                kernels.add(logits[level].reshape(-1), noise[level], q)
        masks = total[:, :, :, 1:]
        return np.concatenate(
            [logits.reshape(ring.levels, -1), masks.reshape(ring.levels, -1)], axis=1
        )

    def _drop(self) -> None:
        self._weights = None
        self._clients.clear()


def integers(model: LogisticModel, plan: Plan) -> tuple[list[list[int]], list[int]]:
    """Return a model's weights and intercepts at a plan's scales.

    Raises:
        ParameterError: The plan was not made for this model.
    """
    if (model.features, model.classes, model.link) != (plan.features, plan.classes, plan.link):
        raise ParameterError("the plan is for other features or classes than the model's")
    scaled = planner.Scaled(model, plan.bounds)
    encrypted = plan.model == "encrypted"
    if scaled.logit > plan.logit_bound or scaled.error(plan.circuit, encrypted) > plan.error:
        raise ParameterError(
            "the plan is for other weights: this model's logits or error are larger; plan again"
        )
    return scaled.integers(plan.circuit, encrypted)
