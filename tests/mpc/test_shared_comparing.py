"""Comparisons are exact over the whole range that the field holds, and give exactly 0 or 1."""

import operator
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from mpc.computers import LIMIT, computation, fractions, same, units

COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
HALF = LIMIT // 2
# Pairs whose differences are all that a comparison of two bounded values can meet.
ENDS = [HALF, HALF - 1, -HALF, 1 - HALF, 0, 1, -1]
# Differences with a single public end: up to (p-1)/2 on both sides.
POWERS = sorted({s * ((1 << k) + d) for k in range(60) for d in (-1, 0, 1) for s in (1, -1)})
EXTREMES = [LIMIT, LIMIT - 1, -LIMIT, 1 - LIMIT, LIMIT // 2, LIMIT // 2 + 1, 0, 1, -1, 2, -2]
RANGE = [v for v in POWERS if abs(v) <= LIMIT] + EXTREMES


@pytest.fixture(scope="module", params=[2, 3, pytest.param(5, marks=pytest.mark.slow)])
def run(request):
    return computation(request.param)


def boolean(array, want):
    """Exactly 0 or 1, of scale and bound 1."""
    assert (array.scale, array.bound) == (1, 1)
    assert set(units(array)) <= {0, 1}
    same(array, np.asarray(want).astype(int))


@each_case("name", COMPARISONS)
def test_two_shared_vectors(run, name):
    compare = COMPARISONS[name]
    a, b = np.repeat(ENDS, len(ENDS)), np.tile(ENDS, len(ENDS))
    x, y = run.share("north", a, bound=HALF), run.share("south", b, bound=HALF)
    boolean(compare(x, y), compare(a, b))


@each_case("name", COMPARISONS)
def test_the_whole_range_against_zero(run, name):
    compare = COMPARISONS[name]
    x = run.share("north", RANGE, bound=LIMIT)
    boolean(compare(x, 0), compare(np.array(RANGE), 0))
    boolean(compare(0, x), compare(0, np.array(RANGE)))
    boolean(compare(-x, 0), compare(-np.array(RANGE), 0))


@each_case("name", COMPARISONS)
def test_public_numbers_on_either_side(name):
    run, compare = computation(2), COMPARISONS[name]
    a = np.array([-5, -1, 0, 1, 5, 7])
    x = run.share("south", a, bound=10)
    for public in (0, 1, -1, 6, 2.5, -0.5, 1.0, True, np.int8(-5), np.uint64(7), np.float32(0.5),
                   a, a[::-1], a + 0.5, a.astype(np.int16), a > 0):  # fmt: skip
        boolean(compare(x, public), compare(a, public))
        boolean(compare(public, x), compare(public, a))
    boolean(compare(x, a.tolist()), compare(a, a))
    boolean(compare(x, [[0], [1]]), compare(a, [[0], [1]]))


@each_case("bound", [0, 1, 1 << 31, 1 << 53, HALF])
@each_case("name", COMPARISONS)
def test_random_values_equal_values_and_neighbours(run, name, bound):
    compare = COMPARISONS[name]
    rng = np.random.default_rng(bound % 1000)
    a = rng.integers(-bound, bound, 70, endpoint=True)
    near = np.clip(a[:30] + rng.integers(-1, 1, 30, endpoint=True), -bound, bound)
    b = np.concatenate([near, rng.integers(-bound, bound, 40, endpoint=True)])
    x, y = run.share("north", a, bound=bound), run.share("south", b, bound=bound)
    boolean(compare(x, y), compare(a, b))
    boolean(compare(x, x), compare(a, a))


@each_case("size", [0, 1, 2, 63, 64, 65, 127, 128, 129, 200])
def test_all_lengths(run, size):
    """Bits are sliced in words of 64."""
    a = np.arange(size) * 37 % 11 - 5
    x = run.share("north", a, bound=5)
    for compare in (operator.lt, operator.eq):
        boolean(compare(x, 0), compare(a, 0))


def test_different_grids(run):
    a, b = [1.25, -0.5, 3, 0.75], [1.25, -0.25, 3, 0.5]
    x = run.share("north", a, bound=4, bits=2)
    y = run.share("south", b, bound=4, bits=20)
    z = run.share("south", [1, 0, 3, 1], bound=4)
    for compare in COMPARISONS.values():
        boolean(compare(x, y), compare(np.array(a), b))
        boolean(compare(x, z), compare(np.array(a), [1, 0, 3, 1]))
        boolean(compare(z, y), compare(np.array([1, 0, 3, 1]), b))
    third = run.share("north", [0, 1, 0], bound=1).mean()
    boolean(third < 0.5, Fraction(1, 3) < Fraction(1, 2))
    boolean(third * 3 == 1, True)


def test_shapes(run):
    a, b = np.arange(6).reshape(2, 3), np.array([[2], [4]])
    x, y = run.share("north", a, bound=9), run.share("south", b, bound=9)
    for compare in COMPARISONS.values():
        boolean(compare(x, y), compare(a, b))
        boolean(compare(x[0, 1], y[0]), compare(a[0, 1], b[0]))


def test_what_comparisons_give_is_counted_and_compared(run):
    a = np.array([3, -2, 5, 0, 5])
    x = run.share("north", a, bound=5)
    same((x > 0).sum(), 3)
    same((x > 0) * x, a * (a > 0))
    same(((x > 0) == (x > 2)).sum(), 5)
    same((x >= 0) * (x <= 4), (a >= 0) & (a <= 4))


@examples(40)
@given(data=st.data())
def test_any_two_integers(data):
    run = computation(2, seed=data.draw(st.integers(0, 1000)))
    numbers = st.integers(-HALF, HALF) | st.sampled_from(ENDS)
    a = data.draw(st.lists(numbers, min_size=1, max_size=8))
    b = [data.draw(st.just(v) | numbers) for v in a]
    x, y = run.share("north", a, bound=HALF), run.share("south", b, bound=HALF)
    boolean(x < y, np.array(a) < b)
    boolean(x == y, np.array(a) == b)


def test_random_fractions(run):
    rng = np.random.default_rng(5)
    a = rng.integers(-999, 999, 50) / 8
    x = run.share("north", a, bound=200, bits=3)
    boolean(x < 0.0625, fractions(a) < Fraction(1, 16))
    boolean(x == a, np.ones(50))
