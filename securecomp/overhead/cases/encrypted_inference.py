"""Encrypted inference: client and server together or apart, from bytes to bytes."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.ckks import PrecisionWarning
from securecomp.overhead.cases import aes_floors
from securecomp.overhead.cases.inference_parties import (
    FEATURES,
    InferenceParties,
    whole,
    with_keys,
)
from securecomp.overhead.cases.private_sums import grown
from securecomp.overhead.job import Case, Communication, Job

Work = tuple[Callable[[], Any], Callable[[Any], npt.NDArray[Any]]]
"""A side's work, and how its result is read."""

_BATCH = 4096
_QUICK_ROWS = 1024
_TOGETHER = 8  # batches between two signals, so that these weigh little
_TENSEAL = "pip install 'securecomp[ckks]'"
_PREDICTED = (10, 100, 1_000, 10_000)
_WIDTHS = (10, 100, 1_000)


def encrypting(p: InferenceParties) -> Work:
    """Return the work of a client that encrypts its rows."""
    return lambda: p.client.encrypt(p.rows), lambda r: p.read(r, p.server.predict(r))


def predicting(p: InferenceParties) -> Work:
    """Return the work of a server that predicts."""
    request = p.client.encrypt(p.rows)
    return lambda: p.server.predict(request), lambda answer: p.read(request, answer)


def decrypting(p: InferenceParties) -> Work:
    """Return the work of a client that decrypts an answer."""
    answer = p.server.predict(p.client.encrypt(p.rows))
    pending = dict(p.client._pending)

    def work() -> Any:
        p.client._pending.update(pending)  # otherwise an answer is read only once
        return p.client.decrypt(answer)

    return work, lambda predictions: np.asarray(predictions.values)


_SIDES = {"encrypt": encrypting, "predict": predicting, "decrypt": decrypting}
_STREAMS = {"encrypt": 2, "predict": 1}
"""Keystreams as long as a request that a side cannot avoid."""


def alone(name: str, rows: int) -> Job:
    """Return one side's work on a batch, in this process."""
    p = InferenceParties.make(rows)
    work, read = _SIDES[name](p)
    request = p.client.encrypt(p.rows)
    sent, received = len(request), len(p.server.predict(request)) * (name != "encrypt")
    size = 8 * p.client.offer.plan.sizes(rows)[0]
    return p.job(
        work,
        read,
        lambda _: Communication(sent, sent + received, 1 + (received > 0), 1 + (received > 0)),
        floors=aes_floors.floors(_STREAMS[name], size) if name in _STREAMS else None,
    )


def twice(name: str, rows: int) -> Job:
    """Return the work in two processes, each with its own keys, as on a server of two cores."""
    context = get_context("spawn")
    pipes: list[Any] = []
    for _ in range(2):
        ours, theirs = context.Pipe()
        context.Process(target=_serve, args=(theirs, name, rows), daemon=True).start()
        pipes.append(ours)

    def ask(order: str) -> list[Any]:
        for pipe in pipes:
            pipe.send(order)
        return [pipe.recv() for pipe in pipes]

    p = InferenceParties.make(rows)
    wide = InferenceParties(p.client, p.server, p.model, np.tile(p.rows, (2 * _TOGETHER, 1)))
    nothing = Communication(0, 0, 0, 0)
    job = wide.job(lambda: ask("work"), lambda _: np.zeros(0), lambda _: nothing, cores=2)
    return replace(job, check=lambda _, __: max(ask("check")), cost=None)


def _serve(pipe: Any, name: str, rows: int) -> None:
    """Do a side's work in a process of its own, whenever the pipe asks."""
    p = InferenceParties.make(rows)
    work, read = _SIDES[name](p)
    with suppress(EOFError):  # the job is over
        while True:
            if pipe.recv() == "check":
                pipe.send(p.error(read(work())))
                continue
            for _ in range(_TOGETHER):
                work()
            pipe.send(None)


def scoring(degree: int, rows: int) -> Job:
    """Return a server's probabilities, by a polynomial for logits within +-16."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # the degree is what is compared
        p = InferenceParties.make(rows, activation="server", degree=degree, domain=16.0)
    request = p.client.encrypt(p.rows)
    return p.job(
        lambda: p.server.predict(request),
        lambda answer: p.read(request, answer),
        lambda answer: Communication(len(request), len(request) + len(answer), 2, 2),
        degree=degree,
    )


def for_users(rows: int | None, features: int) -> Iterator[Case]:
    """Yield client and server together: logits by each backend, and a sigmoid on the server."""
    ways: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("logits", "Inference, native kernels", {}),
        ("seal", "Inference, SEAL", {"backend": "seal"}),
        ("sigmoid", "Inference, sigmoid", {"activation": "server"}),
    )
    for name, title, options in ways:
        yield Case(
            f"inference/{name}",
            title,
            partial(with_keys, features=features, **options),
            size=rows or _BATCH,
            quick=rows or _QUICK_ROWS,
            tiny=1,
            scheme="ckks",
            family="fhe",
            needs=("tenseal",) if options else (),
            install=_TENSEAL if options else "",
        )


def growth(features: int, quick: int) -> Iterator[Case]:
    """Yield client and server together, for growing rows and growing features."""
    by_rows = partial(whole, features=features)
    by_features = partial(whole, _QUICK_ROWS)
    yield from grown("ckks", "elements", "Inference", _PREDICTED, by_rows, "fhe", quick)
    yield from grown("ckks", "features", "Inference", _WIDTHS, by_features, "fhe", quick)


def for_developers() -> Iterator[Case]:
    """Yield each side apart on one core and on two, then protected models, degrees and growth."""
    yield from _sides()
    yield from _plans()
    yield from _growth()


def _sides() -> Iterator[Case]:
    titles = {
        "encrypt": "client encrypts",
        "predict": "server predicts",
        "decrypt": "client decrypts",
    }
    for cores, run in ((1, alone), (2, twice)):
        for name, title in titles.items():
            yield Case(
                f"ckks/{name}/{cores}",
                f"Encrypted inference, {title}, cores: {cores}",
                partial(run, name),
                size=_BATCH,
                quick=_BATCH,
                tiny=1,
            )


def _plans() -> Iterator[Case]:
    yield Case(
        "ckks/protect",
        "Encrypted inference, model protected, 30 rows",
        partial(whole, protect_model=True),
        size=FEATURES,
        quick=FEATURES,
        tiny=1,
    )
    yield Case(
        "ckks/encrypted-model",
        "Encrypted inference, model encrypted too",
        partial(whole, encrypted=True),
        size=_BATCH,
        quick=_BATCH,
        tiny=1,
    )
    for degree in (3, 7, 15):
        yield Case(
            f"ckks/sigmoid/{degree}",
            f"Encrypted inference, server's sigmoid of degree {degree}",
            partial(scoring, degree),
            size=_BATCH,
            quick=64,
            tiny=1,
            needs=("tenseal",),
            install=_TENSEAL,
        )


def _growth() -> Iterator[Case]:
    for rows in (1, 10, 100, 1_000, 10_000, 100_000):
        yield Case(
            f"growth/rows/{rows}",
            f"Encrypted inference, {rows:,} rows of 30 features, client and server",
            whole,
            size=rows,
            quick=min(rows, 1000),
            tiny=1,
            series="rows",
        )
    for features in (1, 10, 100, 1_000):
        yield Case(
            f"growth/features/{features}",
            f"Encrypted inference, 1,000 rows of {features:,} features, client and server",
            partial(whole, 1000),
            size=features,
            quick=min(features, 100),
            tiny=1,
            series="features",
        )
