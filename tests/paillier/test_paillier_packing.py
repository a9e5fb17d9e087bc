"""Slots: how many, how wide, and that no sum runs into its neighbour."""

import numpy as np
import pytest
from cases import each_case
from hypothesis import example, given
from hypothesis import strategies as st
from paillier import textbook

from securecomp.errors import ParameterError, RangeError
from securecomp.paillier import Packing

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
BOUNDS = st.integers(0, 9) | st.integers(0, 2**64) | st.integers(0, 2**200)
ADDITIONS = st.integers(1, 9) | st.integers(1, 2**20) | st.integers(2**20, 2**70)


class TestPlan:
    @given(BOUNDS, ADDITIONS)
    @example(2**30 - 1, 2**30)
    @example(2**30, 2**30 + 1)
    @example(0, 1)
    def test_a_slot_has_room_for_the_sum_and_not_much_more(self, public, bound, additions):
        plan = Packing.plan(public, bound, additions)
        assert (plan.bound, plan.additions) == (bound, additions)
        value = max(1, bound.bit_length())
        terms = next(bits for bits in range(99) if 1 << bits >= additions)
        assert plan.slot == value + 1 + terms + 1
        assert plan.slots == (public.bits - 2) // plan.slot
        # The largest sum in every slot: below half a slot, and below half of the modulus.
        largest = bound * additions
        assert 2 * largest < 1 << (plan.slot - 1)
        everywhere = sum(largest << (plan.slot * i) for i in range(plan.slots))
        assert 2 * everywhere < public.n
        assert (plan.slots + 1) * plan.slot > public.bits - 2

    @each_case(
        "bound, additions, slot, slots",
        [
            (0, 1, 3, 170),
            (1, 1, 3, 170),
            (2, 1, 4, 127),
            (3, 2, 5, 102),
            (4, 2, 6, 85),
            (2**40 - 1, 1024, 52, 9),
            (2**40 - 1, 1025, 53, 9),
            (2**40, 1024, 53, 9),
            (2**60 - 1, 2, 63, 8),
            (2**61 - 1, 2, 64, 7),
            (2**508 - 1, 1, 510, 1),
            (2**300, 2**207, 510, 1),
        ],
    )
    def test_the_plans_of_some(self, public, bound, additions, slot, slots):
        assert Packing.plan(public, bound, additions) == Packing(bound, additions, slot, slots)

    def test_how_dense_it_is(self, real):
        """40 bits and 1024 additions: 39 values in a ciphertext of 512 bytes."""
        plan = Packing.plan(real.public, 2**40 - 1, 1024)
        assert (plan.slot, plan.slots) == (52, 39)
        assert [plan.ciphertexts(n) for n in (0, 1, 38, 39, 40, 78, 79)] == [0, 1, 1, 1, 2, 2, 3]

    @each_case("bound, additions", [(-1, 1), (5, 0), (5, -3), (-9, -9)])
    def test_what_cannot_be(self, public, bound, additions):
        reason = r"^a bound is at least 0, and at least 1 addition is allowed$"
        with pytest.raises(ParameterError, match=reason):
            Packing.plan(public, bound, additions)

    @each_case("bound, additions, slot", [(2**508, 1, 511), (1, 2**600, 603)])
    def test_what_does_not_fit(self, public, bound, additions, slot):
        reason = (
            f"^a slot of {slot} bits does not fit a key of 512 bits; use a smaller bound, fewer "
            "additions, or a longer key$"
        )
        with pytest.raises(RangeError, match=reason):
            Packing.plan(public, bound, additions)

    @each_case("kind", INTEGERS)
    def test_numpys_integers(self, public, kind):
        """A bound is often the largest value of an array."""
        plan = Packing.plan(public, kind(100), kind(10))
        assert plan == Packing.plan(public, 100, 10)
        assert type(plan.bound) is type(plan.additions) is int

    @each_case("bound, additions", [(100.0, 4), (100, 4.0), ("7", 1), (None, 1)])
    def test_what_is_no_integer(self, public, bound, additions):
        with pytest.raises(ParameterError):
            Packing.plan(public, bound, additions)


@st.composite
def sums(draw):
    """A layout, vectors of values within its bound, and factors that add up to its additions."""
    bound, additions = draw(BOUNDS), draw(ADDITIONS)
    terms = draw(st.integers(1, min(5, additions)))
    left, factors = additions, []
    for i in range(terms):
        last = i == terms - 1
        size = left if last else draw(st.integers(1, max(1, left - (terms - 1 - i))))
        factors.append(size * draw(st.sampled_from([1, -1])))
        left -= size
    value = st.sampled_from([bound, -bound, 0]) | st.integers(-bound, bound)
    length = draw(st.integers(0, 40))
    vectors = draw(
        st.lists(st.lists(value, min_size=length, max_size=length), min_size=terms, max_size=terms)
    )
    return bound, additions, factors, vectors, length


class TestSlots:
    @given(sums())
    def test_weighted_sums_stay_in_their_slots(self, public, case):
        bound, additions, factors, vectors, length = case
        plan = Packing.plan(public, bound, additions)
        packed = [plan.pack(np.array(v, object)) for v in vectors]
        total = [
            sum(f * p for f, p in zip(factors, column, strict=True))
            for column in zip(*packed, strict=True)
        ]
        want = [
            sum(f * v for f, v in zip(factors, column, strict=True))
            for column in zip(*vectors, strict=True)
        ]
        assert plan.unpack(total, length).tolist() == want

    @given(BOUNDS, ADDITIONS, st.lists(st.booleans(), min_size=1, max_size=60))
    def test_the_largest_sum_beside_the_smallest(self, public, bound, additions, signs):
        plan = Packing.plan(public, bound, additions)
        values = [bound if sign else -bound for sign in signs]
        packed = plan.pack(np.array(values, object))
        got = plan.unpack([additions * p for p in packed], len(values))
        assert got.tolist() == [additions * v for v in values]

    @each_case("slot", [3, 4, 31, 32, 33, 62, 63, 64, 65, 127, 128, 255, 256, 510])
    def test_both_ways_to_pack_are_the_textbooks(self, public, slot):
        """Up to 63 bits slots go through 64-bit words, and above through Python's integers."""
        bound = (1 << (slot - 2)) - 1
        plan = Packing.plan(public, bound, 1)
        assert plan.slot == slot
        for length in {0, 1, 2, *(k * plan.slots + d for k in (1, 2) for d in (-1, 0, 1))}:
            values = [(-1) ** i * (bound - i * i % (bound + 1)) for i in range(length)]
            want = textbook.pack(values, slot, plan.slots)
            assert plan.pack(np.array(values, object)) == want
            assert plan.pack(values) == want
            if slot <= 64:
                assert plan.pack(np.array(values, np.int64)) == want
            got = plan.unpack(want, length)
            assert got.tolist() == values
            assert got.dtype == (np.int64 if slot <= 63 else object)
            assert textbook.unpack(want, slot, plan.slots, length) == values

    @each_case("kind", [*INTEGERS, ">i4", ">u8", np.bool_])
    @each_case("bound", [255, 2**64])
    def test_every_type(self, public, kind, bound):
        plan = Packing.plan(public, bound, 1)
        values = np.array([1, 0, 1, 100, 77], kind)
        assert plan.pack(values) == textbook.pack(values.tolist(), plan.slot, plan.slots)

    @each_case("kind", INTEGERS)
    def test_the_ends_of_every_type(self, public, kind):
        ends = np.array([np.iinfo(kind).min, np.iinfo(kind).max], kind)
        plan = Packing.plan(public, 2**64, 1)
        assert plan.unpack(plan.pack(ends), 2).tolist() == ends.tolist()
        narrow = Packing.plan(public, 100, 1)
        with pytest.raises(RangeError, match=r"^a value is beyond the bound 100 of a slot$"):
            narrow.pack(ends)

    @each_case("bound", [0, 5, 2**40, 2**61 - 1, 2**70])
    @each_case("sign", [1, -1])
    @each_case("position", [0, 7])
    def test_one_beyond_the_bound(self, public, bound, sign, position):
        plan = Packing.plan(public, bound, 1)
        values = [0] * 8
        values[position] = sign * bound
        assert plan.unpack(plan.pack(values), 8).tolist() == values
        values[position] += sign
        with pytest.raises(RangeError, match=f"^a value is beyond the bound {bound} of a slot$"):
            plan.pack(values)

    def test_integers_that_numpy_reads_as_floats(self, public):
        plan = Packing.plan(public, 2**64, 1)
        values = [2**63 + 1, -1]
        assert plan.unpack(plan.pack(values), 2).tolist() == values

    def test_fractions(self, public):
        with pytest.raises((ParameterError, RangeError)):
            Packing.plan(public, 2**64, 1).pack([1.5, 2.0])

    @each_case("given_, length", [(0, 1), (1, 0), (2, 9), (1, 10), (3, 10)])
    def test_another_number_of_plaintexts(self, public, given_, length):
        plan = Packing.plan(public, 2**40 - 1, 1024)
        assert plan.slots == 9
        reason = f"^{given_} plaintexts do not hold {length} values$"
        with pytest.raises(RangeError, match=reason):
            plan.unpack([0] * given_, length)

    @each_case("bound", [7, 2**70])
    def test_what_no_sum_of_this_layout_gives(self, public, bound):
        plan = Packing.plan(public, bound, 4)
        half = 1 << (plan.slot - 1)
        lowest = [-half] * plan.slots
        highest = [half - 1] * plan.slots
        for values, beyond in ((lowest, -1), (highest, 1)):
            (plaintext,) = textbook.pack(values, plan.slot, plan.slots)
            assert plan.unpack([plaintext], plan.slots).tolist() == values
            with pytest.raises(RangeError, match=r"^a plaintext does not fit its slots: not a"):
                plan.unpack([plaintext + beyond], plan.slots)
        # The last plaintext of a vector has fewer slots.
        assert plan.unpack([-half], 1).tolist() == [-half]
        for plaintext in (half, -half - 1, 1 << plan.slot):
            with pytest.raises(RangeError, match="does not fit its slots"):
                plan.unpack([plaintext], 1)
