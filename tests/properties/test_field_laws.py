"""The laws of a field, and that the signed integers are in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from securecomp.core import field
from securecomp.errors import RangeError

P = field.MODULUS
EDGES = [0, 1, 2, field.LIMIT, field.LIMIT + 1, P - 2, P - 1, 2**32 - 1, 2**32, 2**60]
residues = st.sampled_from(EDGES) | st.integers(0, P - 1)
signed = st.integers(-field.LIMIT, field.LIMIT)
shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)


def arrays(shape):
    return hnp.arrays(np.uint64, shape, elements=residues)


@st.composite
def several(draw, count):
    """Arrays of one shape."""
    shape = draw(shapes)
    return [draw(arrays(shape)) for _ in range(count)]


@st.composite
def broadcasting(draw):
    """Two arrays that broadcast, laid out in memory in many ways."""
    (left, right), _ = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_side=4))
    a, b = draw(arrays(left)), draw(arrays(right))
    return (np.asfortranarray(a) if draw(st.booleans()) else a[::-1]), b


def same(a, b):
    assert a.dtype == np.uint64
    assert np.array_equal(a, b)
    field.check(a)


@given(several(3))
def test_addition(given):
    a, b, c = given
    same(field.add(a, b), field.add(b, a))
    same(field.add(field.add(a, b), c), field.add(a, field.add(b, c)))
    same(field.add(a, np.zeros(a.shape, np.uint64)), a)
    same(field.add(a, field.negative(a)), np.zeros(a.shape, np.uint64))
    same(field.subtract(field.add(a, b), b), a)
    same(field.subtract(a, b), field.add(a, field.negative(b)))


@given(several(3))
def test_multiplication(given):
    a, b, c = given
    same(field.multiply(a, b), field.multiply(b, a))
    same(field.multiply(field.multiply(a, b), c), field.multiply(a, field.multiply(b, c)))
    same(field.multiply(a, np.ones(a.shape, np.uint64)), a)
    same(
        field.multiply(a, field.add(b, c)),
        field.add(field.multiply(a, b), field.multiply(a, c)),
    )
    inverted = field.inverse(np.maximum(a, np.uint64(1)))
    same(field.multiply(np.maximum(a, np.uint64(1)), inverted), np.ones(a.shape, np.uint64))


@given(broadcasting())
def test_python_says_the_same(given):
    a, b = given
    x, y = a.astype(object), b.astype(object)
    for function, want in (
        (field.add, x + y),
        (field.subtract, x - y),
        (field.multiply, x * y),
    ):
        got = function(a, b)
        assert got.shape == want.shape
        assert got.tolist() == (want % P).tolist()


@given(st.tuples(*[st.integers(0, 5)] * 3), st.data())
def test_matmul(sides, data):
    """A matrix product is a sum of outer products, whatever the shapes."""
    rows, inner, columns = sides
    left, right = data.draw(arrays((rows, inner))), data.draw(arrays((inner, columns)))
    want = np.zeros((rows, columns), np.uint64)
    for k in range(inner):
        want = field.add(want, field.multiply(left[:, k : k + 1], right[k : k + 1]))
    same(field.matmul(left, right), want)


@given(hnp.arrays(object, shapes, elements=signed), st.data())
def test_signed_integers(values, data):
    """Encoding is one to one, and sums within the limit come out as integers do."""
    encoded = field.encode(values)
    assert encoded.tolist() == (values % P).tolist()
    assert field.decode(encoded).tolist() == values.tolist()
    same(field.encode(-values), field.negative(encoded))
    half = st.integers(-(field.LIMIT // 2), field.LIMIT // 2)
    a, b = (data.draw(hnp.arrays(object, values.shape, elements=half)) for _ in range(2))
    assert field.decode(field.add(field.encode(a), field.encode(b))).tolist() == (a + b).tolist()


@given(hnp.arrays(object, shapes, elements=st.integers()))
def test_public_constants(values):
    same(field.public(values), np.array(values % P, np.uint64))


@given(hnp.arrays(np.int64, shapes), st.integers(0, field.LIMIT))
def test_the_bound_is_what_decides(values, bound):
    if any(abs(int(v)) > bound for v in values.flat):
        with pytest.raises(RangeError, match=f"beyond the bound {bound};"):
            field.encode(values, bound)
    else:
        assert field.decode(field.encode(values, bound)).tolist() == values.tolist()
