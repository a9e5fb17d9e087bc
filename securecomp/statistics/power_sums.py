"""One site's own sums, exact whatever the size: no int64 overflows on the way."""

from typing import Any

import numpy as np
import numpy.typing as npt

_CHUNK = 1 << 19  # rows whose 44-bit products add up within int64
_DIGIT = 22
_LOW = (1 << _DIGIT) - 1
_INT64 = (1 << 63) - 1


def power_sums(
    integers: npt.NDArray[Any], codes: npt.NDArray[np.int64], groups: int, power: int
) -> list[int]:
    """Return, for each group, the sum of the integers, of their squares or their cubes.

    Args:
        integers: int64, or objects that are Python ints, shape (rows,).
        codes: Each row's group, shape (rows,), in [0, groups).
        groups: Number of groups.
        power: 1, 2 or 3.
    """
    if power == 1:
        return _sums(integers, codes, groups)
    if power == 2:
        return product_sums(integers, integers, codes, groups)
    wide = integers.dtype == object or _largest(integers) >= 1 << 31
    plain = integers.astype(object) if wide else integers
    return product_sums(plain, plain * plain, codes, groups)


def product_sums(
    left: npt.NDArray[Any], right: npt.NDArray[Any], codes: npt.NDArray[np.int64], groups: int
) -> list[int]:
    """Return, for each group, the sum of the products of two columns of integers.

    Args:
        left: int64, or objects that are Python ints, shape (rows,).
        right: The same of the other column.
        codes: Each row's group, shape (rows,), in [0, groups).
        groups: Number of groups.
    """
    if object in (left.dtype, right.dtype):
        totals = [0] * groups
        for a, b, code in zip(left.tolist(), right.tolist(), codes.tolist(), strict=True):
            totals[code] += a * b
        return totals
    if _largest(left) * _largest(right) * max(1, left.size) <= _INT64:
        return _grouped(left * right, codes, groups)
    totals = [0] * groups
    for start in range(0, left.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        others = _digits(right[rows])
        for i, digit in enumerate(_digits(left[rows])):
            for j, other in enumerate(others):
                for group, value in enumerate(_grouped(digit * other, codes[rows], groups)):
                    totals[group] += value << _DIGIT * (i + j)
    return totals


def _sums(integers: npt.NDArray[Any], codes: npt.NDArray[np.int64], groups: int) -> list[int]:
    totals = [0] * groups
    if integers.dtype == object:
        for value, code in zip(integers.tolist(), codes.tolist(), strict=True):
            totals[code] += value
        return totals
    if _largest(integers) * max(1, integers.size) <= _INT64:
        return _grouped(integers, codes, groups)
    for start in range(0, integers.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        for i, digit in enumerate(_digits(integers[rows])):
            for group, value in enumerate(_grouped(digit, codes[rows], groups)):
                totals[group] += value << _DIGIT * i
    return totals


def _largest(integers: npt.NDArray[np.int64]) -> int:
    return int(np.abs(integers.astype(np.float64)).max()) + 1 if integers.size else 0


def _digits(integers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
    return integers & _LOW, (integers >> _DIGIT) & _LOW, integers >> 2 * _DIGIT


def _grouped(values: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], groups: int) -> list[int]:
    if groups == 1:
        return [int(values.sum())]
    totals = np.zeros(groups, np.int64)
    np.add.at(totals, codes, values)
    return totals.tolist()
