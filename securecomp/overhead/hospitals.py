"""Jobs of statistics: what a study computes over hospitals' rows against numpy on pooled rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from securecomp.errors import WrongResultError
from securecomp.overhead.data import integers, reals
from securecomp.overhead.job import Job, Traffic
from securecomp.overhead.totals import hospitals
from securecomp.statistics import Column, Count, Mean, Study, Sum, Variance

Floats = npt.NDArray[np.float64]

DAYS = 365
ARMS = 2
TOLERANCE = 1e-12
NOTE = (
    "Secure: from data frames to results, as the study clocks itself (the call also computes the "
    "plaintext). Plaintext: from pooled numpy columns. Synthetic stays; nothing is suppressed."
)
FIT_TOLERANCE = 1e-6
_STEPS = 25
_FIT_NOTE = (
    "A whole logistic regression, from data frames to the summary. Plaintext: Newton's method in "
    "numpy on the pooled rows, to the same coefficients and standard errors. Synthetic rows."
)
_AGE = 100


def moments(parties: int, rows: int) -> Job:
    """Return the job of count, mean and variance of stays, and deaths by arm.

    Args:
        parties: Hospitals.
        rows: Rows of each.
    """
    stays = integers((parties, rows), DAYS) % (DAYS + 1)
    deaths, arms = (integers((parties, rows), 1 << 30, seed) % 2 for seed in (1, 2))
    columns = {
        "stay": Column(bound=DAYS, decimals=0),
        "died": Column(bound=1, decimals=0),
        "arm": Column(levels=list(range(ARMS))),
    }
    sites = {
        name: pa.table({"stay": stays[i], "died": deaths[i], "arm": arms[i]})
        for i, name in enumerate(hospitals(parties))
    }
    questions = (Count(), Mean("stay"), Variance("stay"), Sum("died", by="arm"))
    stay, died, arm = stays.ravel(), deaths.ravel(), arms.ravel()

    def plain() -> list[float]:
        by_arm = np.bincount(arm, died, ARMS)
        return [len(stay), float(stay.mean()), float(stay.var(ddof=1)), *by_arm.tolist()]

    def check(expected: list[float], results: Any) -> float:
        count, mean, variance, by_arm = (result.value for result in results)
        values = [count, mean, variance, *by_arm.values()]
        if len(values) != len(expected):
            raise WrongResultError(f"{len(values)} figures instead of {len(expected)}")
        errors = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(values, expected, strict=True)]
        if any((errors[0], *errors[3:])) or not max(errors) <= TOLERANCE:
            raise WrongResultError("a figure is not plaintext's")
        return float(max(errors))

    return Job(
        sizes={"parties": parties, "elements": parties * rows, "rows": rows},
        plain=plain,
        setup=lambda: Study(sites, columns=columns, minimum_count=0),
        secure=lambda study: study.run(questions),
        check=check,
        cost=lambda _, results: Traffic.of(results[0].run.transcript),
        seconds=lambda results: results[0].run.seconds,
        note=NOTE,
    )


def regression(parties: int, rows: int) -> Job:
    """Return the job of a logistic regression of deaths on age and arm.

    Args:
        parties: Hospitals.
        rows: Rows of each.
    """
    ages = integers((parties, rows), _AGE, 3) % (_AGE + 1)
    arms = integers((parties, rows), 1 << 30, 4) % 2
    chance = 1 / (1 + np.exp(3.5 - 0.05 * ages + arms))
    deaths = (reals((parties, rows), 0.5, 5) + 0.5 < chance).astype(np.int64)
    columns = {
        "age": Column(bound=_AGE, decimals=0),
        "arm": Column(bound=1, decimals=0),
        "died": Column(bound=1, decimals=0),
    }
    sites = {
        name: pa.table({"age": ages[i], "arm": arms[i], "died": deaths[i]})
        for i, name in enumerate(hospitals(parties))
    }
    design: Floats = np.ones((parties * rows, 3))
    design[:, 1], design[:, 2] = ages.ravel(), arms.ravel()
    died = deaths.ravel().astype(np.float64)

    def check(expected: Floats, result: Any) -> float:
        found = np.array([*result.params, *result.bse])
        error = float(np.max(np.abs(found - expected) / np.maximum(1, np.abs(expected))))
        if not error <= FIT_TOLERANCE:
            raise WrongResultError(f"a coefficient or its error differs by {error:.2g}")
        return error

    return Job(
        sizes={"parties": parties, "elements": parties * rows, "rows": rows, "columns": 2},
        plain=lambda: _newton(design, died),
        setup=lambda: Study(sites, columns=columns),
        secure=lambda study: study.glm("died ~ age + arm", "logistic"),
        check=check,
        cost=lambda _, result: Traffic.of(result.run.transcript),
        note=_FIT_NOTE,
    )


def _newton(design: Floats, response: Floats) -> Floats:
    """Return a logistic regression's coefficients and standard errors."""
    weights, information = np.zeros(design.shape[1]), np.empty(0)
    for _ in range(_STEPS):
        mean = 1 / (1 + np.exp(-design @ weights))
        information = (design * (mean * (1 - mean))[:, None]).T @ design
        step = np.linalg.solve(information, design.T @ (response - mean))
        weights = weights + step
        if np.abs(step).max() < 1e-10:
            break
    return np.concatenate([weights, np.sqrt(np.diag(np.linalg.inv(information)))])
