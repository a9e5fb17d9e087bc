"""Encrypted inference: client and server apart, from bytes to bytes, by rows and by features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import aes
from benchmarks.job import Case, Cost, Job, Target, WrongResultError
from securecomp.ckks import InferenceClient, InferenceServer, LogisticModel, ModelOwner
from securecomp.ckks.model import probabilities
from securecomp.identity import Identity

FEATURES = 30
BATCH = 4096
NOTE = (
    "From bytes to bytes: packing, sealing, verifying and reading are in the time. Plaintext: "
    "numpy's matrix-vector product of the same batch."
)


class Repeating:
    """A ledger that lets a request be answered again and again, for timing it."""

    def check(self, *_: object) -> None:
        """Let it pass."""

    def spend(self, *_: object) -> None:
        """Forget it."""


@dataclass(slots=True)
class Parties:
    """Client, server and data of a job."""

    client: InferenceClient
    server: InferenceServer
    model: LogisticModel
    rows: np.ndarray

    @classmethod
    def make(
        cls,
        rows: int,
        features: int = FEATURES,
        workers: int = 1,
        encrypted: bool = False,
        **plan: Any,
    ) -> "Parties":
        """Draw a model and rows, and make both sides."""
        rng = np.random.default_rng(0)
        weights = rng.normal(0, 0.5, features) * np.sqrt(FEATURES / features)
        model = LogisticModel(
            weights=(tuple(weights.tolist()),),
            intercepts=(0.3,),
            classes=(0, 1),
            features=tuple(f"x{i}" for i in range(features)),
            bounds=(8.0,) * features,
            link="sigmoid",
        )
        if encrypted:
            identity = Identity.generate()
            owner = ModelOwner(model, "owner", "server", identity.public)
            server = InferenceServer(
                owner.offer, identity, None, ledger=Repeating(), workers=workers
            )
        else:
            server = InferenceServer.create(model, ledger=Repeating(), workers=workers, **plan)
        client = InferenceClient.create(server.offer, workers=workers)
        server.register(client.registration.encode())
        if encrypted:
            server.load_model(owner.encrypt(client.registration.encode()))
        return cls(client, server, model, np.clip(rng.normal(size=(rows, features)), -8, 8))

    def read(self, request: Any, answer: Any) -> np.ndarray:
        """Return what the client decrypts."""
        return self.client.decrypt(answer, request).values

    def error(self, values: np.ndarray) -> float:
        """Return the largest error; more than the plan promises is wrong."""
        expected = self.model.logits(self.rows)
        if self.client.offer.plan.circuit.__class__.__name__ == "Sigmoid":
            expected = probabilities(expected, "sigmoid")[:, 1:]
        error = float(np.abs(values - expected).max())
        if error > self.client.offer.plan.precision:
            raise WrongResultError(f"an error of {error:.2g}, more than the plan's")
        return error

    def job(
        self, secure: Callable[[], Any], read: Callable[[Any], np.ndarray], cost: Any, **more: Any
    ) -> Job:
        """Return a job whose plaintext is numpy's product of the same rows."""
        weights, out = np.array(self.model.weights[0]), np.empty(len(self.rows))
        count, features = self.rows.shape
        sizes = {"elements": count, "rows": count, "features": features}
        return Job(
            sizes=sizes | more.pop("sizes", {}),
            plain=lambda: np.matmul(self.rows, weights, out=out),
            secure=lambda _: secure(),
            check=lambda _, result: self.error(read(result)),
            cost=lambda _, result: cost(result),
            note=NOTE,
            **more,
        )


def encrypting(rows: int, workers: int) -> Job:
    p = Parties.make(rows, workers=workers)
    return p.job(
        lambda: p.client.encrypt(p.rows),
        lambda request: p.read(request, p.server.predict(request)),
        lambda request: Cost(len(request), len(request), 1, 1),
        floors=_keystream(p, 2, workers),
        sizes={"threads": workers},
    )


def predicting(rows: int, workers: int) -> Job:
    p = Parties.make(rows, workers=workers)
    request = p.client.encrypt(p.rows)
    return p.job(
        lambda: p.server.predict(request),
        lambda answer: p.read(request, answer),
        lambda answer: Cost(len(request), len(request) + len(answer), 2, 2),
        floors=_keystream(p, 1, workers),
        sizes={"threads": workers},
    )


def _keystream(p: Parties, times: int, workers: int) -> Any:
    """The masks (and noise) of every ciphertext, as bytes."""
    residues = p.client.offer.plan.sizes(len(p.rows))[0]
    return aes.floors(times * workers, 8 * residues // workers, workers)


def decrypting(rows: int, workers: int) -> Job:
    p = Parties.make(rows, workers=workers)
    request = p.client.encrypt(p.rows)
    answer = p.server.predict(request)
    ((identifier, count),) = p.client._pending.items()

    def secure() -> Any:
        p.client._pending[identifier] = count
        return p.client.decrypt(answer)

    return p.job(
        secure,
        lambda predictions: predictions.values,
        lambda _: Cost(len(request), len(request) + len(answer), 2, 2),
        sizes={"threads": workers},
    )


def whole(rows: int, features: int = FEATURES, **choices: Any) -> Job:
    """Client and server together."""
    p = Parties.make(rows, features, **choices)

    def secure() -> Any:
        request = p.client.encrypt(p.rows)
        answer = p.server.predict(request)
        return p.client.decrypt(answer), len(request), len(answer)

    return p.job(
        secure,
        lambda result: result[0].values,
        lambda result: Cost(result[1], result[1] + result[2], 2, 2),
    )


def scoring(rows: int, degree: int) -> Job:
    """The server computes probabilities, by a polynomial for logits within +-16."""
    p = Parties.make(rows, activation="server", degree=degree, domain=16.0)
    request = p.client.encrypt(p.rows)
    return p.job(
        lambda: p.server.predict(request),
        lambda answer: p.read(request, answer),
        lambda answer: Cost(len(request), len(request) + len(answer), 2, 2),
        sizes={"degree": degree},
    )


_JOBS = (
    ("encrypt", "client encrypts", encrypting),
    ("predict", "server predicts", predicting),
    ("decrypt", "client decrypts", decrypting),
)
_MORE = {
    "encrypt/1": (
        Target("at most 8 us a row", 8, unit="us"),
        Target("at most 500 bytes a row", 500, unit="bytes there"),
    ),
    "predict/1": (
        Target("at most 0.8 us a prediction", 0.8, unit="us"),
        Target("at most 40 bytes a prediction", 40, unit="bytes back"),
        Target("a logit within 1e-4", 1e-4, unit="error"),
    ),
}

CASES = (
    *(
        Case(
            f"ckks/{name}/{workers}",
            f"Encrypted inference, {title}, threads: {workers}",
            lambda rows, make=make, workers=workers: make(rows, workers),
            size=BATCH * workers,
            quick=BATCH,
            tiny=1,
            target=Target("at most 200x of numpy's product", 200) if name == "predict" else None,
            more=_MORE.get(f"{name}/{workers}", ()),
        )
        for workers in (1, 2)
        for name, title, make in _JOBS
    ),
    Case(
        "ckks/protect",
        "Encrypted inference, model protected, 30 rows",
        lambda rows: whole(rows, protect_model=True),
        size=FEATURES,
        quick=FEATURES,
        tiny=1,
        more=(Target("a logit within the plan's 1e-4", 1e-4, unit="error"),),
    ),
    Case(
        "ckks/encrypted-model",
        "Encrypted inference, model encrypted too",
        lambda rows: whole(rows, encrypted=True),
        size=BATCH,
        quick=BATCH,
        tiny=1,
        more=(Target("a logit within 1e-4", 1e-4, unit="error"),),
    ),
    *(
        Case(
            f"ckks/sigmoid/{degree}",
            f"Encrypted inference, server's sigmoid of degree {degree}",
            lambda rows, degree=degree: scoring(rows, degree),
            size=BATCH,
            quick=64,
            tiny=1,
        )
        for degree in (3, 7, 15)
    ),
    *(
        Case(
            f"growth/rows/{rows}",
            f"Encrypted inference, {rows:,} rows of 30 features, client and server",
            whole,
            size=rows,
            quick=min(rows, 1000),
            tiny=1,
            series="rows",
        )
        for rows in (1, 10, 100, 1_000, 10_000, 100_000)
    ),
    *(
        Case(
            f"growth/features/{features}",
            f"Encrypted inference, 1,000 rows of {features:,} features, client and server",
            lambda features: whole(1000, features),
            size=features,
            quick=min(features, 100),
            tiny=1,
            series="features",
        )
        for features in (1, 10, 100, 1_000)
    ),
)
