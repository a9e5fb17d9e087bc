"""Three parties without a dealer: what they compute, and what it costs."""

import operator

import numpy as np
import pytest
from cases import each_case

from securecomp.core import field, field_kernels, prg
from securecomp.errors import (
    ParameterError,
    RangeError,
    RemoteProtocolError,
)
from securecomp.mpc import selection
from securecomp.mpc.computation import Computation
from securecomp.mpc.dealer_parties import Lockstep
from securecomp.mpc.engine import AdditiveEngine
from securecomp.mpc.replicated_engine import ReplicatedEngine
from securecomp.mpc.roles import Seed
from securecomp.mpc.three_party import ThreeParties
from securecomp.protocol import wire
from securecomp.protocol.local_carrier import LocalCarrier

P = field.MODULUS
LIMIT = field.LIMIT
NAMES = ("a", "b", "c")
PRODUCT_BOUND = (1 << 30) - 1  # whose square the field holds


@pytest.fixture
def carrier(replay):
    return LocalCarrier(replay("replicated"))


@pytest.fixture
def computation(carrier):
    return Computation(NAMES, carrier, dealer=False)


@pytest.fixture
def ring(carrier):
    return ThreeParties(NAMES, carrier)


def signed(residues):
    return field.decode(residues, bound=LIMIT, what="test")


# The same as numpy.

X = np.array([[-9, 9, 0, 3], [4, -9, 9, -1], [9, 9, -9, 2]])
Y = np.array([[9, 9, 0, -3], [4, 8, -9, 1], [-9, 9, -9, 7]])
V = np.array([3, -9, 9, 9, 0, -9, 5])
PUBLIC = np.array([2, -1, 0, 7])

OPERATIONS = {
    "x + y": operator.add,
    "x - y": operator.sub,
    "x * y": operator.mul,
    "-x": lambda x, y: -x,
    "x + public": lambda x, y: x + PUBLIC,
    "public - x": lambda x, y: 5 - x,
    "x * public": lambda x, y: x * PUBLIC,
    "public * x": lambda x, y: -3 * x,
    "row * matrix": lambda x, y: x[0] * y,
    "x[...]": lambda x, y: x[1:, ::-2],
    "reshape": lambda x, y: x.reshape(2, 6),
    "transpose": lambda x, y: x.T,
    "sum": lambda x, y: x.sum(),
    "sum(0)": lambda x, y: x.sum(0),
    "sum(1)": lambda x, y: x.sum(1),
    "mean": lambda x, y: x.mean(),
    "x @ y": lambda x, y: x @ y.T,
    "vector @ matrix": lambda x, y: x[0] @ y.T,
    "vector @ vector": lambda x, y: x[0].dot(y[0]),
    "x @ public": lambda x, y: x @ Y.T,
    "public @ x": lambda x, y: Y.T @ x,
    "public vector @ x": lambda x, y: Y[:, 0] @ x,
    "x @ public vector": lambda x, y: x @ PUBLIC,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "< public": lambda x, y: x < PUBLIC,
    "of a product": lambda x, y: (x * y + x) * (x < y),
}


@each_case("operation", OPERATIONS.values())
def test_an_operation_is_numpys(computation, operation):
    x = computation.share("a", X, bound=9)
    y = computation.share("b", Y, bound=9)
    result = operation(x, y).reveal()
    np.testing.assert_array_equal(result, operation(X, Y))
    assert np.shape(result) == np.shape(operation(X, Y))


CHOICES = {
    "where": (lambda v: selection.where(v > 0, v, -v), np.abs),
    "where, public": (lambda v: selection.where(v > 0, 1, v), lambda v: np.where(v > 0, 1, v)),
    "where, or public": (lambda v: selection.where(v > 0, v, 1), lambda v: np.where(v > 0, v, 1)),
    "concatenate": (
        lambda v: selection.concatenate([v, v[:2], -v]),
        lambda v: np.concatenate([v, v[:2], -v]),
    ),
    "maximum": (selection.maximum, np.max),
    "minimum": (selection.minimum, np.min),
    "argmax": (selection.argmax, np.argmax),
    "sort": (selection.sort, np.sort),
    "median": (selection.median, np.median),
    "median, even": (lambda v: selection.median(v[1:]), lambda v: np.median(v[1:])),
    "quantile": (
        lambda v: selection.quantile(v, 0.3),
        lambda v: np.quantile(v, 0.3, method="inverted_cdf"),
    ),
}


@each_case("choice, plain", CHOICES.values())
@each_case("owner", NAMES)
def test_a_choice_is_numpys(computation, choice, plain, owner):
    shared = computation.share(owner, V, bound=9)
    np.testing.assert_array_equal(choice(shared).reveal(), plain(V))


@each_case("owner", NAMES)
def test_products_reach_the_fields_bounds(computation, owner):
    ends = np.array([-PRODUCT_BOUND, 0, 1, PRODUCT_BOUND])
    x = computation.share(owner, ends, bound=PRODUCT_BOUND)
    y = computation.share("b", ends[::-1].copy(), bound=PRODUCT_BOUND)
    np.testing.assert_array_equal((x * y).reveal(), ends * ends[::-1])
    np.testing.assert_array_equal(x.square().reveal(), ends**2)
    np.testing.assert_array_equal((x[:, None] @ y[None]).reveal(), np.outer(ends, ends[::-1]))
    with pytest.raises(RangeError, match="a product"):
        (x + 1) * (y + 1)


def test_comparisons_reach_the_fields_bounds(computation):
    ends = np.array([-LIMIT, -1, 0, 1, LIMIT])
    x = computation.share("c", ends, bound=LIMIT)
    np.testing.assert_array_equal((x < 0).reveal(), ends < 0)
    np.testing.assert_array_equal((x == 0).reveal(), ends == 0)


@each_case("bits", [1, 20, 58])
def test_truncation_is_the_floor(computation, bits):
    top = (1 << 59) - 1
    ends = np.array([-top, -(1 << bits), -1, 0, 1, (1 << bits) - 1, top])
    shared = computation.share("a", ends, bound=top)
    shared.scale = 1 << 58
    cut = shared.truncate(bits)
    assert signed(cut.engine.reveal(cut.value, NAMES)).tolist() == [
        v >> bits for v in ends.tolist()
    ]


def test_large_vectors_are_done_side_by_side(computation, random_residues):
    x, y = (random_residues(s, 70_000) for s in "xy")
    engine = computation.engine
    product = engine.multiply(engine.input("a", x), engine.input("c", y))
    np.testing.assert_array_equal(engine.reveal(product, NAMES), field.multiply(x, y))


def test_empty_arrays(computation):
    nothing = computation.share("a", np.zeros((0, 3), int), bound=5)
    assert (nothing * nothing).reveal().shape == (0, 3)
    assert (nothing < 1).reveal().shape == (0, 3)
    np.testing.assert_array_equal((nothing.T @ nothing).reveal(), np.zeros((3, 3)))


def test_every_value_stays_replicated(computation):
    """Party i's second row is party i+1's first, after each way to get a value."""
    engine = computation.engine
    x = engine.input("b", field.public(V))
    size = len(V)
    table = field.public(np.arange(2 * size).reshape(size, 2))
    values = [
        x,
        engine.add(x, x),
        engine.subtract(x, engine.square(x)),
        engine.add_public(x, field.public(7)),
        engine.add_public(x, field.public(V)),
        engine.scale(x, field.public(V)),
        engine.move(x, lambda a: a[::2]),
        engine.join([x, x]),
        engine.total(x, size, 1),
        engine.matmul_public(x, (1, size), table, left=False),
        engine.matmul_public(x, (size, 1), table.T.copy(), left=True),
        engine.multiply(x, x),
        engine.matmul(x, x, (size, 1, size)),
        engine.negative(x),
        engine.zero(x),
        engine.shifted(x, 2),
    ]
    for value in values:
        for i in range(3):
            assert value[i].shape[0] == 2
            assert value[i].flags.c_contiguous
            np.testing.assert_array_equal(value[i][1], value[(i + 1) % 3][0])


def test_a_product_of_shares_is_exact_at_the_ends_of_the_field():
    ends = [0, 1, 2, P // 2, P - 2, P - 1]
    table = np.array(np.meshgrid(ends, ends, ends, ends), np.uint64).reshape(4, -1)
    for start in ends:
        out = np.full(table.shape[1], start, np.uint64)
        field_kernels.add_cross(*table, out)
        expected = [(start + x * (y + z) + w * y) % P for x, w, y, z in table.T.tolist()]
        assert out.tolist() == expected


# What it costs.


@each_case("operation", ["multiply", "square"])
def test_a_product_is_one_element_a_party_and_one_round(carrier, ring, operation):
    engine, n = ReplicatedEngine(ring), 10_000
    x = engine.input("a", np.ones(n, np.uint64))
    carrier.start()
    rounds = ring.rounds
    getattr(engine, operation)(*[x] * (2 if operation == "multiply" else 1))
    assert ring.rounds - rounds == 1
    assert carrier.transcript.messages == 3
    for name in NAMES:
        assert 0 <= carrier.transcript.sent[name] - n * 61 / 8 < 256
        assert carrier.transcript.received[name] == carrier.transcript.sent[name]


def test_a_matrix_product_costs_its_result(carrier, ring):
    engine = ReplicatedEngine(ring)
    x = engine.input("a", np.ones(20 * 500, np.uint64))
    carrier.start()
    engine.matmul(x, x, (20, 500, 20))
    assert all(carrier.transcript.sent[n] - 400 * 61 / 8 < 256 for n in NAMES)


def test_inputs_and_results_are_one_vector_each(carrier, ring):
    engine, n = ReplicatedEngine(ring), 10_000
    carrier.start()
    x = engine.input("b", np.ones(n, np.uint64))
    assert set(carrier.transcript.sent) == {"b"}
    assert set(carrier.transcript.received) == {"a"}
    assert carrier.transcript.messages == 1
    carrier.start()
    engine.reveal(x, ["c"])
    assert carrier.transcript.messages == 1
    assert set(carrier.transcript.received) == {"c"}
    assert carrier.transcript.bytes_sent - n * 61 / 8 < 256


@each_case("operation", ["negative", "zero"])
def test_a_comparison_is_eight_rounds_and_the_third_party_hears_nothing(carrier, ring, operation):
    engine = ReplicatedEngine(ring)
    x = engine.input("a", np.ones(100, np.uint64))
    carrier.start()
    rounds = ring.rounds
    getattr(engine, operation)(x)
    assert ring.rounds - rounds == 8
    assert carrier.transcript.received["c"] == 0
    assert carrier.transcript.sent["c"] > 0


# With a dealer, as before; one of others may play it.


def test_the_dealer_may_have_another_name(carrier):
    run = Lockstep(("a", "b"), carrier, None, "c")
    engine = AdditiveEngine(run)
    x = engine.input("a", field.public(V))
    assert signed(engine.reveal(engine.square(x), ["b"])).tolist() == (V**2).tolist()
    assert run.dealer.name == "c"
    with pytest.raises(ParameterError, match="'b' is the dealer's name"):
        Lockstep(("a", "b"), carrier, None, "b")
    short = wire.encode_body(Seed(bytes(prg.SEED_BYTES - 1)))
    (data,) = run.dealer.say(["a"], 99, short, Seed.KIND)
    with pytest.raises(RemoteProtocolError, match="c: its seed has not 32 bytes") as refused:
        run.parties[0].hear_seed(data, "c", 99)
    assert refused.value.sender == "c"
