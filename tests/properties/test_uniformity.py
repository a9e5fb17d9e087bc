"""Keystreams, masked vectors and shares look uniform, whatever they hide (chi-square)."""

import hashlib
import itertools

import numpy as np
import pytest
from scipy import stats

from securecomp.core import field, prg
from securecomp.sharing import split

P = field.MODULUS
SIZE = 1 << 16
LEVEL = 1e-4  # the seeds are fixed, so this is met or not once and for all
SECRETS = [0, 1, P - 1, field.LIMIT]


def key(name):
    return hashlib.sha256(f"uniformity: {name}".encode()).digest()


def bits(values, shift, width):
    """Bits [shift, shift + width) as small integers."""
    return ((values >> np.uint64(shift)) & np.uint64(2**width - 1)).astype(np.int64)


def uniform(values, width):
    """The p-value of small integers of so many bits being uniform."""
    return stats.chisquare(np.bincount(values, minlength=2**width)).pvalue


def alike(one, other, width):
    """The p-value of two samples having one distribution."""
    table = [np.bincount(values, minlength=2**width) for values in (one, other)]
    return stats.chi2_contingency(table).pvalue


def hidden(secret, name):
    """A vector that is `secret` everywhere, minus a mask."""
    acc = np.full(SIZE, secret, np.uint64)
    prg.accumulate(acc, [key(name)], -1)
    return acc


@pytest.mark.parametrize("shift", [0, 1, 20, 29, 32, 40, 53])
def test_every_part_of_a_residue(shift):
    assert uniform(bits(prg.expand(key("part"), SIZE), shift, 8), 8) > LEVEL


def test_residues_fill_the_field_evenly():
    """Equal slices of [0, p), not bits: a residue taken modulo p would favour the low ones."""
    values = prg.expand(key("even"), SIZE)
    assert int(values.max()) < P
    slices = (values.astype(object) * 100 // P).astype(np.int64)
    assert stats.chisquare(np.bincount(slices, minlength=100)).pvalue > LEVEL


@pytest.mark.parametrize("distance", [1, 2, 3, 64, prg.BLOCK_WORDS])
def test_positions_do_not_depend_on_each_other(distance):
    values = prg.expand(key("pairs"), SIZE + distance)
    for low, high in itertools.product((0, 57), repeat=2):
        pairs = bits(values[:-distance], low, 4) * 16 + bits(values[distance:], high, 4)
        assert uniform(pairs, 8) > LEVEL


def test_keys_do_not_depend_on_each_other():
    one, other = (prg.expand(prg.derive(key("keys"), "test", i), SIZE) for i in (0, 1))
    for low, high in itertools.product((0, 57), repeat=2):
        assert uniform(bits(one, low, 4) * 16 + bits(other, high, 4), 8) > LEVEL


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("shift", [0, 30, 53])
def test_a_masked_vector_is_uniform(secret, shift):
    assert uniform(bits(hidden(secret, f"masked {secret}"), shift, 8), 8) > LEVEL


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(SECRETS, 2)])
def test_masked_vectors_of_two_secrets_are_alike(one, other):
    for shift in (0, 30, 53):
        first, second = (
            bits(hidden(one, "first"), shift, 8),
            bits(hidden(other, "second"), shift, 8),
        )
        assert alike(first, second, 8) > LEVEL


@pytest.mark.parametrize("parties", [2, 3])
def test_all_shares_but_one_show_nothing(parties, replay):
    """Every choice of parties-1 shares: 3 bits of each together are uniform for each secret."""
    for secret in SECRETS:
        shares = split(
            np.full(SIZE, secret, np.uint64), parties, entropy=replay(f"{parties} {secret}")
        )
        tops = [bits(share.residues, 58, 3) for share in shares]
        lows = [bits(share.residues, 0, 3) for share in shares]
        for parts in (tops, lows):
            for chosen in itertools.combinations(parts, parties - 1):
                joint = sum(part << (3 * i) for i, part in enumerate(chosen))
                assert uniform(joint, 3 * (parties - 1)) > LEVEL


def test_the_tests_can_fail():
    """All shares together do depend on the secret, and a skew of one in a hundred is seen."""
    shares = [prg.expand(key("first"), SIZE), hidden(0, "first")]
    joint = bits(shares[0], 58, 3) * 8 + bits(shares[1], 58, 3)
    assert uniform(joint, 6) < LEVEL
    skewed = bits(prg.expand(key("skew"), SIZE), 0, 8)
    skewed[: SIZE // 100] = 7
    assert uniform(skewed, 8) < LEVEL
    assert alike(skewed, bits(prg.expand(key("part"), SIZE), 0, 8), 8) < LEVEL
