"""The server has the model and computes on rows that it cannot read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import msgspec

from securecomp.ckks import planner
from securecomp.ckks.circuits import Account, server_circuit
from securecomp.ckks.enrolment import (
    KEY_FILE_VERSION,
    SALT_BYTES,
    ClientSession,
    Offer,
    Registration,
    commit,
    read_key_file,
)
from securecomp.ckks.inference_messages import REQUEST_BYTES, EncryptedWeights
from securecomp.ckks.native.logits import LogitAccount
from securecomp.ckks.plan import Backend
from securecomp.ckks.planner import Activation
from securecomp.ckks.request_log import MemoryRequestLog, RequestLog
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.models import LogisticModel
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import Role, State

_FORMAT = "securecomp ckks server key"


class _ServerFile(Secret, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server's secrets, as its file holds them.

    Attributes:
        format: Marks the file.
        version: Of the file.
        identity: The server's key.
        offer: As it was published.
        model: The model's digest; empty if the server does not know the model.
        salt: Opens the offer's commitment to the model; empty with it.
    """

    format: str
    version: int
    identity: bytes
    offer: Offer
    model: bytes
    salt: bytes

    def __repr__(self) -> str:
        return f"_ServerFile({self.offer.server!r})"


@dataclass(frozen=True, slots=True)
class _Client:
    """A registered client, with its account."""

    engagement: ClientSession
    account: Account


class InferenceServer(Role):
    """Answers registered clients' requests. Holds no key that opens them.

    The server learns who asks, when, and for how many rows. Under ring-LWE it learns nothing of
    the rows, whatever it does, as long as no results reach it (`InferenceClient`).

    By default clients can learn the whole model. The ciphertext of an answer carries the weights
    besides the logits, and d + 1 logits of independent rows determine d weights and an intercept.
    With `protect_model`, a client that keeps to the protocol learns its exact logits on the
    circuit's grid and nothing else (2^-40 away, ring-LWE), for at most d rows. A client that
    encrypts other numbers than the plan allows reads the digits of a logit above the noise: up to
    log2(modulus / 2^flood_bits) bits for each row and logit, which can tell more than one weight.

    The operator decides who is a client: each registered name has its own number of rows. Only a
    `FileRequestLog` counts them across restarts.

    The server answers with one model, to which its offer commits (`enrolment.commit`).
    """

    TRANSITIONS: ClassVar = {
        (State.READY, "register"): State.READY,
        (State.READY, "load_model"): State.READY,
        (State.READY, "check"): State.READY,
        (State.READY, "predict"): State.READY,
    }

    def __init__(
        self,
        offer: Offer,
        identity: Identity,
        model: LogisticModel | None,
        salt: bytes = b"",
        *,
        ledger: RequestLog | None = None,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Take an offer and the model that it was made for. `create` makes an offer.

        Args:
            offer: The server's own.
            identity: The key named in the offer.
            model: None if it comes encrypted from its owner.
            salt: Opens the offer's commitment to the model; empty without a model.
            ledger: Records answered requests. A file outlives the process.
            workers: Threads.
            entropy: Source of the randomness that hides the model.

        Raises:
            KeyMismatchError: The offer is another server's, or commits to another model.
            ParameterError: The offer's plan does not fit the model.
        """
        super().__init__(offer.server, State.READY)
        if identity.public != offer.key:
            raise KeyMismatchError(f"this identity is not that of {offer.server!r} in the offer")
        self.offer = offer
        self._plan = offer.plan
        self._identity = identity
        self._ledger = ledger or MemoryRequestLog()
        self._entropy = entropy
        self._clients: dict[bytes, _Client] = {}
        if (model is None) != (self._plan.model == "encrypted"):
            raise ParameterError(
                "a plan for a plain model needs the model; one for an encrypted model takes none"
            )
        if model is not None:
            offer.check_model(model, salt)
        self._model_digest, self._salt = b"" if model is None else model.digest, salt
        self._circuit = server_circuit(self._plan, model, entropy, workers)

    @classmethod
    def create(
        cls,
        model: LogisticModel,
        name: str = "server",
        *,
        precision: float | None = None,
        protect_model: bool = False,
        max_rows: int | None = None,
        shareable_rows: int = 0,
        backend: Backend | None = None,
        activation: Activation = "client",
        degree: int | None = None,
        domain: float | None = None,
        identity: Identity | None = None,
        ledger: RequestLog | None = None,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> "InferenceServer":
        """Plan, and draw an identity if none is given. Arguments are as for `planner.plan`."""
        plan = planner.plan(
            model,
            precision=precision,
            protect_model=protect_model,
            max_rows=max_rows,
            shareable_rows=shareable_rows,
            backend=backend,
            activation=activation,
            degree=degree,
            domain=domain,
        )
        identity = identity or Identity.generate(entropy)
        salt = entropy(SALT_BYTES)
        offer = Offer(name, identity.public, plan, commit(model, salt))
        return cls(offer, identity, model, salt, ledger=ledger, workers=workers, entropy=entropy)

    @property
    def salt(self) -> bytes:
        """Opens the offer's commitment: with it and the model anybody can `Offer.check_model`.

        Keep it as secret as the model: who has it can test guesses of the weights.
        """
        return self._salt

    def register(self, registration: bytes) -> str:
        """Register a client, or a client's new key, and return the client's name.

        Compare the fingerprints first: nothing else tells who the client is.

        Raises:
            DecodeError, AuthenticationError, KeyMismatchError: Not a registration for this offer.
            ParameterError: Another client has this name or key.
        """
        self.state = self._next("register")
        found = Registration.decode(registration, self.offer)
        for other in self._clients.values():
            known = other.engagement.registration
            if (known.client == found.client) != (known.key == found.key):
                raise ParameterError(
                    f"{found.client}: this name is registered with another key, or this key with "
                    "another name; a client that draws a new key for its ciphertexts keeps both"
                )
        engagement = ClientSession(self.offer, found)
        if engagement.id not in self._clients:
            self._clients[engagement.id] = _Client(engagement, self._circuit.admit(found))
        return found.client

    def fingerprint(self, client: str) -> str:
        """Return the fingerprint of a client's latest registration, to compare by phone.

        Raises:
            ParameterError: No client of this name is registered.
        """
        for known in reversed(self._clients.values()):
            if known.engagement.registration.client == client:
                return known.engagement.registration.fingerprint
        raise ParameterError(f"no client {client!r} is registered")

    def load_model(self, data: wire.Buffer) -> str:
        """Load the model that its owner encrypted for one client; return the client's name.

        Raises:
            LocalProtocolError: The plan is for a model that the server knows.
            DecodeError, AuthenticationError, RemoteProtocolError: Not from the owner, or
                malformed.
        """
        self.state = self._next("load_model")
        if self._plan.model == "plain":
            raise LocalProtocolError(f"{self.name}: the plan is for a model that is not encrypted")
        client, message, payload = self._open(data, EncryptedWeights, self.offer.owner)
        account = cast(LogitAccount, client.account)  # only the linear circuit has such plans
        try:
            account.load(message, payload)
        except DecodeError as error:
            raise RemoteProtocolError(self.offer.owner, str(error)) from None
        return client.engagement.registration.client

    def check(self, requests: Sequence[wire.Buffer]) -> None:
        """Refuse requests that `predict` would refuse one after another, and spend nothing.

        Ciphertexts are not checked here. `predict` still refuses a request with malformed ones,
        after it has answered those before.

        Raises the errors of `predict`.
        """
        self.state = self._next("check")
        rows: dict[str, int] = {}
        seen: set[tuple[str, bytes]] = set()
        for data in requests:
            client, query, _ = self._admit(data)
            name = client.engagement.registration.client
            if (name, query.request) in seen:
                raise RemoteProtocolError(name, "sends the same request twice; leave one out")
            seen.add((name, query.request))
            rows[name] = rows.get(name, 0) + query.rows
            self._ledger.check(name, query.request, rows[name], self._plan.max_rows)

    def predict(self, data: wire.Buffer) -> wire.Buffer:
        """Answer one request. A refused request leaves the server as it was.

        Raises:
            DecodeError: Not a message, or larger than any message may be.
            AuthenticationError: Not from the client that it names, or changed on the way.
            RemoteProtocolError: From nobody registered, answered before, or malformed.
            BudgetError: The client would get more rows than the plan allows.
        """
        self.state = self._next("predict")
        client, query, payload = self._admit(data)
        engagement = client.engagement
        name = engagement.registration.client
        account = (name, query.request, query.rows, self._plan.max_rows)
        self._ledger.check(*account)
        try:
            body = client.account.answer(query, payload)
        except DecodeError as error:
            raise RemoteProtocolError(name, str(error)) from None
        kind = self._circuit.ANSWER.KIND
        header = engagement.header(kind, self.name, name, engagement.agreement)
        # A refused request costs nothing. An answer is counted before it leaves.
        self._ledger.spend(*account)
        return identity_.seal(self._identity, engagement, header, body, self._entropy)

    def _admit(self, data: wire.Buffer) -> tuple[_Client, Any, memoryview]:
        """Open a registered client's request and check its size against the plan."""
        client, query, payload = self._open(data, self._circuit.QUERY)
        name = client.engagement.registration.client
        if not client.account.ready:
            raise LocalProtocolError(f"{name}: no model is loaded for this client's key")
        if len(query.request) != REQUEST_BYTES:
            raise RemoteProtocolError(
                name, f"a request's id has {REQUEST_BYTES} bytes, not {len(query.request)}"
            )
        most = self._plan.rows_per_request
        if not 1 <= query.rows <= most:
            raise RemoteProtocolError(name, f"a request has 1 to {most:,} rows, not {query.rows}")
        return client, query, payload

    def _open(
        self, data: wire.Buffer, kind: type[wire.M], sender: str | None = None
    ) -> tuple[_Client, wire.M, memoryview]:
        header, _, _ = wire.split_header(data)
        client = self._clients.get(header.session)
        if client is None:
            raise RemoteProtocolError(
                header.sender,
                "is not registered with this key; register its .pub file first",
                authenticated=False,
            )
        engagement = client.engagement
        header, body = identity_.open_sealed(
            self._identity, engagement, engagement.agreement, data, self.name
        )
        expected = sender or engagement.registration.client
        if header.kind != kind.KIND or header.sender != expected:
            raise RemoteProtocolError(
                header.sender, f"sent message kind {header.kind}, which it may not send here"
            )
        try:
            return client, *wire.decode_body(body, kind)
        except DecodeError as error:
            raise RemoteProtocolError(header.sender, str(error)) from None

    def to_json(self) -> str:
        """Return the server's secrets as JSON. Keep it where nobody else can read it.

        It holds the model's digest, and not the model.

        Raises:
            LocalProtocolError: The server was aborted.
        """
        if self.state is State.ABORTED:
            raise LocalProtocolError(f"{self.name}: was aborted, and its keys were dropped")
        facts = _ServerFile(
            _FORMAT,
            KEY_FILE_VERSION,
            self._identity.export(),
            self.offer,
            self._model_digest,
            self._salt,
        )
        return msgspec.json.encode(facts).decode()

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        model: LogisticModel | None,
        *,
        ledger: RequestLog | None = None,
        workers: int = 1,
    ) -> "InferenceServer":
        """Read what `to_json` wrote.

        Raises:
            DecodeError: Not a server's file.
            KeyMismatchError: It was made for another model, or its parts are of different offers.
            ParameterError: A model is given and none is needed, or the other way round.
        """
        facts, identity = read_key_file(text, _ServerFile, _FORMAT, "server")
        if model is not None and facts.model and model.digest != facts.model:
            raise KeyMismatchError(
                f"{facts.offer.server}: this server file was made for another model "
                f"(SHA-256 {facts.model.hex()[:16]}..., not {model.digest.hex()[:16]}...); give "
                "the model that was published, or publish this one in a new offer"
            )
        return cls(facts.offer, identity, model, facts.salt, ledger=ledger, workers=workers)

    def _drop(self) -> None:
        self.__dict__.pop("_circuit", None)
        self._clients.clear()
