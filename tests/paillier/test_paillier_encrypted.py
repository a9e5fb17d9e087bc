"""Encrypted vectors: what goes in, comes out, and may be done between."""

import operator
from decimal import Decimal
from fractions import Fraction

import gmpy2
import numpy as np
import pandas as pd
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from paillier import textbook

from securecomp.errors import DecodeError, KeyMismatchError, ParameterError, RangeError
from securecomp.paillier import (
    EncryptedVector,
    Packing,
    PrivateKey,
    PublicKey,
    decrypt,
    dot,
    encrypt,
    vectors,
)

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
BOUND = 1000


@pytest.fixture
def enc(public, replay):
    """`enc(values, ...)` encrypts small numbers under the key of most tests."""
    entropy = replay("vectors")

    def enc(values, **options):
        return encrypt(public, values, **({"bound": BOUND, "entropy": entropy} | options))

    return enc


@pytest.fixture(scope="session")
def bare(public):
    """The same modulus without h_s, as keys of phe are."""
    return PublicKey(public.n, insecure_for_tests=True)


class TestInput:
    @each_case("kind", [*INTEGERS, ">i2", ">u4", "<i8"])
    def test_every_type_of_numpy(self, private, enc, kind):
        values = np.array([0, 1, 100, 7, 127], kind)
        vector = enc(values)
        got = decrypt(private, vector)
        assert got.dtype == np.int64
        assert got.tolist() == [0, 1, 100, 7, 127]
        assert (vector.length, vector.weight, vector.left) == (5, 1, 1023)

    @each_case("kind", INTEGERS)
    def test_the_ends_of_every_type(self, private, enc, kind):
        ends = np.array([np.iinfo(kind).min, np.iinfo(kind).max], kind)
        assert decrypt(private, enc(ends, bound=2**64)).tolist() == ends.tolist()

    @each_case(
        "values, want",
        [
            ([], []),
            ((), []),
            (np.array([]), []),
            ([0], [0]),
            ((3, -4), [3, -4]),
            (range(-2, 3), [-2, -1, 0, 1, 2]),
            ([True, False], [1, 0]),
            (np.array([True, False]), [1, 0]),
            (np.array([5, True, np.int8(-3)], object), [5, 1, -3]),
            ([np.uint8(200), np.int64(-200)], [200, -200]),
            (np.arange(20)[::3], [0, 3, 6, 9, 12, 15, 18]),
            (np.arange(12).reshape(3, 4).T[1], [1, 5, 9]),
            (pd.Series([4, -5], index=["x", "y"]), [4, -5]),
            ([BOUND, -BOUND] * 30, [BOUND, -BOUND] * 30),
        ],
    )
    def test_everything_that_is_a_vector_of_integers(self, private, enc, values, want):
        vector = enc(values)
        assert decrypt(private, vector).tolist() == want
        assert len(vector.ciphertexts) == vector.packing.ciphertexts(len(want))

    @each_case(
        "values",
        [
            [2**64, -(2**64), 0],
            [2**63, 2**64 - 1],
            [-(2**63), 2**63 - 1],
            [10**30, -(10**30) + 1],
        ],
    )
    def test_python_integers_of_any_size(self, private, enc, values):
        got = decrypt(private, enc(values, bound=10**30))
        assert got.dtype == object
        assert got.tolist() == values
        assert all(type(v) is int for v in got)

    @each_case("values", [[2**63, -1], [-5, 2**64 - 1], [np.uint64(2**63), np.int8(-1)]])
    def test_integers_that_numpy_reads_as_floats(self, private, enc, values):
        got = decrypt(private, enc(values, bound=2**64))
        assert got.tolist() == [int(v) for v in values]

    def test_a_boolean_of_numpy_among_objects(self, private, enc):
        values = np.array([np.True_, 5, False], object)
        assert decrypt(private, enc(values)).tolist() == [1, 5, 0]

    @each_case(
        "values, kind",
        [
            ([1.5], "float64"),
            ([1.0, 2.0], "float64"),
            ([float("nan")], "float64"),
            ([float("inf"), 1], "float64"),
            (np.array([1, 2], np.float16), "float16"),
            (np.array([1, 2], np.longdouble), "float128"),
            ([1j], "complex128"),
            (["1"], "<U1"),
            ([b"1"], r"\|S1"),
            ([None, 1], "object"),
            ([Decimal(1)], "object"),
            ([Fraction(1)], "object"),
            (np.array([1, 2.0], object), "object"),
            (np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\]"),
        ],
    )
    def test_what_is_no_integer(self, enc, values, kind):
        reason = f"^expected integers, got {kind}; encode reals with core.fixedpoint$"
        with pytest.raises(ParameterError, match=reason):
            enc(values)

    @each_case(
        "values, shape", [(5, r"\(\)"), ([[1, 2]], r"\(1, 2\)"), (np.zeros((0, 3)), r"\(0, 3\)")]
    )
    def test_what_is_no_vector(self, enc, values, shape):
        with pytest.raises(ParameterError, match=f"^expected a vector, got shape {shape}$"):
            enc(values)

    @each_case("bad", [BOUND + 1, -BOUND - 1, 2**62, -(2**70)])
    def test_beyond_the_bound(self, enc, bad):
        with pytest.raises(RangeError, match=r"^a value is beyond the bound 1000 of a slot$"):
            enc([0, bad, 5])

    def test_nothing_is_drawn_for_what_is_refused(self, public):
        def entropy(size):
            raise AssertionError

        for values, bound in (([5], 4), ([1.5], 4), ([5], 2**600)):
            with pytest.raises((ParameterError, RangeError)):
                encrypt(public, values, bound=bound, entropy=entropy)

    def test_a_real_key(self, real, replay):
        values = [(-1) ** i * (2**40 - 1 - i) for i in range(80)]
        vector = encrypt(real.public, values, bound=2**40 - 1, entropy=replay("x"))
        assert len(vector.ciphertexts) == 3
        assert decrypt(real, (vector - vector * 3).rerandomised()).tolist() == [
            -2 * v for v in values
        ]


class TestCiphertexts:
    @each_case("exponent", ["half", "full"])
    @each_case("owner", [False, True])
    def test_every_way_to_encrypt(self, private, enc, exponent, owner):
        """The textbook, which has no packing, tables or remainders, reads what is in them."""
        values = [(-1) ** i * (1000 - i) for i in range(90)]
        vector = enc(values, exponent=exponent, owner=private if owner else None)
        p, q = textbook.factors(private)
        plaintexts = [textbook.decrypt(p, q, int(c)) for c in vector.ciphertexts]
        slot, slots = vector.packing.slot, vector.packing.slots
        assert plaintexts == textbook.pack(values, slot, slots)
        assert textbook.unpack(plaintexts, slot, slots, 90) == values
        assert all(0 < c < private.public.n2 for c in vector.ciphertexts)
        assert len(set(vector.ciphertexts)) == len(vector.ciphertexts) == 4

    def test_the_owner_makes_what_everybody_makes(self, private, public, replay):
        for exponent in ("half", "full"):
            both = [
                encrypt(
                    public, range(90), bound=99, exponent=exponent, owner=owner, entropy=replay(1)
                ).ciphertexts
                for owner in (None, private)
            ]
            assert both[0] == both[1]

    def test_half_is_a_power_of_h_s_of_half_the_length(self, public):
        """(1 + m n) h_s^r, with r uniform of |n|/2 bits, as the source says."""
        sizes = []

        def entropy(size):
            sizes.append(size)
            return b"\xf1" * size

        n, n2, h_s = int(public.n), int(public.n2), int(public.h_s)
        vector = encrypt(public, [77], bound=99, entropy=entropy)
        assert sizes == [32]
        r = int.from_bytes(b"\xf1" * 32, "big")
        assert vector.ciphertexts == [(1 + 77 * n) * pow(h_s, r, n2) % n2]

    def test_half_of_an_odd_number_of_bytes(self, replay):
        """132 bits: exponents of 66, of 9 bytes that were drawn."""
        key = PrivateKey.generate(132, insecure_for_tests=True, entropy=replay("132")).public
        # One to a ciphertext, and so many that the table has rows of more bits than are left.
        zeros = [0] * 30
        vector = encrypt(key, zeros, bound=2**120, additions=1, entropy=lambda n: b"\xff" * n)
        assert vector.ciphertexts == [pow(int(key.h_s), 2**66 - 1, int(key.n2))] * 30

    def test_full_is_a_power_of_a_random_number(self, bare, replay):
        drawn = []

        def entropy(size):
            drawn.append(replay("r")(size))
            return drawn[-1]

        n = int(bare.n)
        vector = encrypt(bare, [-77], bound=99, exponent="full", entropy=entropy)
        assert len(drawn[0]) == 64 + 16  # 128 bits more than the modulus has
        r = int.from_bytes(drawn[0], "big") % (n - 1) + 1
        assert vector.ciphertexts == [textbook.encrypt(n, -77, r)]

    def test_two_encryptions_of_one_value_differ(self, private, enc):
        for options in ({}, {"exponent": "full"}, {"owner": private}):
            many = [enc([5], **options).ciphertexts[0] for _ in range(20)]
            assert len(set(many)) == 20
            assert {int(decrypt(private, enc([5], **options))[0])} == {5}

    def test_by_default_the_operating_system_is_asked(self, public, monkeypatch):
        sizes = []
        monkeypatch.setattr(
            "securecomp.core.entropy.secrets.token_bytes",
            lambda size: sizes.append(size) or bytes(size),
        )
        vector = encrypt(public, [1], bound=1)
        vector.rerandomised()
        assert sizes == [32, 32]

    def test_zero_ciphertexts_are_no_zeros(self, public, enc):
        """An encryption of zero is not 1, and a scaling by zero is until it is re-randomised."""
        assert enc([0]).ciphertexts[0] != 1
        nothing = enc([5]) * 0
        assert nothing.ciphertexts == [1]
        assert nothing.rerandomised().ciphertexts[0] != 1

    @each_case("exponent", ["", "HALF", None, 1, "quarter"])
    def test_another_exponent(self, enc, exponent):
        with pytest.raises(ParameterError, match=r'^exponent is "half" or "full", not '):
            enc([1], exponent=exponent)

    def test_half_needs_h_s(self, bare, enc):
        reason = r"^this key has no h_s; ask the key holder for one, or .*--exponent full\)$"
        with pytest.raises(ParameterError, match=reason):
            encrypt(bare, [1], bound=1)
        with pytest.raises(ParameterError, match=reason):
            encrypt(bare, [1], bound=1, exponent="full").rerandomised()

    def test_progress_to_the_end(self, enc, private):
        seen = []
        vector = enc(range(900), progress=lambda *at: seen.append(at))
        count = len(vector.ciphertexts)
        assert count > 2 * 8
        dones, totals = zip(*seen, strict=True)
        assert set(totals) == {count}
        assert dones == tuple(sorted(set(dones)))
        assert dones[-1] == count
        seen.clear()
        decrypt(private, vector, progress=lambda *at: seen.append(at))
        assert seen == [(i + 1, count) for i in range(count)]


class TestArithmetic:
    A, B, C = ([-1000, 5, 0, 1000, 77], [1000, -6, 9, 1000, -78], [1, 2, 3, -4, -1000])

    def test_sums_and_differences(self, private, enc):
        a, b, c = map(enc, (self.A, self.B, self.C))
        for combine in (
            lambda a, b, c: a + b + c,
            lambda a, b, c: a - b - c,
            lambda a, b, c: -(a - (b + c)) + (a + c),
            lambda a, b, c: a + a + a - a,
            lambda a, b, c: (a + b) * 3 - 2 * (b - c),
            lambda a, b, c: a * 0 + b * -7 + 100 * c,
            lambda a, b, c: np.int64(3) * a + b * np.uint8(200),
        ):
            want = combine(*(np.array(v) for v in (self.A, self.B, self.C)))
            assert decrypt(private, combine(a, b, c)).tolist() == want.tolist()
        # Nothing was changed in place.
        assert decrypt(private, a).tolist() == self.A
        assert (a.weight, b.weight, c.weight) == (1, 1, 1)

    @each_case("factor", [0, 1, -1, 2, -2, 15, 16, 17, 1023, -1024, 1024])
    def test_scaling(self, private, enc, factor):
        for scaled in (enc(self.A) * factor, factor * enc(self.A)):
            assert scaled.weight == abs(factor)
            assert scaled.left == 1024 - abs(factor)
            assert decrypt(private, scaled).tolist() == [factor * v for v in self.A]

    def test_scaling_by_a_large_number(self, private, enc):
        factor = -(3**60)
        vector = enc(self.A, additions=3**60)
        assert decrypt(private, vector * factor).tolist() == [factor * v for v in self.A]
        with pytest.raises(RangeError):
            vector * (factor - 1)

    def test_what_it_costs(self, enc):
        a, b = enc(self.A), enc(self.B)
        assert (a + b).weight == 2
        assert (a - b).weight == 2
        assert (-a).weight == 1
        assert ((a + b) * -3).weight == 6
        assert ((a + b) * -3 + a * 0 + b).weight == 7
        assert dot([a, b, a + b], [-3, 0, 4]).weight == 3 + 8
        assert (a + b).rerandomised().weight == 2

    @each_case("additions", [1, 2, 3, 4, 5, 1023, 1024, 1025])
    def test_the_last_addition_that_is_allowed_and_the_next(self, private, enc, additions):
        one = enc([BOUND, -BOUND] * 40, additions=additions)
        full = one * additions
        assert full.left == 0
        assert decrypt(private, full).tolist() == [BOUND * additions, -BOUND * additions] * 40
        reason = (
            f"^{additions + 1} additions where the slots have room for {additions}; encrypt with "
            "more additions allowed$"
        )
        for beyond in (
            lambda: full + one,
            lambda: full - one,
            lambda: one * (additions + 1),
            lambda: one * -(additions + 1),
            lambda: dot([full, one], [1, -1]),
            lambda: dot([one], [additions + 1]),
            lambda: sum([one] * additions, one * 1),
        ):
            with pytest.raises(RangeError, match=reason):
                beyond()
        # Differences cost as sums do: -BOUND - BOUND is -2 BOUND.
        if additions > 1:
            part = one * (additions - 1)
            assert (
                decrypt(private, one * -1 - part).tolist()
                == [
                    -BOUND * additions,
                    BOUND * additions,
                ]
                * 40
            )

    def test_sums_up_to_the_last(self, private, enc):
        vectors_ = [enc([BOUND, -BOUND], additions=5) for _ in range(6)]
        total = vectors_[0]
        for vector in vectors_[1:5]:
            total = total + vector
        assert decrypt(private, total).tolist() == [5 * BOUND, -5 * BOUND]
        with pytest.raises(RangeError, match=r"^6 additions where the slots have room for 5;"):
            total + vectors_[5]
        with pytest.raises(RangeError, match=r"^10 additions"):
            total + total

    def test_nothing_is_computed_that_is_refused(self, enc, monkeypatch):
        one = enc([1], additions=4)

        def never(*_):
            raise AssertionError

        for name in ("powmod", "invert"):
            monkeypatch.setattr(vectors, name, never)
        monkeypatch.setattr(vectors.fixed_base, "multi_power", never)
        for factor in (5, -5, 10**4000):
            with pytest.raises(RangeError):
                one * factor
        with pytest.raises(RangeError):
            dot([one, one], [3, -2])

    @each_case("factor", [1.0, 1.5, True, False, "2", None, Decimal(2), [1]])
    def test_a_factor_that_is_no_integer(self, enc, factor):
        name = type(factor).__name__
        with pytest.raises(ParameterError, match=f"^a factor is an integer, not {name}$"):
            enc([1]) * factor

    @each_case("operate", [operator.add, operator.sub])
    def test_keys_do_not_mix(self, enc, stranger, bare, operate):
        ours = enc([1])
        for key in (stranger.public, bare):
            theirs = encrypt(key, [1], bound=BOUND, exponent="full")
            for a, b in ((ours, theirs), (theirs, ours)):
                with pytest.raises(KeyMismatchError, match="is under another key than Encrypted"):
                    operate(a, b)
            reason = r"^the vectors are under different keys$"
            with pytest.raises(KeyMismatchError, match=reason):
                dot([ours, theirs], [1, 1])

    @each_case(
        "options",
        [{"bound": BOUND + 1}, {"bound": 10**6}, {"additions": 1023}, {"additions": 1025}],
    )
    def test_layouts_do_not_mix(self, enc, options):
        for a, b in ((enc([1, 2]), enc([1, 2], **options)), (enc([1]), enc([1, 2]))):
            with pytest.raises(ParameterError, match="another layout or length than Encrypted"):
                a + b
            with pytest.raises(ParameterError, match="another layout or length than Encrypted"):
                b - a
            reason = r"^the vectors have different layouts or lengths$"
            with pytest.raises(ParameterError, match=reason):
                dot([a, b], [1, 1])

    def test_plain_numbers_are_refused_by_their_type(self, enc):
        for other in (5, None, [1], np.array([1]), 1.5, 0.0, np.float64(0), "x"):
            reason = f"^an encrypted vector and {type(other).__name__} do not add up; encrypt"
            for operation in (operator.add, operator.sub):
                for operands in ((enc([1]), other), (other, enc([1]))):
                    with pytest.raises(ParameterError, match=reason):
                        operation(*operands)
        with pytest.raises(ParameterError, match="a factor is an integer, not ndarray"):
            np.array([1, 2]) * enc([1, 2])
        with pytest.raises(TypeError, match="EncryptedVector"):
            np.add([1], enc([1]))

    def test_the_sum_that_python_has(self, private, enc):
        assert decrypt(private, sum([enc(self.A), enc(self.B)])).tolist() == [
            a + b for a, b in zip(self.A, self.B, strict=True)
        ]

    def test_rerandomised(self, private, public, enc, bare, replay):
        for vector in (enc(self.A), enc(range(90)), enc([])):
            for options in ({}, {"exponent": "full"}):
                fresh = vector.rerandomised(**options)
                pairs = zip(fresh.ciphertexts, vector.ciphertexts, strict=True)
                assert all(a != b for a, b in pairs)
                assert (fresh.key, fresh.packing, fresh.length) == (
                    *(vector.key, vector.packing, vector.length),
                )
                assert decrypt(private, fresh).tolist() == decrypt(private, vector).tolist()
        vector = enc([5])
        n2, r = int(public.n2), int.from_bytes(replay(3)(32), "big")
        (fresh,) = vector.rerandomised(entropy=replay(3)).ciphertexts
        assert fresh == vector.ciphertexts[0] * pow(int(public.h_s), r, n2) % n2

    def test_a_mask_for_each_ciphertext(self, public, enc):
        vector = enc(range(90))
        fresh = vector.rerandomised()
        masks = {
            f * gmpy2.invert(c, public.n2) % public.n2
            for f, c in zip(fresh.ciphertexts, vector.ciphertexts, strict=True)
        }
        assert len(masks) == len(vector.ciphertexts) == 4

    def test_what_it_shows(self, enc, public):
        assert repr(enc([1, 2, 3], additions=9)) == (
            f"EncryptedVector(3 values, 8 more additions, {public!r})"
        )


class TestDot:
    @examples(40)
    @given(st.data())
    def test_against_numpy(self, private, public, data):
        count, length = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 60))
        value = st.integers(-50, 50)
        rows = data.draw(
            st.lists(
                st.lists(value, min_size=length, max_size=length), min_size=count, max_size=count
            )
        )
        weights = data.draw(
            st.lists(
                st.sampled_from([0, 1, -1, 15, -16, 17]) | st.integers(-300, 300),
                min_size=count,
                max_size=count,
            )
        )
        vectors_ = [encrypt(public, row, bound=50, additions=1800) for row in rows]
        got = decrypt(private, dot(vectors_, weights))
        want = np.array(weights, np.int64) @ np.array(rows, np.int64).reshape(count, length)
        assert got.tolist() == want.tolist()

    @each_case("weights", [[2**70, -(2**69)], [-(2**64), 0], [1, 2**100]])
    def test_large_weights(self, private, enc, weights):
        rows = [[BOUND, -BOUND, 3], [BOUND, 5, -7]]
        vectors_ = [enc(row, additions=2**101) for row in rows]
        want = [
            sum(w * v for w, v in zip(weights, c, strict=True)) for c in zip(*rows, strict=True)
        ]
        assert decrypt(private, dot(vectors_, weights)).tolist() == want

    @each_case("kind", INTEGERS)
    def test_weights_of_numpy(self, private, enc, kind):
        weights = np.array([3, 100], kind)
        got = decrypt(private, dot([enc([5, -6]), enc([-7, 8])], weights))
        assert got.tolist() == [15 - 700, -18 + 800]

    def test_weights_of_sums_count_their_terms(self, private, enc):
        a = enc([BOUND], additions=10)
        total = a + a + a
        assert decrypt(private, dot([total, a], [-3, -1])).tolist() == [-10 * BOUND]
        with pytest.raises(RangeError, match=r"^11 additions where the slots have room for 10"):
            dot([total, a], [-3, 2])

    @each_case("weights", [[], [1], [1, 2, 3]])
    def test_another_number_of_weights(self, enc, weights):
        reason = r"^as many weights as vectors are needed, and at least one$"
        with pytest.raises(ParameterError, match=reason):
            dot([enc([1]), enc([2])], weights)

    def test_nothing_at_all(self):
        with pytest.raises(ParameterError, match="and at least one"):
            dot([], [])

    @each_case("bad", [1.0, True, "1", None, Fraction(1)])
    def test_weights_that_are_no_integers(self, enc, bad):
        with pytest.raises(ParameterError, match=r"^weights are integers$"):
            dot([enc([1]), enc([2])], [1, bad])


class TestForgedCiphertexts:
    """What cannot come from an encryption, made by hand: the decoders refuse it earlier."""

    @pytest.fixture
    def forged(self, private, enc):
        p, _ = textbook.factors(private)
        good = enc(range(90))
        ciphertexts = list(good.ciphertexts)
        ciphertexts[1] = gmpy2.mpz(5 * p)
        return good, EncryptedVector(good.key, good.packing, 90, 1, ciphertexts)

    @each_case("factor", [-1, -2, -1024])
    def test_a_negative_factor(self, forged, factor):
        """gmpy2's powmod takes the interpreter down here."""
        for operate in (lambda v: v * factor, lambda v: factor * v):
            with pytest.raises(DecodeError, match=r"^a ciphertext shares a factor with the"):
                operate(forged[1])
        with pytest.raises(DecodeError, match=r"^a ciphertext shares a factor with the"):
            forged[0] - forged[1]

    def test_a_negative_weight(self, forged):
        with pytest.raises(DecodeError, match="shares a factor with the modulus"):
            dot(forged, [1, -1])

    def test_decryption(self, private, forged, enc):
        with pytest.raises(DecodeError, match=r"^ciphertexts: number 2 shares a factor with the"):
            decrypt(private, forged[1])
        with pytest.raises(DecodeError, match=r"^ciphertexts: number 2 shares a factor with the"):
            decrypt(private, forged[0] + forged[1])
        for bad in (0, -1, private.public.n2, private.public.n2 + 1):
            vector = enc([1])
            vector.ciphertexts = [gmpy2.mpz(bad)]
            with pytest.raises(DecodeError, match=r"^ciphertexts: number 1 is not in \[1, n\^2\)$"):
                decrypt(private, vector)

    def test_under_another_key(self, stranger, enc, bare, private):
        reason = r"^EncryptedVector\(1 values.* is not under this private key$"
        with pytest.raises(KeyMismatchError, match=reason):
            decrypt(stranger, enc([1]))
        with pytest.raises(KeyMismatchError, match=reason):
            decrypt(private, encrypt(bare, [1], bound=1, exponent="full"))

    def test_a_plaintext_of_no_layout(self, private, enc, public):
        n = public.n
        for plaintext in (n // 2, n // 2 + 1, 1 << enc([1]).packing.slot):
            vector = enc([1])
            vector.ciphertexts = [textbook.encrypt(int(n), int(plaintext), 7)]
            with pytest.raises(RangeError, match=r"^a plaintext does not fit its slots"):
                decrypt(private, vector)

    def test_a_value_beyond_what_the_additions_allow(self, private, enc, public):
        """Both are known, so that a forged total can be seen and refused."""
        vector = enc([1, 2], additions=1024)
        room = (1 << (vector.packing.slot - 1)) - 1
        vector.ciphertexts = [textbook.encrypt(int(public.n), room, 7)]
        with pytest.raises(RangeError):
            decrypt(private, vector)

    @each_case(
        "length, weight, count, error",
        [
            (-1, 1, 0, ParameterError),
            (1, 1, 0, ParameterError),
            (1, 1, 2, ParameterError),
            (0, 1, 1, ParameterError),
            (1, -1, 1, RangeError),
            (1, 5, 1, RangeError),
        ],
    )
    def test_a_vector_that_cannot_be(self, public, length, weight, count, error):
        plan = Packing.plan(public, 5, 4)
        with pytest.raises(error, match=r"do not hold|additions where the slots"):
            EncryptedVector(public, plan, length, weight, [1] * count)

    def test_the_list_is_its_own(self, public):
        plan = Packing.plan(public, 5, 4)
        ciphertexts = [7]
        vector = EncryptedVector(public, plan, 1, 1, ciphertexts)
        ciphertexts[0] = 9
        assert vector.ciphertexts == [7]


def test_centred():
    for n in (15, 35, 77):
        assert [vectors.centred(m, n) for m in range(n)] == [
            *range(n // 2 + 1),
            *range(-(n // 2), 0),
        ]
