"""The client encrypts rows and reads results. It alone has the key."""

from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from securecomp import models
from securecomp.ckks import inputs
from securecomp.ckks.circuits import client_circuit
from securecomp.ckks.enrolment import (
    KEY_FILE_VERSION,
    ClientSession,
    Kind,
    Offer,
    Registration,
    read_key_file,
)
from securecomp.ckks.inference_messages import REQUEST_BYTES
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


@dataclass(frozen=True, slots=True)
class Predictions:
    """Results of one request, within the plan's precision and rounded to it.

    Attributes:
        values: Logits, or their sigmoids if the server computes these, shape (n, K).
        kind: Whether values are logits or sigmoids.
        classes: The labels, in the order of the probabilities.
        link: How logits become probabilities.
        outside: Rows with a logit outside the domain of the server's polynomial, shape (n,). The
            client computes their probabilities from the logits, which the server returns too.
    """

    values: Floats
    kind: Kind
    classes: tuple[models.Label, ...]
    link: models.Link
    outside: npt.NDArray[np.bool_]

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
    def means(self) -> Floats:
        """The means of a regression, shape (n,).

        Raises:
            ParameterError: The model predicts classes.
        """
        return models.means(self.values, self.link)

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The most likely class of each row."""
        middle = 0.0 if self.kind == "logits" else 0.5
        return models.labels(self.classes)[models.winners(self.values, self.link, middle)]


class KeyFile(Secret, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client's secrets, as its key file holds them."""

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

    The server learns the number of rows. It learns nothing of their values under ring-LWE, as long
    as nothing that was decrypted reaches it.

    Results depend on the key in the digits below the precision (B. Li, D. Micciancio, On the
    security of homomorphic encryption on approximate numbers, EUROCRYPT 2021). If the server does
    not keep to the protocol, they depend on it altogether. `decrypt` rounds to the plan's
    precision. That is not enough against everyone: somebody who sees the ciphertexts, and the
    rounded results of a million known rows, can work out the key. So these rules hold:

    - Results may go to people who see no ciphertexts (a ward, a register).
    - With `shareable_rows`, the results of that many rows may go to anybody, an honest server
      included. Noise that hides the origin of the digits is added before rounding (B. Li,
      D. Micciancio, M. Schultz, J. Sorrell, Securing approximate homomorphic encryption using
      differential privacy, CRYPTO 2022, the statistical variant). It is 2^-40 away from perfect if
      the noise of the server's answers is within its plan, and only the server can check that. An
      answer gives the same numbers whenever it is read. A row that is encrypted again counts
      again. Whoever shares results must count them: nothing here does.
    - A server that may cheat must learn neither results, nor labels, nor whether an answer was
      refused. With a wrong answer each of these tells it something about the key. Draw a new key
      after a refused answer.

    The client verifies that an answer comes from the server, but not that it is right.
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
        """Take existing keys. `create` draws new ones.

        Args:
            offer: The server's, received over a trusted channel.
            name: The name by which the server knows the client.
            identity: The client's long-term key.
            secret: The key of the ciphertexts, as in a key file. By default a new one is drawn.
            registration: The one made from these keys. By default a new one is made.
            workers: Threads.
            entropy: Source of masks and noise.
        """
        super().__init__(name, State.READY)
        self.offer = offer
        self._plan = offer.plan
        self._identity = identity
        self._entropy = entropy
        self._circuit = client_circuit(self._plan, secret, entropy, workers)
        if registration is None:
            self._registration = Registration.create(
                offer, name, identity, self._secret_id(), *self._circuit.public()
            )
        else:
            self._registration = Registration.decode(registration, offer)
            if self._registration.key != identity.public or self._registration.client != name:
                raise KeyMismatchError(f"{name}: the registration is another client's")
            if self._registration.secret_id != self._secret_id():
                raise KeyMismatchError(f"{name}: the registration belongs to another secret")
        self._engagement = ClientSession(offer, self._registration)
        self._pending: dict[bytes, int] = {}

    def _secret_id(self) -> bytes:
        # Derived apart from the key itself: it identifies the key and tells nothing about it.
        return prg.derive(self._circuit.secret, "ckks key id", self.offer.digest)[:16]

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
        """Draw keys. With an identity given, only the key of the ciphertexts is new."""
        identity = identity or Identity.generate(entropy)
        return cls(offer, name, identity, workers=workers, entropy=entropy)

    @property
    def registration(self) -> Registration:
        """The public document that the server needs once, before the first request."""
        return self._registration

    def encrypt(self, table: Any) -> wire.Buffer:
        """Encrypt rows for the server.

        Args:
            table: Rows with the plan's features: a table with these columns, or an array (n, d).

        Returns:
            The sealed request.

        Raises:
            ParameterError, RangeError: As `inputs.rows`. Nothing was encrypted.
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
        """Read an answer, once. To read it again, give the request again.

        Args:
            data: The server's answer.
            request: The request that it must answer, if another process made it.
            first: Number of its first row in the whole table, for error messages.

        Raises:
            DecodeError: Not a message.
            AuthenticationError: Not from the server, or changed on the way.
            RemoteProtocolError: For another session or request, or malformed.
        """
        self.state = self._next("decrypt")
        circuit = self._circuit
        if request is not None:
            query, _ = self._read(request, circuit.QUERY, self.name, self.offer.server)
            self._pending[query.request] = query.rows
        answer, payload = self._read(data, circuit.ANSWER, self.offer.server, self.name)
        if request is not None and answer.request != query.request:
            raise RemoteProtocolError(
                self.offer.server, "answers a request other than the given one"
            )
        # Spent even if it is refused: whether an answer is refused depends on the key.
        rows = self._pending.pop(answer.request, None)
        if rows is None:
            raise RemoteProtocolError(
                self.offer.server,
                "answers a request that this client did not make, or that was answered before; "
                "give the request if another process made it",
            )
        try:
            if answer.rows != rows:
                raise DecodeError(f"answers {answer.rows} rows, and {rows} were asked about")
            found = circuit.decrypt(answer, payload, rows, first)
        except DecodeError as error:
            raise RemoteProtocolError(self.offer.server, str(error)) from None
        rounded = np.round(found.values, self._plan.decimals) + 0.0  # no negative zero
        plan = self._plan
        return Predictions(rounded, circuit.kind, plan.classes, plan.link, found.outside)

    def _read(
        self, data: wire.Buffer, kind: type[wire.M], sender: str, recipient: str
    ) -> tuple[wire.M, memoryview]:
        header, body = identity_.open_sealed(
            self._identity, self._engagement, self._engagement.agreement, data, recipient
        )
        if header.kind != kind.KIND or header.sender != sender:
            raise RemoteProtocolError(
                header.sender, f"sent message kind {header.kind}, which is not expected here"
            )
        return wire.decode_body(body, kind)

    def to_json(self) -> str:
        """Return the secrets as JSON. Keep it where nobody else can read it.

        Raises:
            LocalProtocolError: The client was aborted.
        """
        if self.state is State.ABORTED:
            raise LocalProtocolError(f"{self.name}: was aborted, and has dropped its keys")
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
            DecodeError: Not a client's key file.
            KeyMismatchError: Its parts belong to different keys.
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
