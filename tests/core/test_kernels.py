"""The loops that `field` does not already show, in numpy and compiled: packing, masks, digits."""

from types import SimpleNamespace

import numpy as np
import pytest

from securecomp.core import field_kernels as names
from securecomp.core import field_loops
from securecomp.core.kernel_compiler import KERNELS, LARGEST_IN_NUMPY

P = (1 << 61) - 1
HALF = (P - 1) // 2
SENTINEL = 0xA5A5A5A5A5A5A5A5
LENGTHS = [0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 193]


@pytest.fixture(params=["numpy", "numba"])
def field_kernels(request):
    """The kernels that are in numpy too: all of these, or all loops."""
    both = {n: k for (m, n), k in KERNELS.items() if m == names.__name__ and k.in_numpy}
    assert len(both) == 17
    if request.param == "numpy":
        return SimpleNamespace(**{name: kernel.interpreted for name, kernel in both.items()})
    return SimpleNamespace(**{name: getattr(field_loops, name) for name in both})


def bit_string(values, width):
    """The words that hold element i in bits [i width, (i+1) width), by one big integer."""
    total = sum(int(v) << (i * width) for i, v in enumerate(values))
    size = -(-len(values) * width // 64)
    return [(total >> (64 * j)) & ((1 << 64) - 1) for j in range(size)]


def elements(length, width, replay):
    """Values below 2^width: random ones, and others at both ends."""
    words = np.frombuffer(replay(f"{length} {width}")(8 * length), "<u8")
    values = words >> np.uint64(64 - width)
    values[::5] = 0
    values[3::7] = (1 << width) - 1
    return values


def unaligned(words, offset):
    """The same words, read-only and `offset` bytes off, as they lie in a message."""
    data = bytes(offset) + np.array(words, "<u8").tobytes()
    return np.frombuffer(data, "<u8", offset=offset)


@pytest.mark.parametrize("width", range(1, 65))
class TestPack:
    def test_is_the_bit_string(self, width, replay, field_kernels):
        for length in LENGTHS:
            values = elements(length, width, replay)
            want = bit_string(values, width)
            words = np.full(len(want) + 2, SENTINEL, np.uint64)
            field_kernels.pack(values, width, words)
            assert words.tolist() == [*want, SENTINEL, SENTINEL]

    def test_unpack_is_the_inverse(self, width, replay, field_kernels):
        for length in LENGTHS:
            values = elements(length, width, replay)
            out = np.full(length + 1, SENTINEL, np.uint64)
            words = unaligned(bit_string(values, width), length % 3)
            full = bool(np.any(values == (1 << width) - 1))
            assert field_kernels.unpack(words, width, out[:length]) is not full
            assert out.tolist() == [*values.tolist(), SENTINEL]

    def test_the_lowest_and_the_highest_value(self, width, field_kernels):
        for value in (0, (1 << width) - 1):
            values = np.full(130, value, np.uint64)
            words = np.full(-(-130 * width // 64), SENTINEL, np.uint64)
            field_kernels.pack(values, width, words)
            assert words.tolist() == bit_string(values, width)
            assert field_kernels.unpack(words, width, values) is (value == 0)
            assert values.tolist() == [value] * 130

    def test_all_ones_at_any_position(self, width, field_kernels):
        values = np.zeros(129, np.uint64)
        words = np.zeros(-(-129 * width // 64), np.uint64)
        out = np.empty(129, np.uint64)
        for position in range(129):
            values[position] = (1 << width) - 1
            field_kernels.pack(values, width, words)
            assert field_kernels.unpack(words, width, out) is False
            values[position] = (1 << width) - 2
            field_kernels.pack(values, width, words)
            assert field_kernels.unpack(words, width, out) is True
            values[position] = 0


@pytest.mark.parametrize("length", [*LENGTHS, 191, 192, 255, 256, 1000])
class TestPack61:
    def test_is_the_bit_string(self, length, replay, field_kernels):
        values = elements(length, 61, replay)
        want = bit_string(values, 61)
        words = np.full(len(want) + 2, SENTINEL, np.uint64)
        field_kernels.pack61(values, words)
        assert words.tolist() == [*want, SENTINEL, SENTINEL]

    @pytest.mark.parametrize("offset", [0, 1, 4])
    def test_unpack_is_the_inverse(self, length, offset, replay, field_kernels):
        values = np.minimum(elements(length, 61, replay), np.uint64(P - 1))
        out = np.full(length + 1, SENTINEL, np.uint64)
        words = unaligned(bit_string(values, 61), offset)
        assert field_kernels.unpack61(words, out[:length]) is True
        assert out.tolist() == [*values.tolist(), SENTINEL]

    def test_the_modulus_at_any_position(self, length, field_kernels):
        values = np.full(length, P - 1, np.uint64)
        out = np.empty(length, np.uint64)
        for position in range(length):
            values[position] = P
            words = np.zeros(-(-length * 61 // 64), np.uint64)
            field_kernels.pack61(values, words)
            assert field_kernels.unpack61(words, out) is False
            assert out.tolist() == values.tolist()
            values[position] = P - 1


def test_canonical_at_any_position(field_kernels):
    values = np.full(67, P - 1, np.uint64)
    assert field_kernels.canonical(values) is True
    for position in range(67):
        for value in (P, P + 1, 1 << 63, (1 << 64) - 1):
            values[position] = value
            assert field_kernels.canonical(values) is False
        values[position] = P - 1
    assert field_kernels.canonical(values[:0]) is True


MASK_WORDS = [
    *(0, 1, P - 1, P, HALF, HALF + 1),
    *(7 << 61, (7 << 61) + 1, (1 << 64) - 2, (1 << 64) - 1, (1 << 61) + 5, (1 << 63) + P),
]


@pytest.mark.parametrize("sign", [1, -1], ids=["add", "sub"])
class TestMasks:
    @pytest.fixture
    def kernel(self, field_kernels, sign):
        return field_kernels.mask_add if sign == 1 else field_kernels.mask_subtract

    def test_every_pair_of_edges(self, kernel, sign):
        """The low 61 bits count; all ones count as zero and are reported."""
        for value in (0, 1, HALF, HALF + 1, P - 1):
            for word in MASK_WORDS:
                acc = np.array([value], np.uint64)
                rejected = kernel(acc, np.array([word], np.uint64))
                assert acc.tolist() == [(value + sign * (word & P)) % P]
                assert rejected is (word & P == P)

    @pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 33])
    def test_a_rejection_at_any_position(self, kernel, sign, length, random_residues):
        start = random_residues("start", length)
        words = random_residues("words", length) | np.uint64(5 << 61)
        want = (start.astype(object) + sign * (words & np.uint64(P)).astype(object)) % P
        acc = start.copy()
        assert kernel(acc, words) is False
        assert acc.tolist() == want.tolist()
        for position in range(length):
            acc, drawn = start.copy(), words.copy()
            drawn[position] = (1 << 64) - 1
            assert kernel(acc, drawn) is True
            unchanged = want.copy()
            unchanged[position] = start[position]
            assert acc.tolist() == unchanged.tolist()


def test_digits_are_balanced_and_complete(random_residues, field_kernels):
    low, high = -(1 << 20), (1 << 20) - 1
    corners = [
        (d0 + (d1 << 21) + (d2 << 42)) % P
        for d0 in (low, -1, 0, 1, high)
        for d1 in (low, -1, 0, 1, high)
        for d2 in (1 - (1 << 18), -1, 0, 1, (1 << 18) - 1)
    ]
    residues = np.array(
        [0, 1, P - 1, HALF, HALF + 1, *corners, *random_residues("digits", 500)], np.uint64
    )
    out = np.empty((5, residues.size))
    field_kernels.digits(residues, out)
    d0, d2, one, minus_one, two = (row.astype(np.int64).astype(object) for row in out)
    d1 = one - d0 - d2
    assert max(int(abs(d).max()) for d in (d0, d1, d2)) == 1 << 20
    assert ((d0 + (d1 << 21) + (d2 << 42)) % P).tolist() == residues.tolist()
    assert minus_one.tolist() == (d0 - d1 + d2).tolist()
    assert two.tolist() == (d0 + 2 * d1 + 4 * d2).tolist()
    assert int(abs(two).max()) <= 1 << 22


def test_kernels_take_what_they_declare_and_nothing_else(field_kernels):
    """A float64 or strided array would lose bits or go wrong without a word."""
    words, floats = np.zeros(4, np.uint64), np.zeros(4)
    for bad in (floats, words.view(np.int64), words[::2], words.reshape(2, 2)):
        for kernel in (field_kernels.add, field_kernels.subtract, field_kernels.multiply):
            with pytest.raises(TypeError, match="No matching definition"):
                kernel(words, bad, words)
        for kernel in (field_kernels.mask_add, field_kernels.mask_subtract):
            with pytest.raises(TypeError, match="No matching definition"):
                kernel(bad, words)


def test_numpy_and_the_loops_give_the_same_bits(random_residues):
    edges = [0, 1, 2, HALF - 1, HALF, HALF + 1, P - 2, P - 1]
    a, b = np.array([(x, y) for x in edges for y in edges], np.uint64).T.copy()
    a = np.concatenate([a, random_residues("a", 1000)])
    b = np.concatenate([b, random_residues("b", 1000)])
    words = np.concatenate([a << np.uint64(3), b, np.array([P, 2**64 - 1], np.uint64)])
    signed = np.array([0, 1, -1, HALF, -HALF, -(2**63), 2**63 - 1, HALF + 1], np.int64)
    digits = np.empty((5, 30))
    field_loops.digits(a[-30:], digits)
    calls = {
        "add": [(a, b)],
        "subtract": [(a, b)],
        "multiply": [(a, b)],
        "scale": [(a, k) for k in (np.uint64(0), np.uint64(1), np.uint64(P - 1), a[77])],
        "encode": [(signed, HALF), (signed[:5], HALF), (signed[:3], 1), (signed[:3], 0)],
        "decode": [(a, HALF), (a, HALF - 1), (a[:1], 0)],
        "mask_difference": [(words, words[::-1].copy()), (a, b)],
        "keep_below": [(words, np.uint64(2**k - 1), np.uint64(m)) for k, m in ((61, P), (7, 100))],
        "join_products": [(digits,)],
    }
    for name, arguments in calls.items():
        for given in arguments:
            size = given[0].shape[-1]
            kind = np.int64 if name == "decode" else np.uint64
            outs = [np.arange(size).astype(kind) for _ in range(2)]
            said = [
                function(*given, out)
                for function, out in zip(
                    (KERNELS[names.__name__, name].interpreted, getattr(field_loops, name)),
                    outs,
                    strict=True,
                )
            ]
            assert said[0] is said[1], name
            assert outs[0].tolist() == outs[1].tolist(), name


def test_a_kernel_becomes_its_loop_when_there_is_much_to_do(monkeypatch):
    kernel = KERNELS[names.__name__, "add"]
    monkeypatch.setattr(names, "add", kernel)
    few, out = np.ones(4, np.uint64), np.zeros(4, np.uint64)
    monkeypatch.setattr(type(kernel), "done", 0)
    names.add(few, few, out)
    assert names.add is kernel
    many = np.ones(LARGEST_IN_NUMPY + 1, np.uint64)
    names.add(many, many, many)
    assert names.add is not kernel
    assert many[0] == out[0] == 2
    monkeypatch.setattr(names, "add", kernel)
    for _ in range(10_000):
        names.add(few, few, out)
    assert names.add is not kernel
