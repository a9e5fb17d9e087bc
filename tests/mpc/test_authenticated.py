"""Computing on shares with MACs: the results are right, and so are the pieces."""

import functools

import numpy as np
import pytest
from cases import each_case
from deviations import NAMES, Run

from securecomp.core import field
from securecomp.errors import ParameterError
from securecomp.mpc import divide, functions, mac_dealer, selection
from securecomp.mpc.computation import Computation
from securecomp.mpc.correlated_randomness import Correlations
from securecomp.mpc.mac_checks import inner
from securecomp.protocol.local_carrier import LocalCarrier


@pytest.fixture
def run(replay):
    return functools.partial(Run, replay)


# Right results


@each_case("parties", [2, 3, 4])
def test_all_operations_are_numpys(run, parties):
    r = run(parties)
    rng = np.random.default_rng(parties)
    a, b = rng.integers(-1000, 1001, (2, 6, 4))
    b[:2] = a[:2]
    a[3, 0], b[3, 0] = 1000, -1000
    x, y = r.share("ada", a), r.share(NAMES[parties - 1], b)
    table = rng.integers(-9, 10, (3, 6))
    for got, expected in (
        (x, a),
        (x + y, a + b),
        (x - y, a - b),
        (x + 7, a + 7),
        (5 - x, 5 - a),
        (x + b, a + b),
        (x * 3, a * 3),
        (x * b, a * b),
        (-x, -a),
        (x[1:3, ::2], a[1:3, ::2]),
        (x.T, a.T),
        (x.sum(), a.sum()),
        (x.sum(0), a.sum(0)),
        (x.sum(1), a.sum(1)),
        (table @ x, table @ a),
        (x @ table.T[:4], a @ table.T[:4]),
        (x * y, a * b),
        (x * y[0], a * b[0]),
        (x.square(), a**2),
        (x @ y.T, a @ b.T),
        (x[0].dot(y[0]), a[0] @ b[0]),
        (x < y, a < b),
        (x > 0, a > 0),
        (x <= y, a <= b),
        (x >= y, a >= b),
        (x == y, a == b),
        (x != y, a != b),
        (selection.where(x < y, x, y), np.minimum(a, b)),
        (selection.maximum(x), a.max()),
        (selection.sort(x[0]), np.sort(a[0])),
    ):
        assert np.array_equal(got.reveal(), expected)
    assert r.driver.checks
    assert not r.members[0].unchecked


@each_case("parties", [2, 3, 4])
@each_case("by", [1, 10, 30, 58])
def test_truncation_is_exact(run, parties, by):
    r = run(parties)
    limit = (1 << 59) - 1
    integers = np.array([0, 1, -1, limit, -limit, 1 << 58, (1 << by) - 1, -(1 << by), 12345])
    x = r.engine.input("ben", field.encode(integers))
    shifted = field.decode(r.engine.reveal(r.engine.shifted(x, by), r.engine.names))
    assert np.array_equal(shifted, integers >> by)


def test_comparisons_reach_the_ends_of_the_field(run):
    r = run(2)
    integers = np.array([field.LIMIT, -field.LIMIT, 0, 1, -1, field.LIMIT - 1])
    x = r.engine.input("ada", field.encode(integers))
    names = r.engine.names
    assert np.array_equal(r.engine.reveal(r.engine.negative(x), names), integers < 0)
    assert np.array_equal(r.engine.reveal(r.engine.zero(x), names), integers == 0)


def test_reals(run):
    r = run(2)
    x = r.share("ada", [1.5, -2.25], bits=8)
    assert (x * x).truncate(8).reveal().tolist() == [2.25, 5.0625]
    assert r.share("ben", [0.25, 0.5], decimals=2).mean().reveal() == 0.375


def test_functions(run):
    r = run(3)
    x, y = r.share("ada", [3.0, -7.5], bits=10), r.share("ben", [4.0, 2.5], bits=10)
    assert divide(x, y).reveal() == pytest.approx([0.75, -3.0], abs=0.01)
    assert functions.sqrt(y).reveal() == pytest.approx([2.0, 2.5**0.5], abs=0.01)


def test_long_comparisons_go_in_blocks(run, monkeypatch):
    monkeypatch.setattr("securecomp.mpc.mac_engine._BLOCK", 4)
    r = run(2)
    a = np.arange(-5, 6)
    assert np.array_equal((r.share("ada", a) < 0).reveal(), a < 0)
    assert (r.share("ben", np.zeros(0, int)) < 0).reveal().shape == (0,)


def test_long_vectors(run):
    r = run(3)
    a = np.arange(-35000, 35000)
    x = r.share("cyd", a, bound=35000)
    assert np.array_equal((x * x + x.square()).reveal(["ada"]), 2 * a**2)
    assert r.members[0].unchecked == 0


@each_case("to", [["ben"], ["cyd", "ada"]])
def test_who_is_no_recipient_never_sees_the_result(run, to):
    r = run(3)
    x = r.share("ada", [111, 222])
    assert x.reveal(to).tolist() == [111, 222]
    assert not r.revealed([111, 222])
    assert x.reveal().tolist() == [111, 222]
    assert r.revealed([111, 222])


def test_a_check_passes_and_begins_anew(run):
    r = run(3)
    x, y = r.share("ada", [3, 4]), r.share("ben", [5, 6])
    z = x * y
    assert [m.unchecked for m in r.members] == [4, 4, 4]
    r.driver.check()
    assert [m.unchecked for m in r.members] == [0, 0, 0]
    assert r.driver.checks == 1
    r.driver.check()  # nothing was said: no messages
    assert r.driver.checks == 1
    assert z.reveal().tolist() == [15, 24]
    assert r.driver.checks == 2
    assert not r.revealed([3, 4])


def test_integrity_is_mac_or_none(replay):
    with pytest.raises(ParameterError, match="integrity"):
        Computation(["a", "b"], LocalCarrier(replay(0)), integrity="sha")
    with pytest.raises(ParameterError, match="needs a dealer"):
        Computation(["a", "b", "c"], LocalCarrier(replay(0)), integrity="mac", dealer=False)


# The pieces


@each_case("parties", [2, 3])
@each_case(
    "kind, shape",
    [
        ("triple", (5,)),
        ("square", (5,)),
        ("matrix", (2, 3, 4)),
        ("own", (5, 1)),
        ("digits", (5, 0)),
        ("digits", (5, 20)),
    ],
)
def test_correlations_are_what_they_say(parties, kind, shape):
    parts = [Correlations(bytes([i + 1]) * 32) for i in range(parties)]
    made = mac_dealer.corrections(parts, 3, kind, shape)
    each = [mac_dealer.expand(part, 3, kind, shape) for part in parts[:-1]]
    each.append(mac_dealer.expand(parts[-1], 3, kind, shape, made))
    alpha = functools.reduce(field.add, map(mac_dealer.key_share, parts))
    values = []
    for vector, size in enumerate(mac_dealer.sizes(kind, shape)):
        value, mac = functools.reduce(field.add, [pairs[vector] for pairs in each])
        assert value.shape == (size,)
        assert np.array_equal(mac, field.multiply(value, alpha))
        values.append(value)
    if kind == "matrix":
        a, b = values[0].reshape(2, 3), values[1].reshape(3, 4)
        assert np.array_equal(field.matmul(a, b).reshape(-1), values[2])
    elif kind == "own":
        assert np.array_equal(values[0], mac_dealer.known(parts[1], 3, 5))
    elif kind == "digits":
        r = functools.reduce(field.add, [mac_dealer.known(part, 3, 5) for part in parts])
        rows = iter(values[0].reshape(-1, 5))
        found = np.zeros(5, np.uint64)
        for place, bits in mac_dealer.digits(shape[1]):
            digit = sum(next(rows) for _ in range(1, 1 << bits))
            found += digit << np.uint64(place)
        assert next(rows, None) is None
        assert np.array_equal(found, r)
        assert set(values[0].tolist()) == {0, 1}
    else:
        assert np.array_equal(field.multiply(values[0], values[-2]), values[-1])


def test_inner_products(random_residues):
    a, b = random_residues(1, 1000), random_residues(2, 1000)
    exact = sum(int(v) * int(w) for v, w in zip(a, b, strict=True)) % field.MODULUS
    assert int(inner(a, b)) == exact
    top = np.full(1 << 16, field.MODULUS - 1, np.uint64)
    assert int(inner(top, top)) == 1 << 16
    assert int(inner(top[:0], top[:0])) == 0
