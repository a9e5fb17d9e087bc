"""Division of shared numbers: exact quotients over the whole declared range, of every sign."""

import operator
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case, examples, some_or_all
from hypothesis import given
from hypothesis import strategies as st
from mpc.computers import NAMES, Listener, exact, same, sent
from replaying import Replay

from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import Computation, divide, reciprocal
from securecomp.mpc.division import RELATIVE_ERROR
from securecomp.protocol.local_carrier import LocalCarrier

ENGINES = {
    "dealer": ({}, NAMES[:2]),
    "replicated": ({"dealer": False}, NAMES[:3]),
    "mac": ({"integrity": "mac"}, NAMES[:2]),
}


@pytest.fixture(scope="module")
def run():
    return Computation(NAMES[:2], Listener(Replay("division")))


def floored(x, y, scale):
    """Python's floor of x / y over a scale; 0 for a divisor of 0."""
    return [
        Fraction((Fraction(a) * scale / Fraction(b)).__floor__(), scale) if b else Fraction(0)
        for a, b in zip(x, y, strict=True)
    ]


def operands(x_bound, y_bound, seed, count=120):
    """Integers of every length and sign, the ends, and quotients that are integers."""
    rng = np.random.default_rng(seed)

    def numbers(bound):
        lengths = rng.integers(0, bound.bit_length() + 1, count)
        signs = rng.choice([-1, 1], count)
        return [
            int(s) * (int(rng.integers(0, 1 << int(length))) % (bound + 1))
            for s, length in zip(signs, lengths, strict=True)
        ]

    x, y = numbers(x_bound), numbers(y_bound)
    x[:10] = [x_bound, -x_bound, x_bound, -x_bound, 0, 1, -1, x_bound, 1, x_bound - 1]
    y[:10] = [1, 1, y_bound, -y_bound, 1, y_bound, y_bound, 0, -y_bound, y_bound]
    for i in range(10, count // 2):
        if y[i]:
            x[i] = abs(x[i]) // abs(y[i]) * abs(y[i]) * (1 if x[i] > 0 else -1)
    return x, y


RANGES = [
    (1, 1), (7, 5), (1000, 1000), (5 * 10**6, 100), (2**30 - 1, 2**30 - 1), (2**39, 2**39),
    (2**55, 2**20), (3, 2**49), (2**56 - 1, 1), (2**56 - 1, 2**50 - 1), (100, 2**30),
]  # fmt: skip


@some_or_all("ranges", RANGES[:1] + RANGES[4:9:2] + RANGES[9:], RANGES)
def test_quotients_are_exact_over_the_whole_declared_range(run, ranges):
    """The floor on the result's grid, not one unit off, for integers of every length and sign."""
    for seed, (x_bound, y_bound) in enumerate(ranges):
        x, y = operands(x_bound, y_bound, seed)
        a, b = run.share("north", x, bound=x_bound), run.share("south", y, bound=y_bound)
        for found, scale in (
            (divide(a, b), None),
            (divide(a, b, bits=0), 1),
            (a // b, 1),
        ):
            assert found.scale == scale or scale is None
            assert exact(found).tolist() == floored(x, y, found.scale), (x_bound, y_bound, scale)
        rest = [u % v if v else u for u, v in zip(x, y, strict=True)]
        assert exact(a % b).tolist() == rest, (x_bound, y_bound)


def test_the_relative_error_is_bounded_over_the_whole_declared_range(run):
    """2^-22, for the smallest quotient too, where the field has room for its digits."""
    for x_bound, y_bound, bits in ((1000, 1000, 0), (8, 8, 8), (5 * 10**6, 100, 0), (7, 2**26, 0)):
        x = [x_bound, 1, 2.0**-bits, -(2.0**-bits), x_bound / 4]
        y = [2.0**-bits, y_bound, y_bound, y_bound, 3]
        found = divide(
            run.share("north", x, bound=x_bound, bits=bits),
            run.share("south", y, bound=y_bound, bits=bits),
        )
        want = np.rint(np.array(x) * 2.0**bits) / np.rint(np.array(y) * 2.0**bits)
        error = np.abs(found.reveal() / want - 1)
        assert error.max() < RELATIVE_ERROR, (x_bound, y_bound, bits, error)


def test_what_an_audit_found(run):
    """Wide dividends gave 0, negative divisors gave 0, and 999/3 truncated was 332."""
    for bits in (0, 16):
        x = run.share("north", [5e6, 1e6, -5e6], bound=5e6, bits=bits)
        for y_bits in (0, 16):
            y = run.share("south", [50, 50, 50], bound=100, bits=y_bits)
            assert divide(x, y).reveal().tolist() == [100_000, 20_000, -100_000], (bits, y_bits)
            assert (x / -y).reveal().tolist() == [-100_000, -20_000, 100_000], (bits, y_bits)
    x, y = run.share("north", 999, bound=1000), run.share("south", 3, bound=10)
    third = divide(x, y)
    assert third.reveal() == 333
    assert third.truncate(third.scale.bit_length() - 1).reveal() == 333
    assert (x // y).reveal() == 333
    assert divide(x, y, bits=10).truncate(10).reveal() == 333
    half = reciprocal(run.share("north", [-2, 2, 0], bound=8, bits=4))
    assert half.reveal().tolist() == [-0.5, 0.5, 0]
    cents = run.share("north", [10.05, 20.1], bound=100, decimals=2)
    same(cents - 10.05, [0, Fraction(1005, 100)])
    same(cents == 10.05, [1, 0])
    same(cents / 20, [Fraction(1005, 2000), Fraction(201, 200)])
    same(cents // 3, [3, 6])
    same(cents % 3, [Fraction(105, 100), Fraction(21, 10)])


@each_case("facts, names", ENGINES.values())
def test_by_every_engine(facts, names):
    together = Computation(names, Listener(Replay("engines")), **facts)
    x, y = operands(2**20, 2**12, 7, 24)
    a = together.share("north", x, bound=2**20)
    b = together.share("south", y, bound=2**12)
    found = divide(a, b)
    assert found.reveal().tolist() == [float(v) for v in floored(x, y, found.scale)]
    assert (a // b).reveal().tolist() == [int(v) for v in floored(x, y, 1)]
    assert (a // 77).reveal().tolist() == [v // 77 for v in x]
    assert (a % b).reveal().tolist() == [u % v if v else u for u, v in zip(x, y, strict=True)]
    ones = np.abs(reciprocal(b).reveal() * np.array(y) - np.sign(np.abs(y)))
    assert ones.max() <= RELATIVE_ERROR + 2.0**-28


def test_grids_of_dividend_and_divisor(run):
    """Decimals by decimals, by bits, and the other way round: the floor, on a public grid."""
    x, y = [3, -7, 0.5, 99.75], [0.25, 3, -7.5, 41]
    for x_grid in ({"decimals": 2}, {"bits": 11}):
        for y_grid in ({"decimals": 3}, {"bits": 9}):
            a = run.share("north", x, bound=100, **x_grid)
            b = run.share("south", y, bound=50, **y_grid)
            for bits in (None, 5):
                found = divide(a, b, bits=bits)
                assert bits is None or found.scale == 1 << bits
                case = (x_grid, y_grid, bits)
                assert exact(found).tolist() == floored(x, y, found.scale), case
            assert exact(a // b).tolist() == floored(x, y, 1), (x_grid, y_grid)


def test_shapes_of_dividend_and_divisor(run):
    rows = run.share("north", [[6, 9], [-6, 12]], bound=12)
    row, one = run.share("south", [2, 3], bound=3), run.share("south", 3, bound=3)
    same(rows / row, [[3, 3], [-3, 4]])
    same(rows // one, [[2, 3], [-2, 4]])
    same(one / row[1], 1)
    same(12 / row, [6, 4])
    same(7 // row, [3, 2])
    same(7 % row, [1, 1])
    same([7, -7] // one, [2, -3])
    same(np.array([7.5, -7.5]) % one, [Fraction(3, 2), Fraction(3, 2)])
    assert (rows[:0] / row).shape == (0, 2)
    assert (row[:0] // 3).shape == (0,)
    assert (1 / row[:0]).shape == (0,)
    assert reciprocal(row[:0]).shape == (0,)


@examples(30)
@given(
    x=st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=6),
    y=st.integers(-(2**30), 2**30).filter(bool),
    scale=st.sampled_from([{}, {"decimals": 3}, {"bits": 10}]),
)
def test_public_divisors(x, y, scale):
    """`/` is exact over a finer scale; `//` and `%` are Python's."""
    together = Computation(["a", "b"], LocalCarrier())
    unit = {"decimals": 1000, "bits": 1024}.get(next(iter(scale), ""), 1)
    values = [Fraction(v, unit) for v in x]
    a = together.share("a", values, bound=2**40 // unit + 1, **scale)
    same(a / y, [v / y for v in values])
    same(a // y, [v // y for v in values])
    same(a % y, [v % y for v in values])


def test_public_divisors_that_are_no_integers_or_differ(run):
    x = [100, -7, 0, 63]
    a = run.share("north", x, bound=100)
    f = Fraction
    for divisor in (0.5, -2.5, 10.05, 0.1, f(3, 7), 2.0**-20):
        value = f(repr(divisor)) if isinstance(divisor, float) else divisor
        same(a / divisor, [v / value for v in x])
        same(a // divisor, [v // value for v in x])
        same(a % divisor, [v % value for v in x])
    several = [2, -3, 7, 64]
    same(a / several, [f(v, d) for v, d in zip(x, several, strict=True)])
    same(a // several, [v // d for v, d in zip(x, several, strict=True)])
    same(a % several, [v % d for v, d in zip(x, several, strict=True)])
    same(a // 2.0**49, [0, -1, 0, 0])


def test_divisions_that_cannot_be_send_nothing(run):
    x, wide = run.share("north", [1, 2], bound=3), run.share("north", [1, 2], bound=2**57)
    y = run.share("south", [1, 2], bound=2**51)
    other = Computation(NAMES[:2], Listener()).share("north", [1, 2], bound=3)
    before = sent(run)
    for operation, error, match in (
        (lambda: x / 0, ParameterError, "a public divisor is 0"),
        (lambda: x // [1, 0], ParameterError, "a public divisor is 0"),
        (lambda: x % 0.0, ParameterError, "a public divisor is 0"),
        (lambda: x / float("nan"), ParameterError, "finite numbers"),
        (lambda: x / None, ParameterError, "finite numbers"),
        (lambda: x / other, ParameterError, "different computations"),
        (lambda: x // other, ParameterError, "different computations"),
        (lambda: x % other, ParameterError, "different computations"),
        (lambda: x / [1, 2, 3], ParameterError, "do not go together"),
        (lambda: x // [1, 2, 3], ParameterError, "do not go together"),
        (lambda: wide // 3, RangeError, "a dividend could reach .* takes up to 2.56"),
        (lambda: wide / x, RangeError, "a dividend could reach"),
        (lambda: x / y, RangeError, "a divisor could reach .* takes up to 2.50"),
        (lambda: x // 2**51, RangeError, "a divisor could reach"),
        (lambda: divide(x, x, bits=-1), ParameterError, "bits must be from 0 to 56, not -1"),
        (lambda: divide(x, x, bits=True), ParameterError, "bits is a plain integer, not True"),
        (lambda: divide(x, x, bits=55), RangeError, "or ask for fewer bits"),
        (lambda: reciprocal(y), RangeError, "a smaller bound or fewer digits"),
    ):
        with pytest.raises(error, match=match):
            operation()
    assert sent(run) == before


def test_messages_do_not_depend_on_what_is_divided(replay):
    """All that is opened is masked: each message is as long, whatever the numbers are."""
    routes = []
    for x, y in (([1, 5, 0], [1, 2, 3]), ([-1000, 1000, 1], [-1000, 0, 7])):
        listener = Listener(replay("the same"))
        together = Computation(NAMES[:2], listener)
        a, b = together.share("north", x, bound=1000), together.share("south", y, bound=1000)
        for operation in (divide, operator.floordiv, operator.mod):
            operation(a, b)
        reciprocal(b)
        routes.append([(s, r, len(d)) for s, r, d in listener.record])
    assert routes[0] == routes[1]


def test_reciprocals_in_the_whole_domain(run):
    for bound, bits in ((1, 10), (1000, 10), (2**29, 0), (3, 28), (8, 1)):
        x = np.rint(np.geomspace(2.0**-bits, bound, 300) * 2.0**bits) / 2.0**bits
        units = [1, 2, 3, bound * 2**bits - 1, bound * 2**bits]
        x = np.concatenate([x, np.array(units) / 2.0**bits])
        x = x[(x > 0) & (x <= bound)]
        x = np.concatenate([x, -x])
        found = reciprocal(run.share("north", x, bound=bound, bits=bits))
        error = np.abs(found.reveal() - 1 / x)
        allowed = RELATIVE_ERROR * np.abs(1 / x) + 1 / found.scale
        assert np.all(error <= allowed), (bound, bits)
    tenths = reciprocal(run.share("north", [0.1, -2.5, 0], bound=10, decimals=1)).reveal()
    assert tenths.tolist() == pytest.approx([10, -0.4, 0], rel=RELATIVE_ERROR)
