"""Private training: steps of DP-SGD, against plain SGD and the products that it cannot avoid."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from securecomp.federated.clipping import UnitRows
from securecomp.federated.dpsgd import Schedule, train
from securecomp.federated.losses import Loss, one_hot
from securecomp.federated.poisson import batches
from securecomp.overhead.cases.synthetic_data import Synthetic
from securecomp.overhead.job import Case, Job, WrongResultError

_STEPS = 1000
_NOISE, _CLIP, _LEARNING_RATE = 1.0, 1.0, 1.0
_OFF = 1e-3


@dataclass(frozen=True)
class Problem:
    """A model and its data; the benchmark's peer Opacus trains the same."""

    title: str
    rows: int
    features: int
    classes: int
    rate: float


PROBLEMS = {
    "logistic": Problem("500 rows, 500 features, batches of 50", 500, 500, 2, 0.1),
    "softmax": Problem(
        "10,000 rows, 64 features, 10 classes, batches of 200", 10_000, 64, 10, 0.02
    ),
}


def fixed(size: int) -> bytes:
    """Return the same bytes each time, so that both sides have the same batches."""
    return bytes(size)


def steps(problem: Problem, count: int) -> Job:
    """Return training with noise, against SGD in floats without noise and clipping."""
    g = Synthetic(0)
    table = g.normal(size=(problem.rows, problem.features)) / math.sqrt(problem.features)
    targets = one_hot(g.integers(0, problem.classes, problem.rows), problem.classes)
    loss = Loss("sigmoid" if problem.classes == 2 else "softmax")
    expected = problem.rate * problem.rows
    rows = UnitRows(table)
    chosen = list(batches(problem.rows, problem.rate, count, fixed))
    shape = (targets.shape[1], problem.features)

    def schedule(noise: float) -> Schedule:
        return Schedule(problem.rate, count, _CLIP, noise, _LEARNING_RATE, expected)

    def plain(clip: float = math.inf) -> Any:
        model = np.zeros(shape)
        for batch in chosen:
            x = table[batch]
            residuals = loss.residuals(x @ model.T, targets[batch])
            if clip < math.inf:
                norms = np.linalg.norm(residuals, axis=1) * np.linalg.norm(x, axis=1)
                residuals *= np.minimum(1, clip / np.maximum(norms, 1e-30))[:, None]
            model -= _LEARNING_RATE / expected * (residuals.T @ x)
        return model

    def products() -> None:
        weights = np.zeros(shape)
        for batch in chosen:
            x = table.take(batch, axis=0)
            residuals = x @ weights.T
            residuals.T @ x

    def check(_: Any, found: Any) -> float:
        clipped = plain(_CLIP)
        error = float(np.abs(train(rows, targets, loss, schedule(0.0), fixed) - clipped).max())
        if error > _OFF:
            raise WrongResultError(f"without noise the weights are off by {error:.2g}")
        walk = _LEARNING_RATE * _NOISE * _CLIP / expected * math.sqrt(count)
        share = float(np.sqrt(((found - clipped) ** 2).mean())) / walk
        if not 0.2 < share < 3:
            raise WrongResultError(f"weights are off by {share:.2g} of what the noise is")
        return error

    return Job(
        sizes={"elements": count, "rows": problem.rows, "features": problem.features},
        plain=plain,
        secure=lambda _: train(rows, targets, loss, schedule(_NOISE), fixed),
        check=check,
        floors={"rows gathered, two products a step": products},
        note=(
            "An element is a step. Plaintext: SGD in floats on batches that were drawn before, "
            "neither clipped nor noised. Ours draws batches and exact noise from AES-256. The "
            "error is that of the weights without noise."
        ),
    )


def for_developers() -> Iterator[Case]:
    """Yield training on each problem."""
    for name, problem in PROBLEMS.items():
        yield Case(
            f"training/dp-sgd/{name}",
            f"DP-SGD steps, {problem.title}",
            partial(steps, problem),
            size=_STEPS,
            quick=100,
            tiny=3,
        )
