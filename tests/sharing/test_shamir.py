"""Shamir sharing against Lagrange's formula in Python ints."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sharing.cast import stream

from securecomp.core import prg
from securecomp.errors import ParameterError
from securecomp.sharing import shamir

P = 2**61 - 1


def lagrange(points, values, at=0):
    """The value at `at` of the polynomial through these points, modulo P."""
    total = 0
    for i, (x, y) in enumerate(zip(points, values, strict=True)):
        top = bottom = 1
        for other in (*points[:i], *points[i + 1 :]):
            top = top * (at - other) % P
            bottom = bottom * (x - other) % P
        total += y * top * pow(bottom, -1, P)
    return total % P


def residues(*values):
    return np.array(values, np.uint64)


def split(secrets, threshold, points, seed="shamir"):
    return shamir.split(residues(*secrets), threshold, points, entropy=stream(seed))


SECRETS = (0, 1, P - 1, 2**60, 123456789)


@each_case("parties", [1, 2, 3, 5, 6])
def test_every_subset_of_every_size(parties):
    points = [7, 1, 2**32 - 1, 1000, 2, 65537][:parties]
    for threshold in range(1, parties + 1):
        rows = split(SECRETS, threshold, points)
        assert rows.shape == (parties, len(SECRETS))
        assert rows.dtype == np.uint64
        for size in range(1, parties + 1):
            for chosen in itertools.permutations(range(parties), size):
                if size > 3 and list(chosen) != sorted(chosen):
                    continue
                at = [points[i] for i in chosen]
                got = shamir.reconstruct(at, rows[list(chosen)])
                columns = [[int(rows[i, m]) for i in chosen] for m in range(len(SECRETS))]
                assert got.tolist() == [lagrange(at, column) for column in columns]
                if size >= threshold:
                    assert tuple(got.tolist()) == SECRETS
                else:
                    assert all(a != b for a, b in zip(got.tolist(), SECRETS, strict=True))


def test_shares_are_the_values_of_a_polynomial_of_the_right_degree():
    """All rows lie on the polynomial through any `threshold` of them, and on none of less."""
    points = [3, 1, 4, 15, 9, 2]
    rows = split(SECRETS, 4, points)
    for m in range(len(SECRETS)):
        column = [int(v) for v in rows[:, m]]
        for chosen in itertools.combinations(range(6), 4):
            at, values = [points[i] for i in chosen], [column[i] for i in chosen]
            assert [lagrange(at, values, x) for x in points] == column
        at, values = points[:3], column[:3]
        assert lagrange(at, values, points[3]) != column[3]


def test_the_coefficients_are_what_the_entropy_expands_to():
    points, threshold = [1, 2, 5], 3
    rows = split(SECRETS, threshold, points)
    key = prg.derive(stream("shamir")(32), "shamir coefficients")
    drawn = prg.expand(key, 2 * len(SECRETS)).reshape(2, -1).tolist()
    for row, x in zip(rows.tolist(), points, strict=True):
        want = [(s + a * x + b * x * x) % P for s, a, b in zip(SECRETS, *drawn, strict=True)]
        assert row == want


def test_it_asks_for_one_seed():
    asked = []

    def entropy(size):
        asked.append(size)
        return bytes(range(size))

    shamir.split(residues(1, 2), 2, [1, 2, 3], entropy=entropy)
    assert asked == [32]


def test_every_call_draws_another_polynomial():
    entropy = stream("calls")
    one, two = (shamir.split(residues(7), 2, [1, 2], entropy=entropy) for _ in range(2))
    assert (one != two).all()


def test_the_system_is_the_default_source():
    one, two = (shamir.split(residues(*SECRETS), 2, [1, 2]) for _ in range(2))
    assert (one != two).all()
    assert tuple(shamir.reconstruct([2, 1], one[::-1])) == SECRETS


@given(
    secrets=st.lists(st.integers(0, P - 1), min_size=1, max_size=8),
    points=st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=9, unique=True),
    data=st.data(),
)
def test_round_trip(secrets, points, data):
    threshold = data.draw(st.integers(1, len(points)))
    rows = split(secrets, threshold, points, seed=str(secrets))
    chosen = data.draw(st.permutations(range(len(points))))[:threshold]
    got = shamir.reconstruct([points[i] for i in chosen], rows[chosen])
    assert got.tolist() == secrets


@each_case("threshold", [1, 2, 3])
def test_no_secrets_have_empty_shares(threshold):
    rows = split((), threshold, [1, 2, 3])
    assert rows.shape == (3, 0)
    assert shamir.reconstruct([1, 2, 3][:threshold], rows[:threshold]).tolist() == []


def test_shares_add_up_to_shares_of_the_sum():
    points = [1, 2, 3, 4]
    one, two = split((5, P - 1), 3, points, "one"), split((7, 2), 3, points, "two")
    total = (one.astype(object) + two.astype(object)) % P
    got = shamir.reconstruct(points[1:], total[1:].astype(np.uint64))
    assert got.tolist() == [12, 1]


def test_many_parties_and_secrets():
    points = list(range(1, 401))
    secrets = [pow(3, i, P) for i in range(50)]
    rows = split(secrets, 267, points)
    chosen = list(range(399, 132, -1))
    assert shamir.reconstruct([points[i] for i in chosen], rows[chosen]).tolist() == secrets
    assert lagrange([points[i] for i in chosen], [int(rows[i, 7]) for i in chosen]) == secrets[7]


# Secrecy.


def test_fewer_shares_than_the_threshold_fit_every_secret():
    """For any t-1 shares and any secret there is just one polynomial: the count is exact.

    In the field of 7 elements, with Python ints and the same formula: over all polynomials every
    pair of shares comes up once for every secret.
    """
    p, points, threshold = 7, (1, 2, 4, 6), 3
    for chosen in itertools.combinations(points, threshold - 1):
        for secret in range(p):
            seen = Counter(
                tuple((secret + a * x + b * x * x) % p for x in chosen)
                for a, b in itertools.product(range(p), repeat=2)
            )
            assert len(seen) == p ** (threshold - 1)
            assert set(seen.values()) == {1}


@each_case("threshold", [2, 3])
@each_case("holder", [0, 1, 2, 3])
def test_one_share_of_two_secrets_looks_the_same(threshold, holder):
    """Top and low bits of what the library deals, many times over."""
    size, points = 6400, [1, 2, 3, 1 << 31]
    counts = []
    for secret in (0, P - 1):
        rows = split([secret] * size, threshold, points, f"secrecy {secret}")
        row = rows[holder]
        counts += [
            np.bincount((row >> np.uint64(55)).astype(int), minlength=64),
            np.bincount((row & np.uint64(63)).astype(int), minlength=64),
        ]
    assert all(chisquare(c).pvalue > 0.001 for c in counts)


def test_two_shares_below_the_threshold_are_independent_of_the_secret():
    size, points = 12_800, [1, 2, 3, 4]
    for secret in (0, 1, P - 1):
        rows = split([secret] * size, 3, points, f"pairs {secret}")
        for a, b in itertools.combinations(range(4), 2):
            top = [(rows[i] >> np.uint64(58)).astype(int) for i in (a, b)]
            assert chisquare(np.bincount(8 * top[0] + top[1], minlength=64)).pvalue > 1e-4


def test_secrets_of_one_call_have_polynomials_of_their_own():
    """Were coefficients shared, the difference of two shares would be that of the secrets."""
    rows = split([5] * 1000, 2, [1, 2])
    assert len(np.unique(rows[0])) == 1000
    for holder in (0, 1):
        assert len(np.unique(np.diff(rows[holder].astype(object)) % P)) == 999


# Wrong input.


@each_case("threshold", [0, -1, 4])
def test_impossible_thresholds(threshold):
    reason = rf"the threshold must be from 1 to 3, not {threshold}"
    with pytest.raises(ParameterError, match=reason):
        split((1,), threshold, [1, 2, 3])


WRONG_POINTS = [
    ([], "points must be distinct, and at least one"),
    ([1, 2, 1], "points must be distinct, and at least one"),
    ([0, 1], r"points must be from 1 to 2\^32 - 1, not 0"),
    ([-5, 1], r"points must be from 1 to 2\^32 - 1, not -5"),
    ([1, 2**32], r"points must be from 1 to 2\^32 - 1"),
    ([1, P + 1], r"points must be from 1 to 2\^32 - 1"),
]


@each_case("points, reason", WRONG_POINTS)
def test_impossible_points(points, reason):
    with pytest.raises(ParameterError, match=reason):
        split((1,), 1, points)
    with pytest.raises(ParameterError, match=reason):
        shamir.reconstruct(points, np.ones((len(points), 1), np.uint64))


def test_the_wrong_point_is_named():
    with pytest.raises(ParameterError, match="not 4294967296"):
        split((1,), 1, [1, 2**32])


@each_case("points", [[1.5, 2.5], [Fraction(3, 2), 2], ["1", "2"], [True, 2]])
def test_points_that_are_no_integers(points):
    with pytest.raises((ParameterError, TypeError)):
        split((1,), 2, points)


@each_case("shape", [(2, 5), (4, 5), (3,), (3, 5, 1), (0, 5)])
def test_shares_that_do_not_go_with_the_points(shape):
    with pytest.raises(ParameterError, match=r"3 points do not go with shares of \("):
        shamir.reconstruct([1, 2, 3], np.zeros(shape, np.uint64))


def test_a_changed_share_gives_another_secret_without_a_sign():
    rows = split(SECRETS, 3, [1, 2, 3])
    rows[1, 0] ^= np.uint64(1)
    got = shamir.reconstruct([1, 2, 3], rows).tolist()
    assert got[0] != SECRETS[0]
    assert tuple(got[1:]) == SECRETS[1:]


# Bytes.


@each_case("size", [0, 1, 6, 7, 8, 13, 14, 15, 32, 33])
def test_bytes_and_back(size):
    for secret in (bytes(size), b"\xff" * size, stream("bytes")(size)):
        written = shamir.from_bytes(secret)
        assert written.dtype == np.uint64
        assert written.tolist() == [
            int.from_bytes(secret[i : i + 7], "little") for i in range(0, size, 7)
        ]
        assert shamir.limbs(size) == written.size
        assert shamir.to_bytes(written, size) == secret


@each_case(
    "values, size",
    [
        ([0] * 4 + [1 << 32], 32),  # beyond the last byte
        ([0] * 4 + [1 << 55], 32),
        ([1 << 56] + [0] * 4, 32),  # beyond seven bytes
        ([P - 1] + [0] * 4, 32),
        ([0] * 4, 32),
        ([0] * 6, 32),
        ([], 1),
        ([0], 0),
    ],
)
def test_residues_that_are_no_string(values, size):
    with pytest.raises(ParameterError, match=f"the shares do not give a string of {size} bytes"):
        shamir.to_bytes(residues(*values), size)


def test_a_string_is_shared_and_put_together():
    secret = stream("a key")(32)
    rows = split(shamir.from_bytes(secret).tolist(), 3, [1, 2, 3, 4, 5])
    assert shamir.to_bytes(shamir.reconstruct([5, 2, 3], rows[[4, 1, 2]]), 32) == secret
