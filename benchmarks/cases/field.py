"""Arithmetic in the field of 2^61 - 1 elements against numpy's on float64."""

import numpy as np

from securecomp.core import field
from securecomp.overhead.job import Case, Job, Target, WrongResultError

P = field.MODULUS
_CHUNK = 1 << 16
COPY = "memory copy"


def _residues(shape: tuple[int, ...], seed: int) -> field.Residues:
    values = np.random.default_rng(seed).integers(0, P, shape, np.uint64)
    values.flat[:4] = [(0, 0, P - 1, P - 1), (0, P - 1, 1, P - 1)][seed % 2]
    return values


def _apart(length: int, dtype: type, number: int) -> list[np.ndarray]:
    """Allocate arrays that start on cache lines and not at the same place of a page.

    Where all addresses agree in their low 12 bits, as large allocations do, loads wait for stores
    that they have nothing to do with: on some processors numpy then takes twice as long.
    """
    gap = 17 * 64
    size = -(-8 * length // 4096) * 4096
    block = np.empty(number * (size + gap) + 64, np.uint8)
    first = -block.ctypes.data % 64
    starts = [first + i * (size + gap) for i in range(number)]
    return [block[start : start + 8 * length].view(dtype) for start in starts]


def _elementwise(operation, plain, exact, length: int) -> Job:
    a, b, out, copied = _apart(length, np.uint64, 4)
    x, y, z = _apart(length, np.float64, 3)
    a[:], b[:] = _residues((length,), 0), _residues((length,), 1)
    x[:], y[:] = a, b

    def check(_, result) -> float:
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
    return _elementwise(field.add, np.add, lambda a, b: a + b, length)


def multiply(length: int) -> Job:
    return _elementwise(field.multiply, np.multiply, lambda a, b: a * b, length)


def matmul(order: int) -> Job:
    a, b = _residues((order, order), 0), _residues((order, order), 1)
    x, y, z = a / P, b / P, np.empty((order, order))

    def check(_, result) -> float:
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
    """Inner lengths around the block of 2048, with one value everywhere: v^2 k mod p.

    p-1 is the largest residue. The other value is the hardest for balanced digits in base 2^21:
    -2^20 and -(2^20 - 1), whose sum is odd, so that float64 shows the first product too many.
    """
    for value in (P - 1, P - (1 << 20) - (((1 << 20) - 1) << 21)):
        for inner in (2047, 2048, 2049):
            left = np.full((3, inner), value, np.uint64)
            right = np.full((inner, 2), value, np.uint64)
            if not (field.matmul(left, right) == value * value * inner % P).all():
                raise WrongResultError(f"inner length {inner} with all values {value}")


CASES = (
    Case(
        "field/add",
        "Field addition",
        add,
        size=1 << 22,
        quick=1 << 18,
        tiny=8,
        target=Target("at most 1.3x of numpy's float64 add", 1.3),
    ),
    Case(
        "field/multiply",
        "Field multiplication",
        multiply,
        size=1 << 22,
        quick=1 << 18,
        tiny=8,
        target=Target("at most 1.6x of numpy's float64 multiply", 1.6),
    ),
    # The large ones wait for memory most of the time; these show the arithmetic.
    Case(
        "field/add/cached",
        "Field addition in the cache",
        add,
        size=1 << 14,
        quick=1 << 14,
        tiny=8,
    ),
    Case(
        "field/multiply/cached",
        "Field multiplication in the cache",
        multiply,
        size=1 << 14,
        quick=1 << 14,
        tiny=8,
    ),
    Case(
        "field/matmul",
        "Field matrix product",
        matmul,
        size=500,
        quick=100,
        tiny=8,
        target=Target("at most 15x of float64 matmul", 15),
    ),
)
