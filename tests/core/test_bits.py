"""Bit slices against loops over Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securecomp.core import bits, field, kernels

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


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rows", [1, 2, 32, 61, 64])
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


@pytest.mark.parametrize("size", SIZES)
def test_spread_gives_every_bit(size, random_residues):
    words = random_residues("words", bits.words(size)) | np.uint64(1 << 63)
    found = bits.spread(words, size)
    assert found.dtype == np.uint64
    assert found.tolist() == [int(words[i // 64]) >> (i % 64) & 1 for i in range(size)]


def test_spread_of_fewer_than_the_words_have():
    assert bits.spread(np.array([0b1011, 7], np.uint64), 3).tolist() == [1, 1, 0]
    assert bits.spread(np.array([0], np.uint64), 0).tolist() == []


@given(st.lists(st.integers(0, 1), max_size=300))
def test_gather_and_spread_are_inverse(chosen):
    values = np.array(chosen, np.uint64)
    row = bits.gather(values)
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


@pytest.mark.parametrize("size", SIZES)
def test_tail(size):
    tail = bits.tail(size)
    assert tail.shape == (bits.words(size),)
    assert bits.spread(tail, 64 * len(tail)).tolist() == [1] * size + [0] * (64 * len(tail) - size)


@pytest.mark.parametrize(("size", "want"), [(0, 0), (1, 1), (64, 1), (65, 2), (128, 2), (129, 3)])
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
    kernels.beaver(d, e, x, b, c, out)
    columns = zip(*(v.tolist() for v in (d, e, x, b, c)), strict=True)
    want = [(w + u * z + v * y) % P for u, v, y, z, w in columns]
    assert out.tolist() == want
