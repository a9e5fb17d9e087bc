"""Arithmetic in the field of 2^61 - 1 elements against float64, and splitting into shares."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core import field
from securecomp.overhead.cases import aes_floors
from securecomp.overhead.cases.synthetic_data import Synthetic
from securecomp.overhead.job import Case, Job, WrongResultError
from securecomp.sharing import reconstruct, split

Array = npt.NDArray[Any]

P = field.MODULUS
_CHUNK = 1 << 16
_SHARES = 3
COPY = "memory copy"


def _residues(shape: tuple[int, ...], seed: int) -> field.Residues:
    values = Synthetic(seed).integers(0, P, shape).astype(np.uint64)
    values.flat[:4] = [(0, 0, P - 1, P - 1), (0, P - 1, 1, P - 1)][seed % 2]
    return values


def _apart(length: int, dtype: type, number: int) -> list[Array]:
    """Allocate arrays that start on cache lines and at different places of a page.

    Where all addresses agree in their low 12 bits, as large allocations do, loads wait for
    unrelated stores: on some processors numpy then takes twice as long.
    """
    gap = 17 * 64
    size = -(-8 * length // 4096) * 4096
    block = np.empty(number * (size + gap) + 64, np.uint8)
    first = -block.ctypes.data % 64
    starts = [first + i * (size + gap) for i in range(number)]
    return [block[start : start + 8 * length].view(dtype) for start in starts]


def _elementwise(
    operation: Callable[..., Any],
    plain: Callable[..., Any],
    exact: Callable[[Any, Any], Any],
    length: int,
) -> Job:
    a, b, out, copied = _apart(length, np.uint64, 4)
    x, y, z = _apart(length, np.float64, 3)
    a[:], b[:] = _residues((length,), 0), _residues((length,), 1)
    x[:], y[:] = a, b

    def check(_: Any, result: Array) -> float:
        # Python integers are exact; in chunks, as they take much memory.
        for start in range(0, length, _CHUNK):
            part = slice(start, start + _CHUNK)
            expected = exact(a[part].astype(object), b[part].astype(object)) % P
            if not np.array_equal(result[part], expected.astype(np.uint64)):
                raise WrongResultError(f"between elements {start} and {start + _CHUNK}")
        return 0.0

    return Job(
        sizes={"elements": length},
        plain=lambda: plain(x, y, out=z),
        secure=lambda _: operation(a, b, out=out),
        check=check,
        floors={COPY: lambda: np.copyto(copied, a)},
        note="Outputs allocated before, on both sides.",
    )


def add(length: int) -> Job:
    """Return the job of adding two vectors."""
    return _elementwise(field.add, np.add, lambda a, b: a + b, length)


def multiply(length: int) -> Job:
    """Return the job of multiplying two vectors, element by element."""
    return _elementwise(field.multiply, np.multiply, lambda a, b: a * b, length)


def matmul(order: int) -> Job:
    """Return the job of multiplying two square matrices."""
    a, b = _residues((order, order), 0), _residues((order, order), 1)
    x, y, z = a / P, b / P, np.empty((order, order))

    def check(_: Any, result: Array) -> float:
        _check_worst_case()
        # Freivalds: a wrong product passes with probability 2^-61.
        probe = _residues((order,), 2).astype(object)
        left = a.astype(object) @ (b.astype(object) @ probe % P) % P
        if not np.array_equal(left, result.astype(object) @ probe % P):
            raise WrongResultError("the product times a random vector differs")
        return 0.0

    return Job(
        sizes={"rows": order, "inner": order, "columns": order},
        plain=lambda: np.matmul(x, y, out=z),
        secure=lambda _: field.matmul(a, b),
        check=check,
        note="Both sides use the same BLAS with its default threads.",
    )


def _check_worst_case() -> None:
    """Check inner lengths around the block of 2048, with one value everywhere: v^2 k mod p.

    p-1 is the largest residue. The other value is the hardest for balanced digits in base 2^21:
    -2^20 and -(2^20 - 1), whose sum is odd, so that float64 shows the first product too many.
    """
    for value in (P - 1, P - (1 << 20) - (((1 << 20) - 1) << 21)):
        for inner in (2047, 2048, 2049):
            left = np.full((3, inner), value, np.uint64)
            right = np.full((inner, 2), value, np.uint64)
            if not (field.matmul(left, right) == value * value * inner % P).all():
                raise WrongResultError(f"inner length {inner} with all values {value}")


def share(elements: int) -> Job:
    """Return the job of splitting a vector into additive shares, beside the AES that it needs."""
    values = Synthetic(0).integers(0, P, elements).astype(np.uint64)
    copied = np.empty_like(values)

    def check(_: Any, shares: Any) -> float:
        if len(shares) != _SHARES or any(np.array_equal(s.residues, values) for s in shares):
            raise WrongResultError("the shares are not those of three parties")
        if not np.array_equal(reconstruct(shares), values):
            raise WrongResultError("the shares do not add up to the values")
        return 0.0

    return Job(
        sizes={"parties": _SHARES, "elements": elements},
        plain=lambda: np.copyto(copied, values),
        secure=lambda _: split(values, _SHARES),
        check=check,
        floors=aes_floors.floors(_SHARES - 1, 8 * elements),
        note="Plaintext is a copy of the vector: what handing it over in the clear takes.",
    )


def for_developers() -> Iterator[Case]:
    """Yield the field's operations, in memory and in the cache."""
    for name, title, build, size, quick in (
        ("add", "Field addition", add, 1 << 22, 1 << 18),
        ("multiply", "Field multiplication", multiply, 1 << 22, 1 << 18),
        # The large ones wait for memory most of the time; these show the arithmetic.
        ("add/cached", "Field addition in the cache", add, 1 << 14, 1 << 14),
        ("multiply/cached", "Field multiplication in the cache", multiply, 1 << 14, 1 << 14),
        ("matmul", "Field matrix product", matmul, 500, 100),
    ):
        yield Case(f"field/{name}", title, build, size=size, quick=quick, tiny=8)


def splitting() -> Case:
    """Return the case of splitting a vector into shares."""
    return Case(
        "split", "Additive shares of a vector", share, size=1_000_000, quick=100_000, tiny=100
    )
