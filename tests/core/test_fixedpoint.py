"""Reals to integers: every type of number, every border, and what the errors say."""

import datetime
import math
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from securecomp.core.fixedpoint import FixedPoint, to_floats
from securecomp.errors import ParameterError, RangeError

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i2", ">i8", ">u8"]
FLOATS = ["f2", "f4", "f8", ">f4", ">f8", "g"]
LARGEST = 2**1024 - 2**971  # of all floats
WIDE = 2**70  # a bound that holds every machine integer
DECIMAL_TEXT = [
    *("0", "0.1", "-0.1", "0.2", "0.3", "0.7", "1.1", "2.675", "-1.005", "4.35", "36.6", "199.99"),
    *("0.001", "8.29", "1234567.891", "-99999.999", "1e3", "123456789012.345"),
]


def encoded(grid, values):
    """The integers as Python's, after a look at their shape and type."""
    got = grid.encode(values)
    assert np.shape(got) == np.shape(values)
    if grid.limit < 1 << 62:
        assert got.dtype == np.int64
    flat = list(np.asarray(got, object).flat)
    assert all(isinstance(v, int | np.int64) for v in flat)
    return [int(v) for v in flat]


def refusal(grid, values, **names):
    with pytest.raises(RangeError) as caught:
        grid.encode(values, **names)
    return str(caught.value)


class TestGrids:
    def test_decimal(self):
        grid = FixedPoint.decimal(Decimal("1234.5"), 2)
        assert (grid.bound, grid.scale, grid.exact) == (Fraction(2469, 2), 100, True)
        assert grid.limit == 123450
        assert grid.error == 0.0

    def test_binary(self):
        grid = FixedPoint.binary(10, 8)
        assert (grid.bound, grid.scale, grid.exact) == (10, 256, False)
        assert grid.limit == 2560
        assert grid.error == 1 / 512

    def test_a_grid_does_not_change(self):
        grid = FixedPoint.decimal(5)
        with pytest.raises(FrozenInstanceError):
            grid.bound = 6
        assert grid == FixedPoint.decimal(Fraction(5))
        assert hash(grid) == hash(FixedPoint.decimal(Fraction(5)))

    def test_the_limit_of_a_bound_between_grid_points(self):
        assert FixedPoint.decimal(Fraction(1, 3), 2).limit == 33
        assert FixedPoint.decimal(Fraction(2, 3), 2).limit == 66
        assert FixedPoint.decimal(Fraction(7, 2)).limit == 3
        # On a binary grid the bound itself is rounded.
        assert FixedPoint.binary(Fraction(2, 3), 0).limit == 1
        assert FixedPoint.binary(Fraction(1, 3), 0).limit == 0

    @each_case("text, decimals, limit", [("0.29", 2, 29), ("0.3", 1, 3), ("1.005", 3, 1005)])
    def test_the_limit_of_a_decimal_bound(self, text, decimals, limit):
        assert FixedPoint.decimal(Decimal(text), decimals).limit == limit
        assert FixedPoint.decimal(Fraction(text), decimals).limit == limit

    @each_case("bound, decimals, limit", [(0.29, 2, 29), (0.3, 1, 3), (1.005, 3, 1005)])
    def test_the_limit_of_a_bound_that_is_a_float(self, bound, decimals, limit):
        grid = FixedPoint.decimal(bound, decimals)
        assert encoded(grid, np.array([bound])) == [limit]
        assert grid.limit == limit

    @each_case("decimals", [-1, 23, 100])
    def test_decimals_out_of_range(self, decimals):
        with pytest.raises(ParameterError) as caught:
            FixedPoint.decimal(1, decimals)
        assert str(caught.value) == f"decimals must be from 0 to 22, not {decimals}"

    @each_case("bits", [-1, 1001, 1074])
    def test_bits_out_of_range(self, bits):
        with pytest.raises(ParameterError) as caught:
            FixedPoint.binary(1, bits)
        assert str(caught.value) == f"bits must be from 0 to 1000, not {bits}"

    def test_decimals_that_are_not_an_integer(self):
        for value in (1.5, 2.0, "2", True, None, Decimal(2)):
            with pytest.raises(ParameterError, match=r"^decimals must be an integer, not "):
                FixedPoint.decimal(1, value)
            with pytest.raises(ParameterError, match=r"^bits must be an integer, not "):
                FixedPoint.binary(1, value)
        assert FixedPoint.decimal(1, np.int8(2)) == FixedPoint.decimal(1, 2)
        assert type(FixedPoint.decimal(1, np.int8(2)).scale) is int

    def test_the_widest_grids(self):
        assert FixedPoint.decimal(1, 22).limit == 10**22
        assert FixedPoint.binary(1, 1000).limit == 2**1000
        assert FixedPoint.binary(1, 1000).error == 2.0**-1001

    @each_case(
        "bound",
        [
            *(-1, -0.5, Decimal(-1), Fraction(-1, 7), np.int8(-1), np.float32(-1)),
            *(float("nan"), float("inf"), -float("inf"), np.float64("nan"), np.longdouble("inf")),
            *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")),
            *("5", b"5", None, 1j, [1], np.array([1, 2])),
        ],
    )
    def test_what_is_not_a_bound(self, bound):
        for make in (FixedPoint.decimal, lambda b: FixedPoint.binary(b, 3)):
            with pytest.raises(
                ParameterError, match=r"^a bound must be a finite number of at least 0, not "
            ):
                make(bound)

    @each_case(
        "bound", [3, 3.0, Decimal(3), Fraction(3), np.int8(3), np.float16(3), np.longdouble(3)]
    )
    def test_bounds_of_every_type(self, bound):
        grid = FixedPoint.decimal(bound)
        assert grid.bound == 3
        assert isinstance(grid.bound, Fraction)
        assert grid.limit == 3


class TestIntegers:
    @each_case("dtype", INTEGERS)
    @each_case("decimals", [0, 2, 20])
    def test_every_type(self, dtype, decimals):
        info = np.iinfo(dtype)
        values = [info.min, info.min + 1, 0, 1, info.max - 1, info.max]
        got = encoded(FixedPoint.decimal(WIDE, decimals), np.array(values, dtype))
        assert got == [v * 10**decimals for v in values]

    @each_case("dtype", INTEGERS)
    def test_a_narrow_grid_gives_int64(self, dtype):
        grid = FixedPoint.decimal(100, 2)
        values = np.array([[0, 100], [7, 42]], dtype)
        got = grid.encode(values)
        assert got.dtype == np.int64
        assert got.tolist() == [[0, 10000], [700, 4200]]

    @each_case("decimals", [0, 1])
    def test_booleans(self, decimals):
        grid = FixedPoint.decimal(1, decimals)
        for values in ([True, False], np.array([True, False]), np.array([True, False], object)):
            assert encoded(grid, values) == [10**decimals, 0]

    @each_case("value", [2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64])
    @each_case("sign", [1, -1])
    @each_case("scale", [1, 10, 10**22])
    def test_python_integers_stay_exact(self, value, sign, scale):
        grid = FixedPoint(Fraction(2**80), scale, True)
        assert encoded(grid, sign * value) == [sign * value * scale]
        assert encoded(grid, [sign * value]) == [sign * value * scale]
        both = np.array([sign * value, 1], object)
        assert encoded(grid, both) == [sign * value * scale, scale]

    @each_case("value", [2**100, 10**300, 10**400 + 1])
    def test_integers_of_any_size(self, value):
        assert encoded(FixedPoint.decimal(value), [value, -value]) == [value, -value]

    def test_where_int64_ends(self):
        for value in ((2**63 - 1) // 100, (2**63 - 1) // 100 + 1, -(2**63) // 100):
            grid = FixedPoint.decimal(abs(value), 2)
            assert encoded(grid, np.array([value])) == [100 * value]

    @each_case(
        "grid", [FixedPoint.decimal(1, 19), FixedPoint.decimal(1, 22), FixedPoint.binary(1, 63)]
    )
    def test_zeros_on_a_fine_grid(self, grid):
        assert encoded(grid, [0, 0]) == [0, 0]

    @each_case("other", [0, 1, -1])
    def test_a_list_that_numpy_would_make_floats_of(self, other):
        assert encoded(FixedPoint.decimal(WIDE), [2**63 + 1, other]) == [2**63 + 1, other]

    def test_a_list_of_integers_and_floats(self):
        grid = FixedPoint.decimal(WIDE, 1)
        assert encoded(grid, [2**53 + 1, 0.5]) == [10 * (2**53 + 1), 5]


class TestFloats:
    @each_case("dtype", FLOATS)
    def test_every_type(self, dtype):
        values = np.array([[0.0, -0.0, 0.25], [-0.75, 3.5, -100]], dtype)
        assert encoded(FixedPoint.decimal(100, 2), values) == [0, 0, 25, -75, 350, -10000]
        assert encoded(FixedPoint.binary(100, 3), values) == [0, 0, 2, -6, 28, -800]

    @each_case("dtype", FLOATS)
    def test_whole_numbers_on_the_integer_grid(self, dtype):
        assert encoded(FixedPoint.decimal(2000), np.array([-2000, 7, 0], dtype)) == [-2000, 7, 0]

    @each_case("text", DECIMAL_TEXT)
    def test_decimals_are_on_a_decimal_grid(self, text):
        grid = FixedPoint.decimal(10**12, 3)
        want = [int(Fraction(text) * 1000)]
        value = float(text)
        for form in (
            *(value, [value], np.float64(text), np.array(value), np.array([value], ">f8")),
            *(np.array([value], object), np.array([np.float64(value)], object)),
            *(Decimal(text), [Decimal(text)], Fraction(text), [Fraction(text)]),
        ):
            assert encoded(grid, form) == want

    @each_case("decimals", range(1, 16))
    def test_every_float_of_fifteen_digits(self, decimals, replay):
        """Up to there, a decimal is the only one that its float stands for."""
        grid = FixedPoint.decimal(10**15, decimals)
        words = np.frombuffer(replay(decimals)(8 * 300), "<u8")
        integers = [int(w) % 10 ** (1 + i % 15) * (-1) ** i for i, w in enumerate(words)]
        floats = [n / 10**decimals for n in integers]
        assert encoded(grid, np.array(floats)) == integers
        assert encoded(grid, np.array(floats, object)) == integers

    @each_case("decimals", [2, 6, 15])
    def test_every_float_of_sixteen_digits(self, decimals, replay):
        """A float stands for the shortest decimal that rounds to it."""
        grid = FixedPoint.decimal(2**53, decimals)
        words = np.frombuffer(replay(decimals)(8 * 300), "<u8")
        floats = [float((10**15 + int(w) % (2**53 - 10**15)) / 10**decimals) for w in words]
        want = [Fraction(repr(v)) * 10**decimals for v in floats]
        assert encoded(grid, np.array(floats)) == want
        assert encoded(grid, np.array(floats, object)) == want

    @each_case(
        "value, decimals, want",
        [
            (0.1, 17, 10**16),
            (0.1, 22, 10**21),
            (123456789012.1, 6, 123456789012100000),
        ],
    )
    def test_a_float_is_its_decimal_on_a_fine_grid_too(self, value, decimals, want):
        grid = FixedPoint.decimal(10**12, decimals)
        assert encoded(grid, [Decimal(repr(value))]) == [want]
        assert encoded(grid, [value]) == [want]

    @each_case("dtype", ["f2", "f4", "g"])
    def test_decimals_of_other_float_types(self, dtype):
        values = np.array(["0.1", "0.3", "-0.7"], dtype)
        assert encoded(FixedPoint.decimal(1, 1), values) == [1, 3, -7]

    @each_case("dtype, digits", [("f2", 3), (">f2", 3), ("f4", 6), ("f8", 15), ("g", 18)])
    @each_case("decimals", [1, 2, 3])
    def test_all_digits_of_other_float_types(self, dtype, digits, decimals, replay):
        """Up to so many digits, a decimal is the only one that its float stands for."""
        if dtype == "g" and np.finfo("g").nmant < 63:
            digits = 15
        grid = FixedPoint.decimal(10**digits, decimals)
        words = np.frombuffer(replay(f"{dtype} {decimals}")(8 * 300), "<u8").tolist()
        integers = [int(w) % 10 ** (1 + i % digits) * (-1) ** i for i, w in enumerate(words)]
        texts = [str(Decimal(n).scaleb(-decimals)) for n in integers]
        values = np.array(texts, np.dtype(dtype).newbyteorder("=")).astype(dtype)
        assert encoded(grid, values) == integers
        assert encoded(grid, np.array(list(values), object)) == integers

    @each_case("exponent", [52, 53, 54, 62, 63, 64, 69])
    @each_case("decimals", [0, 1])
    def test_around_powers_of_two(self, exponent, decimals):
        grid = FixedPoint.decimal(WIDE, decimals)
        power = 2.0**exponent
        floats = [np.nextafter(power, 0.0), power, np.nextafter(power, np.inf)]
        floats = [v for v in floats if v == int(v)]
        assert len(floats) >= 2
        for sign in (1, -1):
            want = [sign * int(v) * 10**decimals for v in floats]
            assert encoded(grid, np.array(floats) * sign) == want
            assert encoded(grid, np.array([sign * v for v in floats], object)) == want

    @each_case("value", [1e22, 1e23, 1e300, -1e300, 1.7976931348623157e308])
    def test_large_floats(self, value):
        grid = FixedPoint.decimal(LARGEST)
        for form in ([value], np.array([value]), np.array([value], object)):
            assert encoded(grid, form) == [int(value)]
        assert encoded(FixedPoint.binary(LARGEST, 4), [value]) == [int(value) * 16]

    def test_long_doubles_keep_their_digits(self):
        value = np.longdouble(2) ** 62 + 1
        exact = int(value)  # 2^62 + 1 where a long double has more bits than a float64
        grid = FixedPoint.decimal(WIDE, 1)
        assert encoded(grid, value) == [10 * exact]
        assert encoded(grid, np.array([[value], [-value]])) == [10 * exact, -10 * exact]
        assert encoded(grid, np.array([value], object)) == [10 * exact]

    @each_case("form", [list, np.array, lambda v: np.array(v, object)])
    def test_ties_go_to_even(self, form):
        grid = FixedPoint.binary(10, 0)
        values = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5]
        assert encoded(grid, form(values)) == [0, 2, 2, 0, -2, -2]
        assert encoded(FixedPoint.binary(10, 1), form([0.25, 0.75, -1.25])) == [0, 2, -2]
        assert encoded(grid, form([0.5000000000000001, 1.4999999999999998])) == [1, 1]

    def test_the_finest_binary_grid(self):
        grid = FixedPoint.binary(10, 1000)
        assert encoded(grid, [8.0, -(2.0**-1000)]) == [2**1003, -1]
        assert encoded(grid, [5e-324, 3 * 2.0**-1001, 0.0]) == [0, 2, 0]

    def test_wide_floats_on_a_binary_grid(self):
        """Shifted mantissas are what fractions give: above the grid exact, below it to even."""
        draw = np.random.default_rng(64)
        floats = draw.normal(0, 1, 400) * 2.0 ** draw.integers(-140, 140, 400)
        ties = [2.5, 3.5, -2.5, 2.0**-61, 3 * 2.0**-61, -(2.0**-61), 5e-324, 0.0, -0.0, 2.0**200]
        values = np.array([*floats, *ties])
        for bits in (0, 1, 60, 300):
            grid = FixedPoint.binary(2**201, bits)
            want = [round(Fraction(v) * 2**bits) for v in values.tolist()]
            assert encoded(grid, values) == want, bits
        with pytest.raises(RangeError, match=r"row 411 is beyond the agreed bound"):
            grid.encode(np.array([*values, 2.0**202]), "x", "row")

    def test_wide_integers_become_floats_rounded_once(self):
        wide = np.array([2**1060 + 1, -(2**70), 3], object).reshape(1, 3)
        assert to_floats(wide, 2**60).tolist() == [[2.0**1000, -1024.0, 3 * 2.0**-60]]
        assert to_floats(np.array([1, 3]), 10).tolist() == [0.1, 0.3]

    def test_a_bound_beyond_the_floats(self):
        grid = FixedPoint.decimal(10**400)
        assert encoded(grid, [1.0, -2.0]) == [1, -2]
        assert "beyond the agreed bound" in refusal(grid, [10**401])
        grid = FixedPoint.binary(10**400, 3)
        assert encoded(grid, [1.5]) == [12]
        assert encoded(grid, [1.5, 1.7976931348623157e308]) == [12, 8 * LARGEST]


class TestObjects:
    def test_a_mixture(self):
        values = np.array(
            [
                *(3, True, -0.5, Decimal("1.25"), Fraction(1, 4), 2**40),
                *(np.int8(-3), np.uint64(7), np.float16(0.5), np.float32(0.25), np.float64(0.1)),
                *(np.longdouble("1.5"), np.bool_(True), Decimal("-1E+2"), Decimal("0E-30")),
            ],
            object,
        )
        want = [300, 100, -50, 125, 25, 100 * 2**40, -300, 700, 50, 25, 10, 150, 100, -10000, 0]
        assert encoded(FixedPoint.decimal(2**40, 2), values) == want
        assert encoded(FixedPoint.decimal(2**40, 2), values.reshape(3, 5)) == want

    @each_case(
        "scalar",
        [
            *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
            *(np.float16, np.float32, np.float64, np.longdouble, int, float, Decimal, Fraction),
        ],
    )
    def test_scalars(self, scalar):
        for grid, want in ((FixedPoint.decimal(50, 1), 420), (FixedPoint.binary(50, 3), 336)):
            got = grid.encode(scalar(42))
            assert got.shape == ()
            assert got.dtype == np.int64
            assert int(got) == want

    def test_fractions_are_rounded_on_a_binary_grid(self):
        grid = FixedPoint.binary(1, 4)
        assert encoded(grid, [Fraction(1, 3), Fraction(-2, 3), Decimal("0.1")]) == [5, -11, 2]

    def test_a_decimal_of_many_digits(self):
        grid = FixedPoint.decimal(10**30, 22)
        text = "123456789012345678901234567890.1234567890123456789012"
        assert encoded(grid, [Decimal(text)]) == [int(text.replace(".", ""))]

    @each_case("dtype", ["i8", "u8", "?", "f8", "f4", "g", "O"])
    def test_shapes(self, dtype):
        for bound in (10, WIDE):
            grid = FixedPoint.decimal(bound)
            for shape in ((0,), (2, 0), (2, 3), ()):
                assert encoded(grid, np.zeros(shape, dtype)) == [0] * math.prod(shape)

    @each_case("value", [1, 1.5, np.uint64(2**63)])
    def test_a_scalar_gives_an_array_too(self, value):
        got = FixedPoint.decimal(WIDE, 1).encode(value)
        assert isinstance(got, np.ndarray)
        assert got.shape == ()

    def test_nothing_is_an_empty_vector(self):
        assert encoded(FixedPoint.decimal(10), []) == []

    def test_arrays_that_are_not_contiguous(self):
        grid = FixedPoint.decimal(100, 1)
        for dtype in ("i8", "f8", "O"):
            values = np.arange(24).reshape(4, 6).astype(dtype)[::-1, ::2].T
            assert grid.encode(values).tolist() == (values * 10).tolist()

    def test_the_input_is_left_alone(self):
        grid = FixedPoint.decimal(100)
        for dtype in ("i8", "f8", "O"):
            values = np.arange(3).astype(dtype)
            got = grid.encode(values)
            got[0] = 99
            assert values.tolist() == [0, 1, 2]


NOT_FINITE = [
    *(float("nan"), float("inf"), -float("inf")),
    *(t(v) for t in (np.float16, np.float32, np.float64, np.longdouble) for v in ("nan", "-inf")),
    *(Decimal("NaN"), Decimal("-sNaN"), Decimal("Infinity"), Decimal("-Infinity")),
]


class TestRefusals:
    @each_case("value", NOT_FINITE)
    @each_case("grid", [FixedPoint.decimal(10), FixedPoint.binary(10, 3)])
    def test_not_finite(self, value, grid):
        assert refusal(grid, value) == "values: the value is NaN or infinite; correct it"
        values = np.array([1, 2, value], np.asarray(value).dtype)
        assert refusal(grid, values, where="a.csv: age", item="row") == (
            "a.csv: age: row 3 is NaN or infinite; correct it"
        )
        mixed = np.array([[1, 2.0], [Decimal(3), value]], object)
        assert (
            refusal(grid, mixed, item="cell") == "values: cell 2, 2 is NaN or infinite; correct it"
        )

    def test_how_many_are_not_finite(self):
        values = [1.0, float("nan"), 2.0, float("inf"), float("nan")]
        assert refusal(FixedPoint.decimal(10), values, item="row") == (
            "values: row 2 (and 2 more) is NaN or infinite; correct it"
        )

    @each_case(
        "value",
        [
            *(None, "3", b"3", 1j, [1], {}, object()),
            *(np.complex64(1), np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.str_("3")),
            datetime.date(2020, 1, 1),
        ],
    )
    def test_objects_that_are_not_numbers(self, value):
        values = np.empty((2, 2), object)
        values[:] = 1
        values[1, 0] = value
        with pytest.raises(ParameterError) as caught:
            FixedPoint.decimal(10).encode(values, "site", "cell")
        assert str(caught.value) == "site: cell 2, 1 is not a real number"

    @each_case(
        "values, dtype",
        [
            (["1", "2"], "<U1"),
            ([b"1"], r"\|S1"),
            ([1j], "complex128"),
            (np.array([1], np.clongdouble), "c"),
            (np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\]"),
            (np.array([1], "m8[s]"), r"timedelta64\[s\]"),
            (np.array([(1, 2)], "i4,i4"), r"\["),
            ("5", "<U1"),
        ],
    )
    def test_arrays_that_are_not_numbers(self, values, dtype):
        with pytest.raises(ParameterError, match=f"^site: expected numbers, got {dtype}"):
            FixedPoint.decimal(10).encode(values, "site")

    def test_masked_values(self):
        values = np.ma.masked_array([1, 9], mask=[False, True])
        with pytest.raises(ParameterError, match="mask"):
            FixedPoint.decimal(10).encode(values)

    def test_rows_of_different_lengths(self):
        with pytest.raises(ParameterError, match=r"^site: "):
            FixedPoint.decimal(10).encode([[1, 2], [3]], "site")

    @each_case(
        "forms",
        [
            pytest.param(lambda v: np.array(v, "f8"), id="float64"),
            pytest.param(lambda v: np.array(v, "f2"), id="float16"),
            pytest.param(lambda v: np.array(v, "g"), id="longdouble"),
            pytest.param(lambda v: np.array(v, object), id="object"),
            pytest.param(lambda v: np.array([Decimal(x) for x in v]), id="Decimal"),
            pytest.param(lambda v: np.array([Fraction(x) for x in v]), id="Fraction"),
        ],
    )
    def test_off_the_grid(self, forms):
        said = refusal(FixedPoint.decimal(900), forms([1.0, 765.5, 3.0]), where="b", item="row")
        assert said == (
            "b: row 2 is not an integer; declare more decimals, or a binary grid to round"
        )
        said = refusal(FixedPoint.decimal(900, 2), forms([1.0, 2.5, 7.4375]), item="row")
        assert said == (
            "values: row 3 is not a number with 2 decimals; declare more decimals, or a binary "
            "grid to round"
        )
        assert encoded(FixedPoint.binary(900, 2), forms([1.0, 765.5, 7.4375])) == [4, 3062, 30]

    def test_how_many_are_off_the_grid(self):
        said = refusal(FixedPoint.decimal(9), np.array([[1, 0.5], [0.25, 2]]), item="cell")
        assert said.startswith("values: cell 1, 2 (and 1 more) is not an integer;")

    @each_case("text", ["0.12345", "-0.001", "0.1000000001", "5.55555"])
    def test_more_decimals_than_declared(self, text):
        grid = FixedPoint.decimal(10, 2)
        for value in (float(text), Decimal(text), Fraction(text)):
            assert "is not a number with 2 decimals" in refusal(grid, value)
            assert "is not a number with 2 decimals" in refusal(grid, [value])

    @each_case("text", ["1e5001", "-1e999999999", "1e-5001", "1.5e-999999999"])
    def test_an_exponent_that_would_fill_the_memory(self, text):
        for values in (Decimal(text), [Decimal(text)], np.array([1, Decimal(text)], object)):
            said = refusal(FixedPoint.decimal(10), values)
            assert said.startswith("values: ")
            assert said.endswith(" has an exponent beyond 5000; correct it")
        for make in (FixedPoint.decimal, lambda b: FixedPoint.binary(b, 3)):
            with pytest.raises(ParameterError) as caught:
                make(Decimal(text).copy_abs())
            assert str(caught.value) == (
                f"the bound {Decimal(text).copy_abs()} has an exponent beyond 5000"
            )

    def test_the_largest_exponent(self):
        value = Decimal("1e5000")
        assert encoded(FixedPoint.decimal(value), [value]) == [10**5000]
        assert "is not an integer" in refusal(FixedPoint.decimal(value), [1 / value])

    def test_nearly_an_integer(self):
        for value in (
            np.nextafter(3.0, 4.0),
            np.nextafter(3.0, 2.0),
            Fraction(3 * 10**40 + 1, 10**40),
        ):
            assert "is not an integer" in refusal(FixedPoint.decimal(10), [value])

    @each_case(
        "forms",
        [
            pytest.param(lambda v: np.array(v, "i8"), id="int64"),
            pytest.param(lambda v: np.array(v, ">i4"), id="big-endian int32"),
            pytest.param(lambda v: np.array(v, "f8"), id="float64"),
            pytest.param(lambda v: np.array(v, "f4"), id="float32"),
            pytest.param(lambda v: np.array(v, "g"), id="longdouble"),
            pytest.param(lambda v: np.array(v, object), id="object"),
            pytest.param(lambda v: np.array([Decimal(x) for x in v]), id="Decimal"),
        ],
    )
    @each_case("grid", [FixedPoint.decimal(1000, 1), FixedPoint.binary(1000, 1)])
    @each_case("sign", [1, -1])
    def test_beyond_the_bound(self, forms, grid, sign):
        reached = [5, 1000 * sign, 0]
        assert encoded(grid, forms(reached)) == [v * grid.scale for v in reached]
        for value in (1001, 54321):
            said = refusal(grid, forms([5, 0, value * sign]), where="east: age", item="row")
            assert said == (
                "east: age: row 3 is beyond the agreed bound 1000; correct it, or agree on a "
                "larger bound"
            )

    def test_how_many_are_beyond_the_bound(self):
        for dtype in ("i8", "f8"):
            said = refusal(FixedPoint.decimal(3), np.array([[4, 1], [5, -6]], dtype))
            assert said.startswith("values: value 1, 1 (and 2 more) is beyond the agreed bound 3;")

    @each_case("dtype", ["i8", "i1", "u8", "O"])
    def test_the_lowest_and_highest_machine_integers(self, dtype):
        values = {
            "i8": [-(2**63)],
            "i1": [-128],
            "u8": [2**64 - 1],
            "O": [-(2**64)],
        }[dtype]
        said = refusal(FixedPoint.decimal(100), np.array(values, dtype))
        assert said.startswith("values: value 1 is beyond the agreed bound 100;")

    def test_booleans_beyond_the_bound(self):
        assert refusal(FixedPoint.decimal(0), [False, True]).startswith("values: value 2 is beyond")

    @each_case("bound", [0.1, 0.29, 1.1, 1234.5678, 1e300, 2.0**60])
    def test_a_bound_that_is_a_float_is_reached_and_not_passed(self, bound):
        grid = FixedPoint.binary(bound, 20)
        above = np.nextafter(bound, np.inf)
        for form in (np.array, lambda v: np.array(v, object)):
            want = round(Fraction(bound) * 2**20)
            assert encoded(grid, form([bound, -bound])) == [want, -want]
            for value in (above, -above):
                assert "value 2 is beyond the agreed bound" in refusal(grid, form([0.0, value]))

    @each_case("text", ["0.1", "0.29", "0.3", "1.1", "36.6"])
    def test_a_decimal_bound_is_reached_and_not_passed(self, text):
        grid = FixedPoint.decimal(Decimal(text), 2)
        for value in (Decimal(text), Fraction(text)):
            assert encoded(grid, [value, -value]) == [grid.limit, -grid.limit]
            for above in (value + type(value)("0.01"), -value - type(value)("0.01")):
                assert "value 2 is beyond the agreed bound" in refusal(grid, [0, above])
        floats = np.array([float(text), -float(text)])
        assert encoded(grid, floats) == [grid.limit, -grid.limit]

    @each_case("text", ["0.1", "1.1", "36.6"])
    def test_a_decimal_bound_is_reached_by_floats_among_objects(self, text):
        grid = FixedPoint.decimal(Decimal(text), 2)
        assert encoded(grid, np.array([float(text)], object)) == [grid.limit]

    def test_a_bound_that_is_a_float_is_reached_by_decimals(self):
        assert encoded(FixedPoint.decimal(0.3, 1), [Decimal("0.3")]) == [3]

    def test_nothing_is_encoded_beyond_the_limit(self):
        grid = FixedPoint.binary(Fraction(15 * 10**19 - 1, 10**20), 0)  # just below 1.5
        assert grid.limit == 1
        assert "beyond the agreed bound" in refusal(grid, np.array([1.5]))

    def test_a_bound_that_no_float_is(self):
        grid = FixedPoint.decimal(2**53 + 3)
        assert encoded(grid, np.array([2.0**53 + 2])) == [2**53 + 2]
        assert "is beyond" in refusal(grid, np.array([2.0**53 + 4]))
        assert encoded(grid, [2**53 + 3]) == [2**53 + 3]
        assert "is beyond" in refusal(grid, [2**53 + 4])

    @each_case(
        "values",
        [
            [987654],
            np.array([987654], object),
            [987654.0],
            [9.87654],
            [Decimal("9.87654")],
            [Fraction("9.87654")],
            np.array([9.87654, None], object),
            np.array([None, 987654], object),
            ["987654"],
        ],
    )
    def test_no_message_shows_the_value(self, values):
        with pytest.raises((RangeError, ParameterError)) as caught:
            FixedPoint.decimal(1000).encode(values)
        assert "987" not in str(caught.value)
        assert "9.87" not in str(caught.value)
        assert caught.value.__cause__ is None

    @each_case(
        "bound, text",
        [
            (1000, "1000"),
            (10**22 - 1, "9" * 22),
            (10**22, "1e+22"),
            (2**53 + 1, "9007199254740993"),
            (0.1, "0.1"),
            (1e300, "1e+300"),
            (Decimal("36.6"), "36.6"),
            (Fraction(7, 2), "3.5"),
            (Decimal("12345678901234567890.5"), "12345678901234567890.5"),
            (Decimal("0.12345678901234567891"), "0.12345678901234567891"),
            (10**400, "1" + "0" * 400),
            (Fraction(1, 3), "0.3333333333333333..."),
            (Fraction(10**400, 3), "3" * 400 + "..."),
        ],
    )
    def test_a_bound_is_shown_with_all_of_its_digits(self, bound, text):
        said = refusal(FixedPoint.decimal(bound, 22), [10**500])
        assert f"is beyond the agreed bound {text}; correct it" in said


class TestDecode:
    def test_more_than_a_float_can_hold(self):
        grid = FixedPoint.decimal(10**400, 1)
        assert grid.decode(10 * LARGEST) == LARGEST
        for value in (10**400, -(10**400)):
            with pytest.raises(RangeError, match="the result is larger than any float"):
                grid.decode(value)
        assert FixedPoint.decimal(10**400).decode(10**400) == 10**400

    def test_the_integer_grid_gives_integers(self):
        grid = FixedPoint.decimal(10)
        for value in (0, -5, 2**80, np.int64(7)):
            got = grid.decode(value)
            assert type(got) is int
            assert got == value

    @each_case("integer", [0, 1, -1, 3, 10, 2**53 + 1, 2**63, -(10**40), 12345678901])
    @each_case("scale", [10, 100, 10**22, 2, 2**30, 2**200])
    def test_otherwise_the_nearest_float(self, integer, scale):
        got = FixedPoint(Fraction(1), scale, True).decode(integer)
        assert type(got) is float
        error = abs(Fraction(got) - Fraction(integer, scale))
        for neighbour in (np.nextafter(got, np.inf), np.nextafter(got, -np.inf)):
            assert error <= abs(Fraction(float(neighbour)) - Fraction(integer, scale))

    @each_case("text", DECIMAL_TEXT)
    def test_round_trip(self, text):
        grid = FixedPoint.decimal(10**12, 3)
        assert grid.decode(int(grid.encode(float(text)))) == float(text)
