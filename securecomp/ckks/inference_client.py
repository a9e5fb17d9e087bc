"""The client: has the keys, encrypts rows, reads results. Nobody else does."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from securecomp import models
from securecomp.ckks import inputs
from securecomp.ckks.enrolment import (
    KEY_FILE_VERSION,
    ClientSession,
    Kind,
    Offer,
    Registration,
    read_key_file,
)
from securecomp.ckks.inference_messages import REQUEST_BYTES
from securecomp.ckks.native.logits import LogitClient
from securecomp.ckks.native.ring_parameters import LinearParameters
from securecomp.ckks.seal.sigmoid_scores import ScoreClient
from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import Role, State

Floats = npt.NDArray[np.float64]


class ClientCircuit(Protocol):
    """The side with the key. Queries and answers have a `request` and `rows`."""

    QUERY: Any
    ANSWER: Any
    kind: Kind
    secret: bytes

    def public(self) -> tuple[bytes, bytes]:
        """Return what the server needs of the key: a seed, and the rest."""

    def encrypt(self, array: npt.NDArray[np.float64], request: bytes) -> wire.Bytes:
        """Return the body of a request for rows that were checked, shape (n, d)."""

    def decrypt(
        self, answer: Any, payload: memoryview, rows: int, first: int
    ) -> npt.NDArray[np.float64]:
        """Return numbers, shape (n, K), not rounded; `first` is the first row's number."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """What the client reads: numbers within the plan's precision, rounded to it.

    Attributes:
        values: Logits, or each logit's sigmoid where the server computes it, shape (n, K).
        kind: Which of the two.
        classes: The labels, in the order of the probabilities.
        link: How logits become probabilities.
    """

    values: Floats
    kind: Kind
    classes: tuple[models.Label, ...]
    link: models.Link

    @property
    def logits(self) -> Floats:
        """Shape (n, K).

        Raises:
            ParameterError: The server computed probabilities.
        """
        if self.kind == "sigmoids":
            raise ParameterError(
                'the server computes probabilities; for logits plan with activation="client"'
            )
        return self.values

    @property
    def probabilities(self) -> Floats:
        """Shape (n, classes)."""
        if self.kind == "logits":
            return models.probabilities(self.values, self.link)
        return models.link_probabilities(np.clip(self.values, 0, 1), self.link)

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The most likely class of each row."""
        middle = 0.0 if self.kind == "logits" else 0.5
        return models.labels(self.classes)[models.winners(self.values, self.link, middle)]


class KeyFile(Secret, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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

    What the server learns: how many rows there are; nothing of their values under ring-LWE, as long
    as nothing that was decrypted reaches it.

    Results depend on the key in the digits below the precision (B. Li, D. Micciancio, On the
    security of homomorphic encryption on approximate numbers, EUROCRYPT 2021), and on all of it if
    the server does not keep to the protocol. `decrypt` rounds to the plan's precision, which is not
    enough for everyone: from the rounded results of a million rows that it knows, somebody who also
    sees the ciphertexts can work the key out. So

    - results may go to whoever sees no ciphertexts (a ward, a register);
    - with `shareable_rows` those of so many rows may go to anybody, an honest server included:
      noise that hides the digits' origin is added before rounding (B. Li, D. Micciancio,
      M. Schultz, J. Sorrell, Securing approximate homomorphic encryption using differential
      privacy, CRYPTO 2022, the statistical variant). It is 2^-40 away from perfect if the noise of
      the server's answers is what its plan allows, which only the server can check. An answer
      gives the same numbers whenever it is read; a row that is encrypted again counts again, and
      nothing here counts them: whoever shares results does;
    - a server that may cheat must learn neither results, nor labels, nor whether an answer was
      refused: wrong answers make each of these a question about the key. After a refused answer
      draw a new key.

    That an answer is the server's is verified; that it is right is not.
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
        secret: bytes | None = None,
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
            secret: The ciphertexts' key, as `to_json` keeps it; by default one is drawn.
            registration: As it was made from these keys; by default it is made.
            workers: Threads.
            entropy: Source of masks and noise.
        """
        super().__init__(name, State.READY)
        self.offer = offer
        self._plan = offer.plan
        self._identity = identity
        self._entropy = entropy
        self._circuit = self._make(secret, workers)
        if registration is None:
            self._registration = Registration.create(
                offer, name, identity, self._secret_id(), *self._circuit.public()
            )
        else:
            self._registration = Registration.decode(registration, offer)
            if self._registration.key != identity.public or self._registration.client != name:
                raise KeyMismatchError(f"{name}: the registration is another client's")
            if self._registration.secret_id != self._secret_id():
                raise KeyMismatchError(f"{name}: the registration is of another secret")
        self._engagement = ClientSession(offer, self._registration)
        self._pending: dict[bytes, int] = {}

    def _secret_id(self) -> bytes:
        # Of another derivation than the key itself: it identifies, and tells nothing.
        return prg.derive(self._circuit.secret, "ckks key id", self.offer.digest)[:16]

    def _make(self, secret: bytes | None, workers: int) -> ClientCircuit:
        if isinstance(self._plan.circuit, LinearParameters):
            return LogitClient(self._plan, secret, self._entropy, workers)
        return ScoreClient(self._plan, secret)

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
        return cls(offer, name, identity, workers=workers, entropy=entropy)

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
        request = self._entropy(REQUEST_BYTES)
        body = self._circuit.encrypt(array, request)
        header = self._engagement.header(
            self._circuit.QUERY.KIND, self.name, self.offer.server, self._engagement.agreement
        )
        sealed = identity_.seal(self._identity, self._engagement, header, body, self._entropy)
        self._pending[request] = len(array)
        return sealed

    def decrypt(
        self, data: wire.Buffer, request: wire.Buffer | None = None, first: int = 1
    ) -> Predictions:
        """Read an answer, once (again only if the request is given again).

        Args:
            data: The server's answer.
            request: The request that it must belong to, if another process made it.
            first: Number of its first row in the whole table, for errors.

        Raises:
            DecodeError: Not a message.
            AuthenticationError: Not the server's, or changed on the way.
            RemoteProtocolError: Of another session or request, or malformed.
        """
        self.state = self._next("decrypt")
        circuit = self._circuit
        if request is not None:
            query, _ = self._read(request, circuit.QUERY, self.name, self.offer.server)
            self._pending[query.request] = query.rows
        answer, payload = self._read(data, circuit.ANSWER, self.offer.server, self.name)
        if request is not None and answer.request != query.request:
            raise RemoteProtocolError(self.offer.server, "answers another request than the given")
        # Once, whatever comes of it: whether an answer is refused depends on the key.
        rows = self._pending.pop(answer.request, None)
        if rows is None:
            raise RemoteProtocolError(
                self.offer.server,
                "answers a request that this client did not make, or that was answered; give the "
                "request if another process made it",
            )
        try:
            if answer.rows != rows:
                raise DecodeError(f"answers {answer.rows} rows and {rows} were asked")
            values = circuit.decrypt(answer, payload, rows, first)
        except DecodeError as error:
            raise RemoteProtocolError(self.offer.server, str(error)) from None
        rounded = np.round(values, self._plan.decimals) + 0.0  # no negative zero
        return Predictions(rounded, circuit.kind, self._plan.classes, self._plan.link)

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

    def to_json(self) -> str:
        """Return the secrets as JSON, to be kept where nobody else reads.

        Raises:
            LocalProtocolError: It was aborted.
        """
        if self.state is State.ABORTED:
            raise LocalProtocolError(f"{self.name}: was aborted, and its keys were dropped")
        facts = KeyFile(
            _FORMAT,
            KEY_FILE_VERSION,
            self.name,
            self._identity.export(),
            self._circuit.secret,
            self._registration.encode(),
            self.offer,
        )
        return msgspec.json.encode(facts).decode()

    @classmethod
    def from_json(cls, text: str | bytes, *, workers: int = 1) -> "InferenceClient":
        """Read what `to_json` wrote.

        Raises:
            DecodeError: It is not a client's key.
            KeyMismatchError: Its parts are of different keys.
            AuthenticationError: Its registration was changed.
        """
        facts, identity = read_key_file(text, KeyFile, _FORMAT, "client")
        return cls(
            facts.offer,
            facts.name,
            identity,
            facts.secret,
            facts.registration,
            workers=workers,
        )

    def _drop(self) -> None:
        self.__dict__.pop("_circuit", None)
        self._pending.clear()
