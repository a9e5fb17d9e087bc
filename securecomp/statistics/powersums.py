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
    """Return, for each group, the sum of the integers (power 1) or of their squares (power 2).

    Args:
        integers: int64, or objects that are Python ints, shape (rows,).
        codes: Each row's group, shape (rows,), in [0, groups).
        groups: Number of groups.
        power: 1 or 2.
    """
    if integers.dtype == object:
        totals = [0] * groups
        for value, code in zip(integers.tolist(), codes.tolist(), strict=True):
            totals[code] += value**power
        return totals
    largest = int(np.abs(integers.astype(np.float64)).max()) + 1 if integers.size else 0
    if largest**power * max(1, integers.size) <= _INT64:
        return _grouped(integers**power, codes, groups)
    totals = [0] * groups
    for start in range(0, integers.size, _CHUNK):
        chunk = integers[start : start + _CHUNK]
        part = codes[start : start + _CHUNK]
        digits = (chunk & _LOW, (chunk >> _DIGIT) & _LOW, chunk >> 2 * _DIGIT)
        for weight, term in _terms(digits, power):
            for group, value in enumerate(_grouped(term, part, groups)):
                totals[group] += value << weight
    return totals


def _terms(
    digits: tuple[npt.NDArray[np.int64], ...], power: int
) -> list[tuple[int, npt.NDArray[np.int64]]]:
    if power == 1:
        return [(_DIGIT * i, digit) for i, digit in enumerate(digits)]
    return [(_DIGIT * (i + j), digits[i] * digits[j]) for i in range(3) for j in range(3)]


def _grouped(values: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], groups: int) -> list[int]:
    if groups == 1:
        return [int(values.sum())]
    totals = np.zeros(groups, np.int64)
    np.add.at(totals, codes, values)
    return totals.tolist()
