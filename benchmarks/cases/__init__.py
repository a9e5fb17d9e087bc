"""All cases, in the order of the report."""

from benchmarks.cases import (
    ckks,
    computing,
    field,
    growth,
    masking,
    paillier,
    split,
    study,
    sums,
    survival,
)
from securecomp.overhead.job import Case

CASES: tuple[Case, ...] = (
    *field.CASES,
    *sums.CASES,
    *split.CASES,
    *growth.CASES,
    *study.CASES,
    *survival.CASES,
    *masking.CASES,
    *paillier.CASES,
    *ckks.CASES,
    *computing.CASES,
)


def listed() -> tuple[Case, ...]:
    """Return all cases, for the process that measures one."""
    return CASES
