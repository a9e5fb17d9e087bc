"""The one catalogue of cases, from which `securecomp bench` and `python -m benchmarks` draw.

`listed` has the user's cases: whole jobs by each scheme, in sizes that the user gives. `detailed`
has the developer's: each step and each role apart, beside the work that it cannot avoid. Both are
made of the same jobs in `cases`.
"""

from collections.abc import Iterable
from dataclasses import replace

from securecomp.errors import ParameterError
from securecomp.overhead.cases import (
    computing_on_shares,
    encrypted_inference,
    library_peers,
    logistic_regressions,
    private_sums,
    study_statistics,
)
from securecomp.overhead.cases.inference_parties import FEATURES
from securecomp.overhead.job import Case

MODULE = __name__
PARTIES = 3
OTHER_PEERS = {"case": "peer", "title": "Other peers", "reason": library_peers.OTHERS}
_LARGEST = 10**8


def listed(
    elements: int | None = None,
    parties: int = PARTIES,
    features: int = FEATURES,
    with_peers: int = 0,
    quick: int = 0,
) -> tuple[Case, ...]:
    """Return the cases of `securecomp bench`.

    Args:
        elements: Values of each hospital, rows of a table or of a request. By default each case
            has its own number.
        parties: Hospitals of a sum or a study, at least 3.
        features: Features of a model.
        with_peers: 1 adds other software.
        quick: 1 leaves out the large sizes of a series, and gives each scheme one process.

    Raises:
        ParameterError: A size that no case can have.
    """
    for name, size, least, most in (
        ("elements", elements, 4, _LARGEST),
        ("parties", parties, 3, 1_000),
        ("features", features, 1, 10_000),
    ):
        if size is not None and not least <= size <= most:
            raise ParameterError(f"--{name} is from {least} to {most:,}, not {size}")
    cases = (
        *private_sums.for_users(elements, parties),
        *study_statistics.for_users(elements, parties),
        *logistic_regressions.for_users(elements, parties),
        *computing_on_shares.for_users(elements),
        *encrypted_inference.for_users(elements, features),
        *private_sums.growth(parties, quick),
        *computing_on_shares.growth(quick),
        *encrypted_inference.growth(features, quick),
        *(library_peers.for_users(elements, parties, features) if with_peers else ()),
    )
    # Starting a process for each case would take half of a quick run.
    batches = ({"batch": case.scheme} if quick else {} for case in cases)
    return tuple(
        replace(case, blas_threads=1, **batch) for case, batch in zip(cases, batches, strict=True)
    )


def detailed() -> tuple[Case, ...]:
    """Return the cases of `python -m benchmarks`, in the order of its report."""
    from securecomp.overhead.cases import (
        exact_noise,
        federated_rounds,
        field_arithmetic,
        masking_steps,
        membership_attacks,
        paillier_steps,
        private_training,
        reconstruction_attacks,
        survival_analyses,
        uniqueness_search,
    )

    return (
        *field_arithmetic.for_developers(),
        *private_sums.for_developers(),
        field_arithmetic.splitting(),
        *private_sums.growth_for_developers(),
        *study_statistics.for_developers(),
        *logistic_regressions.for_developers(),
        *survival_analyses.for_developers(),
        *federated_rounds.for_developers(),
        *masking_steps.for_developers(),
        *paillier_steps.for_developers(),
        *_on_one_thread(encrypted_inference.for_developers()),
        *_on_one_thread(computing_on_shares.for_developers()),
        *exact_noise.for_developers(),
        *uniqueness_search.for_developers(),
        *_on_one_thread(private_training.for_developers()),
        *_on_one_thread(membership_attacks.for_developers()),
        *_on_one_thread(reconstruction_attacks.for_developers()),
    )


def _on_one_thread(cases: Iterable[Case]) -> list[Case]:
    """Return the cases with one thread for BLAS.

    Idle threads of BLAS spin while others are timed, and slow numpy's short products most.
    """
    return [replace(case, blas_threads=1) for case in cases]
