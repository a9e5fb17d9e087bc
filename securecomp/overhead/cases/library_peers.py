"""Cases of other libraries that do the same job, measured as ours are.

Each is used as its tutorials use it: a value a ciphertext in python-paillier, a row a vector in
TenSEAL. Software that needs processes of its own (MPyC, SPU, Flower, HElayers) is in the
repository's `benchmarks`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import WrongResultError
from securecomp.overhead.cases.inference_parties import BOUND as FEATURE_BOUND
from securecomp.overhead.cases.private_sums import BITS, BOUND, check
from securecomp.overhead.cases.synthetic_data import integers, reals
from securecomp.overhead.job import Case, Communication, Job

OTHERS = (
    "MPyC, SPU, Flower and HElayers need processes of their own: python -m benchmarks --peers, in "
    "the repository"
)
_VALUES = 20
_ROWS = 16
_RING = 8192
_PRIMES = [60, 40, 40, 60]
_SCALE = 2.0**40
_TOLERANCE = 1e-3


def for_users(elements: int | None, parties: int, features: int) -> Iterator[Case]:
    """Yield the peers' cases.

    Args:
        elements: Values or rows. By default few, as each takes long.
        parties: Hospitals of a sum.
        features: Of a model.
    """
    for name, title, build, size, family, needs, install in (
        ("phe", "phe, sum", partial(total, parties), _VALUES, "", ("phe",), "phe"),
        (
            "tenseal",
            "TenSEAL, inference",
            partial(logits, features=features),
            _ROWS,
            "fhe",
            ("tenseal",),
            "tenseal",
        ),
    ):
        yield Case(
            f"peer/{name}",
            title,
            build,
            size=elements or size,
            quick=elements or size,
            tiny=1,
            scheme=name,
            family=family,
            needs=needs,
            install=f"pip install {install}",
        )


def total(parties: int, elements: int) -> Job:
    """Return python-paillier's sum over hospitals."""
    from phe import paillier

    inputs = integers((parties, elements), BOUND)
    rows = inputs.tolist()
    out = np.empty(elements, np.int64)
    public, private = paillier.generate_paillier_keypair(n_length=BITS)

    def secure(_: Any) -> npt.NDArray[np.int64]:
        encrypted = [[public.encrypt(value) for value in row] for row in rows]
        added = [sum(column[1:], start=column[0]) for column in zip(*encrypted, strict=True)]
        return np.array([private.decrypt(value) for value in added], np.int64)

    size = elements * BITS // 4  # a ciphertext is a number modulo the square
    return Job(
        sizes={"parties": parties, "elements": elements, "bits": BITS},
        plain=lambda: np.add.reduce(inputs, axis=0, out=out),
        secure=secure,
        check=check,
        cost=lambda *_: Communication(size, size * (parties + 1), 2, parties + 1),
        note="One value a ciphertext, with a key in steady use. Bytes: of the ciphertexts alone.",
    )


def logits(rows: int, features: int) -> Job:
    """Return TenSEAL's inner products of encrypted rows with a plain model."""
    import tenseal

    table = reals((rows, features), FEATURE_BOUND / 5, seed=2)
    weights = reals((features,), 0.5, seed=1)
    out = np.empty(rows)
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, _RING, coeff_mod_bit_sizes=_PRIMES)
    context.global_scale = _SCALE
    context.generate_galois_keys()
    server = tenseal.context_from(context.serialize(save_secret_key=False))
    model: list[float] = weights.tolist()

    def secure(_: Any) -> tuple[npt.NDArray[Any], int, int]:
        sent = [tenseal.ckks_vector(context, row).serialize() for row in table.tolist()]
        answers = [tenseal.ckks_vector_from(server, row).dot(model).serialize() for row in sent]
        read = [tenseal.ckks_vector_from(context, answer).decrypt()[0] for answer in answers]
        return np.array(read), sum(map(len, sent)), sum(map(len, answers))

    def error(plain: npt.NDArray[Any], result: tuple[npt.NDArray[Any], int, int]) -> float:
        found = float(np.abs(result[0] - plain).max())
        if not found <= _TOLERANCE:
            raise WrongResultError(f"an error of {found:.2g}")
        return found

    return Job(
        sizes={"elements": rows, "rows": rows, "features": features},
        plain=lambda: np.matmul(table, weights, out=out),
        secure=secure,
        check=error,
        cost=lambda _, result: Communication(max(result[1:]), sum(result[1:]), 2, 2),
        note="One row a vector, the parameters of its tutorials, keys before the time.",
    )
