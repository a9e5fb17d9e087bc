"""All cases, in the order of the report."""

from benchmarks.cases import (
    ckks,
    computing,
    field,
    growth,
    masking,
    paillier,
    privacy,
    regression,
    split,
    study,
    sums,
    survival,
)
from benchmarks.job import Case

CASES: tuple[Case, ...] = (
    *field.CASES,
    *sums.CASES,
    *split.CASES,
    *growth.CASES,
    *study.CASES,
    *regression.CASES,
    *survival.CASES,
    *masking.CASES,
    *paillier.CASES,
    *ckks.CASES,
    *computing.CASES,
    *privacy.CASES,
)


def chosen(names: list[str]) -> list[Case]:
    """Return the cases of these names; "sum" stands for all of "sum/...".

    Raises:
        KeyError: No case has that name.
    """
    for name in names:
        if not any(_matches(case, name) for case in CASES):
            raise KeyError(name)
    return [case for case in CASES if not names or any(_matches(case, n) for n in names)]


def _matches(case: Case, name: str) -> bool:
    return case.name == name or case.name.startswith(f"{name}/")
