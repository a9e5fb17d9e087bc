"""Vectors that are encoded together are encoded as if each were alone."""

import math

import numpy as np
import pytest
from cases import each_case

from securecomp.privacy import rotation
from securecomp.privacy.rotation import Encoding

SEED = bytes(range(32))


@pytest.mark.parametrize("chunk", [1, 100, 1 << 16])
@pytest.mark.parametrize("scale", [0.7, 1000.0, 2.0**50])
def test_each_row_is_clipped_and_rounded_within_its_bound(monkeypatch, replay, chunk, scale):
    """Also where squares of integers pass 64 bits."""
    monkeypatch.setattr(rotation, "_CHUNK", chunk)
    encoding, parts, within = Encoding(12, 1.0, scale, SEED), [], Encoding._within

    def spy(self, rounded):
        kept = within(self, rounded)
        parts.append(rounded[kept])
        return kept

    monkeypatch.setattr(Encoding, "_within", spy)
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(70, 12)) * np.geomspace(1e-3, 1e3, 70)[:, None]
    rows[5] = 0
    total = encoding.encode(rows, replay(1))
    kept = np.concatenate(parts)
    assert len(kept) == 70
    assert [sum(map(int, column)) for column in kept.T] == total
    assert max(sum(int(v) ** 2 for v in row) for row in kept) <= encoding.square
    norms = np.linalg.norm(rows, axis=1)
    expected = (rows * np.minimum(1, 1 / np.where(norms > 0, norms, 1))[:, None]).sum(axis=0)
    error = 6 * math.sqrt(70 / 4) / scale + 1e-12
    assert np.abs(encoding.decode(total) - expected).max() < error


def test_rounding_of_different_chunks_is_not_the_same(monkeypatch, replay):
    monkeypatch.setattr(rotation, "_CHUNK", 1)
    encoding = Encoding(64, 1.0, 0.5, SEED)
    row = np.full((1, 64), 1 / 8)
    one = np.array(encoding.encode(row, replay(1)))
    two = np.array(encoding.encode(np.repeat(row, 2, axis=0), replay(1)))
    assert np.array_equal(two - (two - one), one)
    assert not np.array_equal(two, 2 * one)


def test_a_row_beyond_all_floats():
    """It is shortened as others are; to refuse it would tell that it is there."""
    encoding = Encoding(4, 1.0, 2.0**40, SEED)
    assert np.allclose(encoding.decode(encoding.encode([[1.7e308] * 4])), 0.5)


@each_case("scale", [0.5, 3.0])
def test_integers_are_within_the_bound_exactly(scale):
    encoding = Encoding(3, 1.0, scale, SEED)
    axis = np.arange(-6, 7)
    vectors = np.array(np.meshgrid(*[axis] * 4)).reshape(4, -1).T
    squares = (vectors**2).sum(axis=1)
    assert {encoding.square, encoding.square + 1} <= set(squares.tolist())
    assert np.array_equal(encoding._within(vectors), squares <= encoding.square)
