"""Field arithmetic against Python's integers, at every edge."""

import math
import operator
from decimal import Decimal

import numpy as np
import pytest
from cases import each_case

from securecomp.core import field
from securecomp.errors import ParameterError, RangeError

P = (1 << 61) - 1
HALF = (P - 1) // 2
EDGES = [
    *(0, 1, 2, HALF - 1, HALF, HALF + 1, HALF + 2, P - 2, P - 1),
    *(2**29 - 1, 2**29, 2**32 - 1, 2**32, 2**32 + 1, 2**60 - 2**32, P - 2**32, P - 2**29),
]
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i2", ">i4", ">i8", ">u2", ">u4"]
OPERATIONS = [
    pytest.param(field.add, operator.add, id="add"),
    pytest.param(field.subtract, operator.sub, id="subtract"),
    pytest.param(field.multiply, operator.mul, id="multiply"),
]


def residues(values):
    return np.array(values, np.uint64)


def expected(operation, a, b):
    """The same with Python's integers."""
    return operation(a.astype(object), b.astype(object)) % P


def same(got, want):
    assert got.dtype == np.uint64
    assert got.shape == np.shape(want)
    assert got.tolist() == np.asarray(want).tolist()


def test_constants():
    assert field.MODULUS == 2305843009213693951
    assert field.BITS == 61
    assert field.LIMIT == 1152921504606846975


@pytest.mark.parametrize(("function", "operation"), OPERATIONS)
class TestElementwise:
    def test_every_pair_of_edges(self, function, operation):
        a, b = residues(EDGES)[:, None], residues(EDGES)[None, :]
        same(function(a, b), expected(operation, a, b))

    @pytest.mark.parametrize("length", [*range(20), 31, 32, 33, 1000])
    def test_every_length(self, function, operation, length, random_residues):
        a, b = random_residues("a", length), random_residues("b", length)
        same(function(a, b), expected(operation, a, b))

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ((2, 3), (2, 3)),
            ((2, 3), ()),
            ((), (2, 3)),
            ((2, 1), (1, 3)),
            ((3,), (2, 1)),
            ((4, 1, 3), (2, 1)),
            ((0,), (0,)),
            ((0,), ()),
            ((0,), (1,)),
            ((2, 0, 3), (1, 3)),
            ((1,), (1,)),
        ],
    )
    def test_shapes_broadcast(self, function, operation, left, right, random_residues):
        a, b = random_residues("a", *left), random_residues("b", *right)
        same(function(a, b), expected(operation, a, b))

    @pytest.mark.parametrize(
        "view",
        [
            pytest.param(lambda x: x[::2, ::3], id="strided"),
            pytest.param(lambda x: x[::-1, ::-1], id="reversed"),
            pytest.param(lambda x: x.T, id="transposed"),
            pytest.param(lambda x: x[:, 1], id="column"),
            pytest.param(lambda x: np.asfortranarray(x), id="fortran"),
            pytest.param(lambda x: np.broadcast_to(x[0], x.shape), id="broadcast"),
        ],
    )
    def test_arrays_that_are_not_contiguous(self, function, operation, view, random_residues):
        a, b = view(random_residues("a", 6, 9)), view(random_residues("b", 6, 9))
        before = a.tolist(), b.tolist()
        same(function(a, b), expected(operation, a, b))
        same(function(a, b[0]), expected(operation, a, b[0]))
        assert (a.tolist(), b.tolist()) == before

    def test_inputs_that_are_read_only(self, function, operation, random_residues):
        a, b = random_residues("a", 5), random_residues("b", 5)
        a.flags.writeable = b.flags.writeable = False
        same(function(a.copy(), b.copy()), expected(operation, a, b))

    @pytest.mark.parametrize("target", ["new", "a", "b", "both"])
    def test_out(self, function, operation, target, random_residues):
        a, b = random_residues("a", 3, 7), random_residues("b", 3, 7)
        if target == "both":
            b = a
        want = expected(operation, a, b)
        out = {"new": np.zeros((3, 7), np.uint64), "a": a, "b": b, "both": a}[target]
        assert function(a, b, out=out) is out
        same(out, want)

    def test_out_with_broadcasting(self, function, operation, random_residues):
        a, b = random_residues("a", 3, 7), random_residues("b", 7)
        for operand in (b, b[0]):
            acc = a.copy()
            want = expected(operation, a, operand)
            assert function(acc, operand, out=acc) is acc
            same(acc, want)

    def test_a_new_array_without_out(self, function, operation, random_residues):
        a, b = random_residues("a", 4), random_residues("b", 4)
        before = a.tolist(), b.tolist()
        out = function(a, b)
        assert not np.shares_memory(out, a)
        assert not np.shares_memory(out, b)
        assert (a.tolist(), b.tolist()) == before

    @pytest.mark.parametrize(
        "out",
        [
            pytest.param(np.zeros((4, 2), np.uint64), id="longer"),
            pytest.param(np.zeros(4, np.uint64), id="another shape"),
            pytest.param(np.zeros((2, 4), np.uint64)[:, :2], id="not contiguous"),
        ],
    )
    def test_an_out_that_does_not_fit_is_refused(self, function, operation, out):
        a = residues([[1, 2], [3, 4]])
        with pytest.raises(ParameterError, match="out"):
            function(a, a, out=out)
        assert not out.any()


@each_case("function, operation", OPERATIONS)
@each_case("left, right", [((3,), (2,)), ((2, 3), (2,)), ((0,), (2,))])
def test_shapes_that_do_not_broadcast(function, operation, left, right):
    with pytest.raises(ParameterError) as caught:
        function(np.zeros(left, np.uint64), np.zeros(right, np.uint64))
    assert str(caught.value) == f"shapes {left} and {right} do not go together"


@each_case(
    "function, operation",
    [
        pytest.param(field.add, operator.add, id="add"),
        pytest.param(field.subtract, operator.sub, id="subtract"),
        pytest.param(field.multiply, operator.mul, id="multiply"),
    ],
)
def test_scalars_keep_their_shape(function, operation):
    same(function(residues(P - 3), residues(HALF + 5)), np.array(operation(P - 3, HALF + 5) % P))


@each_case("shape", [(), (0,), (5,), (2, 0), (2, 3)])
def test_negative(shape, random_residues):
    a = random_residues("a", *shape)
    same(field.negative(a), (-a.astype(object)) % P)


def test_negative_of_the_edges():
    a = residues(EDGES)
    same(field.negative(a), [-v % P for v in EDGES])
    assert not field.add(a, field.negative(a)).any()


class TestProduct:
    @each_case("length", [*range(10), 15, 16, 17])
    def test_every_length(self, length, random_residues):
        a = random_residues("product", length, 3)
        same(field.product(a, 0), [math.prod(column) % P for column in a.T.tolist()])

    def test_every_axis(self, random_residues):
        a = random_residues("product", 2, 3, 5)
        for axis in (0, 1, 2, -1):
            same(field.product(a, axis), np.prod(a.astype(object), axis) % P)

    def test_a_vector_gives_a_scalar(self):
        assert int(field.product(residues([P - 1, 2, HALF]), 0)) == -2 * HALF % P


class TestInverse:
    def test_the_edges(self):
        a = residues([v for v in EDGES if v])
        same(field.inverse(a), [pow(v, -1, P) for v in a.tolist()])

    @each_case("shape", [(), (0,), (1,), (3, 4)])
    def test_shapes(self, shape, random_residues):
        a = random_residues("inverse", *shape)
        before = a.tolist()
        got = field.inverse(a)
        assert got.shape == shape
        assert (field.multiply(a, got) == 1).all()
        assert a.tolist() == before

    def test_zero_has_none(self):
        for a in ([1, 0, 2], [0]):
            with pytest.raises(ParameterError, match="inverse: zero has none"):
                field.inverse(residues(a))


def from_digits(d0, d1, d2):
    """The residue with these balanced digits in base 2^21."""
    return (d0 + (d1 << 21) + (d2 << 42)) % P


LOW, HIGH = -(1 << 20), (1 << 20) - 1
EXTREME = {
    "minus one": P - 1,
    "half": HALF,
    "half + 1": HALF + 1,
    "lowest digits": from_digits(LOW, LOW, -(1 << 18) + 1),
    "highest digits": from_digits(HIGH, HIGH, (1 << 18) - 1),
    "low high": from_digits(LOW, HIGH, (1 << 18) - 1),
    "high low": from_digits(HIGH, LOW, -(1 << 18) + 1),
    "zero": 0,
}


class TestMatmul:
    @each_case("m", [0, 1, 2, 17])
    @each_case("inner", [0, 1, 3, 64])
    @each_case("n", [0, 1, 5])
    def test_shapes(self, m, inner, n, random_residues):
        a, b = random_residues("a", m, inner), random_residues("b", inner, n)
        want = np.dot(a.astype(object), b.astype(object)) % P if inner else np.zeros((m, n))
        same(field.matmul(a, b), want)

    @each_case("inner", [511, 512, 513, 1023, 1024, 1025, 1537, 4097])
    @each_case("value", EXTREME.values())
    def test_one_extreme_value_everywhere(self, inner, value):
        a = np.full((3, inner), value, np.uint64)
        b = np.full((inner, 2), value, np.uint64)
        same(field.matmul(a, b), np.full((3, 2), inner * value**2 % P, object))

    @each_case("inner", [511, 512, 513, 2048])
    @each_case("position", [0, 1, 256, -1])
    @each_case("digits", ["lowest digits", "low high", "high low"])
    def test_extreme_digits_and_a_one(self, inner, position, digits):
        """The one is what a float64 sum past 2^53 would lose."""
        a = np.full((4, inner), EXTREME[digits], np.uint64)
        b = np.full((inner, 3), EXTREME[digits], np.uint64)
        a[:, position] = 1
        b[position] = 1
        want = ((inner - 1) * EXTREME[digits] ** 2 + 1) % P
        same(field.matmul(a, b), np.full((4, 3), want, object))

    @each_case("inner", [511, 512, 513, 5000])
    def test_mixed_extremes(self, inner, random_residues):
        choice = residues(list(EXTREME.values()))
        a = choice[random_residues("a", 3, inner) % np.uint64(choice.size)]
        b = choice[random_residues("b", inner, 4) % np.uint64(choice.size)]
        same(field.matmul(a, b), np.dot(a.astype(object), b.astype(object)) % P)

    def test_every_pair_of_edges(self):
        a = residues([*EDGES, *EXTREME.values()])
        same(field.matmul(a[:, None], a[None, :]), np.outer(*[a.astype(object)] * 2) % P)

    def test_arrays_that_are_not_contiguous(self, random_residues):
        a, b = random_residues("a", 40, 6).T[::-1, ::2], random_residues("b", 3, 40).T[::2]
        same(field.matmul(a, b), np.dot(a.astype(object), b.astype(object)) % P)

    @pytest.mark.slow
    def test_a_large_product(self, random_residues):
        a, b = random_residues("a", 60, 7000), random_residues("b", 7000, 50)
        same(field.matmul(a, b), np.dot(a.astype(object), b.astype(object)) % P)

    @each_case(
        "left, right",
        [((2, 3), (2, 3)), ((3,), (3, 2)), ((2, 3), (3,)), ((1, 2, 3), (3, 1)), ((), (1, 1))],
    )
    def test_shapes_that_do_not_match(self, left, right):
        a, b = np.zeros(left, np.uint64), np.zeros(right, np.uint64)
        with pytest.raises(ParameterError) as caught:
            field.matmul(a, b)
        assert str(caught.value) == f"matmul: shapes {left} and {right} do not match"


class TestEncode:
    @each_case("dtype", INTEGERS)
    def test_every_integer_type(self, dtype):
        info = np.iinfo(dtype)
        fits = [v for v in (info.min, info.min + 1, -1, 0, 1, info.max) if abs(v) <= HALF]
        fits = [v for v in fits if v >= info.min]
        values = np.array(fits, dtype)
        got = field.encode(values)
        same(got, [v % P for v in fits])
        assert field.decode(got).tolist() == fits

    @each_case(
        "value",
        [
            np.int64(-(2**63)),
            np.int64(-(2**63) + 1),
            np.int64(2**63 - 1),
            np.int64(HALF + 1),
            np.int64(-HALF - 1),
            np.uint64(HALF + 1),
            np.uint64(P),
            np.uint64(2**63 - 1),
            np.uint64(2**63),
            np.uint64(2**63 + 1),
            np.uint64(2**64 - HALF),
            np.uint64(2**64 - 1),
            HALF + 1,
            2**63,
            2**64 - 1,
            2**64,
            2**64 + 1,
            -(2**63),
            -(2**64) - 1,
            10**30,
        ],
    )
    @each_case("position", [0, 4, 8])
    def test_beyond_the_field(self, value, position):
        dtype = getattr(value, "dtype", object)
        values = np.zeros(9, dtype)
        values[position] = value
        with pytest.raises(RangeError) as caught:
            field.encode(values, what="hospital 7")
        assert str(caught.value) == (
            f"hospital 7: a value is beyond the bound {HALF}; declare a larger one"
        )

    def test_unsigned_integers_of_the_other_byte_order(self):
        assert field.encode(np.array([5, HALF], ">u8")).tolist() == [5, HALF]
        with pytest.raises(RangeError, match="values: a value is beyond the bound"):
            field.encode(np.array([0, 2**64 - 1], ">u8"))

    @each_case("bound", [0, 1, 100, 127, 2**40, HALF - 1, HALF])
    def test_the_bound_is_reached_and_not_passed(self, bound):
        for sign in (1, -1):
            reached = np.array([0, sign * bound], np.int64)
            same(field.encode(reached, bound), [0, sign * bound % P])
            with pytest.raises(RangeError, match=f"beyond the bound {bound};"):
                field.encode(np.array([0, sign * (bound + 1)], np.int64), bound)
            with pytest.raises(RangeError, match=f"beyond the bound {bound};"):
                field.encode(np.array([0, sign * (bound + 1)], object), bound)
        same(field.encode(np.array([bound], np.uint64), bound), [bound])
        with pytest.raises(RangeError, match=f"beyond the bound {bound};"):
            field.encode(np.array([bound + 1], np.uint64), bound)

    @each_case("bound", [-1, HALF + 1, P, 2**64])
    def test_a_bound_that_the_field_cannot_hold(self, bound):
        with pytest.raises(ParameterError) as caught:
            field.encode([1], bound, "site")
        assert str(caught.value) == (f"site: the bound must be from 0 to {HALF}, not {bound}")

    def test_booleans_are_zero_and_one(self):
        same(field.encode([True, False]), [1, 0])
        same(field.encode(np.array([True], object)), [1])

    def test_python_integers(self):
        same(field.encode([[1, -1], [HALF, -HALF]]), [[1, P - 1], [HALF, HALF + 1]])
        same(field.encode(np.array([HALF, -HALF], object)), [HALF, HALF + 1])

    def test_numpy_integers_among_objects(self):
        same(field.encode(np.array([np.int8(-3), 4, np.uint64(5)], object)), [P - 3, 4, 5])
        same(field.encode(np.array([np.True_, False, -1], object)), [1, 0, P - 1])

    def test_a_list_that_numpy_would_make_floats_of(self):
        with pytest.raises(RangeError, match="beyond the bound"):
            field.encode([2**63, 1])

    @each_case("shape", [(), (0,), (3,), (2, 0), (2, 3)])
    def test_shapes(self, shape):
        values = np.full(shape, -7, np.int16)
        got = field.encode(values)
        same(got, np.full(shape, P - 7, object))
        decoded = field.decode(got)
        assert decoded.dtype == np.int64
        assert decoded.shape == shape
        assert decoded.tolist() == values.tolist()

    def test_arrays_that_are_not_contiguous(self):
        values = np.arange(-12, 12).reshape(4, 6)[::-1, ::2].T
        got = field.encode(values)
        same(got, values.astype(object) % P)
        assert field.decode(got.T[::2]).tolist() == values.T[::2].tolist()

    def test_nothing_is_an_empty_vector(self):
        same(field.encode([]), [])

    @each_case(
        "values, got",
        [
            ([1.0], "float64"),
            (np.array([1], np.float32), "float32"),
            (np.array([1.5], object), "object"),
            (np.array([1, 2.0], object), "object"),
            (np.array([1, None], object), "object"),
            (np.array([Decimal(1)]), "object"),
            (["1"], "<U1"),
            ([b"1"], "|S1"),
            ([1j], "complex128"),
            (np.array([1], "m8[s]"), r"timedelta64\[s\]"),
        ],
    )
    def test_what_is_not_an_integer(self, values, got):
        with pytest.raises(ParameterError, match=rf"^site: expected integers, got {got}"):
            field.encode(values, what="site")
        with pytest.raises(ParameterError, match=rf"^site: expected integers, got {got}"):
            field.check(values, "site")
        with pytest.raises(ParameterError, match=rf"^site: expected integers, got {got}"):
            field.public(values, "site")

    def test_what_the_values_are_called_by_default(self):
        with pytest.raises(ParameterError, match=r"^values: expected integers"):
            field.encode([0.5])
        with pytest.raises(ParameterError, match=r"^values: expected integers"):
            field.check([0.5])
        with pytest.raises(ParameterError, match=r"^constant: expected integers"):
            field.public([0.5])

    def test_out(self):
        out = np.full((2, 2), 9, np.uint64)
        assert field.encode([[1, -1], [2, -2]], 2, out=out) is out
        same(out, [[1, P - 1], [2, P - 2]])
        signed = np.full((2, 2), 9, np.int64)
        assert field.decode(out, signed) is signed
        assert signed.tolist() == [[1, -1], [2, -2]]

    @each_case(
        "out",
        [
            pytest.param(np.zeros((4, 2), np.uint64), id="longer"),
            pytest.param(np.zeros(4, np.uint64), id="another shape"),
            pytest.param(np.zeros((2, 4), np.uint64)[:, :2], id="not contiguous"),
        ],
    )
    def test_an_out_that_does_not_fit_is_refused(self, out):
        values = np.ones((2, 2), np.int64)
        with pytest.raises(ParameterError, match="out"):
            field.encode(values, out=out)
        with pytest.raises(ParameterError, match="out"):
            field.decode(values.astype(np.uint64), out.view(np.int64))


def test_decode_at_the_edges():
    values = [0, 1, HALF - 1, HALF, HALF + 1, HALF + 2, P - 2, P - 1]
    got = field.decode(residues(values))
    assert got.dtype == np.int64
    assert got.tolist() == [0, 1, HALF - 1, HALF, -HALF, -HALF + 1, -2, -1]


@each_case("bound", [0, 1, 1000, HALF - 1])
@each_case("sign", [1, -1])
def test_decode_within_a_bound(bound, sign):
    for position in range(9):
        values = np.zeros(9, np.int64)
        values[position] = sign * bound
        assert field.decode(field.encode(values), bound=bound).tolist() == values.tolist()
        values[position] = sign * (bound + 1)
        with pytest.raises(RangeError) as caught:
            field.decode(field.encode(values), bound=bound, what="the total")
        assert str(caught.value) == f"the total: a value is beyond the bound {bound}"
    with pytest.raises(RangeError, match=r"^values: a value is beyond the bound"):
        field.decode(residues([bound + 1]), bound=bound)


class TestCheck:
    @each_case("dtype", [*INTEGERS, ">u8", object])
    def test_every_integer_type(self, dtype):
        same(field.check(np.array([[0, 1, 127]], dtype)), [[0, 1, 127]])

    def test_the_largest_residue(self):
        for dtype in (np.uint64, np.int64, object):
            same(field.check(np.array([P - 1, 0], dtype)), [P - 1, 0])

    @each_case("value", [P, P + 1, 2**62, 2**63, 2**64 - 1])
    @each_case("position", range(11))
    def test_what_is_not_below_the_modulus(self, value, position):
        values = np.zeros(11, np.uint64)
        values[position] = value
        with pytest.raises(RangeError) as caught:
            field.check(values, "the share")
        assert str(caught.value) == (
            "the share: a value is not in [0, 2^61-1); turn signed integers into residues with "
            "field.encode"
        )
        with pytest.raises(RangeError, match=r"the share: a value is not in \[0, 2\^61-1\)"):
            field.check(values.astype(object), "the share")

    @each_case("dtype", ["i1", "i2", "i4", "i8", ">i4", object])
    def test_negative_integers(self, dtype):
        with pytest.raises(RangeError, match="not in"):
            field.check(np.array([3, -1], dtype))

    @each_case("value", [2**64, 2**64 + 1, -(2**64), 10**30])
    def test_integers_beyond_64_bits(self, value):
        with pytest.raises(RangeError, match="not in"):
            field.check([1, value])

    def test_booleans(self):
        with pytest.raises(ParameterError, match="values: expected integers, got bool"):
            field.check([True])

    def test_numpy_integers_among_objects(self):
        same(field.check(np.array([np.int8(3), 4], object)), [3, 4])

    def test_a_list_that_numpy_would_make_floats_of(self):
        with pytest.raises(RangeError, match="not in"):
            field.check([2**63, -1])

    @each_case("shape", [(), (0,), (3,), (2, 0), (2, 3)])
    def test_shapes(self, shape):
        for dtype in (np.uint64, np.int32, object):
            same(field.check(np.full(shape, 6, dtype)), np.full(shape, 6, object))

    def test_nothing_is_an_empty_vector(self):
        same(field.check([]), [])

    def test_arrays_that_are_not_contiguous(self, random_residues):
        a = random_residues("a", 6, 4)[::-2, ::-1].T
        same(field.check(a), a)


class TestPublic:
    @each_case("value", [0, 1, P - 1, P, P + 1, 2**63, 2**64, 10**40, P**3 + 5])
    def test_any_size_and_sign(self, value):
        same(field.public(value), np.array(value % P, object))
        same(field.public(-value), np.array(-value % P, object))
        both = np.array([[value, -value]], object)
        same(field.public(both), [[value % P, -value % P]])

    @each_case("dtype", [*INTEGERS, ">u8"])
    def test_every_integer_type(self, dtype):
        info = np.iinfo(dtype)
        values = np.array([info.min, 0, 1, info.max], dtype)
        same(field.public(values), [v % P for v in (info.min, 0, 1, info.max)])

    def test_booleans_are_zero_and_one(self):
        same(field.public([True, False]), [1, 0])

    def test_numpy_integers_among_objects(self):
        same(field.public(np.array([np.int8(-3), 4], object)), [P - 3, 4])

    def test_a_list_that_numpy_would_make_floats_of(self):
        same(field.public([2**63, -1]), [2**63 % P, P - 1])

    def test_nothing_is_an_empty_vector(self):
        same(field.public([]), [])
        same(field.public(np.zeros((2, 0), np.int8)), np.zeros((2, 0), object))
