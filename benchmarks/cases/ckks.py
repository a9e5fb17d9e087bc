"""Encrypted inference: client and server apart, from bytes to bytes, by rows and by features."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks import aes
from securecomp.overhead.inference import FEATURES, Parties, whole
from securecomp.overhead.job import Case, Job, Target, Traffic

BATCH = 4096


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
        lambda _: Traffic(sent, sent + received, 1 + (received > 0), 1 + (received > 0)),
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
    job = wide.job(
        lambda: ask("work"), lambda _: np.zeros(0), lambda _: Traffic(0, 0, 0, 0), cores=2
    )
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


def scoring(rows: int, degree: int) -> Job:
    """The server computes probabilities, by a polynomial for logits within +-16."""
    p = Parties.make(rows, activation="server", degree=degree, domain=16.0)
    request = p.client.encrypt(p.rows)
    return p.job(
        lambda: p.server.predict(request),
        lambda answer: p.read(request, answer),
        lambda answer: Traffic(len(request), len(request) + len(answer), 2, 2),
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
