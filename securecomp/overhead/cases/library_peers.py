"""Cases of other libraries that do the same job, measured as ours are.

python-paillier is used as its tutorials use it, a value a ciphertext. TenSEAL is used in three
ways: as its tutorials use it, a row a vector with Galois keys; and by the best program that we know
in its vectors, a column a vector, encrypted with the secret key or with the public one. Software
that needs processes of its own (MPyC, SPU, Flower, HElayers) is in the repository's `benchmarks`.
"""

import operator
from collections.abc import Callable, Iterator
from functools import partial, reduce
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
_Outcome = tuple[npt.NDArray[Any], int, int]
"""Logits, and the bytes there and back."""
_COLUMN = 2048
"""Rows of a full vector in the ring below; more go into several."""
_COLUMN_RING = 2 * _COLUMN
_COLUMN_PRIMES = [60, 30]
_COLUMN_SCALE = 2.0**25


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
            "TenSEAL, inference, as its tutorials do",
            partial(logits, features=features),
            _ROWS,
            "fhe",
            ("tenseal",),
            "tenseal",
        ),
        *(
            (
                f"tenseal-columns-{key}",
                f"TenSEAL, inference, a vector a column, {key} key",
                partial(columns, key, features=features),
                _COLUMN,
                "fhe",
                ("tenseal",),
                "tenseal",
            )
            for key in ("secret", "public")
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
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, _RING, coeff_mod_bit_sizes=_PRIMES)
    context.global_scale = _SCALE
    context.generate_galois_keys()
    server = tenseal.context_from(context.serialize(save_secret_key=False))
    model: list[float] = weights.tolist()

    def secure(_: Any) -> _Outcome:
        sent = [tenseal.ckks_vector(context, row).serialize() for row in table.tolist()]
        answers = [tenseal.ckks_vector_from(server, row).dot(model).serialize() for row in sent]
        read = [tenseal.ckks_vector_from(context, answer).decrypt()[0] for answer in answers]
        return np.array(read), sum(map(len, sent)), sum(map(len, answers))

    return _job(table, weights, secure, "One row a vector, the parameters of its tutorials.")


def columns(key: str, rows: int, features: int) -> Job:
    """Return TenSEAL's weighted sums of encrypted columns, its best program for many rows.

    One prime for the data, no rescaling, no rotation.

    Args:
        key: "secret" or "public": what encrypts.
        rows: Rows.
        features: Of a model.
    """
    import tenseal

    table = reals((rows, features), FEATURE_BOUND / 5, seed=2)
    weights = reals((features,), 0.5, seed=1)
    kinds = tenseal.ENCRYPTION_TYPE
    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS,
        _COLUMN_RING,
        coeff_mod_bit_sizes=_COLUMN_PRIMES,
        encryption_type=kinds.SYMMETRIC if key == "secret" else kinds.ASYMMETRIC,
    )
    context.global_scale = _COLUMN_SCALE
    context.auto_rescale = context.auto_relin = context.auto_mod_switch = False
    server = tenseal.context_from(context.serialize(save_secret_key=False))
    server.auto_rescale = server.auto_relin = server.auto_mod_switch = False
    model: list[float] = weights.tolist()
    parts = [table[i : i + _COLUMN].T.tolist() for i in range(0, rows, _COLUMN)]

    def answer(sent: list[bytes]) -> bytes:
        terms = (
            tenseal.ckks_vector_from(server, column) * weight
            for column, weight in zip(sent, model, strict=True)
        )
        serialized: bytes = reduce(operator.iadd, terms).serialize()
        return serialized

    def secure(_: Any) -> _Outcome:
        sent = [[tenseal.ckks_vector(context, c).serialize() for c in part] for part in parts]
        answers = [answer(part) for part in sent]
        read = [tenseal.ckks_vector_from(context, data).decrypt() for data in answers]
        up = sum(len(column) for part in sent for column in part)
        return np.concatenate(read), up, sum(map(len, answers))

    note = f"One column a vector, encrypted with the {key} key; one prime of 60 bits, no rescaling."
    return _job(table, weights, secure, note)


def _job(
    table: npt.NDArray[Any],
    weights: npt.NDArray[Any],
    secure: Callable[[Any], _Outcome],
    note: str,
) -> Job:
    out = np.empty(len(table))

    def error(plain: npt.NDArray[Any], result: _Outcome) -> float:
        found = float(np.abs(result[0] - plain).max())
        if not found <= _TOLERANCE:
            raise WrongResultError(f"an error of {found:.2g}")
        return found

    return Job(
        sizes={"elements": len(table), "rows": len(table), "features": table.shape[1]},
        plain=lambda: np.matmul(table, weights, out=out),
        secure=secure,
        check=error,
        cost=lambda _, result: Communication(max(result[1:]), sum(result[1:]), 2, 2),
        note=f"{note} Keys before the time.",
    )
