"""A site's own sums against Python's integers, at the ends of int64 and across chunks."""

import random

import numpy as np
from cases import each_case

from securecomp.statistics.power_sums import _CHUNK, power_sums

LOW, HIGH = -(2**63), 2**63 - 1


def reference(values, codes, groups, power):
    sums = [0] * groups
    for value, code in zip(values, codes, strict=True):
        sums[code] += value**power
    return sums


CASES = {
    "nothing": [],
    "zero": [0],
    "highest": [HIGH] * 3,
    "lowest": [LOW] * 3,
    "both ends": [LOW, HIGH, LOW, HIGH, -1],
    "around 2^31.5": [3037000499, 3037000500, -3037000500],
    "digits of 22 bits": [2**22 - 1, 2**22, -(2**22), 2**44 - 1, 2**44, -(2**44), 2**62, -(2**62)],
    "minus one": [-1] * 7,
    "sum fits, squares do not": [2**32, -(2**32), 5],
    "every power of two": [s << i for i in range(63) for s in (1, -1)],
}


@each_case("power", [1, 2])
@each_case("groups", [1, 3])
@each_case("dtype", [np.int64, object])
@each_case("name", CASES)
def test_against_python(name, dtype, groups, power):
    values = CASES[name]
    codes = np.arange(len(values), dtype=np.int64) % groups
    found = power_sums(np.array(values, dtype), codes, groups, power)
    assert found == reference(values, codes.tolist(), groups, power)
    assert {type(total) for total in found} == {int}


@each_case("power", [1, 2])
def test_at_random(power):
    draw = random.Random(7)  # noqa: S311
    for _ in range(300):
        bits = draw.randrange(1, 64)
        values = [draw.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)) for _ in range(20)]
        codes = [draw.randrange(4) for _ in values]
        found = power_sums(np.array(values, np.int64), np.array(codes, np.int64), 4, power)
        assert found == reference(values, codes, 4, power)


@each_case("value", [LOW, HIGH, 2**44 - 1, -1])
def test_full_chunks_do_not_overflow(value):
    """Two chunks and one row of the value whose digits are the largest there are."""
    rows = 2 * _CHUNK + 1
    values = np.full(rows, value, np.int64)
    values[0] = LOW  # so that the wide way is taken
    codes = np.zeros(rows, np.int64)
    for power in (1, 2):
        expected = LOW**power + (rows - 1) * value**power
        assert power_sums(values, codes, 1, power) == [expected]


def test_a_group_without_rows_is_zero():
    assert power_sums(np.array([HIGH, 2], np.int64), np.array([2, 2]), 4, 2) == [
        0,
        0,
        HIGH**2 + 4,
        0,
    ]


def test_the_narrow_way_stops_where_int64_does():
    """The largest rows x value that are summed in one go, and one more."""
    for value, rows in ((2**31 - 1, 2), (2**31, 2), (3037000498, 1), (3037000499, 1)):
        values, codes = np.full(rows, value, np.int64), np.zeros(rows, np.int64)
        assert power_sums(values, codes, 1, 2) == [rows * value**2]
