"""Reals and integers: the error of a binary grid, exactness of a decimal one, and headroom."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securecomp.core.fixedpoint import FixedPoint
from securecomp.core.limbs import HIDING_BITS, Limbs
from securecomp.errors import RangeError

finite = st.floats(allow_nan=False, allow_infinity=False)
FORMS = [
    lambda v: v,
    lambda v: np.array([v]),
    lambda v: np.array([v], object),
    lambda v: [Decimal(v)],
    lambda v: [Fraction(v)],
    lambda v: np.array([v], np.longdouble),
]


def integer(grid, value):
    return int(np.asarray(grid.encode(value), object).reshape(-1)[0])


@given(finite, st.integers(0, 1000))
def test_a_binary_grid_errs_by_half_a_unit_at_most(value, bits):
    grid = FixedPoint.binary(abs(value), bits)
    exact = Fraction(value)
    got = {integer(grid, form(value)) for form in FORMS}
    assert len(got) == 1
    (encoded,) = got
    assert abs(Fraction(encoded, 2**bits) - exact) <= Fraction(1, 2 ** (bits + 1))
    assert encoded == round(exact * 2**bits)
    assert abs(encoded) <= grid.limit


@given(st.integers(-(10**15), 10**15), st.integers(0, 22))
def test_a_decimal_grid_is_exact(number, decimals):
    """Fifteen digits are what a float holds."""
    grid = FixedPoint.decimal(Fraction(abs(number), 10**decimals), decimals)
    exact = Fraction(number, 10**decimals)
    value = number / 10**decimals
    assert integer(grid, exact) == number
    assert integer(grid, [Decimal(number).scaleb(-decimals)]) == number
    assert grid.decode(number) == value
    if abs(number) < 10**15 and decimals <= 15:
        wide = FixedPoint.decimal(10**15, decimals)
        assert integer(wide, np.array([value])) == number
        assert integer(wide, np.array([value], object)) == number


@given(st.floats(-1e15, 1e15) | st.integers(-(10**15), 10**15), st.integers(0, 22))
def test_an_array_and_objects_agree(units, decimals):
    """Two ways lead to the same integer or to the same refusal."""
    value = units / 10**decimals
    grid = FixedPoint.decimal(10**15, decimals)
    outcomes = []
    for form in (np.array([value]), np.array([value], object)):
        try:
            outcomes.append(integer(grid, form))
        except RangeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@given(st.lists(st.integers(-(2**70), 2**70)), st.integers(0, 22), st.integers(0, 2**70))
def test_integers_within_the_bound_and_no_others(values, decimals, bound):
    grid = FixedPoint.decimal(bound, decimals)
    array = np.array(values, object)
    beyond = [i for i, v in enumerate(values) if abs(v) > bound]
    if beyond:
        with pytest.raises(RangeError, match=rf"value {beyond[0] + 1}\b.* is beyond the agreed"):
            grid.encode(array)
    else:
        encoded = grid.encode(array).tolist()
        assert encoded == [v * 10**decimals for v in values]
        assert all(abs(v) <= grid.limit for v in encoded)


@given(st.lists(finite, min_size=1), finite, st.integers(0, 60))
def test_floats_within_the_bound_and_no_others(values, bound, bits):
    grid = FixedPoint.binary(abs(bound), bits)
    beyond = [i for i, v in enumerate(values) if abs(v) > abs(bound)]
    if beyond:
        with pytest.raises(RangeError, match=rf"value {beyond[0] + 1}\b.* is beyond the agreed"):
            grid.encode(np.array(values))
    else:
        assert all(abs(int(v)) <= grid.limit for v in grid.encode(np.array(values)))


sizes = st.integers(0, 2**70) | st.integers(0, 300).map(lambda n: 2**n) | st.integers(0, 2**500)
limits = st.sampled_from([2**60 - 1, 2**62, 2**31 - 1, 2**63 - 1]) | sizes


@given(sizes, st.integers(1, 2**20), limits)
def test_limbs_have_headroom_or_are_refused(bound, terms, limit):
    """terms x largest <= limit is the whole proof; `largest` holds for whatever is drawn."""
    try:
        plan = Limbs.plan(bound, terms, limit)
    except RangeError:
        assert bound * terms > limit
        assert limit // terms < 1 << (4 + HIDING_BITS + 1)
        return
    assert terms * plan.largest <= limit
    assert (plan.count == 1) is (bound * terms <= limit)
    if plan.count == 1:
        assert plan.width == 0
        assert plan.largest == bound
    else:
        assert plan.width >= 4
        # The limbs hold the number and its sign, and no limb is in vain.
        assert (plan.count - 1) * plan.width < bound.bit_length() + 1 <= plan.count * plan.width
    for entropy in (bytes, lambda n: b"\xff" * n):
        for value in (bound, -bound, bound // 2, -(bound // 2), min(1, bound)):
            limbs = plan.split([value], entropy)
            assert len(limbs) == plan.count
            assert max(map(abs, limbs)) <= plan.largest
            assert plan.join(limbs) == [value]


@given(st.integers(1, 2**300), st.integers(1, 12), st.data())
def test_sums_of_limbs_are_sums(bound, parties, data):
    plan = Limbs.plan(bound, parties, 2**60 - 1)
    value = st.sampled_from([bound, -bound, 0]) | st.integers(-bound, bound)
    length = data.draw(st.integers(0, 4))
    total_limbs = [0] * (length * plan.count)
    totals = [0] * length
    for _ in range(parties):
        values = data.draw(st.lists(value, min_size=length, max_size=length))
        fill = data.draw(st.sampled_from([b"\0", b"\xff"]) | st.binary(min_size=1, max_size=1))
        limbs = plan.split(values, lambda n, fill=fill: fill * n)
        total_limbs = [a + b for a, b in zip(total_limbs, limbs, strict=True)]
        totals = [a + b for a, b in zip(totals, values, strict=True)]
    assert all(abs(limb) <= plan.limit for limb in total_limbs)
    assert plan.join(total_limbs) == totals
