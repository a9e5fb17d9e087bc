"""All roles in one process: exact sums of arrays, and a transcript that says what was sent."""

import threading
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from sharing.cast import stream

from securecomp.core import field
from securecomp.core.fixedpoint import FixedPoint
from securecomp.errors import ParameterError, RangeError, SecureCompError, ThresholdError
from securecomp.protocol import secure_sum as secure_sum_
from securecomp.protocol.carrier import Transcript
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.secure_sum import SecureSum, secure_sum
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

SERVERS = [2, 3, 5, "all"]
THREE = {"north": [1, 2, 3], "south": [10, 20, 30], "east": [-100, 0, 100]}
TOTAL = [-89, 22, 133]


class Recorder(LocalCarrier):
    """Counts by itself what the transcript should say."""

    last = None

    def __init__(self, entropy):
        super().__init__(entropy)
        self.record, self.round = [], 1
        Recorder.last = self

    def send(self, sender, recipient, data):
        self.record.append((self.round, sender, recipient, bytes(data)))
        return super().send(sender, recipient, data)

    def next_round(self):
        super().next_round()
        self.round += 1

    def between(self, number=None):
        """Messages that left their sender's machine, of one round or of all."""
        return [m for m in self.record if m[1] != m[2] and number in (None, m[0])]


@pytest.fixture
def recorded(monkeypatch):
    """A secure sum together with the record of its messages."""
    monkeypatch.setattr(secure_sum_, "LocalCarrier", Recorder)

    def run(*args, **kwargs):
        return secure_sum(*args, entropy=stream("recorded"), **kwargs), Recorder.last

    return run


def reals(seed, parties, shape, decimals, bound):
    """Floats with so many decimals, and the exact sum of their integers."""
    rng = np.random.default_rng(seed)
    limit = bound * 10**decimals
    integers = {
        f"hospital {i}": rng.integers(-limit, limit, shape, endpoint=True) for i in range(parties)
    }
    total = sum(v.astype(object) for v in integers.values())
    return {n: v / 10**decimals for n, v in integers.items()}, np.ravel(total).tolist()


# Exactness.


@each_case("servers", SERVERS)
@each_case("shape", [(), (1,), (7,), (0,), (2, 3), (2, 0), (2, 3, 4)])
def test_integers_of_any_shape(servers, shape):
    count = int(np.prod(shape))
    vectors = {f"hospital {i}": (np.arange(count).reshape(shape) - 3) * (i + 1) for i in range(4)}
    result = secure_sum(vectors, bound=1000, servers=servers)
    assert result.integers == [10 * (i - 3) for i in range(count)]
    assert result.values.shape == shape
    assert result.values.dtype == np.int64
    assert np.ravel(result.values).tolist() == result.integers
    assert (result.scale, result.protocol) == (1, "sharing")


@each_case("servers", SERVERS)
@each_case("decimals, bound", [(1, 10), (2, 10**6), (6, 1000), (12, 50)])
def test_floats_with_decimals_are_summed_exactly(servers, decimals, bound):
    vectors, exact = reals(decimals, 5, (20,), decimals, bound)
    result = secure_sum(vectors, bound=bound, decimals=decimals, servers=servers)
    assert result.integers == exact
    assert result.scale == 10**decimals
    assert result.values.dtype == np.float64
    # The nearest float of the exact quotient, not a sum of rounded ones.
    assert result.values.tolist() == [v / 10**decimals for v in exact]


def test_a_sum_that_floats_get_wrong():
    vectors = {"north": [0.1, 1e15 + 0.5], "south": [0.2, 0.1], "east": [0.3, -1e15]}
    result = secure_sum(vectors, bound=2e15, decimals=1, servers="all")
    assert result.integers == [6, 6]
    assert result.values.tolist() == [0.6, 0.6]
    assert [a + b + c for a, b, c in zip(*vectors.values(), strict=True)] != [0.6, 0.6]


@each_case("servers", SERVERS)
@each_case("bits", [1, 10, 30])
def test_the_binary_grid_rounds_each_value_to_nearest(servers, bits):
    rng = np.random.default_rng(bits)
    vectors = {f"hospital {i}": rng.normal(0, 100, 30) for i in range(4)}
    result = secure_sum(vectors, bound=1000, bits=bits, servers=servers)
    exact = [
        sum(round(Fraction(float(v[i])) * 2**bits) for v in vectors.values()) for i in range(30)
    ]
    assert result.integers == exact
    assert result.scale == 2**bits
    assert result.values.tolist() == [v / 2**bits for v in exact]


def test_ties_go_to_the_even_neighbour():
    result = secure_sum({"a": [0.5, 1.5, -0.5], "b": [0, 0, 0]}, bound=2, bits=0)
    assert result.integers == [0, 2, 0]


@each_case("servers", SERVERS)
@each_case("bound", [field.LIMIT // 3, field.LIMIT // 3 + 1, 2**63, 10**30, 10**100])
def test_totals_wider_than_the_field_travel_in_limbs(servers, bound):
    vectors = {
        "north": np.array([bound, -bound, 1, 0], object),
        "south": np.array([bound, -bound, -bound, 7], object),
        "east": np.array([bound, -bound, bound, -(bound // 3)], object),
    }
    result = secure_sum(vectors, bound=bound, servers=servers)
    exact = [3 * bound, -3 * bound, 1, 7 - bound // 3]
    assert result.integers == exact
    assert result.values.tolist() == exact
    assert result.values.dtype == (np.int64 if 3 * bound < 2**63 else object)


def test_the_widest_total_that_needs_no_limbs(recorded):
    largest = field.LIMIT // 3
    vectors = {name: [largest, -largest] for name in ("north", "south", "east")}
    result, network = recorded(vectors, bound=largest)
    assert result.integers == [3 * largest, -3 * largest]
    sizes = {len(m[3]) for m in network.record}
    wider, network = recorded(vectors, bound=largest + 1)
    assert wider.integers == result.integers
    assert max(len(m[3]) for m in network.record) > max(sizes)


@each_case("servers", [2, "all"])
def test_wide_totals_of_decimals(servers):
    vectors, exact = reals(3, 4, (3, 4), 4, 10**11)
    result = secure_sum(vectors, bound=10**16, decimals=4, servers=servers)
    assert result.integers == exact
    assert np.ravel(result.values).tolist() == [v / 10**4 for v in exact]
    assert result.values.shape == (3, 4)


@pytest.mark.parametrize(("limit", "apart"), [(2**52 - 1, 0), (2**52, 3), (2**52 + 2, 3)])
def test_totals_are_divided_apart_where_a_float_does_not_hold_them(monkeypatch, limit, apart):
    """Below 2^53 one division of the whole vector rounds the same, and once."""
    calls = []
    decode = FixedPoint.decode
    monkeypatch.setattr(FixedPoint, "decode", lambda *a: calls.append(1) or decode(*a))
    one, two = (Decimal(n) / 10 for n in (limit, limit - 1))
    result = secure_sum({"a": [one, one, -one], "b": [one, two, -two]}, bound=one, decimals=1)
    assert result.integers == [2 * limit, 2 * limit - 1, 1 - 2 * limit]
    assert result.values.tolist() == [n / 10 for n in result.integers]
    assert len(calls) == apart


def test_a_total_beyond_2_53_is_rounded_once():
    one, two = (Decimal(2**52 + n) / 10 for n in (2, 1))
    total = 2**53 + 3
    assert float(total) / 10 != total / 10
    assert secure_sum({"a": [one], "b": [two]}, bound=one, decimals=1).values == [total / 10]


@each_case("decimals", [15, 22])
def test_wide_totals_of_decimal_objects(decimals):
    one, two = Decimal("123456789.123456789012345"), Decimal("-23456789.000000000000001")
    result = secure_sum({"a": [one], "b": [two]}, bound=10**9, decimals=decimals)
    assert result.integers == [int((one + two) * 10**decimals)]


@examples(40)
@given(st.data())
def test_the_sum_is_that_of_python_integers(data):
    parties = data.draw(st.integers(2, 6))
    bound = data.draw(st.sampled_from([0, 1, 1000, 2**53, field.LIMIT, 2**64, 10**40]))
    length = data.draw(st.integers(0, 6))
    element = st.one_of(st.integers(-bound, bound), st.sampled_from([-bound, bound]))
    vector = st.lists(element, min_size=length, max_size=length)
    vectors = {f"h{i}": np.array(data.draw(vector), object) for i in range(parties)}
    scheme = data.draw(st.sampled_from([Sharing(2), Sharing(3), Sharing("all")]))
    result = secure_sum(vectors, bound=bound, protocol=scheme, entropy=stream("python"))
    assert result.integers == [sum(column) for column in zip(*vectors.values(), strict=True)]


@each_case("dtype", [bool, "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", ">i4", ">f8", "g"])
def test_every_type_of_number(dtype):
    vectors = {name: np.array([0, 1, 1], dtype) for name in ("north", "south", "east")}
    assert secure_sum(vectors, bound=1).integers == [0, 3, 3]


def test_lists_scalars_and_mixed_types():
    assert secure_sum({"a": 5, "b": np.int8(2)}, bound=5).values == 7
    vectors = {"a": [1.0, 2], "b": (Fraction(3), Decimal(4)), "c": np.array([True, False])}
    assert secure_sum(vectors, bound=5).integers == [5, 6]


def test_a_large_array_goes_through_threads():
    ramp = np.arange(300_000).reshape(3, 100_000)
    result = secure_sum({"a": ramp, "b": -2 * ramp, "c": ramp + 5}, bound=10**6, servers="all")
    assert (result.values == 5).all()
    assert result.values.shape == ramp.shape


# The other arguments.


def test_a_protocol_by_name_or_as_an_object():
    for given_, name in (
        ("sharing", "sharing"),
        (Sharing(5), "sharing"),
        ("masking", "masking"),
        (Masking("active"), "masking"),
    ):
        result = secure_sum(THREE, bound=100, protocol=given_)
        assert result.integers == TOTAL
        assert result.protocol == name


def test_what_was_learned_is_that_of_the_protocol():
    assert secure_sum(THREE, bound=100, servers=7).learned == Sharing(7).learned()
    assert secure_sum(THREE, bound=100, servers="all").learned == Sharing("all").learned()


def test_receivers(recorded):
    result, network = recorded(THREE, bound=100, receivers=("registry",))
    assert result.integers == TOTAL
    assert {m[2] for m in network.between(2)} == {"registry"}
    assert result.transcript.received["north"] == 0


def test_no_receivers():
    with pytest.raises(ThresholdError, match="nobody receives the result"):
        secure_sum(THREE, bound=100, receivers=())


def test_a_receiver_that_is_not_in_a_tuple(recorded):
    with pytest.raises(ParameterError, match="receivers"):
        recorded(THREE, bound=100, receivers="AB")


def test_two_grids_at_once():
    with pytest.raises(ParameterError, match="decimals"):
        secure_sum(THREE, bound=100, decimals=2, bits=10)


@each_case("servers", [1, 0, True, 2.5, "many"])
def test_servers_that_cannot_be(servers):
    with pytest.raises(ParameterError, match="servers"):
        secure_sum(THREE, bound=100, servers=servers)


def test_a_protocol_that_is_none():
    with pytest.raises(ParameterError, match="there is no protocol 'adding'"):
        secure_sum(THREE, bound=100, protocol="adding")


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_parties(recorded, count):
    with pytest.raises(ThresholdError, match="a sum over one party is that party's own value"):
        recorded(dict(list(THREE.items())[:count]), bound=100)
    assert Recorder.last.record == []


@pytest.mark.parametrize(
    ("vector", "error", "reason"),
    [
        ([1, 2], ParameterError, r"south: shape \(2,\), but north has \(3,\); all must agree"),
        ([[1, 2, 3]], ParameterError, r"south: shape \(1, 3\), but north has \(3,\)"),
        (5, ParameterError, r"south: shape \(\), but north has \(3,\)"),
        (["a", "b", "c"], ParameterError, "south: expected numbers"),
        ([1, 2, None], ParameterError, "south: value 3 is not a real number"),
        ([1, 2, 1j], ParameterError, "south: expected numbers"),
        ([1, 2, 101], RangeError, "south: value 3 is beyond the agreed bound 100"),
        ([1, -(10**30), 0], RangeError, "south: value 2 is beyond the agreed bound 100"),
        ([1, float("nan"), 3], RangeError, "south: value 2 is NaN or infinite"),
        ([1, 2, float("inf")], RangeError, "south: value 3 is NaN or infinite"),
        ([1, 2.5, 3], RangeError, "south: value 2 is not an integer"),
    ],
)
@pytest.mark.parametrize("servers", [3, "all"])
def test_bad_numbers_are_refused_and_nothing_is_sent(recorded, servers, vector, error, reason):
    Recorder.last = None
    with pytest.raises(error, match=reason) as raised:
        recorded(THREE | {"south": vector}, bound=100, servers=servers)
    assert Recorder.last is None or Recorder.last.record == []
    assert "101" not in str(raised.value)
    assert isinstance(raised.value, SecureCompError)


@each_case("bound", [-1, float("nan"), float("inf"), "100", None])
def test_bounds_that_cannot_be(bound):
    with pytest.raises(ParameterError, match="a bound must be a finite number of at least 0"):
        secure_sum(THREE, bound=bound)


@each_case("name", ["", " north", "no\nrth", "x" * 101])
def test_names_that_cannot_be(name):
    with pytest.raises(ParameterError, match="name"):
        secure_sum(THREE | {name: [1, 2, 3]}, bound=100)


# The transcript.


def packed(length):
    return -(-61 * length // 64) * 8


def body(length=None, mark=16):
    """Bytes of a body: a mark, and a seed or a vector of fewer than 128 elements."""
    facts = 4 + 1 + 2 + mark + (2 + 32 if length is None else 3)
    return -(-facts // 8) * 8 + (0 if length is None else packed(length))


def sealed(sender, recipient, size):
    return 58 + 1 + len(sender) + 1 + len(recipient) + 8 + 32 + size + 16


@pytest.mark.parametrize("receivers", [None, ("south",), ("registry", "north")])
@pytest.mark.parametrize("servers", SERVERS)
def test_the_transcript_is_what_was_sent(recorded, servers, receivers):
    result, network = recorded(THREE, bound=100, servers=servers, receivers=receivers)
    transcript, between = result.transcript, network.between()
    sent, received = Counter(), Counter()
    for _, sender, recipient, data in between:
        sent[sender] += len(data)
        received[recipient] += len(data)
    assert transcript.sent == sent
    assert transcript.received == received
    assert transcript.messages == len(between)
    assert transcript.rounds == network.round == 2
    assert transcript.bytes_sent == sum(len(m[3]) for m in between) == received.total()
    assert transcript.seconds > 0


@pytest.mark.parametrize("servers", SERVERS)
def test_the_bytes_are_those_of_the_format(recorded, servers):
    length = 100
    names = [f"hospital {i}" for i in range(4)]
    vectors = {name: np.ones(length, int) for name in names}
    result, _ = recorded(vectors, bound=1, servers=servers)
    computing = names if servers == "all" else [f"server {i + 1}" for i in range(servers)]
    want, messages = Counter(), 0
    for i, name in enumerate(names):
        explicit = name if servers == "all" else computing[i % servers]
        for server in computing:
            if server != name:
                size = body(length) if server == explicit else body()
                want[name] += sealed(name, server, size)
                messages += 1
    for server in computing:
        for name in names:
            if server != name:
                want[server] += sealed(server, name, body(length, mark=32))
                messages += 1
    assert result.transcript.sent == want
    assert result.transcript.messages == messages


def test_the_number_of_messages(recorded):
    for servers, receivers, want in (
        (3, None, 9 + 9),
        (2, ("south",), 6 + 2),
        ("all", None, 6 + 6),
        ("all", ("registry",), 6 + 3),
        ("all", ("south",), 6 + 2),
    ):
        result, _ = recorded(THREE, bound=100, servers=servers, receivers=receivers)
        assert result.transcript.messages == want


def test_with_all_round_one_carries_seeds_only(recorded):
    sizes = set()
    for length in (1, 10, 1000, 50_000):
        vectors = {f"hospital {i}": np.arange(length) for i in range(5)}
        _, network = recorded(vectors, bound=10**6, servers="all")
        first = network.between(1)
        assert len(first) == 20
        sizes |= {len(m[3]) for m in first}
        # What a hospital keeps to itself is its vector's share, and the only long message.
        own = [m for m in network.record if m[0] == 1 and m[1] == m[2]]
        assert len(own) == 5
        assert all(len(m[3]) > packed(length) for m in own)
    assert sizes == {sealed("hospital 0", "hospital 1", body())}


def test_no_message_carries_a_vector_in_clear(recorded):
    marked = np.full(64, 0x0123456789ABCD)
    _, network = recorded({"a": marked, "b": marked}, bound=2**60 // 4, servers="all")
    patterns = {marked.tobytes()[:7], (2 * marked).tobytes()[:7], bytes(8)}
    for _, _, _, data in network.record:
        sealed_part = data[80:]
        assert not [p for p in patterns if p in sealed_part]


def test_the_same_entropy_gives_the_same_bytes(recorded):
    runs = []
    for _ in range(2):
        recorded(THREE, bound=10**30, servers="all")  # limbs draw too
        runs.append(Recorder.last.record)
    assert runs[0] == runs[1]
    assert len({m[3] for m in runs[0]}) == len(runs[0])


def test_two_runs_have_no_message_in_common():
    one, two = LocalCarrier(), LocalCarrier()
    assert one.identity("north").public != two.identity("north").public
    assert one.identity("north") is one.identity("north")
    assert one.identity("north").public != one.identity("south").public


# The carrier.


def test_a_carrier_counts():
    carrier = LocalCarrier(stream("carrier"))
    assert carrier.transcript == Transcript()
    assert carrier.transcript.rounds == 1
    data = b"12345"
    assert carrier.send("a", "b", data) is data
    assert carrier.send("b", "a", memoryview(b"123")) == b"123"
    assert carrier.send("a", "a", b"kept") == b"kept"
    carrier.next_round()
    transcript = carrier.transcript
    assert transcript.sent == {"a": 5, "b": 3}
    assert transcript.received == {"b": 5, "a": 3}
    assert (transcript.messages, transcript.rounds, transcript.bytes_sent) == (2, 2, 8)
    key = carrier.identity("a")
    carrier.start()
    assert carrier.transcript == Transcript()
    assert transcript.messages == 2
    assert carrier.identity("a") is key


def test_the_busiest_line_of_each_round():
    carrier = LocalCarrier()
    carrier.send("a", "b", bytes(100))
    carrier.send("b", "a", bytes(30))
    carrier.send("c", "b", bytes(50))  # b gets 150
    carrier.send("a", "a", bytes(999))  # stays at home
    carrier.next_round()
    carrier.next_round()  # nothing is sent in this one
    carrier.send("b", "a", bytes(40))
    carrier.send("b", "c", bytes(40))  # b sends 80
    assert carrier.transcript.loads == [150, 0, 80]
    carrier.start()
    assert carrier.transcript.loads == [0]


def test_threads_count_one_after_the_other():
    carrier, held = LocalCarrier(), []

    class Guarded(Counter):
        def __setitem__(self, name, count):
            held.append(carrier._lock.locked())
            super().__setitem__(name, count)

    carrier.transcript.sent, carrier.transcript.received = Guarded(), Guarded()
    carrier.send("a", "b", b"xyz")
    assert held == [True, True]
    assert not carrier._lock.locked()
    assert (carrier.transcript.sent["a"], carrier.transcript.received["b"]) == (3, 3)


@each_case("elements", [0, 10, 1 << 16, 1 << 20])
def test_everyone_works_once_and_answers_in_order(elements):
    done = []
    names = [f"party {i}" for i in range(9)]

    def work(name):
        done.append(name)
        return name.upper()

    answers = LocalCarrier().each(work, iter(names), elements)
    assert list(answers.items()) == [(name, name.upper()) for name in names]
    assert sorted(done) == names
    assert LocalCarrier().each(work, ["one"], elements) == {"one": "ONE"}


@each_case("elements", [10, 1 << 20])
@each_case("bad", "abc")
@each_case("error", [RangeError, IndexError])
def test_an_error_of_one_party_comes_out(elements, bad, error):
    carrier = LocalCarrier()

    def work(name):
        if name == bad:
            raise error("too large")
        return name

    with pytest.raises(error, match="too large"):
        carrier.each(work, ["a", "b", "c"], elements)
    assert carrier.each(str.upper, "ab", elements) == {"a": "A", "b": "B"}


def test_a_party_may_drive_others():
    carrier, many = LocalCarrier(), 1 << 20

    def work(name):
        return name + sum(carrier.each(lambda other: other, range(4), many).values())

    assert carrier.each(work, range(4), many) == {name: name + 6 for name in range(4)}


@pytest.mark.parametrize(("elements", "threads"), [((1 << 16) - 1, 1), (1 << 16, 2)])
def test_long_vectors_are_worth_a_thread(elements, threads, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    together = threading.Barrier(threads, timeout=60)

    def work(_):
        together.wait()
        return threading.get_ident()

    assert len(set(LocalCarrier().each(work, ["a", "b"], elements).values())) == threads


def test_a_result_cannot_be_changed():
    result = secure_sum(THREE, bound=100)
    assert isinstance(result, SecureSum)
    with pytest.raises(AttributeError):
        result.scale = 2
