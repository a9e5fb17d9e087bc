"""Public numbers beside shared ones: of every type, on either side, and exact."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from mpc.computers import LIMIT, computation, exact, fractions, same, sent

from securecomp.errors import ParameterError, RangeError

BASE = [-3, 0, 5]
INTEGERS = {
    "int8": (np.int8, [-128, 0, 127]),
    "int16": (np.int16, [-32768, 1, 32767]),
    "int32": (np.int32, [-(2**31), -1, 2**31 - 1]),
    "int64": (np.int64, [-(2**53) - 1, 3, 2**56 + 1]),
    "uint8": (np.uint8, [255, 0, 1]),
    "uint16": (np.uint16, [65535, 0, 128]),
    "uint32": (np.uint32, [2**32 - 1, 2**31, 0]),
    "uint64": (np.uint64, [2**53 + 1, 0, 2**56 + 3]),
    "bool": (np.bool_, [True, False, True]),
    "intc": (np.intc, [-7, 7, 0]),
    "object": (object, [2**53 + 1, -1, 0]),
}


@pytest.fixture(scope="module", params=[3, pytest.param(2, marks=pytest.mark.slow)])
def run(request):
    return computation(request.param)


def check(run, public, values, base=BASE, **facts):
    """All operations with these public numbers, on both sides."""
    x = run.share("south", base, bound=8, **facts)
    a, b = fractions(base), fractions(values)
    same(x + public, a + b)
    same(public + x, b + a)
    same(x - public, a - b)
    same(public - x, b - a)
    same(x * public, a * b)
    same(public * x, b * a)


@each_case("kind, values", INTEGERS.values())
def test_integers_of_every_type(run, kind, values):
    public = np.array(values, kind)
    check(run, public, [int(v) for v in values])
    for value in values:
        check(run, public.dtype.type(value) if kind is not object else value, [int(value)] * 3)
    check(run, public[::-1], [int(v) for v in values[::-1]])


@each_case("value", [True, False, 0, -1, 2**31, 2**53 + 1, -(2**57) + 1])
def test_python_integers(run, value):
    check(run, value, [int(value)] * 3)
    check(run, [value, 1, value], [int(value), 1, int(value)])


FLOATS = [0.5, -0.5, -0.0, 2.0, 0.25, -1023.75, 2.0**24, 1.5 * 2**-20]


@each_case("value", FLOATS)
@each_case("kind", [float, np.float64, np.float32, np.longdouble])
@each_case("facts", [{}, {"bits": 4}, {"decimals": 1}])
def test_floats(run, value, kind, facts):
    check(run, kind(value), [value] * 3, **facts)
    check(run, np.array([value, 1, 0.5], kind), [value, 1, 0.5], **facts)


def test_half_precision(run):
    check(run, np.float16([0.5, -2.25, 1]), [0.5, -2.25, 1])


@given(
    st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_binary_floats_on_any_grid(integers, bits, digits):
    run = computation(2)
    public = np.array(integers, np.float64) / 2**digits
    x = run.share("north", [-1.5, 0, 2.25], bound=3, bits=bits)
    a, b = exact(x), np.array([Fraction(v, 2**digits) for v in integers], object)
    for found, want in ((x + public, a + b), (public - x, b - a), (public * x, a * b)):
        assert exact(found).tolist() == want.tolist()


def test_an_integer_beyond_float64_is_not_rounded_beside_a_float(run):
    """numpy makes float64 of such a list before anybody sees it."""
    x = run.share("north", [1, 1], bound=1)
    same(x * [2**53 + 1, 0.5], fractions([2**53 + 1, 0.5]))
    same(x - [2**53 + 1, -0.5], fractions([-(2**53), 1.5]))
    large = run.share("north", [2**53, 2**53 + 1], bound=2**54)
    same(large == [2**53 + 1, 0.5], [0, 0])
    same(large < [2**53 + 1, 0.5], [1, 0])


def test_long_doubles_keep_their_digits(run):
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("long double is float64 here")
    wide = np.array([np.longdouble(2**53) + 1])
    same(run.share("north", [3], bound=3) * wide, [3 * (2**53 + 1)])


def test_objects_that_are_numpy_integers(run):
    check(run, np.array([np.int64(4), np.uint8(200), 3], object), [4, 200, 3])


@each_case("value", [2**63, 2**63 + 5, 2**64 - 1, 2**70, -(2**70), 10**40])
def test_integers_beyond_the_field_times_zero_and_refused_elsewhere(run, value):
    zero = run.share("north", [0, 0], bound=0)
    wide = [value, np.array([value, value], object)]
    if 0 <= value < 2**64:
        wide += [np.uint64(value), np.array([value, 1], np.uint64)]
    for public in wide:
        same(zero * public, [0, 0])
        same(public * zero, [0, 0])
        for operation in (lambda p=public: zero + p, lambda p=public: p - zero,
                          lambda p=public: zero < p, lambda p=public: p == zero):  # fmt: skip
            before = sent(run)
            with pytest.raises(RangeError, match="the field holds"):
                operation()
            assert sent(run) == before


def test_the_largest_public_numbers(run):
    zero = run.share("north", [0], bound=0)
    for value in (LIMIT, -LIMIT):
        same(zero + value, [value])
        same(value - zero, [value])
        one = run.share("north", [-1], bound=1)
        same(one * value, [-value])
        same(zero - np.array([value]), [-value])


def test_scales_meet(run):
    cents = run.share("north", [1.25, -0.01], bound=5, decimals=2)
    tenths = run.share("south", [0.5, -0.1], bound=5, decimals=1)
    whole = run.share("south", [3, -4], bound=5)
    halves = run.share("north", [0.5, 2], bound=5, bits=1)
    eighths = run.share("south", [0.125, -2.5], bound=5, bits=3)
    f = Fraction
    same(cents + tenths, [f(175, 100), f(-11, 100)])
    same(tenths - cents, [f(-75, 100), f(-9, 100)])
    same(whole - cents, [f(175, 100), f(-399, 100)])
    same(halves + eighths, [f(5, 8), f(-1, 2)])
    same(halves + whole, [f(7, 2), f(-2)])
    same(cents * tenths, [f(625, 1000), f(1, 1000)])
    same(cents * halves, [f(5, 8), f(-2, 100)])
    same(cents * halves + cents, [f(15, 8), f(-3, 100)])
    same(halves < eighths, [0, 0])
    same(cents > tenths, [1, 1])
    same(cents == tenths + f(3, 4).__float__(), [1, 0])
    assert (cents * tenths).scale == 1000
    assert (cents + tenths).scale == 100


def test_scales_that_do_not_meet(run):
    cents = run.share("north", [1.25], bound=5, decimals=2)
    eighths = run.share("south", [0.125], bound=5, bits=3)
    before = sent(run)
    for operation in (lambda: cents + eighths, lambda: eighths - cents, lambda: cents < eighths,
                      lambda: cents == eighths):  # fmt: skip
        with pytest.raises(ParameterError, match=r"scales .* share both with decimals, or both"):
            operation()
    assert sent(run) == before
    same(cents * eighths, [Fraction(5, 32)])


def test_public_numbers_on_the_grid_of_means(run):
    thirds = run.share("north", [1, 1, 2], bound=3).mean()
    same(thirds + 1, Fraction(7, 3))
    same(thirds - 0.5, Fraction(5, 6))
    same(thirds * 3, 4)


REFUSED = {
    "nan": float("nan"),
    "inf": [1.0, float("inf"), 0],
    "numpy nan": np.array([1, np.nan, 0]),
    "text": "three",
    "texts": ["1", "2", "3"],
    "bytes": b"abc",
    "none": None,
    "complex": 1j,
    "date": np.datetime64("2026-01-01"),
    "duration": np.timedelta64(3, "D"),
    "a set": {1, 2},
    "a dict": {},
    "nested": [[1], [1, 2], [3]],
    "endless decimal": Decimal("Infinity"),
    "vast decimal": Decimal("1e999999"),
    "structure": np.zeros(3, [("a", int)]),
    "masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    "many digits": 0.123456789,
    "a seventh beside others": [Fraction(1, 7), Fraction(1, 2**24), 1],
    "tiny": 2.0**-25,
    "object and text": np.array([1, "a", 2], object),
}


@each_case("public", REFUSED.values())
def test_what_is_no_number_is_refused_before_anything_is_sent(run, public):
    x = run.share("north", BASE, bound=8)
    before = sent(run)
    operations = [
        lambda: x + public, lambda: public + x, lambda: x - public, lambda: public - x,
        lambda: x * public, lambda: public * x, lambda: x < public, lambda: x >= public,
        lambda: x == public, lambda: x != public, lambda: x @ public,
    ]  # fmt: skip
    if isinstance(public, str | bytes):
        operations.remove(operations[1])
        del operations[4]  # text times: Python tries to repeat it
    for operation in operations:
        with pytest.raises(ParameterError):
            operation()
    assert sent(run) == before


def test_a_float_of_many_binary_digits_stands_for_the_decimal_it_is_printed_as(run):
    f = Fraction
    cents = run.share("north", [10.05, -3.1, 20], bound=20, decimals=2)
    same(cents - 10.05, [0, f(-1315, 100), f(995, 100)])
    same(10.055 + cents, [f(20105, 1000), f(6955, 1000), f(30055, 1000)])
    same(cents * 0.1, [f(1005, 1000), f(-31, 100), 2])
    same(cents == 10.05, [1, 0, 0])
    same(cents >= [10.05, -3.09, 19.99], [1, 0, 1])
    same(cents + np.float32(10.05), [f(2010, 100), f(695, 100), f(3005, 100)])
    same(cents + Decimal("0.125"), [f(10175, 1000), f(-2975, 1000), f(20125, 1000)])
    same(cents * f(1, 3), [f(335, 100), f(-31, 30), f(20, 3)])
    whole = run.share("north", [3, 4], bound=4)
    same(whole * [0.5, 0.05], [f(3, 2), f(1, 5)])
    same(whole.mean() - 0.1, f(34, 10))
    eighths = run.share("north", [0.125, 1], bound=1, bits=3)
    same(eighths + 0.1, [f(9, 40), f(11, 10)])
    same(eighths > 0.1, [1, 1])
    same(eighths * 2.0**-20, [f(1, 2**23), f(1, 2**20)])


def test_errors_of_public_numbers_say_what_to_do(run):
    x = run.share("north", BASE, bound=8)
    with pytest.raises(ParameterError, match="24 binary digits and 7 decimals; round it to a mult"):
        x + 0.123456789
    with pytest.raises(ParameterError, match="expected a shared array, or finite numbers"):
        x + float("nan")
    with pytest.raises(ParameterError, match=r"shapes \(3,\) and \(2,\) do not go together"):
        x - [1, 2]
