"""Encrypted inference: client and server apart, from bytes to bytes, by rows and by features."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import aes
from benchmarks.job import Case, Cost, Job, Target, WrongResultError
from securecomp.ckks import InferenceClient, InferenceServer, LogisticModel, ModelOwner
from securecomp.ckks.model import probabilities
from securecomp.identity import Identity

FEATURES = 30
BATCH = 4096
NOTE = (
    "From bytes to bytes: packing, sealing, verifying and reading are in the time. Plaintext: "
    "numpy's matrix-vector product of the same rows. All on one core, or a process on each of two."
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
        # numpy on one core as well; and BLAS's threads would spin while others are timed.
        threadpool_limits(1)
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
        self,
        secure: Callable[[], Any],
        read: Callable[[Any], np.ndarray],
        cost: Callable[[Any], Cost],
        *,
        cores: int = 1,
        floors: Any = None,
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


def encrypting(p: Parties) -> tuple[Callable[[], Any], Callable[[Any], np.ndarray]]:
    return lambda: p.client.encrypt(p.rows), lambda r: p.read(r, p.server.predict(r))


def predicting(p: Parties) -> tuple[Callable[[], Any], Callable[[Any], np.ndarray]]:
    request = p.client.encrypt(p.rows)
    return lambda: p.server.predict(request), lambda answer: p.read(request, answer)


def decrypting(p: Parties) -> tuple[Callable[[], Any], Callable[[Any], np.ndarray]]:
    answer = p.server.predict(p.client.encrypt(p.rows))
    pending = dict(p.client._pending)

    def work() -> Any:
        p.client._pending.update(pending)  # an answer is read once
        return p.client.decrypt(answer)

    return work, lambda predictions: predictions.values


_SIDES = {"encrypt": encrypting, "predict": predicting, "decrypt": decrypting}
_TOGETHER = 8  # batches between two signals, so that these weigh little


def alone(name: str, rows: int) -> Job:
    """One side's work on a batch, in this process."""
    p = Parties.make(rows)
    work, read = _SIDES[name](p)
    request = p.client.encrypt(p.rows)
    sent, received = len(request), len(p.server.predict(request)) * (name != "encrypt")
    return p.job(
        work,
        read,
        lambda _: Cost(sent, sent + received, 1 + (received > 0), 1 + (received > 0)),
        floors=aes.floors(
            {"encrypt": 2, "predict": 1, "decrypt": 0}[name],
            8 * p.client.offer.plan.sizes(rows)[0],
        )
        if name != "decrypt"
        else None,
    )


def twice(name: str, rows: int) -> Job:
    """The same in two processes, as a server on two cores runs it; each has keys of its own."""
    context = get_context("spawn")
    pipes = []
    for _ in range(2):
        ours, theirs = context.Pipe()
        context.Process(target=_serve, args=(theirs, name, rows), daemon=True).start()
        pipes.append(ours)

    def ask(what: str) -> list[Any]:
        for pipe in pipes:
            pipe.send(what)
        return [pipe.recv() for pipe in pipes]

    p = Parties.make(rows)
    wide = Parties(p.client, p.server, p.model, np.tile(p.rows, (2 * _TOGETHER, 1)))
    job = wide.job(lambda: ask("work"), lambda _: np.zeros(0), lambda _: Cost(0, 0, 0, 0), cores=2)
    return replace(job, check=lambda _, __: max(ask("check")), cost=None)


def _serve(pipe: Any, name: str, rows: int) -> None:
    p = Parties.make(rows)
    work, read = _SIDES[name](p)
    with suppress(EOFError):  # the job is over
        while True:
            if pipe.recv() == "check":
                pipe.send(p.error(read(work())))
                continue
            for _ in range(_TOGETHER):
                work()
            pipe.send(None)


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
        degree=degree,
    )


_TITLES = {
    "encrypt": "client encrypts",
    "predict": "server predicts",
    "decrypt": "client decrypts",
}
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
            f"ckks/{name}/{cores}",
            f"Encrypted inference, {title}, cores: {cores}",
            lambda rows, name=name, run=run: run(name, rows),
            size=BATCH,
            quick=BATCH,
            tiny=1,
            target=Target("at most 200x of numpy's product", 200) if name == "predict" else None,
            more=_MORE.get(f"{name}/{cores}", ()),
        )
        for cores, run in ((1, alone), (2, twice))
        for name, title in _TITLES.items()
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
