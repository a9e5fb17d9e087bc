"""Keys: how they are drawn, what is refused, and the forms in which they travel."""

import copy
import inspect
import json
import math

import gmpy2
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from paillier import textbook
from phe import paillier as phe

from securecomp.errors import DecodeError, ParameterError
from securecomp.paillier import PrivateKey, PublicKey, keys

TESTS = {"insecure_for_tests": True}


class Scripted:
    """An entropy source that says what it is told, and then what another says."""

    def __init__(self, numbers, then):
        self.numbers, self.then = list(numbers), then

    def __call__(self, size):
        return self.numbers.pop(0).to_bytes(size, "big") if self.numbers else self.then(size)


def prime(bits, accept=lambda p: True, start=0):
    """A prime as a key's factors are: its two highest bits set, and 3 mod 4."""
    candidate = (3 << (bits - 2)) + start
    while True:
        candidate = int(gmpy2.next_prime(candidate))
        if candidate % 4 == 3 and accept(candidate):
            return candidate


class TestGeneration:
    @each_case("bits", [64, 66, 128, 250, 256, 512, 1022])
    def test_what_a_key_is(self, replay, bits):
        key = PrivateKey.generate(bits, **TESTS, entropy=replay(f"bits {bits}"))
        p, q = textbook.factors(key)
        assert gmpy2.is_prime(p, 50)
        assert gmpy2.is_prime(q, 50)
        assert p * q == key.public.n
        assert p % 4 == q % 4 == 3
        assert math.gcd(p - 1, q - 1) == 2
        assert p.bit_length() == q.bit_length() == bits // 2
        assert key.public.n.bit_length() == key.public.bits == bits
        assert key.public.n2 == (p * q) ** 2

    def test_h_s_is_what_damgard_jurik_and_nielsen_say(self, private):
        """h_s = (-x^2)^n: an encryption of zero whose root is minus a square."""
        p, q = textbook.factors(private)
        h_s = int(private.public.h_s)
        assert textbook.decrypt(p, q, h_s) == 0
        # -1 is no square modulo a prime that is 3 mod 4, and n is odd.
        assert textbook.non_residue(h_s, p)
        assert textbook.non_residue(h_s, q)

    def test_all_randomness_is_the_parameters(self, replay):
        first, again, other = (
            PrivateKey.generate(256, **TESTS, entropy=replay(seed)) for seed in (1, 1, 2)
        )
        assert first.public.id == again.public.id
        assert first.to_json() == again.to_json()
        assert first.public.n != other.public.n
        assert first.public.h_s != other.public.h_s

    def test_a_real_key(self, real):
        assert real.public.bits == 2048
        assert real.public.ciphertext_bytes == 512
        assert real.raw_decrypt(textbook.encrypt(int(real.public.n), 41, 5)) == 41

    def test_the_length_that_nobody_asked_for(self):
        assert inspect.signature(PrivateKey.generate).parameters["bits"].default == 3072
        assert (keys.DEFAULT_BITS, keys.LEAST_BITS) == (3072, 2048)

    @pytest.mark.slow
    def test_the_default(self, replay):
        assert PrivateKey.generate(entropy=replay("the default")).public.bits == 3072

    @each_case("bits", [1, 65, 511, 513, 2047, 2049, 3073, 62, 2, 0, -2, -512, 16386])
    @each_case("flags", [{}, TESTS])
    def test_a_length_that_cannot_be(self, bits, flags):
        """phe never comes back from an odd length."""
        reason = rf"^a key has an even number of bits up to 16384, not {bits}$"
        with pytest.raises(ParameterError, match=reason):
            PrivateKey.generate(bits, **flags, entropy=None)

    @each_case("bits", [64, 1024, 2046])
    def test_a_short_key(self, bits):
        reason = f"^a key of {bits} bits is not safe; use at least 2048, better 3072$"
        with pytest.raises(ParameterError, match=reason):
            PrivateKey.generate(bits, entropy=None)

    def test_the_same_prime_twice_is_drawn_again(self, replay):
        p, q = prime(128), prime(128, lambda p: p % 3 == 2, 1 << 100)
        key = PrivateKey.generate(256, **TESTS, entropy=Scripted([p, p, p, q], replay("x")))
        assert set(textbook.factors(key)) == {p, q}

    def test_factors_that_share_more_than_two(self, replay):
        p, q = (prime(128, lambda p: p % 3 == 1, start) for start in (0, 1 << 100))
        r = prime(128, lambda p: p % 3 == 2, 1 << 101)
        key = PrivateKey.generate(256, **TESTS, entropy=Scripted([p, q, p, r], replay("x")))
        assert set(textbook.factors(key)) == {p, r}

    def test_factors_that_are_close_are_drawn_again(self, replay):
        p = prime(1024)
        near, far = (
            prime(1024, lambda q: math.gcd(p - 1, q - 1) == 2, 1 << bit) for bit in (900, 950)
        )
        key = PrivateKey.generate(2048, entropy=Scripted([p, near, p, far], replay("x")))
        assert set(textbook.factors(key)) == {p, far}

    def test_candidates_are_composed_and_tested(self):
        """Of what was drawn only the two highest and the two lowest bits are set."""
        p = prime(64)
        composite = p + 4
        assert not gmpy2.is_prime(composite)
        drawn = (p ^ 3) & ~(3 << 62)
        assert keys.random_prime(64, Scripted([composite, composite, drawn], None)) == p
        assert keys.random_prime(63, Scripted([prime(63) | 1 << 63], None)) == prime(63)

    def test_random_numbers_take_128_bits_more(self):
        sizes = []

        def entropy(size):
            sizes.append(size)
            return b"\xff" * size

        limit = (1 << 100) + 7
        assert keys.random_below(limit, entropy) == ((1 << (8 * sizes[0])) - 1) % limit
        assert sizes == [13 + 16]

    def test_a_base_is_coprime_to_the_modulus(self, private):
        p, q = textbook.factors(private)
        n = p * q
        entropy = Scripted([0, p, 5 * q, 7], None)
        assert keys.draw_base(gmpy2.mpz(n), entropy) == pow(-49 % n, n, n * n)


P, Q = prime(256), prime(256, start=1 << 250)
NEAR = prime(256, start=P - (3 << 254) + 2)
SHORT = prime(250)
SAFE = prime(1024)
CLOSE = prime(1024, start=SAFE - (3 << 1022) + (1 << 900))


class TestPrivate:
    @each_case(
        "p, q, reason",
        [
            (P, P, "the factors of the private key are equal or of other lengths"),
            (P, SHORT, "the factors of the private key are equal or of other lengths"),
            (SHORT, P, "the factors of the private key are equal or of other lengths"),
            (P, Q + 2, "a factor of the private key is not an odd prime"),
            (prime(128) * prime(128, start=9), Q, "a factor of the private key is not an odd"),
            (Q, P * P, "a factor of the private key is not an odd prime"),
            (2, Q, "a factor of the private key is not an odd prime"),
            (1, P * Q, "a factor of the private key is not an odd prime"),
            (0, 0, "a factor of the private key is not an odd prime"),
            (-P, -Q, "a factor of the private key is not an odd prime"),
            (P, NEAR, "an unsafe modulus: its factors are equal or too close"),
            (3, 3, "the factors of the private key are equal"),
            (5, 7, "^a key has an even number of bits up to 16384, not 6$"),
        ],
    )
    def test_factors_that_make_no_key(self, p, q, reason):
        with pytest.raises(ParameterError, match=reason):
            PrivateKey(p, q, **TESTS)

    def test_factors_that_are_too_close_for_a_real_key(self):
        """FIPS 186-5, A.1.1: they differ in their highest 100 bits."""
        reason = "^the factors of the private key are too close to each other$"
        with pytest.raises(ParameterError, match=reason):
            PrivateKey(SAFE, CLOSE)
        assert PrivateKey(SAFE, prime(1024, start=1 << 1000)).public.bits == 2048

    def test_a_short_one(self):
        with pytest.raises(ParameterError, match=r"^a key of 512 bits is not safe"):
            PrivateKey(P, Q)

    def test_the_order_of_the_factors_does_not_matter(self):
        assert PrivateKey(P, Q, **TESTS).to_json() == PrivateKey(Q, P, **TESTS).to_json()

    def test_it_shows_no_secret(self, private):
        p, q = textbook.factors(private)
        shown = f"{private} {private!r} {[private]} { ({'k': private}) }"
        assert "PrivateKey(of PublicKey(512 bits, id " in shown
        for secret in (p, q, p - 1, q - 1):
            assert str(secret)[:12] not in shown
            assert f"{secret:x}"[:12] not in shown
            assert textbook.text(secret)[:12] not in shown

    def test_decryption_is_the_textbooks(self, private):
        p, q = textbook.factors(private)
        n = p * q
        for plaintext in (0, 1, 2, n // 2, n // 2 + 1, n - 1, p, q, 12345678901234567890):
            for r in (1, 2, n - 1, 0xDEADBEEF):
                ciphertext = textbook.encrypt(n, plaintext, r)
                assert private.raw_decrypt(ciphertext) == plaintext

    def test_powers_by_the_owner(self, private):
        n = int(private.public.n)
        for base in (1, 2, n - 1, n + 1, 3**300):
            assert private.power_n(gmpy2.mpz(base)) == pow(base, n, n * n)


class TestPublic:
    @each_case(
        "n, reason",
        [
            (P * Q * 4, "^not a Paillier modulus: it is even or prime$"),
            (1 << 511, "^not a Paillier modulus: it is even or prime$"),
            (prime(512), "^not a Paillier modulus: it is even or prime$"),
            (P * P, "^an unsafe modulus: its factors are equal or too close$"),
            (
                prime(128, start=(1 << 126) - 999) ** 4,
                "^an unsafe modulus: its factors are equal or too close$",
            ),
            (
                prime(170, start=(1 << 168) - 999) ** 3,
                "^an unsafe modulus: its factors are equal or",
            ),
            (P * NEAR, "^an unsafe modulus: its factors are equal or too close$"),
            (prime(255) * Q, "^a key has an even number of bits up to 16384, not 511$"),
            (0, "^a key has an even number of bits"),
            (1, "^a key has an even number of bits"),
            ((1 << 16385) + 1, "^a key has an even number of bits up to 16384, not 16386$"),
        ],
    )
    def test_what_is_no_modulus(self, n, reason):
        with pytest.raises(ParameterError, match=reason):
            PublicKey(n, **TESTS)

    def test_a_negative_modulus(self):
        with pytest.raises(ParameterError):
            PublicKey(-P * Q, **TESTS)

    @each_case("bits", [512, 2046])
    def test_a_short_one(self, bits):
        n = prime(bits // 2) * prime(bits // 2, start=1 << (bits // 2 - 4))
        with pytest.raises(ParameterError, match=f"^a key of {bits} bits is not safe"):
            PublicKey(n)
        assert PublicKey(n, **TESTS).bits == bits

    @each_case("case", ["0", "1", "-1", "-5", "n", "p", "5q", "n^2", "n^2+2"])
    def test_an_h_s_that_is_none(self, private, case):
        p, q = textbook.factors(private)
        n = p * q
        h_s = {"n": n, "p": p, "5q": 5 * q, "n^2": n * n, "n^2+2": n * n + 2}.get(case)
        reason = "^h_s is not an element of the group; get it from the key holder$"
        with pytest.raises(ParameterError, match=reason):
            PublicKey(n, int(case) if h_s is None else h_s, **TESTS)

    @each_case("case", ["-1", "1+n", "1+7n", "n-1"])
    def test_an_h_s_that_hides_nothing(self, public, case):
        """Modulo n they are 1 or -1: a ciphertext is then its plaintext, in clear."""
        n, n2 = public.n, public.n2
        h_s = {"-1": n2 - 1, "1+n": 1 + n, "1+7n": 1 + 7 * n, "n-1": n - 1}[case]
        with pytest.raises(ParameterError, match="h_s"):
            PublicKey(n, h_s, **TESTS)

    def test_its_id_binds_the_modulus_and_h_s(self, private, stranger):
        n, h_s = int(private.public.n), int(private.public.h_s)
        seen = [
            PublicKey(n, **TESTS),
            PublicKey(n, h_s, **TESTS),
            PublicKey(n, h_s * h_s % n**2, **TESTS),
            PublicKey(stranger.public.n, **TESTS),
            PublicKey(stranger.public.n, h_s % int(stranger.public.n2), **TESTS),
        ]
        assert [key.id for key in seen] == [
            textbook.key_id(int(key.n), None if key.h_s is None else int(key.h_s)) for key in seen
        ]
        assert len({key.id for key in seen}) == len(set(seen)) == len(seen)
        assert seen[0] != seen[1] != seen[2]
        assert seen[1] == private.public
        assert seen[1] != "another type"
        assert repr(seen[1]) == f"PublicKey(512 bits, id {seen[1].id.hex()[:16]})"

    def test_sizes(self, private, real):
        assert private.public.ciphertext_bytes == 128
        assert real.public.ciphertext_bytes == 512
        n = prime(33) * prime(33, start=1 << 30)
        assert PublicKey(n, **TESTS).ciphertext_bytes == -(-(n * n).bit_length() // 8) == 17


class TestCiphertexts:
    GOOD = 12345

    @each_case("case", ["0", "-1", "-12345", "n^2", "n^2+1", "above"])
    @each_case("position", [1, 2, 4])
    def test_out_of_range(self, private, case, position):
        n2 = private.public.n2
        bad = {"n^2": n2, "n^2+1": n2 + 1, "above": n2 * 9 + 5}.get(case)
        ciphertexts = [gmpy2.mpz(self.GOOD)] * 4
        ciphertexts[position - 1] = gmpy2.mpz(case) if bad is None else bad
        reason = rf"^ciphertexts: number {position} is not in \[1, n\^2\)$"
        with pytest.raises(DecodeError, match=reason):
            private.public.check_ciphertexts(ciphertexts)

    @each_case("case", ["n", "p", "7q", "p^2", "n*(n-1)", "5n"])
    @each_case("position", [1, 2, 4])
    def test_not_invertible(self, private, case, position):
        p, q = textbook.factors(private)
        n = p * q
        bad = {"n": n, "p": p, "7q": 7 * q, "p^2": p * p, "n*(n-1)": n * (n - 1), "5n": 5 * n}
        ciphertexts = [gmpy2.mpz(self.GOOD)] * 4
        ciphertexts[position - 1] = gmpy2.mpz(bad[case])
        reason = f"^here: number {position} shares a factor with the modulus$"
        with pytest.raises(DecodeError, match=reason):
            private.public.check_ciphertexts(ciphertexts, "here")

    def test_the_first_is_named(self, private):
        p, _ = textbook.factors(private)
        with pytest.raises(DecodeError, match="number 2 "):
            private.public.check_ciphertexts([1, p, 5, p * 3])

    def test_good_ones(self, private):
        n2 = int(private.public.n2)
        private.public.check_ciphertexts([])
        private.public.check_ciphertexts([1, 2, n2 - 1])


class TestFiles:
    def test_the_fields(self, private):
        p, q = textbook.factors(private)
        n, h_s = p * q, int(private.public.h_s)
        short = private.public.id.hex()[:16]
        public = {
            "kty": "DAJ",
            "alg": "PAI-GN1",
            "key_ops": ["encrypt"],
            "n": textbook.text(n),
            "kid": f"securecomp {short}",
            "securecomp_h_s": textbook.text(h_s),
        }
        assert json.loads(private.public.to_json()) == public
        assert json.loads(private.to_json()) == {
            "kty": "DAJ",
            "key_ops": ["decrypt"],
            "p": textbook.text(p),
            "q": textbook.text(q),
            "pub": public,
            "kid": f"securecomp {short}",
        }

    def test_a_key_without_h_s_has_no_field_for_it(self, private):
        bare = PublicKey(private.public.n, **TESTS)
        assert "securecomp_h_s" not in json.loads(bare.to_json())
        assert PublicKey.from_json(bare.to_json(), **TESTS) == bare

    def test_round_trip(self, private, real):
        read = PrivateKey.from_json(private.to_json(), **TESTS)
        assert textbook.factors(read) == textbook.factors(private)
        assert read.public == private.public
        assert PublicKey.from_json(private.public.to_json(), **TESTS) == private.public
        assert PrivateKey.from_json(real.to_json()).public == real.public
        assert PublicKey.from_json(real.public.to_json()) == real.public

    @each_case("kind", [PrivateKey, PublicKey])
    def test_a_short_one_needs_the_flag(self, private, kind):
        text = private.to_json() if kind is PrivateKey else private.public.to_json()
        with pytest.raises(ParameterError, match=r"^a key of 512 bits is not safe"):
            kind.from_json(text)

    @each_case(
        "text",
        [
            *("", " ", "{", "null", "[]", "7", '"DAJ"', "NaN", "[" * 100_000, '{"kty": ' * 9000),
            *("{}", '{"kty": "DAJ"}', '{"kty": "DAJ", "alg": "PAI-GN1"}', "7" * 5000, "\0", "é"),
            '{"kty": "DAJ", "key_ops": ["decrypt"]}',
        ],
    )
    @each_case("kind", [PrivateKey, PublicKey])
    def test_junk(self, kind, text):
        with pytest.raises(DecodeError):
            kind.from_json(text, **TESTS)

    @each_case("kind", [PrivateKey, PublicKey])
    def test_a_huge_file_is_not_parsed(self, kind, private):
        text = private.to_json() if kind is PrivateKey else private.public.to_json()
        fits = text + " " * (8 * 16384 - len(text))
        assert kind.from_json(fits, **TESTS)
        with pytest.raises(DecodeError, match=r"^too long for a key file$"):
            kind.from_json(fits + " ", **TESTS)

    def changed(self, private, *path, value):
        fields = json.loads(private.to_json())
        inner = fields
        for name in path[:-1]:
            inner = inner[name]
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        return json.dumps(fields)

    @each_case("value", ["****", "AAA\n", "a b", "A", "é", " ", "AA=A", "A" * 16388])
    @each_case("name", ["n", "securecomp_h_s", "p", "q"])
    def test_text_that_is_no_base64(self, private, name, value):
        path = (name,) if name in "pq" else ("pub", name)
        reason = f"^the key file('s '{name}' is not base64url| has no valid number '{name}')$"
        with pytest.raises(DecodeError, match=reason):
            PrivateKey.from_json(self.changed(private, *path, value=value), **TESTS)

    @each_case("value", [5, [], {}, True, 1.5])
    @each_case("name", ["n", "securecomp_h_s", "p", "q"])
    def test_a_number_that_is_no_text(self, private, name, value):
        path = (name,) if name in "pq" else ("pub", name)
        with pytest.raises(DecodeError, match=f"^the key file has no valid number '{name}'$"):
            PrivateKey.from_json(self.changed(private, *path, value=value), **TESTS)

    @each_case("name", ["p", "q", "n"])
    def test_a_missing_number(self, private, name):
        path = (name,) if name in "pq" else ("pub", name)
        with pytest.raises(DecodeError, match=f"^the key file has no valid number '{name}'$"):
            PrivateKey.from_json(self.changed(private, *path, value=None), **TESTS)

    def test_factors_of_another_modulus(self, private, stranger):
        other = textbook.text(textbook.factors(stranger)[0])
        reason = "^the file's p and q do not multiply to its n$"
        for name in "pq":
            with pytest.raises(DecodeError, match=reason):
                PrivateKey.from_json(self.changed(private, name, value=other), **TESTS)
        public = json.loads(stranger.public.to_json())
        with pytest.raises(DecodeError, match=reason):
            PrivateKey.from_json(self.changed(private, "pub", value=public), **TESTS)

    def test_factors_that_multiply_to_the_modulus_and_are_none(self, private):
        text = self.changed(private, "p", value=textbook.text(1))
        text = json.dumps(json.loads(text) | {"q": textbook.text(int(private.public.n))})
        with pytest.raises(ParameterError, match="a factor of the private key is not an odd prime"):
            PrivateKey.from_json(text, **TESTS)

    @each_case(
        "path, value, reason",
        [
            (("kty",), "RSA", "^not a Paillier private key file"),
            (("kty",), None, "^not a Paillier private key file"),
            (("kty",), ["DAJ"], "^not a Paillier private key file"),
            (("key_ops",), ["encrypt"], "^not a Paillier private key file"),
            (("key_ops",), [], "^not a Paillier private key file"),
            (("key_ops",), None, "^not a Paillier private key file"),
            (("pub",), None, "^the private key file has no public part$"),
            (("pub",), [], "^the private key file has no public part$"),
            (("pub", "kty"), "RSA", r"^not a Paillier public key file \(kty DAJ, alg PAI-GN1\)$"),
            (("pub", "alg"), "PAI-GN2", "^not a Paillier public key file"),
            (("pub", "alg"), None, "^not a Paillier public key file"),
        ],
    )
    def test_another_kind_of_file(self, private, path, value, reason):
        with pytest.raises(DecodeError, match=reason):
            PrivateKey.from_json(self.changed(private, *path, value=value), **TESTS)

    @each_case("value", [5, True, 1.5])
    def test_key_ops_that_are_no_list(self, private, value):
        with pytest.raises(DecodeError, match=r"^not a Paillier private key file"):
            PrivateKey.from_json(self.changed(private, "key_ops", value=value), **TESTS)

    def test_a_public_file_is_no_private_one_and_the_other_way_round(self, private):
        with pytest.raises(DecodeError, match=r"^not a Paillier private key file"):
            PrivateKey.from_json(private.public.to_json(), **TESTS)
        with pytest.raises(DecodeError, match=r"^not a Paillier public key file"):
            PublicKey.from_json(private.to_json(), **TESTS)

    def test_an_h_s_of_nobody(self, private):
        for h_s in (0, 1, int(private.public.n), int(private.public.n2)):
            text = self.changed(private, "pub", "securecomp_h_s", value=textbook.text(h_s))
            with pytest.raises(ParameterError, match="h_s is not an element of the group"):
                PrivateKey.from_json(text, **TESTS)

    @each_case("part", ["public", "private"])
    def test_a_file_that_shows_the_id_of_another_key(self, private, part):
        """The id is what people compare by phone, and the file is where they read it."""
        foreign = textbook.text(pow(5, int(private.public.n), int(private.public.n2)))
        fields = json.loads(self.changed(private, "pub", "securecomp_h_s", value=foreign))
        kind, fields = (PublicKey, fields["pub"]) if part == "public" else (PrivateKey, fields)
        with pytest.raises(DecodeError, match="id"):
            kind.from_json(json.dumps(fields), **TESTS)

    @examples(60)
    @given(data=st.data())
    def test_mutations_raise_what_is_documented(self, private, data):
        """A changed file is refused, or is the key that it says."""
        fields = json.loads(private.to_json())
        path = data.draw(
            st.sampled_from(
                [(k,) for k in fields if k != "key_ops"] + [("pub", k) for k in fields["pub"]]
            )
        )
        value = data.draw(
            st.none()
            | st.booleans()
            | st.integers(-9, 9)
            | st.floats()
            | st.text(max_size=9)
            | st.lists(st.text(max_size=3), max_size=2)
            | st.sampled_from([textbook.text(int(private.public.n) + d) for d in (-2, 0, 2)])
        )
        changed = copy.deepcopy(fields)
        (changed if len(path) == 1 else changed["pub"])[path[-1]] = value
        try:
            read = PrivateKey.from_json(json.dumps(changed), **TESTS)
        except (DecodeError, ParameterError):
            return
        assert read.public.n == private.public.n

    @given(
        st.text(max_size=60)
        | st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["kty", "alg", "n", "pub", "p"]), inner, max_size=4
                )
            ),
        ).map(json.dumps)
    )
    def test_any_text(self, text):
        for kind in (PrivateKey, PublicKey):
            with pytest.raises(DecodeError):
                kind.from_json(text, **TESTS)


@pytest.fixture(scope="module")
def theirs():
    return phe.PaillierPrivateKey(phe.PaillierPublicKey(P * Q), P, Q)


class TestPhe:
    def test_their_objects(self, theirs):
        ours = PrivateKey.from_phe(theirs, **TESTS)
        assert textbook.factors(ours) == (P, Q)
        assert ours.public.h_s is None
        assert ours.to_phe() == theirs
        public = PublicKey.from_phe(theirs.public_key, **TESTS)
        assert public == ours.public
        assert public.to_phe() == theirs.public_key

    def test_our_objects(self, private):
        theirs = private.to_phe()
        assert type(theirs) is phe.PaillierPrivateKey
        assert {theirs.p, theirs.q} == set(textbook.factors(private))
        assert theirs.public_key.n == private.public.n
        for integer in (theirs.p, theirs.q, theirs.public_key.n, private.public.to_phe().n):
            assert type(integer) is int  # phe compares types
        assert theirs.decrypt(private.public.to_phe().encrypt(-7)) == -7

    def test_short_ones_need_the_flag(self, theirs):
        for take in (
            lambda: PrivateKey.from_phe(theirs),
            lambda: PublicKey.from_phe(theirs.public_key),
        ):
            with pytest.raises(ParameterError, match=r"^a key of 512 bits is not safe"):
                take()
