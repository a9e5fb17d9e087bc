"""Uniform polynomials from a seed, against AES in counter mode alone."""

import hashlib
import math

import numpy as np
import pytest
from cases import each_case
from core.prg_reference import derive
from core.prg_reference import words as keystream

from securecomp.ckks.native.ring import Ring, primes
from securecomp.core import prg
from securecomp.errors import ParameterError

KEY = hashlib.sha256(b"a key of uniform residues").digest()
BLOCK = 32768
# Just above a power of two nearly half of all words are drawn again, just below hardly any.
MODULI = [3, 2**20 + 7, 2**60 + 33, 2**61 - 1, 2**32 + 15, 2**63 + 29]


def reference(key, size, index, modulus):
    """Words of AES-256-CTR, their low bits, drawn again in place while they are too large."""
    mask = (1 << modulus.bit_length()) - 1
    block = [w & mask for w in keystream(key, size, index)]
    attempt = 0
    while max(block, default=0) >= modulus:
        attempt += 1
        again = keystream(key, size, index, attempt)
        block = [n & mask if o >= modulus else o for o, n in zip(block, again, strict=True)]
    return block


def filled(size, index, modulus, key=KEY):
    out = np.empty(size, np.uint64)
    prg.Uniform(key).fill(out, index, modulus)
    return out


@each_case("modulus", MODULI)
@each_case("size, index", [(1, 0), (64, 0), (1000, 3), (4096, 2**40)])
def test_is_the_reference(modulus, size, index):
    assert filled(size, index, modulus).tolist() == reference(KEY, size, index, modulus)


def test_a_whole_block_is_the_reference():
    assert filled(BLOCK, 1, 2**60 + 33).tolist() == reference(KEY, BLOCK, 1, 2**60 + 33)


@each_case("modulus", MODULI)
def test_below_the_modulus_and_even(modulus):
    got = filled(BLOCK, 0, modulus)
    assert got.max() < modulus
    cells = np.bincount((got.astype(object) * 16 // modulus).astype(int), minlength=16)
    share = BLOCK / 16
    if modulus >= 16:
        chi = float(((cells - share) ** 2 / share).sum())
        assert chi < 44.3  # 15 degrees of freedom: above in 1 of 10,000 keys


@each_case("modulus, rate", [(2**60 + 33, 0.5), (2**61 - 1, 0.0), (3, 0.25)])
def test_how_many_are_drawn_again(modulus, rate):
    first = np.array(keystream(KEY, BLOCK, 0), np.uint64) & np.uint64(
        (1 << modulus.bit_length()) - 1
    )
    kept = first < modulus
    assert abs(1 - kept.mean() - rate) < 0.01
    got = filled(BLOCK, 0, modulus)
    assert np.array_equal(got[kept], first[kept])
    assert (got < modulus).all()


@each_case("modulus", [2**60 + 33, 2**61 - 1])
def test_the_same_whatever_the_length(modulus):
    whole = filled(BLOCK, 5, modulus)
    for size in (0, 1, 2, 63, 64, 4096, BLOCK - 1):
        assert np.array_equal(filled(size, 5, modulus), whole[:size])


def test_words_are_the_keystream():
    stream = prg.Uniform(KEY)
    for size, index in ((1, 0), (100, 7), (BLOCK, 1)):
        assert stream.words(size, index).tolist() == keystream(KEY, size, index)


def test_more_than_a_block_is_refused():
    """A loop would go on reading behind the block's end."""
    stream = prg.Uniform(KEY)
    with pytest.raises(ParameterError, match=f"at most {BLOCK}"):
        stream.words(BLOCK + 1, 0)
    with pytest.raises(ParameterError, match=f"at most {BLOCK}"):
        stream.fill(np.empty(BLOCK + 1, np.uint64), 0, 2**61 - 1)


def test_no_secret_in_a_repr():
    assert repr(prg.Uniform(KEY)) == "Uniform(1 secret keys)"


@each_case("degree, bits, count", [(64, 61, 2), (2048, 30, 1), (16384, 50, 2)])
def test_the_polynomials_of_a_seed(degree, bits, count):
    """By prime its own key, in blocks of as many polynomials as fit 32768 words."""
    ring = Ring(degree, primes(degree, bits, count))
    step = BLOCK // degree
    assert ring.step == step
    many = step + 1
    got = ring.uniform(KEY, many)
    assert got.shape == (count, many, degree)
    for level, q in enumerate(ring.primes):
        key = derive(KEY, "ckks masks", degree, q)
        want = reference(key, step * degree, 0, q) + reference(key, degree, 1, q)
        assert got[level].reshape(-1).tolist() == want
    assert math.prod(got.shape) == np.unique(got).size or bits < 50
