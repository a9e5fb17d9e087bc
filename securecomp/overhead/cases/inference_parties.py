"""Client and server of encrypted inference with their data, and the jobs of both together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.ckks import InferenceClient, InferenceServer, LogisticModel, ModelOwner
from securecomp.ckks.native.ring_parameters import Sigmoid
from securecomp.errors import WrongResultError
from securecomp.models import probabilities
from securecomp.overhead.cases.synthetic_data import reals
from securecomp.overhead.job import DECODE, Communication, Job
from securecomp.protocol.identity import Identity

FEATURES = 30
BOUND = 8.0
_NOTE = (
    "From bytes to bytes: packing, sealing, verifying and reading are in the time. Plaintext: "
    "numpy's matrix-vector product of the same rows."
)
NOTE = f"{_NOTE} All on one core, or a process on each of two."
_KEYS_NOTE = f"{_NOTE} Set-up draws a client's keys and registers them; planning is before it."


class RepeatingLog:
    """A request log that lets a request be answered again and again, for timing it."""

    def check(self, *_: object) -> None:
        """Let it pass."""

    def spend(self, *_: object) -> None:
        """Forget it."""


@dataclass(slots=True)
class InferenceParties:
    """Client, server and data of a job."""

    client: InferenceClient
    server: InferenceServer
    model: LogisticModel
    rows: npt.NDArray[Any]
    clients: int = 1

    @classmethod
    def make(
        cls,
        rows: int,
        features: int = FEATURES,
        workers: int = 1,
        encrypted: bool = False,
        **plan: Any,
    ) -> "InferenceParties":
        """Draw a model and rows, and make both sides: native, unless the plan says otherwise."""
        if plan.get("activation") != "server":
            plan = {"backend": "native"} | plan
        # Logits stay of one size, however many features there are.
        weights = reals((features,), 0.5, seed=1) * np.sqrt(FEATURES / features)
        model = LogisticModel(
            weights=(tuple(weights.tolist()),),
            intercepts=(0.3,),
            classes=(0, 1),
            features=tuple(f"x{i}" for i in range(features)),
            bounds=(BOUND,) * features,
            link="sigmoid",
        )
        if encrypted:
            identity = Identity.generate()
            owner = ModelOwner(model, "owner", "server", identity.public)
            server = InferenceServer(
                owner.offer, identity, None, ledger=RepeatingLog(), workers=workers
            )
        else:
            server = InferenceServer.create(model, ledger=RepeatingLog(), workers=workers, **plan)
        client = InferenceClient.create(server.offer, workers=workers)
        server.register(client.registration.encode())
        if encrypted:
            server.load_model(owner.encrypt(client.registration.encode()))
        # Most rows of patients are near the middle.
        return cls(client, server, model, reals((rows, features), BOUND / 5, seed=2))

    def read(self, request: Any, answer: Any) -> npt.NDArray[Any]:
        """Return what the client decrypts."""
        return self.client.decrypt(answer, request).values

    def error(self, values: npt.NDArray[Any]) -> float:
        """Return the largest error.

        Raises:
            WrongResultError: It is more than the plan promises.
        """
        expected = self.model.logits(self.rows)
        if isinstance(self.client.offer.plan.circuit, Sigmoid):
            expected = probabilities(expected, "sigmoid")[:, 1:]
        error = float(np.abs(values - expected).max())
        if error > self.client.offer.plan.precision:
            raise WrongResultError(f"an error of {error:.2g}, more than the plan's")
        return error

    def job(
        self,
        secure: Callable[[], Any],
        read: Callable[[Any], npt.NDArray[Any]],
        cost: Callable[[Any], Communication],
        *,
        cores: int = 1,
        floors: Mapping[str, Callable[[], Any]] | None = None,
        degree: int = 0,
    ) -> Job:
        """Return a job whose plaintext is numpy's product of the same rows."""
        rows, weights = self.rows, np.array(self.model.weights[0])
        out = np.empty(len(rows))
        sizes = {"elements": len(rows), "rows": len(rows), "features": rows.shape[1]}
        return Job(
            sizes=sizes | {"cores": cores} | ({"degree": degree} if degree else {}),
            plain=lambda: np.matmul(rows, weights, out=out),
            secure=lambda _: secure(),
            check=lambda _, result: self.error(read(result)),
            cost=lambda _, result: cost(result),
            floors=floors or {},
            note=NOTE,
        )

    def renew(self) -> InferenceClient:
        """Bring a new client with keys of its own to the server."""
        self.clients += 1
        self.client = InferenceClient.create(self.server.offer, f"client {self.clients}")
        self.server.register(self.client.registration.encode())
        return self.client


@dataclass(frozen=True, slots=True)
class InferenceOutcome:
    """The values that the client reads, the bytes there and back, and each step's seconds."""

    values: npt.NDArray[Any]
    sent: int
    received: int
    seconds: Mapping[str, float]


def ask(p: InferenceParties) -> InferenceOutcome:
    """Let the client encrypt, the server predict and the client decrypt."""
    start = perf_counter()
    request = p.client.encrypt(p.rows)
    encrypted = perf_counter()
    answer = p.server.predict(request)
    predicted = perf_counter()
    values = p.client.decrypt(answer, request).values
    took = {
        "client": encrypted - start,
        "server": predicted - encrypted,
        DECODE: perf_counter() - predicted,
    }
    return InferenceOutcome(values, len(request), len(answer), took)


def whole(rows: int, features: int = FEATURES, **choices: Any) -> Job:
    """Return the job of client and server together. They have their keys."""
    return _together(InferenceParties.make(rows, features, **choices))


def with_keys(rows: int, features: int = FEATURES, **choices: Any) -> Job:
    """Return the same job, with a client that draws new keys each time."""
    p = InferenceParties.make(rows, features, **choices)
    return replace(_together(p), setup=p.renew, note=_KEYS_NOTE)


def _together(p: InferenceParties) -> Job:
    def cost(answer: InferenceOutcome) -> Communication:
        sent, received = answer.sent, answer.received
        roles = {"client": sent, "server": received}
        return Communication(max(sent, received), sent + received, 2, 2, roles, sent + received)

    both = p.job(lambda: ask(p), lambda answer: answer.values, cost)
    return replace(both, parts=lambda _, answer: answer.seconds)
