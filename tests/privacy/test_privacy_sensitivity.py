"""Sensitivities against all pairs of neighbours, tried out."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from securecomp.errors import ParameterError, RangeError
from securecomp.privacy import sensitivity
from securecomp.privacy.calibration import laplace_scale
from securecomp.privacy.sensitivity import Bounds, Neighbours, Sensitivity

RECORD = Neighbours()
REPLACED = Neighbours("replace-one")
KINDS = [
    RECORD,
    REPLACED,
    Neighbours("add/remove", "patient", 1),
    Neighbours("add/remove", "patient", 3),
    Neighbours("replace-one", "patient", 2),
]
BOUNDS = [(0, 100), (-1, 100), (-100, 1), (3, 7), (-7, -3), (-5, 5), (Fraction(1, 3), 2)]


def units(neighbours, values):
    """All that one unit can bring: a tuple of records."""
    if neighbours.unit == "record":
        return [(value,) for value in values]
    return [
        records
        for size in range(neighbours.records + 1)
        for records in itertools.product(values, repeat=size)
    ]


def largest(neighbours, values, result):
    """The largest differences in L1 and L2 of a result over all neighbours of one unit."""
    inside = [np.array(result(records), dtype=object) for records in units(neighbours, values)]
    others = (
        inside if neighbours.relation == "replace-one" else [np.array(result(()), dtype=object)]
    )
    gaps = [a - b for a in inside for b in others]
    return max(sum(abs(gap)) for gap in gaps), max(sum(gap**2) for gap in gaps)


@each_case("neighbours", KINDS)
@each_case("ends", BOUNDS)
def test_a_sum(neighbours, ends):
    low, high = map(Fraction, ends)
    found = sensitivity.total(Bounds(*ends), neighbours)
    tried = largest(neighbours, [low, (low + high) / 2, high], lambda unit: [sum(unit)])
    assert (found.l1, found.squared) == tried


@each_case("neighbours", KINDS)
def test_a_count_and_a_histogram(neighbours):
    found = sensitivity.count(neighbours)
    assert (found.l1, found.squared) == largest(neighbours, [0, 1], lambda unit: [sum(unit)])
    found = sensitivity.histogram(neighbours)
    counts = largest(neighbours, range(3), lambda unit: [unit.count(i) for i in range(3)])
    assert (found.l1, found.squared) == counts


@each_case("neighbours", KINDS)
@each_case("ends", BOUNDS)
def test_the_parts_of_a_mean(neighbours, ends):
    low, high = map(Fraction, ends)
    parts = sensitivity.mean_parts(Bounds(*ends), neighbours)
    values = [value - (low + high) / 2 for value in (low, high)]
    assert (parts[0].l1, parts[0].squared) == largest(neighbours, values, lambda u: [sum(u)])
    # Both are noised as one: no neighbour changes them by more than together.
    both = sensitivity.together(*parts)
    l1, squared = largest(neighbours, values, lambda unit: [sum(unit), len(unit)])
    assert both.l1 >= l1
    assert both.squared >= squared


@each_case("neighbours", KINDS)
def test_a_clipped_vector(neighbours):
    far = [np.array([Fraction(3), Fraction(4)]), np.array([-3, 4]), np.array([-3, -4])]
    found = sensitivity.vector(5, 2, neighbours)

    def add(unit):
        return sum((far[i] for i in unit), np.array([0, 0]))

    l1, squared = largest(neighbours, range(3), add)
    assert found.squared == squared
    assert found.l1 >= l1


def test_a_mean_over_a_public_number_of_records():
    found = sensitivity.mean(Bounds(0, 200_000), 10_000, REPLACED)
    assert found.l1 == 20
    # 7 // 2 would be 3: what is divided stays exact, so that no sensitivity shrinks.
    assert sensitivity.mean(Bounds(0, 7), 2, REPLACED).l1 == Fraction(7, 2)
    assert sensitivity.mean(Bounds(0, 1), 10**18 + 1, REPLACED).l1 == Fraction(1, 10**18 + 1)


def test_both_bounds_count():
    # The fault: (upper - lower) computed with the lower bound twice.
    assert sensitivity.total(Bounds(-1, 100), REPLACED).l1 == 101
    assert sensitivity.total(Bounds(-100, 1), RECORD).l1 == 100
    assert sensitivity.total(Bounds(-1, 100), RECORD).l1 == 100
    assert sensitivity.mean(Bounds(20, 70), 10, REPLACED).l1 == 5


@each_case("kind", [np.float32, np.float16, np.int64, int, Decimal, Fraction])
def test_a_bound_keeps_its_value_whatever_holds_it(kind):
    bounds = Bounds(kind(0), kind(3))
    assert bounds.magnitude == 3
    # The fault: a cast to 32 bits, where 2^24 + 1 is 2^24.
    assert sensitivity.total(Bounds(0, 2**24 + 1), RECORD).l1 == 2**24 + 1
    assert laplace_scale(sensitivity.total(Bounds(0, 2**24 + 1), RECORD), 1) == 2**24 + 1
    # And what was 32 bits wide is taken as it is, not as it was meant.
    assert Bounds(np.float32(0), np.float32(0.1)).upper == Fraction(float(np.float32(0.1)))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_a_root_is_rounded_up(l1):
    assert Fraction(Sensitivity(l1, l1**2).l2) >= l1
    assert Sensitivity(l1, l1**2).l2 <= float(l1) * (1 + 1e-15)


def test_on_a_finer_grid():
    found = sensitivity.total(Bounds(0, Decimal("0.1")), RECORD).scaled(1024)
    assert (found.l1, found.squared) == (Fraction(1024, 10), Fraction(1024, 10) ** 2)


@each_case(
    "ends, message",
    [
        ((1, 0), "bounds are crossed: 1 is above 0"),
        ((0, math.inf), "upper bound is a finite number"),
        ((-math.inf, 0), "lower bound is a finite number"),
        ((math.nan, 1), "lower bound is a finite number"),
        ((0, Decimal("Infinity")), "upper bound is a finite number"),
        ((0, np.float32("nan")), "upper bound is a finite number"),
        (("0", 1), "lower bound is a finite number"),
    ],
)
def test_bounds_that_are_none(ends, message):
    with pytest.raises(ParameterError, match=message):
        Bounds(*ends)


@each_case(
    "make",
    [
        lambda: sensitivity.total(Bounds(3, 3), REPLACED),
        lambda: sensitivity.total(Bounds(0, 0), RECORD),
        lambda: sensitivity.mean(Bounds(3, 3), 10, REPLACED),
        lambda: sensitivity.mean_parts(Bounds(3, 3), RECORD),
    ],
)
def test_what_nobody_can_change_gets_no_noise(make):
    with pytest.raises(ParameterError, match=r"sensitivity is 0.*publish the constant"):
        make()


@each_case("neighbours", [RECORD, Neighbours("replace-one", "patient", 2)])
def test_a_private_denominator_is_refused(neighbours):
    with pytest.raises(ParameterError, match=r"denominator would reveal it.*mean_parts"):
        sensitivity.mean(Bounds(0, 1), 10, neighbours)


def test_the_mean_of_nothing():
    with pytest.raises(ParameterError, match="a mean must be at least 1"):
        sensitivity.mean(Bounds(0, 1), 0, REPLACED)


@each_case(
    "arguments, message",
    [
        (("add",), "relation is one of"),
        (("add/remove", "person"), "unit is one of"),
        (("add/remove", "patient", 0), "at least one record"),
        (("add/remove", "patient", 2.0), "at least one record"),
        (("add/remove", "record", 3), "say unit 'patient'"),
    ],
)
def test_neighbours_that_are_none(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Neighbours(*arguments)


def test_vectors_without_a_norm():
    for norm, dimension in ((0, 3), (-1, 3), (1, 0)):
        with pytest.raises(ParameterError, match="norm above 0"):
            sensitivity.vector(norm, dimension, RECORD)
    with pytest.raises(ParameterError, match="no result"):
        sensitivity.together()


def test_clipping():
    bounds = Bounds(0, Decimal("0.1"))
    clipped = bounds.clip([-1, 0.05, 7, math.inf, -math.inf])
    assert [Fraction(v) <= Fraction(1, 10) for v in clipped] == [True] * 5
    assert clipped[:3].tolist() == [0, 0.05, math.nextafter(0.1, 0)]
    assert str(bounds) == "clipped to [0, 0.1]"
    assert bounds.clip(np.float32([0.01])).dtype == np.float64
    with pytest.raises(RangeError, match="salary: 2 are NaN, the first in row 2"):
        bounds.clip([0, math.nan, math.nan], "salary")
    with pytest.raises(RangeError, match="salary: there are none"):
        bounds.clip([], "salary")


def test_in_words():
    assert str(RECORD) == "add/remove of one record"
    assert str(KINDS[3]) == "add/remove of one patient with at most 3 records"
    assert str(KINDS[2]) == "add/remove of one patient with at most 1 record"
