"""Share generation against the AES that it cannot do without."""

import numpy as np

from benchmarks import aes
from securecomp.core import field
from securecomp.overhead.job import Case, Job, Target, WrongResultError
from securecomp.sharing import reconstruct, split

PARTIES = 3


def share(elements: int) -> Job:
    values = np.random.default_rng(0).integers(0, field.MODULUS, elements, np.uint64)
    copied = np.empty_like(values)

    def check(_, shares) -> float:
        if len(shares) != PARTIES or any(np.array_equal(s.residues, values) for s in shares):
            raise WrongResultError("the shares are not those of three parties")
        if not np.array_equal(reconstruct(shares), values):
            raise WrongResultError("the shares do not add up to the values")
        return 0.0

    return Job(
        sizes={"parties": PARTIES, "elements": elements},
        plain=lambda: np.copyto(copied, values),
        secure=lambda _: split(values, PARTIES),
        check=check,
        floors=aes.floors(PARTIES - 1, 8 * elements),
        note="Plaintext is a copy of the vector: what handing it over in the clear takes.",
    )


CASES = (
    Case(
        "split",
        "Additive shares of a vector",
        share,
        size=1_000_000,
        quick=100_000,
        tiny=100,
        target=Target("at most 1.5x of AES-256-CTR of the same bytes", 1.5, floor=aes.CTR),
    ),
)
