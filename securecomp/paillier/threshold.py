"""Threshold decryption: any t of m key holders decrypt together, fewer learn nothing.

A dealer draws safe primes p = 2 p' + 1 and q = 2 q' + 1, shares the decryption exponent d (0 mod
p' q', 1 mod n) by a polynomial over Z_(n p' q'), publishes a verification key a share, and must
erase p, q, d and the polynomial: whoever has any of them decrypts alone. `deal` returns only what
may be kept; run it on a machine that is wiped after, and hand each share over in person.

A holder's partial decryption carries a proof that it used its share, so that a wrong one is named.
What t - 1 holders and everyone else learn: the decrypted totals, and nothing else (semi-honest or
malicious holders, honest dealer, random oracle).

Sources: Damgård, Jurik, PKC 2001, section 4 (s = 1); Shoup, EUROCRYPT 2000; Fiat, Shamir, CRYPTO
1986 (challenges; here SHA-256 over everything that is proved).
"""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gmpy2
import msgspec
import numpy.typing as npt
from gmpy2 import invert, mpz, powmod, powmod_sec

from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    KeyMismatchError,
    ParameterError,
    ThresholdError,
)
from securecomp.paillier import keys
from securecomp.paillier.keys import PublicKey, random_below
from securecomp.paillier.vectors import EncryptedVector, centred

MOST_HOLDERS = 1000
_CHALLENGE_BITS = 256
_HIDING_BITS = 128


@dataclass(frozen=True, slots=True)
class ThresholdKey:
    """What everyone knows.

    Attributes:
        public: The key to encrypt under.
        threshold: How many holders decrypt together.
        base: A square v that generates the squares modulo n^2, but for a negligible chance.
        verification: For each holder v^(delta s_i).
    """

    public: PublicKey
    threshold: int
    base: Any
    verification: tuple[Any, ...]

    @property
    def holders(self) -> int:
        """How many holders there are."""
        return len(self.verification)

    @property
    def delta(self) -> int:
        """Return m!, which clears the denominators of Lagrange's coefficients."""
        return math.factorial(self.holders)


@dataclass(frozen=True, slots=True)
class KeyShare:
    """One holder's secret. Its `repr` shows none.

    Attributes:
        key: What everyone knows.
        index: The holder's number, from 1.
    """

    key: ThresholdKey
    index: int
    _secret: Any

    def to_json(self) -> str:
        """Return the share as text. Keep the file secret, mode 0600."""
        return json.dumps(
            {
                "kty": "securecomp paillier share",
                "pub": json.loads(self.key.public.to_json()),
                "threshold": self.key.threshold,
                "base": hex(self.key.base),
                "verification": [hex(v) for v in self.key.verification],
                "index": self.index,
                "secret": hex(self._secret),
            }
        )

    @classmethod
    def from_json(cls, text: str, *, insecure_for_tests: bool = False) -> "KeyShare":
        """Read `to_json`'s output.

        Raises:
            DecodeError: Not a key share.
        """
        try:
            fields = json.loads(text)
            if fields["kty"] != "securecomp paillier share":
                raise DecodeError("not a key share")
            public = PublicKey.from_json(
                json.dumps(fields["pub"]), insecure_for_tests=insecure_for_tests
            )
            verification = tuple(mpz(int(v, 16)) for v in fields["verification"])
            base, secret = mpz(int(fields["base"], 16)), mpz(int(fields["secret"], 16))
            threshold, index = fields["threshold"], fields["index"]
            if not (type(threshold) is int and type(index) is int):
                raise DecodeError("not a key share")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, DecodeError | ParameterError):
                raise
            raise DecodeError("not a key share") from None
        holders = len(verification)
        if not (2 <= threshold <= holders <= MOST_HOLDERS and 1 <= index <= holders):
            raise DecodeError("the key share's numbers are impossible")
        if base < 2 or secret < 1:
            raise DecodeError("the key share's base or secret is none")
        public.check_ciphertexts([base, *verification], "verification keys")
        # Whether a number is a square shows without the factors only in its Jacobi symbol. With a
        # base that is 1 or -1 modulo a factor, a proof binds a holder to no share.
        if gmpy2.jacobi(base, public.n) != 1 or gmpy2.gcd(base * base - 1, public.n) != 1:
            raise DecodeError("the key share's base does not generate the squares")
        key = ThresholdKey(public, threshold, base, verification)
        if powmod_sec(base, key.delta * secret, public.n2) != verification[index - 1]:
            raise DecodeError("the share does not belong to its verification key")
        return cls(key, index, secret)

    def __repr__(self) -> str:
        return f"KeyShare({self.index} of {self.key.holders}, threshold {self.key.threshold})"


class PartialDecryption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One holder's partial decryption of a vector, with proofs.

    Attributes:
        index: The holder.
        values: c^(2 delta s_i) for each ciphertext c.
        challenges: One a ciphertext.
        responses: One a ciphertext.
    """

    index: int
    values: list[bytes]
    challenges: list[bytes]
    responses: list[bytes]

    def encode(self) -> bytes:
        """Return the bytes to send to who combines."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "PartialDecryption":
        """Read them.

        Raises:
            DecodeError: Not a partial decryption.
        """
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise DecodeError(f"not a partial decryption: {error}") from None


def deal(
    holders: int,
    threshold: int,
    bits: int = keys.DEFAULT_BITS,
    *,
    insecure_for_tests: bool = False,
    progress: Callable[[int], None] | None = None,
    entropy: Entropy = entropy_.system,
) -> tuple[ThresholdKey, list[KeyShare]]:
    """Run the dealer.

    Args:
        holders: How many get a share.
        threshold: How many decrypt together, from 2 to `holders`.
        bits: Length of n; safe primes of 1024 bits take minutes.
        insecure_for_tests: Allow less than 2048 bits.
        progress: Called with the number of candidates tried so far.
        entropy: Source of randomness.

    Raises:
        ParameterError: Impossible numbers.
    """
    if not 2 <= threshold <= holders <= MOST_HOLDERS:
        raise ParameterError(
            f"the threshold must be from 2 to the number of holders (at most {MOST_HOLDERS}), not "
            f"{threshold} of {holders}"
        )
    keys.check_bits(bits, insecure_for_tests)
    tried = 0

    def count() -> None:
        nonlocal tried
        tried += 1
        if progress:
            progress(tried)

    while True:
        p, q = (safe_prime(bits // 2, entropy, count) for _ in range(2))
        if p != q:
            break
    n, order = p * q, ((p - 1) // 2) * ((q - 1) // 2)
    public = PublicKey(n, keys.draw_base(n, entropy), insecure_for_tests=insecure_for_tests)
    modulus = n * order
    # 0 modulo the group's order, 1 modulo n: c^d = 1 + m n.
    secret = order * invert(order, n)
    polynomial = [secret, *(random_below(modulus, entropy) for _ in range(threshold - 1))]
    base = powmod(random_below(public.n2 - 1, entropy) + 1, 2, public.n2)
    delta = math.factorial(holders)
    shares = []
    for index in range(1, holders + 1):
        value = mpz(0)
        for coefficient in reversed(polynomial):
            value = (value * index + coefficient) % modulus
        shares.append(value)
    verification = tuple(powmod_sec(base, delta * s, public.n2) for s in shares)
    key = ThresholdKey(public, threshold, base, verification)
    return key, [KeyShare(key, i + 1, s) for i, s in enumerate(shares)]


def safe_prime(bits: int, entropy: Entropy, count: Callable[[], None]) -> Any:
    """Return a prime p such that (p - 1)/2 is prime too, its two highest bits set."""
    while True:
        start = mpz(int.from_bytes(entropy((bits + 7) // 8), "big")) % (mpz(1) << (bits - 1))
        half = start | (mpz(3) << (bits - 3)) | 1
        count()
        # Both must survive small divisors before either gets an expensive test.
        if _small_factor(half) or _small_factor(2 * half + 1):
            continue
        if (
            gmpy2.is_strong_prp(half, 2)
            and gmpy2.is_strong_prp(2 * half + 1, 2)
            and gmpy2.is_prime(half, 40)
            and gmpy2.is_prime(2 * half + 1, 40)
        ):
            return 2 * half + 1


_SMALL = gmpy2.primorial(2000) // 2


def _small_factor(candidate: Any) -> bool:
    return bool(candidate > 2000 and gmpy2.gcd(candidate, _SMALL) != 1)


def partial_decrypt(
    share: KeyShare, vector: EncryptedVector, *, entropy: Entropy = entropy_.system
) -> PartialDecryption:
    """Decrypt a holder's part of a vector, and prove it.

    Raises:
        KeyMismatchError: The vector is under another key.
        DecodeError: A number is no ciphertext.
    """
    key = share.key
    if vector.key != key.public:
        raise KeyMismatchError(f"{vector!r} is not under this key")
    key.public.check_ciphertexts(vector.ciphertexts)
    n2 = key.public.n2
    size = key.public.ciphertext_bytes
    exponent = 2 * key.delta * share._secret
    # The nonce hides delta s_i, which is below n^2 delta, under 128 bits and the challenge.
    room = 2 * key.public.bits + key.delta.bit_length() + _CHALLENGE_BITS + _HIDING_BITS
    values, challenges, responses = [], [], []
    for ciphertext in vector.ciphertexts:
        value = powmod_sec(ciphertext, exponent, n2)
        nonce = random_below(mpz(1) << room, entropy)
        square = ciphertext * ciphertext % n2
        a = powmod_sec(square * square % n2, nonce, n2)
        b = powmod_sec(key.base, nonce, n2)
        challenge = _challenge(key, share.index, ciphertext, value, a, b)
        response = nonce + challenge * key.delta * share._secret
        values.append(int(value).to_bytes(size, "big"))
        challenges.append(challenge.to_bytes(_CHALLENGE_BITS // 8, "big"))
        responses.append(int(response).to_bytes((response.bit_length() + 7) // 8, "big"))
    return PartialDecryption(share.index, values, challenges, responses)


def _challenge(key: ThresholdKey, index: int, c: Any, value: Any, a: Any, b: Any) -> int:
    size = key.public.ciphertext_bytes
    numbers = (key.base, key.verification[index - 1], c, value, a, b)
    parts = [int(number).to_bytes(size, "big") for number in numbers]
    data = prg.join("paillier partial decryption", key.public.id, index, *parts)
    return int.from_bytes(hashlib.sha256(data).digest(), "big")


def verify_partial(
    key: ThresholdKey, vector: EncryptedVector, partial: PartialDecryption
) -> list[Any]:
    """Check a holder's proofs and return its values.

    Raises:
        AuthenticationError: A value does not come from this holder's share; it names the holder.
        DecodeError: Malformed.
    """
    if not 1 <= partial.index <= key.holders:
        raise DecodeError(f"there is no holder {partial.index}")
    count = len(vector.ciphertexts)
    if not len(partial.values) == len(partial.challenges) == len(partial.responses) == count:
        raise DecodeError(f"holder {partial.index}: not {count} values with their proofs")
    n2 = key.public.n2
    room = 2 * key.public.bits + key.delta.bit_length() + _CHALLENGE_BITS + _HIDING_BITS + 8
    v_i = key.verification[partial.index - 1]
    values = []
    for ciphertext, raw, challenge_, response_ in zip(
        vector.ciphertexts, partial.values, partial.challenges, partial.responses, strict=True
    ):
        value, z = (mpz(int.from_bytes(x, "big")) for x in (raw, response_))
        challenge = int.from_bytes(challenge_, "big")
        if not 0 < value < n2 or z.bit_length() > room or len(challenge_) != 32:
            raise DecodeError(f"holder {partial.index}: a number is out of range")
        if gmpy2.gcd(value, key.public.n) != 1:
            raise DecodeError(f"holder {partial.index}: a value shares a factor with the modulus")
        square = ciphertext * ciphertext % n2
        # log of value^2 to base c^4 = log of v_i to base v = delta s_i
        a = powmod(square * square % n2, z, n2) * invert(powmod(value, 2 * challenge, n2), n2)
        b = powmod(key.base, z, n2) * invert(powmod(v_i, challenge, n2), n2)
        if _challenge(key, partial.index, ciphertext, value, a % n2, b % n2) != challenge:
            raise AuthenticationError(
                f"holder {partial.index}: its partial decryption does not come from its share"
            )
        values.append(value)
    return values


def combine(
    key: ThresholdKey, vector: EncryptedVector, partials: Sequence[PartialDecryption]
) -> npt.NDArray[Any]:
    """Verify partial decryptions and return the values, shape (d,).

    Raises:
        ThresholdError: Fewer than the threshold.
        AuthenticationError, DecodeError: One is wrong; it names the holder.
        ParameterError: A holder twice.
    """
    if vector.key != key.public:
        raise KeyMismatchError(f"{vector!r} is not under this key")
    indices = [partial.index for partial in partials]
    if len(set(indices)) != len(indices):
        raise ParameterError("a holder's partial decryption is there twice")
    if len(partials) < key.threshold:
        raise ThresholdError(key.threshold, len(partials), "too few holders to decrypt")
    key.public.check_ciphertexts(vector.ciphertexts)
    used = [*partials][: key.threshold]
    columns = [verify_partial(key, vector, partial) for partial in partials][: key.threshold]
    n, n2 = key.public.n, key.public.n2
    factor = invert(4 * mpz(key.delta) ** 2, n)
    lambdas = [_lagrange(key.delta, partial.index, [p.index for p in used]) for partial in used]
    plaintexts = []
    for position in range(len(vector.ciphertexts)):
        product = mpz(1)
        for column, coefficient in zip(columns, lambdas, strict=True):
            power = powmod(column[position], abs(2 * coefficient), n2)
            product = product * (power if coefficient > 0 else invert(power, n2)) % n2
        if (product - 1) % n:
            raise AuthenticationError("the partial decryptions do not fit together")
        plaintexts.append(centred((product - 1) // n * factor % n, n))
    return vector.packing.unpack(plaintexts, vector.length)


def _lagrange(delta: int, index: int, indices: Sequence[int]) -> int:
    """Return delta times Lagrange's coefficient at zero: an integer."""
    numerator, denominator = delta, 1
    for other in indices:
        if other != index:
            numerator *= -other
            denominator *= index - other
    return numerator // denominator
