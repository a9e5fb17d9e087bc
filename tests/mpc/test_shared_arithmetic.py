"""Arithmetic on shares is exact: equal to Python's integers, whatever the sizes and shapes."""

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from mpc.computers import LIMIT, computation, fractions, same, sent

AROUND = [
    v + d
    for v in (0, 1 << 31, 1 << 32, 1 << 53, -(1 << 31), -(1 << 32), -(1 << 53))
    for d in (-1, 0, 1)
]
OPERATIONS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}


@pytest.fixture(scope="module", params=[2, 3, pytest.param(5, marks=pytest.mark.slow)])
def run(request):
    return computation(request.param)


def ints(values):
    return np.array(values, object)


@each_case("name", ["+", "-"])
def test_sums_and_differences_of_integers_around_powers_of_two(run, name):
    a, b = np.repeat(AROUND, len(AROUND)), np.tile(AROUND, len(AROUND))
    x = run.share("north", a, bound=1 << 54)
    y = run.share("south", b, bound=1 << 54)
    same(OPERATIONS[name](x, y), OPERATIONS[name](a.astype(object), b.astype(object)))


@each_case("other", [0, 1, -1, 2, -63])
def test_products_with_small_factors_around_powers_of_two(run, other):
    x = run.share("north", AROUND, bound=(1 << 53) + 1)
    y = run.share("south", [other] * len(AROUND), bound=63)
    same(x * y, ints(AROUND) * other)
    same(y * x, ints(AROUND) * other)


@each_case("split", [0, 1, 15, 29, 30, 45, 59, 60])
def test_products_that_reach_the_fields_end(run, split):
    """Factors at both ends of their bounds, whose product is nearly (p-1)/2."""
    a = max((1 << split) - 1, 1)
    b = LIMIT // a
    signs = [(s * a, t * b) for s in (-1, 0, 1) for t in (-1, 0, 1)]
    left, right = ints([s for s, _ in signs]), ints([t for _, t in signs])
    product = run.share("north", left, bound=a) * run.share("south", right, bound=b)
    assert product.bound == a * b
    same(product, left * right)


@each_case("a", [0, 1, -1, (1 << 30) - 1, 1 - (1 << 30)])
def test_squares(run, a):
    values = ints([a, -a, 0, a])
    square = run.share("north", values, bound=(1 << 30) - 1).square()
    assert square.bound == ((1 << 30) - 1) ** 2
    same(square, values**2)


@each_case("m, k, n", [(1, 1, 1), (2, 3, 4), (5, 1, 2), (1, 7, 1), (3, 0, 2), (0, 2, 2), (2, 2, 0)])
def test_matrix_products(run, m, k, n):
    rng = np.random.default_rng(m * 100 + k * 10 + n)
    a = rng.integers(-(1 << 28), 1 << 28, (m, k), endpoint=True)
    b = rng.integers(-(1 << 28), 1 << 28, (k, n), endpoint=True)
    want = ints([[sum(int(u) * int(v) for u, v in zip(row, column, strict=True))
                  for column in b.T] for row in a]).reshape(m, n)  # fmt: skip
    x, y = run.share("north", a, bound=1 << 28), run.share("south", b, bound=1 << 28)
    for product in (x @ y, x.dot(y), x @ b, a @ y):
        assert product.bound <= (1 << 56) * max(k, 1)
        same(product, want)


def test_matrix_products_of_long_sums_at_both_ends(run):
    """2048 and 2049 terms: where the float64 blocks of `field.matmul` change."""
    for k in (2048, 2049):
        b = LIMIT // k
        x = run.share("north", np.full((1, k), -1), bound=1)
        y = run.share("south", np.full((k, 1), b), bound=b)
        same(x @ y, ints([[-k * b]]))


def test_vectors_and_matrices_multiply_as_numpys(run):
    a, b, table = np.arange(-2, 3), np.arange(5) ** 3 - 7, np.arange(15).reshape(5, 3) - 4
    x, y = run.share("north", a, bound=9), run.share("south", b, bound=99)
    z = run.share("north", table, bound=20)
    same(x @ y, a @ b)
    same(x.dot(y), a @ b)
    same(x @ z, a @ table)
    same(z.T @ y, table.T @ b)
    for left, right, want in (
        (x, b, a @ b), (a, y, a @ b), (a, z, a @ table), (x, table, a @ table),
        (table.T, y, table.T @ b), (z.T, b, table.T @ b), (a.tolist(), y, a @ b),
    ):  # fmt: skip
        same(left @ right, want)


def test_sums_along_axes(run):
    values = np.arange(-12, 12).reshape(2, 3, 4) ** 3
    x = run.share("south", values, bound=2000)
    same(x.sum(), values.sum())
    assert x.sum().bound == 24 * 2000
    for axis in (0, 1, 2, -1, -2, -3):
        same(x.sum(axis), values.sum(axis))
        assert x.sum(axis).bound == values.shape[axis] * 2000


@each_case("size", [*range(1, 18), 31, 64, 65, 127])
def test_sums_of_all_lengths(run, size):
    values = np.arange(size) * 7 - 3
    same(run.share("north", values, bound=1000).sum(), values.sum())


@each_case("facts", [{}, {"decimals": 2}, {"bits": 3}])
def test_means_are_exact(run, facts):
    values = np.array([1.25, -7.5, 3, 0, 0.25, 2, 9]) * (4 if not facts else 1)
    x = run.share("north", values, bound=100, **facts)
    for n in range(1, 8):
        same(x[:n].mean(), fractions(values[:n]).sum() / n)
    assert x.mean().scale == 7 * x.scale


def test_broadcasting(run):
    shapes = [(), (1,), (3,), (2, 1), (1, 3), (2, 3), (4, 1, 1)]
    for one in shapes:
        for two in shapes:
            a = np.arange(np.prod(one, dtype=int)).reshape(one) - 1
            b = 5 - 2 * np.arange(np.prod(two, dtype=int)).reshape(two)
            x, y = run.share("north", a, bound=9), run.share("south", b, bound=9)
            for operation in OPERATIONS.values():
                same(operation(x, y), operation(a.astype(object), b.astype(object)))
                same(operation(x, b), operation(a.astype(object), b.astype(object)))
                same(operation(a, y), operation(a.astype(object), b.astype(object)))


INDICES = [
    0, -1, slice(None), slice(None, None, -1), (0, 1), (slice(None), 2), (..., -1), None, ...,
    (None, 1, None), [1, 0, 1], ([0, 1], [2, 0]), np.array([[True, False, True, True]] * 2),
    slice(5, 9), (slice(None), [3, 3, 0]), np.array([], int),
]  # fmt: skip


@each_case("index", INDICES)
def test_indexing_as_numpys(run, index):
    values = np.arange(8).reshape(2, 4) - 3
    x = run.share("north", values, bound=9)
    before = sent(run)
    part = x[index]
    assert sent(run) == before
    same(part, values[index])
    if part.size:
        same(part * part, (values * values)[index])  # the shares lie as numpy would have them


def test_the_engines_own_difference(run):
    x, y = run.share("north", [LIMIT, 0, -3], bound=LIMIT), run.share("south", [1, 2, -3], bound=3)
    before = sent(run)
    difference = x.like(run.engine.subtract(x.value, y.value), (3,))
    assert sent(run) == before
    same(difference, [LIMIT - 1, -2, 0])


def test_moving_sends_nothing(run):
    values = np.arange(12).reshape(3, 4)
    x = run.share("north", values, bound=20)
    before = sent(run)
    moved = [
        (x.T, values.T),
        (x.reshape(4, 3), values.reshape(4, 3)),
        (x.reshape((2, -1)), values.reshape(2, -1)),
        (x.T.reshape(-1), values.T.reshape(-1)),
        (x.broadcast((2, 3, 4)), np.broadcast_to(values, (2, 3, 4))),
        (x[0].reshape(2, 2).T, values[0].reshape(2, 2).T),
        (-x, -values), (x + 1, values + 1), (x * 3, values * 3), (x.sum(0), values.sum(0)),
        (x @ values.T, values @ values.T),
    ]  # fmt: skip
    assert sent(run) == before
    for found, want in moved:
        same(found, want)


def test_a_shared_array_is_not_changed_by_what_is_made_of_it(run):
    values = np.arange(6).reshape(2, 3)
    x, y = run.share("north", values, bound=9), run.share("south", values, bound=9)
    before = [share.copy() for share in x.value]
    for made in (x + y, x - y, x * y, x.square(), x.sum(0), x[0], x.T, -x, x < y, x == y, x @ y.T):
        made.reveal()
    for was, share in zip(before, x.value, strict=True):
        assert was.tolist() == share.tolist()


def test_nothing_and_one(run):
    empty = run.share("north", np.zeros((0, 3)), bound=5)
    other = run.share("south", np.zeros((0, 3)), bound=5)
    for made in (empty + other, empty - 1, empty * other, empty.square(), -empty, empty < other,
                 empty == other, empty >= 0, empty[:0], 3 * empty):  # fmt: skip
        same(made, np.zeros((0, 3), int))
    same(empty.sum(), 0)
    same(empty.sum(0), [0, 0, 0])
    same(empty.sum(1), np.zeros(0, int))
    same(empty.T @ other, np.zeros((3, 3), int))
    one = run.share("north", 7, bound=9)
    assert (one.shape, one.size, one.ndim) == ((), 1, 0)
    made = (one + one, one * -one, one.sum(), one.mean(), one.square(), one < 8, one[()])
    for found, want in zip(made, (14, -49, 7, 7, 49, 1, 7), strict=True):
        same(found, want)
    same(one[None], [7])


@given(data=st.data())
def test_polynomials(data):
    """Any mix of + - * on a few shared and public numbers is the same on Python's integers."""
    run = computation(2)
    names = st.sampled_from(["north", "south"])
    numbers = st.integers(-50, 50)
    stack = []
    for _ in range(3):
        values = data.draw(st.lists(numbers, min_size=2, max_size=2))
        stack.append((run.share(data.draw(names), values, bound=50), ints(values)))
    for _ in range(data.draw(st.integers(1, 5))):
        x, a = data.draw(st.sampled_from(stack))
        operation = OPERATIONS[data.draw(st.sampled_from(sorted(OPERATIONS)))]
        y, b = data.draw(st.sampled_from([*stack, (c := data.draw(numbers), c)]))
        if operation is OPERATIONS["*"] and x.bound * getattr(y, "bound", 50) > LIMIT:
            continue
        stack.append((operation(x, y), operation(a, b)))
    x, a = stack[-1]
    same(x, a)
