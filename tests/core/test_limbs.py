"""Limbs: headroom, round trips at the extremes, and what the sums of the limbs show."""

import itertools
from collections import Counter
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from scipy import stats

from securecomp.core.field import LIMIT
from securecomp.core.limbs import HIDING_BITS, Limbs
from securecomp.errors import ParameterError, RangeError


def zeros(size):
    return bytes(size)


def ones(size):
    return b"\xff" * size


class TestPlan:
    def test_a_plan_does_not_change(self):
        plan = Limbs.plan(5, 3, LIMIT)
        with pytest.raises(FrozenInstanceError):
            plan.width = 60

    def test_a_total_that_fits_is_one_limb(self):
        plan = Limbs.plan(LIMIT // 3, 3, LIMIT)
        assert (plan.count, plan.width, plan.largest) == (1, 0, LIMIT // 3)
        assert (plan.bound, plan.terms, plan.limit) == (LIMIT // 3, 3, LIMIT)

    def test_the_first_total_that_does_not_fit(self):
        plan = Limbs.plan(LIMIT // 3 + 1, 3, LIMIT)
        assert (plan.count, plan.width) == (4, 17)
        assert plan.largest == 2**58
        assert 3 * plan.largest <= LIMIT < 6 * plan.largest

    @each_case(
        "terms, width", [(1, 18), (2, 17), (3, 17), (54, 13), (1000, 9), (2**14, 4), (2**15 - 1, 4)]
    )
    def test_the_widest_limb_that_has_room(self, terms, width):
        plan = Limbs.plan(2**80, terms, LIMIT)
        assert plan.width == width
        assert plan.count == -(-82 // width)
        assert terms * plan.largest <= LIMIT < 4 * terms * plan.largest

    @each_case("terms", [2**15, 2**20, 10**9])
    def test_no_room_even_in_limbs(self, terms):
        with pytest.raises(RangeError) as caught:
            Limbs.plan(2**80, terms, LIMIT)
        assert str(caught.value) == (
            f"{terms} parties with values up to {2**80} do not fit a total of {LIMIT}, not even "
            "in limbs; use a smaller bound or fewer parties"
        )

    def test_no_room_in_a_small_protocol(self):
        with pytest.raises(RangeError, match="not even in limbs"):
            Limbs.plan(100, 3, 299)
        assert Limbs.plan(100, 3, 300).count == 1
        assert Limbs.plan(0, 3, 0).count == 1


PLANS = [
    Limbs.plan(bound, terms, limit)
    for terms in (1, 2, 3, 54, 1000)
    for bound, limit in (
        *((10, LIMIT), (2**60, LIMIT), (2**61 - 1, LIMIT), (2**64, LIMIT), (10**30 + 7, LIMIT)),
        *((2**200, LIMIT), (2**128, 2**62), (2**90, 2**80 - 1), (2**500 + 1, 2**127 - 1)),
    )
]


def extremes(plan):
    """Values at both ends, around zero, and around every border between limbs."""
    borders = {1 << (i * plan.width) for i in range(plan.count)}
    values = {0, 1, plan.bound - 1, plan.bound, *borders, *(b - 1 for b in borders)}
    return sorted({s * v for v in values if v <= plan.bound for s in (1, -1)})


class TestSplit:
    @each_case("source", [zeros, ones, "replay"])
    @each_case("plan", PLANS)
    def test_the_sums_of_the_limbs_give_the_totals(self, plan, source, replay):
        entropy = replay("limbs") if source == "replay" else source
        values = extremes(plan)
        for party in (
            values,
            values[::-1],
            [plan.bound] * len(values),
            [-plan.bound] * len(values),
        ):
            limbs = plan.split(party, entropy)
            assert len(limbs) == plan.count * len(values)
            assert all(type(limb) is int for limb in limbs)
            assert max(map(abs, limbs)) <= plan.largest
            assert plan.join(limbs) == party
            # All parties alike is the largest sum there is.
            totals = [plan.terms * limb for limb in limbs]
            assert max(map(abs, totals)) <= plan.limit
            assert plan.join(totals) == [plan.terms * v for v in party]

    @each_case("sources", [*itertools.product([zeros, ones], repeat=3)])
    def test_parties_that_draw_differently(self, sources):
        plan = Limbs.plan(10**30, 3, LIMIT)
        parties = [[10**30, -(10**30), 7], [-(10**30), -(10**30), -8], [10**30, -(10**30), 1]]
        limbs = [plan.split(*party) for party in zip(parties, sources, strict=True)]
        totals = [sum(column) for column in zip(*limbs, strict=True)]
        assert plan.join(totals) == [10**30, -3 * 10**30, 0]
        assert plan.join(np.array(totals, np.int64)) == [10**30, -3 * 10**30, 0]

    def test_one_limb_is_the_value_and_draws_nothing(self):
        def nothing(size):
            raise AssertionError

        plan = Limbs.plan(5, 3, LIMIT)
        assert plan.split([5, -5, 0], nothing) == [5, -5, 0]
        assert plan.join([15, -15, 0]) == [15, -15, 0]

    def test_every_border_between_limbs_draws_afresh(self, replay):
        sizes = []
        source = replay("draws")

        def recorded(size):
            sizes.append(size)
            return source(size)

        plan = Limbs.plan(2**100, 3, LIMIT)
        assert plan.count == 6
        first, second = plan.split([5], recorded), plan.split([5], recorded)
        assert sizes == [HIDING_BITS // 8] * 10
        masks = [limb >> plan.width for limb in (*first[:-1], *second[:-1])]
        assert len(set(masks)) == 10

    def test_numpy_integers(self):
        plan = Limbs.plan(2**62, 3, LIMIT)
        values = np.array([2**62, -(2**62), 5])
        limbs = plan.split(values, ones)
        assert plan.join(limbs) == values.tolist()
        assert all(type(limb) is int for limb in limbs)

    @each_case("plan", [Limbs.plan(98, 3, LIMIT), Limbs.plan(2**70 - 1, 3, LIMIT)])
    def test_a_value_beyond_the_bound(self, plan):
        for value in (plan.bound + 1, -plan.bound - 1):
            with pytest.raises(RangeError) as caught:
                plan.split([0, value], zeros)
            assert str(caught.value) == (
                f"a value is beyond the bound {plan.bound} that was agreed"
            )

    def test_nothing_gives_nothing(self):
        plan = Limbs.plan(2**70, 3, LIMIT)
        assert plan.split([], zeros) == []
        assert plan.join([]) == []

    def test_limbs_that_are_not_whole_integers(self):
        plan = Limbs.plan(2**70, 3, LIMIT)
        with pytest.raises(ParameterError, match="limbs"):
            plan.join([0] * (plan.count + 1))


# What the sums of the limbs show, worked out exactly: small limbs, and randomness that takes few
# enough values to go through them all.


def views(plan, inputs, size):
    """The distribution of the summed limbs, each mask uniform below `size`."""
    total = Counter({(0,) * plan.count: 1})
    for value in inputs:
        party = Counter()
        for masks in itertools.product(range(size), repeat=plan.count - 1):
            drawn = iter(masks)
            limbs = plan.split([value], lambda n, d=drawn: next(d).to_bytes(n, "little"))
            assert next(drawn, None) is None
            party[tuple(limbs)] += 1
        combined = Counter()
        for (a, m), (b, n) in itertools.product(total.items(), party.items()):
            combined[tuple(x + y for x, y in zip(a, b, strict=True))] += m * n
        total = combined
    return total


def distance(a, b):
    """The total variation distance of two distributions."""
    size = a.total()
    assert size == b.total()
    return Fraction(sum(abs(a[v] - b[v]) for v in a | b), 2 * size)


TWO = Limbs(bound=127, terms=2, limit=LIMIT, count=2, width=4)
THREE = Limbs(bound=127, terms=3, limit=LIMIT, count=2, width=4)
LONG = Limbs(bound=2047, terms=2, limit=LIMIT, count=3, width=4)


class TestHiding:
    @each_case(
        "plan, inputs, others, size",
        [
            (TWO, (15, 15), (16, 14), 64),
            (TWO, (15, 1), (0, 16), 64),
            (TWO, (127, -127), (0, 0), 64),
            (TWO, (-1, 101), (99, 1), 64),
            (THREE, (15, 15, 15), (45, 0, 0), 24),
            (THREE, (127, 127, -127), (127, 0, 0), 24),
            (LONG, (255, 255), (256, 254), 10),
            (LONG, (2047, -2047), (0, 0), 10),
            (LONG, (-1, 1001), (777, 223), 10),
        ],
    )
    def test_inputs_with_one_total_look_alike(self, plan, inputs, others, size):
        assert sum(inputs) == sum(others)
        one, other = views(plan, inputs, size), views(plan, others, size)
        for limbs in one | other:
            assert plan.join(limbs) == [sum(inputs)]
        apart = distance(one, other)
        assert apart <= Fraction(plan.terms * plan.count, size)
        # Without the masks the carries would tell these inputs apart for sure.
        assert (apart == 0) is (views(plan, inputs, 1) == views(plan, others, 1))

    def test_the_bound_shrinks_with_the_masks(self):
        apart = [distance(views(TWO, (15, 1), n), views(TWO, (8, 8), n)) for n in (1, 2, 8, 32)]
        assert apart == [0, 0, 0, 0]
        apart = [distance(views(TWO, (15, 1), n), views(TWO, (0, 16), n)) for n in (1, 2, 8, 32)]
        assert apart == [1, Fraction(1, 2), Fraction(1, 8), Fraction(1, 32)]

    def test_the_carry_is_under_forty_uniform_bits(self, replay):
        """Of one party's low limb, everything above the value's digit is uniform."""
        assert HIDING_BITS == 40
        plan = Limbs.plan(2**70, 3, LIMIT)
        entropy = replay("carries")
        for value in (0, 2**70, -1):
            limbs = plan.split([value] * 8192, entropy)
            low = [limb >> plan.width for limb in limbs[:: plan.count]]
            high = [
                -limb + (value >> plan.width * (plan.count - 1))
                for limb in limbs[plan.count - 1 :: plan.count]
            ]
            for masks in (low, high):
                assert 0 <= min(masks) <= max(masks) < 2**40
                for shift in (0, 16, 32):
                    counts = np.bincount([(m >> shift) & 255 for m in masks], minlength=256)
                    assert stats.chisquare(counts).pvalue > 1e-4


class TestManyAtOnce:
    """`cut` and `put_together` are `split` and `join` on arrays."""

    @each_case("plan", [p for p in PLANS if p.largest < 2**63])
    def test_the_same_limbs_from_the_same_stream(self, plan, replay):
        values = extremes(plan)
        array = np.empty(len(values), np.int64 if plan.bound < 2**63 else object)
        array[:] = values
        limbs = plan.cut(array, replay("limbs"))
        assert limbs.dtype == np.int64
        assert limbs.tolist() == plan.split(values, replay("limbs"))
        assert plan.put_together(limbs).tolist() == values
        totals = plan.terms * limbs
        assert plan.put_together(totals).tolist() == [plan.terms * v for v in values]

    def test_narrow_integers_under_a_wide_bound(self, replay):
        plan = Limbs.plan(2**200, 3, LIMIT)
        values = [0, 1, -1, 2**62, -(2**63), 2**63 - 1, -5]
        limbs = plan.cut(np.array(values, np.int64), replay("wide"))
        assert limbs.tolist() == plan.split(values, replay("wide"))
        assert plan.put_together(limbs).tolist() == values

    @each_case("plan", [Limbs.plan(98, 3, LIMIT), Limbs.plan(2**70 - 1, 3, LIMIT)])
    def test_a_value_beyond_the_bound(self, plan):
        for value in (plan.bound + 1, -plan.bound - 1):
            with pytest.raises(RangeError, match="beyond the bound"):
                plan.cut(np.array([0, value], object), zeros)

    def test_limbs_that_have_no_room_or_are_not_whole(self):
        with pytest.raises(RangeError, match="do not fit 64 bits"):
            Limbs.plan(2**100, 1, 2**90).cut(np.zeros(1, np.int64), zeros)
        with pytest.raises(ParameterError, match="limbs"):
            Limbs.plan(2**70, 3, LIMIT).put_together(np.zeros(3, np.int64))

    def test_nothing_gives_nothing(self):
        plan = Limbs.plan(2**70, 3, LIMIT)
        assert plan.cut(np.zeros(0, np.int64), zeros).tolist() == []
        assert plan.put_together(np.zeros(0, np.int64)).tolist() == []
