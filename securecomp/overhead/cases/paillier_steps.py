"""Paillier: encrypting, adding and decrypting packed values, by key length and by size.

An encryption raises to an exponent: h_s^r with r of half the modulus's length, from a table, or
r^n with the full length. The short exponent rests on an assumption beyond Paillier's: that powers
of h_s with short exponents look like all n-th powers (Damgård, Jurik and Nielsen 2010, section
4.2). Both are measured, as `encrypt` and `encrypt-full`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from securecomp.overhead.cases.private_sums import BOUND, check, hospitals
from securecomp.overhead.cases.synthetic_data import integers
from securecomp.overhead.job import Case, Communication, Job, WrongResultError
from securecomp.paillier import EncryptedVector, PrivateKey, decrypt, encrypt
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.paillier.randomisers import Exponent
from securecomp.protocol.carrier import Vector
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout

LENGTHS = (2048, 3072)
"""Bits of the keys."""
_ADDITIONS = 1024
_NOTE = (
    "One core. Plaintext: numpy adds the same values. The key and its table of powers are warm: "
    "they are made once for a key."
)
ASSUMES = {
    "half": "h_s^r with r of half the modulus's length, which assumes more than Paillier's "
    "cryptosystem: that such powers look like all n-th powers (Damgård, Jurik and Nielsen 2010)",
    "full": "r^n with the full exponent, which assumes nothing beyond Paillier's cryptosystem",
}
"""The exponents of an encryption, and the assumption behind each."""


@lru_cache
def _key(bits: int) -> PrivateKey:
    return PrivateKey.generate(bits)


def _encrypted(
    bits: int, elements: int, exponent: Exponent = "half", seed: int = 0
) -> EncryptedVector:
    data = integers((elements,), BOUND, seed)
    public = _key(bits).public
    return encrypt(public, data, bound=BOUND, additions=_ADDITIONS, exponent=exponent)


def _job(
    bits: int,
    elements: int,
    secure: Callable[[], Any],
    read: Callable[[Any], Vector],
    note: str = "",
) -> Job:
    data = integers((elements,), BOUND)
    out = np.empty_like(data)

    def checked(plain: Vector, result: Any) -> float:
        if not np.array_equal(plain, read(result)):
            raise WrongResultError("the values are not those that numpy has")
        return 0.0

    def cost(_: Any, result: Any) -> Communication:
        size = 0
        if isinstance(result, EncryptedVector):
            size = len(result.ciphertexts) * result.key.ciphertext_bytes
        return Communication(size, size, 1, 1)

    return Job(
        sizes={"bits": bits, "elements": elements},
        plain=lambda: np.add(data, data, out=out),
        secure=lambda _: secure(),
        check=checked,
        cost=cost,
        note=_NOTE + note,
    )


def encrypting(exponent: Exponent, bits: int, elements: int) -> Job:
    """Return the job of encrypting a vector."""
    private = _key(bits)
    _encrypted(bits, 1, exponent)  # makes the table
    return _job(
        bits,
        elements,
        lambda: _encrypted(bits, elements, exponent),
        lambda encrypted: 2 * decrypt(private, encrypted),
        f" Randomness: {ASSUMES[exponent]}.",
    )


def adding(bits: int, elements: int) -> Job:
    """Return the job of adding two encrypted vectors."""
    private = _key(bits)
    a, b = _encrypted(bits, elements), _encrypted(bits, elements)
    return _job(bits, elements, lambda: a + b, lambda total: decrypt(private, total))


def decrypting(bits: int, elements: int) -> Job:
    """Return the job of decrypting a sum."""
    private = _key(bits)
    total = _encrypted(bits, elements) + _encrypted(bits, elements)
    return _job(bits, elements, lambda: decrypt(private, total), lambda plain: plain)


def aggregating(parties: int) -> Job:
    """Return the job of all roles of a sum over hospitals, 1,000 values each."""
    elements = 1000
    rows = np.stack([integers((elements,), BOUND, seed) for seed in range(parties)])
    out = np.empty(elements, np.int64)
    scheme = Paillier(bits=2048)
    carrier = LocalCarrier()
    scheme.key(carrier)

    def secure(_: Any) -> Vector:
        carrier.start()
        pairs = zip(hospitals(parties), rows, strict=True)
        inputs = {name: (lambda row=row: row) for name, row in pairs}
        return scheme.run(carrier, Layout(elements, BOUND), inputs, ("analyst",))

    return Job(
        sizes={"hospitals": parties, "elements": elements, "bits": 2048},
        plain=lambda: np.add.reduce(rows, axis=0, out=out),
        secure=secure,
        check=check,
        cost=lambda _, __: Communication.of(carrier.transcript),
        note="All roles, the contributors' encryption included.",
    )


def _grown(elements: int) -> Job:
    job = encrypting("half", 2048, elements)
    return replace(job, sizes={**job.sizes, "values": elements})


def for_developers() -> Iterator[Case]:
    """Yield each operation by key length, sums over growing hospitals, and growing vectors."""
    operations: tuple[tuple[str, str, Callable[[int, int], Job], int], ...] = (
        ("encrypt", "encrypt 40-bit values", partial(encrypting, "half"), 0),
        ("encrypt-full", "encrypt 40-bit values, full exponent", partial(encrypting, "full"), 3),
        ("add", "add two encrypted vectors", adding, 0),
        ("decrypt", "decrypt", decrypting, 0),
    )
    for bits in LENGTHS:
        for name, title, build, rounds in operations:
            yield Case(
                f"paillier/{name}/{bits}",
                f"Paillier: {title}, {bits} bits",
                partial(build, bits),
                size=10_000,
                quick=500,
                tiny=10,
                rounds=rounds,
            )
    for n in (2, 10, 100):
        yield Case(
            f"growth/hospitals/{n}",
            f"Paillier sum over {n} hospitals, 1,000 values",
            aggregating,
            size=n,
            quick=min(n, 10),
            tiny=2,
            series="hospitals",
            rounds=3,
        )
    for n in (100, 1_000, 10_000, 100_000, 1_000_000):
        yield Case(
            f"growth/values/{n}",
            f"Paillier: encrypt {n:,} values, 2048 bits",
            _grown,
            size=n,
            quick=min(n, 1000),
            tiny=10,
            series="values",
            rounds=1 if n > 100_000 else 3,
        )
