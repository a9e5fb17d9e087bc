"""What the roles need of a circuit: message bodies in, message bodies out."""

from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from securecomp.ckks.enrolment import Registration
from securecomp.protocol import wire

Kind = Literal["logits", "sigmoids"]


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


class Account(Protocol):
    """What answers one client."""

    @property
    def ready(self) -> bool:
        """Whether there is a model."""

    def answer(self, query: Any, payload: memoryview) -> wire.Bytes:
        """Return the body of an answer."""


class ServerCircuit(Protocol):
    """The side with the model."""

    QUERY: Any
    ANSWER: Any

    def admit(self, registration: Registration) -> Account:
        """Return what answers a client."""
