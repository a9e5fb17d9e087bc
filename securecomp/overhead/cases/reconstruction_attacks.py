"""Reconstruction attacks: a search for rows by their gradient, and all texts of a format ranked."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from securecomp.audit.reconstruction.canaries import CanaryLeak, CanarySpace, canary_exposure
from securecomp.audit.reconstruction.gradient_matching import MatchingLeak, gradient_matching
from securecomp.audit.reconstruction.two_layer_net import Network
from securecomp.overhead.cases.synthetic_data import Synthetic
from securecomp.overhead.job import Case, Job, WrongResultError

_TEXTS = 6
_FEATURES, _HIDDEN, _CLASSES = 64, 32, 10


def matching(rows: int) -> Job:
    """Return the job of searching for rows of noise, known to be in [0, 1]."""
    rng = Synthetic(0)
    network = Network.draw(_FEATURES, _HIDDEN, _CLASSES, rng.bytes)
    data, others = rng.random((2, rows, _FEATURES))
    targets = np.eye(_CLASSES)[np.arange(rows) % _CLASSES]

    def check(_: Any, found: MatchingLeak) -> float:
        if found.members.recovered < rows:
            raise WrongResultError(f"{found.members.recovered} of {rows} rows came out")
        return float(np.abs(found.rows - data).max())

    return Job(
        sizes={"rows": rows, "elements": data.size},
        plain=lambda: network.gradient(data, targets),
        secure=lambda _: gradient_matching(network, data, targets, others, entropy=rng.bytes),
        check=check,
        note="Plaintext: the gradient that is attacked. The error is the largest of a number.",
    )


def ranking(places: int) -> Job:
    """Return the job of ranking all secrets of so many digits, under scores that take no time."""
    space = CanarySpace("{}", length=places)
    scores = Synthetic(0).normal(size=space.size)
    secrets = [f"{i:0{places}}" for i in range(8)]

    def score(texts: Any) -> Any:
        return scores[[int(text) for text in texts]]

    def check(expected: Any, found: CanaryLeak) -> float:
        error = float(np.abs(np.array(found.exposures) - expected).max())
        if error > 1e-9:
            raise WrongResultError(f"exposures are {error:.3g} bits off")
        return error

    def plain() -> Any:
        rest = scores[8:]  # a secret is ranked among the texts that were not inserted, and itself
        ranks = [(rest <= scores[i]).sum() + 1 for i in range(8)]
        return math.log2(rest.size + 1) - np.log2(ranks)

    return Job(
        sizes={"texts": space.size},
        plain=plain,
        secure=lambda _: canary_exposure(score, space, secrets),
        check=check,
        note="Plaintext: the ranks by numpy, without making a text.",
    )


def for_developers() -> Iterator[Case]:
    """Yield searches for one row and for ten, and the ranking of texts."""
    for rows in (1, 10):
        yield Case(
            f"leakage/matching/{rows}",
            f"Gradient matching, {rows} rows of {_FEATURES} numbers",
            matching,
            size=rows,
            quick=1,
            tiny=1,
        )
    yield Case(
        "leakage/exposure",
        f"Exposure of canaries among 10^{_TEXTS} texts",
        ranking,
        size=_TEXTS,
        quick=4,
        tiny=3,
    )
