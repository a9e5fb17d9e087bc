"""The compiled loops that `field` does not already show: packing, masks, digits, signatures."""

import numpy as np
import pytest

from securecomp.core import field_kernels

P = (1 << 61) - 1
HALF = (P - 1) // 2
SENTINEL = 0xA5A5A5A5A5A5A5A5
LENGTHS = [0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 193]


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
    def test_is_the_bit_string(self, width, replay):
        for length in LENGTHS:
            values = elements(length, width, replay)
            want = bit_string(values, width)
            words = np.full(len(want) + 2, SENTINEL, np.uint64)
            field_kernels.pack(values, width, words)
            assert words.tolist() == [*want, SENTINEL, SENTINEL]

    def test_unpack_is_the_inverse(self, width, replay):
        for length in LENGTHS:
            values = elements(length, width, replay)
            out = np.full(length + 1, SENTINEL, np.uint64)
            words = unaligned(bit_string(values, width), length % 3)
            full = bool(np.any(values == (1 << width) - 1))
            assert field_kernels.unpack(words, width, out[:length]) is not full
            assert out.tolist() == [*values.tolist(), SENTINEL]

    def test_the_lowest_and_the_highest_value(self, width):
        for value in (0, (1 << width) - 1):
            values = np.full(130, value, np.uint64)
            words = np.full(-(-130 * width // 64), SENTINEL, np.uint64)
            field_kernels.pack(values, width, words)
            assert words.tolist() == bit_string(values, width)
            assert field_kernels.unpack(words, width, values) is (value == 0)
            assert values.tolist() == [value] * 130

    def test_all_ones_at_any_position(self, width):
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
    def test_is_the_bit_string(self, length, replay):
        values = elements(length, 61, replay)
        want = bit_string(values, 61)
        words = np.full(len(want) + 2, SENTINEL, np.uint64)
        field_kernels.pack61(values, words)
        assert words.tolist() == [*want, SENTINEL, SENTINEL]

    @pytest.mark.parametrize("offset", [0, 1, 4])
    def test_unpack_is_the_inverse(self, length, offset, replay):
        values = np.minimum(elements(length, 61, replay), np.uint64(P - 1))
        out = np.full(length + 1, SENTINEL, np.uint64)
        words = unaligned(bit_string(values, 61), offset)
        assert field_kernels.unpack61(words, out[:length]) is True
        assert out.tolist() == [*values.tolist(), SENTINEL]

    def test_the_modulus_at_any_position(self, length):
        values = np.full(length, P - 1, np.uint64)
        out = np.empty(length, np.uint64)
        for position in range(length):
            values[position] = P
            words = np.zeros(-(-length * 61 // 64), np.uint64)
            field_kernels.pack61(values, words)
            assert field_kernels.unpack61(words, out) is False
            assert out.tolist() == values.tolist()
            values[position] = P - 1


def test_canonical_at_any_position():
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


@pytest.mark.parametrize(
    ("kernel", "sign"),
    [(field_kernels.mask_add, 1), (field_kernels.mask_subtract, -1)],
    ids=["add", "sub"],
)
class TestMasks:
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


def test_digits_are_balanced_and_complete(random_residues):
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


def test_kernels_take_what_they_declare_and_nothing_else():
    """A float64 or strided array would lose bits or go wrong without a word."""
    words, floats = np.zeros(4, np.uint64), np.zeros(4)
    for bad in (floats, words.view(np.int64), words[::2], words.reshape(2, 2)):
        for kernel in (field_kernels.add, field_kernels.subtract, field_kernels.multiply):
            with pytest.raises(TypeError, match="No matching definition"):
                kernel(words, bad, words)
        for kernel in (field_kernels.mask_add, field_kernels.mask_subtract):
            with pytest.raises(TypeError, match="No matching definition"):
                kernel(bad, words)
