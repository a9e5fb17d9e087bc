"""All cases, in the order of the report."""

from dataclasses import replace

from benchmarks.cases import (
    auditing,
    audits,
    ckks,
    computing,
    federating,
    field,
    growth,
    leakage,
    masking,
    paillier,
    privacy,
    regression,
    split,
    study,
    sums,
    survival,
    training,
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
    *federating.CASES,
    *masking.CASES,
    *paillier.CASES,
    # BLAS's threads would spin while others are timed, and slow numpy's short products most.
    *(replace(case, blas_threads=1) for case in (*ckks.CASES, *computing.CASES)),
    *privacy.CASES,
    *audits.CASES,
    *(replace(c, blas_threads=1) for c in (*training.CASES, *auditing.CASES, *leakage.CASES)),
)


def listed() -> tuple[Case, ...]:
    """Return all cases, for the process that measures one."""
    return CASES
