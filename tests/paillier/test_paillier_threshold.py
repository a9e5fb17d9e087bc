"""Threshold decryption: any t of m, none fewer, and who cheats is named."""

import dataclasses
import itertools
import json
import math

import gmpy2
import msgspec
import numpy as np
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from paillier import textbook

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    ParameterError,
    RangeError,
    SecureCompError,
    ThresholdError,
)
from securecomp.paillier import EncryptedVector, encrypt, partial_decryption, threshold_key
from securecomp.paillier.partial_decryption import PartialDecryption, combine, partial_decrypt
from securecomp.paillier.threshold_key import KeyShare

TESTS = {"insecure_for_tests": True}
VALUES = [(-1) ** i * (1000 - i) for i in range(20)]  # two ciphertexts


@pytest.fixture(scope="module")
def vector(dealt, replay):
    """A sum of two vectors, several ciphertexts long."""
    entropy = replay("threshold")
    a, b = (
        encrypt(dealt[0].public, VALUES, bound=1000, additions=8, entropy=entropy) for _ in "ab"
    )
    return a * 3 - b


@pytest.fixture(scope="module")
def partials(dealt, vector, replay):
    """Everybody's partial decryption, in order."""
    entropy = replay("nonces")
    return [partial_decrypt(share, vector, entropy=entropy) for share in dealt[1]]


def changed(partial, **fields):
    return msgspec.structs.replace(partial, **fields)


def interpolated(points, n):
    """The coefficients modulo n, the constant first, of the polynomial through the points."""
    found = [0] * len(points)
    for i, y in points:
        basis, scale = [1], 1
        for j, _ in points:
            if j != i:
                basis = [(a - j * b) % n for a, b in zip([0, *basis], [*basis, 0], strict=True)]
                scale = scale * (i - j) % n
        weight = y * int(gmpy2.invert(scale, n))
        found = [(c + weight * b) % n for c, b in zip(found, basis, strict=True)]
    return found


class TestDealing:
    def test_holders_below_the_threshold_cannot_tell_the_exponent(self, replay):
        """d is 1 modulo n, so t - 1 shares give the polynomial modulo n.

        If its coefficients were below n, that would be all of it, and so d. They are not.
        """
        for holders, least in ((2, 2), (3, 3), (5, 3)):
            key, shares = threshold_key.deal(holders, least, 256, **TESTS, entropy=replay("small"))
            n = int(key.public.n)
            message = 12345
            ciphertext = encrypt(key.public, [message], bound=message).ciphertexts[0]
            for some in itertools.combinations(shares, least - 1):
                points = [(0, 1), *((share.index, int(share._secret)) for share in some)]
                found = interpolated(points, n)
                # A share less the rest of the polynomial is the exponent, if they are below n.
                index, value = points[1]
                guess = value - sum(c * index**k for k, c in enumerate(found) if k)
                opened = gmpy2.powmod(ciphertext, 2 * guess, n * n)
                assert opened != (1 + 2 * message * n) % (n * n), (holders, least)

    def test_small_coefficients_would_give_the_exponent_away(self, monkeypatch, replay):
        """The attack above is one: it decrypts if the polynomial has coefficients of 64 bits."""
        original = threshold_key.random_below
        monkeypatch.setattr(
            threshold_key, "random_below", lambda n, entropy: original(n, entropy) % 2**64
        )
        key, shares = threshold_key.deal(3, 2, 256, **TESTS, entropy=replay("small"))
        n = int(key.public.n)
        ciphertext = encrypt(key.public, [5], bound=5, exponent="full").ciphertexts[0]
        value = int(shares[1]._secret)
        slope = interpolated([(0, 1), (2, value)], n)[1]
        assert gmpy2.powmod(ciphertext, 2 * (value - 2 * slope), n * n) == 1 + 2 * 5 * n

    def test_what_is_dealt(self, dealt):
        key, shares = dealt
        assert (key.holders, key.threshold, key.delta) == (5, 3, 120)
        assert key.public.bits == 256
        assert [share.index for share in shares] == [1, 2, 3, 4, 5]
        assert all(share.key is key for share in shares)

    def test_it_is_what_damgard_and_jurik_say(self, dealt, replay):
        """Damgård and Jurik 2001, section 4.1, in Python's integers, from the shares alone.

        Enough shares give a multiple of the exponent, and with it the factors: which must be safe
        primes, and the exponent 0 modulo p' q' and 1 modulo n.
        """
        key, shares = dealt
        n = int(key.public.n)
        secrets = {share.index: int(share._secret) for share in shares}
        exponents = []
        for chosen in itertools.combinations(secrets, 3):
            exponent = 0
            for i in chosen:
                others = [j for j in chosen if j != i]
                numerator = key.delta * math.prod(-j for j in others)
                denominator = math.prod(i - j for j in others)
                assert numerator % denominator == 0
                exponent += numerator // denominator * secrets[i]
            exponents.append(exponent)  # delta d, modulo n p' q'
        p = self.factor(n, 4 * abs(exponents[0]))
        q = n // p
        assert p * q == n
        order = (p - 1) // 2 * ((q - 1) // 2)
        for exponent in exponents:
            assert exponent % order == 0
            assert exponent % n == key.delta
            assert exponent % (n * order) == exponents[0] % (n * order)
        for prime in (p, q):
            assert prime.bit_length() == 128
            assert prime >> 126 == 3
            assert gmpy2.is_prime(prime, 40)
            assert gmpy2.is_prime((prime - 1) // 2, 40)
        # Shares are points of one polynomial of degree 2, spread over all residues.
        assert all(0 <= secret < n * order for secret in secrets.values())
        assert max(secrets.values()).bit_length() > (n * order).bit_length() - 6
        differences = list(secrets.values())
        for degree in range(3):
            assert any(d % (n * order) for d in differences), degree
            differences = [b - a for a, b in itertools.pairwise(differences)]
        assert all(d % (n * order) == 0 for d in differences)
        # Verification keys, of a base that generates the squares.
        v, n2 = int(key.base), n * n
        for index, secret in secrets.items():
            assert pow(v, key.delta * secret, n2) == key.verification[index - 1]
        for prime in (p, q):
            assert pow(v, (prime - 1) // 2, prime) == 1
            assert v % prime != 1
        assert pow(v, order, n2) != 1

    @staticmethod
    def factor(n, multiple):
        """Factor n with a multiple of its group's order (Miller 1976)."""
        odd = multiple // (multiple & -multiple)
        for base in range(2, 50):
            x = pow(base, odd, n)
            while x not in (1, n - 1):
                x, before = x * x % n, x
                if x == 1:
                    return math.gcd(before - 1, n)
        raise AssertionError

    def test_decryption_is_theirs(self, dealt):
        """c^(4 delta^2 d) = 1 + 4 delta^2 m n, computed from the shares without the package."""
        key, shares = dealt
        n = int(key.public.n)
        n2, delta = n * n, key.delta
        for plaintext in (0, 1, n - 1, 123456789):
            c = textbook.encrypt(n, plaintext, 98765)
            parts = {s.index: pow(c, 2 * delta * int(s._secret), n2) for s in shares[1:4]}
            product = 1
            for i, part in parts.items():
                others = [j for j in parts if j != i]
                weight = delta * math.prod(-j for j in others) // math.prod(i - j for j in others)
                product = product * pow(part, 2 * weight, n2) % n2
            assert (product - 1) % n == 0
            assert (product - 1) // n * pow(4 * delta**2, -1, n) % n == plaintext

    def test_h_s_is_an_encryption_of_zero(self, dealt):
        key, shares = dealt
        vector = EncryptedVector(
            key.public, encrypt(key.public, [0], bound=1).packing, 1, 1, [key.public.h_s]
        )
        parts = [partial_decrypt(share, vector) for share in shares[:3]]
        assert combine(key, vector, parts).tolist() == [0]

    def test_all_randomness_is_the_parameters(self, dealt, replay):
        key, shares = threshold_key.deal(5, 3, 256, **TESTS, entropy=replay("a dealer"))
        assert key == dealt[0]
        assert [s.to_json() for s in shares] == [s.to_json() for s in dealt[1]]

    def test_progress(self, replay):
        seen = []
        threshold_key.deal(2, 2, 128, **TESTS, progress=seen.append, entropy=replay("progress"))
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) > 2

    @each_case(
        "holders, least", [(5, 1), (5, 0), (5, 6), (1, 1), (0, 0), (1, 2), (1001, 2), (5, -3)]
    )
    def test_numbers_that_cannot_be(self, holders, least):
        reason = (
            r"^the threshold must be from 2 to the number of holders \(at most 1000\), not "
            f"{least} of {holders}$"
        )
        with pytest.raises(ParameterError, match=reason):
            threshold_key.deal(holders, least, 256, **TESTS, entropy=None)

    @each_case("bits", [255, 62, 2049])
    def test_lengths_that_cannot_be(self, bits):
        with pytest.raises(
            ParameterError, match=f"^a key has an even number of bits .* not {bits}"
        ):
            threshold_key.deal(3, 2, bits, **TESTS, entropy=None)

    def test_a_short_key(self):
        with pytest.raises(ParameterError, match=r"^a key of 2046 bits is not safe"):
            threshold_key.deal(3, 2, 2046, entropy=None)

    @each_case("bits", [32, 33, 64, 100])
    def test_safe_primes(self, replay, bits):
        tried = []
        prime = threshold_key.safe_prime(bits, replay(bits), lambda: tried.append(1))
        assert prime.bit_length() == bits
        assert prime >> (bits - 2) == 3
        assert gmpy2.is_prime(prime, 40)
        assert gmpy2.is_prime((prime - 1) // 2, 40)
        assert tried

    def test_what_is_shown(self, dealt):
        for share in dealt[1]:
            shown = f"{share} {share!r} {[share]}"
            assert repr(share) == f"KeyShare({share.index} of 5, threshold 3)"
            assert str(share._secret)[:10] not in shown
            assert f"{int(share._secret):x}"[:10] not in shown


class TestDecryption:
    def test_every_three_of_five(self, dealt, vector, partials):
        want = [2 * v for v in VALUES]
        for chosen in itertools.combinations(range(5), 3):
            got = combine(dealt[0], vector, [partials[i] for i in chosen])
            assert got.tolist() == want
            assert got.dtype == np.int64
        for chosen in itertools.permutations(range(3)):
            assert combine(dealt[0], vector, [partials[i] for i in chosen]).tolist() == want
        for size in (4, 5):
            assert combine(dealt[0], vector, partials[:size]).tolist() == want

    @each_case("holders, least", [(2, 2), (3, 2), (3, 3), (7, 4), (40, 2)])
    def test_other_numbers_of_holders(self, replay, holders, least):
        entropy = replay((holders, least))
        key, shares = threshold_key.deal(holders, least, 128, **TESTS, entropy=entropy)
        vector = encrypt(key.public, [5, -7], bound=10, additions=4) * -3
        parts = [partial_decrypt(share, vector) for share in shares[-least:]]
        assert combine(key, vector, parts).tolist() == [-15, 21]
        with pytest.raises(ThresholdError):
            combine(key, vector, parts[1:])

    def test_fewer_are_refused(self, dealt, vector, partials):
        reason = r"^too few holders to decrypt \({} of at least 3\)$"
        for chosen in ([], [0], [1, 4]):
            with pytest.raises(ThresholdError, match=reason.format(len(chosen))) as caught:
                combine(dealt[0], vector, [partials[i] for i in chosen])
            assert (caught.value.needed, caught.value.got) == (3, len(chosen))

    def test_fewer_with_one_that_is_made_up(self, dealt, vector, partials):
        """Two holders know nothing of the third's value; what they write down is refused."""
        a, b = partials[:2]
        for fake in (
            changed(b, index=3),
            changed(a, index=5),
            changed(b, index=3, values=[v[::-1] for v in b.values]),
            PartialDecryption(
                3,
                [(1).to_bytes(64)] * len(a.values),
                [bytes(32)] * len(a.values),
                [b""] * len(a.values),
            ),
        ):
            with pytest.raises((AuthenticationError, DecodeError), match=f"^holder {fake.index}: "):
                combine(dealt[0], vector, [a, b, fake])

    def test_fewer_who_believe_each_other(self, dealt, vector, partials):
        """Even without proofs: a polynomial of lower degree through their points is another."""
        key = dataclasses.replace(dealt[0], threshold=2)
        for chosen in itertools.combinations(range(5), 2):
            with pytest.raises(AuthenticationError, match=r"^the partial decryptions do not fit"):
                combine(key, vector, [partials[i] for i in chosen])

    def test_a_holder_twice(self, dealt, vector, partials):
        a, b = partials[:2]
        reason = r"^a holder's partial decryption is there twice$"
        for given_ in ([a, b, a], [a, a, a], [a, a], [a, b, changed(b)]):
            with pytest.raises(ParameterError, match=reason):
                combine(dealt[0], vector, given_)

    def test_wide_and_empty_vectors(self, dealt):
        key, shares = dealt
        for values, bound in (([2**80, -(2**80)], 2**80), ([], 5)):
            vector = encrypt(key.public, values, bound=bound, additions=2)
            parts = [partial_decrypt(share, vector) for share in shares[:3]]
            assert combine(key, vector, parts).tolist() == values

    def test_another_key(self, dealt, vector, partials, public):
        key, shares = dealt
        foreign = encrypt(public, [1], bound=1)
        with pytest.raises(KeyMismatchError, match="is not under this key"):
            partial_decrypt(shares[0], foreign)
        with pytest.raises(KeyMismatchError, match="is not under this key"):
            combine(key, foreign, partials)

    @each_case("bad", [0, -1, "n", "n2"])
    def test_what_is_no_ciphertext(self, dealt, vector, partials, bad):
        key, shares = dealt
        n = key.public.n
        forged = EncryptedVector(key.public, vector.packing, vector.length, 4, vector.ciphertexts)
        forged.ciphertexts[1] = gmpy2.mpz({"n": n, "n2": n * n}.get(bad, bad))
        reason = r"^ciphertexts: number 2 (is not in \[1, n\^2\)|shares a factor)"
        with pytest.raises(DecodeError, match=reason):
            partial_decrypt(shares[0], forged)
        with pytest.raises(DecodeError, match=reason):
            combine(key, forged, partials)

    def test_a_plaintext_of_no_layout(self, dealt, vector):
        key, shares = dealt
        forged = EncryptedVector(key.public, vector.packing, 1, 1, vector.ciphertexts[:1])
        n = int(key.public.n)
        forged.ciphertexts = [gmpy2.mpz(textbook.encrypt(n, n // 2, 5))]
        parts = [partial_decrypt(share, forged) for share in shares[:3]]
        with pytest.raises(RangeError, match="does not fit its slots"):
            combine(key, forged, parts)

    def test_a_value_beyond_the_bound_is_refused_as_by_one_holder(self, dealt, replay):
        """The slots have room for 4095, and two vectors up to 1000 add up to 2000."""
        key, shares = dealt
        n, n2 = key.public.n, key.public.n2
        for extra, fits in ((2000, True), (-2000, True), (2001, False), (-2001, False)):
            sum_ = 2 * encrypt(key.public, [0] * 3, bound=1000, additions=2, entropy=replay("sum"))
            sum_.ciphertexts[0] = sum_.ciphertexts[0] * (1 + extra * n) % n2
            parts = [partial_decrypt(share, sum_) for share in shares[:3]]
            if fits:
                assert combine(key, sum_, parts).tolist() == [extra, 0, 0]
            else:
                with pytest.raises(RangeError, match="2 vectors up to 1000"):
                    combine(key, sum_, parts)

    def test_nonces_hide_the_share(self, dealt, vector):
        """Response minus nonce is what it takes to know the share: the nonce has 128 bits more
        than the challenge times the largest share, and none is used twice."""
        key, shares = dealt
        sizes = []

        def entropy(size):
            sizes.append(size)
            return bytes([len(sizes)]) * size

        partial_decrypt(shares[0], vector, entropy=entropy)
        largest = key.delta * int(key.public.n) ** 2 // 4 << 256
        assert len(sizes) == len(vector.ciphertexts)
        assert all(8 * size >= largest.bit_length() + 128 for size in sizes)


class TestProofs:
    def test_the_formulas(self, dealt, vector):
        """What a partial decryption is, bit for bit, with a nonce that is known."""
        key, shares = dealt
        nonce = None

        def entropy(size):
            nonlocal nonce
            nonce = int.from_bytes(b"\x5a" * size)
            return b"\x5a" * size

        one = EncryptedVector(key.public, vector.packing, 1, 1, vector.ciphertexts[:1])
        got = partial_decrypt(shares[2], one, entropy=entropy)
        room = 2 * 256 + (120).bit_length() + 256 + 128
        want = textbook.proof(
            int(key.public.n),
            key.public.id,
            120,
            int(key.base),
            int(shares[2]._secret),
            3,
            int(one.ciphertexts[0]),
            nonce % (1 << room),
        )
        assert got == PartialDecryption(3, *([part] for part in want))

    def test_what_a_holder_sends_is_checked_alone(self, dealt, vector, partials):
        for partial in partials:
            values = partial_decryption.verify_partial(dealt[0], vector, partial)
            assert [int(v).to_bytes(64) for v in values] == partial.values

    def refused(self, dealt, vector, partials, partial, error=AuthenticationError):
        """Refused alone and among others, wherever it is; and the holder is named."""
        reason = f"^holder {partial.index}: "
        with pytest.raises(error, match=reason):
            partial_decryption.verify_partial(dealt[0], vector, partial)
        others = [p for p in partials if p.index != partial.index]
        for given_ in ([partial, *others[:2]], [*others[:2], partial]):
            with pytest.raises(error, match=reason):
                combine(dealt[0], vector, given_)

    @each_case("holder", [1, 3, 5])
    @each_case("position", [0, 1])
    @each_case("field", ["values", "challenges", "responses"])
    def test_one_bit(self, dealt, vector, partials, holder, position, field):
        honest = partials[holder - 1]
        parts = getattr(honest, field)
        for bit in (0, 5):
            number = int.from_bytes(parts[position]) ^ (1 << bit)
            forged = list(parts)
            forged[position] = number.to_bytes(len(parts[position]))
            self.refused(dealt, vector, partials, changed(honest, **{field: forged}))

    def test_values_that_are_related(self, dealt, vector, partials):
        """Minus a value, its inverse, its square, and one: none passes for it."""
        key = dealt[0]
        n, n2 = int(key.public.n), int(key.public.n2)
        honest = partials[1]
        value = int.from_bytes(honest.values[0])
        for other in (pow(value, -1, n2), value * value % n2, 1, n2 - 1, value * (1 + n) % n2):
            forged = changed(honest, values=[other.to_bytes(64), *honest.values[1:]])
            self.refused(dealt, vector, partials, forged)
        # The squares are what is proved; the sign is caught by the hash.
        forged = changed(honest, values=[(n2 - value).to_bytes(64), *honest.values[1:]])
        self.refused(dealt, vector, partials, forged)

    def test_proofs_of_another_share(self, dealt, vector, partials):
        for i, j in ((0, 1), (3, 2)):
            self.refused(dealt, vector, partials, changed(partials[i], index=partials[j].index))
            for field in ("values", "challenges", "responses"):
                mixed = changed(partials[i], **{field: getattr(partials[j], field)})
                self.refused(dealt, vector, partials, mixed)

    def test_proofs_of_another_ciphertext(self, dealt, vector, partials):
        """Neither the next position, nor the same values under other randomness, nor a power."""
        honest = partials[0]
        turned = [honest.values, honest.challenges, honest.responses]
        turned = PartialDecryption(1, *([*part[1:], part[0]] for part in turned))
        self.refused(dealt, vector, partials, turned)
        for other in (vector.rerandomised(), -vector, vector * 2):
            with pytest.raises(AuthenticationError, match=r"^holder 1: its partial decryption"):
                combine(dealt[0], other, partials)

    def test_a_vector_of_another_length(self, dealt, vector, partials):
        shorter = EncryptedVector(dealt[0].public, vector.packing, 1, 1, vector.ciphertexts[:1])
        count = len(vector.ciphertexts)
        assert count > 1
        with pytest.raises(DecodeError, match=r"^holder 1: not 1 values with their proofs$"):
            combine(dealt[0], shorter, partials)
        for field in ("values", "challenges", "responses"):
            for parts in ([], getattr(partials[0], field)[1:], getattr(partials[0], field) * 2):
                with pytest.raises(DecodeError, match=f"^holder 1: not {count} values with their"):
                    combine(
                        dealt[0], vector, [changed(partials[0], **{field: parts}), *partials[1:]]
                    )

    @each_case("index", [0, -1, 6, 2**63 - 1])
    def test_a_holder_that_there_is_not(self, dealt, vector, partials, index):
        stranger = changed(partials[0], index=index)
        with pytest.raises(DecodeError, match=f"^there is no holder {index}$"):
            combine(dealt[0], vector, [stranger, *partials[1:3]])

    @each_case(
        "field, value",
        [
            ("values", b""),
            ("values", bytes(64)),
            ("values", b"\xff" * 64),
            ("values", b"\xff" * 5000),
            ("challenges", b""),
            ("challenges", bytes(31)),
            ("challenges", bytes(33)),
            ("responses", b"\xff" * 5000),
        ],
    )
    def test_numbers_out_of_range(self, dealt, vector, partials, field, value):
        parts = list(getattr(partials[0], field))
        parts[1] = value
        forged = changed(partials[0], **{field: parts})
        with pytest.raises(DecodeError, match=r"^holder 1: a number is out of range$"):
            combine(dealt[0], vector, [forged, *partials[1:3]])

    def test_a_value_that_is_not_invertible(self, dealt, vector, partials):
        values = list(partials[0].values)
        values[1] = int(dealt[0].public.n * 5).to_bytes(64)
        forged = changed(partials[0], values=values)
        with pytest.raises(DecodeError, match=r"^holder 1: a value shares a factor with the mod"):
            combine(dealt[0], vector, [forged, *partials[1:3]])

    def test_one_more_than_needed_that_is_wrong(self, dealt, vector, partials):
        wrong = changed(partials[3], values=partials[2].values)
        with pytest.raises(AuthenticationError, match=r"^holder 4: "):
            combine(dealt[0], vector, [*partials[:3], wrong])


class TestMessages:
    def test_round_trip(self, partials):
        for partial in partials:
            assert PartialDecryption.decode(partial.encode()) == partial

    def test_what_is_none(self, partials):
        data = partials[0].encode()
        for size in range(len(data)):
            with pytest.raises(DecodeError, match=r"^not a partial decryption: "):
                PartialDecryption.decode(data[:size])
        for other in (data + b"\0", b"\xc0", b"\x93\1\2\3", b"[" * 99, b"\x91" * 100_000):
            with pytest.raises(DecodeError, match=r"^not a partial decryption: "):
                PartialDecryption.decode(other)
        fields = msgspec.to_builtins(partials[0])
        for change in ({"more": 1}, {"index": "1"}, {"index": 1.5}, {"values": [5]}, {"values": 7}):
            with pytest.raises(DecodeError, match=r"^not a partial decryption: "):
                PartialDecryption.decode(msgspec.msgpack.encode(fields | change))

    @examples(100)
    @given(draw=st.data())
    def test_mutations(self, dealt, vector, partials, draw):
        mutated = bytearray(partials[0].encode())
        at = draw.draw(st.integers(0, 40) | st.integers(0, len(mutated) - 1))
        mutated[at] ^= draw.draw(st.integers(1, 255))
        with pytest.raises((DecodeError, AuthenticationError, ParameterError)):
            combine(dealt[0], vector, [PartialDecryption.decode(bytes(mutated)), *partials[1:3]])


class TestShareFiles:
    def test_round_trip(self, dealt, vector, partials):
        key, shares = dealt
        read = [KeyShare.from_json(share.to_json(), **TESTS) for share in shares]
        assert read == shares
        assert all(share.key == key for share in read)
        parts = [partial_decrypt(share, vector) for share in read[1:4]]
        assert combine(read[4].key, vector, parts).tolist() == [2 * v for v in VALUES]

    def test_the_fields(self, dealt):
        key, share = dealt[0], dealt[1][1]
        assert json.loads(share.to_json()) == {
            "kty": "securecomp paillier share",
            "pub": json.loads(key.public.to_json()),
            "threshold": 3,
            "base": hex(key.base),
            "verification": [hex(v) for v in key.verification],
            "index": 2,
            "secret": hex(share._secret),
        }

    def test_a_short_key_needs_the_flag(self, dealt):
        with pytest.raises(ParameterError, match=r"^a key of 256 bits is not safe"):
            KeyShare.from_json(dealt[1][0].to_json())

    @each_case("text", ["", "null", "[]", "5", "{}", "{", '{"kty": 5}', "[" * 100_000, "é", "\0"])
    def test_junk(self, text):
        with pytest.raises(DecodeError, match=r"^not a key share$"):
            KeyShare.from_json(text, **TESTS)

    def test_every_field_is_needed(self, dealt):
        fields = json.loads(dealt[1][0].to_json())
        for name in fields:
            without = {k: v for k, v in fields.items() if k != name}
            with pytest.raises(DecodeError):
                KeyShare.from_json(json.dumps(without), **TESTS)

    def changed(self, dealt, **fields):
        return json.dumps(json.loads(dealt[1][0].to_json()) | fields)

    @each_case(
        "fields, reason",
        [
            ({"kty": "DAJ"}, "^not a key share$"),
            ({"threshold": 1}, "^the key share's numbers are impossible$"),
            ({"threshold": 6}, "^the key share's numbers are impossible$"),
            ({"index": 0}, "^the key share's numbers are impossible$"),
            ({"index": 6}, "^the key share's numbers are impossible$"),
            ({"index": -1}, "^the key share's numbers are impossible$"),
            ({"verification": []}, "^the key share's numbers are impossible$"),
            ({"index": 2}, "^the share does not belong to its verification key$"),
            ({"secret": "0x5"}, "^the share does not belong to its verification key$"),
            ({"base": "0x4"}, "^the share does not belong to its verification key$"),
            ({"secret": "xyz"}, "^not a key share$"),
            ({"secret": 5}, "^not a key share$"),
            ({"base": None}, "^not a key share$"),
            ({"verification": "0x1"}, "^not a key share$"),
            ({"verification": [5]}, "^not a key share$"),
            ({"verification": None}, "^not a key share$"),
            ({"index": "x"}, "^not a key share$"),
            ({"index": []}, "^not a key share$"),
            ({"pub": 5}, "^not a key file: it is not a JSON object$"),
            ({"pub": {}}, "^not a Paillier public key file"),
        ],
    )
    def test_what_cannot_be(self, dealt, fields, reason):
        with pytest.raises(DecodeError, match=reason):
            KeyShare.from_json(self.changed(dealt, **fields), **TESTS)

    def test_the_share_of_another_holder(self, dealt):
        for other in dealt[1][1:]:
            text = self.changed(dealt, secret=hex(other._secret))
            with pytest.raises(DecodeError, match="does not belong to its verification key"):
                KeyShare.from_json(text, **TESTS)

    @each_case(
        "fields",
        [
            {"secret": "0x0"},
            {"secret": "-0x5"},
            {"threshold": float("inf")},
            {"index": float("-inf")},
        ],
    )
    def test_numbers_that_are_none(self, dealt, fields):
        with pytest.raises(DecodeError):
            KeyShare.from_json(self.changed(dealt, **fields), **TESTS)

    @each_case("fields", [{"threshold": 3.7}, {"index": 1.2}, {"index": True}])
    def test_numbers_that_are_no_integers(self, dealt, fields):
        with pytest.raises(DecodeError):
            KeyShare.from_json(self.changed(dealt, **fields), **TESTS)

    @each_case("base", [0, 1])
    def test_a_base_that_proves_nothing(self, dealt, base):
        text = self.changed(dealt, base=hex(base), verification=[hex(base)] * 5)
        with pytest.raises(DecodeError):
            KeyShare.from_json(text, **TESTS)

    @each_case(
        "case", ["-1", "1 + n", "1 + 5n", "-1 + 7n", "a root of 1", "1 mod p", "p", "no square"]
    )
    def test_a_base_that_does_not_generate_the_squares(self, dealt, case):
        """A proof to such a base holds for other exponents than the holder's share too."""
        key, shares = dealt
        n = int(key.public.n)
        one, two, three = (int(share._secret) for share in shares[:3])
        # Lagrange's coefficients at zero give a multiple of the group's order.
        p = TestDealing.factor(n, 4 * abs(3 * one - 3 * two + three))
        q, n2 = n // p, n * n
        root = (1 + p * p * pow(p * p, -1, q * q) * (q * q - 2)) % n2  # 1 mod p^2, -1 mod q^2
        assert root * root % n2 == 1
        bases = {
            "-1": n2 - 1,
            "1 + n": 1 + n,
            "1 + 5n": 1 + 5 * n,
            "-1 + 7n": 7 * n - 1,
            "a root of 1": root,
            "1 mod p": pow(1 + 3 * p, 2, n2),
            "p": p * p,
            "no square": next(x for x in range(2, 100) if gmpy2.jacobi(x, n) == -1),
        }
        base = bases[case]
        own = hex(pow(base, key.delta * one, n2))
        text = self.changed(dealt, base=hex(base), verification=[own] * 5)
        with pytest.raises(DecodeError, match=r"does not generate the squares|shares a factor"):
            KeyShare.from_json(text, **TESTS)

    @each_case("case", ["0", "-1", "n", "n2"])
    def test_verification_keys_that_are_none(self, dealt, case):
        n = int(dealt[0].public.n)
        bad = {"n": n, "n2": n * n}.get(case)
        verification = [hex(v) for v in dealt[0].verification]
        verification[3] = hex(int(case) if bad is None else bad)
        with pytest.raises(DecodeError):
            KeyShare.from_json(self.changed(dealt, verification=verification), **TESTS)

    def test_more_holders_than_there_can_be(self, dealt):
        verification = [hex(v) for v in dealt[0].verification] * 201
        with pytest.raises(DecodeError, match="impossible"):
            KeyShare.from_json(self.changed(dealt, verification=verification), **TESTS)

    @examples(60)
    @given(draw=st.data())
    def test_mutations(self, dealt, draw):
        fields = json.loads(dealt[1][0].to_json())
        name = draw.draw(st.sampled_from(["kty", "pub", "base", "verification", "index", "secret"]))
        value = (
            st.none()
            | st.integers(-3, 9)
            | st.text(max_size=5)
            | st.lists(st.text(max_size=3))
            | st.dictionaries(st.text(max_size=3), st.none())
            | st.integers(1, 2**90).map(hex)
        )
        fields[name] = draw.draw(value.filter(lambda v: v != fields[name]))
        with pytest.raises((DecodeError, ParameterError)):
            KeyShare.from_json(json.dumps(fields), **TESTS)

    def test_errors_are_the_packages(self, dealt):
        """A share whose public key is unsafe says so."""
        public = json.loads(dealt[0].public.to_json()) | {"n": textbook.text(3**160)}
        with pytest.raises(SecureCompError):
            KeyShare.from_json(self.changed(dealt, pub=public), **TESTS)
