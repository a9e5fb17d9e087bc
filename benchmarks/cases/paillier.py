"""Paillier: encrypting, adding and decrypting packed values, by key length and by size."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from securecomp.overhead.job import Case, Job, Traffic, WrongResultError
from securecomp.paillier import EncryptedVector, PrivateKey, decrypt, encrypt
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout

BOUND = (1 << 40) - 1
ADDITIONS = 1024
NOTE = (
    "One core. Plaintext: numpy adds the same values. The key and its table of powers are warm: "
    "they are made once for a key."
)


@lru_cache
def key(bits: int) -> PrivateKey:
    return PrivateKey.generate(bits)


def values(elements: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-BOUND, BOUND + 1, elements)


def _encrypted(bits: int, elements: int, seed: int = 0) -> EncryptedVector:
    data = values(elements, seed)
    return encrypt(key(bits).public, data, bound=BOUND, additions=ADDITIONS)


def _job(bits: int, elements: int, secure: Callable[[], Any], check: Callable[[Any], Any]) -> Job:
    data = values(elements)
    out = np.empty_like(data)

    def checked(plain: np.ndarray, result: Any) -> float:
        if not np.array_equal(plain, check(result)):
            raise WrongResultError("the values are not those that numpy has")
        return 0.0

    def cost(_: Any, result: Any) -> Traffic:
        size = 0
        if isinstance(result, EncryptedVector):
            size = len(result.ciphertexts) * result.key.ciphertext_bytes
        return Traffic(size, size, 1, 1)

    return Job(
        sizes={"bits": bits, "elements": elements},
        plain=lambda: np.add(data, data, out=out),
        secure=lambda _: secure(),
        check=checked,
        cost=cost,
        note=NOTE,
    )


def encrypting(bits: int, elements: int) -> Job:
    private = key(bits)
    _encrypted(bits, elements)  # the table
    return _job(
        bits, elements, lambda: _encrypted(bits, elements), lambda e: 2 * decrypt(private, e)
    )


def adding(bits: int, elements: int) -> Job:
    private = key(bits)
    a, b = _encrypted(bits, elements), _encrypted(bits, elements)
    return _job(bits, elements, lambda: a + b, lambda total: decrypt(private, total))


def decrypting(bits: int, elements: int) -> Job:
    private = key(bits)
    total = _encrypted(bits, elements) + _encrypted(bits, elements)
    return _job(bits, elements, lambda: decrypt(private, total), lambda plain: plain)


def aggregating(hospitals: int) -> Job:
    """All roles of a sum over hospitals, 1,000 values each."""
    elements = 1000
    rows = np.stack([values(elements, seed) for seed in range(hospitals)])
    out = np.empty(elements, np.int64)
    names = [f"hospital {i + 1}" for i in range(hospitals)]
    scheme = Paillier(bits=2048)
    carrier = LocalCarrier()
    scheme.key(carrier)

    def secure(_: Any) -> np.ndarray:
        carrier.start()
        inputs = {n: (lambda row=row: row) for n, row in zip(names, rows, strict=True)}
        return scheme.run(carrier, Layout(elements, BOUND), inputs, ("analyst",))

    def check(plain: np.ndarray, total: np.ndarray) -> float:
        if not np.array_equal(plain, total):
            raise WrongResultError("the secure total is not the plaintext total")
        return 0.0

    return Job(
        sizes={"hospitals": hospitals, "elements": elements, "bits": 2048},
        plain=lambda: np.add.reduce(rows, axis=0, out=out),
        secure=secure,
        check=check,
        cost=lambda _, __: Traffic.of(carrier.transcript),
        note="All roles, the contributors' encryption included.",
    )


def _grown(elements: int) -> Job:
    job = encrypting(2048, elements)
    return replace(job, sizes={**job.sizes, "values": elements})


def _case(name: str, title: str, make: Callable[[int, int], Job], bits: int) -> Case:
    return Case(
        f"paillier/{name}/{bits}",
        f"{title}, {bits} bits",
        lambda elements: make(bits, elements),
        size=10_000,
        quick=500,
        tiny=10,
    )


CASES = (
    *(
        _case(name, title, make, bits)
        for bits in (2048, 3072)
        for name, title, make in (
            ("encrypt", "Paillier: encrypt 40-bit values", encrypting),
            ("add", "Paillier: add two encrypted vectors", adding),
            ("decrypt", "Paillier: decrypt", decrypting),
        )
    ),
    *(
        Case(
            f"growth/hospitals/{n}",
            f"Paillier sum over {n} hospitals, 1,000 values",
            aggregating,
            size=n,
            quick=min(n, 10),
            tiny=2,
            series="hospitals",
            rounds=3,
        )
        for n in (2, 10, 100)
    ),
    *(
        Case(
            f"growth/values/{n}",
            f"Paillier: encrypt {n:,} values, 2048 bits",
            _grown,
            size=n,
            quick=min(n, 1000),
            tiny=10,
            series="values",
            rounds=1 if n > 100_000 else 3,
        )
        for n in (100, 1_000, 10_000, 100_000, 1_000_000)
    ),
)
