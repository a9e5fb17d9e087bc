"""phe and its command: keys and numbers, in both directions."""

import builtins
import json
import math

import pytest
from cases import each_case, examples
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from paillier import textbook
from phe import EncodedNumber, EncryptedNumber
from phe.command_line import cli

from securecomp.errors import (
    BackendUnavailableError,
    DecodeError,
    KeyMismatchError,
    ParameterError,
    RangeError,
)
from securecomp.paillier import EncryptedVector, PrivateKey, PublicKey, decrypt, encrypt, interop

TESTS = {"insecure_for_tests": True}


@pytest.fixture(scope="module")
def theirs(private):
    """The key of most tests, as phe's private key."""
    return private.to_phe()


@pytest.fixture
def pheutil(tmp_path, monkeypatch):
    """`pheutil(...)` runs phe's command in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def pheutil(*arguments):
        result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    return pheutil


@pytest.fixture
def ours(tmp_path, private):
    """Our key files."""
    (tmp_path / "our.key").write_text(private.to_json())
    (tmp_path / "our.pub").write_text(private.public.to_json())


def number(path, public):
    """An encrypted number as `pheutil` writes it."""
    fields = json.loads(path.read_text())
    return EncryptedNumber(public.to_phe(), int(fields["v"]), fields["e"])


class TestPheutil:
    def test_its_keys(self, pheutil, tmp_path):
        pheutil("genpkey", "--keysize", "512", "their.key")
        pheutil("extract", "their.key", "their.pub")
        private = PrivateKey.from_json((tmp_path / "their.key").read_text(), **TESTS)
        public = PublicKey.from_json((tmp_path / "their.pub").read_text(), **TESTS)
        assert private.public == public
        assert public.bits == 512
        assert public.h_s is None
        vector = encrypt(public, [5, -6], bound=9, exponent="full")
        assert decrypt(private, vector).tolist() == [5, -6]

    def test_our_keys_and_its_numbers(self, pheutil, ours, tmp_path, private):
        pheutil("encrypt", "--output", "a.json", "our.pub", "2.5")
        pheutil("encrypt", "--output", "b.json", "our.pub", "--", "-1000.125")
        pheutil("addenc", "--output", "sum.json", "our.pub", "a.json", "b.json")
        pheutil("multiply", "--output", "product.json", "our.pub", "sum.json", "--", "-3")
        assert float(pheutil("decrypt", "our.key", "product.json")) == 3 * 997.625
        numbers = [number(tmp_path / f, private.public) for f in ("a.json", "b.json")]
        read = interop.from_phe(numbers, private.public)
        assert read.exponent == -32
        assert read.decrypt(private) == [2.5, -1000.125]
        total = interop.from_phe(
            [number(tmp_path / "product.json", private.public)], private.public
        )
        assert total.decrypt(private) == [3 * 997.625]

    def test_our_private_key_has_our_public_key_in_it(self, pheutil, ours, tmp_path, private):
        pheutil("extract", "our.key", "extracted.pub")
        text = (tmp_path / "extracted.pub").read_text()
        assert PublicKey.from_json(text, **TESTS) == private.public  # h_s too

    def test_our_numbers(self, pheutil, ours, tmp_path, private):
        plan = interop.one_slot(private.public)
        vector = encrypt(private.public, [-12345, 99], bound=plan.bound)
        for got, want in zip(interop.to_phe(vector * 3, -2), (-37035, 297), strict=True):
            fields = {"v": str(got.ciphertext()), "e": got.exponent}
            (tmp_path / "n.json").write_text(json.dumps(fields))
            assert float(pheutil("decrypt", "our.key", "n.json")) == want / 256


class TestFromPhe:
    NUMBERS = (1.5, -2, 3e10, -1e-8, 7, 0, -0.1, 2**60, 123456789.125)

    def test_mixed_exponents(self, private, theirs):
        numbers = [theirs.public_key.encrypt(x) for x in self.NUMBERS]
        exponents = {number.exponent for number in numbers}
        assert len(exponents) > 3
        read = interop.from_phe(numbers, private.public)
        assert read.exponent == min(exponents)
        assert read.decrypt(private) == [float(x) for x in self.NUMBERS]
        assert read.vector.packing.slots == 1
        # They add and scale as any other vector.
        twice = interop.PheNumbers(read.vector * -3 + read.vector, read.exponent)
        assert twice.decrypt(private) == [-2.0 * x for x in self.NUMBERS]

    def test_integers_stay_integers(self, private, theirs):
        values = [0, 1, -1, 2**300, -(2**300) + 1]
        read = interop.from_phe([theirs.public_key.encrypt(v) for v in values], private.public)
        got = read.decrypt(private)
        assert got == values
        assert all(type(v) is int for v in got)
        total = interop.from_phe(
            [theirs.public_key.encrypt(2**200), theirs.public_key.encrypt(-5)], private.public
        )
        assert total.decrypt(private) == [2**200, -5]

    def test_positive_exponents(self, private, theirs):
        public = theirs.public_key
        numbers = [
            public.encrypt(EncodedNumber(public, v % public.n, e))
            for v, e in ((3, 2), (-5, 4), (7, 3))
        ]
        read = interop.from_phe(numbers, private.public)
        assert read.exponent == 2
        assert read.decrypt(private) == [3 * 256, -5 * 65536, 7 * 4096]

    def test_added_to_ours(self, private, theirs):
        """A sum over both softwares, read by both."""
        read = interop.from_phe([theirs.public_key.encrypt(x) for x in (40, -2)], private.public)
        own = encrypt(private.public, [2, -40], bound=read.vector.packing.bound)
        total = (own + read.vector).rerandomised()
        assert decrypt(private, total).tolist() == [42, -42]
        assert [theirs.decrypt(n) for n in interop.to_phe(total)] == [42, -42]

    @examples(40)
    @given(
        st.lists(
            st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15).map(lambda x: round(x, 4)),
            min_size=1,
            max_size=6,
        )
    )
    def test_any_numbers(self, private, theirs, values):
        read = interop.from_phe([theirs.public_key.encrypt(v) for v in values], private.public)
        assert read.decrypt(private) == [float(v) for v in values]

    def test_computed_numbers(self, private, theirs):
        """phe re-randomises what it gives away; what it computed is not yet."""
        a, b = theirs.public_key.encrypt(10.5), theirs.public_key.encrypt(-3)
        for combine, want in (
            (lambda: a + b, 7.5),
            (lambda: a * 2 - b, 24.0),
            (lambda: a + 1000, 1010.5),
            (lambda: b / 4, -0.75),
        ):
            assert interop.from_phe([combine()], private.public).decrypt(private) == [want]

    def test_none(self, public):
        with pytest.raises(ParameterError, match=r"^there are no numbers$"):
            interop.from_phe([], public)

    def test_another_key(self, theirs, stranger, public):
        numbers = [theirs.public_key.encrypt(1), stranger.public.to_phe().encrypt(1)]
        with pytest.raises(KeyMismatchError, match=r"^a number is under another key$"):
            interop.from_phe(numbers, public)

    @each_case("bad", [0, -1, "n", "p", "n2"])
    def test_what_is_no_ciphertext(self, private, theirs, bad):
        n = int(private.public.n)
        value = {"n": n, "p": textbook.factors(private)[0], "n2": n * n}.get(bad, bad)
        good = theirs.public_key.encrypt(1)
        number = EncryptedNumber(theirs.public_key, 1, 0)
        number._EncryptedNumber__ciphertext = value
        number._EncryptedNumber__is_obfuscated = True
        reason = r"^phe's numbers: number 2 (is not in \[1, n\^2\)|shares a factor)"
        with pytest.raises(DecodeError, match=reason):
            interop.from_phe([good, number], private.public)

    def test_exponents_too_far_apart(self, private, theirs):
        """510 bits in a slot: a shift of 63 hexadecimal digits, and not of 64."""
        public = theirs.public_key

        def numbers(shift):
            return [public.encrypt(EncodedNumber(public, 1, e)) for e in (-5, shift - 5)]

        read = interop.from_phe(numbers(63), private.public)
        assert [int(v) for v in decrypt(private, read.vector)] == [1, 16**63]
        with pytest.raises(ParameterError, match=r"^the numbers' exponents are too far apart"):
            interop.from_phe(numbers(64), private.public)
        with pytest.raises(ParameterError, match=r"^the numbers' exponents are too far apart"):
            interop.from_phe(numbers(10**9), private.public)

    @each_case("exponent", [-400_000, 400_000])
    def test_an_exponent_that_no_number_has(self, private, theirs, exponent):
        """A double's exponent is from -269 to 256; one of 10^9 never comes back."""
        number = theirs.public_key.encrypt(EncodedNumber(theirs.public_key, 3, exponent))
        with pytest.raises((ParameterError, RangeError)):
            interop.from_phe([number], private.public).decrypt(private)

    def test_values_of_any_size(self, private, theirs):
        public = theirs.public_key
        for value, exponent, want in ((2**480, -1, 2.0**476), (2**400, 9, 2**436)):
            number = public.encrypt(EncodedNumber(public, value, exponent))
            read = interop.from_phe([number], private.public)
            assert read.decrypt(private) == [want]

    def test_a_value_beyond_a_double(self, real):
        public = real.public.to_phe()
        number = public.encrypt(EncodedNumber(public, 2**1500, -1))
        with pytest.raises(RangeError):
            interop.from_phe([number], real.public).decrypt(real)

    def test_the_additions_that_are_left(self, private, theirs):
        numbers = [theirs.public_key.encrypt(3)]
        read = interop.from_phe(numbers, private.public, additions=5)
        assert read.vector.packing == interop.one_slot(private.public, 5)
        assert read.vector.left == 4
        assert decrypt(private, read.vector * 5).tolist() == [15]
        with pytest.raises(RangeError, match=r"^6 additions where the slots have room for 5"):
            read.vector * 6
        assert interop.from_phe(numbers, private.public).vector.left == 1023


class TestToPhe:
    @each_case("exponent", [0, -3, 2])
    def test_phe_reads_ours(self, private, theirs, exponent):
        plan = interop.one_slot(private.public)
        values = [0, 1, -1, plan.bound, -plan.bound, 12345, -(2**200)]
        for options in ({}, {"exponent": "full"}, {"owner": private}):
            vector = encrypt(private.public, values, bound=plan.bound, **options)
            assert vector.packing == plan
            numbers = interop.to_phe(vector, exponent)
            assert {type(n) for n in numbers} == {EncryptedNumber}
            assert {n.exponent for n in numbers} == {exponent}
            plain = [theirs.decrypt_encoded(n) for n in numbers]
            n = theirs.public_key.n
            assert [p.encoding for p in plain] == [v % n for v in values]
            if exponent == 0:
                assert [theirs.decrypt(number) for number in numbers] == values
            assert theirs.decrypt(numbers[5]) == 12345 * 16.0**exponent

    @each_case("additions", [1, 2, 3, 1024])
    def test_the_largest_sum_is_one_that_phe_takes(self, private, theirs, additions):
        plan = interop.one_slot(private.public, additions)
        vector = (
            encrypt(
                private.public, [plan.bound, -plan.bound], bound=plan.bound, additions=additions
            )
            * additions
        )
        largest = plan.bound * additions
        assert largest < theirs.public_key.max_int
        assert [theirs.decrypt(n) for n in interop.to_phe(vector)] == [largest, -largest]
        assert decrypt(private, vector).tolist() == [largest, -largest]

    def test_phe_adds_ours(self, private, theirs):
        plan = interop.one_slot(private.public)
        a, b = interop.to_phe(encrypt(private.public, [7, -9], bound=plan.bound))
        assert theirs.decrypt(a + b * 2 + 0.5) == -10.5

    def test_one_slot(self, private, real):
        for key in (private.public, real.public):
            for additions in (1, 2, 1000, 1024, 1025):
                plan = interop.one_slot(key, additions)
                assert (plan.slot, plan.slots) == (key.bits - 2, 1)
                assert plan == type(plan).plan(key, plan.bound, additions)
                wider = 2 * plan.bound + 1
                with pytest.raises(RangeError):
                    type(plan).plan(key, wider, additions)

    def test_more_slots_than_one(self, private):
        vector = encrypt(private.public, [1, 2], bound=9)
        reason = r"^phe has one value a ciphertext; encrypt with the layout one_slot\(\)$"
        with pytest.raises(ParameterError, match=reason):
            interop.to_phe(vector)

    def test_without_phe(self, private, monkeypatch):
        plan = interop.one_slot(private.public)
        vector = encrypt(private.public, [1], bound=plan.bound)
        original = builtins.__import__

        def without(name, *rest):
            if name == "phe":
                raise ImportError(name)
            return original(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(BackendUnavailableError, match=r"^phe is not installed; pip install"):
            interop.to_phe(vector)

    @each_case("additions", [2**600, 0, -5])
    def test_additions_that_cannot_be(self, public, additions):
        with pytest.raises((ParameterError, RangeError)):
            interop.one_slot(public, additions)

    def test_an_empty_vector(self, private):
        plan = interop.one_slot(private.public)
        assert interop.to_phe(encrypt(private.public, [], bound=plan.bound)) == []


def test_phe_is_the_reference(private, theirs):
    """Both, and the textbook, read each other's bare ciphertexts."""
    p, q = textbook.factors(private)
    n = p * q
    for m in (0, 1, n - 1, math.isqrt(n)):
        c = theirs.public_key.raw_encrypt(m)
        assert private.raw_decrypt(c) == theirs.raw_decrypt(c) == textbook.decrypt(p, q, c) % n == m
    plan = interop.one_slot(private.public)
    wide = EncryptedVector(private.public, plan, 1, 1, [theirs.public_key.raw_encrypt(n - 5)])
    assert decrypt(private, wide).tolist() == [-5]
