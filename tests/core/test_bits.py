"""Bit slices against loops over Python's integers."""

import numpy as np
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from securecomp.core import bit_kernels, bits, field, field_kernels

P = field.MODULUS
SIZES = [0, 1, 2, 31, 63, 64, 65, 127, 128, 129, 200, 1000]
EDGES = [0, 1, 2, P - 1, P - 2, (1 << 60), (1 << 60) - 1, (1 << 32) - 1, 1 << 32, 1 << 31]


def values_of(size, random_residues):
    values = random_residues(size, size)
    values[: len(EDGES)] = EDGES[:size]
    return values


def reference(values, rows):
    """Word w of row b has bit b of element 64 w + i in its place i."""
    words = -(-len(values) // 64)
    out = [[0] * words for _ in range(rows)]
    for i, value in enumerate(values):
        for b in range(rows):
            out[b][i // 64] |= (int(value) >> b & 1) << (i % 64)
    return out


@each_case("size", SIZES)
@each_case("rows", [1, 2, 32, 61, 64])
def test_slices(size, rows, random_residues):
    values = values_of(size, random_residues)
    found = bits.slices(values, rows)
    assert found.shape == (rows, bits.words(size))
    assert found.dtype == np.uint64
    assert found.tolist() == reference(values, rows)


def test_slices_of_a_residue_are_61(random_residues):
    assert bits.slices(random_residues(1, 5)).shape == (61, 1)


def test_bits_above_those_asked_for_are_left_out():
    full = np.full(70, 2**64 - 1, np.uint64)
    assert bits.slices(full, 3).tolist() == [[2**64 - 1, 2**6 - 1]] * 3
    assert bits.slices(full, 64).tolist() == [[2**64 - 1, 2**6 - 1]] * 64


@each_case("size", SIZES)
def test_spread_gives_every_bit(size, random_residues):
    words = random_residues("words", bits.words(size)) | np.uint64(1 << 63)
    found = bits.spread(words, size)
    assert found.dtype == np.uint64
    assert found.tolist() == [int(words[i // 64]) >> (i % 64) & 1 for i in range(size)]


def test_spread_of_fewer_than_the_words_have():
    assert bits.spread(np.array([0b1011, 7], np.uint64), 3).tolist() == [1, 1, 0]
    assert bits.spread(np.array([0], np.uint64), 0).tolist() == []


@given(st.lists(st.integers(0, 1), max_size=300))
def test_slices_and_spread_are_inverse(chosen):
    values = np.array(chosen, np.uint64)
    row = bits.slices(values, 1)[0]
    assert row.shape == (bits.words(len(chosen)),)
    assert bits.spread(row, len(chosen)).tolist() == chosen
    assert not np.any(row & ~bits.tail(len(chosen)))


@given(st.lists(st.integers(0, P - 1), max_size=150))
def test_slices_put_together_are_the_values(chosen):
    rows = bits.slices(np.array(chosen, np.uint64))
    spread = [bits.spread(row, len(chosen)).tolist() for row in rows]
    assert [sum(b << k for k, b in enumerate(column)) for column in zip(*spread, strict=True)] == (
        chosen
    )


@each_case("size", SIZES)
def test_tail(size):
    tail = bits.tail(size)
    assert tail.shape == (bits.words(size),)
    assert bits.spread(tail, 64 * len(tail)).tolist() == [1] * size + [0] * (64 * len(tail) - size)


@each_case("size, want", [(0, 0), (1, 1), (64, 1), (65, 2), (128, 2), (129, 3)])
def test_words(size, want):
    assert bits.words(size) == want


def test_arrays_that_lie_elsewhere(random_residues):
    values = random_residues(3, 260)
    want = bits.slices(values[::2].copy()).tolist()
    assert bits.slices(values[::2]).tolist() == want
    fixed = values[::2].copy()
    fixed.setflags(write=False)
    assert bits.slices(fixed).tolist() == want
    moved = np.frombuffer(b"x" + fixed.tobytes(), np.uint8)[1:].view(np.uint64)
    assert bits.slices(moved).tolist() == want
    table = bits.slices(values)
    assert (
        bits.spread(table[:, 1], 61 * 64).tolist()
        == bits.spread(table[:, 1].copy(), 61 * 64).tolist()
    )


# The kernel of a product on shares


def test_beaver_is_a_share_of_the_product(random_residues):
    edges = np.array([0, 1, P - 1, P - 2, 1 << 60, (1 << 32) - 1, 1 << 31], np.uint64)
    columns = np.meshgrid(edges, edges, edges, edges, [0, P - 1])
    d, e, x, b, c = (
        np.concatenate([column.reshape(-1).astype(np.uint64), random_residues(i, 3000)])
        for i, column in enumerate(columns)
    )
    out = np.empty(d.size, np.uint64)
    field_kernels.beaver(d, e, x, b, c, out)
    columns = zip(*(v.tolist() for v in (d, e, x, b, c)), strict=True)
    want = [(w + u * z + v * y) % P for u, v, y, z, w in columns]
    assert out.tolist() == want


# Circuits: two parties' shares, opened by exclusive or


def words_of(random_residues, name, *shape):
    """Random words of all 64 bits."""
    low, high = random_residues(f"{name} low", *shape), random_residues(f"{name} high", *shape)
    return (low ^ (high << np.uint64(32))).astype(np.uint64)


def shared(random_residues, name, value):
    mask = words_of(random_residues, name, *value.shape)
    return mask, value ^ mask


@each_case("rows", [1, 2, 3, 15, 16, 61])
@each_case("width", [0, 1, 3])
def test_leaves_compare_pairs_of_bits(rows, width, random_residues):
    r = words_of(random_residues, "r", rows, width)
    c = words_of(random_residues, "c", rows, width)
    pairs, ranges = rows // 2, -(-rows // 2)
    products = r[0 : 2 * pairs : 2] & r[1 : 2 * pairs : 2]
    less, same = np.zeros((2, ranges, width), np.uint64)
    shares = zip(
        shared(random_residues, "bits", r), shared(random_residues, "both", products), strict=True
    )
    for party, (mine, both) in enumerate(shares):
        made = np.empty((2, ranges, width), np.uint64)
        bit_kernels.leaves(mine, both, c, party == 0, *made)
        less ^= made[0]
        same ^= made[1]
    below, equal = ~c & r, ~(c ^ r)
    for p in range(pairs):
        low, high = 2 * p, 2 * p + 1
        assert np.array_equal(less[p], below[high] | (equal[high] & below[low]))
        assert np.array_equal(same[p], equal[high] & equal[low])
    if rows % 2:
        assert np.array_equal(less[-1], below[-1])
        assert np.array_equal(same[-1], equal[-1])


@each_case("rows", [2, 3, 8, 31])
@each_case("width", [0, 1, 3])
def test_neighbours_combine(rows, width, random_residues):
    less, same, x, y = (
        words_of(random_residues, name, count, width)
        for name, count in (
            ("less", rows), ("same", rows), ("x", rows // 2), ("y", rows // 2 * 2)
        )
    )  # fmt: skip
    z = y & np.concatenate([x, x])
    vectors = zip("lsxyz", (less, same, x, y, z), strict=True)
    shares = list(zip(*(shared(random_residues, *named) for named in vectors), strict=True))
    opened = np.zeros((rows // 2 * 3, width), np.uint64)
    for ls, ss, xs, ys, _ in shares:
        hidden = np.empty_like(opened)
        bit_kernels.hide_pairs(ls, ss, xs, ys, hidden)
        opened ^= hidden
    joined = np.zeros((2, -(-rows // 2), width), np.uint64)
    for ls, ss, _, ys, zs in shares:
        made = np.empty_like(joined)
        bit_kernels.join_pairs(ls, ss, opened, ys, zs, *made)
        joined ^= made
    even = rows // 2 * 2
    want_less = less[1:even:2] ^ (same[1:even:2] & less[0:even:2])
    want_same = same[1:even:2] & same[0:even:2]
    assert np.array_equal(joined[0], np.concatenate([want_less, less[even:]]))
    assert np.array_equal(joined[1], np.concatenate([want_same, same[even:]]))


def test_gates_are_products_of_bits(random_residues):
    x, y, a, b = (words_of(random_residues, name, 9) for name in "xyab")
    total = np.zeros(9, np.uint64)
    vectors = (("x", x), ("b", b), ("c", a & b))
    shares = zip(*(shared(random_residues, *named) for named in vectors), strict=True)
    for xs, bs, cs in shares:
        made = np.empty(9, np.uint64)
        bit_kernels.join_gates(x ^ a, y ^ b, xs, bs, cs, made)
        total ^= made
    assert np.array_equal(total, x & y)


@each_case("count", [0, 1, 63, 64, 65, 200])
def test_unmasked_bits_are_in_the_field(count, random_residues):
    b = values_of(count, random_residues) if count >= len(EDGES) else random_residues("b", count)
    shown = words_of(random_residues, "shown", bits.words(count))
    flip = bits.spread(shown, count).astype(object)
    for first in (True, False):
        out = np.empty(count, np.uint64)
        bit_kernels.unmask(shown, b, first, out)
        want = flip * (int(first) - b.astype(object)) + (1 - flip) * b.astype(object)
        assert out.tolist() == (want % P).tolist()


@each_case("by", [1, 16, 30, 58])
@each_case("first", [True, False])
def test_a_share_of_a_truncated_number(by, first, random_residues):
    w, u, high, c = (values_of(500 + i, random_residues)[:500] for i in range(4))
    w, u = np.roll(w, 3), np.roll(u, 7)
    less = (1 << 59) >> by
    out = np.empty(500, np.uint64)
    field_kernels.shifted(w, u, high, c, by, less, first, out)
    w, u, high, c = (v.astype(object) for v in (w, u, high, c))
    want = w * (1 << (61 - by)) - u - high + ((c >> by) - less if first else 0)
    assert out.tolist() == (want % P).tolist()
