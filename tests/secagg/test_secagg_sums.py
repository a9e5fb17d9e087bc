"""The result is the plaintext sum, for every width, length and weight; wrong input is refused."""

from dataclasses import replace

import numpy as np
import pytest
from cases import each_case
from secagg.cohort import LIMIT, Cohort

from securecomp.errors import ParameterError, RangeError
from securecomp.protocol.role import State
from securecomp.protocol.wire import packed_size
from securecomp.secagg import Parameters
from securecomp.secagg.masking_messages import Masked
from securecomp.secagg.parameters import modulus_bits

BLOCK = 32768
LENGTHS = (0, 1, 2, 63, 64, 65, BLOCK - 1, BLOCK, BLOCK + 1, 70_000)


def widest(bits, clients=3):
    """The largest bound whose sum fits these bits, in Python ints."""
    return ((1 << bits) - 1) // 2 // clients


def cohort_of(bits, length, **choices):
    bound = widest(bits)
    plan = replace(Parameters.choose(3, bound, **choices), bits=bits)
    return Cohort(3, length=length, bound=bound, parameters=plan, seed=f"width {bits}")


def check(cohort):
    result = cohort.finish()
    assert result.values.dtype == np.int64
    assert result.values.tolist() == cohort.total(cohort.names)
    assert result.survivors == tuple(cohort.names)
    return result


@each_case("bits", range(1, 64))
def test_every_modulus(bits):
    for length in (1, 65):
        cohort = cohort_of(bits, length)
        sent = []
        cohort.reach("mask")
        for name in cohort:
            sent.append(cohort.do("mask", name))
            cohort.server.receive(sent[-1])
        cohort.inbox = cohort.server.close()
        message, payload = cohort.read(sent[0])[1:]
        assert (message.vector.bits, message.vector.length) == (bits, length)
        assert len(payload) == packed_size(length, bits) == -(-bits * length // 64) * 8
        check(cohort)


@each_case("bits", [1, 7, 8, 31, 32, 33, 61, 62, 63])
@each_case("sign", [1, -1])
def test_all_values_at_a_bound(bits, sign):
    cohort = cohort_of(bits, 66)
    cohort.values = dict.fromkeys(cohort, np.full(66, sign * widest(bits), np.int64))
    assert check(cohort).values.tolist() == [sign * 3 * widest(bits)] * 66


@each_case("bits", [20, 33])
@each_case("length", LENGTHS)
def test_every_length(bits, length):
    """Of lanes of 32 bits and of 64."""
    check(cohort_of(bits, length))


@pytest.mark.slow
@each_case("bits", [32, 63])
@each_case("length", LENGTHS)
def test_every_length_of_full_lanes(bits, length):
    check(cohort_of(bits, length))


@each_case("length", [0, 1, 65, BLOCK])
def test_weights_with_every_length(length):
    cohort = Cohort(3, length=length, bound=1000, max_weight=9)
    cohort.weights = {"c0": 0, "c1": 9, "c2": 4}
    assert check(cohort).weight == 13


def test_dropouts_with_long_vectors():
    for bound in (1000, 1 << 40):
        cohort = Cohort(5, length=70_000, bound=bound)
        result = cohort.finish({"mask": {"c1"}, "unmask": {"c3"}})
        assert result.survivors == ("c0", "c2", "c3", "c4")
        assert result.values.tolist() == cohort.total(result.survivors)


def test_the_modulus_is_the_smallest_that_cannot_wrap():
    for clients in (3, 4, 7, 50):
        for bound in (0, 1, 2, 5, 1000, 2**20, 2**31, LIMIT // clients):
            for weight in (0, 1, 3, 1000):
                largest = clients * max(bound * max(weight, 1), weight)
                want = next(b for b in range(1, 200) if largest < 2 ** (b - 1))
                if want <= 63:
                    assert modulus_bits(clients, bound, weight) == want
                else:
                    with pytest.raises(RangeError, match=f"{clients} clients with values up to"):
                        modulus_bits(clients, bound, weight)


def test_sixty_three_bits_are_the_end():
    assert Parameters.choose(3, LIMIT // 3).bits == 63
    assert Parameters.choose(4, LIMIT // 4).bits == 63
    with pytest.raises(RangeError, match="do not fit 63 bits"):
        Parameters.choose(4, LIMIT // 4 + 1)


@each_case(
    "dtype",
    [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64],
)
def test_every_integer_type(dtype):
    cohort = Cohort(3, length=3, bound=100)
    cohort.values = {n: np.array([100, 0, 7], dtype) * dtype(i % 2) for i, n in enumerate(cohort)}
    assert check(cohort).values.tolist() == [100, 0, 7]


def test_strided_reversed_and_foreign_byte_order():
    cohort = Cohort(3, length=70, bound=1000)
    wide = np.arange(-70, 70, dtype=np.int64)
    cohort.values = {"c0": wide[::2], "c1": wide[69::-1], "c2": wide[:70].astype(">i8")}
    check(cohort)


def test_lists_and_booleans_are_integers():
    cohort = Cohort(3, length=2, bound=5)
    cohort.reach("mask")
    for name, values in zip(cohort, ([5, -5], (1, 2), np.array([True, False])), strict=True):
        cohort.take(cohort.clients[name].mask(cohort.inbox[name], values))
    cohort.inbox = cohort.server.close()
    assert cohort.finish().values.tolist() == [7, -3]


WRONG = [
    pytest.param([0.0] * 4, ParameterError, "c1: expected integers, got float64", id="floats"),
    pytest.param(
        [float("nan")] * 4, ParameterError, "c1: expected integers, got float64", id="nan"
    ),
    pytest.param([1, 2, 3, None], ParameterError, "c1: expected integers, got object", id="none"),
    pytest.param([1j] * 4, ParameterError, "c1: expected integers, got complex128", id="complex"),
    pytest.param(["1"] * 4, ParameterError, "c1: expected integers, got <U1", id="text"),
    pytest.param([2**70] * 4, ParameterError, "c1: expected integers, got object", id="huge"),
    pytest.param(
        [1] * 3, ParameterError, r"c1: the vector has shape \(3,\) and \(4,\)", id="short"
    ),
    pytest.param([1] * 5, ParameterError, r"c1: the vector has shape \(5,\) and \(4,\)", id="long"),
    pytest.param([[1] * 4], ParameterError, r"c1: the vector has shape \(1, 4\)", id="matrix"),
    pytest.param(7, ParameterError, r"c1: the vector has shape \(\)", id="scalar"),
    pytest.param([0, 0, 0, 1001], RangeError, "c1: a value is beyond the bound 1000", id="above"),
    pytest.param([-1001, 0, 0, 0], RangeError, "c1: a value is beyond the bound 1000", id="below"),
    pytest.param(
        np.full(4, 2**64 - 1, np.uint64), RangeError, "c1: a value is beyond", id="unsigned"
    ),
    pytest.param(np.full(4, -(2**63)), RangeError, "c1: a value is beyond", id="lowest"),
]


@each_case("values, error, reason", WRONG)
def test_a_wrong_vector_is_refused_by_name_and_can_be_corrected(values, error, reason):
    cohort = Cohort(3)
    cohort.reach("mask")
    for _ in range(2):
        with pytest.raises(error, match=reason):
            cohort.clients["c1"].mask(cohort.inbox["c1"], values)
    assert cohort.clients["c1"].state is State.SHARED
    check(cohort)


WRONG_WEIGHTS = [
    pytest.param(None, ParameterError, "c1: this session needs a weight that is an integer$"),
    pytest.param(True, ParameterError, "c1: this session needs a weight that is an integer$"),
    pytest.param(1.0, ParameterError, "c1: this session needs a weight that is an integer$"),
    pytest.param("1", ParameterError, "c1: this session needs a weight that is an integer$"),
    pytest.param(-1, RangeError, r"c1: the weight is not in \[0, 9\]"),
    pytest.param(10, RangeError, r"c1: the weight is not in \[0, 9\]"),
    pytest.param(2**70, RangeError, r"c1: the weight is not in \[0, 9\]"),
]


@each_case("weight, error, reason", WRONG_WEIGHTS)
def test_a_wrong_weight_is_refused_by_name_and_can_be_corrected(weight, error, reason):
    cohort = Cohort(3, max_weight=9)
    cohort.reach("mask")
    client = cohort.clients["c1"]
    with pytest.raises(error, match=reason):
        client.mask(cohort.inbox["c1"], cohort.values["c1"], weight)
    assert client.state is State.SHARED
    check(cohort)


@each_case("weight", [0, 1])
def test_a_weight_where_none_was_agreed(weight):
    cohort = Cohort(3)
    cohort.reach("mask")
    with pytest.raises(ParameterError, match="c1: this session has no weights"):
        cohort.clients["c1"].mask(cohort.inbox["c1"], cohort.values["c1"], weight)
    check(cohort)


def weighted(weights, **facts):
    cohort = Cohort(len(weights), max_weight=9, **facts)
    cohort.weights = dict(zip(cohort, weights, strict=True))
    return cohort


def test_the_weighted_mean():
    cohort = weighted([np.int32(2), 9, 0, 1])
    result = check(cohort)
    assert result.weight == 12
    want = [
        sum(w * v for w, v in zip((2, 9, 0, 1), column, strict=True)) / 12
        for column in zip(*(cohort.values[n].tolist() for n in cohort), strict=True)
    ]
    assert result.mean().tolist() == want


def test_the_weight_of_who_dropped_out_does_not_count():
    cohort = weighted([1, 2, 3, 4])
    result = cohort.finish({"mask": {"c3"}})
    assert result.weight == 6
    assert result.values.tolist() == cohort.total(["c0", "c1", "c2"])


def test_a_total_weight_of_zero_is_an_error_at_the_mean_and_not_before():
    result = check(weighted([0, 0, 0]))
    assert result.weight == 0
    assert result.values.tolist() == [0] * 4
    with pytest.raises(RangeError, match="the survivors' total weight is zero"):
        result.mean()


def test_all_weights_at_the_top_of_63_bits():
    bound = (2**63 - 1) // 2 // 3 // 9
    cohort = weighted([9, 9, 9], bound=bound)
    assert cohort.parameters.bits == 63
    result = check(cohort)
    assert result.values.tolist()[:2] == [27 * bound, -27 * bound]
    assert result.weight == 27


def test_a_weight_that_is_larger_than_any_value():
    cohort = weighted([9, 9, 9], bound=0)
    assert cohort.parameters.bits == 6  # 27 and -27 have room
    assert check(cohort).weight == 27


def test_the_plain_mean_is_over_the_survivors():
    cohort = Cohort(4)
    result = cohort.finish({"mask": {"c0"}, "unmask": set()})
    assert result.weight is None
    assert result.mean().tolist() == [v / 3 for v in cohort.total(["c1", "c2", "c3"])]


def test_the_weight_is_in_no_message_in_the_clear():
    """One more masked element, and nothing else, is what a weight changes."""
    plain, weights = Cohort(3, length=6), weighted([7, 7, 7], length=6)
    sizes = []
    for cohort in (plain, weights):
        cohort.reach("mask")
        message, payload = cohort.read(cohort.do("mask", "c0"))[1:]
        assert type(message) is Masked
        sizes.append(message.vector.length)
        assert message.__struct_fields__ == ("vector",)
        assert len(payload) == packed_size(sizes[-1], cohort.parameters.bits)
    assert sizes == [6, 7]


def test_the_receiver_reads_the_same():
    cohort = Cohort(4, receivers=("c1", "registry"), max_weight=9)
    cohort.reach("unmask", {"mask": {"c0"}})
    totals = cohort.step("unmask")
    assert set(totals) == {"c1", "registry"}
    for name, data in totals.items():
        receiver = cohort.receiver(name)
        got = receiver.receive(data)
        assert receiver.state is State.DONE
        assert got.values.tolist() == cohort.total(["c1", "c2", "c3"])
        assert got.survivors == ("c1", "c2", "c3")
        assert got.weight == 6
        assert got.mean().tolist() == cohort.server.result().mean().tolist()
