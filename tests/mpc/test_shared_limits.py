"""Where the field ends: at the limit all is exact, and one beyond nothing leaves a party."""

from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from mpc.computers import LIMIT, NAMES, computation, same, sent

from securecomp.errors import RangeError
from securecomp.mpc.selection import argmax, maximum, median, minimum, quantile, sort, where

HALF = LIMIT // 2  # two of them and one: the limit is odd


@pytest.fixture(scope="module", params=[2, 3, pytest.param(5, marks=pytest.mark.slow)])
def run(request):
    return computation(request.param)


def refused(run, operation, what):
    before = sent(run)
    match = f"{what} could reach .* units of its grid, and the field holds .*; truncate"
    with pytest.raises(RangeError, match=match):
        operation()
    assert sent(run) == before


def test_the_limit_is_what_the_field_can_hold():
    assert LIMIT == 2**60 - 1 == (2**61 - 2) // 2


def test_inputs_up_to_the_limit(run):
    for name in NAMES[: len(run.engine.names)]:
        same(run.share(name, [LIMIT, -LIMIT, 0], bound=LIMIT), [LIMIT, -LIMIT, 0])
    refused(run, lambda: run.share("north", [0], bound=LIMIT + 1), "the input")
    refused(run, lambda: run.share("north", [0], bound=2**53, bits=8), "the input")
    refused(run, lambda: run.share("north", [0], bound=10**15, decimals=4), "the input")


def test_sums(run):
    x = run.share("north", [HALF, -HALF], bound=HALF)
    y = run.share("south", [HALF + 1, -HALF - 1], bound=HALF + 1)
    z = run.share("south", [HALF + 2], bound=HALF + 2)
    same(x + y, [LIMIT, -LIMIT])
    same(x - y, [-1, 1])
    same(y - -x, [LIMIT, -LIMIT])
    same(x + (HALF + 1), [LIMIT, 1])
    same(-(HALF + 1) - x, [-LIMIT, -1])
    for operation in (lambda: x + z, lambda: x - z, lambda: z - x, lambda: y + x + 1,
                      lambda: x + (HALF + 2), lambda: (HALF + 2) - x, lambda: x - [-HALF - 2, 0],
                      lambda: x < z, lambda: z > x, lambda: x <= z, lambda: x == z,
                      lambda: x != z, lambda: x < HALF + 2, lambda: x == -HALF - 2):  # fmt: skip
        refused(run, operation, "a sum")


@each_case("count", [1, 2, 3, 5, 9])
def test_sums_along_an_axis(run, count):
    most = LIMIT // count
    values = np.full((count, 2), most) * [1, -1]
    same(run.share("north", values, bound=most).sum(0), [count * most, -count * most])
    same(run.share("north", values[:, 1], bound=most).sum(), -count * most)
    same(run.share("north", [values[0]], bound=most).sum(0), [most, -most])
    if LIMIT % count == 0:
        assert run.share("north", values[:, 0], bound=most).sum().bound == LIMIT
    if count > 1:
        x = run.share("north", values, bound=most + 1)
        refused(run, lambda: x.sum(0), "a sum")
        refused(run, lambda: x.sum(), "a sum")


@each_case("factor", [3, 5, 7, 9, 11, 13, 31, 41, 61, 151, 331, 1321])
def test_products_whose_bound_is_the_limit_exactly(run, factor):
    """2^60 - 1 has these divisors."""
    assert LIMIT % factor == 0
    other = LIMIT // factor
    x = run.share("north", [factor, -factor], bound=factor)
    y = run.share("south", [other, other], bound=other)
    over = run.share("south", [0, 0], bound=other + 1)
    for product in (x * y, y * x, x * other, other * x, factor * -y * [-1, 1]):
        assert product.bound == LIMIT
        same(product, [LIMIT, -LIMIT])
    for operation in (lambda: x * over, lambda: over * x, lambda: x * (other + 1),
                      lambda: (-other - 1) * x, lambda: over * factor):  # fmt: skip
        refused(run, operation, "a (product|multiple)")


def test_squares(run):
    root = 2**30 - 1
    assert root**2 <= LIMIT < (root + 1) ** 2
    same(run.share("north", [root, -root], bound=root).square(), [root**2] * 2)
    x = run.share("north", [0], bound=root + 1)
    refused(run, x.square, "a square")
    refused(run, lambda: x * x, "a product")


def test_matrix_products_whose_bound_is_the_limit(run):
    """LIMIT = 3 x 5 x other."""
    other = LIMIT // 15
    a, b = np.full((1, 3), -5), np.full((3, 1), other)
    x, y = run.share("north", a, bound=5), run.share("south", b, bound=other)
    for product in (x @ y, x @ b, a @ y):
        assert product.bound == LIMIT
        same(product, [[-LIMIT]])
    over = run.share("south", b, bound=other + 1)
    wide = np.array([[other + 1], [0], [0]])
    for operation in (lambda: x @ over, lambda: a @ over, lambda: x @ wide, lambda: wide.T @ over,
                      lambda: x[0] @ over[:, 0]):  # fmt: skip
        refused(run, operation, "a matrix product")


def test_a_finer_grid_can_be_too_fine(run):
    x = run.share("north", [1], bound=2**59)
    refused(run, lambda: x + 0.25, "a multiple")
    y = run.share("south", [0.25], bound=1, bits=2)
    refused(run, lambda: x + y, "a multiple")
    refused(run, lambda: x < y, "a multiple")
    half = run.share("south", [0.5], bound=0.5, bits=1)
    small = run.share("north", [2**58], bound=2**58)
    same(small + half, [Fraction(2**59 + 1, 2)])


CHOICES = {
    "maximum": (maximum, 4),
    "minimum": (minimum, -3),
    "argmax": (argmax, 3),
    "first of sort": (lambda x: sort(x)[0], -3),
    "median": (median, None),
    "quantile": (lambda x: quantile(x, 1), 4),
    "where": (lambda x: where(x < 0, x, -x)[3], -4),
}


@each_case("name", CHOICES)
@each_case("bound", [LIMIT // 4, LIMIT // 3, LIMIT // 3 + 1, HALF])
def test_choosing_works_as_far_as_comparing_does(run, name, bound):
    """Twice the bound fits: all can be compared, and a choice is within the bound of both."""
    unit = bound // 4
    x = run.share("north", np.array([1, -3, 2, 4]) * unit, bound=bound)
    function, want = CHOICES[name]
    found = function(x)
    if name == "argmax":
        same(found, want)
    elif name == "median":
        assert found.scale == 2
        same(found, Fraction(3 * unit, 2))
    else:
        assert found.bound == bound
        same(found, want * unit)


@each_case("name", CHOICES)
def test_choosing_beyond_is_refused_before_anything_is_sent(run, name):
    x = run.share("north", [1, -3, 2, 4], bound=HALF + 1)
    if name == "where":
        condition = x < 0
        y = run.share("south", [1], bound=HALF + 1)
        refused(run, lambda: where(condition, x, y), "a sum")
    else:
        refused(run, lambda: CHOICES[name][0](x), "a sum")
