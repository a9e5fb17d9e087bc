"""All cases, in the order of the report."""

from dataclasses import replace

from benchmarks.cases import (
    auditing,
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
from securecomp.overhead.job import Case

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
    # BLAS's threads would spin while others are timed, and slow numpy's short products most.
    *(replace(case, blas_threads=1) for case in (*ckks.CASES, *computing.CASES)),
    *privacy.CASES,
    *(replace(case, blas_threads=1) for case in auditing.CASES),
)


def listed() -> tuple[Case, ...]:
    """Return all cases, for the process that measures one."""
    return CASES
