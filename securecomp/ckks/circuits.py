"""Both sides of a circuit, whatever its backend, as the roles use them."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from securecomp.ckks.decrypted import Decrypted
from securecomp.ckks.enrolment import Kind, Registration
from securecomp.ckks.native.logits import LogitClient, LogitServer
from securecomp.ckks.native.ring_parameters import LinearParameters
from securecomp.ckks.plan import InferencePlan
from securecomp.ckks.seal.sigmoid_scores import ScoreClient, ScoreServer
from securecomp.ckks.seal.slot_circuit import SlotCircuit
from securecomp.ckks.seal.slot_logits import SlotClient, SlotServer
from securecomp.core.entropy import Entropy
from securecomp.core.parallel import check_workers
from securecomp.models import LogisticModel
from securecomp.protocol import wire


class ClientCircuit(Protocol):
    """The side of a circuit that has the key. Its messages have a `request` and `rows`."""

    QUERY: Any
    ANSWER: Any
    kind: Kind
    secret: bytes

    def public(self) -> tuple[bytes, bytes]:
        """Return the public part of the key: a seed, and the rest."""

    def encrypt(self, array: npt.NDArray[np.float64], request: bytes) -> wire.Bytes:
        """Return the body of a request for rows that were checked, shape (n, d)."""

    def decrypt(self, answer: Any, payload: memoryview, rows: int, first: int) -> Decrypted:
        """Return numbers, shape (n, K), not rounded; `first` is the first row's number."""


class Account(Protocol):
    """Answers one client's requests."""

    @property
    def ready(self) -> bool:
        """Whether a model is loaded."""

    def answer(self, query: Any, payload: memoryview) -> wire.Bytes:
        """Return the body of an answer."""


class ServerCircuit(Protocol):
    """The side of a circuit that has the model."""

    QUERY: Any
    ANSWER: Any

    def admit(self, registration: Registration) -> Account:
        """Return the account of a registered client."""


def client_circuit(
    plan: InferencePlan, secret: bytes | None, entropy: Entropy, workers: int
) -> ClientCircuit:
    """Return the client's side of a plan's circuit.

    Args:
        plan: The plan.
        secret: The key's bytes. None draws a new key.
        entropy: Source of randomness, where the backend takes one.
        workers: Threads. SEAL's bindings hold the interpreter's lock, so SEAL has one.
    """
    check_workers(workers)
    if isinstance(plan.circuit, LinearParameters):
        return LogitClient(plan, secret, entropy, workers)
    if isinstance(plan.circuit, SlotCircuit):
        return SlotClient(plan, secret, entropy)
    return ScoreClient(plan, secret)


def server_circuit(
    plan: InferencePlan, model: LogisticModel | None, entropy: Entropy, workers: int
) -> ServerCircuit:
    """Return the server's side of a plan's circuit, for a model that it knows or gets encrypted.

    Raises:
        ParameterError: The plan was not made for this model.
    """
    check_workers(workers)
    if isinstance(plan.circuit, LinearParameters):
        return LogitServer(plan, model, entropy, workers)
    if isinstance(plan.circuit, SlotCircuit):
        return SlotServer(plan, model)
    return ScoreServer(plan, model)
