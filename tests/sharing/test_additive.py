"""Splitting, putting together, and the linear algebra of shares."""

import itertools

import numpy as np
import pytest
from cases import each_case
from scipy import stats
from sharing.cast import stream

from securecomp.core import field
from securecomp.core.prg import BLOCK_WORDS, SEED_BYTES
from securecomp.errors import ParameterError, RangeError
from securecomp.sharing import Share, reconstruct, split
from securecomp.sharing.additive import MAX_PARTIES

P = field.MODULUS
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i2", ">i4", ">i8", ">u8"]


def shared(values, parties=3, seed="split"):
    return split(values, parties, entropy=stream(seed))


def opened(shares):
    return reconstruct(shares).tolist()


def vectors(*arrays, parties=3):
    """Sharings of several arrays, all with other randomness."""
    return [shared(array, parties, f"vector {i}") for i, array in enumerate(arrays)]


@each_case("parties", range(2, 11))
@each_case("shape", [(1,), (5,), (0,), (0, 3), (2, 0, 4), (2, 3), (2, 3, 4)])
def test_every_shape_comes_back(shape, parties):
    values = (np.arange(np.prod(shape, dtype=int), dtype=np.uint64) * 977).reshape(shape)
    shares = shared(values, parties)
    assert len(shares) == parties
    assert [s.party for s in shares] == list(range(parties))
    assert {s.parties for s in shares} == {parties}
    assert {s.shape for s in shares} == {shape}
    total = reconstruct(shares)
    assert total.dtype == np.uint64
    assert total.shape == shape
    assert total.tolist() == values.tolist()


@each_case("value", [7, np.uint64(7), np.int8(7), np.array(7)])
def test_a_scalar_comes_back_as_a_scalar(value):
    shares = shared(value)
    assert {s.shape for s in shares} == {()}
    assert all(s.residues.shape == () for s in shares)
    total = reconstruct(shares)
    assert total.shape == ()
    assert int(total) == 7


@each_case(
    "operation",
    [
        lambda s: s + s,
        lambda s: s + s - s,
        lambda s: -s,
        lambda s: s + 1,
        lambda s: 2 - s,
        lambda s: s * 3,
    ],
)
def test_the_linear_algebra_of_a_scalar_is_a_scalar(operation):
    shares = [operation(s) for s in shared(7)]
    assert {s.shape for s in shares} == {()}
    assert int(reconstruct(shares)) == operation(7) % P


@each_case("dtype", INTEGERS)
def test_every_integer_type_is_taken(dtype):
    top = min(np.iinfo(dtype).max, P - 1)
    values = np.array([0, 1, 100, top], dtype)
    assert opened(shared(values)) == [0, 1, 100, top]


def test_python_integers_are_taken():
    assert opened(shared([0, 5, P - 1])) == [0, 5, P - 1]
    assert opened(shared(np.array([0, 5, P - 1], object))) == [0, 5, P - 1]
    assert opened(shared([])) == []


@each_case(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: a[1:, 1:],
        lambda a: np.asfortranarray(a),
        lambda a: np.broadcast_to(a[0], (4, 6)),
    ],
)
def test_any_memory_order_is_taken(view):
    values = view(np.arange(24, dtype=np.uint64).reshape(4, 6))
    assert opened(shared(values)) == values.tolist()


def test_the_array_that_was_split_stays_as_it_was():
    values = np.arange(5, dtype=np.uint64)
    shares = shared(values)
    assert values.tolist() == [0, 1, 2, 3, 4]
    values[:] = 9
    assert opened(shares) == [0, 1, 2, 3, 4]


def test_putting_together_leaves_the_shares_as_they_were():
    shares = shared([1, 2])
    before = [s.residues.tolist() for s in shares]
    first = reconstruct(shares)
    first[:] = 0
    assert [s.residues.tolist() for s in shares] == before
    assert opened(shares) == [1, 2]


@each_case("size", [BLOCK_WORDS - 1, BLOCK_WORDS, BLOCK_WORDS + 1, 2 * BLOCK_WORDS])
def test_blocks_meet_without_a_seam(size):
    values = np.arange(size, dtype=np.uint64) * np.uint64(P // size)
    assert np.array_equal(reconstruct(shared(values)), values)


def test_the_order_of_the_shares_does_not_matter():
    shares = shared([3, P - 1], 4)
    for order in itertools.permutations(shares):
        assert opened(order) == [3, P - 1]


def test_all_shares_but_the_last_are_seeds_of_the_entropy():
    asked = []
    source = stream("seeds")

    def entropy(size):
        asked.append(size)
        return source(size)

    shares = split([1, 2, 3], 4, entropy=entropy)
    assert asked == [SEED_BYTES] * 3
    assert [s._residues is None for s in shares] == [True, True, True, False]


def test_two_splits_of_one_array_have_nothing_in_common():
    one, two = split(np.zeros(64, int), 3), split(np.zeros(64, int), 3)
    vectors_ = [s.residues for s in (*one, *two)]
    for a, b in itertools.combinations(vectors_, 2):
        assert not (a == b).any()


@each_case("parties", [-1, 0, 1, MAX_PARTIES + 1])
def test_a_number_of_parties_that_cannot_be(parties):
    message = f"parties must be from 2 to {MAX_PARTIES}, not {parties}"
    with pytest.raises(ParameterError, match=message):
        split([1], parties)


@each_case(
    "parties, name",
    [(True, "bool"), (2.0, "float"), ("2", "str"), (None, "NoneType"), (np.float64(2), "float64")],
)
def test_parties_that_are_not_a_number(parties, name):
    with pytest.raises(ParameterError, match="parties is a plain integer, not "):
        split([1], parties)


def test_a_numpy_integer_is_a_number_of_parties():
    shares = split([1], np.int16(2))
    assert [type(s.parties) for s in shares] == [int, int]


@each_case(
    "values",
    [
        [-1],
        [0, P],
        [P + 1],
        [2**64 - 1],
        np.array([-1], np.int8),
        np.array([-(2**63)]),
        np.array([P], np.uint64),
        [2**64],
        [-(2**70)],
        np.array(-1),
    ],
)
def test_what_is_not_a_canonical_residue(values):
    with pytest.raises(RangeError, match=r"a value is not in \[0, 2\^61-1\)"):
        split(values, 2)


@each_case(
    "values",
    [
        [1.0],
        np.array([1], np.float32),
        [1 + 0j],
        ["1"],
        [None],
        np.array([1, 2.5], object),
        [True],
        np.array(1.5),
        np.array(["2024-01-01"], "M8[D]"),
    ],
)
def test_what_is_not_an_integer(values):
    with pytest.raises(ParameterError, match="values: expected integers, got "):
        split(values, 2)


def test_no_shares():
    with pytest.raises(ParameterError, match="reconstruct: no shares"):
        reconstruct([])


@each_case("parties", [2, 3, 5])
def test_a_missing_share_is_named(parties):
    shares = shared([1, 2], parties)
    for absent in shares:
        rest = [s for s in shares if s is not absent]
        with pytest.raises(ParameterError, match=f"no share of party {absent.party}; all are need"):
            reconstruct(rest)


def test_several_missing_shares_are_named():
    shares = shared([1], 5)
    with pytest.raises(ParameterError, match="no share of party 0, 2, 4; all are needed"):
        reconstruct([shares[3], shares[1]])


def test_a_share_that_is_there_twice():
    shares = shared([1], 3)
    with pytest.raises(ParameterError, match="a party's share is there twice"):
        reconstruct([*shares, shares[1]])
    # In place of another one it is that other one that is missing.
    with pytest.raises(ParameterError, match="no share of party 2"):
        reconstruct([shares[0], shares[1], shares[1]])


def test_shares_of_sharings_that_differ_in_shape_or_parties():
    three, two = shared([1, 2], 3), shared([1, 2], 2)
    with pytest.raises(ParameterError, match=r"Share\(1 of 2, shape=\(2,\)\) and Share\(0 of 3"):
        reconstruct([three[0], two[1], three[2]])
    flat, square = shared([1, 2, 3, 4], 2), shared([[1, 2], [3, 4]], 2)
    with pytest.raises(ParameterError, match="not of one sharing"):
        reconstruct([flat[0], square[1]])


@pytest.mark.parametrize("given", [{}, {"residues": np.zeros(1, np.uint64), "key": bytes(32)}])
def test_a_share_is_either_a_vector_or_a_seed(given):
    with pytest.raises(ParameterError, match="a share has either residues or a key"):
        Share(0, 2, (1,), **given)


# Linear algebra, against Python's integers.

A = [0, 1, P - 1, 123456789]
B = [5, P - 1, P - 1, 987654321]


def test_sums_and_differences_of_shares():
    a, b = vectors(A, B)
    pairs = list(zip(a, b, strict=True))
    assert opened([x + y for x, y in pairs]) == [(u + v) % P for u, v in zip(A, B, strict=True)]
    assert opened([x - y for x, y in pairs]) == [(u - v) % P for u, v in zip(A, B, strict=True)]
    assert opened([-x for x in a]) == [-u % P for u in A]
    assert opened([sum([x, y, x]) for x, y in pairs]) == [
        (2 * u + v) % P for u, v in zip(A, B, strict=True)
    ]


CONSTANTS = [
    0,
    1,
    -1,
    7,
    P - 1,
    P,
    -P,
    2**64 + 3,
    -(2**200),
    True,
    np.int64(-5),
    np.uint64(2**64 - 1),
    np.int8(-128),
    np.array(-3),
    np.array([1, -2, 3, -(2**62)]),
    np.array([2**63, 0, 1, 2**64 - 1], np.uint64),
    np.array([2**100, -(2**100), 0, P], object),
    [4, -4, 0, 2**61],
]


@each_case("constant", CONSTANTS)
def test_public_constants_on_both_sides(constant):
    public = np.broadcast_to(np.array(constant, object), 4).tolist()
    pairs = list(zip(A, map(int, public), strict=True))
    (shares,) = vectors(A)
    assert opened([s + constant for s in shares]) == [(a + c) % P for a, c in pairs]
    assert opened([constant + s for s in shares]) == [(a + c) % P for a, c in pairs]
    assert opened([s - constant for s in shares]) == [(a - c) % P for a, c in pairs]
    assert opened([constant - s for s in shares]) == [(c - a) % P for a, c in pairs]
    assert opened([s * constant for s in shares]) == [(a * c) % P for a, c in pairs]
    assert opened([constant * s for s in shares]) == [(a * c) % P for a, c in pairs]


@each_case("constant", [3, np.int64(3), np.array([3, 4, 5, 6]), [3, 4, 5, 6]])
def test_an_operation_with_a_share_is_a_share(constant):
    (shares,) = vectors(A)
    for share in shares:
        for result in (constant + share, constant - share, constant * share, share + constant):
            assert type(result) is Share
            assert (result.party, result.parties) == (share.party, 3)


def test_only_the_first_party_takes_a_public_constant():
    (shares,) = vectors(A)
    moved = [s + 1 for s in shares]
    assert [(m.residues == s.residues).all() for m, s in zip(moved, shares, strict=True)] == [
        False,
        True,
        True,
    ]


def test_operations_leave_their_operands_as_they_were():
    a, b = vectors(A, B)
    before = [s.residues.tolist() for s in (*a, *b)]
    for x, y in zip(a, b, strict=True):
        _ = x + y, x - y, -x, x * 5, x + 5, 5 - x
    assert [s.residues.tolist() for s in (*a, *b)] == before


@each_case(
    "left, right",
    [((3,), (1,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((4, 2, 3), (2, 1)), ((0, 3), (1,))],
)
def test_operands_broadcast(left, right):
    a = np.arange(np.prod(left, dtype=int)).reshape(left) + 1
    b = np.arange(np.prod(right, dtype=int)).reshape(right) + 11
    one, two = vectors(a, b)
    pairs = list(zip(one, two, strict=True))
    exact_a, exact_b = a.astype(object), b.astype(object)
    for result, want in (
        ([x + y for x, y in pairs], exact_a + exact_b),
        ([y - x for x, y in pairs], exact_b - exact_a),
        ([x + b for x in one], exact_a + exact_b),
        ([b - x for x in one], exact_b - exact_a),
        ([b * x for x in one], exact_a * exact_b),
    ):
        total = reconstruct(result)
        assert total.shape == want.shape
        assert total.tolist() == (want % P).tolist()


def test_a_long_expression():
    a, b = vectors(A, B)
    weights = np.array([2, -3, 5, -7])
    result = [3 * x - weights * y + (x - 1) * 2 - (-y) for x, y in zip(a, b, strict=True)]
    assert opened(result) == [
        (3 * u - int(w) * v + (u - 1) * 2 + v) % P for u, v, w in zip(A, B, weights, strict=True)
    ]


@each_case("other", [1.5, np.array([1.0]), "x", None, [1, 2.5], 1j])
def test_constants_that_are_not_integers(other):
    share = shared([1])[0]
    for operation in (
        lambda: share + other,
        lambda: other + share,
        lambda: share - other,
        lambda: other - share,
        lambda: share * other,
        lambda: other * share,
    ):
        with pytest.raises(ParameterError, match="constant: expected integers, got "):
            operation()


def test_shares_of_different_parties_do_not_combine():
    shares = shared([1], 3)
    with pytest.raises(ParameterError, match="share 0 of 3 and share 1 of 3 do not combine"):
        shares[0] + shares[1]
    with pytest.raises(ParameterError, match="share 2 of 3 and share 0 of 3 do not combine"):
        shares[2] - shares[0]
    with pytest.raises(ParameterError, match="share 0 of 3 and share 0 of 2 do not combine"):
        shares[0] + shared([1], 2)[0]


def test_a_product_of_shares_needs_messages():
    shares = shared([1], 2)
    with pytest.raises(ParameterError, match="a product of two shares needs messages"):
        shares[0] * shares[0]


# What shares give away: nothing.


def spoken(secret):
    """Every form in which a number or a string of bytes could be written by accident."""
    if isinstance(secret, bytes):
        number = int.from_bytes(secret)
        return {secret.hex(), secret.hex()[:8], repr(secret)[2:-1], str(number), f"{number:x}"}
    return {str(secret), f"{secret:x}", f"{secret:,}"}


def test_a_share_shows_only_its_place():
    for share in shared([P - 2, 12345678901234567], 3):
        secrets = {*spoken(share._key or b"none of this")}
        for residue in share.residues.tolist():
            secrets |= spoken(residue)
        for text in (repr(share), str(share), f"{share}"):
            assert text == f"Share({share.party} of 3, shape=(2,))"
            assert not [s for s in secrets if s in text]


def test_errors_about_shares_carry_no_residues():
    shares = shared([12345678901234567], 3)
    for broken in (lambda: reconstruct(shares[:2]), lambda: shares[0] + shares[1]):
        with pytest.raises(ParameterError) as error:
            broken()
        for share in shares:
            assert str(int(share.residues[0])) not in str(error.value)


SIZE = 1 << 14


def cells(shares, bits=2):
    """How often each combination of the residues' top and bottom bits occurs."""
    code = np.zeros(SIZE, np.int64)
    for share in shares:
        residues = share.residues
        part = ((residues >> np.uint64(61 - bits)) << np.uint64(bits)) | (
            residues & np.uint64((1 << bits) - 1)
        )
        code = (code << 2 * bits) | part.astype(np.int64)
    return np.bincount(code, minlength=1 << (2 * bits * len(shares)))


@each_case("parties", [2, 3])
def test_all_shares_but_one_look_the_same_whatever_the_secret(parties):
    secrets = {
        "zeros": np.zeros(SIZE, int),
        "largest": np.full(SIZE, P - 1),
        "a ramp": np.arange(SIZE) * (P // SIZE),
    }
    seen = {}
    for name, secret in secrets.items():
        shares = shared(secret, parties, f"distribution of {name}")
        for group in itertools.combinations(range(parties), parties - 1):
            counts = cells([shares[i] for i in group])
            assert stats.chisquare(counts).pvalue > 1e-3, (name, group)
            seen.setdefault(group, []).append(counts)
    for group, counts in seen.items():
        assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-3, group


def test_all_shares_together_do_not_look_random():
    # The test above can fail: with the last share, the top bits depend on the secret.
    shares = shared(np.zeros(SIZE, int), 2, "control")
    assert stats.chisquare(cells(shares)).pvalue < 1e-100


@each_case("parties", [2, 3, 5])
def test_one_share_says_nothing_about_another(parties):
    shares = shared(np.zeros(SIZE, int), parties, "correlation")
    for a, b in itertools.combinations(shares, 2):
        x, y = (s.residues.astype(float) / P - 0.5 for s in (a, b))
        correlation = float((x * y).mean() * 12)
        # Two shares of zero are opposite; of three or more, any two are independent.
        if parties == 2:
            assert correlation < -0.9
        else:
            assert abs(correlation) < 4 / SIZE**0.5
