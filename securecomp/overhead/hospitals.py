"""Jobs of statistics: what a study computes over hospitals' rows against numpy on pooled rows."""

from typing import Any

import numpy as np
import pyarrow as pa

from securecomp.errors import WrongResultError
from securecomp.overhead.data import integers
from securecomp.overhead.job import Cost, Job
from securecomp.overhead.totals import hospitals
from securecomp.statistics import Column, Count, Mean, Study, Sum, Variance

DAYS = 365
ARMS = 2
TOLERANCE = 1e-12
NOTE = (
    "Secure: from data frames to results, as the study clocks itself (the call also computes the "
    "plaintext). Plaintext: from pooled numpy columns. Synthetic stays; nothing is suppressed."
)


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
        cost=lambda _, results: Cost.of(results[0].run.transcript),
        seconds=lambda results: results[0].run.seconds,
        note=NOTE,
    )
